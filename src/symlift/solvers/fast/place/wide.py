"""Place very many columns, one for each point, from the statistics of near columns alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.search.criterion import make_slots
from symlift.search.score import links, next_to
from symlift.search.settings import PlaceSettings
from symlift.search.triage import Triage, triage_near
from symlift.search.wide_rows import WideRows, score_columns
from symlift.solvers.contract import Progress
from symlift.solvers.fast.place.contract import Placed, PlacementStatistics
from symlift.solvers.fast.place.finish import Settled, column_moments, placement_of
from symlift.solvers.fast.place.wide_fill import wide_map
from symlift.solvers.starts.long_chain import long_chain, with_gaps
from symlift.solvers.starts.sparse import place_large
from symlift.statistics.neighbours import (
    NearPairs,
    local_correlations,
    local_partial,
    nearby_columns,
    predicted_from,
)

__all__ = ["place_wide"]

#: nearest columns that are known of each column, by the number of axes: all within about 2.5 steps;
#: and more, in whose place there may be duplicates
_NEAR, _SPARE = {1: 12, 2: 20}, 4
_NEAR_VOLUME = 32
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
) -> Placed:
    """Place the columns of X (n, d) that are ``alive``, and derive the lifting map.

    Memory: the scores of the rows that are used, and O(d) numbers.
    """
    rows = score_columns(X, alive, rng, settings)
    progress("nearest columns", 0.2)
    count = min(_NEAR.get(grid.ndim, _NEAR_VOLUME), len(rows.z) - 1)
    near, c = nearby_columns(rows.fit, count + _SPARE, rng)
    progress("triage", 0.4)
    out = triage_near(rows, near, c, settings)
    ids = np.searchsorted(rows.columns, out.to_place)  # rows of z
    near, c = _remaining(near, c, ids, len(rows.z))
    progress("place", 0.5)
    plain = NearPairs(near[:, :count], c[:, :count])
    settled = _settled(rows, ids, plain, out, grid, rng, settings)
    progress("fill", 0.9)
    placement, slot = placement_of(out, settled)
    mean, scale = column_moments(X)
    W = wide_map(rows, slot, settled.placed, scale, grid)
    return Placed(placement, 1, W, mean, settled.statistics, settled.trace)


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
    grid: Grid,
    rng: np.random.Generator,
    settings: PlaceSettings,
) -> Settled:
    """Points by partial correlations at several ridges, until held-out rows are convinced."""
    near, ridges = plain.near, (settings.start_ridge, *settings.ridges)
    partial = local_partial(rows.fit, ids, _rows_of(ids, near), ridges)
    best: tuple[float, NDArray[np.int64], NearPairs] | None = None
    some = np.sort(rng.permutation(len(ids))[:_JUDGED])
    ceiling = 0.0
    for values in partial:
        pairs = NearPairs(near, values)
        point = _points(rows, pairs, plain, grid, rng, settings)
        explained = _predicted(rows, ids, _beside(point, grid), some)
        partners = np.take_along_axis(near, np.argsort(-values, axis=1)[:, : 2 * grid.ndim], axis=1)
        ceiling = max(ceiling, _predicted(rows, ids, partners, some))
        if best is None or explained > best[0]:
            best = explained, point, pairs
        if best[0] > settings.judge.complete * ceiling:
            break
    assert best is not None  # noqa: S101 - there is at least one ridge
    explained, point, pairs = best
    at = np.flatnonzero(point >= 0)
    believed = ceiling > _LEAST and settings.judge.explains_enough(explained / ceiling)
    sums = links(pairs, point, grid)[at]
    whole = float(np.clip((explained / max(ceiling, 1e-9) - 0.2) / 0.5, 0, 1)) * 0.98 * believed
    sure = whole * np.clip(0.6 + sums / max(float(np.median(sums)), 1e-9), 0.1, 1)
    statistics = PlacementStatistics("partial", explained, ceiling, believed, 0.0, 1, 1)
    return Settled(
        make_slots(grid),
        out.to_place[at],
        point[at],
        sure,
        statistics,
        {"links": float(sums.mean())},
    )


def _points(
    rows: WideRows,
    pairs: NearPairs,
    plain: NearPairs,
    grid: Grid,
    rng: np.random.Generator,
    settings: PlaceSettings,
) -> NDArray[np.int64]:
    """Point of each column (-1: none) from partial and plain correlations of near columns."""
    if grid.ndim > 1:
        return place_large(pairs, grid, settings.edge, rng)[0]
    d = len(plain)
    order = long_chain(
        pairs, plain, settings.edge, rows.chance(settings.judge.chance), grid.periodic[0]
    )
    point = np.full(d, -1, dtype=np.int64)
    point[order[: grid.size]] = with_gaps(plain, order[: grid.size], grid.size)
    return point


def _beside(point: NDArray, grid: Grid) -> NDArray[np.int64]:
    """The columns next to each column, (d, 2P), -1 for none."""
    at = np.full(grid.size + 1, -1)
    at[point[point >= 0]] = np.flatnonzero(point >= 0)
    beside = at[next_to(grid)[np.maximum(point, 0)]]
    return np.where((point >= 0)[:, None], beside, -1)


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
