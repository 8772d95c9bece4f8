"""Several columns per point: where they are, and which of them belong to the same channel.

Partial correlations of such arrays (colour, bits) are strong in two cases only: between channels of
the same point, and between neighbouring points of the same channel. Two kinds of start follow from
that, and compete like all starts: all columns are placed by what they have in common, and channels
are then distinguished from point to point; or one channel is placed alone (the columns with the
strongest correlations), and the others are placed relative to it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import breadth_first_order

from symlift.core.grid import Grid
from symlift.search.criterion import make_slots, nearest_slots
from symlift.search.moves.descent import refine
from symlift.search.score import next_to
from symlift.solvers.fast import bit_places
from symlift.solvers.starts.graph import into_box
from symlift.solvers.starts.scattered import best_partners, in_box, monotone_scaling

__all__ = ["families", "matched_channels", "shared_places", "staggered_places"]

#: the least |partial correlation| that counts as a link
_LINK = 0.1


def shared_places(
    s: NDArray, grid: Grid, depth: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Point of each column, at most ``depth`` columns per point.

    Uses one similarity s (d, d) and the lag model of columns that share points.
    """
    places, _ = bit_places.place_bits(np.asarray(s, dtype=np.float32), grid, rng)
    counts = np.bincount(places.point, minlength=grid.size)
    if counts.max() <= depth:
        return places.point
    apart = grid.indices()[places.point][:, None] - grid.indices()[None]
    cost = np.repeat(np.sum(apart.astype(float) ** 2, axis=-1), depth, axis=1)
    return (linear_sum_assignment(cost)[1] // depth).astype(np.int64)


def matched_channels(s: NDArray, point: NDArray, grid: Grid, depth: int) -> NDArray[np.int64]:
    """Slots: each column takes the channel of the neighbouring columns that it is most similar to.

    Runs from the middle outwards, then a few rounds with all neighbours.
    """
    at = [np.flatnonzero(point == p) for p in range(grid.size)]
    neighbours = next_to(grid)
    centre = int(np.argmin(np.sum(grid.coordinates() ** 2, axis=1)))
    channel = np.full(len(point), -1)
    channel[at[centre]] = np.arange(len(at[centre]))
    for _ in range(4):
        for p in _outwards(grid, centre):
            near = [j for q in neighbours[p] if q < grid.size for j in at[q] if channel[j] >= 0]
            if p == centre and (channel >= 0).sum() == len(at[centre]):
                continue
            gain = np.zeros((len(at[p]), depth))
            for j in near:
                gain[:, channel[j]] += s[at[p], j]
            which, label = linear_sum_assignment(-gain)
            channel[at[p][which]] = label
    return point * depth + np.maximum(channel, 0)


def staggered_places(
    s: NDArray, grid: Grid, depth: int, rng: np.random.Generator
) -> NDArray[np.int64] | None:
    """Slots of channels on staggered grids, such as differences along each axis, or None.

    Four differences around a square sum to zero, so each column is strongly linked, with either
    sign, to the six that it shares a square with, whatever their channel. Coordinates follow from
    the strength of the links, and channels from the position of a column within a step.
    """
    from sklearn.cluster import KMeans  # slow to import: as long as all other imports together

    if any(grid.periodic):
        return None
    size = np.abs(s)
    best = best_partners(size, min(2 * grid.ndim + 2, len(s) - 1))
    y = monotone_scaling(size, best & best.T & (size > _LINK), np.ones_like(size), grid.ndim)
    if y is None:
        return None
    y, _ = in_box(y, grid, rng)
    phase = np.empty_like(y)
    for axis, n in enumerate(grid.shape):
        # channels are half a step apart: the columns extend up to half a step farther than the
        # grid, on a lattice that is twice as fine
        stretch = 1 + np.linspace(-0.2, 1.0, 61) / max(n - 1, 1)
        waves = np.exp(4j * np.pi * y[:, axis, None] * stretch)
        fits = int(np.abs(waves.mean(axis=0)).argmax())
        y[:, axis] *= stretch[fits]
        phase[:, axis] = y[:, axis] - np.angle(waves[:, fits].mean()) / (4 * np.pi)
    circle = np.concatenate([np.cos(2 * np.pi * phase), np.sin(2 * np.pi * phase)], axis=1)
    # no channel has more columns than the grid has points
    apart = KMeans(depth, n_init=5, random_state=0).fit(circle).transform(circle)
    channel = linear_sum_assignment(np.repeat(apart**2, grid.size, axis=1))[1] // grid.size
    if len(np.unique(channel)) < depth:  # too few columns for so many channels
        return None
    slot = np.empty(len(s), dtype=np.int64)
    for one in range(depth):
        mine = channel == one
        slot[mine] = nearest_slots(into_box(y[mine], grid), grid) * depth + one
    return slot


def _outwards(grid: Grid, centre: int) -> NDArray[np.int64]:
    from scipy.sparse import coo_matrix

    edges = grid.neighbours()
    graph = coo_matrix(
        (np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(grid.size, grid.size)
    ).tocsr()
    return np.asarray(breadth_first_order(graph, centre, directed=False)[0], dtype=np.int64)


def families(level: NDArray, points: int) -> Iterator[NDArray[np.int64]]:
    """Columns in groups of ``points``, those with the strongest links first.

    Columns of one channel have links of similar strength.
    """
    order = np.argsort(-level, kind="stable")
    for start in range(0, len(order), points):
        yield np.sort(order[start : start + points])


def place_next_to(
    S: NDArray, placed: NDArray, slot: NDArray, new: NDArray, grid: Grid, prior: float
) -> NDArray[np.int64]:
    """Points of the columns ``new``, one each, relative to those ``placed`` at ``slot``.

    First by the strongest partial correlations, then by the lag model. S (m, d, d) is over all
    columns. The columns that are already placed do not move.
    """
    at = np.full(grid.size, -1)
    at[slot] = placed
    occupied = np.flatnonzero(at >= 0)
    cost = np.zeros((len(new), grid.size))
    cost[:, occupied] = -np.abs(S[0][np.ix_(new, at[occupied])])
    point = linear_sum_assignment(cost)[1]
    pair = make_slots(grid, 2, matched=True)
    both = np.r_[placed, new]
    _, refined = refine(S[:, both][:, :, both], np.r_[slot * 2, point * 2 + 1], pair, (0.0,), prior)
    moved = refined[len(placed) :]
    return np.asarray(moved // 2 if (moved % 2 == 1).all() else point, dtype=np.int64)
