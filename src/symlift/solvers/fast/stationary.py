"""Translation invariance of whole moment tensors, and its minimisation over rotations.

For x = A f with A orthogonal and f stationary, the moments of y = W x are translation invariant at
W = Aᵀ. Rotations keep the norms of C = E[x xᵀ] and T = E[x ⊗ x ⊗ x], so the distance to invariance
is least where the projection on it is largest. Both tensors are computed once; after that no data
are touched. The whole third moment, with every pair of lags, has a far wider basin than its slices
E[y² y].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symlift.core.lags import LagClasses
from symlift.core.linalg import cayley, polar
from symlift.solvers.fast.planes import Planes
from symlift.solvers.fast.settings import MOMENT_BATCH
from symlift.solvers.fast.triples import Triples, pack, unpacked

__all__ = [
    "THIRD_WEIGHT",
    "Invariant",
    "Moments",
    "covariance_gap",
    "invariance_gap",
    "invariant_part",
    "minimise_over_rotations",
    "moments",
    "second_moment",
]

# of the third moment, next to 1 of the second: 2^N wrong rotations make that Toeplitz too
THIRD_WEIGHT = 0.3
# grids from which on sums of boxes are faster than a table of n³ classes
_MANY_POINTS = 32
# the largest angle of a first step, in radians
_FIRST_ANGLE = 0.5


@dataclass(frozen=True)
class Moments:
    """Second and third moment of centred observations, each divided by its norm, and the
    contribution of sampling noise to the gap.
    """

    second: NDArray[np.float64]
    third: NDArray[np.float64]
    noise: float
    # of the third moment alone: near 1 if the field is symmetric in sign, so that it vanishes
    third_noise: float


def moments(X: NDArray) -> Moments:
    """E[x xᵀ] and E[x ⊗ x ⊗ x] with their sampling noise.

    From halves a and b of the rows: the squared error of the mean of both is ‖M_a - M_b‖²/4 in
    expectation, and a true W has a gap of just that size.
    """
    halves = [_sums(X[::2]), _sums(X[1::2])]
    full = [a + b for a, b in zip(*halves, strict=True)]
    norms = [max(float(np.linalg.norm(t)), 1e-300) for t in full]
    noise = [(np.linalg.norm(a - b) / size) ** 2 for a, b, size in zip(*halves, norms, strict=True)]
    return Moments(
        full[0] / norms[0],
        full[1] / norms[1],
        float(noise[0] + THIRD_WEIGHT * noise[1]),
        float(noise[1]),
    )


def second_moment(X: NDArray) -> tuple[NDArray[np.float64], float]:
    """E[x xᵀ], divided by its norm, and the contribution of sampling noise to `covariance_gap`."""
    one, other = (X[k::2].T @ X[k::2] for k in (0, 1))
    size = max(float(np.linalg.norm(one + other)), 1e-300)
    return (one + other) / size, float(np.linalg.norm(one - other) / size) ** 2


def _sums(X: NDArray) -> tuple[NDArray, NDArray]:
    d = X.shape[1]
    third = np.zeros((d * d, d))
    step = max(1, MOMENT_BATCH // (d * d))
    for start in range(0, len(X), step):
        rows = X[start : start + step]
        third += (rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1).T @ rows
    return (X.T @ X).astype(np.float64), third.reshape(d, d, d)


class Invariant:
    """Averages of symmetric order-3 tensors over equal displacements, by looking up every triple's
    class: for few points.
    """

    def __init__(self, lags: LagClasses) -> None:
        classes = lags.count.size
        pairs = (lags.index[:, :, None] * classes + lags.index[:, None, :]).ravel()
        count = np.bincount(pairs, minlength=classes * classes)
        self.index = (np.cumsum(count > 0) - 1).astype(np.int32)[pairs]
        self.count = count[count > 0]

    def project(self, tensor: NDArray) -> NDArray:
        """The nearest stationary tensor."""
        means = np.bincount(self.index, tensor.ravel(), minlength=len(self.count)) / self.count
        return means.astype(tensor.dtype)[self.index].reshape(tensor.shape)

    def energy(self, V: NDArray, packed: NDArray) -> tuple[float, NDArray]:
        """‖Π V^{⊗3} T‖² and a sixth of its gradient, as `Triples.energy`.

        ‖Π T‖² = ⟨Π T, T⟩, so the gradient is six times ⟨Π T, T with one slot left unrotated⟩.
        """
        V = V.astype(packed.dtype, copy=False)
        d = V.shape[1]
        pairs = (V @ (V @ packed)[:, unpacked(d)].reshape(-1, d, d)).reshape(-1, d)
        full = pairs @ V.T
        inside = self.project(full)
        return float(np.vdot(inside, full)), inside.T @ pairs


def invariant_part(lags: LagClasses) -> Invariant | Triples:
    """The faster of both ways for this grid."""
    return Invariant(lags) if lags.grid.size < _MANY_POINTS else Triples(lags.grid)


def invariance_gap(
    m: Moments, lags: LagClasses, invariant: Invariant | Triples | None = None
) -> Callable[[NDArray], tuple[float, NDArray]]:
    """W ↦ Σ_k weight_k (1 - ‖Π W^{⊗k} M_k‖²) and its gradient in W; at the truth it is the sampling
    noise.

    A third moment in float32 is processed in float32: half the time, and its sampling noise is far
    larger than the rounding.
    """
    part = invariant or invariant_part(lags)
    third = pack(m.third)
    covariance = covariance_gap(m.second, lags)

    def gap(W: NDArray) -> tuple[float, NDArray]:
        value, gradient = covariance(W)
        energy, slope = part.energy(W, third)
        return value + THIRD_WEIGHT * (1 - energy), gradient - 6 * THIRD_WEIGHT * slope

    return gap


def covariance_gap(second: NDArray, lags: LagClasses) -> Callable[[NDArray], tuple[float, NDArray]]:
    """W ↦ 1 - ‖Π W C Wᵀ‖² for C of norm 1, and its gradient in W."""

    def gap(W: NDArray) -> tuple[float, NDArray]:
        half = W @ second
        full = half @ W.T
        inside = lags.project(full)
        return float(1 - np.vdot(inside, full)), -4 * inside @ half

    return gap


def minimise_over_rotations(
    function: Callable[[NDArray], tuple[float, NDArray]],
    W: NDArray,
    iterations: int,
    tolerance: float = 1e-5,
    planes: Planes | None = None,
) -> tuple[NDArray[np.float64], float]:
    """L-BFGS over W ← cayley(Ω) W with Ω skew and Armijo backtracking; ends when ten steps gain
    less than ``tolerance``.

    ``planes`` are the curvatures that steps start from; without them, curvature is the same in all.
    """
    memory = 20
    value, G = function(W)
    A = _skew(G, W)
    pairs: list[tuple[NDArray, NDArray, float]] = []
    step = 0.1 / max(float(np.linalg.norm(A)), 1e-12)
    history = [value]
    for _ in range(iterations):

        def scaled(slope: NDArray, W: NDArray = W) -> NDArray:
            return slope if planes is None else planes.newton(slope, W)

        if not pairs and planes is not None:
            step = _FIRST_ANGLE / max(float(np.linalg.norm(scaled(A), 2)), _FIRST_ANGLE)
        direction = _two_loop(A, pairs, step, scaled)
        slope = -float(np.vdot(A, direction)) / 2
        if slope >= 0:
            pairs, direction = [], step * scaled(A)
            slope = -float(np.vdot(A, direction)) / 2
        if planes is not None and -10 * slope < tolerance * abs(value):
            break  # ten such steps would gain less
        scale = 1.0
        for _ in range(12):
            W_new = cayley(-scale * direction) @ W
            value_new, G = function(W_new)
            if value_new <= value + 1e-4 * scale * slope:
                break
            scale *= 0.4
        else:
            if not pairs:
                break
            pairs = []
            continue
        A_new = _skew(G, W_new)
        s, y = -scale * direction, A_new - A
        if np.vdot(s, y) > 1e-12 * np.linalg.norm(s) * np.linalg.norm(y):
            pairs = [*pairs, (s, y, 1 / float(np.vdot(s, y)))][-memory:]
        W, A, value = W_new, A_new, value_new
        history.append(value)
        if len(history) > 10 and history[-11] - value < tolerance * abs(value):
            break
    return polar(W), value


def _skew(gradient: NDArray, W: NDArray) -> NDArray:
    A = gradient @ W.T
    return A - A.T


def _two_loop(
    gradient: NDArray,
    pairs: list[tuple[NDArray, NDArray, float]],
    step: float,
    scaled: Callable[[NDArray], NDArray],
) -> NDArray:
    """The L-BFGS direction; a scaled gradient in the first step."""
    q = gradient.copy()
    weights = []
    for s, y, rho in reversed(pairs):
        weights.append(rho * np.vdot(s, q))
        q -= weights[-1] * y
    if not pairs:
        return step * scaled(q)
    s, y, _ = pairs[-1]
    q = scaled(q) * (np.vdot(s, y) / np.vdot(y, scaled(y)))
    for (s, y, rho), a in zip(pairs, reversed(weights), strict=True):
        q += (a - rho * np.vdot(y, q)) * s
    return q
