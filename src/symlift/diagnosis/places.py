"""Numbers that test a given placement, without any other fit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.model import LiftedModel
from symlift.metrics.placement import placement_agreement
from symlift.search.criterion import (
    DistanceClasses,
    PairClasses,
    Slots,
    distance_classes,
    fit_lags,
    make_slots,
)
from symlift.search.moves.descent import refine
from symlift.search.moves.gaps import can_move_gaps, gaps_between, move_gaps
from symlift.search.problem import Halves
from symlift.search.rows import ColumnRows, score_rows
from symlift.search.score import (
    explained_both_ways,
    margins,
    next_to,
    partner_prediction,
    predicted_by,
)
from symlift.search.settings import PlaceSettings
from symlift.solvers.contract import Placement, Solution
from symlift.solvers.starts.scattered import agreement_of
from symlift.statistics.correlations import fisher, partial_correlations
from symlift.statistics.moments import stationarity
from symlift.statistics.selection import window_of

__all__ = [
    "Gaps",
    "PlaceMeasures",
    "PlacedRows",
    "controls",
    "gaps_of",
    "measure_places",
    "partners_beside",
    "rows_in_places",
    "share_across_pairs",
    "staying",
]

#: largest number of columns that are tested: with more, the numbers hardly change, and the check
#: must not cost more than the fit
_COLUMNS = 256
# so many columns placed nearest are neighbours, as on a plane without a grid
_NEAR = 6
_FEWEST_COLUMNS, _FEWEST_ROWS = 4, 4
# 0.5 beyond a control is as good as more, and eight controls of one placement differ by at most
# 0.17 (15 columns; 0.13 for 61 to 256)
_FAR = 0.7
# ratios of the steps along two axes that are tried for columns between points
_FACTORS = 2.0 ** (np.arange(-8, 9) / 4)


@dataclass(frozen=True)
class Gaps:
    """``stay``: share of the columns that keep their places when gaps are moved to where plain
    correlations put them; ``between``: pairs of neighbouring columns with missing points between
    them after that.
    """

    stay: float
    between: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class PlaceMeasures:
    """Numbers of a placement, from two halves of the rows.

    Parameters
    ----------
    across : float
        Of what is real in the columns' partial correlations, the part that other pairs of columns
        at the same displacement predict in the other half of the rows; 1 where they depend on
        displacement alone.
    ceiling, z : float
        The part of the variance of partial correlations that is real, and its distance from chance
        in standard deviations.
    settled : float
        Share of the columns that keep their places on the other half of the rows.
    predicted, partners : float
        The part of a column that its neighbours on the grid predict in the other half, and that as
        many of its best partners predict.
    partners_near, by_chain : float
        Of as many best partners as each column has neighbours on the grid, the share that are those
        neighbours, and the share that a chain of best partners reaches on any data.
    fitted, control : float
        The part of partial correlations that displacements explain, and the part that they explain
        after the correlations were assigned to other pairs.
    stationarity : float
        Relative distance of second, third or fourth moments of the columns' ranks from stationary
        ones, the largest: gains, offsets and wild entries do not count.
    gaps : Gaps, optional
        Where the missing points of a line or ring belong.
    with_partner : float
        Share of the columns whose best partner, by plain correlations of each half of the rows, is
        among the six columns placed nearest to it.
    """

    across: float
    ceiling: float
    z: float
    settled: float
    predicted: float
    partners: float
    partners_near: float
    by_chain: float
    fitted: float
    control: float
    stationarity: float
    gaps: Gaps | None = None
    with_partner: float = 0.0


@dataclass(frozen=True)
class PlacedRows:
    """Scores of the columns that have places (one for each slot, in a window of a large grid), and
    two halves of their rows. Columns between points have ``coordinates``, and classes of distances.
    """

    rows: ColumnRows
    column: NDArray[np.int64]
    slot: NDArray[np.int64]
    slots: Slots | DistanceClasses
    halves: Halves
    coordinates: NDArray[np.float64] | None = None

    def project(self, M: NDArray) -> NDArray[np.float64]:
        """The mean of M over pairs of columns at the same displacement: the nearest stationary
        matrix, holes or not.
        """
        index = self.slots.index[np.ix_(self.slot, self.slot)].ravel()
        count = np.maximum(np.bincount(index, minlength=self.slots.classes), 1)
        mean = np.bincount(index, M.ravel(), minlength=self.slots.classes) / count
        return np.asarray(mean[index].reshape(M.shape))

    def statistics(self, kind: str, rows: NDArray, settings: PlaceSettings) -> NDArray[np.float64]:
        """Pairwise statistics of some rows, (m, columns, columns)."""
        return self.rows.statistics(kind, settings.ridges, rows)


def rows_in_places(
    X: NDArray, solution: Solution, halves: tuple[NDArray, NDArray], most: int = _COLUMNS
) -> PlacedRows | None:
    """Rows of X as scores for the statistics of a placement; None if too few columns have places,
    or too few rows are left.

    The sign of columns with negative weight (inverted bits) is changed.
    """
    placement = solution.placement
    if placement is None or solution.evidence.carried_by == "angles":
        return None
    between = solution.evidence.carried_by == "distances"
    if between:
        column = np.flatnonzero((placement.point >= 0) & (placement.reason == ""))[:most]
    else:
        slots, column, slot = _slots_in_use(placement, most, bits=solution.model.channels == 1)
    if len(column) < _FEWEST_COLUMNS:
        return None
    rows = score_rows(X[:, column], np.random.default_rng(0), PlaceSettings(rows=len(X)))
    if not between:  # a prediction from many columns has weights of both signs
        rows = replace(rows, scores=rows.scores * _signs(solution.model, placement, column))
    first, second = (np.flatnonzero(np.isin(rows.number, half)) for half in halves)
    if min(len(first), len(second)) < _FEWEST_ROWS:
        return None
    parts = Halves(rows, np.arange(len(column)), first, second, PlaceSettings().ridges)
    if not between:
        return PlacedRows(rows, column, slot, slots, parts)
    y = in_one_unit(parts, placement.coordinates[column])
    return PlacedRows(rows, column, np.arange(len(column)), distance_classes(y), parts, y)


def _signs(model: LiftedModel, placement: Placement, column: NDArray) -> NDArray[np.float32]:
    """-1 for columns that enter their point's signal with a negative weight, (columns,)."""
    row = placement.point[column] * model.channels + (
        placement.channel[column] if model.channels > 1 else 0
    )
    weight = np.asarray(model.map[row, column]).ravel()
    # the weight of an unused column is 0 up to rounding
    return np.where(weight < -1e-9 * np.abs(weight).max(initial=0.0), -1, 1).astype(np.float32)


def in_one_unit(halves: Halves, y: NDArray) -> NDArray[np.float64]:
    """Coordinates (d, P) in steps of a grid, with one unit of length for all axes: steps differ in
    length, and correlations depend on distance.
    """
    S = fisher((halves.correlations[0] + halves.correlations[1]) / 2)[None]
    own = np.arange(len(y))
    for axis in range(1, y.shape[1]):
        tried = []
        for factor in _FACTORS:
            scaled = y.copy()
            scaled[:, axis] *= factor
            tried.append((fit_lags(S, own, distance_classes(scaled)).misfit, factor, scaled))
        y = min(tried, key=lambda one: one[:2])[2]
    return y


def gaps_of(placed: PlacedRows) -> Gaps | None:
    """Where the missing points of a line or ring belong; None where none can be moved."""
    slot, slots = placed.slot, placed.slots
    if isinstance(slots, DistanceClasses) or not can_move_gaps(slot, slots):
        return None
    moved = move_gaps(placed.halves, slot, slots, PlaceSettings().prior_pairs)
    if moved is slot:
        return Gaps(1.0)
    column = placed.column
    between = tuple((int(column[i]), int(column[j])) for i, j in gaps_between(moved, slots.grid))
    return Gaps(placement_agreement(slot, moved, slots.grid, shift_open=True), between)


def measure_places(placed: PlacedRows, rng: np.random.Generator) -> PlaceMeasures:
    """The numbers of a placement."""
    settings, slot, slots = PlaceSettings(), placed.slot, placed.slots
    S = placed.halves.partial if placed.coordinates is None else placed.halves.plain
    both = ((S[0], S[1]), (S[1], S[0]))
    _, ceiling, z = explained_both_ways((S[0], S[1]), slot, slots, settings.prior_pairs)
    beside = _beside(placed)
    predicted, partners = _prediction(placed.halves.correlations, beside, settings)
    mean = (S[0] + S[1]) / 2
    fitted = _explained(mean, slot, slots)
    return PlaceMeasures(
        across=float(np.mean([share_across_pairs(a, b, slot, slots) for a, b in both])),
        ceiling=ceiling,
        z=z,
        settled=_settled(placed, both),
        predicted=predicted,
        partners=partners,
        partners_near=partners_beside(mean, beside),
        by_chain=2 / (2 + beside.shape[1]),
        fitted=fitted,
        control=_largest_control(mean, slot, slots, fitted, rng),
        stationarity=float(
            stationarity(placed.rows.scores[rng.permutation(len(placed.rows.scores))], placed).max()
        ),
        gaps=gaps_of(placed),
        with_partner=partners_kept(placed.halves.correlations, _nearest(placed)),
    )


def _settled(placed: PlacedRows, both: tuple[tuple[NDArray, NDArray], ...]) -> float:
    """Share of the columns that keep their places on the other half of the rows; between points,
    how well the places agree that the two halves give.
    """
    if placed.coordinates is not None:
        return agreement_of(*placed.halves.correlations, placed.coordinates.shape[1])
    return float(np.mean([staying(a, b, placed.slot, placed.slots) for a, b in both]))


def _beside(placed: PlacedRows) -> NDArray[np.int64]:
    """The columns next to each column on its grid, (d, 2P), -1 for none; between points, as many
    that are nearest.
    """
    if placed.coordinates is not None:
        y = placed.coordinates
        apart = np.sum((y[:, None] - y[None]) ** 2, axis=-1)
        np.fill_diagonal(apart, np.inf)
        count = min(2 * y.shape[1], len(y) - 1)
        return np.argsort(apart, axis=1, kind="stable")[:, :count]
    grid = _with_depth(placed.slots)
    at = np.full(grid.size + 1, -1)
    at[placed.slot] = np.arange(len(placed.slot))
    return np.asarray(at[next_to(grid)[placed.slot]])


def _nearest(placed: PlacedRows, count: int = _NEAR) -> NDArray[np.int64]:
    """The columns that are placed nearest to each column, (d, count), on whatever domain."""
    apart = np.zeros((len(placed.slot), len(placed.slot)))
    if placed.coordinates is not None:
        for y in placed.coordinates.T:
            apart += (y[:, None] - y) ** 2
    else:
        slots = placed.slots
        assert isinstance(slots, Slots)  # noqa: S101 - columns between points have coordinates
        at = np.stack(np.unravel_index(slots.point[placed.slot], slots.grid.shape))
        for x, length, wraps in zip(at, slots.grid.shape, slots.grid.periodic, strict=True):
            step = np.abs(x[:, None] - x)
            apart += (np.minimum(step, length - step) if wraps else step) ** 2
    np.fill_diagonal(apart, np.inf)
    return np.argsort(apart, axis=1, kind="stable")[:, : min(count, len(apart) - 1)]


def partners_kept(correlations: Iterable[NDArray], nearest: NDArray) -> float:
    """Share of the columns whose best partner is among the ``nearest`` (d, count) columns, the mean
    over several matrices of correlations.

    >>> C = np.eye(4) + 0.5 * (np.abs(np.subtract.outer(np.arange(4), np.arange(4))) == 1)
    >>> partners_kept([C], np.array([[1], [0], [1], [2]]))
    1.0
    """
    shares = []
    for C in correlations:
        other = np.where(np.eye(len(C), dtype=bool), -np.inf, np.asarray(C, dtype=np.float64))
        shares.append(float((nearest == other.argmax(axis=1)[:, None]).any(axis=1).mean()))
    return float(np.mean(shares))


def staying(S: NDArray, held: NDArray, slot: NDArray, slots: PairClasses) -> NDArray[np.bool_]:
    """Columns that keep their slots under the statistics ``held`` and the lag means of S."""
    return (
        margins(held, slot, slots, fit_lags(S, slot, slots, 0.0, PlaceSettings().prior_pairs)) > 0
    )


def share_across_pairs(S: NDArray, held: NDArray, slot: NDArray, slots: PairClasses) -> float:
    """Share of the reproducible part of pairwise statistics that *other* pairs at the same
    displacement predict in held-out rows.

    Leaving each pair out of its own mean makes small and large grids comparable: a displacement
    that occurs once cannot be tested, and such pairs do not count.
    """
    index = slots.index[np.ix_(slot, slot)].astype(np.int64)
    pairs = np.triu(np.ones(index.shape, dtype=bool), 1)
    key = np.unique(np.minimum(index, index.T)[pairs], return_inverse=True)[1]
    count = np.bincount(key)[key]
    several = count > 1
    if several.sum() < 3:
        return 0.0
    shares = []
    for s, h in zip(S, held, strict=True):
        a, b = s[pairs], h[pairs]
        others = (np.bincount(key, a)[key] - a)[several] / (count - 1)[several]
        a, b = a[several] - a[several].mean(), b[several] - b[several].mean()
        real = float(np.mean(a * b))
        shares.append(float(np.mean((others - others.mean()) * b)) / real if real > 0 else 0.0)
    return float(np.clip(np.mean(shares), 0.0, 1.0))


def partners_beside(S: NDArray, neighbours: NDArray) -> float:
    """Share of each column's best partners, as many as it has neighbours (d, 2P), that are
    those neighbours. It only assumes that neighbours are correlated, not that they are equally
    correlated everywhere.
    """
    columns = np.arange(len(neighbours))
    near = np.zeros((len(neighbours), len(neighbours)), dtype=bool)
    i, k = np.nonzero(neighbours >= 0)
    near[i, neighbours[i, k]] = True
    near[columns, columns] = False  # an axis of one point that wraps
    count = near.sum(axis=1)
    # rounded, so that ties do not depend on the last digits
    strength = np.round(np.abs(S).mean(axis=0), 9)
    strength[columns, columns] = -1.0
    rank = np.argsort(np.argsort(-strength, axis=1, kind="stable"), axis=1, kind="stable")
    return float(np.sum(near & (rank < count[:, None])) / max(int(count.sum()), 1))


def controls(
    S: NDArray, slot: NDArray, slots: PairClasses, rng: np.random.Generator, count: int
) -> list[float]:
    """What displacements explain of S after its values were assigned to other pairs at random and
    the columns arranged again, for several draws.

    The values and the freedom to arrange columns stay the same; only the geometry is removed.
    """
    settings, pairs = PlaceSettings(), np.triu_indices(S.shape[1], 1)
    values = []
    for _ in range(count):
        dealt = rng.permutation(len(pairs[0]))
        other = np.zeros_like(S)
        for s, t in zip(S, other, strict=True):
            t[pairs] = s[pairs][dealt]
            t += t.T
        _, best = refine(
            other, rng.permutation(slot), slots, settings.widths, settings.prior_pairs, rounds=6
        )
        values.append(_explained(other, best, slots))
    return values


def _largest_control(
    S: NDArray, slot: NDArray, slots: PairClasses, fitted: float, rng: np.random.Generator
) -> float:
    """The largest of three controls, or the first where ``fitted`` is so far beyond it that the
    others cannot change any test or the confidence.
    """
    first = controls(S, slot, slots, rng, 1)
    return max(first if fitted > first[0] + _FAR else first + controls(S, slot, slots, rng, 2))


def _explained(S: NDArray, slot: NDArray, slots: PairClasses) -> float:
    pairs = np.triu_indices(S.shape[1], 1)
    total = np.array([np.mean(s[pairs] ** 2) for s in S])
    left = fit_lags(S, slot, slots, 0.0, PlaceSettings().prior_pairs).v
    return float(np.clip(np.mean(1 - left / np.maximum(total, 1e-9)), 0, 1))


def _slots_in_use(
    placement: Placement, most: int, bits: bool
) -> tuple[Slots, NDArray[np.int64], NDArray[np.int64]]:
    """Slots of a window of the grid, the columns there (one for each slot), and their slots.

    Of ``bits`` only the heaviest third is used: the lowest ones are noise, whose places mean
    nothing.
    """
    levels = int(placement.channel.max(initial=0)) + 1
    lowest = levels - max(1, levels // 3) if bits else 0
    depth = levels - lowest
    points, window = window_of(placement.lattice, max(4, most // depth))
    inside = np.full(placement.grid.size + 1, -1)  # the last is for point -1
    inside[points] = np.arange(len(points))
    at = inside[placement.point]
    slot = np.where(
        (at >= 0) & (placement.channel >= lowest), at * depth + placement.channel - lowest, -1
    )
    used = np.flatnonzero((slot >= 0) & (placement.reason == ""))
    _, first = np.unique(slot[used], return_index=True)
    column = used[np.sort(first)]
    return make_slots(window, depth, matched=depth > 1), column, slot[column]


def _with_depth(slots: Slots | DistanceClasses) -> Grid:
    """The grid, and the columns of a point as one axis more where there are several."""
    assert isinstance(slots, Slots)  # noqa: S101 - columns between points have no grid
    if slots.depth == 1:
        return slots.grid
    return Grid((*slots.grid.shape, slots.depth), (*slots.grid.periodic, False))


def _prediction(
    c: tuple[NDArray, NDArray], neighbours: NDArray, settings: PlaceSettings
) -> tuple[float, float]:
    """Part of a column's variance that its neighbours predict in the other half, and that its best
    partners do.
    """
    count = min(neighbours.shape[1], len(neighbours) - 1)
    near, best = [], []
    for a, b in (c, c[::-1]):
        near.append(predicted_by(a, b, neighbours).mean())
        best.append(
            partner_prediction(
                np.abs(partial_correlations(a, settings.start_ridge)), a, b, count
            ).mean()
        )
    return float(1 - np.exp(np.mean(near))), float(1 - np.exp(np.mean(best)))
