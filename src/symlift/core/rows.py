"""Rows that may be larger than memory: looked at once, in batches, and converted batch by batch."""

from __future__ import annotations

import itertools
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError

__all__ = [
    "MAX_SAMPLE",
    "ColumnsOf",
    "Survey",
    "batches_of",
    "check_enough",
    "check_finite",
    "column_of",
    "float_type",
    "forget_pages",
    "survey",
    "take_rows",
]

# no solver but those that train looks at more rows than this
#: arrays of more numbers than this are sampled for a fit: to so many numbers, and no fewer rows
MAX_SAMPLE, _SAMPLED, _LEAST_ROWS = 32_000_000, 16_000_000, 65_536
# rows are read in batches of about this many numbers
_BATCH = 4_000_000
# Fourth and sixth powers of what is fitted must neither overflow nor vanish; in single precision, squares.
_LARGEST, _LEAST = 1e50, 1e-50
_LARGEST_SINGLE, _LEAST_SINGLE = 1e15, 1e-15


def float_type(dtype: np.dtype) -> type[np.float32] | type[np.float64]:
    """The precision that numbers of a type are computed in: single where that holds them exactly.

    >>> float_type(np.dtype(np.uint8)).__name__, float_type(np.dtype(np.int32)).__name__
    ('float32', 'float64')
    """
    small = dtype.itemsize == 1 or (dtype.kind == "f" and dtype.itemsize <= 4)
    return np.float32 if small else np.float64


def _map_of(X: Any) -> np.memmap | None:
    """The memory map that an array is a view of, if it is one."""
    while X is not None and not isinstance(X, np.memmap):
        X = getattr(X, "base", None)
    return X


def forget_pages(X: Any) -> None:
    """Let go of the pages of a memory map that were read, so that a stream through it does not fill the memory."""
    mapped = _map_of(X)
    # a private map ("c") would lose what was written to it
    if mapped is None or getattr(mapped, "mode", "c") not in ("r", "r+") or not hasattr(mmap, "MADV_DONTNEED"):
        return
    pages = getattr(mapped, "_mmap", None)
    if isinstance(pages, mmap.mmap):
        pages.madvise(mmap.MADV_DONTNEED)


def check_pages(X: Any) -> None:
    """Refuse a memory map whose file has become shorter: what is beyond its end would end the process (a bus error)."""
    mapped = _map_of(X)
    pages = getattr(mapped, "_mmap", None)
    if mapped is None or not isinstance(pages, mmap.mmap) or not getattr(mapped, "filename", None):
        return
    offset = int(getattr(mapped, "offset", 0))
    if pages.size() < offset - offset % mmap.ALLOCATIONGRANULARITY + len(pages):
        raise InputError(f"{mapped.filename} was cut short while it was read: write it again")


def batches_of(X: NDArray) -> Iterator[tuple[slice, NDArray]]:
    """(rows, numbers) of X (n, d) in batches, in the precision of :func:`float_type`; pages of a memory map are let go."""
    step = max(1, _BATCH // max(1, X.shape[1]))
    dtype = float_type(X.dtype)
    for start in range(0, len(X), step):
        part = slice(start, min(len(X), start + step))
        check_pages(X)
        yield part, np.asarray(X[part], dtype=dtype)
        forget_pages(X)


def take_rows(X: Any, index: NDArray[np.int64]) -> NDArray:
    """The rows of X with the numbers ``index``, in the precision of :func:`float_type`; a memory map is read piece by piece."""
    out = np.empty((len(index), X.shape[1]), dtype=float_type(X.dtype))
    # a page that is touched brings its neighbours: a few thousand scattered rows are a hundred megabytes
    step = max(1, min(2_000, _BATCH // max(1, X.shape[1])))
    for start in range(0, len(index), step):
        check_pages(X)
        out[start : start + step] = X[index[start : start + step]]
        forget_pages(X)
    return out


class ColumnsOf:
    """Some columns of an array, by their numbers: rows are taken as from an array, and nothing is copied before.

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
    """What one pass over X (n, d) tells: ``rows``, all of them or a sample, in order; columns that vary; whether there are gaps.

    ``rows`` is X itself where that is of floats and not large.
    """

    rows: NDArray
    varies: NDArray[np.bool_]
    gaps: bool


def survey(X: NDArray, rng: np.random.Generator, allow_nan: bool, names: Any = None) -> Survey:
    """Look at every entry of X (n, d) once; an InputError names the first that cannot be used.

    Of arrays that are larger than :data:`MAX_SAMPLE` a random sample of rows is taken on the way.
    """
    n, d = X.shape
    whole = X.size <= MAX_SAMPLE or n <= _LEAST_ROWS
    count = n if whole else min(n, max(_LEAST_ROWS, _SAMPLED // d))
    chosen = np.arange(0) if whole else np.sort(rng.choice(n, size=count, replace=False))
    sample = np.empty((0, 0)) if whole else np.empty((count, d), dtype=float_type(X.dtype))
    low, high = np.full(d, np.inf), np.full(d, -np.inf)
    gaps, taken = False, 0
    for part, batch in batches_of(X):
        gaps |= _check_finite(batch, part.start, allow_nan, names)
        # gaps are no values
        low, high = np.fmin(low, np.fmin.reduce(batch, axis=0)), np.fmax(high, np.fmax.reduce(batch, axis=0))
        if not whole:
            here = chosen[taken : np.searchsorted(chosen, part.stop)]
            sample[taken : taken + len(here)] = batch[here - part.start]
            taken += len(here)
    there = high >= low
    low, high = np.where(there, low, 0.0), np.where(there, high, 0.0)
    varies = high > low
    rows = np.asarray(X, dtype=float_type(X.dtype)) if whole else sample
    if not whole:  # a column that varies in none of so many rows is as good as constant
        varies &= np.fmax.reduce(rows, axis=0) > np.fmin.reduce(rows, axis=0)
    return Survey(_in_range(rows, low, high, varies, X, names), varies, gaps)


def check_enough(rows: int, columns: int, held_out: int | None = None) -> None:
    """Refuse fewer rows than the covariance of columns needs, of which one in ``held_out`` is held out."""
    needed = next(n for n in itertools.count(columns + 1) if held_out is None or n - n // held_out >= columns)
    if rows < needed:
        raise InputError(f"{rows} rows are too few for the covariance of {columns} columns: give at least {needed}")


def _check_finite(batch: NDArray, start: int, allow_nan: bool, names: Any) -> bool:
    """Whether a batch has gaps; an InputError where it has what it may not have."""
    finite = np.isfinite(batch)
    if finite.all():
        return False
    bad = np.isinf(batch) if allow_nan else ~finite
    if bad.any():
        row, column = np.argwhere(bad)[0]
        what = "infinity" if allow_nan else "NaN or infinity"
        raise InputError(
            f"X holds {what} (row {start + row + 1}, {column_of(int(column), names)}): drop or impute it first"
        )
    return True


def check_finite(X: NDArray, allow_nan: bool, names: Any = None) -> bool:
    """Whether X (n, d) has gaps; an InputError names the first entry that cannot be used."""
    gaps = False
    for part, batch in batches_of(X) if X.dtype.kind == "f" else ():
        gaps |= _check_finite(batch, part.start, allow_nan, names)
    return gaps


def column_of(index: int, names: Any) -> str:
    """A column as people know it: by its name, else by its number from 1 on."""
    return f"column {index + 1}" if names is None else f"column {names[index]!r}"


def _in_range(rows: NDArray, low: NDArray, high: NDArray, varies: NDArray, X: NDArray, names: Any) -> NDArray:
    """Rows in a precision that holds their powers; an InputError where none does."""
    if not varies.any():
        return rows
    size = np.maximum(np.abs(low), np.abs(high))
    largest, widest = float(size.max()), float((high / 2 - low / 2)[varies].max()) * 2
    if largest > _LARGEST:
        column = int(np.argmax(size))
        row = next(
            part.start + int(np.argmax(np.abs(batch[:, column]) == size[column]))
            for part, batch in batches_of(X)
            if (np.abs(batch[:, column]) == size[column]).any()
        )
        raise InputError(
            f"X holds {largest:.3g} (row {row + 1}, {column_of(column, names)}), whose powers overflow: "
            "drop that entry if it is alone, or divide X by a constant first"
        )
    if widest < _LEAST:
        raise InputError(f"X varies by {widest:.3g} at most, whose powers vanish: multiply X by a constant first")
    if rows.dtype == np.float32 and (largest > _LARGEST_SINGLE or widest < _LEAST_SINGLE):
        return rows.astype(np.float64)
    return rows
