"""Undo a dense mixing: every start, the judge's choice of what they propose, and its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from symlift.solvers.fast.contract import ProposedMap, Start
from symlift.solvers.fast.pool import chosen, confirmed, run_starts
from symlift.solvers.fast.problem import Problem
from symlift.solvers.fast.starts.edges import FromEdges
from symlift.solvers.fast.starts.points import FromPoints
from symlift.solvers.fast.starts.process import FromProcess
from symlift.solvers.fast.starts.resolved import (
    ResolvedIncrements,
    ResolvedPoints,
    ResolvedRotation,
    Whitened,
)
from symlift.solvers.fast.starts.spectrum import FourthOrder, ThirdOrder
from symlift.solvers.fast.starts.steps import FromSteps
from symlift.statistics.selection import HeldOut

__all__ = ["Unmixed", "unmixed_by_pool"]


@dataclass(frozen=True, eq=False)
class Unmixed:
    """The proposal that was chosen, its held-out numbers, how well another attempt agrees (None
    where there was none, or where its own numbers are not enough), and whether all that speaks for
    it is enough.
    """

    proposal: ProposedMap
    score: HeldOut
    agreement: float | None
    believed: bool


def unmixed_by_pool(
    problem: Problem,
    given: Sequence[ProposedMap] = (),
    thorough: bool = True,
    confirm: bool = True,
) -> Unmixed:
    """The best map of all starts, or of one attempt with components if not ``thorough``.

    ``confirm``: it is only believed if another attempt ends at the same signals.
    """
    work, settings = problem.work, problem.settings
    starts: list[Start] = [FromSteps(), FromProcess(), FromPoints()]
    if thorough:
        starts += [FromEdges(), ThirdOrder(), FourthOrder()]
        starts += [ResolvedPoints(), ResolvedRotation(), ResolvedIncrements(), Whitened()]
    pool = run_starts(problem, starts, given, turns=np.inf if thorough else 1)
    with work.stage("choose") as values:
        best = chosen(pool)
        proposal, score = best.proposal, best.score
        values |= {"scores": best.rivals, **asdict(score)}
    enough = settings.local
    if problem.grid.is_ring and proposal.name.endswith("resolved"):
        # on a ring whose frames did not converge, a map that need not be orthogonal can choose
        # every phase to look sharp
        enough = settings.ring_local
    believed = (
        proposal.explained > enough
        and problem.nongaussianity > settings.nongaussian
        and score.stationarity < settings.still(len(problem.rows.held))
    )
    agreement = pool.agreed if believed else None
    if believed and confirm:
        with work.stage("agree") as values:
            if agreement is None:
                proposal, agreement, values["attempts"] = confirmed(pool, proposal, starts)
                score = score if proposal is best.proposal else pool.score(proposal)
            values["agreement"] = agreement
        believed = agreement >= problem.needed_agreement
    return Unmixed(proposal, score, agreement, bool(believed))
