"""Columns that belong to one grid point each, as bits do, several to a point: from a lifting map
that is nearly right to one that puts each column at one point.

The strongest modes of bits hold the low frequencies of their field; in the high ones, single bits
drown each other, and an isometry of so many modes as there are points ends at r = 0.92. But its
field is near enough to say where each bit sits: where it correlates with the field most, so many
bits for each point. What a bit weighs is then the slope of the neighbouring points on it, the same
at every point: least squares, with no assumption that weights are powers of two.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from symlift.core.grid import Grid
from symlift.solvers.fast.bit_places import plane_correlations
from symlift.solvers.fast.bits import Neighbourhoods, assign_classes, bit_weights, number_map

__all__ = ["column_map", "local_map", "most_correlated"]


def local_map(W: NDArray, Z: NDArray, grid: Grid) -> NDArray[np.float64]:
    """The lifting map (points, d) with one point and one weight for each of the two-valued columns
    of the centred rows ``Z`` (n, d), from the map ``W`` (points, d).
    """
    point, sign = _places(W, Z)
    planes = np.ascontiguousarray((Z > 0).T).astype(np.uint8) ^ (sign < 0)[:, None]
    between = plane_correlations(planes)
    near = Neighbourhoods(point, grid)
    classes = assign_classes(planes, between, near)
    weights = bit_weights(planes, near, classes)
    deviation = planes.std(axis=1, dtype=np.float32)
    return number_map(between, deviation, near, classes, weights) * sign


def column_map(W: NDArray, Z: NDArray) -> NDArray[np.float64]:
    """The lifting map (points, d) that puts each column of the centred rows ``Z`` (n, d) at one
    point, with a sign, from the map ``W`` (points, d).
    """
    point, sign = _places(W, Z)
    out = np.zeros(W.shape)
    out[point, np.arange(len(point))] = sign
    return out


def _places(W: NDArray, Z: NDArray) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The point and the sign of each column of ``Z`` (n, d) in the field of the map ``W``."""
    Y = Z @ W.T
    spread = np.outer(Z.std(axis=0), Y.std(axis=0))
    C = Z.T @ (Y - Y.mean(axis=0)) / len(Z) / np.maximum(spread, 1e-300)
    point = most_correlated(C)
    return point, np.where(C[np.arange(len(C)), point] < 0, -1.0, 1.0)


def most_correlated(C: NDArray) -> NDArray[np.int64]:
    """The point of each column, from correlations (columns, points): in all the largest, and no
    point has more than its share of the columns.

    >>> most_correlated(np.array([[0.9, 0.1], [0.8, 0.7], [0.2, -0.9], [0.6, 0.1]]))
    array([0, 1, 1, 0])
    """
    share = -(-C.shape[0] // C.shape[1])
    columns, slots = linear_sum_assignment(np.repeat(np.abs(C), share, axis=1), maximize=True)
    point = np.empty(len(C), dtype=np.int64)
    point[columns] = slots // share
    return point
