"""A lattice of which columns fill some part: islands, coasts, boards with corners cut off.

Which rectangle bounds such a part is not in the number of columns, and a rectangle that they would
fill is wrong. Places of their own show how far columns are apart, and so about where on a lattice
each one is, but neither how the lattice lies nor every step. So arrangements grow from parts of
the places, rounded for several directions of the axes, on a lattice without borders; the box of
the best is a grid that competes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.spatial import cKDTree

from symlift.core.grid import Grid
from symlift.search.criterion import make_slots, nearest_slots
from symlift.search.growth import Growth, first_of
from symlift.search.moves.regrow import GROWN_BY, largest_part
from symlift.search.settings import PlaceSettings
from symlift.statistics.correlations import partial_statistics

__all__ = ["lattice_under"]

# directions of the axes that are tried, over a quarter of a turn
_DIRECTIONS = 6
# room around the places, which paths make too short or too long, and the longest side
_ROOM, _LONGEST = 1.2, 100
# points for each column: sensors at arbitrary places fit a lattice that is fine enough (40 of them
# one of 8x23, better than their own places do), which is no simpler than those
_LOOSEST = 2


def lattice_under(
    y: NDArray, c: NDArray, rng: np.random.Generator, settings: PlaceSettings
) -> tuple[Grid, NDArray[np.float64]] | None:
    """The box of a part of a square lattice, and coordinates (d, 2) on it, for places y (d, 2) of
    columns whose correlations are c (d, d); None where most columns are not in one part.
    """
    nearest = np.asarray(cKDTree(y).query(y, k=2)[0])[:, 1]
    y = (y - y.mean(axis=0)) / max(float(np.median(nearest)), 1e-12)
    side = int(np.ceil(2 * _ROOM * np.abs(y).max())) + 2
    if side > _LONGEST:
        return None
    canvas = Grid((side, side))
    starts = []
    for angle in np.arange(_DIRECTIONS) * np.pi / 2 / _DIRECTIONS:
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        starts.append(nearest_slots(y @ turn + (side - 1) / 2, canvas))
    growth = Growth(
        partial_statistics(c, settings.ridges),
        lambda: partial_statistics(c, GROWN_BY),
        make_slots(canvas),
        rng,
        settings,
        # without borders, descent moves corners to where they have no pairs, and takes minutes
        mends=False,
    )
    ends, _ = growth.from_parts(starts)
    if not ends:
        return None
    at = _closed_up(canvas.indices()[min(ends, key=first_of)[1]])
    return None if at is None else _in_box(at)


def _in_box(at: NDArray[np.float64]) -> tuple[Grid, NDArray[np.float64]] | None:
    """The box of the largest connected part, and all points inside of it; None where that part is
    no more than half of them, or where the box is too large. Corners of a coast have few pairs, and
    fit as well where nothing is.
    """
    apart = np.abs(np.rint(at[:, None] - at[None])).max(axis=-1)
    main = at[largest_part(csr_matrix((apart <= 1).astype(np.int8)))]
    low, shape = main.min(axis=0), np.rint(np.ptp(main, axis=0)).astype(int) + 1
    loose = np.prod(shape) > _LOOSEST * len(at)
    if 2 * len(main) <= len(at) or shape.min() < 2 or np.prod(shape) < len(at) or loose:
        return None
    return Grid(tuple(int(n) for n in shape)), np.clip(at - low, 0, shape - 1)


def _closed_up(at: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """Points (d, 2) in steps of the lattice that most of them are on: where every second point of
    an axis is skipped, or those of one colour of a chessboard, displacements are the same.
    None for points on a line.
    """
    apart = (at[:, None] - at[None]).reshape(-1, 2)
    # one of each displacement and its opposite
    ahead = (apart[:, 0] > 0) | ((apart[:, 0] == 0) & (apart[:, 1] > 0))
    step, count = np.unique(apart[ahead], axis=0, return_counts=True)
    step = step[2 * count >= count.max()]
    step = step[np.argsort(np.sum(step**2, axis=1), kind="stable")]
    across = np.flatnonzero(step[0, 0] * step[:, 1] != step[0, 1] * step[:, 0])
    if not len(across):
        return None
    steps = (at - at[0]) @ np.linalg.inv(np.stack([step[0], step[across[0]]]).astype(np.float64))
    return np.asarray(steps - steps.min(axis=0), dtype=np.float64)
