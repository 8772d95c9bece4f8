"""Rows that lie on other machines: Dask looks at all of them there, and a sample of them comes here."""

from __future__ import annotations

from typing import Any

import numpy as np

from symlift.core.rows import MAX_SAMPLE, float_type
from symlift.errors import InputError

__all__ = ["each_block", "gathered", "is_dask"]

#: rows of a larger array that come here; no solver but those that train looks at more
_ROWS = 65_536


def is_dask(X: Any) -> bool:
    """Whether X is an array of Dask, which need not be installed to ask."""
    return type(X).__module__.partition(".")[0] == "dask" and hasattr(X, "map_blocks")


def gathered(X: Any, most: int = MAX_SAMPLE, rows: int = _ROWS, seed: int = 0) -> Any:
    """X itself; of an array of Dask, its rows, or a random sample in their order where it holds more than ``most`` numbers.

    Every entry is looked at where it lies: one that is infinite is refused, also where no sample would have met it.
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
        np.arange(n) if n * d <= most else np.sort(np.random.default_rng(seed).choice(n, min(rows, n), replace=False))
    )
    infinite = da.isinf(X).any() if X.dtype.kind == "f" else False
    found, bad = dask.compute(X if len(chosen) == n else X[chosen], infinite)  # type: ignore[attr-defined, no-untyped-call]
    if bad:
        raise InputError("X holds infinity: drop or impute it first")
    return np.asarray(found, dtype=found.dtype if found.dtype.kind in "fiub" else float_type(found.dtype))


def each_block(function: Any, X: Any, width: int) -> Any:
    """function of each block of whole rows of a Dask array, as one that is not computed yet, (n, width)."""
    dtype = float_type(X.dtype)
    whole = X.rechunk({1: X.shape[1]})
    return whole.map_blocks(
        function, dtype=dtype, chunks=(whole.chunks[0], (width,)), meta=np.empty((0, 0), dtype=dtype)
    )
