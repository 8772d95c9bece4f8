"""Table 1 of the paper: one row for each number of ours and for each baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from symlift_paper.jobs import (
    Job,
    authors_jobs,
    baseline_jobs,
    ceiling_jobs,
    closing_jobs,
    covariance_jobs,
    printed_jobs,
    released_jobs,
    solver_jobs,
    tabled_jobs,
    training_jobs,
)
from symlift_paper.prices import duration, printed_price
from symlift_paper.records import Entries, counts_text, median_seconds, missing_note, results_of
from symlift_paper.registry import Experiment
from symlift_paper.tables import ResultTable, spread

__all__ = ["table1", "table1_jobs"]

PRINTED, RELEASED = "as printed, trained", "as released, trained"
TABLED = "as printed, steps of its table, trained"
TRAINED, CLOSED, ALONE = "ours, trained", "ours, closed", "closed form alone"
COVARIANCE = "ours, from the covariance, closed"
COLUMNS = (
    "experiment",
    "measure",
    "paper",
    PRINTED,
    RELEASED,
    TABLED,
    TRAINED,
    CLOSED,
    ALONE,
    COVARIANCE,
    "fast",
    "baseline, authors' settings",
    "baseline here",
    "one alignment",
    "seeds",
    "seconds",
)
#: column → the jobs behind it
METHODS: dict[str, Callable[[Experiment], list[Job]]] = {
    PRINTED: printed_jobs,
    RELEASED: released_jobs,
    TABLED: tabled_jobs,
    CLOSED: training_jobs,
    COVARIANCE: covariance_jobs,
    "fast": solver_jobs,
}
#: figures of a map that are also kept from before a closed form ended its training
_BEFORE = ("r", "r_paper")
#: rows that our training was not asked to do, and why
NOT_TRAINED = {
    "neural-gratings": "not reached",
    "neural-head-direction": "measured apart",
}
_POOLED, _EXACT = ("r, one alignment", "r"), ("S exact", "similarity_exact")
#: what is compared in each part of the table: (name of the figure, where results and paper keep it)
_BLOCKS = {
    "generators": (("S exact", "similarity_exact"), ("r", "r_paper"), _POOLED),
    "waveforms": (("r", "r_paper"), _POOLED, ("S", "similarity"), _EXACT),
    "images": (("r", "r_paper"), _POOLED, ("S", "similarity"), _EXACT),
    "bits": (("r", "r_paper"), _POOLED),
    "recordings": (
        ("circular correlation, all pairs", "circular_correlation"),
        ("circular correlation, about means", "circular_correlation_means"),
    ),
    "own": (
        ("r", "r_paper"),
        _POOLED,
        ("S", "similarity"),
        ("circular correlation", "circular_correlation"),
    ),
}
#: scores of a baseline, in the order in which they are looked for
_OF_BASELINES = (
    ("r", "r_paper"),
    ("circular correlation", "circular_correlation"),
    ("S exact", "similarity_exact"),
)


def table1_jobs(experiments: Sequence[Experiment], full: bool = False) -> list[Job]:
    """The fast solver and the cheap baselines on every row; with ``full``, training and slow
    baselines too.
    """
    jobs = [
        job
        for e in experiments
        for job in (
            *solver_jobs(e),
            *ceiling_jobs(e),
            *baseline_jobs(e, slow=False),
            *authors_jobs(e),
        )
    ]
    if full:
        jobs += [job for e in experiments for job in _slow_jobs(e)]
    return jobs


def _slow_jobs(experiment: Experiment) -> list[Job]:
    return [
        *training_jobs(experiment),
        *covariance_jobs(experiment),
        *closing_jobs(experiment),
        *printed_jobs(experiment),
        *released_jobs(experiment),
        *tabled_jobs(experiment),
        *baseline_jobs(experiment, slow=True),
    ]


def table1(experiments: Sequence[Experiment], entries: Entries) -> ResultTable:
    """Signal and generator recovery next to the baselines: one row for each number of ours and for
    each baseline.
    """
    rows: list[dict[str, Any]] = []
    for experiment in experiments:
        ours = {name: _runs(jobs(experiment), entries) for name, jobs in METHODS.items()}
        for figure, key in _BLOCKS[experiment.block]:
            cells = {name: spread((run.get(key) for run in runs), 4) for name, runs in ours.items()}
            if not any(cells.values()):
                continue
            if key in _BEFORE:
                before = (run[f"{key}_before_closing"] for run in ours[CLOSED])
                cells[TRAINED] = spread(before, 4)
            rows.append(
                {
                    "experiment": experiment.name,
                    "measure": figure,
                    "paper": _paper(experiment, key),
                    **{name: cell or _why_empty(experiment, name) for name, cell in cells.items()},
                    ALONE: _alone(experiment, entries) if key in _BEFORE else None,
                    "seeds": " / ".join(str(len(runs)) for runs in ours.values()),
                    "seconds": " / ".join(
                        counts_text(median_seconds(runs)) or "–" for runs in ours.values()
                    ),
                }
            )
        perfect = results_of(ceiling_jobs(experiment), entries)
        if perfect:
            rows.append(_baseline_row(experiment, "perfect inverse", perfect, []))
        authors = authors_jobs(experiment)
        for name in experiment.baselines:
            both = [
                results_of([job for job in jobs if job.method == name], entries)
                for jobs in (_all_baselines(experiment), authors)
            ]
            if any(both):
                rows.append(_baseline_row(experiment, name, *both))
    jobs = table1_jobs(experiments, full=True)
    return ResultTable(
        "table1",
        "Signals and generators, next to the baselines",
        COLUMNS,
        rows,
        missing_note(jobs, entries),
    )


def _runs(jobs: Sequence[Job], entries: Entries) -> list[dict[str, Any]]:
    """The results of ``jobs``; of what trains, only those that say what was trained and what was
    closed, so that neither is ever taken for the other.
    """
    runs = results_of(jobs, entries)
    if jobs and jobs[0].method == "neural":
        return [run for run in runs if all(f"{key}_before_closing" in run for key in _BEFORE)]
    return runs


def _alone(experiment: Experiment, entries: Entries) -> str | None:
    """From how many random starts the closed form reaches the truth without training."""
    runs = results_of(closing_jobs(experiment), entries)
    if not runs:
        return None
    reached = sum(round(run["share"] * run["starts"]) for run in runs)
    return f"{reached} of {sum(run['starts'] for run in runs)}"


def _why_empty(experiment: Experiment, column: str) -> str | None:
    """The reason why a cell of ours has no number."""
    if column == "fast" or experiment.block == "own":
        return None
    asked = bool(METHODS.get(column, training_jobs)(experiment))
    if column in (PRINTED, RELEASED, TABLED):
        price = printed_price(experiment, tabled=column == TABLED)
        return None if price is None else f"not run: {duration(price)}{' a seed' * asked}"
    if asked:
        return "not run"
    if column == COVARIANCE:
        return "other rows only"
    return NOT_TRAINED.get(experiment.name, "not run")


def _all_baselines(experiment: Experiment) -> list[Job]:
    return [*baseline_jobs(experiment, slow=False), *baseline_jobs(experiment, slow=True)]


def _baseline_row(
    experiment: Experiment, name: str, runs: list[dict[str, Any]], authors: list[dict[str, Any]]
) -> dict[str, Any]:
    """A method here, ``runs``, and with the authors' settings."""
    figure, key = next((f, k) for f, k in _OF_BASELINES if (runs or authors)[0][k] is not None)
    return {
        "experiment": experiment.name,
        "measure": f"{figure}, {name}",
        "paper": experiment.paper.baselines.get(name),
        "baseline, authors' settings": spread(run[key] for run in authors),
        "baseline here": spread(run[key] for run in runs),
        "one alignment": spread(run["r"] for run in runs),
        "seeds": str(len(runs)),
        "seconds": counts_text(median_seconds(runs)),
    }


def _paper(experiment: Experiment, key: str) -> str | None:
    # the paper's circular correlation is the one about means
    names = {
        "r_paper": "r",
        "r": "",
        "circular_correlation_means": "circular_correlation",
        "circular_correlation": "",
    }
    value = getattr(experiment.paper, names.get(key, key), None)
    if isinstance(value, tuple):
        return " / ".join(f"{v:g}" for v in value) or None
    return None if value is None else f"{value:g}"
