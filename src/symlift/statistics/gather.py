"""Dask arrays: every entry is checked on the workers, and a sample of the rows is brought here.

What comes here does not grow with the number of rows: the sample that a fit on one machine takes,
and two numbers for each column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.rows import (
    MAX_SAMPLE,
    Survey,
    float_type,
    refuse_entry,
    sample_size,
    surveyed,
)
from symlift.errors import InputError

__all__ = ["check_shape", "each_block", "gathered", "is_dask", "survey_elsewhere"]

#: blocks whose ranges are joined at once
_JOINED = 16
#: rows that are taken from a larger array; only training uses more
_ROWS = 65_536


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array; Dask itself need not be installed."""
    return type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "map_blocks")


def gathered(X: Any, most: int = MAX_SAMPLE, rows: int = _ROWS, seed: int = 0) -> Any:
    """X itself or, for a Dask array, its rows as a numpy array.

    Of more than ``most`` numbers, a random sample of ``rows`` rows is taken, in their order.  Every
    entry is checked on the workers: infinity is refused even where the sample does not contain it.
    """
    if not is_dask(X):
        return X
    import dask
    import dask.array as da

    check_shape(X)
    n, d = (int(size) for size in X.shape)
    chosen = (
        np.arange(n)
        if n * d <= most
        else np.sort(np.random.default_rng(seed).choice(n, min(rows, n), replace=False))
    )
    infinite = da.isinf(X).any() if X.dtype.kind == "f" else False
    lazy = X if len(chosen) == n else X[chosen]
    values, any_infinite = dask.compute(lazy, infinite)  # type: ignore[attr-defined, no-untyped-call]
    if any_infinite:
        raise InputError("X holds infinity: drop or impute it first")
    return np.asarray(
        values, dtype=values.dtype if values.dtype.kind in "fiub" else float_type(values.dtype)
    )


def check_shape(X: Any) -> None:
    """Refuse a Dask array that is no table, or of unknown size."""
    if X.ndim != 2 or not all(np.isfinite(size) for size in X.shape):
        raise InputError(
            f"X is a Dask array of shape {X.shape}: give rows and columns (n, d) of known number, "
            "as X.compute_chunk_sizes() makes it"
        )


def survey_elsewhere(
    X: Any, rng: np.random.Generator, allow_nan: bool, most: int | None = None
) -> Survey:
    """`symlift.core.rows.survey` of a Dask array, with the same sample for the same generator.

    Ranges of columns are joined where the rows are, and checked there; a block that is lost with
    its worker is computed again by another one. Of arrays of which one machine would take all
    rows, ``most`` come here.
    """
    import dask

    n, d = (int(size) for size in X.shape)
    count = sample_size(n, d) // d or (n if most is None else min(n, most))
    chosen = np.arange(n) if count == n else np.sort(rng.choice(n, size=count, replace=False))
    whole = X.rechunk({1: d})
    starts = np.cumsum([0, *whole.chunks[0][:-1]])
    blocks = whole.to_delayed().ravel()
    ranges = [
        dask.delayed(_range_of)(block, int(start), allow_nan)  # type: ignore[attr-defined]
        for block, start in zip(blocks, starts, strict=True)
    ]
    while len(ranges) > 1:
        ranges = [
            dask.delayed(_joined)(ranges[k : k + _JOINED])  # type: ignore[attr-defined]
            for k in range(0, len(ranges), _JOINED)
        ]
    sample = whole if count == n else whole[chosen]
    (low, high, gaps, bad), rows = dask.compute(ranges[0], sample)  # type: ignore[attr-defined, no-untyped-call]
    if bad is not None:
        refuse_entry(bad[0], bad[1], allow_nan, None)
    return surveyed(np.asarray(rows, dtype=float_type(X.dtype)), low, high, gaps, X, None)


_Range = tuple[NDArray[np.float64], NDArray[np.float64], bool, tuple[int, int] | None]


def _range_of(block: NDArray, start: int, allow_nan: bool) -> _Range:
    """Least and largest entry of each column, whether there are gaps, and the first entry that
    cannot be used.
    """
    block = np.asarray(block, dtype=float_type(block.dtype))
    low, high = np.full(block.shape[1], np.inf), np.full(block.shape[1], -np.inf)
    finite = np.isfinite(block)
    wrong = np.isinf(block) if allow_nan else ~finite
    bad = None
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        bad = (start + int(row), int(column))
    if len(block):
        low = np.fmin(low, np.fmin.reduce(block, axis=0))
        high = np.fmax(high, np.fmax.reduce(block, axis=0))
    return low, high, not finite.all(), bad


def _joined(ranges: list[_Range]) -> _Range:
    low, high, gaps, bad = zip(*ranges, strict=True)
    first = min((one for one in bad if one is not None), default=None)
    return np.fmin.reduce(low), np.fmax.reduce(high), any(gaps), first


def each_block(function: Any, X: Any, width: int) -> Any:
    """Lazily apply a function to each block of whole rows of a Dask array, (n, width)."""
    dtype = float_type(X.dtype)
    whole = X.rechunk({1: X.shape[1]})
    return whole.map_blocks(
        function,
        dtype=dtype,
        chunks=(whole.chunks[0], (width,)),
        meta=np.empty((0, 0), dtype=dtype),
    )
