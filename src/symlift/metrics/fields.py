"""Shared by all metrics: validated arrays of fields, in batches of float64."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symlift.core.grid import Grid
from symlift.errors import InputError

GridLike = Grid | int | Sequence[int]
# 8 MB of float64: large enough for a fast product, small enough to stay near the cache
BATCH_VALUES = 1 << 20
CONSTANT = 1e-12  # a deviation this small relative to the values themselves is rounding


def as_grid(grid: GridLike, periodic: bool | Sequence[bool] = False) -> Grid:
    """Grid as it is (its own flags count), or one made of sizes and ``periodic``."""
    if isinstance(grid, Grid):
        return grid
    sizes = (grid,) if isinstance(grid, int | np.integer) else grid
    return Grid(
        tuple(sizes), periodic if isinstance(periodic, bool | np.bool_) else tuple(periodic)
    )


def as_fields(name: str, values: ArrayLike, grid: Grid) -> NDArray[Any]:
    """``values`` as (n, size), a view where possible: a memmap is not read here."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise InputError(f"{name} has dtype {array.dtype}: give real numbers")
    if array.ndim < 2 or array.shape[1:] not in ((grid.size,), grid.shape):
        shaped = ", ".join(map(str, grid.shape))
        raise InputError(
            f"{name} has shape {array.shape}: a {grid} grid needs (n, {grid.size}) or (n, {shaped})"
        )
    if len(array) == 0:
        raise InputError(f"{name} is empty: give at least one sample")
    return array.reshape(len(array), grid.size)


def batches(name: str, fields: NDArray[Any]) -> Iterator[NDArray[np.float64]]:
    """Consecutive rows of ``fields`` in float64, checked to be finite."""
    rows = max(1, BATCH_VALUES // fields.shape[1])
    for start in range(0, len(fields), rows):
        batch = np.asarray(fields[start : start + rows], dtype=np.float64)
        if not np.isfinite(batch).all():
            row, column = np.argwhere(~np.isfinite(batch))[0]
            raise InputError(
                f"{name} has NaN or infinity at row {start + row}, column {column}: drop or repair"
                " that sample"
            )
        yield batch


def paired_batches(
    latent: NDArray[Any], recovered: NDArray[Any]
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """The same rows of both, batch by batch."""
    return zip(batches("latent", latent), batches("recovered", recovered), strict=True)


def deviation(rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Each row minus its own mean, and the norm of that; exactly zero for constant rows.

    >>> deviation(np.array([[0.1, 0.1, 0.1], [1.0, 2.0, 3.0]]))[1].round(6)
    array([0.      , 1.414214])
    """
    centred = rows - rows.mean(axis=1, keepdims=True)
    norm = np.linalg.norm(centred, axis=1)
    return centred, np.where(norm > CONSTANT * np.linalg.norm(rows, axis=1), norm, 0.0)


def ratio(numerator: NDArray[np.float64], denominator: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quotient that is 0 where the denominator is 0: the correlation of a constant is 0."""
    shape = np.broadcast_shapes(numerator.shape, denominator.shape)
    return np.divide(numerator, denominator, out=np.zeros(shape), where=denominator > 0)
