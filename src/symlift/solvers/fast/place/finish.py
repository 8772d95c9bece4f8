"""From slots to the result: the placement of all columns, and the lifting map."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.rows import forget_pages, row_batches
from symlift.search.criterion import Slots
from symlift.search.rows import ColumnRows
from symlift.search.triage import Triage
from symlift.solvers.contract import Placement
from symlift.solvers.fast.place.contract import Placed, PlacementStatistics
from symlift.solvers.fast.place.fill import placement_map
from symlift.solvers.starts.scattered import InBox, scattered_map
from symlift.solvers.starts.several import bit_number_map

__all__ = ["Settled", "as_numbers", "column_moments", "finish", "placement_of"]


@dataclass(frozen=True)
class Settled:
    """Slots of the columns ``placed``, with confidence and statistics.

    ``scattered`` holds coordinates if the columns are not on grid points.
    """

    slots: Slots
    placed: NDArray[np.int64]
    slot: NDArray[np.int64]
    confidence: NDArray[np.float64]
    statistics: PlacementStatistics
    trace: dict[str, Any]
    scattered: InBox | None = None


def finish(raw: NDArray, c: NDArray, out: Triage, settled: Settled) -> Placed:
    """Placement of all columns, duplicates at the points of their twins, and the lifting map."""
    slots, d = settled.slots, len(out.reason)
    placement, slot = placement_of(out, settled)
    mean, scale = column_moments(raw)
    if settled.scattered is not None:
        k = settled.placed
        W = scattered_map(c[np.ix_(k, k)], k, settled.scattered, scale, slots.grid, d)
        return Placed(placement, 1, W.toarray(), mean, settled.statistics, settled.trace)
    placed = np.flatnonzero(slot >= 0)
    weight = 1 / np.bincount(slot[placed], minlength=slots.size)[slot[placed]]
    W = placement_map(c[np.ix_(placed, placed)], placed, slot[placed], weight, scale, slots, d)
    dense = W.toarray() if d <= 4096 else W
    return Placed(placement, slots.depth, dense, mean, settled.statistics, settled.trace)


def placement_of(out: Triage, settled: Settled) -> tuple[Placement, NDArray[np.int64]]:
    """The placement of all columns, and their slots (d,), -1 for none."""
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
    if settled.scattered is not None:
        coordinates[settled.placed] = settled.scattered.coordinates
        coordinates[twins] = coordinates[out.twin[twins]]
    placement = Placement(
        slots.grid,
        coordinates,
        np.where(at, slot // slots.depth, -1),
        np.where(at, slot % slots.depth, -1),
        np.where(at, np.clip(sure, 0, 1), _sure_of_leaving_out(reason)),
        reason,
        twin,
    )
    return placement, slot


def as_numbers(placed: Placed, rows: ColumnRows, c: NDArray, raw: NDArray, sign: NDArray) -> Placed:
    """Treat two-valued columns at one point as bits of a number.

    The result has one channel, and ``channel`` of a column is its significance.
    """
    at = np.flatnonzero((placed.placement.point >= 0) & (placed.placement.reason == ""))
    planes = np.ascontiguousarray((rows.scores[:, at] > 0).T).astype(np.uint8)
    point, channel = placed.placement.point[at], placed.placement.channel[at]
    W, significance = bit_number_map(
        planes, c[np.ix_(at, at)], point, channel, placed.placement.lattice
    )
    step = np.nanmax(raw[:, at], axis=0) - np.nanmin(raw[:, at], axis=0)
    full = np.zeros((W.shape[0], raw.shape[1]))
    full[:, at] = W * sign[at] / step
    channels = placed.placement.channel.copy()
    channels[at] = significance
    twins = np.flatnonzero(placed.placement.twin >= 0)
    channels[twins] = channels[placed.placement.twin[twins]]
    return replace(
        placed, placement=replace(placed.placement, channel=channels), n_channels=1, W=full
    )


def _sure_of_leaving_out(reason: NDArray) -> NDArray[np.float64]:
    """Confidence that a column was rightly left out."""
    return np.select(
        [reason == "dead", reason == "index", reason == "noise"], [1.0, 0.99, 0.99], 0.0
    )


def column_moments(raw: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of each column without NaN; 0 and 1 where all are NaN."""
    d = raw.shape[1]
    some = max(16, min(1_000, 4_000_000 // max(d, 1)))
    first = np.asarray(raw[:some], dtype=np.float64)
    blank = np.isnan(first).all(axis=0)
    # subtract a typical value, so that sums of squares lose no digits
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
        forget_pages(raw)
    some = np.maximum(count, 1)
    variance = square / some - (total / some) ** 2
    return origin + total / some, np.where(variance > 0, np.sqrt(np.maximum(variance, 0.0)), 1.0)


def _canonical(slot: NDArray, slots: Slots) -> NDArray[np.int64]:
    """Fix shift and direction of periodic axes.

    The first placed column is at 0, and the next distinct one in the lower half.
    """
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
