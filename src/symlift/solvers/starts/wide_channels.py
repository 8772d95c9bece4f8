"""Very many columns, several at each point of a grid: where they are, and which belong together.

Partial correlations link a column to those of its own channel at the points next to it, and often
to the others at its point. Then columns at one point fall together in a lattice whose edges may
have no length; from point to point, channels follow the links.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from symlift.core.grid import Grid
from symlift.search.score import next_to
from symlift.solvers.starts.graph import into_box
from symlift.solvers.starts.sparse import confirmed_edges, coordinates, partner_graph, place_large
from symlift.solvers.starts.wide_families import channel_parts, inside, laid_on, nearest_of
from symlift.solvers.starts.wide_lattice import wide_lattice
from symlift.solvers.starts.wide_settle import link_sums, settle_wide, symmetric
from symlift.statistics.neighbours import NearPairs

__all__ = ["next_slots", "place_channels"]

#: rounds in which each point takes the channels of all points around it
_ROUNDS = 4
#: least share of the partners that are at slots next to each other: others surround parts of a
#: channel that are in the place of another one
_JOINED = 0.97
#: rounds in which coordinates become the means of those around them
_SMOOTHINGS = 6


def place_channels(
    p: NearPairs,
    z: NDArray[np.float32],
    grid: Grid,
    depth: int,
    least: float,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], bool]:
    """Slot of each column, point · depth + channel (-1: none), from scores z (d, n) and partial
    correlations; and whether there is no doubt how the channels lie.
    """
    slot, sure, used = np.full(len(p), -1, dtype=np.int64), True, 0
    first, at = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    for members, channels in channel_parts(p, grid, depth, least):
        mine = inside(p, members)
        if channels == 1:
            own = place_large(mine, grid, least, rng)[0]
        else:
            nearest = nearest_of(z[members], z[first]) if used else None
            nearby = None if nearest is None else grid.indices()[at[nearest]].astype(np.float64)
            own = _linked(mine, grid, channels, least, rng, nearby)
        columns, own = members[own >= 0], own[own >= 0]
        point, channel = own // channels, used + own % channels
        if used:
            point, known = laid_on(z[columns], point, z[first], at, grid, rng)
            sure &= known
        else:
            first, at = columns, point
        within = point >= 0
        slot[columns[within]] = point[within] * depth + channel[within]
        used += channels
    table = next_slots(grid, depth)
    slot = settle_wide(symmetric(p), slot, table)
    edges = partner_graph(p, 2 * grid.ndim, least)
    joined = float(link_sums(edges, slot, table).sum()) / max(edges.nnz, 1)
    return slot, bool(sure and joined > _JOINED)


def _linked(
    p: NearPairs,
    grid: Grid,
    depth: int,
    least: float,
    rng: np.random.Generator,
    nearby: NDArray[np.float64] | None = None,
) -> NDArray[np.int64]:
    """Slots of columns that are linked to the others at their points.

    They start from their own paths, and from the places ``nearby`` (d, P) of columns of another
    channel, if there are some.
    """
    links, table = symmetric(p), next_slots(grid, depth)
    placed = [(-1.0, np.full(len(p), -1, dtype=np.int64))]
    # with all partners, or only with as many as a column has neighbours
    for count in (2 * grid.ndim + depth - 1, 2 * grid.ndim):
        edges = partner_graph(p, count, least)
        if edges.nnz < len(p):  # hardly any links: noise
            continue
        starts = coordinates(edges, grid, rng, shared=True)
        if nearby is not None and not any(grid.periodic):
            starts.append(_smoothed(nearby, edges))
        for start in starts:
            y = wide_lattice(start, edges, grid, shared=True)
            sides = confirmed_edges(y, edges, p, least, grid, shared=True)
            y = wide_lattice(y, sides, grid, shared=True)
            point = _rounded(into_box(y, grid), grid, depth)
            slot = settle_wide(links, _matched(links, point, grid, depth), table)
            placed.append((float(link_sums(links, slot, table).sum()), slot))
    return max(placed, key=lambda pair: pair[0])[1]


def _smoothed(y: NDArray[np.float64], edges: csr_matrix) -> NDArray[np.float64]:
    """Coordinates that are the means of those around them: those of single columns may be a few
    steps off.
    """
    degree = np.asarray(edges.sum(axis=1)).ravel()[:, None]
    for _ in range(_SMOOTHINGS):
        y = (y + edges @ y) / (1 + degree)
    return np.asarray(y)


def next_slots(grid: Grid, depth: int) -> NDArray[np.int64]:
    """Slots next to each slot, their number for none: the same channel at the points around it,
    and the other channels of the point.
    """
    around, points = next_to(grid), np.arange(grid.size)[:, None]
    table = []
    for channel in range(depth):
        same = np.where(around < grid.size, around * depth + channel, grid.size * depth)
        others = points * depth + np.delete(np.arange(depth), channel)
        table.append(np.concatenate([same, others], axis=1))
    return np.stack(table, axis=1).reshape(grid.size * depth, -1)


def _rounded(y: NDArray, grid: Grid, depth: int) -> NDArray[np.int64]:
    """Nearest point of each column; of too many columns the nearest get it, others get -1."""
    whole = np.rint(y).astype(np.int64)
    shape = np.array(grid.shape)
    inside = (np.asarray(grid.periodic) | ((whole >= 0) & (whole < shape))).all(axis=1)
    point = grid.flat(np.where(grid.periodic, np.mod(whole, shape), np.clip(whole, 0, shape - 1)))
    miss = np.where(inside, np.sum((y - whole) ** 2, axis=1), np.inf)
    order = np.lexsort((miss, point))
    first = np.searchsorted(point[order], point[order])
    keep = order[(np.arange(len(y)) - first < depth) & inside[order]]
    out = np.full(len(y), -1, dtype=np.int64)
    out[keep] = point[keep]
    return out


def _matched(
    links: csr_matrix, point: NDArray[np.int64], grid: Grid, depth: int
) -> NDArray[np.int64]:
    """Slots of columns at ``point``: channels go with the links, from a full point outwards."""
    at = _columns_at(point, grid.size, depth)
    full = np.flatnonzero((at >= 0).all(axis=1))
    middle = grid.coordinates() - grid.coordinates().mean(axis=0)
    near = np.sum(middle**2, axis=1)
    seed = full[near[full].argmin()] if len(full) else int((at >= 0).sum(axis=1).argmax())
    around = next_to(grid)
    channel = np.full((grid.size, depth), -1)  # of the k-th column at each point
    channel[seed] = np.arange(depth)
    for points in [*_rings(grid, int(seed)), *_halves(grid) * _ROUNDS]:
        gain = _gains(links, at, channel, points, around, depth)
        channel[points] = _best_orders(gain)
    slot = np.full(len(point), -1, dtype=np.int64)
    slots = np.arange(grid.size)[:, None] * depth + channel
    slot[at[at >= 0]] = slots[at >= 0]
    return slot


def _columns_at(point: NDArray[np.int64], points: int, depth: int) -> NDArray[np.int64]:
    """The columns at each point (points, depth), -1 for none."""
    placed = np.flatnonzero(point >= 0)
    placed = placed[np.argsort(point[placed], kind="stable")]
    first = np.searchsorted(point[placed], point[placed])
    at = np.full((points, depth), -1, dtype=np.int64)
    at[point[placed], np.arange(len(placed)) - first] = placed
    return at


def _rings(grid: Grid, seed: int) -> list[NDArray[np.int64]]:
    """Points by the number of steps from a seed, without the seed itself."""
    index = grid.indices()
    apart = np.abs(index - index[seed])
    wraps = np.minimum(apart, np.array(grid.shape) - apart)
    steps = np.where(grid.periodic, wraps, apart).sum(axis=1)
    order = np.argsort(steps, kind="stable")
    ends = np.searchsorted(steps[order], np.arange(1, int(steps.max()) + 1))
    return np.split(order, ends)[1:]


def _halves(grid: Grid) -> list[NDArray[np.int64]]:
    """Even and odd points: those of one half are not next to each other."""
    odd = grid.indices().sum(axis=1) % 2
    return [np.flatnonzero(odd == k) for k in (0, 1)]


def _gains(
    links: csr_matrix,
    at: NDArray[np.int64],
    channel: NDArray[np.int64],
    points: NDArray[np.int64],
    around: NDArray[np.int64],
    depth: int,
) -> NDArray[np.float64]:
    """Links of the columns at ``points`` with each channel around them, (points, depth, depth)."""
    gain = np.zeros((len(points), depth, depth))
    mine = at[points]
    for nearby in around[points].T:
        exists = nearby < len(at)
        other = np.where(exists, nearby, 0)
        for k in range(depth):
            column, its = at[other, k], channel[other, k]
            known = exists & (column >= 0) & (its >= 0)
            for m in range(depth):
                both = np.flatnonzero(known & (mine[:, m] >= 0))
                if not len(both):
                    continue
                value = np.asarray(links[mine[both, m], column[both]]).ravel()
                gain[both, m, its[both]] += value
    return gain


def _best_orders(gain: NDArray) -> NDArray[np.int64]:
    """The assignment of columns to channels (points, depth) of largest gain at each point."""
    depth = gain.shape[1]
    orders = np.array(list(permutations(range(depth))))
    totals = sum(gain[:, m, orders[:, m]] for m in range(depth))
    return orders[np.asarray(totals).argmax(axis=1)]
