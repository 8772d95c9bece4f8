"""Stationarity of moments: how far they are from depending on displacement alone."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["CLIP", "moment_sizes", "stationarity"]

#: values are clipped at this many pooled deviations before their moments are taken, so that single
#: bursts do not dominate
CLIP = 4.0

Number = TypeVar("Number")


class Stationary(Protocol):
    """Anything that can project a matrix on the stationary ones, as `LagClasses` does."""

    def project(self, M: NDArray) -> NDArray[np.float64]:
        """Nearest stationary matrix."""
        ...


def moment_sizes(second: Number, fourth: Number, quartic: Number) -> tuple[Number, Number, Number]:
    """Sizes that distances of E[z zᵀ], E[z² zᵀ], E[z² z²ᵀ] are relative to.

    They are computed from ‖M₂‖², ‖M₄‖² and Σ M₂⁴, which may be numbers or tensors.  The Gaussian
    value ‖2 M₂∘M₂‖² is added to that of the fourth order (z² is constant for spins).  The third
    moment may vanish itself: its distance is relative to the geometric mean of the other two sizes.
    """
    a: Any = second
    high: Any = fourth + 4 * quartic  # type: ignore[operator]
    return a, (a * high) ** 0.5, high


def stationarity(Y: NDArray, lags: Stationary, folds: int = 8) -> NDArray[np.float64]:
    """Relative squared distances of E[y yᵀ], E[y² yᵀ], E[y² y²ᵀ] to stationary matrices.

    The estimate has no bias: with residuals R_k of K disjoint folds of rows, ‖E R‖² is estimated by
    (‖Σ R_k‖² - Σ ‖R_k‖²)/(K(K - 1)), so that a stationary batch scatters about 0 (and may be
    negative) however few rows it has.  Each distance is divided by the same estimate for the
    moments themselves.

    Parameters
    ----------
    Y : ndarray of shape (n, N)
        Lifted signals.
    lags : LagClasses
        Pairs of grid points with equal displacement.
    folds : int, default=8
        Number K of folds.

    Returns
    -------
    ndarray of shape (3,)
        One distance for each order of moments, 2 to 4.

    References
    ----------
    "Blind Recovery of Latent Domains via Unsupervised Symmetry Discovery", section "Learning
    objective", J_stationarity, whose divergence this replaces by moments.

    Examples
    --------
    >>> from symlift import Grid
    >>> from symlift.core.lags import LagClasses
    >>> from symlift.datasets import gsn
    >>> data = gsn(2_000, 15, periodic=True, transform="permutation", random_state=0)
    >>> lags = LagClasses(Grid((15,), periodic=True))
    >>> ordered, shuffled = stationarity(data.latent, lags), stationarity(data.X, lags)
    >>> bool(ordered[0] < 0.01 < 0.1 < shuffled[0])
    True
    """
    # in place: each new array of this size takes as long as the arithmetic
    Z = np.array(Y, dtype=np.float64)
    Z -= Z.mean(axis=0)
    Z /= max(np.sqrt(np.vdot(Z, Z) / max(Z.size, 1)), 1e-300)
    np.clip(Z, -CLIP, CLIP, out=Z)
    Q = Z * Z
    Q -= Q.mean(axis=0)
    K = max(2, min(folds, len(Z) // 2))
    # views, so that the product of a fold with itself takes half the operations
    z, q = np.array_split(Z, K), np.array_split(Q, K)
    N = Z.shape[1]
    covariance, total = np.zeros((N, N)), np.empty((2, N, N))
    sizes, distances = np.zeros(3), np.zeros(3)
    for order, (left, right) in enumerate(((z, z), (q, z), (q, q))):
        total[:], squares = 0.0, np.zeros(2)
        for a, b in zip(left, right, strict=True):  # summed, since all of them are large
            moments = a.T @ b
            moments /= len(a)
            if order == 0:
                covariance += len(a) / len(Z) * moments
            for i, part in enumerate((moments, moments - lags.project(moments))):
                total[i] += part
                squares[i] += np.vdot(part, part)
        # ‖E M‖² from independent estimates of M, without the bias that their noise would add
        sizes[order], distances[order] = (
            (np.vdot(whole, whole) - own) / (K * (K - 1))
            for whole, own in zip(total, squares, strict=True)
        )
    quartic = float(np.sum(np.square(np.square(covariance))))
    relative_to = moment_sizes(max(sizes[0], 0.0), max(sizes[2], 0.0), quartic)
    return distances / np.maximum(relative_to, 1e-300)
