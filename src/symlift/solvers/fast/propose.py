"""Propose a grid for vectors that nobody gave one for."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from symlift.grid import Grid
from symlift.objective import LagClasses
from symlift.solvers.fast.arrange import arrange, explained_elsewhere, similarities
from symlift.solvers.fast.localise import energy_similarities, independent_components

__all__ = ["candidate_grids", "propose_grid"]

_ROWS = 6_000
_MAX_ASPECT = 4
# a proposal must explain this much of the held-out statistics, and this much of what simpler grids leave over
_ENOUGH, _MARGIN = 0.5, 0.15
# grids that leave at most this many times as much unexplained as the best one does count as equal
_TOLERANCE = 1.25


def candidate_grids(d: int) -> Iterator[Grid]:
    """Line and ring of d points, and rectangles and boxes of d points that are not too elongated, open or closed.

    >>> [str(g) for g in candidate_grids(12) if not any(g.axes_periodic)]
    ['12', '2x6', '3x4', '2x2x3']
    """
    yield Grid((d,))
    if d > 2:
        yield Grid((d,), True)
    for a in range(2, math.isqrt(d) + 1):
        if d % a == 0 and d // a <= _MAX_ASPECT * a:
            yield from (
                Grid((a, d // a), flags) for flags in ((False, False), (True, True), (False, True), (True, False))
            )
    for a in range(2, round(d ** (1 / 3)) + 1):
        for b in range(a, math.isqrt(d // a) + 1):
            if d % (a * b) == 0 and b <= d // (a * b) <= _MAX_ASPECT * a:
                yield Grid((a, b, d // (a * b)))


def propose_grid(X: NDArray, rng: np.random.Generator) -> Grid | None:
    """The grid that explains pairwise statistics of held-out rows best, with its confidence; None where it cannot be told.

    Columns themselves are tried first (shuffled pixels), then the energies of independent components (dense mixing).
    """
    index = rng.permutation(len(X))[: 2 * _ROWS]
    rows = np.asarray(X[np.sort(index)], dtype=np.float64)[np.argsort(np.argsort(index))]
    rows = rows - rows.mean(axis=0)
    fit, held = rows[::2], rows[1::2]
    best = _best(similarities(fit), similarities(held), rng)
    if best is None:
        U, _ = independent_components(fit, rng)
        best = _best(energy_similarities(fit @ U.T), energy_similarities(held @ U.T), rng)
    return best


def _best(S: NDArray, S_held: NDArray, rng: np.random.Generator) -> Grid | None:
    """The simplest grid that explains the statistics about as well as any.

    Folding a line into rows gives a grid whose displacements are finer than the line's, so it explains no less: of those that do
    equally well, the one with the fewest displacements is meant.
    """
    found: list[tuple[float, LagClasses]] = []
    for grid in candidate_grids(S.shape[1]):
        lags = LagClasses(grid)
        order, _ = arrange(S, grid, rng)
        found.append((explained_elsewhere(S, S_held, order, lags), lags))
    most = max(value for value, _ in found)
    able = [pair for pair in found if 1 - pair[0] <= _TOLERANCE * (1 - most) + 0.005]
    value, lags = min(able, key=lambda pair: pair[1].count.size)
    simpler = max((v for v, other in found if other.count.size < lags.count.size), default=0.0)
    # of what simpler grids leave unexplained, how much does this one explain?
    margin = (value - max(simpler, 0.0)) / max(1 - max(simpler, 0.0), 1e-9)
    if value < _ENOUGH or margin < _MARGIN:
        return None
    grid = lags.grid
    return Grid(grid.shape, grid.axes_periodic, confidence=round(float(np.clip(min(value, margin), 0, 1)), 3))
