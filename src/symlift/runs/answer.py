"""The answer in one sentence, for the report's title and the terminal, and how to reproduce it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from symlift._estimator_file import EstimatorRecord
from symlift.core.domain import Domain, Scattered, domain_words
from symlift.core.grid import grid_words
from symlift.core.sphere import Sphere
from symlift.diagnosis import Diagnosis, Verdict
from symlift.runs.readers.options import ReadOptions, as_typed, path_as_typed
from symlift.runs.record import RunRecord, RunSettings
from symlift.solvers.contract import Placement

__all__ = ["answer", "command", "parts_answer", "python_call"]

_NAMED, _NAME = 3, 24


def _in_words(grid: Domain, columns: int) -> str:
    """Describe a domain as part of a sentence, with its size if that is not the number of columns.

    >>> from symlift import Grid
    >>> _in_words(Grid((24,)), 24), _in_words(Grid((24,)), 22)
    ('an open line', 'an open line of 24 points')
    >>> _in_words(Grid((15,), periodic=True), 15), _in_words(Scattered(), 40)
    ('a ring', 'scattered places in a plane')
    >>> _in_words(Grid((4, 6), periodic=True), 24), _in_words(Grid((2, 3, 4)), 24)
    ('a 4 × 6 grid, all axes closed', 'a 2 × 3 × 4 volume')
    """
    if isinstance(grid, Scattered):
        return domain_words(grid).removeprefix("set of ")
    if isinstance(grid, Sphere):
        return f"a {domain_words(grid)}"
    if grid.ndim == 1:
        kind = "a ring" if grid.is_ring else "an open line"
        return kind if grid.size == columns else f"{kind} of {grid.size:,} points"
    words = grid_words(grid)
    return f"a {words}" if grid.ndim == 2 else f"a {words.replace('grid', 'volume')}"


def answer(
    grid: Domain, columns: int, placement: Placement | None, diagnosis: Diagnosis | None
) -> str:
    """Describe the result in one sentence, without a full stop.

    >>> from symlift import Grid
    >>> placed = Placement.at_points(Grid((4,)), [1, 0, 3, 2])
    >>> answer(Grid((4,)), 4, placed, Diagnosis(Verdict.PRESENT, 0.98))
    '4 columns form an open line: x1, x0, x3 …; confidence 0.98'
    >>> answer(Grid((4,)), 4, placed, Diagnosis(Verdict.ABSENT, 0.0, something=0.2))
    'No evidence that the 4 columns lie on an open line; something to find with probability 0.20'
    >>> answer(Grid((3, 3)), 9, None, None)
    '9 columns were fitted to a 3 × 3 grid; nothing has been checked yet'
    """
    placed = columns if placement is None else int(np.sum(~placement.left_out))
    domain = _in_words(grid, placed)
    if diagnosis is None:
        return (
            f"{columns:,} columns were fitted to {domain}{_order(grid, placement)}; nothing has"
            " been checked yet"
        )
    verdict, confidence = diagnosis.verdict, diagnosis.confidence
    sure = f"; {diagnosis.sure}" if math.isfinite(confidence) else ""
    if verdict is Verdict.ABSENT:
        among = "" if diagnosis.contest is None else f"; {diagnosis.contest.words}"
        return f"No evidence that the {columns:,} columns lie on {domain}{sure}{among}"
    if verdict is Verdict.UNIDENTIFIABLE:
        return (
            f"The {columns:,} columns show signs of {domain}, but these data do not single out one"
            f" answer{sure}"
        )
    count = f"{placed:,} of {columns:,}" if placed < columns else f"{columns:,}"
    if verdict is Verdict.LOCAL:
        return f"Neighbours of {count} columns were found, but not that they form {domain}{sure}"
    if placement is None:
        return f"{count} columns carry signals on {domain}{sure}"
    uneven = ", though the field is not the same everywhere" if verdict is Verdict.ORDERED else ""
    have = "have" if isinstance(grid, Scattered) else "form"
    return f"{count} columns {have} {domain}{uneven}{_order(grid, placement)}{sure}"


def parts_answer(columns: int, parts: int, outside: int) -> str:
    """The answer in one sentence, without a full stop.

    >>> parts_answer(206, 5, 30), parts_answer(200, 0, 200)
    ('206 columns form 5 parts; 30 belong to none', 'No columns of 200 predict each other')
    """
    if not parts:
        return f"No columns of {columns:,} predict each other"
    rest = f"; {outside:,} belong to none" if outside else ""
    return f"{columns:,} columns form {parts:,} part{'' if parts == 1 else 's'}{rest}"


def _order(grid: Domain, placement: Placement | None) -> str:
    """Name the first columns along a line or ring."""
    if placement is None or grid.ndim > 1:
        return ""
    on = np.flatnonzero(~placement.left_out)
    along = on[np.lexsort((placement.coordinates[on, 0], placement.point[on]))]
    names = [_name(placement, column) for column in along[:_NAMED].tolist()]
    return f": {', '.join(names)}{' …' if len(along) > _NAMED else ''}" if names else ""


def _name(placement: Placement, column: int) -> str:
    name = f"x{column}" if placement.names is None else " ".join(placement.names[column].split())
    return name if len(name) <= _NAME else name[: _NAME - 1] + "…"


def command(
    record: RunRecord,
    data: str | None = None,
    params: Mapping[str, Any] | None = None,
    out: str | None = None,
) -> str:
    """Return the command line that repeats this run, with all options that are not the default.

    Parameters
    ----------
    record : RunRecord
        The run.
    data : str, optional
        Where the data are, as typed; the name that the record has when None.
    params : mapping, optional
        Parameters of `LatentDomain` that replace those of the run, as `NextStep` has them.
    out : str, optional
        The run folder.

    Examples
    --------
    >>> record = RunRecord.model_validate({
    ...     "status": "done", "started": "",
    ...     "input": {"name": "my data.csv", "sha256": "", "shape": (5, 3)},
    ...     "settings": {"grid": "12x20", "periodic": True, "seed": 7, "check": False},
    ... })
    >>> command(record)
    "symlift recover 'my data.csv' --grid 12x20 --periodic --seed 7 --no-check"
    >>> command(record, "../a.csv", {"grid": (15,), "mixing": "shuffled"}, "b")
    'symlift recover ../a.csv --grid 15 --mixing shuffled --seed 7 --no-check --out b'
    """
    reading, read_by_default = asdict(record.input.reading), asdict(ReadOptions())
    words = ["symlift", "recover", path_as_typed(record.input.name if data is None else data)]
    words += as_typed(
        {name: value for name, value in reading.items() if value != read_by_default[name]}
    )
    usual = RunSettings().model_dump()
    settings = record.settings.model_dump() | _as_settings(params or {})
    given = {name: value for name, value in settings.items() if value != usual[name]}
    given["seed"] = settings["seed"]
    words += as_typed(
        {"check" if name == "level" else name: given[name] for name in settings if name in given}
    )
    return shlex.join([*words, *([] if out is None else ["--out", path_as_typed(out)])])


def _as_settings(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of `LatentDomain` as settings of a run."""
    changed = {name: params[name] for name in ("mixing", "solver") if name in params}
    if "solver" in params:  # what was said of a training
        changed |= {"preset": None, "budget": None}
    if "grid" in params:
        grid = params["grid"]
        changed["grid"] = grid if isinstance(grid, str) else "x".join(map(str, grid))
        changed["periodic"] = False
    if "periodic" in params:
        changed["periodic"] = bool(np.any(params["periodic"]))
    return changed


def python_call(grid: Domain, estimator: EstimatorRecord) -> str:
    """Return the Python call that repeats the fit.

    >>> from symlift import Grid
    >>> python_call(Grid((31,)), EstimatorRecord(random_state=0))
    'LatentDomain(grid=(31,), random_state=0).fit(X)'
    """
    given: dict[str, Any] = {"grid": grid.shape}
    if isinstance(grid, Scattered):
        given["grid"] = str(grid)
    elif isinstance(grid, Sphere):
        degree = "" if grid.degree is None else grid.degree
        given["grid"] = "projective" if grid.axes else f"sphere{degree}"
    if any(grid.periodic):
        given["periodic"] = True if all(grid.periodic) else grid.periodic
    for name in ("solver", "mixing", "channels"):
        if getattr(estimator, name) != "auto":
            given[name] = getattr(estimator, name)
    if estimator.random_state is not None:
        given["random_state"] = estimator.random_state
    return f"LatentDomain({', '.join(f'{name}={value!r}' for name, value in given.items())}).fit(X)"
