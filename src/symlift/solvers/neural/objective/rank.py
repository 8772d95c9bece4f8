"""Adaptive-rank Gaussian joint entropy: the spectrum of the lifted batch, opened from its largest
eigenvalues on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

__all__ = ["SLOPE", "Form", "JointEntropy", "Window", "joint_entropy_to_rank", "rank_window"]

#: h_l of an eigenvalue λ_l: that of a Gaussian, ½ log 2πe λ_l, or as the paper prints it, log λ_l
Form = Literal["gaussian", "printed"]
#: where the window closes: over the eigenvalue's index (text), or over its share of all (code)
Window = Literal["index", "share"]
#: the text's α in units of the index, and the released code's gain over [0, 1]
SLOPE, _GAIN = 3.3, 75.0


def rank_window(points: int, rank: Tensor, slope: float = SLOPE) -> Tensor:
    """w_l = 1/(exp(slope · (l - k)) + 1), l = 1 … points: about 1 up to rank k, about 0 beyond.

    >>> rank_window(4, torch.tensor(2.5)).round(decimals=2)
    tensor([0.9900, 0.8400, 0.1600, 0.0100])
    """
    index = torch.arange(1, points + 1, dtype=rank.dtype, device=rank.device)
    return torch.sigmoid(slope * (rank - index))


def joint_entropy_to_rank(
    covariance: Tensor,
    rank: Tensor | None = None,
    ridge: float = 1e-5,
    form: Form = "gaussian",
    slope: float = SLOPE,
) -> Tensor:
    """Joint entropy per dimension of the leading part of the spectrum, Σ w_l h_l / Σ w_l, with h_l
    = ½ log(2πe (λ_l + ridge)), or log(λ_l + ridge) as printed.

    ``rank`` None takes all of it: the Gaussian entropy divided by N. Eigenvalues are in descending
    order; their gradient needs no gap between them.
    """
    logs = torch.log(torch.linalg.eigvalsh(covariance).flip(-1).clamp_min(0.0) + ridge)
    entropies = 0.5 * logs + 0.5 * math.log(2 * math.pi * math.e) if form == "gaussian" else logs
    if rank is None:
        return entropies.mean()
    window = rank_window(len(logs), rank, slope)
    return (window * entropies).sum() / window.sum()


@dataclass(frozen=True)
class JointEntropy:
    """How the joint entropy is taken: its ``form`` for each eigenvalue, and its ``window``.

    A Gaussian has ½ log λ and a constant, and so does the authors' code; the paper's text prints
    log λ, which doubles the joint entropy's part in resolution and in infomax. The text's window
    falls with a slope of 3.3 in the index, the code's with 75 in the index's share of all (5 for 15
    points).

    >>> covariance = torch.diag(torch.tensor([4.0, 1.0], dtype=torch.float64))
    >>> JointEntropy("printed")(covariance, None).round(decimals=3)  # (log 4 + log 1) / 2
    tensor(0.6930, dtype=torch.float64)
    """

    form: Form = "gaussian"
    window: Window = "index"

    def slope(self, points: int) -> float:
        """The window's slope in units of the index."""
        return SLOPE if self.window == "index" else _GAIN / points

    def __call__(self, covariance: Tensor, rank: Tensor | None) -> Tensor:
        """The entropy per dimension of a field with this ``covariance``, to ``rank``."""
        slope = self.slope(len(covariance))
        return joint_entropy_to_rank(covariance, rank, form=self.form, slope=slope)

    @property
    def scales(self) -> int:
        """How many logarithms of a field's scale its entropy per dimension has."""
        return 1 if self.form == "gaussian" else 2
