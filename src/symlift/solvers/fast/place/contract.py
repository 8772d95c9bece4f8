"""What placing columns returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from symlift.solvers.contract import Placement

__all__ = ["Placed", "PlacementStatistics"]


@dataclass(frozen=True)
class PlacementStatistics:
    """Which statistic gave the result, and how well held-out rows support it.

    ``carried`` is "lags" (plain correlations), "partial" (partial correlations) or "distances";
    ``agreement``: how alike the result is to what each of two parts of the rows gives, None where
    that was not looked at.
    """

    carried: str
    explained: float
    ceiling: float
    accepted: bool
    misfit: float
    starts: int
    agreeing: int
    agreement: float | None = None


@dataclass(frozen=True)
class Placed:
    """A placement, its lifting map (points · channels, d), channels fastest, and statistics.

    ``scattered``: no grid was asked for, that of the placement is only the box of the places.
    """

    placement: Placement
    n_channels: int
    W: NDArray[np.float64] | csr_matrix
    mean: NDArray[np.float64]
    statistics: PlacementStatistics
    trace: dict[str, Any]
    scattered: bool = False
