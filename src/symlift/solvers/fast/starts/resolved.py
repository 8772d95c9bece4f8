"""Maps that need not be orthogonal: resolved from points, from the best rotation, from increments,
and from whitened rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from symlift.solvers.fast.contract import ProposedMap, StartTurn
from symlift.solvers.fast.frames import points_frame
from symlift.solvers.fast.increments import increments_frame
from symlift.solvers.fast.phases import sharpest_phase
from symlift.solvers.fast.pool import Pool
from symlift.solvers.fast.problem import Problem
from symlift.solvers.fast.resolve import least_distortion_filter, resolve, unit_determinant
from symlift.solvers.fast.whitened import whitened_frames

__all__ = ["ResolvedIncrements", "ResolvedPoints", "ResolvedRotation", "Whitened"]


class _Resolved:
    """What these starts share: all other starts come before them."""

    name = ""
    after: tuple[str, ...] = ()
    cost = 10.0

    def costs(self, problem: Problem) -> tuple[float, ...]:
        return (self.cost,) if problem.invertible else ()

    def applies(self, turn: StartTurn) -> bool:
        problem = turn.problem
        return problem.grid.size <= problem.settings.max_resolve


class ResolvedPoints(_Resolved):
    """From components as points."""

    name, cost = "resolved points", 10.1

    def propose(self, turn: StartTurn) -> Iterator[ProposedMap]:
        problem = turn.problem
        U = problem.sharpest_components.U
        W, quality = points_frame(_some(problem), problem.rows.held, U, problem.grid, problem.rng)
        yield _resolved("points", W, quality["locality"], problem)


class ResolvedRotation(_Resolved):
    """From the best rotation."""

    name, cost = "resolved rotation", 10.2
    after: tuple[str, ...] = ("points", "third order", "fourth order", "edges")

    def propose(self, turn: StartTurn) -> Iterator[ProposedMap]:
        problem = turn.problem
        best = turn.pool.best(*self.after)
        if best is not None:
            yield _resolved(best.name, best.W, best.explained, problem)


class ResolvedIncrements(_Resolved):
    """From components as increments along a line."""

    name, cost = "resolved increments", 10.3

    def applies(self, turn: StartTurn) -> bool:
        problem = turn.problem
        line = problem.is_open_line and problem.grid.size > 3
        return line and super().applies(turn)

    def propose(self, turn: StartTurn) -> Iterator[ProposedMap]:
        problem = turn.problem
        U = problem.sharpest_components.U
        W, quality = increments_frame(_some(problem), problem.rows.held, U, problem.rng)
        yield _resolved("increments", W, quality["locality"], problem)


class Whitened(_Resolved):
    """From whitened rows, on a line where no other such map is stationary; the best of them goes on
    with a finer density.
    """

    name, cost = "whitened", 10.4

    def applies(self, turn: StartTurn) -> bool:
        problem = turn.problem
        small = problem.grid.size <= problem.settings.max_third_order
        if not (problem.is_open_line and small and super().applies(turn)):
            return False
        others = turn.pool.best("resolved points", "resolved rotation", "resolved increments")
        # wrong maps of Legendre pulses leave as little as 0.0046 (r 0.83), right ones of Gaussian
        # pulses up to 0.0035
        return others is None or turn.pool.score(others).stationarity > problem.settings.stationary

    def propose(self, turn: StartTurn) -> Iterator[ProposedMap]:
        problem = turn.problem
        components = problem.sharpest_components
        with problem.work.stage("whitened"):
            starts = whitened_frames(problem.rows.fit, components.U, problem.grid, problem.settings)
        maps = [_resolved(name, W, components.locality, problem) for name, W in starts.items()]
        if maps:
            mine = Pool(problem, maps)
            best = mine.best()
            assert best is not None  # noqa: S101 - there is one
            maps.remove(best)
            yield from maps
            yield _resolved(best.name, best.W, best.explained, problem, fine=True)


def _some(problem: Problem) -> NDArray[np.float64]:
    fewest, most = problem.settings.resolve_rows
    count = min(most, max(fewest, problem.settings.resolve_numbers // problem.grid.size))
    return problem.rows.fit[:count]


def _resolved(
    name: str, W: NDArray, explained: float, problem: Problem, fine: bool = False
) -> ProposedMap:
    """A map, resolved (by a ``fine`` density only) and then of least distortion; on a ring with the
    sharpest phase.
    """
    settings, lags = problem.settings, problem.lags
    if fine:
        settings = replace(
            settings, bandwidths=settings.fine_bandwidths, resolve_steps=settings.fine_steps
        )
    name = name if name.endswith(", resolved") else f"{name}, resolved"
    with problem.work.stage("resolve") as values:
        W = resolve(W, _some(problem).astype(np.float32), lags, settings=settings)
        W = unit_determinant(least_distortion_filter(W, lags, settings.filter_taps))
        if problem.grid.is_ring:
            W, values["phase"] = sharpest_phase(
                W, problem.rows.fit, problem.rows.held, settings.phase_rows,
                settings.sharper_phase,
            )  # fmt: skip
        values |= {"start": name, "locality": explained}
    return ProposedMap(name, W, explained=explained, reach="general")
