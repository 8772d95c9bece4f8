"""One number for a lifting map on rows that it was not fitted to: what chooses among candidates, and what users compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.statistics.entropy import resolution
from symlift.statistics.moments import stationarity

__all__ = ["HeldOut", "distortion", "held_out", "held_out_in_window", "window_of"]

# moments of more points than this are taken in a window: they are d² matrices, and a window of a stationary field is like any other
_WINDOW = 1024


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


def window_of(grid: Grid, most: int = _WINDOW) -> tuple[NDArray[np.int64], Grid]:
    """Points in the middle of a grid, (window,), at most about ``most``, and the grid that they are; all where there are fewer.

    >>> points, window = window_of(Grid((4, 9)), most=12)
    >>> str(window), points[:4]
    ('3x3', array([ 3,  4,  5, 12]))
    """
    if grid.size <= most:
        return np.arange(grid.size), grid
    side = max(2, int(most ** (1 / grid.ndim) + 1e-9))
    lengths = [min(n, side) for n in grid.shape]
    inside = np.ones(grid.size, dtype=bool)
    for index, n, length in zip(grid.indices().T, grid.shape, lengths, strict=True):
        first = (n - length) // 2
        inside &= (index >= first) & (index < first + length)
    closed = [wraps and length == n for wraps, length, n in zip(grid.periodic, lengths, grid.shape, strict=True)]
    return np.flatnonzero(inside), Grid(lengths, closed)


def held_out_in_window(W: Any, X: NDArray, grid: Grid, channels: int = 1, most: int = _WINDOW) -> HeldOut:
    """:func:`held_out` of a map W (grid points · channels, d), dense or sparse, in a window of the grid; the mean over channels."""
    points, window = window_of(grid, most)
    lags = LagClasses(window)
    found = []
    for channel in range(channels):
        rows = W[points * channels + channel]
        found.append(held_out(rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows), X, lags))
    mean = np.mean([[one.stationarity, one.resolution, one.distortion] for one in found], axis=0)
    return HeldOut(*(float(value) for value in mean))
