"""Fourth cumulants in the eigenbasis of the covariance, for fields that are symmetric in sign.

Photographs, and processes driven by symmetric innovations, have hardly a third moment. Their fourth
cumulant is a tensor of m⁴ numbers, which the coarse-to-fine search of the eigenbasis makes
affordable up to 64 modes: 2 ms per step at 16 modes, 0.1 s at 50, in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from symlift.core.lags import LagClasses
from symlift.solvers.fast.descend import Criterion
from symlift.solvers.fast.planes import Planes

__all__ = ["FourthModes", "fourth_gap", "fourth_modes", "quadruple_classes"]

_ROWS = 4096
# the second moment must not outweigh the fourth (as with the third)
_WEIGHTS = (1.0, 0.3)


@dataclass(frozen=True, eq=False)
class FourthModes:
    """Variances (m,), strongest first, eigenvectors as rows (m, d), and second moment and fourth
    cumulant of either half.
    """

    values: NDArray[np.float64]
    basis: NDArray[np.float64]
    halves: tuple[tuple[NDArray, NDArray], tuple[NDArray, NDArray]]
    order: ClassVar[int] = 4

    def strongest(self, count: int) -> FourthModes:
        """The moments of the ``count`` modes of largest variance alone."""
        k = slice(count)
        first, second = ((C[k, k], K[k, k, k, k]) for C, K in self.halves)
        return FourthModes(self.values[k], self.basis[k], (first, second))

    def whitened(self, a: float) -> tuple[NDArray[np.float64], NDArray[np.float32], float, float]:
        """Second moment and fourth cumulant of C^(-a/2) x, each of norm 1; sampling noise of both,
        and of the fourth alone.
        """
        scale = np.maximum(self.values, 1e-9 * self.values[0]) ** (-a / 2)
        pair = np.multiply.outer(scale, scale)
        four = np.multiply.outer(pair, pair).astype(np.float32)
        noise, full = [], []
        for one, other in ([C * pair for C, _ in self.halves], [K * four for _, K in self.halves]):
            total = one + other
            size = max(float(np.linalg.norm(total)), 1e-300)
            noise.append(float(np.linalg.norm(one - other)) ** 2 / size**2)
            full.append(total / size)
        return (
            full[0].astype(np.float64),
            full[1].astype(np.float32),
            float(np.dot(_WEIGHTS, noise)),
            noise[1],
        )

    def noise_share(self, a: float) -> float:
        """The share of sampling noise in the fourth cumulant at whitening a."""
        return self.whitened(a)[3]

    def criterion(self, a: float, lags: LagClasses) -> Criterion:
        """The gap at whitening a, of frames of modes."""
        second, fourth, noise, _ = self.whitened(a)
        planes = Planes(second, fourth, _WEIGHTS[1])
        return Criterion(fourth_gap(second, fourth, lags), noise, planes)


def fourth_modes(X: NDArray, longest: float = 2.0) -> FourthModes:
    """Of centred rows X (n, d), those of more than ``longest`` times the root mean square whitened
    length drawn in to it.

    Lengths do not change under a rotation. One photograph in twenty is that long, and without it
    the cumulant is theirs alone: its noise falls from 0.4 to 0.04 half whitened. Rows of
    innovations are hardly ever so long.
    """
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    values, basis = values[::-1].copy(), vectors[:, ::-1].T
    Z = (X @ basis.T).astype(np.float32)
    length = np.sqrt(np.mean(Z**2 / np.maximum(values, 1e-9 * values[0]), axis=1, keepdims=True))
    Z *= np.minimum(1.0, longest / np.maximum(length, 1e-9)).astype(np.float32)
    first, second = (_cumulants(Z[k::2]) for k in (0, 1))
    return FourthModes(values, basis, (first, second))


def _cumulants(Z: NDArray) -> tuple[NDArray, NDArray]:
    """E[z zᵀ] and E[zzzz] less its Gaussian part, the latter from products of pairs, each once."""
    n, m = Z.shape
    i, j = np.triu_indices(m)
    pairs = np.zeros((len(i), len(i)), dtype=np.float64)
    for start in range(0, n, _ROWS):
        P = Z[start : start + _ROWS, i] * Z[start : start + _ROWS, j]
        pairs += P.T @ P
    C = (Z.T @ Z / n).astype(np.float64)
    pairs = pairs / n - C[i[:, None], j[:, None]] * C[i, j]
    pairs -= C[i[:, None], i] * C[j[:, None], j] + C[i[:, None], j] * C[j[:, None], i]
    place = np.empty((m, m), dtype=np.int64)
    place[i, j] = place[j, i] = np.arange(len(i))
    flat = place.ravel()
    return C, pairs.astype(np.float32)[flat[:, None], flat].reshape(m, m, m, m)


def quadruple_classes(lags: LagClasses) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Class of each (i, j, k, l) by the displacements from i to the others, flat, and how many
    there are in each.
    """
    classes, L = lags.count.size, lags.index
    labels = (
        (L[:, :, None] * classes + L[:, None, :])[:, :, :, None] * classes + L[:, None, None, :]
    ).ravel()
    count = np.bincount(labels, minlength=1)
    return (np.cumsum(count > 0) - 1).astype(np.int32)[labels], count[count > 0]


def fourth_gap(
    second: NDArray, fourth: NDArray, lags: LagClasses
) -> Callable[[NDArray], tuple[float, NDArray]]:
    """W ↦ Σ_k weight_k (1 - ‖Π W^{⊗k} M_k‖²) over orders 2 and 4, and its gradient in W."""
    d = len(second)
    index, count = quadruple_classes(lags)

    def gap(W: NDArray) -> tuple[float, NDArray]:
        half = W @ second
        full = half @ W.T
        inside = lags.project(full)
        value = _WEIGHTS[0] * (1 - np.vdot(inside, full))
        gradient = -4 * _WEIGHTS[0] * inside @ half
        V = W.astype(fourth.dtype)
        N = len(V)
        # three slots rotated, the first of the tensor's four left as it is
        partial = (fourth.reshape(d**3, d) @ V.T).reshape(d, d, d, N)
        partial = np.matmul(V, partial)
        partial = np.matmul(V, partial.reshape(d, d, N * N))
        turned = V @ partial.reshape(d, N**3)
        means = np.bincount(index, turned.ravel(), minlength=len(count)) / count
        fixed = means.astype(turned.dtype)[index]
        value += _WEIGHTS[1] * (1 - float(np.dot(fixed, turned.ravel())))
        gradient = gradient - 8 * _WEIGHTS[1] * (fixed.reshape(N, -1) @ partial.reshape(d, -1).T)
        return float(value), gradient

    return gap
