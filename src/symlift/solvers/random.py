"""The random baseline: a lifting map with orthonormal rows drawn from the Haar measure. Every other
solver has to do better than this.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ortho_group

from symlift.core.grid import Grid
from symlift.core.model import LiftedModel
from symlift.solvers.contract import Progress, Solution, Trace, no_progress

__all__ = ["solve"]


def solve(
    X: NDArray, grid: Grid, rng: np.random.Generator, progress: Progress = no_progress
) -> Solution:
    """A random lifting map; only the mean and the number of columns of X are used."""
    progress("drawing", 0.0)
    d = X.shape[1]
    W = ortho_group.rvs(d, random_state=rng)[: grid.size] if d > 1 else np.ones((1, 1))
    model = LiftedModel.from_lifting_map(W, grid, mean=np.mean(X, axis=0, dtype=np.float64))
    return Solution(model, trace=Trace(solver="random"))
