"""Where columns sit, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from symlift.core.domain import Scattered
from symlift.core.sphere import Sphere
from symlift.errors import InputError
from symlift.plotting.pieces import check_fitted, flat_picture, given_axes, value_scale
from symlift.solvers.contract import Placement

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from symlift.estimator import LatentDomain

__all__ = ["plot_placement"]

_MOST_NAMES, _NAME = 400, 12


# columns further than this from their points, in grid steps, are drawn between points
_OFF_GRID = 0.05


def plot_placement(est: LatentDomain, ax: Axes | None = None) -> Axes:
    """Plot where each column sits, on a line, a ring, a plane or a sphere, coloured by confidence.

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
    placement = check_fitted(est).placement_
    if placement is None:
        raise InputError(
            "this fit has no placement, its columns are not points: plot_signals shows the"
            " recovered signals"
        )
    axes = given_axes(ax)
    left_out = int(placement.left_out.sum())
    axes.set_title(
        f"{len(placement.point) - left_out} columns placed"
        + (f", {left_out} left out" if left_out else "")
    )
    if isinstance(placement.grid, Sphere):
        _on_sphere(axes, placement)
    elif placement.grid.ndim == 1:
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
    value_scale(axes, dots, "confidence")
    axes.set(xlabel="axis 2", ylabel="axis 1")
    if isinstance(placement.grid, Scattered):
        axes.set_aspect("equal")
    else:
        rows, columns = placement.grid.shape
        axes.set(xlim=(-0.7, columns - 0.3), ylim=(rows - 0.3, -0.7))
    axes.grid(alpha=0.3)
    _name_dots(axes, placement, on, x, y)


def _on_sphere(axes: Axes, placement: Placement) -> None:
    """Columns on both halves of a sphere, side by side, areas true: z upwards, seen from -y."""
    on = np.flatnonzero(~placement.left_out)
    x, y, z = placement.coordinates[on].T
    back = y > 0
    length = 1 / np.sqrt(1 + np.abs(y))
    across, up = np.where(back, 2.2 - x * length, x * length), z * length
    turn = np.linspace(0, 2 * np.pi, 181)
    for middle in (0.0, 2.2):
        axes.plot(middle + np.cos(turn), np.sin(turn), color="0.7", linewidth=0.8, zorder=1)
    dots = axes.scatter(
        across, up, c=placement.confidence[on], cmap="Blues", vmin=0, vmax=1, edgecolors="0.5",
        zorder=2,
    )  # fmt: skip
    value_scale(axes, dots, "confidence")
    axes.set(xticks=[], yticks=[], xlabel="front and back of the sphere")
    axes.set_aspect("equal")
    _name_dots(axes, placement, on, across, up)


def _name_dots(axes: Axes, placement: Placement, on: NDArray, x: NDArray, y: NDArray) -> None:
    """Names next to dots, where they fit."""
    if len(on) > _MOST_NAMES:
        return
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
    value_scale(axes, dots, "confidence")
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
    image = axes.imshow(flat_picture(sure, grid), cmap="Blues", vmin=0, vmax=1)
    value_scale(axes, image, "confidence")
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


def _name(placement: Placement, column: int) -> str:
    name = f"x{column}" if placement.names is None else placement.names[column]
    # matplotlib treats dollars as mathematics
    return (name if len(name) <= _NAME else name[: _NAME - 1] + "…").replace("$", r"\$")
