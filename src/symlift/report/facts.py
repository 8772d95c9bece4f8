"""Values of unknown shape as facts, tables and small curves: a trace is whatever its solver wrote."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from symlift.report.draw import sparkline
from symlift.report.gather import number

__all__ = ["Blocks", "flat", "show", "summarise"]

_MOST_FACTS, _MOST_ROWS, _MOST_COLUMNS, _MOST_TEXT, _MOST_SERIES = 24, 24, 8, 80, 6


class Blocks:
    """What :func:`summarise` found: ``facts`` (name, text), ``tables`` and ``series``, and how much was left out."""

    def __init__(self) -> None:
        self.facts: list[tuple[str, str]] = []
        self.tables: list[dict[str, Any]] = []
        self.series: list[dict[str, Any]] = []
        self.left_out = 0

    def __bool__(self) -> bool:
        return bool(self.facts or self.tables or self.series)

    def add_fact(self, name: str, text: str) -> None:
        if len(self.facts) < _MOST_FACTS:
            self.facts.append((name, text))
        else:
            self.left_out += 1

    def add_series(self, name: str, values: list[float]) -> None:
        if len(self.series) >= _MOST_SERIES:
            self.left_out += 1
            return
        label = f"{name}: {len(values)} values from {show(values[0])} to {show(values[-1])}"
        svg: Markup = sparkline(values, label)
        self.series.append(
            {"name": name, "svg": svg, "first": show(values[0]), "last": show(values[-1]), "n": len(values)}
        )

    def add_table(self, title: str, rows: list[dict[str, str]]) -> None:
        self.left_out += max(0, len(rows) - _MOST_ROWS)
        rows = rows[:_MOST_ROWS]
        filled: dict[str, int] = {}
        for row in rows:
            for column in row:
                filled[column] = filled.get(column, 0) + 1
        # what most rows have is a column; what only a few have is told in words, so that no table is mostly empty
        columns = [column for column, count in filled.items() if 2 * count >= len(rows)][:_MOST_COLUMNS]
        cells = [[row.get(column, "") for column in columns] for row in rows]
        details = [", ".join(f"{_last(k)} {v}" for k, v in row.items() if k not in columns)[:240] for row in rows]
        names = [_last(column) for column in columns]
        if any(details):
            names.append("details")
            cells = [[*line, words] for line, words in zip(cells, details, strict=True)]
        numeric = [all(_looks_numeric(line[i]) for line in cells) for i in range(len(names))]
        self.tables.append({"title": title, "columns": names, "rows": cells, "numeric": numeric})


def summarise(value: Any) -> Blocks:
    """Facts for scalars, a table for a list of mappings (or a mapping of mappings), a curve for a list of numbers."""
    blocks = Blocks()
    _walk(value, "", 0, blocks)
    return blocks


def _walk(value: Any, name: str, depth: int, blocks: Blocks) -> None:
    if isinstance(value, dict):
        inner = [item for item in value.values() if isinstance(item, dict)]
        if len(inner) >= 2 and len(inner) == len(value):
            blocks.add_table(pretty(name), [{"stage": pretty(str(k)), **flat(v)} for k, v in value.items()])
        elif depth >= 4:
            blocks.left_out += 1
        else:
            for key, item in value.items():
                _walk(item, f"{name} · {key}" if name else str(key), depth + 1, blocks)
    elif isinstance(value, list | tuple):
        numbers = [x for item in value if (x := number(item)) is not None]
        if len(value) > 4 and len(numbers) == len(value):
            blocks.add_series(pretty(name), numbers)
        elif value and all(isinstance(item, dict) for item in value):
            blocks.add_table(pretty(name), [flat(item) for item in value])
        else:
            blocks.add_fact(pretty(name), show(value))
    else:
        blocks.add_fact(pretty(name), show(value))


def flat(value: dict[Any, Any], prefix: str = "", depth: int = 0) -> dict[str, str]:
    """One row of a table: nested mappings as ``outer · inner``."""
    out: dict[str, str] = {}
    for key, item in value.items():
        name = f"{prefix}{key}"
        if isinstance(item, dict) and depth < 2:
            out.update(flat(item, f"{name} · ", depth + 1))
        else:
            out[name] = show(item)
    return out


def _last(name: str) -> str:
    """The key itself, without the mapping it stood in."""
    return pretty(name.rsplit(" · ", 1)[-1])


def pretty(name: str) -> str:
    """A key as people read it."""
    return _cut(name.replace("_", " "))


def show(value: Any) -> str:
    """A value on one short line."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−") if abs(value) < 10**15 else "very large"
    if isinstance(value, float):
        return f"{value:.4g}".replace("-", "−")
    if isinstance(value, list | tuple):
        numbers = [x for item in value if (x := number(item)) is not None]
        if len(value) > 4:
            ends = f" ({show(numbers[0])} → {show(numbers[-1])})" if len(numbers) == len(value) else ""
            return f"{len(value)} values{ends}"
        return _cut(", ".join(show(item) for item in value)) or "–"
    if isinstance(value, dict):
        return f"{len(value)} entries"
    return _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"


def _looks_numeric(text: str) -> bool:
    try:
        float(text.replace("−", "-").replace(",", ""))
    except ValueError:
        return text in {"", "–"}
    return True
