"""The record of a run, ``run.json``: a versioned type that ``recover`` writes and the report reads.

A run folder holds

- ``model.safetensors``, ``model.json``, ``estimator.json``: the model, for `symlift.load`, with
  the evidence and the trace;
- ``run.json``: status, input (name, hash, shape), settings, versions, timings, score and diagnosis;
- ``parts.json`` and ``parts/``: the same of each of several domains, instead of one model;
- ``placement.csv``: the grid point of each column, if columns are points;
- ``samples.npz``: rows drawn at random, ``observed`` (k, d), and their row numbers ``row``, which
  the report shows;
- ``signals.npy``: all recovered signals, if they were requested;
- ``training/``: checkpoints and curves of solvers that train, from which a killed run continues.

Each file appears whole or not at all.  ``run.json`` says "running" from before the fit until
everything else is written, so that a killed run can be distinguished from a finished one and
started again: solvers return the same result for the same seed, and those that train continue from
their last checkpoint.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from symlift.core.domain import Domain, Scattered, given_domain
from symlift.core.grid import Grid
from symlift.core.sphere import MAX_DEGREE, Sphere
from symlift.diagnosis import Diagnosis, Test, Verdict
from symlift.diagnosis.contract import Level
from symlift.errors import InputError
from symlift.runs.readers.options import DEFAULT, ReadOptions
from symlift.runs.readers.table import LeftOut
from symlift.solvers.registry import TRAINED, canonical, check_mixing, check_solver
from symlift.storage.atomic import write_atomically
from symlift.storage.strict_json import dumps, read_json

__all__ = [
    "FORMAT_VERSION",
    "MAX_SEED",
    "RECORD",
    "InputRecord",
    "PartRecord",
    "Run",
    "RunRecord",
    "RunSettings",
    "Status",
    "Timings",
    "finished",
    "now",
    "open_run",
]

FORMAT_VERSION = 2
RECORD = "run.json"
MAX_SEED = 2**32 - 1


class Status(StrEnum):
    """State of a run."""

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
    #: columns of the file that hold no numbers to fit; those that options leave out are not here
    left_out: list[LeftOut] = Field(default_factory=list)

    @property
    def counted(self) -> int:
        """The number of columns that every sentence counts: all that were not asked away."""
        return self.shape[1] + len(self.left_out)

    @model_validator(mode="before")
    @classmethod
    def _from_before(cls, raw: Any) -> Any:
        """Accept older records, which hold a key instead of all reading options."""
        if isinstance(raw, dict) and "key" in raw and "reading" not in raw:
            return {**raw, "reading": {"key": raw["key"]}}
        return raw


class RunSettings(_Part):
    """The settings a run was started with."""

    grid: str = "auto"
    periodic: bool = False
    solver: str = "auto"
    mixing: str = "auto"
    parts: str | None = None
    nan: Literal["refuse", "drop", "mean", "pairwise"] = "refuse"
    seed: Annotated[int, Field(ge=0)] = 0
    preset: str | None = None
    budget: float | None = None
    signals: bool = False
    check: bool = True
    level: Level = "quick"

    def refuse_nonsense(self) -> None:
        """Refuse settings that are wrong whatever the data are."""
        if self.grid != "auto":
            given_domain(self.grid, self.periodic)
        check_solver(self.solver)
        check_mixing(self.mixing)
        self._refuse_parts()
        if not 0 <= self.seed <= MAX_SEED:
            raise InputError(
                f"seed {self.seed} is out of range: give a whole number from 0 to {MAX_SEED}"
            )
        for name in ("preset", "budget"):
            if getattr(self, name) is not None and not self.trains:
                raise InputError(
                    f"--{name} is for solvers that train: give --solver {' or '.join(TRAINED)} with"
                    " it, or leave it out"
                )
        if self.budget is not None and not 0 < self.budget < math.inf:
            raise InputError(
                f"a budget of {self.budget} seconds is not positive: give one such as 90s, 40m"
                " or 2h"
            )

    def _refuse_parts(self) -> None:
        if self.parts is None:
            return
        if self.parts != "auto" and not re.fullmatch("[1-9][0-9]{0,8}", self.parts):
            raise InputError(
                f"--parts {self.parts} is not understood: give auto, or the number of parts"
            )
        if self.trains:
            raise InputError(
                f"--parts does not go with --solver {self.solver}: leave one of them out"
            )

    @property
    def trains(self) -> bool:
        """Whether the solver trains a model."""
        return canonical(self.solver) in TRAINED


class Timings(_Part):
    """Seconds that each part of a run took."""

    read: float = 0.0
    fit: float = 0.0
    check: float = 0.0
    write: float = 0.0
    total: float = 0.0


class PartRecord(_Part):
    """What a run found in one of several parts: its columns, its grid and its diagnosis."""

    columns: Annotated[int, Field(ge=0)]
    grid: tuple[int, ...]
    periodic: tuple[bool, ...]
    sphere: Annotated[int, Field(ge=1, le=MAX_DEGREE)] | None = None
    diagnosis: Diagnosis | None = None

    @property
    def domain(self) -> Domain:
        """The domain of the part."""
        return Grid(self.grid, self.periodic) if self.sphere is None else Sphere(self.sphere)


class RunRecord(_Part):
    """Hold the content of ``run.json``: input, settings and, once the run is done, its results.

    Parameters
    ----------
    format : {"symlift-run"}
        Marks the file as a record of a run.
    version : int
        Version of the format; records of version 1 (symlift 0.1) are converted when they are read.
    status : Status
        "running", "done" or "failed".
    started : str
        When the run was started, in UTC (ISO 8601).
    ended : str, optional
        When it ended; None while it runs.
    resumed : int, default=0
        How often it was continued after an interruption.
    input : InputRecord
        Name, hash, shape and columns of the data file, and the options it was read with.
    settings : RunSettings
        The settings of the fit.
    versions : dict of str to str
        Versions of symlift, Python and the numerical packages.
    grid : tuple of int
        Shape of the grid that was fitted; this and the following fields are set when the run is
        done.
    periodic : tuple of bool
        Whether each axis of the grid is closed.
    grid_confidence : float, optional
        Confidence in a grid that was proposed; None if the grid was given.
    scattered : bool, default=False
        Whether columns have places of their own; ``grid`` is then the one that their field is drawn
        on.
    sphere : int, optional
        Degree of the sphere that was fitted; ``grid`` is then the number of its points.
    solver : str
        The solver that "auto" chose, or the one that was given.
    score : float, optional
        `LatentDomain.score` of the first rows.
    diagnosis : Diagnosis, optional
        The verdict with its tests; None if the check was left out.
    parts : list of PartRecord, optional
        What was found in each of several parts; None for a run that looked for one domain.  Then
        ``grid``, ``periodic``, ``score`` and ``diagnosis`` are empty.
    warnings : list of str
        Warnings of the fit.
    timings : Timings
        Seconds that reading, fitting, checking and writing took.
    error : str, optional
        Why the run failed.

    Examples
    --------
    >>> record = RunRecord(
    ...     status="done", started="2026-01-01T00:00:00+00:00", grid=(15,), periodic=(True,),
    ...     input=InputRecord(name="log.csv", sha256="", shape=(500, 15)), settings=RunSettings(),
    ... )
    >>> record.status.value, record.settings.seed, RunRecord(**record.model_dump()) == record
    ('done', 0, True)
    """

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
    scattered: bool = False
    sphere: Annotated[int, Field(ge=1, le=MAX_DEGREE)] | None = None
    solver: str = ""
    score: float | None = None
    diagnosis: Diagnosis | None = None
    parts: list[PartRecord] | None = None
    warnings: list[str] = Field(default_factory=list)
    timings: Timings = Field(default_factory=Timings)
    error: str | None = None

    @property
    def domain(self) -> Domain:
        """The domain of a run that is done."""
        if self.sphere is not None:
            return Sphere(self.sphere, axes=self.settings.grid == "projective")
        return Scattered(len(self.grid)) if self.scattered else Grid(self.grid, self.periodic)

    @property
    def diagnoses(self) -> list[Diagnosis]:
        """The diagnosis of each domain that was checked, the least sure one first."""
        known = [self.diagnosis] if self.parts is None else [one.diagnosis for one in self.parts]
        return sorted((one for one in known if one is not None), key=lambda one: one.confidence)


@dataclass
class Run:
    """A run folder and its record."""

    folder: Path
    record: RunRecord
    fresh: bool = True  # made by this call; False for a run that was finished before

    def write(self) -> None:
        """Write ``run.json``, whole or not at all."""
        with write_atomically(self.folder / RECORD) as temporary:
            temporary.write_text(
                dumps(self.record.model_dump(mode="json"), indent=1) + "\n", encoding="utf-8"
            )


def now() -> str:
    """Return the current time as records hold it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def open_run(folder: Path) -> Run:
    """Open the run in ``folder``, whatever its status; records of symlift 0.1 are converted."""
    path = folder / RECORD
    if not path.is_file():
        if not folder.exists():
            raise InputError(
                f"{folder} does not exist: give a run folder that `symlift recover` made"
            )
        raise InputError(
            f"{folder} is not a run folder, it has no {RECORD}: give one that `symlift recover`"
            " made"
        )
    try:
        raw = read_json(path)
        if not isinstance(raw, dict) or raw.get("format") != "symlift-run":
            raise ValueError("format")
        version = int(raw["version"])
        if version > FORMAT_VERSION:
            raise InputError(
                f"{path} has format version {version}, above {FORMAT_VERSION}: upgrade symlift"
            )
        record = RunRecord.model_validate(_from_version_1(raw) if version == 1 else raw)
    except (
        ValidationError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        OverflowError,
        OSError,
    ) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} is damaged ({type(error).__name__}): recover again with --overwrite"
        ) from None
    return Run(folder, record, fresh=False)


def finished(folder: Path) -> Run:
    """Open the run in ``folder``, which must be done."""
    run = open_run(folder)
    if run.record.status is not Status.DONE:
        state = "has failed" if run.record.status is Status.FAILED else "is not finished"
        raise InputError(
            f"the run in {folder} {state}: continue it with `symlift recover DATA --out {folder}"
            " --resume`"
        )
    return run


#: the sentences that version 1 stored as verdicts
_SENTENCES = {
    "an identifiable translation symmetry is present and stable": Verdict.PRESENT,
    "a translation symmetry is present, but not identifiable from these data": (
        Verdict.UNIDENTIFIABLE
    ),
    "no evidence for a translation symmetry": Verdict.ABSENT,
}


def _from_version_1(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a record of symlift 0.1, whose verdict was a sentence and whose numbers a mapping."""
    record = {key: value for key, value in raw.items() if value is not None and key != "trace"}
    record["version"] = FORMAT_VERSION
    record["grid_confidence"] = raw.get("confidence")
    diagnosis = raw.get("diagnosis")
    if isinstance(diagnosis, Mapping):
        tests = tuple(Test(name, value) for name, value in (diagnosis.get("figures") or {}).items())
        record["diagnosis"] = Diagnosis(
            _SENTENCES[diagnosis["verdict"]], float(diagnosis["confidence"]), tests
        )
    return record
