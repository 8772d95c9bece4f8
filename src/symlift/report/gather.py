"""Read a run folder: only the model must exist and be valid, everything else may be missing.

The contents are untrusted. What cannot be used becomes a note.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from symlift._estimator_file import ESTIMATOR_FILE, EstimatorRecord, read_estimator
from symlift.core.domain import Domain, Scattered
from symlift.core.model import MAX_DENSE, LiftedModel
from symlift.core.torus import TorusGroup
from symlift.diagnosis import Diagnosis
from symlift.errors import InputError
from symlift.runs.record import RECORD, RunRecord, open_run
from symlift.solvers.contract import Placement
from symlift.storage.model_file import load_model
from symlift.storage.sample_file import Samples, SamplesError, read_samples

__all__ = ["RunContents", "number", "read_run"]

# of any one file except the model: a report needs a few hundred kilobytes of it
_MOST_BYTES = 256 * 2**20

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class RunContents:
    """A run as the report sees it; absent parts are None or empty, and ``notes`` says why.

    ``samples`` are rows of the data, drawn at random from all of them.
    """

    folder: Path
    model: LiftedModel
    record: RunRecord | None
    estimator: EstimatorRecord
    placement: Placement | None
    samples: Samples | None
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the data: the input's name, else the folder's."""
        given = "" if self.record is None else self.record.input.name.strip()
        return given or self.folder.resolve().name or "run"

    @property
    def domain(self) -> Domain:
        """The domain: scattered places, or the grid of the model."""
        grid = self.model.grid
        return Scattered(grid.ndim) if self.estimator.scattered else grid

    @property
    def diagnosis(self) -> Diagnosis | None:
        """The diagnosis of the result, from the run or from the estimator."""
        diagnosis = None if self.record is None else self.record.diagnosis
        return diagnosis if diagnosis is not None else self.estimator.diagnosis

    @property
    def n_rows(self) -> int | None:
        """Number of rows of the fit, where it is known."""
        if self.record is not None:
            return self.record.input.shape[0]
        return self.samples.total or None if self.samples is not None else None

    @property
    def observed(self) -> NDArray | None:
        """The saved samples (k, d)."""
        return None if self.samples is None else self.samples.observed

    @property
    def counted(self) -> int:
        """The number of columns that every sentence counts: with those that hold no numbers."""
        return self.model.n_features if self.record is None else self.record.input.counted

    @property
    def seen(self) -> NDArray[np.int64]:
        """The columns that pictures show: those that have a place, all where none has."""
        every = np.arange(self.model.n_features)
        return every if self.placement is None else every[~self.placement.left_out]

    @property
    def rows(self) -> NDArray[np.int64]:
        """Row numbers of the saved samples in the data, (k,)."""
        return np.zeros(0, dtype=np.int64) if self.samples is None else self.samples.row

    @property
    def seconds(self) -> float | None:
        """Duration of the fit, as recorded by the run, else by the solver."""
        trace = self.estimator.trace
        if self.record is not None:
            spent = self.record.timings.fit
        else:
            spent = (
                sum(stage.seconds for stage in trace.stages)
                if trace.training is None
                else trace.training.seconds
            )
        return number(spent) if spent else None

    @property
    def is_large(self) -> bool:
        """Whether the model's matrices are too large to be computed for a page."""
        model = self.model
        size = max(model.n_features, model.group.dimension)
        return model.is_sparse or isinstance(model.group, TorusGroup) or size > MAX_DENSE

    @cached_property
    def fields(self) -> NDArray[np.float64]:
        """The saved samples lifted, (k, grid points, channels)."""
        shape = self.model.grid.size, self.model.channels
        if self.observed is None:
            return np.zeros((0, *shape))
        return self.model.lift(self.observed).reshape(-1, *shape)

    @property
    def signals(self) -> NDArray[np.float64]:
        """The first channel of the saved samples lifted, (k, grid points)."""
        return self.fields[..., 0]

    @cached_property
    def decomposed(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Singular value decomposition of the lifting map, which two panels need."""
        U, singular, V = np.linalg.svd(
            self.model.lifting_map().astype(np.float64), full_matrices=False
        )
        return U, singular, V


def number(value: float | None) -> float | None:
    """A finite number, or None."""
    try:
        return float(value) if value is not None and math.isfinite(value) else None
    except OverflowError:
        return None


def read_run(folder: Path) -> RunContents:
    """Read everything of a run that can be read; raise InputError where there is no model."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a folder: give the run folder that `symlift recover` wrote"
        )
    model = load_model(folder)
    notes: dict[str, str] = {}
    record = _read(folder / RECORD, lambda: open_run(folder).record, notes)
    estimator = (
        _read(folder / ESTIMATOR_FILE, lambda: read_estimator(folder), notes) or EstimatorRecord()
    )
    try:
        samples = read_samples(folder, model.n_features)
    except SamplesError as error:
        samples, notes["samples"] = None, str(error)
    placement = _read_placement(model, record, estimator, notes)
    return RunContents(folder, model, record, estimator, placement, samples, notes)


def _read(path: Path, read: Callable[[], T], notes: dict[str, str]) -> T | None:
    """The result of ``read``, or None and a note.

    The note names the file without its folder, because reports are shared.
    """
    if not path.is_file():
        notes[path.name] = f"{path.name} is missing"
    elif path.stat().st_size > _MOST_BYTES:
        notes[path.name] = f"{path.name} is too large to be read"
    else:
        try:
            return read()
        except InputError as error:
            notes[path.name] = str(error).replace(str(path), path.name)
        except Exception as error:  # whatever the file contains, the rest can be shown
            notes[path.name] = f"{path.name} is damaged ({type(error).__name__})"
    return None


def _read_placement(
    model: LiftedModel, record: RunRecord | None, estimator: EstimatorRecord, notes: dict[str, str]
) -> Placement | None:
    """Where the columns are, if that is known and fits the model, with the columns' names."""
    if estimator.placement is None:
        return None
    names = estimator.feature_names or (None if record is None else record.input.columns)
    if names is not None and len(names) != model.n_features:
        names = None
    try:
        placement = estimator.placement.placement(model.grid, names, model.channels)
    except ValueError:
        placement = None
    if placement is None or len(placement.point) != model.n_features:
        notes["placement"] = f"the places of the columns in {ESTIMATOR_FILE} do not fit the model"
        return None
    return placement
