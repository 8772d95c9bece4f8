"""Components as the innovations of a linear process: the process that they drive."""

from __future__ import annotations

from collections.abc import Iterator

from symlift.solvers.fast.components import independent_components
from symlift.solvers.fast.contract import ProposedMap, Standing, StartTurn
from symlift.solvers.fast.innovations import process_frame
from symlift.solvers.fast.problem import Problem

__all__ = ["FromProcess"]


class FromProcess:
    """Where the mixing columns of the components have a domain, but the components do not."""

    name = "process"
    after: tuple[str, ...] = ()

    def costs(self, problem: Problem) -> tuple[float, ...]:
        return tuple(turn + 0.2 for turn in range(problem.settings.attempts))

    def applies(self, turn: StartTurn) -> bool:
        problem = turn.problem
        settings, grid = problem.settings, problem.grid
        large = not any(grid.periodic) and grid.size >= settings.fewest_innovations
        return large and turn.components.locality < settings.local

    def propose(self, turn: StartTurn) -> Iterator[ProposedMap]:
        problem = turn.problem
        rows, settings, rng = problem.rows, problem.settings, problem.rng
        with problem.work.stage("process") as values:
            U, _ = independent_components(rows.fit, rng, settings, start=turn.components.U)
            process = process_frame(U, problem.grid, rng, not problem.invertible, settings)
            values |= process.quality
            if process.explained < settings.overlap:
                return
            answers = {"process": process.W, "innovations": process.innovations}
            values["answers"] = problem.numbers(answers)
            if values["answers"]["process"]["stationarity"] > settings.still(len(rows.held)):
                # domain walls of spins overlap like innovations, too, but drive no stationary
                # process
                return
        # both are stationary, and resolution prefers innovations: least distortion decides, or the
        # user
        chosen = "innovations" if problem.work.sharpest else "process"
        yield ProposedMap(
            chosen, answers[chosen], Standing.ALONE, process.explained, answers=answers
        )
