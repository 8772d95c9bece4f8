"""Place very many columns, one or several for each point, from the statistics of near columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.search.criterion import Slots, make_slots
from symlift.search.settings import PlaceSettings
from symlift.search.triage import Triage, triage_near
from symlift.search.wide_rows import WideRows, score_columns
from symlift.solvers.contract import Progress
from symlift.solvers.fast.place.contract import Placed, PlacementStatistics
from symlift.solvers.fast.place.finish import Settled, column_moments, placement_of
from symlift.solvers.fast.place.wide_fill import wide_map
from symlift.solvers.starts.long_chain import long_chain, with_gaps
from symlift.solvers.starts.sparse import place_large
from symlift.solvers.starts.wide_channels import next_slots, place_channels
from symlift.solvers.starts.wide_settle import link_sums, symmetric
from symlift.statistics.neighbours import (
    NearPairs,
    local_correlations,
    local_partial,
    nearby_columns,
    predicted_from,
)

__all__ = ["place_wide"]

#: nearest columns that are known of each column, by the number of axes: all within about 2.5 steps;
#: and more for each further channel, and in whose place there may be duplicates
_NEAR, _SPARE = {1: 12, 2: 20}, 4
_NEAR_VOLUME, _NEAR_CHANNEL = 32, 6
#: columns whose prediction is averaged: with more, the mean hardly changes
_JUDGED = 8_192
# the least that partners of a column predict of it, for anything to be found
_LEAST = 0.02


def place_wide(
    X: NDArray,
    alive: NDArray[np.bool_],
    grid: Grid,
    rng: np.random.Generator,
    settings: PlaceSettings,
    progress: Progress,
    channels: int | str = "auto",
) -> Placed:
    """Place the columns of X (n, d) that are ``alive``, and derive the lifting map.

    Memory: the scores of the rows that are used, and O(d) numbers.
    """
    rows = score_columns(X, alive, rng, settings)
    progress("nearest columns", 0.2)
    most = _depth(len(rows.z), grid, channels)
    count = _NEAR.get(grid.ndim, _NEAR_VOLUME) + _NEAR_CHANNEL * (most - 1)
    count = min(count, len(rows.z) - 1)
    near, c = nearby_columns(rows.fit, count + _SPARE, rng)
    progress("triage", 0.4)
    out = triage_near(rows, near, c, settings)
    ids = np.searchsorted(rows.columns, out.to_place)  # rows of z
    near, c = _remaining(near, c, ids, len(rows.z))
    progress("place", 0.5)
    plain = NearPairs(near[:, :count], c[:, :count])
    depth = min(most, _depth(len(ids), grid, channels))  # copies are not channels
    slots = make_slots(grid, depth, matched=depth > 1)
    settled = _settled(rows, ids, plain, out, slots, rng, settings, progress)
    progress("fill", 0.9)
    placement, slot = placement_of(out, settled)
    mean, scale = column_moments(X)
    W = wide_map(rows, slot, settled.placed, scale, slots)
    return Placed(placement, depth, W, mean, settled.statistics, settled.trace)


def _depth(columns: int, grid: Grid, channels: int | str) -> int:
    """Columns for each point: as said, or as many as there are."""
    return max(1, round(columns / grid.size)) if channels == "auto" else int(channels)


def _remaining(
    near: NDArray[np.int32], c: NDArray[np.float32], ids: NDArray, living: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Near columns of the columns ``ids``, without those that are set aside, in new numbers."""
    new = np.full(living + 1, -1, dtype=np.int32)  # the last is for no column
    new[ids] = np.arange(len(ids))
    mine = new[near[ids]]
    order = np.argsort(mine < 0, axis=1, kind="stable")
    return np.take_along_axis(mine, order, axis=1), np.take_along_axis(c[ids], order, axis=1)


def _settled(
    rows: WideRows,
    ids: NDArray,
    plain: NearPairs,
    out: Triage,
    slots: Slots,
    rng: np.random.Generator,
    settings: PlaceSettings,
    progress: Progress,
) -> Settled:
    """Slots by partial correlations at several ridges, until held-out rows are convinced."""
    near, table = plain.near, next_slots(slots.grid, slots.depth)
    best: tuple[float, NDArray[np.int64], NearPairs, bool] | None = None
    some = np.sort(rng.permutation(len(ids))[:_JUDGED])
    ceiling = 0.0
    for ridge in (settings.start_ridge, *settings.ridges):
        progress("partial correlations", 0.5)
        values = local_partial(rows.fit, ids, _rows_of(ids, near), (ridge,))[0]
        pairs = NearPairs(near, values)
        progress("lattice", 0.6)
        slot, sure = _slots(rows, ids, pairs, plain, slots, rng, settings)
        progress("held-out rows", 0.8)
        explained = _predicted(rows, ids, _beside(slot, table), some)
        partners = np.take_along_axis(
            near, np.argsort(-values, axis=1)[:, : table.shape[1]], axis=1
        )
        ceiling = max(ceiling, _predicted(rows, ids, partners, some))
        if best is None or explained > best[0]:
            best = explained, slot, pairs, sure
        if best[0] > settings.judge.complete * ceiling:
            break
    assert best is not None  # noqa: S101 - there is at least one ridge
    explained, slot, pairs, sure = best
    at = np.flatnonzero(slot >= 0)
    enough = ceiling > _LEAST and settings.judge.explains_enough(explained / ceiling)
    believed = bool(enough and sure)
    sums = link_sums(symmetric(pairs), slot, table)[at]
    whole = float(np.clip((explained / max(ceiling, 1e-9) - 0.2) / 0.5, 0, 1)) * 0.98 * believed
    each = whole * np.clip(0.6 + sums / max(float(np.median(sums)), 1e-9), 0.1, 1)
    statistics = PlacementStatistics("partial", explained, ceiling, believed, 0.0, 1, 1)
    trace = {"links": float(sums.mean())}
    return Settled(slots, out.to_place[at], slot[at], each, statistics, trace)


def _slots(
    rows: WideRows,
    ids: NDArray,
    pairs: NearPairs,
    plain: NearPairs,
    slots: Slots,
    rng: np.random.Generator,
    settings: PlaceSettings,
) -> tuple[NDArray[np.int64], bool]:
    """Slot of each column (-1: none) from partial and plain correlations of near columns, and
    whether there is no doubt about the whole.
    """
    grid = slots.grid
    if slots.depth > 1:
        z = rows.fit if len(ids) == len(rows.z) else rows.fit[ids]
        return place_channels(pairs, z, grid, slots.depth, settings.edge, rng)
    if grid.ndim > 1:
        return place_large(pairs, grid, settings.edge, rng)[0], True
    d = len(plain)
    order = long_chain(
        pairs, plain, settings.edge, rows.chance(settings.judge.chance), grid.periodic[0]
    )
    point = np.full(d, -1, dtype=np.int64)
    point[order[: grid.size]] = with_gaps(plain, order[: grid.size], grid.size)
    return point, True


def _beside(slot: NDArray, table: NDArray) -> NDArray[np.int64]:
    """The columns at the slots next to that of each column, (d, m), -1 for none."""
    at = np.full(len(table) + 1, -1)
    at[slot[slot >= 0]] = np.flatnonzero(slot >= 0)
    return np.where((slot >= 0)[:, None], at[table[np.maximum(slot, 0)]], -1)


def _predicted(rows: WideRows, ids: NDArray, others: NDArray, some: NDArray) -> float:
    """The part of ``some`` columns that ``others`` (d, k) predict on held-out rows."""
    group = np.concatenate([some[:, None], others[some]], axis=1)
    left = []
    for part, (c, held) in local_correlations([rows.fit, rows.held], _rows_of(ids, group)):
        exists = group[part, 1:] >= 0
        left.append(
            predicted_from(c[:, 1:, 1:], c[:, 0, 1:], held[:, 1:, 1:], held[:, 0, 1:], exists)
        )
    return float(1 - np.exp(np.concatenate(left).mean()))


def _rows_of(ids: NDArray, group: NDArray) -> NDArray[np.int64]:
    """Rows of z of a group of columns, -1 for none."""
    return np.where(group < 0, -1, ids[np.maximum(group, 0)])
