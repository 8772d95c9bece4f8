"""Effective numbers of independent rows and of independent columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

__all__ = ["LOOKED_AT", "effective_rank", "independent_pairs", "independent_rows"]

#: columns whose autocorrelation is looked at
LOOKED_AT = 64
_MOST_LAGS, _FEWEST_ROWS = 1_000, 8
# columns that are transformed at once
_BATCH = 256


def effective_rank(X: NDArray) -> float:
    """Effective rank (Σ λ)²/Σ λ² of the columns' correlation matrix.

    It is 1 for copies of one column, and d for d independent columns.

    >>> round(effective_rank(np.arange(10.0)[:, None] * [1.0, -2.0]), 6)
    1.0
    """
    centred = np.asarray(X, dtype=np.float64) - np.mean(X, axis=0)
    size = np.sqrt(np.mean(centred**2, axis=0))
    z = centred[:, size > 0] / size[size > 0]
    if z.shape[1] == 0:
        return 0.0
    gram = z.T @ z if z.shape[1] <= len(z) else z @ z.T
    return float(np.trace(gram) ** 2 / np.sum(gram**2))


def independent_rows(X: NDArray, columns: NDArray[np.int64] | None = None) -> float:
    """Number of independent rows that the rows are worth: n / (1 + 2 Σ_k ρ(k)²).

    ρ(k) is the autocorrelation of the columns at a distance of k rows; the first few of ``columns``
    are enough.

    >>> walk = np.cumsum(np.random.default_rng(0).normal(size=(1000, 3)), axis=0)
    >>> bool(independent_rows(walk) < 50)
    True
    """
    some = X[:, :LOOKED_AT] if columns is None else X[:, columns[:LOOKED_AT]]
    z = np.asarray(some, dtype=np.float64) - np.mean(some, axis=0, dtype=np.float64)
    size = np.sqrt(np.mean(z**2, axis=0))
    z, n = z[:, size > 0] / size[size > 0], len(z)
    if n < _FEWEST_ROWS or not z.shape[1]:
        return float(n)
    together = _autocorrelations(z)
    # independent rows have squared correlations of 1/n by chance
    squares = np.mean(together**2, axis=0) - 1 / n
    last = _last_lag(squares)
    return float(n / (1 + 2 * max(float(squares[:last].sum()), 0.0)))


def independent_pairs(X: NDArray) -> NDArray[np.float64]:
    """Number of independent rows that a correlation of each two columns is worth, (d, d).

    n / (1 + 2 Σ_k ρ_i(k) ρ_j(k)) by Bartlett's formula: two columns that drift slowly are worth a
    few rows to each other, and all rows to a column that does not drift.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> X[:, :2] = np.cumsum(X[:, :2], axis=0)
    >>> worth = independent_pairs(X)
    >>> bool(worth[0, 1] < 50), bool(worth[0, 2] > 500)
    (True, True)
    """
    n, d = X.shape
    if n < _FEWEST_ROWS:
        return np.full((d, d), float(n))
    parts, squares = [], np.zeros(min(n // 4, _MOST_LAGS) - 1)
    for first in range(0, d, _BATCH):
        z = np.asarray(X[:, first : first + _BATCH], dtype=np.float64)
        z = z - z.mean(axis=0)
        size = np.sqrt(np.mean(z**2, axis=0))
        # a constant column has no correlations, at any distance
        part = _autocorrelations(z / np.where(size > 0, size, np.inf))
        squares += np.sum(part**2, axis=0)
        parts.append(part)
    last = _last_lag(squares / max(d, 1) - 1 / n)
    together = np.concatenate([part[:, :last] for part in parts])
    # chance makes sums negative as often as positive, and rows are not worth more than themselves
    return np.asarray(n / (1 + 2 * np.maximum(together @ together.T, 0.0)))


def _autocorrelations(z: NDArray) -> NDArray[np.float64]:
    """Of columns (n, d) of mean 0 and variance 1, at distances of 1, 2, … rows: (d, lags)."""
    n = len(z)
    lags = min(n // 4, _MOST_LAGS)
    # zeros for as many rows as there are lags, so that the end does not meet the beginning; lengths
    # with large prime factors take up to ten times as long
    length = next_fast_len(n + lags, real=True)
    modes = rfft(np.ascontiguousarray(z.T), length, axis=1)
    power = modes.real**2 + modes.imag**2
    return np.asarray(irfft(power, length, axis=1)[:, 1:lags] / n)


def _last_lag(squares: NDArray) -> int:
    """The distance from which on mean squares are no larger than by chance."""
    below = np.flatnonzero(squares <= 0)
    return int(below[0]) if len(below) else len(squares)
