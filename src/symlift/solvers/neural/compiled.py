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
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.linalg import LinAlgError  # type: ignore[attr-defined]

from symlift.solvers.neural.network import LiftingNetwork
from symlift.solvers.neural.objective.batch import Lifted, Workers
from symlift.solvers.neural.objective.convolution import Convolution
from symlift.solvers.neural.objective.terms import Objective

__all__ = ["CompileError", "CompiledStep"]

#: torch's own has one type whether or not there is something to carry along
vjp: Any = torch.func.vjp
#: how Adam averages gradients and their squares
_FIRST, _SECOND, _EPSILON = 0.9, 0.999, 1e-7
_AVERAGES = ("exp_avg", "exp_avg_sq")


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
        clip: float | None,
    ) -> None:
        self.network, self.objective, self.clip = network, objective, clip
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
        #: state and group of each parameter, in the order of ``net`` and ``est``
        self.slots = [slots[id(p)] for p in (*self.net.values(), *self.est.values())]
        self.asked: list[tuple[str, tuple[int, ...]]] | None = None
        # what was compiled is kept with the code, and nothing is checked before it is used again:
        # each object needs code of its own
        own = FunctionType(type(self)._update.__code__.replace(), globals())
        with _quiet():
            self._compiled: Callable[..., Tensor] = torch.compile(
                MethodType(own, self),
                dynamic=False,
                # hundreds of calls of loops and products from C++ take a quarter less time than
                # from Python
                options={"guard_filter_fn": _no_guards, "cpp_wrapper": True},
            )

    @staticmethod
    def suits(objective: Objective, workers: Workers) -> bool:
        """Whether a step of ``objective`` can be compiled: one process, and critics alone measure
        stationarity, with one share from the first rank to the last.
        """
        first, last = objective.shares.get("critics", (1.0, 1.0))
        return workers.size == 1 and not objective.closed and first == last

    def __call__(self, x: Tensor, noise: Tensor | None, rank: Tensor, workers: Workers) -> Tensor:
        """One step on rows ``x``; the values of the terms, as `Objective` gives them.

        Raises `CompileError` where the first step cannot be compiled: only random numbers have been
        used up then.
        """
        with torch.no_grad():
            first = self.asked is None
            if self.asked is None:
                self.asked = self._numbers_asked(x, noise, rank, workers)
            draws = [self._draw(*asked, workers, x) for asked in self.asked]
            averages = [[state[key] for state, _ in self.slots] for key in _AVERAGES]
            rates = torch.tensor([group["lr"] for _, group in self.slots], dtype=torch.float64)
            steps = [state["step"] for state, _ in self.slots]
            try:
                with _quiet() if first else nullcontext():
                    values = self._compiled(
                        x,
                        torch.zeros_like(self.network.filter) if noise is None else noise,
                        rank,
                        draws,
                        (self.net, self.est, [layer.singular for layer in self.layers]),
                        (*averages, _sizes(rates, steps[0] + 1)),
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
            torch._foreach_add_(steps, 1)
        return values

    def _numbers_asked(
        self, x: Tensor, noise: Tensor | None, rank: Tensor, workers: Workers
    ) -> list[tuple[str, tuple[int, ...]]]:
        """Which random numbers a step asks for, in order; the generator stays where it was."""
        noted = _Noted(workers.generator)
        state = workers.generator.get_state()
        self.objective(Lifted.of(x @ self.network(noise).T, noted, rank))
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

    def _update(
        self,
        x: Tensor,
        noise: Tensor,
        rank: Tensor,
        draws: list[Tensor],
        state: tuple[dict[str, Tensor], dict[str, Tensor], list[Tensor]],
        adam: tuple[list[Tensor], list[Tensor], Tensor],
    ) -> Tensor:
        net, est, singular = state
        of_net, of_est, values = self._gradients(x, noise, rank, _Given(draws), net, est)
        if self.clip is not None:
            norm = torch.stack([g.square().sum() for g in of_net.values()]).sum().sqrt()
            factor = (self.clip / (norm + 1e-6)).clamp_max(1.0)
            of_net = {name: factor * g for name, g in of_net.items()}
        parameters = [*net.values(), *est.values()]
        gradients = [of_net[name] for name in net] + [of_est[name] for name in est]
        for place, (p, g) in enumerate(zip(parameters, gradients, strict=True)):
            first, second, (size, scale) = adam[0][place], adam[1][place], adam[2][place]
            first.lerp_(g, 1 - _FIRST)
            second.mul_(_SECOND).addcmul_(g, g, value=1 - _SECOND)
            p.sub_(size.to(p.dtype) * first / (second.sqrt() * scale.to(p.dtype) + _EPSILON))
        weights = [est[name] for name in est if name.endswith(".weight")]
        for layer, weight, vector in zip(self.layers, weights, singular, strict=True):
            bounded, turned = layer.bounded(weight, vector)
            weight.copy_(bounded)
            vector.copy_(turned)
        return values

    def _gradients(
        self,
        x: Tensor,
        noise: Tensor,
        rank: Tensor,
        workers: _Given,
        net: dict[str, Tensor],
        est: dict[str, Tensor],
    ) -> tuple[dict[str, Tensor], dict[str, Tensor], Tensor]:
        """Gradients that lower the model's loss and, for critics, raise their own estimates; and
        the values of the terms.
        """

        def lift(W: Tensor) -> tuple[Tensor, Tensor]:
            batch = Lifted.of(x @ W.T, workers, rank)  # type: ignore[arg-type]
            return batch.z, batch.log_scale

        def part(which: tuple[int, int] | None) -> Callable[..., Any]:
            def values(est: dict[str, Tensor], z: Tensor, log_scale: Tensor) -> tuple[Tensor, ...]:
                batch = Lifted(z, log_scale, rank, workers)  # type: ignore[arg-type]
                return functional_call(self.terms, est, (which, batch))

            return values

        stationarity, resolution, infomax = self.objective.weights
        W, to_net = vjp(lambda net: functional_call(self.network, net, (noise,)), net)
        (z, log_scale), to_map = vjp(lift, W)
        (R, I), back = vjp(part(None), est, z, log_scale)  # noqa: E741 - as in the paper
        of_est, of_z, of_scale = back((torch.full_like(R, resolution), torch.full_like(I, infomax)))
        S = torch.zeros_like(R)
        for which in self.parts:
            (js,), back = vjp(part(which), est, z, log_scale)
            climb, through, _ = back((torch.ones_like(js),))
            # an estimate below 0 gives the lifting map no information; critics climb all the same
            share = self._share(which)
            of_z = of_z + stationarity * share * (js > 0) * through
            of_est = {name: g - climb[name] for name, g in of_est.items()}
            S = S + share * js.clamp_min(0.0)
        (of_map,) = to_map((of_z, of_scale))
        (of_net,) = to_net(of_map)
        total = stationarity * S + resolution * R + infomax * I
        return of_net, of_est, torch.stack([S, R, I, total])

    def _share(self, part: tuple[int, int]) -> float:
        """The weight of one divergence among all."""
        estimator: Any = self.objective.critics[part[0]]
        share: float = estimator.shares[part[1]] * self.objective.share("critics", 1.0)
        return share / len(self.objective.critics)


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
