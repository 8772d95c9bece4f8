"""Pairwise statistics of columns: plain and partial correlations, with variance stabilised."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

__all__ = [
    "correlations",
    "fisher",
    "kurtosis_and_skewness",
    "magnitudes",
    "partial_correlations",
    "partial_statistics",
]


def correlations(z: NDArray, present: NDArray | None) -> NDArray[np.float64]:
    """Correlations of scores (n, d), each over the rows where both columns are present; unit
    diagonal.
    """
    z = np.asarray(z, dtype=np.float32)
    if present is None:
        c = (z.T @ z).astype(np.float64)
        size = np.sqrt(np.maximum(np.diag(c), 1e-12))
        c /= size
        c /= size[:, None]
    else:
        square, m = z * z, present.astype(np.float32)
        scale = (square.T @ m).astype(np.float64)
        c = (z.T @ z) / np.sqrt(np.maximum(scale * scale.T, 1e-12))
    np.clip(c, -1, 1, out=c)
    np.fill_diagonal(c, 1.0)
    return c


def partial_correlations(c: NDArray, ridge: float) -> NDArray[np.float64]:
    """Correlations of each two columns given all others, from (1 - ridge) c + ridge I; zero
    diagonal.
    """
    a = (1 - ridge) * c
    a[np.diag_indices_from(a)] += ridge
    precision = _inverse(a)
    size = np.sqrt(np.maximum(np.diag(precision), 1e-12))
    p = -precision / size / size[:, None]
    np.fill_diagonal(p, 0.0)
    return np.clip(p, -1, 1)


def _inverse(a: NDArray) -> NDArray:
    """Inverse of a symmetric matrix, with more ridge where it is not positive definite."""
    diagonal = a.diagonal().copy()
    for more in (0.0, 0.02, 0.1, 0.5):
        if more:
            a[np.diag_indices_from(a)] = diagonal + more
        factor, failed = lapack.dpotrf(a, lower=1)
        if not failed:
            inverse, failed = lapack.dpotri(factor, lower=1, overwrite_c=1)
            if not failed:
                return _mirrored(inverse)
    a[np.diag_indices_from(a)] = diagonal
    return np.linalg.pinv(a, hermitian=True)


def _mirrored(lower: NDArray, block: int = 1024) -> NDArray:
    """The symmetric matrix of a lower triangle, without further matrices of its size."""
    out = np.tril(lower)
    for start in range(0, len(out), block):
        part = slice(start, start + block)
        out[part, start + block :] = out[start + block :, part].T
        square = out[part, part]
        square += np.tril(square, -1).T
    return out


def fisher(c: NDArray) -> NDArray[np.float64]:
    """atanh of correlations, which stabilises their variance, minus the mean; zero diagonal."""
    s = np.arctanh(np.clip(c, -1 + 1e-6, 1 - 1e-6))
    np.fill_diagonal(s, 0.0)
    d = len(s)
    s -= s.sum() / max(d * (d - 1), 1)
    np.fill_diagonal(s, 0.0)
    return s


def partial_statistics(c: NDArray, ridges: tuple[float, ...]) -> NDArray[np.float64]:
    """One statistic for each ridge, (m, d, d), from correlations c (d, d)."""
    return np.stack([fisher(partial_correlations(c, ridge)) for ridge in ridges])


def kurtosis_and_skewness(s: NDArray) -> tuple[float, float]:
    """Of the values of s (d, d) over pairs: 3 and 0 where they are normal."""
    pairs = s[np.triu_indices(len(s), 1)]
    pairs = pairs - pairs.mean()
    square = pairs * pairs
    variance = max(float(square.mean()), 1e-300)
    return float(np.mean(square * square)) / variance**2, float(
        np.mean(square * pairs)
    ) / variance**1.5


def magnitudes(z: NDArray, present: NDArray | None) -> NDArray[np.float32]:
    """|z|, centred over the entries that are present."""
    size = np.abs(z)
    if present is None:
        return size - size.mean(axis=0)
    mean = (size * present).sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    return np.asarray(np.where(present > 0, size - mean, 0), dtype=np.float32)
