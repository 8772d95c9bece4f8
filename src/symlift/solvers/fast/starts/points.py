"""Components as points of the field: in order, with signs, made stationary and sharp."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from symlift.solvers.fast.contract import ProposedMap, Standing, StartTurn
from symlift.solvers.fast.polish import Polish
from symlift.solvers.fast.problem import Problem

__all__ = ["FromPoints", "still_half_whitened"]


class FromPoints:
    """One attempt each turn; more than three only to confirm what few rows have found."""

    name = "points"
    after: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._polishing: tuple[Problem, Polish] | None = None

    def costs(self, problem: Problem) -> tuple[float, ...]:
        return tuple(turn + 0.4 for turn in range(problem.settings.few_rows_attempts))

    def applies(self, turn: StartTurn) -> bool:
        problem = turn.problem
        return turn.number < problem.settings.attempts or (
            problem.noisy and bool(turn.pool.converged)
        )

    def propose(self, turn: StartTurn) -> Iterator[ProposedMap]:
        problem = turn.problem
        components = turn.components
        for W in components.frames.values():
            yield ProposedMap("frame", W, Standing.ROUGH)
        # ends of earlier turns count: on a ring two of them have to be equally sharp
        if self._polishing is None or self._polishing[0] is not problem:
            self._polishing = problem, Polish(problem)
        name, W, convincing = self._polishing[1](components.frames)
        standing = Standing.OPEN
        if convincing:
            sure = not problem.mostly_mean and still_half_whitened(W, problem)
            standing = Standing.SURE if sure or problem.noisy else Standing.LIKELY
        yield ProposedMap(f"{name} {turn.number}", W, standing, components.locality)


def still_half_whitened(W: NDArray[np.float64], problem: Problem) -> bool:
    """Whether a frame that is convincing by its plain moments is also convincing by half whitened
    ones.

    Plain moments are dominated by the strongest modes, so a frame whose weaker modes are wrong can
    pass. True if the test does not apply: on a torus, for grids too large for third order, and if
    the third moment is noise.
    """
    grid, settings = problem.grid, problem.settings
    if (all(grid.periodic) and not grid.is_ring) or grid.size > settings.max_third_order:
        return True
    modes = problem.modes
    if modes is None:
        return True
    half_whitened = modes.criterion(settings.ranked_at, problem.lags)
    return half_whitened.ratio(W @ modes.basis.T) < settings.confirmed_gap
