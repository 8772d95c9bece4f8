"""Rows that may be larger than memory: checked in one pass, and converted batch by batch."""

from __future__ import annotations

import hashlib
import itertools
import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symlift.errors import InputError, RowError

__all__ = [
    "MAX_SAMPLE",
    "ColumnsOf",
    "Survey",
    "apply_to_rows",
    "batches_of",
    "check_enough",
    "check_finite",
    "check_largest",
    "check_moments",
    "column_of",
    "digest_of_rows",
    "float_type",
    "forget_pages",
    "has_gaps",
    "refuse_entry",
    "row_batches",
    "sample_size",
    "survey",
    "surveyed",
    "take_rows",
    "varying",
]

#: arrays of more numbers than this are sampled for a fit, to about so many numbers and at least
#: so many rows; only training uses more rows
MAX_SAMPLE, _SAMPLED, _LEAST_ROWS = 32_000_000, 16_000_000, 65_536
# rows are read in batches of about this many numbers: large enough for BLAS, small enough for any
# laptop
_BATCH = 4_000_000
# Fourth and sixth powers of the data must neither overflow nor underflow; in single precision, only
# their squares.
_LARGEST, _LEAST = 1e50, 1e-50
_LARGEST_SINGLE, _LEAST_SINGLE = 1e15, 1e-15


def float_type(dtype: np.dtype) -> type[np.float32] | type[np.float64]:
    """Precision in which numbers of a type are computed: single where it holds them exactly.

    >>> float_type(np.dtype(np.uint8)).__name__, float_type(np.dtype(np.int32)).__name__
    ('float32', 'float64')
    """
    small = dtype.itemsize == 1 or (dtype.kind == "f" and dtype.itemsize <= 4)
    return np.float32 if small else np.float64


def digest_of_rows(rows: NDArray) -> str:
    """A digest of all numbers of an array: the same for the same rows. Empty for arrays of which a
    fit sees a sample only.

    >>> digest_of_rows(np.eye(3)) == digest_of_rows(np.eye(3))
    True
    """
    if rows.size > MAX_SAMPLE:
        return ""
    digest = hashlib.blake2b(f"{rows.shape}".encode(), digest_size=16)
    for _, batch in batches_of(rows):
        digest.update(np.ascontiguousarray(batch).data)
    return digest.hexdigest()


def _map_of(X: Any) -> np.memmap | None:
    """The memory map that an array is a view of, if it is one."""
    while X is not None and not isinstance(X, np.memmap):
        X = getattr(X, "base", None)
    return X


def forget_pages(X: Any) -> None:
    """Release the pages of a memory map that were read, so that they do not fill the memory."""
    mapped = _map_of(X)
    # a private map ("c") would lose what was written to it
    if (
        mapped is None
        or getattr(mapped, "mode", "c") not in ("r", "r+")
        or not hasattr(mmap, "MADV_DONTNEED")
    ):
        return
    pages = getattr(mapped, "_mmap", None)
    if isinstance(pages, mmap.mmap):
        pages.madvise(mmap.MADV_DONTNEED)


def check_pages(X: Any) -> None:
    """Refuse a memory map whose file has become shorter.

    Reading beyond the end of the file would kill the process (a bus error).
    """
    mapped = _map_of(X)
    pages = getattr(mapped, "_mmap", None)
    if mapped is None or not isinstance(pages, mmap.mmap) or not getattr(mapped, "filename", None):
        return
    offset = int(getattr(mapped, "offset", 0))
    if pages.size() < offset - offset % mmap.ALLOCATIONGRANULARITY + len(pages):
        raise InputError(f"{mapped.filename} was cut short while it was read: write it again")


def row_batches(n: int, width: int) -> Iterator[slice]:
    """Slices of ``n`` rows of ``width`` numbers, each slice of a few million numbers."""
    rows = max(1, _BATCH // max(1, width))
    yield from (slice(start, min(n, start + rows)) for start in range(0, n, rows))


def batches_of(X: NDArray) -> Iterator[tuple[slice, NDArray]]:
    """Yield (rows, numbers) of X (n, d) in batches, in the precision of `float_type`.

    Pages of a memory map are released after each batch.
    """
    dtype = float_type(X.dtype)
    for part in row_batches(*X.shape):
        check_pages(X)
        yield part, np.asarray(X[part], dtype=dtype)
        forget_pages(X)


def take_rows(X: Any, index: NDArray[np.int64]) -> NDArray:
    """Rows ``index`` of X in the precision of `float_type`; a memory map is read piece by piece."""
    out = np.empty((len(index), X.shape[1]), dtype=float_type(X.dtype))
    # reading a page loads its neighbours too: a few thousand scattered rows are a hundred
    # megabytes
    step = max(1, min(2_000, _BATCH // max(1, X.shape[1])))
    for start in range(0, len(index), step):
        check_pages(X)
        out[start : start + step] = X[index[start : start + step]]
        forget_pages(X)
    return out


def apply_to_rows(
    X: ArrayLike,
    columns: int,
    step: Callable[[NDArray], NDArray],
    width: int,
    out: NDArray | None,
) -> NDArray:
    """The rows X (n, columns) after ``step``, (n, width), slice by slice in the precision of
    `float_type`; written to ``out`` if it is given.
    """
    rows = _numbers(np.asanyarray(X), columns)
    dtype = float_type(rows.dtype)
    result = np.empty((len(rows), width), dtype=dtype) if out is None else out
    if result.shape != (len(rows), width):
        raise InputError(f"out has shape {result.shape}: it must be ({len(rows)}, {width})")
    for part in row_batches(len(rows), max(columns, width)):
        check_pages(rows)
        batch = np.array(rows[part], dtype=dtype, order="C")
        _check_rows(batch, part.start, "holds NaN or infinity: drop or impute it first")
        with np.errstate(over="ignore", invalid="ignore"):
            block = step(batch)
        _check_rows(
            block,
            part.start,
            "is so large that its signal overflows: drop it, or divide the rows by a constant",
        )
        result[part] = block
        forget_pages(rows)
    return result


def _check_rows(batch: NDArray, start: int, what: str) -> None:
    finite = np.isfinite(batch).all(axis=1)
    if not finite.all():
        raise RowError(start + int(np.argmin(finite)), what)


def _numbers(X: NDArray, columns: int) -> NDArray:
    if X.ndim != 2 or X.shape[1] != columns:
        raise InputError(f"an array of shape {X.shape} was given where (n, {columns}) is needed")
    if X.dtype.kind not in "fiub":
        raise InputError(f"an array of dtype {X.dtype} was given where numbers are needed")
    return X


def has_gaps(X: NDArray) -> bool:
    """Whether any entry is NaN; rows are read in batches, so that a memory map is never copied.

    >>> has_gaps(np.array([[1.0, np.nan]])), has_gaps(np.array([[1, 2]]))
    (True, False)
    """
    return X.dtype.kind == "f" and any(
        bool(np.isnan(X[part]).any()) for part in row_batches(*X.shape)
    )


def varying(X: NDArray) -> NDArray[np.bool_]:
    """Columns that take more than one value, (d,); gaps do not count as values.

    >>> varying(np.array([[1.0, 2.0, np.nan], [1.0, 3.0, 4.0]]))
    array([False,  True, False])
    """
    low = high = X[0]
    for part in row_batches(*X.shape):
        low = np.fmin(low, np.fmin.reduce(X[part], axis=0))
        high = np.fmax(high, np.fmax.reduce(X[part], axis=0))
        forget_pages(X)
    return np.nan_to_num(high) > np.nan_to_num(low)


class ColumnsOf:
    """View of some columns of an array; nothing is copied until rows are taken.

    >>> view = ColumnsOf(np.arange(12).reshape(3, 4), np.array([1, 3]))
    >>> view.shape, view[1:].tolist()
    ((3, 2), [[5.0, 7.0], [9.0, 11.0]])
    """

    def __init__(self, base: NDArray, columns: NDArray[np.int64]) -> None:
        self.base, self.columns = base, columns
        self.dtype = np.dtype(float_type(base.dtype))
        self.shape, self.ndim = (len(base), len(columns)), 2
        self.size = len(base) * len(columns)

    def __len__(self) -> int:
        return len(self.base)

    def __getitem__(self, rows: Any) -> NDArray:
        some = self.base[rows]
        some = some if len(self.columns) == some.shape[-1] else some[..., self.columns]
        return np.asarray(some, dtype=self.dtype)


@dataclass(frozen=True, eq=False)
class Survey:
    """What one pass over X (n, d) finds.

    ``rows`` are all rows or a sample of them, in order (X itself if it holds floats and is not
    large); ``varies`` marks the columns that are not constant; ``gaps`` says whether there are
    missing values.
    """

    rows: NDArray
    varies: NDArray[np.bool_]
    gaps: bool


def sample_size(n: int, d: int) -> int:
    """How many numbers of n rows and d columns are copied as a sample; 0 if all rows are taken.

    >>> sample_size(1_000, 225), sample_size(2_000_000, 225)
    (0, 15999975)
    """
    if n * d <= MAX_SAMPLE or n <= _LEAST_ROWS:
        return 0
    return d * min(n, max(_LEAST_ROWS, _SAMPLED // d))


def survey(
    X: NDArray,
    rng: np.random.Generator,
    allow_nan: bool,
    names: Any = None,
    as_they_are: bool = False,
) -> Survey:
    """Check every entry of X (n, d) once; an InputError names the first that cannot be used.

    From arrays larger than `MAX_SAMPLE`, a random sample of rows is taken in the same pass. Small
    numbers are converted, unless all rows are taken ``as_they_are``, to be converted in batches.
    """
    n, d = X.shape
    count = sample_size(n, d) // d
    whole = count == 0
    chosen = np.arange(0) if whole else np.sort(rng.choice(n, size=count, replace=False))
    sample = np.empty((0, 0)) if whole else np.empty((count, d), dtype=float_type(X.dtype))
    low, high = np.full(d, np.inf), np.full(d, -np.inf)
    gaps, taken = False, 0
    for part, batch in batches_of(X):
        gaps |= _check_finite(batch, part.start, allow_nan, names)
        # gaps are ignored
        low, high = (
            np.fmin(low, np.fmin.reduce(batch, axis=0)),
            np.fmax(high, np.fmax.reduce(batch, axis=0)),
        )
        if not whole:
            here = chosen[taken : np.searchsorted(chosen, part.stop)]
            sample[taken : taken + len(here)] = batch[here - part.start]
            taken += len(here)
    if whole:
        sample = X if as_they_are else np.asarray(X, dtype=float_type(X.dtype))
    return surveyed(sample, low, high, gaps, X, names)


def surveyed(rows: NDArray, low: NDArray, high: NDArray, gaps: bool, X: Any, names: Any) -> Survey:
    """The survey of X, from its ``rows`` or a sample of them, and the range of every column."""
    any_value = high >= low
    low, high = np.where(any_value, low, 0.0), np.where(any_value, high, 0.0)
    varies = high > low
    if len(rows) < len(X):  # a column that is constant in so many rows counts as constant
        varies &= np.fmax.reduce(rows, axis=0) > np.fmin.reduce(rows, axis=0)
    return Survey(_in_range(rows, low, high, varies, X, names), varies, gaps)


def check_enough(rows: int, columns: int, held_out: int | None = None) -> None:
    """Refuse too few rows for a covariance of ``columns``, one in ``held_out`` being held out."""
    needed = next(
        n for n in itertools.count(columns + 1) if held_out is None or n - n // held_out >= columns
    )
    if rows < needed:
        raise InputError(
            f"{rows} rows are too few for the covariance of {columns} columns: give at least"
            f" {needed}"
        )


def _check_finite(batch: NDArray, start: int, allow_nan: bool, names: Any) -> bool:
    """Whether a batch has gaps; infinity, and NaN unless it is allowed, is an InputError."""
    finite = np.isfinite(batch)
    if finite.all():
        return False
    bad = np.isinf(batch) if allow_nan else ~finite
    if bad.any():
        row, column = np.argwhere(bad)[0]
        refuse_entry(int(start + row), int(column), allow_nan, names)
    return True


def refuse_entry(row: int, column: int, allow_nan: bool, names: Any) -> None:
    """Say which entry cannot be used: infinity, or NaN unless it is allowed."""
    what = "infinity" if allow_nan else "NaN or infinity"
    raise InputError(
        f"X holds {what} (row {row + 1}, {column_of(column, names)}): drop or impute it first"
    )


def check_finite(X: NDArray, allow_nan: bool, names: Any = None) -> bool:
    """Whether X (n, d) has gaps; an InputError names the first entry that cannot be used."""
    gaps = False
    for part, batch in batches_of(X) if X.dtype.kind == "f" else ():
        gaps |= _check_finite(batch, part.start, allow_nan, names)
    return gaps


def column_of(index: int, names: Any) -> str:
    """A column as users know it: its name, or its number counted from 1."""
    return f"column {index + 1}" if names is None else f"column {names[index]!r}"


def check_moments(X: NDArray, names: Any = None) -> None:
    """Refuse rows X (n, d) that have no moments: one alone, or numbers whose powers overflow."""
    if len(X) < 2:
        raise InputError("one row has no moments: give at least 2 rows")
    check_largest(X, names)


def check_largest(X: NDArray, names: Any = None) -> None:
    """Refuse numbers whose powers overflow."""
    size = np.zeros(X.shape[1])
    for part in row_batches(*X.shape):
        size = np.fmax(size, np.fmax.reduce(np.abs(X[part]), axis=0))
    _refuse_large(size, X, names)


def _refuse_large(size: NDArray, X: NDArray, names: Any) -> None:
    """Refuse columns X (n, d) whose largest entries, ``size``, have powers that overflow."""
    column = int(np.argmax(size))
    if size[column] <= _LARGEST:
        return
    if not isinstance(X, np.ndarray):  # rows that are elsewhere are not read again
        raise InputError(
            f"X holds {size[column]:.3g} ({column_of(column, names)}), whose powers overflow: drop"
            " that entry if it is alone, or divide X by a constant first"
        )
    row = next(
        part.start + int(np.argmax(np.abs(batch[:, column]) == size[column]))
        for part, batch in batches_of(X)
        if (np.abs(batch[:, column]) == size[column]).any()
    )
    raise InputError(
        f"X holds {size[column]:.3g} (row {row + 1}, {column_of(column, names)}), whose powers"
        " overflow: drop that entry if it is alone, or divide X by a constant first"
    )


def _in_range(
    rows: NDArray, low: NDArray, high: NDArray, varies: NDArray, X: NDArray, names: Any
) -> NDArray:
    """Rows in a precision that holds their powers; raises an InputError where none does."""
    if not varies.any():
        return rows
    size = np.maximum(np.abs(low), np.abs(high))
    largest, widest = float(size.max()), float((high / 2 - low / 2)[varies].max()) * 2
    _refuse_large(size, X, names)
    if widest < _LEAST:
        raise InputError(
            f"X varies by {widest:.3g} at most, whose powers vanish: multiply X by a constant first"
        )
    if rows.dtype == np.float32 and (largest > _LARGEST_SINGLE or widest < _LEAST_SINGLE):
        return rows.astype(np.float64)
    return rows
