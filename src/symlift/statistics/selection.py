"""One number for a lifting map on rows that it was not fitted to: what chooses among candidates, and what users compare."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symlift.core.lags import LagClasses
from symlift.statistics.entropy import resolution
from symlift.statistics.moments import stationarity

__all__ = ["HeldOut", "distortion", "held_out"]


def distortion(W: NDArray) -> float:
    """log(tr WWᵀ/N) - log det WWᵀ/N: Stein's distance to a multiple of an isometry, which has 0."""
    power = np.linalg.svd(W, compute_uv=False)[: len(W)] ** 2
    return float(np.log(power.mean()) - np.mean(np.log(np.maximum(power, 1e-12 * power[0]))))


@dataclass(frozen=True)
class HeldOut:
    """The terms of the held-out objective of a lifting map; see :func:`held_out`."""

    stationarity: float
    resolution: float
    distortion: float

    def value(self, infomax: float = 1.0) -> float:
        """resolution + infomax · distortion/2 + 10 · max(stationarity, 0); smaller is better.

        The paper's resolution, its infomax (at fixed ‖W‖ the joint entropy is a constant minus distortion/2), and stationarity.
        """
        return self.resolution + infomax * self.distortion / 2 + 10 * max(self.stationarity, 0.0)


def held_out(W: NDArray, X: NDArray, lags: LagClasses) -> HeldOut:
    """What chooses among candidate maps W, on rows X that they were not fitted to."""
    Y = (X - X.mean(axis=0)) @ W.T
    return HeldOut(float(stationarity(Y, lags).mean()), resolution(Y), distortion(W))
