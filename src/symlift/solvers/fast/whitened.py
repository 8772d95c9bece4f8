"""Mixings that are not orthogonal: frames of whitened rows, from a smoothed third moment to the
whole one.

Whitened observations z of x = A f are a rotation of the whitened field C^(-1/2) f, whatever A is,
and that field is as stationary as f. Position operators of z have the right points as eigenvectors,
but z has no second moment that could link their signs: skewness decides. All frequencies of z weigh
alike, so the third moment's own basin is narrow; that of a *smoothed* field G W z, with G a
Gaussian that gets narrower, is wide. The covariance of f, with which f = C^(1/2) W z, is in the
overlaps of the mixing columns that belong to W z, as for innovations.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import toeplitz

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.solvers.fast.descend import Criterion, descend
from symlift.solvers.fast.frames import position_frames
from symlift.solvers.fast.mode_moments import third_sums
from symlift.solvers.fast.resolve import unit_determinant
from symlift.solvers.fast.settings import DEFAULT, FastSettings
from symlift.solvers.fast.stationary import Invariant, invariant_part
from symlift.solvers.fast.triples import Triples

__all__ = ["recoloured", "smoothed_gap", "smoothing", "whitened_frames"]

# of the mean eigenvalue of the lag averages: the least that the field's covariance keeps (Legendre
# pulses: 0.01)
_FLOOR = 0.001


def whitened_frames(
    X: NDArray, U: NDArray, grid: Grid, settings: FastSettings = DEFAULT
) -> dict[str, NDArray[np.float64]]:
    """Maps (points, columns) of a line that are stationary to third order after whitening, and then
    of least distortion; none where the whitened third moment is noise.
    """
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    whitening = vectors.T / np.sqrt(np.maximum(values, 1e-9 * values[-1]))[:, None]
    Z = X @ whitening.T
    one, other = (third_sums(Z[k::2]) for k in (0, 1))
    third = one + other
    size = max(float(np.linalg.norm(third)), 1e-300)
    if (np.linalg.norm(one - other) / size) ** 2 > settings.eigenbasis_noise:
        return {}
    lags = LagClasses(grid)
    part = invariant_part(lags)
    frames = {}
    starts = position_frames(Z, U @ np.linalg.inv(whitening), settings.whitened_floor)
    for name, W in starts.items():
        W = W * np.where(np.mean((Z @ W.T) ** 3, axis=0) < 0, -1.0, 1.0)[:, None]
        path = (
            Criterion(smoothed_gap(third / size, smoothing(grid.size, width), part))
            for width in settings.smoothings
        )
        W = descend(W, path, settings.smoothed_steps).W
        frames[f"{name}, whitened"] = recoloured(W @ whitening, lags)
    return frames


def smoothing(points: int, width: float) -> NDArray[np.float64]:
    """A Gaussian of ``width`` steps as a matrix; the identity for a width of 0."""
    if width == 0:
        return np.eye(points)
    kernel = np.exp(-0.5 * (np.arange(points) / width) ** 2)
    return np.asarray(toeplitz(kernel / (2 * kernel.sum() - kernel[0])))


def smoothed_gap(
    third: NDArray, G: NDArray, part: Invariant | Triples
) -> Callable[[NDArray], tuple[float, NDArray]]:
    """W ↦ 1 - ‖Π M‖²/‖M‖² of M = (G W)^{⊗3} T, and its gradient in W."""
    d = len(third)

    def gap(W: NDArray) -> tuple[float, NDArray]:
        V = G @ W
        pairs = (V @ third.reshape(d, -1)).reshape(-1, d, d) @ V.T
        full = V @ pairs
        inside = part.project(full)
        power, invariant = float(np.vdot(full, full)), float(np.vdot(inside, full))
        residual = (invariant / power * full - inside) / power
        slope = np.tensordot(residual, pairs, axes=([0, 2], [0, 2]))
        return 1 - invariant / power, 6 * G.T @ slope

    return gap


def recoloured(V: NDArray, lags: LagClasses) -> NDArray[np.float64]:
    """K V, with K Kᵀ the lag averages of the overlaps of the mixing columns that belong to V.

    V = C^(-1/2) A⁻¹ has the mixing A C^(1/2), whose overlaps C^(1/2) AᵀA C^(1/2) average to C if A
    is random.
    """
    M = np.linalg.inv(V)
    values, vectors = np.linalg.eigh(lags.project(M.T @ M))
    values = np.maximum(values, _FLOOR * values.mean())
    return unit_determinant((vectors * np.sqrt(values)) @ vectors.T @ V)
