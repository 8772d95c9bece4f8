"""``symlift watch``: follow a growing file or a pipe, and say when columns change places."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from symlift.cli.console import AsJson, Overwrite, Quiet, echo, print_json, stderr_line
from symlift.cli.reading import (
    Columns,
    Decimal,
    Delimiter,
    Drop,
    Gap,
    Header,
    IndexCol,
    Keep,
    note,
    reading_of,
)
from symlift.errors import FitWarning, InputError

__all__ = ["watch"]


def watch(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA", help="A growing .csv, .tsv or .txt file, or - (stdin).", allow_dash=True
        ),
    ],
    grid: Annotated[
        str, typer.Option(help="Its shape: 63, 15x15, 6x6x6; scattered; or auto.")
    ] = "auto",
    periodic: Annotated[
        bool, typer.Option("--periodic", help="The grid closes on itself (ring, torus).")
    ] = False,
    batch: Annotated[
        int, typer.Option(min=20, metavar="ROWS", help="Rows that are compared at once.")
    ] = 200,
    half_life: Annotated[
        float | None,
        typer.Option(metavar="ROWS", help="A row has half of its weight after so many."),
    ] = None,
    idle: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Stop when a file has not grown for so long.", min=0.0
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed.")] = 0,
    out: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Save the last fit in this folder.")
    ] = None,
    overwrite: Overwrite = False,
    columns: Columns = None,
    drop: Drop = None,
    index_col: IndexCol = None,
    keep: Keep = False,
    gap: Gap = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    header: Header = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 3 if columns have changed places.")
    ] = False,
) -> None:
    """Follow rows that keep coming, and say when columns exchange places, as it happens.

    Example: logger | symlift watch - --grid 8x8
    """
    from symlift import LatentDomain
    from symlift.runs.follow import lines_of, tables_of

    reading = reading_of(
        None, columns, drop, index_col, False, keep, gap, delimiter, decimal, header, None
    )
    if out is not None and out.exists() and not overwrite:
        raise InputError(f"{out} exists: give --overwrite, or another folder")
    est = LatentDomain(grid, periodic=periodic, mixing="shuffled", random_state=seed)
    ended, names = "the rows have ended", None
    try:
        for table in tables_of(data, lines_of(data, idle), batch, reading):
            if not hasattr(est, "stream_") and not quiet:
                for line in table.notes:
                    note(line)
            _add(est, table, half_life, as_json, quiet)
            names = table.names
    except KeyboardInterrupt:  # the usual end of a watch
        ended = "stopped"
    if not hasattr(est, "stream_"):
        raise InputError(f"{data} had no rows: give a file that is written to, or a pipe")
    _say_end(est, ended, as_json)
    if out is not None:
        if hasattr(est, "model_"):
            if names is not None:
                est.name_columns(names)
            est.save(out, overwrite=overwrite)
        else:
            stderr_line("yellow", "warning", "there were too few rows for a fit: nothing is saved")
    if exit_code and est.stream_.exchanges:
        raise typer.Exit(3)


def _add(est: Any, table: Any, half_life: float | None, as_json: bool, quiet: bool) -> None:
    """Add a batch; an exchange is one line on the standard output, at once."""
    known = len(est.stream_.exchanges) if hasattr(est, "stream_") else 0
    with warnings.catch_warnings():
        # said below, where pipes can read it
        warnings.filterwarnings("ignore", ".* have exchanged places", FitWarning)
        if quiet:
            warnings.simplefilter("ignore")
        est.partial_fit(table.rows, half_life=half_life)
    for one in est.stream_.exchanges[known:]:
        if as_json:
            print_json(_exchange(one, table.names))
        else:
            echo(one.words(table.names).partition(":")[0])


def _exchange(one: Any, names: Any) -> dict[str, Any]:
    def who(columns: Any) -> list[Any]:
        return [int(c) + 1 if names is None else names[c] for c in columns]

    return {
        "batch": one.batch,
        "first_row": one.first_row + 1,
        "columns": who(one.columns),
        "places": who(one.places),
    }


def _say_end(est: Any, ended: str, as_json: bool) -> None:
    stream = est.stream_
    grid = str(est.grid_) if hasattr(est, "model_") else None
    if as_json:
        print_json(
            {
                "rows": stream.rows,
                "batches": stream.batches,
                "exchanges": len(stream.exchanges),
                "grid": grid,
            }
        )
        return
    count = len(stream.exchanges)
    changed = "no columns have changed places" if not count else f"exchanges of columns: {count}"
    echo(f"{ended}: {stream.rows:,} rows in {stream.batches:,} batches, {changed}")
    echo(f"grid: {grid}" if grid else "grid: none yet, there were too few rows")
