"""Jensen–Shannon divergence of a lifted field and its one-step shift, by Donsker–Varadhan critics.

    KL(p‖m) = sup_f E_p[f] - log E_m[exp f], JS(p, q) = ½ KL(p‖m) + ½ KL(q‖m), m = (p + q)/2

Each KL has its own convolutional critic with learned position embeddings.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from symlift.core.grid import Grid
from symlift.solvers.neural.objective.batch import Lifted, Workers
from symlift.solvers.neural.objective.convolution import (
    Convolution,
    Field,
    Layer,
)

__all__ = [
    "Critics",
    "Head",
    "JensenShannon",
    "Layer",
    "Norm",
    "Padding",
    "coarse_grain",
    "critics_rows",
    "donsker_varadhan",
    "jensen_shannon",
    "shifted_pair",
]

EMBEDDING = 4  # channels of the position embedding
EMBEDDING_LIMIT = 5.0
OUTPUT_LIMIT = 25.0
NORM = 10.0  # bound on the product of the layers' spectral norms
#: the bound of one layer: a root of the network's, as printed, or an equal share of it, as in the
#: released code (of three layers 2.2, or 3.3)
Norm = Literal["root", "share"]
#: how convolutions go on beyond the ends: as the field does (cyclically as long as it closes), with
#: zeros, or cyclically throughout
Padding = Literal["field", "zero", "cyclic"]
#: what ends a critic: the average of a linear layer, or the average after ELU and a pool, as in
#: every other layer
Head = Literal["linear", "pooled"]


class Critics(nn.Module):
    """Independent critics (``critics`` of them, each with several output channels) of a field on
    ``grid``: (critics, n, channels).

    The field is repeated on four channels and a learned embedding of position is added, so that a
    convolutional network can distinguish places.
    """

    def __init__(
        self,
        grid: Grid,
        layers: Sequence[Layer],
        critics: int = 2,
        padding: Padding = "field",
        head: Head = "linear",
        norm: Norm = "root",
    ) -> None:
        super().__init__()
        self.pooled = head == "pooled"
        self.embedding = nn.Parameter(torch.zeros(critics, 1, EMBEDDING * grid.size))
        self.length = grid.shape[0] if grid.ndim > 1 else 1
        bound = NORM ** (1 / len(layers)) if norm == "root" else NORM / len(layers)
        stack: list[Convolution] = []
        channels, field = EMBEDDING, grid
        if padding != "field":
            field = Field(grid.shape, tuple(padding == "cyclic" and n > 1 for n in grid.shape))  # type: ignore[assignment]
        for index, layer in enumerate(layers):
            last = index == len(layers) - 1 and not self.pooled
            stack.append(Convolution(critics, channels, field, layer, last, bound))
            channels = layer.filters
            # a field of one point, or one that no longer closes, cannot be periodic
            shape = stack[-1].shape
            closes = [
                n * layer.stride * (2 if stack[-1].members > 1 else 1) == b
                for n, b in zip(shape, field.shape, strict=True)
            ]
            wraps_on = tuple(
                wraps and n > 1 and (padding == "cyclic" or closed)
                for wraps, n, closed in zip(field.periodic, shape, closes, strict=True)
            )
            field = Field(shape, wraps_on)  # type: ignore[assignment]
        self.convolutions = nn.ModuleList(stack)

    def forward(self, fields: Tensor, workers: Workers | None = None, blocks: int = 1) -> Tensor:
        """f of each row of ``fields`` (critics, n, points), in ±25: ``blocks`` batches one after
        the other.

        ``workers`` draw the pools; without them their expectation is taken.
        """
        first, *others = self._stack
        critics, n, _ = fields.shape
        length = self.length
        matrix = first.matrix()
        embedding = EMBEDDING_LIMIT * torch.tanh(self.embedding / EMBEDDING_LIMIT)
        places = (
            embedding.view(critics, EMBEDDING, length, -1)
            .transpose(1, 2)
            .reshape(critics, 1, length, -1)
        )
        offset = first.convolve(places, matrix, first.offset())
        # the same field on all embedding channels: their kernels add up
        values = fields.reshape(critics, n, length, -1)
        values = first.activate(first.convolve(values, matrix.sum(dim=2), offset), workers, blocks)
        for layer in others:
            values = layer.activate(
                layer.convolve(values, layer.matrix(), layer.offset()), workers, blocks
            )
        if self.pooled:
            filters = self._stack[-1].layer.filters
            values = torch.unflatten(values, 3, (filters, -1)).mean(dim=(2, 4))
        else:
            values = values[:, :, 0]
        return OUTPUT_LIMIT * torch.tanh(values / OUTPUT_LIMIT)

    @property
    def _stack(self) -> list[Convolution]:
        return list(self.convolutions)  # type: ignore[arg-type]

    def constrain(self) -> None:
        """Hold every layer to its spectral norm bound; call it after an optimiser step."""
        for layer in self._stack:
            layer.constrain()


def donsker_varadhan(f_left: Tensor, f_right: Tensor, workers: Workers) -> Tensor:
    """E_left[f] - log E_right[exp f] for each channel: a lower bound of KL(left‖right). Rows are
    dimension 0.
    """
    return workers.mean(f_left) - torch.log(workers.mean(torch.exp(f_right)))


def critics_rows(even: tuple[Tensor, Tensor], odd: tuple[Tensor, Tensor], whole: bool) -> Tensor:
    """Inputs of each critic, (2, blocks, n, …): samples (p, q) of two halves of a batch, n rows
    each.

    The first two blocks of a critic are its own samples. The mixture is the ``whole`` of p and q,
    four blocks, or p of the even and q of the odd half, of which a critic has one already: three
    blocks, and the mixture is the first and the last.
    """
    (p_even, q_even), (p_odd, q_odd) = even, odd
    if whole:
        return torch.unflatten(
            torch.stack([p_even, p_odd, q_even, q_odd, q_even, q_odd, p_even, p_odd]), 0, (2, 4)
        )
    return torch.unflatten(torch.stack([p_even, p_odd, q_odd, q_odd, q_even, p_even]), 0, (2, 3))


def jensen_shannon(f: Tensor, workers: Workers, either: bool = False) -> Tensor:
    """½ KL(p‖m) + ½ KL(q‖m) from critics' values ``f`` (2, blocks, n, channels) of `critics_rows`,
    the mean over channels; for ``either``, the larger of KL(p‖m) and KL(m‖p) in each place.
    """
    rows = f.movedim(2, 0)
    mixture = rows if rows.shape[2] == 4 else rows[:, :, ::2]

    def bound(left: Tensor, right: Tensor) -> Tensor:
        """Donsker–Varadhan over rows and blocks."""
        mixed = workers.mean(torch.exp(right)).mean(dim=1)
        return workers.mean(left).mean(dim=1) - torch.log(mixed)

    forward = bound(rows[:, :, :2], mixture)
    if either:
        forward = torch.maximum(forward, bound(mixture, rows[:, :, :2]))
    return forward.mean()


def shifted_pair(fields: Tensor, axis: int, periodic: bool) -> tuple[Tensor, Tensor]:
    """(p, q): the fields (n, *shape) and the same one step on; an open axis loses its last and its
    first slice.
    """
    if periodic:
        return fields, torch.roll(fields, -1, dims=axis + 1)
    length = fields.shape[axis + 1]
    return fields.narrow(axis + 1, 0, length - 1), fields.narrow(axis + 1, 1, length - 1)


def coarse_grain(fields: Tensor, factors: Sequence[int], workers: Workers) -> Tensor:
    """One random member of each block: y[n·q + r] with one offset r for each sample and axis, (n,
    *shape // factors).
    """
    for axis, q in enumerate(factors):
        if q == 1:
            continue
        dim = axis + 1
        blocks = fields.shape[dim] // q
        split = torch.unflatten(fields.narrow(dim, 0, blocks * q), dim, (blocks, q))
        offset = workers.integers(q, len(fields), fields.device).view(-1, *[1] * (split.ndim - 1))
        fields = split.gather(
            dim + 1, offset.expand(*split.shape[: dim + 1], 1, *split.shape[dim + 2 :])
        ).squeeze(dim + 1)
    return fields


class JensenShannon(nn.Module):
    """Stationarity: JS of the lifted field and its one-step shift along each axis, weighted by
    N_l²/N, the mean over axes.

    ``factors`` coarse-grain the field first (one random member of each block). On lines and rings
    the mixture of p and q is the whole of both; on images and volumes, where critics are most of
    the work, it is half of each, at a quarter less of it (``whole`` says otherwise). ``either``
    takes the larger of a divergence's two directions.
    """

    def __init__(
        self,
        grid: Grid,
        layers: Sequence[Layer],
        factors: Sequence[int] = (),
        padding: Padding = "field",
        head: Head = "linear",
        whole: bool | None = None,
        norm: Norm = "root",
        either: bool = False,
    ) -> None:
        super().__init__()
        self.grid, self.either = grid, either
        self.whole = grid.ndim == 1 if whole is None else whole
        self.factors = tuple(factors) or (1,) * grid.ndim
        shape = tuple(n // q for n, q in zip(grid.shape, self.factors, strict=True))
        # blocks that do not fill a ring leave a gap where it closed
        periodic = tuple(
            wraps and n % q == 0
            for wraps, n, q in zip(grid.periodic, grid.shape, self.factors, strict=True)
        )
        self.coarse = Grid(shape, periodic)
        #: weight of each axis, N_l²/N, in a mean over axes
        self.shares = [n * n / self.coarse.size / grid.ndim for n in shape]
        self.critics = nn.ModuleList()
        for axis, wraps in enumerate(periodic):
            smaller = tuple(n - (a == axis and not wraps) for a, n in enumerate(shape))
            field = Field(smaller, periodic)
            critics = Critics(field, layers, padding=padding, head=head, norm=norm)  # type: ignore[arg-type]
            self.critics.append(critics)

    def along(self, z: Tensor, axis: int, workers: Workers, expected: bool = False) -> Tensor:
        """JS along one axis, neither weighted nor clipped; ``expected`` takes the expectation over
        pools.
        """
        fields = z.view(-1, *self.grid.shape)
        if any(q > 1 for q in self.factors):
            fields = coarse_grain(fields, self.factors, workers)
        # pairs of neighbouring rows, so that it does not matter how many processes share a batch;
        # an odd row is left out
        halves = torch.unflatten(fields[: len(fields) // 2 * 2], 0, (-1, 2)).unbind(dim=1)
        even, odd = (shifted_pair(half, axis, self.coarse.periodic[axis]) for half in halves)
        rows = critics_rows(even, odd, whole=self.whole)
        blocks = rows.shape[1]
        f = self.critics[axis](
            rows.flatten(3).flatten(1, 2), None if expected else workers, blocks=blocks
        )
        return jensen_shannon(torch.unflatten(f, 1, (blocks, -1)), workers, self.either)

    def adversarial(self, batch: Lifted, weight: float) -> tuple[Tensor, Tensor]:
        """(loss, value): descending the loss makes critics climb and the lifting map descend
        ``weight`` · value.

        An estimate below 0 gives the lifting map no information, so the gate closes there; critics
        go on.
        """
        losses, values = [], []
        for axis, share in enumerate(self.shares):
            # critics climb the estimate and the lifting map descends it: with a gate on the
            # gradient of the critics' input, set between forward and backward, one backward pass of
            # -JS serves both
            gate, z = batch.z.new_zeros(()), batch.z.view_as(batch.z)
            if z.requires_grad:
                z.register_hook(partial(torch.mul, gate))  # type: ignore[no-untyped-call]
            js = self.along(z, axis, batch.workers)
            value = js.detach()
            gate.fill_(-weight * share).mul_(value > 0)
            losses.append(-js)
            values.append(share * value.clamp_min(0.0))
        return torch.stack(losses).sum(), torch.stack(values).sum()

    def forward(self, batch: Lifted) -> Tensor:
        """The weighted estimate, clipped at 0, without noise in the pools."""
        divergences = [
            self.along(batch.z, axis, batch.workers, expected=True)
            for axis in range(len(self.shares))
        ]
        return torch.stack(
            [s * js.clamp_min(0.0) for s, js in zip(self.shares, divergences, strict=True)]
        ).sum()

    def constrain(self) -> None:
        """Hold the critics to their spectral norm bound."""
        for critics in self.critics:
            critics.constrain()  # type: ignore[operator]
