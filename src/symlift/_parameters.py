"""What the parameters of estimators and functions may be, checked in one place."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils import check_random_state

from symlift.core.domain import given_domain
from symlift.errors import InputError
from symlift.solvers.registry import check_channels, check_mixing, check_options, check_solver

__all__ = ["CONSTRAINTS", "by_keyword", "check_known_options", "check_parameters"]

Init = TypeVar("Init", bound=Callable[..., None])


def _check_random_state(value: Any) -> None:
    try:
        check_random_state(value)
    except ValueError:
        raise InputError(
            f"random_state={value!r} is no seed: give a whole number from 0 to 4,294,967,295, a"
            " numpy.random.RandomState or None"
        ) from None


def _check_verbose(value: Any) -> None:
    if not isinstance(value, int | np.integer | np.bool_) or value < 0:
        raise InputError(f"verbose={value!r} is not understood: give 0, 1 or 2")


#: what raises an InputError of one line for a value that a parameter cannot have; ``grid`` and
#: ``periodic`` are checked together, and ``parts`` with the columns
CONSTRAINTS: dict[str, Callable[[Any], object]] = {
    "solver": check_solver,
    "mixing": check_mixing,
    "channels": check_channels,
    "random_state": _check_random_state,
    "verbose": _check_verbose,
    "solver_options": check_options,
}


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise an InputError for the first parameter whose value is none that it can have.

    >>> check_parameters({"grid": "4x5", "periodic": False, "verbose": 0})
    >>> check_parameters({"channels": 0})
    Traceback (most recent call last):
    symlift.errors.InputError: channels=0: give "auto", or a positive whole number
    """
    for name, check in CONSTRAINTS.items():
        if name in parameters:
            check(parameters[name])
    if "grid" in parameters:
        given_domain(parameters["grid"], parameters.get("periodic", False))


def check_known_options(solve: Callable[..., Any], options: Mapping[str, Any], solver: str) -> None:
    """Raise an InputError for options that a solver does not have."""
    known = inspect.signature(solve).parameters
    if any(one.kind is one.VAR_KEYWORD for one in known.values()):
        return
    unknown = [name for name in options if name not in known]
    if unknown:
        takes = [name for name, one in known.items() if one.default is not one.empty]
        raise InputError(
            f"solver {solver!r} has no option {unknown[0]!r}: it has"
            f" {', '.join(name for name in takes if name != 'progress') or 'none'}"
        )


def by_keyword(init: Init) -> Init:
    """Let ``init`` take all but its first argument by name; by position they still work, with a
    warning.
    """
    names = [
        name
        for name, one in inspect.signature(init).parameters.items()
        if one.kind is one.KEYWORD_ONLY
    ]

    @functools.wraps(init)
    def wrapped(self: Any, *given: Any, **named: Any) -> None:
        if len(given) > 1:
            late = dict(zip(names, given[1:], strict=False))
            if len(given) - 1 > len(names) or set(late) & set(named):
                init(self, *given, **named)  # the error that Python has for this
            warnings.warn(
                f"give {', '.join(f'{name}={value!r}' for name, value in late.items())} by name:"
                " by position they are refused from 0.4 on",
                FutureWarning,
                stacklevel=2,
            )
            given, named = given[:1], {**late, **named}
        init(self, *given, **named)

    return cast(Init, wrapped)
