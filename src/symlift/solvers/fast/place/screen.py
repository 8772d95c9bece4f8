"""Find the grid of columns that are points: screen by graph distances, decide by placing the
columns.

Neighbours on a grid have the largest partial correlations, so paths in the graph of best neighbours
follow the grid. The distribution of path lengths is known for every grid in closed form, and
differs much between a line of 24 points and a rectangle of 4x6. The few nearest grids are then
filled by the placement engine, and held-out rows decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path

from symlift.core.grid import Grid
from symlift.core.sphere import Sphere
from symlift.search.criterion import make_slots
from symlift.search.problem import split_halves
from symlift.search.row_noise import RowNoise
from symlift.search.rows import ColumnRows, score_rows
from symlift.search.score import BothScores, ahead, between_points, both_scores
from symlift.search.settings import PlaceSettings
from symlift.search.triage import triage
from symlift.solvers.contract import Progress, no_progress
from symlift.solvers.fast.place.engine import core_columns
from symlift.solvers.fast.place.single import settle_single
from symlift.solvers.sphere.proposal import sphere_in_pool
from symlift.solvers.starts.graph import neighbour_graph
from symlift.solvers.starts.lattice import lattice_under
from symlift.solvers.starts.scattered import FreePlaces, free_places, in_own_box
from symlift.statistics.correlations import partial_correlations

__all__ = ["Screened", "candidate_shapes", "screen", "step_distribution", "steps_apart"]

# columns below which a grid cannot be distinguished from chance, the largest aspect ratio, and the
# number of grids of each kind that are placed
_FEWEST, _MAX_ASPECT = 6, 8
_FILLED = 2
_PLACED = {(1, False): 1, (1, True): 1, (2, False): 4, (2, True): 2, (3, False): 1}
# starts for each of them: on the right grid the first ones agree, on a wrong one none do
_STARTS = 3
# of those that are grown: restarts, and points in all
_GROWN, _GROWN_POINTS = 2, 400
# points that may be empty, as a share of the number of columns
_HOLES = 0.06
_FLAGS = ((False, False), (True, True), (False, True), (True, False))


@dataclass(frozen=True)
class Screened:
    """A domain that was filled, and what the judge says of it; ``between``: columns are at places
    of their own inside its box, on a line in uneven steps; ``converged``: starts ended alike.
    """

    grid: Any  # a Grid; a Sphere where columns are its points
    scores: BothScores
    accepted: bool
    between: bool = False
    noise: RowNoise | None = None
    converged: bool = False

    @property
    def share(self) -> float:
        """The share of what is real in the statistics that the grid explains."""
        return self.scores.all.share

    @property
    def simplicity(self) -> tuple[bool, int, bool, int, int]:
        """Lines are simpler than rings, which have one link more, rings than rectangles, those
        than tori, and all than places in a plane, on a sphere or in space; of two that are alike,
        the one with fewer points.
        """
        grid = self.grid
        filled = not isinstance(grid, Sphere)
        return self.scattered, grid.ndim, filled, sum(grid.periodic), grid.size

    @property
    def scattered(self) -> bool:
        """Whether places are in a plane or in space; on a line their order is all that counts."""
        return self.between and self.grid.ndim > 1

    def as_good_as(self, other: Screened, settings: PlaceSettings) -> bool:
        """Whether it explains as much as ``other``, within the judge's standard errors."""
        mine, theirs = self.scores, other.scores
        if mine.all.fitted.shape != theirs.all.fitted.shape:
            return self.share >= other.share
        # an order on which attempts agree competes as it is: columns that are unevenly spaced on a
        # line compete as such
        order = self.grid.ndim == 1 and self.converged
        if other.between and not self.between and not order:
            return not between_points(theirs, mine, settings.judge.errors, settings.judge.complete)
        noise = None if other.between else self.noise
        return ahead(theirs.all, mine.all, other.between, noise) < settings.judge.errors


def candidate_shapes(d: int) -> Iterator[Grid]:
    """Grids that d columns can fill.

    A line and a ring of d points; rectangles up to 1:8 and boxes, with a few more points than
    columns; tori and cylinders of exactly d points.

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
    """Share of the pairs of points that are 0, 1, 2, … steps along the axes apart.

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
    """Distance between the two cumulative distributions of steps, relative to the grid's mean."""
    expected = step_distribution(grid)
    size = max(len(expected), len(steps))
    a, b = (np.cumsum(np.pad(part, (0, size - len(part)))) for part in (steps, expected))
    return float(np.abs(a - b).sum() / max(float(np.arange(len(expected)) @ expected), 1e-9))


def screen(
    X: NDArray,
    rng: np.random.Generator,
    settings: PlaceSettings,
    rows: int,
    progress: Progress = no_progress,
    spheres: bool = False,
) -> list[Screened]:
    """The grids that fit the graph of the columns of X best, filled, the best first.

    They are ordered by the share that they explain; the list is empty where there are too few
    columns.
    """
    number = (
        np.sort(rng.choice(len(X), rows, replace=False)) if len(X) > rows else np.arange(len(X))
    )
    some = np.asarray(X[number])
    read = score_rows(some, rng, settings)
    c = read.correlations()
    columns = triage(read, c, read.independent_rows(), settings).to_place
    if len(columns) < _FEWEST:
        return []
    p = partial_correlations(c[np.ix_(columns, columns)], settings.start_ridge)
    ranked = sorted(_ranked(p, settings), key=lambda pair: pair[0])
    chosen = _nearest(ranked, len(columns))
    # paths on lines are much longer than on anything wider: what is on the other side of that
    # gets one start, so that it can still show that it explains more
    linear = ranked[0][1].ndim == 1
    # the same rows are held out for each grid, and where all columns fit, the statistics of the
    # previous grid are reused
    race = _Race(read, c, columns, settings)
    quick = replace(settings, restarts=0, starts=_STARTS)
    screened: list[Screened] = []
    for count, grid in enumerate(chosen):
        progress(f"grid {grid}, candidate {count + 1} of {len(chosen)}", count / len(chosen))
        like = (grid.ndim == 1) is linear
        screened.append(race.fill(grid, quick if like else replace(quick, starts=1)))
    best = max(screened, key=_share)
    if best.share < settings.judge.complete and not read.two_valued:
        # a quick fill of the right grid may show little: the best ones are grown from their parts
        certain = False
        for first in _to_grow(screened, best, len(columns), linear):
            progress(f"grid {first.grid}, grown from its parts", 1.0)
            again = race.fill(first.grid, replace(settings, restarts=_GROWN, starts=_STARTS))
            screened[screened.index(first)] = max(first, again, key=_share)
            if again.converged and again.share >= max(map(_share, screened)):
                # a grid that columns do not fill may be a part of another one, folded
                certain = first.grid.size == len(columns)
                break
        progress("places between points", 1.0)
        for dimension in (1, 2, 3):
            free = free_places(race.halves, dimension)
            if free is not None and free.is_curve:
                break  # a line, however it is bent
            if free is not None and free.thickness > 1:
                box = _box(free, len(columns))
                accepted = free.believed(settings)
                noise = race.halves.target_noise
                screened.append(Screened(box, free.scores, accepted, True, noise))
                if dimension == 2 and not (certain or linear):
                    screened += race.lattice(free, replace(quick, starts=1))
        if spheres:
            sphere = sphere_in_pool(
                race.halves, [(one.grid.ndim, one.scores) for one in screened], settings
            )
            screened += [] if sphere is None else [Screened(*sphere, True, True)]
    return sorted(screened, key=lambda one: -one.share)


class _Race:
    """Grids filled by the same columns, judged on the same held-out rows."""

    def __init__(
        self, read: ColumnRows, c: NDArray, columns: NDArray, settings: PlaceSettings
    ) -> None:
        self.read, self.c, self.columns = read, c, columns
        self.halves = split_halves(read, columns, settings)
        self._parts = split_halves(read, columns, settings, settings.parts)

    def lattice(self, free: FreePlaces, how: PlaceSettings) -> list[Screened]:
        """A part of a lattice that lies under places of their own, if there is one."""
        c = self.c[np.ix_(self.columns, self.columns)]
        under = lattice_under(free.y, c, np.random.default_rng(0), how)
        return [] if under is None else [self.fill(under[0], how, under[1])]

    def fill(self, grid: Grid, how: PlaceSettings, given: NDArray | None = None) -> Screened:
        """A grid with the columns that have enough rows; ``given``: coordinates of all columns."""
        core, _ = core_columns(self.read, self.c, self.columns, grid, how)
        whole = np.array_equal(core, self.columns)
        mine, parts = (
            (self.halves, self._parts) if whole else (self.halves.of(core), self._parts.of(core))
        )
        if given is not None:
            given = given[np.searchsorted(self.columns, core)]
        slots = make_slots(grid)
        settled = settle_single(parts, self.c, slots, np.random.default_rng(0), how, given)
        judged = both_scores(mine, settled.slot, slots, how.prior_pairs)
        seen = settled.statistics
        converged = seen.accepted and seen.agreeing >= how.judge.agreeing
        return Screened(grid, judged, seen.accepted, noise=mine.target_noise, converged=converged)


def _to_grow(
    screened: list[Screened], best: Screened, columns: int, linear: bool
) -> list[Screened]:
    """What is worth more than a quick fill: the best of all, and, unless paths are those of a line,
    the best open rectangles, more of those where points are few. One that columns fill comes first:
    most arrays have no gaps, and the search ends with what convinces.
    """
    if linear:
        return [best]
    open_ones = [one for one in screened if one.grid.ndim == 2 and not any(one.grid.periodic)]
    open_ones.sort(key=_share, reverse=True)
    most = max(1, round(_GROWN_POINTS / columns))
    filled = [one for one in open_ones if _is_filled(one.grid, columns)]
    return list({id(one): one for one in (*filled[:1], best, *open_ones[:most])}.values())


def _box(free: FreePlaces, d: int) -> Grid:
    """The grid over places; a line with uneven steps has the points of an even one."""
    even = free.y.shape[1] == 1
    return Grid((d,)) if even else in_own_box(free, np.random.default_rng(0))[0]


def _is_filled(grid: Grid, columns: int) -> bool:
    return grid.ndim == 2 and not any(grid.periodic) and grid.size == columns


def _share(one: Screened) -> float:
    return one.share


def _nearest(ranked: list[tuple[float, Grid]], columns: int) -> list[Grid]:
    """The nearest few of each kind: lines and rings, open rectangles, closed ones, boxes; and the
    nearest rectangles that the columns fill.

    With steps of unequal length along its axes, the paths on a grid are those of a longer one.
    """
    by_kind: dict[tuple[int, bool], list[Grid]] = {}
    filled: list[Grid] = []
    for _, grid in ranked:
        key = (grid.ndim, any(grid.periodic))
        if len(by_kind.setdefault(key, [])) < _PLACED[key]:
            by_kind[key].append(grid)
        elif _is_filled(grid, columns) and len(filled) < _FILLED:
            filled.append(grid)
    return [grid for grids in by_kind.values() for grid in grids] + filled


def steps_apart(p: NDArray, grid: Grid, edge: float) -> float:
    """Distance between the path lengths in the graph of best neighbours and those on ``grid``.

    0 where the two distributions are equal. ``p`` (d, d) are partial correlations; those below
    ``edge`` are no links.
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
