"""Columns in other units than the rest, such as one logger in °F among many in °C."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["OddUnit", "far_out", "odd_units", "shared_range"]

#: quartiles of fewer columns than this say little: of six Gaussian numbers, one in thirty samples
#: has one beyond the fences, of eight one in fifty
_FEWEST = 8
#: Tukey's outer fences
_FENCE = 3.0
_ENTRIES, _ROWS = 4_000_000, 2_000
#: how numbers of one unit follow from those of another: factor and offset
_CONVERSIONS = {
    "as °F among °C would": (1.8, 32.0),
    "as °C among °F would": (1 / 1.8, -32 / 1.8),
    "as K among °C would": (1.0, 273.15),
    "as °C among K would": (1.0, -273.15),
    "as units of a thousandth would": (1e3, 0.0),
    "as units a thousand times as large would": (1e-3, 0.0),
}


@dataclass(frozen=True)
class OddUnit:
    """A column whose level or spread lies far outside those of the others.

    Parameters
    ----------
    column : int
        The column, from 0.
    level, spread : float
        Its median, and the distance of its quartiles.
    others : tuple of float
        Median of the columns' levels and of their spreads.
    likely : str
        The conversion that would explain both, in words; "" if none of the common ones does.
    """

    column: int
    level: float
    spread: float
    others: tuple[float, float]
    likely: str

    def words(self, column: str) -> str:
        """The finding as a sentence.

        >>> print(OddUnit(4, 59.0, 7.2, (15.0, 4.0), "as °F among °C would").words("column 'b'"))
        column 'b' differs from the rest in unit or kind, as °F among °C would: median 59 (others \
15), quartiles 7.2 apart (others 4)
        """
        likely = f", {self.likely}" if self.likely else ""
        return (
            f"{column} differs from the rest in unit or kind{likely}: median {self.level:.3g}"
            f" (others {self.others[0]:.3g}), quartiles {self.spread:.2g} apart (others"
            f" {self.others[1]:.2g})"
        )

    def brief(self, name: str) -> str:
        """The finding among others.

        >>> OddUnit(4, 59.0, 7.2, (15.0, 4.0), "").brief("'b'")
        "'b' (median 59, others 15)"
        """
        likely = f", {self.likely}" if self.likely else ""
        return f"{name} (median {self.level:.3g}, others {self.others[0]:.3g}{likely})"


def far_out(values: NDArray) -> NDArray[np.bool_]:
    """Which values lie beyond Tukey's outer fences, three times the quartiles' distance from them.

    None where the quartiles coincide, or where there are too few values.

    >>> far_out(np.array([1.0, 2, 3, 4, 5, 6, 7, 50])).nonzero()[0]
    array([7])
    """
    known = values[np.isfinite(values)]
    if len(known) < _FEWEST:
        return np.zeros(len(values), dtype=bool)
    low, high = np.percentile(known, [25, 75])
    reach = _FENCE * (high - low)
    # numbers that differ by rounding only have no quartiles to speak of
    if reach <= 1e-9 * max(abs(low), abs(high)):
        return np.zeros(len(values), dtype=bool)
    return (values < low - reach) | (values > high + reach)


def odd_units(X: NDArray, judged: NDArray[np.bool_] | None = None) -> list[OddUnit]:
    """Find the columns of a table whose level or spread is alien to the others.

    The spread counts as a ratio, and so does the level where none is negative: rates and counts
    differ by factors in one unit.  A level is alien only if most of the column's
    values are beyond those of a typical column.  Columns that rest at one value most of the time
    are not judged.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows; gaps are NaN.
    judged : ndarray of bool, shape (d,), optional
        Columns to look at; all when None.

    Returns
    -------
    list of OddUnit
        In the order of the columns.
    """
    n, d = X.shape
    step = max(1, n // max(min(_ROWS, _ENTRIES // max(d, 1)), _FEWEST))
    rows = np.asarray(X[::step], dtype=np.float64)
    rows = np.where(np.isfinite(rows), rows, np.nan)
    chosen = ~np.isnan(rows).all(axis=0)
    if judged is not None:
        chosen &= judged
    at = np.flatnonzero(chosen)
    if len(at) < _FEWEST:
        return []
    low, level, high = np.nanpercentile(rows[:, at], [25, 50, 75], axis=0)
    spread = high - low
    varies = spread > 1e-9 * np.maximum(np.abs(low), np.abs(high))
    at, level, spread = at[varies], level[varies], spread[varies]
    if len(at) < _FEWEST:
        return []
    typical = float(np.median(level)), float(np.exp(np.median(np.log(spread))))
    alien = _alien(level, spread, typical)
    return [
        OddUnit(int(at[i]), float(level[i]), float(spread[i]), typical, words)
        for i in np.flatnonzero(alien)
        for words in [_likely(level, spread, int(i), ~alien)]
    ]


def _alien(level: NDArray, spread: NDArray, typical: tuple[float, float]) -> NDArray[np.bool_]:
    levels = far_out(level) & (np.abs(level - typical[0]) > spread)
    if (level >= 0).all():
        levels &= far_out(np.log(level + typical[1]))
    return levels | far_out(np.log(spread))


def _likely(level: NDArray, spread: NDArray, column: int, usual: NDArray[np.bool_]) -> str:
    """The common conversion after which the column is among the others, in words."""
    for words, (factor, offset) in _CONVERSIONS.items():
        back = (level[column] - offset) / factor, spread[column] / factor
        among = [
            not far_out(np.append(values[usual], value))[-1]
            for values, value in ((level, back[0]), (np.log(spread), np.log(back[1])))
        ]
        if all(among):
            return words
    return ""


def shared_range(rows: NDArray) -> tuple[float, float]:
    """Lowest and highest value of a picture of rows (n, d), whatever columns in other units hold.

    >>> rows = np.arange(24.0).reshape(2, 12)
    >>> rows[:, 5] += 1000
    >>> shared_range(rows)
    (0.0, 23.0)
    """
    finite = np.where(np.isfinite(rows), rows, np.nan)
    finite = finite[:, ~np.isnan(finite).all(axis=0)]
    if not finite.size:
        return 0.0, 0.0
    low, high = np.nanmin(finite, axis=0), np.nanmax(finite, axis=0)
    usual = ~(far_out(low) | far_out(high))
    return (float(low[usual].min()), float(high[usual].max())) if usual.any() else (0.0, 0.0)
