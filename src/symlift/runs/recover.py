"""From a data file to a run folder, and from a run folder to the signals of another file."""

from __future__ import annotations

import contextlib
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift import __version__
from symlift.core.model import LiftedModel
from symlift.core.rows import batches_of, float_type
from symlift.errors import FitWarning, InputError, SymliftError
from symlift.estimator import LatentDomain, load
from symlift.runs.folder import (
    TRAINING,
    Claim,
    find_input,
    is_run,
    may_hold_a_run,
    run_to_continue,
    settled,
    working_folder,
)
from symlift.runs.readers import Table, content_hash, read_table
from symlift.runs.record import RECORD, InputRecord, Run, RunRecord, RunSettings, Status, Timings, finished, now
from symlift.runs.writers import check_writable, open_rows
from symlift.solvers.contract import Progress, no_progress
from symlift.solvers.neural.distributed import is_follower, wait_for_all
from symlift.storage.atomic import write_atomically

__all__ = ["RunFailedError", "recover", "transform"]

SAMPLES, SAMPLED_ROWS, SCORED_ROWS = 64, 4096, 20_000


class RunFailedError(SymliftError):
    """The input was right, but the run did not end (exit code 1 on the command line)."""


@dataclass(frozen=True)
class _Given:
    """What was asked for in words of the command line; None where nothing was said."""

    grid: str | None
    periodic: bool | None
    solver: str | None
    mixing: str | None
    nan: str | None
    seed: int | None
    preset: str | None
    budget: float | None

    def said(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}


def recover(
    data: Path,
    out: Path | None = None,
    *,
    grid: str | None = None,
    periodic: bool = False,
    solver: str | None = None,
    mixing: str | None = None,
    nan: str | None = None,
    seed: int | None = None,
    key: str | None = None,
    preset: str | None = None,
    budget: float | None = None,
    signals: bool = False,
    check: bool = True,
    overwrite: bool = False,
    resume: bool = False,
    progress: Progress = no_progress,
    afterwards: Callable[[Path], object] | None = None,
) -> Run | None:
    """Fit :class:`~symlift.LatentDomain` to a data file and keep the result in the folder ``out``.

    What is None takes its default, or with ``resume`` what the run was started with.  ``data`` may be the run folder itself
    with ``resume``; the data file is then looked for by its name, here and beside the folder.  ``preset`` and ``budget`` (in
    seconds) are for solvers that train.  ``check`` False leaves out the diagnosis.  Of several processes (torchrun), the first
    keeps the folder; the others only train along, and get None.  ``afterwards(folder)`` is called when the run is done, before
    another process may have the folder.
    """
    if overwrite and resume:
        raise InputError("--overwrite starts again and --resume goes on: give one of them")
    if resume and out is None and (data / RECORD).is_file():
        out, data = data, find_input(data)
    out = out if out is not None else Path(f"{data.stem}-symlift")
    given = _Given(grid, periodic or None, solver, mixing, nan, seed, preset, budget)
    asked = _Asked(data, out, given, key, signals, check, overwrite, resume)
    if is_follower():
        _follow(asked)
        return None
    settled(out, to_write=True)
    before = asked.before()
    asked.settings(before)  # what can be refused is refused before anything is written
    if before is not None and before.record.status is Status.DONE and before.folder == out:
        _read(asked, before, progress)
        return before
    claim = Claim(out)
    try:
        run = _claimed(claim, asked, progress)
        if run.fresh and afterwards is not None:
            afterwards(out)
    finally:
        claim.release()
    return run


@dataclass(frozen=True)
class _Asked:
    """A request to recover, and what it comes to in its folder."""

    data: Path
    out: Path
    given: _Given
    key: str | None
    signals: bool
    check: bool
    overwrite: bool
    resume: bool

    def before(self) -> Run | None:
        """The run that is to be continued."""
        return run_to_continue(self.out, self.overwrite, self.resume)

    def settings(self, before: Run | None) -> RunSettings:
        """What to do: as it was asked for, or as the run that is continued was started."""
        if before is None:
            settings = _settings(self.given, self.signals, self.check)
        else:
            _refuse_other_settings(before, self.given, self.key, self.out)
            kept = before.record.settings
            flags = {"signals": self.signals or kept.signals, "check": self.check and kept.check}
            settings = kept.model_copy(update=flags)
        settings.refuse_nonsense()
        return settings


def _read(asked: _Asked, before: Run | None, progress: Progress) -> tuple[Table, InputRecord]:
    """The rows, and what the record says of them; refused where the run to continue was started with others."""
    progress("reading", None)
    data, key = asked.data, asked.key if before is None else before.record.input.key
    nan = asked.settings(before).nan
    table = without_gaps(data, read_table(data, key), nan)
    n, d = table.rows.shape
    if n < 2:
        raise InputError(f"{data} has one row only: give more rows than columns")
    digest = content_hash(data)
    # a run that was killed before it had read its data has no hash yet
    if before is not None and before.record.input.sha256 not in ("", digest):
        raise InputError(
            f"{data} is not what the run in {asked.out} was started with (its hash differs): give the same data, or --overwrite"
        )
    names = None if table.names is None else list(table.names)
    return table, InputRecord(
        name=data.name, sha256=digest, shape=(n, d), dtype=str(table.rows.dtype), key=key, columns=names
    )


def _follow(asked: _Asked) -> None:
    """One of several processes, but not the first: train along."""
    # the first process may have made the folder already
    before = asked.before() if asked.resume else None
    settings = asked.settings(before)
    table = without_gaps(asked.data, read_table(asked.data, asked.key), settings.nan)
    wait_for_all()  # until the first process has made the folder ready
    _fit(table, settings, working_folder(asked.out), no_progress)


def _claimed(claim: Claim, asked: _Asked, progress: Progress) -> Run:
    """The run, in a folder that is ours."""
    start = time.perf_counter()
    try:
        before = asked.before()
        record = RunRecord(
            status=Status.RUNNING, started=now() if before is None else before.record.started,
            resumed=0 if before is None else before.record.resumed + 1, settings=asked.settings(before), versions=_versions(),
            input=InputRecord(name=asked.data.name, sha256="", shape=(0, 0), key=asked.key),
        )  # fmt: skip
        run = Run(asked.out, record)
        if before is None and may_hold_a_run(asked.out):
            claim.begin(run)  # from here on, --resume means this request
        table, read = _read(asked, before, progress)
        if before is not None and before.record.status is Status.DONE:
            return before
        run.record = record.model_copy(update={"input": read})
        if claim.begun:
            run.write()
        else:
            claim.begin(run)
    except InputError:
        claim.undo()
        raise
    except OSError as error:
        claim.undo()
        raise InputError(f"{asked.out} cannot be written ({error.strerror}): choose another --out") from None
    _run(claim, run, asked.data, table, time.perf_counter() - start, progress)
    return run


def _run(claim: Claim, run: Run, data: Path, table: Table, reading: float, progress: Progress) -> None:
    settings = run.record.settings
    try:
        start = time.perf_counter()
        progress("fitting", None)
        if settings.trains:
            wait_for_all()
        estimator, notes = _fit(table, settings, run.folder, progress)
        fitted = time.perf_counter()
        progress("checking", None)
        _judge(run.record, estimator, table.rows, notes)
        judged = time.perf_counter()
        progress("writing", None)
        claim.clear()
        _write_results(run, estimator, table.rows, progress)
        written = time.perf_counter()
    except InputError as error:
        claim.undo()
        raise InputError(f"{data}: {error}") from None
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        run.record = run.record.model_copy(update={"status": Status.FAILED, "ended": now(), "error": reason})
        with contextlib.suppress(OSError):  # a full disk is the likeliest reason to be here
            claim.clear()
            run.write()
        raise RunFailedError(
            f"the run in {claim.folder} failed ({reason}): mend that and go on with --resume"
        ) from error
    timings = Timings(
        read=reading,
        fit=fitted - start,
        check=judged - fitted,
        write=written - judged,
        total=reading + written - start,
    )
    run.record = run.record.model_copy(
        update={
            "status": Status.DONE, "ended": now(), "grid": estimator.grid_.shape, "periodic": estimator.grid_.periodic,
            "grid_confidence": estimator.grid_.confidence, "solver": estimator.trace_.solver or settings.solver,
            "warnings": notes, "timings": timings,
        }
    )  # fmt: skip
    try:
        claim.finish(run)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise RunFailedError(
            f"the run in {claim.folder} is done, but could not be put in its place ({reason}): mend that and go on with --resume"
        ) from error


def _fit(table: Table, settings: RunSettings, folder: Path, progress: Progress) -> tuple[LatentDomain, list[str]]:
    options: dict[str, Any] = {}
    if settings.trains:
        options = {"folder": folder / TRAINING, "preset": settings.preset or "auto", "seconds": settings.budget}
    estimator = LatentDomain(
        settings.grid, settings.periodic, settings.solver, settings.mixing, random_state=settings.seed,
        solver_options=options,
    )  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FitWarning)
        estimator.fit(table.rows, progress=lambda stage, share: progress(f"fitting: {stage}", share))
    if table.names is not None:
        estimator.name_columns(table.names)
    return estimator, [str(w.message) for w in caught if issubclass(w.category, FitWarning)]


def _judge(record: RunRecord, estimator: LatentDomain, rows: NDArray, notes: list[str]) -> None:
    """Score and diagnosis; a fit is not lost because they fail."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (FitWarning, UserWarning))
        for name in ("score", "diagnosis") if record.settings.check else ("score",):
            try:
                found = estimator.score(rows[:SCORED_ROWS]) if name == "score" else estimator.diagnose(rows)
                setattr(record, name, found)
            except Exception as error:
                notes.append(f"{name} failed ({' '.join(f'{type(error).__name__}: {error}'.split())})")


def _write_results(run: Run, estimator: LatentDomain, rows: NDArray, progress: Progress) -> None:
    folder = run.folder
    estimator.save(folder)
    if estimator.placement_ is not None:
        with write_atomically(folder / "placement.csv") as temporary:
            estimator.placement_.to_csv(temporary)
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
    if run.record.settings.signals:
        lift_to_file(estimator.model_, rows, folder / "signals.npy", progress)


def lift_to_file(model: LiftedModel, rows: NDArray, path: Path, progress: Progress = no_progress) -> None:
    """Stream the signals of ``rows`` into a file; nothing of their number is held in memory."""
    with open_rows(path, (len(rows), model.n_outputs), float_type(rows.dtype), key="signals") as sink:

        class Watched:
            """The sink, which also reports how far it is."""

            shape = sink.shape

            def __setitem__(self, part: slice, block: NDArray) -> None:
                sink[part] = block
                progress("writing", sink.done / len(rows))

        out: Any = Watched()
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
    """Write the signals that the model of a run finds in a data file; returns their shape (n, grid points · channels).

    ``folder`` is a run folder, or a folder that :meth:`LatentDomain.save` wrote.
    """
    settled(folder)
    run = finished(folder) if is_run(folder) else None
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
    names = None if run is None else run.record.input.columns
    if names is not None and table.names is not None and list(table.names) != names:
        where = next(i for i, (a, b) in enumerate(zip(table.names, names, strict=True)) if a != b)
        raise InputError(
            f"{data} has {table.names[where]!r} in column {where + 1} where {folder} was fitted to {names[where]!r}: "
            "put the columns in the same order"
        )
    try:
        lift_to_file(estimator.model_, table.rows, out, progress)
    except InputError as error:
        raise InputError(f"{data}: {error}") from None
    return len(table.rows), estimator.model_.n_outputs


def _settings(given: _Given, signals: bool, check: bool) -> RunSettings:
    try:
        return RunSettings(**given.said(), signals=signals, check=check)
    except ValueError:
        raise InputError(f"--nan {given.nan} is unknown: use drop, mean or pairwise") from None


def without_gaps(data: Path, table: Table, nan: str) -> Table:
    """The table with its gaps dealt with as asked for; refused where nothing was asked, with what each way would keep."""
    if table.rows.dtype.kind != "f":
        return table
    gaps = np.concatenate([np.isnan(batch).any(axis=1) for _, batch in batches_of(table.rows)])
    if not gaps.any() or nan == "pairwise":
        return table
    count, n = int(gaps.sum()), len(gaps)
    if nan == "refuse":
        raise InputError(
            f"{data}: {count:,} of {n:,} rows have gaps (NaN): --nan drop keeps {n - count:,}, --nan pairwise uses what is there, "
            "--nan mean fills in the column's mean"
        )
    if nan == "drop":
        return Table(table.rows[~gaps], table.names)
    rows = np.array(table.rows)
    mean = np.nan_to_num(np.nanmean(np.where(np.isnan(rows).all(axis=0), 0.0, rows), axis=0))
    return Table(np.where(np.isnan(rows), mean, rows).astype(rows.dtype), table.names)


def _refuse_other_settings(run: Run, given: _Given, key: str | None, out: Path) -> None:
    """Settings that are given with --resume must be those of the run."""
    for name, value in given.said().items():
        kept = getattr(run.record.settings, name)
        if kept != value:
            raise InputError(
                f"the run in {out} was started with {name} {kept}, not {value}: leave out --{name}, or --overwrite"
            )
    if key is not None and key != run.record.input.key:
        raise InputError(
            f"the run in {out} was started with key {run.record.input.key}, not {key}: leave out --key, or --overwrite"
        )


def _versions() -> dict[str, str]:
    found = {"symlift": __version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "torch", "scikit-learn"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found
