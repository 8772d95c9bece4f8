"""Increments: where independent components are steps of the field (domain walls), not points of it.

On a line of N points there are then N - 1 local components f[n+1] - f[n], filtered by the
whitening, and one global one. Put the steps in order, give them signs, sum them up, and choose the
constant and the kernel by least distortion.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import toeplitz
from scipy.optimize import minimize

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.solvers.fast.arrange import arrange, explained_held_out
from symlift.solvers.fast.components import energy_dependence, energy_similarities, standardise
from symlift.solvers.fast.resolve import SharedEntropy

__all__ = ["increments_frame", "total_correlation"]


def increments_frame(
    X: NDArray, held: NDArray, U: NDArray, rng: np.random.Generator
) -> tuple[NDArray[np.float64], dict[str, float]]:
    """Lifting map whose increments are the components, and how clearly one of them is global."""
    S = X @ U.T
    spread = _participation(energy_dependence(S))
    whole = int(np.argmax(spread))
    local = np.delete(np.arange(len(U)), whole)
    line, energies = Grid((len(local),)), energy_similarities(S[:, local])
    order, quality = arrange(energies, line, rng)
    elsewhere = energy_similarities(held @ U[local].T)
    quality["locality"] = explained_held_out(energies, elsewhere, order, LagClasses(line))
    local = local[order]
    steps = U[local] * _step_signs(S[:, local])[:, None]
    # distortion does not depend on the sign of the global direction: both signs are compared by
    # resolution
    sides = [_least_distortion_sum(steps, side) for side in (1.0, -1.0)]
    W = min(sides, key=lambda w: total_correlation(w, X))
    return W, {**quality, "global": float(spread[whole] / np.median(spread[local]))}


def total_correlation(W: NDArray, X: NDArray) -> float:
    """h̄(y) - log|det W|/N with one marginal shared by all points, up to a constant that does not
    depend on W.
    """
    Y = X @ W.T
    s = float(np.sqrt(np.mean(Y**2)))
    return SharedEntropy(0.3)(Y / s)[0] + np.log(s) - float(np.linalg.slogdet(W)[1]) / len(W)


def _participation(E: NDArray) -> NDArray[np.float64]:
    """(Σ_j E_ij²)²/Σ_j E_ij⁴: the number of others with which component i shares energy: few for a
    local component, all for a global one.
    """
    return np.sum(E**2, axis=1) ** 2 / np.maximum(np.sum(E**4, axis=1), 1e-300)


def _step_signs(S: NDArray) -> NDArray[np.float64]:
    """Signs that make the coupling of increments negative on the whole.

    The sums of the increments of a stationary field are bounded, so increments are negatively
    coupled. White components no longer show that in second order, but J_ij = E[s_i³ s_j] does: the
    signs are those of the leading eigenvector of -J, improved by coordinate ascent.
    """
    Z = standardise(S)
    J = (Z * Z * Z).T @ Z / len(Z)  # `** 3` takes a hundred times as long
    J = -(J + J.T) / 2
    np.fill_diagonal(J, 0.0)
    signs = np.where(np.linalg.eigh(J)[1][:, -1] < 0, -1.0, 1.0)
    for _ in range(10):
        better = np.where(J @ signs >= 0, 1.0, -1.0)
        if better @ J @ better <= signs @ J @ signs:
            break
        signs = better
    return signs


def _least_distortion_sum(steps: NDArray, side: float, taps: int = 16) -> NDArray[np.float64]:
    """W = 1 gᵀ + Σ (H steps), with g ∈ R^d and a symmetric Toeplitz filter H that minimise the
    distortion of W.

    H undoes the whitening of increments that depend on each other.
    """
    m = len(steps)
    n, taps = m + 1, min(taps, m - 1)
    steps = steps / np.sqrt(np.mean(np.sum(steps**2, axis=1)))
    cumulate = np.tril(np.ones((n, m)), -1)

    def build(p: NDArray) -> NDArray:
        H = toeplitz(np.concatenate([[1.0], p[:taps], np.zeros(m - 1 - taps)]))
        return np.outer(np.ones(n), p[taps:]) + cumulate @ (H @ steps)

    def loss(p: NDArray) -> tuple[float, NDArray]:
        W = build(p)
        power = float(np.sum(W**2))
        value = np.log(power / n) - float(np.linalg.slogdet(W @ W.T)[1]) / n
        slope = 2 * W / power - 2 * np.linalg.pinv(W).T / n
        inner = cumulate.T @ slope @ steps.T
        by_tap = [np.trace(inner, k) + np.trace(inner, -k) for k in range(1, taps + 1)]
        return value, np.concatenate([by_tap, slope.sum(axis=0)])

    summed = cumulate @ steps
    unseen = np.linalg.svd(steps)[2][-1]  # the global direction, which no step contains
    constant = -summed.mean(axis=0) + side * unseen * np.sqrt(np.sum(summed**2) / n / n)
    start = np.concatenate([np.zeros(taps), constant])
    optimum = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 1000})
    return build(optimum.x)
