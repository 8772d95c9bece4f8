"""What every reader gives back, and the checks and words that readers share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError

__all__ = ["Table", "brief", "check_rows", "choose", "extra"]


class Table(NamedTuple):
    """Rows (n, d) of numbers, and the names of the columns where the file has them."""

    rows: NDArray
    names: tuple[str, ...] | None = None


def check_rows(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Two axes, something in them, and numbers."""
    if dtype.kind == "c":
        raise InputError(f"{path} holds complex numbers: save real and imaginary parts as columns of their own")
    if dtype.kind == "O":
        raise InputError(f"{path} holds Python objects, which are never loaded: save a plain array of numbers")
    if dtype.kind not in "fiub":
        what = "text" if dtype.kind in "SU" else f"{dtype} entries" if dtype.names is None else "named fields"
        raise InputError(f"{path} holds {what}, not numbers: save a plain array of numbers")
    if len(shape) != 2:
        size = tuple(int(s) for s in shape)
        if len(size) > 2:
            inner = "x".join(map(str, size[1:]))
            remedy = f"flatten each sample, X.reshape({size[0]}, {math.prod(size[1:])}), and give --grid {inner}"
        else:
            remedy = "save a table with one row a sample, X.reshape(n, d)"
        raise InputError(f"{path} has shape {size}, but rows and columns (n, d) are needed: {remedy}")
    if 0 in shape:
        raise InputError(
            f"{path} has no {'rows' if shape[0] == 0 else 'columns'} (shape {tuple(shape)}): give data that is not empty"
        )


def brief(error: BaseException) -> str:
    """An exception in a few words on one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:100]}" if text else type(error).__name__


def choose(path: Path, key: str | None, names: Iterable[str]) -> str:
    """The one array that is meant."""
    there = list(names)
    listed = ", ".join(there[:12]) + (f" and {len(there) - 12} more" if len(there) > 12 else "")
    if not there:
        raise InputError(f"{path} holds no arrays: write it again")
    if key is None:
        if len(there) > 1:
            raise InputError(f"{path} holds several arrays: choose one with --key, from {listed}")
        return there[0]
    if key not in there:
        raise InputError(f"{path} has no array {key!r}: choose one with --key, from {listed}")
    return key


def extra(module: str, path: Path) -> Any:
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise InputError(
            f"{path} needs {package}, which is not installed: pip install 'symlift[data]', or save it as .npy"
        ) from None
