"""Jensen–Shannon divergence of a lifted field and its one-step shift, by Donsker–Varadhan critics.

    KL(p‖m) = sup_f  E_p[f] - log E_m[exp f],        JS(p, q) = ½ KL(p‖m) + ½ KL(q‖m),   m = (p + q)/2

Each KL has its own convolutional critic with learned position embeddings.  Layers are small and batches large, so a convolution is
one matrix product with the (Toeplitz) matrix of its kernel, built from the kernel in each step: on a CPU this is three to
twenty times as fast as grouped convolutions, and one code serves 1-D, 2-D and 3-D, zero and cyclic padding, and strides.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from symlift.grid import Grid
from symlift.objective.batch import Lifted, Workers

__all__ = [
    "Critics",
    "JensenShannon",
    "Layer",
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


@dataclass(frozen=True)
class Layer:
    """One convolution of a critic: output channels, kernel width, stride, and whether pairs are pooled stochastically after it."""

    filters: int
    kernel: int
    stride: int = 1
    pool: bool = True


@dataclass(frozen=True)
class _Field:
    """A grid that pooling may have shrunk to a single point, which :class:`~symlift.grid.Grid` does not allow."""

    shape: tuple[int, ...]
    axes_periodic: tuple[bool, ...]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)


class _Convolution(nn.Module):
    """Convolutions of ``critics`` independent networks as one batched matrix product with :meth:`matrix`.

    Values are (critics, n, L, channels · R): L points of the leading axis and R of the others (a line is all R).  Where the leading
    axis is long, a window slides along it, from pool to pool, and the matrix is that of one window; along all other axes it is the
    Toeplitz matrix of all points.  Columns come ordered by pools of the leading axis, then by their place within a pool, so
    that the members of all pools are contiguous.
    """

    taps: Tensor
    singular: Tensor

    def __init__(self, critics: int, channels: int, grid: Grid, layer: Layer, last: bool, bound: float) -> None:
        super().__init__()
        self.layer, self.bound, self.last = layer, bound, last
        out_shape = tuple(-(-n // layer.stride) for n in grid.shape)
        #: the field after this layer, and the number of members of each pool
        self.shape = tuple(n // 2 if n > 1 else 1 for n in out_shape) if layer.pool and not last else out_shape
        halves = tuple(2 if p < n else 1 for p, n in zip(self.shape, out_shape, strict=True))
        self.members = math.prod(halves)
        #: points and pools of the leading axis
        self.length, self.pools = (grid.shape[0], self.shape[0]) if grid.ndim > 1 else (1, 1)
        #: rows from one window (all that a pool sees) to the next, rows in a window, and rows before the kernel's centre
        self.step = halves[0] * layer.stride
        self.window = layer.kernel + (halves[0] - 1) * layer.stride
        self.before = layer.kernel // 2
        self.wraps = grid.axes_periodic[0]
        # a window of half the axis would save too little for the copies that it costs
        self.slides = not last and self.length >= 2 * self.window
        if self.slides:
            field = _Field((self.window, *grid.shape[1:]), (False, *grid.axes_periodic[1:]))
            taps = _taps(field, layer, (1, *self.shape[1:]), halves, self.before)
        else:
            taps = _taps(grid, layer, self.shape, halves)
        if (
            last
        ):  # a linear layer under a global average is a mean of its columns, here their sum (exact in any precision)
            taps = taps.sum(dim=(2, 3), keepdim=True)
        self.register_buffer("taps", taps, persistent=False)
        fan_in = channels * layer.kernel**grid.ndim
        fan_out = layer.filters * layer.kernel**grid.ndim
        limit = math.sqrt(6 / (fan_in + fan_out))  # Glorot
        self.weight = nn.Parameter(torch.empty(critics, channels, layer.filters, len(taps)).uniform_(-limit, limit))
        self.bias = nn.Parameter(torch.zeros(critics, layer.filters))
        self.register_buffer("singular", functional.normalize(torch.ones(critics, layer.filters, 1), dim=1))

    @property
    def _blocks(self) -> int:
        """Pools of the leading axis within one matrix."""
        return 1 if self.slides or self.last else self.pools

    def matrix(self) -> Tensor:
        """(critics, L or window, channels, R, columns): columns are leading pools · members · filters · other pools."""
        critics, channels, filters, K = self.weight.shape
        _, _, members, pools = self.taps.shape
        flat = self.weight.reshape(-1, K) @ self.taps.reshape(K, -1)
        if self.last:
            flat = flat / math.prod(self.shape)
        rows = self.window if self.slides else self.length
        full = flat.view(critics, channels, filters, rows, -1, members, self._blocks, pools // self._blocks)
        return full.permute(0, 3, 1, 4, 6, 5, 2, 7).flatten(4)

    def offset(self) -> Tensor:
        """The bias, spread over the columns of :meth:`matrix`: (critics, 1, 1, columns)."""
        _, _, members, pools = self.taps.shape
        spread = self.bias[:, None, :, None].expand(-1, self._blocks * members, -1, pools // self._blocks)
        return spread.reshape(len(self.bias), 1, 1, -1)

    def slide(self, values: Tensor) -> Tensor:
        """What the matrix is applied to: (critics, n, windows, L or window · channels · R)."""
        if not self.slides:
            return values.flatten(2)[:, :, None]
        reach = (self.pools - 1) * self.step + self.window
        if self.wraps:
            index = torch.arange(-self.before, reach - self.before, device=values.device) % self.length
            padded = values.index_select(2, index)
        else:
            padded = functional.pad(values, (0, 0, self.before, reach - self.before - self.length))
        seen: Tensor = _Windows.apply(padded, self.window, self.step)  # type: ignore[no-untyped-call]
        return seen

    def convolve(self, values: Tensor, matrix: Tensor, offset: Tensor) -> Tensor:
        """Convolution, and in the last layer the global average: (critics, n, windows, columns)."""
        seen = self.slide(values)
        critics, n, windows, width = seen.shape
        flat = matrix.reshape(critics, width, -1)
        if windows == 1:
            return torch.baddbmm(offset[:, 0], seen[:, :, 0], flat)[:, :, None]
        out = torch.bmm(seen.view(critics, n * windows, width), flat)
        return out.view(critics, n, windows, -1).add_(offset)

    def activate(self, values: Tensor, workers: Workers | None, blocks: int = 1) -> Tensor:
        """Pool and ELU.  ELU keeps the positive part that pools choose by, so a member can be drawn first, at half of the work."""
        if self.last:
            return values
        critics, n = values.shape[:2]
        flat = values.reshape(critics, n * self.pools, -1)
        if self.members == 1:
            flat = functional.elu(flat)
        elif workers is None:  # an expectation has to be taken of what is passed on
            flat = _stochastic_pool(functional.elu(flat), self.members, None)
        else:
            flat = functional.elu(_stochastic_pool(flat, self.members, workers, blocks))
        return flat.view(critics, n, self.pools, -1)

    @torch.no_grad()
    def constrain(self) -> None:
        """Scale each kernel down to the spectral norm bound, estimated by one power iteration a step."""
        critics, channels, filters, K = self.weight.shape
        M = self.weight.permute(0, 1, 3, 2).reshape(critics, channels * K, filters)
        left = functional.normalize(M @ self.singular, dim=1)
        right = M.transpose(1, 2) @ left
        norm = right.norm(dim=1, keepdim=True)
        self.singular.copy_(right / norm.clamp_min(1e-12))
        self.weight.mul_((self.bound / norm.clamp_min(1e-12)).clamp_max(1.0)[..., None])


class _Windows(torch.autograd.Function):
    """Windows of rows, ``step`` apart, up to the last row: (critics, n, rows, width) → (critics, n, windows, window · width).

    Consecutive rows are contiguous in memory, so this is one copy, and its gradient a few sums of long stretches.
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
    field: _Field | Grid, layer: Layer, pools: tuple[int, ...], halves: tuple[int, ...], first: int = 0
) -> Tensor:
    """taps[k, i, m, o] = 1 where tap k of the kernel at output point (pool o, member m) reads input point i.

    ``first`` is the row of the leading axis that the first output point lies on.
    """
    half = layer.kernel // 2
    offsets = list(itertools.product(range(-half, layer.kernel - half), repeat=field.ndim))
    result = torch.zeros(len(offsets), field.size, math.prod(halves), math.prod(pools))
    strides = [math.prod(field.shape[a + 1 :]) for a in range(field.ndim)]
    for o, pool in enumerate(itertools.product(*(range(p) for p in pools))):
        for m, member in enumerate(itertools.product(*(range(h) for h in halves))):
            centre = [(p * h + j) * layer.stride for p, h, j in zip(pool, halves, member, strict=True)]
            centre[0] += first
            for k, offset in enumerate(offsets):
                point = [c + s for c, s in zip(centre, offset, strict=True)]
                wrapped = [
                    x % n if wraps else x for x, n, wraps in zip(point, field.shape, field.axes_periodic, strict=True)
                ]
                if all(0 <= x < n for x, n in zip(wrapped, field.shape, strict=True)):
                    result[k, sum(x * s for x, s in zip(wrapped, strides, strict=True)), m, o] += 1
    return result


def _stochastic_pool(values: Tensor, members: int, workers: Workers | None, blocks: int = 1) -> Tensor:
    """One member of each pool with probability proportional to its positive part; the expectation where ``workers`` is None."""
    critics, n, width = values.shape
    parts = values.view(critics, n, members, width // members)
    with torch.no_grad():
        edges = parts.clamp_min(1e-8)
        if workers is None:
            share = edges.div_(edges.sum(dim=2, keepdim=True))
    if workers is None:
        return (share * parts).sum(dim=2)
    with torch.no_grad():
        # each member has a stretch of a line, and a level on it chooses; each block of rows is a batch of its own
        *inner, end = edges.unbind(dim=2)
        for left, right in itertools.pairwise([*inner, end]):
            right.add_(left)
        draw = workers.uniform(critics * blocks, n // blocks, width // members, values).reshape(critics, n, -1)
        level = draw.mul_(end)
        for edge in inner:
            edge.gt_(level)
    chosen: Tensor = _Chosen.apply(parts, edges)  # type: ignore[no-untyped-call]
    return chosen


class _Chosen(torch.autograd.Function):
    """One of each pool's members (critics, n, members, width); before[:, :, i] is 1 where it is one of the first i + 1."""

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
    """The gradient of :func:`_choose`: all of it to the chosen member, 0 to the others."""
    half = len(members) // 2
    if half == 1:
        torch.mul(gradient, before[0], out=members[0])
        torch.sub(gradient, members[0], out=members[1])
        return
    left = gradient * before[half - 1]
    _give(left, before[:half], members[:half])
    _give(gradient - left, before[half:], members[half:])


class Critics(nn.Module):
    """Independent critics (``critics`` of them, each with several output channels) of a field on ``grid``: (critics, n, channels).

    The field is repeated on four channels and a learned embedding of position is added, so that a convolutional network can tell
    places apart.
    """

    def __init__(self, grid: Grid, layers: Sequence[Layer], critics: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.zeros(critics, 1, EMBEDDING * grid.size))
        self.length = grid.shape[0] if grid.ndim > 1 else 1
        bound = NORM ** (1 / len(layers))
        stack: list[_Convolution] = []
        channels, field = EMBEDDING, grid
        for index, layer in enumerate(layers):
            stack.append(_Convolution(critics, channels, field, layer, index == len(layers) - 1, bound))
            channels = layer.filters
            # a field of one point, or one that no longer closes, cannot be periodic
            shape = stack[-1].shape
            kept = tuple(
                wraps and n * layer.stride * (2 if stack[-1].members > 1 else 1) == before and n > 1
                for wraps, n, before in zip(field.axes_periodic, shape, field.shape, strict=True)
            )
            field = _Field(shape, kept)  # type: ignore[assignment]
        self.convolutions = nn.ModuleList(stack)

    def forward(self, fields: Tensor, workers: Workers | None = None, blocks: int = 1) -> Tensor:
        """f of each row of ``fields`` (critics, n, points), in ±25: ``blocks`` batches one after the other.

        ``workers`` draw the pools; without them their expectation is taken.
        """
        first, *others = self._stack
        critics, n, _ = fields.shape
        length = self.length
        matrix = first.matrix()
        embedding = EMBEDDING_LIMIT * torch.tanh(self.embedding / EMBEDDING_LIMIT)
        places = embedding.view(critics, EMBEDDING, length, -1).transpose(1, 2).reshape(critics, 1, length, -1)
        offset = first.convolve(places, matrix, first.offset())
        # the same field on all embedding channels: their kernels add up
        values = fields.reshape(critics, n, length, -1)
        values = first.activate(first.convolve(values, matrix.sum(dim=2), offset), workers, blocks)
        for layer in others:
            values = layer.activate(layer.convolve(values, layer.matrix(), layer.offset()), workers, blocks)
        values = values[:, :, 0]
        return OUTPUT_LIMIT * torch.tanh(values / OUTPUT_LIMIT)

    @property
    def _stack(self) -> list[_Convolution]:
        return list(self.convolutions)  # type: ignore[arg-type]

    def constrain(self) -> None:
        """Hold every layer to its spectral norm bound; call it after an optimiser step."""
        for layer in self._stack:
            layer.constrain()


def donsker_varadhan(f_left: Tensor, f_right: Tensor, workers: Workers) -> Tensor:
    """E_left[f] - log E_right[exp f] for each channel: a lower bound of KL(left‖right).  Rows are dimension 0."""
    return workers.mean(f_left) - torch.log(workers.mean(torch.exp(f_right)))


def critics_rows(even: tuple[Tensor, Tensor], odd: tuple[Tensor, Tensor], whole: bool) -> Tensor:
    """What each critic looks at, (2, blocks, n, …): samples (p, q) of two halves of a batch, n rows each.

    The first two blocks of a critic are its own samples.  The mixture is the ``whole`` of p and q, four blocks, or p of the even
    and q of the odd half, of which a critic has one already: three blocks, and the mixture is the first and the last.
    """
    (p_even, q_even), (p_odd, q_odd) = even, odd
    if whole:
        return torch.unflatten(torch.stack([p_even, p_odd, q_even, q_odd, q_even, q_odd, p_even, p_odd]), 0, (2, 4))
    return torch.unflatten(torch.stack([p_even, p_odd, q_odd, q_odd, q_even, p_even]), 0, (2, 3))


def jensen_shannon(f: Tensor, workers: Workers) -> Tensor:
    """½ KL(p‖m) + ½ KL(q‖m) from critics' values ``f`` (2, blocks, n, channels) of :func:`critics_rows`, the mean over channels."""
    rows = f.movedim(2, 0)
    own = workers.mean(rows[:, :, :2]).mean(dim=1)
    mixture = rows if rows.shape[2] == 4 else rows[:, :, ::2]
    mixed = workers.mean(torch.exp(mixture)).mean(dim=1)
    return (own - torch.log(mixed)).mean()


def shifted_pair(fields: Tensor, axis: int, periodic: bool) -> tuple[Tensor, Tensor]:
    """(p, q): the fields (n, *shape) and the same one step on; an open axis loses its last and its first slice."""
    if periodic:
        return fields, torch.roll(fields, -1, dims=axis + 1)
    length = fields.shape[axis + 1]
    return fields.narrow(axis + 1, 0, length - 1), fields.narrow(axis + 1, 1, length - 1)


def coarse_grain(fields: Tensor, factors: Sequence[int], workers: Workers) -> Tensor:
    """One random member of each block: y[n·q + r] with one offset r for each sample and axis, (n, *shape // factors)."""
    for axis, q in enumerate(factors):
        if q == 1:
            continue
        dim = axis + 1
        blocks = fields.shape[dim] // q
        split = torch.unflatten(fields.narrow(dim, 0, blocks * q), dim, (blocks, q))
        offset = workers.integers(q, len(fields), fields.device).view(-1, *[1] * (split.ndim - 1))
        fields = split.gather(dim + 1, offset.expand(*split.shape[: dim + 1], 1, *split.shape[dim + 2 :])).squeeze(
            dim + 1
        )
    return fields


class JensenShannon(nn.Module):
    """Stationarity: JS of the lifted field and its one-step shift along each axis, weighted by N_l²/N, the mean over axes.

    ``factors`` coarse-grain the field first (one random member of each block).  On lines and rings the mixture of p and q is
    the whole of both; on images and volumes, where critics are most of the work, it is half of each, at a quarter less of it.
    """

    def __init__(self, grid: Grid, layers: Sequence[Layer], factors: Sequence[int] = ()) -> None:
        super().__init__()
        self.grid = grid
        self.factors = tuple(factors) or (1,) * grid.ndim
        shape = tuple(n // q for n, q in zip(grid.shape, self.factors, strict=True))
        # blocks that do not fill a ring leave a gap where it closed
        periodic = tuple(
            wraps and n % q == 0 for wraps, n, q in zip(grid.axes_periodic, grid.shape, self.factors, strict=True)
        )
        self.coarse = Grid(shape, periodic)
        #: weight of each axis, N_l²/N, in a mean over axes
        self.shares = [n * n / self.coarse.size / grid.ndim for n in shape]
        self.critics = nn.ModuleList()
        for axis, wraps in enumerate(periodic):
            smaller = tuple(n - (a == axis and not wraps) for a, n in enumerate(shape))
            self.critics.append(Critics(_Field(smaller, periodic), layers))  # type: ignore[arg-type]

    def along(self, z: Tensor, axis: int, workers: Workers, expected: bool = False) -> Tensor:
        """JS along one axis, neither weighted nor clipped; ``expected`` takes the expectation over pools."""
        fields = z.view(-1, *self.grid.shape)
        if any(q > 1 for q in self.factors):
            fields = coarse_grain(fields, self.factors, workers)
        # pairs of neighbouring rows, so that it does not matter how many processes share a batch; an odd row is left out
        halves = torch.unflatten(fields[: len(fields) // 2 * 2], 0, (-1, 2)).unbind(dim=1)
        even, odd = (shifted_pair(half, axis, self.coarse.axes_periodic[axis]) for half in halves)
        rows = critics_rows(even, odd, whole=self.grid.ndim == 1)
        blocks = rows.shape[1]
        f = self.critics[axis](rows.flatten(3).flatten(1, 2), None if expected else workers, blocks=blocks)
        return jensen_shannon(torch.unflatten(f, 1, (blocks, -1)), workers)

    def adversarial(self, batch: Lifted, weight: float) -> tuple[Tensor, Tensor]:
        """(loss, value): descending the loss makes critics climb and the lifting map descend ``weight`` · value.

        An estimate below 0 tells the lifting map nothing, so the gate closes there; critics go on.
        """
        losses, values = [], []
        for axis, share in enumerate(self.shares):
            # critics climb the estimate and the lifting map descends it: with a gate on the gradient of the critics' input, set
            # between forward and backward, one backward pass of -JS serves both
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
        found = [self.along(batch.z, axis, batch.workers, expected=True) for axis in range(len(self.shares))]
        return torch.stack([s * js.clamp_min(0.0) for s, js in zip(self.shares, found, strict=True)]).sum()

    def constrain(self) -> None:
        """Hold the critics to their spectral norm bound."""
        for critics in self.critics:
            critics.constrain()  # type: ignore[operator]
