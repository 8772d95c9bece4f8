"""The lifted model with gradients: its formulas on tensors, and the module that :meth:`~symlift.LiftedModel.to_torch` gives.

Needs PyTorch (extra ``train``), and is imported only where it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from symlift.core.group import TranslationGroup
from symlift.errors import InputError

if TYPE_CHECKING:
    from symlift.core.model import LiftedModel

__all__ = ["FixedLift", "LiftedModule", "lifting_map", "plane_basis", "rotate_planes", "spread_filter"]


def rotate_planes(coordinates: Tensor, angles: Tensor) -> Tensor:
    """:func:`symlift.core.group.rotate_planes`, differentiable."""
    planes = coordinates.shape[-1] // 2
    first, second = coordinates[..., 0 : 2 * planes : 2], coordinates[..., 1 : 2 * planes : 2]
    cos, sin = torch.cos(angles), torch.sin(angles)
    turned = torch.stack([cos * first - sin * second, sin * first + cos * second], dim=-1).flatten(-2)
    return torch.cat([turned, coordinates[..., 2 * planes :]], dim=-1)


def plane_basis(theta: Tensor, points: Tensor, dimension: int) -> Tensor:
    """:func:`symlift.core.group.plane_basis`, differentiable."""
    angles = points @ theta
    pairs = torch.stack([torch.cos(angles), torch.sin(angles)], dim=-1).flatten(-2)
    lone = torch.ones(len(points), dimension - pairs.shape[1], dtype=pairs.dtype, device=pairs.device)
    return torch.cat([pairs, lone], dim=-1)


def spread_filter(r: Tensor, dimension: int) -> Tensor:
    """:func:`symlift.core.group.spread_filter`, differentiable."""
    return torch.cat([torch.repeat_interleave(r[: dimension // 2], 2), r[dimension // 2 :]])


def lifting_map(E: Tensor, Q: Tensor, theta: Tensor, r: Tensor, points: Tensor) -> Tensor:
    """W = T(θ) diag(r) Qᵀ E at ``points`` (N, P): rotate, weight, inverse (non-uniform) Fourier."""
    dimension = len(Q)
    return (plane_basis(theta, points, dimension) * spread_filter(r, dimension)) @ (Q.T @ E)


class LiftedModule(nn.Module):
    """y = (x - mean) Wᵀ with W made of trainable E, θ and r; Q, the mean and the grid's points are buffers.

    ``forward`` takes (…, d) to (…, grid points · channels), channels fastest, in the precision of its parameters
    (``module.float()`` for single).  It starts as the model that it was made from.
    """

    mean: Tensor
    Q: Tensor
    points: Tensor

    def __init__(self, model: LiftedModel) -> None:
        super().__init__()
        if not isinstance(model.group, TranslationGroup) or model.is_sparse:
            raise InputError(f"a model of {model.grid.size} grid points has no module: its planes are implicit")
        self.channels, self.scale = model.channels, model.scale
        self.register_buffer("mean", torch.from_numpy(model.mean.copy()))
        self.register_buffer("Q", torch.from_numpy(model.group.Q.copy()))
        self.register_buffer("points", torch.from_numpy(model.grid.coordinates().astype(model.mean.dtype)))
        self.E = nn.Parameter(torch.from_numpy(model.E.copy()))
        self.theta = nn.Parameter(torch.from_numpy(model.group.theta.copy()))
        self.r = nn.Parameter(torch.from_numpy(model.r.copy()))

    def lifting_map(self) -> Tensor:
        """W (grid points · channels, d), differentiable in E, θ and r."""
        blocks = self.E.view(self.channels, len(self.Q), -1)
        maps = [lifting_map(E, self.Q, self.theta, self.r, self.points) for E in blocks]
        return torch.stack(maps, dim=1).flatten(0, 1) / self.scale

    def forward(self, x: Tensor) -> Tensor:
        """Lifted signals of observations x (…, d)."""
        return (x - self.mean) @ self.lifting_map().T


class FixedLift(nn.Module):
    """Vectors (…, d) to fields (…, channels, *grid), as convolutions take them: (x - mean) Wᵀ with a fixed W, in single precision.

    Where every grid point reads one column at most, nothing is multiplied: columns are picked.
    """

    mean: Tensor
    weight: Tensor
    column: Tensor

    def __init__(self, model: LiftedModel) -> None:
        super().__init__()
        self.shape = (*model.grid.shape, model.channels)
        W = model.map.tocsr() if model.is_sparse else model.map
        size = abs(W)
        self.picks = bool(((size > 1e-9 * size.max()).sum(axis=1) <= 1).all())
        self.register_buffer("mean", torch.from_numpy(model.mean.copy()).float())
        if self.picks:
            column = np.asarray(size.argmax(axis=1)).ravel()
            weight = np.asarray(W[np.arange(len(column)), column]).ravel()
            self.register_buffer("column", torch.from_numpy(column.astype(np.int64)))
        else:
            weight = W.toarray() if model.is_sparse else np.array(W)
        self.register_buffer("weight", torch.from_numpy(weight).float())

    def forward(self, x: Tensor) -> Tensor:
        """Fields of observations x (…, d)."""
        centred = x - self.mean
        lifted = centred[..., self.column] * self.weight if self.picks else centred @ self.weight.T
        return lifted.reshape(*lifted.shape[:-1], *self.shape).movedim(-1, -len(self.shape))
