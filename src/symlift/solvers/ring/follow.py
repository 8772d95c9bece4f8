"""Follow: the closed curve that tuned populations trace, in few harmonics, by
expectation-maximisation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["follow"]

# harmonics of the curve: four evenly spaced stimuli determine two; three did better on sharply
# tuned synthetic populations, worse on few stimuli
HARMONICS = 2
# harmonics of the action, so that a moved bump keeps its sharp parts
MOVED_HARMONICS = 4
_ANGLES = 2 * np.pi * np.arange(60) / 60


def _basis(angles: NDArray, harmonics: int) -> NDArray[np.float64]:
    """cos hφ, sin hφ for h = 1 …: (2 · harmonics, angles)."""
    return np.concatenate(
        [[np.cos(h * angles), np.sin(h * angles)] for h in range(1, harmonics + 1)]
    )


def follow(
    U: NDArray, phase: NDArray, harmonics: int = HARMONICS, steps: int = 100
) -> tuple[NDArray[np.complex128], float]:
    """Posterior means of e^{ihφ}, h = 1 … 4, for points on a closed curve, and the log-likelihood
    relative to a Gaussian.

    z = a + Σ_h A_h (cos hφ, sin hφ) + noise with one covariance of any shape, φ uniform:
    expectation-maximisation from ``phase``. The covariance accounts for what varies independently
    of the angle. There are few harmonics, so that the curve cannot fold to follow that variation,
    and so that equal steps of φ are nearly equal steps along the curve.
    """
    n, k = U.shape
    curve = np.concatenate([np.ones((1, len(_ANGLES))), _basis(_ANGLES, harmonics)])
    share = np.exp(4 * (np.cos(phase[:, None] - _ANGLES) - 1))
    share /= share.sum(axis=1, keepdims=True)
    before = -np.inf
    for _ in range(steps):
        weight, sums = share.sum(axis=0), share.T @ U
        F = curve.T @ np.linalg.solve((curve * weight) @ curve.T, curve @ sums)
        S = (U.T @ U - sums.T @ F - F.T @ sums + (F * weight[:, None]).T @ F) / n + 1e-6 * np.eye(k)
        precision = np.linalg.inv(S)
        logs = U @ precision @ F.T - 0.5 * np.einsum("mi,ij,mj->m", F, precision, F)
        top = logs.max(axis=1, keepdims=True)
        share = np.exp(logs - top)
        total = share.sum(axis=1, keepdims=True)
        share /= total
        rest = (
            -0.5 * np.einsum("ni,ij,nj->n", U, precision - np.eye(k), U)
            - 0.5 * np.linalg.slogdet(S)[1]
        )
        value = float(np.mean(top[:, 0] + np.log(total[:, 0] / len(_ANGLES)) + rest))
        if value - before < 1e-4:
            break
        before = value
    return share @ np.exp(1j * np.outer(_ANGLES, np.arange(1, MOVED_HARMONICS + 1))), value
