"""Downloads of a page: tables as links that contain their data, and commands to repeat the run."""

from __future__ import annotations

import base64
import csv
from io import StringIO
from typing import Any

from symlift.report.gather import RunContents
from symlift.report.signals import shown_samples
from symlift.runs.answer import command, python_call
from symlift.solvers.contract import Placement
from symlift.storage.csv_cells import safe_cell

__all__ = ["take_panel"]

_MOST_NUMBERS = 60_000  # of a table inside the page: about 0.5 MB
_FILES = {
    "placement.csv": "where each column sits",
    "signals.npy": "all recovered signals",
    "model.safetensors": "the model, for symlift.load",
    "run.json": "settings, versions, times and the diagnosis",
}


def take_panel(run: RunContents) -> dict[str, Any]:
    """Links, files in the folder of the page, and commands."""
    links = []
    if run.placement is not None and len(run.placement.point) <= _MOST_NUMBERS // 8:
        links.append(
            _link(
                "placement.csv",
                "Placement",
                "where each column sits, how sure that is",
                _places(run.placement, run),
            )
        )
    if run.observed is not None and (shown := _signals(run)):
        links.append(
            _link(
                "signals-shown.csv",
                "Signals",
                "the recovered signals of the rows shown above",
                shown,
            )
        )
    if run.diagnosis is not None:
        lines = [("test", "value", "threshold", "passed", "reading")]
        lines += [(t.name, t.value, t.threshold, t.passed, t.reading) for t in run.diagnosis.tests]  # type: ignore[misc]
        links.append(_link("evidence.csv", "Evidence", "the tests behind the verdict", _csv(lines)))
    files = [
        (name, words)
        for name, words in _FILES.items()
        if run.record is not None and (run.folder / name).is_file()
    ]
    return {
        "links": links,
        "files": files,
        "command": None if run.record is None else command(run.record),
        "call": python_call(run.domain, run.estimator),
        "transform": (
            None
            if run.record is None
            else f"symlift transform {run.folder.resolve().name} DATA --out signals.npy"
        ),
    }


def _link(name: str, title: str, words: str, text: str) -> dict[str, str]:
    """A file inside the page: base64, so that nothing in it can be read as markup."""
    data = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    return {"name": name, "title": title, "words": words, "uri": f"data:text/csv;base64,{data}"}


def _places(placement: Placement, run: RunContents) -> str:
    table = placement.columns()
    left_out = [] if run.record is None else run.record.input.left_out
    none = {"column": -1, "point": -1, "channel": -1}
    rest = [
        tuple({**none, "name": one.name, "reason": one.reason}.get(key) for key in table)
        for one in left_out
    ]
    return _csv([tuple(table), *zip(*table.values(), strict=True), *rest])


def _signals(run: RunContents) -> str:
    chosen = shown_samples(run)
    names = run.model.grid.point_names(run.model.channels)
    if len(chosen) * len(names) > _MOST_NUMBERS:
        return ""
    rows = run.fields[chosen].reshape(len(chosen), -1)
    numbers = (
        [index, *(f"{v:.6g}" for v in row)]
        for index, row in zip(run.rows[chosen].tolist(), rows, strict=True)
    )
    return _csv([("row", *names), *map(tuple, numbers)])


def _csv(lines: list[tuple[Any, ...]]) -> str:
    """Rows as CSV text; NaN and None become empty cells."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for line in lines:
        writer.writerow(["" if v is None or v != v else safe_cell(v) for v in line])
    return out.getvalue()
