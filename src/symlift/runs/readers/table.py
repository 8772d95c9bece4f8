"""What every reader gives back, and the checks and words that readers share."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError
from symlift.runs.readers.options import listed

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["Other", "SeveralError", "Sheet", "Table", "brief", "check_rows", "choose", "extra"]


class SeveralError(InputError):
    """A file holds several arrays, and which is meant was not said; ``there`` names them."""

    def __init__(self, path: Path, what: str, there: list[str]) -> None:
        super().__init__(f"{path} holds several {what}s: choose one with --key, from {listed(there)}")
        self.there = tuple(there)


class Table(NamedTuple):
    """Rows (n, d) of numbers, the names of the columns where the file has them, and notes on how they were read."""

    rows: NDArray
    names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    def to_frame(self) -> DataFrame:
        """The rows as a pandas frame, with the names of the columns; ``LatentDomain.fit`` takes it as it is."""
        from pandas import DataFrame

        return DataFrame(self.rows, columns=None if self.names is None else list(self.names))


@dataclass(frozen=True)
class Other:
    """A column that does not hold numbers: its kind ("dates", "text" or "empty"), and its entries."""

    kind: str
    entries: list[str]

    @property
    def example(self) -> str:
        """The first entry, shortened."""
        first = next((entry.strip() for entry in self.entries if entry.strip()), "")
        return first if len(first) <= 30 else first[:27] + "..."


@dataclass(frozen=True)
class Sheet:
    """What is in a file, before columns are chosen.

    ``rows`` (n, k) holds the columns ``at`` of ``width`` ones; ``others`` are those that hold no numbers.  ``names`` are of all.
    ``odd`` says of columns of numbers which entry is none: they are refused, unless they are left out.
    """

    rows: NDArray
    width: int
    at: tuple[int, ...]
    names: tuple[str, ...] | None = None
    others: dict[int, Other] = field(default_factory=dict)
    odd: dict[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, rows: NDArray, names: tuple[str, ...] | None = None, notes: tuple[str, ...] = ()) -> Sheet:
        """A sheet of numbers only."""
        return cls(rows, rows.shape[1], tuple(range(rows.shape[1])), names, notes=notes)


def check_rows(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """The one check of every array that enters: two axes, something in them, and numbers.  Nothing is read for it."""
    if dtype.kind == "c":
        raise InputError(f"{path} holds complex numbers: save real and imaginary parts as columns of their own")
    if dtype.kind == "O":
        raise InputError(f"{path} holds Python objects, which are never loaded: save a plain array of numbers")
    if dtype.kind not in "fiub":
        what = "text" if dtype.kind in "SU" else f"{dtype} entries" if dtype.names is None else "named fields"
        raise InputError(f"{path} holds {what}, not numbers: save a plain array of numbers")
    if dtype.kind == "f" and dtype.itemsize > 8:
        raise InputError(f"{path} holds numbers of {dtype.itemsize} bytes: save them in double precision")
    if len(shape) != 2:
        size = tuple(int(s) for s in shape)
        if len(size) > 2:
            inner = "x".join(map(str, size[1:]))
            remedy = f"flatten each sample, X.reshape({size[0]}, {math.prod(size[1:])}), and give --grid {inner}"
        else:
            remedy = "save a table with one row for each sample, X.reshape(n, d)"
        raise InputError(f"{path} has shape {size}, but rows and columns (n, d) are needed: {remedy}")
    if 0 in shape:
        raise InputError(
            f"{path} has no {'rows' if shape[0] == 0 else 'columns'} (shape {tuple(shape)}): give data that is not empty"
        )


def brief(error: BaseException) -> str:
    """An exception in a few words on one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:100]}" if text else type(error).__name__


def choose(path: Path, key: str | None, names: Iterable[str], what: str = "array") -> str:
    """The one array that is meant."""
    there = list(names)
    if not there:
        raise InputError(f"{path} holds no {what}s: write it again")
    if key is None:
        if len(there) > 1:
            raise SeveralError(path, what, there)
        return there[0]
    if key not in there:
        raise InputError(f"{path} has no {what} {key!r}: choose one with --key, from {listed(there)}")
    return key


def extra(module: str, path: Path) -> Any:
    """A module of the extra ``data``, or one line that names it."""
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise InputError(
            f"{path} needs {package}, which is not installed: pip install 'symlift[data]', or save it as .npy"
        ) from None
