"""Runs that find several domains in one table: their checks, their places, their signals."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.rows import varying
from symlift.diagnosis import Diagnosis
from symlift.errors import FitWarning
from symlift.runs.accounts import add_left_out
from symlift.runs.readers.table import LeftOut
from symlift.runs.record import PartRecord, RunSettings
from symlift.several import LatentDomains
from symlift.solvers.contract import Progress
from symlift.storage.atomic import write_atomically
from symlift.storage.csv_cells import safe_cell

__all__ = ["PartsLift", "judged_parts", "write_placements"]


class PartsLift:
    """The signals of all parts, as one model gives those of its own."""

    def __init__(self, estimator: LatentDomains) -> None:
        self.estimator, self.n_outputs = estimator, estimator.n_outputs_

    def lift(self, rows: NDArray) -> NDArray:
        """Signals of some rows; gaps are predicted within each part."""
        return self.estimator.transform(rows)


def judged_parts(
    estimator: LatentDomains,
    rows: NDArray,
    settings: RunSettings,
    notes: list[str],
    progress: Progress,
) -> list[PartRecord]:
    """What was found in each part; if the check fails, a note is added and the fit is kept."""

    def watch(stage: str, share: float | None) -> None:
        progress(f"checking: {stage}", share)

    diagnoses: list[Diagnosis | None] = [None] * len(estimator.domains_)
    if settings.check:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", (FitWarning, UserWarning))
            try:
                diagnoses = [*estimator.diagnose(rows, level=settings.level, progress=watch)]
            except Exception as error:
                notes.append(
                    f"diagnosis failed ({' '.join(f'{type(error).__name__}: {error}'.split())})"
                )
    return [
        PartRecord(
            columns=domain.n_features_in_,
            grid=domain.model_.grid.shape,
            periodic=domain.model_.grid.periodic,
            sphere=getattr(domain.model_.grid, "degree", None),
            diagnosis=diagnosis,
        )
        for domain, diagnosis in zip(estimator.domains_, diagnoses, strict=True)
    ]


def write_placements(
    estimator: LatentDomains, rows: NDArray, left_out: Sequence[LeftOut], path: Path
) -> None:
    """Write where each column is: its part, and its place there; nothing if no part has places."""
    if all(domain.placement_ is None for domain in estimator.domains_) or estimator.maps_:
        return
    with write_atomically(path) as temporary:
        with temporary.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            for row in _table(estimator, varying(rows)):
                writer.writerow([safe_cell(value) for value in row])
        add_left_out(temporary, left_out)


def _table(estimator: LatentDomains, varies: NDArray[np.bool_]) -> Iterator[list[Any]]:
    """The header and one row for each column of the data."""
    names = getattr(estimator, "feature_names_in_", None)
    placements = [domain.placement_ for domain in estimator.domains_]
    axes = max((one.coordinates.shape[1] for one in placements if one is not None), default=1)
    yield [
        "column", "name", "part", *(f"axis{j}" for j in range(axes)),
        "point", "channel", "confidence", "reason",
    ]  # fmt: skip
    position = np.zeros(len(estimator.labels_), dtype=np.int64)
    for part in range(len(placements)):
        mine = estimator.labels_ == part
        position[mine] = np.arange(mine.sum())
    for column, part in enumerate(estimator.labels_.tolist()):
        name = f"x{column}" if names is None else str(names[column])
        placement = placements[part] if part >= 0 else None
        if placement is None:
            nowhere = "unplaced" if part >= 0 else "noise" if varies[column] else "dead"
            yield [column, name, part, *[""] * axes, -1, -1, "", nowhere]
            continue
        at = position[column]
        place = ["" if np.isnan(v) else round(float(v), 4) for v in placement.coordinates[at]]
        yield [
            column, name, part, *place, *[""] * (axes - len(place)), int(placement.point[at]),
            int(placement.channel[at]), round(float(placement.confidence[at]), 4),
            str(placement.reason[at]),
        ]  # fmt: skip
