"""Reverse and displace segments of a chain (2-opt, or-opt): the moves that order a line or ring.

Exchanges of single columns cannot turn a stretch of a line round, and most local optima of an order
are exactly that: a stretch that runs backwards, or sits elsewhere. Both moves change three links at
most, so that the gain of every one of them is read from the matrix of links at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["chain_length", "displacement", "improve_chain", "likely_reversals", "reversals"]

#: segments that are displaced have at most about this share of the chain
_SHARE = 0.5
_GAIN = 1e-9


def chain_length(links: NDArray, order: NDArray, closed: bool) -> float:
    """Sum of the links (d, d) between successive columns of ``order`` (d,).

    >>> chain_length(np.array([[0, 2, 5], [2, 0, 1], [5, 1, 0]]), np.array([0, 1, 2]), closed=True)
    8.0
    """
    total = float(links[order[:-1], order[1:]].sum())
    return total + float(links[order[-1], order[0]]) if closed else total


def improve_chain(links: NDArray, order: NDArray, closed: bool) -> NDArray[np.int64]:
    """``order`` (d,) after reversals and displacements of segments, until none adds to its links.

    Reversals that do not touch each other are made together. Each pass raises the sum of the
    links, so that the end is reached; the number of passes is bounded all the same.
    """
    order = np.array(order, dtype=np.int64)
    for _ in range(20 * len(order)):
        if not closed:
            order = np.roll(order, -_cut(links[order, np.roll(order, -1)]))
        turned = reversals(links[np.ix_(order, order)], closed)
        if turned:
            for first, last in turned:
                order[first : last + 1] = order[first : last + 1][::-1].copy()
            continue
        moved = displacement(links[np.ix_(order, order)], closed)
        if moved is None:
            break
        order = order[moved]
    return order


def _cut(link: NDArray) -> int:
    """Where a line, its ends joined, is best cut: the place of its weakest ``link`` (d,), the last
    of which joins the ends.
    """
    weakest = int(link.argmin())
    return weakest + 1 if link[weakest] < link[-1] - _GAIN else 0


def reversals(v: NDArray, closed: bool) -> list[tuple[int, int]]:
    """Segments (first, last) whose reversal adds to the sum of links, disjoint, the best first.

    v (d, d): the links in the present order.
    """
    d, gain = len(v), _gains(v, closed)
    most = min(64, gain.size)
    best = np.argpartition(-gain, most - 1, axis=None)[:most]
    best = best[np.argsort(-gain.ravel()[best], kind="stable")]
    chosen: list[tuple[int, int]] = []
    for flat in best[gain.ravel()[best] > _GAIN]:
        first, last = (int(k) for k in np.unravel_index(flat, gain.shape))
        if all(last + 1 < a or b + 1 < first for a, b in chosen):
            chosen.append((first, last))
            if closed and (first == 0 or last == d - 1):
                break  # it touches both ends
    return chosen


def likely_reversals(v: NDArray, closed: bool, most: int) -> list[tuple[int, int]]:
    """The ``most`` segments (first, last) whose reversal takes least from the sum of links.

    A long stretch that runs backwards costs two links, which may be weak where it ends: links do
    not show it, but what is far apart does.
    """
    gain = _gains(v, closed)
    best = np.argsort(-gain, axis=None, kind="stable")[:most]
    pairs = (np.unravel_index(flat, gain.shape) for flat in best if np.isfinite(gain.flat[flat]))
    return [(int(first), int(last)) for first, last in pairs]


def _gains(v: NDArray, closed: bool) -> NDArray[np.float64]:
    """What the reversal of each segment (first, last) adds to the sum of links, (d, d)."""
    d = len(v)
    around = np.zeros((d + 2, d + 2))
    around[1:-1, 1:-1] = v
    if closed:
        around[0, 1:-1], around[1:-1, 0] = v[-1], v[:, -1]
        around[-1, 1:-1], around[1:-1, -1] = v[0], v[:, 0]
    at = np.arange(d)
    before, after = around[at, at + 1], around[at + 1, at + 2]
    gain = around[:-2, 1:-1] + around[1:-1, 2:] - before[:, None] - after[None]
    gain[np.tril_indices(d)] = -np.inf
    gain[0, d - 1] = -np.inf  # the whole chain the other way round is the same chain
    return np.asarray(gain)


def displacement(v: NDArray, closed: bool) -> NDArray[np.int64] | None:
    """The new order of positions after the displacement of one segment, possibly reversed, that
    adds most; None where none adds anything.
    """
    d = len(v)
    best: tuple[float, tuple[int, int, int, bool]] | None = None
    for length in _lengths(d):
        longer = _best_displacement(v, closed, length)
        if longer is not None and (best is None or longer[0] > best[0]):
            best = longer
    if best is None:
        return None
    first, length, after, turned = best[1]
    at = np.arange(d)
    segment = at[first : first + length][:: -1 if turned else 1]
    if after < first:
        return np.r_[at[: after + 1], segment, at[after + 1 : first], at[first + length :]]
    return np.r_[at[:first], at[first + length : after + 1], segment, at[after + 1 :]]


def _lengths(d: int) -> list[int]:
    """1, 2, 3, … and then ever farther apart: long segments differ little from slightly longer."""
    lengths, step = [], 1.0
    while step <= min(_SHARE * d, d - 2):
        lengths.append(int(step))
        step = max(step + 1, 1.3 * step)
    return lengths


def _best_displacement(
    v: NDArray, closed: bool, length: int
) -> tuple[float, tuple[int, int, int, bool]] | None:
    """Gain, and (first, length, after which position, reversed), of segments of one length."""
    d = len(v)
    first = np.arange(d - length + 1)
    last = first + length - 1
    left, right = (first - 1) % d, (last + 1) % d
    has_left, has_right = (first > 0) | closed, (last < d - 1) | closed
    loss = has_left * v[left, first] + has_right * v[last, right]
    joined = np.where(has_left & has_right, v[left, right], 0.0)
    # a place is after position `after`; -1 is before the first one of a line
    after = np.arange(-1, d)
    a, b = after % d, (after + 1) % d
    has_a, has_b = (after >= 0) | closed, (after < d - 1) | closed
    old = np.where(has_a & has_b, v[a, b], 0.0)
    own = (after[None] >= first[:, None] - 1) & (after[None] <= last[:, None])
    if closed:  # before the first is after the last
        own |= (after[None] == -1) | ((first[:, None] == 0) & (after[None] == d - 1))
    best: tuple[float, tuple[int, int, int, bool]] | None = None
    for turned, (head, tail) in ((False, (first, last)), (True, (last, first))):
        gain = has_a * v[np.ix_(head, a)] + has_b * v[np.ix_(tail, b)]
        gain += (joined - loss)[:, None] - old
        gain[own] = -np.inf
        flat = int(gain.argmax())
        if gain.ravel()[flat] > max(_GAIN, best[0] if best else 0.0):
            i, k = np.unravel_index(flat, gain.shape)
            best = float(gain[i, k]), (int(first[i]), length, int(after[k]), turned)
    return best
