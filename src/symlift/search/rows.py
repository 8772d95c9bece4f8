"""Prepare rows for statistics: drop outliers, rank to normal scores, mark missing entries.

Ranks remove the effect of gains, offsets, single outliers, heavy tails and any monotone distortion.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from symlift.core.rows import varying
from symlift.errors import InputError
from symlift.search.delays import are_delayed, over_delays
from symlift.search.settings import PlaceSettings
from symlift.statistics.correlations import (
    correlations,
    fisher,
    magnitudes,
    partial_statistics,
)
from symlift.statistics.dependence import independent_rows

__all__ = [
    "FEWEST_BIT_ROWS",
    "ColumnRows",
    "robust_spread",
    "score_rows",
    "split_rows",
    "wild_rows",
]

#: with fewer rows, any column may have only two values by chance
FEWEST_BIT_ROWS = 16
#: stretches of rows that are dealt to the parts
_STRETCHES = 20
#: entries of a column that show whether it has many ties
_LOOK = 200
#: most columns that may be delayed: cross-correlations of 600 take four seconds
_DELAYED = 600


@dataclass(frozen=True)
class ColumnRows:
    """Scores (n, d) of mean 0 and variance 1, 0 where an entry is missing.

    ``present`` (n, d) is 1 where an entry is not missing, or None if none is; ``number`` (n,) are
    row numbers; ``alive`` (d,) marks columns that vary; ``in_time``: every row follows the one
    before it.
    """

    scores: NDArray[np.float32]
    present: NDArray[np.float32] | None
    number: NDArray[np.int64]
    alive: NDArray[np.bool_]
    two_valued: bool
    in_time: bool = False

    def independent_rows(self) -> float:
        """Number of independent rows that these rows are worth."""
        return self._independent

    @cached_property
    def _independent(self) -> float:
        return independent_rows(self.scores, np.flatnonzero(self.alive))

    @cached_property
    def delayed(self) -> bool:
        """Whether signals reach one column after the other, so that correlations are those over
        delays; a pulse takes more than one row.
        """
        if not self.in_time or self._independent >= len(self.scores) / 2:
            return False
        return are_delayed(self.scores[:, self.alive], self.number)

    def take(
        self, rows: NDArray, columns: NDArray
    ) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """Scores of some rows and columns, and which of them are present."""
        every = np.array_equal(columns, np.arange(self.scores.shape[1]))
        z, present = self.scores[rows], None if self.present is None else self.present[rows]
        if every:
            return z, present
        return z[:, columns], None if present is None else present[:, columns]

    def correlations(
        self, rows: NDArray | None = None, columns: NDArray | None = None
    ) -> NDArray[np.float64]:
        """Correlations of some columns over some rows, all by default, (columns, columns)."""
        return self._correlations(rows, *self._taken(rows, columns))

    def statistics(
        self,
        kind: str,
        ridges: tuple[float, ...],
        rows: NDArray | None = None,
        columns: NDArray | None = None,
        c: NDArray | None = None,
    ) -> NDArray[np.float64]:
        """Statistics (m, columns, columns) of one kind; ``c``: the correlations, where known.

        "partial": one for each ridge; "lags": plain correlations of scores and of their magnitudes.
        """
        c = self.correlations(rows, columns) if c is None else c
        if kind == "partial":
            return partial_statistics(c, ridges)
        z, present = self._taken(rows, columns)
        return np.stack(
            [fisher(c), fisher(self._correlations(rows, magnitudes(z, present), present))]
        )

    def _taken(
        self, rows: NDArray | None, columns: NDArray | None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        n, d = self.scores.shape
        if rows is None and columns is None:
            return self.scores, self.present
        return self.take(
            np.arange(n) if rows is None else rows, np.arange(d) if columns is None else columns
        )

    def _correlations(
        self, rows: NDArray | None, z: NDArray[np.float32], present: NDArray[np.float32] | None
    ) -> NDArray[np.float64]:
        if not self.delayed:
            return correlations(z, present)
        return over_delays(z, self.number if rows is None else self.number[rows])


def score_rows(X: ArrayLike, rng: np.random.Generator, settings: PlaceSettings) -> ColumnRows:
    """A sample of the rows of X (n, d), as scores."""
    raw = np.asarray(X)
    if raw.ndim != 2 or len(raw) < 2 or raw.shape[1] < 1:
        raise InputError(f"X has the shape {raw.shape}: give at least 2 rows of at least 1 column")
    number = np.arange(len(raw))
    if len(raw) > settings.rows:
        number = np.sort(rng.choice(len(raw), size=settings.rows, replace=False))
    x = np.asarray(raw[number], dtype=np.float32 if raw.dtype.itemsize <= 4 else np.float64)
    if np.isinf(x).any():
        row, column = np.argwhere(np.isinf(x))[0]
        raise InputError(
            f"X holds infinity (row {number[row]}, column {column}): drop or impute it first"
        )
    gaps = np.isnan(x)
    present = None if not gaps.any() else ~gaps
    spread = robust_spread(x, rng)
    number, keep = _tame(x, spread, number, settings)
    x, present = x[keep], None if present is None else present[keep]
    alive = varying(x)
    two_valued = bool(alive.any()) and len(x) >= FEWEST_BIT_ROWS and _two_valued(x, alive)
    if two_valued or x.shape[1] > settings.rank_columns:
        scores = np.clip((x - spread[0]) / spread[1], -settings.clip, settings.clip)
    else:
        scores = _normal_scores(x, present)
    scores = _standard(scores, present)
    # a sample of the rows is not in time, and gaps have no spectrum
    in_time = present is None and len(raw) <= settings.rows and x.shape[1] <= _DELAYED
    return ColumnRows(
        scores,
        None if present is None else present.astype(np.float32),
        number,
        alive,
        two_valued,
        in_time and not two_valued,
    )


def robust_spread(
    x: NDArray, rng: np.random.Generator, rows: int = 2_000
) -> tuple[NDArray, NDArray]:
    """Median and robust deviation of each column.

    Where half of the entries are equal, a wider quantile or the largest deviation replaces the
    median deviation.
    """
    some = x if len(x) <= rows else x[np.sort(rng.permutation(len(x))[:rows])]
    if np.isnan(some).any():
        some = np.where(
            np.isnan(some),
            np.nanmedian(np.where(np.isnan(some).all(axis=0), 0, some), axis=0),
            some,
        )
    centre = np.median(some, axis=0)
    apart = np.abs(some - centre)
    scale = np.median(apart, axis=0) / 0.6745
    for quantile, normal in ((0.9, 1.645), (0.98, 2.326)):
        scale = (
            np.where(scale > 0, scale, np.quantile(apart, quantile, axis=0) / normal)
            if (scale == 0).any()
            else scale
        )
    scale = np.where(scale > 0, scale, apart.max(axis=0))
    return centre.astype(x.dtype), np.where(scale > 0, scale, 1).astype(x.dtype)


def _tame(
    x: NDArray, spread: tuple[NDArray, NDArray], number: NDArray, settings: PlaceSettings
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Drop rows whose mean clipped deviation is many times that of the median row."""
    size = np.empty(len(x))
    for part in np.array_split(np.arange(len(x)), 1 + x.size // 4_000_000):
        apart = np.minimum(np.abs((x[part] - spread[0]) / spread[1]), 50)
        size[part] = np.nansum(apart, axis=1) / np.maximum(np.sum(~np.isnan(apart), axis=1), 1)
    keep = np.flatnonzero(~wild_rows(size, settings))
    return number[keep], keep


def wild_rows(size: NDArray, settings: PlaceSettings) -> NDArray[np.bool_]:
    """Rows to drop, by the ``size`` (n,) of their deviations; none where there are too many."""
    none = np.zeros(len(size), dtype=bool)
    if not (size > 0).any():
        return none
    wild: NDArray[np.bool_] = size > settings.wild_row * np.median(size[size > 0])
    return wild if wild.mean() < 0.2 and len(size) - wild.sum() >= 2 else none


def _two_valued(x: NDArray, alive: NDArray) -> bool:
    low, high = np.fmin.reduce(x, axis=0), np.fmax.reduce(x, axis=0)
    first = x[: min(len(x), 200)]
    if not ((first == low) | (first == high) | np.isnan(first))[:, alive].all():
        return False
    return bool(((x == low) | (x == high) | np.isnan(x))[:, alive].all())


def _normal_scores(x: NDArray, present: NDArray | None) -> NDArray[np.float32]:
    """Normal quantiles of the ranks of each column's entries; ties have their mean rank.

    Quantiles are looked up once for each rank or tie, not once for each entry: half of the time of
    ranking all columns together.
    """
    n, d = x.shape
    filled = x if present is None else np.where(present, x, np.inf)
    count = np.full(d, n) if present is None else np.maximum(present.sum(axis=0), 1)
    without_ties = _quantiles(np.arange(1, n + 1), n)
    scores = np.empty((d, n), dtype=np.float32)
    for column, score, known in zip(np.ascontiguousarray(filled.T), scores, count, strict=True):
        # the default is slow where many are equal, and five times as fast where they are not
        many = len(np.unique(column[:_LOOK])) < 0.9 * min(n, _LOOK)
        order = np.argsort(column, kind="stable" if many else None)
        ordered = column[order]
        first = np.append(0, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)
        if len(first) == n == known:
            score[order] = without_ties
        else:
            beyond = np.append(first[1:], n)
            score[order] = np.repeat(_quantiles((first + beyond + 1) / 2, known), beyond - first)
    return np.ascontiguousarray(scores.T)


def _quantiles(rank: NDArray, count: int) -> NDArray[np.float32]:
    share = (rank.astype(np.float32) - np.float32(0.5)) / np.float32(count)
    return np.asarray(ndtri(np.clip(share, 1e-6, 1 - 1e-6)), dtype=np.float32)


def _standard(scores: NDArray, present: NDArray | None) -> NDArray[np.float32]:
    """Scale to mean 0 and variance 1 over the entries that are present, 0 elsewhere."""
    z = np.asarray(scores, dtype=np.float32)
    count = float(len(z)) if present is None else np.maximum(present.sum(axis=0), 1)
    z = z if present is None else np.where(present, z, 0)
    z = z - (_column_sums(z) / count).astype(np.float32)
    z = z if present is None else np.where(present, z, 0)
    size = np.sqrt(_column_sums(z * z) / count)
    z /= np.where(size > 1e-6, size, np.inf).astype(np.float32)
    return z


def _column_sums(z: NDArray[np.float32]) -> NDArray[np.float64]:
    """Sums of columns, in single precision within 128 rows and in double precision beyond: a
    quarter of the time of double precision throughout.
    """
    blocks = np.add.reduceat(z, np.arange(0, len(z), 128), axis=0)
    return np.asarray(blocks.sum(axis=0, dtype=np.float64))


def split_rows(
    n: int, share: float, stretches: int = _STRETCHES
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to fit and held-out rows: contiguous stretches, dealt in turn.

    Held-out rows amid fitted ones would repeat them where rows depend on their neighbours in time,
    and stretches drawn at random would leave out events that only a few of them hold.

    >>> split_rows(10, 0.2)[1]
    array([2, 7])
    """
    turn = max(round(1 / share), 2)
    stretch = np.arange(n) * min(n, max(stretches // turn, 1) * turn) // n
    held = stretch % turn == turn // 2
    if not held.any():  # two rows
        held = np.arange(n) % 2 == 1
    return np.flatnonzero(~held), np.flatnonzero(held)
