"""Convolutions of several critics as one batched matrix product, and stochastic pooling after them.

Layers are small and batches large, so a convolution is one product with the (Toeplitz) matrix of
its kernel, built from it in each step: on a CPU this is three to twenty times as fast as grouped
convolutions, and one code serves 1-D, 2-D and 3-D, zero and cyclic padding, and strides.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from symlift.core.grid import Grid
from symlift.solvers.neural.objective.batch import Workers

__all__ = ["Convolution", "Field", "Layer"]


@dataclass(frozen=True)
class Layer:
    """One convolution of a critic: output channels, kernel width, stride; whether pairs are pooled
    stochastically, and ELU acts.
    """

    filters: int
    kernel: int
    stride: int = 1
    pool: bool = True
    elu: bool = True


@dataclass(frozen=True)
class Field:
    """A grid that pooling may have shrunk to a single point, which `Grid` does not allow."""

    shape: tuple[int, ...]
    periodic: tuple[bool, ...]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class Convolution(nn.Module):
    """Convolutions of ``critics`` independent networks as one batched matrix product with `matrix`.

    Values are (critics, n, L, channels · R): L points of the leading axis and R of the others (a
    line is all R). Where the leading axis is long, a window slides along it, from pool to pool, and
    the matrix is that of one window; along all other axes it is the Toeplitz matrix of all points.
    Columns come ordered by pools of the leading axis, then by their place within a pool, so that
    the members of all pools are contiguous.
    """

    taps: Tensor
    singular: Tensor

    def __init__(
        self, critics: int, channels: int, grid: Grid, layer: Layer, last: bool, bound: float
    ) -> None:
        super().__init__()
        self.layer, self.bound, self.last = layer, bound, last
        out_shape = tuple(-(-n // layer.stride) for n in grid.shape)
        #: the field after this layer, and the number of members of each pool
        self.shape = (
            tuple(n // 2 if n > 1 else 1 for n in out_shape)
            if layer.pool and not last
            else out_shape
        )
        halves = tuple(2 if p < n else 1 for p, n in zip(self.shape, out_shape, strict=True))
        self.members = math.prod(halves)
        #: points and pools of the leading axis
        self.length, self.pools = (grid.shape[0], self.shape[0]) if grid.ndim > 1 else (1, 1)
        #: rows from one window (all that a pool sees) to the next, rows in a window, and rows
        #: before the kernel's centre
        self.step = halves[0] * layer.stride
        self.window = layer.kernel + (halves[0] - 1) * layer.stride
        self.before = layer.kernel // 2
        self.wraps = grid.periodic[0]
        # a window of half the axis would save too little for the copies that it costs
        self.slides = not last and self.length >= 2 * self.window
        if self.slides:
            field = Field((self.window, *grid.shape[1:]), (False, *grid.periodic[1:]))
            taps = _taps(field, layer, (1, *self.shape[1:]), halves, self.before)
        else:
            taps = _taps(grid, layer, self.shape, halves)
        # a linear layer under a global average is a mean of its columns, here their sum (exact in
        # any precision)
        if last:
            taps = taps.sum(dim=(2, 3), keepdim=True)
        self.register_buffer("taps", taps, persistent=False)
        fan_in = channels * layer.kernel**grid.ndim
        fan_out = layer.filters * layer.kernel**grid.ndim
        limit = math.sqrt(6 / (fan_in + fan_out))  # Glorot
        self.weight = nn.Parameter(
            torch.empty(critics, channels, layer.filters, len(taps)).uniform_(-limit, limit)
        )
        self.bias = nn.Parameter(torch.zeros(critics, layer.filters))
        self.register_buffer(
            "singular", functional.normalize(torch.ones(critics, layer.filters, 1), dim=1)
        )

    @property
    def _blocks(self) -> int:
        """Pools of the leading axis within one matrix."""
        return 1 if self.slides or self.last else self.pools

    def matrix(self) -> Tensor:
        """(critics, L or window, channels, R, columns): columns are leading pools · members ·
        filters · other pools.
        """
        critics, channels, filters, K = self.weight.shape
        _, _, members, pools = self.taps.shape
        flat = self.weight.reshape(-1, K) @ self.taps.reshape(K, -1)
        if self.last:
            flat = flat / math.prod(self.shape)
        rows = self.window if self.slides else self.length
        full = flat.view(
            critics, channels, filters, rows, -1, members, self._blocks, pools // self._blocks
        )
        return full.permute(0, 3, 1, 4, 6, 5, 2, 7).flatten(4)

    def offset(self) -> Tensor:
        """The bias, spread over the columns of `matrix`: (critics, 1, 1, columns)."""
        _, _, members, pools = self.taps.shape
        spread = self.bias[:, None, :, None].expand(
            -1, self._blocks * members, -1, pools // self._blocks
        )
        return spread.reshape(len(self.bias), 1, 1, -1)

    def slide(self, values: Tensor) -> Tensor:
        """What the matrix is applied to: (critics, n, windows, L or window · channels · R)."""
        if not self.slides:
            return values.flatten(2)[:, :, None]
        reach = (self.pools - 1) * self.step + self.window
        if self.wraps:
            index = (
                torch.arange(-self.before, reach - self.before, device=values.device) % self.length
            )
            padded = values.index_select(2, index)
        else:
            padded = functional.pad(values, (0, 0, self.before, reach - self.before - self.length))
        if torch.compiler.is_compiling():
            return padded.unfold(2, self.window, self.step).transpose(3, 4).flatten(3)
        seen: Tensor = _Windows.apply(padded, self.window, self.step)  # type: ignore[no-untyped-call]
        return seen

    def convolve(self, values: Tensor, matrix: Tensor, offset: Tensor) -> Tensor:
        """Convolution, and in the last layer the global average: (critics, n, windows, columns)."""
        seen = self.slide(values)
        critics, n, windows, width = seen.shape
        flat = matrix.reshape(critics, width, -1)
        if torch.compiler.is_compiling() and self.pools == 1:
            # rows come last in memory: compiled loops run along them, and not along a few columns
            out = torch.bmm(flat.mT, seen[:, :, 0].mT) + offset[:, 0].mT
            return out.mT[:, :, None]
        if windows == 1:
            return torch.baddbmm(offset[:, 0], seen[:, :, 0], flat)[:, :, None]
        out = torch.bmm(seen.reshape(critics, n * windows, width), flat)
        return out.view(critics, n, windows, -1).add_(offset)

    def activate(self, values: Tensor, workers: Workers | None, blocks: int = 1) -> Tensor:
        """Pool and ELU. ELU keeps the positive part that pools choose by, so a member can be drawn
        first, at half of the work.
        """
        if self.last:
            return values
        critics, n = values.shape[:2]
        if torch.compiler.is_compiling() and self.pools == 1 and workers is not None:
            return self._compiled_activation(values[:, :, 0].mT, workers, blocks).mT[:, :, None]
        flat = values.reshape(critics, n * self.pools, -1)
        if self.members == 1:
            flat = functional.elu(flat) if self.layer.elu else flat
        elif workers is None:  # an expectation has to be taken of what is passed on
            flat = _stochastic_pool(functional.elu(flat), self.members, None)
        else:
            flat = functional.elu(_stochastic_pool(flat, self.members, workers, blocks))
        return flat.view(critics, n, self.pools, -1)

    def _compiled_activation(self, values: Tensor, workers: Workers, blocks: int) -> Tensor:
        """The same of a line's columns (critics, columns, n)."""
        if self.members > 1:
            critics, columns, n = values.shape
            width = columns // self.members
            draw = workers.uniform(critics, n // blocks, width, values, blocks)
            parts = torch.unflatten(values, 1, (self.members, width)).unbind(dim=1)
            values = _compiled_choice(parts, draw.mT)
        return functional.elu(values) if self.layer.elu else values

    def bounded(self, weight: Tensor, singular: Tensor) -> tuple[Tensor, Tensor]:
        """``weight`` with each kernel scaled down to the spectral norm bound, and the singular
        vectors by which that norm is estimated, after one more power iteration.
        """
        critics, channels, filters, K = weight.shape
        M = weight.permute(0, 1, 3, 2).reshape(critics, channels * K, filters)
        left = functional.normalize(M @ singular, dim=1)
        right = M.transpose(1, 2) @ left
        norm = right.norm(dim=1, keepdim=True).clamp_min(1e-12)
        return weight * (self.bound / norm).clamp_max(1.0)[..., None], right / norm

    @torch.no_grad()
    def constrain(self) -> None:
        """Hold each kernel to the spectral norm bound, with one power iteration per step."""
        weight, singular = self.bounded(self.weight, self.singular)
        self.weight.copy_(weight)
        self.singular.copy_(singular)


class _Windows(torch.autograd.Function):
    """Windows of rows, ``step`` apart, up to the last row: (critics, n, rows, width) → (critics, n,
    windows, window · width).

    Consecutive rows are contiguous in memory, so this is one copy, and its gradient a few sums of
    long stretches.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor, window: int, step: int) -> Tensor:
        ctx.shape, ctx.step = values.shape, step
        return values.unfold(2, window, step).transpose(3, 4).contiguous().flatten(3)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        critics, n, rows, width = ctx.shape
        windows = gradient.shape[2]
        parts = torch.split(gradient, ctx.step * width, dim=3)
        total = gradient.new_zeros(critics, n, windows + len(parts) - 1, ctx.step * width)
        for first, part in enumerate(parts):
            total[:, :, first : first + windows, : part.shape[3]] += part
        return total.view(critics, n, -1, width)[:, :, :rows], None, None


def _taps(
    field: Field | Grid,
    layer: Layer,
    pools: tuple[int, ...],
    halves: tuple[int, ...],
    first: int = 0,
) -> Tensor:
    """taps[k, i, m, o] = 1 where tap k of the kernel at output point (pool o, member m) reads input
    point i.

    ``first`` is the row of the leading axis that the first output point lies on.
    """
    half = layer.kernel // 2
    offsets = list(itertools.product(range(-half, layer.kernel - half), repeat=field.ndim))
    result = torch.zeros(len(offsets), field.size, math.prod(halves), math.prod(pools))
    strides = [math.prod(field.shape[a + 1 :]) for a in range(field.ndim)]
    for o, pool in enumerate(itertools.product(*(range(p) for p in pools))):
        for m, member in enumerate(itertools.product(*(range(h) for h in halves))):
            centre = [
                (p * h + j) * layer.stride for p, h, j in zip(pool, halves, member, strict=True)
            ]
            centre[0] += first
            for k, offset in enumerate(offsets):
                point = [c + s for c, s in zip(centre, offset, strict=True)]
                wrapped = [
                    x % n if wraps else x
                    for x, n, wraps in zip(point, field.shape, field.periodic, strict=True)
                ]
                if all(0 <= x < n for x, n in zip(wrapped, field.shape, strict=True)):
                    result[k, sum(x * s for x, s in zip(wrapped, strides, strict=True)), m, o] += 1
    return result


def _stochastic_pool(
    values: Tensor, members: int, workers: Workers | None, blocks: int = 1
) -> Tensor:
    """One member of each pool with probability proportional to its positive part; the expectation
    where ``workers`` is None.
    """
    critics, n, width = values.shape
    parts = values.view(critics, n, members, width // members)
    if workers is None:
        positive = parts.detach().clamp_min(1e-8)
        return (positive / positive.sum(dim=2, keepdim=True) * parts).sum(dim=2)
    # each block of rows is a batch of its own
    draw = workers.uniform(critics, n // blocks, width // members, values, blocks)
    if torch.compiler.is_compiling():
        return _compiled_choice(parts.unbind(dim=2), draw)
    with torch.no_grad():
        # each member has a stretch of a line, and a level on it chooses
        edges = parts.clamp_min(1e-8)
        *inner, end = edges.unbind(dim=2)
        for left, right in itertools.pairwise([*inner, end]):
            right.add_(left)
        level = draw * end
        for edge in inner:
            edge.gt_(level)
    chosen: Tensor = _Chosen.apply(parts, edges)  # type: ignore[no-untyped-call]
    return chosen


def _compiled_choice(parts: Sequence[Tensor], draw: Tensor) -> Tensor:
    """The same with nothing changed in place: a compiler finds the shortest form by itself. Masks
    are numbers, since truth values take it ten times as long to write.
    """
    edges = list(itertools.accumulate(part.detach().clamp_min(1e-8) for part in parts))
    level = draw * edges[-1]
    chosen = parts[-1]
    for part, edge in zip(reversed(parts[:-1]), reversed(edges[:-1]), strict=True):
        before = (edge > level).to(part.dtype)
        chosen = before * part + (1 - before) * chosen
    return chosen


class _Chosen(torch.autograd.Function):
    """One of each pool's members (critics, n, members, width); before[:, :, i] is 1 where it is one
    of the first i + 1.
    """

    @staticmethod
    def forward(ctx: Any, parts: Tensor, before: Tensor) -> Tensor:
        ctx.save_for_backward(before)
        return _choose(parts.unbind(dim=2), before.unbind(dim=2))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (before,) = ctx.saved_tensors
        result = torch.empty_like(before)
        _give(gradient, before.unbind(dim=2), result.unbind(dim=2))
        return result, None


def _choose(parts: Sequence[Tensor], before: Sequence[Tensor]) -> Tensor:
    if len(parts) == 1:
        return parts[0]
    half = len(parts) // 2
    left, right = _choose(parts[:half], before[:half]), _choose(parts[half:], before[half:])
    return torch.lerp(right, left, before[half - 1])


def _give(gradient: Tensor, before: Sequence[Tensor], members: Sequence[Tensor]) -> None:
    """The gradient of `_choose`: all of it to the chosen member, 0 to the others."""
    half = len(members) // 2
    if half == 1:
        torch.mul(gradient, before[0], out=members[0])
        torch.sub(gradient, members[0], out=members[1])
        return
    left = gradient * before[half - 1]
    _give(left, before[:half], members[:half])
    _give(gradient - left, before[half:], members[half:])
