"""The held-out objective of a lifting map, which chooses among candidates and users compare."""

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

# moments of more points than this are taken in a window of the grid: they are d² matrices, and all
# windows of a stationary field are alike
_WINDOW = 1024


def distortion(W: NDArray) -> float:
    """Distance of a map to a multiple of an isometry, log(tr WWᵀ/N) - log det WWᵀ/N.

    This is Stein's distance; it is 0 for a multiple of an isometry.

    Parameters
    ----------
    W : ndarray of shape (N, d)
        A lifting map.

    Returns
    -------
    float
        The distance, not negative.

    Examples
    --------
    >>> round(distortion(3 * np.eye(4)), 6), round(distortion(np.diag([1.0, 2.0])), 3)
    (0.0, 0.223)
    """
    power = np.linalg.svd(W, compute_uv=False)[: len(W)] ** 2
    if not power[0]:  # no column was placed
        return 0.0
    return float(np.log(power.mean()) - np.mean(np.log(np.maximum(power, 1e-12 * power[0]))))


@dataclass(frozen=True)
class HeldOut:
    """The terms of the held-out objective of a lifting map; `held_out` computes them.

    Parameters
    ----------
    stationarity : float
        Mean relative distance of the moments to stationary ones.
    resolution : float
        Total correlation per point, in nats.
    distortion : float
        Stein's distance of the map to a multiple of an isometry.

    References
    ----------
    "Blind Recovery of Latent Domains via Unsupervised Symmetry Discovery", eq. (5).

    Examples
    --------
    >>> HeldOut(stationarity=0.01, resolution=0.5, distortion=0.2).value()
    0.7
    """

    stationarity: float
    resolution: float
    distortion: float

    def value(self, infomax: float = 1.0) -> float:
        """Objective: resolution + infomax · distortion/2 + 10 · max(stationarity, 0).

        Smaller is better.  At fixed ‖W‖ the joint entropy of the paper's infomax term is a constant
        minus distortion/2.

        Parameters
        ----------
        infomax : float, default=1.0
            Weight of the distortion.

        Returns
        -------
        float
            The objective, to be minimised; `LatentDomain.score` returns its negative.
        """
        return self.resolution + infomax * self.distortion / 2 + 10 * max(self.stationarity, 0.0)


def held_out(W: NDArray, X: NDArray, lags: LagClasses) -> HeldOut:
    """Compute the terms of the held-out objective of a lifting map.

    Parameters
    ----------
    W : ndarray of shape (N, d)
        A lifting map.
    X : ndarray of shape (n, d)
        Rows that were held out.
    lags : LagClasses
        Pairs of grid points with equal displacement.

    Returns
    -------
    HeldOut
        Stationarity, resolution and distortion.

    Examples
    --------
    >>> from symlift.datasets import gsn
    >>> data = gsn(2_000, 15, periodic=True, transform="orthogonal", random_state=0)
    >>> lags = LagClasses(Grid((15,), periodic=True))
    >>> truth = held_out(data.transform, data.X, lags)
    >>> nothing = held_out(np.eye(15), data.X, lags)
    >>> truth.value() < nothing.value()
    True
    """
    Y = (X - X.mean(axis=0)) @ W.T
    return HeldOut(float(stationarity(Y, lags).mean()), resolution(Y), distortion(W))


def window_of(grid: Grid, most: int = _WINDOW) -> tuple[NDArray[np.int64], Grid]:
    """Points in the middle of a grid, about ``most`` of them, and the grid that they form.

    All points are taken where there are no more than ``most``.

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
    closed = [
        wraps and length == n
        for wraps, length, n in zip(grid.periodic, lengths, grid.shape, strict=True)
    ]
    return np.flatnonzero(inside), Grid(lengths, closed)


def held_out_in_window(
    W: Any,
    X: NDArray,
    grid: Grid,
    channels: int = 1,
    most: int = _WINDOW,
    mean: NDArray | None = None,
) -> HeldOut:
    """`held_out` of a dense or sparse W (grid points · channels, d) in a window of the grid.

    The result is the mean over channels.  Of a sparse W only the columns that the window uses are
    read; gaps in X have the ``mean`` (d,) of their column.
    """
    points, window = window_of(grid, most)
    lags = LagClasses(window)
    terms = []
    for channel in range(channels):
        rows = W[points * channels + channel]
        used: Any = slice(None)
        if hasattr(rows, "toarray"):
            used = np.unique(rows.tocoo().col)
            rows = rows.tocsc()[:, used].toarray()
        x = np.asarray(X[:, used], dtype=np.float64)
        if mean is not None:
            x = np.where(np.isnan(x), mean[used], x)
        terms.append(held_out(np.asarray(rows), x, lags))
    mean = np.mean([[one.stationarity, one.resolution, one.distortion] for one in terms], axis=0)
    return HeldOut(*(float(value) for value in mean))
