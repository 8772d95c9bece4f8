"""Search from several starts: each is refined, and all that they reach stays in the pool.

The search ends once two starts reach the same optimum. The least misfit leads the pool; which of
it is returned is for the judge to say, on rows that the search has not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, tee

import numpy as np
from numpy.typing import NDArray

from symlift.search.criterion import Slots, fit_lags, misfit, nearest_slots
from symlift.search.growth import SAME, Growth, Ranked, distinct, first_of, same_ends
from symlift.search.moves.descent import refine
from symlift.search.moves.restart import anneal, shake
from symlift.search.moves.segments import likely_reversals
from symlift.search.row_noise import NoiseOfSums
from symlift.search.score import PlaceScore, ahead
from symlift.search.settings import PlaceSettings

__all__ = ["CHAINS", "SearchResult", "search", "turned_segments"]

_POOL = 12
# starts on a line or ring that are compared before any agreement counts: they cost little, and two
# may share a mistake (a line closed to a ring and cut elsewhere)
CHAINS = 5
_MORE = 2
# restarts that must return to the same optimum to end the search, and the slots up to which they do
# not
_HITS, _SMALL = 4, 100
# descents in vain before arrangements are grown from parts of the starts, which takes a twentieth
# of the time (17x25 points: 0.07 s, a descent 1.5 s)
_DESCENTS = 3
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
    pool: tuple[Ranked, ...] = ()
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

    def joined(self, more: Iterable[Ranked]) -> SearchResult:
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
    """Refine coordinates from ``starts`` until two agree; if the first few do not, grow
    arrangements from parts of all of them; then refine the other starts, perturb and anneal.

    The number of restarts depends on the size of the grid, not on time: the same seed gives the
    same result. ``share`` of that number is used. ``promising`` decides from the best slots so far
    whether that is worthwhile. ``partial`` makes the statistics by which regions grow.
    """
    results: list[Ranked] = []
    begun: list[Ranked] = []
    fewest = CHAINS if slots.grid.ndim == 1 else 1
    growth = (
        Growth(S, partial, slots, rng, settings)
        if partial is not None and settings.restarts
        else None
    )
    settled = grown = False

    def ended() -> SearchResult:
        return _best(results, begun, slots)

    waiting: Iterator[NDArray[np.int64]] = (
        nearest_slots(y, slots.grid, slots.depth) for y in starts
    )
    while (start := next(waiting, None)) is not None:
        begun.append((misfit(S, start, slots, settings.prior_pairs), start))
        results.append(refine(S, start, slots, settings.widths, settings.prior_pairs))
        agreed = _agreeing(results, slots) >= settings.judge.agreeing
        if agreed and len(results) >= fewest and not settled:
            # two starts of one kind may share a mistake: what is right grows again from a part
            if growth is None or growth.returns(*min(results, key=first_of)):
                break
            settled = True
        if growth is not None and not grown and len(begun) == _DESCENTS:
            if promising is not None and not promising(min(results, key=first_of)[1]):
                return ended()
            waiting, later = tee(waiting)
            parts = chain((slot for _, slot in begun), later, [slot for _, slot in results])
            ends, converged = growth.from_parts(parts)
            results += ends
            if converged:
                return ended()
            grown = True
        if len(begun) == settings.starts:
            break
    agreed = _agreeing(results, slots) >= settings.judge.agreeing
    # with free slots, starts may agree although two columns are separated by an empty slot: a few
    # more restarts correct that
    wanted = settings.judge.agreeing + _MORE if agreed else _HITS
    if slots.size == S.shape[1] and agreed and not settled:
        return ended()
    if promising is not None and not promising(min(results, key=first_of)[1]):
        return ended()
    for _ in range(_restarts(slots.size, settings, share)):
        population = distinct(results)
        _, slot = population[int(rng.integers(len(population))) if rng.random() < 0.6 else 0]
        model = fit_lags(S, slot, slots, 0.5, settings.prior_pairs)
        y = shake(slots.grid.indices()[slot // slots.depth].astype(float), rng)
        results.append(
            refine(S, anneal(S, y, slots, model, rng), slots, settings.widths, settings.prior_pairs)
        )
        # on small grids a restart takes 15 ms, and a few returns to one optimum prove little
        if _at_least(results) > wanted and (wanted < _HITS or slots.size > _SMALL):
            break
    result = ended()
    if growth is None or result.agreeing >= settings.judge.agreeing:
        return result
    return replace(result, returned=growth.share_that_returns(result.misfit, result.slot))


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
        tried: list[Ranked] = []
        for s in S:
            for first, last in likely_reversals(s[np.ix_(order, order)], closed, _TIES):
                new = slot.copy()
                new[order[first : last + 1]] = held[first : last + 1][::-1]
                tried.append((misfit(S, new, slots, settings.prior_pairs), new))
        if not tried:
            break
        value, new = min(tried, key=first_of)
        if value >= best - SAME:
            break
        best, slot = value, new
    return best, slot


def _restarts(size: int, settings: PlaceSettings, share: float) -> int:
    """Number of restarts; one takes 15 ms at 64 slots, 30 ms at 81 and 250 ms at 256."""
    if size > settings.restart_slots or not settings.restarts:
        return 0
    return max(2, round(share * settings.restarts * min(1.0, (81 / size) ** 2)))


def _agreeing(results: list[Ranked], slots: Slots) -> int:
    """How many results put columns where the best does, except for a few that nothing decides."""
    if not results:
        return 0
    least, best = min(results, key=first_of)
    if slots.depth > 1:
        return _at_least(results)
    return sum(value < least + SAME or same_ends(best, slot, slots.grid) for value, slot in results)


def _at_least(results: list[Ranked]) -> int:
    """How many results have the least misfit."""
    least = min(value for value, _ in results)
    return sum(value < least + SAME for value, _ in results)


def _best(results: list[Ranked], begun: list[Ranked], slots: Slots) -> SearchResult:
    """The least misfit, and the pool: what the starts and restarts reached, and, on a line or
    ring, where they began. Chains are good orders as they stand, and the descent may harm them.
    """
    value, slot = min(results, key=first_of)
    pool = distinct(results, _POOL) + begun
    agreeing = _agreeing(results, slots)
    return SearchResult(value, slot, len(results), agreeing, tuple(pool))
