"""Samples of the shot-noise processes: the latent signals, and the observations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symlift.datasets import Observations
from symlift.plotting import new_figure
from symlift_paper.figures.request import WIDTH, Request

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SHOWN = 3


def paint(request: Request) -> Figure:
    """Each basis on a line, and the three kinds of shifts on a ring.

    On a line: latent, permuted and under DST-I; on a ring: latent and permuted.
    """
    gaussian, gaussian_dst, legendre, legendre_dst, *rings = (
        request.observe(e) for e in request.experiments
    )
    figure = new_figure(WIDTH, 6.2, f"Shot noise: n = {len(gaussian.X):,}, seed {request.seed}")
    grid: Any = figure.subplots(4, 3)
    for line, name, permuted, dst in (
        (grid[0], "Gaussian", gaussian, gaussian_dst),
        (grid[1], "Legendre", legendre, legendre_dst),
    ):
        shown = first_filled(permuted.latent)
        _stack(line[0], permuted.latent[shown], f"{name}, latent", "position, grid steps")
        _stack(
            line[1], permuted.X[shown], f"identity, columns permuted{_noise(permuted)}", "column"
        )
        _stack(line[2], dst.X[shown], f"DST-I{_noise(dst)}", "column")
        line[0].set_ylabel("signals, offset")
    for column, data, experiment in zip(grid[2:].T, rings, request.experiments[4:], strict=True):
        shown = first_filled(data.latent)
        kind = experiment.options["shifts"]
        _stack(
            column[0],
            data.latent[shown],
            f"ring of {data.grid.size}, {kind} shifts, latent",
            "position, grid steps",
            ".",
        )
        _stack(column[1], data.X[shown], f"columns permuted{_noise(data)}", "column", ".")
    for axes in grid[2:, 0]:
        axes.set_ylabel("signals, offset")
    return figure


def first_filled(latent: NDArray) -> NDArray[np.int64]:
    """The first samples with more than the tail of a pulse.

    Their deviation is at least half of the rms deviation of the data set.

    >>> first_filled(np.array([[0, 0, 0], [0, 3.0, 0], [0, 0, 0.1], [1, 0, 0], [0, 0, 2]])).tolist()
    [1, 3, 4]
    """
    spread = latent.std(axis=1)
    return np.flatnonzero(spread >= 0.5 * np.sqrt(np.mean(spread**2)))[:_SHOWN]


def noise_ratio(data: Observations) -> float:
    """Standard deviation of the noise over that of the latent signal, measured in these data."""
    noise = data.X - data.latent @ np.asarray(data.transform, dtype=np.float32)
    return float(noise.std() / data.latent.std())


def _noise(data: Observations) -> str:
    return f"\nnoise {noise_ratio(data):.3f} of the deviation"


def _stack(axes: Any, signals: NDArray, title: str, label: str, marker: str = "") -> None:
    step = 1.15 * float(np.ptp(signals, axis=1).max(initial=0.0))
    for level, signal in enumerate(signals):
        offset = -step * level
        axes.axhline(offset, color="#e0e0e0", linewidth=0.6, zorder=0)
        axes.plot(signal + offset, marker=marker, markersize=4, color=f"C{level}")
    axes.set_yticks([])
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.margins(x=0.02)
    axes.set_xlabel(label)
    axes.set_title(title)
