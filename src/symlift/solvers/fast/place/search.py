"""Search from several starts: each is refined, the least misfit wins.

The search ends once two starts reach the same optimum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symlift.solvers.fast.place.anneal import anneal, shake
from symlift.solvers.fast.place.embed import nearest_slots
from symlift.solvers.fast.place.refine import refine
from symlift.solvers.fast.place.settings import PlaceSettings
from symlift.solvers.fast.place.slots import Slots, fit_lags

__all__ = ["SAME", "SearchResult", "distinct", "search"]

SAME = 1e-6
_POPULATION = 4
_MORE = 2
# restarts that must return to the same optimum to end the search, and the slots up to which they do
# not
_HITS, _SMALL = 4, 100


@dataclass(frozen=True)
class SearchResult:
    """The best slots, their misfit, and how many starts were tried and ended there."""

    misfit: float
    slot: NDArray[np.int64]
    starts: int
    agreeing: int


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
    for y in starts:
        results.append(
            refine(
                S,
                nearest_slots(y, slots.grid, slots.depth),
                slots,
                settings.widths,
                settings.prior_pairs,
            )
        )
        if _agreeing(results) >= settings.agreeing or len(results) == settings.starts:
            break
    # with free slots, starts may agree although two columns are separated by an empty slot: a few
    # more restarts correct that
    wanted = settings.agreeing + _MORE if _agreeing(results) >= settings.agreeing else _HITS
    if slots.size == S.shape[1] and _agreeing(results) >= settings.agreeing:
        return _best(results)
    if promising is not None and not promising(_best(results).slot):
        return _best(results)
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
    return _best(results)


def _restarts(size: int, settings: PlaceSettings, share: float) -> int:
    """Number of restarts; one takes 15 ms at 64 slots, 30 ms at 81 and 250 ms at 256."""
    if size > settings.restart_slots or not settings.restarts:
        return 0
    return max(2, round(share * settings.restarts * min(1.0, (81 / size) ** 2)))


def _agreeing(results: list[tuple[float, NDArray[np.int64]]]) -> int:
    least = min(value for value, _ in results)
    return sum(value < least + SAME for value, _ in results)


def distinct(
    results: list[tuple[float, NDArray[np.int64]]],
) -> list[tuple[float, NDArray[np.int64]]]:
    """The best few distinct results."""
    best: list[tuple[float, NDArray[np.int64]]] = []
    for value, slot in sorted(results, key=lambda r: r[0]):
        if not best or value > best[-1][0] + SAME:
            best.append((value, slot))
    return best[:_POPULATION]


def _best(results: list[tuple[float, NDArray[np.int64]]]) -> SearchResult:
    value, slot = min(results, key=lambda r: r[0])
    return SearchResult(value, slot, len(results), _agreeing(results))
