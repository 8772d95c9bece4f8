"""Fill gaps by linear prediction of a missing entry from the columns it correlates with most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["GapFiller", "pairwise_covariance"]

_NEIGHBOURS = 16
# share of the variance that is added to that of each neighbour, so that equal columns among them
# do no harm
_RIDGE = 1e-3
# entries that are predicted at once
_BATCH = 20_000
# numbers that are gathered at once
_NUMBERS = 4_000_000


def pairwise_covariance(X: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean (d,) and covariance (d, d) of the entries that are present; NaN is a gap.

    Each covariance uses the rows that have both entries; columns without any entry have mean and
    covariance 0.

    >>> mean, C = pairwise_covariance(np.array([[1.0, np.nan], [3.0, 1.0], [5.0, 3.0]]))
    >>> mean, C[0, 1]
    (array([3., 2.]), np.float64(1.0))
    """
    rows = np.asarray(X, dtype=np.float64)
    present = np.isfinite(rows)
    count = present.sum(axis=0)
    mean = np.where(present, rows, 0.0).sum(axis=0) / np.maximum(count, 1)
    centred = np.where(present, rows - mean, 0.0)
    if present.all():
        return mean, centred.T @ centred / max(len(rows), 1)
    pairs = present.astype(np.float64)
    return mean, centred.T @ centred / np.maximum(pairs.T @ pairs, 1.0)


def _positive(blocks: NDArray) -> NDArray[np.float64]:
    """Covariances (m, k, k) without directions of negative variance.

    Pairs of columns have rows of their own where there are gaps, so that a smooth field seems to
    have such directions, and a prediction along them is larger than the field itself.
    """
    out = np.empty_like(blocks)
    for start in range(0, len(blocks), _BATCH):
        part = slice(start, start + _BATCH)
        values, vectors = np.linalg.eigh(blocks[part])
        out[part] = (vectors * np.maximum(values, 0.0)[:, None]) @ vectors.transpose(0, 2, 1)
    return out


@dataclass(frozen=True, eq=False)
class GapFiller:
    """Linear prediction of missing entries from each column's nearest neighbours by correlation.

    Parameters
    ----------
    mean : ndarray of shape (d,)
        Mean of each column.
    near : ndarray of shape (d, k)
        The columns that correlate most with each column.
    covariance : ndarray of shape (d, k + 1, k + 1)
        Covariance of each column and its neighbours, the column itself first.

    Examples
    --------
    >>> X = np.arange(6.0)[:, None] * [1.0, 2.0]
    >>> GapFiller.of(X).fill(np.array([[np.nan, 8.0]])).round(1)
    array([[4., 8.]])
    """

    mean: NDArray[np.float64]
    near: NDArray[np.int64]
    covariance: NDArray[np.float64]

    @classmethod
    def of(cls, X: NDArray, neighbours: int = _NEIGHBOURS) -> GapFiller:
        """Estimate it from rows, which may have gaps themselves."""
        mean, C = pairwise_covariance(X)
        d, k = len(C), min(neighbours, len(C) - 1)
        deviation = np.sqrt(np.maximum(np.diag(C), 1e-300))
        size = np.abs(C) / deviation / deviation[:, None]
        np.fill_diagonal(size, -1.0)
        near = np.argsort(-size, axis=1, kind="stable")[:, :k]
        group = np.concatenate([np.arange(d)[:, None], near], axis=1)
        return cls(mean, near, _positive(C[group[:, :, None], group[:, None, :]]))

    @classmethod
    def of_near(cls, X: NDArray, near: NDArray[np.int64]) -> GapFiller:
        """Estimate it from the columns ``near`` (d, k) each, without a matrix of all pairs."""
        d, k = near.shape
        group = np.concatenate([np.arange(d)[:, None], near], axis=1)
        mean, covariance = np.zeros(d), np.empty((d, k + 1, k + 1))
        step = max(1, _NUMBERS // (len(X) * (k + 1)))
        for start in range(0, d, step):
            part = slice(start, start + step)
            rows = np.asarray(X[:, group[part]], dtype=np.float64).transpose(1, 2, 0)
            present = np.isfinite(rows)
            count = present.sum(axis=2)
            centre = np.where(present, rows, 0.0).sum(axis=2) / np.maximum(count, 1)
            mean[part] = centre[:, 0]
            rows = np.where(present, rows - centre[:, :, None], 0.0)
            counted = present.astype(np.float64)
            pairs = np.maximum(counted @ counted.transpose(0, 2, 1), 1.0)
            covariance[part] = _positive(rows @ rows.transpose(0, 2, 1) / pairs)
        return cls(mean, near, covariance)

    def fill(self, X: NDArray) -> NDArray:
        """Copy of rows (n, d) with gaps predicted from the entries present, else by the mean."""
        filled = np.array(X)
        row, column = np.nonzero(np.isnan(filled))
        for start in range(0, len(row), _BATCH):
            part = slice(start, start + _BATCH)
            filled[row[part], column[part]] = self._predict(X, row[part], column[part])
        return filled

    def _predict(self, X: NDArray, row: NDArray, column: NDArray) -> NDArray[np.float64]:
        near = self.near[column]
        values = np.asarray(X[row[:, None], near], dtype=np.float64) - self.mean[near]
        present = np.isfinite(values)
        blocks = self.covariance[column]
        inner, across = blocks[:, 1:, 1:].copy(), np.where(present, blocks[:, 0, 1:], 0.0)
        # rows and columns of neighbours that are missing themselves become those of the identity:
        # they drop out of the system
        inner *= present[:, :, None] & present[:, None, :]
        k = np.arange(near.shape[1])
        own = np.maximum(inner[:, k, k], 0.0)
        inner[:, k, k] = np.where(
            present, own + _RIDGE * own.mean(axis=1, keepdims=True) + 1e-300, 1.0
        )
        weights = np.linalg.solve(inner, across[:, :, None])[:, :, 0]
        return self.mean[column] + np.sum(weights * np.where(present, values, 0.0), axis=1)
