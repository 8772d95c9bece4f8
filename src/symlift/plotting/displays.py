"""Plots of a fitted estimator, drawn into given or new axes as scikit-learn's displays are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from symlift._notebook import larger_is_better, on_scale
from symlift.core.domain import Scattered, lattice_of
from symlift.core.grid import Grid
from symlift.diagnosis import Diagnosis
from symlift.errors import InputError
from symlift.solvers.contract import Placement

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from symlift.estimator import LatentDomain

__all__ = ["plot_diagnosis", "plot_generators", "plot_placement", "plot_ring", "plot_signals"]

_MOST_NAMES, _NAME = 400, 12
_PASSED, _FAILED = "#2e8b62", "#c0504a"
# columns further than this from their points, in grid steps, are drawn between points
_OFF_GRID = 0.05


def plot_placement(est: LatentDomain, ax: Axes | None = None) -> Axes:
    """Plot where each column sits, on a line, a ring or a plane, coloured by confidence.

    Parameters
    ----------
    est : LatentDomain
        A fitted estimator whose columns are points.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; new ones by default.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn into.

    Raises
    ------
    InputError
        If the fit has no placement.

    Examples
    --------
    >>> from symlift import LatentDomain
    >>> from symlift.datasets import gsn
    >>> X = gsn(600, (4, 5), transform="permutation", random_state=1).X
    >>> ax = plot_placement(LatentDomain((4, 5), random_state=0).fit(X))
    >>> len(ax.texts)  # a name in each of the 20 cells
    20
    """
    placement = _fitted(est).placement_
    if placement is None:
        raise InputError(
            "this fit has no placement, its columns are not points: plot_signals shows the"
            " recovered signals"
        )
    axes = _axes(ax)
    left_out = int(placement.left_out.sum())
    axes.set_title(
        f"{len(placement.point) - left_out} columns placed"
        + (f", {left_out} left out" if left_out else "")
    )
    if placement.grid.ndim == 1:
        _along(axes, placement)
    elif isinstance(placement.grid, Scattered) or (
        placement.grid.ndim == 2 and _between_points(placement)
    ):
        _scattered(axes, placement)
    else:
        _on_plane(axes, placement)
    return axes


def _between_points(placement: Placement) -> bool:
    at = placement.coordinates[~placement.left_out]
    return bool(len(at)) and float(np.abs(at - np.rint(at)).max()) > _OFF_GRID


def _scattered(axes: Axes, placement: Placement) -> None:
    """Columns at their places in a plane, of three coordinates the first two."""
    on = np.flatnonzero(~placement.left_out)
    y, x = placement.coordinates[on, :2].T
    dots = axes.scatter(
        x, y, c=placement.confidence[on], cmap="Blues", vmin=0, vmax=1, edgecolors="0.5", zorder=2
    )
    _colour_bar(axes, dots, "confidence")
    axes.set(xlabel="axis 2", ylabel="axis 1")
    if isinstance(placement.grid, Scattered):
        axes.set_aspect("equal")
    else:
        rows, columns = placement.grid.shape
        axes.set(xlim=(-0.7, columns - 0.3), ylim=(rows - 0.3, -0.7))
    axes.grid(alpha=0.3)
    if len(on) <= _MOST_NAMES:
        for column, a, b in zip(on.tolist(), x, y, strict=True):
            axes.annotate(
                _name(placement, column),
                (a, b),
                (3, 3),
                textcoords="offset points",
                fontsize="x-small",
            )


def _along(axes: Axes, placement: Placement) -> None:
    """Names along a line, or around a ring with the first point at the top."""
    on = np.flatnonzero(~placement.left_out)
    at = placement.coordinates[on, 0]
    if placement.grid.is_ring:
        turn = 2 * np.pi * at / placement.grid.size
        x, y = np.sin(turn), np.cos(turn)
        axes.set_aspect("equal")
        axes.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), xticks=[], yticks=[])
        rotation = 90 - np.rad2deg(turn)
    else:
        x, y, rotation = at, np.zeros(len(at)), np.full(len(at), 60.0)
        axes.set(ylim=(-0.5, 1.2), yticks=[], xlabel="grid step")
    dots = axes.scatter(
        x, y, c=placement.confidence[on], cmap="Blues", vmin=0, vmax=1, edgecolors="0.5", zorder=2
    )
    _colour_bar(axes, dots, "confidence")
    if len(on) <= _MOST_NAMES:
        for column, a, b, angle in zip(on.tolist(), x, y, rotation, strict=True):
            ring = placement.grid.is_ring
            left = ring and a < -1e-9
            axes.text(
                a * 1.1 if ring else a,
                b * 1.1 if ring else 0.12,
                _name(placement, column),
                fontsize="small",
                rotation=angle + 180 if left else angle,
                rotation_mode="anchor",
                ha="right" if left else "left",
                va="center",
            )


def _on_plane(axes: Axes, placement: Placement) -> None:
    """Confidence at each point as an image, with names where they fit; volumes slice by slice."""
    grid, on = placement.lattice, np.flatnonzero(~placement.left_out)
    sure = np.full(grid.size, np.nan)
    sure[placement.point[on]] = 0.0
    np.fmax.at(sure, placement.point[on], placement.confidence[on])
    image = axes.imshow(_flat_picture(sure, grid), cmap="Blues", vmin=0, vmax=1)
    _colour_bar(axes, image, "confidence")
    axes.set(
        xlabel="axis 2" if grid.ndim == 2 else "slices along axis 1, side by side",
        ylabel=f"axis {grid.ndim - 1}",
    )
    if grid.ndim == 2 and grid.size <= _MOST_NAMES:
        # the first of several columns at a point
        first = {int(placement.point[c]): c for c in reversed(on.tolist())}
        for point, column in sorted(first.items()):
            row, across = divmod(point, grid.shape[1])
            colour = "white" if sure[point] > 0.6 else "black"
            axes.text(
                across,
                row,
                _name(placement, column),
                ha="center",
                va="center",
                fontsize="x-small",
                color=colour,
            )


def plot_signals(
    est: LatentDomain, X: ArrayLike | None = None, ax: Axes | None = None, *, count: int = 8
) -> Axes:
    """Plot recovered signals: curves on a line or ring, grey images on a plane or in a volume.

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
    rows = _rows(est, X)[:count]
    fields = est.to_grid(est.transform(rows))
    if est.n_channels_ > 1:
        fields = fields[..., 0]
    axes = _axes(ax)
    grid = est.grid_ if isinstance(est.grid_, Scattered) else lattice_of(est.grid_)
    if isinstance(grid, Scattered) and est.placement_ is not None:
        return _at_places(axes, est.placement_, fields)
    if isinstance(grid, Grid) and grid.ndim > 1:
        parts = [_flat_picture(field.ravel(), grid, down=True) for field in fields]
        gap = np.full((parts[0].shape[0], 1), np.nan)
        picture = np.concatenate([part for field in parts for part in (field, gap)][:-1], axis=1)
        image = axes.imshow(picture, cmap="gray")
        _colour_bar(axes, image, "recovered value")
        axes.set(xlabel=f"{len(fields)} signals, side by side", xticks=[], ylabel="axis 1")
        return axes
    step = 1.1 * float(np.ptp(fields)) or 1.0
    along = np.arange(grid.size) * (360 / grid.size if grid.is_ring else 1.0)
    for number, field in enumerate(fields):
        axes.plot(along, field - number * step, linewidth=1)
    axes.set(
        xlabel="position on the ring, degrees" if grid.is_ring else "grid step",
        ylabel="recovered value, one signal below another",
    )
    axes.set_yticks(-step * np.arange(len(fields)), [str(number) for number in range(len(fields))])
    return axes


def _at_places(axes: Axes, placement: Placement, fields: NDArray) -> Axes:
    """Signals (n, k) as colours of the columns at their places, side by side."""
    y, x = placement.coordinates[~placement.left_out, :2].T
    step = 1.2 * float(np.ptp(x)) or 1.0
    limit = float(np.abs(fields).max()) or 1.0
    for number, field in enumerate(fields):
        dots = axes.scatter(
            x + number * step, y, c=field, cmap="gray", vmin=-limit, vmax=limit, edgecolors="0.5"
        )
    _colour_bar(axes, dots, "recovered value")
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
        Whether to plot W L W⁺, in the order of the grid's points, or L itself, in that of the
        columns.

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
    grid = _fitted(est).grid_
    if not 0 <= axis < grid.ndim:
        raise InputError(
            f"axis {axis} does not exist, the grid {grid} has {grid.ndim}: count from 0"
        )
    L, name = est.generators_[axis], "column"
    if on_grid:
        W = est.lifting_map_
        L, name = W @ L @ np.linalg.pinv(W, rcond=1e-6), "grid point"
    limit = float(np.percentile(np.abs(L), 99.5)) or float(np.abs(L).max()) or 1.0
    axes = _axes(ax)
    image = axes.imshow(L, cmap="RdBu_r", vmin=-limit, vmax=limit)
    _colour_bar(axes, image, f"generator along axis {axis + 1}")
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
    rows = _rows(est, X)
    phase, amplitude = est.phase(rows), est.amplitude(rows)
    if phase.ndim > 1:
        phase, amplitude = phase[:, 0], amplitude[:, 0]  # the first of two angles
    hue = phase if labels is None else np.asarray(labels, dtype=np.float64)
    if hue.shape != phase.shape:
        raise InputError(
            f"labels have shape {hue.shape}: give one angle in radians for each of the {len(rows)}"
            " rows"
        )
    axes = _axes(ax)
    dots = axes.scatter(
        amplitude * np.sin(phase),
        amplitude * np.cos(phase),
        c=np.mod(hue, 2 * np.pi),
        cmap="hsv",
        vmin=0,
        vmax=2 * np.pi,
        s=9,
    )
    _colour_bar(axes, dots, "phase, radians" if labels is None else "angle given, radians")
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
    diagnosis = est if isinstance(est, Diagnosis) else getattr(_fitted(est), "diagnosis_", None)
    if diagnosis is None:
        raise InputError("this fit was not diagnosed: call est.diagnose(X) first")
    tests = [
        t
        for t in diagnosis.tests
        if t.threshold is not None
        and t.value is not None
        and np.isfinite([t.value, t.threshold]).all()
    ]
    axes = _axes(ax)
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
            f"{_number(test.value)} ({sign} {_number(test.threshold)})",
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


# -- shared helpers -------------------------------------------------------------------------------


def _fitted(est: Any) -> Any:
    check_is_fitted(est)
    return est


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    return plt.subplots(layout="constrained")[1]


def _rows(est: LatentDomain, X: ArrayLike | None) -> NDArray:
    """The given rows, or those that the fit stored."""
    _fitted(est)
    if X is not None:
        return np.asarray(X)
    samples = getattr(est, "samples_", None)
    if samples is None:
        raise InputError("this fit stored no rows to show: give X")
    return np.asarray(samples.observed[np.random.default_rng(0).permutation(len(samples.row))])


def _flat_picture(values: NDArray, grid: Grid, down: bool = False) -> NDArray:
    """Field as an image: slices of a volume side by side or below each other, with gaps."""
    field = np.asarray(values, dtype=np.float64).reshape(grid.shape)
    if grid.ndim == 2:
        return field
    along = 0 if down else 1
    gap = np.full((1, grid.shape[2]) if down else (grid.shape[1], 1), np.nan)
    return np.concatenate([part for piece in field for part in (piece, gap)][:-1], axis=along)


def _name(placement: Placement, column: int) -> str:
    name = f"x{column}" if placement.names is None else placement.names[column]
    # matplotlib treats dollars as mathematics
    return (name if len(name) <= _NAME else name[: _NAME - 1] + "…").replace("$", r"\$")


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _colour_bar(axes: Axes, shown: Any, label: str) -> None:
    figure = axes.get_figure()
    if figure is not None:
        figure.colorbar(shown, ax=axes, label=label)
