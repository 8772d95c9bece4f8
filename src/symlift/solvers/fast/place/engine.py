"""Put columns in their places: the one door of the placement engine."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from symlift.core.grid import Grid
from symlift.core.model import row_batches
from symlift.solvers.contract import Placement, Progress, no_progress
from symlift.solvers.fast.place.contract import Placed, PlacementStatistics
from symlift.solvers.fast.place.embed import starts_from
from symlift.solvers.fast.place.fill import lifting_map
from symlift.solvers.fast.place.judge import explained_elsewhere, margins, neighbour_prediction, partner_prediction
from symlift.solvers.fast.place.large import links, place_large
from symlift.solvers.fast.place.rows import Rows, independent_rows, read_rows, split_rows
from symlift.solvers.fast.place.search import Found, search
from symlift.solvers.fast.place.settings import PlaceSettings
from symlift.solvers.fast.place.several import number_map, polarities, search_channels
from symlift.solvers.fast.place.slots import Slots, fit_lags, make_slots
from symlift.solvers.fast.place.statistic import correlations, partial_correlations, statistics_of
from symlift.solvers.fast.place.triage import Triage, triage

__all__ = ["place_columns"]

Channels = int | str


def place_columns(
    X: ArrayLike,
    grid: Grid,
    rng: np.random.Generator,
    *,
    channels: Channels = "auto",
    settings: PlaceSettings | None = None,
    progress: Progress = no_progress,
) -> Placed:
    """Where each column of X (n, d) sits on ``grid``, and the lifting map that follows; sees nothing else.

    Columns and points need not match in number.  NaN are left out pair by pair; infinity is refused.
    """
    settings = settings or PlaceSettings()
    raw = np.asarray(X)
    progress("rows", 0.0)
    rows = read_rows(raw, rng, settings)
    c = correlations(rows.scores, rows.there)
    progress("triage", 0.2)
    sorted_out = triage(rows, c, independent_rows(rows), settings)
    progress("place", 0.3)
    sign = np.ones(raw.shape[1])
    if rows.two_valued and len(sorted_out.kept) > 1.5 * grid.size:  # bits, of which some may be inverted
        kept = sorted_out.kept
        sign[kept] = polarities(c[np.ix_(kept, kept)], grid)
        rows, c = replace(rows, scores=rows.scores * sign.astype(np.float32)), c * sign * sign[:, None]
    settled = _settle(rows, c, sorted_out, grid, rng, settings, channels)
    progress("fill", 0.9)
    placed = _finish(raw, c, sorted_out, settled)
    return _as_numbers(placed, rows, c, raw, sign) if rows.two_valued and placed.n_channels > 1 else placed


@dataclass(frozen=True)
class Settled:
    """Slots of the columns ``placed``, how sure each is, and what was measured on the way; ``sign`` (d,): bits that are
    inverted.
    """

    slots: Slots
    placed: NDArray[np.int64]
    slot: NDArray[np.int64]
    confidence: NDArray[np.float64]
    statistics: PlacementStatistics
    trace: dict[str, Any]


def _settle(
    rows: Rows,
    c: NDArray,
    out: Triage,
    grid: Grid,
    rng: np.random.Generator,
    settings: PlaceSettings,
    channels: Channels,
) -> Settled:
    """Find the slots of the columns that triage kept."""
    if len(out.kept) < _least(grid):
        nothing = PlacementStatistics("lags", 0.0, 0.0, False, 0.0, 0, 0)
        few = out.kept[: grid.size]
        return Settled(make_slots(grid), few, np.arange(len(few)), np.zeros(len(few)), nothing, {})
    if len(out.kept) > settings.dense:
        return _settle_large(rows, c, out, grid, rng, settings)
    depth = _depth(len(out.kept), grid, channels, rows.two_valued)
    if depth > 1:
        several = _settle_channels(rows, c, out, make_slots(grid, depth, matched=True), rng, settings)
        if several.statistics.accepted or channels != "auto":
            return several
    return _settle_single(rows, c, out, make_slots(grid), rng, settings)


def _least(grid: Grid) -> int:
    """Columns that an embedding takes: a periodic axis needs two dimensions."""
    return grid.ndim + sum(grid.periodic) + 2


def _depth(columns: int, grid: Grid, channels: Channels, two_valued: bool) -> int:
    """Columns a point: as told, or as many as the columns fill the points; low bits are noise here and there, so bits round up."""
    if channels != "auto":
        return int(channels)
    share = columns / grid.size
    return max(1, math.ceil(share - 0.05) if two_valued and share > 1.5 else round(share))


def _settle_large(
    rows: Rows, c: NDArray, out: Triage, grid: Grid, rng: np.random.Generator, settings: PlaceSettings
) -> Settled:
    """Thousands of columns, one a point, by local statistics alone; judged by what neighbours predict on held-out rows."""
    kept = out.kept
    _, held = split_rows(len(rows.scores), settings.held, rng)
    c_held = correlations(*rows.take(held, kept))
    # the correlations of the other rows follow without another product: scores have mean 0
    share = len(held) / len(rows.scores)
    c_fit = (c[np.ix_(kept, kept)] - share * c_held) / (1 - share)
    np.fill_diagonal(c_fit, 1.0)
    p = partial_correlations(c_fit, settings.start_ridge)
    point, _ = place_large(p, grid, settings.edge, rng)
    at = np.flatnonzero(point >= 0)
    inside = np.ix_(at, at)
    explained = 1 - np.exp(neighbour_prediction(c_fit[inside], c_held[inside], point[at], grid).mean())
    ceiling = 1 - np.exp(partner_prediction(p, c_fit, c_held, 2 * grid.ndim).mean())
    believed = bool(explained > settings.believed * ceiling and ceiling > settings.least_ceiling)
    sums = links(p, point, grid)[at]
    whole = float(np.clip((explained / max(ceiling, 1e-9) - 0.2) / 0.5, 0, 1)) * 0.98 if believed else 0.0
    sure = whole * np.clip(0.6 + sums / max(float(np.median(sums)), 1e-9), 0.1, 1)
    figures = PlacementStatistics("partial", float(explained), float(ceiling), believed, 0.0, 1, 1)
    return Settled(make_slots(grid), kept[at], point[at], sure, figures, {"links": float(sums.mean())})


def _settle_channels(
    rows: Rows, c: NDArray, out: Triage, slots: Slots, rng: np.random.Generator, settings: PlaceSettings
) -> Settled:
    """Several columns a point."""
    core = _strongest(c, out.kept, slots.size)
    fit, held = split_rows(len(rows.scores), settings.held, rng)
    S, S_held = (statistics_of("partial", *rows.take(part, core), settings.ridges) for part in (fit, held))
    found = search_channels(*rows.take(fit, core), S, S_held, slots, rng, settings, rows.two_valued)
    judged = explained_elsewhere(S, S_held, found.slot, slots, settings.prior_pairs)
    full = np.bincount(found.slot // slots.depth, minlength=slots.grid.size)
    whole = rows.two_valued or float(np.mean(full[full > 0] == slots.depth)) >= settings.full_points
    return _judged("partial", core, found, judged, S, S_held, slots, settings, whole)


def _settle_single(
    rows: Rows, c: NDArray, out: Triage, slots: Slots, rng: np.random.Generator, settings: PlaceSettings
) -> Settled:
    """One column a point."""
    core, late = _core(rows, c, out.kept, slots.size, settings)
    if len(core) < _least(slots.grid):
        core, late = _strongest(c, out.kept, slots.size), out.kept[:0]
    fit, held = split_rows(len(rows.scores), settings.held, rng)
    few = len(rows.scores) < settings.few_rows
    tried: dict[str, tuple[Found, tuple[float, float, float]]] = {}
    for kind in ("partial", "lags"):
        tried[kind] = _try(kind, rows, core, fit, held, slots, rng, settings, 0.4 if few else 1.0)
        explained, ceiling, _ = tried[kind][1]
        if explained > settings.convinced * ceiling:
            break
    kind = _carried(tried, rows, core, fit, held, slots.grid)
    found, judged = tried[kind]
    if few:
        found = _again(kind, found, rows, core, slots, rng, settings)
    S_held = statistics_of(kind, *rows.take(held, core), settings.ridges)
    S = statistics_of(kind, *rows.take(np.arange(len(rows.scores)), core), settings.ridges)
    whole = _is_local(rows, core, fit, held, found.slot, slots, settings)
    settled = _judged(kind, core, found, judged, S, S_held, slots, settings, whole)
    if not len(late) or slots.size == len(core):
        return settled
    columns, at = _attach(kind, rows, core, late, found.slot, slots, settings)
    unsure = np.full(len(columns), 0.3 * float(np.median(settled.confidence)))
    return replace(
        settled,
        placed=np.r_[core, columns],
        slot=np.r_[found.slot, at],
        confidence=np.r_[settled.confidence, unsure],
    )


def _is_local(
    rows: Rows, core: NDArray, fit: NDArray, held: NDArray, slot: NDArray, slots: Slots, settings: PlaceSettings
) -> bool:
    """Whether columns really are like their neighbours, or plain correlations of values and magnitudes a function of lags.

    Behind a sine transform of a field with ends, what little correlation is left has an order, too, that of frequencies: partial
    correlations explain 0.6 of it, but neighbours predict 0.01 of a column (digits 0.6, faces 0.9), and lags explain 0.3 of plain
    correlations (a field under ten times its power of noise 0.9).
    """
    c, c_held = (correlations(*rows.take(part, core)) for part in (fit, held))
    if 1 - np.exp(neighbour_prediction(c, c_held, slot, slots.grid).mean()) > settings.predicted:
        return True
    S, S_held = (statistics_of("lags", *rows.take(part, core), settings.ridges) for part in (fit, held))
    explained, ceiling, _ = explained_elsewhere(S, S_held, slot, slots, settings.prior_pairs)
    return explained > settings.believed * ceiling


def _judged(
    kind: str,
    core: NDArray,
    found: Found,
    judged: tuple[float, float, float],
    S: NDArray,
    S_held: NDArray,
    slots: Slots,
    settings: PlaceSettings,
    whole: bool,
) -> Settled:
    """What was found, and whether it is believed."""
    explained, ceiling, z = judged
    share = explained / ceiling if ceiling > 0 else 0.0
    believed = settings.believed_lags if kind == "lags" else settings.believed
    accepted = bool(whole and z > settings.significant and share > believed)
    model = fit_lags(S, found.slot, slots, 0.0, settings.prior_pairs)
    sure = _confidence(margins(S_held, found.slot, slots, model), share if accepted else 0.0, found)
    figures = PlacementStatistics(kind, explained, ceiling, accepted, found.misfit, found.starts, found.agreeing)
    return Settled(slots, core, found.slot, sure, figures, {"share": share, "z": z})


def _core(rows: Rows, c: NDArray, kept: NDArray, room: int, settings: PlaceSettings) -> tuple[NDArray, NDArray]:
    """Columns that are placed first, and those that few rows speak for (pixels that hardly ever light up), which come later.

    How many rows a column rests on is n over its kurtosis.
    """
    fourth = np.mean(rows.scores[:, kept].astype(np.float64) ** 4, axis=0)
    worth = len(rows.scores) / np.maximum(fourth, 1e-9)
    thin = worth < min(settings.thin_rows, 0.1 * float(np.median(worth)) if len(worth) else 0.0)
    return _strongest(c, kept[~thin], room), kept[thin]


def _strongest(c: NDArray, columns: NDArray, room: int) -> NDArray[np.int64]:
    """Where there are more columns than places, those that go with others least are left out."""
    if len(columns) <= room:
        return columns
    size = np.abs(c[np.ix_(columns, columns)]) - np.eye(len(columns))
    best = np.argsort(-np.sort(size, axis=1)[:, -3:].mean(axis=1), kind="stable")[:room]
    return np.asarray(columns[np.sort(best)])


def _try(
    kind: str,
    rows: Rows,
    core: NDArray,
    fit: NDArray,
    held: NDArray,
    slots: Slots,
    rng: np.random.Generator,
    settings: PlaceSettings,
    share: float,
) -> tuple[Found, tuple[float, float, float]]:
    """A search by one kind of statistic on rows to fit, and what held-out rows say of it: explained, ceiling, z."""
    z, there = rows.take(fit, core)
    S, S_held = (statistics_of(kind, *rows.take(part, core), settings.ridges) for part in (fit, held))

    def judged(slot: NDArray) -> tuple[float, float, float]:
        return explained_elsewhere(S, S_held, slot, slots, settings.prior_pairs)

    def promising(slot: NDArray) -> bool:
        explained, ceiling, _ = judged(slot)
        return explained > settings.hopeless * ceiling

    starts = starts_from(correlations(z, there), slots.grid, rng, settings)
    enough = len(rows.scores) >= settings.few_rows  # a few held-out rows say nothing yet
    found = search(S, slots, starts, rng, settings, share, promising if enough else None)
    return found, judged(found.slot)


def _again(
    kind: str, found: Found, rows: Rows, core: NDArray, slots: Slots, rng: np.random.Generator, settings: PlaceSettings
) -> Found:
    """The search once more with all rows, from where it ended and from new starts: few rows are all needed."""
    z, there = rows.take(np.arange(len(rows.scores)), core)
    S = statistics_of(kind, z, there, settings.ridges)

    def starts() -> Iterator[NDArray]:
        yield slots.grid.indices()[found.slot // slots.depth].astype(float)
        yield from starts_from(correlations(z, there), slots.grid, rng, settings)

    return search(S, slots, starts(), rng, settings)


def _carried(
    tried: dict[str, tuple[Found, tuple[float, float, float]]],
    rows: Rows,
    core: NDArray,
    fit: NDArray,
    held: NDArray,
    grid: Grid,
) -> str:
    """The kind whose placement predicts columns from their neighbours best, on held-out rows."""
    if len(tried) == 1:
        return next(iter(tried))
    c, c_held = (correlations(*rows.take(part, core)) for part in (fit, held))
    left = {kind: float(neighbour_prediction(c, c_held, t[0].slot, grid).mean()) for kind, t in tried.items()}
    return min(left, key=lambda kind: left[kind])


def _confidence(margin: NDArray, share: float, found: Found) -> NDArray[np.float64]:
    """Between 0 and 1: how much of what is real the placement accounts for, whether starts agreed, and the column's own margin.

    Textures, 50 to 500 rows: where no second start ended at the best optimum, 0.02 to 0.97 of the columns were right
    (median 0.4), else 0.97 to 1.  Where held-out rows would rather have most columns elsewhere, as with the signal 10 dB below its
    noise, hardly any is in its place.
    """
    whole = np.clip((share - 0.2) / 0.5, 0, 1) * (0.98 if found.agreeing >= 2 else 0.5)
    usual = float(np.median(margin))
    if usual <= 0:
        return np.full(len(margin), 0.2 * whole)
    return np.asarray(whole * np.clip(0.6 + margin / usual, 0.1, 1))


def _attach(
    kind: str, rows: Rows, core: NDArray, late: NDArray, slot: NDArray, slots: Slots, settings: PlaceSettings
) -> tuple[NDArray, NDArray]:
    """Late columns in the slots that are left, where their correlations with the placed ones fit best."""
    both = np.r_[core, late]
    S = statistics_of(kind, *rows.take(np.arange(len(rows.scores)), both), settings.ridges)
    k = len(core)
    model = fit_lags(S[:, :k, :k], slot, slots, 0.0, settings.prior_pairs)
    free = np.setdiff1d(np.arange(slots.size), slot)
    cost = np.zeros((len(late), len(free)))
    for s, mean, v in zip(S, model.K, model.v, strict=True):
        expected = mean[slots.index[np.ix_(slot, free)]]
        cost += (np.sum(expected**2, axis=0) - 2 * s[k:, :k] @ expected) / (2 * v)
    which, where = linear_sum_assignment(cost)
    return late[which], free[where]


def _finish(raw: NDArray, c: NDArray, out: Triage, settled: Settled) -> Placed:
    """Placement of all columns, duplicates beside their twins, and the lifting map."""
    slots, d = settled.slots, len(out.reason)
    slot, sure = np.full(d, -1, dtype=np.int64), np.zeros(d)
    slot[settled.placed], sure[settled.placed] = _canonical(settled.slot, slots), settled.confidence
    twins = np.flatnonzero(out.twin >= 0)
    slot[twins], sure[twins] = slot[out.twin[twins]], sure[out.twin[twins]]
    reason, twin = out.reason.copy(), out.twin.copy()
    reason[(slot < 0) & ((reason == "") | (reason == "duplicate"))] = "unplaced"
    twin[slot < 0] = -1
    at = slot >= 0
    coordinates = np.full((d, slots.grid.ndim), np.nan)
    coordinates[at] = slots.grid.indices()[slot[at] // slots.depth]
    placement = Placement(
        slots.grid,
        coordinates,
        np.where(at, slot // slots.depth, -1),
        np.where(at, slot % slots.depth, -1),
        np.where(at, np.clip(sure, 0, 1), _sure_of_leaving_out(reason)),
        reason,
        twin,
    )
    mean, scale = _moments(raw)
    placed = np.flatnonzero(at)
    weight = 1 / np.bincount(slot[placed], minlength=slots.size)[slot[placed]]
    W = lifting_map(c[np.ix_(placed, placed)], placed, slot[placed], weight, scale, slots, d)
    dense = W.toarray() if d <= 4096 else W
    return Placed(placement, slots.depth, dense, mean, settled.statistics, settled.trace)


def _as_numbers(placed: Placed, rows: Rows, c: NDArray, raw: NDArray, sign: NDArray) -> Placed:
    """Two-valued columns at one point are the bits of a number: one channel, and ``channel`` is the significance."""
    at = np.flatnonzero((placed.placement.point >= 0) & (placed.placement.reason == ""))
    planes = np.ascontiguousarray((rows.scores[:, at] > 0).T).astype(np.uint8)
    point, channel = placed.placement.point[at], placed.placement.channel[at]
    W, significance = number_map(planes, c[np.ix_(at, at)], point, channel, placed.placement.grid)
    step = np.nanmax(raw[:, at], axis=0) - np.nanmin(raw[:, at], axis=0)
    full = np.zeros((W.shape[0], raw.shape[1]))
    full[:, at] = W * sign[at] / step
    channels = placed.placement.channel.copy()
    channels[at] = significance
    twins = np.flatnonzero(placed.placement.twin >= 0)
    channels[twins] = channels[placed.placement.twin[twins]]
    return replace(placed, placement=replace(placed.placement, channel=channels), n_channels=1, W=full)


def _sure_of_leaving_out(reason: NDArray) -> NDArray[np.float64]:
    """Confidence that a column was rightly left out."""
    return np.select([reason == "dead", reason == "index", reason == "noise"], [1.0, 0.99, 0.99], 0.0)


def _moments(raw: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and deviation of each column over the entries that are there, batch by batch; 0 and 1 where there are none."""
    d = raw.shape[1]
    first = np.asarray(raw[: min(len(raw), 1_000)], dtype=np.float64)
    blank = np.isnan(first).all(axis=0)
    # about some row's size, so that sums of squares lose no digits
    origin = np.where(blank, 0.0, np.nanmedian(np.where(blank, 0.0, first), axis=0))
    count, total, square = np.zeros((3, d))
    for part in row_batches(len(raw), 2 * d):
        rows = np.array(raw[part], dtype=np.float64)
        rows -= origin
        gaps = np.isnan(rows)
        rows[gaps] = 0.0
        count += len(rows) - gaps.sum(axis=0)
        total += rows.sum(axis=0)
        square += np.einsum("ij,ij->j", rows, rows)
    some = np.maximum(count, 1)
    variance = square / some - (total / some) ** 2
    return origin + total / some, np.where(variance > 0, np.sqrt(np.maximum(variance, 0.0)), 1.0)


def _canonical(slot: NDArray, slots: Slots) -> NDArray[np.int64]:
    """Periodic axes: the first placed column at 0, the next distinct one in the lower half."""
    grid = slots.grid
    if not any(grid.periodic) or not len(slot):
        return slot
    index = grid.indices()[slot // slots.depth]
    for axis, (n, wraps) in enumerate(zip(grid.shape, grid.periodic, strict=True)):
        if wraps:
            index[:, axis] = (index[:, axis] - index[0, axis]) % n
            other = index[index[:, axis] > 0, axis]
            if len(other) and other[0] > n / 2:
                index[:, axis] = -index[:, axis] % n
    return grid.flat(index) * slots.depth + slot % slots.depth
