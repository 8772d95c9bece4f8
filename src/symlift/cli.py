"""The command line.  Data to stdout, progress and messages to stderr; exit 0 done, 1 failed, 2 bad usage or input."""

from __future__ import annotations

import errno
import json
import platform
import re
import sys
import traceback
import warnings
from importlib import import_module, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from symlift import __version__
from symlift.errors import FitWarning, InputError, SymliftError

if TYPE_CHECKING:
    from symlift.runs import Run

__all__ = ["app", "main"]

app = typer.Typer(
    name="symlift",
    help="Find the hidden domain, its symmetry and the signals behind plain vectors.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
experiment_app = typer.Typer(help="The paper's experiments.", no_args_is_help=True)
app.add_typer(experiment_app, name="experiment")

err = Console(stderr=True)

# what several commands have in common
DataFile = Annotated[
    Path, typer.Argument(metavar="DATA", help="Rows of numbers: .npy, .npz, .csv, .parquet, .mat or .zarr.")
]
Key = Annotated[str | None, typer.Option(help="Which array of an .npz, .mat or .zarr.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on one line.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Errors only.")]
ExperimentFile = Annotated[Path | None, typer.Option("--file", metavar="YAML", help="Experiments of your own.")]
ExperimentBudget = Annotated[
    str | None, typer.Option("--budget", metavar="TIME", help="Begin nothing that would not end within 90s, 40m or 2h.")
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Runs side by side.")]
Cluster = Annotated[
    str | None, typer.Option("--cluster", metavar="ADDRESS", help="A Dask scheduler that runs them, or local.")
]
CacheFolder = Annotated[
    Path | None,
    typer.Option("--cache", metavar="FOLDER", help="Where finished runs are kept.", show_default="user cache"),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say each step on stderr, and how a failed one failed.")]


def _version(show: bool) -> None:
    if show:
        typer.echo(f"symlift {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it and stop.")
    ] = False,
) -> None:
    """Find the hidden domain, its symmetry and the signals behind plain vectors."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figure and the model.")] = Path("symlift-demo"),
    seed: Annotated[int, typer.Option(help="Seed of the signals, of the scrambling and of the solver.")] = 0,
) -> None:
    """Scramble a built-in signal set, recover it, draw both.

    Example: symlift demo --out demo
    """
    from symlift.demo import run_demo

    with err.status("scrambling, fitting, drawing …") if err.is_terminal else _silent():
        summary = run_demo(out, seed)
    typer.echo(f"{summary['what']}: {summary['n']} vectors of {summary['d']} numbers in unknown order")
    typer.echo(f"recovered: r = {summary['r']:.3f} with the hidden signals, in {summary['seconds']:.1f} s")
    typer.echo(f"verdict: {summary['verdict'] or 'none'}")
    typer.echo(f"picture: {summary['figure']}")
    typer.echo(f"report: {summary['report']}")


@app.command()
def recover(
    data: DataFile,
    grid: Annotated[str | None, typer.Option(help="Its shape: 63, 15x15, 6x6x6, or auto.", show_default="auto")] = None,
    periodic: Annotated[bool, typer.Option("--periodic", help="The grid closes on itself (ring, torus).")] = False,
    solver: Annotated[str | None, typer.Option(help="Which solver.", show_default="auto")] = None,
    seed: Annotated[int | None, typer.Option(min=0, max=2**32 - 1, help="Seed.", show_default="0")] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="Training settings, a row of the paper's table (neural, refine).", show_default="auto"),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(metavar="TIME", help="Stop training after 90s, 40m or 2h (neural, refine).")
    ] = None,
    key: Key = None,
    out: Annotated[
        Path | None, typer.Option(metavar="RUN", help="The run folder.", show_default="DATA's name + -symlift")
    ] = None,
    signals: Annotated[bool, typer.Option("--signals", help="Keep all recovered signals (signals.npy).")] = False,
    overwrite: Overwrite = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was killed.")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Do not write report.html.")] = False,
) -> None:
    """Find the domain, its symmetry and the signals of a data file; keep them in a run folder.

    Example: symlift recover images.npy --grid 15x15 --out run
    """
    from symlift import runs

    _not_both(quiet, verbose)
    report: Path | None = None
    try:
        with _Steps(quiet, verbose) as progress:
            run = runs.recover(
                data, out, grid=grid, periodic=periodic, solver=solver, seed=seed, key=key, signals=signals,
                preset=preset, budget=None if budget is None else _seconds(budget), overwrite=overwrite, resume=resume,
                progress=progress,
            )  # fmt: skip
            if not run.record:  # one of several processes that trained along
                return
            if (run.folder / "report.html").is_file():  # found finished, with its report
                report = run.folder / "report.html"
            elif not no_report:
                progress("drawing", None)
                report = _write_report(run.folder)
    except KeyboardInterrupt:
        raise _InterruptedError("interrupted: the same command with --resume goes on") from None
    except runs.RunFailedError as error:
        if verbose:
            traceback.print_exception(error.__cause__ or error)
        raise
    if not quiet and run.fresh:
        for message in run.record.get("warnings", ()):
            _warn(message, FitWarning)
    if as_json:
        typer.echo(json.dumps(_summary(run, report)))
    elif not quiet:
        _tell(run, report)


@app.command()
def transform(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, or a saved model.")],
    data: DataFile,
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the signals go: .npy, .npz or .csv.")],
    key: Key = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write the signals that a run's model finds in a data file, also one that is larger than memory.

    Example: symlift transform run images.npy --out signals.npy
    """
    from symlift import runs

    with _Steps(quiet) as progress:
        shape = runs.transform(run, data, out, key=key, overwrite=overwrite, progress=progress)
    if as_json:
        typer.echo(json.dumps({"signals": str(out), "shape": shape}))
    elif not quiet:
        typer.echo(f"signals: {out} ({shape[0]} rows of {shape[1]} grid points)")


@app.command()
def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write RUN/report.html: one file that opens offline.

    Example: symlift report run
    """
    from symlift import runs

    runs.finished(run)
    with _Steps(quiet) as progress:
        progress("drawing", None)
        path = _write_report(run)
    if as_json:
        typer.echo(json.dumps({"report": str(path)}))
    elif not quiet:
        typer.echo(f"report: {path}")


@experiment_app.command("list")
def experiment_list(
    file: ExperimentFile = None,
    as_json: AsJson = False,
) -> None:
    """Every experiment with the paper's figures, the studies, and the pictures.

    Example: symlift experiment list
    """
    from symlift.experiments import experiments_with
    from symlift.experiments.figures import FIGURES
    from symlift.experiments.studies import STUDIES

    known = experiments_with(file)
    if as_json:
        typer.echo(json.dumps({name: e.model_dump(mode="json") for name, e in known.items()}))
        return
    table = Table("name", "what", "paper r", "paper S", "GPU-hours")
    for e in known.values():
        similarity = e.paper.similarity or e.paper.similarity_exact
        table.add_row(e.name, e.title, _show(e.paper.r), _show(similarity), _show(e.paper.gpu_hours))
    table.add_section()
    for study in STUDIES.values():
        table.add_row(study.name, study.title)
    Console().print(table)
    typer.echo(f"figures: {', '.join(FIGURES)}")


@experiment_app.command("run")
def experiment_run(
    name: Annotated[str, typer.Argument(help="A name from `symlift experiment list`.")],
    solver: Annotated[str, typer.Option(help="Which solver.")] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Seed of data, transform and solver.")] = 0,
    n: Annotated[
        int | None, typer.Option("-n", min=2, help="Number of samples instead of the experiment's own.")
    ] = None,
    baselines: Annotated[
        bool, typer.Option("--baselines", help="The methods to compare with, too, tuned with the truth.")
    ] = False,
    budget: ExperimentBudget = None,
    jobs: Jobs = 1,
    cluster: Cluster = None,
    cache: CacheFolder = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run again what the cache has.")] = False,
    file: ExperimentFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run one experiment, or all runs of a study, and print what was measured.  What was run before comes from the cache.

    Example: symlift experiment run gsn15-continuous --seed 1 --baselines --json
    """
    from symlift.experiments import get_experiment
    from symlift.experiments.results import one_experiment
    from symlift.experiments.studies import STUDIES

    if name in STUDIES:
        _no_options_for_a_study(name, solver, seed, n, baselines)
        experiment_table(
            [name], budget=budget, jobs=jobs, cluster=cluster, cache=cache, fresh=fresh, file=file, as_json=as_json,
            quiet=quiet,
        )  # fmt: skip
        return
    seconds = None if budget is None else _seconds(budget)
    experiment = get_experiment(name, file)
    with _Steps(quiet) as progress:
        result = one_experiment(
            experiment, solver, seed, n, baselines=baselines, budget=seconds, workers=jobs, address=cluster,
            cache=cache, fresh=fresh, progress=progress,
        )  # fmt: skip
    if as_json:
        typer.echo(json.dumps(result))
        return
    table = Table("figure", "here", "paper")
    paper: dict[str, Any] = experiment.paper.model_dump(exclude={"baselines"})
    for key, value in result.items():
        if key != "baselines":
            table.add_row(key, _show(value), _show(paper.get(key)))
    for baseline in result.get("baselines", ()):
        figure = next(k for k in ("r_paper", "circular_correlation", "similarity_exact") if baseline[k] is not None)
        known = experiment.paper.baselines.get(baseline["baseline"])
        table.add_row(f"{baseline['baseline']}, {figure}, tuned", _show(baseline[figure]), _show(known))
    Console().print(table)


@experiment_app.command("table")
def experiment_table(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help="Experiments for Table 1 (all of them when none is named), or a study."
        ),
    ] = None,
    budget: ExperimentBudget = None,
    full: Annotated[
        bool, typer.Option("--full", help="The paper's training and the slow baselines, too: hours.")
    ] = False,
    jobs: Jobs = 1,
    cluster: Cluster = None,
    cache: CacheFolder = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run again what the cache has.")] = False,
    archive: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Keep results here for good, and fill tables from here.")
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write Markdown, CSV and JSON there.")] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write one page with all tables of the archive.")
    ] = None,
    file: ExperimentFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fill a table: Table 1, or that of a study (ablation, morris, tica).  What was run before comes from the cache.

    Example: symlift experiment table --budget 30m --jobs 2 --out tables
    """
    from symlift.experiments.results import fill_tables

    seconds = None if budget is None else _seconds(budget)
    with _Steps(quiet) as progress:
        filled = fill_tables(
            names or [], file=file, budget=seconds, full=full, workers=jobs, address=cluster, cache=cache, fresh=fresh,
            archive=archive, page=page, progress=progress,
        )  # fmt: skip
    for table in filled.tables:
        if out is not None:
            table.write(out)
        if not quiet or as_json:
            typer.echo(table.json() if as_json else f"{table.title}\n\n{table.markdown()}", nl=as_json is False)
    for label, reason in filled.outcome.left_out.items():
        _line("yellow", "left out", f"{label}: {reason}")
    for label, reason in filled.outcome.failed.items():
        _line("red", "failed", f"{label}: {reason}")
    if filled.outcome.failed:
        raise SymliftError(
            f"{len(filled.outcome.failed)} runs failed: the others are kept, and the same command goes on"
        )


def _no_options_for_a_study(name: str, solver: str, seed: int, n: int | None, baselines: bool) -> None:
    if solver != "auto" or seed or n is not None or baselines:
        raise InputError(f"{name} is a study with solvers, seeds and sizes of its own: leave those options out")


@experiment_app.command("figure")
def experiment_figure(
    name: Annotated[str, typer.Argument(help="A name from `symlift experiment list`.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the pictures go.")] = Path("figures"),
    seed: Annotated[int, typer.Option(min=0, help="Seed of data, transform and solver.")] = 0,
    n: Annotated[int | None, typer.Option("-n", min=2, help="Number of samples.")] = None,
    budget: ExperimentBudget = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run what one of the paper's figures shows, and draw it as SVG and PNG.

    Example: symlift experiment figure waveforms --out figures
    """
    from symlift.experiments.figures import draw

    with _Steps(quiet) as progress:
        seconds = None if budget is None else _seconds(budget)
        paths = draw(name, out, seed=seed, n=n, seconds=seconds, progress=progress)
    if as_json:
        typer.echo(json.dumps({"figure": name, "files": [str(path) for path in paths]}))
    elif not quiet:
        for path in paths:
            typer.echo(f"figure: {path}")


@app.command()
def doctor(as_json: Annotated[bool, typer.Option("--json", help="One JSON object on one line.")] = False) -> None:
    """Versions, devices, threads, optional extras.

    Example: symlift doctor
    """
    import torch

    extras = {"umap": "baselines", "tensorboard": "neural", "h5py": "data", "pynwb": "data", "mlxtend": "data",
              "zarr": "data", "pyarrow": "data", "SALib": "sensitivity"}  # fmt: skip
    report = {
        "symlift": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        **{name: metadata.version(name) for name in ("torch", "numpy", "scipy", "scikit-learn", "python-picard")},
        "threads": torch.get_num_threads(),
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        **{f"{name} (extra {extra})": find_spec(name) is not None for name, extra in extras.items()},
    }
    if as_json:
        typer.echo(json.dumps(report))
        return
    for key, value in report.items():
        typer.echo(f"{key:28} {'yes' if value is True else 'no' if value is False else value}")


def _show(value: Any) -> str:
    if value is None or value == ():
        return ""
    if isinstance(value, list | tuple):
        return " / ".join(_show(v) for v in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _write_report(folder: Path) -> Path:
    """The report of a finished run; when it fails, the run itself is still good."""
    try:
        path: Path = import_module("symlift.report").write_report(folder)
    except InputError:
        raise
    except Exception as error:
        raise SymliftError(
            f"the run in {folder} is done, but its report failed ({type(error).__name__}: {error}): "
            f"try again with `symlift report {folder}`"
        ) from error
    return path


def _summary(run: Run, report: Path | None) -> dict[str, Any]:
    """What a program wants to know about a run."""
    record = run.record
    diagnosis = record.get("diagnosis") or {}
    signals = run.folder / "signals.npy"
    return {
        "run": str(run.folder), "status": run.status, "n": record["input"]["shape"][0], "d": record["input"]["shape"][1],
        "grid": record["grid"], "periodic": record["periodic"], "solver": record["solver"],
        "seed": record["settings"]["seed"], "score": record["score"],
        "verdict": diagnosis.get("verdict"), "confidence": diagnosis.get("confidence"), "warnings": record["warnings"],
        "seconds": round(record["timings"]["total"], 3),
        "signals": str(signals) if signals.is_file() else None, "report": None if report is None else str(report),
    }  # fmt: skip


def _tell(run: Run, report: Path | None) -> None:
    """What a person wants to know about a run."""
    told = _summary(run, report)
    ends = ["closed" if wraps else "open" for wraps in told["periodic"]]
    shape = "x".join(str(s) for s in told["grid"])
    typer.echo(f"grid: {shape}, {ends[0] if len(set(ends)) == 1 else ' x '.join(ends)}")
    if told["verdict"] is not None:
        sure = "" if told["confidence"] is None else f" (confidence {told['confidence']:.2f})"
        typer.echo(f"verdict: {told['verdict']}{sure}")
    if told["score"] is not None:
        typer.echo(f"score: {told['score']:.4g}")
    state = "in" if run.fresh else "was done already, in"
    typer.echo(
        f"{told['n']} rows of {told['d']} columns: solver {told['solver']}, seed {told['seed']}, "
        f"{state} {told['seconds']:.1f} s"
    )
    for name in ("run", "signals", "report"):
        if told[name] is not None:
            typer.echo(f"{name}: {told[name]}")


class _Steps:
    """One progress bar on stderr where a person watches; lines with --verbose; otherwise nothing."""

    def __init__(self, quiet: bool, verbose: bool = False) -> None:
        self.verbose, self.stage = verbose, ""
        self.bar: Progress | None = None
        if err.is_terminal and not quiet:
            columns = (
                SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(),
                TimeRemainingColumn(),
            )  # fmt: skip
            self.bar = Progress(*columns, console=err, transient=True)
            self.task = self.bar.add_task("", total=None)

    def __enter__(self) -> Self:
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def __call__(self, stage: str, fraction: float | None) -> None:
        name = stage.split(" (")[0]  # what follows in brackets are figures, which change all the time
        if self.verbose and name != self.stage:
            err.print(f"{stage} …", highlight=False)
        self.stage = name
        if self.bar is not None:
            self.bar.update(
                self.task, description=stage, total=None if fraction is None else 1.0, completed=fraction or 0
            )


def _seconds(text: str) -> float:
    """90, 90s, 40m or 2h in seconds."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([smh]?)", text.strip().lower())
    if match is None:
        raise InputError(f"budget {text!r} is not understood: give a time such as 90s, 40m or 2h")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


def _not_both(quiet: bool, verbose: bool) -> None:
    if quiet and verbose:
        raise InputError("--quiet and --verbose contradict each other: give one of them")


class _silent:  # noqa: N801 - a context manager used like a function
    """Nothing at all, where a status line would go if anybody watched."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def _line(colour: str, word: str, message: str) -> None:
    """One line on stderr, whatever the message holds."""
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(message.split()))
    err.print(Text.assemble((f"{word}:", colour), " ", shown), soft_wrap=True)


def _warn(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Our own warnings as one line on stderr; others are for developers."""
    if issubclass(category, FitWarning):
        _line("yellow", "warning", str(message))


class _InterruptedError(SymliftError):
    """Ctrl-C."""


# click's class for bad usage, wherever typer keeps it
_UsageError: Any = typer.BadParameter.__mro__[1]


def _stop(code: int, message: str) -> NoReturn:
    _line("red", "error", message)
    sys.exit(code)


def main() -> None:
    """Entry point: bad usage and bad input become one line and exit code 2, a failure one line and exit code 1."""
    warnings.showwarning = _warn
    try:
        code = app(standalone_mode=False)
    except InputError as error:
        _stop(2, str(error))
    except _InterruptedError as error:
        _stop(130, str(error))
    except (SymliftError, typer.Abort) as error:
        _stop(1, str(error) or "stopped")
    except _UsageError as error:
        if "NoArgs" in type(error).__name__:  # the message is the help
            error.show()
            sys.exit(2)
        where = error.ctx.command_path if error.ctx is not None else "symlift"
        _stop(2, f"{error.format_message().rstrip('.')}: see `{where} --help`")
    except OSError as error:
        if error.errno == errno.EPIPE:  # nobody reads any more
            sys.exit(1)
        _stop(1, f"{error.filename or 'the system'}: {error.strerror or error}; make room or check the permissions")
    if code == 130:
        _stop(130, "interrupted")
    sys.exit(code if isinstance(code, int) else 0)
