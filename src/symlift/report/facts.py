"""What a solver recorded about a fit, as facts, tables and small curves.

Which values a stage records is up to the solver.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import groupby
from typing import Any

from symlift.report.draw import sparkline
from symlift.report.gather import number
from symlift.solvers.contract import Evidence, Stage, Trace

__all__ = ["Blocks", "cut", "flat", "of_evidence", "of_trace", "pretty", "show"]

_MOST_FACTS, _MOST_ROWS, _MOST_COLUMNS, _MOST_TEXT, _MOST_SERIES, _MOST_SETTINGS = (
    24,
    24,
    8,
    80,
    6,
    80,
)
# this many consecutive stages of one name are steps of one process, and drawn as curves
_MANY = 5
_ROUNDING = 5e-7


class Blocks:
    """Contents of a panel: ``facts`` (name, text), ``tables``, ``series`` and ``settings``.

    ``left_out`` counts what did not fit.
    """

    def __init__(self) -> None:
        self.facts: list[tuple[str, str]] = []
        self.tables: list[dict[str, Any]] = []
        self.series: list[dict[str, Any]] = []
        self.settings: list[tuple[str, str]] = []
        self.left_out = 0

    def __bool__(self) -> bool:
        return bool(self.facts or self.tables or self.series)

    def add_facts(self, entries: Iterable[tuple[str, str]]) -> None:
        """Add names and texts, as many as fit."""
        for name, text in entries:
            if len(self.facts) < _MOST_FACTS:
                self.facts.append((pretty(name), text))
            else:
                self.left_out += 1

    def add_series(self, name: str, values: Sequence[float]) -> None:
        """Add numbers in order, as a curve."""
        if len(self.series) >= _MOST_SERIES:
            self.left_out += 1
            return
        first, last = show(values[0]), show(values[-1])
        svg = sparkline(values, f"{pretty(name)}: {len(values)} values from {first} to {last}")
        self.series.append(
            {"name": pretty(name), "svg": svg, "first": first, "last": last, "n": len(values)}
        )

    def add_table(self, title: str, rows: list[dict[str, str]]) -> None:
        """Add a table with one line for each of ``rows``.

        Keys that most rows have become columns, others go into a column of details.
        """
        self.left_out += max(0, len(rows) - _MOST_ROWS)
        rows = rows[:_MOST_ROWS]
        filled: dict[str, int] = {}
        for row in rows:
            for column in row:
                filled[column] = filled.get(column, 0) + 1
        columns = [column for column, count in filled.items() if 2 * count > len(rows)][
            :_MOST_COLUMNS
        ]
        cells = [[row.get(column, "") for column in columns] for row in rows]
        details = [
            ", ".join(f"{_last(k)} {v}" for k, v in row.items() if k not in columns)[:240]
            for row in rows
        ]
        names = [_last(column) for column in columns]
        if any(details):
            names.append("details")
            cells = [[*line, words] for line, words in zip(cells, details, strict=True)]
        numeric = [all(_looks_numeric(line[i]) for line in cells) for i in range(len(names))]
        self.tables.append({"title": title, "columns": names, "rows": cells, "numeric": numeric})


def of_trace(trace: Trace) -> Blocks:
    """The stages as a table, repeated stages as curves, and facts of the training."""
    blocks = Blocks()
    single: list[dict[str, str]] = []
    for name, run in groupby(trace.stages, key=lambda stage: stage.name):
        stages = list(run)
        if len(stages) >= _MANY:
            _add_curves(stages, blocks)
            single.append(
                {
                    "stage": pretty(name),
                    "seconds": show(stages[-1].seconds),
                    "times": show(len(stages)),
                }
            )
        else:
            single += [_row(stage, blocks) for stage in stages]
    if single:
        blocks.add_table("", single)
    if trace.chosen:
        blocks.add_facts([("chosen", show(trace.chosen))])
    training, settings = trace.training, dict(trace.settings)
    if training is not None:
        shown_training = {
            key: value
            for key, value in vars(training).items()
            if key not in ("restarts", "settings")
        }
        blocks.add_facts(("training, " + key, show(value)) for key, value in shown_training.items())
        if len(training.restarts) > 1:
            blocks.add_table("Restarts", [flat(restart) for restart in training.restarts])
        settings |= training.settings
    shown = list(flat(settings).items())
    blocks.settings = [(pretty(name), text) for name, text in shown[:_MOST_SETTINGS]]
    blocks.left_out += len(shown) - len(blocks.settings)
    return blocks


def of_evidence(evidence: Evidence, but: Iterable[str] = ()) -> list[tuple[str, str]]:
    """Names and texts of the solver's evidence, without those named in ``but``.

    The page shows the latter already, computed from other rows.
    """
    left_out = {"found", *but}
    known = (
        (entry.name, getattr(evidence, entry.name))
        for entry in fields(evidence)
        if entry.name not in left_out
    )
    return [(name, show(value)) for name, value in known if value not in (None, "", ())]


def _add_curves(stages: Sequence[Stage], blocks: Blocks) -> None:
    """Add a curve for each value that is a number in all stages."""
    for key in stages[0].values:
        if key not in ("step", "seconds"):
            values = [_plain(stage.values.get(key)) for stage in stages]
            numbers = [value for value in values if value is not None]
            if len(numbers) == len(stages):
                blocks.add_series(key, numbers)


def _row(stage: Stage, blocks: Blocks) -> dict[str, str]:
    """A stage as one line of a table; its long lists of numbers become curves."""
    words: dict[str, Any] = {}
    for key, value in stage.values.items():
        numbers = (
            [_plain(item) for item in value]
            if isinstance(value, list | tuple) and len(value) > 4
            else []
        )
        if numbers and None not in numbers:
            blocks.add_series(key, [item for item in numbers if item is not None])
        else:
            words[key] = value
    return {"stage": pretty(stage.name), "seconds": show(stage.seconds), **flat(words)}


def _plain(value: Any) -> float | None:
    """A finite number that is not a flag."""
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def flat(value: Mapping[str, Any], prefix: str = "", depth: int = 0) -> dict[str, str]:
    """Names and texts: nested mappings as ``outer · inner``."""
    out: dict[str, str] = {}
    for key, item in value.items():
        name = f"{prefix}{key}"
        if isinstance(item, dict) and depth < 2:
            out.update(flat(item, f"{name} · ", depth + 1))
        else:
            out[name] = show(item)
    return out


def _last(name: str) -> str:
    """The key itself, without the names of the mappings around it."""
    return pretty(name.rsplit(" · ", 1)[-1])


def pretty(name: str) -> str:
    """A key as readable text."""
    return cut(name.replace("_", " "))


def show(value: Any) -> str:
    """A value on one short line.

    >>> show(-0.25), show(12000), show([1, 2, 3, 4, 5]), show(float("nan"))
    ('−0.25', '12,000', '5 values (1 → 5)', '–')
    >>> show(-0.0), show(-3e-9), show(10033.0), show(19999.7)
    ('0', '0', '10,033', '20,000')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−") if abs(value) < 10**15 else "very large"
    if isinstance(value, float):
        # a count, or nearly one
        if abs(value) < 1e9 and (value.is_integer() or abs(value) >= 1000):
            return show(round(value))
        text = "–" if math.isnan(value) else "∞" if math.isinf(value) else f"{abs(value):.4g}"
        if abs(value) < _ROUNDING:  # rounding error of numbers of order one, without a sign
            text = "0"
        return f"−{text}" if value < 0 and text != "0" else text
    if isinstance(value, list | tuple):
        if len(value) > 4:
            numbers = [item for item in value if _plain(item) is not None]
            ends = (
                f" ({show(numbers[0])} → {show(numbers[-1])})" if len(numbers) == len(value) else ""
            )
            return f"{len(value)} values{ends}"
        return cut(", ".join(show(item) for item in value)) or "–"
    if isinstance(value, dict):
        return f"{len(value)} entries"
    return cut(str(value))


def cut(text: str, most: int = _MOST_TEXT) -> str:
    """A text on one line, of at most ``most`` characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def _looks_numeric(text: str) -> bool:
    try:
        float(text.replace("−", "-").replace(",", ""))
    except ValueError:
        return text in {"", "–"}
    return True
