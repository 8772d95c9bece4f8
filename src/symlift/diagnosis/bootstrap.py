"""Confidence of single columns that survives a bootstrap over rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from symlift.diagnosis.measures import DEPENDENT, Sample
from symlift.diagnosis.places import PlacedRows, rows_in_places
from symlift.search.criterion import Slots, fit_lags
from symlift.search.score import margins
from symlift.search.settings import PlaceSettings
from symlift.solvers.contract import Placement, Solution

__all__ = ["survival", "with_survival"]

# resamples up to so many columns; beyond the last, the placement's own confidence stays
_RESAMPLES = ((100, 12), (256, 5), (1_200, 3))
_BLOCK = 32


def with_survival(
    solution: Solution, sample: Sample, placed: PlacedRows | None, sure: float
) -> Placement | None:
    """The placement, if there is one, with the confidence of each column: that of the whole,
    ``sure``, times the share of resamples in which the column stays.

    ``placed`` are the columns that were checked. Twins have the confidence of the column that they
    repeat; columns that were left out keep the confidence of being left out.
    """
    placement = solution.placement
    if placement is None:
        return None
    at = placement.point >= 0
    most = next((columns for columns, _ in _RESAMPLES if at.sum() <= columns), 0)
    if (
        placed is not None
        and isinstance(placed.slots, Slots)
        and placed.slots.grid != placement.grid
    ):  # the check used a window of a larger grid
        placed = (
            rows_in_places(sample.raw, solution, sample.halves, _RESAMPLES[-1][0]) if most else None
        )
    if placed is None or not most:
        return placement
    confidence = placement.confidence.copy()
    if solution.evidence.carried_by == "distances":
        # resamples move columns between points a little, and none to another point
        confidence[at] = sure
        return replace(placement, confidence=confidence)
    stays = survival(placed, dict(_RESAMPLES)[most], sample.independent < DEPENDENT * sample.rows)
    confidence[at] = sure * float(np.median(stays))  # columns that share a slot with another one
    confidence[placed.column] = sure * stays
    twins = np.flatnonzero(placement.twin >= 0)
    confidence[twins] = confidence[placement.twin[twins]]
    return replace(placement, confidence=np.clip(confidence, 0, 1))


def survival(placed: PlacedRows, count: int, dependent: bool, seed: int = 0) -> NDArray[np.float64]:
    """Share of resamples of the rows in which each column stays where it is, (columns,); rows that
    depend on their neighbours are resampled in blocks.
    """
    settings, rng, n = PlaceSettings(), np.random.default_rng(seed), len(placed.rows.scores)
    every = np.arange(n)
    model = fit_lags(
        placed.statistics("partial", every, settings),
        placed.slot,
        placed.slots,
        0.0,
        settings.prior_pairs,
    )
    length = min(_BLOCK, max(1, n // 8)) if dependent else 1
    stays = np.zeros(len(placed.column))
    for _ in range(count):
        starts = rng.integers(n, size=-(-n // length))
        drawn = ((starts[:, None] + np.arange(length)) % n).ravel()[:n]
        again = placed.statistics("partial", drawn, settings)
        stays += margins(again, placed.slot, placed.slots, model) > 0
    return stays / count
