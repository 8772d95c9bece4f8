"""What a run folder holds, read with care: only the model must be there and sound, everything else may be missing.

Names and JSON values come from outside.  Nothing here trusts their type; what cannot be used becomes a note.
"""

from __future__ import annotations

import json
import math
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError
from symlift.lifting import LiftedModel

__all__ = ["Run", "number", "read_run"]

_MOST_BYTES = 256 * 2**20  # of any one file beside the model: a report needs a few hundred kilobytes of it
_MOST_SAMPLES = 64
_MOST_STEPS = 5000


@dataclass(frozen=True)
class Run:
    """A run as the report sees it; absent parts are empty and ``notes`` says why."""

    folder: Path
    model: LiftedModel
    record: dict[str, Any]
    trace: dict[str, Any]
    observed: NDArray[np.float64] | None
    rows: NDArray[np.int64]  # where in the data the observed samples stood
    metrics: dict[str, list[float]]
    labels: NDArray[np.float64] | None = (
        None  # an angle in radians for each observed sample of a ring, where one was kept
    )
    notes: dict[str, str] = field(default_factory=dict)

    def get(self, *path: str) -> Any:
        """``record[path[0]][path[1]]…``, or None where anything on the way is missing or not a mapping."""
        value: Any = self.record
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    @property
    def name(self) -> str:
        """What the data are called: the input's name, else the folder's."""
        given = self.get("input", "name")
        return given if isinstance(given, str) and given.strip() else self.folder.resolve().name or "run"

    @property
    def seconds(self) -> float | None:
        """How long the fit took, wherever the run wrote it."""
        timings = self.get("timings")
        spent = timings if isinstance(timings, dict) else {}
        for candidate in (
            self.get("seconds"),
            spent.get("total"),
            spent.get("fit"),
            timings,
            self.trace.get("seconds"),
        ):
            if (value := number(candidate)) is not None:
                return value
        parts = [value for part in spent.values() if (value := number(part)) is not None]
        return sum(parts) if parts else None


def number(value: Any) -> float | None:
    """A finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def read_run(folder: Path) -> Run:
    """Everything of a run that can be read; InputError where there is no model."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder: give the run folder that `symlift recover` wrote")
    model = LiftedModel.load(folder)
    notes: dict[str, str] = {}
    record = _read_object(folder / "run.json", "record", notes)
    estimator = _read_object(folder / "estimator.json", "estimator", {})
    trace = record.get("trace") or estimator.get("trace")
    observed, rows, labels = _read_samples(folder / "samples.npz", model.n_features, notes)
    return Run(
        folder=folder,
        model=model,
        record=record,
        trace=trace if isinstance(trace, dict) else {"stages": trace} if isinstance(trace, list) else {},
        observed=observed,
        rows=rows,
        metrics=_read_metrics(folder / "metrics.jsonl"),
        labels=labels,
        notes=notes,
    )


def _small(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= _MOST_BYTES


def _read_object(path: Path, label: str, notes: dict[str, str]) -> dict[str, Any]:
    if not _small(path):
        notes[label] = f"{path.name} is missing"
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError):
        notes[label] = f"{path.name} cannot be read"
        return {}
    if not isinstance(value, dict):
        notes[label] = f"{path.name} is not an object"
        return {}
    return value


Samples = tuple[NDArray[np.float64] | None, NDArray[np.int64], NDArray[np.float64] | None]


def _read_samples(path: Path, d: int, notes: dict[str, str]) -> Samples:
    """Observed rows (k ≤ 64, d), finite ones only, their numbers, and their labels if they have any.

    The signals are lifted from them again rather than read: what is shown is what the model does.
    """
    nothing = None, np.zeros(0, dtype=np.int64), None
    if not _small(path):
        notes["samples"] = "no samples were kept with this run (samples.npz is missing)"
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
        notes["samples"] = "the kept samples cannot be read (samples.npz is damaged)"
        return nothing
    values = values[:_MOST_SAMPLES].astype(np.float64)
    # the page holds float32
    sound = np.all(np.abs(values) < 1e30, axis=1)
    if not sound.any():
        notes["samples"] = "samples.npz holds no finite sample"
        return nothing
    usable = labels is not None and labels.shape == numbers.shape and labels.dtype.kind in "fiu"
    kept_labels = labels[:_MOST_SAMPLES][sound].astype(np.float64) if labels is not None and usable else None
    if kept_labels is not None and not np.isfinite(kept_labels).all():
        kept_labels = None
    return values[sound], numbers[:_MOST_SAMPLES][sound].astype(np.int64), kept_labels


def _read_metrics(path: Path) -> dict[str, list[float]]:
    """Numeric columns of metrics.jsonl, each in the order of its lines."""
    series: dict[str, list[float]] = {}
    if not _small(path):
        return series
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line, _ in zip(lines, range(_MOST_STEPS), strict=False):
                try:
                    entry = json.loads(line)
                except (ValueError, RecursionError):
                    continue  # a line that a killed run left half-written
                for key, raw in entry.items() if isinstance(entry, dict) else ():
                    value = number(raw)
                    if value is not None and key not in {"step", "epoch", "iteration", "time", "seconds"}:
                        series.setdefault(key, []).append(value)
    except OSError:
        return {}
    return {key: values for key, values in series.items() if len(values) > 2}
