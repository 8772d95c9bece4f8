"""The covariance's eigenbasis, by third moments, or by fourth cumulants where the field is
symmetric in sign.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.solvers.fast.contract import ProposedMap, Standing, StartTurn
from symlift.solvers.fast.descend import descend
from symlift.solvers.fast.eigenbasis import Arrival, eigenbasis_frames
from symlift.solvers.fast.fourth_moments import FourthModes
from symlift.solvers.fast.mode_moments import ModeMoments, explained_third_moment
from symlift.solvers.fast.phases import all_one_way, sharpest_phase
from symlift.solvers.fast.problem import Problem
from symlift.solvers.fast.sharpen import pooled_entropy

__all__ = ["FourthOrder", "ThirdOrder", "spectrum_turn"]


# steps of gap and entropy together
_SHARPENING = 80


def spectrum_turn(problem: Problem) -> int:
    """The turn after which eigenbases are tried: a gap cannot confirm a phase of a ring, nor
    anything with few rows, but two attempts with components can.
    """
    if problem.mostly_mean:
        return 0
    if problem.grid.is_ring:
        return 1
    late = all(problem.grid.periodic) or problem.noisy
    return problem.settings.attempts - 1 if late else 0


class ThirdOrder:
    """Third moments along the path of whitenings, then the entropy of the shared marginal."""

    name = "third order"
    after: tuple[str, ...] = ()

    def costs(self, problem: Problem) -> tuple[float, ...]:
        return (spectrum_turn(problem) + (0.32 if problem.mostly_mean else 0.52),)

    def applies(self, turn: StartTurn) -> bool:
        problem = turn.problem
        return not (problem.noisy and turn.pool.converged) and problem.modes is not None

    def propose(self, turn: StartTurn) -> Iterator[ProposedMap]:
        problem = turn.problem
        modes, settings = problem.modes, problem.settings
        assert modes is not None  # noqa: S101 - what applies says
        with problem.work.stage("eigenbasis") as values:
            last = yield from _on_the_way(modes, problem)
            if last is None:
                return
            W, ratio, agreement = _sharper(last, modes, problem)
            explained = explained_third_moment(
                W, modes, problem.rows.held, problem.grid, settings.ranked_at
            )
            ring = problem.grid.is_ring
            left = ratio if ring else last.last
            arrived = left < settings.eigenbasis_arrived and explained > settings.dense_explained
            # on a ring every phase is stationary: the gap cannot confirm a phase, but entropy and
            # third moment can
            if all(problem.grid.periodic):
                arrived = arrived and agreement > settings.same_phase
            else:
                widest = _widest_gap(W, modes, problem)
                arrived = arrived and widest < settings.widest_gap
                values["widest_gap"] = widest
            values |= {"order": 3, **_numbers(last), "sharpened": round(ratio, 3)}
            values |= {"agreement": agreement} if ring else {}
            values |= {"arrived": arrived, "explained": explained}
            values["answers"] = problem.numbers({"eigenbasis": W})
        yield ProposedMap("eigenbasis", W, _standing(arrived, problem), explained, "general")


class FourthOrder:
    """Fourth cumulants; not sharpened, since the pooled entropy prefers a wrong all-pass copy of a
    process. Fields that are skewed have no use for them: where their third moment is too noisy,
    those are worse (63 pulses from 1,500 rows: r 0.76 at half of the noise, after 200 s).
    """

    name = "fourth order"
    after: tuple[str, ...] = ()

    def costs(self, problem: Problem) -> tuple[float, ...]:
        return (spectrum_turn(problem) + (0.34 if problem.mostly_mean else 0.54),)

    def applies(self, turn: StartTurn) -> bool:
        problem = turn.problem
        return problem.modes is None and not problem.noisy and problem.fourth is not None

    def propose(self, turn: StartTurn) -> Iterator[ProposedMap]:
        problem = turn.problem
        modes, settings = problem.fourth, problem.settings
        assert modes is not None  # noqa: S101 - what applies says
        with problem.work.stage("eigenbasis") as values:
            last = yield from _on_the_way(modes, problem)
            if last is None:
                return
            W = last.W @ modes.basis
            # fourth moments are so noisy that wrong frames have gaps of 1, too: held-out slices of
            # them have to agree
            left, explained = problem.unseen(W)
            arrived = (
                last.last < settings.fourth_arrived
                and left < settings.stationary
                and explained > settings.dense_explained
                and not all(problem.grid.periodic)
            )
            values |= {"order": 4, **_numbers(last), "stationarity": left}
            values |= {"arrived": arrived, "explained": explained}
            values["answers"] = problem.numbers({"eigenbasis": W})
        yield ProposedMap("eigenbasis", W, _standing(arrived, problem), explained, "general")


def _on_the_way(
    modes: ModeMoments | FourthModes, problem: Problem
) -> Generator[ProposedMap, None, Arrival | None]:
    """Rough maps, as the search comes by them; and where it ends, if the mixing is orthogonal."""
    last: Arrival | None = None
    for last in eigenbasis_frames(modes, problem.grid, problem.rng, problem.settings):
        yield ProposedMap("eigenbasis", last.W @ modes.basis, Standing.ROUGH)
    return last


def _standing(arrived: bool, problem: Problem) -> Standing:
    """Resolution must not overrule least distortion: among maps that are all-pass copies it prefers
    innovations, which is what the sharpest answer is.
    """
    return Standing.ALONE if arrived and not problem.work.sharpest else Standing.OPEN


def _widest_gap(W: NDArray, modes: ModeMoments, problem: Problem) -> float:
    """The gap in units of its noise at the whitening where it is widest.

    A frame that left the strongest modes to fit the noise of weak ones has it at the other end of
    the path: tiles of two photographs 27 times the noise at a = 0 and 1.0 at 1/2 (detail 0.47).
    """
    frame = W @ modes.basis.T
    ratios = []
    for a in problem.settings.whitenings:
        if modes.noise_share(a) < problem.settings.eigenbasis_noise:
            ratios.append(modes.criterion(a, problem.lags).ratio(frame))
    return float(max(ratios))


def _numbers(arrival: Arrival) -> dict[str, Any]:
    return {"gaps": {str(a): round(r, 3) for a, r in arrival.ratios.items()}}


def _sharper(
    arrival: Arrival, modes: ModeMoments, problem: Problem
) -> tuple[NDArray[np.float64], float, float]:
    """The frame in the data's coordinates, sharpened if held-out rows confirm that it is sharper
    and equally stationary.

    Also returns the gap, and on a ring the agreement of its phase with that of the third moment.

    Digits 8 x 8: r 0.989 → 0.9996; garments 0.993 → 0.999; decays 0.994 → 0.9998. Without silent
    parts in the signal the entropy gains little and is misleading (moving averages: 0.998 → 0.97
    for 0.03).
    """
    grid, settings = problem.grid, problem.settings
    some, test = (part[: settings.sharpen_rows] for part in (problem.rows.fit, problem.rows.held))
    W = arrival.W @ modes.basis
    criterion = arrival.criterion
    if criterion is None or arrival.last > (
        settings.ring_gap if grid.is_ring else settings.sharpen_gap
    ):
        return W, arrival.last, 0.0
    last, agreement = arrival.last, 0.0
    if grid.is_ring:
        for _ in range(settings.ring_rounds):
            W, numbers = sharpest_phase(
                all_one_way(W, criterion.gap), some, test, settings.phase_rows, 0.0
            )
            end = descend(W, [criterion], settings.path_steps[0])
            W, last, agreement = end.W, end.value / criterion.noise, numbers["agreement"]
    sharper = criterion.sharp(some, settings.third_sharpen_strength)
    sharp = descend(W, [sharper], _SHARPENING).W
    before, after = (pooled_entropy(test @ V.T)[0] for V in (W, sharp))
    ratio = criterion.ratio(sharp)
    if after < before - settings.third_sharper and ratio < settings.third_sharpened_gap * max(
        1.0, last
    ):
        return sharp, ratio, agreement
    return W, last, agreement
