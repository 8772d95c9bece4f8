"""The paper's rows as data: a registry of experiments, jobs that measure any method on them, and
the tables they fill.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

# public names and where they live; imported on first use, so that the command line can list its
# commands where the extra ``paper`` is not installed
_HOME = {
    "EXPERIMENTS": "registry",
    "Experiment": "registry",
    "experiments_with": "registry",
    "get_experiment": "registry",
    "run_baseline": "runner",
    "run_experiment": "runner",
}

__all__ = [
    "EXPERIMENTS",
    "Experiment",
    "experiments_with",
    "get_experiment",
    "run_baseline",
    "run_experiment",
]

if TYPE_CHECKING:
    from symlift_paper.registry import EXPERIMENTS, Experiment, experiments_with, get_experiment
    from symlift_paper.runner import run_baseline, run_experiment


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
