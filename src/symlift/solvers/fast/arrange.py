"""Arrange the columns of a stationary field, given in unknown order, on a grid.

A pairwise statistic s_ij of two columns (Fisher-transformed correlation of values, ranks or
energies) of a stationary field depends on the displacement of their grid points alone: s_ij = K(p_i
- p_j) + noise. The arrangement p is the permutation for which displacements explain the statistics
best,

    F(p) = mean_m ½ log v_m(p), v_m(p) = mean_ij (s^m_ij - K^m(p_i - p_j))², K^m(l) = mean of s^m at
    displacement l.

Starts: shortest paths through nearest neighbours (Isomap), whitened and rotated to independent
axes, assigned to the grid. Descent: K by averages over lags, p by linear assignment or by exact
swaps. The least F wins.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh
from scipy.ndimage import gaussian_filter1d
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path
from scipy.stats import rankdata

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.core.linalg import polar
from symlift.errors import InputError
from symlift.solvers.fast.settings import DEFAULT, FastSettings

__all__ = [
    "arrange",
    "explained",
    "explained_held_out",
    "fisher_z",
    "grid_coordinates",
    "independent_axes",
    "lag_means",
    "similarities",
    "smooth_lags",
]


def similarities(X: NDArray) -> NDArray[np.float64]:
    """atanh of the correlations of values, of ranks and of energies |x - mean|: (3, d, d), zero
    diagonal.
    """
    rows = np.asarray(X, dtype=np.float32)
    centred = rows - rows.mean(axis=0)
    ranks = rankdata(rows, axis=0).astype(np.float32)
    return np.stack(
        [fisher_z(np.corrcoef(z, rowvar=False)) for z in (centred, ranks, np.abs(centred))]
    )


def fisher_z(correlation: ArrayLike) -> NDArray[np.float64]:
    """atanh of correlations, which makes their sampling noise about equal; zero diagonal."""
    s = np.arctanh(np.clip(np.nan_to_num(correlation), -1 + 1e-7, 1 - 1e-7)).astype(np.float64)
    np.fill_diagonal(s, 0.0)
    return s


def arrange(
    S: NDArray, grid: Grid, rng: np.random.Generator, settings: FastSettings = DEFAULT
) -> tuple[NDArray[np.int64], dict[str, float]]:
    """Order of the columns on the grid, such that ``X[:, order]`` is the field in C order, and
    numbers on its quality.

    S holds (m, d, d) symmetric pairwise statistics, such as those of `similarities`. Starts are
    refined until two of them end at the same least F. The quality consists of F, the part of S that
    lags explain, and the numbers of starts that were tried and that agree.
    """
    S = np.asarray(S, dtype=np.float64)
    if S.shape[1] != grid.size:
        raise InputError(f"{S.shape[1]} columns do not fill the grid {grid} of {grid.size} points")
    lags = LagClasses(grid)
    dimension = grid.ndim + sum(grid.periodic)
    counts = sorted(
        {min(k, grid.size - 1) for k in (2 * grid.ndim, 4 * grid.ndim, 3**grid.ndim - 1)}
    )
    results: list[tuple[float, NDArray[np.int64]]] = []
    agreeing = 0
    for k, statistic in ((k, f(s)) for f in (np.asarray, np.abs) for k in counts for s in S):
        axes = independent_axes(_embed(_geodesics(statistic, k), dimension), rng)
        refined = (
            _refine(S, _assign(c, grid), lags, settings) for c in grid_coordinates(axes, grid)
        )
        results.append(min(refined, key=lambda result: result[0]))
        best = min(value for value, _ in results)
        agreeing = sum(value < best + 1e-6 for value, _ in results)
        if agreeing >= settings.agreeing_starts or len(results) >= settings.max_starts:
            break
    value, order = min(results, key=lambda result: result[0])
    quality = {"misfit": value, "explained": explained(S, order, lags)}
    return order, {**quality, "starts": len(results), "agreeing": agreeing}


def explained(S: NDArray, order: NDArray, lags: LagClasses) -> float:
    """Part of the variance of the statistics over pairs that displacements explain, averaged over
    statistics.
    """
    _, v = _lag_model(S, order, lags)
    pairs = lags.index != lags.zero
    return float(
        np.mean(
            [1 - residual / max(s[pairs].var(), 1e-12) for s, residual in zip(S, v, strict=True)]
        )
    )


def explained_held_out(S: NDArray, S_held: NDArray, order: NDArray, lags: LagClasses) -> float:
    """Part of held-out statistics that lag means of the fitted ones explain: about 0 on noise,
    however many lags there are.
    """
    pairs = lags.index != lags.zero
    parts = []
    for s, held in zip(S, S_held, strict=True):
        model = lag_means(s, order, lags)[lags.index][pairs]
        placed = held[np.ix_(order, order)][pairs]
        parts.append(1 - np.mean((placed - model) ** 2) / max(float(placed.var()), 1e-12))
    return float(np.mean(parts))


# -- the lag model ---------------------------------------------------------------------------------


def smooth_lags(values: NDArray, lags: LagClasses, width: float) -> NDArray:
    """A function of displacement (classes,), smoothed by a Gaussian of ``width`` steps."""
    if width <= 0:
        return values
    field = values.reshape(lags.shape)
    for axis, wraps in enumerate(lags.grid.periodic):
        field = gaussian_filter1d(field, width, axis=axis, mode="wrap" if wraps else "constant")
    return field.ravel()


def lag_means(
    s: NDArray, order: NDArray, lags: LagClasses, width: float = 0.0
) -> NDArray[np.float64]:
    """Mean of one statistic in each lag class, (classes,), smoothed over displacements; the zero
    lag is left out.
    """
    count, total = lags.count.copy(), lags.total(s[np.ix_(order, order)])
    count[lags.zero] = total[lags.zero] = 0.0
    return smooth_lags(total, lags, width) / np.maximum(smooth_lags(count, lags, width), 1e-9)


def _lag_model(
    S: NDArray, order: NDArray, lags: LagClasses, width: float = 0.0
) -> tuple[NDArray, NDArray]:
    """Mean K of each statistic in each lag class, (m, classes), and the mean squared residual v of
    each, (m,).
    """
    pairs = lags.index != lags.zero
    K = np.stack([lag_means(s, order, lags, width) for s in S])
    v = [
        np.mean((s[np.ix_(order, order)] - k[lags.index])[pairs] ** 2) + 1e-12
        for s, k in zip(S, K, strict=True)
    ]
    return K, np.array(v)


def _cost_matrix(S: NDArray, order: NDArray, lags: LagClasses, K: NDArray, v: NDArray) -> NDArray:
    """cost[i, g] = Σ_j (s_ij - K(g - p_j))²/2v, up to a constant: the cost of column i at grid
    point g while the others stay.

    The column at g takes i's place, so cost[i, p_j] + cost[j, p_i] - cost[i, p_i] - cost[j, p_j] is
    the exact change by a swap.
    """
    place = np.argsort(order)
    now = lags.index[np.ix_(place, place)]
    cost = np.zeros(now.shape)
    for s, mean, variance in zip(S, K, v, strict=True):
        k = np.where(np.arange(mean.size) == lags.zero, 0.0, mean)
        model = k[lags.index[place]]
        part = (
            np.sum(model**2, axis=0) - model**2 - 2 * s @ model
        )  # a column has no pair with itself
        part[:, place] += k[now] ** 2 - 2 * s * k[now]
        cost += part / (2 * variance * len(S))
    return cost


def _swaps(cost: NDArray, order: NDArray) -> NDArray[np.int64]:
    """The disjoint swaps of two columns that lower F most, by their exact changes."""
    place = np.argsort(order)
    moved = cost[:, place]
    change = moved + moved.T - np.diag(moved)[:, None] - np.diag(moved)[None]
    partner = change.argmin(axis=1)
    gain = change[np.arange(len(order)), partner]
    free = np.ones(len(order), dtype=bool)
    for i in np.argsort(gain, kind="stable"):
        j = partner[i]
        if gain[i] < -1e-9 and free[i] and free[j]:
            place[[i, j]] = place[[j, i]]
            free[i] = free[j] = False
    return np.argsort(place)


def _refine(
    S: NDArray, order: NDArray, lags: LagClasses, settings: FastSettings
) -> tuple[float, NDArray[np.int64]]:
    """Descent of F: the lag model given the order, then the order given the lag model. Returns F
    and the order.
    """

    def fit(candidate: NDArray, width: float) -> tuple[float, NDArray, NDArray]:
        K, v = _lag_model(S, candidate, lags, width)
        return 0.5 * float(np.mean(np.log(v))), K, v

    for width in settings.widths:
        value, K, v = fit(order, width)
        for _ in range(settings.refine_steps):
            cost = _cost_matrix(S, order, lags, K, v)
            for propose in (lambda c, _: np.argsort(linear_sum_assignment(c)[1]), _swaps):
                proposal = propose(cost, order)
                fitted = fit(proposal, width)
                if fitted[0] < value - 1e-9:
                    order, (value, K, v) = proposal, fitted
                    break
            else:
                break
    return fit(order, 0.0)[0], order


# -- starts ----------------------------------------------------------------------------------------


def _geodesics(s: NDArray, neighbours: int) -> NDArray:
    """Shortest paths through the graph of nearest neighbours; an edge has length √(1 - tanh s) (a
    root variogram).
    """
    apart = np.sqrt(np.maximum(1 - np.tanh(s), 1e-9))
    np.fill_diagonal(apart, np.inf)
    near = np.argsort(apart, axis=1, kind="stable")[:, :neighbours]
    np.fill_diagonal(apart, 0.0)
    tree = minimum_spanning_tree(apart).toarray()  # these edges keep the graph connected
    graph = np.maximum(tree, tree.T)
    rows = np.arange(len(s))[:, None]
    graph[rows, near] = apart[rows, near]
    return shortest_path(np.maximum(graph, graph.T), directed=False)


def _embed(paths: NDArray, dimension: int) -> NDArray:
    """Classical scaling, whitened: on a box (torus) the coordinates (their cosines and sines) are
    uncorrelated, so this also undoes the shear of an anisotropic field, up to a rotation.
    """
    b = paths**2
    b = b - b.mean(axis=0) - b.mean(axis=1)[:, None] + b.mean()
    _, vectors = eigh(-0.5 * b, subset_by_index=[len(b) - dimension, len(b) - 1])
    return vectors * np.sqrt(len(b))


def independent_axes(Y: NDArray, rng: np.random.Generator, starts: int = 6) -> NDArray:
    """Rotation of white Y to independent axes: least sum of fourth moments (box coordinates and
    cosines are sub-Gaussian).
    """
    dimension = Y.shape[1]
    if dimension == 1:
        return Y
    best, least = Y, np.inf
    for _ in range(starts):
        R = np.linalg.qr(rng.normal(size=(dimension, dimension)))[0]
        for _ in range(100):
            turned = Y @ R
            R, old = polar(4 * R - Y.T @ (turned * turned * turned) / len(Y)), R
            if np.abs(np.abs(np.sum(R * old, axis=0)) - 1).max() < 1e-8:
                break
        value = np.sum(np.mean((Y @ R) ** 4, axis=0))
        if value < least:
            best, least = Y @ R, value
    return best


def grid_coordinates(axes: NDArray, grid: Grid) -> list[NDArray]:
    """Grid coordinates from independent axes, one array for each way to match axes of different
    kinds.

    The two embedding axes of a ring are those whose squares exclude each other (cos² + sin² = 1);
    their angle is the position.
    """
    rings, free = [], list(range(axes.shape[1]))
    energy = np.corrcoef((axes * axes).T) if axes.shape[1] > 1 else np.ones((1, 1))
    for _ in range(sum(grid.periodic)):
        pair = min(((a, b) for a in free for b in free if a < b), key=lambda ab: energy[ab])
        rings.append(np.arctan2(axes[:, pair[1]], axes[:, pair[0]]))
        free = [a for a in free if a not in pair]
    lines = [axes[:, a] for a in free]
    matchings = []
    for ring_order in permutations(range(len(rings))):
        for line_order in permutations(range(len(lines))):
            ring, line, columns = iter(ring_order), iter(line_order), []
            for n, wraps in zip(grid.shape, grid.periodic, strict=True):
                u = rings[next(ring)] if wraps else lines[next(line)]
                columns.append((rankdata(u) - 0.5) / len(u) * n - 0.5)  # uniform on [-1/2, n - 1/2]
            matchings.append(np.stack(columns, axis=1))
            if len(set(zip(grid.shape, grid.periodic, strict=True))) == 1:
                return matchings
    return matchings


def _assign(coordinates: NDArray, grid: Grid) -> NDArray[np.int64]:
    """Columns on grid points, one each, at the least sum of squared (periodic) distances;
    order[point] = column.
    """
    apart = np.abs(coordinates[:, None] - grid.indices()[None])
    apart = np.where(grid.periodic, np.minimum(apart, np.array(grid.shape) - apart), apart)
    _, place = linear_sum_assignment(np.sum(apart**2, axis=-1))
    return np.argsort(place)
