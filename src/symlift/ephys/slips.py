"""Parts of a probe that slipped: one side of a cut, moved by a motion that keeps most of the probe.

Near a channel nothing changes by that, so that no exchange of channels undoes it; only sources on
both sides of the cut notice. Meanwhile contacts continue beyond the ends of the probe, since a part
may have to leave it before another one follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial import cKDTree

from symlift.ephys.fields import (
    Fields,
    Sources,
    best_contacts,
    fit_sources,
    limited,
    loss,
    residuals,
)
from symlift.maps.motions import turns

__all__ = ["Beyond", "beyond", "filled", "unslipped"]

# share of the contacts that a motion must carry to contacts, and steps that it may go
_KEEPS, _FAR = 0.8, 3.2
# a side of a cut sees a source if a channel there has so much of its largest amplitude
_SEES = 0.02
# rounds of fitting to rank slips and to compare the best few; rounds of slips, and what one must be
# worth
_ROUGH, _FINE, _FEW, _SLIPS, _WORTH = 8, 40, 8, 12, 2.0
# cuts that are tried first, those through the worst fields, and the most that one field counts;
# and steps on both sides of a cut where channels are free to go elsewhere
_CUTS, _MOST, _ZONES = 12, 50.0, (0.0, 1.5, 3.0)
# steps from a cut within which channels are looked at
_REACH = 12.0
_NEAR = 0.1


@dataclass(frozen=True)
class Beyond:
    """Contacts that go on beyond the ends of a probe, the probe's own first; ``motion`` (n, M): the
    contact to which each motion carries each, -1 for none.
    """

    points: NDArray[np.float64]
    motion: NDArray[np.int64]


def beyond(points: NDArray) -> Beyond:
    """What ``points`` (M, P) look like farther on, by the motions that nearly keep them."""
    tree = cKDTree(points)
    centre = int(np.argmin(np.sum((points - points.mean(axis=0)) ** 2, axis=1)))
    motions: list[tuple[NDArray, NDArray]] = []
    for turn in turns(points.shape[1]):
        turned = points @ turn
        for j in range(len(points)):
            by = points[j] - turned[centre]
            moved = turned + by
            if np.median(np.sqrt(np.sum((moved - points) ** 2, axis=1))) > _FAR:
                continue
            if np.mean(tree.query(moved)[0] < _NEAR) >= _KEEPS:
                motions.append((turn, by))
    wide = points
    for turn, by in motions:
        moved = points @ turn + by
        wide = np.concatenate([wide, moved[cKDTree(wide).query(moved)[0] > _NEAR]])
    tree = cKDTree(wide)
    motion = []
    for turn, by in motions:
        apart, to = tree.query(wide @ turn + by)
        motion.append(np.where(apart < _NEAR, to, -1))
    return Beyond(wide, np.array(motion, dtype=np.int64).reshape(-1, len(wide)))


def _each(fields: Fields, places: NDArray, rounds: int) -> tuple[NDArray[np.float64], Sources]:
    """What each field leaves unexplained."""
    sources = fit_sources(fields, places, rounds=rounds)
    return loss(residuals(fields, sources, places)).sum(axis=1), sources


def _cuts(places: NDArray) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.float64]]]:
    """The smaller side of each cut across an axis, and how far each place is from the cut."""
    for axis in range(places.shape[1]):
        at = places[:, axis]
        level = np.unique(np.round(at, 3))
        for cut in (level[1:] + level[:-1]) / 2:
            side = at < cut
            yield (side if side.mean() <= 0.5 else ~side), np.abs(at - cut)


def unslipped(
    fields: Fields, points: NDArray, slot: NDArray[np.int64], saturated: float
) -> NDArray[np.int64]:
    """Slots after the slips that explain more, on the probe's own contacts again."""
    wide = beyond(points)
    share = fields.amplitude / fields.amplitude.max(axis=1, keepdims=True)

    def total(each: NDArray) -> float:
        return limited(each, saturated)

    now, _ = _each(fields, wide.points[slot], _FINE)
    first = 0
    for _ in range(_SLIPS):
        before, slips = total(now), []
        cuts = _worst_cuts(wide.points[slot], share, now)
        for side, apart in cuts[first : None if first else _CUTS]:
            for zone in _ZONES:
                free = apart < zone
                slips += _gains(fields, wide, slot, side, free, apart < _REACH, share, total)
        slips.sort(key=lambda one: one[0])
        for gain, side, motion, free in slips[:_FEW]:
            if gain > -_WORTH:
                continue
            new = filled(fields, wide.points, _slipped(slot, side, motion), free)
            each, sources = _each(fields, wide.points[new], _FINE)
            if total(each) < total(now) - _WORTH:
                now, slot = each, new
            new = best_contacts(fields, sources, wide.points)
            each, _ = _each(fields, wide.points[new], _FINE)
            if total(each) < total(now) - _WORTH:
                now, slot = each, new
        # the worst cuts, then all others, then the worst again
        if total(now) < before - _WORTH:
            first = 0
        elif first or len(cuts) <= _CUTS:
            break
        else:
            first = _CUTS
    return _back(wide, points, slot)


def _spans(share: NDArray, side: NDArray[np.bool_], other: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Fields that channels of both sides see."""
    if not (side.any() and other.any()):
        return np.zeros(len(share), dtype=bool)
    return np.asarray((share[:, side].max(axis=1) > _SEES) & (share[:, other].max(axis=1) > _SEES))


def _worst_cuts(
    places: NDArray, share: NDArray, each: NDArray
) -> list[tuple[NDArray[np.bool_], NDArray[np.float64]]]:
    """Cuts, those through fields that are explained worst on average first."""
    cuts = []
    for side, apart in _cuts(places):
        spans = _spans(share, side, ~side)
        if spans.any():
            cuts.append((float(np.mean(np.minimum(each[spans], _MOST))), side, apart))
    cuts.sort(key=lambda one: -one[0])
    return [(side, apart) for _, side, apart in cuts]


def _gains(
    fields: Fields,
    wide: Beyond,
    slot: NDArray[np.int64],
    side: NDArray[np.bool_],
    free: NDArray[np.bool_],
    near: NDArray[np.bool_],
    share: NDArray,
    total: Callable[[NDArray], float],
) -> list[tuple[float, NDArray, NDArray, NDArray]]:
    """What each motion of ``side`` is worth, by channels that are ``near`` and not ``free``."""
    used = near & ~free
    spans = _spans(share, side & used, ~side & used)
    if not spans.any():
        return []
    some = fields.some(spans).of(np.flatnonzero(used))
    moves = []
    none = 0.0
    for motion in wide.motion:
        new = _slipped(slot, side, motion)
        if (new[~free] < 0).any():
            continue
        value = total(_each(some, wide.points[new[used]], _ROUGH)[0])
        if np.array_equal(new, slot):
            none = value
            if not free.any():
                continue
        moves.append((value, side, motion, free))
    # with free channels, leaving all others where they are is a proposal as well: weigh it as such
    return [(value - none, *rest) for value, *rest in moves]


def _slipped(
    slot: NDArray[np.int64], side: NDArray[np.bool_], motion: NDArray[np.int64]
) -> NDArray[np.int64]:
    return np.where(side, motion[slot], slot)


def filled(
    fields: Fields,
    points: NDArray,
    slot: NDArray[np.int64],
    free: NDArray[np.bool_],
    rounds: int = _FINE,
) -> NDArray[np.int64]:
    """Channels that are ``free``, on those of ``points`` that the sources of the others ask for."""
    if not free.any():
        return slot
    rest = np.flatnonzero(~free)
    sources = fit_sources(fields.of(rest), points[slot[rest]], rounds=rounds)
    open_to = np.setdiff1d(np.arange(len(points)), slot[rest])
    some = fields.of(np.flatnonzero(free))
    new = slot.copy()
    new[free] = open_to[best_contacts(some, sources, points[open_to])]
    return new


def _back(wide: Beyond, points: NDArray, slot: NDArray[np.int64]) -> NDArray[np.int64]:
    """On the probe's own contacts: by the motion that brings most there, others to the nearest that
    is free.
    """
    inside = [int(((m[slot] >= 0) & (m[slot] < len(points))).sum()) for m in wide.motion]
    moved = wide.motion[int(np.argmax(inside))][slot]
    places = np.where((moved >= 0)[:, None], wide.points[moved], wide.points[slot])
    apart = np.sum((places[:, None] - points[None]) ** 2, axis=-1)
    return np.asarray(linear_sum_assignment(apart)[1], dtype=np.int64)
