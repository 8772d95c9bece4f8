"""Rows of very many columns as scores, read once in batches and kept column by column.

A row of a memory map is read only while it is written into its place, and nothing else of the size
of the data is made.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from symlift.core.rows import batches_of, column_of, take_rows
from symlift.errors import InputError
from symlift.search.rows import robust_spread, split_rows, wild_rows
from symlift.search.settings import PlaceSettings
from symlift.statistics.dependence import independent_rows

__all__ = ["WideRows", "rows_used", "score_columns"]

#: numbers that are kept at most, unless that would be fewer rows than the second number
_NUMBERS, _FEWEST_ROWS = 300_000_000, 1_000
#: numbers from which medians are estimated, and columns that are standardised at once
_SPREAD_NUMBERS, _BLOCK = 20_000_000, 1_024


@dataclass(frozen=True)
class WideRows:
    """Scores z (living columns, n), each column of mean 0 and of length 1 on the fitted rows.

    ``columns`` are the numbers of the living columns among all d; the first ``fitted`` rows are to
    fit, the others are held out; ``position`` (n,) is where each row, in the order of the data, is
    in z.  A gap has the score 0.
    """

    z: NDArray[np.float32]
    columns: NDArray[np.int64]
    d: int
    fitted: int
    position: NDArray[np.int64]

    @property
    def fit(self) -> NDArray[np.float32]:
        return self.z[:, : self.fitted]

    @property
    def held(self) -> NDArray[np.float32]:
        return self.z[:, self.fitted :]

    def in_order(self, which: NDArray) -> NDArray[np.float32]:
        """Scores (rows, some columns), the rows in the order of the data."""
        return self.z[which][:, self.position].T

    def independent_rows(self) -> float:
        """Number of independent rows that these rows are worth."""
        return independent_rows(self.in_order(np.arange(min(64, len(self.z)))))

    def chance(self, noise: float) -> float:
        """The correlation that unrelated columns exceed with the probability ``noise``, all pairs
        together.
        """
        worth = self.independent_rows() * self.fitted / max(len(self.position), 1)
        return float(-ndtri(noise / len(self.z) ** 2) / np.sqrt(max(worth - 3, 1.0)))


def rows_used(n: int, d: int, settings: PlaceSettings) -> int:
    """How many of n rows of d columns are used."""
    return min(n, settings.rows, max(_FEWEST_ROWS, _NUMBERS // d))


def score_columns(
    X: NDArray, alive: NDArray[np.bool_], rng: np.random.Generator, settings: PlaceSettings
) -> WideRows:
    """Scores of a sample of the rows of X (n, d), of the columns that are ``alive`` (d,)."""
    n, d = X.shape
    most = rows_used(n, d, settings)
    number = np.arange(n) if n <= most else np.sort(rng.choice(n, size=most, replace=False))
    columns = np.flatnonzero(alive)
    some = np.sort(rng.permutation(number)[: max(200, _SPREAD_NUMBERS // d)])
    centre, scale = robust_spread(take_rows(X, some)[:, columns], rng)
    fit, held = split_rows(len(number), settings.held)
    position = np.empty(len(number), dtype=np.int64)
    position[np.r_[fit, held]] = np.arange(len(number))
    z = np.empty((len(columns), len(number)), dtype=np.float32)
    size = np.empty(len(number))
    taken = 0
    for part, batch in batches_of(X):
        last = int(np.searchsorted(number, part.stop))
        here = slice(taken, last)
        rows = batch[number[here] - part.start] if len(number) < n else batch
        taken = last
        if not len(rows):
            continue
        rows = rows if len(columns) == d else rows[:, columns]
        _check_finite(rows, number[here], columns)
        apart = (rows - centre) / scale
        size[here] = np.nanmean(np.minimum(np.abs(apart), 50), axis=1)
        np.clip(apart, -settings.clip, settings.clip, out=apart)
        z[:, position[here]] = apart.T
    wild = wild_rows(size, settings)
    if wild.any():
        keep = np.ones(len(number), dtype=bool)
        keep[position[wild]] = False
        z, fitted = np.ascontiguousarray(z[:, keep]), int(keep[: len(fit)].sum())
        position = (np.cumsum(keep) - 1)[position[~wild]]
    else:
        fitted = len(fit)
    _standardise(z, fitted)
    return WideRows(z, columns, d, fitted, position)


def _check_finite(rows: NDArray, number: NDArray, columns: NDArray) -> None:
    if np.isinf(rows).any():
        row, column = np.argwhere(np.isinf(rows))[0]
        where = f"row {number[row] + 1}, {column_of(int(columns[column]), None)}"
        raise InputError(f"X holds infinity ({where}): drop or impute it first")


def _standardise(z: NDArray[np.float32], fitted: int) -> None:
    """Mean 0 over all rows, and length 1 on the fitted ones, in place; gaps become 0."""
    for start in range(0, len(z), _BLOCK):
        block = z[start : start + _BLOCK]
        gaps = np.isnan(block)
        if gaps.any():
            block[gaps] = 0.0
            count = np.maximum((~gaps).sum(axis=1), 1)
            block -= (block.sum(axis=1, dtype=np.float64) / count).astype(np.float32)[:, None]
            block[gaps] = 0.0
        else:
            block -= block.mean(axis=1, dtype=np.float64).astype(np.float32)[:, None]
        length = np.linalg.norm(block[:, :fitted], axis=1)
        block /= np.where(length > 1e-12, length, np.inf)[:, None]
