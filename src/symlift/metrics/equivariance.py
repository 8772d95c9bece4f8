"""Equivariance error: does moving the observation move the lifted signal?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from symlift.core.domain import Domain, lattice_of
from symlift.core.grid import Grid
from symlift.core.sphere import Sphere
from symlift.errors import InputError
from symlift.metrics.alignment import check_shift, translate
from symlift.metrics.fields import as_fields, batches
from symlift.metrics.sphere import turned_fields

__all__ = ["equivariance_error"]


def equivariance_error(
    model: Any, X: ArrayLike, t: float | Sequence[float], margin: int = 0
) -> float:
    """Relative error ``‖lift(act(X, t)) - translate(lift(X), t)‖ / ‖translate(lift(X), t)‖``.

    It is taken over the interior: every point whose source lies inside of the window, at least
    ``margin`` steps from its open ends.  0 is perfect.

    Parameters
    ----------
    model : LiftedModel or LatentDomain
        Anything with ``lift``, ``act`` and ``grid``, or a fitted estimator with ``transform``,
        ``shift`` and ``grid_``.
    X : array-like of shape (n, d)
        Observations.
    t : float or sequence of float
        Grid steps along each axis: any real number on a periodic axis (Fourier interpolation),
        whole on an open one, where what enters the window is not known between its points; on a
        sphere a rotation vector in radians.
    margin : int, default=0
        Steps at each open end that are left out.

    Returns
    -------
    float
        The relative error.

    Raises
    ------
    InputError
        If the shift leaves no interior, or if ``lift(X)`` is 0 there.

    References
    ----------
    "Blind Recovery of Latent Domains via Unsupervised Symmetry Discovery", section "Symmetry
    discovery".

    Examples
    --------
    >>> from symlift import LiftedModel
    >>> model = LiftedModel.from_lifting_map(np.eye(5), Grid((5,), periodic=True))
    >>> equivariance_error(model, np.random.default_rng(0).normal(size=(10, 5)), 2.5) < 1e-12
    True
    """
    lift, act, domain = _handles(model)
    if isinstance(domain, Sphere):
        fields = np.asarray(lift(X), dtype=np.float64)
        expected = turned_fields(fields, domain, np.asarray(t, dtype=np.float64))
        moved = np.asarray(lift(act(X, t)), dtype=np.float64)
        return float(np.linalg.norm(moved - expected) / np.linalg.norm(expected))
    grid = lattice_of(domain)
    steps = check_shift(np.atleast_1d(np.asarray(t, dtype=np.float64)).tolist(), grid)
    inside = (slice(None), *_interior(grid, steps, margin))
    observations = np.asarray(X)
    if observations.ndim != 2 or len(observations) == 0:
        raise InputError(f"X has shape {observations.shape}: give (n, d) with at least one sample")
    error = size = 0.0
    for batch in batches("X", observations):
        still = np.asarray(as_fields("lift(X)", lift(batch), grid), dtype=np.float64).reshape(
            -1, *grid.shape
        )
        moved = np.asarray(
            as_fields("lift(act(X, t))", lift(act(batch, steps)), grid), dtype=np.float64
        )
        expected = translate(still, steps, grid)[inside]
        error += float(np.sum((moved.reshape(-1, *grid.shape)[inside] - expected) ** 2))
        size += float(np.sum(expected**2))
    if not size > 0:
        raise InputError(
            "lift(X) is 0 all over the interior: give samples that vary, or a model that was fitted"
        )
    return math.sqrt(error / size)


def _handles(model: Any) -> tuple[Any, Any, Domain]:
    """lift, act and grid under either set of names."""
    for lift, act, grid in (("lift", "act", "grid"), ("transform", "shift", "grid_")):
        if all(hasattr(model, name) for name in (lift, act, grid)):
            return getattr(model, lift), getattr(model, act), getattr(model, grid)
    raise InputError(
        f"{type(model).__name__} has neither lift, act, grid nor transform, shift, grid_: "
        "give a LiftedModel or a fitted estimator"
    )


def _interior(grid: Grid, shift: Sequence[float], margin: int) -> tuple[slice, ...]:
    """Points that lie ``margin`` steps inside of the open ends, and whose sources do."""
    parts = []
    for axis, (length, wraps, t) in enumerate(zip(grid.shape, grid.periodic, shift, strict=True)):
        first, last = margin + max(0, round(t)), length - margin + min(0, round(t))
        if not wraps and (margin < 0 or first >= last):
            raise InputError(
                f"shift {t} and margin {margin} leave no point of open axis {axis} ({length}): give"
                " smaller ones"
            )
        parts.append(slice(None) if wraps else slice(first, last))
    return tuple(parts)
