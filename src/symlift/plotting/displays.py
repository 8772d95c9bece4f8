"""Plots of a fitted estimator, drawn into given or new axes as scikit-learn's displays are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symlift._notebook import larger_is_better, on_scale
from symlift.core.domain import Scattered, lattice_of
from symlift.core.grid import Grid
from symlift.core.harmonics import real_harmonics
from symlift.core.rotations import RotationGroup
from symlift.core.sphere import Sphere
from symlift.diagnosis import Diagnosis
from symlift.errors import InputError
from symlift.metrics.sphere import to_coefficients
from symlift.plotting.pieces import (
    check_fitted,
    flat_picture,
    given_axes,
    short_number,
    shown_rows,
    value_scale,
)
from symlift.solvers.contract import Placement
from symlift.statistics.units import shared_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from symlift.estimator import LatentDomain

__all__ = ["plot_diagnosis", "plot_generators", "plot_ring", "plot_signals"]

_PASSED, _FAILED = "#2e8b62", "#c0504a"


def plot_signals(
    est: LatentDomain, X: ArrayLike | None = None, ax: Axes | None = None, *, count: int = 8
) -> Axes:
    """Plot recovered signals: curves on a line or ring, grey images elsewhere.

    Fields on a sphere are shown on its two halves, the front above the back.

    Parameters
    ----------
    est : LatentDomain
        A fitted estimator.
    X : array-like of shape (n, d), optional
        Rows whose signals are shown, the first ``count`` of them; by default random rows of the
        fit.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; new ones by default.
    count : int, default=8
        Number of signals.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn into.

    Raises
    ------
    InputError
        If X is not given and the fit stored no rows.

    Examples
    --------
    >>> from symlift import LatentDomain
    >>> from symlift.datasets import gsn
    >>> X = gsn(600, 9, transform="permutation", random_state=1).X
    >>> est = LatentDomain((9,), random_state=0).fit(X)
    >>> len(plot_signals(est, X[:3]).lines)
    3
    """
    rows = shown_rows(est, X)[:count]
    if isinstance(est.grid_, Sphere):
        return _on_globes(given_axes(ax), est.grid_, est.transform(rows))
    fields = est.to_grid(est.transform(rows))
    if est.n_channels_ > 1:
        fields = fields[..., 0]
    axes = given_axes(ax)
    grid = est.grid_ if isinstance(est.grid_, Scattered) else lattice_of(est.grid_)
    if isinstance(grid, Scattered) and est.placement_ is not None:
        return _at_places(axes, est.placement_, fields)
    if isinstance(grid, Grid) and grid.ndim > 1:
        parts = [flat_picture(field.ravel(), grid, down=True) for field in fields]
        gap = np.full((parts[0].shape[0], 1), np.nan)
        picture = np.concatenate([part for field in parts for part in (field, gap)][:-1], axis=1)
        low, high = shared_range(fields.reshape(len(fields), -1))
        image = axes.imshow(picture, cmap="gray", vmin=low, vmax=high)
        value_scale(axes, image, "recovered value")
        axes.set(xlabel=f"{len(fields)} signals, side by side", xticks=[], ylabel="axis 1")
        return axes
    step = 1.1 * float(np.ptp(shared_range(fields.reshape(len(fields), -1)))) or 1.0
    along = np.arange(grid.size) * (360 / grid.size if grid.is_ring else 1.0)
    for number, field in enumerate(fields):
        axes.plot(along, field - number * step, linewidth=1)
    axes.set(
        xlabel="position on the ring, degrees" if grid.is_ring else "grid step",
        ylabel="recovered value, one signal below another",
    )
    axes.set_yticks(-step * np.arange(len(fields)), [str(number) for number in range(len(fields))])
    return axes


# pixels across one half of a globe
_HALF = 96


def _on_globes(axes: Axes, sphere: Sphere, fields: NDArray) -> Axes:
    """Fields (n, points) on globes: the front above, the back below, z upwards, seen from -y."""
    at = (np.arange(_HALF) + 0.5) * 2.1 / _HALF - 1.05
    x, z = np.meshgrid(at, at)
    inside = x * x + z * z < 1
    depth = np.sqrt(np.maximum(1 - x * x - z * z, 0))[inside]
    c = to_coefficients(fields, sphere)
    picture = np.full((2 * _HALF, _HALF * len(fields)), np.nan)
    for lower, way in ((_HALF, -1.0), (0, 1.0)):  # rows count upwards
        points = np.stack([-way * x[inside], way * depth, z[inside]], axis=1)
        values = c @ real_harmonics(points, sphere.known_degree).T
        for number, field in enumerate(values):
            part = picture[lower : lower + _HALF, number * _HALF : (number + 1) * _HALF]
            part[inside] = field
    image = axes.imshow(picture, cmap="gray", origin="lower")
    value_scale(axes, image, "recovered value")
    axes.set(
        xlabel=f"{len(fields)} fields, side by side", xticks=[],
        yticks=[_HALF / 2, 3 * _HALF / 2], yticklabels=["back", "front"],
    )  # fmt: skip
    return axes


def _at_places(axes: Axes, placement: Placement, fields: NDArray) -> Axes:
    """Signals (n, k) as colours of the columns at their places, side by side."""
    y, x = placement.coordinates[~placement.left_out, :2].T
    step = 1.2 * float(np.ptp(x)) or 1.0
    limit = float(np.abs(shared_range(fields.reshape(len(fields), -1))).max()) or 1.0
    for number, field in enumerate(fields):
        dots = axes.scatter(
            x + number * step, y, c=field, cmap="gray", vmin=-limit, vmax=limit, edgecolors="0.5"
        )
    value_scale(axes, dots, "recovered value")
    axes.set(xlabel=f"{len(fields)} signals, side by side", xticks=[], ylabel="axis 1")
    axes.set_aspect("equal")
    return axes


def plot_generators(
    est: LatentDomain, axis: int = 0, ax: Axes | None = None, *, on_grid: bool = True
) -> Axes:
    """Plot the generator of translations along one axis as a matrix.

    In the order of the grid's points it looks like a derivative.

    Parameters
    ----------
    est : LatentDomain
        A fitted estimator.
    axis : int, default=0
        Axis of the grid.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; new ones by default.
    on_grid : bool, default=True
        Whether to plot W L W⁺, in the order of the grid's points (of a sphere: among its spherical
        harmonics, degree by degree), or L itself, in that of the columns.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn into.

    Raises
    ------
    InputError
        If the grid has no such axis.

    Examples
    --------
    >>> import numpy as np
    >>> from symlift import LatentDomain
    >>> X = np.random.default_rng(0).laplace(size=(200, 9))
    >>> est = LatentDomain((9,), periodic=True, solver="random", random_state=0).fit(X)
    >>> plot_generators(est).images[0].get_array().shape
    (9, 9)
    """
    grid = check_fitted(est).grid_
    if not 0 <= axis < grid.ndim:
        raise InputError(
            f"axis {axis} does not exist, the grid {grid} has {grid.ndim}: count from 0"
        )
    L, name = est.generators_[axis], "column"
    if on_grid and isinstance(grid, Sphere):
        L, name = RotationGroup(grid.known_degree).generators()[axis], "harmonic"
    elif on_grid:
        W = est.lifting_map_
        L, name = W @ L @ np.linalg.pinv(W, rcond=1e-6), "grid point"
    limit = float(np.percentile(np.abs(L), 99.5)) or float(np.abs(L).max()) or 1.0
    axes = given_axes(ax)
    image = axes.imshow(L, cmap="RdBu_r", vmin=-limit, vmax=limit)
    value_scale(axes, image, f"generator along axis {axis + 1}")
    axes.set(xlabel=name, ylabel=name)
    return axes


def plot_ring(
    est: LatentDomain,
    X: ArrayLike | None = None,
    ax: Axes | None = None,
    *,
    labels: ArrayLike | None = None,
) -> Axes:
    """Plot phase and amplitude of each row on a ring: the first point at the top, clockwise.

    Parameters
    ----------
    est : LatentDomain
        An estimator fitted on a ring.
    X : array-like of shape (n, d), optional
        Rows; by default those that the fit stored.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; new ones by default.
    labels : array-like of shape (n,), optional
        Angles in radians that colour the rows; by default the phase.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn into.

    Raises
    ------
    InputError
        If X is not given and the fit stored no rows, or if ``labels`` do not fit the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from symlift import LatentDomain
    >>> X = np.random.default_rng(0).laplace(size=(200, 9))
    >>> est = LatentDomain((9,), periodic=True, solver="random", random_state=0).fit(X)
    >>> plot_ring(est, X).collections[0].get_offsets().shape
    (200, 2)
    """
    rows = shown_rows(est, X)
    phase, amplitude = est.phase(rows), est.amplitude(rows)
    if phase.ndim > 1:
        phase, amplitude = phase[:, 0], amplitude[:, 0]  # the first of two angles
    hue = phase if labels is None else np.asarray(labels, dtype=np.float64)
    if hue.shape != phase.shape:
        raise InputError(
            f"labels have shape {hue.shape}: give one angle in radians for each of the {len(rows)}"
            " rows"
        )
    axes = given_axes(ax)
    dots = axes.scatter(
        amplitude * np.sin(phase),
        amplitude * np.cos(phase),
        c=np.mod(hue, 2 * np.pi),
        cmap="hsv",
        vmin=0,
        vmax=2 * np.pi,
        s=9,
    )
    value_scale(axes, dots, "phase, radians" if labels is None else "angle given, radians")
    reach = float(np.percentile(amplitude, 99)) or 1.0
    turn = np.linspace(0, 2 * np.pi, 181)
    axes.plot(reach * np.sin(turn), reach * np.cos(turn), color="0.7", linewidth=0.8, zorder=0)
    axes.set_aspect("equal")
    axes.set(xlabel="amplitude · sin(phase)", ylabel="amplitude · cos(phase)")
    return axes


def plot_diagnosis(est: LatentDomain | Diagnosis, ax: Axes | None = None) -> Axes:
    """Plot the evidence behind a verdict: a bar for each deciding test, a tick at its threshold.

    Parameters
    ----------
    est : LatentDomain or Diagnosis
        An estimator that was diagnosed, or a diagnosis.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; new ones by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn into.

    Raises
    ------
    InputError
        If the estimator was not diagnosed.

    Examples
    --------
    >>> from symlift.diagnosis import Diagnosis, Test, Verdict
    >>> test = Test("agreement_of_halves", 0.99, 0.9, True)
    >>> float(plot_diagnosis(Diagnosis(Verdict.PRESENT, 0.97, (test,))).patches[0].get_width())
    0.99
    """
    diagnosis = (
        est if isinstance(est, Diagnosis) else getattr(check_fitted(est), "diagnosis_", None)
    )
    if diagnosis is None:
        raise InputError("this fit was not diagnosed: call est.diagnose(X) first")
    tests = [
        t
        for t in diagnosis.tests
        if t.threshold is not None
        and t.value is not None
        and np.isfinite([t.value, t.threshold]).all()
    ]
    axes = given_axes(ax)
    for number, test in enumerate(tests):
        assert test.value is not None  # noqa: S101 - chosen above
        assert test.threshold is not None  # noqa: S101
        along, limit, _ = on_scale(test.value, test.threshold)
        axes.barh(number, along, height=0.5, color=_FAILED if test.passed is False else _PASSED)
        axes.plot([limit, limit], [number - 0.38, number + 0.38], color="black", linewidth=2)
        sign = "≥" if larger_is_better(test) else "≤"
        axes.text(
            1.02,
            number,
            f"{short_number(test.value)} ({sign} {short_number(test.threshold)})",
            va="center",
            fontsize="small",
        )
    axes.set_yticks(range(len(tests)), [test.name.replace("_", " ") for test in tests])
    axes.set(
        xlim=(0, 1),
        xticks=[],
        title=f"{diagnosis.verdict.value}, confidence {diagnosis.confidence:.2f}",
    )
    axes.invert_yaxis()
    return axes
