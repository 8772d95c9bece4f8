"""Scrambled bits: which columns belong to one grid point, where it is, and the weight of each bit.

X holds two-valued columns, more of them than the grid has points: the bits x_i of numbers, in
unknown order, some of them perhaps inverted. Three questions are answered, each from statistics
that stationarity makes equal everywhere.

*Where.* A column sits where its correlations with all others fit best
(`symlift.solvers.fast.bit_places`).

*Which bit.* Columns of equal significance have equal correlations with bits of given significance
at given displacement, c_ij = K_{b_i b_j}(p_i - p_j); within each point, bits are assigned to the
classes b for which that holds best.

*Its weight.* The mean of the neighbouring points, given the bits of a point, rises with the number
that they encode. Its regression on the bits, over points whose bits are not all equal (saturated
points carry no information on a single bit), ranks them; the number system has base two, so that
the rank gives the weight, 2^(-1), 2^(-2), …

A bit that is missing at a point is predicted from the bits around by those covariances.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.solvers.fast.arrange import fisher_z
from symlift.solvers.fast.bit_places import explained_by_places, place_bits, plane_correlations
from symlift.solvers.fast.settings import DEFAULT, FastSettings

__all__ = [
    "BitReading",
    "Neighbourhoods",
    "assign_classes",
    "bit_weights",
    "number_map",
    "read_bits",
    "two_valued",
]


@dataclass(frozen=True, eq=False)
class BitReading:
    """Result for scrambled bits: the lifting map W (N, d), zero where held-out samples contradict
    the places; the grid point and the significance (0 the lowest) of each column; and numbers on
    its quality.
    """

    W: NDArray[np.float64]
    point: NDArray[np.int64]
    significance: NDArray[np.int64]
    quality: dict[str, Any]


def read_bits(
    planes: NDArray[np.uint8],
    grid: Grid,
    rng: np.random.Generator,
    held: int,
    settings: FastSettings = DEFAULT,
) -> BitReading:
    """Lifting map of scrambled bits, given as one plane for each column (d, n); the first ``held``
    samples are used only to judge the places.

    W x is the number that the bits of each point encode, between 0 and 1, up to a constant and to
    an inversion of all bits.
    """
    C, C_held = (
        plane_correlations(planes[:, held : held + settings.bit_rows]),
        plane_correlations(planes[:, :held]),
    )
    places, quality = place_bits(C, grid, rng, settings)
    quality["locality"] = explained_by_places(C, C_held, places, LagClasses(grid))
    if quality["locality"] < settings.bits_local:
        return BitReading(
            np.zeros((grid.size, len(planes))), places.point, np.full(len(planes), -1), quality
        )
    sign = np.where(places.strength < 0, -1, 1).astype(np.float32)
    upright = planes[:, held:] ^ (sign < 0)[:, None]
    C *= sign
    C *= sign[:, None]
    near = Neighbourhoods(places.point, grid)
    classes = assign_classes(upright, C, near, settings)
    slopes = bit_weights(upright, near, classes, settings)
    decay = weight_decay(slopes)
    quality["decay"] = round(decay, 4)
    if decay > settings.bits_decay:
        return BitReading(
            np.zeros((grid.size, len(planes))), places.point, np.full(len(planes), -1), quality
        )
    rank = np.argsort(np.argsort(-np.abs(slopes), kind="stable"))
    weights = np.where(slopes < 0, -1, 1) * 2.0 ** -(1 + rank)
    quality |= {"bits": len(rank), "slopes": np.sort(np.abs(slopes))[::-1].round(4).tolist()}
    deviation = upright.std(axis=1, dtype=np.float32)
    W = number_map(C, deviation, near, classes, weights, settings) * sign
    return BitReading(W, places.point, (len(rank) - 1 - rank)[classes], quality)


def weight_decay(slopes: NDArray) -> float:
    """Factor by which slopes shrink from one bit to the next, over the heavier half of them: about
    a half if bits encode numbers.

    >>> round(weight_decay(np.array([0.25, 1.0, 0.5])), 3)
    0.5
    """
    size = np.sort(np.abs(slopes))[::-1]
    steps = max(1, len(size) // 2)
    return float((size[min(steps, len(size) - 1)] / max(size[0], 1e-300)) ** (1 / steps))


def two_valued(X: NDArray) -> bool:
    """Whether every column takes two values at most.

    >>> two_valued(np.array([[0, -1.0], [1, 1], [1, -1]])), two_valued(np.array([[0.0], [1], [2]]))
    (True, False)
    """
    first = X[: min(len(X), 64)]  # shows most tables that are not
    if not ((first == first.min(axis=0)) | (first == first.max(axis=0))).all():
        return False
    low, high = X.min(axis=0), X.max(axis=0)
    step = max(1, 4_000_000 // X.shape[1])
    return all(
        bool(((part == low) | (part == high)).all())
        for part in (X[i : i + step] for i in range(0, len(X), step))
    )


# -- which bit, and what it weighs -----------------------------------------------------------------


class Neighbourhoods:
    """Columns at each grid point and around it, up to two steps off along each axis."""

    def __init__(self, point: NDArray, grid: Grid, reach: int = 2) -> None:
        order = np.argsort(point, kind="stable")
        starts = np.searchsorted(point[order], np.arange(grid.size + 1))
        #: columns at each grid point
        self.own = [order[a:b] for a, b in pairwise(starts)]
        indices, lengths = grid.indices(), np.array(grid.shape)
        steps = np.stack(
            np.meshgrid(*[np.arange(-reach, reach + 1)] * grid.ndim, indexing="ij"), -1
        ).reshape(-1, grid.ndim)
        steps = steps[np.abs(steps).sum(axis=1) > 0]
        self.lags = len(steps)
        #: columns around each grid point and the number of their displacement
        self.around: list[tuple[NDArray, NDArray]] = []
        #: grid points one step away
        self.next: list[NDArray] = []
        for at in indices:
            to = np.where(grid.periodic, (at + steps) % lengths, at + steps)
            lag = np.flatnonzero(((to >= 0) & (to < lengths)).all(axis=1))
            reached = grid.flat(to[lag])
            columns = [self.own[q] for q in reached]
            self.around.append((np.concatenate(columns), np.repeat(lag, [len(c) for c in columns])))
            self.next.append(reached[np.abs(steps[lag]).sum(axis=1) == 1])

    def window(self, p: int) -> tuple[NDArray, NDArray]:
        """Columns at p and around it, its own first, and the numbers of their displacements; the
        last number stands for no displacement.
        """
        columns, lag = self.around[p]
        own = self.own[p]
        return np.concatenate([own, columns]), np.concatenate([np.full(len(own), self.lags), lag])


def assign_classes(
    planes: NDArray, C: NDArray, near: Neighbourhoods, settings: FastSettings = DEFAULT
) -> NDArray[np.int64]:
    """Class b_i of each column: columns of one class have one significance, all over the grid.

    The planes (d, n) and their correlations C have their polarity already. Points with most bits
    have one of each class: there, the regression of the neighbouring points on the bits
    distinguishes them. Others, and doubtful ones, take the classes whose mean correlations with the
    bits around fit best.
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
            classes[own[np.argsort(-slopes[own], kind="stable")]] = np.arange(K)
    Z = fisher_z(C).astype(np.float32)
    for _ in range(settings.match_rounds):
        before = classes
        classes = _match(Z, near, classes, K)
        if np.array_equal(classes, before):
            break
    return classes


def bit_weights(
    planes: NDArray, near: Neighbourhoods, classes: NDArray, settings: FastSettings = DEFAULT
) -> NDArray[np.float64]:
    """What a bit of each class adds to the neighbouring points, (K,): slopes of their mean on the
    bits of a point.

    Every word that the bits of a point form counts about once, however often it occurs: if words
    are uniform, bits are independent, and slopes of a mean that is linear in the number are
    proportional to the bits' significance.
    """
    K = int(classes.max()) + 1
    weights = np.ones(K)
    full = [p for p, own in enumerate(near.own) if len(own) == K]
    for _ in range(2):
        field = _field(planes, near, weights[classes])
        by_point = []
        for p in full:
            own = near.own[p][np.argsort(classes[near.own[p]], kind="stable")]
            by_point += [
                _word_means(*_telling(planes[own], field[near.next[p]])),
                _blank_words(planes[own], field[near.next[p]]),
            ]
        words, total, count = (np.concatenate(part) for part in zip(*by_point, strict=True))
        words, total, count = _word_means(words, total, count)
        words, total, count = words[count > 0], total[count > 0], count[count > 0]
        weights = _slopes(words, total / count, count / (count + settings.word_seen))
    return weights / np.abs(weights).max()


def _field(planes: NDArray, near: Neighbourhoods, weights: NDArray) -> NDArray[np.float32]:
    """Weighted mean of the bits of each point, (N, n)."""
    size = [max(float(np.abs(weights[own]).sum()), 1e-12) for own in near.own]
    return np.stack(
        [
            (weights[own] / w).astype(np.float32) @ planes[own]
            for own, w in zip(near.own, size, strict=True)
        ]
    )


def _telling(own: NDArray, around: NDArray) -> tuple[NDArray, NDArray]:
    """Samples where the bits of a point are not all equal: the bits (m, k), and the mean of the
    points around it (m,).
    """
    ones = own.sum(axis=0, dtype=np.int64)
    samples = np.flatnonzero((ones > 0) & (ones < len(own)))
    return own[:, samples].T, around[:, samples].mean(axis=0)


def _blank_words(own: NDArray, around: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """As `_word_means`, for the two words whose bits are all equal: without them, two bits could
    not be distinguished.
    """
    ones = own.sum(axis=0, dtype=np.int64)
    alike = [ones == 0, ones == len(own)]
    total = np.array([around[:, samples].mean(axis=0).sum() for samples in alike])
    words = np.array([[0], [1]], dtype=np.uint8).repeat(len(own), axis=1)
    return words, total, np.array([samples.sum() for samples in alike])


def _slopes(x: NDArray, u: NDArray, weight: NDArray | None = None) -> NDArray[np.float64]:
    """Slopes of the regression of u on the columns of x, slightly damped, so that rare bits have
    none.
    """
    if len(x) == 0:
        return np.zeros(x.shape[1])
    w = np.ones(len(x)) if weight is None else weight
    centred = x - np.average(x, axis=0, weights=w)
    ridge = 1e-3 * w.sum() * np.eye(x.shape[1])
    return np.linalg.solve(
        (centred.T * w) @ centred + ridge, (centred.T * w) @ (u - np.average(u, weights=w))
    )


def _word_means(
    x: NDArray, u: NDArray, count: NDArray | None = None
) -> tuple[NDArray, NDArray, NDArray]:
    """Distinct rows of bits x (m, k), the sum of u over each, and how often it occurs."""
    packed = np.ascontiguousarray(np.packbits(x, axis=1))
    _, first, which = np.unique(
        packed.view(f"V{packed.shape[1]}").ravel(), return_index=True, return_inverse=True
    )
    return x[first], np.bincount(which, u, len(first)), np.bincount(which, count, len(first))


def _match(Z: NDArray, near: Neighbourhoods, classes: NDArray, K: int) -> NDArray[np.int64]:
    """Classes whose mean statistics K_bb'(displacement) fit best, one of each at a point; those of
    class -1 are not yet known.
    """
    total, count = np.zeros((2, K, K, near.lags))
    known = []
    for own, (columns, lag) in zip(near.own, near.around, strict=True):
        seen = classes[columns] >= 0
        known.append((columns[seen], classes[columns[seen]], lag[seen]))
        mine = own[classes[own] >= 0]
        at = (classes[mine][:, None], known[-1][1], known[-1][2])
        np.add.at(total, at, Z[np.ix_(mine, known[-1][0])])
        np.add.at(count, at, 1)
    mean, measured = total / np.maximum(count, 1), count.min(axis=0) > 0
    matched = classes.copy()
    for own, (columns, b, lag) in zip(near.own, known, strict=True):
        expected = np.where(measured[b, lag], mean[:, b, lag], 0.0)
        cost = np.sum(expected**2, axis=1) - 2 * Z[np.ix_(own, columns)] @ expected.T
        matched[own] = linear_sum_assignment(cost)[1]
    return matched


# -- the lifting map -------------------------------------------------------------------------------


def number_map(
    C: NDArray,
    deviation: NDArray,
    near: Neighbourhoods,
    classes: NDArray,
    weights: NDArray,
    settings: FastSettings = DEFAULT,
) -> NDArray[np.float64]:
    """W (N, d): for each point the number that its bits encode, Σ_b w_b x_b; a missing bit is
    replaced by its best linear prediction.

    The prediction solves Σ v = c, Σ the covariance of the bits at the point and around (from their
    correlations C and deviations), c that of the missing class with them, averaged over all pairs
    at the same displacement.
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
        covariance = C[np.ix_(columns, columns)] * np.outer(s, s) + np.diag(s**2 + settings.damping)
        missing = np.setdiff1d(np.arange(K), classes[near.own[p]])
        toward = weights[missing] @ mean[missing][:, classes[columns], lag]
        W[p, columns] += np.linalg.solve(covariance, toward)
    return W
