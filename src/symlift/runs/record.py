"""The record of a run, ``run.json``: one versioned type that :func:`~symlift.runs.recover.recover` writes and the report reads.

A run folder holds

- ``model.safetensors``, ``model.json``, ``estimator.json``: the model, for :func:`symlift.load`, with the evidence and the trace;
- ``run.json``: status, input (name, hash, shape), settings, versions, timings, score and diagnosis;
- ``placement.csv``: where each column sits, where columns are points;
- ``samples.npz``: some rows, ``observed`` (k, d), drawn at random from all, and their numbers ``row``; the report shows them;
- ``signals.npy``: all recovered signals, where they were asked for;
- ``training/``: checkpoints and curves of solvers that train, from which a killed run goes on.

Each file appears whole or not at all.  ``run.json`` says "running" from before the fit until everything else is written, so a
killed run can be distinguished from a finished one and started again: solvers give the same result for the same seed, and those
that train go on from their last checkpoint.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from symlift.core.grid import Grid
from symlift.diagnosis import Diagnosis, Test, Verdict
from symlift.errors import InputError
from symlift.runs.readers.options import DEFAULT, ReadOptions
from symlift.solvers.registry import TRAINED, canonical, check_mixing, check_solver
from symlift.storage.atomic import write_atomically
from symlift.storage.strict_json import dumps, read_json

__all__ = [
    "FORMAT_VERSION", "MAX_SEED", "RECORD", "InputRecord", "Run", "RunRecord", "RunSettings", "Status", "Timings", "finished",
    "now", "open_run",
]  # fmt: skip

FORMAT_VERSION = 2
RECORD = "run.json"
MAX_SEED = 2**32 - 1


class Status(StrEnum):
    """How far a run is."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")


class InputRecord(_Part):
    """The data file of a run."""

    name: str
    sha256: str
    shape: tuple[int, int]
    dtype: str = ""
    reading: ReadOptions = DEFAULT
    columns: list[str] | None = None
    notes: list[str] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _from_before(cls, raw: Any) -> Any:
        """Records had a key where they have all options of reading now."""
        if isinstance(raw, dict) and "key" in raw and "reading" not in raw:
            return {**raw, "reading": {"key": raw["key"]}}
        return raw


class RunSettings(_Part):
    """What was asked for."""

    grid: str = "auto"
    periodic: bool = False
    solver: str = "auto"
    mixing: str = "auto"
    nan: Literal["refuse", "drop", "mean", "pairwise"] = "refuse"
    seed: Annotated[int, Field(ge=0)] = 0
    preset: str | None = None
    budget: float | None = None
    signals: bool = False
    check: bool = True

    def refuse_nonsense(self) -> None:
        """Everything that can be said before looking at the data."""
        if self.grid != "auto":
            Grid.parse(self.grid, self.periodic)
        check_solver(self.solver)
        check_mixing(self.mixing)
        if not 0 <= self.seed <= MAX_SEED:
            raise InputError(f"seed {self.seed} is out of range: give a whole number from 0 to {MAX_SEED}")
        for name in ("preset", "budget"):
            if getattr(self, name) is not None and not self.trains:
                raise InputError(
                    f"--{name} is for solvers that train: give --solver {' or '.join(TRAINED)} with it, or leave it out"
                )
        if self.budget is not None and not 0 < self.budget < math.inf:
            raise InputError(f"a budget of {self.budget} seconds is no time: give one such as 90s, 40m or 2h")

    @property
    def trains(self) -> bool:
        """Whether the solver is one that trains."""
        return canonical(self.solver) in TRAINED


class Timings(_Part):
    """Seconds of each part of a run."""

    read: float = 0.0
    fit: float = 0.0
    check: float = 0.0
    write: float = 0.0
    total: float = 0.0


class RunRecord(_Part):
    """What ``run.json`` holds.  Fields from ``grid`` on are those of a run that is done."""

    format: Literal["symlift-run"] = "symlift-run"
    version: int = FORMAT_VERSION
    status: Status
    started: str
    ended: str | None = None
    resumed: int = 0
    input: InputRecord
    settings: RunSettings
    versions: dict[str, str] = Field(default_factory=dict)
    grid: tuple[int, ...] = ()
    periodic: tuple[bool, ...] = ()
    grid_confidence: float | None = None
    solver: str = ""
    score: float | None = None
    diagnosis: Diagnosis | None = None
    warnings: list[str] = Field(default_factory=list)
    timings: Timings = Field(default_factory=Timings)
    error: str | None = None


@dataclass
class Run:
    """A run folder and its record; None for a process that only trained along with another."""

    folder: Path
    record: RunRecord
    fresh: bool = True  # made by this call, rather than found finished

    def write(self) -> None:
        """``run.json``, whole or not at all."""
        with write_atomically(self.folder / RECORD) as temporary:
            temporary.write_text(dumps(self.record.model_dump(mode="json"), indent=1) + "\n", encoding="utf-8")


def now() -> str:
    """The time, as records hold it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def open_run(folder: Path) -> Run:
    """The run in ``folder``, whatever its status; records of symlift 0.1 are read as well."""
    path = folder / RECORD
    if not path.is_file():
        if not folder.exists():
            raise InputError(f"{folder} does not exist: give a run folder that `symlift recover` made")
        raise InputError(f"{folder} is not a run folder, it has no {RECORD}: give one that `symlift recover` made")
    try:
        raw = read_json(path)
        if not isinstance(raw, dict) or raw.get("format") != "symlift-run":
            raise ValueError("format")
        version = int(raw["version"])
        if version > FORMAT_VERSION:
            raise InputError(f"{path} has format version {version}, above {FORMAT_VERSION}: upgrade symlift")
        record = RunRecord.model_validate(_from_version_1(raw) if version == 1 else raw)
    except (ValidationError, ValueError, KeyError, TypeError, AttributeError, OverflowError, OSError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is damaged ({type(error).__name__}): recover again with --overwrite") from None
    return Run(folder, record, fresh=False)


def finished(folder: Path) -> Run:
    """The run in ``folder``, which must be done."""
    run = open_run(folder)
    if run.record.status is not Status.DONE:
        state = "has failed" if run.record.status is Status.FAILED else "is not finished"
        raise InputError(f"the run in {folder} {state}: go on with `symlift recover DATA --out {folder} --resume`")
    return run


#: the sentences that stood for verdicts in version 1
_SENTENCES = {
    "an identifiable translation symmetry is present and stable": Verdict.PRESENT,
    "a translation symmetry is present, but not identifiable from these data": Verdict.UNIDENTIFIABLE,
    "no evidence for a translation symmetry": Verdict.ABSENT,
}


def _from_version_1(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A record as symlift 0.1 wrote it: the verdict was a sentence, and its numbers a mapping."""
    record = {key: value for key, value in raw.items() if value is not None and key != "trace"}
    record["version"] = FORMAT_VERSION
    record["grid_confidence"] = raw.get("confidence")
    told = raw.get("diagnosis")
    if isinstance(told, Mapping):
        tests = tuple(Test(name, value) for name, value in (told.get("figures") or {}).items())
        record["diagnosis"] = Diagnosis(_SENTENCES[told["verdict"]], float(told["confidence"]), tests)
    return record
