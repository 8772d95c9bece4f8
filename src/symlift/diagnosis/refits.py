"""Tests that need other fits: halves of the rows, quarters, controls, other grids."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from symlift.core.angles import fundamentals
from symlift.diagnosis.alternatives import Alternative, alternatives, other_shapes, simpler
from symlift.diagnosis.contract import Refit
from symlift.diagnosis.measures import Sample, halves_of
from symlift.diagnosis.places import PlacedRows, controls, rows_in_places
from symlift.diagnosis.settings import DEFAULT
from symlift.diagnosis.verdict import Further
from symlift.metrics.circular import torus_correlation
from symlift.metrics.placement import placement_agreement
from symlift.metrics.recovery import signal_recovery
from symlift.solvers.contract import Reach, Solution

__all__ = ["all_further", "cheap_further"]

# controls of a placement cost little, those of components a fit each
_CONTROLS, _FITTED_CONTROLS = 19, 3
_HEAD = 4_000


def cheap_further(solution: Solution, placed: PlacedRows | None) -> Further:
    """Simpler grids only, from the same rows."""
    return Further(alternatives=tuple(_others(solution, placed, thorough=False)))


def all_further(
    solution: Solution, sample: Sample, refit: Refit, trained: bool
) -> tuple[Further, Solution | None]:
    """Halves, quarters where halves disagree, controls, and other grids; and the fast solver's
    solution next to a trained one.

    A ``trained`` model is compared with the fast solver's results on both halves: training again
    would take hours.
    """
    rows, rng = sample.raw, np.random.default_rng(0)
    reach = None if trained else solution.evidence.reach
    head = sample.filled[rng.permutation(len(rows))[:_HEAD]]
    first, second = (refit(rows[half], seed, reach) for seed, half in enumerate(sample.halves))
    pairs = ((solution, first), (solution, second)) if trained else ((first, second),)
    agreement = min(_agreement(a, b, head) for a, b in pairs)
    needed = None
    # below a half, agreement is hardly more than chance and cannot be extrapolated
    if 0.5 <= agreement < DEFAULT.agreement and not trained and len(rows) >= 80:
        quarters = [_part(half, sample, rng) for half in sample.halves]
        third, fourth = (refit(rows[part], 2 + i, reach) for i, part in enumerate(quarters))
        less = _agreement(third, fourth, head)
        needed = rows_that_would_do(less, agreement, sample.rows)
    shown = first if trained else solution
    placed = rows_in_places(rows, shown, sample.halves)
    further = Further(
        agreement,
        tuple(_controls(placed, sample, refit, reach, rng)),
        needed,
        tuple(_others(shown, placed, thorough=True)),
    )
    return further, first if trained else None


def rows_that_would_do(quarters: float, halves: float, n: int) -> float | None:
    """Number of rows at which halves would agree, extrapolated from the agreement of quarters and
    of halves; None if it does not grow.

    The odds of agreement are taken to grow as a power of the number of rows.

    >>> rows_that_would_do(0.5, 0.8, 1_000), rows_that_would_do(0.5, 0.5, 1_000)
    (1500.0, None)
    """
    odds = [
        math.log(min(max(value, 0.02), 0.98) / (1 - min(max(value, 0.02), 0.98)))
        for value in (quarters, halves)
    ]
    growth = (odds[1] - odds[0]) / math.log(2)
    if growth < 0.1:
        return None
    wanted = math.log(DEFAULT.agreement / (1 - DEFAULT.agreement))
    factor = math.exp((wanted - odds[1]) / growth)
    return float(f"{n * min(max(factor, 1.5), 1_000.0):.2g}")


def _part(half: NDArray, sample: Sample, rng: np.random.Generator) -> NDArray[np.int64]:
    first, _ = halves_of(len(half), sample.independent / max(sample.rows, 1), None, rng)
    return np.asarray(half[first], dtype=np.int64)


def _agreement(a: Solution, b: Solution, rows: NDArray) -> float:
    """Agreement of two placements (share of columns at the same point) or of two maps (correlation
    of signals), up to symmetries.
    """
    on_points = all(
        one.placement is not None and one.evidence.carried_by != "distances" for one in (a, b)
    )
    if on_points and a.placement is not None and b.placement is not None:
        return placement_agreement(
            a.placement.point, b.placement.point, a.model.lattice, shift_open=True
        )
    first, second = a.model.lift(rows), b.model.lift(rows)
    grid = a.model.lattice
    if grid.ndim == 2 and a.evidence.carried_by == b.evidence.carried_by == "angles":
        # halves may take other generators of the same lattice
        return min(
            torus_correlation(*(np.angle(fundamentals(Y, grid.shape)) for Y in (first, second)))
        )
    return signal_recovery(first, second, grid).r


def _controls(
    placed: PlacedRows | None,
    sample: Sample,
    refit: Refit,
    reach: Reach | None,
    rng: np.random.Generator,
) -> list[float]:
    """Controls without the field: correlations assigned to other pairs, or each column's samples
    permuted.
    """
    if placed is not None:
        first, second = placed.halves.partial
        return controls((first + second) / 2, placed.slot, placed.slots, rng, _CONTROLS)
    # components are enough for a control
    far: Reach | None = "components" if reach == "general" else reach
    return [
        refit(rng.permuted(sample.filled, axis=0), 10 + i, far).evidence.locality
        for i in range(_FITTED_CONTROLS)
    ]


def _others(solution: Solution, placed: PlacedRows | None, thorough: bool) -> list[Alternative]:
    placement = solution.placement
    if placement is None or placed is None:
        return []
    columns = int(((placement.point >= 0) & (placement.reason == "")).sum())
    # columns between the points fit no other rectangle's points either
    between = placed.coordinates is not None
    grids = (other_shapes if thorough and not between else simpler)(placement.lattice, columns)
    return alternatives(placed, placement.lattice, grids)
