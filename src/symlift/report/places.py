"""Where the columns are: the map of their names on a line, a ring or a plane, and the columns that have no place."""

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from typing import Any

import numpy as np

from symlift.report.facts import cut
from symlift.report.gather import Run
from symlift.solvers.contract import Placement

__all__ = ["places_panel"]

_MOST_CELLS, _MOST_NAMED, _NAME, _UNSURE = 400, 6, 12, 0.5

#: reasons in words; a duplicate has a place, that of its twin
_REASONS = {
    "dead": "constant",
    "noise": "noise that goes with no other column",
    "index": "numbers of the rows rather than measurements",
    "unplaced": "without a place that held",
    "duplicate": "in the place of a column that they repeat",
}


def places_panel(run: Run) -> dict[str, Any] | None:
    """The map, cell by cell, with a count of what is left out; None where columns have no places."""
    placement = run.placement
    if placement is None:
        return None
    grid, names = placement.grid, _names(placement)
    empty = int(np.sum(placement.coverage() == 0))
    why = ""
    if grid.ndim > 2:
        why = f"a map of {grid.ndim} axes does not fit a page"
    elif grid.size > _MOST_CELLS:
        why = f"{grid.size} points are too many for a page"
    if why:
        table = "placement.csv" if (run.folder / "placement.csv").is_file() else "placement_ of the loaded estimator"
        why = f"The map is left out: {why}. It is in {table}."
    prefix = _common([name for name, left_out in zip(names, placement.left_out, strict=True) if not left_out])
    cells = [] if why else _cells(placement, names, len(prefix))
    width = grid.shape[-1] if grid.ndim == 2 else 0
    return {
        "rows": [cells[start : start + width] for start in range(0, len(cells), width)] if width else [],
        "line": cells if grid.ndim == 1 else [],
        "ring": grid.is_ring,
        "prefix": prefix,
        "note": why,
        "placed": int(np.sum(~placement.left_out)),
        "columns": len(names),
        "left_out": int(np.sum(placement.left_out)),
        "reasons": _reasons(placement, names),
        "empty": empty,
        "unsure": any(cell["unsure"] for cell in cells),
        "several": any(cell["more"] for cell in cells),
    }


def _names(placement: Placement) -> list[str]:
    given = placement.names
    return [f"x{i}" for i in range(len(placement.point))] if given is None else [cut(name) or "–" for name in given]


def _common(names: list[str]) -> str:
    """What all names begin with, up to a separator: it need not be said in every cell.

    >>> _common(["probe_12", "probe_13"]), _common(["x1", "x12"])
    ('probe_', '')
    """
    if len(names) < 2:
        return ""
    # what the first and the last in order share, all share
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(min(names), max(names), strict=False))
    same = "".join(pair[0] for pair in pairs)
    return same[: 1 + max(same.rfind(separator) for separator in "_-. :/")]


def _cells(placement: Placement, names: list[str], skip: int) -> list[dict[str, Any]]:
    """One for each point: the first of its columns, how many more there are, and all of them for a closer look.

    Of each name the first ``skip`` characters are left out.
    """
    at: list[list[int]] = [[] for _ in range(placement.grid.size)]
    order = np.lexsort((placement.channel, placement.point))  # at one point by channel, and then as they came
    for column in order.tolist():
        if placement.point[column] >= 0:
            at[placement.point[column]].append(column)
    return [
        {
            "number": number,
            "name": cut(names[columns[0]][skip:], _NAME) or "–" if columns else "",
            "more": len(columns) - 1 if columns else 0,
            "title": cut(", ".join(names[column] for column in columns[:20]), 240),
            "unsure": any(not placement.confidence[column] >= _UNSURE for column in columns),
        }
        for number, columns in enumerate(at)
    ]


def _reasons(placement: Placement, names: list[str]) -> list[dict[str, str]]:
    """Each reason with its count, and the first few columns that it holds for."""
    counts = Counter(placement.reason.tolist())
    out = []
    for reason, words in _REASONS.items():
        if counts[reason]:
            chosen = [cut(names[i], 24) for i in np.flatnonzero(placement.reason == reason)[:_MOST_NAMED].tolist()]
            more = ", …" if counts[reason] > _MOST_NAMED else ""
            out.append({"count": f"{counts[reason]:,}", "words": words, "names": ", ".join(chosen) + more})
    return out
