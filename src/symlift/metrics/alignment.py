"""Translate fields on their grid: any real offset on a ring, whole steps on an open axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symlift.core.fourier import ring_kernel
from symlift.core.grid import Alignment, Grid
from symlift.errors import InputError
from symlift.metrics.fields import GridLike, as_fields, as_grid

WHOLE = 1e-9  # an offset this close to a whole number of steps is one


def check_shift(shift: Sequence[float], grid: Grid) -> tuple[float, ...]:
    """Check a shift: one finite number per axis; on open axes whole and shorter than the axis."""
    steps = tuple(float(t) for t in np.atleast_1d(np.asarray(shift, dtype=np.float64)))
    if len(steps) != grid.ndim or not np.isfinite(steps).all():
        raise InputError(
            f"shift {steps} does not fit a {grid} grid: give {grid.ndim} finite number(s) of grid"
            " steps"
        )
    for axis, (t, length, wraps) in enumerate(zip(steps, grid.shape, grid.periodic, strict=True)):
        if not wraps and abs(t - round(t)) > WHOLE:
            raise InputError(
                f"shift {t} along open axis {axis} is not whole: give whole steps, or make the axis"
                " periodic"
            )
        if not wraps and abs(round(t)) >= length:
            raise InputError(
                f"shift {t} moves all of open axis {axis} out of its {length} points: give a"
                " smaller one"
            )
    return tuple(
        t if wraps else float(round(t)) for t, wraps in zip(steps, grid.periodic, strict=True)
    )


def window(grid: Grid, shift: Sequence[float]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """``grid.overlap``, for a shift that may be fractional on periodic axes."""
    return grid.overlap([round(t) for t in shift])


def translate(fields: NDArray[Any], shift: Sequence[float], grid: Grid) -> NDArray[Any]:
    """Move fields (n, *shape) by ``shift`` towards larger indices; 0 enters at the open ends."""
    for axis, (t, length, wraps) in enumerate(
        zip(shift, grid.shape, grid.periodic, strict=True), start=1
    ):
        if wraps and abs(t - round(t)) <= WHOLE:
            fields = np.roll(fields, round(t), axis=axis)  # exact, and cheaper than a product
        elif wraps:
            kernel = ring_kernel(length, np.arange(length) - t)
            fields = np.moveaxis(np.tensordot(fields, kernel, axes=(axis, 1)), -1, axis)
    source, target = window(grid, shift)
    if all(part in (slice(None), slice(0, n)) for part, n in zip(target, grid.shape, strict=True)):
        return fields
    moved = np.zeros_like(fields)
    moved[(slice(None), *target)] = fields[(slice(None), *source)]
    return moved


def align(
    recovered: ArrayLike,
    alignment: Alignment,
    grid: GridLike,
    periodic: bool | Sequence[bool] = False,
) -> NDArray[np.float64]:
    """Apply the alignment that `signal_recovery` returned: ``recovered`` is moved onto ``latent``.

    It is ``sign · translate(flip(transpose(recovered)), shift)``: Fourier interpolation on periodic
    axes; whole steps on open axes, with 0 where nothing is known (``grid.overlap(shift)[1]`` is the
    part that counts).

    Parameters
    ----------
    recovered : array-like of shape (n, size) or (n, *grid)
        Recovered signals.
    alignment : Alignment
        The alignment to apply.
    grid : Grid, int or sequence of int
        A grid, whose own flags count, or its sizes.
    periodic : bool or sequence of bool, default=False
        Whether axes close on themselves, if ``grid`` is given by its sizes.

    Returns
    -------
    ndarray of shape (n, size) or (n, *grid)
        The aligned signals.

    Raises
    ------
    InputError
        If the signals or the shift do not fit the grid.

    Examples
    --------
    >>> from symlift.core.grid import Alignment
    >>> align([[1.0, 2.0, 3.0, 4.0]], Alignment((0,), flips=(True,), shift=(1.0,), sign=-1), 4)
    array([[-0., -4., -3., -2.]])
    >>> align([[1.0, 2.0, 3.0, 4.0]], Alignment((0,), (False,), shift=(1.0,)), 4, periodic=True)
    array([[4., 1., 2., 3.]])
    """
    grid = as_grid(grid, periodic)
    shift = check_shift(alignment.shift or (0.0,) * grid.ndim, grid)
    flat = np.asarray(as_fields("recovered", recovered, grid), dtype=np.float64)
    oriented = alignment.reorient(flat.reshape(-1, *grid.shape))
    return (alignment.sign * translate(oriented, shift, grid)).reshape(np.shape(recovered))
