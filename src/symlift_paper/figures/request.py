"""The request of a figure (experiments, seed and budgets), and a fit of one experiment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Alignment, Grid
from symlift.datasets import Observations
from symlift.estimator import LatentDomain
from symlift.metrics import align, signal_recovery
from symlift.solvers.contract import Progress
from symlift_paper.registry import Experiment

__all__ = ["Fit", "Request", "aligned_map", "recovery_of"]

#: inches: the width of a page, so that font sizes are true
WIDTH = 7.2


@dataclass(frozen=True)
class Request:
    """The figure's experiments, its number of samples, and the most seconds of a training.

    None stands for the experiment's own number, and for no limit.
    """

    experiments: tuple[Experiment, ...]
    seed: int
    n: int | None
    seconds: float | None
    progress: Progress

    def observe(self, experiment: Experiment) -> Observations:
        """The experiment's data."""
        self.progress(f"data of {experiment.name}", None)
        return experiment.observe(self.seed, self.n)

    def fit(self, experiment: Experiment, X: NDArray) -> LatentDomain:
        """The experiment's own solver on X."""
        return experiment.estimator(self.seed, experiment.solver).fit(X, progress=self.progress)


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit with its r, and the alignment of its output with the truth."""

    data: Observations
    estimator: LatentDomain
    r: float
    alignment: Alignment

    @classmethod
    def of(cls, request: Request, experiment: Experiment) -> Fit:
        """Draw the data of an experiment, fit them and measure."""
        data = request.observe(experiment)
        estimator = request.fit(experiment, data.X)
        return cls(
            data, estimator, *recovery_of(data.latent, estimator.transform(data.X), data.grid)
        )


def recovery_of(latent: NDArray, recovered: NDArray, grid: Grid) -> tuple[float, Alignment]:
    """r and the alignment, as `signal_recovery` finds them."""
    recovery = signal_recovery(latent, recovered, grid)
    assert recovery.alignment is not None  # noqa: S101 - the global protocol always has one
    return recovery.r, recovery.alignment


def aligned_map(W: NDArray, alignment: Alignment, grid: Grid) -> NDArray[np.float64]:
    """A lifting map (N, d) whose output is aligned with the truth, column by column."""
    return align(np.ascontiguousarray(W.T), alignment, grid).T
