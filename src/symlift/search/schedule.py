"""Search from several starts: each is refined, and all that they reach stays in the pool.

The search ends once two starts reach the same optimum. The least misfit leads the pool; which of
it is returned is for the judge to say, on rows that the search has not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from symlift.metrics.placement import placement_agreement
from symlift.search.criterion import Slots, fit_lags, misfit, nearest_slots
from symlift.search.judge import PlaceScore, ahead
from symlift.search.moves.descent import refine
from symlift.search.moves.regrow import regrown
from symlift.search.moves.restart import anneal, shake
from symlift.search.moves.segments import likely_reversals
from symlift.search.row_noise import NoiseOfSums
from symlift.search.settings import PlaceSettings

__all__ = ["CHAINS", "SAME", "SearchResult", "distinct", "search", "turned_segments"]

SAME = 1e-6
_POPULATION, _POOL = 4, 12
# starts on a line or ring that are compared before any agreement counts: they cost little, and two
# may share a mistake (a line closed to a ring and cut elsewhere)
CHAINS = 5
_MORE = 2
# restarts that must return to the same optimum to end the search, and the slots up to which they do
# not
_HITS, _SMALL = 4, 100
# growths in vain after which the next result is tried, later and at first, how many of the best are
# tried for longer, and what descent is taken to add to a growth before that is known
_IN_VAIN, _FIRST, _LONGER, _HELPED = 8, 3, 2, 0.05
# reversals of a line that are made at most, and segments that are tried for each
_TURNS, _TIES = 20, 60


@dataclass(frozen=True)
class SearchResult:
    """The slots of least misfit, how many starts were tried and ended there, and the distinct
    results, (misfit, slots), of least misfit first.
    """

    misfit: float
    slot: NDArray[np.int64]
    starts: int
    agreeing: int
    pool: tuple[tuple[float, NDArray[np.int64]], ...] = ()
    #: where no two ends agree: the share of columns that return when the rest is grown from a part
    returned: float | None = None

    def judged(
        self,
        score: Callable[[NDArray], PlaceScore],
        errors: float,
        noise: NoiseOfSums | None = None,
    ) -> SearchResult:
        """The result of the pool that ``score``, from other rows, rates highest, if that is ahead
        of the least misfit by so many standard errors: among equals, the rows that were searched
        decide. ``noise``: how sums over pairs vary from row to row.
        """
        if not self.pool:
            return self
        leader = score(self.slot)
        scored = ((score(slot), least, slot) for least, slot in self.pool)
        best, least, slot = max(scored, key=lambda one: one[0].explained)
        same = abs(least - self.misfit) < SAME
        if same or ahead(best, leader, over_columns=True, noise=noise) < errors:
            return self
        return replace(self, misfit=least, slot=slot, agreeing=1)

    def with_turned(self, S: NDArray, slots: Slots, settings: PlaceSettings) -> SearchResult:
        """The same with the segments of a line or ring turned where that lowers the misfit."""
        value, slot = turned_segments(S, self.slot, slots, settings)
        if value >= self.misfit - SAME:
            return self
        return replace(self, misfit=value, slot=slot, pool=((value, slot), *self.pool))

    def joined(self, more: Iterable[tuple[float, NDArray[np.int64]]]) -> SearchResult:
        """The same with further results, (misfit, slots), in its pool."""
        return replace(self, pool=(*self.pool, *more))


def search(
    S: NDArray,
    slots: Slots,
    starts: Iterator[NDArray],
    rng: np.random.Generator,
    settings: PlaceSettings,
    share: float = 1.0,
    promising: Callable[[NDArray], bool] | None = None,
    partial: Callable[[], NDArray] | None = None,
) -> SearchResult:
    """Refine coordinates from ``starts`` until two agree; then grow the best ones again from parts
    of them, and perturb and anneal them.

    The number of restarts depends on the size of the grid, not on time: the same seed gives the
    same result. ``share`` of that number is used. ``promising`` decides from the best slots so far
    whether that is worthwhile. ``partial`` makes the statistics by which regions grow.
    """
    results: list[tuple[float, NDArray[np.int64]]] = []
    begun: list[tuple[float, NDArray[np.int64]]] = []
    fewest = CHAINS if slots.grid.ndim == 1 else 1
    growth = (
        _Growth(S, partial, slots, rng, settings)
        if partial is not None and settings.restarts
        else None
    )
    settled = False
    for y in starts:
        start = nearest_slots(y, slots.grid, slots.depth)
        begun.append((misfit(S, start, slots, settings.prior_pairs), start))
        results.append(refine(S, start, slots, settings.widths, settings.prior_pairs))
        if len(results) == settings.starts:
            break
        if _agreeing(results) < settings.agreeing or len(results) < fewest or settled:
            continue
        # two starts of one kind may share a mistake: what is right grows again from a part of it
        if growth is None or growth.returns(*min(results, key=_first)):
            break
        settled = True
    agreed = _agreeing(results) >= settings.agreeing
    # with free slots, starts may agree although two columns are separated by an empty slot: a few
    # more restarts correct that
    wanted = settings.agreeing + _MORE if agreed else _HITS
    if slots.size == S.shape[1] and agreed and not settled:
        return _best(results, begun)
    if promising is not None and not promising(_best(results, begun).slot):
        return _best(results, begun)
    if growth is not None:
        growth.try_all(results)
    for _ in range(_restarts(slots.size, settings, share)):
        population = distinct(results)
        _, slot = population[int(rng.integers(len(population))) if rng.random() < 0.6 else 0]
        model = fit_lags(S, slot, slots, 0.5, settings.prior_pairs)
        y = shake(slots.grid.indices()[slot // slots.depth].astype(float), rng)
        results.append(
            refine(S, anneal(S, y, slots, model, rng), slots, settings.widths, settings.prior_pairs)
        )
        # on small grids a restart takes 15 ms, and a few returns to one optimum prove little
        if _agreeing(results) > wanted and (wanted < _HITS or slots.size > _SMALL):
            break
    result = _best(results, begun)
    return result if growth is None else growth.checked(result)


def turned_segments(
    S: NDArray, slot: NDArray[np.int64], slots: Slots, settings: PlaceSettings
) -> tuple[float, NDArray[np.int64]]:
    """The misfit and slots (d,) of a line or ring after reversals of segments, until none of those
    that links hardly show lowers the misfit.
    """
    closed = slots.grid.periodic[0]
    best = misfit(S, slot, slots, settings.prior_pairs)
    for _ in range(_TURNS):
        order = np.argsort(slot, kind="stable")
        held = slot[order]
        tried: list[tuple[float, NDArray[np.int64]]] = []
        for s in S:
            for first, last in likely_reversals(s[np.ix_(order, order)], closed, _TIES):
                new = slot.copy()
                new[order[first : last + 1]] = held[first : last + 1][::-1]
                tried.append((misfit(S, new, slots, settings.prior_pairs), new))
        if not tried:
            break
        value, new = min(tried, key=_first)
        if value >= best - SAME:
            break
        best, slot = value, new
    return best, slot


class _Growth:
    """Growing arrangements again from parts of them."""

    def __init__(
        self,
        S: NDArray,
        make_partial: Callable[[], NDArray],
        slots: Slots,
        rng: np.random.Generator,
        settings: PlaceSettings,
    ) -> None:
        self.S, self.slots, self.rng, self.settings = S, slots, rng, settings
        self._make_partial = make_partial
        # what descent took off at most: growths that are farther behind are not refined
        self.helped = _HELPED

    @cached_property
    def partial(self) -> NDArray:
        """The statistics by which regions grow: many a search ends without them."""
        return self._make_partial()

    def returns(self, least: float, slot: NDArray[np.int64]) -> bool:
        """Whether an arrangement comes back when it is grown from a part of it."""
        ends = (end for _ in range(_IN_VAIN) for end in self._once(least, slot))
        return any(abs(value - least) < SAME for value, _ in ends)

    def checked(self, result: SearchResult) -> SearchResult:
        """The result of a search, and how much of it comes back if nothing else confirms it."""
        if result.agreeing >= self.settings.agreeing:
            return result
        grid, best = self.slots.grid, 0.0
        for _ in range(_IN_VAIN):
            for _, slot in self._once(result.misfit, result.slot):
                best = max(best, placement_agreement(result.slot, slot, grid, shift_open=True))
        return replace(result, returned=best)

    def try_all(self, results: list[tuple[float, NDArray[np.int64]]]) -> None:
        """Grow each result again until that is in vain, or two end at the same optimum; the ends
        are added.

        Which of them has a part that is right, its misfit does not show: each is tried for a while,
        and the best for longer.
        """
        ends: list[tuple[float, NDArray[np.int64]]] = []
        waiting = distinct(results, len(results))
        while waiting and _agreeing(ends) < self.settings.agreeing:
            least, slot = waiting.pop(0)
            # what does not improve at once hardly ever does later
            ends.append(self._until(least, slot, _IN_VAIN, _IN_VAIN - _FIRST))
        if not waiting:
            for least, slot in distinct(ends, _LONGER):
                longer = self._until(least, slot, 2 * _IN_VAIN)
                if longer[0] < least - SAME:
                    ends.append(longer)
        # each result is there once: what did not change agrees with nobody
        results[:] = ends + waiting

    def _once(
        self, least: float, slot: NDArray[np.int64]
    ) -> Iterator[tuple[float, NDArray[np.int64]]]:
        prior = self.settings.prior_pairs
        for new in regrown(self.partial, slot, self.slots.grid, self.rng):
            value = misfit(self.S, new, self.slots, prior)
            if value - self.helped > least + SAME:
                yield value, new
                continue
            end, new = refine(self.S, new, self.slots, (0.0,), prior)
            self.helped = max(self.helped, value - end)
            yield end, new

    def _until(
        self, least: float, slot: NDArray[np.int64], most: int, vain: int = 0
    ) -> tuple[float, NDArray[np.int64]]:
        """Growths until ``most`` of them in turn are in vain; ``vain`` of those count as done."""
        while vain < most:
            vain += 1
            for value, new in self._once(least, slot):
                if value < least - SAME:
                    least, slot, vain = value, new, 0
                    break
        return least, slot


def _first(one: tuple[float, NDArray[np.int64]]) -> float:
    return one[0]


def _restarts(size: int, settings: PlaceSettings, share: float) -> int:
    """Number of restarts; one takes 15 ms at 64 slots, 30 ms at 81 and 250 ms at 256."""
    if size > settings.restart_slots or not settings.restarts:
        return 0
    return max(2, round(share * settings.restarts * min(1.0, (81 / size) ** 2)))


def _agreeing(results: list[tuple[float, NDArray[np.int64]]]) -> int:
    if not results:
        return 0
    least = min(value for value, _ in results)
    return sum(value < least + SAME for value, _ in results)


def distinct(
    results: list[tuple[float, NDArray[np.int64]]], most: int = _POPULATION
) -> list[tuple[float, NDArray[np.int64]]]:
    """The best few distinct results."""
    best: list[tuple[float, NDArray[np.int64]]] = []
    for value, slot in sorted(results, key=lambda r: r[0]):
        if not best or value > best[-1][0] + SAME:
            best.append((value, slot))
    return best[:most]


def _best(
    results: list[tuple[float, NDArray[np.int64]]], begun: list[tuple[float, NDArray[np.int64]]]
) -> SearchResult:
    """The least misfit, and the pool: what the starts and restarts reached, and, on a line or
    ring, where they began. Chains are good orders as they stand, and the descent may harm them.
    """
    value, slot = min(results, key=lambda r: r[0])
    pool = distinct(results, _POOL) + begun
    return SearchResult(value, slot, len(results), _agreeing(results), tuple(pool))
