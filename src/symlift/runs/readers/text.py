"""Text tables (``.csv``, ``.tsv``, ``.txt``): encoding, delimiter, decimals and header."""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from symlift.errors import InputError
from symlift.runs.readers.columns import Columns
from symlift.runs.readers.fields import entry_kind, find_decimal
from symlift.runs.readers.header import is_header, is_units
from symlift.runs.readers.options import ReadOptions
from symlift.runs.readers.table import Sheet
from symlift.storage.bounds import check_size
from symlift.storage.csv_cells import plain_cell

__all__ = ["find_delimiter", "find_encoding", "layout_of", "read_text", "records_of", "sheet_of"]

_HEAD = 200  # number of lines that are examined first
_FEW, _MOST = 20, 200_000  # these many suffice, if they have so many entries
_LONGEST = 16 << 20  # characters of an entry
_WIDE = 20_000  # what kind of entries there are, is judged by the first columns
# the longer marks first: one of UTF-16 begins like one of UTF-32
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SPACE = " "  # any run of blanks
# bytes that do not occur in texts (26 ended files of DOS), and those that Windows' code page leaves
# undefined
_CONTROL = set(range(9)) | set(range(14, 32)) - {26}
_NOT_1252 = {0x81, 0x8D, 0x8F, 0x90, 0x9D}


@dataclass(frozen=True)
class Layout:
    """How to read the lines of a file; ``skip`` records come before the first row of numbers."""

    delimiter: str
    decimal: str
    width: int
    skip: int
    names: tuple[str, ...] | None
    plain: bool  # whether all entries that were examined are numbers
    notes: tuple[str, ...]
    heads: tuple[tuple[str, ...], ...] = ()  # the lines that name the columns and their units


def read_text(path: Path, options: ReadOptions) -> Sheet:
    with _long_fields():
        return _read_text(path, options)


@contextmanager
def _long_fields() -> Iterator[None]:
    """Let one entry be as long as a header of many names is, before its delimiter is known."""
    before = csv.field_size_limit(_LONGEST)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _read_text(path: Path, options: ReadOptions) -> Sheet:
    encoding = find_encoding(path)
    with path.open(encoding=encoding, newline="") as file:
        lines = list(_first_lines(file))
    if not lines:
        raise InputError(f"{path} has no rows of numbers: give data that is not empty")
    delimiter = options.delimiter or find_delimiter(lines, path.suffix.lower(), options.decimal)
    with path.open(encoding=encoding, newline="") as file:
        head = _head(records_of(file, delimiter))
    layout = layout_of(path, head, delimiter, options, text=True)
    check_size(path, 8 * layout.width * (path.stat().st_size * len(lines) // sum(map(len, lines))))
    if encoding not in ("utf-8", "utf-8-sig"):
        layout = Layout(
            **{**vars(layout), "notes": (f"the text is read as {encoding}", *layout.notes)}
        )
    if layout.plain:
        try:
            # the fast way, for files that hold numbers only; a '#' further down is an error and is
            # reported
            rows = np.loadtxt(
                str(path.resolve()),
                dtype=np.float64,
                skiprows=_lines_before(path, encoding, delimiter, layout.skip),
                delimiter=None if delimiter == _SPACE else delimiter,
                ndmin=2,
                comments=None,
                quotechar='"',
                encoding=encoding,
            )
        except ValueError:
            pass  # a gap or a word further down: the careful way counts and names them
        else:
            if rows.shape[1] == layout.width:
                return Sheet.of(rows, layout.names, layout.notes)
    with path.open(encoding=encoding, newline="") as file:
        return sheet_of(path, records_of(file, delimiter), layout)


def _first_lines(file: Iterable[str]) -> Iterator[str]:
    """Yield lines that are not empty, up to a number of lines and of characters."""
    length = 0
    for count, line in enumerate(islice(file, _HEAD * 2)):
        if count >= _FEW and length > _MOST:
            return
        length += len(line)
        if line.strip():
            yield line


def _head(records: Iterable[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """Return the records to be examined: fewer, where they are wide."""
    head: list[tuple[int, list[str]]] = []
    entries = 0
    for record in islice(records, _HEAD):
        if len(head) >= _FEW and entries > _MOST:
            break
        head.append(record)
        entries += len(record[1])
    return head


def sheet_of(path: Path, records: Iterable[tuple[int, list[str]]], layout: Layout) -> Sheet:
    """Convert records, (line, entries), to a sheet."""
    columns = Columns(path, layout.width, layout.names, layout.decimal)
    heads, repeated, comments = set(layout.heads), 0, 0
    for line, fields in islice(records, layout.skip, None):
        if heads and tuple(map(str.strip, fields)) in heads:
            repeated += 1
        elif len(fields) < layout.width and _is_comment(fields):
            comments += 1
        else:
            columns.add(line, fields)
    notes = layout.notes
    if repeated:
        notes = (*notes, f"lines that repeat the header are skipped ({repeated:,})")
    if comments:
        notes = (*notes, f"comments between the rows are skipped ({comments:,})")
    return columns.sheet(notes)


def _is_comment(fields: list[str]) -> bool:
    """Whether a record begins as a comment does; "#N/A" is a gap."""
    first = fields[0].lstrip()
    return first.startswith(("#", "%")) and entry_kind(first) != "gap"


# -- bytes as text ---------------------------------------------------------------------------------


def find_encoding(path: Path) -> str:
    """Detect the encoding: byte order mark, UTF-8, UTF-16 by its zeros, or Latin-1."""
    with path.open("rb") as file:
        start = file.read(4096)
        for mark, name in _MARKS:
            if start.startswith(mark):
                return name
        if b"\0" in start:
            zeros = [start[k::2].count(0) / max(len(start[k::2]), 1) for k in (0, 1)]
            if max(zeros) > 0.4 and min(zeros) < 0.05:
                return "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
            raise InputError(
                f"{path} holds bytes that are not text: give the file its right suffix, or save it"
                " again as UTF-8"
            )
        if _CONTROL & set(start):
            raise InputError(
                f"{path} holds bytes that are not text: give the file its right suffix, or save it"
                " again as UTF-8"
            )
        decoder = codecs.getincrementaldecoder("utf-8")()
        block = start
        try:
            while block:
                decoder.decode(block)
                block = file.read(1 << 20)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            file.seek(0)
            seen = set().union(*iter(lambda: set(file.read(1 << 20)), set()))
            return "cp1252" if seen & set(range(0x80, 0xA0)) and not seen & _NOT_1252 else "latin-1"
    return "utf-8"


def records_of(lines: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, entries) of the lines that are not empty."""
    if delimiter == _SPACE:
        yield from ((i, line.split()) for i, line in enumerate(lines, start=1) if line.strip())
        return
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    for fields in reader:
        if any(field.strip() for field in fields):
            yield reader.line_num, fields


def _lines_before(path: Path, encoding: str, delimiter: str, skip: int) -> int:
    """Return how many lines come before the first row of numbers."""
    if skip == 0:
        return 0
    with path.open(encoding=encoding, newline="") as file:
        return next(islice(records_of(file, delimiter), skip - 1, None))[0]


# -- what separates entries ------------------------------------------------------------------------


def find_delimiter(lines: list[str], suffix: str, decimal: str | None) -> str:
    """Find the delimiter that splits most lines into equally many entries, tabs first."""
    first = lines[0].strip().lower()
    if first.startswith("sep=") and len(first) == 5:  # a line that names the separator, for Excel
        return first[4]
    order = ["\t", ";", "|", ",", _SPACE] if suffix != ".tsv" else ["\t"]
    if decimal == "," and suffix != ".tsv":
        order.remove(",")
    best, share = order[0] if len(order) == 1 else ("," if decimal != "," else ";"), 0.0
    table = [line for line in lines if not line.lstrip().startswith(("#", "%"))] or lines
    for delimiter in order:
        records = [fields for _, fields in records_of(table, delimiter)]
        if delimiter == "," and _cuts_numbers(records):
            continue
        widths = Counter(map(len, records))
        width, count = max(widths.items(), key=lambda item: (item[1], item[0]), default=(0, 0))
        if width > 1 and count / len(table) >= 0.9:
            return delimiter
        if width > 1 and count / len(table) > share + 0.2:
            best, share = delimiter, count / len(table)
    return best


def _cuts_numbers(records: list[list[str]]) -> bool:
    """Whether commas are decimal marks of numbers that blanks separate, as in 1,5 2,5."""
    inner = [field.strip() for fields in records for field in fields[1:-1][:_WIDE]]
    return bool(inner) and 2 * sum(
        re.fullmatch(r"\d+\s+[-+]?\d+", field) is not None for field in inner
    ) > len(inner)


# -- where the table begins ------------------------------------------------------------------------


def layout_of(
    path: Path,
    head: list[tuple[int, list[str]]],
    delimiter: str,
    options: ReadOptions,
    text: bool = False,
) -> Layout:
    """Return how to read records, judged by the first ones, ``head``."""
    records = [fields for _, fields in head]
    marked = [bool(fields) and fields[0].lstrip().startswith(("#", "%")) for fields in records]
    comments = next((i for i, mark in enumerate(marked) if not mark), len(records))
    widths = Counter(len(fields) for fields in records[comments:])
    if not widths:
        raise InputError(f"{path} has no rows of numbers: give data that is not empty")
    width = max(widths.items(), key=lambda item: (item[1], item[0]))[0]
    start, notes = comments, []
    while (
        start < len(records) - 1
        and len(records[start]) < width
        and _is_preamble(records[start:], width, options)
    ):
        start += 1
    decimal = options.decimal or find_decimal(
        [f for fields in records[start:] for f in fields[:_WIDE]], delimiter
    )
    before = [
        fields
        for fields in records[comments:start]
        if not (text and fields[0].lower().startswith("sep="))
    ]
    if before:
        notes.append(
            f"{len(before)} lines before the table are skipped"
            if len(before) > 1
            else "the first line is skipped"
        )
    if decimal == "," and options.decimal is None:
        notes.append("numbers have decimal commas")
    names, skip, more = _names(path, records, comments, start, width, decimal, options)
    if text and names is not None:
        names = tuple(map(plain_cell, names))
    last = before[-1] if before else []
    if (
        names is None
        and options.header is None
        and len(last) > 1
        and all(entry_kind(field) == "text" for field in last)
    ):
        raise InputError(
            f"{path} has {len(last)} names in its header, but {width} columns: make them agree, or"
            " give --no-header"
        )
    body = records[skip:]
    if not body:
        raise InputError(f"{path} has no rows of numbers: give data that is not empty")
    plain = (
        text
        and decimal == "."
        and all(len(f) == width and all(entry_kind(x) == "number" for x in f[:_WIDE]) for f in body)
    )
    plain = plain and not any("," in x for fields in body for x in fields[:_WIDE])
    heads = tuple(
        tuple(map(str.strip, fields)) for fields in records[start:skip] if len(fields) > 1
    )
    return Layout(delimiter, decimal, width, skip, names, plain, (*notes, *more), heads)


def _is_preamble(records: list[list[str]], width: int, options: ReadOptions) -> bool:
    """Whether a short line comes before the table: it has words and is not a header."""
    first, below = records[0], [fields for fields in records[1:] if len(fields) == width]
    if all(entry_kind(field) == "number" for field in first[:_WIDE]):
        return False
    named = options.header is not False and len(first) == width - 1 and len(records[1]) == width
    return not (
        named
        and first != [""]
        and width > 2
        and is_header(first[:_WIDE], [fields[1 : _WIDE + 1] for fields in below], ".")
    )


def _names(
    path: Path,
    records: list[list[str]],
    comments: int,
    start: int,
    width: int,
    decimal: str,
    options: ReadOptions,
) -> tuple[tuple[str, ...] | None, int, list[str]]:
    """Return the column names, the number of records to skip, and notes."""
    first, below = (
        records[start],
        [fields for fields in records[start + 1 :] if len(fields) == width],
    )
    if options.header is False:
        return None, start, []
    notes: list[str] = []
    some = [fields[:_WIDE] for fields in below] or [[""] * width]
    if options.header or is_header(first[:_WIDE], some, decimal):
        names = _fit_names(path, [field.strip() for field in first], below, width)
        if options.header is None and all(
            entry_kind(field, decimal) in ("number", "gap") for field in first[:_WIDE]
        ):
            shown = ", ".join(name for name in names[:3])
            notes.append(
                f"the first line ({shown} …) is taken as a header: --no-header reads it as data"
            )
        start += 1
        if (
            len(below) > 1
            and len(records[start]) == width
            and is_units(records[start][:_WIDE], some[1:], decimal)
        ):
            notes.append("the line below the header holds units and is skipped")
            start += 1
        return names, start, notes
    if comments and start == comments:  # as numpy.savetxt writes a header
        last = list(records[comments - 1])
        last[0] = last[0].lstrip().lstrip("#%").strip()
        if len(last) == width and any(last) and (width > 1 or " " not in last[0]):
            return tuple(field.strip() for field in last), start, []
    return None, start, []


def _fit_names(path: Path, names: list[str], below: list[list[str]], width: int) -> tuple[str, ...]:
    """Match names to columns: drop a trailing delimiter, and allow an unnamed label column."""
    if len(names) == width + 1 and not names[-1]:
        names = names[:-1]
    if len(names) == width - 1:
        trailing = below and all(not fields[-1].strip() for fields in below)
        names = [*names, ""] if trailing else ["", *names]
    if len(names) != width:
        raise InputError(
            f"{path} has {len(names)} names in its header, but {width} columns: make them agree"
        )
    return tuple(names)
