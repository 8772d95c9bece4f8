"""Find the contact of each channel from traces alone, independently of SpikeInterface."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symlift.ephys.arrange import Arranged, arrange_channels
from symlift.ephys.events import events_of
from symlift.ephys.fields import Fields, contact_costs
from symlift.ephys.levels import Levels, Parts, correlate, levels_of
from symlift.errors import InputError
from symlift.search.moves.descent import changes
from symlift.solvers.contract import Progress, no_progress
from symlift.solvers.fast.place.points import in_steps, place_on_points, point_slots

__all__ = ["Channels", "Wiring", "match_contacts", "read_channels"]

# correlation below which a channel goes with no other, and the deviation, in that of the usual
# channel, from which it floats
_ALONE, _FLOATS = 0.03, 1.5
# as much nearer is a copy to its original than to any other channel, and as near at least (1 -
# correlation)
_TWIN, _TWIN_APART = 0.05, 0.02
# errors of an amplitude from which a neuron stands out
_HEARD = 3.0
# starts that are followed
_STARTS = 2
# what a move of a channel must cost for its place to be sure: half of the confidence
_SURE = 8.0
# share of channels on which two starts agree, and what is left of the confidence where they do not
_AGREES, _DISAGREES = 0.95, 0.3


@dataclass(frozen=True)
class Channels:
    """Statistics of d channels: why some have no place (reason, twin), correlations of the others
    and their fields.
    """

    reason: NDArray[np.str_]
    twin: NDArray[np.int64]
    living: NDArray[np.int64]
    correlation: NDArray[np.float64]
    fields: Fields

    def which(self, reason: str) -> NDArray[np.int64]:
        """Channels that were set aside for ``reason``."""
        return np.flatnonzero(self.reason == reason)

    @property
    def unheard(self) -> NDArray[np.int64]:
        """Living channels on which no neuron stands out: the data do not say where they are."""
        size = (self.fields.amplitude / self.fields.error).max(axis=0, initial=0.0)
        return self.living[size < _HEARD]


@dataclass(frozen=True)
class Wiring:
    """Contact of each channel (d,), -1 for those without, and how sure that is, from 0 to 1."""

    contact: NDArray[np.int64]
    confidence: NDArray[np.float64]
    arranged: Arranged


def read_channels(parts: Parts, rate: float, progress: Progress = no_progress) -> Channels:
    """Read the traces several times: for levels, for correlations, for neurons."""
    progress("levels", 0.0)
    levels = levels_of(parts)
    progress("correlations", 0.1)
    c = correlate(parts, levels)
    reason, twin = _set_aside(c, levels)
    living = np.flatnonzero(reason == "")
    if len(living) < 4:
        raise InputError(
            f"{len(living)} of {len(reason)} channels go with another one: give a recording with"
            " more that see the same sources"
        )
    inside = c[np.ix_(living, living)]
    progress("events", 0.2)
    fields = events_of(parts, levels, inside, living, rate)
    return Channels(reason, twin, living, inside, fields)


def _set_aside(c: NDArray, levels: Levels) -> tuple[NDArray[np.str_], NDArray[np.int64]]:
    """Reason of each channel without a place, "" for others: flat, without spikes (nothing but the
    usual noise), floating, a copy; and what it copies.
    """
    d = len(c)
    size = np.abs(c) - np.eye(d)
    reason = np.full(d, "", dtype="<U9")
    alone = size.max(axis=1) < _ALONE
    usual = (
        float(np.median(levels.spread[levels.varies & ~alone]))
        if (levels.varies & ~alone).any()
        else 0.0
    )
    reason[alone] = np.where(levels.spread[alone] > _FLOATS * usual, "floating", "silent")
    reason[~levels.varies] = "dead"
    twin = np.full(d, -1, dtype=np.int64)
    for i in np.flatnonzero(reason == ""):
        nearest = np.argsort(-size[i], kind="stable")[:2]
        j, other = int(nearest[0]), 1 - size[i, nearest[1]]
        if j < i and 1 - size[i, j] < min(_TWIN_APART, _TWIN * other + 1e-6) and twin[j] < 0:
            twin[i], reason[i] = j, "duplicate"
    return reason, twin


def match_contacts(
    channels: Channels,
    positions: NDArray,
    progress: Progress = no_progress,
) -> Wiring:
    """The contact at ``positions`` (M, D) of each living channel."""
    points, _ = in_steps(positions)
    living = channels.living
    if len(living) > len(points):
        raise InputError(
            f"{len(living)} living channels, but {len(points)} contacts: give the probe that they"
            " were recorded with"
        )
    progress("places", 0.5)
    starts = _distinct(place_on_points(channels.correlation, point_slots(points)))[:_STARTS]
    progress("contacts", 0.6)
    if len(channels.fields.amplitude) < 3:
        raise InputError(
            "no channel ever leaves its noise: give a recording with spikes, or with a lower"
            " threshold of its filter"
        )
    best = arrange_channels(channels.fields, points, starts)
    contact = np.full(len(channels.reason), -1, dtype=np.int64)
    contact[living] = best.slot
    sure = np.zeros(len(channels.reason))
    sure[living] = contact_confidence(channels.fields, points, best)
    return Wiring(contact, sure, best)


def contact_confidence(fields: Fields, points: NDArray, best: Arranged) -> NDArray[np.float64]:
    """How sure each channel's contact is: by how much worse its best other contact is, whoever sits
    there, and the best shift that moves it along with others.

    Less sure where another start ended elsewhere and explains the fields nearly as well.
    """
    cost = contact_costs(fields, best.sources, points)
    change = changes(cost, best.slot)
    change[np.arange(len(cost)), best.slot] = np.inf
    margin = np.minimum(np.maximum(change.min(axis=1), 0), best.margin)
    return np.asarray(
        margin / (margin + _SURE) * (1.0 if best.agreement >= _AGREES else _DISAGREES)
    )


def _distinct(starts: list[tuple[float, NDArray[np.int64]]]) -> list[NDArray[np.int64]]:
    """Starts of different misfit: mirror images have the same."""
    by_misfit: dict[float, NDArray[np.int64]] = {}
    for misfit, slot in starts:
        by_misfit.setdefault(round(misfit, 6), slot)
    return list(by_misfit.values())
