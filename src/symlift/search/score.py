"""Judge a placement on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.search.criterion import LagModel, PairClasses, fit_lags
from symlift.search.moves.descent import changes, costs
from symlift.search.problem import Halves
from symlift.search.row_noise import NoiseOfSums
from symlift.statistics.neighbours import NearPairs, predicted_from

__all__ = [
    "BothScores",
    "PlaceScore",
    "ahead",
    "between_points",
    "both_scores",
    "explained_both_ways",
    "explained_elsewhere",
    "held_out_score",
    "links",
    "margins",
    "neighbour_prediction",
    "next_to",
    "partner_prediction",
    "predicted_by",
    "score_both_ways",
]


@dataclass(frozen=True)
class PlaceScore:
    """What a placement explains of statistics of rows that nothing else has used.

    ``fitted`` (m, d, d) are the weights whose product with the held-out statistics is
    ``explained``, ``columns`` (d,) the part of it that each column has, ``noise`` (m,) the sampling
    variance of those statistics, ``ceiling`` the part of them that is real. All are sums over the
    statistics, so that one that is mostly noise counts little.
    """

    explained: float
    ceiling: float
    fitted: NDArray[np.float64]
    columns: NDArray[np.float64]
    noise: NDArray[np.float64]

    @property
    def share(self) -> float:
        """The part of what is real that is explained."""
        return self.explained / self.ceiling if self.ceiling > 0 else 0.0

    @property
    def significance(self) -> float:
        """How far the part that is real is beyond chance, in standard deviations."""
        statistics, d = len(self.noise), len(self.columns)
        return self.ceiling / statistics * float(np.sqrt(d * (d - 1) / 2))


def held_out_score(
    S: NDArray, held: NDArray, slot: NDArray, slots: PairClasses, prior: float = 4.0
) -> PlaceScore:
    """The squared correlation of held-out statistics (m, d, d) with the means of their classes.

    The means come from other rows, ``S``. A class with few pairs has a noisy mean, which lowers the
    correlation: a domain with more classes has to earn them.
    """
    pairs = max(len(slot) * (len(slot) - 1), 1)
    model = fit_lags(S, slot, slots, 0.0, prior)
    index = slots.index[np.ix_(slot, slot)]
    explained, ceiling, fitted, noise = 0.0, 0.0, [], []
    for s, h, k in zip(S, held, model.K, strict=True):
        mean = k[index]
        np.fill_diagonal(mean, 0.0)
        mean -= mean.sum() / pairs
        np.fill_diagonal(mean, 0.0)
        size = max(float(np.vdot(h, h)), 1e-12)
        along = max(float(np.vdot(mean, h)), 0.0)
        mean *= along / (max(float(np.vdot(mean, mean)), 1e-12) * size)
        real = max(float(np.vdot(s, h)), 0.0) / size
        explained += float(np.vdot(mean, h))
        ceiling += real
        fitted.append(mean)
        noise.append(size / pairs * max(1 - real, 0.0))
    weights = np.stack(fitted)
    columns = np.einsum("mij,mij->i", weights, held)
    return PlaceScore(explained, ceiling, weights, columns, np.array(noise))


def ahead(
    one: PlaceScore,
    other: PlaceScore,
    over_columns: bool = False,
    noise: NoiseOfSums | None = None,
) -> float:
    """By how many standard errors ``one`` explains more of the same columns than ``other``.

    Paired: sampling noise counts only where the two predict different values. ``over_columns``: the
    lead must not come from a few columns either, so that its scatter over them (jackknife) counts,
    too. Places of their own can be bent until they explain what no domain does: with many rows that
    is far beyond noise, and comes from where the field is uneven. ``noise``: how sums over pairs
    vary from row to row; without it, noise counts as independent between pairs, which makes
    differences look up to four times as sure as they are where all columns go along (19
    chromosomes of 544 rows: two were folded into narrow grids).
    """
    apart = one.fitted - other.fitted
    if noise is not None:
        variance = noise.variance(apart)
    else:
        # every pair of columns is there twice, with the same noise
        variance = 2 * float(np.einsum("mij,mij,m->", apart, apart, one.noise))
    if over_columns:
        # a column that is left out takes its pairs out of the sum twice
        lead = one.columns - other.columns
        variance += 4 * len(lead) * float(lead.var())
    return (one.explained - other.explained) / max(float(np.sqrt(variance)), 1e-12)


@dataclass(frozen=True)
class BothScores:
    """What a placement explains of plain and partial correlations together, and of plain ones."""

    all: PlaceScore
    plain: PlaceScore


def both_scores(
    halves: Halves, slot: NDArray, slots: PairClasses, prior: float = 4.0
) -> BothScores:
    """Both scores of a placement of the columns of ``halves``."""
    return BothScores(
        held_out_score(*halves.target, slot, slots, prior),
        held_out_score(*halves.plain, slot, slots, prior),
    )


def between_points(free: BothScores, grid: BothScores, errors: float, complete: float) -> bool:
    """Whether places of their own explain columns better than points of a grid do.

    Either in all statistics, or, if not less in those, in plain correlations of which distances
    explain nearly all that is real: partial correlations depend on how many columns are near, not
    on distances alone.
    """
    if ahead(free.all, grid.all, over_columns=True) >= errors:
        return True
    whole = free.plain.share >= complete and free.all.explained >= grid.all.explained
    return whole and ahead(free.plain, grid.plain, over_columns=True) >= errors


def explained_elsewhere(
    S: NDArray, held: NDArray, slot: NDArray, slots: PairClasses, prior: float
) -> tuple[float, float, float]:
    """Share of the variance of held-out statistics that the fitted lag means explain.

    Returns that share, the share that is not sampling noise (the ceiling), and the z score of the
    latter. The noise of fitted and held-out statistics is independent, so covariances between the
    two contain only what is real. Scales are not compared, because all partial correlations are
    smaller when estimated from fewer rows.
    """
    model = fit_lags(S, slot, slots, 0.0, prior)
    index = slots.index[np.ix_(slot, slot)]
    pairs = np.triu(np.ones(index.shape, dtype=bool), 1)
    measured = []
    for s, h, k in zip(S, held, model.K, strict=True):
        a, b, m = s[pairs], h[pairs], k[index][pairs]
        a, b, m = a - a.mean(), b - b.mean(), m - m.mean()
        variance = max(float(np.mean(b**2)), 1e-12)
        real = float(np.mean(a * b))
        z = real / np.sqrt(max(float(np.mean(a**2)), 1e-12) * variance) * np.sqrt(len(a))
        measured.append((float(np.mean(m * b)) / variance, real / variance, z))
    explained, ceiling, z = np.mean(measured, axis=0)
    return float(explained), float(ceiling), float(z)


def explained_both_ways(
    pair: tuple[NDArray, NDArray], slot: NDArray, slots: PairClasses, prior: float
) -> tuple[float, float, float]:
    """`explained_elsewhere` of two parts of the rows, each judged by the other, in the mean."""
    first, second = pair
    both = ((first, second), (second, first))
    explained, ceiling, z = np.mean(
        [explained_elsewhere(a, b, slot, slots, prior) for a, b in both], axis=0
    )
    return float(explained), float(ceiling), float(z)


def score_both_ways(
    pair: tuple[NDArray, NDArray], slot: NDArray, slots: PairClasses, prior: float = 4.0
) -> PlaceScore:
    """`held_out_score` of two parts of the rows, each judged by the other, in one."""
    first, second = pair
    both = [held_out_score(a, b, slot, slots, prior) for a, b in ((first, second), (second, first))]
    return PlaceScore(
        sum(one.explained for one in both),
        sum(one.ceiling for one in both),
        np.concatenate([one.fitted for one in both]),
        np.sum([one.columns for one in both], axis=0),
        np.concatenate([one.noise for one in both]),
    )


def neighbour_prediction(
    c: NDArray, c_held: NDArray, point: NDArray, grid: Grid
) -> NDArray[np.float64]:
    """Log of the held-out residual variance of each column, predicted from its grid neighbours.

    Neither statistic was fitted to this criterion: it only assumes that neighbours are similar.
    """
    at = np.full(grid.size + 1, -1)
    at[point] = np.arange(len(point))
    return predicted_by(c, c_held, at[next_to(grid)[point]])


def partner_prediction(p: NDArray, c: NDArray, c_held: NDArray, count: int) -> NDArray[np.float64]:
    """The same from the ``count`` columns of largest partial correlation p.

    No placement can predict much better than that.
    """
    return predicted_by(c, c_held, np.argpartition(-p, count - 1, axis=1)[:, :count])


def predicted_by(c: NDArray, c_held: NDArray, neighbours: NDArray) -> NDArray[np.float64]:
    """Log of the held-out residual variance of each column given ``neighbours`` (d, k).

    -1 stands for no neighbour.
    """
    j = np.maximum(neighbours, 0)
    mine, first, second = np.arange(len(j))[:, None], j[:, :, None], j[:, None, :]
    return predicted_from(
        c[first, second], c[mine, j], c_held[first, second], c_held[mine, j], neighbours >= 0
    )


@lru_cache(maxsize=8)
def next_to(grid: Grid) -> NDArray[np.int64]:
    """The neighbouring points of each point, (size, 2P); ``size`` where there is none."""
    index, columns = grid.indices(), []
    for axis in range(grid.ndim):
        for by in (-1, 1):
            to = index.copy()
            to[:, axis] += by
            wraps = grid.periodic[axis]
            inside = (
                np.ones(len(to), dtype=bool)
                if wraps
                else (to[:, axis] >= 0) & (to[:, axis] < grid.shape[axis])
            )
            flat = np.full(len(to), grid.size)
            flat[inside] = grid.flat(to[inside])
            columns.append(flat)
    neighbours = np.stack(columns, axis=1)
    neighbours.flags.writeable = False  # shared by all callers
    return neighbours


def links(p: NDArray | NearPairs, point: NDArray, grid: Grid) -> NDArray[np.float64]:
    """Sum of each column's partial correlations with its neighbours on the grid."""
    at = np.full(grid.size + 1, -1)
    at[point[point >= 0]] = np.flatnonzero(point >= 0)
    near = np.where((point >= 0)[:, None], at[next_to(grid)[np.maximum(point, 0)]], -1)
    return np.where(near >= 0, p[np.arange(len(p))[:, None], np.maximum(near, 0)], 0.0).sum(axis=1)


def margins(S: NDArray, slot: NDArray, slots: PairClasses, model: LagModel) -> NDArray[np.float64]:
    """Increase of the cost on held-out statistics S if each column moves to its best other slot."""
    change = changes(costs(S, slot, slots, model), slot)
    change[np.arange(len(slot)), slot] = np.inf
    return change.min(axis=1)
