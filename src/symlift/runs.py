"""Run folders: what was asked, what was found, and enough beside it to draw it and to go on after a kill.

A run folder holds

- ``model.safetensors``, ``model.json``, ``estimator.json``: the model, for :func:`symlift.load`;
- ``run.json``: status, input (name, hash, shape), settings, versions, timings, the solver's trace, score and diagnosis;
- ``metrics.jsonl``: one line for each stage of the solver;
- ``samples.npz``: a few rows, ``observed`` (k, d) and ``recovered`` (k, grid points), which the report draws;
- ``signals.npy``: all recovered signals, where they were asked for;
- ``training/``: checkpoints and curves of solvers that train, from which a killed run goes on.

Each file appears whole or not at all.  ``run.json`` says "running" from before the fit until everything else is written, so
a killed run can be told from a finished one and started again: solvers give the same result for the same seed, and those that
train go on from their last checkpoint.
"""

from __future__ import annotations

import contextlib
import json
import math
import platform
import time
import warnings
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift import __version__
from symlift.errors import FitWarning, InputError, SymliftError
from symlift.estimator import LatentDomain, load
from symlift.grid import Grid
from symlift.io import Table, check_writable, content_hash, forget_pages, open_rows, read_table
from symlift.lifting import LiftedModel, write_atomically
from symlift.solvers import CHECKPOINT, CURVE, TRAINED, Progress, get_solver, no_progress
from symlift.solvers.processes import is_follower, wait_for_all

__all__ = ["Run", "RunFailedError", "open_run", "recover", "transform"]

FORMAT_VERSION = 1
RECORD = "run.json"
TRAINING = "training"
OUTPUTS = (
    "model.safetensors", "model.json", "estimator.json", "metrics.jsonl", "samples.npz", "signals.npy", "report.html",
)  # fmt: skip
SAMPLES, SAMPLED_ROWS, SCORED_ROWS = 64, 4096, 20_000
MAX_SEED = 2**32 - 1


class RunFailedError(SymliftError):
    """The input was right, but the run did not end (exit code 1 on the command line)."""


@dataclass
class Run:
    """A run folder and what its ``run.json`` says."""

    folder: Path
    record: dict[str, Any] = field(default_factory=dict)
    fresh: bool = True  # made by this call, rather than found finished

    @property
    def status(self) -> str:
        """ "running", "done" or "failed"."""
        return str(self.record.get("status"))

    def write(self) -> None:
        """``run.json``, whole or not at all."""
        with write_atomically(self.folder / RECORD) as temporary:
            temporary.write_text(json.dumps(plain(self.record), indent=1, allow_nan=False) + "\n", encoding="utf-8")


def open_run(folder: Path) -> Run:
    """The run in ``folder``, whatever its status."""
    path = folder / RECORD
    if not path.is_file():
        if not folder.exists():
            raise InputError(f"{folder} does not exist: give a run folder that `symlift recover` made")
        raise InputError(f"{folder} is not a run folder, it has no {RECORD}: give one that `symlift recover` made")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["format"] != "symlift-run":
            raise ValueError(f"format {record['format']!r}")
        version = int(record["version"])
        if not all(isinstance(record[key], dict) for key in ("input", "settings")) or not isinstance(
            record["status"], str
        ):
            raise TypeError("fields")
        hash(record["input"]["sha256"])
        _Settings(**{key: record["settings"][key] for key in ("grid", "periodic", "solver", "seed")})
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path} is damaged ({type(error).__name__}): recover again with --overwrite") from None
    if version > FORMAT_VERSION:
        raise InputError(f"{path} has format version {version}, above {FORMAT_VERSION}: upgrade symlift")
    return Run(folder, record, fresh=False)


def finished(folder: Path) -> Run:
    """The run in ``folder``, which must be done."""
    run = open_run(folder)
    if run.status != "done":
        state = "has failed" if run.status == "failed" else "is not finished"
        raise InputError(f"the run in {folder} {state}: go on with `symlift recover DATA --out {folder} --resume`")
    return run


@dataclass(frozen=True)
class _Settings:
    grid: str = "auto"
    periodic: bool = False
    solver: str = "auto"
    seed: int = 0
    preset: str | None = None
    budget: float | None = None

    def check(self) -> None:
        """Everything that can be said before looking at the data."""
        if self.grid != "auto":
            Grid.parse(self.grid, self.periodic)
        get_solver(self.solver)
        if not 0 <= self.seed <= MAX_SEED:
            raise InputError(f"seed {self.seed} is out of range: give a whole number from 0 to {MAX_SEED}")
        for name in ("preset", "budget"):
            if getattr(self, name) is not None and self.solver not in TRAINED:
                raise InputError(
                    f"--{name} is for solvers that train: give --solver {' or '.join(TRAINED)} with it, or leave it out"
                )
        if self.budget is not None and not 0 < self.budget < math.inf:
            raise InputError(f"a budget of {self.budget} seconds is no time: give one such as 90s, 40m or 2h")

    def options(self, folder: Path) -> dict[str, Any]:
        """What the solver is told beside the rows and the grid."""
        if self.solver not in TRAINED:
            return {}
        return {"folder": folder / TRAINING, "preset": self.preset or "auto", "seconds": self.budget}


def recover(
    data: Path,
    out: Path | None = None,
    *,
    grid: str | None = None,
    periodic: bool = False,
    solver: str | None = None,
    seed: int | None = None,
    key: str | None = None,
    preset: str | None = None,
    budget: float | None = None,
    signals: bool = False,
    overwrite: bool = False,
    resume: bool = False,
    progress: Progress = no_progress,
) -> Run:
    """Fit :class:`~symlift.LatentDomain` to a data file and keep the result in the folder ``out``.

    What is None takes its default, or with ``resume`` what the run was started with.  ``data`` may be the run folder itself
    with ``resume``; the data file is then looked for by its name, here and beside the folder.  ``preset`` and ``budget`` (in
    seconds) are for solvers that train.  Of several processes (torchrun), the first keeps the folder; the others only train along.
    """
    if overwrite and resume:
        raise InputError("--overwrite starts again and --resume goes on: give one of them")
    if resume and out is None and (data / RECORD).is_file():
        out, data = data, _find_input(data)
    out = out if out is not None else Path(f"{data.stem}-symlift")
    given: dict[str, Any] = {
        "grid": grid, "periodic": periodic or None, "solver": solver, "seed": seed, "preset": preset, "budget": budget,
    }  # fmt: skip
    asked = {name: value for name, value in given.items() if value is not None}
    # a follower may come when the first process has made the folder already
    before = None if is_follower() and not resume else _look_at(out, overwrite, resume)
    if before is not None and resume:
        _agree(before, asked, key)
        kept = before.record["settings"]
        settings = _Settings(**{name: kept[name] for name in given if name in kept})
        key = before.record["input"].get("key")
        signals = signals or bool(before.record["settings"].get("signals"))
    else:
        settings = _Settings(**asked)
    settings.check()
    start = time.perf_counter()
    progress("reading", None)
    table = read_table(data, key)
    if len(table.rows) < 2:
        raise InputError(f"{data} has one row only: give more rows than columns")
    digest = content_hash(data)
    if is_follower():
        wait_for_all()  # until the first process has made the folder ready
        _fit(table.rows, settings, out, no_progress)
        return Run(out, fresh=False)
    if before is not None and resume:
        if before.record["input"]["sha256"] != digest:
            raise InputError(
                f"{data} is not what the run in {out} was started with (its hash differs): give the same data, or --overwrite"
            )
        if before.status == "done":
            return before
    run = Run(
        out,
        {
            "format": "symlift-run", "version": FORMAT_VERSION, "status": "running",
            "started": before.record.get("started", _now()) if before is not None and resume else _now(), "ended": None,
            "resumed": int(before.record.get("resumed", 0)) + 1 if before is not None and resume else 0,
            "input": {"name": data.name, "sha256": digest, "shape": list(table.rows.shape), "dtype": str(table.rows.dtype),
                      "key": key, "columns": table.names},
            "settings": {**asdict(settings), "signals": signals},
            "versions": _versions(),
        },
    )  # fmt: skip
    _run(run, data, table, settings, time.perf_counter() - start, progress)
    return run


def _run(run: Run, data: Path, table: Table, settings: _Settings, reading: float, progress: Progress) -> None:
    claim = _Claim(run)
    try:
        start = time.perf_counter()
        progress("fitting", None)
        if not run.record["resumed"]:
            claim.forget_training()
        if settings.solver in TRAINED:
            wait_for_all()
        estimator, told = _fit(table.rows, settings, run.folder, progress)
        fitted = time.perf_counter()
        progress("checking", None)
        score, diagnosis = _judge(estimator, table.rows, told)
        judged = time.perf_counter()
        progress("writing", None)
        claim.clear()
        _write_results(run, estimator, table.rows, progress)
    except InputError as error:
        claim.undo()
        raise InputError(f"{data}: {error}") from None
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        run.record |= {"status": "failed", "ended": _now(), "error": reason}
        with contextlib.suppress(OSError):  # a full disk is the likeliest reason to be here
            claim.clear()
            run.write()
        raise RunFailedError(f"the run in {run.folder} failed ({reason}): mend that and go on with --resume") from error
    written = time.perf_counter()
    run.record |= {
        "status": "done", "ended": _now(),
        "grid": list(estimator.grid_.shape), "periodic": list(estimator.grid_.axes_periodic),
        "confidence": estimator.grid_.confidence, "solver": estimator.trace_.get("solver", settings.solver),
        "score": score, "diagnosis": diagnosis, "warnings": told,
        "timings": {"read": reading, "fit": fitted - start, "check": judged - fitted, "write": written - judged,
                    "total": reading + written - start},
        "trace": estimator.trace_,
    }  # fmt: skip
    run.write()


def _fit(rows: NDArray, settings: _Settings, folder: Path, progress: Progress) -> tuple[LatentDomain, list[str]]:
    estimator = LatentDomain(settings.grid, settings.periodic, settings.solver, random_state=settings.seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FitWarning)
        estimator._fit(
            rows, progress=lambda stage, share: progress(f"fitting: {stage}", share), **settings.options(folder)
        )
    return estimator, [str(w.message) for w in caught if issubclass(w.category, FitWarning)]


def _judge(estimator: LatentDomain, rows: NDArray, told: list[str]) -> tuple[float | None, dict[str, Any] | None]:
    """Score and diagnosis, where the estimator has them; a fit is not lost because they fail."""
    score, diagnosis = None, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        for name in ("score", "diagnose"):
            judge = getattr(estimator, name, None)
            try:
                if judge is not None and name == "score":
                    score = float(judge(rows[:SCORED_ROWS]))
                elif judge is not None:
                    found = judge(rows)
                    diagnosis = (
                        asdict(found) if is_dataclass(found) and not isinstance(found, type) else dict(vars(found))
                    )
            except Exception as error:
                told.append(f"{name} failed ({' '.join(f'{type(error).__name__}: {error}'.split())})")
    return score, diagnosis


def _write_results(run: Run, estimator: LatentDomain, rows: NDArray, progress: Progress) -> None:
    folder = run.folder
    estimator.save(folder)
    stages = estimator.trace_.get("stages")
    lines = (
        [stage if isinstance(stage, dict) else {"stage": stage} for stage in stages] if isinstance(stages, list) else []
    )
    with write_atomically(folder / "metrics.jsonl") as temporary:
        text = "".join(json.dumps(plain(line), allow_nan=False) + "\n" for line in lines)
        temporary.write_text(text, encoding="utf-8")
    # rows that vary most say most
    head = np.array(rows[:SAMPLED_ROWS], dtype=np.float64)
    shown = np.sort(np.argsort(-head.var(axis=1), kind="stable")[:SAMPLES])
    with write_atomically(folder / "samples.npz") as temporary, temporary.open("wb") as file:
        np.savez(
            file,
            observed=head[shown].astype(np.float32),
            recovered=estimator.model_.lift(head[shown]).astype(np.float32),
            row=shown,
        )
    if run.record["settings"]["signals"]:
        lift_to_file(estimator.model_, rows, folder / "signals.npy", progress)


def lift_to_file(model: LiftedModel, rows: NDArray, path: Path, progress: Progress = no_progress) -> None:
    """Stream the signals of ``rows`` into a file; nothing of their number is held in memory."""
    dtype = np.float32 if rows.dtype == np.float32 else np.float64

    with open_rows(path, (len(rows), model.grid.size), dtype, key="signals") as sink:

        class Told:
            """The sink, which also tells how far it is."""

            shape = sink.shape

            def __setitem__(self, part: slice, block: NDArray) -> None:
                sink[part] = block
                forget_pages(rows)
                progress("writing", sink.done / len(rows))

        out: Any = Told()
        model.lift(rows, out=out)


def transform(
    folder: Path,
    data: Path,
    out: Path,
    *,
    key: str | None = None,
    overwrite: bool = False,
    progress: Progress = no_progress,
) -> tuple[int, int]:
    """Write the signals that the model of a run finds in a data file; returns their shape (n, grid points).

    ``folder`` is a run folder, or a folder that :meth:`LatentDomain.save` wrote.
    """
    run = finished(folder) if (folder / RECORD).exists() or not (folder / "model.json").exists() else None
    check_writable(out)
    if out.exists() and not overwrite:
        raise InputError(f"{out} exists: choose another --out, or give --overwrite")
    estimator = load(folder)
    progress("reading", None)
    table = read_table(data, key)
    if out.exists() and out.samefile(data):
        raise InputError(f"{out} is the data file itself: choose another --out")
    if table.rows.shape[1] != estimator.n_features_in_:
        raise InputError(
            f"{data} has {table.rows.shape[1]} columns, but {folder} was fitted to {estimator.n_features_in_}: "
            "give data with the same columns"
        )
    fitted_names = None if run is None else run.record["input"].get("columns")
    if fitted_names is not None and table.names is not None and list(table.names) != list(fitted_names):
        where = next(i for i, (a, b) in enumerate(zip(table.names, fitted_names, strict=True)) if a != b)
        raise InputError(
            f"{data} has {table.names[where]!r} in column {where + 1} where {folder} was fitted to {fitted_names[where]!r}: "
            "put the columns in the same order"
        )
    try:
        lift_to_file(estimator.model_, table.rows, out, progress)
    except InputError as error:
        raise InputError(f"{data}: {error}") from None
    return len(table.rows), estimator.grid_.size


# -- the folder --------------------------------------------------------------------------------------------------------


def _look_at(out: Path, overwrite: bool, resume: bool) -> Run | None:
    """The run that is there already, if it may be replaced or continued; None where there is none."""
    if not out.name or out.name == "..":
        raise InputError(f"--out {str(out)!r} is not the name of a run folder: choose another one")
    try:
        if not out.exists() and not out.is_symlink():
            return None
    except OSError as error:
        raise InputError(f"{out} cannot be a run folder ({error.strerror}): choose another --out") from None
    if not out.is_dir():
        raise InputError(f"{out} is a file: choose another --out for the run folder")
    if not (out / RECORD).is_file():
        if any(not _is_temporary(entry) for entry in out.iterdir()):
            raise InputError(f"{out} exists and is not a run folder: choose another --out")
        return None
    if overwrite:
        return Run(out)
    run = open_run(out)
    if not resume:
        if run.status == "done":
            raise InputError(f"{out} holds a finished run: choose another --out, or give --overwrite")
        raise InputError(f"{out} holds a run that did not finish: go on with --resume, or start again with --overwrite")
    return run


def _agree(run: Run, asked: dict[str, Any], key: str | None) -> None:
    """Settings that are given with --resume must be those of the run."""
    kept = run.record["settings"]
    for name, value in asked.items():
        if kept[name] != value:
            raise InputError(
                f"the run in {run.folder} was started with {name} {kept[name]}, not {value}: leave out --{name}, or --overwrite"
            )
    kept_key = run.record["input"].get("key")
    if key is not None and key != kept_key:
        raise InputError(
            f"the run in {run.folder} was started with key {kept_key}, not {key}: leave out --key, or --overwrite"
        )


def _find_input(folder: Path) -> Path:
    name = str(open_run(folder).record["input"].get("name", ""))
    for place in (Path(), folder.absolute().parent):
        if name and Path(name).name == name and (place / name).exists():
            return place / name
    raise InputError(
        f"{name or 'the data file'} is neither here nor beside {folder}: `symlift recover DATA --out {folder} --resume`"
    )


def _is_temporary(path: Path) -> bool:
    """What a killed write leaves: ``.name.random``, as :class:`write_atomically` names it."""
    return path.is_file() and any(path.name.startswith(f".{name}.") for name in (RECORD, *OUTPUTS))


class _Claim:
    """Takes a folder for a run, and can give it back as it was."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.made: list[Path] = []
        path = run.folder / RECORD
        self.previous = path.read_bytes() if path.is_file() else None
        try:
            for folder in (*reversed(run.folder.parents), run.folder):
                if not folder.is_dir():
                    folder.mkdir()
                    self.made.append(folder)
            self.sweep()
            run.write()
        except OSError as error:
            self.undo()
            raise InputError(f"{run.folder} cannot be written ({error.strerror}): choose another --out") from None

    def sweep(self) -> None:
        """Remove what killed writes have left."""
        for entry in self.run.folder.iterdir():
            if _is_temporary(entry):
                entry.unlink()

    def clear(self) -> None:
        """Remove the results of an earlier run: the files that runs have, and no others."""
        for name in OUTPUTS:
            (self.run.folder / name).unlink(missing_ok=True)

    def forget_training(self) -> None:
        """Remove what an earlier training left: the files that trainings have, and no others."""
        for path in (self.run.folder / TRAINING).glob("**/*"):
            if path.name in (CHECKPOINT, CURVE):
                path.unlink(missing_ok=True)

    def undo(self) -> None:
        """The folder as it was before: nothing, or the run that was there."""
        path = self.run.folder / RECORD
        if self.previous is not None:
            with contextlib.suppress(OSError), write_atomically(path) as temporary:
                temporary.write_bytes(self.previous)
            return
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        for folder in reversed(self.made):
            with contextlib.suppress(OSError):
                folder.rmdir()


def plain(value: Any) -> Any:
    """``value`` as strict JSON can hold it: arrays as lists, NaN and infinity as null, the unknown as text."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _versions() -> dict[str, str]:
    packages = ("numpy", "scipy", "torch", "scikit-learn")
    return {"symlift": __version__, "python": platform.python_version(), **{p: metadata.version(p) for p in packages}}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
