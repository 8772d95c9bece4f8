"""The map of column names on a line, a ring or a plane, and the columns that have no place."""

from __future__ import annotations

from collections import Counter
from itertools import takewhile
from typing import Any

import numpy as np
from markupsafe import Markup

from symlift.core.sphere import Sphere
from symlift.report import draw
from symlift.report.facts import cut
from symlift.report.gather import RunContents
from symlift.report.globe import globe_places
from symlift.solvers.contract import Placement

__all__ = ["places_panel"]

_MOST_CELLS, _MOST_ROUND, _MOST_NAMED, _NAME, _UNSURE = 400, 64, 6, 12, 0.5
# columns farther from the nearest point than this, in grid steps, count as between points
_OFF_GRID = 0.05

#: reasons in words; a duplicate has the place of its twin
_REASONS = {
    "dead": "constant",
    "noise": "noise that is correlated with no other column",
    "index": "numbers of the rows rather than measurements",
    "unplaced": "whose places did not pass the test",
    "duplicate": "at the place of the column that they repeat",
}


def places_panel(run: RunContents) -> dict[str, Any] | None:
    """The map, cell by cell, and what is left out; None where columns have no places."""
    placement = run.placement
    if placement is None:
        return None
    grid, names = placement.grid, _names(placement)
    on_sphere = isinstance(grid, Sphere)
    # points of a sphere are where fields are evaluated, columns are between them
    empty = 0 if on_sphere else int(np.sum(placement.coverage() == 0))
    named = grid.ndim <= 2 and grid.size <= _MOST_CELLS
    prefix = _common(
        [name for name, left_out in zip(names, placement.left_out, strict=True) if not left_out]
    )
    cells = _cells(placement, names, len(prefix)) if named else []
    width = grid.shape[-1] if grid.ndim == 2 else 0
    return {
        "rows": (
            [cells[start : start + width] for start in range(0, len(cells), width)] if width else []
        ),
        "line": cells if grid.ndim == 1 else [],
        "ring": grid.is_ring,
        "prefix": prefix,
        "circle": ring_map(cells) if grid.is_ring and 3 <= len(cells) <= _MOST_ROUND else None,
        "file": "placement.csv" if (run.folder / "placement.csv").is_file() else "",
        "scattered": None if on_sphere else _scattered(placement, names, len(prefix)),
        "globe": globe_places(placement) if on_sphere else None,
        "picture": None if named or on_sphere else _confidence_map(placement),
        "placed": int(np.sum(~placement.left_out)),
        "columns": run.counted,
        "left_out": run.counted - int(np.sum(~placement.left_out)),
        "reasons": _reasons(placement, names) + _without_numbers(run),
        "empty": empty,
        "unsure": any(cell["unsure"] for cell in cells),
        "several": any(cell["more"] for cell in cells),
    }


def _names(placement: Placement) -> list[str]:
    given = placement.names
    return (
        [f"x{i}" for i in range(len(placement.point))]
        if given is None
        else [cut(name) or "–" for name in given]
    )


def _common(names: list[str]) -> str:
    """Common prefix of all names, up to a separator, which the cells leave out.

    >>> _common(["probe_12", "probe_13"]), _common(["x1", "x12"])
    ('probe_', '')
    """
    if len(names) < 2:
        return ""
    # a prefix of the first and the last in sorted order is a prefix of all
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(min(names), max(names), strict=False))
    same = "".join(pair[0] for pair in pairs)
    return same[: 1 + max(same.rfind(separator) for separator in "_-. :/")]


def _cells(placement: Placement, names: list[str], skip: int) -> list[dict[str, Any]]:
    """One cell per point: its first column, the number of others, and a title that lists them.

    The first ``skip`` characters of each name are left out.
    """
    at: list[list[int]] = [[] for _ in range(placement.grid.size)]
    # at one point by channel, then in the order of the columns
    order = np.lexsort((placement.channel, placement.point))
    for column in order.tolist():
        if placement.point[column] >= 0:
            at[placement.point[column]].append(column)
    return [
        {
            "number": number,
            "name": cut(names[columns[0]][skip:], _NAME) or "–" if columns else "",
            "more": len(columns) - 1 if columns else 0,
            "title": cut(
                ", ".join(f"{names[c]} ({placement.confidence[c]:.2f})" for c in columns[:20]), 240
            ),
            "sure": _sureness(placement, columns),
            "unsure": any(not placement.confidence[column] >= _UNSURE for column in columns),
        }
        for number, columns in enumerate(at)
    ]


def _sureness(placement: Placement, columns: list[int]) -> str:
    """The least confidence of columns at one point, as text for the style sheet; 0 for none."""
    known = np.nan_to_num(placement.confidence[columns]).clip(0, 1)
    return f"{known.min(initial=1.0) if len(columns) else 0.0:.2f}"


def _scattered(placement: Placement, names: list[str], skip: int) -> Markup | None:
    """A drawing of columns between the grid points: dots with names over the grid, or None."""
    grid, on = placement.grid, np.flatnonzero(~placement.left_out)
    at = placement.coordinates[on]
    if grid.is_ring or grid.ndim > 2 or not len(on) or np.abs(at - np.rint(at)).max() < _OFF_GRID:
        return None
    step = 26.0
    wide, tall = step * (grid.shape[-1] + 1), step * (grid.shape[0] + 1) if grid.ndim == 2 else 84.0
    x = step * (at[:, -1] + 1)
    y = step * (at[:, 0] + 1) if grid.ndim == 2 else np.full(len(on), 60.0)
    lines = [
        f"M{step * (i + 1):.0f},{0.6 * step:.0f}V{tall - 0.6 * step:.0f}"
        for i in range(grid.shape[-1])
    ]
    if grid.ndim == 2:
        lines += [
            f"M{0.6 * step:.0f},{step * (i + 1):.0f}H{wide - 0.6 * step:.0f}"
            for i in range(grid.shape[0])
        ]
    body = [Markup('<path class="base" d="{}"/>').format("".join(lines))]
    for column, a, b in zip(on.tolist(), x, y, strict=True):
        name = cut(names[column][skip:], _NAME) or "–"
        turned = (
            Markup("")
            if grid.ndim == 2
            else Markup(' transform="rotate(-60 {} {})"').format(f"{a:.1f}", f"{b - 8:.1f}")
        )
        sure, offset = _sureness(placement, [column]), (5, 3) if grid.ndim == 2 else (0, -8)
        body.append(
            Markup(
                '<circle class="place" style="--sure:{}" cx="{}" cy="{}" r="3.5"/><text'
                ' class="tick" x="{}" y="{}"{}>{}</text>'
            ).format(
                sure,
                f"{a:.1f}",
                f"{b:.1f}",
                f"{a + offset[0]:.1f}",
                f"{b + offset[1]:.1f}",
                turned,
                name,
            )
        )
    return Markup(
        '<svg class="scattered" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    ).format(
        f"{wide:.0f}",
        f"{tall:.0f}",
        f"{len(on)} columns between the points of the grid",
        Markup("").join(body),
    )


def ring_map(cells: list[dict[str, Any]]) -> Markup:
    """The names of the columns around a circle, the first point at the top, clockwise."""
    words = [cell["name"] + (f" +{cell['more']}" if cell["more"] else "") for cell in cells]
    radius, room = 100, 16 + 6.2 * max(map(len, words))
    middle = radius + room
    body = [
        Markup('<circle class="base" cx="{m}" cy="{m}" r="{r}"/>').format(m=f"{middle:g}", r=radius)
    ]
    for cell, name in zip(cells, words, strict=True):
        turn = 2 * np.pi * cell["number"] / len(cells)
        left = np.sin(turn) < -1e-9  # so that names read from left to right
        x, y = middle + radius, middle  # right of the middle, before the rotation
        degrees = np.rad2deg(turn) - 90
        spot = Markup('<circle class="place" style="--sure:{}" cx="{}" cy="{}" r="4.5"/>').format(
            cell["sure"], x, y
        )
        text = Markup('<text class="tick{}" x="{}" y="{}"{}>{}</text>').format(
            " end" if left else "",
            f"{x - 9 if left else x + 9:g}",
            f"{y + 3.5:g}",
            Markup(' transform="rotate(180 {} {})"').format(f"{x:g}", f"{y:g}") if left else "",
            name,
        )
        body.append(
            Markup('<g transform="rotate({} {m} {m})">{}{}</g>').format(
                f"{degrees:.2f}", spot, text, m=f"{middle:g}"
            )
        )
    return Markup(
        '<svg class="ring-map" viewBox="0 0 {s} {s}" role="img" aria-label="{}">{}</svg>'
    ).format(
        f"The columns around a ring of {len(cells)} points",
        Markup("").join(body),
        s=f"{2 * middle:g}",
    )


def _confidence_map(placement: Placement) -> dict[str, Any]:
    """A picture of the confidence of places, for grids with too many points for names.

    Points without a column are black.
    """
    grid, on = placement.grid, ~placement.left_out
    sure = np.zeros(grid.size)
    np.maximum.at(sure, placement.point[on], np.nan_to_num(placement.confidence[on]).clip(0, 1))
    where = draw.pixel_map(grid.size, grid.shape)
    return {
        "uri": draw.field_png(sure, where, 0.0, 1.0),
        "rows": where.shape[0],
        "columns": where.shape[1],
        "bar": draw.colour_bar(draw.GREY, 0.0, 1.0, "field", "Confidence"),
        "slices": grid.ndim == 3,
        "alt": f"Confidence of the columns' places at the {grid.size} points of the grid {grid}",
    }


def _without_numbers(run: RunContents) -> list[dict[str, str]]:
    """The columns of the file that hold nothing to place, by what they hold."""
    left_out = [] if run.record is None else run.record.input.left_out
    words = {"dates": "dates", "text": "text", "empty": "empty", "index": _REASONS["index"]}
    out = []
    for reason, content in words.items():
        names = [cut(one.name, 24) for one in left_out if one.reason == reason]
        if names:
            more = ", …" if len(names) > _MOST_NAMED else ""
            listed = ", ".join(names[:_MOST_NAMED]) + more
            out.append({"count": f"{len(names):,}", "words": content, "names": listed})
    return out


def _reasons(placement: Placement, names: list[str]) -> list[dict[str, str]]:
    """Each reason with its count and the first few of its columns."""
    counts = Counter(placement.reason.tolist())
    out = []
    for reason, words in _REASONS.items():
        if counts[reason]:
            chosen = [
                cut(names[i], 24)
                for i in np.flatnonzero(placement.reason == reason)[:_MOST_NAMED].tolist()
            ]
            more = ", …" if counts[reason] > _MOST_NAMED else ""
            out.append(
                {"count": f"{counts[reason]:,}", "words": words, "names": ", ".join(chosen) + more}
            )
    return out
