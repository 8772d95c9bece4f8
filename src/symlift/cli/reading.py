"""Options of the commands that read a data file, and notes on how it was read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from symlift.cli.console import stderr_line
from symlift.runs.readers.options import ReadOptions

__all__ = [
    "Bin",
    "Columns",
    "DataFile",
    "Decimal",
    "Delimiter",
    "Drop",
    "Gap",
    "Header",
    "IndexCol",
    "Keep",
    "Key",
    "Nan",
    "Transpose",
    "note",
    "reading_of",
]

DataFile = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help=(
            "Rows of numbers: .npy, .npz, .csv, .tsv, .txt, .mat, .h5, .nwb, .xlsx, .parquet,"
            " .feather, .zarr, or - (stdin)."
        ),
        allow_dash=True,
    ),
]
_PANEL = "Reading"
Key = Annotated[
    str | None,
    typer.Option(
        help="Which array, variable, sheet or path (/a/b) of the file; units of an .nwb.",
        rich_help_panel=_PANEL,
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        help="Columns to read: names, T*, numbers from 1 on, 2-9.",
        rich_help_panel=_PANEL,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAMES",
        help="Columns to leave out, written in the same way.",
        rich_help_panel=_PANEL,
    ),
]
IndexCol = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The column that labels the rows.", rich_help_panel=_PANEL),
]
Transpose = Annotated[
    bool,
    typer.Option(
        "--transpose", help="Each row of the file is a column of the data.", rich_help_panel=_PANEL
    ),
]
Keep = Annotated[
    bool,
    typer.Option("--keep", help="Keep dates (as seconds) and row numbers.", rich_help_panel=_PANEL),
]
Gap = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NUMBER",
        help="A number that stands for gaps, such as -9999.",
        rich_help_panel=_PANEL,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="CHAR",
        help="Separator of entries: , ; tab or space.",
        show_default="found out",
        rich_help_panel=_PANEL,
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        metavar="CHAR",
        help="Decimal mark: '.' or ','.",
        show_default="found out",
        rich_help_panel=_PANEL,
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line names columns.",
        show_default="found out",
        rich_help_panel=_PANEL,
    ),
]
Bin = Annotated[
    float | None,
    typer.Option(
        "--bin",
        metavar="SECONDS",
        help="Count spikes in bins of this width.",
        show_default="0.1",
        rich_help_panel=_PANEL,
    ),
]
Nan = Annotated[
    str | None,
    typer.Option(
        help="What to do with gaps: drop (rows), mean, or pairwise.",
        show_default="refuse",
        rich_help_panel=_PANEL,
    ),
]


def reading_of(
    key: str | None,
    columns: list[str] | None,
    drop: list[str] | None,
    index_col: str | None,
    transpose: bool,
    keep: bool,
    gap: list[str] | None,
    delimiter: str | None,
    decimal: str | None,
    header: bool | None,
    width: float | None,
) -> ReadOptions:
    """The options as one value, checked."""
    return ReadOptions(
        key,
        tuple(columns or ()),
        tuple(drop or ()),
        index_col,
        transpose,
        keep,
        tuple(gap or ()),
        delimiter,
        decimal,
        header,
        width,
    ).checked()


def note(line: str) -> None:
    """One line on stderr about how a file was read."""
    stderr_line("cyan", "note", line)
