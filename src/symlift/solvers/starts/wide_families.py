"""Channels whose columns are hardly linked to each other: each is a grid of its own, to be laid on
the others.

The colours of photographs are of this kind: a pixel is linked to the same colour around it, not to
its own other colours. Where the columns of two channels correlate most shows how they lie.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from symlift.core.grid import Grid
from symlift.solvers.starts.sparse import partner_graph
from symlift.statistics.neighbours import NearPairs

__all__ = ["channel_parts", "inside", "laid_on", "nearest_of"]

#: columns of a channel that are compared with all of another one, and how many standard errors the
#: best orientation has to be ahead of the next one
_COMPARED, _AHEAD = 512, 3.0
#: numbers of a block of products
_BLOCK = 4_000_000
#: least share of the points that the columns of a channel fill, and shares of the edges that are
#: left out until channels are apart
_FILLED, _WITHOUT = 0.5, (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3)
#: share of the points by which a part may have more columns than its channels have points
_OVER = 0.02


def channel_parts(
    p: NearPairs, grid: Grid, depth: int, least: float
) -> list[tuple[NDArray[np.int64], int]]:
    """Columns of channels that are linked to each other, and how many channels these are.

    Parts are connected in the graph of neighbours. A column at an end of the grid has fewer
    neighbours than others, and partners at its own point instead: the weakest edges are left out,
    more and more of them, until there are as many channels as asked for. All columns are one part
    where there never are.
    """
    edges = partner_graph(p, 2 * grid.ndim, least).tocoo()
    strongest = np.maximum(p.value.max(axis=1), 1e-9)
    value = np.asarray(p[edges.row, edges.col])
    value /= np.sqrt(strongest[edges.row] * strongest[edges.col])
    best = [(np.arange(len(p)), depth)]
    for share in _WITHOUT if len(value) else ():
        keep = value >= np.quantile(value, share)
        ends = (edges.row[keep], edges.col[keep])
        graph = csr_matrix((np.ones(int(keep.sum()), dtype=np.int8), ends), shape=edges.shape)
        label = connected_components(graph, directed=False)[1]
        size = np.bincount(label)
        large = np.flatnonzero(size >= _FILLED * grid.size)
        depths = np.ceil(size[large] / grid.size - _OVER).astype(np.int64)
        if depths.sum() == depth and len(large) > len(best):
            members = [np.flatnonzero(label == part) for part in large]
            best = [(one, int(k)) for one, k in zip(members, depths, strict=True)]
        if len(best) == depth:
            break
    return sorted(best, key=lambda part: -len(part[0]) / part[1])


def inside(p: NearPairs, members: NDArray[np.int64]) -> NearPairs:
    """The pairs of some columns alone, in new numbers."""
    new = np.full(len(p) + 1, -1, dtype=np.int32)  # the last is for no column
    new[members] = np.arange(len(members))
    near = new[p.near[members]]
    return NearPairs(near, np.where(near >= 0, p.value[members], 0.0))


def nearest_of(z: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.int64]:
    """The column of ``other`` (k, n) that each column z (m, n) correlates with most."""
    step = max(1, _BLOCK // len(other))
    parts = [np.abs(z[a : a + step] @ other.T).argmax(axis=1) for a in range(0, len(z), step)]
    return np.concatenate(parts)


def laid_on(
    z: NDArray[np.float32],
    point: NDArray[np.int64],
    other: NDArray[np.float32],
    at: NDArray[np.int64],
    grid: Grid,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], bool]:
    """Points of columns z (m, n) at ``point``, moved as a whole to where they lie on the columns
    ``other`` (k, n) at ``at``: -1 outside the grid; and whether there is no doubt about it.

    Each column votes for the way that takes it to the one it correlates with most.
    """
    some = np.sort(rng.permutation(len(z))[:_COMPARED])
    partner = nearest_of(z[some], other)
    index, wanted = grid.indices(), grid.indices()[at[partner]]
    shape, wraps = np.array(grid.shape), np.asarray(grid.periodic)
    ways = []
    for turn in grid.orientations():
        turned = index[:, list(turn.axes)]
        turned = np.where(turn.flips, shape - 1 - turned, turned)
        shift = wanted - turned[point[some]]
        shift = np.where(wraps, np.mod(shift, shape), shift)
        kinds, votes = np.unique(shift, axis=0, return_counts=True)
        best = int(votes.argmax())
        moved = turned[point] + kinds[best]
        moved = np.where(wraps, np.mod(moved, shape), moved)
        ways.append((int(votes[best]), moved))
    ways.sort(key=lambda way: -way[0])
    most, moved = ways[0]
    next_one = ways[1][0] if len(ways) > 1 else 0
    inside = ((moved >= 0) & (moved < shape)).all(axis=1)
    to = np.where(inside, grid.flat(np.clip(moved, 0, shape - 1)), -1)
    return to, most - next_one > _AHEAD * np.sqrt(most + next_one)
