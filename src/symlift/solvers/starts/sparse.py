"""Thousands of columns: the same graph, lattice and local statistics, with sparse matrices.

Only the correlations are dense. Shortest paths run from landmarks, the lattice fit straightens the
embedding, and columns that do not correlate with their grid neighbours are removed and placed
again. Assignments involve only those columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, shortest_path
from scipy.spatial import cKDTree

from symlift.core.grid import Grid
from symlift.search.score import links, next_to
from symlift.solvers.fast.arrange import grid_coordinates, independent_axes
from symlift.solvers.starts.graph import _axis_orders, along_edges, into_box, lattice
from symlift.solvers.starts.wide_blocks import settle_blocks
from symlift.solvers.starts.wide_lattice import wide_lattice
from symlift.solvers.starts.wide_settle import link_sums, symmetric
from symlift.statistics.neighbours import NearPairs

__all__ = ["confirmed_edges", "coordinates", "partner_graph", "place_large", "sparse_coordinates"]

_LANDMARKS, _FEWEST_LANDMARKS, _PATHS = 300, 60, 20_000_000
_DISPUTED = 1_500
#: of edges some of which join columns of one point, a longer one
_USUAL = 0.8
#: sets of landmarks that very many columns are placed from, and the share of the partners that are
#: neighbours after which no other one is tried
_STARTS, _JOINED = 4, 0.99
_ROUNDS = 12


def place_large(
    p: NDArray | NearPairs, grid: Grid, least: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], float]:
    """Point of each column (-1: none) from partial correlations p (d, d), or those of near columns.

    Also returns the mean over columns of the summed partial correlations with grid neighbours.
    """
    edges = partner_graph(p, 2 * grid.ndim, least)
    if edges.nnz < len(p):  # hardly any links: noise, which has no order but the one it came in
        point = np.where(np.arange(len(p)) < grid.size, np.arange(len(p)), -1)
        return point, float(links(p, point, grid).mean())
    if isinstance(p, NearPairs):
        return _place_wide(p, edges, grid, least, rng)
    candidates: list[tuple[float, NDArray[np.int64]]] = []
    for start in coordinates(edges, grid, rng):
        y = lattice(start, edges, grid)
        y = lattice(y, confirmed_edges(y, edges, p, least, grid), grid)
        point = _settle(p, _rounded(into_box(y, grid), grid), grid)
        candidates.append((float(links(p, point, grid).mean()), point))
    value, point = max(candidates, key=lambda pair: pair[0])
    return point, value


def _place_wide(
    p: NearPairs, edges: csr_matrix, grid: Grid, least: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], float]:
    """`place_large` from near pairs alone: from several sets of landmarks, until nearly all
    partners are neighbours.
    """
    known, table = symmetric(p), next_to(grid)
    candidates: list[tuple[float, NDArray[np.int64]]] = []
    for _ in range(_STARTS):
        for start in coordinates(edges, grid, rng):
            y = wide_lattice(start, edges, grid)
            y = wide_lattice(y, confirmed_edges(y, edges, p, least, grid), grid)
            point = settle_blocks(known, edges, _rounded(into_box(y, grid), grid), grid)
            candidates.append((float(link_sums(known, point, table).mean()), point))
        value, point = max(candidates, key=lambda pair: pair[0])
        if float(link_sums(edges, point, table).sum()) > _JOINED * edges.nnz:
            break
    return point, value


def sparse_coordinates(
    p: NDArray | NearPairs, grid: Grid, least: float, rng: np.random.Generator
) -> NDArray[np.float64] | None:
    """The same as coordinates (d, P): columns without a point are at that of the column that they
    are linked to most. None for so few columns that all would be neighbours.
    """
    if len(p) <= 2 * grid.ndim:
        return None
    point, _ = place_large(p, grid, least, rng)
    placed = np.flatnonzero(point >= 0)
    partner = placed[np.argmax(p[:, placed], axis=1)]
    return grid.indices()[np.where(point >= 0, point, point[partner])].astype(np.float64)


def partner_graph(p: NDArray | NearPairs, count: int, least: float) -> csr_matrix:
    """Edges between mutual best neighbours that are sides of a square (line: all mutual ones)."""
    d = len(p)
    near, value = _best(p, count)
    keep = value > least
    rows = np.broadcast_to(np.arange(d)[:, None], near.shape)[keep]
    best = csr_matrix((np.ones(len(rows), dtype=np.float32), (rows, near[keep])), shape=(d, d))
    mutual = best.multiply(best.T).tocsr()
    if count > 2:
        degree = np.asarray(mutual.sum(axis=1)).ravel()
        cubes = (mutual @ mutual @ mutual).multiply(mutual).tocoo()
        faces = cubes.data - degree[cubes.row] - degree[cubes.col] + 1
        good = faces >= 1
        mutual = csr_matrix(
            (np.ones(int(good.sum()), dtype=np.float32), (cubes.row[good], cubes.col[good])),
            shape=(d, d),
        )
    return mutual


def _best(p: NDArray | NearPairs, count: int) -> tuple[NDArray, NDArray]:
    """The ``count`` columns of largest p of each column, and those values."""
    if isinstance(p, NearPairs):
        order = np.argsort(-p.value, axis=1, kind="stable")[:, :count]
        near = np.take_along_axis(p.near, order, axis=1).astype(np.int64)
        return near, np.where(near < 0, -1.0, np.take_along_axis(p.value, order, axis=1))
    best = np.argpartition(-p, count - 1, axis=1)[:, :count]
    return best, np.take_along_axis(p, best, axis=1)


def coordinates(
    edges: csr_matrix, grid: Grid, rng: np.random.Generator, shared: bool = False
) -> list[NDArray[np.float64]]:
    """Landmark scaling of shortest paths: edges have length 1, diagonals of squares √2.

    Columns outside the largest component start at 0. Where points are ``shared``, edges between
    columns of one point are short, and say nothing about axes.
    """
    two = (edges @ edges).tocoo()
    corner = (two.data >= 2) & (two.row != two.col)
    diagonal = csr_matrix(
        (np.ones(int(corner.sum())), (two.row[corner], two.col[corner])), shape=edges.shape
    )
    diagonal = diagonal - diagonal.multiply(edges > 0)
    label = connected_components(edges, directed=False)[1]
    main = np.flatnonzero(label == np.bincount(label).argmax())
    length = (edges + np.sqrt(2.0) * diagonal)[main][:, main].tocsr()
    dimension = grid.ndim + sum(grid.periodic)
    # fewer where the table of paths would be the largest of all
    count = min(_LANDMARKS, max(_FEWEST_LANDMARKS, _PATHS // len(main)), len(main))
    marks = np.sort(rng.permutation(len(main))[:count])
    squares = shortest_path(length, directed=False, indices=marks) ** 2
    squares = np.where(np.isfinite(squares), squares, squares[np.isfinite(squares)].max())
    own = squares[:, marks]
    mean = own.mean(axis=1)
    values, vectors = np.linalg.eigh(-0.5 * (own - mean - mean[:, None] + own.mean()))
    axes = vectors[:, -dimension:] / np.sqrt(np.maximum(values[-dimension:], 1e-9))
    y = np.zeros((edges.shape[0], dimension))
    y[main] = -0.5 * (squares - mean[:, None]).T @ axes
    y[main] -= y[main].mean(axis=0)
    if any(grid.periodic):
        left, _, right = np.linalg.svd(y, full_matrices=False)
        return grid_coordinates(independent_axes(left @ right * np.sqrt(len(y)), rng), grid)
    turned = along_edges(y, _long_edges(y, edges) if shared else edges, rng)
    return [turned[:, order] for order in _axis_orders(turned, grid)]


def _long_edges(y: NDArray, edges: csr_matrix) -> csr_matrix:
    """Edges of more than half of the usual length of the longer ones."""
    pairs = edges.tocoo()
    length = np.linalg.norm(y[pairs.row] - y[pairs.col], axis=1)
    keep = length > 0.5 * float(np.quantile(length, _USUAL))
    ends = (pairs.row[keep], pairs.col[keep])
    return csr_matrix((np.ones(int(keep.sum())), ends), shape=edges.shape)


def confirmed_edges(
    y: NDArray,
    edges: csr_matrix,
    p: NDArray | NearPairs,
    least: float,
    grid: Grid,
    shared: bool = False,
) -> csr_matrix:
    """Edges that the coordinates confirm, and those that they suggest.

    Where points are ``shared``, edges may have no length, too.
    """
    box = [n if wraps else 1e9 for n, wraps in zip(grid.shape, grid.periodic, strict=True)]
    shifted = np.mod(y, box) if any(grid.periodic) else y - y.min(axis=0)
    shifted = np.where(shifted < box, shifted, 0.0)  # the remainder of -1e-17 is rounded to the box
    tree = cKDTree(shifted, boxsize=np.array(box)) if any(grid.periodic) else cKDTree(shifted)
    pairs = tree.query_pairs(1.45, output_type="ndarray")
    v = shifted[pairs[:, 0]] - shifted[pairs[:, 1]]
    v = np.where(grid.periodic, v - np.array(box) * np.rint(v / np.array(box)), v)
    length = np.linalg.norm(v, axis=1)
    off = np.minimum(np.abs(length - 1), length if shared else np.inf)
    had = np.asarray(edges[pairs[:, 0], pairs[:, 1]]).ravel() > 0
    good = (had & (off < 0.45)) | ((off < 0.25) & (p[pairs[:, 0], pairs[:, 1]] > least))
    i, j = pairs[good].T
    ones = np.ones(len(i))
    graph = csr_matrix((np.r_[ones, ones], (np.r_[i, j], np.r_[j, i])), shape=edges.shape)
    return graph


def _rounded(y: NDArray, grid: Grid) -> NDArray[np.int64]:
    """Nearest point of each column; of several columns the nearest gets it, others get -1."""
    whole = np.rint(y).astype(np.int64)
    shape = np.array(grid.shape)
    inside = (np.asarray(grid.periodic) | ((whole >= 0) & (whole < shape))).all(axis=1)
    wrapped = np.where(grid.periodic, np.mod(whole, shape), np.clip(whole, 0, shape - 1))
    point = grid.flat(wrapped)
    miss = np.where(inside, np.sum((y - whole) ** 2, axis=1), np.inf)
    order = np.argsort(miss, kind="stable")
    first = order[np.unique(point[order], return_index=True)[1]]
    out = np.full(len(y), -1, dtype=np.int64)
    keep = first[np.isfinite(miss[first])]
    out[keep] = point[keep]
    return out


def _settle(p: NDArray | NearPairs, point: NDArray, grid: Grid) -> NDArray[np.int64]:
    """Repeatedly remove the columns with the weakest links, and place them again.

    Columns that have no point yet are placed with them.
    """
    neighbours = next_to(grid)
    best, value = point, -np.inf
    for turn in range(_ROUNDS):
        sums = np.where(point >= 0, links(p, point, grid), -np.inf)
        placed = np.isfinite(sums)
        usual = float(np.median(sums[placed])) if placed.any() else 0.0
        loose = sums < 0.6 * usual
        if loose.sum() > _DISPUTED:
            loose = np.argsort(np.argsort(sums, kind="stable")) < _DISPUTED
        if turn:  # their neighbours may be misplaced because of them
            point_of = np.full(grid.size + 1, -1)
            point_of[point[point >= 0]] = np.flatnonzero(point >= 0)
            around = point_of[neighbours[point[loose & (point >= 0)]]].ravel()
            if loose.sum() + len(around) <= _DISPUTED:
                loose[around[around >= 0]] = True
        columns = np.flatnonzero(loose | (point < 0))
        stay = point.copy()
        stay[columns] = -1
        for _ in range(3):
            stay = _put(p, stay, columns, neighbours, grid)
        total = float(links(p, stay, grid).sum())
        if total <= value + 1e-6:
            break
        best, value, point = stay, total, stay
    return best


def _put(
    p: NDArray | NearPairs, point: NDArray, columns: NDArray, neighbours: NDArray, grid: Grid
) -> NDArray[np.int64]:
    """Assign ``columns`` to the free points by their links to the columns around each point.

    Links to columns that are assigned in the same call use their previous points.
    """
    at = np.full(grid.size + 1, -1)
    at[point[point >= 0]] = np.flatnonzero(point >= 0)
    mine = point[columns]
    taken = at.copy()
    taken[mine[mine >= 0]] = -1
    free = np.flatnonzero(taken[:-1] < 0)
    gain = np.zeros((len(columns), len(free)))
    for near in at[neighbours[free]].T:
        occupied = near >= 0
        gain[:, occupied] += p[np.ix_(columns, near[occupied])]
    which, where = linear_sum_assignment(-gain)
    out = point.copy()
    out[columns] = -1
    out[columns[which]] = free[where]
    return out
