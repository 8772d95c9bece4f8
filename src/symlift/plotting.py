"""Figures.  matplotlib is imported here and nowhere else, and only when a figure is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symlift.grid import Grid
from symlift.lifting import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from symlift.metrics import BitStructure

__all__ = ["bit_figure", "draw_fields", "gallery", "save_figure"]

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "figure.dpi": 120,
    "savefig.bbox": "tight",
}
INK = "#2b4c7e"


def draw_fields(axes: Axes, field: NDArray, grid: Grid) -> None:
    """One signal: a curve on a line or ring, a picture in 2-D, the middle slice in 3-D."""
    if grid.ndim == 1:
        axes.plot(field.ravel(), color=INK, linewidth=1.2)
        axes.margins(x=0.02)
        axes.set_yticks([])
        return
    picture = field.reshape(grid.shape)
    if grid.ndim == 3:
        picture = picture[grid.shape[0] // 2]
    axes.imshow(picture, cmap="gray_r", interpolation="nearest")
    for spine in axes.spines.values():
        spine.set(visible=True, color="#c8c8c8", linewidth=0.6)
    axes.set_xticks([])
    axes.set_yticks([])


def gallery(rows: dict[str, NDArray], grid: Grid, columns: int = 8, title: str = "") -> Figure:
    """A picture with one row of signals for each entry of ``rows``: {label: (at least ``columns``, grid points)}."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        height = 1.15 if grid.ndim > 1 else 0.9
        figure = Figure(figsize=(1.25 * columns, (height + 0.12) * len(rows) + 0.45), layout="constrained")
        FigureCanvasAgg(figure)
        grids: Any = figure.subplots(len(rows), columns, squeeze=False)
        for line, (label, signals) in zip(grids, rows.items(), strict=True):
            for axes, signal in zip(line, signals, strict=False):
                draw_fields(axes, np.asarray(signal), grid)
                axes.set_xticks([])
            line[0].set_ylabel(label, rotation=0, ha="right", va="center", labelpad=8)
        if title:
            figure.suptitle(title, fontsize=10)
    return figure


def bit_figure(structure: BitStructure) -> Figure:
    """The lifting map across bit channels, and the weights of bits with a straight line of the number system's base."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    b, N, _ = structure.channels.shape
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10, 3.2), layout="constrained")
        FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2, width_ratios=(1.9, 1))
        shown = np.abs(structure.channels).transpose(1, 0, 2).reshape(N, b * N)
        # lines one point wide would vanish when drawn small: show the root of the largest weight in each block
        block = max(1, N // 75)
        rows = np.maximum.reduceat(shown, np.arange(0, N, block), axis=0)
        edges = np.concatenate([k * N + np.arange(0, N, block) for k in range(b)])
        image = np.sqrt(np.maximum.reduceat(rows, edges, axis=1))
        left.imshow(image, cmap="gray_r", interpolation="nearest", aspect="auto", extent=(0, b, N, 0))
        left.set_xticks(np.arange(b) + 0.5, [str(k) for k in range(b)])
        left.set_xlabel("bit channel, the most significant first; pixels within each")
        left.set_ylabel("recovered point")
        for k in range(1, b):
            left.axvline(k, color="#c8c8c8", linewidth=0.6)
        places = np.arange(b)
        right.errorbar(places, structure.mean, structure.deviation, fmt="o", color=INK, capsize=3, markersize=4)
        seen = structure.mean > 0
        level = np.exp(np.mean(np.log(structure.mean[seen]) + places[seen] * np.log(structure.base)))
        right.plot(places, level * structure.base**-places, color="#999999", linewidth=1, zorder=0)
        right.set_yscale("log")
        right.set_xticks(places)
        right.set_xlabel("bit, the most significant first")
        right.set_title(f"weight, mean ± deviation over pixels: base {structure.base:.3f}")
    return figure


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure whole or not at all; the format follows the suffix."""
    with write_atomically(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:])
