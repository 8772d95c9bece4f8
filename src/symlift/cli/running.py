"""``symlift demo``, ``recover``, ``transform`` and ``report``: commands that make and use runs."""

from __future__ import annotations

import traceback
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from symlift._watch import printable
from symlift.cli.console import (
    AsJson,
    Overwrite,
    Quiet,
    Steps,
    Verbose,
    echo,
    err,
    print_json,
    seconds_of,
    warn,
)
from symlift.cli.reading import (
    Bin,
    Columns,
    DataFile,
    Decimal,
    Delimiter,
    Drop,
    Gap,
    Header,
    IndexCol,
    Keep,
    Key,
    Nan,
    Transpose,
    note,
    reading_of,
)
from symlift.errors import FitWarning, InputError, SymliftError

if TYPE_CHECKING:
    from symlift.diagnosis.contract import Diagnosis, Level
    from symlift.runs.record import PartRecord, Run
    from symlift.solvers.contract import Contest

__all__ = ["InterruptedRunError", "demo", "recover", "report", "transform"]


class InterruptedRunError(SymliftError):
    """The user pressed Ctrl-C during a run."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figure and the model.")] = Path(
        "symlift-demo"
    ),
    seed: Annotated[
        int,
        typer.Option(
            min=0, max=2**32 - 1, help="Seed of the signals, of the scrambling and of the solver."
        ),
    ] = 0,
) -> None:
    """Scramble a built-in signal set, recover it, draw both.

    Example: symlift demo --out demo
    """
    from symlift.cli.demo import run_demo

    with err.status("scrambling, fitting, drawing …") if err.is_terminal else nullcontext():
        summary = run_demo(out, seed)
    echo(f"{summary['what']}: {summary['n']} vectors of {summary['d']} numbers in unknown order")
    echo(
        f"recovered: r = {summary['r']:.3f} with the hidden signals, in {summary['seconds']:.1f} s"
    )
    echo(f"verdict: {summary['verdict'] or 'none'}")
    echo(f"picture: {summary['figure']}")
    echo(f"report: {summary['report']}")


def recover(
    data: DataFile,
    grid: Annotated[
        str | None,
        typer.Option(
            help="Its shape: 63, 15x15, 6x6x6; scattered, sphere, projective; or auto.",
            show_default="auto",
        ),
    ] = None,
    periodic: Annotated[
        bool, typer.Option("--periodic", help="The grid closes on itself (ring, torus).")
    ] = False,
    mixing: Annotated[
        str | None,
        typer.Option(
            help="What is known: shuffled, orthogonal, linear, or auto.", show_default="auto"
        ),
    ] = None,
    solver: Annotated[
        str | None,
        typer.Option(help="auto, fast, ring, neural, refine or random.", show_default="auto"),
    ] = None,
    parts: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Several domains in one table: auto, or their number.",
            show_default="one domain",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, max=2**32 - 1, help="Seed.", show_default="0")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="Training: ours, paper (as printed), or a row of either (neural, refine).",
            show_default="ours",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Stop training after 90s, 40m or 2h (neural, refine)."),
    ] = None,
    key: Key = None,
    columns: Columns = None,
    drop: Drop = None,
    index_col: IndexCol = None,
    transpose: Transpose = False,
    nan: Nan = None,
    keep: Keep = False,
    gap: Gap = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    header: Header = None,
    width: Bin = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="The run folder.", show_default="DATA's name + -symlift"),
    ] = None,
    signals: Annotated[
        bool, typer.Option("--signals", help="Keep all recovered signals (signals.npy).")
    ] = False,
    overwrite: Overwrite = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a run that was killed.")
    ] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_report: Annotated[
        bool, typer.Option("--no-report", help="Do not write report.html.")
    ] = False,
    check: Annotated[
        str | None,
        typer.Option(
            metavar="LEVEL",
            help="How thorough the diagnosis is: quick, or full (several more fits).",
            show_default="quick",
        ),
    ] = None,
    no_check: Annotated[bool, typer.Option("--no-check", help="Leave out the diagnosis.")] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 3 if there is no evidence.")
    ] = False,
) -> None:
    """Find the domain, its symmetry and the signals of a data file; keep them in a run folder.

    Example: symlift recover images.npy --grid 15x15 --out run
    """
    _not_both(quiet, verbose)
    if exit_code and no_check:
        raise InputError(
            "--exit-code reports the verdict, and --no-check leaves it out: give one of them"
        )
    level = _level(check, no_check)
    reading = reading_of(
        key, columns, drop, index_col, transpose, keep, gap, delimiter, decimal, header, width
    )
    _check_early(data, grid, periodic, solver, resume)
    from symlift.cli.ending import last_lines, numbers
    from symlift.runs import recover as runs
    from symlift.runs.readers.kinds import local_file

    report: Path | None = None
    try:
        with Steps(quiet, verbose) as progress, local_file(data) as file:

            def draw(folder: Path) -> None:
                progress("drawing", None)
                _write_report(folder)

            run = runs.recover(
                file,
                out,
                grid=grid,
                periodic=periodic,
                solver=solver,
                mixing=mixing,
                parts=parts,
                nan=nan,
                seed=seed,
                reading=reading,
                signals=signals,
                check=not no_check,
                level=level,
                preset=preset,
                budget=None if budget is None else seconds_of(budget),
                overwrite=overwrite,
                resume=resume,
                progress=progress,
                note=_silent if quiet else note,
                afterwards=None if no_report else draw,
            )
            if run is None:  # one of the other processes that took part in the training
                return
            if (run.folder / "report.html").is_file():
                report = run.folder / "report.html"
            elif not no_report:  # the run was finished before, but has no report
                progress("drawing", None)
                report = _draw(run.folder)
    except KeyboardInterrupt:
        raise InterruptedRunError(
            "interrupted: continue with the same command and --resume"
        ) from None
    except runs.RunFailedError as error:
        if verbose:
            traceback.print_exception(error.__cause__ or error)
        raise
    if not quiet and run.fresh:
        for message in run.record.warnings:
            warn(message, FitWarning)
    if verbose:
        for line in numbers(run):
            err.print(printable(line), highlight=False, markup=False, soft_wrap=True)
    if as_json:
        print_json(_summary(run, report))
    elif not quiet:
        for line in last_lines(run, _summary(run, report), _typed(data, resume)):
            echo(line)
    if exit_code and all(one.verdict.value == "absent" for one in run.record.diagnoses):
        raise typer.Exit(3)


def transform(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or a saved model.")],
    data: DataFile,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="Where the signals go: .npy, .npz, .csv, .tsv, .parquet or .zarr."
        ),
    ],
    key: Key = None,
    columns: Columns = None,
    drop: Drop = None,
    index_col: IndexCol = None,
    transpose: Transpose = False,
    nan: Nan = None,
    keep: Keep = False,
    gap: Gap = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    header: Header = None,
    width: Bin = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the signals that a run's model finds in a data file, also one that is larger than
    memory.

    Example: symlift transform run images.npy --out signals.npy
    """
    reading = reading_of(
        key, columns, drop, index_col, transpose, keep, gap, delimiter, decimal, header, width
    )
    from symlift.runs import signals
    from symlift.runs.readers.kinds import local_file

    with Steps(quiet) as progress, local_file(data) as file:
        shape = signals.transform(
            run,
            file,
            out,
            reading=reading,
            nan=nan,
            overwrite=overwrite,
            progress=progress,
            note=_silent if quiet else note,
        )
    if as_json:
        print_json({"signals": str(out), "shape": shape})
    elif not quiet:
        echo(f"signals: {out} ({shape[0]} rows of {shape[1]} grid points)")


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write RUN/report.html: one file that opens offline.

    Example: symlift report run
    """
    from symlift.runs.folder import is_run, settled
    from symlift.runs.record import finished

    settled(run)
    if is_run(run):
        finished(run)
    with Steps(quiet) as progress:
        progress("drawing", None)
        path = _draw(run)
    if as_json:
        print_json({"report": str(path)})
    elif not quiet:
        echo(f"report: {path}")


def _level(check: str | None, no_check: bool) -> Level | None:
    """How thorough the diagnosis is; None where that was not said."""
    if check is None:
        return None
    if no_check:
        raise InputError("--check and --no-check contradict each other: give one of them")
    from symlift.diagnosis.contract import LEVELS

    for level in LEVELS:
        if check == level:
            return level
    raise InputError(f"--check {check} is unknown: give quick or full")


def _check_early(
    data: Path, grid: str | None, periodic: bool, solver: str | None, resume: bool
) -> None:
    """Refuse invalid options before anything heavy is imported."""
    from symlift.core.domain import given_domain
    from symlift.runs.readers import check_file
    from symlift.solvers.registry import check_solver

    if str(data) != "-" and not (resume and data.is_dir()):
        check_file(data, data.suffix.lower())
    if grid is not None and grid != "auto":
        given_domain(grid, periodic)
    if solver is not None:
        check_solver(solver)


def _draw(folder: Path) -> Path:
    """Write the report of a run, with its lock held."""
    from symlift.runs.folder import locked

    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a folder: give the run folder that `symlift recover` wrote"
        )
    with locked(folder):
        return _write_report(folder)


def _write_report(folder: Path) -> Path:
    """Write the report of a finished run; if that fails, the run itself stays valid."""
    from symlift.report import write_report

    try:
        return write_report(folder)
    except InputError:
        raise
    except Exception as error:
        raise SymliftError(
            f"the run in {folder} is done, but its report failed ({type(error).__name__}: {error}):"
            f" try again with `symlift report {folder}`"
        ) from error


def _summary(run: Run, report: Path | None) -> dict[str, Any]:
    """The result of a run for programs (``--json``)."""
    record = run.record
    diagnosis = next(iter(record.diagnoses), None)
    placement, signals = (
        str(run.folder / name) if (run.folder / name).is_file() else None
        for name in ("placement.csv", "signals.npy")
    )
    return {
        "run": str(run.folder),
        "status": record.status.value,
        "n": record.input.shape[0],
        "d": record.input.shape[1],
        "columns": record.input.counted,
        "grid": str(record.domain) if record.scattered or record.sphere else record.grid,
        "periodic": record.periodic,
        "solver": record.solver,
        "seed": record.settings.seed,
        "score": record.score,
        "verdict": None if diagnosis is None else diagnosis.verdict.value,
        "confidence": None if diagnosis is None else diagnosis.confidence,
        **({} if diagnosis is None else _claimed(diagnosis)),
        **({} if diagnosis is None or diagnosis.contest is None else _among(diagnosis.contest)),
        "warnings": record.warnings,
        "seconds": round(record.timings.total, 3),
        "placement": placement,
        "signals": signals,
        "report": None if report is None else str(report),
        **({} if record.parts is None else {"parts": [_part(one) for one in record.parts]}),
    }


def _claimed(diagnosis: Diagnosis) -> dict[str, Any]:
    """What a result claims, for programs: probabilities by name, and null for what has none."""
    return {
        "claims": {claim.name: claim.probability for claim in diagnosis.claims},
        "something": diagnosis.something,
    }


def _among(contest: Contest) -> dict[str, Any]:
    """Which domain the rows are points of, for programs."""
    return {
        "domain": contest.domain,
        "probability": contest.probability,
        "runner_up": contest.runner_up,
        "margin": contest.margin,
    }


def _part(part: PartRecord) -> dict[str, Any]:
    """One of several domains for programs."""
    return {
        "columns": part.columns,
        "grid": part.grid if part.sphere is None else str(part.domain),
        "periodic": part.periodic,
        "verdict": None if part.diagnosis is None else part.diagnosis.verdict.value,
        "confidence": None if part.diagnosis is None else part.diagnosis.confidence,
    }


def _typed(data: Path, resume: bool) -> str:
    """The data as typed; those of the run, where the run folder was given to go on."""
    if not (resume and data.is_dir() and data.suffix != ".zarr"):
        return str(data)
    from symlift.runs.folder import find_input

    return str(find_input(data))


def _silent(_: str) -> None:
    """Print nothing (``--quiet``)."""


def _not_both(quiet: bool, verbose: bool) -> None:
    if quiet and verbose:
        raise InputError("--quiet and --verbose contradict each other: give one of them")
