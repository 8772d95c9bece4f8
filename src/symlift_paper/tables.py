"""Tables of measured numbers: medians and worst seeds, as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symlift.storage.atomic import write_atomically
from symlift.storage.strict_json import dumps

__all__ = ["ResultTable", "Spread", "spread"]


@dataclass(frozen=True)
class Spread:
    """One number over seeds: the median and the worst.

    The worst is the smallest: all numbers here are better when larger.

    >>> Spread((0.9, 0.5, 0.8))
    0.800 (0.500)
    """

    values: tuple[float, ...]
    digits: int = 3

    @property
    def median(self) -> float:
        """The middle seed."""
        return statistics.median(self.values)

    @property
    def worst(self) -> float:
        """The least of all seeds."""
        return min(self.values)

    def __repr__(self) -> str:
        if len(self.values) == 1:
            return f"{self.median:.{self.digits}f}"
        return f"{self.median:.{self.digits}f} ({self.worst:.{self.digits}f})"


def spread(values: Iterable[float | Sequence[float] | None], digits: int = 3) -> Spread | None:
    """The spread of numbers over seeds, or None if there are none.

    A seed with several axes counts with their mean.

    >>> spread([[0.9, 0.7], [0.8, 0.8], None]), spread([None])
    (0.800 (0.800), None)
    """
    numbers = [
        statistics.fmean(v) if isinstance(v, Sequence) else v
        for v in values
        if v is not None and v != []
    ]
    return Spread(tuple(float(v) for v in numbers), digits) if numbers else None


@dataclass(frozen=True)
class ResultTable:
    """Rows with the same columns.  A cell is a text, a number, a `Spread`, or None for nothing."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]] = ()
    #: what is missing, and other remarks for the reader
    notes: Sequence[str] = ()

    def markdown(self) -> str:
        """A table for people: medians with the worst seed in brackets."""
        lines = ["| " + " | ".join(self.columns) + " |", "|" + "---|" * len(self.columns)]
        lines += [
            "| " + " | ".join(_text(row.get(column)) for column in self.columns) + " |"
            for row in self.rows
        ]
        return (
            "\n".join(
                [*lines, *([""] if self.notes else []), *(f"- {note}" for note in self.notes)]
            )
            + "\n"
        )

    def csv(self) -> str:
        """A table for programs: a spread has three columns, median, worst and number of seeds."""
        wide = [c for c in self.columns if any(isinstance(row.get(c), Spread) for row in self.rows)]
        header = [
            n
            for c in self.columns
            for n in ((c, f"{c}: worst", f"{c}: seeds") if c in wide else (c,))
        ]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(header)
        for row in self.rows:
            cells: list[Any] = []
            for column in self.columns:
                value = row.get(column)
                if isinstance(value, Spread):
                    cells += [value.median, value.worst, len(value.values)]
                else:
                    cells += [value] + [None, None] * (column in wide)
            writer.writerow(cells)
        return out.getvalue()

    def json(self) -> str:
        """Everything, with the number of every seed."""
        rows = [{column: _plain(row.get(column)) for column in self.columns} for row in self.rows]
        content = {"name": self.name, "title": self.title, "rows": rows, "notes": list(self.notes)}
        return dumps(content, indent=1) + "\n"

    def write(self, folder: Path) -> list[Path]:
        """NAME.md, NAME.csv and NAME.json in ``folder``."""
        folder.mkdir(parents=True, exist_ok=True)
        made = []
        for ending, text in (("md", self.markdown()), ("csv", self.csv()), ("json", self.json())):
            path = folder / f"{self.name}.{ending}"
            with write_atomically(path) as temporary:
                temporary.write_text(text, encoding="utf-8")
            made.append(path)
        return made


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value).replace("|", "\\|")


def _plain(value: Any) -> Any:
    if isinstance(value, Spread):
        return {"median": value.median, "worst": value.worst, "values": list(value.values)}
    return value
