"""Pooled correlation of every alignment from sums that read the data once.

For fields f (latent) and y (recovered) on the same grid, all translations of all orientations need
only ``C[q, p] = Σ_samples y_q f_p`` (one matrix product), and the sums and sums of squares of each
point: an orientation permutes q, and a translation by t sums C where p - q = t.  On a ring those
lag sums are a signal on the ring itself, and interpolating y and then correlating is the same as
correlating and then interpolating, so that the correlation at any real offset is closed form too.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.fourier import along, ring_kernel
from symlift.core.grid import Alignment, Grid
from symlift.metrics.fields import CONSTANT, paired_batches, ratio

Array = NDArray[np.float64]
Subset = tuple[int, ...]


@dataclass(frozen=True)
class Sums:
    """Sums over samples at each point: Σ v, Σ v², and Σ (P_A v)² for Nyquist projections P_A."""

    total: Array
    square: Array
    nyquist: dict[Subset, Array]
    origin: float

    def reorient(self, orientation: Alignment, point: NDArray[np.int64]) -> Sums:
        """The sums of the reoriented fields; ``point`` is the permutation of the points."""
        subsets = {
            tuple(i for i, a in enumerate(orientation.axes) if a in subset): energy[point]
            for subset, energy in self.nyquist.items()
        }
        return Sums(self.total[point], self.square[point], subsets, self.origin)

    @property
    def constant(self) -> bool:
        """Whether nothing varies by more than rounding of the values explains."""
        return bool(self.square.sum() <= self.square.size * (CONSTANT * self.origin) ** 2)


@dataclass(frozen=True)
class CorrelationSums:
    """Everything that the pooled correlation depends on.

    ``cross[q, p] = Σ y_q f_p``, and the sums of either side.
    """

    grid: Grid
    samples: int
    cross: Array
    latent: Sums
    recovered: Sums

    def reorient(self, orientation: Alignment) -> CorrelationSums:
        """The sums after ``orientation`` is applied to the recovered fields."""
        index = np.arange(self.grid.size).reshape(1, *self.grid.shape)
        point = orientation.reorient(index).ravel()
        return CorrelationSums(
            self.grid,
            self.samples,
            self.cross[point],
            self.latent,
            self.recovered.reorient(orientation, point),
        )

    def lag_sums(self, lags: NDArray[np.int64]) -> Array:
        """``c[t] = Σ_{p - q = t} C[q, p]``: N lags on a periodic axis, 2N - 1 on an open one."""
        widths = [
            n if wraps else 2 * n - 1
            for n, wraps in zip(self.grid.shape, self.grid.periodic, strict=True)
        ]
        return (
            np.bincount(lags.ravel(), self.cross.ravel())
            .astype(np.float64, copy=False)
            .reshape(widths)
        )


def _even_rings(grid: Grid) -> list[Subset]:
    """Non-empty subsets of the periodic axes of even length.

    There a fraction of a step damps the Nyquist mode.
    """
    axes = [
        a
        for a, (n, wraps) in enumerate(zip(grid.shape, grid.periodic, strict=True))
        if wraps and n % 2 == 0
    ]
    return [s for size in range(1, len(axes) + 1) for s in itertools.combinations(axes, size)]


def _nyquist_energy(batch: Array, subset: Subset, grid: Grid) -> Array:
    """Σ_samples (P_A y)² at each point.

    P_A is the projection on alternating signs along every axis of ``subset``.
    """
    signs = np.ones(())
    for axis in subset:
        signs = signs * ((-1.0) ** np.arange(grid.shape[axis])).reshape(
            [-1 if a == axis else 1 for a in range(grid.ndim)]
        )
    mode = (batch.reshape(-1, *grid.shape) * signs).mean(
        axis=tuple(a + 1 for a in subset), keepdims=True
    )
    return np.broadcast_to((mode**2).sum(axis=0), grid.shape).ravel()


def correlation_sums(latent: NDArray[Any], recovered: NDArray[Any], grid: Grid) -> CorrelationSums:
    """Accumulate `CorrelationSums` of (n, size) arrays in float64, batch by batch."""
    subsets = _even_rings(grid)
    cross = np.zeros((grid.size, grid.size))
    f_sum, f_square, y_sum, y_square = np.zeros((4, grid.size))
    nyquist = {subset: np.zeros(grid.size) for subset in subsets}
    origin: tuple[float, float] | None = None
    for f, y in paired_batches(latent, recovered):
        # correlations do not depend on the origin; differences of sums are most accurate if it is
        # near the mean
        origin = origin or (float(f.mean()), float(y.mean()))
        f, y = f - origin[0], y - origin[1]
        cross += y.T @ f
        f_sum += f.sum(axis=0)
        y_sum += y.sum(axis=0)
        f_square += np.einsum("np,np->p", f, f)
        y_square += np.einsum("np,np->p", y, y)
        for subset in subsets:
            nyquist[subset] += _nyquist_energy(y, subset, grid)
    f_origin, y_origin = origin or (0.0, 0.0)
    return CorrelationSums(
        grid,
        len(latent),
        cross,
        Sums(f_sum, f_square, {}, f_origin),
        Sums(y_sum, y_square, nyquist, y_origin),
    )


def _axis_operators(length: int, wraps: bool, offsets: Array) -> tuple[Array, Array, Array]:
    """For one axis: how to read lag sums at the offsets, and which points of y and f overlap."""
    if wraps:
        whole = np.ones((1, length))
        return ring_kernel(length, offsets), whole, whole
    t = np.rint(offsets).astype(np.int64)[:, None]
    point = np.arange(length)
    lag = np.arange(-(length - 1), length)
    source = (point + t >= 0) & (point + t < length)
    target = (point - t >= 0) & (point - t < length)
    return (lag == t).astype(np.float64), source.astype(np.float64), target.astype(np.float64)


def _variance(total: Array, square: Array, count: Array) -> Array:
    """Σ (v - mean)² from sums; differences as small as rounding are 0."""
    value = square - total**2 / count
    return np.where(value > 1e-13 * square, value, 0.0)


def pooled_correlations(sums: CorrelationSums, lag_sums: Array, offsets: Sequence[Array]) -> Array:
    """Pooled Pearson of f and y translated by all combinations of ``offsets`` (one array per axis).

    Either side is centred by its own mean over the overlap.  The result has one axis for each axis
    of the grid.
    """
    grid = sums.grid
    axes = list(zip(grid.shape, grid.periodic, offsets, strict=True))
    read, source, target = zip(*(_axis_operators(*axis) for axis in axes), strict=True)

    def over(field: Array, overlap: Sequence[Array]) -> Array:
        return along(field.reshape(grid.shape), overlap)

    count = sums.samples * over(np.ones(grid.size), target)
    f_sum, y_sum = over(sums.latent.total, target), over(sums.recovered.total, source)
    y_square = over(sums.recovered.square, source)
    for subset, energy in sums.recovered.nyquist.items():
        # interpolation by t multiplies a Nyquist mode by cos πt:
        # Σy'² = Σ_A Σ(P_A y)² Π_{j∈A} (cos² πt_j - 1)
        damping = np.ones([1] * grid.ndim)
        for axis in subset:
            damping = damping * (-(np.sin(np.pi * offsets[axis]) ** 2)).reshape(
                [-1 if a == axis else 1 for a in range(grid.ndim)]
            )
        y_square = y_square + over(energy, source) * damping
    covariance = along(lag_sums, read) - f_sum * y_sum / count
    f_variance = _variance(f_sum, over(sums.latent.square, target), count)
    return np.clip(
        ratio(covariance, np.sqrt(f_variance * _variance(y_sum, y_square, count))), -1.0, 1.0
    )
