"""Statistics of columns on fitted rows and on held-out rows, each computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from symlift.search.row_noise import BothWaysNoise, RowNoise
from symlift.search.rows import ColumnRows, split_rows
from symlift.search.settings import PlaceSettings
from symlift.statistics.correlations import fisher, partial_statistics

__all__ = ["Halves", "split_halves"]

Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Halves:
    """``columns`` of ``rows``, split into ``fit`` and ``held``; every statistic is a pair, fitted
    and held out.
    """

    rows: ColumnRows
    columns: NDArray[np.int64]
    fit: NDArray[np.int64]
    held: NDArray[np.int64]
    ridges: tuple[float, ...]

    def of(self, columns: NDArray[np.int64]) -> Halves:
        """The same split of other columns."""
        return Halves(self.rows, columns, self.fit, self.held, self.ridges)

    def statistics(self, kind: str) -> Pair:
        """Statistics (m, d, d) of one kind, on fitted and on held-out rows.

        "partial": one for each ridge; "lags": plain correlations of scores and of their magnitudes.
        """
        return self.partial if kind == "partial" else self.lags

    @cached_property
    def correlations(self) -> Pair:
        """Plain correlations of scores."""
        first, second = (
            self.rows.correlations(part, self.columns) for part in (self.fit, self.held)
        )
        return first, second

    @cached_property
    def partial(self) -> Pair:
        first, second = (partial_statistics(c, self.ridges) for c in self.correlations)
        return first, second

    @cached_property
    def plain(self) -> Pair:
        """Fisher's z of plain correlations, (1, d, d)."""
        first, second = (fisher(c)[None] for c in self.correlations)
        return first, second

    @cached_property
    def target(self) -> Pair:
        """What placements are compared by, whichever criterion found them: plain and partial
        correlations.
        """
        first, second = (
            np.concatenate([fisher(c)[None], partial])
            for c, partial in zip(self.correlations, self.partial, strict=True)
        )
        return first, second

    @cached_property
    def target_noise(self) -> RowNoise:
        """Sampling noise of sums over `target` on held-out rows."""
        return self._noise(self.held, self.correlations[1])

    @cached_property
    def both_ways_noise(self) -> BothWaysNoise | None:
        """Sampling noise of sums over `target` on held-out rows, then on fitted ones; None for
        correlations over delays, to which single rows do not add.
        """
        if self.rows.delayed:
            return None
        return BothWaysNoise(self.target_noise, self._noise(self.fit, self.correlations[0]))

    def _noise(self, part: NDArray[np.int64], c: NDArray) -> RowNoise:
        z, _ = self.rows.take(part, self.columns)
        worth = len(part) / len(self.rows.scores) * self.rows.independent_rows()
        return RowNoise(z, c, self.ridges, worth)

    @cached_property
    def lags(self) -> Pair:
        first, second = (
            self.rows.statistics("lags", self.ridges, part, self.columns, c)
            for part, c in zip((self.fit, self.held), self.correlations, strict=True)
        )
        return first, second


def split_halves(
    rows: ColumnRows,
    columns: NDArray[np.int64],
    settings: PlaceSettings,
    held: float | None = None,
) -> Halves:
    """The rows in stretches, dealt to two parts; ``held``: the share of the second."""
    share = settings.held if held is None else held
    return Halves(rows, columns, *split_rows(len(rows.scores), share), settings.ridges)
