"""Compute the signals behind a data file by the model of a run, and write them to a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.domain import TakenColumns
from symlift.core.model import LiftedModel
from symlift.core.rows import batches_of, float_type, has_gaps
from symlift.errors import InputError, RowError
from symlift.estimator import LatentDomain
from symlift.loading import load
from symlift.runs.folder import is_run, readable
from symlift.runs.parts import PartsLift
from symlift.runs.readers import of_no_use, read_table
from symlift.runs.readers.gaps import without_gaps
from symlift.runs.readers.options import DEFAULT, ReadOptions
from symlift.runs.record import finished
from symlift.runs.writers import check_writable, open_rows
from symlift.several import LatentDomains
from symlift.solvers.contract import Progress, no_progress
from symlift.statistics.prediction import GapFiller

__all__ = ["lift_to_file", "no_note", "transform"]


def no_note(line: str) -> None:
    """Ignore notes on how a file was read."""


def lift_to_file(
    model: LiftedModel | TakenColumns | PartsLift,
    rows: NDArray,
    path: Path,
    progress: Progress = no_progress,
    *,
    names: Sequence[str] | None = None,
    filler: GapFiller | None = None,
) -> None:
    """Stream the signals of ``rows`` into a file, batch by batch; ``filler`` predicts gaps."""
    with open_rows(
        path, (len(rows), model.n_outputs), float_type(rows.dtype), key="signals", names=names
    ) as sink:
        for part, block in batches_of(rows):
            if filler is not None and has_gaps(block):
                block = filler.fill(block)
            try:
                sink[part] = model.lift(block)
            except RowError as error:
                raise RowError(part.start + error.row, error.what) from None
            progress("writing", sink.done / len(rows))


def transform(
    folder: Path,
    data: Path,
    out: Path,
    *,
    reading: ReadOptions = DEFAULT,
    nan: str | None = None,
    overwrite: bool = False,
    progress: Progress = no_progress,
    note: Callable[[str], None] = no_note,
) -> tuple[int, int]:
    """Write the signals behind a data file, by the model of a run; return their shape.

    The shape is (n, grid points · channels).  ``folder`` is a run folder, or one that
    `LatentDomain.save` wrote.  The file is read as the run's own was, except for the options that
    ``reading`` and ``nan`` give.
    """
    place = readable(folder)
    run = finished(place) if is_run(place) else None
    check_writable(out)
    if out.exists() and not overwrite:
        raise InputError(f"{out} exists: choose another --out, or give --overwrite")
    estimator = load(place)
    progress("reading", None)
    names: list[str] | None = None
    if run is not None:
        names, reading = (
            run.record.input.columns,
            _for_another_file(reading, run.record.input.reading, data),
        )
    nan = nan or ("refuse" if run is None else run.record.settings.nan)
    if nan not in ("refuse", "drop", "mean", "pairwise"):
        raise InputError(f"--nan {nan} is unknown: use drop, mean or pairwise")
    table = read_table(data, options=reading, wanted=names)
    if out.exists() and out.samefile(data):
        raise InputError(f"{out} is the data file itself: choose another --out")
    if table.rows.shape[1] != estimator.n_features_in_:
        raise InputError(
            f"{data} has {table.rows.shape[1]} columns, but {folder} was fitted to"
            f" {estimator.n_features_in_}: give data with the same columns"
        )
    if names is not None and table.names is not None and list(table.names) != names:
        where = next(i for i, (a, b) in enumerate(zip(table.names, names, strict=True)) if a != b)
        raise InputError(
            f"{data} has {table.names[where]!r} in column {where + 1} where {folder} was fitted to"
            f" {names[where]!r}: give data with the same columns"
        )
    table = without_gaps(data, table, nan, _means(estimator))
    try:
        names_out = [str(name) for name in estimator.get_feature_names_out()]
        filler = getattr(estimator, "gap_filler_", None)
        model = PartsLift(estimator) if isinstance(estimator, LatentDomains) else estimator.lifter_
        lift_to_file(model, table.rows, out, progress, names=names_out, filler=filler)
    except InputError as error:
        raise InputError(f"{data}: {error}") from None
    for line in table.notes:
        note(line)
    return len(table.rows), model.n_outputs


def _means(estimator: LatentDomain | LatentDomains) -> NDArray:
    """The mean of each column in the fit, which may stand for a gap."""
    if not isinstance(estimator, LatentDomains):
        return estimator.mean_
    if estimator.mean_ is not None:
        return estimator.mean_
    mean = np.zeros(len(estimator.labels_))  # no part looks at the other columns
    for part, domain in enumerate(estimator.domains_):
        mean[estimator.labels_ == part] = domain.mean_
    return mean


def _for_another_file(given: ReadOptions, before: ReadOptions, data: Path) -> ReadOptions:
    """Merge the given options with the run's; omit those that do not apply to ``data``."""
    merged = given.over(before)
    unfit: dict[str, Any] = {
        name: None for name in of_no_use(merged, data.suffix.lower()) if name not in given.given()
    }
    return replace(merged, **unfit)
