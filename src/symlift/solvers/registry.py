"""The solvers by name; each is imported on demand, so that none pays for the imports of another."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from numbers import Integral
from typing import Any

from symlift.core.domain import Domain
from symlift.core.sphere import Sphere
from symlift.errors import InputError
from symlift.solvers.contract import Solver

__all__ = [
    "CHECKPOINT",
    "CURVE",
    "DEFAULT",
    "MIXINGS",
    "SOLVERS",
    "SPENT",
    "TRAINED",
    "TRAINED_MAP",
    "TRAINING_FILES",
    "canonical",
    "check_channels",
    "check_mixing",
    "check_options",
    "check_solver",
    "get_solver",
]

#: name → module with a `solve` function
SOLVERS = {
    "fast": "symlift.solvers.fast.pipeline",
    "ring": "symlift.solvers.ring.pipeline",
    "neural": "symlift.solvers.neural.training",
    "refine": "symlift.solvers.refine",
    "random": "symlift.solvers.random",
}
DEFAULT = "fast"
# the solver that looks for rotations of a sphere instead of translations
_ON_SPHERES = "symlift.solvers.sphere.pipeline"
#: solvers that train: they have presets, budgets and checkpoints, and need PyTorch
TRAINED = ("neural", "refine")
#: files in their folder: the last checkpoint, a line for each evaluation, the time spent, and the
#: map that was trained where a closed form then ended the run
CHECKPOINT, CURVE, SPENT, TRAINED_MAP = TRAINING_FILES = (
    "checkpoint.safetensors",
    "training.jsonl",
    "spent.json",
    "before_closing.npy",
)

#: what is known about how columns are made from points: nothing; each is a point; a rotation; any
#: invertible map
MIXINGS = ("auto", "shuffled", "orthogonal", "linear")

_OLD_NAMES = {"homogeneous": "ring"}


def canonical(name: str) -> str:
    """The current name of a solver, given that name, an old one or "auto".

    >>> canonical("auto"), canonical("homogeneous")
    ('fast', 'ring')
    """
    return DEFAULT if name == "auto" else _OLD_NAMES.get(name, name)


def check_solver(name: str) -> str:
    """The canonical name of a solver, after a check that it exists and can run here; nothing heavy
    is imported.
    """
    chosen = canonical(name)
    if chosen not in SOLVERS:
        raise InputError(f"solver {name!r:.60} is unknown: use one of auto, {', '.join(SOLVERS)}")
    if chosen in TRAINED and find_spec("torch") is None:
        raise InputError(
            f"solver {name!r} trains and needs PyTorch, which is not installed: pip install"
            " 'symlift[train]'"
        )
    return chosen


def check_mixing(name: str) -> None:
    """Raise an InputError for a mixing that is not in `MIXINGS`."""
    if name not in MIXINGS:
        raise InputError(f"mixing {name!r} is unknown: use one of {', '.join(MIXINGS)}")


def check_channels(channels: Any) -> None:
    """Raise an InputError for what is no number of channels."""
    number = isinstance(channels, Integral) and not isinstance(channels, bool)
    if channels != "auto" and not (number and int(channels) > 0):
        raise InputError(f'channels={channels!r:.60}: give "auto", or a positive whole number')


def check_options(options: Any) -> None:
    """Raise an InputError for what is no mapping of names."""
    if options is not None and not (
        isinstance(options, Mapping) and all(isinstance(name, str) for name in options)
    ):
        raise InputError(
            f"solver_options is {options!r:.60}: give a mapping of names, such as {{'steps': 1000}}"
        )


def get_solver(name: str, domain: Domain | None = None) -> Solver:
    """The solver called ``name``; "auto" is the one that suits most data on such a domain."""
    module = SOLVERS[check_solver(name)]
    if isinstance(domain, Sphere):
        if canonical(name) != DEFAULT:
            raise InputError(f'solver {name!r} knows no spheres: use solver="auto", or a grid')
        module = _ON_SPHERES
    solver: Solver = import_module(module).solve
    return solver
