"""From experiments to what is printed and committed: one result, tables, and the page of all results."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symlift.errors import InputError
from symlift.paper.jobs import baseline_jobs, solver_jobs
from symlift.paper.registry import Experiment, experiments_with
from symlift.paper.scheduler import Outcome, by_turns, cluster, run_jobs
from symlift.paper.store import Archive, Cache, Entry, default_cache
from symlift.paper.studies import STUDIES, table1, table1_jobs
from symlift.paper.tables import Table
from symlift.solvers.contract import Progress, no_progress
from symlift.solvers.registry import TRAINED
from symlift.storage.atomic import write_atomically

__all__ = ["Filled", "fill_tables", "one_experiment", "results_page"]


def one_experiment(
    experiment: Experiment,
    solver: str = "auto",
    seed: int = 0,
    n: int | None = None,
    *,
    baselines: bool = False,
    budget: float | None = None,
    workers: int = 1,
    address: str | None = None,
    cache: Path | None = None,
    fresh: bool = False,
    progress: Progress = no_progress,
) -> dict[str, Any]:
    """The figures of one solver on one experiment and, where asked for, of its baselines within what is left of the budget.

    A solver that trains is stopped at the end of the budget; ``left_out`` names baselines that did not fit into it.
    """
    job = solver_jobs(experiment, solver, n)[0].model_copy(update={"seed": seed})
    if budget is not None and job.method in TRAINED:
        job = job.model_copy(update={"seconds": budget})
    store = Cache(default_cache() if cache is None else cache)
    jobs = [job]
    if baselines:
        # one seed, that of the solver; those that train are run for the tables
        rivals = [b.model_copy(update={"seed": seed}) for b in baseline_jobs(experiment, slow=False, n=n)]
        jobs += by_turns(list({b.key: b for b in rivals}.values()))
    store.settle()
    if fresh:
        store.forget(jobs)
    progress(job.label, None)
    start = time.monotonic()
    result = dict(store.run(job)["result"])
    with cluster(address):
        left = None if budget is None else max(0.0, budget - (time.monotonic() - start))
        rest = run_jobs(jobs[1:], store, workers, left, progress)
    if baselines:
        result["baselines"] = [rest.entries[b.key]["result"] for b in jobs[1:] if b.key in rest.entries]
        result["left_out"] = rest.left_out | rest.failed
    return result


@dataclass(frozen=True)
class Filled:
    """Tables, and what their runs came to."""

    tables: list[Table]
    outcome: Outcome


def fill_tables(
    names: Sequence[str] = (),
    *,
    file: Path | None = None,
    budget: float | None = None,
    full: bool = False,
    workers: int = 1,
    address: str | None = None,
    cache: Path | None = None,
    fresh: bool = False,
    archive: Path | None = None,
    page: Path | None = None,
    progress: Progress = no_progress,
) -> Filled:
    """Run what the named studies or rows of Table 1 need, within a budget, and make their tables.

    With ``archive``, finished runs are kept there, and tables are made of all that it holds.
    """
    if page is not None and archive is None:
        raise InputError("a page is made from an archive of results: give the archive, too")
    known = experiments_with(file)
    studies = [name for name in names if name in STUDIES]
    rows = [name for name in names if name not in STUDIES]
    for name in rows:
        if name not in known:
            raise InputError(f"{name!r} is neither an experiment nor a study: `symlift experiment list` shows them all")
    chosen = [known[name] for name in rows] if names else list(known.values())
    jobs = [job for name in studies for job in STUDIES[name].jobs()] + table1_jobs(chosen, full)
    store = Cache(default_cache() if cache is None else cache)
    if fresh:
        store.forget(jobs)
    with cluster(address):
        outcome = run_jobs(by_turns(jobs), store, workers, budget, progress)
    entries: Mapping[str, Entry] = outcome.entries
    if archive is not None:
        kept = Archive(archive)
        kept.add(outcome.entries.values())
        entries = kept.entries()
    tables = [table for name in studies for table in STUDIES[name].tables(entries)]
    if chosen:
        tables.append(table1(chosen, entries))
    if page is not None:
        with write_atomically(page) as temporary:
            temporary.write_text(results_page(list(known.values()), entries), encoding="utf-8")
    return Filled(tables, outcome)


def results_page(experiments: Sequence[Experiment], entries: Mapping[str, Entry]) -> str:
    """All tables as one Markdown page, with machines, versions, dates and seeds."""
    first = table1(experiments, entries)
    parts = [_HEAD, f"## {first.title}\n\n{first.markdown()}"]
    for study in STUDIES.values():
        parts += [f"## {table.title}\n\n{table.markdown()}" for table in study.tables(entries)]
    parts.append("## Where and when\n\n" + _measured(entries.values()))
    return "\n".join(parts)


_HEAD = """# Results

Every table of the paper, measured here.  `make reproduce` runs Table 1 with the fast solver and the cheap baselines,
`make reproduce-full` the rest, and both write this page from the results that they keep.

- Figures are medians over seeds, the worst seed in brackets.  A seed fixes data, transform and method.
- **paper** is what the paper reports; **r** is under the paper's protocol (each sample aligned by itself), **one alignment** is r
  of all samples pooled, with one alignment for all.  Two numbers under **seeds** and **seconds** are training / fast solver.
- **perfect inverse** is no method: it is what the inverse of the true transform reads on the same noisy vectors.  Under the paper's
  protocol that is well below 1 on Gaussian shot noise, because some windows are nearly empty, and noise alone follows nothing.
- **Baselines are tuned with the truth**, as in the paper: every figure is the best of a search that knew the answer.  Solvers
  see the vectors and the grid, nothing else.
- Seconds are those of one core for one seed, a baseline's for its whole search.
- In rows with the identity transform, columns are permuted by the seed before anything is run.
- LieGAN has one configuration here, not its search of 27; its result depends on its start.  Only rings of 15 have a row for
  training from the paper's start.
- The ablation on 15 points starts as the paper does: with all terms a run ends by itself, with one removed it stops after 12,000
  steps and does not go over to an exact model on the way.  That on 63 points starts from the fast solver's model (500 of its steps
  are for the estimators alone).  The last model of a run is scored, not the best on the way.
- The Morris runs stop long before training has ended: they tell which settings matter early, and their r and S cannot be compared
  with the paper's.
- Why baselines differ from the paper's figures for them: [Baselines](baselines.md).
"""


def _measured(entries: Iterable[Entry]) -> str:
    """One line for each machine with its versions, the days, and the number of runs."""
    groups: dict[str, list[str]] = {}
    for entry in entries:
        machine = entry["machine"]
        versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
        where = f"{machine['processor']}, {machine['cores']} cores, Python {machine['python']}, {versions}"
        groups.setdefault(where, []).append(entry["date"])
    lines = [f"- {where}: {len(days)} runs, {min(days)} to {max(days)}." for where, days in sorted(groups.items())]
    return "\n".join(lines) + "\n"
