"""Images of more points than a closing takes at once: trained on a coarse grid, and closed on the
fine one.

The strongest modes of an image are its slow waves, and a coarse grid over the same window has room
for just these: critics and closings take seconds there. What they reach is a frame of the strongest
modes. On the fine grid the same waves (cosines, as many along each axis as the coarse grid has
points) carry it on; weaker modes begin at faster waves, in the order of variance and with random
signs, and stationarity of second and third moments along a path of partial whitenings puts them in
place.

Third moments of more than 256 points take gigabytes. There the strongest modes go on to a grid of
at most that many, and their field, drawn on the fine grid, shows where each column belongs if
columns are pixels or bits. Of any other mixing, weak modes begin where the rectified field has
them, and second moments and the entropy of the marginal have to do the rest.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.core.linalg import polar
from symlift.solvers.fast.bits import two_valued
from symlift.solvers.fast.descend import Criterion, descend
from symlift.solvers.fast.edges import finer_frame
from symlift.solvers.fast.eigenbasis import coarser
from symlift.solvers.fast.mode_moments import mode_moments
from symlift.solvers.fast.sharpen import pooled_entropy
from symlift.solvers.fast.stationary import (
    covariance_gap,
    second_moment,
)
from symlift.solvers.neural.bit_columns import column_map, local_map
from symlift.solvers.neural.data import strongest_modes
from symlift.solvers.neural.full_batch import TRUNCATED, Closing, FullBatch

__all__ = ["close_finer", "coarse_grid"]

#: the largest number of points whose third moments are kept in single precision, about how many the
#: coarse grid has, and the most that are closed at all
_MOST, _COARSE, _LARGEST = 256, 49, 1024
#: partial whitenings, the most steps at each, and the relative gain of ten steps that ends them
_PATH, _STEPS, _GAIN = (0.0, 0.5, 0.75), 60, 1e-4
#: weight of the entropy in units of the gap's noise, its steps and its rows
_SHARP, _SHARP_STEPS, _SHARP_ROWS = 3.0, 40, 8_000
#: draws of signs of the weak modes, until one arrives
_DRAWS = 3


def coarse_grid(grid: Grid, columns: int) -> Grid:
    """The grid on which ``columns`` on ``grid`` are trained: a coarser one for images that are
    too large to be closed at once, and not too large to be closed from there.

    >>> str(coarse_grid(Grid((15, 15)), 225)), str(coarse_grid(Grid((7, 7)), 49))
    ('7x7', '7x7')
    """
    image = grid.ndim > 1 and not any(grid.periodic) and columns >= grid.size
    if not image or FullBatch.suits(grid, columns) or grid.size > _LARGEST:
        return grid
    return coarser(grid, _COARSE)


def close_finer(W: NDArray, X: NDArray, small: Grid, grid: Grid) -> Closing:
    """The closing on ``grid`` of centred rows ``X`` (n, d) of unit deviation from a lifting map
    (coarse points, d) on the grid ``small``; of more columns than points, that of the strongest
    modes, and each bit at its point.
    """
    if grid.size > _MOST:
        return _close_large(W, X, small, grid)
    if X.shape[1] == grid.size:
        return _sharpened(W, X, small, grid)
    modes = strongest_modes(X.T @ X, grid.size)
    closing = _sharpened(W @ modes.T, X @ modes.T, small, grid)
    V = closing.W @ modes
    W = local_map(V, X, grid) if two_valued(X) else V
    return replace(closing, W=W, limit=TRUNCATED)


def _sharpened(W: NDArray, X: NDArray, small: Grid, grid: Grid) -> Closing:
    """An isometry by second and third moments, and by the entropy at the end."""
    modes, lags = mode_moments(X, single=True), LagClasses(grid)
    path = [modes.criterion(a, lags) for a in _PATH]
    frame = _stationary(polar(W @ modes.basis[: small.size].T), path, small, grid).W
    return _sharper(frame @ modes.basis, X, path[-1].in_data(modes.basis))


def _sharper(W: NDArray, X: NDArray, criterion: Criterion) -> Closing:
    """An isometry by a criterion and by the entropy."""
    sharp = criterion.sharp(X[:_SHARP_ROWS], _SHARP)
    W = descend(W, [sharp], _SHARP_STEPS).W
    return Closing(W, criterion.ratio(W))


def _stationary(strong: NDArray, path: list[Criterion], small: Grid, grid: Grid) -> Closing:
    """A frame of modes on ``grid``, by second and third moments along whitenings, from that of the
    ``strong`` ones on the grid ``small``.
    """
    rng = np.random.default_rng(0)
    best: Closing | None = None
    for _ in range(_DRAWS):
        frame = polar(finer_frame(strong, small, grid, rng))
        end = descend(frame, path, _STEPS, _GAIN)
        left = end.value / path[-1].noise
        if best is None or left < best.gap:
            best = Closing(end.W, left)
        if best.arrived:
            break
    assert best is not None  # noqa: S101 - there is at least one draw
    return best


# -- more points than third moments are kept of ----------------------------------------------------


def _close_large(W: NDArray, X: NDArray, small: Grid, grid: Grid) -> Closing:
    """The closing from the strongest modes on a grid of fewer points."""
    middle = coarser(grid, _MOST)
    modes = strongest_modes(X.T @ X, grid.size)
    strong = modes[: middle.size]
    moments = mode_moments(np.asarray(X @ strong.T, dtype=np.float64), single=True)
    # what is left out of the field is weak, but not where it is whitened
    first = moments.criterion(_PATH[0], LagClasses(middle))
    known = polar(W @ strong.T @ moments.basis[: small.size].T)
    frame = _stationary(known, [first], small, middle).W @ moments.basis
    frame = finer_frame(frame, middle, grid, np.random.default_rng(0))
    slow = frame[:, : middle.size].astype(X.dtype) @ strong
    if X.shape[1] > grid.size and two_valued(X):
        P = local_map(slow, X, grid)
        return Closing(P, _second_gap(X @ P.T.astype(X.dtype), grid))
    some = X[:_SHARP_ROWS]

    def entropy(W: NDArray) -> float:
        return pooled_entropy(some @ W.T)[0]

    V = min((polar(frame) @ modes, _rectified(frame, modes, some, middle.size)), key=entropy)
    if X.shape[1] == grid.size:
        P = column_map(slow, X)
        placed = Closing(P, _second_gap(X @ P.T, grid))
        # of pixels, the marginal has far less entropy than that of waves
        if placed.arrived and entropy(P) < entropy(V):
            return placed
    second, noise = second_moment(X)
    return _sharper(V, X, Criterion(covariance_gap(second, LagClasses(grid)), noise))


def _rectified(frame: NDArray, modes: NDArray, X: NDArray, known: int) -> NDArray[np.float64]:
    """The isometry whose first ``known`` modes are those of ``frame``, and whose weak ones are
    where the rectified field of the others correlates with them.

    Signals that are sharp on one side, such as strokes or spots, have their fast waves where the
    slow ones add up: a rectifier makes a guess of these from the slow field.
    """
    slow = frame[:, :known]
    Z = X @ modes.T
    Y = Z[:, :known] @ slow.T
    sign = 1.0 if np.mean(Y**3) > 0 else -1.0
    guess = sign * np.maximum(sign * Y, 0)
    A = (guess - guess.mean(axis=0)).T @ Z[:, known:]
    weak = polar(A - slow @ (slow.T @ A))
    return np.asarray(np.concatenate([slow, weak], axis=1) @ modes, dtype=np.float64)


def _second_gap(Y: NDArray, grid: Grid) -> float:
    """The gap of the second moment of a field (n, points), over its sampling noise."""
    second, noise = second_moment(Y - Y.mean(axis=0))
    return covariance_gap(second, LagClasses(grid))(np.eye(grid.size))[0] / max(noise, 1e-300)
