"""What a batch changes: the lifting network, the estimators, and their optimisers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.linalg import LinAlgError  # type: ignore[attr-defined]
from torch.nn import Parameter

from symlift.core.grid import Grid
from symlift.core.model import LiftedModel
from symlift.errors import FitWarning
from symlift.solvers.neural.checkpoint import named_under, optimiser_state, restore_optimiser
from symlift.solvers.neural.compiled import CompiledStep, CompileError, Turn, turns_of
from symlift.solvers.neural.distributed import add_up
from symlift.solvers.neural.network import network_kind
from symlift.solvers.neural.objective.batch import Workers
from symlift.solvers.neural.objective.critic import JensenShannon
from symlift.solvers.neural.objective.mixture import MixtureMarginals
from symlift.solvers.neural.objective.rank import JointEntropy
from symlift.solvers.neural.objective.terms import Objective
from symlift.solvers.neural.presets import Settings

__all__ = ["Learners", "make_objective"]

# gradients of critics by two orders of summation: 1e-6 of their norm, wrong ones 0.1 and more
_ROUNDING = 1e-3


def make_objective(grid: Grid, settings: Settings) -> Objective:
    """The objective that ``settings`` describe, with fresh critics and mixtures (drawn from torch's
    current generator).
    """
    estimators = [
        JensenShannon(
            grid,
            e.layers,
            (e.coarse,) * grid.ndim,
            e.padding,
            e.head,
            e.whole,
            e.norm,
            e.either,
        )
        for e in settings.estimators
    ]
    weights = (settings.stationarity, settings.resolution, settings.infomax)
    shares = {
        "critics": settings.critics,
        "gaussian": settings.gaussian,
        "moments": settings.moments,
    }
    return Objective(
        grid,
        estimators,
        weights,
        shares,
        MixtureMarginals(grid.size, least=settings.least_log_variance),
        JointEntropy(settings.entropy, settings.window),
        settings.standardise,
    )


class Learners:
    """A network from ``start`` and fresh estimators, which learn from one batch after the other.

    ``compiled`` steps are taken where the objective has them; the first step of all, which makes
    the optimisers' averages, is not compiled.
    """

    def __init__(
        self,
        start: LiftedModel,
        settings: Settings,
        seed: int,
        keep_embedding: bool,
        dtype: torch.dtype,
        workers: Workers,
        compiled: bool = False,
    ) -> None:
        self.settings, self.workers = settings, workers
        device = workers.generator.device
        # parameters are drawn on the CPU from a seed of their own: the same on every device and in
        # every process
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            objective = make_objective(start.lattice, settings)
        kind = network_kind(settings.parametrisation, start.lattice)
        self.network = kind(start, dtype, keep_embedding, settings.offset).to(device)
        self.objective = objective.to(device, dtype)
        gains = (settings.rotation_gain, settings.frequency_gain, 1.0)
        parts = zip(self.network.parameters_by_gain(), gains, strict=True)
        self.model_optimiser = _adam([{"params": part, "gain": gain} for part, gain in parts])
        parameters = list(self.objective.parameters())
        self.estimator_optimiser = _adam([{"params": parameters}]) if parameters else None
        self.compiled = (
            compiled
            and settings.precision != "bfloat16"
            and CompiledStep.suits(self.objective, workers)
        )
        self.compiled_step: CompiledStep | None = None

    @property
    def _optimisers(self) -> list[torch.optim.Adam]:
        return [o for o in (self.model_optimiser, self.estimator_optimiser) if o is not None]

    def set_rates(self, model: float, estimators: float) -> None:
        """Learning rates of the network, multiplied by the gain of each part, and of estimators."""
        for group in self.model_optimiser.param_groups:
            group["lr"] = model * group["gain"]
        if self.estimator_optimiser is not None:
            for group in self.estimator_optimiser.param_groups:
                group["lr"] = estimators

    def update(
        self, batches: Sequence[Tensor], noise: Tensor | None, rank: Tensor, opened: float
    ) -> Tensor:
        """Gradients of the objective and both updates on the last of ``batches``, the others for
        the estimators alone; the values of the terms on the last.
        """
        if not self.compiled or not self.model_optimiser.state:
            return self._plain_updates(batches, noise, rank, opened)
        if self.compiled_step is None:
            return self._first_compiled(batches, noise, rank, opened)
        return self._compiled_updates(self.compiled_step, batches, noise, rank)

    def _turns(self, batches: Sequence[Tensor]) -> list[tuple[Turn, Tensor]]:
        """Whose turn it is, and on which rows."""
        *others, last = batches
        alone: list[tuple[Turn, Tensor]] = [("estimators", x) for x in others]
        return alone + [(turn, last) for turn in turns_of(self.settings.updates)]

    def _compiled_updates(
        self, step: CompiledStep, batches: Sequence[Tensor], noise: Tensor | None, rank: Tensor
    ) -> Tensor:
        values = [step(turn, x, noise, rank, self.workers) for turn, x in self._turns(batches)]
        return values[-1]

    def _plain_updates(
        self, batches: Sequence[Tensor], noise: Tensor | None, rank: Tensor, opened: float
    ) -> Tensor:
        turns = self._turns(batches)
        values = [self._plain_update(turn, x, noise, rank, opened) for turn, x in turns]
        return values[-1]

    def _first_compiled(
        self, batches: Sequence[Tensor], noise: Tensor | None, rank: Tensor, opened: float
    ) -> Tensor:
        """The first compiled step, and the plain one from the same state: compiled steps go on if
        the two agree. Compilers are wrong at times, and differ from machine to machine.
        """
        clips = self.settings.clip, self.settings.estimator_clip
        step = CompiledStep(self.network, self.objective, self._optimisers, clips)
        before, state = self._copies(), self.workers.generator.get_state()
        compiled: Tensor | None = None
        try:
            values = self._compiled_updates(step, batches, noise, rank)
            compiled, after, why = self._gradients_and(values), self._copies(), ""
        except (CompileError, LinAlgError) as error:
            why = str(error)
        self._put(before)
        self.workers.generator.set_state(state)
        plain = self._plain_updates(batches, noise, rank, opened)
        if compiled is not None and _agree(compiled, self._gradients_and(plain)):
            self._put(after)  # not the plain one's: a resumed run takes the same steps as another
            self.compiled_step = step
            return values
        self.compiled = False
        warnings.warn(
            "the training step cannot be compiled here"
            f" ({why or 'its numbers are not those of a plain one'}): plain steps are taken, which"
            " take twice the time",
            FitWarning,
            stacklevel=2,
        )
        return plain

    def _copies(self) -> dict[str, Tensor]:
        return {name: value.clone() for name, value in self.tensors().items()}

    @torch.no_grad()
    def _put(self, copies: dict[str, Tensor]) -> None:
        for name, value in self.tensors().items():
            value.copy_(copies[name])

    def _gradients_and(self, values: Tensor) -> Tensor:
        """All averages of gradients, and ``values``, in one vector."""
        averages = [state["exp_avg"] for o in self._optimisers for state in o.state.values()]
        return torch.cat([part.detach().reshape(-1).double() for part in (*averages, values)])

    def _plain_update(
        self, turn: Turn, x: Tensor, noise: Tensor | None, rank: Tensor, opened: float
    ) -> Tensor:
        """Gradients on rows ``x`` and the updates of those whose ``turn`` it is."""
        learns, estimates = turn != "estimators", turn != "model"
        with torch.set_grad_enabled(learns):
            y = x @ self.network(noise).T
        with torch.autocast(
            x.device.type, torch.bfloat16, enabled=self.settings.precision == "bfloat16"
        ):
            loss, values = self.objective(self.objective.lifted(y, self.workers, rank), opened)
        own = list(self.network.parameters())
        if loss.requires_grad:  # nothing to learn for estimators where no term has any
            loss.backward(inputs=None if estimates else own)
        self._average_gradients()
        if learns:
            _take_step(self.model_optimiser, own, self.settings.clip)
        if estimates and self.estimator_optimiser is not None:
            others = list(self.objective.parameters())
            _take_step(self.estimator_optimiser, others, self.settings.estimator_clip)
            self.objective.constrain()
        return values

    def _average_gradients(self) -> None:
        """The gradient of the global batch: each process holds its own rows' part of it."""
        if self.workers.size == 1:
            return
        parameters = [*self.network.parameters(), *self.objective.parameters()]
        present = [p for p in parameters if p.grad is not None]
        flat = torch.cat([p.grad.reshape(-1) for p in present])  # type: ignore[union-attr]
        add_up(flat)
        flat /= self.workers.size
        for p, part in zip(present, torch.split(flat, [p.numel() for p in present]), strict=True):
            p.grad.copy_(part.view_as(p))  # type: ignore[union-attr]

    def tensors(self) -> dict[str, Tensor]:
        """Everything that the next update depends on, by name."""
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        tensors |= {
            f"objective.{name}": value for name, value in self.objective.state_dict().items()
        }
        tensors |= optimiser_state("model_optimiser", self.model_optimiser)
        if self.estimator_optimiser is not None:
            tensors |= optimiser_state("estimator_optimiser", self.estimator_optimiser)
        return tensors

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Go on from `tensors`."""
        self.compiled_step = None  # it holds the averages that are replaced here
        self.network.load_state_dict(named_under("network.", tensors))
        self.objective.load_state_dict(named_under("objective.", tensors))
        restore_optimiser("model_optimiser", self.model_optimiser, tensors)
        if self.estimator_optimiser is not None:
            restore_optimiser("estimator_optimiser", self.estimator_optimiser, tensors)


def _adam(groups: list[dict[str, Any]]) -> torch.optim.Adam:
    return torch.optim.Adam(groups, lr=1.0, eps=1e-7, fused=True)


def _take_step(
    optimiser: torch.optim.Adam, parameters: list[Parameter], clip: float | None
) -> None:
    """A step along gradients, of at most this norm, which are used up by it."""
    if clip is not None:
        torch.nn.utils.clip_grad_norm_(parameters, clip, foreach=True)
    optimiser.step()
    optimiser.zero_grad()


def _agree(one: Tensor, other: Tensor) -> bool:
    """Whether two vectors are the same up to the rounding of single precision."""
    return bool((one - other).norm() <= _ROUNDING * other.norm())
