"""Gaps (NaN) of a table: count, drop, fill in or refuse them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from symlift.core.rows import row_batches
from symlift.errors import InputError
from symlift.runs.readers.options import column_name
from symlift.runs.readers.table import Table
from symlift.storage.bounds import check_size

__all__ = ["count_gaps", "without_gaps"]


def count_gaps(rows: NDArray) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which rows (n,) have gaps, and how many each column (d,) has, in batches."""
    n, d = rows.shape
    gaps, of_column = np.zeros(n, dtype=bool), np.zeros(d, dtype=np.int64)
    if rows.dtype.kind == "f":
        for part in row_batches(n, d):
            missing = np.isnan(rows[part])
            gaps[part] = missing.any(axis=1)
            of_column += missing.sum(axis=0)
    return gaps, of_column


def without_gaps(data: Path, table: Table, nan: str, mean: NDArray | None = None) -> Table:
    """Return the table with its gaps handled as ``nan`` says; the refusal lists the options.

    ``mean`` (d,) fills the gaps instead of the means of the table's own columns.
    """
    gaps, of_column = count_gaps(table.rows)
    if not gaps.any() or nan == "pairwise":
        return table
    n, count = len(gaps), int(gaps.sum())
    if nan == "refuse":
        raise InputError(f"{data}: {_in_words(table, n, count, of_column)}")
    check_size(
        data, n * table.rows.shape[1] * table.rows.dtype.itemsize, what="the rows without gaps"
    )
    if nan == "drop":
        if count == n:
            raise InputError(
                f"{data}: every row has gaps, and --nan drop would keep none: give --nan pairwise"
            )
        note = f"{n - count:,} of {n:,} rows are kept: the others have gaps"
        return table._replace(rows=table.rows[~gaps], notes=(*table.notes, note))
    if mean is None:
        present = np.maximum(n - of_column, 1)
        mean = (
            sum(
                np.nansum(table.rows[part], axis=0, dtype=np.float64)
                for part in row_batches(*table.rows.shape)
            )
            / present
        )
    rows = np.array(table.rows)
    for part in row_batches(*rows.shape):
        rows[part] = np.where(np.isnan(rows[part]), mean, rows[part])
    note = (
        f"{int(of_column.sum()):,} gaps in {count:,} of {n:,} rows are filled in with the column's"
        " mean"
    )
    return table._replace(rows=rows, notes=(*table.notes, note))


def _in_words(table: Table, n: int, count: int, of_column: NDArray[np.int64]) -> str:
    worst = int(np.argmax(of_column))
    where = column_name(table.names, worst)
    some = int(np.sum(of_column > 0))
    which = f"in column {where}" if some == 1 else f"in {some} columns, most in {where}"
    drop = f"--nan drop keeps {n - count:,}, " if count < n else ""
    return (
        f"{count:,} of {n:,} rows have gaps (NaN), {which}: {drop}--nan pairwise uses what is"
        " there, --nan mean fills in the column's mean"
    )
