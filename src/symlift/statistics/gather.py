"""Dask arrays: every entry is checked on the workers, and a sample of the rows is brought here."""

from __future__ import annotations

from typing import Any

import numpy as np

from symlift.core.rows import MAX_SAMPLE, float_type
from symlift.errors import InputError

__all__ = ["each_block", "gathered", "is_dask"]

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

    if X.ndim != 2 or not all(np.isfinite(size) for size in X.shape):
        raise InputError(
            f"X is a Dask array of shape {X.shape}: give rows and columns (n, d) of known number, "
            "as X.compute_chunk_sizes() makes it"
        )
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
