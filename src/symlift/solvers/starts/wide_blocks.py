"""Blocks of columns that lie a step off their places are moved back as a whole.

Where points are empty, a fitted lattice may close the gap: what lies behind it is moved by a step,
and right inside. Links that no longer join neighbours surround such a block, and say by how much it
is off.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, triu
from scipy.sparse.csgraph import connected_components

from symlift.core.grid import Grid
from symlift.search.score import next_to
from symlift.solvers.starts.wide_settle import link_sums, settle_wide

__all__ = ["settle_blocks"]

#: rounds, the farthest that a block is moved, and the fewest links that have to ask for it
_ROUNDS, _FARTHEST, _FEWEST = 8, 3, 2


def settle_blocks(
    links: csr_matrix, edges: csr_matrix, point: NDArray[np.int64], grid: Grid
) -> NDArray[np.int64]:
    """Points (-1: none) after columns and whole blocks were placed again, as long as the ``links``
    (d, d) between neighbours grow; ``edges`` are those of partners.
    """
    table = next_to(grid)
    point = settle_wide(links, point, table)
    value = float(link_sums(links, point, table).sum())
    for _ in range(_ROUNDS):
        moved = _moved(edges, point, grid)
        if moved is None:
            break
        moved = settle_wide(links, moved, table)
        total = float(link_sums(links, moved, table).sum())
        if total <= value:
            break
        point, value = moved, total
    return point


def _moved(edges: csr_matrix, point: NDArray[np.int64], grid: Grid) -> NDArray[np.int64] | None:
    """Points after every block has moved to where most of its links to the rest want it; None if
    nothing has to move.
    """
    upper = triu(edges, 1).tocoo()
    both = (point[upper.row] >= 0) & (point[upper.col] >= 0)
    i, j = upper.row[both], upper.col[both]
    at, shape = grid.indices(), np.array(grid.shape)
    step = at[point[j]] - at[point[i]]
    step = np.where(grid.periodic, step - shape * np.rint(step / shape).astype(np.int64), step)
    good = np.abs(step).sum(axis=1) == 1
    if good.all():
        return None
    block = _blocks(i[good], j[good], len(point))
    main = int(np.bincount(block[point >= 0]).argmax())
    # links between the main block, at one end, and another one
    i, j, step = (np.concatenate([a[~good], b[~good]]) for a, b in ((i, j), (j, i), (step, -step)))
    out = (block[i] != main) & (block[j] == main)
    i, step = i[out], step[out]
    width = 2 * _FARTHEST + 1
    votes: list[NDArray] = []
    for unit in _units(grid.ndim):
        by = step + unit
        near = (np.abs(by) <= _FARTHEST).all(axis=1)
        code = np.ravel_multi_index(tuple((by[near] + _FARTHEST).T), (width,) * grid.ndim)
        votes.append(np.stack([block[i[near]], code], axis=1))
    kinds, count = np.unique(np.concatenate(votes), axis=0, return_counts=True)
    order = np.lexsort((-count, kinds[:, 0]))
    first = order[np.unique(kinds[order, 0], return_index=True)[1]]
    first = first[count[first] >= _FEWEST]
    if not len(first):
        return None
    shift = np.zeros((int(block.max()) + 1, grid.ndim), dtype=np.int64)
    code = np.stack(np.unravel_index(kinds[first, 1], (width,) * grid.ndim), axis=1)
    shift[kinds[first, 0]] = code - _FARTHEST
    return _shifted(point, shift[block], grid)


def _blocks(i: NDArray, j: NDArray, d: int) -> NDArray[np.int32]:
    """Labels of the parts that edges join which are sides of squares."""
    ones = np.ones(2 * len(i), dtype=np.float32)
    graph = csr_matrix((ones, (np.r_[i, j], np.r_[j, i])), shape=(d, d))
    degree = np.diff(graph.indptr)
    cubes = (graph @ graph @ graph).multiply(graph).tocoo()
    side = cubes.data - degree[cubes.row] - degree[cubes.col] + 1 >= 1
    ends = (cubes.row[side], cubes.col[side])
    squares = csr_matrix((np.ones(int(side.sum()), dtype=np.int8), ends), shape=(d, d))
    return np.asarray(connected_components(squares, directed=False)[1])


def _units(axes: int) -> list[NDArray[np.int64]]:
    return [np.array(u) for u in product((-1, 0, 1), repeat=axes) if np.abs(u).sum() == 1]


def _shifted(point: NDArray[np.int64], shift: NDArray[np.int64], grid: Grid) -> NDArray[np.int64]:
    """Points after columns moved by ``shift`` (d, P): they displace those that stay."""
    shape = np.array(grid.shape)
    to = grid.indices()[np.maximum(point, 0)] + shift
    to = np.where(grid.periodic, np.mod(to, shape), to)
    inside = (point >= 0) & ((to >= 0) & (to < shape)).all(axis=1)
    wanted = np.where(inside, grid.flat(np.clip(to, 0, shape - 1)), -1)
    moves = shift.any(axis=1)
    order = np.argsort(~moves, kind="stable")  # those that move come first
    order = order[wanted[order] >= 0]
    first = order[np.unique(wanted[order], return_index=True)[1]]
    out = np.full_like(point, -1)
    out[first] = wanted[first]
    return out
