"""Read out: von Mises regression of the angle on the observations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import i0e, i1e

__all__ = ["read_out"]


def read_out(
    X: NDArray, target: NDArray, rng: np.random.Generator
) -> tuple[NDArray[np.float64], float]:
    """B (d, 2) of the von Mises regression φ | x ~ exp(Re(ū e^{iφ}) - log I₀(|u|)), u = Bᵀ(x -
    mean), and its ridge.

    ``target`` holds E[e^{iφ}] for each row. The log-likelihood is concave; the ridge is the one
    that predicts held-out rows best.
    """
    centred = X - X.mean(axis=0)
    widths = centred.std(axis=0)
    rows = centred / widths
    wanted = np.stack([target.real, target.imag], axis=1)
    held = rng.permutation(len(rows)) < len(rows) // 4
    best, B = (-np.inf, 0.0), np.zeros((rows.shape[1], 2))
    # ridges from strong to weak, each starting from the previous solution
    for ridge in (1.0, 0.1, 0.01, 0.001):
        B = _von_mises(rows[~held], wanted[~held], ridge, B)
        value = -_von_mises_loss(B, rows[held], wanted[held], 0.0)[0]
        if value > best[0]:
            best = value, ridge
    return _von_mises(rows, wanted, best[1], B) / widths[:, None], best[1]


def _von_mises(rows: NDArray, wanted: NDArray, ridge: float, B: NDArray) -> NDArray[np.float64]:
    def loss(flat: NDArray) -> tuple[float, NDArray]:
        value, gradient = _von_mises_loss(flat.reshape(B.shape), rows, wanted, ridge)
        return value, gradient.ravel()

    return minimize(
        loss, B.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 200}
    ).x.reshape(B.shape)


def _von_mises_loss(
    B: NDArray, rows: NDArray, wanted: NDArray, ridge: float
) -> tuple[float, NDArray[np.float64]]:
    """-E[Re(m̄ u) - log I₀(|u|)] + ridge ‖B‖²/2, and its gradient."""
    u = rows @ B
    length = np.sqrt((u**2).sum(axis=1) + 1e-12)
    normaliser = np.log(i0e(length)) + length
    value = float(np.mean(normaliser - (u * wanted).sum(axis=1)) + ridge * np.sum(B**2) / 2)
    slope = (i1e(length) / i0e(length) / length)[:, None] * u - wanted
    return value, rows.T @ slope / len(rows) + ridge * B
