"""Tables as text: ``.csv``, with or without a header."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np

from symlift.errors import InputError
from symlift.runs.readers.table import Table

__all__ = ["read_csv"]

_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*([eE][-+]?\d+)?|\.\d+([eE][-+]?\d+)?|nan|inf|infinity)\s*", re.IGNORECASE)


def read_csv(path: Path, _: str | None) -> Table:
    delimiter, names, skip = _csv_head(path)
    try:
        # comments: a '#' further down is a mistake and should be told
        rows = np.loadtxt(str(path.resolve()), dtype=np.float64, delimiter=delimiter, skiprows=skip, ndmin=2,
                          comments=None, quotechar='"', encoding="utf-8-sig")  # fmt: skip
    except ValueError as error:
        if not isinstance(error, UnicodeDecodeError):
            _locate_csv_error(path, delimiter, names, skip)
        raise
    if rows.size == 0:
        raise InputError(f"{path} has no rows of numbers: give data that is not empty")
    if names is not None and len(names) != rows.shape[1]:
        raise InputError(f"{path} has {len(names)} names in its header, but {rows.shape[1]} columns: make them agree")
    if names is not None and not names[0] and np.array_equal(rows[:, 0], np.arange(len(rows))):
        raise InputError(
            f"{path} counts its rows in a first column without a name: save it without the index (index=False)"
        )
    return Table(rows, names)


def _csv_head(path: Path) -> tuple[str, tuple[str, ...] | None, int]:
    """Delimiter, names of the columns if the first line has them, and how many lines to skip before the numbers.

    A first line is a header where most of it is not numbers, or where it counts its columns from 0 (as pandas writes).
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        before, first = 0, ""
        for line in file:
            if line.strip():
                first = line
                break
            before += 1
    delimiter = max(",;\t", key=first.count)
    marked = first.lstrip().startswith("#")
    fields = next(csv.reader([first.lstrip().lstrip("#") if marked else first], delimiter=delimiter), [])
    fields = [field.strip() for field in fields]
    words = sum(1 for field in fields if not _NUMBER.fullmatch(field))
    labels = fields if fields and fields[0] else fields[1:]  # an index has no name
    counts = len(labels) > 2 and labels == [str(i) for i in range(len(labels))]
    if any(fields) and (marked or counts or 2 * words > len(fields)):
        return delimiter, tuple(fields), before + 1
    return delimiter, None, before


def _locate_csv_error(path: Path, delimiter: str, names: tuple[str, ...] | None, skip: int) -> None:
    """Say which line and which column could not be read; returns where all of them look right."""
    width = None if names is None else len(names)
    with path.open(encoding="utf-8-sig", newline="") as file:
        for _ in range(skip):
            next(file)
        reader = csv.reader(file, delimiter=delimiter)
        for fields in reader:
            line = skip + reader.line_num
            if not fields:
                continue
            width = len(fields) if width is None else width
            if len(fields) != width:
                raise InputError(
                    f"{path}, line {line}: {len(fields)} entries where the lines before have {width}: make all rows equally long"
                )
            for column, field in enumerate(fields, start=1):
                if _NUMBER.fullmatch(field):
                    continue
                if not field.strip():
                    raise InputError(f"{path}, line {line}, column {column} is empty: fill it in or drop the row")
                shown = field if len(field) <= 30 else field[:27] + "..."
                comma = delimiter != "," and _NUMBER.fullmatch(field.replace(",", "."))
                remedy = "write decimals with a point" if comma else "correct it or drop the column"
                raise InputError(f"{path}, line {line}, column {column}: {shown!r} is not a number: {remedy}")
