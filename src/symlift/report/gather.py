"""What a run folder holds, read with care: only the model must be there and sound, everything else may be missing.

Names and numbers come from outside.  What cannot be used becomes a note.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from symlift.core.model import MAX_DENSE, LiftedModel
from symlift.core.torus import TorusGroup
from symlift.errors import InputError
from symlift.estimator_file import ESTIMATOR_FILE, EstimatorRecord, read_estimator
from symlift.runs.record import RECORD, RunRecord, open_run
from symlift.solvers.contract import Placement
from symlift.storage.model_file import load_model

__all__ = ["Run", "number", "read_run", "spread_rows"]

_MOST_BYTES = 256 * 2**20  # of any one file beside the model: a report needs a few hundred kilobytes of it
_MOST_SAMPLES = 64

T = TypeVar("T")


def spread_rows(n: int) -> NDArray[np.int64]:
    """Up to 64 row numbers, spread evenly over all of ``n``."""
    return np.unique(np.linspace(0, n - 1, min(n, _MOST_SAMPLES)).round().astype(np.int64))


@dataclass(frozen=True, eq=False)
class Run:
    """A run as the report sees it; absent parts are None or empty, and ``notes`` says why.

    ``observed`` (k, d) are the kept samples, ``rows`` (k,) says where in the data they stood, and ``labels`` (k,) are
    angles in radians, where a ring's samples have any.
    """

    folder: Path
    model: LiftedModel
    record: RunRecord | None
    estimator: EstimatorRecord
    placement: Placement | None
    observed: NDArray[np.float64] | None
    rows: NDArray[np.int64]
    labels: NDArray[np.float64] | None
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What the data are called: the input's name, else the folder's."""
        given = "" if self.record is None else self.record.input.name.strip()
        return given or self.folder.resolve().name or "run"

    @property
    def seconds(self) -> float | None:
        """How long the fit took: by the run's own clock, else by the solver's."""
        trace = self.estimator.trace
        if self.record is not None:
            spent = self.record.timings.fit
        else:
            spent = sum(stage.seconds for stage in trace.stages) if trace.training is None else trace.training.seconds
        return number(spent) if spent else None

    @property
    def is_large(self) -> bool:
        """Whether the model's matrices are too large to be made for a page."""
        model = self.model
        size = max(model.n_features, model.group.dimension)
        return model.is_sparse or isinstance(model.group, TorusGroup) or size > MAX_DENSE

    @cached_property
    def signals(self) -> NDArray[np.float64]:
        """The kept samples lifted, (k, grid points): of several channels the first."""
        if self.observed is None:
            return np.zeros((0, self.model.grid.size))
        return self.model.lift(self.observed)[:, :: self.model.channels]

    @cached_property
    def decomposed(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Singular value decomposition of the lifting map, which two panels need."""
        U, singular, V = np.linalg.svd(self.model.lifting_map().astype(np.float64), full_matrices=False)
        return U, singular, V


def number(value: float | None) -> float | None:
    """A finite number, or None."""
    try:
        return float(value) if value is not None and math.isfinite(value) else None
    except OverflowError:
        return None


def read_run(folder: Path) -> Run:
    """Everything of a run that can be read; InputError where there is no model."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder: give the run folder that `symlift recover` wrote")
    model = load_model(folder)
    notes: dict[str, str] = {}
    record = _read(folder / RECORD, lambda: open_run(folder).record, notes)
    estimator = _read(folder / ESTIMATOR_FILE, lambda: read_estimator(folder), notes) or EstimatorRecord()
    observed, rows, labels = _read_samples(folder / "samples.npz", model.n_features, notes)
    placement = _read_placement(model, record, estimator, notes)
    return Run(folder, model, record, estimator, placement, observed, rows, labels, notes)


def _read(path: Path, read: Callable[[], T], notes: dict[str, str]) -> T | None:
    """What ``read`` gives, or None and a note that names the file without its folder: reports are passed on."""
    if not path.is_file():
        notes[path.name] = f"{path.name} is missing"
    elif path.stat().st_size > _MOST_BYTES:
        notes[path.name] = f"{path.name} is too large to be read"
    else:
        try:
            return read()
        except InputError as error:
            notes[path.name] = str(error).replace(str(path), path.name)
        except Exception as error:  # whatever somebody wrote into the file, the rest can be shown
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


Samples = tuple[NDArray[np.float64] | None, NDArray[np.int64], NDArray[np.float64] | None]


def _read_samples(path: Path, d: int, notes: dict[str, str]) -> Samples:
    """Observed rows (k ≤ 64, d), finite ones only, their numbers, and their labels if they have any.

    The signals are lifted from them again rather than read: what is shown is what the model does.
    """
    nothing = None, np.zeros(0, dtype=np.int64), None
    if not path.is_file() or path.stat().st_size > _MOST_BYTES:
        notes["samples"] = f"no samples were kept with this run ({path.name} is missing)"
        return nothing
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > _MOST_BYTES:
                raise ValueError("too large")
        with np.load(path, allow_pickle=False) as kept:
            values = np.asarray(kept["observed"])
            numbers = np.asarray(kept["row"]) if "row" in kept else np.arange(len(values))
            labels = np.asarray(kept["label"]) if "label" in kept else None
        if values.ndim != 2 or values.shape[1] != d or values.dtype.kind not in "fiub":
            notes["samples"] = f"the kept samples do not fit the model: shape {values.shape} where (k, {d}) is needed"
            return nothing
        if numbers.shape != values.shape[:1] or numbers.dtype.kind not in "iu":
            numbers = np.arange(len(values))
    except (zipfile.BadZipFile, zlib.error, ValueError, TypeError, KeyError, OSError, EOFError, NotImplementedError):
        notes["samples"] = f"the kept samples cannot be read ({path.name} is damaged)"
        return nothing
    values = values[:_MOST_SAMPLES].astype(np.float64)
    # the page holds float32
    sound = np.all(np.abs(values) < 1e30, axis=1)
    if not sound.any():
        notes["samples"] = f"{path.name} holds no finite sample"
        return nothing
    usable = labels is not None and labels.shape == numbers.shape and labels.dtype.kind in "fiu"
    kept_labels = labels[:_MOST_SAMPLES][sound].astype(np.float64) if labels is not None and usable else None
    if kept_labels is not None and not np.isfinite(kept_labels).all():
        kept_labels = None
    return values[sound], numbers[:_MOST_SAMPLES][sound].astype(np.int64), kept_labels
