"""The lifted model with gradients: its formulas on tensors, and the module of `to_torch`.

It needs PyTorch (extra ``train``), and is imported only where it is asked for.
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

__all__ = [
    "FixedLift",
    "LiftedModule",
    "lifting_map",
    "plane_basis",
    "rotate_planes",
    "spread_filter",
]


def rotate_planes(coordinates: Tensor, angles: Tensor) -> Tensor:
    """Differentiable `symlift.core.group.rotate_planes`."""
    planes = coordinates.shape[-1] // 2
    first, second = coordinates[..., 0 : 2 * planes : 2], coordinates[..., 1 : 2 * planes : 2]
    cos, sin = torch.cos(angles), torch.sin(angles)
    turned = torch.stack([cos * first - sin * second, sin * first + cos * second], dim=-1).flatten(
        -2
    )
    return torch.cat([turned, coordinates[..., 2 * planes :]], dim=-1)


def plane_basis(theta: Tensor, points: Tensor, dimension: int) -> Tensor:
    """Differentiable `symlift.core.group.plane_basis`."""
    angles = points @ theta
    pairs = torch.stack([torch.cos(angles), torch.sin(angles)], dim=-1).flatten(-2)
    lone = torch.ones(
        len(points), dimension - pairs.shape[1], dtype=pairs.dtype, device=pairs.device
    )
    return torch.cat([pairs, lone], dim=-1)


def spread_filter(r: Tensor, dimension: int) -> Tensor:
    """Differentiable `symlift.core.group.spread_filter`."""
    return torch.cat([torch.repeat_interleave(r[: dimension // 2], 2), r[dimension // 2 :]])


def lifting_map(E: Tensor, Q: Tensor, theta: Tensor, r: Tensor, points: Tensor) -> Tensor:
    """W = T(θ) diag(r) Qᵀ E at ``points`` (N, P): rotate, weight, inverse (non-uniform) Fourier."""
    dimension = len(Q)
    return (plane_basis(theta, points, dimension) * spread_filter(r, dimension)) @ (Q.T @ E)


class LiftedModule(nn.Module):
    """Lift y = (x - mean) Wᵀ, with W made of trainable E, θ and r.

    Q, the mean and the grid's points are buffers.  The module computes in the precision of its
    parameters (``module.float()`` for single), and starts as the model that it was made from.

    Parameters
    ----------
    model : LiftedModel
        The model to start from, in 2-plane form (grids of up to 1,024 points).

    Raises
    ------
    InputError
        If the model is so large that its planes are implicit.

    References
    ----------
    "Blind Recovery of Latent Domains via Unsupervised Symmetry Discovery", eq. (4), and its
    appendix "Efficient implementation for lifting".

    Examples
    --------
    >>> import numpy as np
    >>> from symlift import Grid, LiftedModel
    >>> module = LiftedModule(LiftedModel.from_lifting_map(np.eye(5), Grid((5,), periodic=True)))
    >>> y = module(torch.eye(5, dtype=torch.float64))
    >>> bool(torch.allclose(y, torch.eye(5, dtype=torch.float64))), y.requires_grad
    (True, True)
    """

    mean: Tensor
    Q: Tensor
    points: Tensor

    def __init__(self, model: LiftedModel) -> None:
        super().__init__()
        if not isinstance(model.group, TranslationGroup) or model.is_sparse:
            raise InputError(
                f"a model of {model.grid.size} grid points has no module: its planes are implicit"
            )
        self.channels, self.scale = model.channels, model.scale
        self.register_buffer("mean", torch.from_numpy(model.mean.copy()))
        self.register_buffer("Q", torch.from_numpy(model.group.Q.copy()))
        self.register_buffer(
            "points", torch.from_numpy(model.grid.coordinates().astype(model.mean.dtype))
        )
        self.E = nn.Parameter(torch.from_numpy(model.E.copy()))
        self.theta = nn.Parameter(torch.from_numpy(model.group.theta.copy()))
        self.r = nn.Parameter(torch.from_numpy(model.r.copy()))

    def lifting_map(self) -> Tensor:
        """Lifting map W, differentiable in E, θ and r.

        Returns
        -------
        torch.Tensor of shape (grid points · channels, d)
            The map, channels fastest.
        """
        blocks = self.E.view(self.channels, len(self.Q), -1)
        maps = [lifting_map(E, self.Q, self.theta, self.r, self.points) for E in blocks]
        return torch.stack(maps, dim=1).flatten(0, 1) / self.scale

    def forward(self, x: Tensor) -> Tensor:
        """Lift observations.

        Parameters
        ----------
        x : torch.Tensor of shape (..., d)
            Observations.

        Returns
        -------
        torch.Tensor of shape (..., grid points · channels)
            Lifted signals, channels fastest.
        """
        return (x - self.mean) @ self.lifting_map().T


class FixedLift(nn.Module):
    """Vectors (…, d) to fields (…, channels, *grid), as convolutions take them: (x - mean) Wᵀ with
    a fixed W, in single precision.

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
