"""Channels of a montage that have each other's places: the swaps that correlations ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from symlift.eeg.covariance import CovarianceCriterion

__all__ = ["Swaps", "improved_sites", "swaps_of"]

# what a swap must be worth, and half of a confidence
_WORTH, _HALF = 18.0, 5.0
# channels are next to each other up to this many distances of neighbours
_NEXT = 1.5
# free sites next to a channel that are tried
_NEAR = 4


@dataclass(frozen=True)
class Swaps:
    """Groups of channels that go round each other's places, with confidence; where each channel
    takes its place from (d,), and how sure it is that nothing else is swapped.
    """

    groups: tuple[tuple[tuple[int, ...], float], ...]
    to: NDArray[np.int64]
    confidence: float
    cost: float


def swaps_of(criterion: CovarianceCriterion, positions: NDArray) -> Swaps:
    """Swaps that turn ``positions`` (d, P) into those that explain the correlations best."""
    living = criterion.living
    to, cost = np.arange(len(positions)), criterion.cost(positions)
    for _ in range(len(living)):
        change = np.triu(criterion.swaps(positions[to]), 1)
        i, j = np.unravel_index(int(change.argmin()), change.shape)
        if change[i, j] >= 0:
            break
        new = to.copy()
        a, b = living[[i, j]]
        new[[a, b]] = new[[b, a]]
        after = criterion.cost(positions[new])
        if after >= cost - 1e-9:
            break
        to, cost = new, after
    groups, to = [], _without_marginal(criterion, positions, to, cost)
    cost = criterion.cost(positions[to])
    for cycle in _cycles(to):
        undone = to.copy()
        undone[cycle] = cycle
        worth = criterion.cost(positions[undone]) - cost
        if worth > _WORTH:
            groups.append((tuple(int(i) for i in cycle), float(worth / (worth + _HALF))))
        else:
            to = undone
    return Swaps(tuple(groups), to, _sure(criterion, positions[to]), criterion.cost(positions[to]))


def _without_marginal(
    criterion: CovarianceCriterion, positions: NDArray, to: NDArray[np.int64], cost: float
) -> NDArray[np.int64]:
    """Channels back to their own place, where those that go round with them do nearly as well."""
    for i in np.flatnonzero(to != np.arange(len(to))):
        before = int(np.flatnonzero(to == i)[0])
        if to[i] in (i, before):
            continue
        shorter = to.copy()
        shorter[before], shorter[i] = to[i], i
        after = criterion.cost(positions[shorter])
        if after < cost + _WORTH:
            to, cost = shorter, after
    return to


def _sure(criterion: CovarianceCriterion, positions: NDArray) -> float:
    """From what the swap of a channel with one that is not next to it costs that costs least, of
    the channels of the worst twentieth.
    """
    at = positions[criterion.living]
    apart = cdist(at, at)
    np.fill_diagonal(apart, np.inf)
    step = np.median(apart.min(axis=1))
    change = np.where(apart > _NEXT * step, criterion.swaps(positions), np.inf)
    np.fill_diagonal(change, np.inf)
    least = max(float(np.quantile(change.min(axis=1), 0.05)), 0.0)
    return least / (least + _HALF)


def _cycles(to: NDArray[np.int64]) -> list[list[int]]:
    left = set(np.flatnonzero(to != np.arange(len(to))).tolist())
    cycles = []
    while left:
        i, cycle = min(left), []
        while i in left:
            left.remove(i)
            cycle.append(i)
            i = int(to[i])
        cycles.append(cycle)
    return cycles


def improved_sites(
    criterion: CovarianceCriterion, sites: NDArray, on: NDArray[np.int64]
) -> tuple[NDArray[np.int64], float]:
    """Sites of the living channels after swaps, and moves to free sites, that lower the cost."""
    living = criterion.living

    def cost_of(taken: NDArray[np.int64]) -> float:
        places = np.zeros((len(criterion.data.reason), sites.shape[1]))
        places[living] = sites[taken]
        return criterion.cost(places)

    cost = cost_of(on)
    for _ in range(4 * len(on)):
        places = np.zeros((len(criterion.data.reason), sites.shape[1]))
        places[living] = sites[on]
        change = np.triu(criterion.swaps(places), 1)
        i, j = np.unravel_index(int(change.argmin()), change.shape)
        new = on.copy()
        new[[i, j]] = new[[j, i]]
        after = cost_of(new) if change[i, j] < 0 else np.inf
        if after >= cost - 1e-9:
            new, after = _best_move(sites, on, cost_of)
        if after >= cost - 1e-9:
            break
        on, cost = new, after
    return on, cost


def _best_move(
    sites: NDArray, on: NDArray[np.int64], cost_of: Callable[[NDArray[np.int64]], float]
) -> tuple[NDArray[np.int64], float]:
    """One channel to a free site next to it."""
    free = np.setdiff1d(np.arange(len(sites)), on)
    best, least = on, np.inf
    if not len(free):
        return best, least
    apart = cdist(sites[on], sites[free])
    for i, k in zip(*np.nonzero(apart <= np.sort(apart, axis=1)[:, :_NEAR][:, -1:]), strict=True):
        new = on.copy()
        new[i] = free[k]
        cost = cost_of(new)
        if cost < least:
            best, least = new, cost
    return best, least
