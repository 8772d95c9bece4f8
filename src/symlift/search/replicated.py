"""Search on two parts of the rows that share none: what both give is neither noise nor the chance
of a start.

A start costs the same on either part, so that a search which ends when the parts agree costs no
more than one that ends when two starts do, and says more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.search.criterion import Slots, nearest_slots
from symlift.search.growth import alike, distinct, same_order
from symlift.search.moves.descent import refine
from symlift.search.schedule import CHAINS, turned_segments
from symlift.search.settings import PlaceSettings

__all__ = ["PartsSearch", "search_parts"]

# results of each part that stay in the pool
_KEPT = 4


@dataclass(frozen=True)
class PartsSearch:
    """What the two parts reached, (misfit, slots), the best first, and the orders that they began
    with.
    """

    ends: tuple[list[tuple[float, NDArray[np.int64]]], list[tuple[float, NDArray[np.int64]]]]
    begun: list[NDArray[np.int64]]
    agreement: float

    @property
    def best(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The slots of least misfit of each part."""
        first, second = (end[0][1] for end in self.ends)
        return first, second

    def with_turned(
        self, S: tuple[NDArray, NDArray], slots: Slots, settings: PlaceSettings
    ) -> PartsSearch:
        """The same with the segments of the best of each part turned where that helps; S: the
        statistics of each part.
        """
        best = [
            turned_segments(s, slot, slots, settings) for s, slot in zip(S, self.best, strict=True)
        ]
        ends = ([best[0], *self.ends[0]], [best[1], *self.ends[1]])
        return replace(self, ends=ends, agreement=alike(best[0][1], best[1][1], slots.grid))

    def replicates(self, slot: NDArray, grid: Grid) -> float:
        """How well the order ``slot`` agrees with what each part gives, in the mean."""
        return float(np.mean([same_order(slot, one, grid) for one in self.best]))


def search_parts(
    S: tuple[NDArray, NDArray],
    slots: Slots,
    starts: tuple[Iterator[NDArray], Iterator[NDArray]],
    settings: PlaceSettings,
    most: int | None = None,
) -> PartsSearch:
    """Refine orders of a line or ring from the ``starts`` of each part until the best of both are
    alike.

    S: the statistics (m, d, d) of each part; ``most``: starts that are tried at most.
    """
    ends: tuple[list[tuple[float, NDArray[np.int64]]], ...] = ([], [])
    begun: list[NDArray[np.int64]] = []
    agreement = 0.0
    for turn, both in enumerate(zip_longest(*starts), start=1):
        for part, y in enumerate(both):
            if y is not None:
                begun.append(nearest_slots(y, slots.grid, slots.depth))
                ends[part].append(
                    refine(S[part], begun[-1], slots, settings.widths, settings.prior_pairs)
                )
        best = [min(end, key=lambda one: one[0])[1] for end in ends]
        agreement = alike(best[0], best[1], slots.grid)
        if (agreement >= settings.judge.alike and turn >= CHAINS) or turn == most:
            break
    first, second = (distinct(end, _KEPT) for end in ends)
    return PartsSearch((first, second), begun, agreement)
