"""Which grid do columns that are points form?  Screened by the distances in their graph, decided by placing them.

Columns that are neighbours on a grid are best partners, so steps through the graph of best partners are steps on the grid.  How
often each number of steps occurs between two columns is known for every grid in closed form: a line of 24 and a rectangle of 4x6
have nothing in common there.  The few grids that come nearest are then filled by the placement engine, and held-out rows decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path

from symlift.core.grid import Grid
from symlift.solvers.contract import Progress, no_progress
from symlift.solvers.fast.place.embed import neighbour_graph
from symlift.solvers.fast.place.engine import core_columns, settle_single
from symlift.solvers.fast.place.halves import halves_of
from symlift.solvers.fast.place.judge import explained_elsewhere
from symlift.solvers.fast.place.rows import independent_rows, read_rows
from symlift.solvers.fast.place.settings import PlaceSettings
from symlift.solvers.fast.place.slots import make_slots
from symlift.solvers.fast.place.statistic import correlations, partial_correlations
from symlift.solvers.fast.place.triage import triage

__all__ = ["Screened", "candidate_shapes", "screen", "step_distribution", "steps_apart"]

# columns below which a grid cannot be distinguished from chance, the aspect that is allowed, and grids of each kind that are placed
_FEWEST, _MAX_ASPECT = 6, 8
_PLACED = {(1, False): 1, (1, True): 1, (2, False): 4, (2, True): 4, (3, False): 1}
# starts for each of them: on the right grid the first ones agree, on a wrong one none does, however many
_STARTS = 3
# points that may be missing, as a share of the columns that are there
_HOLES = 0.06
_KINDS = ("partial", "lags")
_FLAGS = ((False, False), (True, True), (False, True), (True, False))


@dataclass(frozen=True)
class Screened:
    """A grid that was filled: the part of held-out statistics that it explains, the part that is real, and its displacements."""

    grid: Grid
    explained: float
    ceiling: float
    accepted: bool

    @property
    def share(self) -> float:
        """Of what is real in the statistics, the part that the grid explains."""
        return self.explained / self.ceiling if self.ceiling > 0 else 0.0

    @property
    def displacements(self) -> int:
        """Distinct displacements of the grid: the simpler of two grids has fewer."""
        return int(
            np.prod([n if wraps else 2 * n - 1 for n, wraps in zip(self.grid.shape, self.grid.periodic, strict=True)])
        )


def candidate_shapes(d: int) -> Iterator[Grid]:
    """Line and ring of d points; rectangles up to 1:8 and boxes, with a few points more than columns; tori and cylinders without.

    >>> [str(g) for g in candidate_shapes(11) if g.ndim == 2]
    ['2x6', '3x4']
    """
    yield Grid((d,))
    if d > 3:
        yield Grid((d,), True)
    most = d + max(1, int(_HOLES * d))
    for a in range(2, int(most**0.5) + 1):
        for b in range(max(a, -(-d // a)), min(_MAX_ASPECT * a, most // a) + 1):
            # tori and cylinders only where every point has a column: a period of two is no period
            flags = _FLAGS if a * b == d and a > 2 else _FLAGS[:1]
            yield from (Grid((a, b), flag) for flag in (flags if a != b else flags[:3]))
    for a in range(2, round(most ** (1 / 3)) + 1):
        for b in range(a, int((most / a) ** 0.5) + 1):
            for c in range(max(b, -(-d // (a * b))), min(_MAX_ASPECT * a, most // (a * b)) + 1):
                yield Grid((a, b, c))


def step_distribution(grid: Grid) -> NDArray[np.float64]:
    """Share of the pairs of points that are 0, 1, 2, … steps apart, along the axes.

    >>> step_distribution(Grid((3,))).round(3)
    array([0.333, 0.444, 0.222])
    """
    total = np.ones(1)
    for n, wraps in zip(grid.shape, grid.periodic, strict=True):
        k = np.arange(n)
        steps = np.minimum(k, n - k) if wraps else k
        weight = np.full(n, 1 / n) if wraps else np.where(k == 0, n, 2 * (n - k)) / n**2
        total = np.convolve(total, np.bincount(steps, weight))
    return total


def _apart(steps: NDArray, grid: Grid) -> float:
    """Mean difference of the two distributions of steps, in units of the grid's mean."""
    expected = step_distribution(grid)
    size = max(len(expected), len(steps))
    a, b = (np.cumsum(np.pad(part, (0, size - len(part)))) for part in (steps, expected))
    return float(np.abs(a - b).sum() / max(float(np.arange(len(expected)) @ expected), 1e-9))


def screen(
    X: NDArray, rng: np.random.Generator, settings: PlaceSettings, rows: int, progress: Progress = no_progress
) -> list[Screened]:
    """The grids that fit the graph of the columns of X best, filled, by the share that they explain; empty where there is none."""
    number = np.sort(rng.choice(len(X), rows, replace=False)) if len(X) > rows else np.arange(len(X))
    some = np.asarray(X[number])
    read = read_rows(some, rng, settings)
    c = correlations(read.scores, read.there)
    kept = triage(read, c, independent_rows(read), settings).kept
    if len(kept) < _FEWEST:
        return []
    p = partial_correlations(c[np.ix_(kept, kept)], settings.start_ridge)
    chosen = _nearest(sorted(_ranked(p, settings), key=lambda pair: pair[0]))
    quick = replace(settings, restarts=0, starts=_STARTS)
    # the same rows are held out for each grid, and where all columns find room, statistics are those of the grid before
    halves = halves_of(read, kept, np.random.default_rng(0), settings)
    found = []
    for count, grid in enumerate(chosen):
        progress(f"grid {grid}, candidate {count + 1} of {len(chosen)}", count / len(chosen))
        core, _ = core_columns(read, c, kept, grid, quick)
        halves = halves if np.array_equal(core, halves.columns) else halves.of(core)
        slots = make_slots(grid)
        settled = settle_single(halves, c, slots, np.random.default_rng(0), quick)
        # grids are compared by the same statistics, whichever carried them: a long rectangle laid out as a line explains plain
        # correlations (0.97), but not partial ones
        parts = [
            explained_elsewhere(*halves.statistics(kind), settled.slot, slots, settings.prior_pairs)[:2]
            for kind in _KINDS
        ]
        explained, ceiling = np.mean(parts, axis=0)
        found.append(Screened(grid, float(explained), float(ceiling), settled.statistics.accepted))
    return sorted(found, key=lambda one: -one.share)


def _nearest(ranked: list[tuple[float, Grid]]) -> list[Grid]:
    """The nearest few of each kind: lines and rings, open rectangles, closed ones, boxes."""
    kept: dict[tuple[int, bool], list[Grid]] = {}
    for _, grid in ranked:
        key = (grid.ndim, any(grid.periodic))
        if len(kept.setdefault(key, [])) < _PLACED[key]:
            kept[key].append(grid)
    return [grid for kind in kept.values() for grid in kind]


def steps_apart(p: NDArray, grid: Grid, edge: float) -> float:
    """How far the steps between columns, in the graph of their best partners, are from those on ``grid``; 0 where they are alike.

    ``p`` (d, d) are partial correlations, those below ``edge`` are no links.
    """
    return _apart(_steps(p, grid.ndim, edge), grid)


def _steps(p: NDArray, ndim: int, edge: float) -> NDArray[np.float64]:
    edges = neighbour_graph(p, 2 * ndim, edge, squares=ndim > 1)
    hops = shortest_path(csr_matrix(edges, dtype=np.float64), directed=False, unweighted=True)
    whole = hops[np.isfinite(hops)].astype(np.int64)
    return np.asarray(np.bincount(whole) / len(whole))


def _ranked(p: NDArray, settings: PlaceSettings) -> Iterator[tuple[float, Grid]]:
    steps: dict[int, NDArray] = {}
    for grid in candidate_shapes(len(p)):
        if grid.ndim not in steps:
            steps[grid.ndim] = _steps(p, grid.ndim, settings.edge)
        yield _apart(steps[grid.ndim], grid), grid
