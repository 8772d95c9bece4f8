"""Channels placed on the sites of a cap from nothing: scaled into space by their correlations, laid
over the sites in many directions, and improved by swaps.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist

from symlift.eeg.covariance import CovarianceCriterion
from symlift.eeg.exchanges import improved_sites

__all__ = ["placed_on_sites"]

# directions about the vertical, rounds of assignment and alignment, neighbours that count as near
_TURNS, _ROUNDS, _NEAREST = 16, 8, (5, 8, 12)
# ends that are followed, shaken so often, and the channels that are moved then
_FOLLOWED, _SHAKES, _MOVED = 8, 100, 6


def placed_on_sites(
    criterion: CovarianceCriterion, sites: NDArray, rng: np.random.Generator
) -> list[tuple[float, NDArray[np.int64]]]:
    """Sites of the living channels, the best first, each with its cost."""
    ends: dict[bytes, tuple[float, NDArray[np.int64]]] = {}
    for start in _starts(criterion.inside, sites):
        on, cost = improved_sites(criterion, sites, start)
        ends[on.tobytes()] = (cost, on)
    best = sorted(ends.values(), key=lambda end: round(end[0], 6))
    shaken = [_shaken(criterion, sites, cost, on, rng) for cost, on in best[:_FOLLOWED]]
    return sorted([*shaken, *best[_FOLLOWED:]], key=lambda end: round(end[0], 6))


def _shaken(
    criterion: CovarianceCriterion,
    sites: NDArray,
    cost: float,
    on: NDArray[np.int64],
    rng: np.random.Generator,
) -> tuple[float, NDArray[np.int64]]:
    """Channels around a site permuted and improved again, kept where that is better."""
    for _ in range(_SHAKES):
        around = np.argsort(cdist(sites[on], sites[on[[rng.integers(len(on))]]]).ravel())
        some = around[: min(_MOVED, len(on))]
        new = on.copy()
        new[some] = on[rng.permutation(some)]
        after, least = improved_sites(criterion, sites, new)
        if least < cost - 1e-9:
            on, cost = after, least
    return cost, on


def _starts(c: NDArray, sites: NDArray) -> Iterator[NDArray[np.int64]]:
    middle = sites.mean(axis=0)
    flat = sites - middle
    axes = np.linalg.svd(flat, full_matrices=False)[2]
    target = flat @ axes.T
    # with and without what all channels have in common, such as the reference
    without = c - c.mean(axis=0) - c.mean(axis=1)[:, None] + c.mean()
    size = np.sqrt(np.maximum(np.diag(without), 1e-9))
    for alike, near in product((c, without / size / size[:, None]), _NEAREST):
        y = _in_space(alike, min(near, len(c) - 1), target.shape[1])
        y *= np.sqrt(np.mean(target**2)) / max(np.sqrt(np.mean(y**2)), 1e-12)
        for k in range(_TURNS):
            a = 2 * np.pi * k / _TURNS
            turn = np.eye(target.shape[1])
            turn[:2, :2] = [[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]
            for signs in ((1, 1, 1), (1, 1, -1), (1, -1, 1), (1, -1, -1)):
                yield _laid(y * signs[: y.shape[1]] @ turn, target)


def _in_space(c: NDArray, near: int, dimension: int) -> NDArray[np.float64]:
    """Coordinates (k, P) by classical scaling of paths between channels that are alike."""
    length = np.sqrt(-np.log(np.clip(c, 1e-3, 1 - 1e-9)))
    edge = np.zeros_like(c)
    nearest = np.argsort(-c, axis=1, kind="stable")[:, 1 : 1 + near]
    rows = np.arange(len(c))[:, None]
    edge[rows, nearest] = length[rows, nearest]
    paths = shortest_path(np.maximum(edge, edge.T), directed=False)
    paths[~np.isfinite(paths)] = 2 * paths[np.isfinite(paths)].max()
    square = paths**2
    inner = -0.5 * (square - square.mean(axis=0) - square.mean(axis=1)[:, None] + square.mean())
    values, vectors = np.linalg.eigh(inner)
    return np.asarray(
        vectors[:, ::-1][:, :dimension] * np.sqrt(np.maximum(values[::-1][:dimension], 1e-12))
    )


def _laid(y: NDArray, target: NDArray) -> NDArray[np.int64]:
    """Sites of channels at ``y``, in turn with the affine map that brings them there."""
    on = linear_sum_assignment(cdist(y, target, "sqeuclidean"))[1]
    A = np.c_[y, np.ones(len(y))]
    for _ in range(_ROUNDS):
        moved = A @ np.linalg.lstsq(A, target[on], rcond=None)[0]
        new = linear_sum_assignment(cdist(moved, target, "sqeuclidean"))[1]
        if np.array_equal(new, on):
            break
        on = new
    return np.asarray(on, dtype=np.int64)
