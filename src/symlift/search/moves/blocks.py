"""Small fields that are far from stationary: use near displacements, and move parts as a whole.

Digits of 8 x 8 pixels have strokes that are correlated across the whole picture. Far displacements
then carry no information, and the best arrangements by all displacements have one half shifted by a
step (F = -3.095, the truth -3.081). Strongly shrunk lag means and the links between neighbours
prefer the truth, and one move brings a shifted part (a "slip") back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from symlift.search.criterion import Slots, fit_lags, misfit, nearest_slots
from symlift.search.growth import SAME, distinct
from symlift.search.moves.descent import refine
from symlift.search.moves.restart import anneal, shake
from symlift.search.schedule import SearchResult
from symlift.search.score import links

__all__ = ["local_value", "search_slips", "slips"]

#: pseudo-pairs by which lag means are shrunk, in turn, and the weight of links between neighbours
#: relative to the misfit
PRIORS, _LINKS = (30.0, 100.0), 0.15
_ROUNDS = 20
#: slips are not tried on an arrangement that is worse than the best by more than this
_BEHIND = 0.03


def local_value(S: NDArray, slot: NDArray, slots: Slots) -> float:
    """Objective to minimise: the misfit with strongly shrunk lag means, minus the weighted mean
    link.
    """
    link = float(links(S[-1], slot, slots.grid).mean())
    return misfit(S, slot, slots, PRIORS[-1]) - _LINKS * link


def slips(slot: NDArray, slots: Slots) -> Iterator[NDArray[np.float64]]:
    """Coordinates after each possible move.

    All columns rolled by a step, or one side of a cut shifted by a step or mirrored.
    """
    at = slots.grid.indices()[slot].astype(np.float64)
    axes = range(at.shape[1])
    for along in axes:
        for by in (-1, 1):
            rolled = at.copy()
            rolled[:, along] = (rolled[:, along] + by) % slots.grid.shape[along]
            yield rolled
    for across in axes:
        for cut in np.unique(at[:, across])[:-1]:
            beyond = at[:, across] > cut
            for along in axes:
                for side in (beyond, ~beyond):
                    part = at[side, along]
                    for new in (part - 1, part + 1, part.min() + part.max() - part):
                        moved = at.copy()
                        moved[side, along] = new
                        yield moved


def search_slips(
    S: NDArray, slots: Slots, starts: list[NDArray[np.int64]], rng: np.random.Generator
) -> SearchResult:
    """The best arrangement by near displacements, from ``starts`` and from restarts.

    Each is improved by slips until none helps.
    """

    def value(slot: NDArray) -> float:
        return local_value(S, slot, slots)

    population = sorted(
        (_slipped(S, slot, slots, PRIORS[-1], value) for slot in starts), key=lambda one: one[0]
    )
    ends = [best for best, _ in population]
    for turn in range(_ROUNDS):
        population = distinct(population)
        _, slot = population[int(rng.integers(len(population))) if rng.random() < 0.5 else 0]
        prior = PRIORS[turn % len(PRIORS)]
        y = shake(slots.grid.indices()[slot].astype(np.float64), rng)
        model = fit_lags(S, slot, slots, 0.5, prior)
        _, slot = refine(S, anneal(S, y, slots, model, rng), slots, (0.5, 0.0), prior)
        if value(slot) < population[0][0] + _BEHIND:
            population.append(_slipped(S, slot, slots, prior, value))
            ends.append(population[-1][0])
    best, slot = distinct(population)[0]
    agreeing = sum(end < best + SAME for end in ends)
    return SearchResult(misfit(S, slot, slots), slot, len(ends), agreeing)


def _slipped(
    S: NDArray, slot: NDArray, slots: Slots, prior: float, value: Callable[[NDArray], float]
) -> tuple[float, NDArray[np.int64]]:
    """Value and slots once no slip, followed by descent, lowers the value."""
    best, improved = value(slot), True
    while improved:
        improved = False
        for moved in slips(slot, slots):
            proposal = refine(S, nearest_slots(moved, slots.grid), slots, (0.0,), prior)[1]
            now = value(proposal)
            if now < best - SAME:
                best, slot, improved = now, proposal, True
                break
    return best, slot
