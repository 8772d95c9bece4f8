"""The end of a training run on a ring of which only the first harmonics are asked for, on all rows
at once.

Recordings have more channels than a ring has points, and their tuning is broad: the paper limits
the rank to 3, the constant and the first harmonic. An isometry of all modes is then not what is
looked for, but the rows of one: y = F R z with the strongest modes z of the data, a rotation R of
them and the harmonics F of the ring. *Infomax* and *stationarity* are one number here, the share of
second and third moments that the stationary part of y does not hold.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.core.linalg import polar
from symlift.solvers.fast.mode_moments import mode_moments
from symlift.solvers.fast.stationary import minimise_over_rotations
from symlift.solvers.neural.data import strongest_modes
from symlift.solvers.neural.full_batch import Closing

__all__ = ["FewHarmonics", "ring_harmonics"]

#: the most L-BFGS steps, and the relative gain of ten steps that ends them
_STEPS, _GAIN = 400, 1e-6


class FewHarmonics:
    """The closed-form terms of rows ``X`` (n, d) on a ring, for the first ``rank`` dimensions."""

    #: rotations are found by second moments where there is no third one
    applies = True

    def __init__(self, X: NDArray, grid: Grid, rank: int) -> None:
        Z = np.asarray(X, dtype=np.float64)
        Z = Z - Z.mean(axis=0)
        count = min(2 * rank, Z.shape[1])
        strongest = strongest_modes(Z.T @ Z, count)
        self.modes = mode_moments(Z @ strongest.T)
        self.basis = self.modes.basis @ strongest
        self.lags = LagClasses(grid)
        F = ring_harmonics(grid.size, rank)
        self.harmonics = np.pad(F, ((0, 0), (0, max(0, count - F.shape[1]))))

    def close(self, W: NDArray) -> Closing:
        """The rotation of the strongest modes that is best from the map ``W`` (points, d).

        No gap is that of the truth, since most modes are left out: closings count where two agree.
        """
        F = self.harmonics
        gap, _ = self.modes.gap(0.0, self.lags)

        def of_rotation(R: NDArray) -> tuple[float, NDArray]:
            value, gradient = gap(F @ R)
            return value, F.T @ gradient

        start = polar(F.T @ W @ self.basis.T)
        R, value = minimise_over_rotations(of_rotation, start, _STEPS, _GAIN)
        return Closing(F @ R @ self.basis, value, math.inf)


def ring_harmonics(points: int, rank: int) -> NDArray[np.float64]:
    """The constant and the first cosines and sines of a ring, orthonormal columns (points, rank).

    >>> ring_harmonics(4, 3).round(2).tolist()
    [[0.5, 0.71, 0.0], [0.5, 0.0, 0.71], [0.5, -0.71, 0.0], [0.5, -0.0, -0.71]]
    """
    angle = 2 * np.pi * np.outer(np.arange(points), np.arange(1, (rank + 1) // 2 + 1)) / points
    waves = np.stack([np.cos(angle), np.sin(angle)], axis=2).reshape(points, -1)
    columns = np.concatenate([np.full((points, 1), math.sqrt(0.5)), waves], axis=1)
    return np.asarray(math.sqrt(2 / points) * columns[:, :rank], dtype=np.float64)
