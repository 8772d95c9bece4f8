"""What commands share: one progress bar, lines on stderr, and options that several of them have."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from symlift._watch import Watch, printable
from symlift.errors import CostWarning, FitWarning, FolderWarning, InputError

__all__ = ["Steps", "echo", "err", "print_json", "seconds_of", "stderr_line", "table_cell", "warn"]

err = Console(stderr=True)

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on one line.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Errors only.")]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Print each stage and its numbers on stderr, and details of a failure.",
    ),
]


class Steps(Watch):
    """Progress bar on a terminal; lines with --verbose; otherwise nothing."""

    def __init__(self, quiet: bool, verbose: bool = False) -> None:
        super().__init__(err, bar=err.is_terminal and not quiet, lines=verbose)


def seconds_of(text: str) -> float:
    """90, 90s, 40m or 2h in seconds."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([smh]?)", text.strip().lower())
    if match is None:
        raise InputError(f"budget {text!r} is not understood: give a time such as 90s, 40m or 2h")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


def table_cell(value: Any) -> str:
    """A value in a few characters, for a table."""
    if value is None or value == ():
        return ""
    if isinstance(value, list | tuple):
        return " / ".join(table_cell(v) for v in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def echo(text: str) -> None:
    """Print lines on stdout; names of columns and files may hold what would steer a terminal."""
    typer.echo("\n".join(printable(line) for line in text.split("\n")))


def stderr_line(colour: str, word: str, message: str) -> None:
    """One line on stderr, whatever the message holds."""
    shown = printable(" ".join(message.split()))
    err.print(Text.assemble((f"{word}:", colour), " ", shown), soft_wrap=True)


def warn(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Show our own warnings as one line on stderr, and no others."""
    if issubclass(category, CostWarning | FitWarning | FolderWarning):
        stderr_line("yellow", "warning", str(message))


def print_json(value: Any) -> None:
    """One JSON object on one line of stdout; NaN and infinity, which JSON lacks, as null."""
    from symlift.storage.strict_json import plain

    typer.echo(json.dumps(plain(value), allow_nan=False))
