"""Propose a grid for vectors whose grid is unknown (``grid="auto"``)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from symlift.core.domain import Domain, Scattered, domain_words
from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.core.rows import has_gaps
from symlift.core.sphere import Sphere
from symlift.search.settings import PlaceSettings
from symlift.solvers.contract import GridCandidate, Progress, no_progress
from symlift.solvers.fast.arrange import arrange, explained_held_out
from symlift.solvers.fast.components import energy_similarities, independent_components
from symlift.solvers.fast.multiplicities import ring_or_torus
from symlift.solvers.fast.place.screen import Screened, screen
from symlift.solvers.fast.settings import DEFAULT, FastSettings
from symlift.solvers.sphere.proposal import field_on_sphere

__all__ = ["Proposal", "candidate_grids", "propose_grid"]


def candidate_grids(d: int, settings: FastSettings = DEFAULT) -> Iterator[Grid]:
    """Line and ring of d points, and rectangles and boxes of d points that are not too elongated,
    open or closed.

    >>> [str(g) for g in candidate_grids(12) if not any(g.periodic)]
    ['12', '2x6', '3x4', '2x2x3']
    """
    yield Grid((d,))
    if d > 2:
        yield Grid((d,), True)
    for a in range(2, math.isqrt(d) + 1):
        if d % a == 0 and d // a <= settings.max_aspect * a:
            yield from (
                Grid((a, d // a), flags)
                for flags in ((False, False), (True, True), (False, True), (True, False))
            )
    for a in range(2, round(d ** (1 / 3)) + 1):
        for b in range(a, math.isqrt(d // a) + 1):
            if d % (a * b) == 0 and b <= d // (a * b) <= settings.max_aspect * a:
                yield Grid((a, b, d // (a * b)))


# components of fewer columns, or from fewer rows per column, carry no information on a grid
_FEWEST, _ROWS_PER_COLUMN = 4, 4
# axes of places in space
_SPACE = 3
# confidence below which the runner-up is named
_UNSURE = 0.65
# confidence in a ring or torus whose multiplicities held-out rows show at five standard errors
_PATTERN = 0.9


@dataclass(frozen=True)
class Proposal:
    """A domain with its confidence, and all that were compared: itself, then the others, the best
    first.
    """

    grid: Domain
    candidates: tuple[GridCandidate, ...]

    @property
    def runner_up(self) -> Domain | None:
        """The best of the others."""
        return self.candidates[1].domain if len(self.candidates) > 1 else None

    @property
    def doubt(self) -> str:
        """What to report if the runner-up does nearly as well; empty otherwise."""
        other = self.runner_up
        if other is None or (self.grid.confidence or 0.0) >= _UNSURE:
            return ""
        first, second = (one.share for one in self.candidates[:2])
        return (
            f"the {domain_words(self.grid)} explains {100 * first:.0f} % of the reproducible"
            f" correlation, the {domain_words(other)}, {100 * second:.0f} %: give grid= if you know"
            " which it is"
        )


def _proposal(
    chosen: Grid | Sphere,
    confidence: float,
    shares: Sequence[tuple[Grid | Sphere, float, bool]],
    scattered: bool = False,
) -> Proposal:
    """``shares``: each grid, what it explains, and whether it is only the box of places."""
    mine = [one for one in shares if one[0] == chosen and one[2] == scattered]
    others = sorted((one for one in shares if one not in mine), key=lambda one: -one[1])
    candidates = tuple(
        GridCandidate((), (), round(float(share), 4), sphere=True)
        if isinstance(grid, Sphere)
        else GridCandidate(grid.shape, grid.periodic, round(float(share), 4), free)
        for grid, share, free in [*mine, *others]
    )
    sure = round(float(np.clip(confidence, 0, 1)), 3)
    if isinstance(chosen, Sphere):
        return Proposal(Sphere(chosen.degree, confidence=sure), candidates)
    domain = Grid(chosen.shape, chosen.periodic, confidence=sure)
    return Proposal(Scattered(chosen.ndim, confidence=sure) if scattered else domain, candidates)


def propose_grid(
    X: NDArray,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    spheres: tuple[bool, bool] = (False, False),
    settings: FastSettings = DEFAULT,
) -> Proposal | None:
    """The grid that explains pairwise statistics of held-out rows best, with its confidence; None
    if it cannot be determined.

    Columns themselves are tried first (shuffled pixels), then the energies of independent
    components (dense mixing). ``spheres``: whether columns may be points of a sphere, and whether
    fields on one may be behind a rotation.
    """
    # products of small matrices become slower with a second thread
    with threadpool_limits(limits=1):
        screened = screen(X, rng, settings.place, settings.propose_rows, progress, spheres[0])
        best = _among_columns(screened, settings.place)
        if best is not None and isinstance(best.grid, Grid):
            return best
        # mixtures of few waves are points of a space, too, on which their correlations depend
        closed = _closed(X, rng, settings)
        if closed is not None:
            others = [(one.grid, one.share, one.scattered) for one in screened]
            others = [one for one in others if one[0] != closed]
            return _proposal(closed, _PATTERN, [(closed, _PATTERN, False), *others])
        return best or _behind_a_mixing(X, screened, rng, progress, spheres[1], settings)


def _closed(X: NDArray, rng: np.random.Generator, settings: FastSettings) -> Grid | None:
    """The ring or torus whose multiplicities the variances of X have."""
    if not _can_be_mixed(X, settings):
        return None
    rows = _some_rows(X, rng, settings)
    grids = [grid for grid in candidate_grids(X.shape[1], settings) if all(grid.periodic)]
    return ring_or_torus(rows[::2], rows[1::2], grids)


def _can_be_mixed(X: NDArray, settings: FastSettings) -> bool:
    """Whether there are rows enough, without gaps, and few enough columns."""
    n, d = X.shape
    return (
        not has_gaps(X) and n >= _ROWS_PER_COLUMN * d and _FEWEST <= d <= settings.propose_columns
    )


def _some_rows(X: NDArray, rng: np.random.Generator, settings: FastSettings) -> NDArray[np.float64]:
    """Rows of X in random order, less their mean."""
    index = rng.permutation(len(X))[: 2 * settings.propose_rows]
    rows = np.asarray(X[np.sort(index)], dtype=np.float64)[np.argsort(np.argsort(index))]
    return np.asarray(rows - rows.mean(axis=0))


def _behind_a_mixing(
    X: NDArray,
    screened: list[Screened],
    rng: np.random.Generator,
    progress: Progress,
    spheres: bool,
    settings: FastSettings,
) -> Proposal | None:
    """The domain of independent components of X, or the best of what columns gave, in doubt."""
    doubtful = _doubtful(screened, settings.place)
    if not _can_be_mixed(X, settings):
        return doubtful
    rows = _some_rows(X, rng, settings)
    field = field_on_sphere(rows, progress) if spheres else None
    if field is not None:
        return _proposal(field[0], field[1], [(*field, False)])
    fit, held = rows[::2], rows[1::2]
    U, _ = independent_components(fit, rng)
    mixed = _best(
        energy_similarities(fit @ U.T), energy_similarities(held @ U.T), rng, progress, settings
    )
    return mixed or doubtful


def _doubtful(screened: list[Screened], settings: PlaceSettings) -> Proposal | None:
    """The simplest domain that explains about as much as any, where none is believed; None where
    none explains more than mixtures are explained by chance.
    """
    able = [
        one
        for one in screened
        if settings.judge.explains_enough(one.share)
        and one.scores.all.significance > settings.judge.significant
    ]
    if not able:
        return None
    chosen = min((one for one in able if one.as_good_as(able[0], settings)), key=_simplest)
    return _proposal(
        chosen.grid, 0.0, [(one.grid, one.share, one.scattered) for one in screened],
        chosen.scattered,
    )  # fmt: skip


def _simplest(one: Screened) -> tuple[bool, int, bool, int, int]:
    return one.simplicity


def _among_columns(screened: list[Screened], settings: PlaceSettings) -> Proposal | None:
    """The simplest grid that explains the columns about as well as any, and how far it is ahead of
    the next one.
    """
    believed = _of_fewest_dimensions([one for one in screened if one.accepted], settings)
    if not believed:
        return None
    leader = screened[0]
    if not leader.accepted and not any(one.between for one in believed):
        return None
    # nothing simpler is believed next to places that explain clearly more, believed or not
    unsure = leader.scattered and not leader.accepted
    if unsure and not any(one.as_good_as(leader, settings) for one in believed):
        return None
    # places of their own are measured against each grid, whichever explains more in all
    free, grids = ([one for one in believed if one.between is kind] for kind in (True, False))
    best = believed[0]
    if free and not any(grid.as_good_as(one, settings) for grid in grids for one in free):
        best = free[0]
    able = [one for one in believed if one.as_good_as(best, settings)]
    chosen = min(able, key=_simplest)
    # what is less simple and explains less is no reason for doubt: a grid folded once more has
    # finer displacements, and always explains nearly as much, as does space around a sphere
    rivals = (
        one.share
        for one in screened
        if (one.share > chosen.share or one.simplicity < chosen.simplicity)
        and not (isinstance(chosen.grid, Sphere) and one.between and one.grid.ndim == _SPACE)
    )
    other = max(rivals, default=0.0)
    ahead = (chosen.share - max(other, 0.0)) / max(1 - max(other, 0.0), 1e-9)
    return _proposal(
        chosen.grid,
        min(chosen.share, 0.5 + ahead),
        [(one.grid, one.share, one.scattered) for one in screened],
        chosen.scattered,
    )


def _of_fewest_dimensions(believed: list[Screened], settings: PlaceSettings) -> list[Screened]:
    """Without places in more dimensions than a grid that explains as much as places in its own.

    A further dimension always explains something where a field is uneven (reanalysis on 17x25
    points: 0.61 in space, 0.60 in a plane, 0.58 on the grid). That the grid has come back from a
    part of it distinguishes it from a fold.
    """
    enough = [
        grid.grid.ndim
        for grid in believed
        if not grid.between and grid.converged and grid.grid.ndim > 1
        for free in believed
        if free.between and free.grid.ndim == grid.grid.ndim and grid.as_good_as(free, settings)
    ]
    most = min(enough, default=None)
    if most is None:
        return believed
    # a sphere is a surface, and is believed only if it is ahead of every plane
    return [
        one
        for one in believed
        if not one.between or isinstance(one.grid, Sphere) or one.grid.ndim <= most
    ]


def _best(
    S: NDArray,
    S_held: NDArray,
    rng: np.random.Generator,
    progress: Progress,
    settings: FastSettings,
) -> Proposal | None:
    """The simplest grid that explains the statistics about as well as any.

    Folding a line into rows gives a grid whose displacements are finer than the line's, so it
    explains no less: of grids that do equally well, the one with the fewest displacements is taken.
    """
    explained: list[tuple[float, LagClasses]] = []
    candidates = list(candidate_grids(S.shape[1], settings))
    for number, grid in enumerate(candidates):
        progress(
            f"grid {grid}, candidate {number + 1} of {len(candidates)}", number / len(candidates)
        )
        lags = LagClasses(grid)
        order, _ = arrange(S, grid, rng, settings)
        explained.append((explained_held_out(S, S_held, order, lags), lags))
    most = max(value for value, _ in explained)
    able = [pair for pair in explained if 1 - pair[0] <= settings.as_good * (1 - most) + 0.005]
    value, lags = min(able, key=lambda pair: pair[1].count.size)
    simpler = max((v for v, other in explained if other.count.size < lags.count.size), default=0.0)
    # of what simpler grids leave unexplained, how much does this one explain?
    margin = (value - max(simpler, 0.0)) / max(1 - max(simpler, 0.0), 1e-9)
    if value < settings.enough or margin < settings.margin:
        return None
    return _proposal(
        lags.grid, min(value, margin), [(other.grid, v, False) for v, other in explained]
    )
