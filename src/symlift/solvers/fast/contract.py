"""What starts of a dense mixing and the search that runs them have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from symlift.solvers.contract import Reach

if TYPE_CHECKING:
    from symlift.solvers.fast.pool import Pool
    from symlift.solvers.fast.problem import Components, Problem

__all__ = ["ProposedMap", "Standing", "Start", "StartTurn"]


class Standing(IntEnum):
    """What a start says of its own proposal."""

    #: on its way: it can show that two attempts go the same way, and is never returned
    ROUGH = 0
    #: competes by the held-out objective
    OPEN = 1
    #: convincing, but other starts of the same turn may still do better
    LIKELY = 2
    #: converged
    SURE = 3
    #: converged, and least distortion has decided: resolution, which prefers innovations to the
    #: process, must not overrule it
    ALONE = 4


@dataclass(frozen=True, eq=False)
class ProposedMap:
    """A lifting map (points, columns), what its start says of it, and what speaks for it.

    ``explained`` is the part of held-out statistics that displacements explain, ``answers`` are the
    maps that do as well: a process and its innovations, a field and its increments.
    """

    name: str
    W: NDArray[np.float64]
    standing: Standing = Standing.OPEN
    explained: float = 0.0
    reach: Reach = "components"
    answers: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    #: name of the start it came from
    start: str = ""


@dataclass(frozen=True, eq=False)
class StartTurn:
    """What a start sees when it has its turn: the problem, which turn it is, and the pool."""

    problem: Problem
    number: int
    pool: Pool

    @property
    def components(self) -> Components:
        """The independent components of this turn."""
        return self.problem.components(self.number)


class Start(Protocol):
    """A way to begin. No start knows another; what they share is the problem."""

    name: str
    #: other starts whose proposals it goes on from
    after: tuple[str, ...]

    def costs(self, problem: Problem) -> tuple[float, ...]:
        """When it has its turns: the whole part is the turn, which has components of its own."""
        ...

    def applies(self, turn: StartTurn) -> bool:
        """Whether it has anything to propose, given what is in the pool."""
        ...

    def propose(self, turn: StartTurn) -> Iterator[ProposedMap]:
        """Maps, rough ones first."""
        ...
