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
    """What carried the result ("lags": plain correlations, "partial": local ones), and how far rows that were held out
    believe it.
    """

    carried: str
    explained: float
    ceiling: float
    accepted: bool
    misfit: float
    starts: int
    agreeing: int


@dataclass(frozen=True)
class Placed:
    """A placement, the lifting map (points · channels, d) that follows from it, channels fastest, and what speaks for it."""

    placement: Placement
    n_channels: int
    W: NDArray[np.float64] | csr_matrix
    mean: NDArray[np.float64]
    statistics: PlacementStatistics
    trace: dict[str, Any]
