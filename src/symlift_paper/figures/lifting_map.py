"""The lifting map of scrambled bits against the truth, and the recovered weights of bits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Alignment
from symlift.datasets.bits import ScrambledBits
from symlift.metrics import BitStructure, bit_structure
from symlift.plotting import draw_channels, draw_weights, new_figure
from symlift_paper.figures.bit_training import train_on_bits
from symlift_paper.figures.request import WIDTH, Fit, Request, aligned_map, recovery_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def paint(request: Request) -> Figure:
    """Lifting maps with columns in their true order, and the weights of bits.

    Our training, in both parts of its closed form, and below it the fast solver. Columns are sorted
    by true significance, then by true pixel.
    """
    rows = [*_trained(request), _placed(request)]
    figure = new_figure(
        WIDTH,
        2.5 * len(rows),
        f"Lifting maps of scrambled bits: n = {request.n or request.experiments[0].n:,}, seed"
        f" {request.seed}",
    )
    panels: Any = figure.subplots(len(rows), 2, width_ratios=(1.9, 1))
    for (left, right), row, letter in zip(panels, rows, "abc", strict=False):
        dense = np.median(np.abs(row.structure.channels)) > 1e-3 * row.structure.channels.max()
        draw_channels(left, row.structure, 1.0 if dense else 0.25)
        left.set_title(f"({letter}) {row.title}")
        draw_weights(right, row.structure, row.slopes)
    return figure


@dataclass(frozen=True, eq=False)
class _Row:
    """What a row shows, and the slopes that weights were chosen by, where they were not taken."""

    title: str
    structure: BitStructure
    slopes: tuple[float, ...] | None = None


def _trained(request: Request) -> list[_Row]:
    run = train_on_bits(request)
    data = run.data
    X, latent = data.X[run.judges :], data.latent[run.judges :]
    rows = []
    for shot in run.snapshots()[-1 if run.modes is None else -2 :]:
        r, alignment = recovery_of(latent, (X - shot.mean) @ shot.W.T, data.grid)
        title = f"our training, {data.grid}, {' '.join(shot.label.split())}: r = {r:.4f}"
        rows.append(_Row(title, true_structure(shot.W, alignment, data)))
    return rows


def _placed(request: Request) -> _Row:
    fit = Fit.of(request, request.experiments[0])
    data = fit.data
    assert isinstance(data, ScrambledBits)  # noqa: S101 - this experiment's data are
    structure = true_structure(fit.estimator.lifting_map_, fit.alignment, data)
    title = f"fast solver, {data.grid}: r = {fit.r:.4f}"
    return _Row(title, structure, fit.estimator.evidence_.bit_slopes or None)


def true_structure(W: NDArray, alignment: Alignment, data: ScrambledBits) -> BitStructure:
    """What the map W (N, d) does with bits: weights by true significance, and channels in the true
    order, once its output is aligned with the truth.
    """
    measured = bit_structure(W, data.order, data.bits_per_pixel)
    return replace(measured, channels=true_channels(aligned_map(W, alignment, data.grid), data))


def true_channels(W: NDArray, data: ScrambledBits) -> NDArray[np.float64]:
    """W (N, d) as (b, N, N): for each true significance, columns in the order of their true pixels.

    A bit on a wrong point is off the diagonal.
    """
    N = data.grid.size
    channels = np.zeros((data.bits_per_pixel, N, N))
    channels[data.order % data.bits_per_pixel, :, data.order // data.bits_per_pixel] = W.T
    return channels
