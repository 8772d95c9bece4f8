"""The last lines of a run: the answer, its verdict, and where the results are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from symlift._estimator_file import EstimatorRecord, read_estimator
from symlift._watch import diagnosis_lines, trace_lines
from symlift.core.domain import Domain
from symlift.core.grid import Grid
from symlift.errors import InputError
from symlift.runs.answer import answer, command, parts_answer
from symlift.runs.record import Run, RunRecord
from symlift.solvers.contract import Placement

__all__ = ["last_lines", "numbers"]


def last_lines(run: Run, summary: dict[str, Any], data: str) -> Iterator[str]:
    """Yield a summary of a run of ``data``; the answer comes last, where a terminal is read."""
    record = run.record
    state = "in" if run.fresh else "was done already, in"
    yield (
        f"{record.input.shape[0]} rows of {record.input.counted} columns: solver {record.solver},"
        f" seed {record.settings.seed}, {state} {record.timings.total:.1f} s"
    )
    if record.parts is not None:
        yield from _parts(record, summary)
        return
    named = record.scattered or record.sphere is not None
    shape = record.domain if named else _shape(record.grid, record.periodic)
    yield f"grid: {shape}{_sure(record.grid_confidence)}"
    if record.score is not None:
        yield f"score: {record.score:.4g} (higher is better, among fits of these rows on this grid)"
    yield f"run: {summary['run']}"
    yield ""
    on = record.domain if record.sphere is not None else Grid(record.grid, record.periodic)
    placement = _placement(run.folder, on)
    yield answer(record.domain, record.input.counted, placement, record.diagnosis)
    for name in ("placement", "signals"):
        if summary.get(name) is not None:
            yield f"{name}: {summary[name]}"
    if record.diagnosis is not None:
        yield f"verdict: {record.diagnosis}"
        if record.diagnosis.claims:
            yield f"claims: {', '.join(map(str, record.diagnosis.claims))}"
        if record.diagnosis.runner_up:
            yield f"next best: {record.diagnosis.runner_up}"
        if record.diagnosis.would_change:
            yield f"would change it: {record.diagnosis.would_change}"
        if record.diagnosis.tests:
            yield f"tests: {record.diagnosis.tally}"
        for step in record.diagnosis.next_steps:
            yield f"next: {step.text}"
            if step.command:  # a line of its own, to be copied whole
                yield f"next: {command(record, data, step.params, _free_folder(run.folder))}"
    if summary["report"] is not None:
        yield f"report: {summary['report']}"


def _free_folder(folder: Path) -> str:
    """A name for another run next to this one."""
    number = 2
    while folder.with_name(f"{folder.name}-{number}").exists():
        number += 1
    return str(folder.with_name(f"{folder.name}-{number}"))


def _parts(record: RunRecord, summary: dict[str, Any]) -> Iterator[str]:
    """Yield what was found in each of several parts, and where it is."""
    yield f"run: {summary['run']}"
    yield ""
    parts = record.parts or []
    for k, part in enumerate(parts):
        verdict = "" if part.diagnosis is None else f": {part.diagnosis}"
        shape = part.domain if part.sphere is not None else _shape(part.grid, part.periodic)
        yield f"part {k}: {part.columns} columns, grid {shape}{verdict}"
    placed = sum(part.columns for part in parts)
    yield parts_answer(record.input.counted, len(parts), max(record.input.counted - placed, 0))
    for name in ("placement", "signals", "report"):
        if summary.get(name) is not None:
            yield f"{name}: {summary[name]}"


def _shape(grid: tuple[int, ...], periodic: tuple[bool, ...]) -> str:
    ends = ["closed" if wraps else "open" for wraps in periodic]
    shape = "x".join(str(s) for s in grid)
    return f"{shape}, {ends[0] if len(set(ends)) == 1 else ' x '.join(ends)}"


def numbers(run: Run) -> Iterator[str]:
    """Yield what each stage did, and the tests behind the verdict."""
    yield from trace_lines(_estimator(run.folder).trace)
    if run.record.diagnosis is not None:
        yield from diagnosis_lines(run.record.diagnosis)


def _sure(confidence: float | None) -> str:
    return "" if confidence is None else f" (proposed, confidence {confidence:.2f})"


def _estimator(folder: Path) -> EstimatorRecord:
    """Read the estimator's file; a finished run is reported even if the file is damaged."""
    try:
        return read_estimator(folder)
    except InputError:
        return EstimatorRecord()


def _placement(folder: Path, grid: Domain) -> Placement | None:
    record = _estimator(folder)
    try:
        return (
            None
            if record.placement is None
            else record.placement.placement(grid, record.feature_names)
        )
    except ValueError:
        return None
