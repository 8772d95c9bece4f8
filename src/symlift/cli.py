"""The command line.  Data to stdout, progress and messages to stderr; exit 0 done, 1 failed, 2 bad usage or input."""

from __future__ import annotations

import json
import platform
import sys
import warnings
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from symlift import __version__
from symlift.errors import FitWarning, InputError

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
    typer.echo(
        f"solver {summary['solver']}: r = {summary['r']:.3f} with the hidden signals, in {summary['seconds']:.1f} s"
    )
    typer.echo(f"picture: {summary['figure']}")


@experiment_app.command("list")
def experiment_list(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on one line.")] = False,
) -> None:
    """Every experiment with the paper's figures.

    Example: symlift experiment list
    """
    from symlift.experiments import EXPERIMENTS

    if as_json:
        typer.echo(json.dumps({name: e.model_dump(mode="json") for name, e in EXPERIMENTS.items()}))
        return
    table = Table("name", "what", "paper r", "paper S", "GPU-hours")
    for e in EXPERIMENTS.values():
        similarity = e.paper.similarity or e.paper.similarity_exact
        table.add_row(
            e.name,
            e.title,
            "" if e.paper.r is None else f"{e.paper.r:.3f}",
            " / ".join(f"{s:.4g}" for s in similarity),
            "" if e.paper.gpu_hours is None else f"{e.paper.gpu_hours:g}",
        )
    Console().print(table)


@experiment_app.command("run")
def experiment_run(
    name: Annotated[str, typer.Argument(help="A name from `symlift experiment list`.")],
    solver: Annotated[str, typer.Option(help="Which solver.")] = "auto",
    seed: Annotated[int, typer.Option(min=0, help="Seed of data, transform and solver.")] = 0,
    n: Annotated[
        int | None, typer.Option("-n", min=2, help="Number of samples instead of the experiment's own.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on one line.")] = False,
) -> None:
    """Run one experiment and print what was measured.

    Example: symlift experiment run gsn15-continuous --seed 1 --json
    """
    from symlift.experiments import get_experiment, run_experiment

    experiment = get_experiment(name)
    with err.status(f"{name} …") if err.is_terminal else _silent():
        result = run_experiment(experiment, solver, seed, n)
    if as_json:
        typer.echo(json.dumps(result))
        return
    table = Table("figure", "here", "paper")
    paper: dict[str, Any] = experiment.paper.model_dump()
    for key, value in result.items():
        table.add_row(key, _show(value), _show(paper.get(key)))
    Console().print(table)


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


class _silent:  # noqa: N801 - a context manager used like a function
    """Nothing at all, where a status line would go if anybody watched."""

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...


def _warn(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Our own warnings as one line on stderr; others are for developers."""
    if issubclass(category, FitWarning):
        err.print(f"[yellow]warning:[/yellow] {escape(str(message))}", highlight=False, soft_wrap=True)


def main() -> None:
    """Entry point: bad input becomes one line and exit code 2."""
    warnings.showwarning = _warn
    try:
        app()
    except InputError as error:
        err.print(f"[red]error:[/red] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)
