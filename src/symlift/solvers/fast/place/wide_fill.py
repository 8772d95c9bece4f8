"""The lifting map of very many columns: sparse, with linear prediction at empty points.

An empty point is predicted from the columns around it, under the mean correlation at each small
displacement, which a sample of pairs gives.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix
from scipy.spatial import cKDTree

from symlift.core.grid import Grid
from symlift.search.criterion import Slots
from symlift.search.wide_rows import WideRows
from symlift.statistics.kriging import AROUND, prediction, usual_scale

__all__ = ["wide_map"]

#: displacements up to which correlations are measured, by the number of axes, and pairs of each
_REACH, _PAIRS = {1: 48, 2: 8, 3: 4}, 400
#: empty points that are predicted at once
_BLOCK = 4_096


def wide_map(
    rows: WideRows, slot: NDArray[np.int64], columns: NDArray, scale: NDArray, slots: Slots
) -> csr_matrix:
    """W (points · channels, d), acting on X - mean.

    ``slot`` (d,) is the slot of each column or -1; ``columns`` are those that have a slot of
    their own (copies share that of the column that they repeat); scale (d,): deviations.
    """
    placed = np.flatnonzero(slot >= 0)
    share = 1 / np.bincount(slot[placed], minlength=slots.size)[slot[placed]]
    parts = [(slot[placed], placed, share)]
    for channel in range(slots.depth):  # an empty point is predicted from its own channel
        mine = columns[slot[columns] % slots.depth == channel]
        point = slot[mine] // slots.depth
        holes = np.setdiff1d(np.arange(slots.grid.size), point)
        if not len(holes) or len(mine) < 2:
            continue
        K = _lag_means(rows, np.searchsorted(rows.columns, mine), point, slots.grid)
        for start in range(0, len(holes), _BLOCK):
            some = holes[start : start + _BLOCK]
            row, column, value = _predictions(K, some, mine, point, scale, slots.grid)
            parts.append((row * slots.depth + channel, column, value))
    row, column, value = (np.concatenate(part) for part in zip(*parts, strict=True))
    return coo_matrix((value, (row, column)), shape=(slots.size, len(slot))).tocsr()


def _lag_means(
    rows: WideRows, ids: NDArray, point: NDArray, grid: Grid, seed: int = 0
) -> NDArray[np.float64]:
    """Mean correlation at each displacement up to ``_REACH`` along every axis, an odd box."""
    reach = [min(_REACH.get(grid.ndim, 4), n - 1) for n in grid.shape]
    rng = np.random.default_rng(seed)
    at = np.full(grid.size, -1)
    at[point] = ids
    from_ = rng.permutation(len(point))[:_PAIRS]
    index = grid.indices()[point[from_]]
    here = rows.fit[ids[from_]]
    K = np.zeros([2 * r + 1 for r in reach])
    for lag in product(*(range(-r, r + 1) for r in reach)):
        mirrored = tuple(r - step for r, step in zip(reach, lag, strict=True))
        own = tuple(r + step for r, step in zip(reach, lag, strict=True))
        if own > mirrored:  # the same pairs
            continue
        to = index + np.array(lag)
        inside = np.ones(len(to), dtype=bool)
        for axis, (n, wraps) in enumerate(zip(grid.shape, grid.periodic, strict=True)):
            inside &= wraps | ((to[:, axis] >= 0) & (to[:, axis] < n))
        to = np.mod(to, grid.shape)
        other = np.where(inside, at[grid.flat(to)], -1)
        some = np.flatnonzero(other >= 0)
        if len(some):
            mean = float(np.vdot(here[some], rows.fit[other[some]])) / len(some)
            K[own] = K[mirrored] = mean
    return K


def _predictions(
    K: NDArray, holes: NDArray, columns: NDArray, point: NDArray, scale: NDArray, grid: Grid
) -> tuple[NDArray, NDArray, NDArray]:
    """Rows, columns and weights of empty points."""
    at = grid.indices()
    # a box of length 0 is none
    box = np.where(grid.periodic, grid.shape, 0)
    tree = cKDTree(at[point], boxsize=box if any(grid.periodic) else None)
    count = min(AROUND, len(point))
    apart, near = (np.asarray(v) for v in tree.query(at[holes], k=np.arange(1, count + 1)))
    around = at[point[near]]
    gram = _looked_up(K, around[:, :, None] - around[:, None], grid)
    toward = _looked_up(K, at[holes][:, None] - around, grid)
    local = usual_scale(scale[columns], apart, near)
    weight = prediction(gram, toward) * local[:, None] / np.maximum(scale[columns][near], 1e-300)
    return np.repeat(holes, count), columns[near].ravel(), weight.ravel()


def _looked_up(K: NDArray, lag: NDArray, grid: Grid) -> NDArray[np.float64]:
    """K at displacements (…, P); 0 beyond its box."""
    shape = np.array(grid.shape)
    lag = np.where(grid.periodic, lag - shape * np.rint(lag / shape), lag).astype(np.int64)
    reach = (np.array(K.shape) - 1) // 2
    inside = (np.abs(lag) <= reach).all(axis=-1)
    index = np.clip(lag + reach, 0, 2 * reach)
    return np.where(inside, K[tuple(np.moveaxis(index, -1, 0))], 0.0)
