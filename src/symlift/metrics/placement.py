"""Agreement of two placements of the same columns, up to what no blind method can know."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Alignment, Grid

__all__ = ["placement_agreement", "shifted_alike"]


def placement_agreement(
    first: NDArray,
    second: NDArray,
    grid: Grid,
    among: NDArray[np.bool_] | None = None,
    shift_open: bool = False,
    within: int = 0,
) -> float:
    """Share of columns that two placements put on the same point, up to the grid's symmetries.

    Reflections and permutations of equal axes always count as the same.  So does any translation
    along periodic axes and, if ``shift_open`` is set, a common translation of up to a tenth of an
    open axis (columns may leave border rows empty).

    Parameters
    ----------
    first : ndarray of shape (d,)
        Flat index of each column's point, -1 where it has none.
    second : ndarray of shape (d,)
        The other placement.
    grid : Grid
        The grid of both.
    among : ndarray of bool of shape (d,), optional
        The columns that count; by default those that ``first`` places.
    shift_open : bool, default=False
        Whether open axes may be shifted.
    within : int, default=0
        Steps along each axis by which the points may differ.

    Returns
    -------
    float
        The share, from 0 to 1.

    Examples
    --------
    >>> grid = Grid((4,))
    >>> placement_agreement(np.array([0, 1, 2, 3]), np.array([3, 2, 1, -1]), grid)
    0.75
    """
    counted = first >= 0 if among is None else among
    if not counted.any():
        return 0.0
    a, b = first[counted], second[counted]
    both = (a >= 0) & (b >= 0)
    shape = np.array(grid.shape)
    at_first, at_second = grid.indices()[a[both]], grid.indices()[b[both]]
    best = 0
    for turn in grid.orientations():
        moved = _turned(at_second, turn, shape)
        apart = at_first - moved
        for shift in _shifts(apart, grid, shift_open):
            off = apart - shift
            off = np.where(grid.periodic, np.minimum(off % shape, -off % shape), np.abs(off))
            best = max(best, int((off <= within).all(axis=1).sum()))
    return best / int(counted.sum())


def shifted_alike(first: NDArray, second: NDArray, grid: Grid) -> list[NDArray[np.int64]]:
    """Sets of columns that two placements (d,) put alike, up to a symmetry of the grid and a shift:
    two for each symmetry, the largest of all first.
    """
    shape = np.array(grid.shape)
    at_first, at_second = grid.indices()[first], grid.indices()[second]
    sets: list[NDArray[np.int64]] = []
    for turn in grid.orientations():
        apart = at_first - _turned(at_second, turn, shape)
        apart = np.where(grid.periodic, apart % shape, apart)
        kind, count = np.unique(apart, axis=0, return_inverse=True, return_counts=True)[1:]
        largest = np.argsort(-count, kind="stable")[:2]
        sets += [np.flatnonzero(kind.ravel() == one) for one in largest]
    return sorted(sets, key=len, reverse=True)


def _turned(points: NDArray, turn: Alignment, shape: NDArray) -> NDArray:
    moved = points[:, list(turn.axes)]
    return np.where(turn.flips, shape - 1 - moved, moved)


def _shifts(apart: NDArray, grid: Grid, shift_open: bool) -> list[tuple[int, ...]]:
    """Translations worth trying: on each axis those that fit the most columns."""
    choices = []
    for axis, (length, wraps) in enumerate(zip(grid.shape, grid.periodic, strict=True)):
        reach = length if wraps else max(1, length // 10) if shift_open else 0
        wanted = apart[:, axis] % length if wraps else apart[:, axis]
        wanted = wanted[np.abs(wanted) <= reach]
        values, counts = np.unique(wanted, return_counts=True)
        choices.append(
            [0, *(int(v) for v in values[np.argsort(-counts, kind="stable")[:3]] if v != 0)]
        )
    return list(itertools.product(*choices))
