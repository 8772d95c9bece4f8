"""Arrangements grown from parts of others, and crossed with each other, until one comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.metrics.placement import placement_agreement
from symlift.search.criterion import Slots, misfit
from symlift.search.moves.descent import refine
from symlift.search.moves.regrow import crossed, regrown
from symlift.search.settings import PlaceSettings

__all__ = [
    "SAME",
    "Growth",
    "Ranked",
    "alike",
    "distinct",
    "first_of",
    "same_ends",
    "same_order",
]

#: misfits that differ by less are the same
SAME = 1e-6
#: a misfit, and the slots that have it
Ranked = tuple[float, NDArray[np.int64]]
_POPULATION = 4
# growths from each start, each from the best before it, and growths of one arrangement that must be
# in vain for it not to return
_ROUNDS, _IN_VAIN = 6, 8
# arrangements that are kept, the best of them that are crossed, and the share of steps in which one
# of them grows alone
_KEPT, _CROSSED, _ALONE = 10, 6, 0.4
# steps in vain after which crossing ends: 25 ended in two of five cases with a part that was wrong
_STEPS_IN_VAIN = 40
# columns of which one may be elsewhere in two results that are the same: on a large grid there are
# some that nothing decides (corners of digits that are hardly ever lit); on a line, also the steps
# by which places may differ, as a column that is put elsewhere moves all between
OFF = 50


def same_order(first: NDArray, second: NDArray, grid: Grid) -> float:
    """How well two orders of a line or ring agree: the rank correlation of a line, the mean
    resultant of a ring, whichever end or direction comes first.

    >>> round(same_order(np.arange(8), np.array([7, 6, 5, 4, 3, 2, 0, 1]), Grid((8,))), 3)
    0.976
    >>> round(same_order(np.arange(8), (5 - np.arange(8)) % 8, Grid((8,), True)), 6)
    1.0
    """
    if not grid.periodic[0]:
        first, second = (np.argsort(np.argsort(x, kind="stable")) for x in (first, second))
        return abs(float(np.corrcoef(first, second)[0, 1]))
    turn = [np.exp(2j * np.pi * one / grid.size) for one in (first, second)]
    return max(abs(complex(np.mean(turn[0] * one))) for one in (turn[1], turn[1].conj()))


def alike(first: NDArray, second: NDArray, grid: Grid) -> float:
    """Share of columns that two arrangements put in the same place, up to symmetries of the grid;
    on a line or ring, nearly the same.

    >>> alike(np.arange(8), np.array([7, 6, 5, 4, 3, 2, 0, 1]), Grid((8,)))
    1.0
    """
    within = max(1, grid.size // OFF) if grid.ndim == 1 else 0
    return placement_agreement(first, second, grid, shift_open=True, within=within)


def same_ends(one: NDArray, other: NDArray, grid: Grid) -> bool:
    """Whether two searches have ended alike, except for columns that nothing decides."""
    return alike(one, other, grid) >= 1 - 1 / OFF


class Growth:
    """Growing arrangements from parts of others."""

    def __init__(
        self,
        S: NDArray,
        make_partial: Callable[[], NDArray],
        slots: Slots,
        rng: np.random.Generator,
        settings: PlaceSettings,
        mends: bool = True,
    ) -> None:
        self.S, self.slots, self.rng, self.settings = S, slots, rng, settings
        # what grows is refined by descent at the end
        self._widths = (0.0,) if mends else ()
        self._make_partial = make_partial

    @cached_property
    def partial(self) -> NDArray:
        """The statistics by which regions grow: many a search ends without them."""
        return self._make_partial()

    def returns(self, least: float, slot: NDArray[np.int64]) -> bool:
        """Whether an arrangement comes back when it is grown from a part of it."""
        return self.share_that_returns(least, slot) >= self.settings.judge.alike

    def share_that_returns(self, least: float, slot: NDArray[np.int64]) -> float:
        """How much of an arrangement comes back when it is grown from a part of it; no more is
        tried once as much has come back as counts as the same.
        """
        most = 0.0
        for new in self._again(slot):
            value, end = self._refined(new)
            back = abs(value - least) < SAME or alike(slot, end, self.slots.grid)
            most = max(most, float(back))
            if most >= self.settings.judge.alike:
                break
        return most

    def from_parts(self, starts: Iterable[NDArray[np.int64]]) -> tuple[list[Ranked], bool]:
        """The best that grows from parts of ``starts``, and from what two of these have in common;
        and whether the best of all comes back from a part of it, in which case it is there twice.

        Starts are compared by what grows from them only: descent ends in arrangements of less
        misfit than a whole of which a third is right. No further starts are made once two have
        grown to the same.
        """
        grown: list[Ranked] = []
        for slot in starts:
            grown.append(self._best_of(slot))
            best = min(grown, key=first_of)[1]
            if sum(same_ends(best, one, self.slots.grid) for _, one in grown) > 1:
                end = self._refined(best)
                if self.returns(*end):
                    return [end, end], True
        population, vain = distinct(grown, _KEPT), 0
        while population and vain < _STEPS_IN_VAIN:
            new = [(misfit(self.S, s, self.slots, self._prior), s) for s in self._step(population)]
            least = population[0][0]
            population = distinct([*population, *new], _KEPT)
            vain = 0 if population[0][0] < least - SAME else vain + 1
        # descent mends what growth leaves at the borders
        ends = [self._refined(slot) for _, slot in population[:_POPULATION]]
        best_end = min(ends, key=first_of, default=None)
        if best_end is None or not self.returns(*best_end):
            return ends, False
        return [best_end, *ends], True

    @property
    def _prior(self) -> float:
        return self.settings.prior_pairs

    def _refined(self, slot: NDArray[np.int64]) -> Ranked:
        return refine(self.S, slot, self.slots, self._widths, self._prior)

    def _again(self, slot: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
        for _ in range(_IN_VAIN):
            yield from regrown(self.partial, slot, self.slots.grid, self.rng)

    def _best_of(self, slot: NDArray[np.int64]) -> Ranked:
        """The best of a few growths, each from the best before it."""
        best = (np.inf, slot)
        for _ in range(_ROUNDS):
            before = best
            for new in regrown(self.partial, best[1], self.slots.grid, self.rng):
                best = min(best, (misfit(self.S, new, self.slots, self._prior), new), key=first_of)
            if same_ends(before[1], best[1], self.slots.grid):
                break
        return best

    def _step(self, population: list[Ranked]) -> Iterator[NDArray[np.int64]]:
        """One arrangement grown again, or what two have in common."""
        grid, few = self.slots.grid, min(len(population), _CROSSED)
        first, second = sorted(self.rng.choice(few, 2, replace=few < 2).tolist())
        if few > 1 and self.rng.random() >= _ALONE:
            new = crossed(self.partial, population[first][1], population[second][1], grid, self.rng)
            if new is not None:
                yield new
                yield from regrown(self.partial, new, grid, self.rng)
                return
        yield from regrown(self.partial, population[first][1], grid, self.rng)


def first_of(one: Ranked) -> float:
    """The misfit, for comparisons."""
    return one[0]


def distinct(results: list[Ranked], most: int = _POPULATION) -> list[Ranked]:
    """The best few distinct results."""
    best: list[Ranked] = []
    for value, slot in sorted(results, key=first_of):
        if np.isfinite(value) and (not best or value > best[-1][0] + SAME):
            best.append((value, slot))
    return best[:most]
