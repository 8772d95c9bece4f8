"""Stationarity without critics: second to fourth moments, and the Jensen–Shannon divergence of
Gaussians, in closed form.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from symlift.core.grid import Grid
from symlift.solvers.neural.objective.batch import Lifted
from symlift.solvers.neural.objective.critic import shifted_pair
from symlift.statistics.moments import CLIP, moment_sizes

__all__ = ["GaussianStationarity", "MomentStationarity"]


class MomentStationarity(nn.Module):
    """Σ ‖M - M̄‖²/size over M = E[z zᵀ], E[z² zᵀ], E[z² z²ᵀ], with M̄ the average of M over pairs
    of equal displacement.

    A smooth, critic-free measure that vanishes where these moments are stationary (in the limit of
    many rows). Sizes are those of `symlift.statistics.moments.moment_sizes`.
    """

    index: Tensor
    count: Tensor

    def __init__(self, grid: Grid) -> None:
        super().__init__()
        index = torch.from_numpy(grid.lags()).reshape(-1)
        self.register_buffer("index", index, persistent=False)
        self.register_buffer(
            "count", torch.bincount(index).to(torch.get_default_dtype()), persistent=False
        )

    def forward(self, batch: Lifted) -> Tensor:
        """The sum over the three orders."""
        z = batch.z.clamp(-CLIP, CLIP)
        square = z.square() - batch.workers.mean(z.square()).mean()
        second, third, fourth = (
            batch.workers.average(left.T @ right / len(z))
            for left, right in ((z, z), (square, z), (square, square))
        )
        sizes = moment_sizes(second.square().sum(), fourth.square().sum(), second.pow(4).sum())
        orders = zip((second, third, fourth), sizes, strict=True)
        return torch.stack([self._distance(M) / size for M, size in orders]).sum()

    def _distance(self, M: Tensor) -> Tensor:
        """‖M - M̄‖²."""
        flat = M.reshape(-1)
        count = self.count.to(M.dtype)
        average = flat.new_zeros(len(count)).index_add(0, self.index, flat) / count.clamp_min(1.0)
        return (flat - average[self.index]).square().sum()


class GaussianStationarity(nn.Module):
    """½ log det C_m - ¼ (log det C_p + log det C_q), the mean over axes, weighted as the critics'
    estimate is.

    C_p and C_q are the covariances of the field and of its one-step shift, C_m that of their equal
    mixture: the Jensen–Shannon divergence of the Gaussians, with the mixture replaced by the
    Gaussian of its moments (from above; 0 only where C_p = C_q and the means agree).
    """

    def __init__(self, grid: Grid, ridge: float = 1e-3) -> None:
        super().__init__()
        self.grid, self.ridge = grid, ridge
        self.shares = [n * n / grid.size / grid.ndim for n in grid.shape]

    def forward(self, batch: Lifted) -> Tensor:
        covariance, mean = batch.covariance(), batch.workers.mean(batch.z)
        points = torch.arange(self.grid.size, device=mean.device).view(1, *self.grid.shape)
        total = mean.new_zeros(())
        for axis, share in enumerate(self.shares):
            p, q = (
                part.reshape(-1) for part in shifted_pair(points, axis, self.grid.periodic[axis])
            )
            gap = mean[p] - mean[q]
            C_p, C_q = covariance[p][:, p], covariance[q][:, q]
            C_m = (C_p + C_q) / 2 + torch.outer(gap, gap) / 4
            eye = self.ridge * torch.eye(len(p), dtype=mean.dtype, device=mean.device)
            left, right, mixed = torch.logdet(torch.stack([C_p + eye, C_q + eye, C_m + eye]))
            total = total + share * (mixed / 2 - (left + right) / 4)
        return total
