"""Stationarity of moments: how far moment matrices of a lifted batch are from depending on displacement alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from symlift.grid import Grid

__all__ = ["LagClasses", "stationarity"]


class LagClasses:
    """Pairs of grid points with equal displacement, and averages over them.

    The average over lag classes is the orthogonal projection of a (N, N) matrix on the stationary ones: Toeplitz on a line,
    circulant on a ring, block-Toeplitz on several axes.

    >>> LagClasses(Grid((3,), periodic=True)).project(np.diag([3.0, 0.0, 0.0]))
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        #: (N, N) class of each pair, and the number of pairs in each class
        self.index = grid.lags()
        self.zero = int(self.index[0, 0])
        #: lengths of the axes of displacements: classes are numbered in C order over them
        self.shape = tuple(n if wraps else 2 * n - 1 for n, wraps in zip(grid.shape, grid.axes_periodic, strict=True))
        self.count = np.bincount(self.index.ravel(), minlength=int(np.prod(self.shape))).astype(np.float64)

    def total(self, M: NDArray) -> NDArray[np.float64]:
        """Sum of M over each class, (classes,)."""
        return np.bincount(self.index.ravel(), M.ravel(), minlength=self.count.size).astype(np.float64)

    def average(self, M: NDArray) -> NDArray[np.float64]:
        """Mean of M over each class, (classes,)."""
        return self.total(M) / self.count

    def project(self, M: NDArray) -> NDArray[np.float64]:
        """The nearest stationary matrix."""
        return self.average(M)[self.index]


def stationarity(Y: NDArray, lags: LagClasses, folds: int = 8, clip: float = 4.0) -> NDArray[np.float64]:
    """Relative squared distances of E[y yᵀ], E[y² yᵀ], E[y² y²ᵀ] to stationary matrices, one for each order: (3,).

    Without bias: with residuals R_k of K disjoint folds of rows, ‖E R‖² is estimated by (‖Σ R_k‖² - Σ ‖R_k‖²)/(K(K - 1)), so a
    stationary batch scatters about 0 (and may be negative) however few rows it has.  Each is divided by the same estimate for
    the moment itself; to the fourth order's the Gaussian value ‖2 M₂∘M₂‖² is added (y² is constant for spins), and the third,
    which may vanish, is measured against the geometric mean of the other two.  Values are clipped at ``clip`` pooled
    deviations, so that single bursts do not rule the fourth moments.
    """
    Z = np.asarray(Y, dtype=np.float64)
    Z = Z - Z.mean(axis=0)
    Z = np.clip(Z / max(np.sqrt(np.mean(Z**2)), 1e-300), -clip, clip)
    Q = Z**2
    Q = Q - Q.mean(axis=0)
    parts = np.array_split(np.arange(len(Z)), folds)
    distance, size = np.zeros(3), np.zeros(3)
    for order, (left, right) in enumerate(((Z, Z), (Q, Z), (Q, Q))):
        moments = np.stack([left[rows].T @ right[rows] / len(rows) for rows in parts])
        residuals = np.stack([M - lags.project(M) for M in moments])
        distance[order] = _squared_norm_of_mean(residuals)
        size[order] = _squared_norm_of_mean(moments)
    size[2] = max(size[2], 0.0) + 4 * np.sum((Z.T @ Z / len(Z)) ** 4)
    size[1] = np.sqrt(max(size[0], 0.0) * size[2])
    return distance / np.maximum(size, 1e-300)


def _squared_norm_of_mean(parts: NDArray) -> float:
    """‖E M‖² from independent estimates of M, without the bias that their noise would add."""
    K = len(parts)
    return float((np.sum(parts.sum(axis=0) ** 2) - np.sum(parts**2)) / (K * (K - 1)))
