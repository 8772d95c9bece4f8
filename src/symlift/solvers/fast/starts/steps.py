"""Components as differences of neighbours on a line: the field that they sum up to."""

from __future__ import annotations

from collections.abc import Iterator

from symlift.solvers.fast.contract import ProposedMap, Standing, StartTurn
from symlift.solvers.fast.problem import Problem
from symlift.solvers.fast.resolve import unit_determinant
from symlift.solvers.fast.steps import steps_frame

__all__ = ["FromSteps"]


class FromSteps:
    """Innovations of a process form a chain, too, but what they sum up to is rough and not
    stationary.
    """

    name = "steps"
    after: tuple[str, ...] = ()

    def costs(self, problem: Problem) -> tuple[float, ...]:
        return tuple(turn + 0.1 for turn in range(problem.settings.attempts))

    def applies(self, turn: StartTurn) -> bool:
        problem = turn.problem
        return problem.is_open_line and problem.grid.size >= problem.settings.fewest_steps

    def propose(self, turn: StartTurn) -> Iterator[ProposedMap]:
        problem = turn.problem
        rows, settings = problem.rows, problem.settings
        U = turn.components.U
        with problem.work.stage("steps") as values:
            summed = steps_frame(U, rows.fit, rows.held, problem.grid, problem.rng, settings)
            if summed is None:
                return
            W, rough = summed
            left, explained = problem.unseen(W)
            values |= {"stationarity": left, "explained": explained, "roughness": rough}
            if (
                left > settings.still(len(rows.held))
                or rough > settings.rough_steps
                or explained < settings.dense_explained
            ):
                return
            answers = {"steps": W, "increments": unit_determinant(U)}
            values["answers"] = problem.numbers(answers)
        chosen = "increments" if problem.work.sharpest else "steps"
        yield ProposedMap(chosen, answers[chosen], Standing.ALONE, explained, answers=answers)
