"""Find the contact of each channel from traces alone, independently of SpikeInterface."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symlift.ephys.arrange import Arranged, arrange_channels
from symlift.ephys.channels import Channels
from symlift.ephys.fields import Fields, contact_costs
from symlift.ephys.shanks import start_by_shanks
from symlift.errors import InputError
from symlift.search.moves.descent import changes
from symlift.solvers.contract import Progress, no_progress
from symlift.solvers.fast.place.points import in_steps, place_on_points, point_slots

__all__ = ["Wiring", "contact_confidence", "match_contacts"]

# starts that are followed
_STARTS = 2
# what a move of a channel must cost for its place to be sure: half of the confidence
_SURE = 8.0
# share of channels on which two starts agree, and what is left of the confidence where they do not
_AGREES, _DISAGREES = 0.95, 0.3


@dataclass(frozen=True)
class Wiring:
    """Contact of each channel (d,), -1 for those without, and how sure that is, from 0 to 1."""

    contact: NDArray[np.int64]
    confidence: NDArray[np.float64]
    arranged: Arranged


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
    by_shanks = start_by_shanks(channels.correlation, channels.fields, points)
    best = arrange_channels(
        channels.fields, points, starts if by_shanks is None else [*starts, by_shanks]
    )
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
