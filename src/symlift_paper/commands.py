"""``symlift experiment``: the paper's rows, tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table

from symlift.cli.console import (
    AsJson,
    Quiet,
    Steps,
    echo,
    print_json,
    seconds_of,
    stderr_line,
    table_cell,
)
from symlift.errors import InputError, SymliftError

__all__ = ["experiment_app"]

experiment_app = typer.Typer(help="The paper's experiments.", no_args_is_help=True)

ExperimentFile = Annotated[
    Path | None, typer.Option("--file", metavar="YAML", help="A file with your own experiments.")
]
ExperimentBudget = Annotated[
    str | None,
    typer.Option(
        "--budget", metavar="TIME", help="Start no run that would not end within 90s, 40m or 2h."
    ),
]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Number of runs at the same time.")]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="ADDRESS", help="A Dask scheduler that runs them, or local."),
]
CacheFolder = Annotated[
    Path | None,
    typer.Option(
        "--cache", metavar="FOLDER", help="Folder for finished runs.", show_default="user cache"
    ),
]


@experiment_app.command("list")
def experiment_list(
    file: ExperimentFile = None,
    as_json: AsJson = False,
) -> None:
    """List all experiments with the paper's numbers, the studies, and the figures.

    Example: symlift experiment list
    """
    from symlift_paper import experiments_with
    from symlift_paper.figures import FIGURES
    from symlift_paper.studies import STUDIES

    known = experiments_with(file)
    if as_json:
        print_json({name: e.model_dump(mode="json") for name, e in known.items()})
        return
    table = Table(
        Column("name", no_wrap=True, min_width=max(map(len, [*known, *STUDIES]))),
        "what",
        "paper r",
        "paper S",
        "GPU-hours",
    )
    for e in known.values():
        similarity = e.paper.similarity or e.paper.similarity_exact
        table.add_row(
            e.name,
            e.title,
            table_cell(e.paper.r),
            table_cell(similarity),
            table_cell(e.paper.gpu_hours),
        )
    table.add_section()
    for study in STUDIES.values():
        table.add_row(study.name, study.title)
    Console().print(table)
    echo(f"figures: {', '.join(FIGURES)}")


@experiment_app.command("run")
def experiment_run(
    name: Annotated[str, typer.Argument(help="A name from `symlift experiment list`.")],
    solver: Annotated[str, typer.Option(help="Which solver.")] = "auto",
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Seed of data, transform and solver.")
    ] = 0,
    n: Annotated[
        int | None,
        typer.Option("-n", min=2, help="Number of samples instead of the experiment's own."),
    ] = None,
    baselines: Annotated[
        bool,
        typer.Option("--baselines", help="Also run the baselines, tuned with the truth."),
    ] = False,
    budget: ExperimentBudget = None,
    jobs: Jobs = 1,
    cluster: Cluster = None,
    cache: CacheFolder = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Repeat runs that the cache holds.")
    ] = False,
    file: ExperimentFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run one experiment, or all runs of a study, and print the results; finished runs are cached.

    Example: symlift experiment run gsn15-continuous --seed 1 --baselines --json
    """
    from symlift_paper import get_experiment
    from symlift_paper.results import one_experiment
    from symlift_paper.studies import STUDIES

    if name in STUDIES:
        _no_options_for_a_study(name, solver, seed, n, baselines)
        experiment_table(
            [name],
            budget=budget,
            jobs=jobs,
            cluster=cluster,
            cache=cache,
            fresh=fresh,
            file=file,
            as_json=as_json,
            quiet=quiet,
        )
        return
    seconds = None if budget is None else seconds_of(budget)
    experiment = get_experiment(name, file)
    with Steps(quiet) as progress:
        result = one_experiment(
            experiment,
            solver,
            seed,
            n,
            baselines=baselines,
            budget=seconds,
            workers=jobs,
            address=cluster,
            cache=cache,
            fresh=fresh,
            progress=progress,
        )
    if as_json:
        print_json(result)
        return
    table = Table("measure", "here", "paper")
    paper: dict[str, Any] = experiment.paper.model_dump(exclude={"baselines"})
    for key, value in result.items():
        if key != "baselines":
            table.add_row(key, table_cell(value), table_cell(paper.get(key)))
    for baseline in result.get("baselines", ()):
        figure = next(
            k
            for k in ("r_paper", "circular_correlation", "similarity_exact")
            if baseline[k] is not None
        )
        known = experiment.paper.baselines.get(baseline["baseline"])
        table.add_row(
            f"{baseline['baseline']}, {figure}, tuned",
            table_cell(baseline[figure]),
            table_cell(known),
        )
    Console().print(table)


@experiment_app.command("table")
def experiment_table(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Experiments for Table 1 (all of them when none is named), or a study.",
        ),
    ] = None,
    budget: ExperimentBudget = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Also run the paper's training and the slow baselines: hours."),
    ] = False,
    jobs: Jobs = 1,
    cluster: Cluster = None,
    cache: CacheFolder = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Repeat runs that the cache holds.")
    ] = False,
    archive: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Folder of permanent results, from which tables are filled."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write Markdown, CSV and JSON there.")
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write one page with all tables of the archive."),
    ] = None,
    file: ExperimentFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fill Table 1, or the table of a study (ablation, morris, tica); finished runs are cached.

    Example: symlift experiment table --budget 30m --jobs 2 --out tables
    """
    from symlift_paper.results import fill_tables

    seconds = None if budget is None else seconds_of(budget)
    with Steps(quiet) as progress:
        filled = fill_tables(
            names or [],
            file=file,
            budget=seconds,
            full=full,
            workers=jobs,
            address=cluster,
            cache=cache,
            fresh=fresh,
            archive=archive,
            page=page,
            progress=progress,
        )
    for table in filled.tables:
        if out is not None:
            table.write(out)
        if not quiet or as_json:
            typer.echo(
                table.json() if as_json else f"{table.title}\n\n{table.markdown()}",
                nl=as_json is False,
            )
    for label, reason in filled.outcome.left_out.items():
        stderr_line("yellow", "left out", f"{label}: {reason}")
    for label, reason in filled.outcome.failed.items():
        stderr_line("red", "failed", f"{label}: {reason}")
    if filled.outcome.failed:
        raise SymliftError(
            f"{len(filled.outcome.failed)} runs failed: the others are kept, and the same command"
            " goes on"
        )


@experiment_app.command("price")
def experiment_price(jobs: Jobs = 1, cache: CacheFolder = None) -> None:
    """Print what the full tables and all studies will cost, without running anything.

    Runs that the cache holds cost nothing. Example: symlift experiment price --jobs 2
    """
    from symlift_paper.results import full_price

    for line in full_price(jobs, cache):
        echo(line)


def _no_options_for_a_study(
    name: str, solver: str, seed: int, n: int | None, baselines: bool
) -> None:
    if solver != "auto" or seed or n is not None or baselines:
        raise InputError(
            f"{name} is a study with solvers, seeds and sizes of its own: leave those options out"
        )


@experiment_app.command("figure")
def experiment_figure(
    name: Annotated[str, typer.Argument(help="A name from `symlift experiment list`.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the pictures go.")] = Path(
        "figures"
    ),
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Seed of data, transform and solver.")
    ] = 0,
    n: Annotated[int | None, typer.Option("-n", min=2, help="Number of samples.")] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="TIME",
            help="Stop a training after 90s, 40m or 2h; without it, a training ends by itself.",
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Run what one of the paper's figures shows, and draw it as SVG and PNG.

    Example: symlift experiment figure waveforms --out figures
    """
    from symlift_paper.figures import draw

    with Steps(quiet) as progress:
        seconds = None if budget is None else seconds_of(budget)
        paths = draw(name, out, seed=seed, n=n, seconds=seconds, progress=progress)
    if as_json:
        print_json({"figure": name, "files": [str(path) for path in paths]})
    elif not quiet:
        for path in paths:
            echo(f"figure: {path}")
