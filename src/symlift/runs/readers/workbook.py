"""Excel workbooks, ``.xlsx`` (extra ``data``): one sheet, parsed like a text file."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time
from itertools import islice
from pathlib import Path
from typing import IO, Any

from symlift.errors import InputError
from symlift.runs.readers.options import ReadOptions
from symlift.runs.readers.table import Sheet, choose_key, extra
from symlift.runs.readers.text import layout_of, sheet_of
from symlift.storage.bounds import check_size

__all__ = ["read_xlsx"]

_HEAD = 200
_PROLOG = 1 << 16  # bytes in which the first element has to begin
_MOST_ROWS, _MOST_COLUMNS = 1 << 20, 1 << 14


def read_xlsx(path: Path, options: ReadOptions) -> Sheet:
    openpyxl = extra("openpyxl", path)
    _check_archive(path)
    with path.open("rb") as file:  # the library does not close a workbook that it cannot load
        book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        try:
            return _read_book(path, book, options)
        finally:
            book.close()


def _read_book(path: Path, book: Any, options: ReadOptions) -> Sheet:
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    if options.key is None and len(sheets) > 1:  # new workbooks contain unused sheets
        sheets = {
            title: sheet for title, sheet in sheets.items() if next(_records(sheet), None)
        } or sheets
    sheet = sheets[choose_key(path, options.key, sheets, "sheet")]
    sheet.reset_dimensions()  # the size that the file declares may be wrong
    head = list(islice(_records(sheet), _HEAD))
    if not head:
        raise InputError(f"{path}, sheet {sheet.title!r} is empty: choose another one with --key")
    width = max(len(fields) for _, fields in head)
    head = [(line, _padded(fields, width)) for line, fields in head]
    layout = layout_of(path, head, "\t", options)
    return sheet_of(
        path, ((line, _padded(fields, width)) for line, fields in _records(sheet)), layout
    )


def _check_archive(path: Path) -> None:
    """Refuse declared sizes beyond the limits, and entity definitions, which can explode."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if not any(member.filename.startswith("xl/") for member in members):
            raise InputError(f"{path} is an archive, but no workbook: save it as .xlsx, or as .csv")
        declared = sum(member.file_size for member in members)
        check_size(path, declared, path.stat().st_size)
        check_size(
            path, 8 * declared
        )  # an entry takes several times its length in memory while it is read
        for member in members:
            if member.filename.endswith((".xml", ".rels")):
                with archive.open(member) as file:
                    _check_prolog(path, member.filename, file.read(_PROLOG))
            if member.filename.startswith("xl/worksheets/") and member.filename.endswith(".xml"):
                with archive.open(member) as file:
                    _check_extent(path, file)


def _check_prolog(path: Path, name: str, start: bytes) -> None:
    """Refuse definitions before the first element, and encodings in which they would be hidden."""
    prolog = re.split(rb"<[A-Za-z_]", start, maxsplit=1)
    declared = re.search(rb"""encoding\s*=\s*["']([^"']*)""", prolog[0])
    encoding = b"utf-8" if declared is None else declared[1].lower()
    if (
        len(prolog) == 1
        or b"\0" in prolog[0]
        or b"<!" in prolog[0].replace(b"<!--", b"")
        or encoding not in (b"utf-8", b"us-ascii", b"ascii")
    ):
        raise InputError(
            f"{path} defines entities in {name}, or is not UTF-8: save it again with a spreadsheet"
        )


def _check_extent(path: Path, file: IO[bytes]) -> None:
    """Refuse cells beyond any sheet, and rows and columns that memory would have to hold empty."""
    rows = columns = 0
    rest = b""
    while block := file.read(1 << 20):
        text = rest + block
        for cell in re.finditer(rb"""<(?:\w+:)?(?:row|c)\s[^>]*?\br=["']([A-Z]*)(\d*)""", text):
            rows = max(rows, int(cell[2][:18] or 0))
            columns = max(columns, _column(cell[1][:8]))
        rest = text[text.rfind(b"<") :][-4096:]
    if rows > _MOST_ROWS or columns > _MOST_COLUMNS:
        raise InputError(
            f"{path} has a cell in row {rows:,}, column {columns:,}, beyond any sheet: save it"
            " again with a spreadsheet"
        )
    check_size(path, 8 * rows * columns, path.stat().st_size, what="the table")


def _column(letters: bytes) -> int:
    """Return the number of a column, counted from 1."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def _records(sheet: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, entries) of the rows that are not empty."""
    for line, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
        fields = [_text(cell) for cell in cells]
        while fields and not fields[-1].strip():
            fields.pop()
        if fields:
            yield line, fields


def _padded(fields: list[str], width: int) -> list[str]:
    """Append the empty cells at the end of a row, which are not stored."""
    return fields + [""] * (width - len(fields))


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, float):
        return repr(cell)
    return cell.isoformat() if isinstance(cell, datetime | date | time) else str(cell)
