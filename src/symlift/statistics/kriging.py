"""Linear prediction of a field anywhere from columns near by, under a covariance function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import map_coordinates
from scipy.optimize import nnls
from scipy.sparse import coo_matrix
from scipy.spatial.distance import cdist

from symlift.core.domain import Domain
from symlift.core.grid import Grid
from symlift.core.rows import row_batches
from symlift.core.sphere import Sphere
from symlift.errors import InputError

__all__ = [
    "AROUND",
    "FieldPredictor",
    "Weights",
    "falling_with_distance",
    "lag_correlation",
    "nearest",
    "prediction",
    "usual_scale",
    "weights_from",
]

# number of nearby columns that a point is predicted from, and their assumed noise variance
AROUND, _NUGGET = 24, 1e-3
# means of pairs that a correlation is fitted to, and widths of the Gaussians that it is made of
_KNOTS, _WIDTHS = 64, 16

#: displacements (..., P) → correlations (...)
Correlation = Callable[[NDArray], NDArray[np.float64]]


def nearest(distance: NDArray, count: int) -> NDArray[np.int64]:
    """The ``count`` columns that are nearest to each point, (points, count)."""
    k = min(count, distance.shape[1])
    return np.argpartition(distance, k - 1, axis=1)[:, :k]


def prediction(gram: NDArray, toward: NDArray) -> NDArray[np.float64]:
    """Weights (m, k) of the best linear prediction from k standardised columns, gram (m, k, k)."""
    gram = gram.copy()
    own = np.arange(gram.shape[1])
    gram[:, own, own] = 1.0
    values, vectors = np.linalg.eigh(gram)
    # means over pairs need not form a covariance matrix: negative directions are noise
    inverse = np.einsum(
        "hij,hj,hkj->hik", vectors, 1 / (np.maximum(values, 0.0) + _NUGGET), vectors
    )
    return np.einsum("hij,hj->hi", inverse, toward)


def usual_scale(scale: NDArray, apart: NDArray, near: NDArray) -> NDArray[np.float64]:
    """The typical deviation around each point (m,), of columns ``near`` (m, k) of deviations
    ``scale``, which are ``apart`` (m, k) from it.
    """
    usual = np.maximum(scale[near], 1e-300)
    nearness = 1 / (1 + apart**2)
    return np.asarray(np.exp(np.sum(np.log(usual) * nearness, axis=1) / np.sum(nearness, axis=1)))


@dataclass(frozen=True, eq=False)
class Weights:
    """Columns ``near`` (m, k) that each of m points is predicted from, their weights (m, k), and
    the standard error (m,) of the prediction, without the noise of single columns.
    """

    near: NDArray[np.int64]
    weight: NDArray[np.float64]
    error: NDArray[np.float64]

    def of(self, Y: NDArray) -> NDArray[np.float64]:
        """Predictions (n, m) from centred columns Y (n, k)."""
        m, near = self.near.shape
        entries = (self.weight.ravel(), (np.repeat(np.arange(m), near), self.near.ravel()))
        return np.asarray(Y @ coo_matrix(entries, shape=(m, Y.shape[1])).tocsr().T)


def weights_from(
    correlation: Correlation,
    at: NDArray,
    points: NDArray,
    scale: NDArray,
    period: NDArray,
) -> Weights:
    """The best linear prediction at ``points`` (m, P) from columns at ``at`` (k, P).

    ``scale`` (k,): standard deviations of the columns. ``period`` (P,): lengths of the axes that
    close, 0 for the others.
    """
    # displacements from all columns, and Gaussians of all pairs of near ones: a map of the field
    # has so many points that they do not fit into memory together
    width = at.size + AROUND**2 * _WIDTHS
    parts = [*row_batches(len(points), width)] or [slice(0)]
    pieces = [_weights_at(correlation, at, points[part], scale, period) for part in parts]
    return Weights(
        np.concatenate([one.near for one in pieces]),
        np.concatenate([one.weight for one in pieces]),
        np.concatenate([one.error for one in pieces]),
    )


def _weights_at(
    correlation: Correlation, at: NDArray, points: NDArray, scale: NDArray, period: NDArray
) -> Weights:
    def apart(a: NDArray, b: NDArray) -> NDArray:
        """Displacements, the short way round on axes that close."""
        delta = b - a
        length = np.where(period > 0, period, np.inf)
        return delta - np.where(period > 0, period, 0.0) * np.rint(delta / length)

    between = apart(at[None], points[:, None])
    distance = np.sqrt(np.sum(between**2, axis=-1))
    near = nearest(distance, AROUND)
    toward = correlation(np.take_along_axis(between, near[..., None], axis=1))
    gram = correlation(apart(at[near][:, :, None], at[near][:, None]))
    weight = prediction(gram, toward)
    local = usual_scale(scale, np.take_along_axis(distance, near, axis=1), near)
    whole = correlation(np.zeros(at.shape[1]))
    left = np.sqrt(np.clip(whole - np.einsum("mk,mk->m", weight, toward), 0.0, 1.0))
    weight = weight * (local[:, None] / np.maximum(scale[near], 1e-300))
    return Weights(near, weight, left * local)


def falling_with_distance(c: NDArray, apart: NDArray) -> Correlation:
    """Correlation as a function of distance alone: a sum of Gaussians with positive weights.

    c (k, k): correlations; apart (k, k): distances. Such sums are valid covariances in any
    dimension; what they lack of 1 at distance 0 is noise of single columns.
    """
    pairs = np.triu_indices(len(c), 1)
    order = np.argsort(apart[pairs], kind="stable")
    # most pairs are far apart: knots are dense where the function falls
    knots = np.unique((np.linspace(0, 1, _KNOTS + 1) ** 2 * len(order)).astype(np.int64))
    parts = [order[a:b] for a, b in pairwise(knots)]
    where, value = (np.array([v[part].mean() for part in parts]) for v in (apart[pairs], c[pairs]))
    widths = np.geomspace(max(where[0], 1e-3 * where[-1]) / 2, 2 * where[-1], _WIDTHS)

    def bumps(square: NDArray) -> NDArray[np.float64]:
        return np.exp(-square[..., None] / (2 * widths**2))

    weight = nnls(bumps(where**2), value)[0]
    weight /= max(float(weight.sum()), 1.0)
    return lambda delta: np.asarray(bumps(np.sum(delta**2, axis=-1)) @ weight)


def lag_correlation(Y: NDArray, grid: Grid) -> Correlation:
    """Correlation of each displacement on ``grid``, of signals Y (n, points) that have mean 0 and
    variance 1; linear between whole steps.

    Sums over pairs are divided by the number of points, not of pairs, so that they are a valid
    covariance. Steps of different axes need not be equally long.
    """
    axes = tuple(range(1, 1 + grid.ndim))
    length = [n if wraps else 2 * n for n, wraps in zip(grid.shape, grid.periodic, strict=True)]
    spectrum = np.abs(np.fft.fftn(Y.reshape(-1, *grid.shape), length, axes)) ** 2
    mean = np.asarray(np.fft.ifftn(spectrum.mean(axis=0)).real) / grid.size

    def correlation(delta: NDArray) -> NDArray[np.float64]:
        at = np.moveaxis(np.atleast_2d(delta), -1, 0)
        between = map_coordinates(mean, at, order=1, mode="grid-wrap")
        return np.asarray(between).reshape(np.shape(delta)[:-1])

    return correlation


@dataclass(frozen=True, eq=False)
class FieldPredictor:
    """The best linear prediction of a field anywhere, from signals at places ``at`` (k, P).

    ``scale`` (k,): standard deviations of the signals; ``period`` (P,): lengths of the axes that
    close, 0 for the others.
    """

    at: NDArray[np.float64]
    scale: NDArray[np.float64]
    period: NDArray[np.float64]
    correlation: Correlation

    @classmethod
    def of(cls, Y: NDArray, domain: Domain) -> FieldPredictor:
        """Estimate it from signals Y (n, k) on a domain."""
        centred = Y - Y.mean(axis=0)
        scale = centred.std(axis=0)
        standard = centred / np.maximum(scale, 1e-300)
        if isinstance(domain, Grid):
            period = np.where(domain.periodic, domain.shape, 0).astype(np.float64)
            at = domain.indices().astype(np.float64)
            return cls(at, scale, period, lag_correlation(standard, domain))
        if isinstance(domain, Sphere):
            raise InputError(
                f"the field between points is made for grids and scattered places, not for a"
                f" {domain}: use transform, which evaluates it at grid_.points"
            )
        at = np.asarray(domain.places)
        c = standard.T @ standard / len(standard)
        along = falling_with_distance(c, cdist(at, at))
        return cls(at, scale, np.zeros(domain.ndim), along)

    def weights(self, points: ArrayLike) -> Weights:
        """How the field at ``points`` (m, P) follows from the signals."""
        axes = self.at.shape[1]
        try:
            at = np.asarray(points, dtype=np.float64)
        except (TypeError, ValueError):
            at = np.full((1, axes), np.nan)
        if at.ndim != 2 or at.shape[1] != axes or not np.isfinite(at).all():
            raise InputError(
                f"places of shape {at.shape} do not fit: give finite coordinates of shape (m,"
                f" {axes})"
            )
        return weights_from(self.correlation, self.at, at, self.scale, self.period)

    def change(self, Y: NDArray, t: ArrayLike) -> NDArray[np.float64]:
        """What signals Y (n, k), centred, change by if the field moves by ``t`` (P,).

        Both ends are predicted, so that noise of single columns does not move.
        """
        before = self.at - np.atleast_1d(np.asarray(t, dtype=np.float64))
        return self.weights(before).of(Y) - self.weights(self.at).of(Y)

    def derivatives(self) -> NDArray[np.float64]:
        """Of `change` by each component of ``t`` at 0, (P, k, k), over ± half a step."""
        steps = np.eye(self.at.shape[1]) / 2
        still = np.eye(len(self.at))
        return np.stack([(self.change(still, t) - self.change(still, -t)).T for t in steps])
