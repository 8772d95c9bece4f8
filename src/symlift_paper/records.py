"""Entries of finished jobs as what tables print: results, medians, what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from symlift_paper.jobs import Job
from symlift_paper.store import Entry
from symlift_paper.tables import Spread

__all__ = ["Entries", "counts_text", "median_seconds", "missing_note", "results_of"]

Entries = Mapping[str, Entry]


def results_of(jobs: Sequence[Job], entries: Entries) -> list[dict[str, Any]]:
    """The results of those jobs that have an entry."""
    return [entries[job.key]["result"] for job in jobs if job.key in entries]


def missing_note(jobs: Sequence[Job], entries: Entries) -> list[str]:
    """One note for all that has not been run."""
    counts: dict[str, list[bool]] = {}
    for job in jobs:
        counts.setdefault(f"{job.experiment.name} / {job.method_text}", []).append(
            job.key in entries
        )
    left = [
        f"{name} ({done.count(False)} of {len(done)})"
        for name, done in sorted(counts.items())
        if not all(done)
    ]
    return [f"Not run: {', '.join(left)}."] if left else []


def median_seconds(runs: Sequence[Mapping[str, Any]]) -> float:
    """The median, in processor time where a run has it."""
    spent = tuple(run.get("cpu_seconds", run["seconds"]) for run in runs)
    return Spread(spent).median if runs else 0.0


def counts_text(*counts: float) -> str:
    """Counts other than 0, with a slash between them.

    >>> counts_text(1234.5, 0.0, 2.345)
    '1,234 / 2.35'
    """
    return " / ".join(
        f"{count:,.0f}" if count >= 100 else f"{count:.3g}" for count in counts if count
    )
