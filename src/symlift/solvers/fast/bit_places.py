"""Where scrambled bits sit: the grid point and the polarity of each column, from correlations
alone.

Correlations of columns factor into how strongly a column follows the field and a function of
displacement,

    c_ij = a_i a_j K(p_i - p_j),

so a column sits where its correlations with all others fit best; the sign of a_i is its polarity.
The start is a landmark Isomap of |c|; sums over the bits of a point are then a shuffled image,
which `arrange` puts in order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import (
    breadth_first_order,
    connected_components,
    minimum_spanning_tree,
    shortest_path,
)

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.core.linalg import polar
from symlift.solvers.fast.arrange import (
    arrange,
    fisher_z,
    grid_coordinates,
    independent_axes,
    smooth_lags,
)
from symlift.solvers.fast.settings import DEFAULT, FastSettings

__all__ = [
    "Places",
    "explained_by_places",
    "nearest_columns",
    "place_bits",
    "plane_correlations",
    "polarities_along_tree",
]


def plane_correlations(planes: NDArray) -> NDArray[np.float32]:
    """Correlations of bit planes (d, n), zero diagonal; those of a constant plane are zero."""
    z = planes.astype(np.float32)
    z -= z.mean(axis=1, keepdims=True)
    norm = np.sqrt(np.einsum("ij,ij->i", z, z))[:, None]
    z /= np.where(norm > 0, norm, 1)
    C = z @ z.T
    np.fill_diagonal(C, 0.0)
    return C


@dataclass(frozen=True)
class Places:
    """Grid point of each column, and how strongly (and with which sign) the column follows the
    field there.
    """

    point: NDArray[np.int64]
    strength: NDArray[np.float64]


class _LagModel:
    """c_ij = a_i a_j K(p_i - p_j): least squares of K given (p, a), and of (p, a) given K, one
    column at a time.
    """

    def __init__(self, C: NDArray, lags: LagClasses) -> None:
        self.C, self.lags = C, lags

    def fit(self, places: Places, width: float) -> NDArray:
        """K(h - g) for all pairs of grid points, (N, N), smoothed over displacements."""
        a, N = places.strength, self.lags.grid.size
        at = csr_matrix((a, (places.point, np.arange(len(a)))), shape=(N, len(a)))
        self.sums = (at @ self.C).T  # Σ_{i at h} a_i c_ji, (d, N)
        self.energy = np.bincount(places.point, a**2, N)
        total = self.lags.total(at @ self.sums)
        count = self.lags.total(np.outer(self.energy, self.energy))
        count[self.lags.zero] -= np.sum(a**4)  # a column has no pair with itself
        return (
            smooth_lags(total, self.lags, width)
            / np.maximum(smooth_lags(count, self.lags, width), 1e-9)
        )[self.lags.index]

    def fits(self, places: Places, K: NDArray) -> tuple[NDArray, NDArray]:
        """Best strength of each column at each grid point, and how much it explains there, both (d,
        N).
        """
        own = places.strength[:, None] ** 2 * K[places.point] ** 2
        possible = np.maximum(self.energy @ K**2 - own, 1e-9)
        projected = self.sums @ K
        return projected / possible, projected**2 / possible


def _settle(
    model: _LagModel,
    places: Places,
    widths: tuple[float, ...],
    settings: FastSettings,
    capacity: int | None = None,
) -> Places:
    """Alternate between lag model and places until no column moves, with decreasing smoothing."""
    columns = np.arange(len(places.point))
    for width in widths:
        for _ in range(settings.refine_steps):
            strength, gain = model.fits(places, model.fit(places, width))
            point = gain.argmax(axis=1) if capacity is None else _fill(gain, capacity)
            a, before = strength[columns, point], places.point
            places = Places(point, a / max(float(np.sqrt(np.mean(a**2))), 1e-12))
            if np.array_equal(point, before):
                break
    return places


def _fill(gain: NDArray, capacity: int) -> NDArray[np.int64]:
    """The point of largest gain for each column, with at most ``capacity`` columns per point."""
    best = gain.argmax(axis=1)
    if np.bincount(best, minlength=gain.shape[1]).max() <= capacity:
        return best
    return linear_sum_assignment(np.repeat(-gain, capacity, axis=1))[1] // capacity


def place_bits(
    C: NDArray, grid: Grid, rng: np.random.Generator, settings: FastSettings = DEFAULT
) -> tuple[Places, dict[str, float]]:
    """Grid point and polarity of each column, from correlations (d, d); quality: the part of them
    that the lag model explains.

    If d is a multiple of the number of points, all points get the same number of columns; otherwise
    a point may have any number.
    """
    d, lags = len(C), LagClasses(grid)
    model = _LagModel(C, lags)
    graph = nearest_columns(C, neighbours=round(1.5 * d / grid.size) + 2 * grid.ndim)
    axes = independent_axes(
        _embed(graph, grid.ndim + sum(grid.periodic), rng, settings.landmarks), rng
    )
    sign = polarities_along_tree(graph, C)
    attempts = []
    for coordinates in grid_coordinates(axes, grid):
        nearest = np.rint(coordinates).astype(np.int64)
        inside = np.clip(nearest, 0, np.array(grid.shape) - 1)
        places = Places(grid.flat(np.where(grid.periodic, nearest % grid.shape, inside)), sign)
        places = _settle(model, places, settings.widths, settings)
        places = _settle(model, _straighten(model, places, rng), settings.widths[1:], settings)
        if d % grid.size == 0:
            places = _settle(model, places, (0.0,), settings, capacity=d // grid.size)
        attempts.append((explained_by_places(C, C, places, lags), places))
    part, places = max(attempts, key=lambda pair: pair[0])
    return places, {"explained": part}


def explained_by_places(C: NDArray, C_held: NDArray, places: Places, lags: LagClasses) -> float:
    """Part of the held-out correlations that a_i a_j K(p_i - p_j), fitted to C, explains: about 0
    or less on noise.
    """
    K = _LagModel(C, lags).fit(places, 0.0)
    a, p = places.strength, places.point
    left = 0.0
    for start in range(0, len(C), 512):
        rows = slice(start, start + 512)
        expected = K[np.ix_(p[rows], p)] * np.outer(a[rows], a)
        expected[np.arange(len(expected)), np.arange(start, start + len(expected))] = 0.0
        left += float(np.sum((C_held[rows] - expected) ** 2))
    pairs = len(C) * (len(C) - 1)
    total = (
        float(np.sum(C_held**2, dtype=np.float64))
        - float(C_held.sum(dtype=np.float64)) ** 2 / pairs
    )
    return 1 - left / max(total, 1e-300)


def _straighten(model: _LagModel, places: Places, rng: np.random.Generator) -> Places:
    """Move points as a whole to where `arrange` puts them: an embedding is bent, but sums over the
    bits of a point form an image.
    """
    model.fit(places, 0.0)
    if not model.energy.all():
        return places  # a point without columns has no statistics
    N = model.lags.grid.size
    total = csr_matrix(
        (places.strength, (places.point, np.arange(len(places.point)))),
        shape=(N, len(places.point)),
    )
    S = fisher_z(
        (total @ model.sums) / np.sqrt(np.outer(model.energy, model.energy)) / model.energy.mean()
    )
    order, _ = arrange(S[None], model.lags.grid, rng)
    return Places(np.argsort(order)[places.point], places.strength)


def nearest_columns(C: NDArray, neighbours: int) -> csr_matrix:
    """Graph of the columns that correlate most; an edge has length √(1 - |c|)."""
    d, k = len(C), min(neighbours, len(C) - 1)
    rows, columns = (
        np.repeat(np.arange(d), k),
        np.argpartition(-np.abs(C), k, axis=1)[:, :k].ravel(),
    )
    length = np.sqrt(np.maximum(1 - np.abs(C[rows, columns]), 1e-6)).astype(np.float64)
    graph = csr_matrix((length, (rows, columns)), shape=(d, d))
    return graph.maximum(graph.T)


def polarities_along_tree(graph: csr_matrix, C: NDArray) -> NDArray[np.float64]:
    """±1 for each column, so that correlations along the spanning tree of strongest links become
    positive.
    """
    sign = np.ones(len(C))
    tree = minimum_spanning_tree(graph)
    for root in np.unique(connected_components(graph, directed=False)[1], return_index=True)[1]:
        order, parent = breadth_first_order(tree, root, directed=False)
        for i in order[1:]:
            sign[i] = sign[parent[i]] * (1 if C[i, parent[i]] >= 0 else -1)
    return sign


def _embed(graph: csr_matrix, dimension: int, rng: np.random.Generator, count: int) -> NDArray:
    """Landmark Isomap, whitened, (d, dimension): shortest paths from some columns to all, classical
    scaling of those.
    """
    landmarks = np.sort(rng.permutation(graph.shape[0])[:count])
    paths = shortest_path(graph, directed=False, indices=landmarks)
    finite = np.isfinite(paths)
    squares = np.where(finite, paths, 1.5 * paths[finite].max()) ** 2
    own = squares[:, landmarks]
    mean = own.mean(axis=1)
    values, vectors = np.linalg.eigh(-0.5 * (own - mean - mean[:, None] + own.mean()))
    axes = vectors[:, -dimension:] / np.sqrt(np.maximum(values[-dimension:], 1e-9))
    Y = -0.5 * (squares - mean[:, None]).T @ axes
    Y -= Y.mean(axis=0)
    return polar(Y) * np.sqrt(len(Y))
