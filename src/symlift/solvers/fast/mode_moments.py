"""Third moments in the eigenbasis of the covariance, where partial whitening is a scaling of axes.

C^(-a/2) x commutes with an orthogonal mixing and with translations (on a ring exactly, on a window
up to its ends), so the moments of x whitened by any a are as stationary as those of x. a = 0
weights modes by their variance, a = 1 weights all equally: high frequencies, which determine r of
the *detail*, have an influence from a = 1/4 on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.solvers.fast.descend import Criterion
from symlift.solvers.fast.planes import Planes
from symlift.solvers.fast.stationary import (
    THIRD_WEIGHT,
    Moments,
    invariance_gap,
    invariant_part,
)

__all__ = ["ModeMoments", "explained_third_moment", "mode_moments", "third_sums"]

# rows that are multiplied at once: their products stay in the cache
_ROWS = 4096


@dataclass(frozen=True, eq=False)
class ModeMoments:
    """Variances (m,), strongest first, their eigenvectors as rows (m, d), and moments of both
    halves of the rows.

    ``halves`` are sums of z zᵀ and z ⊗ z ⊗ z over every other row, ``rows`` is the number of all
    rows.
    """

    values: NDArray[np.float64]
    basis: NDArray[np.float64]
    halves: tuple[tuple[NDArray, NDArray], tuple[NDArray, NDArray]]
    rows: int
    order: ClassVar[int] = 3

    def strongest(self, count: int) -> ModeMoments:
        """The moments of the ``count`` modes of largest variance alone."""
        k = slice(count)
        first, second = ((C[k, k], T[k, k, k]) for C, T in self.halves)
        return ModeMoments(self.values[k], self.basis[k], (first, second), self.rows)

    def whitened(self, a: float) -> Moments:
        """Moments of C^(-a/2) x in mode coordinates, each of norm 1, with their sampling noise from
        the two halves.
        """
        scale = np.maximum(self.values, 1e-9 * self.values[0]) ** (-a / 2)
        small = scale.astype(self.halves[0][1].dtype)
        seconds = [C * np.outer(scale, scale) for C, _ in self.halves]
        thirds = [T * small[:, None, None] * small[:, None] * small for _, T in self.halves]
        noise, full = [], []
        for one, other in (seconds, thirds):
            total = one + other
            size = max(float(np.linalg.norm(total)), 1e-300)
            noise.append(float(np.linalg.norm(one - other)) ** 2 / size**2)
            full.append(total / size)
        return Moments(full[0], full[1], noise[0] + THIRD_WEIGHT * noise[1], noise[1])

    def noise_share(self, a: float) -> float:
        """The share of sampling noise in the third moment at whitening a."""
        return self.whitened(a).third_noise

    def criterion(self, a: float, lags: LagClasses) -> Criterion:
        """The gap at whitening a, of frames of modes."""
        whole = self.whitened(a)
        planes = Planes(whole.second, whole.third, THIRD_WEIGHT)
        return Criterion(invariance_gap(whole, lags), whole.noise, planes)


def mode_moments(X: NDArray, single: bool = False) -> ModeMoments:
    """Moments of centred rows X (n, d); with ``single`` in float32, which saves memory for the n³
    numbers of more than 100 points.
    """
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    basis = vectors[:, ::-1].T
    Z = (X @ basis.T).astype(np.float32 if single else np.float64)
    first, second = ((Z[k::2].T @ Z[k::2], third_sums(Z[k::2])) for k in (0, 1))
    return ModeMoments(values[::-1].copy(), basis, (first, second), len(X))


def third_sums(Z: NDArray) -> NDArray:
    """Σ z ⊗ z ⊗ z, each triple of axes computed once and then copied to its six places: a third of
    the products.
    """
    m = Z.shape[1]
    T = np.zeros((m, m, m), dtype=Z.dtype)
    for start in range(0, len(Z), _ROWS):
        rows = Z[start : start + _ROWS]
        for a in range(m):
            below = rows[:, : a + 1]
            T[a, : a + 1, : a + 1] += (below * rows[:, a : a + 1]).T @ below
    for a in range(m):
        block = T[a, : a + 1, : a + 1]
        T[: a + 1, a, : a + 1] = block
        T[: a + 1, : a + 1, a] = block
    return T


def explained_third_moment(
    W: NDArray, modes: ModeMoments, held: NDArray, grid: Grid, a: float
) -> float:
    """The part of held-out rows' third moment that the stationary part of the fitted rows'
    explains, off its diagonal.

    Both are those of W C^(-a/2) x. Without the diagonal, for independent values, which have every
    symmetry and no domain, have nothing else. The sampling noise of held-out rows is not taken out:
    about 0 where there is only that.
    """
    scale = np.maximum(modes.values, 1e-9 * modes.values[0]) ** (-a / 2)
    R = (W @ modes.basis.T) * scale
    dtype = modes.halves[0][1].dtype
    fitted = (modes.halves[0][1] + modes.halves[1][1]) / modes.rows
    V = R.astype(dtype)
    d = len(modes.values)
    model = V @ ((V @ fitted.reshape(d, -1)).reshape(-1, d, d) @ V.T)
    model = invariant_part(LagClasses(grid)).project(model)
    seen = third_sums((held @ modes.basis.T @ R.T).astype(dtype)) / len(held)
    i = np.arange(len(W))
    for tensor in (model, seen):
        tensor[i, i, i] = 0
    return float(1 - np.sum((seen - model) ** 2) / max(float(np.sum(seen**2)), 1e-300))
