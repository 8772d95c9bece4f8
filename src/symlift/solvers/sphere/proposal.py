"""The sphere among the domains that ``grid="auto"`` compares."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from symlift.core.sphere import Sphere
from symlift.errors import InputError
from symlift.search.criterion import distance_classes
from symlift.search.problem import Halves
from symlift.search.score import BothScores, ahead, both_scores
from symlift.search.settings import PlaceSettings
from symlift.solvers.contract import Progress, no_progress
from symlift.solvers.sphere.angles import NEAR, paths_between, spherical_scaling
from symlift.solvers.sphere.dense import highest_degree, solve_dense
from symlift.solvers.sphere.places import along_paths, field_degree, sphere_places

__all__ = ["field_on_sphere", "flattened", "sphere_in_pool"]

# fewest columns for which a sphere is proposed, and most: a descent over all pairs takes seconds
_FEWEST, _MOST = 20, 320
# most columns of mixed fields: third moments grow with their cube, degree 9 takes 5 s
_MOST_MIXED = 100
# axes of volumes and of places in space
_SPACE = 3
# length of the mean of unit vectors that fill a half of the sphere: what fills less is a surface
# that a plane can hold
_HALF = 0.5


def sphere_in_pool(
    halves: Halves, rivals: Sequence[tuple[int, BothScores]], settings: PlaceSettings
) -> tuple[Sphere, BothScores] | None:
    """The sphere and its scores, if columns are all around it and angles explain what is real.

    On held-out rows they must explain more than each of ``rivals`` (number of axes, scores) that is
    simpler, and than the same places drawn in a plane. A surface in space is simpler than space:
    there it is enough that space does not explain more.
    """
    if not _FEWEST <= len(halves.columns) <= _MOST or not _all_around(halves.correlations[0]):
        return None
    placed = sphere_places(halves, settings)
    if placed is None or not placed.believed(settings):
        return None
    mine, own = placed.scores, np.arange(len(placed.u))
    flat = both_scores(halves, own, distance_classes(flattened(placed.u)))
    for axes, other in ((2, flat), *rivals):
        errors = settings.judge.errors
        if _lead(mine, other) < (errors if axes < _SPACE else -errors):
            return None
    return Sphere(field_degree(Sphere(), len(own))), mine


def _lead(one: BothScores, other: BothScores) -> float:
    """Standard errors by which one is ahead; of other columns, shares are compared."""
    if one.all.fitted.shape != other.all.fitted.shape:
        return np.inf if one.all.share > other.all.share else -np.inf
    return ahead(one.all, other.all, over_columns=True)


def _all_around(c: NDArray) -> bool:
    """Whether columns fill more than a half of the sphere that paths between them are on."""
    paths = paths_between(c, NEAR[1])
    if paths is None:
        return False
    u = along_paths(list(spherical_scaling(paths)), paths)
    return float(np.linalg.norm(u.mean(axis=0))) < _HALF


def flattened(u: NDArray[np.float64]) -> NDArray[np.float64]:
    """Unit vectors (d, 3) in a plane (d, 2) that keeps all angles from their mean direction.

    >>> flattened(np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]])).round(2).shape
    (3, 2)
    """
    middle = u.mean(axis=0)
    length = float(np.linalg.norm(middle))
    top = middle / length if length > 1e-9 else np.array([0.0, 0.0, 1.0])
    side = np.linalg.svd(top[None])[2][1:]
    angle, turn = np.arccos(np.clip(u @ top, -1, 1)), np.arctan2(u @ side[1], u @ side[0])
    return np.stack([angle * np.cos(turn), angle * np.sin(turn)], axis=1)


def field_on_sphere(X: NDArray, progress: Progress = no_progress) -> tuple[Sphere, float] | None:
    """The sphere behind a rotation of the fields of X (n, d), and the share of the reproducible
    third moment that it leaves invariant; None unless held-out rows confirm it.

    Runs of 1, 3, 5, … equal variances propose it. Linear mixings destroy them, and are not tried.
    """
    side = math.isqrt(X.shape[1])
    if side * side != X.shape[1] or not _FEWEST <= X.shape[1] <= _MOST_MIXED:
        return None
    try:
        degree = highest_degree(X, Sphere(), "orthogonal")
        solution = solve_dense(X, degree, Sphere(), "orthogonal", progress)
    except InputError:
        return None
    if not solution.evidence.found or not isinstance(solution.model.grid, Sphere):
        return None
    return solution.model.grid, float(solution.evidence.explained or 0.0)
