"""Detect headers: words above numbers, or numbers that differ in kind from those below."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from symlift.runs.readers.fields import entry_kind, is_whole, number_of

__all__ = ["is_header", "is_units"]

#: least numbers of rows and columns for a judgement by values
_ROWS, _COLUMNS = 8, 3


def is_header(first: Sequence[str], below: Sequence[Sequence[str]], decimal: str) -> bool:
    """Whether a line names the columns of the lines below it.

    >>> is_header(["T1", "T2"], [["1", "2"]], ".")
    True
    >>> is_header(["1", "2", "3"], [["0.2", "0.1", "0.4"]] * 3, ".")
    True
    """
    if not any(field.strip() for field in first):
        return False
    kinds = [entry_kind(field, decimal) for field in first]
    numeric = [j for j in range(len(first)) if _is_numeric(below, j, decimal)]
    # only words below: words in this line prove nothing, and the file is refused later
    if not numeric:
        return all(kind == "text" for kind in kinds) and bool(below)
    words = sum(kinds[j] in ("text", "dates") for j in numeric)
    if 2 * words > len(numeric):
        return True
    labels = [first[j].strip() for j in numeric if first[j].strip()]
    if words or len(labels) < max(len(numeric) - 1, 1) or len(set(labels)) < len(labels):
        return False
    return _is_another_kind(labels, [[row[j] for j in numeric] for row in below], decimal)


def is_units(first: Sequence[str], below: Sequence[Sequence[str]], decimal: str) -> bool:
    """Whether the line below a header holds units: only text, above lines with numbers."""
    numeric = [j for j in range(len(first)) if _is_numeric(below, j, decimal)]
    return bool(numeric) and all(entry_kind(first[j], decimal) == "text" for j in numeric)


def _is_numeric(below: Sequence[Sequence[str]], column: int, decimal: str) -> bool:
    kinds = [entry_kind(row[column], decimal) for row in below if column < len(row)]
    count = sum(kind == "number" for kind in kinds)
    return 2 * count >= sum(kind != "gap" for kind in kinds) and count > 0


def _is_another_kind(labels: list[str], below: list[list[str]], decimal: str) -> bool:
    """Whether distinct whole numbers name columns: they count, are years, or differ in kind."""
    d = len(labels)
    if d < _COLUMNS or not all(is_whole(label) and len(label) < 16 for label in labels):
        return _is_even_axis(labels, below, decimal)
    values = np.array([int(label) for label in labels])
    entries = [row for row in below if len(row) == d]
    rows = _values(entries, decimal)
    if any(np.array_equal(np.sort(row), np.sort(values)) for row in rows):
        return False  # data do that; names come once
    if np.array_equal(values, np.arange(d)) and not (
        len(rows) > 2 and all(_even(row) for row in rows)
    ):
        return True  # as pandas names columns that have no names
    whole = [[is_whole(field) for field in row if field.strip()] for row in entries]
    if whole and np.mean([np.mean(row) if row else 1.0 for row in whole]) < 0.1:
        return True  # whole numbers above real ones
    if len(rows) == 0:
        return False
    if np.array_equal(values, np.arange(1, d + 1)) and not _even(rows[0]):
        return True
    if d > _COLUMNS and _even(values) and not any(_even(row) for row in rows):
        return True
    if _years(values) and not any(_years(row) for row in rows):
        return True
    # channel numbers in any order, above counts: no line below has as many different entries, nor
    # as large ones
    repeated = all(len(set(row.tolist())) < d for row in rows)
    span = values.max() - values.min() + 1 == d or values.max() > 2 * max(
        np.nanmax(np.abs(rows)), 1
    )
    return bool(len(rows) >= _ROWS and d >= 8 and values.min() >= 0 and repeated and span)


def _is_even_axis(labels: list[str], below: list[list[str]], decimal: str) -> bool:
    """Whether the labels are evenly spaced (times, wavelengths) and no line below is."""
    if len(labels) < 2 * _COLUMNS:
        return False
    values = np.array([number_of(label, decimal) for label in labels], dtype=np.float64)
    rows = _values([row for row in below if len(row) == len(labels)], decimal)
    return bool(
        np.isfinite(values).all()
        and _even(values)
        and len(rows) > 0
        and not any(_even(row) for row in rows)
    )


def _values(rows: list[list[str]], decimal: str) -> NDArray[np.float64]:
    table = [[number_of(field, decimal) for field in row] for row in rows]
    return np.array([[np.nan if v is None else v for v in row] for row in table], dtype=np.float64)


def _even(values: NDArray) -> bool:
    steps = np.diff(values)
    return bool(len(steps) and steps[0] != 0 and np.allclose(steps, steps[0], rtol=1e-6, atol=0.0))


def _years(values: NDArray) -> bool:
    return bool(np.all((values >= 1800) & (values <= 2200)) and np.all(np.diff(values) > 0))
