"""Columns that do not correlate with their neighbours are taken up and put down again, very many.

Slots are the points of a grid, or the channels of its points; a table says which slots are next to
each other. All is done by sparse matrices, and by the assignment of columns to those free slots
that are next to a column they correlate with.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

from symlift.statistics.neighbours import NearPairs

__all__ = ["link_sums", "settle_wide", "symmetric"]

_ROUNDS, _WEAK = 12, 0.6
#: assignments of the same columns, whose neighbours may be among them
_REPEATS = 3
#: links that are looked at at once
_BLOCK = 1_000_000


def symmetric(p: NearPairs) -> csr_matrix:
    """The values of near pairs as a symmetric matrix, the mean where both columns know a pair."""
    d, k = p.near.shape
    known = p.near >= 0
    i = np.broadcast_to(np.arange(d, dtype=np.int32)[:, None], (d, k))[known]
    one = csr_matrix((p.value[known].astype(np.float32), (i, p.near[known])), shape=(d, d))
    here = csr_matrix((np.ones(one.nnz, dtype=np.float32), one.indices, one.indptr), shape=(d, d))
    total, count = (one + one.T).tocsr(), (here + here.T).tocsr()
    # both have the same pattern, unless two values cancel
    return total.multiply(count.power(-1)).tocsr()


def link_sums(
    links: csr_matrix, slot: NDArray[np.int64], next_to: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Sum of the links (d, d) of each column with the columns at slots ``next_to`` its own."""
    pairs = links.tocoo()
    sums = np.zeros(len(slot))
    for start in range(0, pairs.nnz, _BLOCK):
        part = slice(start, start + _BLOCK)
        i, j = pairs.row[part], pairs.col[part]
        here, beside_slot = slot[i], slot[j]
        beside = (here >= 0) & (beside_slot >= 0)
        i, here, beside_slot, value = (
            i[beside],
            here[beside],
            beside_slot[beside],
            pairs.data[part][beside],
        )
        touch = (next_to[here] == beside_slot[:, None]).any(axis=1)
        sums += np.bincount(i[touch], value[touch], minlength=len(slot))
    return sums


def settle_wide(
    links: csr_matrix, slot: NDArray[np.int64], next_to: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Slots (-1: none) after the columns with the weakest links were placed again, repeatedly.

    ``next_to`` (slots, m) are the slots next to each, their number where there is none.
    """
    slots = len(next_to)
    adjacent = _adjacency(next_to)
    best, value = slot, -np.inf
    for turn in range(_ROUNDS):
        sums = np.where(slot >= 0, link_sums(links, slot, next_to), -np.inf)
        placed = np.isfinite(sums)
        usual = float(np.median(sums[placed])) if placed.any() else 0.0
        loose = sums < _WEAK * usual
        if turn:  # their neighbours may be misplaced because of them
            at = np.full(slots + 1, -1)
            at[slot[placed]] = np.flatnonzero(placed)
            around = at[next_to[slot[loose & placed]]].ravel()
            loose[around[around >= 0]] = True
        stay = np.where(loose, -1, slot)
        for _ in range(_REPEATS):
            stay = _put(links, stay, np.flatnonzero(loose), adjacent)
        total = float(link_sums(links, stay, next_to).sum())
        if total <= value + 1e-6 * abs(value):
            break
        best, value, slot = stay, total, stay
    return _near_by(links, best, adjacent)


def _adjacency(next_to: NDArray[np.int64]) -> csr_matrix:
    slots, m = next_to.shape
    exists = next_to < slots
    rows = np.broadcast_to(np.arange(slots)[:, None], (slots, m))[exists]
    ones = np.ones(len(rows), dtype=np.float32)
    return csr_matrix((ones, (rows, next_to[exists])), shape=(slots, slots))


def _put(
    links: csr_matrix, slot: NDArray, columns: NDArray, adjacent: csr_matrix
) -> NDArray[np.int64]:
    """Assign ``columns`` to the free slots by their links to the columns around each slot.

    Links to columns that are assigned in the same call use their previous slots.
    """
    d, slots = len(slot), adjacent.shape[0]
    at = np.flatnonzero(slot >= 0)
    ones = np.ones(len(at), dtype=np.float32)
    placed = csr_matrix((ones, (at, slot[at])), shape=(d, slots))
    gain = (links[columns] @ placed @ adjacent).tocoo()
    free = np.ones(slots, dtype=bool)
    free[np.delete(slot, columns)[np.delete(slot, columns) >= 0]] = False
    good = free[gain.col] & (gain.data > 0)
    out = slot.copy()
    out[columns] = -1
    which, where = _assigned(gain.row[good], gain.col[good], gain.data[good], len(columns))
    out[columns[which]] = where
    return out


def _assigned(row: NDArray, col: NDArray, value: NDArray, rows: int) -> tuple[NDArray, NDArray]:
    """The assignment of largest value; rows may stay without a column."""
    if not len(row):
        return row, col
    used, col = np.unique(col, return_inverse=True)
    every = np.arange(rows)
    # a column of its own for each row that stays alone; the constant keeps values above 0
    table = coo_matrix(
        (np.r_[value + 1.0, np.ones(rows)], (np.r_[row, every], np.r_[col, len(used) + every])),
        shape=(rows, len(used) + rows),
    ).tocsr()
    which, where = min_weight_full_bipartite_matching(table, maximize=True)
    real = where < len(used)
    return which[real], used[where[real]]


def _near_by(links: csr_matrix, slot: NDArray[np.int64], adjacent: csr_matrix) -> NDArray[np.int64]:
    """Columns that have no slot yet get a free one near the columns that they are linked to."""
    reach = adjacent
    for _ in range(2):
        columns = np.flatnonzero(slot < 0)
        if not len(columns) or (slot >= 0).sum() == adjacent.shape[0]:
            break
        reach = (reach @ adjacent).tocsr()
        reach.data[:] = 1.0
        slot = _put(links, slot, columns, reach)
    return slot
