"""How a map can be wrong as a whole: blocks of channels reversed, shifted, exchanged, turned, or
contacts counted in another order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage

from symlift.maps.motions import motions_of

__all__ = ["Fault", "Kind", "faults_of", "groups_apart"]

# channels of a bank, as connectors and headstages have them; blocks of an array as large as half
_BANKS = (4, 8, 16, 32, 64, 128, 192)
# longest run of channels, at any start, that is tried in reverse order
_RUN = 64
# contacts by which a block is off
_OFF = (1, -1, 2, -2, 4, -4, 8, -8)
# channels that are listed at most, and the first ones of more
_MANY, _FEW = 8, 3
# groups of contacts farther from each other than this, in nearest distances, are shanks
_APART = 2.5


class Kind(StrEnum):
    """What happened to a map."""

    REVERSED = "reversed"
    SHIFTED = "shifted"
    EXCHANGED = "exchanged"
    TURNED = "turned"
    COUNTED = "counted"
    LAYOUT = "layout"
    SWAPPED = "swapped"


@dataclass(frozen=True)
class Fault:
    """One way in which a map can be wrong.

    ``to`` (d,): the channel at whose place each channel belongs. ``blocks``: the channels that it
    is about, in their order. ``shanks``: their numbers, where blocks are whole groups of contacts.
    ``words``: the order of counting as the map has it and as it should be, or a layout's name.
    """

    kind: Kind
    to: NDArray[np.int64]
    blocks: tuple[NDArray[np.int64], ...]
    by: int = 0
    shanks: tuple[int, ...] = ()
    words: tuple[str, ...] = ()

    def sentence(self, names: Sequence[object]) -> str:
        """What is wrong, with the channels' names."""
        parts = [_run(block, names) for block in self.blocks]
        if self.shanks:
            numbers = " and ".join(map(str, self.shanks))
            one = f"shank {numbers}" if len(self.shanks) == 1 else f"shanks {numbers}"
            parts = [f"{one} ({', '.join(parts)})"]
        what = " and ".join(parts)
        several = len(self.blocks) > 1 or not self.shanks
        are = "are" if several else "is"
        if self.kind is Kind.REVERSED:
            return f"{what} are in reverse order"
        if self.kind is Kind.SHIFTED:
            return f"{what} are shifted by {self.by}"
        if self.kind is Kind.EXCHANGED:
            return f"{what} are exchanged{''.join(f', {one}' for one in self.words)}"
        if self.kind is Kind.TURNED:
            return f"{what} {are} {self.words[0]}"
        if self.kind is Kind.COUNTED:
            return f"contacts are counted {self.words[0]} instead of {self.words[1]}"
        if self.kind is Kind.LAYOUT:
            return f"the layout is {self.words[0]}"
        return f"{what} are swapped"


def _run(block: NDArray[np.int64], names: Sequence[object]) -> str:
    """Channels in a few words: from the first to the last, where those between are meant."""
    shown = [str(names[i]) for i in np.sort(block)]
    if len(shown) > _FEW and np.ptp(block) == len(block) - 1:
        return f"channels {shown[0]} to {shown[-1]}"
    if len(shown) > _MANY:
        shown = [*shown[:_FEW], f"… {shown[-1]} ({len(shown)} in all)"]
    return f"channels {' '.join(shown)}"


def groups_apart(positions: NDArray) -> NDArray[np.int64]:
    """(d,): the number of the shank of each position, by the gaps between them, from left to
    right.
    """
    apart = np.sqrt(np.sum((positions[:, None] - positions[None]) ** 2, axis=-1))
    np.fill_diagonal(apart, np.inf)
    step = float(np.median(apart.min(axis=1)))
    label = fcluster(linkage(positions, "single"), _APART * step, "distance") - 1
    first = [tuple(positions[label == k].mean(axis=0)) for k in range(label.max() + 1)]
    rank = np.argsort(sorted(range(len(first)), key=lambda k: first[k]))
    return np.asarray(rank[label], dtype=np.int64)


def faults_of(positions: NDArray, group: NDArray[np.int64]) -> Iterator[Fault]:
    """Faults of a map that puts channels at ``positions`` (d, P), on shanks ``group`` (d,)."""
    d = len(positions)
    yield from _turned(positions, group)
    yield from _exchanged_shanks(positions, group)
    yield from _reversed(np.arange(d), _RUN)
    yield from _shifted(np.arange(d), group)
    counted = dict(_countings(positions, group))
    orders = {order.tobytes(): order for order in [np.arange(d), *counted.values()]}
    for order in orders.values():
        yield from _banks(order)
    yield from _counted(counted)


def _nothing(d: int) -> NDArray[np.int64]:
    return np.arange(d)


def _reversed(order: NDArray[np.int64], longest: int) -> Iterator[Fault]:
    d = len(order)
    for start in range(d):
        for stop in range(start + 4, d + 1):
            if stop - start > longest and start and stop < d:
                continue
            yield _block_reversed(order, order[start:stop])


def _block_reversed(order: NDArray[np.int64], block: NDArray[np.int64]) -> Fault:
    to = _nothing(len(order))
    to[block] = block[::-1]
    return Fault(Kind.REVERSED, to, (block,))


def _shifted(order: NDArray[np.int64], group: NDArray[np.int64]) -> Iterator[Fault]:
    """Channels from one on, to the end of a bank, a shank or the probe, off by a few contacts."""
    d = len(order)
    ends = np.flatnonzero(np.diff(group[order])) + 1
    for start in range(d):
        stops = {d, *(int(end) for end in ends if end > start)}
        stops |= {(start // size + 1) * size for size in _BANKS if (start // size + 1) * size <= d}
        for stop in sorted(stops):
            block = order[start:stop]
            for by in _OFF:
                if len(block) > 2 * abs(by) and len(block) > 3:
                    to = _nothing(d)
                    # in a circle: the contact that is left over goes to the last channel
                    to[block] = np.roll(block, -by)
                    yield Fault(Kind.SHIFTED, to, (block,), by)


def _banks(order: NDArray[np.int64]) -> Iterator[Fault]:
    """Banks exchanged, and banks in reverse order."""
    d = len(order)
    for size in sorted({*_BANKS, d // 2}):
        if size > d // 2 or size < _BANKS[0]:
            continue
        # counted from the first channel, or so that the last bank is full
        starts = sorted({*range(0, d - size + 1, size), *range(d % size, d - size + 1, size)})
        for start in starts:
            yield _block_reversed(order, order[start : start + size])
        for start, next_one in combinations(starts, 2):
            if next_one - start >= size:
                one, other = order[start : start + size], order[next_one : next_one + size]
                yield _exchanged(d, one, other)
                yield _exchanged(d, one, other[::-1], ("each in reverse order",))


def _exchanged(
    d: int, one: NDArray[np.int64], other: NDArray[np.int64], words: tuple[str, ...] = ()
) -> Fault:
    to = _nothing(d)
    to[one], to[other] = other, one
    return Fault(Kind.EXCHANGED, to, (np.sort(one), np.sort(other)), words=words)


def _turned(positions: NDArray, group: NDArray[np.int64]) -> Iterator[Fault]:
    """Single shanks turned or mirrored, where that keeps their contacts."""
    if group.max() == 0:
        return
    d, step = len(positions), _step(positions)
    for shank in range(group.max() + 1):
        on = np.flatnonzero(group == shank)
        for motion in _own_motions(positions[on] / step):
            to = _nothing(d)
            to[on] = on[motion]
            yield Fault(Kind.TURNED, to, (on,), shanks=(shank,), words=("turned round",))


def _own_motions(points: NDArray) -> list[NDArray[np.int64]]:
    """Motions of some points onto themselves, without that which changes nothing."""
    every = np.arange(len(points))
    flat = points[:, np.ptp(points, axis=0) > 1e-9]
    return [to for to in motions_of(flat, every) if (to != every).any()]


def _exchanged_shanks(positions: NDArray, group: NDArray[np.int64]) -> Iterator[Fault]:
    """Shanks of the same form at each other's place, as they are or turned."""
    d, step = len(positions), _step(positions)
    for one, other in combinations(range(group.max() + 1), 2):
        a, b = np.flatnonzero(group == one), np.flatnonzero(group == other)
        if len(a) != len(b):
            continue
        by_place = [on[np.lexsort((positions - positions[on].min(axis=0))[on].T)] for on in (a, b)]
        form = [(positions[on] - positions[on].min(axis=0)) / step for on in by_place]
        if np.abs(form[0] - form[1]).max() > 0.1:
            continue
        for turn in [np.arange(len(a)), *_own_motions(form[0])]:
            same = (turn == np.arange(len(a))).all()
            to = _nothing(d)
            to[by_place[0]] = by_place[1][turn]
            to[by_place[1]] = by_place[0][turn]
            yield Fault(
                Kind.EXCHANGED,
                to,
                (a, b),
                shanks=(one, other),
                words=() if same else ("both turned round",),
            )


def _step(positions: NDArray) -> float:
    apart = np.sqrt(np.sum((positions[:, None] - positions[None]) ** 2, axis=-1))
    np.fill_diagonal(apart, np.inf)
    return float(np.median(apart.min(axis=1)))


def _countings(
    positions: NDArray, group: NDArray[np.int64]
) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Orders in which the contacts of a probe are counted, with all shanks as one and shank after
    shank.
    """
    if positions.shape[1] != 2:
        return
    x, y = (np.round(positions[:, k] / _step(positions), 2) for k in (0, 1))
    ways = {"row by row": (y, x), "column by column": (x, y)}
    side = _rank_in_row(x, y, group)
    if side.max() + 1 < len(np.unique(x)):
        # columns of a staggered probe are not straight
        ways["side by side"] = (side, y)
    shanks = {"": np.zeros_like(group), "shank after shank, ": group}
    for first, number in shanks.items() if group.max() else [("", group)]:
        for way, (level, along) in ways.items():
            for signs in np.ndindex(2, 2, 2):
                last, turned, snake = (bool(sign) for sign in signs)
                name = first + way
                name += (", from the last" if last else "") + (", backwards" if turned else "")
                name += ", back and forth" if snake else ""
                start, turn = (-1 if last else 1), (-1 if turned else 1)
                rank = np.unique(start * level, return_inverse=True)[1]
                sign = np.where(snake & (rank % 2 == 1), -turn, turn)
                yield name, np.lexsort((sign * along, start * level, number))


def _rank_in_row(x: NDArray, y: NDArray, group: NDArray[np.int64]) -> NDArray[np.float64]:
    """Which one of its row each contact is, from the left, with the rows of all shanks apart."""
    order = np.lexsort((x, y, group))
    starts = np.r_[True, (np.diff(y[order]) != 0) | (np.diff(group[order]) != 0)]
    first = np.maximum.accumulate(np.where(starts, np.arange(len(x)), 0))
    rank = np.empty(len(x))
    rank[order] = np.arange(len(x)) - first
    widest = rank.max() + 1
    return rank + widest * group


def _counted(orders: dict[str, NDArray[np.int64]]) -> Iterator[Fault]:
    """The contacts counted in one order instead of another one."""
    seen: set[bytes] = set()
    for one, other in permutations(orders, 2):
        to = _nothing(len(orders[one]))
        to[orders[one]] = orders[other]
        if to.tobytes() not in seen and (to != np.arange(len(to))).any():
            seen.add(to.tobytes())
            yield Fault(Kind.COUNTED, to, (np.arange(len(to)),), words=(one, other))
