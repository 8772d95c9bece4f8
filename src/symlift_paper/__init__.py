"""The paper's rows as data: a registry of experiments, jobs that measure any method on them, and
the tables they fill.
"""

from symlift_paper.registry import EXPERIMENTS, Experiment, experiments_with, get_experiment
from symlift_paper.runner import run_baseline, run_experiment

__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "experiments_with",
    "get_experiment",
    "run_baseline",
    "run_experiment",
]


def __dir__() -> list[str]:
    return sorted(__all__)
