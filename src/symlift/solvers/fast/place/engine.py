"""Assign columns to grid points: the entry point of the placement engine."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from symlift.core.grid import Grid
from symlift.core.rows import varying
from symlift.search.criterion import Slots, distance_classes, fit_lags, make_slots
from symlift.search.growth import alike
from symlift.search.moves.blocks import PRIORS, search_slips
from symlift.search.moves.gaps import move_gaps
from symlift.search.problem import Halves, split_halves
from symlift.search.rows import ColumnRows
from symlift.search.schedule import search
from symlift.search.score import (
    between_points,
    both_scores,
    explained_elsewhere,
    partner_prediction,
)
from symlift.search.settings import PlaceSettings
from symlift.search.triage import Triage, sort_columns
from symlift.solvers.contract import Progress, no_progress
from symlift.solvers.fast.place.anywhere import between
from symlift.solvers.fast.place.contract import Placed, PlacementStatistics
from symlift.solvers.fast.place.finish import Settled, as_numbers, finish
from symlift.solvers.fast.place.single import is_local, judged_result, settle_single
from symlift.solvers.fast.place.wide import place_wide
from symlift.solvers.starts.portfolio import starts_from
from symlift.solvers.starts.scattered import scatter
from symlift.solvers.starts.several import polarities, search_channels
from symlift.statistics.correlations import (
    fisher,
    kurtosis_and_skewness,
    partial_statistics,
)

__all__ = ["core_columns", "place_columns"]

Channels = int | str
# share of the occupied points that must have all channels for a result with several channels
_FULL = 0.8


def place_columns(
    X: ArrayLike,
    grid: Grid,
    rng: np.random.Generator,
    *,
    channels: Channels = "auto",
    settings: PlaceSettings | None = None,
    progress: Progress = no_progress,
) -> Placed:
    """Place each column of X (n, d) on ``grid``, and derive the lifting map.

    The numbers of columns and points may differ. NaN are left out pair by pair; infinity is
    refused.
    """
    settings = settings or PlaceSettings()
    raw = np.asarray(X)
    alive = varying(raw) if raw.shape[1] > settings.dense else None
    if alive is not None and alive.sum() > settings.dense:
        settings.check_channels(int(alive.sum()), channels)
        return place_wide(raw, alive, grid, rng, settings, progress, channels)
    rows, c, sorted_out = sort_columns(raw, rng, settings, progress)
    sign = np.ones(raw.shape[1])
    # bits, some of which may be inverted
    if rows.two_valued and len(sorted_out.to_place) > 1.5 * grid.size:
        columns = sorted_out.to_place
        sign[columns] = polarities(c[np.ix_(columns, columns)], grid)
        rows, c = (
            replace(rows, scores=rows.scores * sign.astype(np.float32)),
            c * sign * sign[:, None],
        )
    settled = _settle(rows, c, sorted_out, grid, rng, settings, channels)
    progress("fill", 0.9)
    placed = finish(raw, c, sorted_out, settled)
    return (
        as_numbers(placed, rows, c, raw, sign)
        if rows.two_valued and placed.n_channels > 1
        else placed
    )


def _settle(
    rows: ColumnRows,
    c: NDArray,
    out: Triage,
    grid: Grid,
    rng: np.random.Generator,
    settings: PlaceSettings,
    channels: Channels,
) -> Settled:
    """Find the slots of the columns that triage did not set aside."""
    if len(out.to_place) < _least(grid):
        nothing = PlacementStatistics("lags", 0.0, 0.0, False, 0.0, 0, 0)
        few = out.to_place[: grid.size]
        return Settled(make_slots(grid), few, np.arange(len(few)), np.zeros(len(few)), nothing, {})
    halves = split_halves(rows, out.to_place, settings, settings.parts)
    depth = _depth(len(out.to_place), grid, channels, rows.two_valued)
    if depth > 1:
        several = _settle_channels(
            split_halves(rows, out.to_place, settings),
            c,
            out,
            make_slots(grid, depth, matched=True),
            rng,
            settings,
        )
        if several.statistics.accepted or channels != "auto":
            return several
    core, late = core_columns(rows, c, out.to_place, grid, settings)
    slots, inner = make_slots(grid), halves.of(core)
    single = settle_single(inner, c, slots, rng, settings)
    if single.trace["share"] < settings.judge.complete and not rows.two_valued:
        # one column for each point: on a line, a field that varies along it and columns that are
        # unevenly spaced have the same correlations, so that the grid asked for decides; on other
        # grids it does where attempts agree, which they do not on a wrong one
        seen = single.statistics
        agreed = grid.ndim == 1 or (seen.accepted and seen.agreeing > 1)
        scattered = None
        if not (agreed and grid.size in (len(c), len(out.to_place))):
            held = split_halves(rows, out.to_place, settings)
            scattered = _settle_scattered(single, held, rng, settings)
        if scattered is not None:
            return scattered
        single = _settle_slips(single, inner, c, rng, settings)
    # partial correlations, by which most arrangements are found, close the gaps of a line
    moved = move_gaps(inner, single.slot, slots, settings.prior_pairs)
    single = replace(single, slot=moved)
    return _with_late(single, rows, late, settings)


def _least(grid: Grid) -> int:
    """The fewest columns for an embedding: a periodic axis needs two dimensions."""
    return grid.ndim + sum(grid.periodic) + 2


def _depth(columns: int, grid: Grid, channels: Channels, two_valued: bool) -> int:
    """Columns per point: ``channels``, or the number of columns divided by that of points.

    For bits this is rounded up, because some low bits are noise and set aside.
    """
    if channels != "auto":
        return int(channels)
    share = columns / grid.size
    return max(1, math.ceil(share - 0.05) if two_valued and share > 1.5 else round(share))


def _settle_channels(
    halves: Halves,
    c: NDArray,
    out: Triage,
    slots: Slots,
    rng: np.random.Generator,
    settings: PlaceSettings,
) -> Settled:
    """Place several columns per point."""
    rows, halves = halves.rows, halves.of(_strongest(c, out.to_place, slots.size))
    S, S_held = halves.partial
    z, present = rows.take(halves.fit, halves.columns)
    result = search_channels(z, present, S, S_held, slots, rng, settings, rows.two_valued)
    full = np.bincount(result.slot // slots.depth, minlength=slots.grid.size)
    whole = rows.two_valued or float(np.mean(full[full > 0] == slots.depth)) >= _FULL
    return judged_result("partial", halves, result, S, slots, settings, whole)


def _settle_scattered(
    settled: Settled, halves: Halves, rng: np.random.Generator, settings: PlaceSettings
) -> Settled | None:
    """Columns at places between the grid points, where held-out rows prefer that, else None."""
    grid, columns = settled.slots.grid, halves.columns
    scattered = scatter(halves, grid, rng)
    if scattered is None:
        return None
    at = np.searchsorted(columns, settled.placed)
    mine = halves if len(at) == len(columns) else halves.of(settled.placed)
    on_grid = both_scores(mine, settled.slot, settled.slots, settings.prior_pairs)
    places = scattered.places
    free = places.scores
    if len(at) < len(columns):
        free = both_scores(mine, np.arange(len(at)), distance_classes(places.y[at]))
    # of two that do equally well the grid is simpler, unless only the other one is believed
    only = places.believed(settings) and not settled.statistics.accepted
    wanted = 0.0 if only else settings.judge.errors
    if not between_points(free, on_grid, wanted, settings.judge.complete):
        return None
    return between(settled.slots, columns, scattered, settings, free)


def _settle_slips(
    settled: Settled,
    halves: Halves,
    c: NDArray,
    rng: np.random.Generator,
    settings: PlaceSettings,
) -> Settled:
    """Search small fields that are far from stationary again, by near displacements."""
    slots = settled.slots
    S, S_held = (fisher(c)[None] for c in halves.correlations)
    plain, real, _ = explained_elsewhere(S, S_held, settled.slot, slots, settings.prior_pairs)
    promising = (
        settings.judge.hopeless < settled.trace["share"] and settled.statistics.carried == "partial"
    )
    if (
        not promising
        or settings.judge.is_convinced(plain, real)
        or slots.size > settings.slip_slots
        or all(
            slots.grid.periodic
        )  # without ends, a field on it that is not stationary has no place
        or not _predictable(halves, slots.grid, settings)
    ):
        return settled
    own = c[np.ix_(halves.columns, halves.columns)]
    S = partial_statistics(own, settings.ridges)
    starts = [settled.slot]
    for prior in PRIORS:
        quick = replace(settings, prior_pairs=prior, restarts=settings.restarts // 5)
        coordinates = starts_from(own, slots.grid, rng, settings)
        starts.append(search(S, slots, coordinates, rng, quick).slot)
    result = search_slips(S, slots, starts, rng)
    whole = is_local(halves, result.slot, slots, settings)
    agreement = settled.statistics.agreement
    if agreement is not None:
        agreement *= alike(result.slot, settled.slot, slots.grid)
    return judged_result("partial", halves, result, S, slots, settings, whole, agreement)


def _predictable(halves: Halves, grid: Grid, settings: PlaceSettings) -> bool:
    """Whether any arrangement could be local: a few partial correlations are large, and the
    partners of the largest predict columns as well as neighbours would have to.
    """
    partial = halves.partial[0][0]
    if kurtosis_and_skewness(partial)[0] < settings.few_partners:
        return False
    partners = partner_prediction(partial, *halves.correlations, 2 * grid.ndim)
    return settings.judge.is_local(float(1 - np.exp(partners.mean())))


def _with_late(
    settled: Settled, rows: ColumnRows, late: NDArray, settings: PlaceSettings
) -> Settled:
    """Add the columns that few rows support, in the slots that are still free."""
    if not len(late) or settled.slots.size == len(settled.placed):
        return settled
    kind = settled.statistics.carried
    columns, at = _attach(kind, rows, settled.placed, late, settled.slot, settled.slots, settings)
    unsure = np.full(len(columns), 0.3 * float(np.median(settled.confidence)))
    return replace(
        settled,
        placed=np.r_[settled.placed, columns],
        slot=np.r_[settled.slot, at],
        confidence=np.r_[settled.confidence, unsure],
    )


def core_columns(
    rows: ColumnRows, c: NDArray, columns: NDArray, grid: Grid, settings: PlaceSettings
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Columns to place first, and columns that few rows support, to place afterwards.

    The latter are, for example, pixels that are hardly ever lit. The number of rows that support a
    column is n over its kurtosis.
    """
    square = rows.scores[:, columns] ** 2
    fourth = np.einsum("ij,ij->j", square, square, dtype=np.float64) / len(square)
    worth = len(rows.scores) / np.maximum(fourth, 1e-9)
    thin = worth < min(settings.thin_rows, 0.1 * float(np.median(worth)) if len(worth) else 0.0)
    core, late = _strongest(c, columns[~thin], grid.size), columns[thin]
    return (
        (core, late)
        if len(core) >= _least(grid)
        else (_strongest(c, columns, grid.size), columns[:0])
    )


def _strongest(c: NDArray, columns: NDArray, room: int) -> NDArray[np.int64]:
    """The ``room`` columns with the strongest correlations, if there are more columns than that."""
    if len(columns) <= room:
        return columns
    size = np.abs(c[np.ix_(columns, columns)]) - np.eye(len(columns))
    best = np.argsort(-np.sort(size, axis=1)[:, -3:].mean(axis=1), kind="stable")[:room]
    return np.asarray(columns[np.sort(best)])


def _attach(
    kind: str,
    rows: ColumnRows,
    core: NDArray,
    late: NDArray,
    slot: NDArray,
    slots: Slots,
    settings: PlaceSettings,
) -> tuple[NDArray, NDArray]:
    """Late columns in the free slots where their correlations with the placed columns fit best."""
    both = np.r_[core, late]
    S = rows.statistics(kind, settings.ridges, None, both)
    k = len(core)
    model = fit_lags(S[:, :k, :k], slot, slots, 0.0, settings.prior_pairs)
    free = np.setdiff1d(np.arange(slots.size), slot)
    cost = np.zeros((len(late), len(free)))
    for s, mean, v in zip(S, model.K, model.v, strict=True):
        expected = mean[slots.index[np.ix_(slot, free)]]
        cost += (np.sum(expected**2, axis=0) - 2 * s[k:, :k] @ expected) / (2 * v)
    which, where = linear_sum_assignment(cost)
    return late[which], free[where]
