"""Do two placements of the same columns agree, up to what no blind method can know?"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Alignment, Grid

__all__ = ["placement_agreement"]


def placement_agreement(
    first: NDArray, second: NDArray, grid: Grid, among: NDArray[np.bool_] | None = None, shift_open: bool = False
) -> float:
    """Share of columns that two placements put on the same point, up to the grid's symmetries.

    Reflections and exchanges of equal axes always count as the same; on periodic axes so does any translation, on open ones a
    common translation of up to a tenth of the axis where ``shift_open`` is set (columns may leave border rows empty).

    Parameters
    ----------
    first, second : (d,) flat index of each column's point, -1 where it has none.
    grid : the grid of both.
    among : (d,) the columns that count; by default those that ``first`` places.
    shift_open : whether open axes may be shifted.

    >>> grid = Grid((4,))
    >>> placement_agreement(np.array([0, 1, 2, 3]), np.array([3, 2, 1, -1]), grid)
    0.75
    """
    counted = first >= 0 if among is None else among
    if not counted.any():
        return 0.0
    a, b = first[counted], second[counted]
    there = (a >= 0) & (b >= 0)
    shape = np.array(grid.shape)
    here, found = grid.indices()[a[there]], grid.indices()[b[there]]
    best = 0
    for turn in grid.orientations():
        moved = _turned(found, turn, shape)
        apart = here - moved
        for shift in _shifts(apart, grid, shift_open):
            off = apart - shift
            off = np.where(grid.periodic, off % shape, off)
            best = max(best, int((off == 0).all(axis=1).sum()))
    return best / int(counted.sum())


def _turned(points: NDArray, turn: Alignment, shape: NDArray) -> NDArray:
    moved = points[:, list(turn.axes)]
    return np.where(turn.flips, shape - 1 - moved, moved)


def _shifts(apart: NDArray, grid: Grid, shift_open: bool) -> list[tuple[int, ...]]:
    """Translations worth trying: on each axis the few that most columns ask for."""
    choices = []
    for axis, (length, wraps) in enumerate(zip(grid.shape, grid.periodic, strict=True)):
        reach = length if wraps else max(1, length // 10) if shift_open else 0
        wanted = apart[:, axis] % length if wraps else apart[:, axis]
        wanted = wanted[np.abs(wanted) <= reach]
        values, counts = np.unique(wanted, return_counts=True)
        choices.append([0, *(int(v) for v in values[np.argsort(-counts, kind="stable")[:3]] if v != 0)])
    return list(itertools.product(*choices))
