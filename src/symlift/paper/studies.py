"""The paper's tables: the jobs behind each, and how their results become rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from symlift.errors import InputError
from symlift.paper.baselines import get_baseline
from symlift.paper.baselines.figures import PAPER_TICA
from symlift.paper.jobs import (
    Job,
    baseline_jobs,
    ceiling_jobs,
    covariance_jobs,
    printed_jobs,
    solver_jobs,
    training_jobs,
)
from symlift.paper.registry import EXPERIMENTS, Experiment
from symlift.paper.store import Entry
from symlift.paper.tables import ResultTable, Spread, spread

__all__ = ["STUDIES", "Study", "effects_table", "table1", "table1_jobs"]

Entries = Mapping[str, Entry]


@dataclass(frozen=True)
class Study:
    """One study of the paper: the jobs behind it, and how their entries become the rows of its
    tables.
    """

    name: str
    title: str
    jobs: Callable[[], list[Job]]
    makers: tuple[Callable[[Entries], ResultTable], ...]

    def tables(self, entries: Entries) -> list[ResultTable]:
        """All of its tables."""
        return [make(entries) for make in self.makers]


def _results(jobs: Sequence[Job], entries: Entries) -> list[dict[str, Any]]:
    return [entries[job.key]["result"] for job in jobs if job.key in entries]


def _missing(jobs: Sequence[Job], entries: Entries) -> list[str]:
    """One note for all that has not been run."""
    counts: dict[str, list[bool]] = {}
    for job in jobs:
        method = f"{job.method}, as printed" if job.preset == "paper" else job.method
        counts.setdefault(f"{job.experiment.name} / {method}", []).append(job.key in entries)
    left = [
        f"{name} ({done.count(False)} of {len(done)})"
        for name, done in sorted(counts.items())
        if not all(done)
    ]
    return [f"Not run: {', '.join(left)}."] if left else []


# -- Table 1 ---------------------------------------------------------------------------------------

COLUMNS = (
    "experiment",
    "measure",
    "paper",
    "as printed",
    "ours, trained",
    "ours, from the covariance",
    "fast",
    "baseline here",
    "one alignment",
    "seeds",
    "seconds",
)
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
        for job in (*solver_jobs(e), *ceiling_jobs(e), *baseline_jobs(e, slow=False))
    ]
    if full:
        jobs += [job for e in experiments for job in _slow_jobs(e)]
    return jobs


def _slow_jobs(experiment: Experiment) -> list[Job]:
    return [
        *training_jobs(experiment),
        *covariance_jobs(experiment),
        *printed_jobs(experiment),
        *baseline_jobs(experiment, slow=True),
    ]


def table1(experiments: Sequence[Experiment], entries: Entries) -> ResultTable:
    """Signal and generator recovery next to the baselines: one row for each number of ours and for
    each baseline.
    """
    rows: list[dict[str, Any]] = []
    for experiment in experiments:
        makers = (printed_jobs, training_jobs, covariance_jobs, solver_jobs)
        names = ("as printed", "ours, trained", "ours, from the covariance", "fast")
        ours = {
            name: _results(jobs(experiment), entries)
            for name, jobs in zip(names, makers, strict=True)
        }
        for figure, key in _BLOCKS[experiment.block]:
            cells = {name: spread((run.get(key) for run in runs), 4) for name, runs in ours.items()}
            if not any(cells.values()):
                continue
            rows.append(
                {
                    "experiment": experiment.name,
                    "measure": figure,
                    "paper": _paper(experiment, key),
                    **cells,
                    "seeds": " / ".join(str(len(runs)) for runs in ours.values()),
                    "seconds": " / ".join(_told(_seconds(runs)) or "–" for runs in ours.values()),
                }
            )
        perfect = _results(ceiling_jobs(experiment), entries)
        if perfect:
            rows.append(_baseline_row(experiment, "perfect inverse", perfect))
        for name in experiment.baselines:
            runs = _results(
                [job for job in _all_baselines(experiment) if job.method == name], entries
            )
            if runs:
                rows.append(_baseline_row(experiment, name, runs))
    jobs = table1_jobs(experiments, full=True)
    return ResultTable(
        "table1",
        "Signals and generators, next to the baselines",
        COLUMNS,
        rows,
        _missing(jobs, entries),
    )


def _all_baselines(experiment: Experiment) -> list[Job]:
    return [*baseline_jobs(experiment, slow=False), *baseline_jobs(experiment, slow=True)]


def _baseline_row(experiment: Experiment, name: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    figure, key = next((f, k) for f, k in _OF_BASELINES if runs[0][k] is not None)
    return {
        "experiment": experiment.name,
        "measure": f"{figure}, {name}",
        "paper": experiment.paper.baselines.get(name),
        "baseline here": spread(run[key] for run in runs),
        "one alignment": spread(run["r"] for run in runs),
        "seeds": str(len(runs)),
        "seconds": _told(_seconds(runs)),
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


def _seconds(runs: Sequence[Mapping[str, Any]]) -> float:
    """The median, in processor time where a run has it."""
    spent = tuple(run.get("cpu_seconds", run["seconds"]) for run in runs)
    return Spread(spent).median if runs else 0.0


def _told(*counts: float) -> str:
    return " / ".join(
        f"{count:,.0f}" if count >= 100 else f"{count:.3g}" for count in counts if count
    )


# -- Table 2: ablation -----------------------------------------------------------------------------

TERMS = ("stationarity", "resolution", "infomax")
#: what the paper reports when a term is removed: (S, r) for Legendre and Gaussian pulses on 63
#: points, identity
PAPER_ABLATION = {
    "none": ((0.964, 0.981), (0.961, 0.850)),
    "stationarity": ((0.997, 0.012), (0.781, 0.031)),
    "resolution": ((0.058, 0.010), (-0.048, 0.013)),
    "infomax": ((0.830, 0.009), (0.992, 0.932)),
}
RING = "gsn15-continuous"
#: row of the study → (preset, steps of the printed clock, seeds)
ABLATED: dict[str, tuple[str, int, tuple[int, ...]]] = {
    RING: ("paper", 150_000, (0, 1, 2)),
    "gsn63-legendre-identity": ("ours", 60_000, (0,)),
    "gsn63-gaussian-identity": ("ours", 60_000, (0,)),
}


def _ablation_job(name: str, term: str, seed: int) -> Job:
    preset, steps, _ = ABLATED[name]
    # the paper's clock opens the rank independently of the fit, and never changes to an exact model
    settings: dict[str, Any] = {"steps": steps}
    settings |= {} if preset == "paper" else {"clock": "paper", "keep": "last"}
    settings |= {} if term == "none" else {term: 0.0}
    return Job(
        experiment=EXPERIMENTS[name], kind="solver", method="neural", seed=seed, settings=settings,
        preset=preset if preset == "paper" else None,
    )  # fmt: skip


def ablation_jobs() -> list[Job]:
    """Each term removed, and none: one objective, one start and one budget for all four.

    On 15 points that is the training as printed, so that "none" is what Table 1 has for it; on 63
    points, our estimators and batch under the printed clock, at a sixth of the cost.
    """
    return [
        _ablation_job(name, term, seed)
        for name, (_, _, seeds) in ABLATED.items()
        for term in ("none", *TERMS)
        for seed in seeds
    ]


def ablation_table(entries: Entries) -> ResultTable:
    """S and r after each term was removed."""
    columns = ("experiment", "training", "removed", "measure", "paper", "here", "steps", "seconds")
    jobs, rows = ablation_jobs(), []
    for name, term in product(ABLATED, ("none", *TERMS)):
        runs = _results(
            [job for job in jobs if job.experiment.name == name and _removed(job) == term], entries
        )
        if not runs:
            continue
        ring = name == RING
        training = "as printed" if ABLATED[name][0] == "paper" else "ours, printed clock"
        first = ("S exact", "similarity_exact") if ring else ("S", "similarity")
        for place, (figure, key) in enumerate((first, ("r", "r_paper"))):
            rows.append(
                {
                    "experiment": name,
                    "training": training,
                    "removed": term,
                    "measure": figure,
                    "paper": None if ring else PAPER_ABLATION[term]["gaussian" in name][place],
                    "here": spread((run[key] for run in runs), 3),
                    "steps": _told(max(run["steps"] for run in runs)),
                    "seconds": _told(_seconds(runs)),
                }
            )
    title = "Ablation of the three terms, at equal budgets"
    return ResultTable("ablation", title, columns, rows, _missing(jobs, entries))


def _removed(job: Job) -> str:
    return next((term for term in TERMS if job.settings.get(term) == 0.0), "none")


# -- Morris ----------------------------------------------------------------------------------------

TRAJECTORIES, LEVELS, MORRIS_STEPS = 6, 8, 3_000
#: setting → bounds: those of the paper, for learning rates relative to ours as the paper's are to
#: its own
MORRIS = {
    "estimator_rate": (2.5e-3, 7.5e-3),
    "rate": (5e-4, 1.5e-3),
    "stationarity": (1.0, 1.66),
    "resolution": (0.75, 1.25),
    "infomax": (0.5625, 0.9375),
}
#: μ, μ*, σ of r and of S in the paper
PAPER_MORRIS = {
    "estimator_rate": (-0.0003, 0.0021, 0.0034, -0.0051, 0.0051, 0.0012),
    "rate": (0.0017, 0.0022, 0.0031, -0.0005, 0.0025, 0.0029),
    "stationarity": (-0.0008, 0.0009, 0.0014, -0.0012, 0.0052, 0.0077),
    "resolution": (0.0015, 0.0059, 0.0102, 0.0003, 0.0024, 0.0029),
    "infomax": (0.0005, 0.0023, 0.0028, 0.0018, 0.0038, 0.0056),
}


def _problem() -> dict[str, Any]:
    return {
        "num_vars": len(MORRIS),
        "names": list(MORRIS),
        "bounds": [list(b) for b in MORRIS.values()],
    }


def morris_design() -> np.ndarray:
    """(36, 5): six trajectories that change one setting at a time, on eight levels."""
    try:
        from SALib.sample.morris import sample
    except ImportError:
        raise InputError("the Morris study needs SALib: `pip install 'symlift[paper]'`") from None
    return np.asarray(sample(_problem(), TRAJECTORIES, num_levels=LEVELS, seed=0))


def morris_jobs() -> list[Job]:
    """The ring of 15 from the paper's start with the settings of each point of the design."""
    return [
        Job(
            experiment=EXPERIMENTS[RING],
            kind="solver",
            method="neural",
            steps=MORRIS_STEPS,
            settings={
                name: float(f"{value:.6g}") for name, value in zip(MORRIS, point, strict=True)
            },
        )
        for point in morris_design()
    ]


def morris_table(entries: Entries) -> ResultTable:
    """The results of all runs."""
    jobs = morris_jobs()
    columns = ("run", *MORRIS, "r", "S exact", "seconds")
    rows = [
        {
            "run": number,
            **job.settings,
            "r": entries[job.key]["result"]["r"],
            "S exact": entries[job.key]["result"]["similarity_exact"][0],
            "seconds": entries[job.key]["result"]["seconds"],
        }
        for number, job in enumerate(jobs, start=1)
        if job.key in entries
    ]
    title = f"Morris design on the ring of 15, {MORRIS_STEPS:,} steps from the paper's start"
    return ResultTable("morris", title, columns, rows, _missing(jobs, entries))


def effects_table(entries: Entries) -> ResultTable:
    """Elementary effects μ, μ*, σ of each setting on r and on S, next to the paper's."""
    columns = ("setting", "measure", "μ", "μ*", "σ", "paper μ", "paper μ*", "paper σ")
    jobs = morris_jobs()
    rows: list[dict[str, Any]] = []
    if all(job.key in entries for job in jobs):
        from SALib.analyze.morris import analyze

        design = morris_design()
        for place, (figure, key) in enumerate((("r", "r"), ("S exact", "similarity_exact"))):
            results = [entries[job.key]["result"][key] for job in jobs]
            values = np.array([v[0] if isinstance(v, list) else v for v in results])
            effects = analyze(_problem(), design, values, num_levels=LEVELS, seed=0)
            for index, name in enumerate(MORRIS):
                paper = PAPER_MORRIS[name][3 * place : 3 * place + 3]
                ours = (effects[kind][index] for kind in ("mu", "mu_star", "sigma"))
                rows.append(
                    {"setting": name, "measure": figure}
                    | {k: round(float(v), 4) for k, v in zip(("μ", "μ*", "σ"), ours, strict=True)}
                    | dict(zip(("paper μ", "paper μ*", "paper σ"), paper, strict=True))
                )
    title = "Elementary effects of settings"
    return ResultTable("morris-effects", title, columns, rows, _missing(jobs, entries))


# -- topographic ICA -------------------------------------------------------------------------------


def tica_jobs() -> list[Job]:
    """Four rows with six configurations each."""
    return [
        Job(experiment=EXPERIMENTS[name], kind="baseline", method="tica", settings=settings)
        for name in PAPER_TICA
        for settings in get_baseline("tica").configurations()
    ]


def tica_table(entries: Entries) -> ResultTable:
    """r of each configuration, next to the paper's and the fast solver's on the same row."""
    columns = (
        "experiment",
        "rate",
        "pool",
        "paper",
        "baseline here",
        "one alignment",
        "fast",
        "seconds",
    )
    jobs, rows = tica_jobs(), []
    for job in jobs:
        if job.key not in entries:
            continue
        run, settings = entries[job.key]["result"], job.settings
        fast = _results(solver_jobs(job.experiment), entries)
        rows.append(
            {
                "experiment": job.experiment.name,
                "rate": settings["rate"],
                "pool": settings["pool"],
                "paper": PAPER_TICA[job.experiment.name].get((settings["rate"], settings["pool"])),
                "baseline here": run["r_paper"],
                "one alignment": run["r"],
                "fast": spread((f["r_paper"] for f in fast), 4),
                "seconds": run["seconds"],
            }
        )
    return ResultTable(
        "tica", "Topographic ICA, all configurations", columns, rows, _missing(jobs, entries)
    )


STUDIES = {
    study.name: study
    for study in (
        Study(
            "ablation",
            "Table 2: the objective without one of its terms",
            ablation_jobs,
            (ablation_table,),
        ),
        Study(
            "morris", "sensitivity to settings, 36 runs", morris_jobs, (morris_table, effects_table)
        ),
        Study("tica", "topographic ICA, 24 configurations", tica_jobs, (tica_table,)),
    )
}
