"""Rows of a text file that keeps growing, or of a pipe, batch by batch."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from symlift.errors import InputError
from symlift.runs.readers.options import ReadOptions
from symlift.runs.readers.select import select
from symlift.runs.readers.table import Table
from symlift.runs.readers.text import find_delimiter, find_encoding, layout_of, records_of, sheet_of

__all__ = ["lines_of", "tables_of"]

#: seconds between looks at a file that does not grow
_PAUSE = 0.2
_TEXT = (".csv", ".tsv", ".txt")


def lines_of(path: Path, idle: float | None = None) -> Iterator[str]:
    """Whole lines of a file, and those that are written to it later; ``-`` is the standard input.

    A file is followed until nothing was added for ``idle`` seconds, without an end by default; a
    pipe has an end of its own.
    """
    if str(path) == "-":
        yield from sys.stdin
        return
    if path.suffix.lower() not in _TEXT:
        raise InputError(f"{path} cannot be followed: give a text file (.csv, .tsv, .txt), or -")
    if not path.is_file():
        raise InputError(f"{path} is not a file: give one that is being written, or - for a pipe")
    last, rest = time.monotonic(), ""
    with path.open(encoding=find_encoding(path), newline="") as file:
        while True:
            added = file.read(1 << 20)
            if added:
                last = time.monotonic()
                *whole, rest = (rest + added).split("\n")
                yield from (line + "\n" for line in whole)
                continue
            if path.stat().st_size < file.tell():
                raise InputError(f"{path} was cut short while it was followed: start again")
            if idle is not None and time.monotonic() - last >= idle:
                return  # a line without an end is still being written
            time.sleep(_PAUSE)


def tables_of(path: Path, lines: Iterable[str], size: int, options: ReadOptions) -> Iterator[Table]:
    """Tables of ``size`` rows each, the last one of what is left; how to read them is found out
    from the first.
    """
    whole = (line for line in lines if line.strip())
    some = list(islice(whole, size))
    if not some:
        return
    delimiter = options.delimiter or find_delimiter(some, path.suffix.lower(), options.decimal)
    layout = layout_of(path, list(records_of(some, delimiter)), delimiter, options, text=True)
    some += islice(whole, layout.skip)  # lines before the first row are no rows
    names = None
    while some:
        sheet = sheet_of(path, records_of(some, delimiter), layout)
        table = select(path, sheet, options, names)
        yield table
        names, layout = table.names, replace(layout, skip=0)
        some = list(islice(whole, size))
