"""Adaptive-rank Gaussian joint entropy: the spectrum of the lifted batch, opened from its largest
eigenvalues on.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["joint_entropy_to_rank", "rank_window"]


def rank_window(points: int, rank: Tensor, slope: float = 3.3) -> Tensor:
    """w_l = 1/(exp(slope · (l - k)) + 1), l = 1 … points: about 1 up to rank k, about 0 beyond.

    >>> rank_window(4, torch.tensor(2.5)).round(decimals=2)
    tensor([0.9900, 0.8400, 0.1600, 0.0100])
    """
    index = torch.arange(1, points + 1, dtype=rank.dtype, device=rank.device)
    return torch.sigmoid(slope * (rank - index))


def joint_entropy_to_rank(
    covariance: Tensor, rank: Tensor | None = None, ridge: float = 1e-5
) -> Tensor:
    """Gaussian entropy per dimension of the leading part of the spectrum, Σ w_l ½ log(2πe (λ_l +
    ridge)) / Σ w_l.

    ``rank`` None takes all of it: the Gaussian entropy divided by N. Eigenvalues are in descending
    order; their gradient needs no gap between them.
    """
    spectrum = torch.linalg.eigvalsh(covariance).flip(-1)
    entropies = 0.5 * torch.log(spectrum.clamp_min(0.0) + ridge) + 0.5 * math.log(
        2 * math.pi * math.e
    )
    if rank is None:
        return entropies.mean()
    window = rank_window(len(spectrum), rank)
    return (window * entropies).sum() / window.sum()
