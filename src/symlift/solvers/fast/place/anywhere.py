"""Columns at places of their own, without a grid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symlift.errors import InputError
from symlift.search.criterion import Slots, make_slots
from symlift.search.problem import split_halves
from symlift.search.score import BothScores
from symlift.search.settings import PlaceSettings
from symlift.search.triage import sort_columns
from symlift.solvers.contract import Progress, no_progress
from symlift.solvers.fast.place.contract import Placed, PlacementStatistics
from symlift.solvers.fast.place.finish import Settled, finish
from symlift.solvers.starts.scattered import FEWEST, InBox, free_places, in_own_box

__all__ = ["between", "place_anywhere"]


def place_anywhere(
    X: ArrayLike,
    dimension: int,
    rng: np.random.Generator,
    *,
    settings: PlaceSettings | None = None,
    progress: Progress = no_progress,
) -> Placed:
    """Give each column of X (n, d) a place of its own in ``dimension`` dimensions.

    The result is on a grid over the box of the places, with steps of equal length.
    """
    settings = settings or PlaceSettings()
    raw = np.asarray(X)
    rows, c, sorted_out = sort_columns(raw, rng, settings, progress)
    columns = sorted_out.to_place
    if len(columns) > settings.dense:
        raise InputError(
            f"scattered places of {len(columns):,} columns cannot be found, at most"
            f" {settings.dense:,}: fit a part of the columns, or give a grid"
        )
    places = free_places(split_halves(rows, columns, settings), dimension)
    if places is None:
        raise InputError(
            f"the correlations of {len(columns)} columns give no places in {dimension} dimensions:"
            f" at least {FEWEST} columns that vary together are needed"
        )
    grid, inside = in_own_box(places, rng)
    progress("fill", 0.9)
    settled = between(make_slots(grid), columns, inside, settings)
    return replace(finish(raw, c, sorted_out, settled), scattered=True)


def between(
    slots: Slots,
    columns: NDArray,
    scattered: InBox,
    settings: PlaceSettings,
    scores: BothScores | None = None,
) -> Settled:
    """Columns at places between the grid points; ``scores``: of those that were compared with a
    grid, by default of all.
    """
    grid, places = slots.grid, scattered.places
    judged = (scores or places.scores).all
    several = len(judged.noise)
    statistics = PlacementStatistics(
        "distances",
        judged.explained / several,
        judged.ceiling / several,
        places.believed(settings),
        0.0,
        1,
        1,
        places.agreement,
    )
    point = grid.flat(
        np.clip(np.rint(scattered.coordinates), 0, np.array(grid.shape) - 1).astype(np.int64)
    )
    sure = np.full(len(columns), 0.98 * places.agreement)
    trace = {"share": judged.share, "agreement": places.agreement}
    return Settled(slots, columns, point, sure, statistics, trace, scattered)
