"""The fast solver, then the paper's training from its model; the result is never worse on held-out
rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.rows import MAX_SAMPLE, take_rows
from symlift.solvers.contract import Progress, Solution, no_progress, part_of
from symlift.solvers.fast import pipeline as fast
from symlift.solvers.neural import training

__all__ = ["solve"]

_ROWS = 65_536


def solve(
    X: NDArray,
    grid: Grid,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    **options: Any,
) -> Solution:
    """The fast solver's model, trained further; ``options`` are those of the neural solver."""
    # the fast solver uses a sample of the rows, and needs it in memory
    some = (
        X[:]
        if X.size <= MAX_SAMPLE
        else take_rows(X, np.sort(rng.choice(len(X), min(_ROWS, len(X)), replace=False)))
    )
    first = fast.solve(np.asarray(some), grid, rng, progress=part_of(progress, 0.0, 0.1))
    second = training.solve(
        X, grid, rng, start=first.model, progress=part_of(progress, 0.1, 1.0), **options
    )
    stages = (*first.trace.stages, *second.trace.stages)
    trace = replace(second.trace, solver="refine", chosen=first.trace.chosen, stages=stages)
    return replace(second, evidence=first.evidence, trace=trace)
