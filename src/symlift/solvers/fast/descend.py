"""The one way down: a frame, a path of criteria, rotations that lower each of them in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from symlift.solvers.fast.planes import Planes
from symlift.solvers.fast.sharpen import pooled_entropy
from symlift.solvers.fast.stationary import minimise_over_rotations

__all__ = ["Criterion", "Descent", "Gap", "descend"]

#: a number of a frame, and its gradient
Gap = Callable[[NDArray], tuple[float, NDArray]]


@dataclass(frozen=True, eq=False)
class Criterion:
    """What a frame is judged by: its gap, what sampling adds to that of the truth, and the gap's
    curvature in planes of rotation where it is known.
    """

    gap: Gap
    noise: float = 1.0
    planes: Planes | None = None

    def ratio(self, W: NDArray) -> float:
        """The gap of a frame in units of the sampling noise."""
        return self.gap(W)[0] / max(self.noise, 1e-300)

    def in_data(self, basis: NDArray) -> Criterion:
        """The same of frames (points, columns of the data), if this one is of frames of modes."""

        def function(W: NDArray) -> tuple[float, NDArray]:
            value, gradient = self.gap(W @ basis.T)
            return value, gradient @ basis

        planes = None if self.planes is None else self.planes.in_data(basis)
        return replace(self, gap=function, planes=planes)

    def sharp(self, X: NDArray, strength: float) -> Criterion:
        """The same, and the entropy that the marginal of W x has in all points together, by its
        ``strength`` in units of the noise.

        The gap hardly distinguishes all-pass copies, but they fill silent parts of the signal,
        which increases the entropy of the shared marginal. This holds only near a stationary W:
        over all rotations the entropy alone prefers wavelet-like bases.
        """
        weight = strength * self.noise

        def function(W: NDArray) -> tuple[float, NDArray]:
            value, gradient = self.gap(W)
            h, slope = pooled_entropy(X @ W.T)
            return value + weight * h, gradient + weight * (slope.T @ X)

        return replace(self, gap=function)


@dataclass(frozen=True, eq=False)
class Descent:
    """Where a descent ended, and the value of each criterion of its path as it was left."""

    W: NDArray[np.float64]
    values: tuple[float, ...]

    @property
    def value(self) -> float:
        """The last of them."""
        return self.values[-1]


def descend(W: NDArray, path: Iterable[Criterion], steps: int, tolerance: float = 1e-5) -> Descent:
    """Lower each criterion of a path over rotations, from where the one before it ended.

    At most ``steps`` steps for each; fewer, where ten of them gain less than the ``tolerance``.
    """
    values = []
    for criterion in path:
        W, value = minimise_over_rotations(criterion.gap, W, steps, tolerance, criterion.planes)
        values.append(value)
    return Descent(W, tuple(values))
