"""From experiments to what is printed and committed: one result, tables, and the page of all
results.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from symlift.errors import InputError
from symlift.solvers.contract import Progress, no_progress
from symlift.solvers.registry import TRAINED
from symlift.storage.atomic import write_atomically
from symlift_paper.first_table import table1, table1_jobs
from symlift_paper.jobs import baseline_jobs, solver_jobs
from symlift_paper.prices import estimate
from symlift_paper.registry import EXPERIMENTS, Experiment, experiments_with
from symlift_paper.scheduler import Outcome, by_turns, cluster, run_jobs
from symlift_paper.store import Archive, Cache, Entry, default_cache
from symlift_paper.studies import STUDIES
from symlift_paper.tables import ResultTable

__all__ = ["Filled", "fill_tables", "full_price", "one_experiment", "results_page"]


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
    """The results of one solver on one experiment and, on request, of its baselines within the rest
    of the budget.

    A solver that trains is stopped at the end of the budget; ``left_out`` names baselines that did
    not fit into it.
    """
    job = solver_jobs(experiment, solver, n)[0].model_copy(update={"seed": seed})
    if budget is not None and job.method in TRAINED:
        job = job.model_copy(update={"seconds": budget})
    store = Cache(default_cache() if cache is None else cache)
    jobs = [job]
    if baselines:
        # one seed, that of the solver; those that train are run for the tables
        rivals = [
            b.model_copy(update={"seed": seed}) for b in baseline_jobs(experiment, slow=False, n=n)
        ]
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
        result["baselines"] = [
            rest.entries[b.key]["result"] for b in jobs[1:] if b.key in rest.entries
        ]
        result["left_out"] = rest.left_out | rest.failed
    return result


@dataclass(frozen=True)
class Filled:
    """Tables, and the outcome of their runs."""

    tables: list[ResultTable]
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
            raise InputError(
                f"{name!r} is neither an experiment nor a study: `symlift experiment list` shows"
                " them all"
            )
    chosen = [known[name] for name in rows] if names else list(known.values())
    jobs = [job for name in studies for job in STUDIES[name].jobs()] + table1_jobs(chosen, full)
    store = Cache(default_cache() if cache is None else cache)
    if fresh:
        store.forget(jobs)
    start = time.monotonic()
    with cluster(address):
        outcome = run_jobs(by_turns(jobs), store, workers, budget, progress)
        then = [job for name in studies for job in STUDIES[name].then(outcome.entries)]
        if then:
            if fresh:
                store.forget(then)
            left = None if budget is None else max(0.0, budget - (time.monotonic() - start))
            outcome |= run_jobs(then, store, workers, left, progress)
    entries: Mapping[str, Entry] = outcome.entries
    if archive is not None:
        results = Archive(archive)
        results.add(outcome.entries.values())
        entries = results.entries()
    tables = [table for name in studies for table in STUDIES[name].tables(entries)]
    if chosen:
        tables.append(table1(chosen, entries))
    if page is not None:
        with write_atomically(page) as temporary:
            temporary.write_text(results_page(list(known.values()), entries), encoding="utf-8")
    return Filled(tables, outcome)


def full_price(workers: int = 1, cache: Path | None = None) -> list[str]:
    """What the full Table 1 and all studies will cost, without the runs that the cache holds."""
    store = Cache(default_cache() if cache is None else cache)
    jobs = table1_jobs(list(EXPERIMENTS.values()), full=True)
    jobs += [job for study in STUDIES.values() for job in study.jobs()]
    return estimate([j for j in {j.key: j for j in jobs}.values() if not store.get(j)], workers)


def results_page(experiments: Sequence[Experiment], entries: Mapping[str, Entry]) -> str:
    """All tables as one Markdown page, with machines, versions, dates and seeds."""
    first = table1(experiments, entries)
    parts = [_HEAD, f"## {first.title}\n\n{first.markdown()}"]
    for study in STUDIES.values():
        parts += [f"## {table.title}\n\n{table.markdown()}" for table in study.tables(entries)]
    parts.append("## Where and when\n\n" + _measured(entries.values()))
    return "\n".join(parts)


_HEAD = """# Results

The paper's tables with what was measured here next to them.  `make reproduce` runs Table 1 with the fast solver and the cheap
baselines, `make reproduce-full` the rest, and both write this page from the results that they keep.

**What was trained, and what was closed.**  *Trained* is what gradient descent on the paper's objective did; *closed* is what a closed
form, on all rows at once, made of it.  **as printed** is the paper's training as its text and tables have it (`preset="paper"`, over
150,000 steps on 50,000 samples), **as released** has the choices of the authors' code where it differs from the text
(`preset="released"`), and **steps of its table** are the 450,000 that the paper's training table implies on the ring of 15, instead of
the 150,000 of its LieGAN section ([all runs](decisions/0010-as-printed.md)).  Nothing is closed in these three.  **ours, trained** is
the map of our training at the moment at which a closed form ended the run, **ours, closed** the map that this made of it and that is
returned ([how](training.md)).  Images of more than 128 pixels and their bits do not start where the paper starts, but in the strongest
modes of the data, and are trained on a grid of 7×7, where the trained map is compared with the slow waves of the truth that this grid
has; 27×27 ends with each pixel put at one point.  **closed form alone** is the number of random starts, without any
training, from which the same closed form reaches the truth (r of 0.9 and more): where that is all of them, training has no part in the
result, and where it is none, training chose the basin.  In closed maps S follows from the map: no generator is learned there.
**ours, from the covariance** starts from planes that neighbours in the data's spectrum span, instead of random ones.  **fast** is the
default solver, which does not train.

- Numbers are medians over seeds, the worst seed in brackets.  A seed fixes data, transform and method.
- **paper** is what the paper reports.  **r** takes the best alignment of each sample by itself, over flips, exchanges of axes and, on
  rings, all cyclic shifts; the paper's text has 2^P P! alignments, without shifts, and does not say whether a sample or a data set has
  one.  **one alignment** is r of all samples pooled, with one alignment for all.
- **S** compares with central differences, as the paper does, and **S exact** with the derivative of the band-limited interpolant.  The
  paper's three S of the ring stand in the row of S exact, because they are above what an exact translation reads as S there (0.960).
  A central difference is no translation: on 63 points even the exact one reads S = 0.952, on 33 spins 0.949 (in the authors' code, whose band is a
  little narrower, 0.962 on 63), so that 0.952 is not below the paper's 0.959 to 0.970, but the most that an exact generator has.
- **Pulses** are those of the authors' code (`variant="released"`).  With those that the text prints, the fast solver is
  [measured apart](measured.md#known-truths): Legendre pulses behind a sine transform are recovered in three of five draws.
- **Bits at r = 1.0000** assume that a pixel's bits count as powers of two: their significance is found, their weights are not.
- Six numbers under **seeds** and **seconds** are as printed / as released / as printed, steps of its table / ours / ours, from the
  covariance / fast.
- **Cells without a number say why.**  The time after “not run” is that of one core: the measured seconds of a step times the steps
  ([training](training.md)).  “Not reached”: it was tried, and did not get there ([what was tried](decisions/0008-ending-on-all-rows.md)).
  “Measured apart”: on [square roots of the counts](decisions/0009-closed-forms-of-other-rows.md#measured).
  The start from the covariance is compared with the paper's on two rows only.
- **perfect inverse** is no method: it is what the inverse of the true transform reads on the same noisy vectors.  Under the paper's
  protocol that is well below 1 on Gaussian shot noise, because some windows are nearly empty: only noise is left there, and it correlates
  with nothing.  The paper's own 0.982 is above it, and so are closed maps of ours, which are no exact inverses: maps that suppress noise
  can be above it under this protocol, so that the number alone does not say how the paper aligned.
- **Baselines are tuned with the truth**, as in the paper: every number is the best of a search that knew the answer.  Solvers
  see the vectors and the grid, nothing else.  **baseline here** is our search on the row's own data.  **baseline, authors'
  settings** is on the data and with the searches and scores that the authors had, one trial: waveforms of 63 points in every row,
  **63 spins** too, with columns in order; images cropped at the middle, so that **the paper's image baselines saw digits that were
  not translated**.  [Baselines](baselines.md#with-the-authors-settings) says what is known of them, what was inferred, and where the
  paper's number is still not met.
- **Gratings.**  The paper's circular correlation is the form about circular means, which misleads where angles are balanced; the
  other row has the form over all pairs.  The same phases read very differently under the two, and halves of the recording
  disagree: [Recordings](recordings.md) explains why the larger number is not evidence of a ring.  The paper has
  static gratings, here they drift.
- Seconds are those of one core for one seed, a baseline's for its whole search; those of our training are processor time, because the machine
  was busy with other work.  All others are wall time; the machine was busy during first seeds and the authors'
  baselines, too, so that times of a single run can be too long.
- In rows with the identity transform, columns are permuted by the seed before anything is run.
- **Topographic ICA reads so low** in the paper because a batch of 250 has one alignment and signed correlations are averaged: a random
  rotation reads about as much (**authors' scoring** in its table).
- LieGAN has one configuration in the first table, at a tenth of the paper's steps, and its result depends on its start.  Its search over all of the
  paper's steps has a table of its own: the least loss is that of the identity, and the truth chooses another configuration
  ([why](baselines.md)).
- The ablation runs all four variants of an experiment from the same start, with the same clock (the printed one) and the same number of steps,
  without going over to an exact model: they differ in the term that is left out only.  The last model is scored.  On 63 points the clock opens 32 of the 63 dimensions, with which the full objective converges
  ([what it shows](decisions/0010-as-printed.md#ablation-on-63-points), and where the paper's conclusions differ).  What has not been run is listed below the table.
- The Morris runs are the training as printed over 150,000 steps (1,500 epochs of 50,000 samples).  The paper's effects follow from its own runs with SALib's default of four levels; with the eight that it states they would be 7/6
  of that.
"""


def _measured(entries: Iterable[Entry]) -> str:
    """One line for each machine with its versions, the days, and the number of runs; and how many
    runs are of which source.
    """
    groups: dict[str, list[str]] = {}
    sources: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        known = (entry.get("commit") or "unknown", entry.get("source") or "unknown")
        sources.setdefault(known, []).append(entry["date"])
        machine = entry["machine"]
        versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
        where = (
            f"{machine['processor']}, {machine['cores']} core{'s' * (machine['cores'] != 1)},"
            f" Python {machine['python']}, {versions}"
        )
        groups.setdefault(where, []).append(entry["date"])
    lines = [
        f"- {where}: {len(days)} runs, {min(days)} to {max(days)}."
        for where, days in sorted(groups.items())
    ]
    # the newest first: whatever is below was not measured again since
    newest = sorted(sources.items(), key=lambda item: (max(item[1]), item[0]), reverse=True)
    lines += [
        "",
        "A run knows the digest of the source that made it, and the commit that has this source where there is one:",
        "",
        "| commit | source | runs | days |",
        "|---|---|---|---|",
        *(
            f"| {commit[:7]} | {source} | {len(days)} | {min(days)} to {max(days)} |"
            for (commit, source), days in newest
        ),
    ]
    return "\n".join(lines) + "\n"
