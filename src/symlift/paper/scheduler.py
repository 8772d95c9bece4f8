"""Run many jobs side by side, within a budget, and say what was left out."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from symlift.errors import InputError, MissingDataError, SymliftError
from symlift.paper.jobs import Job
from symlift.paper.store import Cache, Entry
from symlift.solvers.contract import Progress, no_progress
from symlift.storage.lock import InUseError

__all__ = ["Outcome", "by_turns", "cluster", "run_jobs"]


@dataclass(frozen=True)
class Outcome:
    """Entries of what was done (or had been done before), and what was not, with the reason."""

    entries: dict[str, Entry] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def by_turns(jobs: Sequence[Job]) -> list[Job]:
    """First one seed of everything, cheap things first, then the next seed: a budget that ends
    early has seen all rows.

    >>> from symlift.paper import EXPERIMENTS
    >>> ring = EXPERIMENTS["gsn15-fft"]
    >>> jobs = [Job(experiment=ring, kind="solver", method=m, seed=s) for m in ("neural", "fast") for s in (0, 1)]
    >>> [(job.method, job.seed) for job in by_turns(jobs)]
    [('fast', 0), ('neural', 0), ('fast', 1), ('neural', 1)]
    """
    turns: dict[tuple[str, str, str], int] = {}
    placed = []
    for job in jobs:
        what = (job.experiment.name, job.method, str(sorted(job.settings.items())))
        turns[what] = turns.get(what, -1) + 1
        placed.append((turns[what], job))
    # the sort keeps the order of equals
    return [job for _, job in sorted(placed, key=lambda item: (item[0], item[1].cost))]


def run_jobs(
    jobs: Sequence[Job],
    cache: Cache,
    workers: int = 1,
    budget: float | None = None,
    progress: Progress = no_progress,
) -> Outcome:
    """Entries of all jobs that are cached or that fit into ``budget`` seconds, in the order given.

    A job is begun only while the time that it is expected to take is left, so the end of a budget
    cuts no job short.  Jobs run side by side through joblib: inside of
    ``joblib.parallel_config(backend="dask")`` they go to a cluster. One that fails, or whose data
    are not here, is told in the outcome; the others go on.
    """
    outcome = Outcome()
    cache.settle()
    todo: dict[str, Job] = {}
    room = math.inf if budget is None else budget * workers
    for job in jobs:
        found = cache.get(job)
        if found is not None:
            outcome.entries[job.key] = found
        elif job.key in todo:
            continue
        elif job.cost > min(room, math.inf if budget is None else budget):
            outcome.left_out[job.label] = f"needs about {job.cost:.0f} s, more than was left of the budget"
        else:
            todo[job.key] = job
            room -= job.cost
    end = None if budget is None else time.time() + budget
    total, done = sum(job.cost for job in todo.values()), 0.0
    progress(_told(0, len(todo)), 0.0)
    calls = (delayed(_attempt)(job, cache, end) for job in todo.values())
    for count, (job, entry, kind, why) in enumerate(
        Parallel(n_jobs=workers, return_as="generator_unordered")(calls), start=1
    ):
        done += job.cost
        if entry is not None:
            outcome.entries[job.key] = entry
        else:
            getattr(outcome, kind)[job.label] = why
        progress(_told(count, len(todo)), min(1.0, done / total))
    return outcome


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Inside, jobs go to the workers of the Dask scheduler at ``address`` ("local": one on this
    machine); None changes nothing.
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
        raise InputError(f"no Dask scheduler answers at {address!r} ({error}): start one, or leave it out") from None
    with client, parallel_config(backend="dask"):
        yield


def _attempt(job: Job, cache: Cache, end: float | None) -> tuple[Job, Entry | None, str, str]:
    """One job in a worker: the entry, or None with what the outcome says of it ("left_out" or
    "failed") and why.
    """
    if end is not None and time.time() + job.cost > end:
        return job, None, "left_out", "the budget was used up before its turn came"
    try:
        # workers fill the cores; a second BLAS thread in each would only make them wait for each
        # other
        with threadpool_limits(limits=1):
            return job, cache.run(job), "", ""
    except (MissingDataError, InUseError) as error:
        return job, None, "left_out", str(error)
    # settings of a file reach foreign code, which may raise any of these
    except (SymliftError, ImportError, ArithmeticError, ValueError, TypeError, LookupError, AttributeError, RuntimeError, OSError,
            MemoryError) as error:  # fmt: skip
        return job, None, "failed", f"{type(error).__name__}: {' '.join(str(error).split())}"


def _told(count: int, total: int) -> str:
    return f"{count} of {total} runs done"
