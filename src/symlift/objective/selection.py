"""One number for a lifting map on rows that it was not fitted to: what chooses among candidates, and what users compare."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from symlift.objective.entropy import resolution
from symlift.objective.stationarity import LagClasses, stationarity

__all__ = ["distortion", "score"]


def distortion(W: NDArray) -> float:
    """log(tr WWᵀ/N) - log det WWᵀ/N: Stein's distance to a multiple of an isometry, which has 0."""
    power = np.linalg.svd(W, compute_uv=False)[: len(W)] ** 2
    return float(np.log(power.mean()) - np.mean(np.log(np.maximum(power, 1e-12 * power[0]))))


def score(W: NDArray, X: NDArray, lags: LagClasses) -> tuple[float, dict[str, float]]:
    """The number that chooses among candidates on held-out rows, smaller is better, and what it is made of.

    resolution + distortion/2 + 10 · max(stationarity, 0): the paper's resolution, its infomax (at fixed ‖W‖ the joint entropy is
    a constant minus distortion/2), and stationarity.
    """
    Y = (X - X.mean(axis=0)) @ W.T
    parts = {
        "stationarity": float(stationarity(Y, lags).mean()),
        "resolution": resolution(Y),
        "distortion": distortion(W),
    }
    return parts["resolution"] + parts["distortion"] / 2 + 10 * max(parts["stationarity"], 0.0), parts
