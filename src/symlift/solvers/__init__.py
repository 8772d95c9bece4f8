"""What finds the parameters: every solver is ``solve(X, grid, rng) -> Solution`` and sees nothing but X and the grid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from symlift.errors import InputError
from symlift.lifting import LiftedModel

__all__ = ["CHECKPOINT", "CURVE", "SOLVERS", "TRAINED", "Progress", "Solution", "Solver", "get_solver", "no_progress"]


@dataclass(frozen=True)
class Solution:
    """What a solver returns: the model, and a trace of what each stage did and how good it was."""

    model: LiftedModel
    trace: dict[str, Any] = field(default_factory=dict)


# told (stage, share done): what a progress bar needs
Progress = Callable[[str, float | None], None]
# solve(X, grid, rng, progress=…)
Solver = Callable[..., Solution]


def no_progress(stage: str, share: float | None = None) -> None:
    """Nobody watches."""


# name → module with a `solve` function; imported on demand, so that one solver's imports are not another's cost
SOLVERS = {
    "fast": "symlift.solvers.fast",
    "neural": "symlift.solvers.neural",
    "refine": "symlift.solvers.refine",
    "homogeneous": "symlift.solvers.homogeneous",
    "random": "symlift.solvers.random",
}
DEFAULT = "fast"
#: solvers that train, and so have presets, budgets and checkpoints
TRAINED = ("neural", "refine")
#: what they keep in their folder: the last checkpoint, and a line for each evaluation
CHECKPOINT, CURVE = "checkpoint.safetensors", "training.jsonl"


def get_solver(name: str) -> Solver:
    """The solver called ``name``; "auto" is the best that is installed."""
    chosen = DEFAULT if name == "auto" else name
    if chosen not in SOLVERS:
        raise InputError(f"solver {name!r} is unknown: use one of auto, {', '.join(SOLVERS)}")
    solver: Solver = import_module(SOLVERS[chosen]).solve
    return solver
