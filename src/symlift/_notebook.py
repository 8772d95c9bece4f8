"""Results as HTML for notebooks; everything is escaped, and colours follow the notebook's theme."""

from __future__ import annotations

import math
from collections import Counter
from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from symlift.diagnosis import Diagnosis, Test
    from symlift.solvers.contract import Placement

__all__ = ["diagnosis_html", "larger_is_better", "on_scale", "placement_html"]

_MOST_CELLS, _NAME = 400, 16
_PASSED, _FAILED, _TRACK = "#2e8b62", "#c0504a", "rgba(128,128,128,0.25)"


def on_scale(value: float, threshold: float) -> tuple[float, float, float]:
    """Positions of a number and its threshold on a scale from 0 to 1, and the value at 1.

    Shares have a scale from 0 to 1; other numbers one up to twice the threshold.

    >>> on_scale(0.5, 0.2), on_scale(90.0, 18.0), on_scale(-0.1, 0.03)
    ((0.5, 0.2, 1.0), (1.0, 0.5, 36.0), (0.0, 0.5, 0.06))
    """
    share = 0.1 <= threshold <= 1 and 0 <= value <= 1
    top = 1.0 if share else 2 * abs(threshold) or 1.0
    return min(max(value / top, 0.0), 1.0), min(max(threshold / top, 0.0), 1.0), top


def larger_is_better(test: Test) -> bool:
    """Whether larger numbers pass a test."""
    value, threshold = test.value, test.threshold
    return (
        value is None
        or threshold is None
        or value == threshold
        or (value > threshold) == bool(test.passed)
    )


def diagnosis_html(diagnosis: Diagnosis) -> str:
    """HTML of a verdict, its evidence as bars with thresholds, and the next steps."""
    words, claims = diagnosis.words, ", ".join(map(str, diagnosis.claims))
    rows = "".join(_test_row(test) for test in diagnosis.tests if test.threshold is not None)
    steps = "".join(
        "<li>"
        + escape(step.text)
        + (f"<br><code>{escape(step.command)}</code>" if step.command else "")
        + "</li>"
        for step in diagnosis.next_steps
    )
    return (
        f'<div class="symlift-diagnosis"><p><b>{escape(words[:1].upper() + words[1:])}</b> '
        f"({escape(diagnosis.sure)})</p>"
        + (f"<p>claims: {escape(claims)}</p>" if claims else "")
        + (f"<p>{escape(diagnosis.tally)}</p><table>{rows}</table>" if rows else "")
        + (f"<p>What to do next</p><ul>{steps}</ul>" if steps else "")
        + "</div>"
    )


def _test_row(test: Test) -> str:
    value, threshold = test.value, test.threshold
    drawn = ""
    if (
        value is not None
        and threshold is not None
        and math.isfinite(value)
        and math.isfinite(threshold)
    ):
        length, tick, _ = on_scale(value, threshold)
        colour = _FAILED if test.passed is False else _PASSED
        drawn = (
            f'<div style="position:relative;width:160px;height:10px;background:{_TRACK}">'
            f'<div style="width:{length:.1%};height:10px;background:{colour}"></div>'
            f'<div style="position:absolute;left:{tick:.1%};top:-2px;width:2px;height:14px;'
            'background:currentColor"></div></div>'
        )
    limit = f"at {'least' if larger_is_better(test) else 'most'} {_number(threshold)}"
    outcome = {True: "passed", False: "not passed", None: ""}[test.passed]
    name = escape(test.name.replace("_", " "))
    cells = (
        f'<span title="{escape(test.reading)}">{name}</span>',
        drawn,
        _number(value),
        limit,
        outcome,
    )
    return "<tr>" + "".join(f'<td style="text-align:left">{cell}</td>' for cell in cells) + "</tr>"


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    # never "-0"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}" if value else "0"


def placement_html(placement: Placement) -> str:
    """HTML of the columns on their grid, coloured by confidence, and why some are left out."""
    grid, on = placement.grid, ~placement.left_out
    closed = " (closed)" if all(grid.periodic) else ""
    head = f"<b>{int(on.sum())} of {len(on)} columns</b> on the grid {escape(str(grid))}{closed}"
    reasons = Counter(reason for reason in placement.reason.tolist() if reason)
    left = "".join(
        f"<li>{count} {escape(reason)}</li>" for reason, count in sorted(reasons.items())
    )
    return (
        f'<div class="symlift-placement"><p>{head}</p>{_map(placement)}'
        + (f"<ul>{left}</ul>" if left else "")
        + "</div>"
    )


def _map(placement: Placement) -> str:
    """Table of names, one cell per point; empty in 3-D, or where there are too many points."""
    grid = placement.grid
    if grid.ndim > 2 or grid.size > _MOST_CELLS:
        return ""
    at: dict[int, list[int]] = {}
    for column in np.lexsort((placement.channel, placement.point)).tolist():
        at.setdefault(int(placement.point[column]), []).append(column)
    cells = [_cell(placement, at.get(point, [])) for point in range(grid.size)]
    # a long line continues in the next row
    width = grid.shape[1] if grid.ndim == 2 else min(grid.size, 12)
    rows = ("".join(cells[start : start + width]) for start in range(0, len(cells), width))
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def _cell(placement: Placement, columns: list[int]) -> str:
    if not columns:
        return "<td>·</td>"
    names = [f"x{c}" if placement.names is None else placement.names[c] for c in columns]
    sure = float(np.nan_to_num(placement.confidence[columns]).clip(0, 1).min())
    more = f" +{len(columns) - 1}" if len(columns) > 1 else ""
    shown = names[0] if len(names[0]) <= _NAME else names[0][: _NAME - 1] + "…"
    title = escape(f"{', '.join(names)}: confidence {sure:.2f}")
    return (
        f'<td title="{title}"'
        f' style="background:rgba(66,115,171,{0.4 * sure:.2f})">{escape(shown)}{more}</td>'
    )
