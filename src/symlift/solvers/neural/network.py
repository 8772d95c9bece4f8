"""The lifting network: the parameters of a :class:`~symlift.LiftedModel` as something that can be trained."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from symlift.core.differentiable import lifting_map, rotate_planes
from symlift.core.grid import Grid
from symlift.core.group import TranslationGroup
from symlift.core.linalg import polar
from symlift.core.model import EmbeddingKind, LiftedModel
from symlift.errors import InputError

__all__ = ["LiftingNetwork", "Rotation", "cayley", "initial_model"]


def initial_model(
    grid: Grid, mean: NDArray, scale: float, dimension: int, kind: EmbeddingKind, generator: torch.Generator
) -> LiftedModel:
    """The paper's start: eigenvectors of a random antisymmetric matrix A with entries N(0, 1e-3²), and its frequencies.

    Near zero in the frequencies only: the eigenvectors, and so Q, are Haar-random (Q = I would be the answer where nothing was
    mixed).  Several axes share Q and draw their own frequencies.
    """
    draws = 1e-3 * torch.randn(grid.ndim, dimension, dimension, generator=generator, dtype=torch.float64)
    groups = [TranslationGroup.from_generators(A) for A in ((draws - draws.transpose(1, 2)) / 2).numpy()]
    theta = np.concatenate([group.theta for group in groups])
    if grid.ndim > 1:  # equal order of size in all axes would align them; shuffle the planes of each
        theta = np.stack([row[torch.randperm(len(row), generator=generator).numpy()] for row in theta])
    r = np.zeros(dimension // 2 + dimension % 2)
    group = TranslationGroup(groups[0].Q, theta)
    return LiftedModel(grid, mean.astype(np.float64), scale, np.eye(dimension, len(mean)), group, r, kind)


def cayley(skew: Tensor) -> Tensor:
    """:func:`symlift.core.linalg.cayley` of the skew part of ``skew``, differentiable."""
    A = (skew - skew.T) / 2
    eye = torch.eye(len(A), dtype=A.dtype, device=A.device)
    return torch.linalg.solve(eye - A / 2, eye + A / 2)


def _orthonormal(Q: Tensor) -> Tensor:
    """The orthogonal matrix nearest to Q, in float64."""
    return torch.from_numpy(polar(Q.detach().cpu().double().numpy()))


class Rotation(nn.Module):
    """A learnable orthogonal matrix Q = Q₀ · cayley(A), kept orthogonal over any number of optimiser steps.

    The Cayley map costs one solve, forward and backward (a sixth of a complex eigendecomposition at d = 225).  Its
    accuracy falls as A grows, so :meth:`fold` moves A into the base Q₀ (re-orthonormalised in float64) once it is large;
    call it after optimiser steps.
    """

    base: Tensor

    def __init__(self, Q: Tensor) -> None:
        super().__init__()
        self.register_buffer("base", Q.detach().clone())
        self.skew = nn.Parameter(torch.zeros_like(Q))

    def forward(self) -> Tensor:
        return self.base @ cayley(self.skew)

    @torch.no_grad()
    def fold(self, limit: float = 1.0) -> bool:
        """Move A into the base when its largest row norm exceeds ``limit``; True if it did."""
        A = (self.skew - self.skew.T) / 2
        if float(A.norm(dim=1).max()) <= limit:
            return False
        self.base.copy_(_orthonormal(self.base.double() @ cayley(self.skew.double())))
        self.skew.zero_()
        return True


class LiftingNetwork(nn.Module):
    """W = T(θ) diag(r) Qᵀ E with Q = Q₀ · cayley(A), r = (filter + noise)/‖·‖, and one offset for each axis inside T.

    The offset moves the window along the torus as a whole, at most by half its length; :meth:`model` folds it into the planes.
    A linear embedding E is learned, unless it is to be kept as the start has it.
    """

    mean: Tensor
    points: Tensor
    reach: Tensor

    def __init__(self, start: LiftedModel, dtype: torch.dtype = torch.float32, keep_embedding: bool = False) -> None:
        super().__init__()
        if not isinstance(start.group, TranslationGroup) or start.channels > 1:
            raise InputError(
                f"a model of {start.grid.size} points and {start.channels} channels cannot be trained further"
            )
        self.grid, self.scale, self.kind = start.grid, start.scale, start.kind
        self.dimension = start.group.dimension
        self.rotation = Rotation(torch.from_numpy(start.group.Q).to(dtype))
        self.theta = nn.Parameter(torch.from_numpy(start.group.theta).to(dtype).clone())
        self.filter = nn.Parameter(torch.from_numpy(start.r).to(dtype).clone())
        self.offset = nn.Parameter(torch.zeros(start.grid.ndim, dtype=dtype))
        embedding = torch.from_numpy(start.E).to(dtype).clone()
        if start.kind == "linear" and not keep_embedding:
            self.E: Tensor = nn.Parameter(embedding)
        else:
            self.register_buffer("E", embedding)
        self.register_buffer("mean", torch.from_numpy(start.mean).to(dtype).clone())
        self.register_buffer("points", torch.from_numpy(start.grid.coordinates()).to(dtype), persistent=False)
        half = torch.tensor(
            [0.0 if wraps else n / 2 for n, wraps in zip(start.grid.shape, start.grid.periodic, strict=True)]
        )
        self.register_buffer("reach", half.to(dtype), persistent=False)

    def unit_filter(self, noise: Tensor | None = None) -> Tensor:
        """The resolving filter, ‖r‖ = 1."""
        r = self.filter if noise is None else self.filter + noise
        return r / r.norm().clamp_min(1e-12)

    def displacement(self) -> Tensor:
        """The window's offset along each axis, in grid steps; 0 on a ring, where it changes nothing."""
        return self.reach * torch.tanh(self.offset)

    def forward(self, noise: Tensor | None = None) -> Tensor:
        """The lifting map (points, d) of observations that were centred and scaled."""
        points = self.points + self.displacement()
        return lifting_map(self.E, self.rotation(), self.theta, self.unit_filter(noise), points)

    @torch.no_grad()
    def condition_embedding(self) -> None:
        """Divide a learned embedding's singular values by their geometric mean: it may shape, not scale."""
        if isinstance(self.E, nn.Parameter):
            singular = torch.linalg.svdvals(self.E)
            self.E.div_(torch.exp(torch.log(singular.clamp_min(1e-12)).mean()))

    @torch.no_grad()
    def model(self) -> LiftedModel:
        """The model as it stands, in float64, with the offset folded into the planes' orientation."""
        theta = self.theta.double()
        # cos θ(t + o), sin θ(t + o) against (a, b) is cos θt, sin θt against (a, b) turned by -θo
        Q = _orthonormal(self.rotation()).to(theta.device)
        turned = rotate_planes(Q, -self.displacement().double() @ theta)
        r = self.unit_filter().double()
        if float(r.norm()) < 0.5:  # never trained: the filter is still zero
            r = torch.full_like(r, 1 / math.sqrt(len(r)))
        group = TranslationGroup(_array(turned), _array(theta))
        return LiftedModel(self.grid, _array(self.mean), self.scale, _array(self.E), group, _array(r), self.kind)


def _array(tensor: Tensor) -> NDArray[np.float64]:
    """A copy as a numpy array of double precision."""
    return tensor.detach().cpu().double().numpy().copy()
