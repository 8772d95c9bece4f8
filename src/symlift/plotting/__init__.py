"""Figures.  Only this room imports matplotlib, and only when a figure is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symlift.core.grid import Grid
from symlift.plotting.displays import (
    plot_diagnosis,
    plot_generators,
    plot_ring,
    plot_signals,
)
from symlift.plotting.places import plot_placement
from symlift.storage.atomic import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from symlift.metrics import BitStructure

__all__ = [
    "DIVERGING",
    "GREY",
    "bit_figure",
    "draw_channels",
    "draw_fields",
    "draw_weights",
    "frame",
    "gallery",
    "new_figure",
    "plot_diagnosis",
    "plot_generators",
    "plot_placement",
    "plot_ring",
    "plot_signals",
    "save_figure",
    "styled",
    "write_figure",
]


def __dir__() -> list[str]:
    return sorted(__all__)


#: style of all figures
STYLE = Path(__file__).with_name("symlift.mplstyle")
GREY = "#c8c8c8"
#: colour map for signed entries, white at 0
DIVERGING = "RdBu_r"
# no date: the same figure gives the same file
_METADATA: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


@contextmanager
def styled() -> Iterator[None]:
    """Context in which matplotlib has the project's style and none of the user's settings."""
    from matplotlib import style

    with style.context(STYLE, after_reset=True):
        yield


def new_figure(width: float, height: float, title: str = "") -> Figure:
    """Empty figure, size in inches; create, draw and save it inside of `styled`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(title)
    return figure


def frame(axes: Axes) -> None:
    """No ticks, and a thin frame on all sides: for pictures."""
    for spine in axes.spines.values():
        spine.set(visible=True, color=GREY, linewidth=0.6)
    axes.set_xticks([])
    axes.set_yticks([])


def draw_fields(axes: Axes, field: NDArray, grid: Grid) -> None:
    """One signal: a curve on a line or ring, a picture in 2-D, the middle slice in 3-D."""
    if grid.ndim == 1:
        axes.plot(field.ravel(), color="C0")
        axes.margins(x=0.02)
        axes.set_yticks([])
        return
    picture = field.reshape(grid.shape)
    if grid.ndim == 3:
        picture = picture[grid.shape[0] // 2]
    axes.imshow(picture, cmap="gray_r")
    frame(axes)


def gallery(rows: dict[str, NDArray], grid: Grid, columns: int = 8, title: str = "") -> Figure:
    """Figure with one row of signals per entry of ``rows``, {label: (n ≥ columns, points)}."""
    with styled():
        height = 1.15 if grid.ndim > 1 else 0.9
        figure = new_figure(1.25 * columns, (height + 0.12) * len(rows) + 0.45, title)
        grids: Any = figure.subplots(len(rows), columns, squeeze=False)
        for line, (label, signals) in zip(grids, rows.items(), strict=True):
            for axes, signal in zip(line, signals, strict=False):
                draw_fields(axes, np.asarray(signal), grid)
                axes.set_xticks([])
            line[0].set_ylabel(label, rotation=0, ha="right", va="center", labelpad=8)
    return figure


def bit_figure(structure: BitStructure, slopes: ArrayLike | None = None, title: str = "") -> Figure:
    """Lifting map across bit channels, and weights of bits with a line of the number system's base.

    ``slopes`` are what a solver measured before it chose the weights, the heaviest first; they are
    drawn next to the weights.
    """
    with styled():
        figure = new_figure(7.2, 2.7, title)
        left, right = figure.subplots(1, 2, width_ratios=(1.9, 1))
        draw_channels(left, structure)
        draw_weights(right, structure, slopes)
    return figure


def draw_channels(axes: Axes, structure: BitStructure, power: float = 0.25) -> None:
    """The lifting map, bit channels side by side: weights to the given ``power``."""
    b, N, _ = structure.channels.shape
    shown = np.abs(structure.channels).transpose(1, 0, 2).reshape(N, b * N)
    # lines one point wide would vanish when drawn small: show the fourth root of the largest
    # weight in each block; blocks are wider than a pixel, so that no part of a line is lost. Of a
    # map that is nowhere zero, roots would show the noise
    block = max(1, N // 45)
    rows = np.maximum.reduceat(shown, np.arange(0, N, block), axis=0)
    edges = np.concatenate([k * N + np.arange(0, N, block) for k in range(b)])
    image = np.maximum.reduceat(rows, edges, axis=1) ** power
    axes.imshow(image, cmap="gray_r", aspect="auto", extent=(0, b, N, 0))
    axes.set_xticks(np.arange(b) + 0.5, [str(k) for k in range(b)])
    axes.set_xlabel("bit channel, the most significant first; pixels within each")
    axes.set_ylabel("recovered point")
    for k in range(1, b):
        axes.axvline(k, color=GREY, linewidth=0.6)


def draw_weights(axes: Axes, structure: BitStructure, slopes: ArrayLike | None = None) -> None:
    """Weights of bits by significance, the line of the fitted base, and that of base two."""
    places = np.arange(len(structure.mean))
    axes.errorbar(
        places,
        structure.mean,
        structure.deviation,
        fmt="o",
        capsize=3,
        markersize=4,
        label="weight",
    )
    seen = structure.mean > 0
    level = np.exp(np.mean(np.log(structure.mean[seen]) + places[seen] * np.log(structure.base)))
    axes.plot(places, level * structure.base**-places, color="#999999", linewidth=1, zorder=0)
    axes.plot(
        places,
        2.0**-places,
        color="black",
        linestyle=":",
        linewidth=0.8,
        zorder=0,
        label="powers of two",
    )
    if slopes is not None:
        measured = np.asarray(slopes, dtype=np.float64)
        axes.plot(
            np.arange(len(measured)),
            measured,
            "D",
            color="C1",
            fillstyle="none",
            markersize=4,
            label="measured slope",
        )
    axes.legend()
    axes.set_yscale("log")
    axes.set_xticks(places)
    axes.set_xlabel("bit, the most significant first")
    axes.set_ylabel("relative to the heaviest")
    axes.set_title(f"number system of base {structure.base:.3f}\n(bars: deviation over pixels)")


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure atomically in the suffix's format; the same figure gives the same file."""
    with write_atomically(path) as temporary:
        write_figure(figure, temporary, path.suffix[1:])


def write_figure(figure: Figure, path: Path, kind: str) -> None:
    """Write a figure as ``kind``: png (in 256 colours, a third of the size), svg or pdf."""
    with styled():
        if kind != "png":
            figure.savefig(path, format=kind, metadata=_METADATA.get(kind))
            return
        from PIL import Image

        pixels = BytesIO()
        figure.savefig(pixels, format="png")
        with Image.open(pixels) as image:
            palette = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        palette.save(path, format="png", optimize=True)
