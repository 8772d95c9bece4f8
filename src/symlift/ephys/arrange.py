"""Assign channels to contacts so that the sources explain their fields best; contacts may stay
free.

Errors of distances that are estimated from fields accumulate along a probe, but the positions of
contacts are known: fitting sources with channels on contacts alternates with moving channels to the
contacts that fit the sources best.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

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
from symlift.ephys.shifts import Shift, moved_rows, moved_whole, ranked, rebuilt
from symlift.ephys.slips import unslipped
from symlift.maps.motions import motions_of

__all__ = ["Arranged", "arrange_channels", "arranged", "improved", "with_neighbours_anew"]

# rounds of fitting
_FINE = 60
# a start whose cost is higher by this factor does not count against the best one
_RIVAL = 1.2
# what a source can leave unexplained at most, for each channel of as many as that or more
_SATURATED, _FEWEST = 1.0, 60
# what a shift must be worth, rounds of shifts, and how many are compared closely in each: those
# that seem to cost less than this
_WORTH, _ROUNDS, _FEW, _NEAR = 0.5, 8, 8, 40.0
# motions of the whole probe that are followed, if they seem to cost less than this
_WHOLE, _FOLLOWED = 2, 60.0


@dataclass(frozen=True)
class Arranged:
    """Slot of each channel, what the fields leave unexplained, and the sources.

    ``agreement``: the share of channels on which a start that ended nearly as low agrees.
    ``margin`` (d,): by how much worse the best arrangement that was looked at is in which the
    channel is elsewhere; infinite without one.
    """

    slot: NDArray[np.int64]
    cost: float
    sources: Sources
    agreement: float = 1.0
    margin: NDArray[np.float64] = field(default_factory=lambda: np.array(np.inf))


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
    ended = [_followed(fields, points, start) for start in starts]
    # mirror images have the same cost
    ended = list({round(one.cost, 3): one for one in ended}.values())
    limit = _RIVAL * min(one.cost for one in ended)
    anew = [with_neighbours_anew(fields, points, one) for one in ended if one.cost <= limit]
    anew.sort(key=lambda pair: pair[0].cost)
    best, rivals = _shifted(fields, points, *anew[0])
    margin = np.full(len(best.slot), np.inf)
    for rival in rivals:
        elsewhere = _apart(points, best.slot, rival.slot)
        margin[elsewhere] = np.minimum(margin[elsewhere], max(rival.cost - best.cost, 0.0))
    best = replace(best, margin=margin)
    if len(anew) == 1 or anew[1][0].cost > _RIVAL * best.cost:
        return best
    return replace(best, agreement=1 - float(_apart(points, best.slot, anew[1][0].slot).mean()))


def _apart(points: NDArray, one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Channels that are elsewhere in another arrangement, up to motions that keep all contacts."""
    moved = [to[one] != other for to in motions_of(points, one)]
    return np.asarray(min(moved, key=lambda differs: int(differs.sum())))


def _followed(fields: Fields, points: NDArray, start: NDArray[np.int64]) -> Arranged:
    """Where a start ends: channels to the contacts that the sources ask for, slipped parts back."""
    first = improved(fields, points, arranged(fields, points, start))
    slot = unslipped(fields, points, first.slot, saturation(len(start)))
    second = improved(fields, points, arranged(fields, points, slot))
    return min(first, second, key=lambda a: a.cost)


def with_neighbours_anew(
    fields: Fields, points: NDArray, now: Arranged
) -> tuple[Arranged, list[Arranged]]:
    """Assign channels next to each other anew, until nothing gets better; and the next best."""
    for _ in range(_ROUNDS):
        new, rivals = _taken(fields, points, now, rebuilt(fields, points, now.slot))
        if new is now:
            break
        now = improved(fields, points, new)
    return now, rivals


def _shifted(
    fields: Fields, points: NDArray, now: Arranged, near: list[Arranged]
) -> tuple[Arranged, list[Arranged]]:
    """Move rows and the whole probe, until nothing gets better; and the next best, with those that
    are ``near``.
    """
    for _ in range(_ROUNDS):
        new, rivals = _taken(fields, points, now, moved_rows(points, now.slot))
        if new is now:
            whole = _ranked(fields, points, now, moved_whole(fields, points, now.slot))[:_WHOLE]
            for shift in whole:
                if shift.gain > -_FOLLOWED:
                    other, _ = with_neighbours_anew(
                        fields,
                        points,
                        improved(fields, points, arranged(fields, points, shift.slot)),
                    )
                    rivals.append(other)
            new = min([now, *rivals], key=lambda a: a.cost)
            if new.cost > now.cost - _WORTH:
                break
        now, near = with_neighbours_anew(fields, points, improved(fields, points, new))
    return now, near + rivals


def _ranked(
    fields: Fields, points: NDArray, now: Arranged, proposals: Iterable[NDArray[np.int64]]
) -> list[Shift]:
    return ranked(fields, points, now.slot, proposals, saturation(len(now.slot)))


def _taken(
    fields: Fields, points: NDArray, now: Arranged, proposals: Iterable[NDArray[np.int64]]
) -> tuple[Arranged, list[Arranged]]:
    """The shifts that lower the cost, one after the other; and those that were compared."""
    best, compared = now, []
    for shift in _ranked(fields, points, now, proposals)[:_FEW]:
        slot = np.where(shift.slot != now.slot, shift.slot, best.slot)
        if shift.gain > -_NEAR and len(np.unique(slot)) == len(slot):
            compared.append(arranged(fields, points, slot))
            if compared[-1].cost < best.cost - _WORTH:
                best = compared[-1]
    return best, compared


def improved(fields: Fields, points: NDArray, now: Arranged, rounds: int = 10) -> Arranged:
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
