"""Own parts of a training: terms of the objective, critics, embeddings and schedules.

For those who work on the method. Each part has a small protocol, and is given to the solver as an
option; nothing of the package has to be touched:

    solver_options={"terms": [OwnTerm("smooth", 0.1, smooth)], "critic": MyCritic}

A run with own parts has everything that other runs have: checkpoints that it goes on from, curves
of all terms, TensorBoard, several processes. Its steps are not compiled.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from symlift.core.grid import Grid
from symlift.core.model import LiftedModel
from symlift.errors import InputError
from symlift.solvers.neural.board import Watch
from symlift.solvers.neural.learners import _adam
from symlift.solvers.neural.objective.batch import Lifted, Workers
from symlift.solvers.neural.objective.terms import Objective
from symlift.solvers.neural.trainer import Trainer

__all__ = ["Critic", "OwnObjective", "OwnParts", "OwnTerm", "OwnTrainer", "Schedule"]

#: the most rows that an embedding is made from
_ROWS = 65_536
#: schedule(share of the steps that are taken) → (share of the rank that is open, share of the
#: learning rates), all from 0 to 1
Schedule = Callable[[float], tuple[float, float]]


@dataclass(frozen=True)
class OwnTerm:
    """A term that is added to the objective.

    Parameters
    ----------
    name : str
        The name of its curve.
    weight : float or callable
        Its weight, or a function of the share of the rank that is open, from 0 to 1.
    value : callable
        ``value(batch)`` with a `Lifted` batch: one number, differentiable, that is descended. If it
        is a ``torch.nn.Module``, its parameters are trained with the estimators'.

    Examples
    --------
    >>> term = OwnTerm("size", 0.1, lambda batch: batch.workers.mean(batch.z.square()).mean())
    >>> term.at(0.5)
    0.1
    """

    name: str
    weight: float | Callable[[float], float]
    value: Callable[[Lifted], Tensor]

    def at(self, opened: float) -> float:
        """The weight when this share of the rank is open."""
        return float(self.weight(opened) if callable(self.weight) else self.weight)


@runtime_checkable
class Critic(Protocol):
    """What measures stationarity: a ``torch.nn.Module`` with these two methods, made by
    ``critic(grid)``.
    """

    def adversarial(self, batch: Lifted, weight: float) -> tuple[Tensor, Tensor]:
        """(loss, value): descending the loss makes the critic climb its estimate and the lifting
        map descend ``weight`` times it; the value is for curves.
        """
        ...

    def constrain(self) -> None:
        """Called after each step of its parameters, to hold them to a bound."""
        ...


@dataclass(frozen=True)
class OwnParts:
    """All own parts of one training; those that are None are the package's.

    ``embedding`` (dimension, d), or a function of (X, dimension) that makes it from the first
    65,536 rows, is the start of E; it is trained where that of the preset is.
    """

    terms: Sequence[OwnTerm] = ()
    critic: Callable[[Grid], Any] | None = None
    embedding: NDArray | Callable[[Any, int], NDArray] | None = None
    schedule: Schedule | None = None

    def __post_init__(self) -> None:
        names = [term.name for term in self.terms]
        taken = set(Objective.names) | {"step", "seconds", "rank", "factor", "held_out"}
        for name in names:
            if names.count(name) > 1 or name in taken:
                raise InputError(f"a term is called {name!r}, which another one is: rename it")

    @property
    def given(self) -> bool:
        """Whether there is any."""
        others = (self.critic, self.embedding, self.schedule)
        return bool(self.terms) or any(part is not None for part in others)

    def start(self, start: LiftedModel, X: Any) -> LiftedModel:
        """``start`` with the own embedding."""
        if self.embedding is None:
            return start
        given = self.embedding
        if callable(given):
            given = given(np.asarray(X[:_ROWS], dtype=np.float64), len(start.E))
        E = np.asarray(given, dtype=np.float64)
        if E.shape != start.E.shape:
            raise InputError(
                f"the embedding has the shape {E.shape}: this training needs {start.E.shape}"
            )
        return replace(start, E=E)


class OwnObjective(nn.Module):
    """An `Objective` with own terms and an own critic; the sums of own terms are kept for their
    curves.
    """

    names = Objective.names
    sums: Tensor

    def __init__(self, base: Objective, parts: OwnParts, grid: Grid) -> None:
        super().__init__()
        if parts.critic is not None and len(base.critics):
            critic = parts.critic(grid)
            if not isinstance(critic, nn.Module) or not isinstance(critic, Critic):
                raise InputError(
                    "critic(grid) has to make a torch.nn.Module with the methods adversarial(batch,"
                    " weight) and constrain()"
                )
            base.critics = nn.ModuleList([critic])
        self.base, self.terms = base, list(parts.terms)
        # every draw of the start begins with the parameters that were given
        self.values = [copy.deepcopy(term.value) for term in parts.terms]
        self.own = nn.ModuleList([value for value in self.values if isinstance(value, nn.Module)])
        self.register_buffer("sums", torch.zeros(len(self.terms) + 1))

    def lifted(self, y: Tensor, workers: Workers, rank: Tensor) -> Lifted:
        """The batch that `forward` takes."""
        return self.base.lifted(y, workers, rank)

    def forward(self, batch: Lifted, opened: float = 1.0) -> tuple[Tensor, Tensor]:
        """As `Objective.forward`; own terms count in the last value, the loss."""
        loss, values = self.base(batch, opened)
        values_of_own = []
        for term, value_of in zip(self.terms, self.values, strict=True):
            value = value_of(batch)
            if value.ndim:
                raise InputError(f"the term {term.name!r} has to be one number for a batch")
            loss = loss + term.at(opened) * value
            values_of_own.append(value.detach())
            added = torch.zeros_like(values)
            added[-1] = term.at(opened) * value.detach()
            values = values + added
        with torch.no_grad():
            self.sums += torch.stack([*values_of_own, values.new_ones(())])
        return loss, values

    def constrain(self) -> None:
        """Hold critics to their bound."""
        self.base.constrain()

    def means(self) -> dict[str, float]:
        """The mean of each own term since the last call."""
        *sums, count = self.sums.tolist()
        self.sums.zero_()
        return {t.name: s / count for t, s in zip(self.terms, sums, strict=True) if count}


class OwnTrainer(Trainer):
    """A `Trainer` with own parts."""

    def __init__(self, X: Any, *args: Any, parts: OwnParts, **options: Any) -> None:
        self.parts, self._X = parts, X
        super().__init__(X, *args, **options)
        if parts.schedule is not None and self.settings.clock != "paper":
            raise InputError(
                'an own schedule takes the place of the printed clock: give preset="paper", or'
                ' settings={"clock": "paper"}'
            )

    def _begin(self, start: LiftedModel, seed: int) -> None:
        self.compiled = False
        super()._begin(start if self.clock.near else self.parts.start(start, self._X), seed)
        learners = self.learners
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            objective = OwnObjective(learners.objective, self.parts, self.grid)
        learners.objective = objective.to(self.device, self.dtype)  # type: ignore[assignment]
        parameters = list(objective.parameters())
        learners.estimator_optimiser = _adam([{"params": parameters}]) if parameters else None

    def _follow(self) -> None:
        """Rank and learning rates as the own schedule has them now."""
        if self.parts.schedule is not None:
            done = min(1.0, self.step_count / self.settings.steps)
            opened, factor = self.parts.schedule(done)
            rank = max(1.0, min(1.0, opened) * self.clock.full)
            self.clock = replace(self.clock, rank=rank, factor=factor)

    def _set_rates(self) -> None:
        self._follow()
        super()._set_rates()

    def _evaluate(self, watch: Watch | None, means: dict[str, float]) -> None:
        self._follow()
        objective: Any = self.objective
        super()._evaluate(watch, means | objective.means())
