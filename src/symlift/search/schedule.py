"""Search from several starts: each is refined, and all that they reach stays in the pool.

The search ends once two starts reach the same optimum. The least misfit leads the pool; which of
it is returned is for the judge to say, on rows that the search has not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from symlift.search.criterion import Slots, fit_lags, misfit, nearest_slots
from symlift.search.judge import PlaceScore, ahead
from symlift.search.moves.descent import refine
from symlift.search.moves.restart import anneal, shake
from symlift.search.settings import PlaceSettings

__all__ = ["SAME", "SearchResult", "distinct", "search"]

SAME = 1e-6
_POPULATION, _POOL = 4, 12
# starts on a line or ring that are compared before any agreement counts: they cost little, and two
# may share a mistake (a line closed to a ring and cut elsewhere)
_CHAINS = 5
_MORE = 2
# restarts that must return to the same optimum to end the search, and the slots up to which they do
# not
_HITS, _SMALL = 4, 100


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

    def judged(self, score: Callable[[NDArray], PlaceScore], errors: float) -> SearchResult:
        """The result of the pool that ``score``, from other rows, rates highest, if that is ahead
        of the least misfit by so many standard errors: among equals, the rows that were searched
        decide.
        """
        if not self.pool:
            return self
        leader = score(self.slot)
        scored = ((score(slot), least, slot) for least, slot in self.pool)
        best, least, slot = max(scored, key=lambda one: one[0].explained)
        same = abs(least - self.misfit) < SAME
        if same or ahead(best, leader, over_columns=True) < errors:
            return self
        return replace(self, misfit=least, slot=slot, agreeing=1)


def search(
    S: NDArray,
    slots: Slots,
    starts: Iterator[NDArray],
    rng: np.random.Generator,
    settings: PlaceSettings,
    share: float = 1.0,
    promising: Callable[[NDArray], bool] | None = None,
) -> SearchResult:
    """Refine coordinates from ``starts`` until two agree; then perturb and anneal the best ones.

    The number of restarts depends on the size of the grid, not on time: the same seed gives the
    same result. ``share`` of that number is used. ``promising`` decides from the best slots so far
    whether restarts are worthwhile.
    """
    results: list[tuple[float, NDArray[np.int64]]] = []
    begun: list[tuple[float, NDArray[np.int64]]] = []
    fewest = _CHAINS if slots.grid.ndim == 1 else 1
    for y in starts:
        start = nearest_slots(y, slots.grid, slots.depth)
        begun.append((misfit(S, start, slots, settings.prior_pairs), start))
        results.append(refine(S, start, slots, settings.widths, settings.prior_pairs))
        agree = _agreeing(results) >= settings.agreeing and len(results) >= fewest
        if agree or len(results) == settings.starts:
            break
    # with free slots, starts may agree although two columns are separated by an empty slot: a few
    # more restarts correct that
    wanted = settings.agreeing + _MORE if _agreeing(results) >= settings.agreeing else _HITS
    if slots.size == S.shape[1] and _agreeing(results) >= settings.agreeing:
        return _best(results, begun)
    if promising is not None and not promising(_best(results, begun).slot):
        return _best(results, begun)
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
    return _best(results, begun)


def _restarts(size: int, settings: PlaceSettings, share: float) -> int:
    """Number of restarts; one takes 15 ms at 64 slots, 30 ms at 81 and 250 ms at 256."""
    if size > settings.restart_slots or not settings.restarts:
        return 0
    return max(2, round(share * settings.restarts * min(1.0, (81 / size) ** 2)))


def _agreeing(results: list[tuple[float, NDArray[np.int64]]]) -> int:
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
