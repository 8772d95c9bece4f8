"""From a data file to a run folder: read, fit, check and write."""

from __future__ import annotations

import contextlib
import math
import platform
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from symlift import __version__
from symlift.core.sphere import Sphere
from symlift.diagnosis.contract import Level
from symlift.errors import CostWarning, FitWarning, InputError, SymliftError
from symlift.estimator import LatentDomain
from symlift.runs.accounts import add_left_out, units_note
from symlift.runs.folder import (
    TRAINING,
    FolderClaim,
    find_input,
    may_hold_a_run,
    run_to_continue,
    settled,
    working_folder,
)
from symlift.runs.parts import PartsLift, judged_parts, write_placements
from symlift.runs.readers import Table, content_hash, read_table
from symlift.runs.readers.gaps import without_gaps
from symlift.runs.readers.marks import known_marks, marks_in_words
from symlift.runs.readers.options import DEFAULT, ReadOptions
from symlift.runs.record import (
    RECORD,
    InputRecord,
    Run,
    RunRecord,
    RunSettings,
    Status,
    Timings,
    now,
)
from symlift.runs.signals import lift_to_file, no_note
from symlift.several import LatentDomains
from symlift.solvers.contract import Progress, no_progress
from symlift.solvers.fast.settings import DEFAULT as FAST
from symlift.solvers.neural.distributed import is_follower, wait_for_all
from symlift.solvers.registry import canonical
from symlift.storage.atomic import write_atomically, write_error

__all__ = ["RunFailedError", "recover"]

SCORED_ROWS = 20_000


class RunFailedError(SymliftError):
    """The input is valid, but the run failed (exit code 1 on the command line)."""


@dataclass(frozen=True)
class _Given:
    """Settings under their command-line names; None for those that were not given."""

    grid: str | None
    periodic: bool | None
    solver: str | None
    mixing: str | None
    parts: str | None
    nan: str | None
    seed: int | None
    preset: str | None
    budget: float | None
    level: Level | None

    def explicit(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if value is not None}


def recover(
    data: Path,
    out: Path | None = None,
    *,
    grid: str | None = None,
    periodic: bool = False,
    solver: str | None = None,
    mixing: str | None = None,
    parts: str | None = None,
    nan: str | None = None,
    seed: int | None = None,
    reading: ReadOptions = DEFAULT,
    preset: str | None = None,
    budget: float | None = None,
    signals: bool = False,
    check: bool = True,
    level: Level | None = None,
    overwrite: bool = False,
    resume: bool = False,
    progress: Progress = no_progress,
    note: Callable[[str], None] = no_note,
    afterwards: Callable[[Path], object] | None = None,
) -> Run | None:
    """Fit `LatentDomain` to a data file and keep the result in a run folder.

    A setting that is None takes its default or, with ``resume``, the value the run was started
    with.

    Parameters
    ----------
    data : pathlib.Path
        The data file.  With ``resume`` it may be the run folder; the data file is then looked for
        by its name, in the current folder and next to the run folder.
    out : pathlib.Path, optional
        The run folder; ``<name of the data>-symlift`` when None.
    grid : str, optional
        A shape such as "15x15", or "auto".
    periodic : bool, default=False
        Whether all axes of the grid are closed.
    solver : str, optional
        A solver's name, or "auto".
    mixing : str, optional
        "auto", "shuffled", "orthogonal" or "linear".
    parts : str, optional
        "auto" or a number: several domains in one table, fitted by `LatentDomains`.
    nan : {"refuse", "drop", "mean", "pairwise"}, optional
        What to do with gaps.
    seed : int, optional
        Seed of all random draws; 0 when None.
    reading : ReadOptions, optional
        How to read the file.
    preset : str, optional
        Preset of a solver that trains.
    budget : float, optional
        Seconds that a solver that trains may take.
    signals : bool, default=False
        Whether to write all recovered signals to ``signals.npy``.
    check : bool, default=True
        Whether to run the diagnosis.
    level : {"quick", "full"}, optional
        How thorough the diagnosis is; "quick" when None.
    overwrite : bool, default=False
        Whether to replace an earlier run in ``out``; it stays intact until the new one is done.
    resume : bool, default=False
        Whether to continue a run that did not finish.
    progress : callable, optional
        Called with the name of the stage and its share done, a float or None.
    note : callable, optional
        Called with each note on how the file was read, early in the fit.
    afterwards : callable, optional
        Called with the run folder when the run is done, before its lock is released.

    Returns
    -------
    Run or None
        The folder and its record.  None in all but the first of several processes (torchrun),
        which only take part in the training.

    Raises
    ------
    InputError
        If the data, the settings or the folder cannot be used; the folder is left as it was.
    RunFailedError
        If the fit or the writing fails.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from symlift.datasets import gsn
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     data = Path(folder, "rows.npy")
    ...     np.save(data, gsn(400, (12,), transform="permutation").X)
    ...     run = recover(data, Path(folder, "run"), grid="12", check=False)
    ...     (run.folder / "placement.csv").is_file()
    True
    >>> run.record.status.value, run.record.grid
    ('done', (12,))
    """
    if overwrite and resume:
        raise InputError("--overwrite starts again and --resume goes on: give one of them")
    if resume and out is None and (data / RECORD).is_file():
        out, data = data, find_input(data)
    out = out if out is not None else Path(f"{data.stem}-symlift")
    given = _Given(grid, periodic or None, solver, mixing, parts, nan, seed, preset, budget, level)
    asked = _Asked(data, out, given, reading, signals, check, overwrite, resume)
    if is_follower():
        _follow(asked)
        return None
    settled(out)
    before = asked.before()
    asked.settings(before)  # invalid requests are refused before anything is written
    if before is not None and before.record.status is Status.DONE and before.folder == out:
        _read(asked, before, progress)
        return before
    claim = FolderClaim(out)
    try:
        run = _claimed(claim, asked, progress, note)
        if run.fresh and afterwards is not None:
            afterwards(out)
    finally:
        claim.release()
    return run


@dataclass(frozen=True)
class _Asked:
    """A request to recover, and what it means for the run that its folder may hold."""

    data: Path
    out: Path
    given: _Given
    reading: ReadOptions
    signals: bool
    check: bool
    overwrite: bool
    resume: bool

    def before(self) -> Run | None:
        """Return the run that is to be continued, if any."""
        return run_to_continue(self.out, self.overwrite, self.resume)

    def settings(self, before: Run | None) -> RunSettings:
        """Return the settings that were given, or those of the run that is continued."""
        if before is None:
            settings = _settings(self.given, self.signals, self.check)
        else:
            _refuse_other_settings(before, self.given, self.reading, self.out)
            earlier = before.record.settings
            flags = {
                "signals": self.signals or earlier.signals,
                "check": self.check and earlier.check,
            }
            settings = earlier.model_copy(update=flags)
        settings.refuse_nonsense()
        return settings


def _read(asked: _Asked, before: Run | None, progress: Progress) -> tuple[Table, InputRecord]:
    """Read the rows and describe them; refuse data other than those of the run to continue."""
    progress("reading", None)
    data, reading = asked.data, asked.reading if before is None else before.record.input.reading
    table = without_gaps(data, read_table(data, options=reading), asked.settings(before).nan)
    marks = known_marks(table.rows)
    if marks:
        table = table._replace(notes=(*table.notes, marks_in_words(marks)))
    n, d = table.rows.shape
    if n < 2:
        raise InputError(
            f"{data} has one row only: give more rows than columns, or --transpose where each row"
            " is a channel"
        )
    digest = content_hash(data)
    # a run that was killed before it had read its data has no hash yet
    if before is not None and before.record.input.sha256 not in ("", digest):
        raise InputError(
            f"{data} is not the data that the run in {asked.out} was started with (its hash"
            " differs): give the same data, or --overwrite"
        )
    names = None if table.names is None else list(table.names)
    return table, InputRecord(
        name=data.name,
        sha256=digest,
        shape=(n, d),
        dtype=str(table.rows.dtype),
        reading=reading,
        columns=names,
        notes=list(table.notes),
        left_out=[one for one in table.left_out if not one.asked_away],
    )


def _follow(asked: _Asked) -> None:
    """Take part in the training, as any but the first of several processes."""
    # the first process may have made the folder already
    before = asked.before() if asked.resume else None
    settings = asked.settings(before)
    reading = asked.reading if before is None else before.record.input.reading
    table = without_gaps(asked.data, read_table(asked.data, options=reading), settings.nan)
    wait_for_all()  # until the first process has made the folder ready
    _fit(table, settings, reading.keep, working_folder(asked.out), no_progress, no_note)


def _claimed(
    claim: FolderClaim, asked: _Asked, progress: Progress, note: Callable[[str], None]
) -> Run:
    """Make the run in a folder whose lock is held."""
    start = time.perf_counter()
    try:
        before = asked.before()
        record = RunRecord(
            status=Status.RUNNING,
            started=now() if before is None else before.record.started,
            resumed=0 if before is None else before.record.resumed + 1,
            settings=asked.settings(before),
            versions=_versions(),
            input=InputRecord(name=asked.data.name, sha256="", shape=(0, 0), reading=asked.reading),
        )
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
        raise write_error(asked.out, error, "choose another --out") from None
    notes = list(table.notes)

    def watch(stage: str, share: float | None) -> None:
        # a refusal must stay one line: notes are printed only once the fit has accepted the rows
        while notes and stage.startswith("fitting: "):
            note(notes.pop(0))
        progress(stage, share)

    _run(claim, run, asked.data, table, time.perf_counter() - start, watch, notes.append)
    for line in notes:
        note(line)
    return run


def _run(
    claim: FolderClaim,
    run: Run,
    data: Path,
    table: Table,
    reading: float,
    progress: Progress,
    note: Callable[[str], None],
) -> None:
    settings = run.record.settings
    try:
        start = time.perf_counter()
        progress("fitting", None)
        if settings.trains:
            wait_for_all()
        estimator, notes = _fit(
            table, settings, run.record.input.reading.keep, run.folder, progress, note
        )
        fitted = time.perf_counter()
        odd = units_note(estimator, table)
        if odd:
            note(odd)
            run.record.input.notes.append(odd)
        progress("checking", None)
        _judge(run.record, estimator, table.rows, notes, progress)
        judged = time.perf_counter()
        progress("writing", None)
        if not claim.is_there:  # whoever removed it does not want it back
            raise _removed(claim)
        claim.clear()
        _write_results(run, estimator, table, progress)
        written = time.perf_counter()
    except InputError as error:
        claim.undo()
        n, d = table.rows.shape
        turned = "; where each row is a channel, give --transpose" if d > n else ""
        raise InputError(f"{data}: {error}{turned}") from None
    except RunFailedError:
        raise
    except Exception as error:
        if not claim.is_there:  # as a training finds when it writes a checkpoint
            raise _removed(claim) from error
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        run.record = run.record.model_copy(
            update={"status": Status.FAILED, "ended": now(), "error": reason}
        )
        with contextlib.suppress(OSError):  # the most likely reason is a full disk
            claim.clear()
            run.write()
        if isinstance(error, MemoryError):  # the same request would need it again
            n, d = table.rows.shape
            raise RunFailedError(
                f"the run in {claim.folder} failed, since {n:,} rows of {d:,} columns need more"
                f" memory than there is ({reason}): give fewer columns (--columns) or a smaller"
                " --grid with --overwrite, or use a larger machine"
            ) from error
        raise RunFailedError(
            f"the run in {claim.folder} failed ({reason}): fix that and continue with --resume"
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
            "status": Status.DONE,
            "ended": now(),
            **_domain_of(estimator, settings),
            "warnings": notes,
            "timings": timings,
        }
    )
    try:
        claim.finish(run)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise RunFailedError(
            f"the run in {claim.folder} is done, but could not be moved into place ({reason}): "
            "fix that and continue with --resume"
        ) from error


def _removed(claim: FolderClaim) -> RunFailedError:
    return RunFailedError(
        f"{claim.folder} was removed or replaced while the run was at work: nothing is written;"
        " start the run again"
    )


def _domain_of(estimator: LatentDomain | LatentDomains, settings: RunSettings) -> dict[str, Any]:
    """What a record says about the domain, by the names of its fields."""
    if isinstance(estimator, LatentDomains):
        used = {domain.trace_.solver for domain in estimator.domains_} - {""}
        return {"solver": ", ".join(sorted(used)) or settings.solver}
    grid = estimator.model_.grid
    return {
        "grid": grid.shape,
        "periodic": grid.periodic,
        "grid_confidence": grid.confidence,
        "scattered": estimator.solution_.scattered,
        "sphere": grid.degree if isinstance(grid, Sphere) else None,
        "solver": estimator.trace_.solver or settings.solver,
    }


def _fit(
    table: Table,
    settings: RunSettings,
    keep: bool,
    folder: Path,
    progress: Progress,
    note: Callable[[str], None],
) -> tuple[LatentDomain | LatentDomains, list[str]]:
    options: dict[str, Any] = {}
    if keep and canonical(settings.solver) == "fast":  # row numbers stay in the data
        options = {"settings": replace(FAST, place=replace(FAST.place, index=math.inf))}
    if settings.trains:
        options = {
            "folder": folder / TRAINING,
            "preset": settings.preset or "auto",
            "seconds": settings.budget,
        }
    given: dict[str, Any] = {
        "grid": settings.grid,
        "periodic": settings.periodic,
        "solver": settings.solver,
        "mixing": settings.mixing,
        "random_state": settings.seed,
        "solver_options": options,
    }
    estimator: LatentDomain | LatentDomains = LatentDomain(**given)
    if settings.parts is not None:
        parts = "auto" if settings.parts == "auto" else int(settings.parts)
        estimator = LatentDomains(parts, **given)
    doubts: list[str] = []

    def keep_or_say(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, CostWarning):  # before the work, not after it
            note(str(message))
        elif issubclass(category, FitWarning):
            doubts.append(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", FitWarning)
        warnings.simplefilter("always", CostWarning)
        warnings.showwarning = keep_or_say
        estimator.fit(
            table.rows,
            progress=lambda stage, share: progress(f"fitting: {stage}", share),
            names=table.names,
        )
    return estimator, doubts


def _judge(
    record: RunRecord,
    estimator: LatentDomain | LatentDomains,
    rows: NDArray,
    notes: list[str],
    progress: Progress,
) -> None:
    """Add score and diagnosis to the record; if they fail, a note is added and the fit is kept."""
    if isinstance(estimator, LatentDomains):
        record.parts = judged_parts(estimator, rows, record.settings, notes, progress)
        return

    def watch(stage: str, share: float | None) -> None:
        progress(f"checking: {stage}", share)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (FitWarning, UserWarning))
        for name in ("score", "diagnosis") if record.settings.check else ("score",):
            try:
                if name == "score":
                    record.score = estimator.score(rows[:SCORED_ROWS])
                else:
                    record.diagnosis = estimator.diagnose(
                        rows, level=record.settings.level, progress=watch
                    )
            except Exception as error:
                notes.append(
                    f"{name} failed ({' '.join(f'{type(error).__name__}: {error}'.split())})"
                )


def _write_results(
    run: Run, estimator: LatentDomain | LatentDomains, table: Table, progress: Progress
) -> None:
    folder, rows = run.folder, table.rows
    estimator.save(folder)
    if isinstance(estimator, LatentDomains):
        write_placements(estimator, rows, table.left_out, folder / "placement.csv")
        if run.record.settings.signals:
            lift_to_file(PartsLift(estimator), rows, folder / "signals.npy", progress)
        return
    if estimator.placement_ is not None:
        with write_atomically(folder / "placement.csv") as temporary:
            estimator.placement_.to_csv(temporary)
            add_left_out(temporary, table.left_out)
    if run.record.settings.signals:
        filler = getattr(estimator, "gap_filler_", None)
        lift_to_file(estimator.lifter_, rows, folder / "signals.npy", progress, filler=filler)


def _settings(given: _Given, signals: bool, check: bool) -> RunSettings:
    try:
        return RunSettings(**given.explicit(), signals=signals, check=check)
    except ValueError:
        raise InputError(f"--nan {given.nan} is unknown: use drop, mean or pairwise") from None


def _refuse_other_settings(run: Run, given: _Given, reading: ReadOptions, out: Path) -> None:
    """Refuse settings given with --resume that differ from those of the run."""
    asked = [
        (name, value, getattr(run.record.settings, name))
        for name, value in given.explicit().items()
    ]
    asked += [
        (name, value, getattr(run.record.input.reading, name))
        for name, value in reading.given().items()
    ]
    for name, value, earlier in asked:
        if earlier != value:
            option = "check" if name == "level" else name.replace("_", "-")
            raise InputError(
                f"the run in {out} was started with {option} {earlier}, not {value}: "
                f"leave out --{option}, or give --overwrite"
            )


def _versions() -> dict[str, str]:
    versions = {"symlift": __version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "torch", "scikit-learn"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    return versions
