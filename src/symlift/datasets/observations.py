"""Common form of all data sets: observed vectors, and the truth behind them."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symlift.core.grid import Grid
from symlift.datasets.transforms import transform_matrix
from symlift.errors import InputError

__all__ = ["Observations"]

# entries of a temporary array: a few MB, so that the working set stays near the cache whatever n is
TEMPORARY = 1 << 19


@dataclass(frozen=True, eq=False)
class Observations:
    """Observed vectors ``X = latent @ transform + noise``, and what a solver should find.

    Parameters
    ----------
    X : ndarray of float32 of shape (n, d)
        What a solver sees.
    latent : ndarray of float32 of shape (n, N)
        Noise-free signals, each row a field on ``grid`` in flat (C) order; (n,) where the latent of
        each sample is an angle.
    transform : ndarray of float64 of shape (N, d) or None
        The matrix that leads from ``latent`` to ``X``; None where there is none.
    grid : Grid or Sphere
        The domain of the signals.
    periodic : tuple of bool
        One flag for each axis of ``grid``.
    name : str
        Name of the data set.

    Examples
    --------
    >>> from symlift.datasets import gsn
    >>> data = gsn(100, 15, transform="dst1", noise=0.0)
    >>> bool(np.allclose(data.X, data.latent @ data.transform, atol=1e-5)), data.name
    (True, 'gsn-15-gaussian-dst1')
    """

    X: NDArray[np.float32]
    latent: NDArray[np.float32]
    transform: NDArray[np.float64] | None
    grid: Any  # a Sphere where `sphere_noise` made it, and a Grid elsewhere
    periodic: tuple[bool, ...]
    name: str

    @property
    def angles(self) -> bool:
        """Whether ``latent`` has one number per sample (an angle, in recordings), not a field."""
        return self.latent.size == len(self.X)


def observe(
    latent: NDArray[np.float32],
    grid: Grid,
    transform: str | ArrayLike,
    noise: float,
    mixing_rng: np.random.Generator,
    noise_rng: np.random.Generator,
    name: str,
) -> Observations:
    """Hide ``latent`` behind ``transform`` and add white noise of ``noise · std(latent)``.

    The deviation is taken over all samples and points of the latent, so that a seed gives the same
    noise under every transform; an orthogonal one preserves the ratio of noise to signal.
    """
    label, matrix = transform_matrix(transform, grid.size, mixing_rng)
    X = _apply(latent, matrix)
    deviation = np.float32(noise * _deviation(latent))
    if deviation > 0:
        step = max(1, TEMPORARY // grid.size)
        for start in range(0, len(X), step):
            rows = X[start : start + step]
            rows += deviation * noise_rng.standard_normal(rows.shape, dtype=np.float32)
    return Observations(X, latent, matrix, grid, grid.periodic, f"{name}-{label}")


def check_count(n: int) -> int:
    """``n`` as a whole number of samples, at least one."""
    try:
        count = operator.index(n)
    except TypeError:
        count = 0
    if count < 1:
        raise InputError(f"n = {n!r} samples cannot be made: ask for a whole number, at least 1")
    return count


def check_noise(noise: float) -> float:
    """``noise`` as a fraction of the signal's deviation, not negative."""
    if not isinstance(noise, int | float | np.number) or not 0 <= noise <= 1e6:
        raise InputError(
            f"noise {noise!r} must be a number from 0 to 1e6: a fraction of the signal's standard"
            " deviation"
        )
    return float(noise)


def _apply(latent: NDArray[np.float32], matrix: NDArray[np.float64]) -> NDArray[np.float32]:
    """``latent @ matrix``; a permutation only moves columns, which is exact and much cheaper."""
    source = matrix.argmax(axis=0)
    if len(np.unique(source)) == len(source) and np.array_equal(
        matrix, np.eye(len(source))[:, source]
    ):
        return latent[:, source]
    return latent @ matrix.astype(np.float32)


def _deviation(values: NDArray[np.float32]) -> float:
    """Standard deviation over all entries, summed in float64 without a float64 copy of them."""
    square = float(np.einsum("ij,ij->", values, values, dtype=np.float64)) / values.size
    return float(np.sqrt(max(0.0, square - float(values.mean(dtype=np.float64)) ** 2)))
