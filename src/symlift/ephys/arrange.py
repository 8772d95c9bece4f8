"""Assign channels to contacts so that the sources explain their fields best; contacts may stay
free.

Errors of distances that are estimated from fields accumulate along a probe, but the positions of
contacts are known: fitting sources with channels on contacts alternates with moving channels to the
contacts that fit the sources best.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from symlift.ephys.fields import (
    Fields,
    Sources,
    adjust,
    best_contacts,
    fit_sources,
    limited,
    loss,
    residuals,
)
from symlift.ephys.motions import motions_of
from symlift.ephys.slips import unslipped

__all__ = ["Arranged", "arrange_channels", "arranged"]

# rounds of fitting
_FINE = 60
# a start whose cost is higher by this factor does not count against the best one
_RIVAL = 1.2
# what a source can leave unexplained at most, for each channel of as many as that or more
_SATURATED, _FEWEST = 1.0, 60


@dataclass(frozen=True)
class Arranged:
    """Slot of each channel, what the fields leave unexplained, and the sources.

    ``agreement``: the share of channels on which a start that ended nearly as low agrees.
    """

    slot: NDArray[np.int64]
    cost: float
    sources: Sources
    agreement: float = 1.0


def arranged(
    fields: Fields, points: NDArray, slot: NDArray[np.int64], rounds: int = _FINE
) -> Arranged:
    """The sources of channels at ``slot``, and what they leave unexplained."""
    sources = fit_sources(fields, points[slot], rounds=rounds)
    return Arranged(slot, unexplained(fields, sources, points[slot]), sources)


def saturation(channels: int) -> float:
    """What a source can leave unexplained at most."""
    return _SATURATED * max(channels, _FEWEST)


def unexplained(fields: Fields, sources: Sources, places: NDArray) -> float:
    """What the sources leave unexplained of channels at ``places``."""
    each = loss(residuals(fields, sources, places)).sum(axis=1)
    return limited(each, saturation(len(places)))


def arrange_channels(fields: Fields, points: NDArray, starts: list[NDArray[np.int64]]) -> Arranged:
    """The channels' slots, from the best of ``starts``, each improved by itself."""
    ended = []
    for start in starts:
        first = _improved(fields, points, arranged(fields, points, start))
        slot = unslipped(fields, points, first.slot, saturation(len(start)))
        second = _improved(fields, points, arranged(fields, points, slot))
        ended.append(min(first, second, key=lambda a: a.cost))
    ended.sort(key=lambda a: a.cost)
    best = ended[0]
    if len(ended) == 1 or ended[1].cost > _RIVAL * best.cost:
        return best
    moved = (to[best.slot] for to in motions_of(points, best.slot))
    return replace(best, agreement=max(float(np.mean(slot == ended[1].slot)) for slot in moved))


def _improved(fields: Fields, points: NDArray, now: Arranged, rounds: int = 10) -> Arranged:
    """Move channels to the contacts that fit the sources best, until nothing changes."""
    for _ in range(rounds):
        best = now
        for slot in _proposals(fields, points, now):
            if not np.array_equal(slot, now.slot):
                best = min(best, arranged(fields, points, slot), key=lambda a: a.cost)
        if best is now:
            break
        now = best
    return now


def _proposals(fields: Fields, points: NDArray, now: Arranged) -> Iterator[NDArray[np.int64]]:
    yield best_contacts(fields, now.sources, points)
    free, _ = adjust(fields, points[now.slot], now.sources)
    slot = now.slot
    for _ in range(6):
        laid = np.c_[free, np.ones(len(free))]
        laid = laid @ np.linalg.lstsq(laid, points[slot], rcond=None)[0]
        slot = linear_sum_assignment(np.sum((laid[:, None] - points[None]) ** 2, axis=-1))[1]
    yield np.asarray(slot, dtype=np.int64)
