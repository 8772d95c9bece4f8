"""The end of a training run on a ring of which only the first harmonics are asked for, on all rows
at once.

Recordings have more channels than a ring has points, and their tuning is broad: the paper limits
the rank to 3, the constant and the first harmonic. A row shows one angle φ there, so that its field
is one kernel, shifted by φ, and the first harmonic of all rows lies on one circle. *Resolution* is
therefore that its modulus is constant; *infomax*, that the two dimensions are not one, nor none.
Angles need not be uniform: the circle's centre is not the mean of the rows, and is fitted as well.

A circle says little about which of a few noisy modes belong to it. *Stationarity* does: every mode
is a function of φ, smooth and the same in all rows. Its constant and two harmonics are taken by
expectation and maximisation, from the angles on the circle, and what is read from the rows
linearly is the harmonics of the angles that come out.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from symlift.core.grid import Grid
from symlift.solvers.neural.data import strongest_modes
from symlift.solvers.neural.full_batch import Closing

__all__ = ["FewHarmonics", "nearest_circle", "ring_harmonics", "tuned_angles"]

#: weight of infomax next to the modulus, random starts of a circle, and the most L-BFGS steps
_INFOMAX, _STARTS, _STEPS = 0.5, 8, 400
#: angles that are distinguished, dimensions of a tuning curve, and steps of its fit
_ANGLES, _TUNING, _ROUNDS = 64, 5, 40


class FewHarmonics:
    """The closed-form terms of rows ``X`` (n, d) on a ring, for the first ``rank`` dimensions."""

    #: every cloud of rows has a circle that is nearest to it
    applies = True

    def __init__(self, X: NDArray, grid: Grid, rank: int) -> None:
        Z = np.asarray(X, dtype=np.float64)
        self.mean = Z.mean(axis=0)
        Z = Z - self.mean
        self.strongest = strongest_modes(Z.T @ Z, min(2 * rank, Z.shape[1]))
        self.modes = Z @ self.strongest.T
        self.rank, self.harmonics = rank, ring_harmonics(grid.size, rank)[:, 1:]
        self.rng = np.random.default_rng(0)

    def close(self, W: NDArray) -> Closing:
        """The harmonics of the angles that are reached from the map ``W`` (points, d), or from a
        random circle where that ends nearer.

        No gap is that of the truth, since most modes are left out: closings count where two agree.
        """
        Z, F = self.modes, self.harmonics
        random = self.rng.normal(size=(_STARTS, 2, Z.shape[1]))
        starts = [F[:, :2].T @ W @ self.strongest.T, *random]
        A, centre, cost = min(
            (nearest_circle(Z, start) for start in starts), key=lambda end: end[2]
        )
        at = (Z - centre) @ A.T
        chance = tuned_angles(Z, np.arctan2(at[:, 1], at[:, 0]))
        target = chance @ ring_harmonics(_ANGLES, self.rank)[:, 1:]
        columns = np.concatenate([Z, np.ones((len(Z), 1))], axis=1)
        slope = np.linalg.lstsq(columns, target, rcond=None)[0]
        centre = -np.linalg.lstsq(slope[:-1].T, slope[-1], rcond=None)[0]
        W = F @ slope[:-1].T @ self.strongest
        return Closing(W, cost, math.inf, centre=self.mean + centre @ self.strongest)


def nearest_circle(
    Z: NDArray, start: NDArray
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """A map A (2, k) and a centre c (k,) for which A (z - c) has modulus 1, as nearly as the rows
    ``Z`` (n, k) allow, from the map ``start`` on; and the cost of both.

    E[(|A (z - c)|² - 1)²] - w log det A C Aᵀ: the last part keeps both dimensions.
    """
    n, k = Z.shape
    C = Z.T @ Z / n
    columns = np.concatenate([Z, np.ones((n, 1))], axis=1)

    def cost(flat: NDArray) -> tuple[float, NDArray]:
        B = flat.reshape(2, k + 1)
        A, Y = B[:, :k], columns @ B.T
        away, spread = np.sum(Y**2, axis=1) - 1, A @ C @ A.T
        slope = 4 * (away[:, None] * Y).T @ columns / n
        slope[:, :k] -= 2 * _INFOMAX * np.linalg.solve(spread, A @ C)
        return float(np.mean(away**2) - _INFOMAX * np.linalg.slogdet(spread)[1]), slope.ravel()

    values, vectors = np.linalg.eigh(start @ C @ start.T)
    A = (vectors / np.sqrt(2 * np.maximum(values, 1e-12 * values[-1] + 1e-300))).T @ start
    first = np.concatenate([A, np.zeros((2, 1))], axis=1).ravel()
    end = minimize(cost, first, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    B = end.x.reshape(2, k + 1)
    centre = np.asarray(-np.linalg.lstsq(B[:, :k], B[:, k], rcond=None)[0], dtype=np.float64)
    return B[:, :k], centre, float(end.fun)


def tuned_angles(Z: NDArray, angle: NDArray) -> NDArray[np.float64]:
    """How probable each of `_ANGLES` angles is for every row (n, angles), if every column of ``Z``
    (n, k) is a smooth function of the angle and noise: from a guess (n,) of the angles.
    """
    curves = ring_harmonics(_ANGLES, _TUNING)
    near = np.round(angle * _ANGLES / (2 * np.pi)).astype(np.int64) % _ANGLES
    chance = np.zeros((len(Z), _ANGLES))
    chance[np.arange(len(Z)), near] = 1.0
    square = Z**2
    for _ in range(_ROUNDS):
        weight = np.sqrt(np.maximum(chance.sum(axis=0), 1e-12))[:, None]
        sums = chance.T @ Z
        slope = np.linalg.lstsq(weight * curves, sums / weight, rcond=None)[0]
        tuned = curves @ slope
        noise = np.mean(square, axis=0) - np.sum(2 * sums * tuned, axis=0) / len(Z)
        noise += np.sum(weight**2 * tuned**2, axis=0) / len(Z)
        noise = np.maximum(noise, 1e-9 * np.mean(square, axis=0))
        likely = (Z / noise) @ tuned.T - 0.5 * np.sum(tuned**2 / noise, axis=1)
        chance = np.exp(likely - likely.max(axis=1, keepdims=True))
        chance /= chance.sum(axis=1, keepdims=True)
    return chance


def ring_harmonics(points: int, rank: int) -> NDArray[np.float64]:
    """The constant and the first cosines and sines of a ring, orthonormal columns (points, rank).

    >>> ring_harmonics(4, 3).round(2).tolist()
    [[0.5, 0.71, 0.0], [0.5, 0.0, 0.71], [0.5, -0.71, 0.0], [0.5, -0.0, -0.71]]
    """
    angle = 2 * np.pi * np.outer(np.arange(points), np.arange(1, (rank + 1) // 2 + 1)) / points
    waves = np.stack([np.cos(angle), np.sin(angle)], axis=2).reshape(points, -1)
    columns = np.concatenate([np.full((points, 1), math.sqrt(0.5)), waves], axis=1)
    return np.asarray(math.sqrt(2 / points) * columns[:, :rank], dtype=np.float64)
