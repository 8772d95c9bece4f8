"""The lifted batch that the terms of the objective use, and means over it, in one process or over
several.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, distributed

from symlift.solvers.neural.objective.rank import JointEntropy

__all__ = ["Lifted", "Workers"]


class _Total(torch.autograd.Function):
    """The sum of a tensor over all processes; so is the gradient."""

    @staticmethod
    def forward(ctx: object, value: Tensor) -> Tensor:  # noqa: ARG004
        total = value.detach().clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:  # noqa: ARG004
        total = gradient.clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(total)
        return total


@dataclass(frozen=True)
class Workers:
    """The processes that share one batch: equal numbers of rows each, so that a mean of means is
    the global mean.

    All processes hold the same ``generator``: random numbers are drawn for the whole batch and each
    takes its own rows, so the loss does not depend on how many processes there are.
    """

    generator: torch.Generator
    rank: int = 0
    size: int = 1

    def mean(self, values: Tensor) -> Tensor:
        """Mean over the rows (dimension 0) of all processes.  Differentiable."""
        return self.average(values.mean(dim=0))

    def average(self, value: Tensor) -> Tensor:
        """Mean of one value over processes. Differentiable; average parameters' gradients
        afterwards.
        """
        if self.size == 1:
            return value
        total: Tensor = _Total.apply(value)  # type: ignore[no-untyped-call]
        return total / self.size

    def uniform(self, groups: int, rows: int, width: int, like: Tensor, blocks: int = 1) -> Tensor:
        """Uniform numbers (groups, blocks · rows, width) for this process' own ``rows`` of each of
        ``blocks`` batches.
        """
        draw = torch.rand(
            groups,
            blocks,
            self.size,
            rows,
            width,
            generator=self.generator,
            dtype=like.dtype,
            device=like.device,
        )
        return draw[:, :, self.rank].flatten(1, 2)

    def normal(self, rows: int, width: int, like: Tensor) -> Tensor:
        """Standard normal numbers (rows, width) for this process' own ``rows`` of the batch."""
        draw = torch.randn(
            self.size, rows, width, generator=self.generator, dtype=like.dtype, device=like.device
        )
        return draw[self.rank]

    def integers(self, high: int, rows: int, device: torch.device) -> Tensor:
        """Whole numbers in [0, high), one for each of this process' own ``rows``."""
        return torch.randint(high, (self.size, rows), generator=self.generator, device=device)[
            self.rank
        ]


_GAUSSIAN = JointEntropy()


@dataclass(frozen=True)
class Lifted:
    """A lifted batch: ``z`` (n, N) with global mean 0 and rms deviation 1, and the logarithm of
    that deviation; or the field as it is, and 0.

    ``rank`` is the rank that the joint ``entropy`` is taken to; its window is soft, so that at N
    the last eigenvalue counts half.
    """

    z: Tensor
    log_scale: Tensor
    rank: Tensor
    workers: Workers
    entropy: JointEntropy = _GAUSSIAN
    _cache: dict[str, Tensor] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        y: Tensor,
        workers: Workers,
        rank: Tensor | None = None,
        entropy: JointEntropy = _GAUSSIAN,
        standardise: bool = True,
    ) -> Lifted:
        """Remove the global mean and divide by the global rms deviation of ``y`` (n, N), or leave
        both where they are not to be removed.
        """
        if rank is None:
            rank = torch.tensor(float(y.shape[1]), dtype=y.dtype, device=y.device)
        if not standardise:
            return cls(y, y.new_zeros(()), rank, workers, entropy)
        centred = y - workers.mean(y).mean()
        power = workers.mean(centred.square()).mean()
        return cls(centred * power.rsqrt(), power.log() / 2, rank, workers, entropy)

    def covariance(self) -> Tensor:
        """Covariance of z over the batch, (N, N): made once for all terms."""
        if "covariance" not in self._cache:
            mean = self.workers.mean(self.z)
            second = self.workers.average(self.z.T @ self.z / len(self.z))
            self._cache["covariance"] = second - torch.outer(mean, mean)
        return self._cache["covariance"]

    def joint_entropy(self) -> Tensor:
        """Joint entropy per dimension of z, to the batch's rank; computed once."""
        if "joint_entropy" not in self._cache:
            self._cache["joint_entropy"] = self.entropy(self.covariance(), self.rank)
        return self._cache["joint_entropy"]
