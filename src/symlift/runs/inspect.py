"""Describe a data file and whether a model can be fitted to it; nothing is fitted."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from shlex import join
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.rows import row_batches
from symlift.errors import InputError
from symlift.runs.accounts import units_in_words
from symlift.runs.readers import ReadOptions, Table, read_table
from symlift.runs.readers.gaps import count_gaps
from symlift.runs.readers.marks import known_marks, marks_in_words, with_marks
from symlift.runs.readers.options import (
    as_typed,
    column_given,
    column_name,
    listed,
    path_as_typed,
)
from symlift.runs.readers.table import SeveralError
from symlift.search.settings import PlaceSettings
from symlift.statistics.dependence import effective_rank, independent_rows
from symlift.storage.free_memory import size_of

__all__ = ["Inspection", "inspect"]

_KEYS = 12  # arrays of a file that are tried
_SAMPLED, _NUMBERS = 20_000, 20_000_000  # largest numbers of rows and entries that are sorted


@dataclass(frozen=True)
class Inspection:
    """Description of a data file, by `inspect`.

    Parameters
    ----------
    file : str
        Its name.
    contents : tuple of str
        Names of the arrays in it, if there are several and none was chosen; all other fields are
        then empty.
    rows, columns : int
        Shape of the table.
    left_out : dict of str to str
        Columns of the file that are not in the table, and what they hold.
    dtype : str
        Type of its numbers.
    names : tuple of str, optional
        Names of the columns.
    notes : tuple of str
        What was skipped or detected while reading.
    gaps : int
        Number of rows with gaps.
    columns_with_gaps : dict of str to int
        Number of gaps in each column that has any.
    infinite : int
        Number of infinite entries.
    constant, index_like, alike : tuple of str
        Columns that do not vary, that count the rows, and that repeat an earlier one.
    odd_units : str
        Which columns differ from the rest in unit or kind, as a sentence; "" if none do.
    duplicate_rows : int
        Rows that repeat another one, among the first 20,000 (fewer if there are many columns).
    independent : float, optional
        Number of independent rows that carry as much information; less than ``rows`` if
        successive rows depend on each other.
    rank : float, optional
        Effective number of directions in which the columns vary.
    problems : tuple of str
        What has to be corrected first; empty if the file is fit for recovery.
    command : str
        What to run next; "" if nothing can be fitted to the file as it is.
    """

    file: str
    contents: tuple[str, ...] = ()
    rows: int = 0
    columns: int = 0
    left_out: dict[str, str] = field(default_factory=dict)
    dtype: str = ""
    names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    gaps: int = 0
    columns_with_gaps: dict[str, int] = field(default_factory=dict)
    infinite: int = 0
    constant: tuple[str, ...] = ()
    index_like: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()
    odd_units: str = ""
    duplicate_rows: int = 0
    independent: float | None = None
    rank: float | None = None
    problems: tuple[str, ...] = ()
    command: str = ""

    @property
    def fit(self) -> bool:
        """Whether a model can be fitted to the file as it is."""
        return not self.contents and not self.problems

    def lines(self) -> list[str]:
        """Return the description as lines of text."""
        if self.contents:
            return [f"{self.file} holds {listed(self.contents, 100)}", f"next: {self.command}"]
        size = size_of(self.rows * self.columns * np.dtype(self.dtype).itemsize)
        every = self.columns + len(self.left_out)
        numbers = f", {self.columns:,} of them numbers" if self.left_out else ""
        out = [
            f"{self.file}: {self.rows:,} rows of {every:,} columns{numbers}, {self.dtype}, {size}"
        ]
        out += [f"names: {listed(self.names, 8)}"] if self.names is not None else []
        out += [f"note: {line}" for line in self.notes]
        worst = sorted(self.columns_with_gaps.items(), key=lambda item: -item[1])[:3]
        where = ", ".join(f"{name} ({count:,})" for name, count in worst)
        out.append(
            f"gaps: {self.gaps:,} of {self.rows:,} rows" + (f", most in {where}" if where else "")
        )
        for kind, columns in (
            ("constant", self.constant),
            ("row numbers", self.index_like),
            ("repeated", self.alike),
        ):
            out += [f"{kind}: columns {listed(columns, 8)}"] if columns else []
        out += [f"note: {self.odd_units}"] if self.odd_units else []
        out += [f"repeated rows: {self.duplicate_rows:,}"] if self.duplicate_rows else []
        if self.independent is not None and self.rank is not None:
            dependent = (
                ": they follow each other in time" if self.independent < 0.5 * self.rows else ""
            )
            out.append(f"rows are worth {self.independent:,.0f} independent ones{dependent}")
            out.append(f"columns use {self.rank:.1f} directions")
        out += [f"problem: {problem}" for problem in self.problems]
        if not self.command:
            return [*out, "not fit for recovery"]
        out.append(f"{'fit' if self.fit else 'not yet fit'} for recovery")
        out.append(f"next: {self.command}")
        return out


def inspect(
    path: Path, options: ReadOptions, nan: str | None = None, shown: Path | None = None
) -> Inspection:
    """Describe a data file; ``shown`` is its name in the output, if that differs from ``path``."""
    name = path_as_typed(str(path if shown is None else shown))
    try:
        table = read_table(path, options=options)
    except SeveralError as error:
        words = ["--key", _readable_key(path, options, error.names)]
        return Inspection(
            str(path if shown is None else shown),
            contents=error.names,
            command=_command("inspect", name, options, nan, words),
        )
    marks = known_marks(table.rows)
    table = with_marks(path, table, (*marks,))
    gaps, of_column = count_gaps(table.rows)
    constant, infinite = _extremes(table.rows)
    sample = _sample(table.rows)
    varying = np.flatnonzero(~constant)
    ramps = _ramps(sample[:, varying])
    index, measured = varying[ramps], varying[~ramps]
    judged = np.zeros(len(constant), dtype=bool)
    judged[measured] = True
    counts: dict[str, Any] = {
        "rows": table.rows.shape[0],
        "columns": table.rows.shape[1],
        "left_out": {one.name: one.reason for one in table.left_out if not one.asked_away},
        "dtype": str(table.rows.dtype),
        "names": table.names,
        "notes": table.notes,
        "gaps": int(gaps.sum()),
        "infinite": int(infinite.sum()),
        "columns_with_gaps": {
            _name(table, int(i)): int(of_column[i]) for i in np.flatnonzero(of_column)
        },
        "constant": _names(table, np.flatnonzero(constant)),
        "index_like": _names(table, index),
        "alike": _names(table, _repeated(sample)),
        "odd_units": units_in_words(table.rows, table.names, [judged]),
        "duplicate_rows": _duplicates(sample),
    }
    if len(measured) and not counts["infinite"]:
        few = sample[:, measured]
        counts |= {
            "independent": independent_rows(few) * table.rows.shape[0] / len(few),
            "rank": effective_rank(few),
        }
    problems, remedy = _problems(counts, len(measured), nan)
    if marks:
        problems.insert(0, marks_in_words(marks))
        remedy += [word for mark in marks for word in ("--gap", mark)]
    for i in np.flatnonzero(infinite):
        remedy += ["--drop", column_given(table.names, int(i))]
    hopeless = len(measured) < 2 or np.sum(infinite[measured] == 0) < 2
    return Inspection(
        str(path if shown is None else shown),
        **counts,
        problems=tuple(problems),
        command="" if hopeless else _command("recover", name, options, nan, remedy),
    )


def _readable_key(path: Path, options: ReadOptions, names: tuple[str, ...]) -> str:
    """Return the first of several arrays that is a table of numbers; a size may follow its name."""
    for name in names[:_KEYS]:
        for key in (name, name.rpartition(" (")[0]):
            try:
                rows = read_table(path, key, options).rows if key else np.empty((0, 0))
            except InputError:
                continue
            if min(rows.shape) > 1:
                return key
    return names[0].rpartition(" (")[0] or names[0]


def _command(what: str, name: str, options: ReadOptions, nan: str | None, remedy: list[str]) -> str:
    """Return a command on the file, with the options that were given and those that help."""
    given = [] if nan is None else ["--nan", nan]
    return join(["symlift", what, name, *as_typed(options.given()), *given, *remedy])


def _name(table: Table, i: int) -> str:
    return column_name(table.names, i).strip("'")


def _names(table: Table, which: NDArray) -> tuple[str, ...]:
    if table.names is None:  # there may be millions of them
        return tuple(map(str, (which + 1).tolist()))
    return tuple(_name(table, i) for i in which.tolist())


def _extremes(rows: NDArray) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which columns (d,) are constant, and the number of infinite entries of each.

    A memory map is read in batches, never copied whole.
    """
    low = high = np.full(rows.shape[1], np.nan)
    infinite = np.zeros(rows.shape[1], dtype=np.int64)
    for part in row_batches(*rows.shape):
        block = rows[part]
        low, high = (
            np.fmin(low, np.fmin.reduce(block, axis=0)),
            np.fmax(high, np.fmax.reduce(block, axis=0)),
        )
        infinite += np.isinf(block).sum(axis=0) if block.dtype.kind == "f" else 0
    return ~(np.nan_to_num(high) > np.nan_to_num(low)), infinite


def _sample(rows: NDArray) -> NDArray[np.float64]:
    """Return the first rows, in order since some measures depend on time; means replace gaps."""
    some = np.array(rows[: min(_SAMPLED, max(2, _NUMBERS // rows.shape[1]))], dtype=np.float64)
    some[~np.isfinite(some)] = np.nan
    present = np.sum(~np.isnan(some), axis=0)
    mean = np.nansum(some, axis=0) / np.maximum(present, 1)
    return np.where(np.isnan(some), mean, some)


def _ramps(sample: NDArray) -> NDArray[np.bool_]:
    """Return columns that rise or fall with the row number, by the criterion that fits use."""
    settings = PlaceSettings()
    if len(sample) < settings.index_rows:
        return np.zeros(sample.shape[1], dtype=bool)
    from scipy.stats import rankdata

    ranks = rankdata(sample, axis=0) - (len(sample) + 1) / 2
    ramp = np.arange(len(sample)) - (len(sample) - 1) / 2
    size = np.sqrt(np.sum(ranks**2, axis=0) * np.sum(ramp**2))
    return np.abs(ramp @ ranks) > settings.index * np.maximum(size, 1e-300)


def _repeated(sample: NDArray) -> NDArray[np.int64]:
    """Return the columns that equal an earlier one."""
    first = (
        np.unique(sample, axis=1, return_index=True)[1]
        if sample.shape[1] < 5_000
        else np.arange(sample.shape[1])
    )
    return np.setdiff1d(np.arange(sample.shape[1]), first)


def _duplicates(sample: NDArray) -> int:
    """How many rows repeat an earlier one; as bytes, because numpy sorts wide rows for minutes."""
    rows = np.ascontiguousarray(sample + 0.0)  # of two zeros, one
    return len(rows) - len({hashlib.sha256(row).digest() for row in rows})


def _problems(counts: dict[str, Any], varying: int, nan: str | None) -> tuple[list[str], list[str]]:
    """Return the obstacles to a fit, and the options that avoid them."""
    n, d = counts["rows"], counts["columns"]
    problems, remedy = [], []
    if counts["infinite"]:
        problems.append(
            f"{counts['infinite']:,} entries are infinite: correct them in the file, or leave their"
            " columns out"
        )
    if counts["gaps"] and nan in (None, "refuse"):
        complete = n - counts["gaps"]
        remedy = ["--nan", "drop" if complete > max(0.5 * n, 2 * d) else "pairwise"]
        problems.append(
            f"{counts['gaps']:,} of {n:,} rows have gaps: --nan drop keeps {complete:,} rows, "
            "--nan pairwise uses the entries that are present"
        )
    if varying < 2:
        problems.append(f"{varying} of {d} columns vary: a grid needs at least 2")
    if n < 2 or d > n:
        remedy += ["--transpose"] if d > 4 * n else []
        problems.append(
            f"there are more columns than rows ({d:,} and {n:,}): where each row is a channel, give"
            " --transpose"
        )
    return problems, remedy
