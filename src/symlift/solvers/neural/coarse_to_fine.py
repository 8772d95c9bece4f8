"""Images of more points than a closing takes at once: trained on a coarse grid, and closed on the
fine one.

The strongest modes of an image are its slow waves, and a coarse grid over the same window has room
for just these: critics and closings take seconds there. What they reach is a frame of the strongest
modes. On the fine grid the same waves (cosines, as many along each axis as the coarse grid has
points) carry it on; weaker modes begin at faster waves, in the order of variance and with random
signs, and stationarity of second and third moments along a path of partial whitenings puts them in
place.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.core.linalg import polar
from symlift.solvers.fast.bits import two_valued
from symlift.solvers.fast.edges import finer_frame
from symlift.solvers.fast.eigenbasis import coarser, in_data
from symlift.solvers.fast.mode_moments import mode_moments
from symlift.solvers.fast.sharpen import sharpen
from symlift.solvers.fast.stationary import minimise_over_rotations
from symlift.solvers.neural.bit_columns import local_map
from symlift.solvers.neural.data import strongest_modes
from symlift.solvers.neural.full_batch import Closing, FullBatch

__all__ = ["close_finer", "coarse_grid"]

#: the largest number of points whose third moments are kept in single precision, and about how many
#: the coarse grid has
_MOST, _COARSE = 256, 49
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
    if not image or FullBatch.suits(grid, columns) or grid.size > _MOST:
        return grid
    return coarser(grid, _COARSE)


def close_finer(W: NDArray, X: NDArray, small: Grid, grid: Grid) -> Closing:
    """The closing on ``grid`` of centred rows ``X`` (n, d) from a lifting map (coarse points, d) on
    the grid ``small``; of more columns than points, that of the strongest modes, and each bit at
    its point.
    """
    if X.shape[1] == grid.size:
        return _isometry(W, X, small, grid)
    strongest = strongest_modes(X.T @ X, grid.size)
    closing = _isometry(W @ strongest.T, X @ strongest.T, small, grid)
    V = closing.W @ strongest
    return replace(closing, W=local_map(V, X, grid) if two_valued(X) else V)


def _isometry(W: NDArray, X: NDArray, small: Grid, grid: Grid) -> Closing:
    rng = np.random.default_rng(0)
    lags = LagClasses(grid)
    modes = mode_moments(X, single=True)
    strong = polar(W @ modes.basis[: small.size].T)
    gaps = [(*modes.gap(a, lags), modes.planes(a)) for a in _PATH]
    gap, noise, planes = gaps[-1]
    best: Closing | None = None
    for _ in range(_DRAWS):
        frame = polar(finer_frame(strong, small, grid, rng))
        for one, _, curvature in gaps:
            frame, value = minimise_over_rotations(one, frame, _STEPS, _GAIN, curvature)
        if best is None or value / noise < best.gap:
            best = Closing(frame @ modes.basis, value / noise)
        if best.arrived:
            break
    assert best is not None  # noqa: S101 - there is at least one draw

    in_columns = in_data(gap, modes.basis)
    curvature = planes.in_data(modes.basis)
    W = sharpen(best.W, X[:_SHARP_ROWS], in_columns, _SHARP * noise, _SHARP_STEPS, curvature)
    return Closing(W, in_columns(W)[0] / noise)
