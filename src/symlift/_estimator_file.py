"""A fitted estimator as files: the model's two, and ``estimator.json`` for the rest."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from symlift.core.domain import Domain
from symlift.core.model import LiftedModel
from symlift.diagnosis import Diagnosis
from symlift.errors import InputError
from symlift.solvers.contract import LEFT_OUT, REASONS, Evidence, Placement, Stage, Trace
from symlift.solvers.registry import MIXINGS, SOLVERS, canonical
from symlift.statistics.prediction import GapFiller
from symlift.storage.atomic import replace_files, sweep, write_atomically
from symlift.storage.model_file import HEADER, MODEL_FILES, PARTS_FILE, save_model
from symlift.storage.plain_files import NotPlainError, check_plain, refuse_links
from symlift.storage.sample_file import SAMPLES_FILE, Samples, write_samples
from symlift.storage.strict_json import dumps, read_json

__all__ = [
    "ESTIMATOR_FILE",
    "FIT_FILES",
    "GAPS_FILE",
    "EstimatorRecord",
    "PlacementRecord",
    "check_fits",
    "read_estimator",
    "read_gaps",
    "write_estimator",
    "write_fit",
    "write_gaps",
]

ESTIMATOR_FILE = "estimator.json"
GAPS_FILE = "gaps.safetensors"
#: all files of a fit
FIT_FILES = (*MODEL_FILES, ESTIMATOR_FILE, GAPS_FILE, SAMPLES_FILE)
FORMAT_VERSION = 2

_Index = Annotated[int, Field(ge=-1)]
_Share = Annotated[float, Field(ge=0, le=1)]
_Finite = Annotated[float, Field(allow_inf_nan=False)]


class PlacementRecord(BaseModel):
    """A placement as JSON: one list for each of its arrays; null for missing coordinates."""

    coordinates: list[list[_Finite | None]]
    point: list[_Index]
    channel: list[_Index]
    confidence: list[_Share]
    reason: list[str]
    twin: list[_Index]

    @classmethod
    def of(cls, placement: Placement) -> PlacementRecord:
        """From a placement."""
        coordinates = [
            [None if np.isnan(v) else float(v) for v in row] for row in placement.coordinates
        ]
        return cls(
            coordinates=coordinates,
            point=placement.point.tolist(),
            channel=placement.channel.tolist(),
            confidence=placement.confidence.tolist(),
            reason=placement.reason.tolist(),
            twin=placement.twin.tolist(),
        )

    def placement(self, grid: Domain, names: list[str] | None, channels: int = 1) -> Placement:
        """Convert to a placement on ``grid``; a ValueError if the lists are inconsistent."""
        d, axes = len(self.point), grid.ndim
        arrays = (self.coordinates, self.channel, self.confidence, self.reason, self.twin)
        sound = all(len(a) == d for a in arrays) and all(
            len(row) == axes for row in self.coordinates
        )
        sound = sound and set(self.reason) <= set(REASONS) and max(self.twin, default=-1) < d
        sound = sound and max(self.point, default=-1) < grid.size
        sound = sound and all(
            (p < 0) == (why in LEFT_OUT) for p, why in zip(self.point, self.reason, strict=True)
        )
        # one channel holds bits by their significance; several are numbered
        most = d if channels == 1 else channels
        sound = sound and all(
            c < most and (c >= 0 or p < 0) for c, p in zip(self.channel, self.point, strict=True)
        )
        if not sound:
            raise ValueError("placement")
        coordinates = np.array(self.coordinates, dtype=np.float64).reshape(d, axes)
        return Placement(
            grid,
            coordinates,
            np.array(self.point, dtype=np.int64),
            np.array(self.channel, dtype=np.int64),
            np.array(self.confidence),
            np.array(self.reason, dtype="U9"),
            np.array(self.twin, dtype=np.int64),
            None if names is None else tuple(names),
        )


class EstimatorRecord(BaseModel):
    """What ``estimator.json`` holds besides the model."""

    model_config = ConfigDict(extra="ignore")

    format: Literal["symlift-estimator"] = "symlift-estimator"
    version: int = FORMAT_VERSION
    solver: str = "auto"
    mixing: Literal[MIXINGS] = "auto"  # type: ignore[valid-type]
    channels: Annotated[str, Field(pattern="^auto$")] | Annotated[int, Field(ge=1, lt=2**31)] = (
        "auto"
    )
    random_state: Annotated[int, Field(ge=0, lt=2**32)] | None = None
    feature_names: list[str] | None = None
    evidence: Evidence = Evidence()
    trace: Trace = Trace()
    placement: PlacementRecord | None = None
    scattered: bool = False
    diagnosis: Diagnosis | None = None


def write_estimator(record: EstimatorRecord, folder: str | os.PathLike[str]) -> None:
    """Write ``estimator.json`` into ``folder``, whole or not at all."""
    with write_atomically(Path(folder) / ESTIMATOR_FILE) as temporary:
        temporary.write_text(dumps(record.model_dump(), indent=1) + "\n", encoding="utf-8")


def read_estimator(folder: str | os.PathLike[str]) -> EstimatorRecord:
    """Read what `write_estimator`, or symlift 0.1, wrote; a model alone has the defaults."""
    path = Path(folder) / ESTIMATOR_FILE
    if not os.path.lexists(path):
        return EstimatorRecord()
    try:
        raw = read_json(path)
        if not isinstance(raw, dict):
            raise TypeError("not an object")
        record = EstimatorRecord.model_validate(raw if "version" in raw else _from_version_1(raw))
        if canonical(record.solver) not in SOLVERS:
            raise ValueError("solver")
    except (
        OSError,
        ValidationError,
        ValueError,
        TypeError,
        AttributeError,
        OverflowError,
    ) as error:
        if isinstance(error, NotPlainError):
            raise
        raise InputError(
            f"{path} is damaged ({type(error).__name__}): save the model again"
        ) from None
    if record.version > FORMAT_VERSION:
        raise InputError(
            f"{path} has format version {record.version}, above {FORMAT_VERSION}: upgrade symlift"
        )
    return record


def write_fit(
    model: LiftedModel,
    record: EstimatorRecord,
    gaps: GapFiller | None,
    samples: Samples | None,
    folder: str | os.PathLike[str],
    overwrite: bool = False,
) -> None:
    """Write all files of a fit into ``folder``; replace a model only with ``overwrite``.

    All files of an earlier fit are replaced, or none.
    """
    folder = Path(folder)
    sweep(folder)  # another save may have been killed half-way
    if (folder / PARTS_FILE).exists():
        raise InputError(f"{folder} holds saved domains of a table: choose another folder")
    if not overwrite and any((folder / name).exists() for name in MODEL_FILES):
        raise InputError(
            f"{folder} holds a saved model: choose another folder, or give overwrite=True"
        )

    def write(place: Path) -> None:
        save_model(model, place)
        write_estimator(record, place)
        if gaps is not None:
            write_gaps(gaps, place)
        if samples is not None:
            write_samples(samples, place)

    earlier = [name for name in FIT_FILES if os.path.lexists(folder / name)]
    if earlier:
        refuse_links(folder, earlier)
        with replace_files(folder / HEADER, earlier) as new:
            write(new)
        return
    try:
        write(folder)
    except BaseException:
        with contextlib.suppress(OSError):
            for name in FIT_FILES:
                (folder / name).unlink(missing_ok=True)
        raise


def check_fits(
    record: EstimatorRecord, model: LiftedModel, folder: str | os.PathLike[str]
) -> Placement | None:
    """Return the placement that belongs to ``model``; InputError if the two do not match."""
    path, d = Path(folder) / ESTIMATOR_FILE, model.n_features
    if record.feature_names is not None and len(record.feature_names) != d:
        raise InputError(
            f"{path} names {len(record.feature_names)} columns, but the model has {d}: save the"
            " model again"
        )
    if record.placement is None:
        return None
    try:
        placement = record.placement.placement(model.grid, record.feature_names, model.channels)
        if len(placement.point) != d:
            raise ValueError("columns")
    except ValueError:
        raise InputError(f"{path} is damaged (placement): save the model again") from None
    return placement


def write_gaps(filler: GapFiller, folder: str | os.PathLike[str]) -> None:
    """Write what predicts missing entries into ``folder``; single precision is enough for that."""
    from safetensors.numpy import save

    tensors = {
        "mean": filler.mean,
        "near": filler.near.astype(np.int32),
        "covariance": filler.covariance.astype(np.float32),
    }
    with write_atomically(Path(folder) / GAPS_FILE) as temporary:
        temporary.write_bytes(
            save({name: np.ascontiguousarray(value) for name, value in tensors.items()})
        )


def read_gaps(folder: str | os.PathLike[str], columns: int) -> GapFiller | None:
    """What `write_gaps` wrote, for so many columns; None where there is none."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    path = Path(folder) / GAPS_FILE
    if not os.path.lexists(path):
        return None
    try:
        check_plain(path)
        parts = load_file(path)
        near, covariance = parts["near"].astype(np.int64), parts["covariance"].astype(np.float64)
        k = near.shape[1]
        sound = parts["mean"].shape == (columns,) and near.shape == (columns, k)
        sound = (
            sound
            and covariance.shape == (columns, k + 1, k + 1)
            and bool(np.isfinite(covariance).all())
        )
        sound = sound and parts["mean"].dtype.kind == "f" and bool(np.isfinite(parts["mean"]).all())
        if not sound or near.min(initial=0) < 0 or near.max(initial=0) >= columns:
            raise KeyError("shapes")
    except (
        SafetensorError,
        KeyError,
        IndexError,
        OSError,
        TypeError,
        ValueError,
        AttributeError,
    ) as error:
        if isinstance(error, NotPlainError):
            raise
        raise InputError(
            f"{path} is damaged ({type(error).__name__}): save the model again"
        ) from None
    return GapFiller(parts["mean"], near, covariance)


def _from_version_1(raw: Mapping[str, Any]) -> dict[str, Any]:
    """What symlift 0.1 wrote: settings, feature names, and a trace without a type."""
    evidence, trace = _evidence_and_trace(raw.get("trace") or {})
    settings = raw.get("settings") or {}
    return {
        "solver": settings.get("solver", "auto"),
        "feature_names": raw.get("feature_names"),
        "evidence": evidence,
        "trace": trace,
    }


def _evidence_and_trace(old: Mapping[str, Any]) -> tuple[Evidence, Trace]:
    """The evidence and the trace in a trace of version 1, where ``locality`` was the agreement of
    phases on a ring.
    """
    recorded = old.get("evidence") or {}
    ring = old.get("solver") == "homogeneous"
    evidence = Evidence(
        found=bool(recorded.get("found", True)),
        reach=old.get("reach"),
        explained=None if ring else recorded.get("locality"),
        carried_by="angles" if ring else "lags",
        nongaussianity=recorded.get("nongaussianity"),
        agreement=recorded.get("locality") if ring else None,
        roundness=recorded.get("roundness"),
        stationarity=old.get("stationarity"),
        resolution=old.get("resolution"),
        distortion=old.get("distortion"),
    )
    stages = tuple(
        Stage(
            str(stage.get("stage", "")),
            float(stage.get("seconds", 0.0)),
            {key: value for key, value in stage.items() if key not in ("stage", "seconds")},
        )
        for stage in old.get("stages") or ()
    )
    solver = "ring" if ring else str(old.get("solver", ""))
    return evidence, Trace(solver, str(old.get("chosen", "")), stages)
