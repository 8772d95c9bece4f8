"""Marginal entropies from Gaussian mixtures that are trained along with the lifting map."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from symlift.solvers.neural.objective.batch import Lifted

__all__ = ["MixtureMarginals"]


class MixtureMarginals(nn.Module):
    """A mixture of M Gaussians for each point; h(y_n) ≤ -E log p̂_n(y_n), with equality when p̂_n
    is right.

    Means start evenly on [-2.5, 2.5], log-variances at 1 (limited to [``least``, 2.5]: deviations
    of 0.08 to 3.5), logits at 0 (limited to ±3.5); mixtures and lifting map both *lower* the same
    cross-entropy, so one gradient serves both.

    >>> marginals = MixtureMarginals(points=2)
    >>> marginals.log_density(torch.zeros(5, 2)).shape
    torch.Size([5, 2])
    """

    def __init__(self, points: int, components: int = 4, least: float = -5.0) -> None:
        super().__init__()
        self.least = least
        self.mean = nn.Parameter(torch.linspace(-2.5, 2.5, components)[:, None].repeat(1, points))
        self.log_variance = nn.Parameter(torch.ones(components, points))
        self.logit = nn.Parameter(torch.zeros(components, points))

    def log_density(self, z: Tensor) -> Tensor:
        """log p̂_n(z_n) for each entry of z (n, N)."""
        log_variance = self.log_variance.clamp(self.least, 2.5)
        weight = torch.log_softmax(self.logit.clamp(-3.5, 3.5), dim=0)
        # log w - ½ log 2πσ² - (z - μ)²/2σ² as a polynomial in z: two passes over (M, n, N) instead
        # of five
        precision = torch.exp(-log_variance)
        a = -precision / 2
        b = self.mean * precision
        c = weight - (log_variance + math.log(2 * math.pi) + self.mean * b) / 2
        return torch.logsumexp(c[:, None] + z * (b[:, None] + z * a[:, None]), dim=0)

    def forward(self, batch: Lifted) -> Tensor:
        """Mean cross-entropy over points, an upper bound of the mean marginal entropy of z."""
        return -batch.workers.mean(self.log_density(batch.z)).mean()
