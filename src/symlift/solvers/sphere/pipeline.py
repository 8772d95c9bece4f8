"""A sphere: columns that are points of it, or a field of it behind a dense mixing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from symlift.core.sphere import Sphere
from symlift.errors import InputError
from symlift.search.judge import Judge
from symlift.solvers.contract import Progress, Solution, no_progress, part_of
from symlift.solvers.sphere.dense import highest_degree, refuse_one_direction, solve_dense
from symlift.solvers.sphere.places import FEWEST, solve_places

__all__ = ["solve"]


def solve(
    X: NDArray,
    grid: Sphere,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    mixing: str = "auto",
    channels: str | int = "auto",
    **_: Any,
) -> Solution:
    """The field on a sphere behind X (n, d), and what held-out rows say of it.

    A dense mixing takes the place of a placement only if that is not believed and it is.
    """
    if channels not in ("auto", 1):
        raise InputError(f"channels={channels!r}: a sphere has one signal at each point")
    if grid.axes and mixing in ("orthogonal", "linear"):
        raise InputError(
            f"mixing={mixing!r}: a projective plane has columns that are its points, use"
            ' mixing="shuffled"'
        )
    if grid.axes:
        mixing = "shuffled"
    # products of small matrices become slower with a second thread
    with threadpool_limits(limits=1):
        if mixing in ("orthogonal", "linear"):
            return solve_dense(X, highest_degree(X, grid, mixing), grid, mixing, progress)
        if mixing == "auto" and np.isfinite(X).all():
            refuse_one_direction(X)
        placed = solve_places(X, grid, rng, part_of(progress, 0.0, 0.4))
        if placed is None and mixing == "shuffled":
            raise InputError(
                f"fewer than {FEWEST} columns of X belong together: none can be placed on a sphere"
            )
        if mixing == "shuffled" or (placed is not None and _have_places(placed)):
            assert placed is not None  # noqa: S101 - refused above
            return placed
        try:
            degree = highest_degree(X, grid, "dense")
        except InputError:
            if placed is None:
                raise
            return placed
        unmixed = solve_dense(X, degree, grid, mixing, part_of(progress, 0.4, 1.0))
    return unmixed if placed is None or unmixed.evidence.found else placed


def _have_places(placed: Solution) -> bool:
    """Whether two parts of the rows put columns at the same places, or angles explain them: mixed
    columns have none, and third moments of 157 magnetometers take minutes.
    """
    return placed.evidence.found or Judge().finds_again(placed.evidence.replicated)
