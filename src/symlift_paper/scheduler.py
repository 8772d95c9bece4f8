"""Run many jobs in parallel, within a budget, and report what was left out."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from symlift.errors import InputError, MissingDataError, SymliftError
from symlift.solvers.contract import Progress, no_progress
from symlift.storage.lock import InUseError
from symlift_paper.jobs import Job
from symlift_paper.store import Cache, Entry

__all__ = ["Outcome", "by_turns", "cluster", "run_jobs"]


@dataclass(frozen=True)
class Outcome:
    """Entries of finished jobs (now or before), and the reasons why others are missing."""

    entries: dict[str, Entry] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def __or__(self, later: Outcome) -> Outcome:
        return Outcome(
            self.entries | later.entries,
            self.left_out | later.left_out,
            self.failed | later.failed,
        )


def by_turns(jobs: Sequence[Job]) -> list[Job]:
    """Order jobs by seed, then by cost: first one seed of everything, cheap jobs first.

    A budget that ends early has then covered all rows of a table.

    >>> from symlift_paper import EXPERIMENTS
    >>> ring = EXPERIMENTS["gsn15-fft"]
    >>> wanted = [(method, seed) for method in ("neural", "fast") for seed in (0, 1)]
    >>> jobs = [Job(experiment=ring, kind="solver", method=m, seed=s) for m, s in wanted]
    >>> [(job.method, job.seed) for job in by_turns(jobs)]
    [('fast', 0), ('neural', 0), ('fast', 1), ('neural', 1)]
    """
    turns: dict[tuple[str, str, str], int] = {}
    placed = []
    for job in jobs:
        what = (job.experiment.name, job.method, str(sorted(job.settings.items())))
        turns[what] = turns.get(what, -1) + 1
        placed.append((turns[what], job))
    # the sort is stable
    return [job for _, job in sorted(placed, key=lambda item: (item[0], item[1].cost))]


def run_jobs(
    jobs: Sequence[Job],
    cache: Cache,
    workers: int = 1,
    budget: float | None = None,
    progress: Progress = no_progress,
) -> Outcome:
    """Entries of all jobs that are cached or that fit into ``budget`` seconds, in the order given.

    A job starts only if its expected time is left, so that the end of a budget interrupts no job.
    Jobs run in parallel through joblib: inside ``joblib.parallel_config(backend="dask")`` they run
    on a cluster. A job that fails, or whose data are missing, is reported in the outcome; the
    others continue.
    """
    outcome = Outcome()
    cache.settle()
    todo: dict[str, Job] = {}
    room = math.inf if budget is None else budget * workers
    for job in jobs:
        cached = cache.get(job)
        if cached is not None:
            outcome.entries[job.key] = cached
        elif job.key in todo:
            continue
        elif job.cost > min(room, math.inf if budget is None else budget):
            outcome.left_out[job.label] = (
                f"needs about {job.cost:.0f} s, more than was left of the budget"
            )
        else:
            todo[job.key] = job
            room -= job.cost
    end = None if budget is None else time.time() + budget
    total, done = sum(job.cost for job in todo.values()), 0.0
    progress(_progress_words(0, len(todo)), 0.0)
    calls = (delayed(_attempt)(job, cache, end) for job in todo.values())
    for count, (job, entry, kind, why) in enumerate(
        Parallel(n_jobs=workers, return_as="generator_unordered")(calls), start=1
    ):
        done += job.cost
        if entry is not None:
            outcome.entries[job.key] = entry
        else:
            getattr(outcome, kind)[job.label] = why
        progress(_progress_words(count, len(todo)), min(1.0, done / total))
    return outcome


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Run jobs on the workers of the Dask scheduler at ``address``; None changes nothing.

    "local" starts a scheduler on this machine.
    """
    if address is None:
        yield
        return
    try:
        from dask.distributed import Client
    except ImportError:
        raise InputError("a cluster needs Dask: `pip install 'symlift[cluster]'`") from None
    try:
        client = Client(None if address == "local" else address, timeout=10)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address!r} ({error}): start one, or leave it out"
        ) from None
    with client, parallel_config(backend="dask"):
        yield


def _attempt(job: Job, cache: Cache, end: float | None) -> tuple[Job, Entry | None, str, str]:
    """Run one job in a worker.

    Returns the entry, or None with the field of the outcome ("left_out" or "failed") and the
    reason.
    """
    if end is not None and time.time() + job.cost > end:
        return job, None, "left_out", "the budget was used up before its turn came"
    try:
        # workers use all cores; a second BLAS thread in each would only slow them down
        with threadpool_limits(limits=1):
            return job, cache.run(job), "", ""
    except (MissingDataError, InUseError) as error:
        return job, None, "left_out", str(error)
    # settings from a file reach other libraries, which may raise any of these
    except (
        SymliftError, ImportError, ArithmeticError, ValueError, TypeError, LookupError,
        AttributeError, RuntimeError, OSError, MemoryError,
    ) as error:  # fmt: skip
        return job, None, "failed", f"{type(error).__name__}: {' '.join(str(error).split())}"


def _progress_words(count: int, total: int) -> str:
    return f"{count} of {total} runs done"
