"""One search for a dense mixing: starts in the order of their cost, a pool of what they propose, a
judge that chooses, and an attempt that shares nothing with the first but the data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from symlift.solvers.fast.contract import ProposedMap, Standing, Start, StartTurn
from symlift.solvers.fast.frames import nearest_in_turn
from symlift.solvers.fast.problem import Problem, same_signals
from symlift.statistics.selection import HeldOut, held_out

__all__ = ["Chosen", "Pool", "chosen", "confirmed", "run_starts"]


class Pool:
    """Everything that starts have proposed for one problem, in the order in which it came."""

    def __init__(self, problem: Problem, given: Sequence[ProposedMap] = ()) -> None:
        self.problem = problem
        self.proposals = list(given)
        #: agreement of the two attempts that ended at the same signals, where few rows need two
        self.agreed: float | None = None
        self._scores: dict[int, HeldOut] = {}

    def add(self, proposal: ProposedMap) -> None:
        """Keep a proposal."""
        self.proposals.append(proposal)

    def score(self, proposal: ProposedMap) -> HeldOut:
        """The held-out objective of one of them."""
        key = id(proposal)
        if key not in self._scores:
            self._scores[key] = held_out(proposal.W, self.problem.rows.held, self.problem.lags)
        return self._scores[key]

    def best(self, *starts: str) -> ProposedMap | None:
        """The one of least held-out objective, of those starts or of all."""
        among = [one for one in self.proposals if not starts or one.start in starts]
        return min(among, key=lambda one: self.score(one).value(), default=None)

    @property
    def converged(self) -> list[ProposedMap]:
        """Those whose start says that they have converged."""
        return [one for one in self.proposals if one.standing >= Standing.LIKELY]


def run_starts(
    problem: Problem,
    starts: Sequence[Start],
    given: Sequence[ProposedMap] = (),
    stop: Callable[[ProposedMap], bool] | None = None,
    turns: float = np.inf,
) -> Pool:
    """Run starts in the order of their cost until one of them has converged.

    With few rows, two attempts have to end at the same signals. ``stop`` sees every proposal, rough
    ones as well, and ends the search where it is true. Starts of more than ``turns`` turns are left
    out.
    """
    pool, last = Pool(problem, given), turns
    order = [
        (cost, rank, start) for rank, start in enumerate(starts) for cost in start.costs(problem)
    ]
    for cost, _, start in sorted(order, key=lambda one: one[:2]):
        if cost >= last:
            break
        turn = StartTurn(problem, int(cost), pool)
        if not start.applies(turn):
            continue
        for made in start.propose(turn):
            W = nearest_in_turn(made.W, problem.rows.held) if problem.grid.is_ring else made.W
            proposal = replace(made, W=W, start=start.name)
            if stop is not None and stop(proposal):
                return pool
            if proposal.standing is Standing.ROUGH:
                continue
            before = pool.converged
            pool.add(proposal)
            if proposal.standing >= Standing.SURE and _seen_before(proposal, before, pool):
                return pool
            if proposal.standing is Standing.LIKELY:
                last = np.floor(cost) + 1
    return pool


def _seen_before(proposal: ProposedMap, before: list[ProposedMap], pool: Pool) -> bool:
    """Whether a proposal ends the search: with few rows, if an earlier attempt ended alike."""
    problem = pool.problem
    if not problem.noisy or proposal.standing is Standing.ALONE:
        return True
    with problem.work.stage("agree") as values:
        agreements = [same_signals(proposal.W, one.W, problem.rows.held, problem.grid)
                      for one in before]  # fmt: skip
        values["agreement"] = max(agreements, default=0.0)
    if values["agreement"] > problem.needed_agreement:
        pool.agreed = values["agreement"]
    return pool.agreed is not None


@dataclass(frozen=True, eq=False)
class Chosen:
    """The proposal that the judge returns, its held-out numbers, and those of its rivals."""

    proposal: ProposedMap
    score: HeldOut
    rivals: dict[str, float]


def chosen(pool: Pool) -> Chosen:
    """The proposal of least held-out objective; where least distortion has decided, among those."""
    alone = [one for one in pool.proposals if one.standing is Standing.ALONE]
    among = [one for one in pool.proposals if not alone or one in alone or not one.start]
    best = min(among, key=lambda one: pool.score(one).value())
    rivals = {one.name: round(pool.score(one).value(), 4) for one in among}
    return Chosen(best, pool.score(best), rivals)


def confirmed(
    pool: Pool, first: ProposedMap, starts: Sequence[Start]
) -> tuple[ProposedMap, float, int]:
    """What two attempts agree on: the proposal, how well, and how many attempts that took.

    Each attempt is the same start, from other draws and on other rows, and ends as soon as it is
    where an earlier one was. If the second is elsewhere, a third decides between the two. Where no
    two agree, the first is returned, with the best agreement that was seen.
    """
    problem, ended = pool.problem, [first]
    own = [one for one in starts if one.name == first.start]
    needed = [one for one in starts if own and one.name in own[0].after] + own
    most = 0.0

    def agreement(one: ProposedMap) -> tuple[float, ProposedMap]:
        rows, grid = problem.rows.held, problem.grid
        return max(
            ((same_signals(one.W, other.W, rows, grid), other) for other in ended),
            key=lambda pair: pair[0],
        )

    for attempt in range(1, problem.settings.confirming + 1):
        met: list[tuple[float, ProposedMap]] = []

        def stop(one: ProposedMap, met: list[tuple[float, ProposedMap]] = met) -> bool:
            met.append(agreement(one))
            return met[-1][0] >= problem.needed_agreement

        other = run_starts(problem.again(), needed, stop=stop)
        value, before = max(met, key=lambda pair: pair[0], default=(0.0, first))
        most = max(most, value)
        if value >= problem.needed_agreement:
            return before, value, attempt + 1
        best = other.best(first.start)
        if best is not None:
            ended.append(best)
    return first, most, problem.settings.confirming + 1
