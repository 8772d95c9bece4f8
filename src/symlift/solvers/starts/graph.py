"""Coordinates from a graph of neighbours.

Shortest paths, stress majorisation, axes along the edges, and a lattice fitted to the edges.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import coo_matrix, csc_matrix, csr_matrix, diags, triu
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree, shortest_path
from scipy.sparse.linalg import cg, splu

from symlift.core.grid import Grid
from symlift.solvers.fast.arrange import grid_coordinates, independent_axes

__all__ = [
    "connected",
    "coordinates_from",
    "into_box",
    "lattice",
    "neighbour_graph",
    "spectral_coordinates",
]

_STRESS_ROUNDS = 60
_LATTICE_ROUNDS = 15
_DENSE = 256
#: columns of a volume above which its equations are solved by conjugate gradients
_DIRECT = 5_000


def neighbour_graph(s: NDArray, count: int, least: float, squares: bool) -> NDArray[np.bool_]:
    """Edges between best neighbours (``count`` of each, at least ``least``), made connected.

    Edges are mutual best neighbours. With ``squares``, one-sided ones that are a side of at least
    two squares are added, and mutual ones that are a side of none are removed: in a grid every edge
    is the side of a square, and a shortcut is not (digits: of 1,027 edges, 5 wrong ones remain
    instead of 13).
    """
    d = len(s)
    t = s.copy()
    np.fill_diagonal(t, -np.inf)
    count = min(count, d - 1)
    near = np.argpartition(-t, count - 1, axis=1)[:, :count]
    best = np.zeros((d, d), dtype=bool)
    best[np.arange(d)[:, None], near] = True
    best &= t > least
    edges = best & best.T
    if squares:
        either = best | best.T
        edges = (either & (_faces(either) >= 2)) | (edges & (_faces(edges) >= 1))
    return connected(edges, s)


def _faces(edges: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Number of squares that each edge is a side of.

    Counts paths of three edges between its ends, without those along the edge itself.
    """
    e = edges.astype(np.float32)
    degree = e.sum(axis=1)
    return np.where(edges, e @ e @ e - degree[:, None] - degree[None] + 1, 0)


def connected(edges: NDArray[np.bool_], s: NDArray) -> NDArray[np.bool_]:
    """The edges, and the strongest links that connect their components."""
    if connected_components(csr_matrix(edges, dtype=np.int8), directed=False)[0] == 1:
        return edges
    length = np.where(edges, 1e-6, 2.0 - np.clip(s, -1, 1))
    np.fill_diagonal(length, 0.0)
    tree = minimum_spanning_tree(length).toarray() > 0
    return edges | tree | tree.T


def _cleaned(y: NDArray, edges: NDArray, s: NDArray, least: float, grid: Grid) -> NDArray[np.bool_]:
    """Edges that the coordinates confirm, and those that they suggest.

    On digits, one such round improves the starts from 0.53 to 0.99 of the columns in their places.
    """
    square = np.zeros(edges.shape)
    for axis, (n, wraps) in enumerate(zip(grid.shape, grid.periodic, strict=True)):
        v = y[:, None, axis] - y[None, :, axis]
        square += (v - n * np.rint(v / n) if wraps else v) ** 2
    off = np.abs(np.sqrt(square) - 1)
    return connected((edges & (off < 0.45)) | ((s > least) & (off < 0.25)), s)


def paths_through(edges: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Lengths of shortest paths; an edge has length 1, the diagonal of a square √2."""
    e = edges.astype(np.float32)
    diagonal = (e @ e >= 2) & ~edges
    np.fill_diagonal(diagonal, False)
    length = csr_matrix(np.where(edges, 1.0, np.where(diagonal, np.sqrt(2.0), 0.0)))
    paths = shortest_path(length, directed=False)
    return np.where(np.isinf(paths), paths[np.isfinite(paths)].max(), paths)


def classical_scaling(paths: NDArray, dimension: int) -> tuple[NDArray, NDArray]:
    """Leading eigenvalues and eigenvectors of the doubly centred squared path lengths."""
    b = paths**2
    b = b - b.mean(axis=0) - b.mean(axis=1)[:, None] + b.mean()
    return eigh(-0.5 * b, subset_by_index=[max(len(b) - dimension, 0), len(b) - 1])


def stress_majorisation(paths: NDArray, start: NDArray) -> NDArray[np.float64]:
    """Coordinates whose distances approximate the path lengths, weighted by 1/path²."""
    weight = 1 / np.maximum(paths, 1) ** 2
    np.fill_diagonal(weight, 0.0)
    laplacian = np.diag(weight.sum(axis=1)) - weight
    inverse = np.linalg.inv(laplacian + 1 / len(paths))
    pull = weight * paths
    y = start
    for _ in range(_STRESS_ROUNDS):
        square = np.sum(y * y, axis=1)
        apart = np.sqrt(np.maximum(square[:, None] + square[None] - 2 * y @ y.T, 1e-12))
        b = -pull / apart
        np.fill_diagonal(b, 0.0)
        np.fill_diagonal(b, -b.sum(axis=1))
        y, old = inverse @ (b @ y), y
        if np.abs(y - old).max() < 1e-3:
            break
    return y


def along_edges(
    y: NDArray, edges: NDArray | csr_matrix, rng: np.random.Generator
) -> NDArray[np.float64]:
    """y rotated so that edges run along the axes (largest sum of fourth powers), of unit length."""
    i, j = _ends(edges)
    v = y[j] - y[i]
    length = np.linalg.norm(v, axis=1)
    step = max(float(np.median(length)), 1e-9)
    v = v / np.maximum(length, 1e-9)[:, None]
    dimension = y.shape[1]
    best, most = np.eye(dimension), -1.0
    for _ in range(8 if dimension > 1 else 0):
        R = np.linalg.qr(rng.normal(size=(dimension, dimension)))[0]
        for _ in range(100):
            turned = v @ R
            # `** 3` is ten times slower
            left, _, right = np.linalg.svd(v.T @ (turned * turned * turned))
            R, old = left @ right, R
            if np.abs(np.abs(np.sum(R * old, axis=0)) - 1).max() < 1e-9:
                break
        value = float(np.sum((v @ R) ** 4))
        if value > most:
            best, most = R, value
    return y @ best / step


def lattice(y: NDArray, edges: NDArray | csr_matrix, grid: Grid) -> NDArray[np.float64]:
    """Coordinates in which every edge is one step along one axis, as nearly as possible.

    Each edge is rounded to its nearest axis, and weighted least squares find the coordinates with
    those steps; edges that do not fit get smaller weights. This straightens a bent embedding in
    which no edge is turned by more than 45°.
    """
    d, P = y.shape
    i, j = _ends(edges)
    period = np.where(grid.periodic, grid.shape, np.inf)
    weight = np.ones(len(i))
    for turn in range(_LATTICE_ROUNDS):
        v = _wrapped(y[j] - y[i], period)
        axis = np.abs(v).argmax(axis=1)
        step = np.zeros_like(v)
        step[np.arange(len(i)), axis] = np.sign(v[np.arange(len(i)), axis])
        miss = np.linalg.norm(v - step, axis=1)
        weight = 1 / (1 + (miss / 0.5) ** 2) ** 2 if turn else 1 / (1 + miss**2)
        pull = np.zeros((d, P))
        np.add.at(pull, j, weight[:, None] * (step - v))
        np.add.at(pull, i, -weight[:, None] * (step - v))
        moved = _potential(i, j, weight, pull)
        moved -= moved.mean(axis=0)
        y = y + moved
        if np.abs(moved).max() < 1e-3:
            break
    return y


def _ends(edges: NDArray | csr_matrix) -> tuple[NDArray, NDArray]:
    """Both ends of every edge, each edge once."""
    if not isinstance(edges, np.ndarray):
        upper = triu(edges, 1).tocoo()
        return upper.row, upper.col
    i, j = np.nonzero(np.triu(edges, 1))
    return i, j


def _wrapped(v: NDArray, period: NDArray) -> NDArray[np.float64]:
    finite = np.where(np.isfinite(period), period, 1.0)
    return np.where(np.isfinite(period), v - finite * np.rint(v / finite), v)


def _potential(i: NDArray, j: NDArray, weight: NDArray, pull: NDArray) -> NDArray[np.float64]:
    """x (d, P) with L x = ``pull``, where L is the Laplacian of the weighted edges.

    Up to 256 columns a dense L is faster: making a sparse one takes 2 ms, however small. A
    factorisation of a large volume fills up (48x48x48: 20 minutes), and its gradients need few
    steps.
    """
    d = len(pull)
    if d <= _DENSE:
        dense = np.zeros((d, d))
        dense[i, j] = dense[j, i] = -weight
        dense[np.diag_indices(d)] = 1e-9 - dense.sum(axis=1)
        return np.linalg.solve(dense, pull)
    w = coo_matrix((np.r_[weight, weight], (np.r_[i, j], np.r_[j, i])), shape=(d, d)).tocsr()
    degree = np.asarray(w.sum(axis=1)).ravel() + 1e-9
    sparse: csc_matrix = (diags(degree) - w).tocsc()
    if d > _DIRECT and pull.shape[1] > 2:
        scaled = diags(1 / degree)
        return np.stack([cg(sparse, one, rtol=1e-5, M=scaled)[0] for one in pull.T], axis=1)
    return np.asarray(splu(sparse).solve(pull))


def into_box(y: NDArray, grid: Grid) -> NDArray[np.float64]:
    """y shifted so that most columns are at whole numbers inside the grid."""
    out = y.copy()
    for axis, (n, wraps) in enumerate(zip(grid.shape, grid.periodic, strict=True)):
        z = y[:, axis] - np.angle(np.exp(2j * np.pi * y[:, axis]).mean()) / (2 * np.pi)
        if not wraps:
            # columns that a broken graph leaves far outside must not decide how much is counted
            middle = float(np.median(z))
            whole = np.rint(np.clip(z, middle - 4 * n, middle + 4 * n)).astype(np.int64)
            counts = np.bincount(whole - whole.min())
            inside = np.convolve(counts, np.ones(n), "valid") if len(counts) > n else np.zeros(0)
            first = int(inside.argmax()) if len(inside) else -((n - len(counts)) // 2)
            z = z - whole.min() - first
        out[:, axis] = z
    return out


def coordinates_from(
    s: NDArray, grid: Grid, least: float, squares: bool, rng: np.random.Generator
) -> list[NDArray[np.float64]]:
    """Grid coordinates of columns from a similarity.

    One array for each way to match axes of different kinds.
    """
    edges = neighbour_graph(s, 2 * grid.ndim, least, squares)
    coordinates = []
    for y in _embedded(edges, grid, rng):
        cleaned = _cleaned(y, edges, s, least, grid)
        again = (
            _embedded(cleaned, grid, rng) if not any(grid.periodic) else [lattice(y, cleaned, grid)]
        )
        coordinates += [into_box(z, grid) for z in again]
    return coordinates


def _embedded(
    edges: NDArray[np.bool_], grid: Grid, rng: np.random.Generator
) -> list[NDArray[np.float64]]:
    paths = paths_through(edges)
    if any(grid.periodic):
        vectors = classical_scaling(paths, grid.ndim + sum(grid.periodic))[1]
        y = independent_axes(vectors * np.sqrt(len(vectors)), rng)
        return [lattice(start, edges, grid) for start in grid_coordinates(y, grid)]
    values, vectors = classical_scaling(paths, grid.ndim)
    y = stress_majorisation(paths, vectors * np.sqrt(np.maximum(values, 1e-9)))
    y = lattice(along_edges(y, edges, rng), edges, grid)
    return [y[:, axes] for axes in _axis_orders(y, grid)]


def spectral_coordinates(
    c: NDArray, grid: Grid, rng: np.random.Generator
) -> list[NDArray[np.float64]]:
    """Coordinates from the leading eigenvectors of correlations, without the first.

    They average over all pairs, so noise hardly moves them.
    """
    dimension = grid.ndim + sum(grid.periodic)
    if len(c) < dimension + 2:
        return []
    vectors = eigh(c, subset_by_index=[len(c) - 1 - dimension, len(c) - 2])[1]
    y = (vectors - vectors.mean(axis=0)) * np.sqrt(len(c))
    return grid_coordinates(independent_axes(y, rng), grid)


def _axis_orders(y: NDArray, grid: Grid) -> list[list[int]]:
    """Orders of the axes that fit the grid: the longest extent on the longest axis."""
    extent = np.argsort(-np.ptp(y, axis=0), kind="stable")
    order = np.empty(grid.ndim, dtype=np.int64)
    order[np.argsort(-np.array(grid.shape), kind="stable")] = extent
    return [order.tolist()]
