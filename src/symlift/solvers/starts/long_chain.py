"""The order of very many columns on a line or ring, from the statistics of near columns.

Paths through columns that certainly correlate give a coarse coordinate, right within a few columns.
Mutual best partners form segments, right inside; the coordinate puts these in order and turns them.
What is still wrong shows as a weak link, and is mended by reversals and displacements in a window
around it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, triu
from scipy.sparse.csgraph import breadth_first_order, connected_components, shortest_path

from symlift.search.moves.segments import improve_chain
from symlift.solvers.starts.sparse import partner_graph
from symlift.statistics.neighbours import NearPairs

__all__ = ["long_chain", "with_gaps"]

#: columns of a window in which an order is mended, and how often all weak links are looked at
_WINDOW, _ROUNDS = 48, 4
#: a link that is weaker than this share of the usual one is looked at
_WEAK = 0.5


def long_chain(
    p: NDArray | NearPairs, c: NearPairs, least: float, certain: float, closed: bool
) -> NDArray[np.int64]:
    """Columns in their order.

    p are partial correlations, of which those above ``least`` are links; c plain ones, of which
    those above ``certain`` are not chance.
    """
    coarse = _coarse(c, certain, closed)
    order = np.argsort(_along_segments(p, coarse, least, closed), kind="stable")
    for _ in range(_ROUNDS):
        mended = _mended(p, order, closed)
        if mended is None:
            break
        order = mended
    return order


def _lengths(c: NearPairs, certain: float) -> csr_matrix:
    """Symmetric lengths of the links between columns that correlate beyond chance."""
    d, k = c.near.shape
    keep = (c.value > certain) & (c.near >= 0)
    i, j = np.broadcast_to(np.arange(d)[:, None], (d, k))[keep], c.near[keep]
    length = -np.log(np.clip(c.value[keep], 1e-6, 1 - 1e-6))
    graph = csr_matrix((length, (i, j)), shape=(d, d))
    return graph.maximum(graph.T)


def _coarse(c: NearPairs, certain: float, closed: bool) -> NDArray[np.float64]:
    """A coordinate along the line, part by part where links are missing; on a ring from a cut."""
    graph = _lengths(c, certain)
    label = connected_components(graph, directed=False)[1]
    sizes = np.bincount(label)
    coordinate = np.zeros(len(c))
    offset = 0.0
    for part in np.argsort(-sizes, kind="stable"):
        members = np.flatnonzero(label == part) if sizes[part] > 1 else None
        if members is None:
            # all that are alone come last, in the order that they have
            alone = np.flatnonzero(sizes[label] == 1)
            coordinate[alone] = offset + np.arange(len(alone))
            break
        inside = graph[members][:, members]
        along = _around(inside) if closed and len(members) > 3 else _from_end(inside)
        coordinate[members] = offset + along
        offset += float(along.max()) + 1.0
    return coordinate


def _from_end(graph: csr_matrix) -> NDArray[np.float64]:
    """Path lengths from one end."""
    return _paths(graph, int(_paths(graph, 0).argmax()))


def _paths(graph: csr_matrix, start: int) -> NDArray[np.float64]:
    return np.asarray(shortest_path(graph, directed=False, indices=[start])[0])


def _around(graph: csr_matrix) -> NDArray[np.float64]:
    """Path lengths once round: from a column, first on one side of it, then on the other."""
    start = _paths(graph, 0)
    opposite = int(start.argmax())
    quarter = int(np.abs(start - start[opposite] / 2).argmin())
    # on the side of the quarter, the way there is shorter than half of the ring
    near = _paths(graph, quarter) <= start[opposite] / 2
    return np.asarray(np.where(near, start, 2 * start[opposite] - start))


def _along_segments(
    p: NDArray | NearPairs, coarse: NDArray, least: float, closed: bool
) -> NDArray[np.float64]:
    """The coarse coordinate, sorted along every segment of mutual best partners."""
    edges = triu(partner_graph(p, 2, least), 1).tocoo()
    i, j = edges.row, edges.col
    rank = np.empty(len(coarse), dtype=np.int64)
    rank[np.argsort(coarse, kind="stable")] = np.arange(len(coarse))
    apart = np.abs(rank[i] - rank[j])
    if closed:
        apart = np.minimum(apart, len(coarse) - apart)
    # a shortcut joins columns that paths through many others keep apart
    near = apart <= _WINDOW
    i, j = i[near], j[near]
    i, j = _without_cycles(i, j, np.asarray(p[i, j]), len(coarse))
    graph = csr_matrix((np.ones(2 * len(i)), (np.r_[i, j], np.r_[j, i])), shape=(len(coarse),) * 2)
    degree = np.diff(graph.indptr)
    label = connected_components(graph, directed=False)[1]
    ends = np.flatnonzero(degree == 1)
    # one end of each segment
    first = ends[np.unique(label[ends], return_index=True)[1]]
    out = coarse.astype(np.float64).copy()
    for end in first:
        path = breadth_first_order(graph, int(end), directed=False, return_predecessors=False)
        if len(path) > 2 or not closed:
            values = np.sort(coarse[path])
            along = np.arange(len(path)) - (len(path) - 1) / 2
            out[path] = values if along @ coarse[path] >= 0 else values[::-1]
    return out


def _without_cycles(
    i: NDArray, j: NDArray, value: NDArray, d: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Edges of paths; of a cycle, the weakest edge is left out."""
    graph = csr_matrix((np.ones(len(i)), (i, j)), shape=(d, d))
    label = connected_components(graph, directed=False)[1]
    columns, edges = np.bincount(label), np.bincount(label[i], minlength=label.max() + 1)
    drop = np.zeros(len(i), dtype=bool)
    for cycle in np.flatnonzero((edges >= columns) & (columns > 1)):
        mine = np.flatnonzero(label[i] == cycle)
        drop[mine[value[mine].argmin()]] = True
    return i[~drop], j[~drop]


def _mended(p: NDArray | NearPairs, order: NDArray, closed: bool) -> NDArray[np.int64] | None:
    """The order after the windows around weak links were improved; None if none was."""
    d = len(order)
    link = np.asarray(p[order, np.roll(order, -1)])
    if not closed:
        link[-1] = np.inf
    weak = np.flatnonzero(link < _WEAK * np.median(link))
    out, done, changed = order.copy(), -1, False
    for at in weak:
        if at < done:
            continue
        start = int(np.clip(at - _WINDOW // 2, 0, max(d - _WINDOW, 0)))
        window = np.arange(start, min(start + _WINDOW, d))
        members = out[window]
        inside = np.asarray(p[members[:, None], members[None]])
        ends = (start > 0 or closed, window[-1] < d - 1 or closed)
        better = _improved(inside, ends)
        if not np.array_equal(better, np.arange(len(window))):
            out[window] = members[better]
            changed = True
        done = start + _WINDOW // 2
    return out if changed else None


def _improved(links: NDArray, fixed: tuple[bool, bool]) -> NDArray[np.int64]:
    """A better order of a window, whose first and last member stay if they are ``fixed``.

    One more member, tied to the ends that stay, closes the window.
    """
    d = len(links)
    v = np.zeros((d + 1, d + 1))
    v[:d, :d] = links
    for end, stays in zip((0, d - 1), fixed, strict=True):
        v[d, end] = v[end, d] = 1e3 * stays
    order = improve_chain(v, np.arange(d + 1), closed=True)
    order = np.roll(order, -int(np.flatnonzero(order == d)[0]))[1:]
    turned = (fixed[0] and order[0] != 0) or (fixed[1] and order[-1] != d - 1)
    return order[::-1] if turned else order


def with_gaps(c: NearPairs, order: NDArray, points: int) -> NDArray[np.int64]:
    """Points of an order of fewer columns than points: a missing one is where the correlation of
    successive columns is that of columns two steps apart.
    """
    at = np.arange(len(order))
    missing = points - len(order)
    if missing <= 0 or len(order) < 4:
        return at
    one, two = (np.asarray(c[order[:-step], order[step:]]) for step in (1, 2))
    middle = (np.median(one) + np.median(two)) / 2
    gaps = np.flatnonzero(one < middle)
    gaps = gaps[np.argsort(one[gaps], kind="stable")[:missing]]
    step = np.ones(len(order), dtype=np.int64)
    step[gaps + 1] += 1
    return np.cumsum(step) - 1
