"""The three questions as functions: where do columns belong, on what grid, behind what mixing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from symlift._given_rows import given_rows
from symlift._parameters import check_parameters
from symlift.core.model import LiftedModel
from symlift.core.rows import survey
from symlift.errors import InputError
from symlift.estimator import LatentDomain
from symlift.solvers.contract import GridCandidate, Placement
from symlift.solvers.plan import plan_fit, say_cost

__all__ = ["place", "propose", "unmix"]


def place(
    X: ArrayLike,
    domain: Any = "auto",
    *,
    periodic: bool | Sequence[bool] = False,
    channels: str | int = "auto",
    random_state: Any = None,
) -> Placement:
    """Put columns that are points of a domain in their places.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Observations: an array, a memory map, a data frame or a Dask array. NaN marks gaps.
    domain : "auto", int, tuple of int, str, Grid, Scattered or Sphere, default="auto"
        What the columns are points of, as the ``grid`` of `LatentDomain`.
    periodic : bool or sequence of bool, default=False
        Whether axes of a grid close on themselves.
    channels : "auto" or int, default="auto"
        Number of columns at each point.
    random_state : int, numpy.random.RandomState or None, default=None
        Seed. The same seed on the same machine gives the same result.

    Returns
    -------
    Placement
        The place of each column, with its confidence, or why it has none.

    Warns
    -----
    FitWarning
        If the tests on held-out rows do not support the result.

    See Also
    --------
    LatentDomain : The estimator, which also moves, diagnoses, saves and reports.

    Examples
    --------
    >>> from symlift import place
    >>> from symlift.datasets import gsn
    >>> data = gsn(600, (4, 5), transform="permutation", random_state=1)
    >>> placement = place(data.X, (4, 5), random_state=0)
    >>> placement.coordinates.shape, bool((placement.reason == "").all())
    ((20, 2), True)
    """
    settings: dict[str, Any] = {
        "periodic": periodic, "channels": channels, "random_state": random_state,
    }  # fmt: skip
    placement = LatentDomain(domain, mixing="shuffled", **settings).fit(X).placement_
    if placement is None:
        raise InputError("no column could be placed: undo a mixing of columns first, with unmix")
    return placement


def propose(X: ArrayLike, *, random_state: Any = None) -> tuple[GridCandidate, ...]:
    """Compare the grids that columns, or independent components of them, could lie on.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Observations, as in `place`.
    random_state : int, numpy.random.RandomState or None, default=None
        Seed. The same seed on the same machine gives the same result.

    Returns
    -------
    tuple of GridCandidate
        What ``grid="auto"`` would take, then the others, the best first, each with the share of the
        reproducible correlation that it explains on held-out rows; empty if nothing can be said.

    See Also
    --------
    LatentDomain : Its ``grid="auto"`` takes the first.

    Examples
    --------
    >>> from symlift import propose
    >>> from symlift.datasets import gsn
    >>> data = gsn(2000, (4, 6), transform="permutation", random_state=1)
    >>> str(propose(data.X, random_state=0)[0].domain)
    '4x6'
    """
    from symlift.solvers.fast.propose import propose_grid

    check_parameters({"random_state": random_state})
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1, size=4))
    seen = survey(given_rows(LatentDomain(), X, reset=True), rng, True, None)
    if seen.varies.sum() < 2:
        raise InputError("X has fewer than 2 columns that vary: a grid needs at least 2")
    width = seen.rows.dtype.itemsize
    say_cost(plan_fit(len(seen.rows), int(seen.varies.sum()), None, width=width), 2)
    proposed = propose_grid(seen.rows[:, seen.varies], rng, spheres=(True, True))
    return () if proposed is None else proposed.candidates


def unmix(
    X: ArrayLike,
    domain: Any = "auto",
    *,
    mixing: str = "linear",
    periodic: bool | Sequence[bool] = False,
    random_state: Any = None,
) -> LiftedModel:
    """Undo a linear mixing of the points of a domain.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Observations without gaps, each column a mixture of all points.
    domain : "auto", int, tuple of int, str, Grid or Sphere, default="auto"
        What was mixed, as the ``grid`` of `LatentDomain`.
    mixing : {"linear", "orthogonal"}, default="linear"
        Any invertible map, or a rotation.
    periodic : bool or sequence of bool, default=False
        Whether axes of a grid close on themselves.
    random_state : int, numpy.random.RandomState or None, default=None
        Seed. The same seed on the same machine gives the same result.

    Returns
    -------
    LiftedModel
        The map to the signals, which ``lift`` applies, and the symmetry that was found.

    Warns
    -----
    FitWarning
        If the tests on held-out rows do not support the result.

    See Also
    --------
    LatentDomain : The estimator, which also diagnoses, saves and reports.

    Examples
    --------
    >>> from symlift import unmix
    >>> from symlift.datasets import gsn
    >>> from symlift.metrics import signal_recovery
    >>> data = gsn(4000, 15, transform="orthogonal", periodic=True, random_state=0)
    >>> model = unmix(data.X, 15, mixing="orthogonal", periodic=True, random_state=0)
    >>> signal_recovery(data.latent, model.lift(data.X), data.grid, periodic=True).r > 0.99
    True
    """
    if mixing not in ("linear", "orthogonal"):
        raise InputError(f'mixing {mixing!r} is none to undo: use "linear" or "orthogonal"')
    est = LatentDomain(domain, mixing=mixing, periodic=periodic, random_state=random_state)
    return est.fit(X).model_
