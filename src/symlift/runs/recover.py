"""From a data file to a run folder, and from a run folder to the signals of another file."""

from __future__ import annotations

import contextlib
import math
import platform
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift import __version__
from symlift.core.model import LiftedModel, has_gaps
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
from symlift.runs.readers import Table, content_hash, of_no_use, read_table
from symlift.runs.readers.gaps import without_gaps
from symlift.runs.readers.options import DEFAULT, ReadOptions
from symlift.runs.record import RECORD, InputRecord, Run, RunRecord, RunSettings, Status, Timings, finished, now
from symlift.runs.writers import check_writable, open_rows
from symlift.solvers.contract import Progress, no_progress
from symlift.solvers.fast.settings import DEFAULT as FAST
from symlift.solvers.neural.distributed import is_follower, wait_for_all
from symlift.solvers.registry import canonical
from symlift.statistics.prediction import GapFiller
from symlift.storage.atomic import write_atomically

__all__ = ["RunFailedError", "recover", "transform"]

SCORED_ROWS = 20_000


def no_note(line: str) -> None:
    """What there is to say about a file, said to nobody."""


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
    reading: ReadOptions = DEFAULT,
    preset: str | None = None,
    budget: float | None = None,
    signals: bool = False,
    check: bool = True,
    overwrite: bool = False,
    resume: bool = False,
    progress: Progress = no_progress,
    note: Callable[[str], None] = no_note,
    afterwards: Callable[[Path], object] | None = None,
) -> Run | None:
    """Fit :class:`~symlift.LatentDomain` to a data file and keep the result in the folder ``out``.

    What is None takes its default, or with ``resume`` what the run was started with.  ``data`` may be the run folder itself
    with ``resume``; the data file is then looked for by its name, here and beside the folder.  ``reading`` says how to read
    the file; ``note`` is called with what there is to say about that, early in the fit.  ``preset`` and ``budget`` (in seconds)
    are for solvers that train.  ``check`` False leaves out the diagnosis.  Of several processes (torchrun), the first keeps
    the folder; the others only train along, and get None.  ``afterwards(folder)`` is called when the run is done, before
    another process may have the folder.
    """
    if overwrite and resume:
        raise InputError("--overwrite starts again and --resume goes on: give one of them")
    if resume and out is None and (data / RECORD).is_file():
        out, data = data, find_input(data)
    out = out if out is not None else Path(f"{data.stem}-symlift")
    given = _Given(grid, periodic or None, solver, mixing, nan, seed, preset, budget)
    asked = _Asked(data, out, given, reading, signals, check, overwrite, resume)
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
        run = _claimed(claim, asked, progress, note)
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
    reading: ReadOptions
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
            _refuse_other_settings(before, self.given, self.reading, self.out)
            kept = before.record.settings
            flags = {"signals": self.signals or kept.signals, "check": self.check and kept.check}
            settings = kept.model_copy(update=flags)
        settings.refuse_nonsense()
        return settings


def _read(asked: _Asked, before: Run | None, progress: Progress) -> tuple[Table, InputRecord]:
    """The rows, and what the record says of them; refused where the run to continue was started with others."""
    progress("reading", None)
    data, reading = asked.data, asked.reading if before is None else before.record.input.reading
    table = without_gaps(data, read_table(data, options=reading), asked.settings(before).nan)
    n, d = table.rows.shape
    if n < 2:
        raise InputError(
            f"{data} has one row only: give more rows than columns, or --transpose where each row is a channel"
        )
    digest = content_hash(data)
    # a run that was killed before it had read its data has no hash yet
    if before is not None and before.record.input.sha256 not in ("", digest):
        raise InputError(
            f"{data} is not what the run in {asked.out} was started with (its hash differs): give the same data, or --overwrite"
        )
    names = None if table.names is None else list(table.names)
    return table, InputRecord(
        name=data.name, sha256=digest, shape=(n, d), dtype=str(table.rows.dtype), reading=reading, columns=names,
        notes=list(table.notes),
    )  # fmt: skip


def _follow(asked: _Asked) -> None:
    """One of several processes, but not the first: train along."""
    # the first process may have made the folder already
    before = asked.before() if asked.resume else None
    settings = asked.settings(before)
    reading = asked.reading if before is None else before.record.input.reading
    table = without_gaps(asked.data, read_table(asked.data, options=reading), settings.nan)
    wait_for_all()  # until the first process has made the folder ready
    _fit(table, settings, reading.keep, working_folder(asked.out), no_progress)


def _claimed(claim: Claim, asked: _Asked, progress: Progress, note: Callable[[str], None]) -> Run:
    """The run, in a folder that is ours."""
    start = time.perf_counter()
    try:
        before = asked.before()
        record = RunRecord(
            status=Status.RUNNING, started=now() if before is None else before.record.started,
            resumed=0 if before is None else before.record.resumed + 1, settings=asked.settings(before), versions=_versions(),
            input=InputRecord(name=asked.data.name, sha256="", shape=(0, 0), reading=asked.reading),
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
    notes = list(table.notes)

    def watch(stage: str, share: float | None) -> None:
        # a file that is refused is one line: notes come when the fit has taken the rows
        while notes and stage.startswith("fitting: "):
            note(notes.pop(0))
        progress(stage, share)

    _run(claim, run, asked.data, table, time.perf_counter() - start, watch)
    for line in notes:
        note(line)
    return run


def _run(claim: Claim, run: Run, data: Path, table: Table, reading: float, progress: Progress) -> None:
    settings = run.record.settings
    try:
        start = time.perf_counter()
        progress("fitting", None)
        if settings.trains:
            wait_for_all()
        estimator, notes = _fit(table, settings, run.record.input.reading.keep, run.folder, progress)
        fitted = time.perf_counter()
        progress("checking", None)
        _judge(run.record, estimator, table.rows, notes, progress)
        judged = time.perf_counter()
        progress("writing", None)
        claim.clear()
        _write_results(run, estimator, table.rows, progress)
        written = time.perf_counter()
    except InputError as error:
        claim.undo()
        n, d = table.rows.shape
        turned = "; where each row is a channel, give --transpose" if d > n else ""
        raise InputError(f"{data}: {error}{turned}") from None
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


def _fit(
    table: Table, settings: RunSettings, keep: bool, folder: Path, progress: Progress
) -> tuple[LatentDomain, list[str]]:
    options: dict[str, Any] = {}
    if keep and canonical(settings.solver) == "fast":  # row numbers are columns like others
        options = {"settings": replace(FAST, place=replace(FAST.place, index=math.inf))}
    if settings.trains:
        options = {"folder": folder / TRAINING, "preset": settings.preset or "auto", "seconds": settings.budget}
    estimator = LatentDomain(
        settings.grid, settings.periodic, settings.solver, settings.mixing, random_state=settings.seed,
        solver_options=options,
    )  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FitWarning)
        estimator.fit(table.rows, progress=lambda stage, share: progress(f"fitting: {stage}", share), names=table.names)
    return estimator, [str(w.message) for w in caught if issubclass(w.category, FitWarning)]


def _judge(record: RunRecord, estimator: LatentDomain, rows: NDArray, notes: list[str], progress: Progress) -> None:
    """Score and diagnosis; a fit is not lost because they fail."""

    def watch(stage: str, share: float | None) -> None:
        progress(f"checking: {stage}", share)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (FitWarning, UserWarning))
        for name in ("score", "diagnosis") if record.settings.check else ("score",):
            try:
                if name == "score":
                    record.score = estimator.score(rows[:SCORED_ROWS])
                else:
                    record.diagnosis = estimator.diagnose(rows, progress=watch)
            except Exception as error:
                notes.append(f"{name} failed ({' '.join(f'{type(error).__name__}: {error}'.split())})")


def _write_results(run: Run, estimator: LatentDomain, rows: NDArray, progress: Progress) -> None:
    folder = run.folder
    estimator.save(folder)
    if estimator.placement_ is not None:
        with write_atomically(folder / "placement.csv") as temporary:
            estimator.placement_.to_csv(temporary)
    if run.record.settings.signals:
        filler = getattr(estimator, "gap_filler_", None)
        lift_to_file(estimator.model_, rows, folder / "signals.npy", progress, filler=filler)


def lift_to_file(
    model: LiftedModel,
    rows: NDArray,
    path: Path,
    progress: Progress = no_progress,
    *,
    names: Sequence[str] | None = None,
    filler: GapFiller | None = None,
) -> None:
    """Stream the signals of ``rows`` into a file; nothing of their number is held in memory.  ``filler`` predicts gaps."""
    with open_rows(path, (len(rows), model.n_outputs), float_type(rows.dtype), key="signals", names=names) as sink:
        for part, block in batches_of(rows):
            if filler is not None and has_gaps(block):
                block = filler.fill(block)
            try:
                sink[part] = model.lift(block)
            except InputError:
                bad = part.start + int(np.argmin(np.isfinite(block).all(axis=1)))
                raise InputError(f"row {bad + 1:,} holds NaN or infinity: drop or impute it first") from None
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
    """Write the signals that the model of a run finds in a data file; returns their shape (n, grid points · channels).

    ``folder`` is a run folder, or a folder that :meth:`LatentDomain.save` wrote.  The file is read as that of the run was, but
    for what ``reading`` and ``nan`` say.
    """
    settled(folder)
    run = finished(folder) if is_run(folder) else None
    check_writable(out)
    if out.exists() and not overwrite:
        raise InputError(f"{out} exists: choose another --out, or give --overwrite")
    estimator = load(folder)
    progress("reading", None)
    names: list[str] | None = None
    if run is not None:
        names, reading = run.record.input.columns, _for_another_file(reading, run.record.input.reading, data)
    nan = nan or ("refuse" if run is None else run.record.settings.nan)
    if nan not in ("refuse", "drop", "mean", "pairwise"):
        raise InputError(f"--nan {nan} is unknown: use drop, mean or pairwise")
    table = read_table(data, options=reading, wanted=names)
    if out.exists() and out.samefile(data):
        raise InputError(f"{out} is the data file itself: choose another --out")
    if table.rows.shape[1] != estimator.n_features_in_:
        raise InputError(
            f"{data} has {table.rows.shape[1]} columns, but {folder} was fitted to {estimator.n_features_in_}: "
            "give data with the same columns"
        )
    if names is not None and table.names is not None and list(table.names) != names:
        where = next(i for i, (a, b) in enumerate(zip(table.names, names, strict=True)) if a != b)
        raise InputError(
            f"{data} has {table.names[where]!r} in column {where + 1} where {folder} was fitted to {names[where]!r}: "
            "give data with the same columns"
        )
    table = without_gaps(data, table, nan, estimator.mean_)
    try:
        names_out = [str(name) for name in estimator.get_feature_names_out()]
        filler = getattr(estimator, "gap_filler_", None)
        lift_to_file(estimator.model_, table.rows, out, progress, names=names_out, filler=filler)
    except InputError as error:
        raise InputError(f"{data}: {error}") from None
    for line in table.notes:
        note(line)
    return len(table.rows), estimator.model_.n_outputs


def _for_another_file(given: ReadOptions, before: ReadOptions, data: Path) -> ReadOptions:
    """How to read another file: as said, else as the run's own was read; what its kind has no use for is left out."""
    merged = given.over(before)
    unfit: dict[str, Any] = {name: None for name in of_no_use(merged, data.suffix.lower()) if name not in given.given()}
    return replace(merged, **unfit)


def _settings(given: _Given, signals: bool, check: bool) -> RunSettings:
    try:
        return RunSettings(**given.said(), signals=signals, check=check)
    except ValueError:
        raise InputError(f"--nan {given.nan} is unknown: use drop, mean or pairwise") from None


def _refuse_other_settings(run: Run, given: _Given, reading: ReadOptions, out: Path) -> None:
    """Settings that are given with --resume must be those of the run."""
    asked = [(name, value, getattr(run.record.settings, name)) for name, value in given.said().items()]
    asked += [(name, value, getattr(run.record.input.reading, name)) for name, value in reading.given().items()]
    for name, value, kept in asked:
        if kept != value:
            option = name.replace("_", "-")
            raise InputError(
                f"the run in {out} was started with {option} {kept}, not {value}: leave out --{option}, or --overwrite"
            )


def _versions() -> dict[str, str]:
    found = {"symlift": __version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "torch", "scikit-learn"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found
