"""Propose a grid for vectors that nobody gave one for."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from symlift.grid import Grid
from symlift.objective import LagClasses
from symlift.solvers.fast.arrange import arrange, lag_means, similarities
from symlift.solvers.fast.localise import energy_similarities, independent_components

__all__ = ["candidate_grids", "propose_grid"]

_ROWS = 6_000
_MAX_ASPECT = 4
# a proposal must explain this much of the held-out statistics, and this much more of what is left than the next best
_ENOUGH, _MARGIN = 0.5, 0.15


def candidate_grids(d: int) -> Iterator[Grid]:
    """Line and ring of d points, and rectangles and boxes of d points that are not too elongated, open or closed.

    >>> [str(g) for g in candidate_grids(12) if not any(g.axes_periodic)]
    ['12', '3x4', '2x2x3']
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
    found: list[tuple[float, Grid]] = []
    for grid in candidate_grids(S.shape[1]):
        order, _ = arrange(S, grid, rng)
        found.append((_explained_elsewhere(S, S_held, order, LagClasses(grid)), grid))
    found.sort(key=lambda pair: -pair[0])
    (best, grid), others = found[0], found[1:]
    second = max((value for value, _ in others), default=0.0)
    # of what the next best leaves unexplained, how much does the best explain?
    margin = (best - second) / max(1 - second, 1e-9)
    if best < _ENOUGH or margin < _MARGIN:
        return None
    return Grid(grid.shape, grid.axes_periodic, confidence=round(float(min(1.0, margin)), 3))


def _explained_elsewhere(S: NDArray, S_held: NDArray, order: NDArray, lags: LagClasses) -> float:
    """Part of the held-out statistics that the lag means of the fitted ones explain: many lags gain nothing by chance."""
    pairs = lags.index != lags.zero
    parts = []
    for s, held in zip(S, S_held, strict=True):
        model = lag_means(s, order, lags)[lags.index][pairs]
        placed = held[np.ix_(order, order)][pairs]
        parts.append(1 - np.mean((placed - model) ** 2) / max(float(placed.var()), 1e-12))
    return float(np.mean(parts))
