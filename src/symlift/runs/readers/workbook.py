"""Excel workbooks, ``.xlsx`` (extra ``data``): one sheet, parsed like a text file."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time
from itertools import islice
from pathlib import Path
from typing import Any

from symlift.errors import InputError
from symlift.runs.readers.bounds import check_size
from symlift.runs.readers.options import ReadOptions
from symlift.runs.readers.table import Sheet, choose_key, extra
from symlift.runs.readers.text import layout_of, sheet_of

__all__ = ["read_xlsx"]

_HEAD = 200


def read_xlsx(path: Path, options: ReadOptions) -> Sheet:
    openpyxl = extra("openpyxl", path)
    _check_archive(path)
    book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
    try:
        sheets = {sheet.title: sheet for sheet in book.worksheets}
        if options.key is None and len(sheets) > 1:  # new workbooks contain unused sheets
            sheets = {
                title: sheet for title, sheet in sheets.items() if next(_records(sheet), None)
            } or sheets
        sheet = sheets[choose_key(path, options.key, sheets, "sheet")]
        sheet.reset_dimensions()  # the size that the file declares may be wrong
        head = list(islice(_records(sheet), _HEAD))
        if not head:
            raise InputError(
                f"{path}, sheet {sheet.title!r} is empty: choose another one with --key"
            )
        width = max(len(fields) for _, fields in head)
        head = [(line, _padded(fields, width)) for line, fields in head]
        layout = layout_of(path, head, "\t", options)
        return sheet_of(
            path, ((line, _padded(fields, width)) for line, fields in _records(sheet)), layout
        )
    finally:
        book.close()


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
                    if b"<!" in file.read(4096).replace(b"<!--", b""):
                        raise InputError(
                            f"{path} defines entities in {member.filename}: save it again with a"
                            " spreadsheet"
                        )


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
