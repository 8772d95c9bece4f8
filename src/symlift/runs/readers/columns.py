"""Collect columns of entries block by block, and decide what each holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError
from symlift.runs.readers.fields import entry_kind, numbers_of
from symlift.runs.readers.options import column_name, column_option
from symlift.runs.readers.table import Other, Sheet

__all__ = ["Columns"]

_BLOCK = 200_000  # entries that are converted together
_MOST = 500_000  # columns: each takes half a kilobyte and ten microseconds


class Columns:
    """Collects the records of a file one by one; `sheet` returns them as columns."""

    def __init__(self, path: Path, width: int, names: tuple[str, ...] | None, decimal: str) -> None:
        if width > _MOST:
            raise InputError(
                f"{path} has {width:,} columns and entries that are no plain numbers: correct those"
                " entries, or save the array as .npy"
            )
        self.path, self.width, self.names, self.decimal = path, width, names, decimal
        self._block: list[list[str]] = []
        self._lines: list[int] = []
        self._parts: list[list[NDArray[np.float64]]] = [[] for _ in range(width)]
        self._entries: dict[int, list[str]] = {}  # of columns that are not numbers
        self._strays: dict[int, list[tuple[int, str]]] = {}  # (line, entry) in columns that are
        self._rows = 0

    def add(self, line: int, fields: list[str]) -> None:
        """Add a record; all must have the same number of entries."""
        if len(fields) != self.width:
            if (
                len(fields) == self.width + 1 and not fields[-1].strip()
            ):  # a delimiter too many at the end
                fields = fields[:-1]
            else:
                raise InputError(
                    f"{self.path}, line {line}: {len(fields)} entries where other lines have"
                    f" {self.width}: make all rows equally long"
                )
        self._block.append(fields)
        self._lines.append(line)
        if len(self._block) * self.width >= _BLOCK:
            self._convert()

    def _convert(self) -> None:
        if not self._block:
            return
        for j, entries in enumerate(zip(*self._block, strict=True)):
            if j in self._entries:
                self._entries[j] += entries
                continue
            values, odd = numbers_of(entries, self.decimal)
            if not self._parts[j] and len(odd) > np.isfinite(values).sum():
                self._entries[j] = list(entries)
                continue
            self._parts[j].append(values)
            self._strays.setdefault(j, []).extend((self._lines[i], entries[i]) for i in odd)
        self._rows += len(self._block)
        self._block, self._lines = [], []

    def sheet(self, notes: tuple[str, ...]) -> Sheet:
        """Return all records as a sheet."""
        self._convert()
        if not self._rows:
            raise InputError(f"{self.path} has no rows of numbers: give data that is not empty")
        others = {j: Other(self._kind(entries), entries) for j, entries in self._entries.items()}
        at, columns, odd = [], [], {}
        for j, parts in enumerate(self._parts):
            if j in others:
                continue
            values = np.concatenate(parts)
            strays = self._strays[j]
            if strays:
                odd[j] = self._refusal(j, strays)
            elif np.isnan(values).all():
                others[j] = Other("empty", [])
                continue
            at.append(j)
            columns.append(values)
        rows = np.column_stack(columns) if columns else np.empty((self._rows, 0))
        return Sheet(rows, self.width, tuple(at), self.names, others, odd, notes)

    def _kind(self, entries: list[str]) -> str:
        kinds = {entry_kind(entry, self.decimal) for entry in entries[:1000]} - {"gap"}
        return "dates" if kinds == {"dates"} else "text"

    def _refusal(self, j: int, strays: list[tuple[int, str]]) -> str:
        line, entry = strays[0]
        shown = entry if len(entry) <= 30 else entry[:27] + "..."
        name = column_name(self.names, j)
        many = f" ({len(strays):,} such entries of {self._rows:,})" if len(strays) > 1 else ""
        comma = self.decimal == "." and numbers_of([entry], ",")[1] == []
        remedy = (
            "give --decimal ,"
            if comma
            else f"correct it, or leave the column out with --drop {column_option(self.names, j)}"
        )
        return f"{self.path}, line {line}, column {name}: {shown!r} is not a number{many}: {remedy}"
