"""The numbers behind a verdict that need no other fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.rows import take_rows
from symlift.diagnosis.places import PlacedRows, PlaceMeasures, measure_places
from symlift.search.rows import split_rows
from symlift.search.settings import PlaceSettings
from symlift.solvers.contract import Evidence, Solution
from symlift.statistics.dependence import LOOKED_AT, effective_rank, independent_rows
from symlift.statistics.selection import HeldOut, held_out_in_window

__all__ = ["Measures", "Sample", "freedom", "measure", "take_sample"]

#: number of rows that are used, in this many contiguous stretches, so that neighbours in time stay
#: neighbours
_ROWS, _STRETCHES, _POINTS = 6_000, 4, 256
#: rows of very many columns that are taken for the terms of the objective
_WIDE_ROWS = 2_000
#: if the effective number of independent rows is a smaller share than this, rows depend on their
#: neighbours in time
DEPENDENT = 0.5
# dependent rows are dealt to the halves in at most so many stretches, of at least so many
# independent rows
_DEALT, _LONG = 20, 4


@dataclass(frozen=True)
class Sample:
    """The rows of a diagnosis, with gaps (``raw``), the effective number of independent rows, and
    two independent halves.
    """

    raw: NDArray
    rows: int
    independent: float
    halves: tuple[NDArray[np.int64], NDArray[np.int64]]

    @cached_property
    def filled(self) -> NDArray[np.float64]:
        """The rows with gaps filled in."""
        return _without_gaps(np.asarray(self.raw, dtype=np.float64))

    @property
    def is_wide(self) -> bool:
        """Whether there are so many columns that only some are looked at."""
        return _is_wide(self.raw)

    @property
    def some(self) -> NDArray[np.float64]:
        """The filled rows, of some columns if there are very many."""
        return _some_columns(self.raw) if self.is_wide else self.filled


@dataclass(frozen=True)
class Measures:
    """Numbers of one result; None where they do not apply."""

    evidence: Evidence
    grid: Grid
    rows: int
    columns: int
    independent: float
    rank: float
    freedom: int
    held_out: HeldOut
    places: PlaceMeasures | None
    placed: float = 1.0  # share of the columns with a place, of those that should have one

    @property
    def stationarity(self) -> float:
        """Stationarity of the columns' ranks if columns have places, otherwise of the signals."""
        return self.held_out.stationarity if self.places is None else self.places.stationarity


def take_sample(
    X: NDArray, blocks: NDArray | None = None, rows: int = _ROWS, seed: int = 0
) -> Sample:
    """At most ``rows`` rows of X in a few stretches, and halves: of whole ``blocks``, contiguous in
    time where rows depend on their neighbours, or else random.
    """
    n = len(X)
    chosen = np.arange(n)
    if n > rows:
        length = rows // _STRETCHES
        starts = np.linspace(0, n - length, _STRETCHES).astype(np.int64)
        chosen = (starts[:, None] + np.arange(length)).ravel()
    raw = take_rows(X, chosen) if n > rows else np.asarray(X)
    few = raw[:, : 2 * LOOKED_AT] if _is_wide(raw) else raw
    filled = _without_gaps(np.asarray(few, dtype=np.float64))
    worth = independent_rows(filled) / max(len(filled), 1)
    rng = np.random.default_rng(seed)
    halves = halves_of(len(raw), worth, None if blocks is None else blocks[chosen], rng)
    return Sample(raw, n, worth * n, halves)


def halves_of(
    n: int, worth: float, blocks: NDArray | None, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of two independent halves; ``worth``: independent rows that one row counts for."""
    independent = worth > DEPENDENT
    if blocks is not None:
        names = np.unique(blocks)
        chosen = np.isin(blocks, names[rng.permutation(len(names))[: max(1, len(names) // 2)]])
        if len(names) > 1:
            return np.flatnonzero(chosen), np.flatnonzero(~chosen)
        independent = False  # one block: it is split into two halves
    if not independent:
        # stretches in turn, so that seasons and single events are in both halves
        return split_rows(n, 0.5, int(np.clip(worth * n / _LONG, 2, _DEALT)))
    order = rng.permutation(n)
    return np.sort(order[: n // 2]), np.sort(order[n // 2 :])


def measure(
    solution: Solution,
    sample: Sample,
    placed: PlacedRows | None,
    seed: int = 0,
    measured: HeldOut | None = None,
) -> Measures:
    """The cheap numbers of a result, whose columns in places are ``placed``; terms of the objective
    that were ``measured`` before are not measured again.
    """
    model, rng = solution.model, np.random.default_rng(seed)
    order = rng.permutation(len(sample.raw))
    held_out = measured or held_out_in_window(
        model.map,
        sample.raw[order[:_WIDE_ROWS]] if sample.is_wide else sample.filled[order],
        model.lattice,
        model.channels,
        _POINTS,
        model.mean,
    )
    places = None if placed is None else measure_places(placed, rng)
    replicated = solution.evidence.replicated
    if places is not None and replicated is not None and model.lattice.ndim == 1:
        # two parts of the rows were searched from the beginning, which says the same and more
        places = replace(places, settled=max(places.settled, replicated))
    return Measures(
        evidence=solution.evidence,
        grid=model.lattice,
        rows=sample.rows,
        columns=model.n_features,
        independent=sample.independent,
        rank=effective_rank(sample.some),
        freedom=freedom(model.lattice),
        held_out=held_out,
        places=places,
        placed=_placed(solution),
    )


def _placed(solution: Solution) -> float:
    """Of columns that belong to the domain, or may do so, the share that has a place."""
    if solution.placement is None:
        return 1.0
    without = int(np.sum(solution.placement.reason == "unplaced"))
    return 1 - without / max(without + int(np.sum(~solution.placement.left_out)), 1)


def freedom(grid: Grid) -> int:
    """Number of pairs of points minus the number of displacements: the degrees of freedom for
    testing a grid.

    >>> freedom(Grid((2, 2))), freedom(Grid((8,)))
    (2, 21)
    """
    classes = np.prod(
        [n if wraps else 2 * n - 1 for n, wraps in zip(grid.shape, grid.periodic, strict=True)]
    )
    return int(grid.size * (grid.size - 1) // 2 - (classes - 1) // 2)


def _is_wide(rows: NDArray) -> bool:
    return rows.shape[1] > PlaceSettings().dense


def _some_columns(rows: NDArray, most: int = 1_024) -> NDArray[np.float64]:
    """Columns at equal distances, without gaps."""
    chosen = np.linspace(0, rows.shape[1] - 1, most).astype(np.int64)
    return _without_gaps(np.asarray(rows[:, chosen], dtype=np.float64))


def _without_gaps(rows: NDArray) -> NDArray[np.float64]:
    gaps = np.isnan(rows)
    if not gaps.any():
        return rows
    mean = np.nan_to_num(np.nanmean(np.where(gaps.all(axis=0), 0.0, rows), axis=0))
    return np.where(gaps, mean, rows)
