"""Slots that columns can take, and the lag model: the mean statistic of pairs at equal
displacement.

A slot is a point of the grid and a channel. A pairwise statistic of two columns depends on the
displacement between their points and, once channels are distinguished, on the two channels:

    s_ij = K_{b_i b_j}(p_i - p_j) + noise.

Slots may stay empty, and a point has as many slots as it can hold columns. One slot per point, all
of them occupied, is a bijection; eight slots per point are the bits of a number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d
from scipy.optimize import linear_sum_assignment

from symlift.core.grid import Grid

__all__ = [
    "DistanceClasses",
    "LagModel",
    "PairClasses",
    "Slots",
    "distance_classes",
    "fit_lags",
    "make_slots",
    "misfit",
    "nearest_slots",
]


class PairClasses(Protocol):
    """Slots whose pairs form classes: by displacement on a grid, by distance for given points."""

    @property
    def index(self) -> NDArray[np.int32]: ...

    @property
    def size(self) -> int: ...

    @property
    def classes(self) -> int: ...

    def smooth(self, values: NDArray, width: float) -> NDArray[np.float64]: ...


@dataclass(frozen=True)
class Slots:
    """Slots of a grid: slot = point · depth + channel.

    Classes of pairs of slots run over ``kinds`` of channel pairs, then lags.
    """

    grid: Grid
    depth: int
    kinds: int
    lag_shape: tuple[int, ...]

    @cached_property
    def index(self) -> NDArray[np.int32]:
        """The class of each pair of slots, (M, M); very many slots never ask for it."""
        lags = self.grid.lags().astype(np.int32)
        if self.depth == 1:
            return lags
        index = np.repeat(np.repeat(lags, self.depth, axis=0), self.depth, axis=1)
        if self.kinds > 1:
            channel = np.tile(np.arange(self.depth, dtype=np.int32), self.grid.size)
            kind = channel[:, None] * self.depth + channel[None]
            index = index + kind * np.int32(np.prod(self.lag_shape))
        return index

    @property
    def size(self) -> int:
        return self.grid.size * self.depth

    @property
    def classes(self) -> int:
        return self.kinds * math.prod(self.lag_shape)

    @property
    def point(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(self.grid.size), self.depth)

    def smooth(self, values: NDArray, width: float) -> NDArray[np.float64]:
        """Functions of displacement (classes,), smoothed by a Gaussian of ``width`` steps."""
        if width <= 0:
            return values
        field = values.reshape(self.kinds, *self.lag_shape)
        for axis, wraps in enumerate(self.grid.periodic):
            field = gaussian_filter1d(
                field, width, axis=axis + 1, mode="wrap" if wraps else "constant"
            )
        return field.ravel()


def make_slots(grid: Grid, depth: int = 1, matched: bool = False) -> Slots:
    """Slots for ``depth`` columns per point; ``matched``: each channel pair has its own lag
    function.
    """
    lag_shape = tuple(
        n if wraps else 2 * n - 1 for n, wraps in zip(grid.shape, grid.periodic, strict=True)
    )
    return Slots(grid, depth, depth * depth if matched else 1, lag_shape)


@dataclass(frozen=True)
class DistanceClasses:
    """Columns at places of their own, one slot each; ``index`` (d, d): the class of each pair's
    distance.
    """

    index: NDArray[np.int32]
    classes: int

    @property
    def size(self) -> int:
        return len(self.index)

    def smooth(self, values: NDArray, width: float) -> NDArray[np.float64]:  # noqa: ARG002
        """The same: classes of distances are wide."""
        return values


# classes of distances: each holds so many times as many pairs as the one before, the first one pair
# for each column, so that they are narrow where statistics fall
_WIDER = 1.25


def distance_classes(y: NDArray) -> DistanceClasses:
    """Classes of the distances between places y (d, P)."""
    d = len(y)
    i, j = np.triu_indices(d, 1)
    order = np.argsort(np.sum((y[i] - y[j]) ** 2, axis=1), kind="stable")
    most = math.ceil(math.log(1 + (_WIDER - 1) * max(len(order) / d, 1)) / math.log(_WIDER))
    ends = np.rint(d * (_WIDER ** np.arange(1, most) - 1) / (_WIDER - 1)).astype(np.int64)
    label = np.empty(len(order), dtype=np.int32)
    label[order] = np.searchsorted(ends, np.arange(len(order)), side="right")
    index = np.zeros((d, d), dtype=np.int32)
    index[i, j] = index[j, i] = label
    return DistanceClasses(index, most)


@dataclass(frozen=True)
class LagModel:
    """Mean K of each statistic in each class, (m, classes), and the mean squared residual v of
    each, (m,).
    """

    K: NDArray[np.float64]
    v: NDArray[np.float64]

    @property
    def misfit(self) -> float:
        """F = mean_m ½ log v_m: one variance per statistic, so that far lags do not dominate."""
        return 0.5 * float(np.mean(np.log(self.v)))


def fit_lags(
    S: NDArray, slot: NDArray, slots: PairClasses, width: float = 0.0, prior: float = 4.0
) -> LagModel:
    """The lag model of S (m, d, d) with columns at ``slot`` (d,).

    Means are shrunk by ``prior`` pseudo-pairs of value zero: with empty slots, columns at the
    border have lags that hardly any other pair has, and that would fit them exactly (digits:
    without shrinkage, an arrangement split in two has less misfit than the truth).
    """
    flat = slots.index.take(slot, axis=0).take(slot, axis=1).astype(np.intp).ravel()
    count = np.bincount(flat, minlength=slots.classes).astype(np.float64)
    count -= np.bincount(flat[:: len(slot) + 1], minlength=slots.classes)
    weight = slots.smooth(count, width) + prior + 1e-9
    pairs = max(len(slot) * (len(slot) - 1), 1)
    K, v = [], []
    for s in S:
        total = np.bincount(flat, s.ravel(), minlength=slots.classes)  # the diagonal of s is zero
        mean = slots.smooth(total, width) / weight
        # Σ (s - K)² without another pass over pairs
        left = float(np.vdot(s, s)) - 2 * float(mean @ total) + float(mean**2 @ count)
        K.append(mean)
        v.append(max(left, 0.0) / pairs + 1e-9)
    return LagModel(np.array(K), np.array(v))


def misfit(S: NDArray, slot: NDArray, slots: Slots, prior: float = 4.0) -> float:
    """F of an arrangement."""
    return fit_lags(S, slot, slots, 0.0, prior).misfit


def nearest_slots(y: NDArray, grid: Grid, depth: int = 1) -> NDArray[np.int64]:
    """Slots of least squared (periodic) distance, one column each."""
    apart = np.abs(y[:, None] - grid.indices()[None])
    apart = np.where(
        grid.periodic, np.abs(apart - np.array(grid.shape) * np.rint(apart / grid.shape)), apart
    )
    cost = np.repeat(np.sum(apart**2, axis=-1), depth, axis=1)
    return linear_sum_assignment(cost)[1].astype(np.int64)
