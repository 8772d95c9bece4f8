"""A training step as one compiled function: the same numbers up to rounding in a third of the time.

On small grids most of a step is what the interpreter and autograd spend on hundreds of small
operations. Traced once, they become a few loops. Compiling takes the better part of a minute and a
C++ compiler, so it pays from ten thousand steps on.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from types import FunctionType, MethodType
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.linalg import LinAlgError  # type: ignore[attr-defined]

from symlift.solvers.neural.network import LiftingNetwork
from symlift.solvers.neural.objective.batch import Lifted, Workers
from symlift.solvers.neural.objective.convolution import Convolution
from symlift.solvers.neural.objective.terms import Objective

__all__ = ["CompileError", "CompiledStep", "Turn", "turns_of"]

#: who learns from a batch
Turn = Literal["both", "estimators", "model"]

#: torch's own has one type whether or not there is something to carry along
vjp: Any = torch.func.vjp
#: how Adam averages gradients and their squares
_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-7
_AVERAGES = ("exp_avg", "exp_avg_sq")
#: who does not use the network's averages, and who does not use the estimators'
_WHO: tuple[Turn, Turn] = ("estimators", "model")


def turns_of(updates: str) -> tuple[Turn, ...]:
    """Whose turns a batch has: both at once, or estimators, and then the model."""
    return ("estimators", "model") if updates == "alternating" else ("both",)


@dataclass(frozen=True)
class _Noted(Workers):
    """Workers that note which random numbers they were asked for."""

    asked: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)

    def uniform(self, groups: int, rows: int, width: int, like: Tensor, blocks: int = 1) -> Tensor:
        self.asked.append(("uniform", (groups, rows, width, blocks)))
        return super().uniform(groups, rows, width, like, blocks)

    def integers(self, high: int, rows: int, device: torch.device) -> Tensor:
        self.asked.append(("integers", (high, rows)))
        return super().integers(high, rows, device)


class _Given:
    """Workers whose random numbers were drawn before, in the order in which they are used: a
    generator cannot be part of what is compiled.
    """

    size = 1

    def __init__(self, draws: list[Tensor]) -> None:
        self.draws, self.used = draws, 0

    def mean(self, values: Tensor) -> Tensor:
        return values.mean(dim=0)

    def average(self, value: Tensor) -> Tensor:
        return value

    def uniform(self, *shape: Any) -> Tensor:  # noqa: ARG002 - it was drawn for this shape
        self.used += 1
        return self.draws[self.used - 1]

    integers = uniform


class CompileError(RuntimeError):
    """A step that the machine cannot compile."""


class _Terms(nn.Module):
    """The objective in the parts that have gradients of their own."""

    def __init__(self, objective: Objective) -> None:
        super().__init__()
        self.objective = objective

    def forward(self, part: tuple[int, int] | None, batch: Lifted) -> tuple[Tensor, ...]:
        """The divergence of estimator and axis ``part``; for None, resolution and infomax."""
        if part is not None:
            estimator: Any = self.objective.critics[part[0]]
            return (estimator.along(batch.z, part[1], batch.workers),)
        zero = batch.z.new_zeros(())
        terms = (self.objective.resolution, self.objective.infomax)
        return tuple(zero if term is None else term(batch) for term in terms)


class CompiledStep:
    """What `Trainer.step` does with a batch, compiled: gradients, both updates of Adam, and the
    critics' bound.

    Parameters, the optimisers' averages and the critics' singular vectors are changed in place, so
    that checkpoints and evaluations see a run as before. The optimisers must have made a step.
    """

    def __init__(
        self,
        network: LiftingNetwork,
        objective: Objective,
        optimisers: list[torch.optim.Adam],
        clips: tuple[float | None, float | None],
    ) -> None:
        self.network, self.objective, self.clips = network, objective, clips
        self.terms = _Terms(objective)
        self.net = dict(network.named_parameters())
        self.est = dict(self.terms.named_parameters())
        self.layers = [m for m in objective.modules() if isinstance(m, Convolution)]
        self.parts = [
            (i, axis)
            for i, estimator in enumerate(objective.critics)
            for axis in range(len(estimator.shares))  # type: ignore[arg-type]
        ]
        groups = [(o, group) for o in optimisers for group in o.param_groups]
        slots = {id(p): (o.state[p], group) for o, group in groups for p in group["params"]}
        #: state and group of each parameter of the network, and of estimators
        self.slots = [[slots[id(p)] for p in of.values()] for of in (self.net, self.est)]
        self.asked: list[tuple[str, tuple[int, ...]]] | None = None
        self._compiled: dict[Turn, Callable[..., Tensor]] = {}

    def _function(self, turn: Turn) -> Callable[..., Tensor]:
        """The compiled function of a ``turn``, made when it is first asked for."""
        if turn not in self._compiled:
            # what was compiled is kept with the code, and nothing is checked before it is used
            # again: each object and each turn needs code of its own
            code = getattr(type(self), f"_turn_of_{turn}").__code__
            own = FunctionType(code.replace(), globals())
            with _quiet():
                self._compiled[turn] = torch.compile(
                    MethodType(own, self),
                    dynamic=False,
                    # hundreds of calls of loops and products from C++ take a quarter less time than
                    # from Python
                    options={"guard_filter_fn": _no_guards, "cpp_wrapper": True},
                )
        return self._compiled[turn]

    @staticmethod
    def suits(objective: Objective, workers: Workers) -> bool:
        """Whether a step of ``objective`` can be compiled: one process, and critics alone measure
        stationarity, with one share from the first rank to the last.
        """
        first, last = objective.shares.get("critics", (1.0, 1.0))
        return workers.size == 1 and not objective.closed and first == last

    def __call__(
        self, turn: Turn, x: Tensor, noise: Tensor | None, rank: Tensor, workers: Workers
    ) -> Tensor:
        """One step on rows ``x`` for those whose ``turn`` it is; the values of the terms, as
        `Objective` gives them.

        Raises `CompileError` where the first step cannot be compiled: only random numbers have been
        used up then.
        """
        with torch.no_grad():
            first = turn not in self._compiled
            if self.asked is None:
                self.asked = self._numbers_asked(x, noise, rank, workers)
            draws = [self._draw(*asked, workers, x) for asked in self.asked]
            turned = [slots for slots, who in zip(self.slots, _WHO, strict=True) if turn != who]
            try:
                with _quiet() if first else nullcontext():
                    values = self._function(turn)(
                        x,
                        torch.zeros_like(self.network.filter) if noise is None else noise,
                        rank,
                        draws,
                        (self.net, self.est, [layer.singular for layer in self.layers]),
                        _averages(turned),
                    )
            except torch._dynamo.exc.TorchDynamoException as error:
                raise CompileError(" ".join(str(error).split("\n")[:2])) from None
            except RuntimeError as error:
                # code from the compiler's cache that was made for another processor, or a
                # decomposition of what is not finite: compiled code says neither
                if first:
                    raise CompileError(str(error) or "its code does not run here") from None
                if all(torch.isfinite(p).all() for p in self.net.values()):
                    raise
                raise LinAlgError("a parameter is not finite") from None
            torch._foreach_add_([state["step"] for slots in turned for state, _ in slots], 1)
        return values

    def _numbers_asked(
        self, x: Tensor, noise: Tensor | None, rank: Tensor, workers: Workers
    ) -> list[tuple[str, tuple[int, ...]]]:
        """Which random numbers a step asks for, in order; the generator stays where it was."""
        noted = _Noted(workers.generator)
        state = workers.generator.get_state()
        self.objective(self.objective.lifted(x @ self.network(noise).T, noted, rank))
        workers.generator.set_state(state)
        return noted.asked

    def _draw(self, kind: str, sizes: tuple[int, ...], workers: Workers, like: Tensor) -> Tensor:
        if kind == "uniform":
            groups, rows, width, blocks = sizes
            drawn = workers.uniform(groups, rows, width, like, blocks)
            # in memory as what it decides on: on lines, rows come last
            return drawn.mT.contiguous().mT if self.network.grid.ndim == 1 else drawn
        high, rows = sizes
        return workers.integers(high, rows, like.device)

    # -- what is compiled --------------------------------------------------------------------------

    def _turn_of_both(self, *given: Any) -> Tensor:
        return self._update("both", *given)

    def _turn_of_estimators(self, *given: Any) -> Tensor:
        return self._update("estimators", *given)

    def _turn_of_model(self, *given: Any) -> Tensor:
        return self._update("model", *given)

    def _update(
        self,
        turn: Turn,
        x: Tensor,
        noise: Tensor,
        rank: Tensor,
        draws: list[Tensor],
        state: tuple[dict[str, Tensor], dict[str, Tensor], list[Tensor]],
        adam: tuple[list[Tensor], list[Tensor], Tensor],
    ) -> Tensor:
        net, est, singular = state
        of_net, of_est, values = self._gradients(turn, x, noise, rank, _Given(draws), net, est)
        pairs: list[tuple[Tensor, Tensor]] = []
        if turn != "estimators":
            pairs += [(net[name], g) for name, g in _clipped(of_net, self.clips[0]).items()]
        if turn != "model":
            pairs += [(est[name], g) for name, g in _clipped(of_est, self.clips[1]).items()]
        for place, (p, g) in enumerate(pairs):
            first, second, (size, scale) = adam[0][place], adam[1][place], adam[2][place]
            first.lerp_(g, 1 - _FIRST)
            second.mul_(_SECOND).addcmul_(g, g, value=1 - _SECOND)
            p.sub_(size.to(p.dtype) * first / (second.sqrt() * scale.to(p.dtype) + _EPSILON))
        if turn == "model":
            return values
        weights = [est[name] for name in est if name.endswith(".weight")]
        for layer, weight, vector in zip(self.layers, weights, singular, strict=True):
            bounded, turned = layer.bounded(weight, vector)
            weight.copy_(bounded)
            vector.copy_(turned)
        return values

    def _gradients(
        self,
        turn: Turn,
        x: Tensor,
        noise: Tensor,
        rank: Tensor,
        workers: _Given,
        net: dict[str, Tensor],
        est: dict[str, Tensor],
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        """Gradients that lower the model's loss and, for critics, raise their own estimates; and
        the values of the terms. Those who have no ``turn`` have no gradient.
        """
        objective = self.objective
        learns, estimates = turn != "estimators", turn != "model"

        def lift(W: Tensor) -> tuple[Tensor, Tensor]:
            batch = objective.lifted(x @ W.T, workers, rank)  # type: ignore[arg-type]
            return batch.z, batch.log_scale

        def part(which: tuple[int, int] | None) -> Callable[..., Any]:
            def values(est: dict[str, Tensor], z: Tensor, log_scale: Tensor) -> tuple[Tensor, ...]:
                batch = Lifted(z, log_scale, rank, workers, objective.entropy)  # type: ignore[arg-type]
                return functional_call(self.terms, est, (which, batch))

            return values

        def of_part(
            which: tuple[int, int] | None, z: Tensor, log_scale: Tensor
        ) -> tuple[tuple[Tensor, ...], Callable[..., Any]]:
            """Values of a part, and their gradients for (estimators, z, its scale)."""
            values = part(which)
            if turn == "both":
                terms, back = vjp(values, est, z, log_scale)
                return terms, back
            if estimates:
                terms, back = vjp(lambda est: values(est, z, log_scale), est)
                return terms, lambda given: (*back(given), None, None)
            terms, back = vjp(lambda z, log_scale: values(est, z, log_scale), z, log_scale)
            return terms, lambda given: (None, *back(given))

        stationarity, resolution, infomax = objective.weights
        W, to_net = vjp(lambda net: functional_call(self.network, net, (noise,)), net)
        (z, log_scale), to_map = vjp(lift, W)
        (R, I), back = of_part(None, z, log_scale)  # noqa: E741 - as in the paper
        of_est, of_z, of_scale = back((torch.full_like(R, resolution), torch.full_like(I, infomax)))
        S = torch.zeros_like(R)
        for which in self.parts:
            (js,), back = of_part(which, z, log_scale)
            climb, through, _ = back((torch.ones_like(js),))
            # an estimate below 0 gives the lifting map no information; critics climb all the same
            share = self._share(which)
            if learns:
                of_z = of_z + stationarity * share * (js > 0) * through
            if estimates:
                of_est = {name: g - climb[name] for name, g in of_est.items()}
            S = S + share * js.clamp_min(0.0)
        of_net: dict[str, Tensor] = {}
        if learns:
            (of_map,) = to_map((of_z, of_scale))
            (of_net,) = to_net(of_map)
        total = stationarity * S + resolution * R + infomax * I
        return of_net, of_est or {}, torch.stack([S, R, I, total])

    def _share(self, part: tuple[int, int]) -> float:
        """The weight of one divergence among all."""
        estimator: Any = self.objective.critics[part[0]]
        share: float = estimator.shares[part[1]] * self.objective.share("critics", 1.0)
        return share / len(self.objective.critics)


def _averages(
    turned: list[list[tuple[dict[str, Tensor], dict[str, Any]]]],
) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """Adam's averages of the parameters that are ``turned`` to, and the sizes of their steps."""
    flat = [slot for slots in turned for slot in slots]
    first, second = ([state[key] for state, _ in flat] for key in _AVERAGES)
    sizes = [
        _sizes(
            torch.tensor([group["lr"] for _, group in slots], dtype=torch.float64),
            slots[0][0]["step"] + 1,
        )
        for slots in turned
        if slots
    ]
    return first, second, torch.cat(sizes) if sizes else torch.zeros(0, 2, dtype=torch.float64)


def _clipped(gradients: dict[str, Tensor], most: float | None) -> dict[str, Tensor]:
    """``gradients``, shortened together to a norm of ``most``."""
    if most is None or not gradients:
        return gradients
    norm = torch.stack([g.square().sum() for g in gradients.values()]).sum().sqrt()
    factor = (most / (norm + 1e-6)).clamp_max(1.0)
    return {name: factor * g for name, g in gradients.items()}


def _sizes(rates: Tensor, step: Tensor) -> Tensor:
    """Adam's (rate / (1 - 0.9^t), 1 / sqrt(1 - 0.999^t)) for each parameter, in double precision:
    (parameters, 2).
    """
    t = step.double()
    scale = (1 - _SECOND**t).rsqrt()
    return torch.stack([rates / (1 - _FIRST**t), scale.expand_as(rates)], dim=1)


@contextmanager
def _quiet() -> Iterator[None]:
    """What the compiler says of its own code, and of complex numbers, is not for a user."""
    log = logging.getLogger("torch._inductor.ir")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def _no_guards(guards: list[Any]) -> list[bool]:
    """Nothing has to be checked again: a step has the same sizes and the same modules each time.

    Checks of all parameters and settings took 0.6 of 4.7 ms.
    """
    return [False for _ in guards]
