"""What is read of traces: levels, correlations, neurons; and the channels that have no place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symlift.ephys.events import events_of
from symlift.ephys.fields import Fields
from symlift.ephys.levels import Levels, Parts, correlate, levels_of
from symlift.errors import InputError
from symlift.solvers.contract import Progress, no_progress

__all__ = ["Channels", "read_channels"]

# correlation below which a channel goes with no other, and the deviation, in that of the usual
# channel, from which it floats
_ALONE, _FLOATS = 0.03, 1.5
# as much nearer is a copy to its original than to any other channel, and as near at least (1 -
# correlation)
_TWIN, _TWIN_APART = 0.05, 0.02
# errors of an amplitude from which a neuron stands out
_HEARD = 3.0


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
