"""Entropies of a lifted batch and the resolution (total correlation) made of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["joint_entropy", "marginal_entropies", "resolution"]


def marginal_entropies(Y: NDArray) -> NDArray[np.float64]:
    """Vasicek's spacing estimate of h(y_n) for each column: mean log((n + 1)/(2m) · (y_(i+m) - y_(i-m))), m ≈ √n/2.

    >>> Y = np.random.default_rng(0).normal(size=(20_000, 2))
    >>> marginal_entropies(Y).round(1), round(0.5 * np.log(2 * np.pi * np.e), 1)
    (array([1.4, 1.4]), np.float64(1.4))
    """
    ordered = np.sort(Y, axis=0)
    n = len(ordered)
    m = max(1, int(np.sqrt(n) / 2))
    i = np.arange(n)
    upper, lower = np.minimum(i + m, n - 1), np.maximum(i - m, 0)
    # ties (spins, zeros) have no density: values closer than a thousandth of the deviation count as that far apart
    floor = 1e-3 * np.maximum(ordered.std(axis=0), 1e-300)
    gaps = np.maximum(ordered[upper] - ordered[lower], floor)
    return np.log(gaps * ((n + 1) / (upper - lower))[:, None]).mean(axis=0)


def joint_entropy(Y: NDArray, ridge: float = 1e-10) -> float:
    """Gaussian joint entropy per dimension, ½ log 2πe + Σ log λ / 2N over the covariance's spectrum."""
    spectrum = np.linalg.eigvalsh(np.cov(Y.T).reshape(Y.shape[1], Y.shape[1]))
    return float(0.5 * np.log(2 * np.pi * np.e) + 0.5 * np.mean(np.log(np.maximum(spectrum, ridge * spectrum[-1]))))


def resolution(Y: NDArray) -> float:
    """Total correlation per point with a Gaussian joint, mean_n h(y_n) - h(Y)/N: smaller is better resolved."""
    return float(marginal_entropies(Y).mean()) - joint_entropy(Y)
