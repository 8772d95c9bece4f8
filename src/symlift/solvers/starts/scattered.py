"""Columns at arbitrary places: real coordinates, and the field on the grid predicted from them.

Where correlations depend on distance alone, they give the distance between two columns up to a
monotone function. Shortest paths over near columns, stress majorisation and isotonic regression
estimate both the places and the function. Example: 300 sensors at random places that observe smooth
bumps give coordinates with R² = 0.9997 in a third of a second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix
from scipy.sparse.csgraph import connected_components, shortest_path
from sklearn.isotonic import IsotonicRegression

from symlift.core.grid import Grid
from symlift.solvers.fast.arrange import independent_axes
from symlift.solvers.fast.place.fill import AROUND, nearest, prediction, usual_scale
from symlift.solvers.starts.graph import classical_scaling, stress_majorisation

__all__ = ["Scattered", "best_partners", "in_box", "monotone_scaling", "scatter", "scattered_map"]

# near columns whose distances are estimated, and rounds of distances and their monotone function
_NEAR, _ROUNDS = 20, 2
# smaller correlations carry little information on distance, and may join the ends of a line by
# chance
_LEAST = 0.15
# angles that are tried for the axes, and knots between which a covariance is interpolated
_ANGLES, _KNOTS = 91, 64


@dataclass(frozen=True)
class Scattered:
    """Coordinates (d, P) of columns in steps of the grid, and how well they are supported.

    ``step`` is the length of a step on each axis, in units in which correlations depend on distance
    alone; ``irregularity`` the relative spread of distances to the nearest column (0 on a lattice,
    0.5 at random places of a square); ``explained`` the share of held-out statistics that distances
    explain.
    """

    coordinates: NDArray[np.float64]
    step: NDArray[np.float64]
    irregularity: float
    explained: float


def scatter(
    c: NDArray, s: NDArray, s_held: NDArray, grid: Grid, rng: np.random.Generator
) -> Scattered | None:
    """Places of columns from correlations c (d, d), or None.

    They are judged by the statistics s and s_held of fitted and held-out rows.
    """
    if any(grid.periodic) or len(c) <= _NEAR:
        return None
    y = _places(c, grid.ndim)
    if y is None:
        return None
    apart = _distances(y)
    pairs = np.triu_indices(len(c), 1)
    model = IsotonicRegression(increasing=False).fit(apart[pairs], s[pairs]).predict(apart[pairs])
    held = s_held[pairs] - s_held[pairs].mean()
    explained = float(np.mean((model - model.mean()) * held) / max(float(np.mean(held**2)), 1e-12))
    nearest = np.sort(apart + np.diag(np.full(len(apart), np.inf)), axis=1)[:, 0]
    irregularity = float(nearest.std() / max(float(nearest.mean()), 1e-12))
    return Scattered(*in_box(y, grid, rng), irregularity, explained)


def _places(c: NDArray, dimension: int) -> NDArray[np.float64] | None:
    """Coordinates whose distances are a decreasing function of correlations."""
    edges = best_partners(c, _NEAR)
    edges = (edges | edges.T) & (c > _LEAST)
    return monotone_scaling(c, edges, np.sqrt(-np.log(np.clip(c, 1e-6, 1 - 1e-9))), dimension)


def best_partners(s: NDArray, count: int) -> NDArray[np.bool_]:
    """(d, d): the ``count`` columns that each column is most similar to."""
    near = np.argpartition(-(s - 2 * np.eye(len(s))), count - 1, axis=1)[:, :count]
    best = np.zeros(s.shape, dtype=bool)
    best[np.arange(len(s))[:, None], near] = True
    return best


def monotone_scaling(
    s: NDArray, edges: NDArray[np.bool_], length: NDArray, dimension: int
) -> NDArray[np.float64] | None:
    """Coordinates whose distances along ``edges`` are a decreasing function of the similarity s.

    The function starts as ``length`` (d, d); the median edge has length 1. None where the graph is
    not connected.
    """
    if connected_components(csr_matrix(edges, dtype=np.int8), directed=False)[0] > 1:
        return None
    y: NDArray[np.float64] | None = None
    for _ in range(_ROUNDS):
        paths = shortest_path(csr_matrix(np.where(edges, length, 0.0)), directed=False)
        paths = np.maximum(paths / max(float(np.median(paths[edges])), 1e-12), 1e-3)
        if y is None:
            values, vectors = classical_scaling(paths, dimension)
            y = vectors * np.sqrt(np.maximum(values, 1e-9))
        y = stress_majorisation(paths, y)
        function = IsotonicRegression(increasing=False, out_of_bounds="clip").fit(
            s[edges], _distances(y)[edges]
        )
        length = np.maximum(function.predict(s.ravel()).reshape(s.shape), 0.02)
    return y


def _distances(y: NDArray) -> NDArray[np.float64]:
    square = np.sum(y * y, axis=1)
    return np.sqrt(np.maximum(square[:, None] + square[None] - 2 * y @ y.T, 0.0))


def in_box(
    y: NDArray, grid: Grid, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """y rotated to its smallest bounding box and scaled to steps of the grid; and the steps.

    The longest side is along the longest axis. Correlations determine neither the unit of length
    nor the direction: the box that the columns fill, which is the grid, gives both.
    """
    centred = y - y.mean(axis=0)
    left, size, _ = np.linalg.svd(centred, full_matrices=False)
    white = left * np.sqrt(len(y))
    turn = np.linalg.lstsq(white, independent_axes(white, rng), rcond=None)[0]
    # the rotation of the whitened points, with lengths restored: axes of a box are axes of its
    # covariance as well
    turned = white @ turn * (np.sqrt((turn**2 * size[:, None] ** 2).sum(axis=0)) / np.sqrt(len(y)))
    turned = _smallest_box(turned)
    order = np.empty(grid.ndim, dtype=np.int64)
    order[np.argsort(-np.array(grid.shape), kind="stable")] = np.argsort(
        -np.ptp(turned, axis=0), kind="stable"
    )
    turned = turned[:, order]
    step = np.maximum(np.ptp(turned, axis=0), 1e-12) / np.maximum(np.array(grid.shape) - 1, 1)
    return (turned - turned.min(axis=0)) / step, step


def _smallest_box(y: NDArray) -> NDArray[np.float64]:
    """y rotated in each plane of two axes by the angle of least bounding box area."""
    y = y.copy()
    angles = np.linspace(-np.pi / 4, np.pi / 4, _ANGLES)
    # of equal boxes, the smallest rotation
    angles = angles[np.argsort(np.abs(angles), kind="stable")]
    for a in range(y.shape[1]):
        for b in range(a + 1, y.shape[1]):
            u = np.outer(np.cos(angles), y[:, a]) + np.outer(np.sin(angles), y[:, b])
            v = np.outer(np.cos(angles), y[:, b]) - np.outer(np.sin(angles), y[:, a])
            best = int(np.argmin(np.ptp(u, axis=1) * np.ptp(v, axis=1)))
            y[:, a], y[:, b] = u[best], v[best]
    return y


def scattered_map(
    c: NDArray, columns: NDArray, places: Scattered, scale: NDArray, grid: Grid, d: int
) -> csr_matrix:
    """W (points, d), acting on X - mean: the field on the grid as the best linear prediction from
    ``columns`` (k,).

    c (k, k): their correlations; scale (d,): the standard deviations of all columns.
    """
    at = places.coordinates * places.step
    covariance = _covariance(c, _distances(at))
    points = grid.indices() * places.step
    apart = np.sqrt(np.sum((points[:, None] - at[None]) ** 2, axis=-1))
    near = nearest(apart, AROUND)
    between = np.sqrt(np.sum((at[near][:, :, None] - at[near][:, None]) ** 2, axis=-1))
    toward = covariance(np.take_along_axis(apart, near, axis=1))
    weight = prediction(covariance(between), toward) * usual_scale(scale[columns], apart, near)
    row = np.repeat(np.arange(grid.size), near.shape[1])
    return coo_matrix((weight.ravel(), (row, columns[near].ravel())), shape=(grid.size, d)).tocsr()


def _covariance(c: NDArray, apart: NDArray) -> Callable[[NDArray], NDArray[np.float64]]:
    """Correlation as a decreasing function of distance, interpolated between means of pairs."""
    pairs = np.triu_indices(len(c), 1)
    order = np.argsort(apart[pairs], kind="stable")
    falling = IsotonicRegression(increasing=False).fit_transform(apart[pairs], c[pairs])
    # most pairs are far apart: knots are dense where the function falls
    knots = np.unique((np.linspace(0, 1, _KNOTS + 1) ** 2 * len(order)).astype(np.int64))
    parts = [order[a:b] for a, b in pairwise(knots)]
    where, value = (np.array([v[part].mean() for part in parts]) for v in (apart[pairs], falling))
    return lambda distance: np.interp(distance, where, value)
