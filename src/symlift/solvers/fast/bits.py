"""Scrambled bits: which columns belong to one grid point, where it is, and what each bit weighs.

X holds two-valued columns, more of them than the grid has points: the bits x_i of numbers, in unknown order, some of them
perhaps inverted.  Three questions, each answered by what stationarity makes alike everywhere.

*Where.*  Correlations of columns factor into how strongly a column follows the field and a function of displacement,

    c_ij = a_i a_j K(p_i - p_j),

so a column sits where its correlations with all others fit best; the sign of a_i is its polarity.  The start is a landmark
Isomap of |c|; sums over the bits of a point are then a shuffled image, which :func:`arrange` puts straight.

*Which bit.*  Columns of equal significance have equal correlations with bits of given significance at given displacement,
c_ij = K_{b_i b_j}(p_i - p_j); within each point, bits are assigned to the classes b for which that holds best.

*What it weighs.*  The mean of the neighbouring points, given the bits of a point, rises with the number that they write.
Its regression on the bits, over points whose bits are not all alike (saturated points say nothing of one bit), ranks
them; the number system has base two, so that the rank is the weight, 2^(-1), 2^(-2), …

A bit that is missing at a point is predicted from the bits around by those covariances.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree, shortest_path

from symlift.grid import Grid
from symlift.objective import LagClasses
from symlift.solvers.fast.arrange import arrange, fisher, grid_coordinates, independent_axes, smooth_lags

__all__ = [
    "Neighbourhoods",
    "Places",
    "assign_classes",
    "bit_weights",
    "correlations",
    "explained",
    "number_map",
    "place",
    "read_bits",
    "two_valued",
]

# correlations are taken from at most this many rows
_ROWS = 20_000
# shuffled bits explain 0.9 or more of held-out correlations, noise nothing
_LOCAL = 0.5
_LANDMARKS = 400
# lag models are smoothed over displacements, ever less, while columns settle
_WIDTHS = (1.5, 1.0, 0.7, 0.5, 0.0)
_ROUNDS = 10
# a word that was seen this often counts half as much as one that is seen always
_SEEN = 30
# variance that is added to a bit's own where it predicts another
_DAMPING = 1e-4


def read_bits(
    planes: NDArray[np.uint8], grid: Grid, rng: np.random.Generator, held: int
) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """Lifting map W (N, d) of scrambled bits, one plane a column (d, n), and its quality; the first ``held`` samples only
    judge the places.  W is zero where they do not agree.

    W x is the number that the bits of each point write, between 0 and 1, up to a constant and to all bits being inverted.
    """
    C, C_held = correlations(planes[:, held : held + _ROWS]), correlations(planes[:, :held])
    places, quality = place(C, grid, rng)
    quality["locality"] = explained(C, C_held, places, LagClasses(grid))
    if quality["locality"] < _LOCAL:
        return np.zeros((grid.size, len(planes))), quality
    sign = np.where(places.strength < 0, -1, 1).astype(np.float32)
    upright = planes[:, held:] ^ (sign < 0)[:, None]
    C *= sign
    C *= sign[:, None]
    near = Neighbourhoods(places.point, grid)
    classes = assign_classes(upright, C, near)
    slopes = bit_weights(upright, near, classes)
    rank = np.argsort(np.argsort(-np.abs(slopes)))
    weights = np.where(slopes < 0, -1, 1) * 2.0 ** -(1 + rank)
    quality |= {"bits": len(rank), "slopes": np.sort(np.abs(slopes))[::-1].round(4).tolist()}
    deviation = upright.std(axis=1, dtype=np.float32)
    return number_map(C, deviation, near, classes, weights) * sign, quality


def two_valued(X: NDArray) -> bool:
    """Whether every column takes two values at most.

    >>> two_valued(np.array([[0, -1.0], [1, 1], [1, -1]])), two_valued(np.array([[0.0], [1], [2]]))
    (True, False)
    """
    low, high = X.min(axis=0), X.max(axis=0)
    step = max(1, 4_000_000 // X.shape[1])
    return all(
        bool(((part == low) | (part == high)).all()) for part in (X[i : i + step] for i in range(0, len(X), step))
    )


def correlations(planes: NDArray) -> NDArray[np.float32]:
    """Correlations of bit planes (d, n), zero diagonal; a constant one has none."""
    z = planes.astype(np.float32)
    z -= z.mean(axis=1, keepdims=True)
    norm = np.sqrt(np.einsum("ij,ij->i", z, z))[:, None]
    z /= np.where(norm > 0, norm, 1)
    C = z @ z.T
    np.fill_diagonal(C, 0.0)
    return C


# -- where -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Places:
    """Grid point of each column, and how strongly (and with which sign) the column follows the field there."""

    point: NDArray[np.int64]
    strength: NDArray[np.float64]


class _LagModel:
    """c_ij = a_i a_j K(p_i - p_j): least squares of K given (p, a), and of (p, a) given K, one column at a time."""

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
        return (smooth_lags(total, self.lags, width) / np.maximum(smooth_lags(count, self.lags, width), 1e-9))[
            self.lags.index
        ]

    def fits(self, places: Places, K: NDArray) -> tuple[NDArray, NDArray]:
        """Best strength of each column at each grid point, and how much it explains there, both (d, N)."""
        own = places.strength[:, None] ** 2 * K[places.point] ** 2
        possible = np.maximum(self.energy @ K**2 - own, 1e-9)
        found = self.sums @ K
        return found / possible, found**2 / possible


def _settle(
    model: _LagModel, places: Places, widths: tuple[float, ...], capacity: int | None = None, iterations: int = 12
) -> Places:
    """Alternate lag model and places until no column moves, for ever less smoothing."""
    columns = np.arange(len(places.point))
    for width in widths:
        for _ in range(iterations):
            strength, gain = model.fits(places, model.fit(places, width))
            point = gain.argmax(axis=1) if capacity is None else _fill(gain, capacity)
            a, before = strength[columns, point], places.point
            places = Places(point, a / max(float(np.sqrt(np.mean(a**2))), 1e-12))
            if np.array_equal(point, before):
                break
    return places


def _fill(gain: NDArray, capacity: int) -> NDArray[np.int64]:
    """The point of most gain for each column, ``capacity`` columns a point."""
    best = gain.argmax(axis=1)
    if np.bincount(best, minlength=gain.shape[1]).max() <= capacity:
        return best
    return linear_sum_assignment(np.repeat(-gain, capacity, axis=1))[1] // capacity


def place(C: NDArray, grid: Grid, rng: np.random.Generator) -> tuple[Places, dict[str, float]]:
    """Grid point and polarity of each column, from correlations (d, d); quality: the part of them that the lag model explains.

    Where d is a multiple of the number of points, each gets as many columns; otherwise a point may have any number.
    """
    d, lags = len(C), LagClasses(grid)
    model = _LagModel(C, lags)
    graph = _nearest(C, neighbours=round(1.5 * d / grid.size) + 2 * grid.ndim)
    axes = independent_axes(_embed(graph, grid.ndim + sum(grid.axes_periodic), rng), rng)
    sign = _polarities(graph, C)
    found = []
    for coordinates in grid_coordinates(axes, grid):
        nearest = np.rint(coordinates).astype(np.int64)
        inside = np.clip(nearest, 0, np.array(grid.shape) - 1)
        places = Places(grid.flat(np.where(grid.axes_periodic, nearest % grid.shape, inside)), sign)
        places = _settle(model, places, _WIDTHS)
        places = _settle(model, _straighten(model, places, rng), _WIDTHS[1:])
        if d % grid.size == 0:
            places = _settle(model, places, (0.0,), capacity=d // grid.size)
        found.append((explained(C, C, places, lags), places))
    part, places = max(found, key=lambda pair: pair[0])
    return places, {"explained": part}


def explained(C: NDArray, C_held: NDArray, places: Places, lags: LagClasses) -> float:
    """Part of the held-out correlations that a_i a_j K(p_i - p_j), fitted to C, explains: about 0 or less on noise."""
    K = _LagModel(C, lags).fit(places, 0.0)
    a, p = places.strength, places.point
    left = 0.0
    for start in range(0, len(C), 512):
        rows = slice(start, start + 512)
        expected = K[np.ix_(p[rows], p)] * np.outer(a[rows], a)
        expected[np.arange(len(expected)), np.arange(start, start + len(expected))] = 0.0
        left += float(np.sum((C_held[rows] - expected) ** 2))
    pairs = len(C) * (len(C) - 1)
    total = float(np.sum(C_held**2, dtype=np.float64)) - float(C_held.sum(dtype=np.float64)) ** 2 / pairs
    return 1 - left / max(total, 1e-300)


def _straighten(model: _LagModel, places: Places, rng: np.random.Generator) -> Places:
    """Points as a whole put where :func:`arrange` wants them: an embedding bends, sums over a point's bits are an image."""
    model.fit(places, 0.0)
    if not model.energy.all():
        return places  # a point without columns has no statistics
    N = model.lags.grid.size
    total = csr_matrix((places.strength, (places.point, np.arange(len(places.point)))), shape=(N, len(places.point)))
    S = fisher((total @ model.sums) / np.sqrt(np.outer(model.energy, model.energy)) / model.energy.mean())
    order, _ = arrange(S[None], model.lags.grid, rng)
    return Places(np.argsort(order)[places.point], places.strength)


def _nearest(C: NDArray, neighbours: int) -> csr_matrix:
    """Graph of the columns that go together most, edges √(1 - |c|) long."""
    d, k = len(C), min(neighbours, len(C) - 1)
    rows, columns = np.repeat(np.arange(d), k), np.argpartition(-np.abs(C), k, axis=1)[:, :k].ravel()
    length = np.sqrt(np.maximum(1 - np.abs(C[rows, columns]), 1e-6)).astype(np.float64)
    graph = csr_matrix((length, (rows, columns)), shape=(d, d))
    return graph.maximum(graph.T)


def _polarities(graph: csr_matrix, C: NDArray) -> NDArray[np.float64]:
    """±1 for each column, so that correlations along the spanning tree of strongest links become positive."""
    sign = np.ones(len(C))
    tree = minimum_spanning_tree(graph)
    for root in np.unique(connected_components(graph, directed=False)[1], return_index=True)[1]:
        order, parent = breadth_first_order(tree, root, directed=False)
        for i in order[1:]:
            sign[i] = sign[parent[i]] * (1 if C[i, parent[i]] >= 0 else -1)
    return sign


def _embed(graph: csr_matrix, dimension: int, rng: np.random.Generator) -> NDArray:
    """Landmark Isomap, whitened, (d, dimension): shortest paths from some columns to all, classical scaling of those."""
    landmarks = np.sort(rng.permutation(graph.shape[0])[:_LANDMARKS])
    paths = shortest_path(graph, directed=False, indices=landmarks)
    finite = np.isfinite(paths)
    squares = np.where(finite, paths, 1.5 * paths[finite].max()) ** 2
    own = squares[:, landmarks]
    mean = own.mean(axis=1)
    values, vectors = np.linalg.eigh(-0.5 * (own - mean - mean[:, None] + own.mean()))
    axes = vectors[:, -dimension:] / np.sqrt(np.maximum(values[-dimension:], 1e-9))
    Y = -0.5 * (squares - mean[:, None]).T @ axes
    Y -= Y.mean(axis=0)
    left, _, right = np.linalg.svd(Y, full_matrices=False)
    return left @ right * np.sqrt(len(Y))


# -- which bit, and what it weighs -------------------------------------------------------------------------------------


class Neighbourhoods:
    """Columns at each grid point and around it, up to two steps off along each axis."""

    def __init__(self, point: NDArray, grid: Grid, reach: int = 2) -> None:
        order = np.argsort(point, kind="stable")
        starts = np.searchsorted(point[order], np.arange(grid.size + 1))
        #: columns at each grid point
        self.own = [order[a:b] for a, b in pairwise(starts)]
        indices, lengths = grid.indices(), np.array(grid.shape)
        steps = np.stack(np.meshgrid(*[np.arange(-reach, reach + 1)] * grid.ndim, indexing="ij"), -1).reshape(
            -1, grid.ndim
        )
        steps = steps[np.abs(steps).sum(axis=1) > 0]
        self.lags = len(steps)
        #: columns around each grid point and the number of their displacement
        self.around: list[tuple[NDArray, NDArray]] = []
        #: grid points one step away
        self.next: list[NDArray] = []
        for at in indices:
            to = np.where(grid.axes_periodic, (at + steps) % lengths, at + steps)
            lag = np.flatnonzero(((to >= 0) & (to < lengths)).all(axis=1))
            there = grid.flat(to[lag])
            columns = [self.own[q] for q in there]
            self.around.append((np.concatenate(columns), np.repeat(lag, [len(c) for c in columns])))
            self.next.append(there[np.abs(steps[lag]).sum(axis=1) == 1])

    def window(self, p: int) -> tuple[NDArray, NDArray]:
        """Columns at p and around it, its own first, and the numbers of their displacements, none last."""
        columns, lag = self.around[p]
        own = self.own[p]
        return np.concatenate([own, columns]), np.concatenate([np.full(len(own), self.lags), lag])


def assign_classes(planes: NDArray, C: NDArray, near: Neighbourhoods) -> NDArray[np.int64]:
    """Class b_i of each column: columns of one class have one significance, all over the grid.

    The planes (d, n) and their correlations C have their polarity already.  Points with most bits have one of each class:
    there, the regression of the neighbouring points on the bits tells them apart.  Others, and doubtful ones, take the
    classes whose mean correlations with the bits around fit best.
    """
    K = max(len(own) for own in near.own)
    weights, slopes = np.ones(len(planes)), np.zeros(len(planes))
    for _ in range(2):
        field = _field(planes, near, weights)
        for p, own in enumerate(near.own):
            slopes[own] = _slopes(*_telling(planes[own], field[near.next[p]]))
        weights = np.maximum(slopes, 0)
    classes = np.full(len(planes), -1)
    for own in near.own:
        if len(own) == K:
            classes[own[np.argsort(-slopes[own])]] = np.arange(K)
    Z = fisher(C).astype(np.float32)
    for _ in range(_ROUNDS):
        before = classes
        classes = _match(Z, near, classes, K)
        if np.array_equal(classes, before):
            break
    return classes


def bit_weights(planes: NDArray, near: Neighbourhoods, classes: NDArray) -> NDArray[np.float64]:
    """What a bit of each class adds to the neighbouring points, (K,): slopes of their mean on the bits of a point.

    Every word that the bits of a point write counts about once, however often it is written: at uniform words, bits are
    independent, and slopes of a mean that is linear in the number are in proportion to the bits' significance.
    """
    K = int(classes.max()) + 1
    weights = np.ones(K)
    full = [p for p, own in enumerate(near.own) if len(own) == K]
    for _ in range(2):
        field = _field(planes, near, weights[classes])
        found = []
        for p in full:
            own = near.own[p][np.argsort(classes[near.own[p]])]
            found += [
                _word_means(*_telling(planes[own], field[near.next[p]])),
                _blank_words(planes[own], field[near.next[p]]),
            ]
        words, total, count = (np.concatenate(part) for part in zip(*found, strict=True))
        words, total, count = _word_means(words, total, count)
        words, total, count = words[count > 0], total[count > 0], count[count > 0]
        weights = _slopes(words, total / count, count / (count + _SEEN))
    return weights / np.abs(weights).max()


def _field(planes: NDArray, near: Neighbourhoods, weights: NDArray) -> NDArray[np.float32]:
    """Weighted mean of the bits of each point, (N, n)."""
    size = [max(float(np.abs(weights[own]).sum()), 1e-12) for own in near.own]
    return np.stack(
        [(weights[own] / w).astype(np.float32) @ planes[own] for own, w in zip(near.own, size, strict=True)]
    )


def _telling(own: NDArray, around: NDArray) -> tuple[NDArray, NDArray]:
    """Samples where the bits of a point are not all alike: the bits (m, k), and the mean of the points around it (m,)."""
    ones = own.sum(axis=0, dtype=np.int64)
    samples = np.flatnonzero((ones > 0) & (ones < len(own)))
    return own[:, samples].T, around[:, samples].mean(axis=0)


def _blank_words(own: NDArray, around: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """As :func:`_word_means`, of the two words whose bits are all alike: without them, two bits would be one."""
    ones = own.sum(axis=0, dtype=np.int64)
    alike = [ones == 0, ones == len(own)]
    total = np.array([around[:, samples].mean(axis=0).sum() for samples in alike])
    words = np.array([[0], [1]], dtype=np.uint8).repeat(len(own), axis=1)
    return words, total, np.array([samples.sum() for samples in alike])


def _slopes(x: NDArray, u: NDArray, weight: NDArray | None = None) -> NDArray[np.float64]:
    """Slopes of the regression of u on the columns of x, slightly damped, so that rare bits have none."""
    if len(x) == 0:
        return np.zeros(x.shape[1])
    w = np.ones(len(x)) if weight is None else weight
    centred = x - np.average(x, axis=0, weights=w)
    ridge = 1e-3 * w.sum() * np.eye(x.shape[1])
    return np.linalg.solve((centred.T * w) @ centred + ridge, (centred.T * w) @ (u - np.average(u, weights=w)))


def _word_means(x: NDArray, u: NDArray, count: NDArray | None = None) -> tuple[NDArray, NDArray, NDArray]:
    """Distinct rows of bits x (m, k), the sum of u over each, and how often it occurs."""
    packed = np.ascontiguousarray(np.packbits(x, axis=1))
    _, first, which = np.unique(packed.view(f"V{packed.shape[1]}").ravel(), return_index=True, return_inverse=True)
    return x[first], np.bincount(which, u, len(first)), np.bincount(which, count, len(first))


def _match(Z: NDArray, near: Neighbourhoods, classes: NDArray, K: int) -> NDArray[np.int64]:
    """Classes whose mean statistics K_bb'(displacement) fit best, one of each at a point; those of class -1 are not yet known."""
    total, count = np.zeros((2, K, K, near.lags))
    known = []
    for own, (columns, lag) in zip(near.own, near.around, strict=True):
        seen = classes[columns] >= 0
        known.append((columns[seen], classes[columns[seen]], lag[seen]))
        mine = own[classes[own] >= 0]
        at = (classes[mine][:, None], known[-1][1], known[-1][2])
        np.add.at(total, at, Z[np.ix_(mine, known[-1][0])])
        np.add.at(count, at, 1)
    mean, there = total / np.maximum(count, 1), count.min(axis=0) > 0
    matched = classes.copy()
    for own, (columns, b, lag) in zip(near.own, known, strict=True):
        expected = np.where(there[b, lag], mean[:, b, lag], 0.0)
        cost = np.sum(expected**2, axis=1) - 2 * Z[np.ix_(own, columns)] @ expected.T
        matched[own] = linear_sum_assignment(cost)[1]
    return matched


# -- the lifting map ---------------------------------------------------------------------------------------------------


def number_map(
    C: NDArray, deviation: NDArray, near: Neighbourhoods, classes: NDArray, weights: NDArray
) -> NDArray[np.float64]:
    """W (N, d): for each point the number that its bits write, Σ_b w_b x_b; a missing bit by its best linear prediction.

    The prediction solves Σ v = c, Σ the covariance of the bits at the point and around (from their correlations C and
    deviations), c that of the missing class with them, averaged over all pairs at the same displacement.
    """
    K = len(weights)
    W = np.zeros((len(near.own), len(C)))
    for p, own in enumerate(near.own):
        W[p, own] = weights[classes[own]]
    gaps = [p for p, own in enumerate(near.own) if len(own) < K]
    if not gaps:
        return W
    windows = [near.window(p) for p in range(len(near.own))]
    total, count = np.zeros((2, K, K, near.lags + 1))
    for own, (columns, lag) in zip(near.own, windows, strict=True):
        at = (classes[own][:, None], classes[columns], lag)
        np.add.at(total, at, C[np.ix_(own, columns)] * np.outer(deviation[own], deviation[columns]))
        np.add.at(count, at, 1)
    mean = total / np.maximum(count, 1)
    for p in gaps:
        columns, lag = windows[p]
        s = deviation[columns].astype(np.float64)
        covariance = C[np.ix_(columns, columns)] * np.outer(s, s) + np.diag(s**2 + _DAMPING)
        missing = np.setdiff1d(np.arange(K), classes[near.own[p]])
        toward = weights[missing] @ mean[missing][:, classes[columns], lag]
        W[p, columns] += np.linalg.solve(covariance, toward)
    return W
