"""Select columns: a sheet becomes a table of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError
from symlift.runs.readers.fields import entry_kind, seconds_of_dates
from symlift.runs.readers.options import ReadOptions, column_name, listed, positions
from symlift.runs.readers.table import LeftOut, Sheet, Table
from symlift.storage.bounds import check_size

__all__ = ["select"]


def select(
    path: Path, sheet: Sheet, options: ReadOptions, wanted: Sequence[str] | None = None
) -> Table:
    """Return the columns of a sheet that the options select, as a table.

    Columns without numbers are left out, with a note.  If the file holds all columns named in
    ``wanted``, to which a run was fitted, they are taken by name, whatever else the file holds.
    """
    try:
        label = None if options.index_col is None else _one("--index-col", options.index_col, sheet)
        chosen = _by_name(sheet, wanted) if wanted is not None and not options.transpose else None
        if chosen is None:
            chosen = _chosen(sheet, options, label)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    columns, notes = _readable(sheet, chosen, options, label)
    if not columns:
        kinds = [
            f"{column_name(sheet.names, i)} ({sheet.others[i].kind})"
            for i in chosen
            if i in sheet.others
        ]
        what = f": {listed(kinds)}" if kinds else ""
        text = path.suffix.lower() in (".csv", ".tsv", ".txt") and sheet.width == 1
        remedy = (
            "say with --delimiter what separates them" if text else "give data that is not empty"
        )
        raise InputError(f"{path} has no columns of numbers{what}: {remedy}")
    for i in columns:
        if i in sheet.odd:
            raise InputError(sheet.odd[i])
    rows = _take(path, sheet, columns, options)
    names = (
        None if sheet.names is None else tuple(sheet.names[i] or f"column {i + 1}" for i in columns)
    )
    notes = [*sheet.notes, *notes]
    if options.transpose:
        rows, names = rows.T, _labels(sheet, label)
    elif rows.shape[1] > rows.shape[0]:
        n, d = rows.shape
        notes.append(
            f"there are more columns than rows ({d:,} and {n:,}): where each row is a channel, give"
            " --transpose"
        )
    elif _looks_turned(sheet, columns):
        notes.append(
            "rows have names, and columns numbers: where each row is a channel, give --transpose"
        )
    left_out = () if options.transpose else _left_out(sheet, columns, chosen, label)
    return Table(rows, names, tuple(notes), left_out)


def _left_out(
    sheet: Sheet, columns: list[int], chosen: list[int], label: int | None
) -> tuple[LeftOut, ...]:
    """Return every column of the sheet that is not among ``columns``, and why."""
    taken, asked = set(columns), set(chosen)
    out = []
    for i in range(sheet.width) if len(taken) < sheet.width else ():
        if i in taken or _is_ghost(sheet, i):
            continue
        other = sheet.others.get(i)
        if i == label:
            reason = "labels"
        elif i not in asked:
            reason = "not asked for"
        else:  # numbers that are not taken count the rows
            reason = "index" if other is None else other.kind
        name = "" if sheet.names is None else sheet.names[i]
        out.append(LeftOut(name or f"column {i + 1}", reason))
    return tuple(out)


def _one(option: str, text: str, sheet: Sheet) -> int:
    matches = positions(option, [text], sheet.names, sheet.width)
    if len(matches) != 1:
        raise InputError(f"{option} {text} means {len(matches)} columns: give one")
    return matches[0]


def _by_name(sheet: Sheet, wanted: Sequence[str]) -> list[int] | None:
    """Return the positions of the wanted columns; None if names do not identify them."""
    if sheet.names is None or len(set(wanted)) < len(wanted):
        return None
    where = {name: i for i, name in enumerate(sheet.names) if i not in sheet.others}
    unique = all(sheet.names.count(name) == 1 for name in wanted) if len(wanted) < 5_000 else True
    return (
        [where[name] for name in wanted]
        if unique and all(name in where for name in wanted)
        else None
    )


def _chosen(sheet: Sheet, options: ReadOptions, label: int | None) -> list[int]:
    asked = (
        positions("--columns", options.columns, sheet.names, sheet.width)
        if options.columns
        else list(range(sheet.width))
    )
    for i in asked:
        if (
            options.columns
            and i in sheet.others
            and not (options.keep and sheet.others[i].kind == "dates")
        ):
            other = sheet.others[i]
            keep = "give --keep to have its seconds" if other.kind == "dates" else "leave it out"
            raise InputError(
                f"--columns asks for column {column_name(sheet.names, i)}, which holds"
                f" {_holds(sheet, i)}: {keep}"
            )
    dropped = set(positions("--drop", options.drop, sheet.names, sheet.width)) | {label}
    return [i for i in asked if i not in dropped]


def _holds(sheet: Sheet, i: int) -> str:
    other = sheet.others[i]
    return "nothing" if other.kind == "empty" else f"{other.kind} ({other.example!r})"


def _is_ghost(sheet: Sheet, i: int) -> bool:
    """Whether a column is only what a separator at the end of all lines leaves."""
    nameless = sheet.names is None or not sheet.names[i]
    return (
        i == sheet.width - 1 and nameless and i in sheet.others and sheet.others[i].kind == "empty"
    )


def _readable(
    sheet: Sheet, chosen: list[int], options: ReadOptions, label: int | None
) -> tuple[list[int], list[str]]:
    """Return the chosen columns that can be read as numbers, and a note on the others."""
    columns, left = [], []
    counter = None if options.keep or label is not None or options.columns else _row_counter(sheet)
    for i in chosen:
        other = sheet.others.get(i)
        if i == counter:
            left.append(f"{column_name(None, i)} (counts the rows)")
        elif other is None or (options.keep and other.kind == "dates"):
            columns.append(i)
        elif not _is_ghost(sheet, i):
            left.append(f"{column_name(sheet.names, i)} ({other.kind})")
    if not left:
        return columns, []
    many = f"{len(left)} columns are left out: " if len(left) > 1 else "column "
    tail = "" if len(left) > 1 else " is left out"
    dates = any(i in sheet.others and sheet.others[i].kind == "dates" for i in chosen)
    keep = "; --keep keeps dates as seconds" if dates and not options.keep else ""
    return columns, [f"{many}{listed(left, 6)}{tail}{keep}"]


def _row_counter(sheet: Sheet) -> int | None:
    """Return the first column if it has no name and counts the rows (a data frame's index)."""
    if (
        sheet.names is None
        or sheet.names[0]
        or 0 in sheet.others
        or sheet.width < 2
        or len(sheet.rows) < 2
    ):
        return None
    first = np.asarray(sheet.rows[:, 0])
    return (
        0
        if first[0] in (0, 1) and np.array_equal(first, first[0] + np.arange(len(first)))
        else None
    )


def _take(path: Path, sheet: Sheet, columns: list[int], options: ReadOptions) -> NDArray:
    """Return the rows of some columns: a view if they are all, or evenly spaced."""
    dates = [i for i in columns if i in sheet.others]
    inner = np.searchsorted(sheet.at, [i for i in columns if i not in sheet.others])
    steps = np.unique(np.diff(inner))
    rows: NDArray
    if np.array_equal(inner, np.arange(sheet.rows.shape[1])):
        rows = sheet.rows
    elif len(steps) == 1 and steps[0] > 0:
        rows = sheet.rows[:, inner[0] : inner[-1] + 1 : steps[0]]
    else:
        check_size(
            path,
            len(sheet.rows) * max(len(inner), 1) * sheet.rows.dtype.itemsize,
            what="the columns",
        )
        rows = sheet.rows[:, inner]
    if not (dates and options.keep):
        return rows
    seconds = {
        i: seconds_of_dates(
            sheet.others[i].entries, f"{path}, column {column_name(sheet.names, i)}"
        )
        for i in dates
    }
    rest = iter(np.asarray(rows).T)
    return np.column_stack([seconds[i] if i in seconds else next(rest) for i in columns])


def _labels(sheet: Sheet, label: int | None) -> tuple[str, ...] | None:
    """Return the row labels as names of a transposed table's columns, if they are unique."""
    texts = [i for i, other in sheet.others.items() if other.kind == "text"]
    where = label if label is not None else texts[0] if texts else None
    if where is None:
        return None
    if where in sheet.others:
        entries = [" ".join(entry.split()) for entry in sheet.others[where].entries]
    else:
        entries = [f"{value:g}" for value in sheet.rows[:, sheet.at.index(where)]]
    return tuple(entries) if len(set(entries)) == len(sheet.rows) else None


def _looks_turned(sheet: Sheet, columns: list[int]) -> bool:
    """Whether the first column holds unique text and all other columns have numeric names."""
    first = sheet.others.get(0)
    if (
        first is None
        or first.kind != "text"
        or sheet.names is None
        or len(set(first.entries)) < len(first.entries)
    ):
        return False
    return all(entry_kind(sheet.names[i]) == "number" for i in columns)
