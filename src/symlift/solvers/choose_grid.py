"""Choose the grid of a fit: the given one, if columns can fill it, or a proposal from the data."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.domain import Domain, Scattered, given_domain
from symlift.core.grid import Grid
from symlift.core.sphere import Sphere
from symlift.errors import FitWarning, InputError
from symlift.solvers.contract import GridCandidate, Progress

__all__ = ["asked_domain", "choose_grid"]


def asked_domain(domain: Any, periodic: Any, single: bool) -> Domain | None:
    """The domain that was asked for, None for "auto"; ``single``: whether each column may be a
    point of its own, without which there are no scattered places.
    """
    asked = given_domain(domain, periodic)
    if isinstance(asked, Scattered) and not single:
        raise InputError(
            f'grid="{asked}" needs columns that are points: leave out solver, mixing and channels,'
            " or give the shape of a grid"
        )
    return asked


def choose_grid(
    given: Domain | None,
    periodic: Any,
    rows: NDArray,
    varies: NDArray[np.bool_],
    free: bool,
    rng: np.random.Generator,
    progress: Progress,
    spheres: tuple[bool, bool] = (False, False),
) -> tuple[Domain, tuple[GridCandidate, ...]]:
    """The domain, and the candidates that it was compared with; ``free``: whether points may stay
    without a column; ``spheres``: whether columns may be points of a sphere, and fields on one
    behind a rotation.
    """
    usable, d = int(varies.sum()), len(varies)
    if isinstance(given, Sphere):
        return given, ()
    if given is not None:
        if isinstance(given, Grid) and given.size > usable and not free:
            have = f"{d} columns" if usable == d else f"{d} columns, of which {usable} vary"
            raise InputError(
                f"the grid {given} has {given.size} points, but X has {have}: give a smaller grid"
            )
        return given, ()
    from symlift.solvers.fast.propose import propose_grid

    proposed = propose_grid(rows if varies.all() else rows[:, varies], rng, progress, spheres)
    if proposed is not None:
        if proposed.doubt:
            warnings.warn(proposed.doubt, FitWarning, stacklevel=4)
        return proposed.grid, proposed.candidates
    warnings.warn(
        f"the grid could not be determined from the data: taking a line of {usable} points; pass"
        " grid=(height, width) for images",
        FitWarning,
        stacklevel=4,
    )
    return Grid((usable,), bool(np.all(periodic)), confidence=0.0), ()
