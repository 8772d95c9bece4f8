"""The lifting map of scrambled bits against the truth, and the recovered weights of bits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from symlift.datasets.images import ScrambledBits
from symlift.metrics import bit_structure
from symlift.paper.figures.request import Fit, Request, aligned_map
from symlift.plotting import bit_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def paint(request: Request) -> Figure:
    """The lifting map with columns in their true order, and the weights of bits.

    Columns are sorted by true significance, then by true pixel.
    """
    fit = Fit.of(request, request.experiments[0])
    data = fit.data
    assert isinstance(data, ScrambledBits)  # noqa: S101 - this experiment's data are
    W = aligned_map(fit.estimator.lifting_map_, fit.alignment, data.grid)
    measured = bit_structure(W, data.order, data.bits_per_pixel)
    structure = replace(measured, channels=true_channels(W, data))
    slopes = fit.estimator.evidence_.bit_slopes or None
    title = (
        f"Lifting map of {data.X.shape[1]:,} scrambled bits: n = {len(data.X):,}, seed"
        f" {request.seed}, r = {fit.r:.4f}"
    )
    return bit_figure(structure, slopes, title)


def true_channels(W: NDArray, data: ScrambledBits) -> NDArray[np.float64]:
    """W (N, d) as (b, N, N): for each true significance, columns in the order of their true pixels.

    A bit on a wrong point is off the diagonal.
    """
    N = data.grid.size
    channels = np.zeros((data.bits_per_pixel, N, N))
    channels[data.order % data.bits_per_pixel, :, data.order // data.bits_per_pixel] = W.T
    return channels
