"""Check data frames of any library (pandas, polars) for columns that are not numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError

__all__ = ["check_frame", "check_kind", "column_names"]


def check_frame(X: Any) -> None:
    """Raise an InputError if a column of a data frame holds dates or text; other types pass."""
    names, kinds = getattr(X, "columns", None), getattr(X, "dtypes", None)
    if names is None or kinds is None:
        return
    listed = [str(name) for name in names]
    if len(set(listed)) < len(listed):
        twice = next(name for name in listed if listed.count(name) > 1)
        raise InputError(f"several columns have the name {twice!r}: rename them, or give X.values")
    if any(str(kind).startswith("Sparse[") for kind in np.atleast_1d(np.asarray(kinds, object))):
        raise InputError("X is a sparse data frame: give X.sparse.to_dense()")
    wrong = [
        (name, what)
        for i, (name, kind) in enumerate(zip(names, kinds, strict=True))
        if (what := _other(X, i, kind))
    ]
    if not wrong:
        return
    shown = [str(name) for name, _ in wrong]
    dropped = f"X.drop(columns={shown})" if hasattr(X, "iloc") else f"X.drop({shown})"
    if len(wrong) == 1:
        raise InputError(
            f"column {shown[0]!r} holds {wrong[0][1]}, not numbers: leave it out, {dropped}"
        )
    listing = ", ".join(f"{name!r} ({what})" for name, what in wrong[:6]) + (
        " …" if len(wrong) > 6 else ""
    )
    if len(wrong) > 6:
        dropped = (
            "X.select_dtypes('number')"
            if hasattr(X, "iloc")
            else "X.select(polars.selectors.numeric())"
        )
    raise InputError(f"{len(wrong)} columns hold no numbers, {listing}: leave them out, {dropped}")


def _other(X: Any, position: int, kind: Any) -> str:
    """What a column holds instead of numbers, "" where it may hold them."""
    if hasattr(kind, "is_numeric"):  # polars
        if kind.is_temporal():
            return "dates"
        return "" if kind.is_numeric() or str(kind) in ("Boolean", "Object", "Null") else "text"
    letter = getattr(kind, "kind", "O")
    if letter in "Mm":
        return "dates"
    if letter in "SU" or str(kind) in ("string", "str"):
        return "text"
    if letter != "O" or not hasattr(X, "iloc"):
        return ""
    values = X.iloc[:, position].dropna()
    first = values.iloc[0] if len(values) else 0.0
    if isinstance(first, str | bytes):
        return "text"
    return "dates" if hasattr(first, "isoformat") else ""


def column_names(names: Sequence[str], d: int) -> NDArray[np.object_]:
    """Names of d columns, as scikit-learn keeps them.

    >>> column_names(["a", 2], 2)
    array(['a', '2'], dtype=object)
    """
    if len(names) != d:
        raise InputError(f"{len(names)} names were given for {d} columns: give one for each")
    return np.array([str(name) for name in names], dtype=object)


def check_kind(X: Any) -> None:
    """Refuse arrays that do not hold real numbers, in one line."""
    if hasattr(X, "tocsr"):
        raise InputError("X is sparse, and sparse rows are not read: give X.toarray()")
    dtype = getattr(X, "dtype", None)
    if "bfloat16" in str(dtype):  # numpy has no such numbers
        raise InputError(f"X has the type {dtype}, which numpy lacks: convert it to float32 first")
    kind = getattr(dtype, "kind", "")
    if kind == "c":
        raise InputError(
            "Complex data not supported: give real numbers, such as the parts side by side"
        )
    if isinstance(kind, str) and kind and kind in "USMmV":
        raise InputError(f"X has the type {X.dtype}, which is not numeric: convert it first")
    if isinstance(X, np.ma.MaskedArray) and X.mask.any():
        raise InputError(
            "X is a masked array: give X.filled(np.nan), so that masked entries are gaps"
        )
