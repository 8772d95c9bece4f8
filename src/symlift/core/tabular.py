"""Check data frames of any library (pandas, polars) and other things for what is not numbers."""

from __future__ import annotations

import contextlib
import decimal
import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError

__all__ = ["as_frame", "check_frame", "check_kind", "column_names", "numeric_rows"]

#: what entries of a column can be, in the words of a message
_TEXT, _DATES, _COMPLEX, _LARGE = "text", "dates", "complex values", "integers beyond floats"
#: characters of what a library says
_SAID = 150
_NESTED = (list, tuple, np.ndarray)


class _NotNumberError(InputError, TypeError):
    """An entry of another type, for which Python itself raises a TypeError."""


def as_frame(X: Any) -> Any:
    """Tables of pyarrow as data frames, which name their columns; anything else as it is."""
    if type(X).__module__.partition(".")[0] == "pyarrow" and hasattr(X, "to_pandas"):
        with contextlib.suppress(ImportError):  # their numbers can be had without pandas, too
            return X.to_pandas()
    return X


def check_frame(X: Any) -> None:
    """Raise an InputError if a column of a data frame holds dates or text; other types pass."""
    names, kinds = getattr(X, "columns", None), getattr(X, "dtypes", None)
    if names is None or kinds is None:
        return
    listed = [str(name) for name in names]
    if not listed:
        # scikit-learn's own checks look for these words
        raise InputError(
            f"X has 0 feature(s) (shape=({len(X)}, 0)) while a minimum of 1 is required: give a"
            " data frame with columns"
        )
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
            return _DATES
        if str(kind) == "Object":
            return _first_other(X.to_series(position).drop_nulls())
        if kind.is_nested():
            return "lists"
        return "" if kind.is_numeric() or str(kind) in ("Boolean", "Null") else _TEXT
    letter = getattr(kind, "kind", "O")
    if letter in "Mm":
        return _DATES
    if letter == "c":
        return _COMPLEX
    if letter in "SU" or str(kind) in ("string", "str"):
        return _TEXT
    if letter != "O" or not hasattr(X, "iloc"):
        return ""
    return _first_other(X.iloc[:, position].dropna())


def _first_other(entries: Iterable[Any]) -> str:
    """What the first entry is that is no number, "" if all are."""
    return next((what for entry in entries if (what := _what(entry))), "")


def _what(entry: Any) -> str:
    """What an entry is, "" for numbers."""
    if isinstance(entry, str | bytes):
        return _TEXT
    if isinstance(entry, numbers.Real | decimal.Decimal | np.bool_):
        try:
            float(entry)
        except OverflowError:
            return _LARGE
        return ""
    if isinstance(entry, numbers.Complex):
        return _COMPLEX
    if any(hasattr(entry, name) for name in ("isoformat", "total_seconds", "start_time")):
        return _DATES
    return "lists" if isinstance(entry, _NESTED) else f"objects of type {type(entry).__name__}"


def column_names(names: Sequence[str], d: int) -> NDArray[np.object_]:
    """Names of d columns, as scikit-learn keeps them.

    >>> column_names(["a", 2], 2)
    array(['a', '2'], dtype=object)
    """
    if not hasattr(names, "__len__"):
        raise InputError(f"names are of type {type(names).__name__}: give one for each column")
    if len(names) != d:
        raise InputError(f"{len(names)} names were given for {d} columns: give one for each")
    return np.array([str(name) for name in names], dtype=object)


def check_kind(X: Any) -> None:
    """Refuse arrays that do not hold real numbers in rows and columns, in one line."""
    if hasattr(X, "tocsr"):
        raise InputError("X is sparse, and sparse rows are not read: give X.toarray()")
    if type(X).__name__ == "LazyFrame":
        raise InputError("X is a lazy data frame: give X.collect()")
    if isinstance(X, str | bytes) or hasattr(X, "__fspath__"):
        raise InputError(
            f"X is {X!r:.60}, not an array: read the file first, as numpy.load and pandas.read_csv"
            " do, or give it to `symlift recover`"
        )
    dtype = getattr(X, "dtype", None)
    if "bfloat16" in str(dtype):  # numpy has no such numbers
        raise InputError(f"X has the type {dtype}, which numpy lacks: convert it to float32 first")
    kind = getattr(dtype, "kind", "")
    if kind == "c" or getattr(dtype, "is_complex", False):
        raise InputError(
            "Complex data not supported: give real numbers, such as the parts side by side"
        )
    if isinstance(kind, str) and kind and kind in "USMmVT":
        raise InputError(f"X has the type {X.dtype}, which is not numeric: convert it first")
    if isinstance(X, np.ma.MaskedArray) and X.mask.any():
        raise InputError(
            "X is a masked array: give X.filled(np.nan), so that masked entries are gaps"
        )
    _check_axes(getattr(X, "shape", None))


def _check_axes(shape: Any, name: str = "X") -> None:
    """Refuse arrays that have no rows and columns."""
    if not isinstance(shape, tuple) or len(shape) == 2:
        return
    if len(shape) < 2:
        # scikit-learn's own checks look for the words "Reshape your data"
        raise InputError(
            f"{name} has the shape {tuple(shape)}, and rows and columns (n, d) are needed. Reshape"
            f" your data: {name}.reshape(-1, 1) is one column, {name}.reshape(1, -1) one row"
        )
    raise InputError(
        f"{name} has {len(shape)} axes, {tuple(shape)}, and rows and columns (n, d) are needed:"
        f" give {name}.reshape({shape[0]}, -1)"
    )


def numeric_rows(X: Any, name: str = "X") -> NDArray:
    """Something with rows and columns as an array of numbers; refused in one line if it is not.

    >>> numeric_rows([[1, 2], [3, None]])
    array([[ 1.,  2.],
           [ 3., nan]])
    """
    try:
        rows = np.asarray(X)
        if rows.ndim == 0:
            raise InputError(
                f"{name} is of type {type(X).__name__}, no array: give rows and columns of numbers"
            )
        _check_axes(rows.shape, name)
        return rows if rows.dtype.kind in "fiubc" else rows.astype(np.float64)
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise _refusal(X, name, error) from None


def _refusal(X: Any, name: str, problem: Exception) -> InputError:
    """What is wrong with X, which Python or numpy could not make an array."""
    for i, row in enumerate(X if isinstance(X, _NESTED) else ()):
        for j, entry in enumerate(row if isinstance(row, _NESTED) else ()):
            if (what := _what(entry)) and not _is_number(entry):
                # scikit-learn's own checks look for Python's words in a TypeError
                kind = _NotNumberError if isinstance(problem, TypeError) else InputError
                return kind(
                    f"row {i + 1}, column {j + 1} of {name} holds {what}, {entry!r:.40}, but each"
                    " argument must be a real number, or a string of a number: leave it out, or"
                    " give NaN"
                )
    reason = (str(problem).splitlines() or [""])[0][:_SAID]
    return InputError(
        f"{name}, of type {type(X).__name__}, cannot be read as numbers ({reason}): give a table of"
        " numbers whose rows are equally long"
    )


def _is_number(entry: Any) -> bool:
    try:
        float(entry)
    except (TypeError, ValueError, OverflowError):
        return False
    return True
