"""Other grids that may explain the columns equally well: a line folded into rows or bent into a
ring, other factorisations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.diagnosis.places import PlacedRows
from symlift.search.criterion import PairClasses, Slots, make_slots
from symlift.search.schedule import search
from symlift.search.score import explained_elsewhere, held_out_score
from symlift.search.settings import PlaceSettings
from symlift.solvers.fast.place.screen import steps_apart
from symlift.solvers.starts.portfolio import starts_from
from symlift.statistics.correlations import partial_correlations

__all__ = ["Alternative", "alternatives", "other_shapes", "simpler"]

_MOST_COLUMNS, _MAX_ASPECT = 256, 8
# columns above which grids are screened by steps, and how far off (in units of the mean step) they
# may be
_SCREENED, _NEAR = 64, 0.25


@dataclass(frozen=True)
class Alternative:
    """Another grid for the same columns, and the shares of the reproducible statistics that it and
    the grid in use explain; ``cut``: it is a line, and the grid in use a ring.
    """

    grid: Grid
    share: float
    here: float
    cut: bool = False


def simpler(grid: Grid, columns: int) -> list[Grid]:
    """Line and ring of as many points as there are columns, where the grid has more axes; the line
    where it is a ring.

    >>> [str(g) + " ring" * g.is_ring for g in simpler(Grid((4, 6)), 24)], simpler(Grid((24,)), 24)
    (['24', '24 ring'], [])
    """
    line, ring = Grid((columns,)), Grid((columns,), periodic=True)
    if grid.ndim > 1:
        return [line, ring]
    return [line] if grid.periodic[0] else []


def other_shapes(grid: Grid, columns: int) -> list[Grid]:
    """Simpler grids, the ring where the grid is a line, and open rectangles of as many points as
    there are columns.
    """
    shapes = simpler(grid, columns) or [Grid((columns,), periodic=True)]
    for a in range(2, int(columns**0.5) + 1):
        if columns % a == 0 and columns // a <= _MAX_ASPECT * a:
            shapes.append(Grid((a, columns // a)))
    return [
        other
        for other in shapes
        if sorted(other.shape) != sorted(grid.shape) or other.periodic != grid.periodic
    ]


def alternatives(
    placed: PlacedRows, grid: Grid, grids: list[Grid], seed: int = 0
) -> list[Alternative]:
    """How well each of ``grids`` explains the columns, placed on one half of the rows and judged on
    the other, as for the ``grid`` in use.

    Columns between points are compared on plain and partial correlations together: partial ones
    depend on how many columns are near, and not on distances alone.
    """
    several = isinstance(placed.slots, Slots) and placed.slots.depth > 1
    if not grids or grid.size > _MOST_COLUMNS or several:
        return []
    rng, settings = np.random.default_rng(seed), replace(PlaceSettings(), restarts=0, starts=3)
    S, held = placed.halves.partial
    c = placed.halves.correlations[0]

    def explains(slot: NDArray, slots: PairClasses) -> float:
        if placed.coordinates is not None:
            return held_out_score(*placed.halves.target, slot, slots, settings.prior_pairs).share
        explained, ceiling, _ = explained_elsewhere(S, held, slot, slots, settings.prior_pairs)
        return explained / ceiling if ceiling > 0 else 0.0

    def share(other: Grid) -> float:
        slots = make_slots(other)
        coordinates = starts_from(c, other, rng, settings)
        return explains(search(S, slots, coordinates, rng, settings).slot, slots)

    here = explains(placed.slot, placed.slots)
    if len(placed.column) > _SCREENED:
        # steps between columns in the graph of best partners are enough to exclude a grid
        p = partial_correlations(c, settings.start_ridge)
        own = steps_apart(p, grid, settings.edge)
        grids = [other for other in grids if steps_apart(p, other, settings.edge) < max(own, _NEAR)]
    return [
        Alternative(other, share(other), here, cut=grid.is_ring and other.ndim == 1)
        for other in grids
        if other.size >= len(placed.column)
    ]
