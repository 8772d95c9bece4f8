"""Numbers that stand for gaps, such as -9999: read them as such, and notice them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from symlift.core.rows import row_batches
from symlift.runs.readers.options import numbers_of_marks
from symlift.runs.readers.table import Table
from symlift.storage.bounds import check_size

__all__ = ["known_marks", "marks_in_words", "with_marks"]

#: what loggers and formats write where they have no number: nines, fill values, and the ends of
#: whole numbers of two and four bytes
_NINES = [float("9" * k + tail) for k in range(2, 7) for tail in ("", ".9", ".99", ".0")]
_KNOWN = frozenset(
    [sign * value for value in _NINES for sign in (1, -1)]
    + [-32768.0, 32767.0, -2147483648.0, 2147483647.0, 65535.0]
    + [sign * value for value in (1e20, 1e30, 1e35, 1e36, 9.969209968386869e36) for sign in (1, -1)]
)
_FENCE = 3.0  # Tukey's outer fences
_LOOKED_AT = 20_000


def with_marks(path: Path, table: Table, marks: tuple[str, ...]) -> Table:
    """Return the table with NaN where it holds one of ``marks``, and a note."""
    numbers = numbers_of_marks(marks)
    if not numbers:
        return table
    n, d = table.rows.shape
    kind = table.rows.dtype if table.rows.dtype.kind == "f" else np.dtype(np.float64)
    check_size(path, n * d * kind.itemsize, what="the rows with gaps")
    rows = np.array(table.rows, dtype=kind)
    count = 0
    for part in row_batches(n, d):
        gaps = np.isin(rows[part], np.array(numbers, dtype=kind))
        rows[part][gaps] = np.nan
        count += int(gaps.sum())
    note = f"{count:,} entries are {' or '.join(marks)}, and read as gaps"
    return table._replace(rows=rows, notes=(*table.notes, note))


def known_marks(rows: NDArray) -> Counter[str]:
    """Numbers that stand for gaps in many files and lie far out of their columns, with counts.

    A number is far out beyond Tukey's outer fences of the column's other entries.

    >>> column = np.r_[np.arange(40.0), [-9999, -9999]][:, None]
    >>> known_marks(column), known_marks(np.arange(120.0)[:, None])
    (Counter({'-9999': 2}), Counter())
    """
    n, d = rows.shape
    low = high = np.full(d, np.nan)
    for part in row_batches(n, d):
        block = rows[part]
        low = np.fmin(low, np.fmin.reduce(block, axis=0))
        high = np.fmax(high, np.fmax.reduce(block, axis=0))
    # as the numbers of the table have them: 999.9 in single precision is another number
    kind = rows.dtype if rows.dtype == np.float32 else np.dtype(np.float64)
    known = {float(kind.type(mark)): mark for mark in _KNOWN}
    marks: Counter[str] = Counter()
    for ends in (low, high):
        for column in np.flatnonzero(np.isin(ends, [*known])).tolist():
            mark = float(ends[column])
            values = np.asarray(rows[:, column], dtype=np.float64)
            count = int(np.sum(values == mark))
            others = values[(values != mark) & np.isfinite(values)][:_LOOKED_AT]
            if count and len(others) >= 2 and _is_far(mark, others):
                marks[repr(known[mark]).removesuffix(".0")] += count
    return marks


def _is_far(mark: float, others: NDArray) -> bool:
    low, high = np.percentile(others, [25, 75])
    reach = _FENCE * (high - low)
    return bool(high > low and not low - reach <= mark <= high + reach)


def marks_in_words(marks: Counter[str]) -> str:
    """The findings as a sentence, with the option that reads them as gaps."""
    entries = ", ".join(
        f"{count:,} {'entry is' if count == 1 else 'entries are'} {mark}"
        for mark, count in marks.items()
    )
    options = " ".join(f"--gap {mark}" for mark in marks)
    return f"{entries}, far from all others: if that stands for a gap, give {options}"
