"""Fast, then the paper's training from there: what the estimators can still improve, and never worse on held-out rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.grid import Grid
from symlift.solvers import Progress, Solution, fast, neural, no_progress

__all__ = ["solve"]


def solve(
    X: NDArray, grid: Grid, rng: np.random.Generator, progress: Progress = no_progress, **options: Any
) -> Solution:
    """The fast solver's model, trained further; ``options`` are those of the neural solver."""
    first = fast.solve(
        X, grid, rng, progress=lambda stage, share: progress(stage, None if share is None else 0.1 * share)
    )
    second = neural.solve(
        X, grid, rng, start=first.model,
        progress=lambda stage, share: progress(stage, None if share is None else 0.1 + 0.9 * share), **options,
    )  # fmt: skip
    evidence = {"evidence": first.trace["evidence"]} if "evidence" in first.trace else {}
    stages = [*first.trace.get("stages", []), *second.trace["stages"]]
    return replace(
        second,
        trace={**second.trace, "solver": "refine", "fast": first.trace.get("chosen"), "stages": stages, **evidence},
    )
