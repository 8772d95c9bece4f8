"""Channels that are off together: a few next to each other, a row of contacts up to a gap, or all.

Sources adapt to channels at wrong contacts, so that moving one channel at a time makes things
worse. Sources of the other channels say where a few belong. Where a gap was put in the wrong place,
every channel between where it is and where it should be is off by one. A whole probe is off by a
motion that nearly keeps it, if few channels at its ends speak against that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symlift.ephys.fields import Fields, fit_sources, limited, loss, residuals
from symlift.ephys.slips import beyond, filled

__all__ = ["Shift", "moved_rows", "moved_whole", "ranked", "rebuilt"]

# steps around a contact within which channels are assigned anew
_AROUND = (1.1, 1.6, 2.1)
# channels of a whole probe that a motion may leave without a contact
_SPILLED = 4
# rounds of fitting to rank shifts, and to assign channels anew
_ROUGH, _FILL = 8, 12
# the part of its largest amplitude from which a source is seen by a channel
_SEES = 0.02


@dataclass(frozen=True)
class Shift:
    """Slots after a shift, and how much less they leave unexplained, roughly."""

    slot: NDArray[np.int64]
    gain: float


def ranked(
    fields: Fields,
    points: NDArray,
    slot: NDArray[np.int64],
    proposals: Iterable[NDArray[np.int64]],
    most: float,
) -> list[Shift]:
    """What ``proposals`` gain over ``slot``, the best first; ``most``: what a source can leave
    unexplained.
    """
    now = _each(fields, points[slot])
    seen = {slot.tobytes()}
    shifts = []
    for new in proposals:
        sees = _seen_by(fields, new != slot)
        if new.tobytes() not in seen and sees.any():
            seen.add(new.tobytes())
            after = _each(fields.some(sees), points[new])
            shifts.append(Shift(new, limited(now[sees], most) - limited(after, most)))
    return sorted(shifts, key=lambda one: -one.gain)


def _each(fields: Fields, places: NDArray) -> NDArray[np.float64]:
    sources = fit_sources(fields, places, rounds=_ROUGH)
    return np.asarray(loss(residuals(fields, sources, places)).sum(axis=1))


def _seen_by(fields: Fields, channels: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Sources that one of the channels sees."""
    return np.asarray(
        fields.amplitude[:, channels].max(axis=1, initial=0.0)
        > _SEES * fields.amplitude.max(axis=1)
    )


def rebuilt(
    fields: Fields, points: NDArray, slot: NDArray[np.int64]
) -> Iterator[NDArray[np.int64]]:
    """Slots with the channels around a contact where the sources of all others ask for them."""
    apart = np.sqrt(np.sum((points[slot][None] - points[:, None]) ** 2, axis=-1))
    windows = np.unique(np.concatenate([apart < steps for steps in _AROUND]), axis=0)
    for free in windows[(windows.sum(axis=1) > 1) & ~windows.all(axis=1)]:
        sees = _seen_by(fields, free)
        if sees.any():
            yield filled(fields.some(sees), points, slot, free, _FILL)


def moved_whole(
    fields: Fields, points: NDArray, slot: NDArray[np.int64]
) -> Iterator[NDArray[np.int64]]:
    """Slots with all channels moved by a motion that nearly keeps the probe (one that keeps it
    changes nothing), and leaves few without a contact.
    """
    count = len(points)
    for motion in beyond(points).motion:
        to = motion[slot]
        off = (to < 0) | (to >= count)
        if (motion[:count] >= count).any() and off.sum() <= _SPILLED:
            yield filled(fields, points, to, off, _FILL)


def moved_rows(points: NDArray, slot: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Slots with the channels between a gap of a row and another of its contacts moved by one."""
    channel = np.full(len(points), -1)
    channel[slot] = np.arange(len(slot))
    for row in _rows(points):
        on = channel[row]
        for gap in np.flatnonzero(on < 0):
            for end in np.flatnonzero(on >= 0):
                step = 1 if end > gap else -1
                to = np.arange(gap, end, step)
                moves = on[to + step] >= 0
                new = slot.copy()
                new[on[to + step][moves]] = row[to[moves]]
                yield new


def _rows(points: NDArray) -> Iterator[NDArray[np.int64]]:
    """Contacts along an axis: the first ones of each level, the second ones, and so on."""
    for axis in range(points.shape[1]):
        others = [points[:, other] for other in range(points.shape[1]) if other != axis]
        level = np.round(points[:, axis], 3)
        order = np.lexsort((*others, level))
        first = np.r_[0, np.flatnonzero(np.diff(level[order])) + 1]
        rank = np.arange(len(order)) - np.repeat(first, np.diff(np.r_[first, len(order)]))
        for one in range(int(rank.max()) + 1):
            yield order[rank == one]
