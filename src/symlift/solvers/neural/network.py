"""The lifting network: the parameters of a :class:`~symlift.lifting.LiftedModel` as something that can be trained."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from symlift.grid import Grid
from symlift.group import Rotation, TranslationGroup, rotate_planes
from symlift.lifting import LiftedModel, lifting_map

__all__ = ["LiftingNetwork", "initial_model"]


def initial_model(
    grid: Grid, mean: Tensor, scale: float, dimension: int, kind: str, generator: torch.Generator
) -> LiftedModel:
    """The paper's start: eigenvectors of a random antisymmetric matrix A with entries N(0, 1e-3²), and its frequencies.

    Near zero in the frequencies only: the eigenvectors, and so Q, are Haar-random (Q = I would be the answer where nothing was
    mixed).  Several axes share Q and draw their own frequencies.
    """
    draws = 1e-3 * torch.randn(grid.ndim, dimension, dimension, generator=generator, dtype=torch.float64)
    skew = (draws - draws.transpose(1, 2)) / 2
    groups = [TranslationGroup.from_generators(A) for A in skew]
    theta = torch.cat([group.theta for group in groups])
    if grid.ndim > 1:  # equal order of size in all axes would align them; shuffle the planes of each
        theta = torch.stack([row[torch.randperm(len(row), generator=generator)] for row in theta])
    d = len(mean)
    E = torch.eye(dimension, d, dtype=torch.float64)
    r = torch.zeros(dimension // 2 + dimension % 2, dtype=torch.float64)
    group = TranslationGroup(groups[0].Q, theta)
    return LiftedModel(grid, mean.double(), scale, E, group, r, kind)  # type: ignore[arg-type]


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
        self.grid, self.scale, self.kind = start.grid, start.scale, start.kind
        self.dimension = start.group.dimension
        self.rotation = Rotation(start.group.Q.to(dtype))
        self.theta = nn.Parameter(start.group.theta.to(dtype).clone())
        self.filter = nn.Parameter(start.r.to(dtype).clone())
        self.offset = nn.Parameter(torch.zeros(start.grid.ndim, dtype=dtype))
        embedding = start.E.to(dtype).clone()
        if start.kind == "linear" and not keep_embedding:
            self.E: Tensor = nn.Parameter(embedding)
        else:
            self.register_buffer("E", embedding)
        self.register_buffer("mean", start.mean.to(dtype).clone())
        self.register_buffer("points", torch.from_numpy(start.grid.coordinates()).to(dtype), persistent=False)
        half = torch.tensor(
            [0.0 if wraps else n / 2 for n, wraps in zip(start.grid.shape, start.grid.axes_periodic, strict=True)]
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
        Q, theta = self.rotation().double(), self.theta.double()
        left, _, right = torch.linalg.svd(Q)
        # cos θ(t + o), sin θ(t + o) against (a, b) is cos θt, sin θt against (a, b) turned by -θo
        turned = rotate_planes(left @ right, -self.displacement().double() @ theta)
        group = TranslationGroup(turned, theta.clone())
        r = self.unit_filter().double()
        if float(r.norm()) < 0.5:  # never trained: the filter is still zero
            r = torch.full_like(r, 1 / math.sqrt(len(r)))
        return LiftedModel(self.grid, self.mean.double(), self.scale, self.E.double(), group, r, self.kind)
