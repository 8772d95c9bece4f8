"""Where do the missing points of a line or ring belong? Partial correlations close gaps, plain ones
measure them.

Two columns next to a missing point are next neighbours once all other columns are given: their
partial correlation is that of neighbours. Their plain correlation is that of columns two steps
apart.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.search.criterion import Slots, fit_lags
from symlift.search.problem import Halves
from symlift.search.score import explained_elsewhere
from symlift.statistics.correlations import fisher

__all__ = ["can_move_gaps", "gaps_between", "move_gaps"]

# points and missing points up to which gaps are moved: the number of moves grows with their product
_MOST_POINTS, _MOST_MISSING = 128, 16
# part of the misfit that a move has to take away
_GAIN = 0.002


def can_move_gaps(slot: NDArray, slots: Slots) -> bool:
    """Whether columns at ``slot`` (d,) are on a line or ring with a few empty slots."""
    missing = slots.size - len(slot)
    return (
        slots.grid.ndim == 1
        and slots.depth == 1
        and 0 < missing <= _MOST_MISSING
        and slots.size <= _MOST_POINTS
    )


def move_gaps(halves: Halves, slot: NDArray, slots: Slots, prior: float) -> NDArray:
    """Slots (d,) in the same order, with gaps where plain correlations depend on displacement most.

    Lag means are shrunk by ``prior`` pseudo-pairs: a far displacement, which one pair has, would
    explain that pair wherever it is. ``slot`` itself is returned where there are no such gaps, and
    where the rows, each half judging the other, do not confirm the moves.
    """
    if not can_move_gaps(slot, slots):
        return slot
    S, held = (fisher(c)[None] for c in halves.correlations)
    best = _moved((S + held) / 2, slot, slots, prior)

    def known(at: NDArray) -> float:
        return sum(
            explained_elsewhere(a, b, at, slots, prior)[0] for a, b in ((S, held), (held, S))
        )

    return best if known(best) > known(slot) else slot


def gaps_between(slot: NDArray, grid: Grid) -> Iterator[tuple[int, int]]:
    """Pairs of neighbouring columns of a line or ring that have missing points between them."""
    order = np.argsort(slot)
    apart = np.diff(slot[order])
    for i in np.flatnonzero(apart > 1):
        yield int(order[i]), int(order[i + 1])
    if grid.periodic[0] and slot[order[0]] + grid.size - slot[order[-1]] > 1:
        yield int(order[-1]), int(order[0])


def _moved(S: NDArray, slot: NDArray, slots: Slots, prior: float) -> NDArray:
    """The arrangement from which no single move of one gap takes away a worthwhile part of the
    misfit.
    """

    def left(at: NDArray) -> float:
        return float(fit_lags(S, at, slots, 0.0, prior).v[0])

    here = left(slot)
    for _ in range(2 * _MOST_MISSING):
        moves = [(left(at), at) for at in _moves(slot, slots.grid)]
        value, at = min(moves, key=lambda move: move[0])
        if value >= (1 - _GAIN) * here:
            break
        slot, here = at, value
    return slot


def _moves(slot: NDArray, grid: Grid) -> Iterator[NDArray]:
    """Every arrangement in the same order that has one missing point elsewhere; ends of a line
    count as gaps.
    """
    order = np.argsort(slot)
    spaces = _spaces(slot[order], grid)
    for source in np.flatnonzero(spaces > 0):
        for target in range(len(spaces)):
            # on a line, a point that goes from one end to the other moves everything and changes
            # nothing
            ends = not grid.periodic[0] and {int(source), target} == {0, len(spaces) - 1}
            if target == source or ends:
                continue
            new = spaces.copy()
            new[source] -= 1
            new[target] += 1
            at = slot.copy()
            steps = np.cumsum(new + 1)
            at[order] = np.r_[0, steps[:-1]] if grid.periodic[0] else steps[:-1] - 1
            yield at


def _spaces(ordered: NDArray, grid: Grid) -> NDArray[np.int64]:
    """Missing points after each column of a ring; before, between and after those of a line."""
    if grid.periodic[0]:
        return np.diff(np.r_[ordered, ordered[0] + grid.size]) - 1
    return np.r_[ordered[0], np.diff(ordered) - 1, grid.size - 1 - ordered[-1]]
