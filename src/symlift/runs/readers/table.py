"""The types that readers return, and the checks and messages that they share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
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

__all__ = [
    "LeftOut", "Other", "SeveralError", "Sheet", "Table", "brief", "check_rows", "choose_key",
    "extra",
]  # fmt: skip


class SeveralError(InputError):
    """A file holds several arrays and none was chosen; ``names`` lists them."""

    def __init__(self, path: Path, what: str, names: list[str]) -> None:
        super().__init__(
            f"{path} holds several {what}s: choose one with --key, from {listed(names)}"
        )
        self.names = tuple(names)


@dataclass(frozen=True)
class LeftOut:
    """A column of a file that is not part of its table.

    Parameters
    ----------
    name : str
        Its name, or "column 3" where it has none.
    reason : {"dates", "text", "empty", "index", "labels", "not asked for"}
        What it holds, or that the options leave it out.

    Examples
    --------
    >>> LeftOut("time", "dates").asked_away, LeftOut("T07", "not asked for").asked_away
    (False, True)
    """

    name: str
    reason: str

    @property
    def asked_away(self) -> bool:
        """Whether the options leave it out, rather than what it holds."""
        return self.reason in ("labels", "not asked for")


class Table(NamedTuple):
    """Hold the rows of a data file, the names of its columns, and notes on how it was read.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        The numbers; gaps are NaN.
    names : tuple of str, optional
        Names of the d columns; None where the file has none.
    notes : tuple of str, default=()
        What was skipped, detected or converted, one sentence each.
    left_out : tuple of LeftOut, default=()
        The columns of the file that are not among the d, in its order.

    Examples
    --------
    >>> table = Table(np.eye(2), ("left", "right"))
    >>> table.rows.shape, table.names
    ((2, 2), ('left', 'right'))
    """

    rows: NDArray
    names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def to_frame(self) -> DataFrame:
        """Convert to a pandas frame, which ``LatentDomain.fit`` takes with its column names.

        Returns
        -------
        pandas.DataFrame
            The rows, with the names of the columns where there are any.

        Examples
        --------
        >>> Table(np.eye(2), ("left", "right")).to_frame()
           left  right
        0   1.0    0.0
        1   0.0    1.0
        """
        from pandas import DataFrame

        return DataFrame(self.rows, columns=None if self.names is None else list(self.names))


@dataclass(frozen=True)
class Other:
    """A column without numbers: its kind ("dates", "text" or "empty") and its entries."""

    kind: str
    entries: list[str]

    @property
    def example(self) -> str:
        """The first entry that is not blank, shortened."""
        first = next((entry.strip() for entry in self.entries if entry.strip()), "")
        return first if len(first) <= 30 else first[:27] + "..."


@dataclass(frozen=True)
class Sheet:
    """The content of a file, before columns are selected.

    ``rows`` (n, k) holds the columns ``at`` out of ``width``; ``others`` are the columns without
    numbers.  ``names`` covers all columns.  ``odd`` maps a column of numbers to the entry in it
    that is not a number: such columns are refused unless they are left out.
    """

    rows: NDArray
    width: int
    at: Sequence[int]
    names: tuple[str, ...] | None = None
    others: dict[int, Other] = field(default_factory=dict)
    odd: dict[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, rows: NDArray, names: tuple[str, ...] | None = None, notes: tuple[str, ...] = ()
    ) -> Sheet:
        """Return a sheet that holds numbers only."""
        return cls(rows, rows.shape[1], range(rows.shape[1]), names, notes=notes)


def check_rows(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Refuse an array that has not two axes, is empty or does not hold numbers; read no data."""
    if dtype.kind == "c":
        raise InputError(
            f"{path} holds complex numbers: save real and imaginary parts as columns of their own"
        )
    if dtype.kind == "O":
        raise InputError(
            f"{path} holds Python objects, which are never loaded: save a plain array of numbers"
        )
    if dtype.kind not in "fiub":
        content = (
            "text"
            if dtype.kind in "SU"
            else f"{dtype} entries"
            if dtype.names is None
            else "named fields"
        )
        raise InputError(f"{path} holds {content}, not numbers: save a plain array of numbers")
    if dtype.kind == "f" and dtype.itemsize > 8:
        raise InputError(
            f"{path} holds numbers of {dtype.itemsize} bytes: save them in double precision"
        )
    if len(shape) != 2:
        size = tuple(int(s) for s in shape)
        if len(size) > 2:
            inner = "x".join(map(str, size[1:]))
            remedy = (
                f"flatten each sample, X.reshape({size[0]}, {math.prod(size[1:])}), and give --grid"
                f" {inner}"
            )
        else:
            remedy = "save a table with one row for each sample, X.reshape(n, d)"
        raise InputError(
            f"{path} has shape {size}, but rows and columns (n, d) are needed: {remedy}"
        )
    if 0 in shape:
        raise InputError(
            f"{path} has no {'rows' if shape[0] == 0 else 'columns'} (shape {tuple(shape)}): give"
            " data that is not empty"
        )


def brief(error: BaseException) -> str:
    """Shorten an exception to a few words on one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:100]}" if text else type(error).__name__


def choose_key(path: Path, key: str | None, names: Iterable[str], what: str = "array") -> str:
    """Return the name of the array to read: ``key``, or the only one there is."""
    available = list(names)
    if not available:
        raise InputError(f"{path} holds no {what}s: write it again")
    if key is None:
        if len(available) > 1:
            raise SeveralError(path, what, available)
        return available[0]
    if key not in available:
        raise InputError(
            f"{path} has no {what} {key!r}: choose one with --key, from {listed(available)}"
        )
    return key


def extra(module: str, path: Path) -> Any:
    """Import a module of the extra ``data``, or raise an error that names the extra."""
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise InputError(
            f"{path} needs {package}, which is not installed: pip install 'symlift[data]', or save"
            " it as .npy"
        ) from None
