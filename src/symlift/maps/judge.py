"""Weigh a map against the ways in which it can be wrong: a quick look at all of them, a close one
at the best, and what the data leave open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist

from symlift.maps.faults import Fault, Kind, faults_of, groups_apart

__all__ = [
    "NO_ANCHORS",
    "TEMPERATURE",
    "Anchors",
    "FitsMap",
    "Judgement",
    "Weighed",
    "judge_map",
    "price",
]

# what a repair must be worth, and the difference up to which two maps are equally good
_WORTH, _EQUAL = 30.0, 10.0
# differences in cost are so much less certain than those of likelihoods
TEMPERATURE = 10.0
# faults, one after the other
_FAULTS = 3
# how many are looked at more closely, roughly and finely; and the distance, in steps, over which
# columns are alike
_SOME, _FEW, _REACH = 48, 12, 0.7
# positions that differ by less, in steps, are the same; what breaking an anchor costs
_SAME, _BROKEN = 0.05, 1e4


class FitsMap(Protocol):
    """What the data say about a map."""

    @property
    def alike(self) -> NDArray[np.float64]:
        """(d, d): how much columns have in common, 0 for those that have no place."""
        ...

    @property
    def living(self) -> NDArray[np.int64]:
        """Columns that have a place."""
        ...

    def cost(self, positions: NDArray, rough: bool = False) -> float:
        """What columns at ``positions`` (d, P) leave unexplained, like a negative logarithm of a
        likelihood.
        """
        ...


@dataclass(frozen=True)
class Anchors:
    """Columns whose places are known, (k,), and those, (k, P)."""

    columns: NDArray[np.int64]
    positions: NDArray[np.float64]

    def broken(self, positions: NDArray) -> int:
        """How many are elsewhere when columns are at ``positions``."""
        if not len(self.columns):
            return 0
        if positions.shape[1] != self.positions.shape[1]:
            return len(self.columns)
        apart = np.linalg.norm(positions[self.columns] - self.positions, axis=1)
        return int(np.sum(apart > _SAME * _step(positions)))


NO_ANCHORS = Anchors(np.zeros(0, dtype=np.int64), np.zeros((0, 2)))


@dataclass(frozen=True)
class Weighed:
    """A fault, by how much the map without it is better, and how probable that is, from 0 to 1."""

    fault: Fault
    gain: float
    probability: float


@dataclass(frozen=True)
class Judgement:
    """What a map is worth.

    ``faults``: what is wrong, one after the other. ``undecided``: repairs that are neither better
    nor worse, with the probability that they are right. ``positions`` (d, P): where columns belong.
    ``cost``, ``claimed``: of these and of the map as it was.
    """

    faults: tuple[Weighed, ...]
    undecided: tuple[Weighed, ...]
    positions: NDArray[np.float64]
    to: NDArray[np.int64]
    cost: float
    claimed: float
    looked_at: int = field(default=0)


def price(cost: float, repairs: int) -> float:
    """What an explanation costs: what it leaves unexplained, and each of its repairs."""
    return cost + _WORTH * repairs


def judge_map(
    criterion: FitsMap,
    positions: NDArray,
    shanks: NDArray[np.int64] | None = None,
    layouts: Sequence[tuple[str, NDArray]] = (),
    anchors: Anchors = NO_ANCHORS,
    more: Iterable[Fault] = (),
    fewest: int = 0,
) -> Judgement:
    """Faults of a map that puts columns at ``positions`` (d, P).

    ``layouts``: other positions (d, P) that the columns may have, by name. ``more``: other faults,
    each looked at closely. ``fewest``: columns of a block at least.
    """
    d = len(positions)
    now = _Map(np.asarray(positions, dtype=np.float64), np.arange(d))
    claimed = criterion.cost(now.positions)
    cost, looked_at = claimed, 0
    repaired: list[Weighed] = []
    more = tuple(more)
    while True:
        group = groups_apart(now.positions) if shanks is None else shanks[now.to]
        tried, count = _most_promising(criterion, now, group, fewest)
        others = [(fault, now.repaired(fault)) for fault in more]
        others += [] if repaired else [_other_layout(d, name, at) for name, at in layouts]
        looked_at += count + len(others)
        rated = _rated(criterion, now, tried, others, anchors, cost)
        best = rated[0] if rated else None
        if best is None or best.gain <= _WORTH or len(repaired) == _FAULTS:
            break
        repaired.append(best.weighed(rated))
        now, cost = best.map, best.cost
        if best.fault.kind is Kind.LAYOUT:
            shanks = None
    undecided = tuple(one.weighed(rated) for one in rated if -_EQUAL < one.gain <= _WORTH)
    return Judgement(tuple(repaired), undecided, now.positions, now.to, cost, claimed, looked_at)


@dataclass(frozen=True)
class _Map:
    """Positions (d, P), and where each column takes its own from."""

    positions: NDArray[np.float64]
    to: NDArray[np.int64]

    def repaired(self, fault: Fault) -> _Map:
        return _Map(self.positions[fault.to], self.to[fault.to])


@dataclass(frozen=True)
class _Rated:
    fault: Fault
    map: _Map
    cost: float
    gain: float

    def weighed(self, rated: Sequence[_Rated]) -> Weighed:
        """Against the map as it is, and all others that were looked at closely."""
        gains = np.array([0.0, *(one.gain for one in rated)])
        weight = np.exp((gains - gains.max()) / TEMPERATURE)
        own = np.exp((self.gain - gains.max()) / TEMPERATURE)
        return Weighed(self.fault, self.gain, float(own / weight.sum()))


def _other_layout(d: int, name: str, positions: NDArray) -> tuple[Fault, _Map]:
    every = np.arange(d)
    fault = Fault(Kind.LAYOUT, every, (every,), words=(name,))
    return fault, _Map(np.asarray(positions, dtype=np.float64), every)


def _rated(
    criterion: FitsMap,
    now: _Map,
    faults: Sequence[Fault],
    others: Sequence[tuple[Fault, _Map]],
    anchors: Anchors,
    cost: float,
) -> list[_Rated]:
    """The best of ``faults`` and all ``others``, looked at closely, the best first; of those that
    differ by a motion of the whole, one.
    """
    living = criterion.living
    promising = [(fault, now.repaired(fault)) for fault in faults]
    distinct = _distinct([*promising, *others], now, living, anchors)
    broken = anchors.broken(now.positions)
    rough = [criterion.cost(one.positions, rough=True) for _, one in distinct]
    few = np.argsort(np.array(rough), kind="stable")[:_FEW] if rough else np.zeros(0, dtype=int)
    near = {int(k) for k in few}
    # a group of contacts as a whole is what the data may leave open: always closely
    always = {id(fault) for fault, _ in others}
    near |= {k for k, (fault, _) in enumerate(distinct) if fault.shanks or id(fault) in always}
    rated = []
    for k in sorted(near):
        fault, one = distinct[k]
        new = criterion.cost(one.positions)
        gain = cost - new + _BROKEN * (broken - anchors.broken(one.positions))
        rated.append(_Rated(fault, one, new, gain))
    return sorted(rated, key=lambda one: (-round(one.gain, 6), *_complexity(one.fault)))


def _complexity(fault: Fault) -> tuple[int, int, int]:
    """What is simpler comes first: whole shanks, few blocks as they are; new orders last."""
    moved = int((fault.to != np.arange(len(fault.to))).sum())
    if fault.kind in (Kind.COUNTED, Kind.LAYOUT):
        return 2, sum(words.count(",") for words in fault.words), moved
    whole = fault.kind is Kind.TURNED or fault.shanks
    return (0 if whole else 1), moved, len(fault.words) + abs(fault.by)


def _most_promising(
    criterion: FitsMap, now: _Map, group: NDArray[np.int64], fewest: int
) -> tuple[list[Fault], int]:
    """Faults whose repair brings columns that are alike next to each other, and all of shanks, in
    the order in which they are listed: of two that are mirror images of each other, the first is
    then named. And how many were looked at.

    The list is gone through twice rather than kept: for 384 channels it is 1.4 GB.
    """
    S = criterion.alike
    near = np.exp(-cdist(now.positions, now.positions) / (_REACH * _step(now.positions)))
    np.fill_diagonal(near, 0.0)
    every = np.arange(len(S))
    gains, of_shanks = [], []
    for k, fault in enumerate(_listed(now, group, fewest)):
        to, moved = fault.to, np.flatnonzero(fault.to != every)
        change = near[to[moved]][:, to] - near[moved]
        both = change[:, moved]
        gains.append(2 * np.sum(S[moved] * change) - np.sum(S[np.ix_(moved, moved)] * both))
        if fault.shanks:
            of_shanks.append(k)
    gain = np.array(gains)
    # mirror images gain the same up to rounding, which must not say which of them is looked at
    size = float(np.abs(gain).max(initial=0.0)) or 1.0
    best = np.argsort(-np.round(gain / size, 9), kind="stable")[:_SOME]
    chosen = {*best.tolist(), *of_shanks}
    listed = enumerate(_listed(now, group, fewest))
    return [fault for k, fault in listed if k in chosen], len(gains)


def _listed(now: _Map, group: NDArray[np.int64], fewest: int) -> Iterator[Fault]:
    for fault in faults_of(now.positions, group):
        if min(map(len, fault.blocks)) >= fewest:
            yield fault


def _distinct(
    candidates: Sequence[tuple[Fault, _Map]],
    now: _Map,
    living: NDArray[np.int64],
    anchors: Anchors,
) -> list[tuple[Fault, _Map]]:
    """Those that differ from the map and from each other by more than a motion of the whole: that
    changes no distance. Faults of shanks and those of few columns first, of those that move as many
    the one that comes first on the map.
    """
    order = sorted(candidates, key=lambda pair: _complexity(pair[0]))
    step = _step(now.positions)
    seen = [(pdist(now.positions[living]), anchors.broken(now.positions))]
    chosen = []
    for fault, one in order:
        apart, broken = pdist(one.positions[living]), anchors.broken(one.positions)
        if any(
            broken == other_broken and np.abs(apart - other).max() < _SAME * step
            for other, other_broken in seen
        ):
            continue
        seen.append((apart, broken))
        chosen.append((fault, one))
    return chosen


def _step(positions: NDArray) -> float:
    apart = cdist(positions, positions)
    np.fill_diagonal(apart, np.inf)
    return float(np.median(apart.min(axis=1)))
