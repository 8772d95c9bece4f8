"""Images with edges: position operators, then least variation between neighbours."""

from __future__ import annotations

from collections.abc import Iterator

from symlift.solvers.fast.contract import ProposedMap, Standing, StartTurn
from symlift.solvers.fast.edges import edges_frame
from symlift.solvers.fast.problem import Problem
from symlift.solvers.fast.starts.spectrum import spectrum_turn

__all__ = ["FromEdges"]


class FromEdges:
    """Not sharpened: photographs have no silent parts."""

    name = "edges"
    after: tuple[str, ...] = ()

    def costs(self, problem: Problem) -> tuple[float, ...]:
        # images that are mostly mean have a third moment, but it is that of the mean alone
        return (spectrum_turn(problem) + (0.3 if problem.mostly_mean else 0.53),)

    def applies(self, turn: StartTurn) -> bool:
        problem = turn.problem
        return problem.is_image and (problem.mostly_mean or problem.modes is None)

    def propose(self, turn: StartTurn) -> Iterator[ProposedMap]:
        problem = turn.problem
        rows, settings = problem.rows, problem.settings
        with problem.work.stage("eigenbasis") as values:
            frame = edges_frame(rows.fit, rows.held, problem.grid, problem.rng, settings)
            if frame is None:
                return
            left, explained = problem.unseen(frame.W)
            arrived = (
                left < settings.edge_arrived
                and frame.roughness < settings.rough
                and explained > settings.dense_explained
            )
            values |= {
                "order": "edges",
                "roughness": frame.roughness,
                "reproduced": frame.reproduced,
                "stationarity": left,
                "arrived": arrived,
                "explained": explained,
            }
            values["answers"] = problem.numbers({"eigenbasis": frame.W})
        alone = arrived and not problem.work.sharpest
        standing = Standing.ALONE if alone else Standing.OPEN
        yield ProposedMap("eigenbasis", frame.W, standing, explained, "general")
