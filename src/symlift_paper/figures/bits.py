"""Digits emerging from scrambled bits.

Snapshots of our training, and of the fast solver with increasing numbers of samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.datasets import load_mnist
from symlift.datasets.bits import ScrambledBits
from symlift.metrics import align
from symlift.plotting import frame, new_figure
from symlift.solvers.fast.bit_places import place_bits, plane_correlations
from symlift_paper.figures.bit_training import Snapshot, train_on_bits
from symlift_paper.figures.request import WIDTH, Request, recovery_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# numbers of samples that bits are placed from, before all samples are used
COUNTS = (30, 60, 125, 250)
_DIGITS = 2


def paint(request: Request) -> Figure:
    """Above, our training from the paper's start; below, the fast solver.

    Pictures are of digits, cut into windows of which each was scrambled and lifted by itself; r is
    of held-out samples.
    """
    run = train_on_bits(request)
    data = run.data
    X = data.X[run.judges :]
    placed = placement_snapshots(X, data.grid, request)
    experiment = request.experiments[0].model_copy(update={"shape": data.grid.shape})
    estimator = request.fit(experiment, X)
    placed.append(
        Snapshot(f"{len(X):,} samples,\nweights found", estimator.lifting_map_, estimator.mean_)
    )
    figure = new_figure(
        WIDTH,
        5.3,
        f"{data.X.shape[1]:,} scrambled bits of {data.grid} images: n = {len(X):,}, seed"
        f" {request.seed}, r on {run.judges:,} unseen samples",
    )
    blocks = (
        (
            run.snapshots(),
            (
                f"(a) our training from the paper's start: the last of {run.draws} draws,"
                f" {run.steps:,} steps in all"
            ),
        ),
        (
            placed,
            (
                "(b) the fast solver: bits in place from few samples, all weighing the same; then"
                " all samples"
            ),
        ),
    )
    parts: Any = figure.subfigures(2, 1)
    for part, (snapshots, title) in zip(parts, blocks, strict=True):
        part.suptitle(title, fontsize=8)
        _draw_block(part.subplots(_DIGITS, len(snapshots) + 2), snapshots, data, run.judges)
    return figure


def placement_snapshots(X: NDArray, grid: Grid, request: Request) -> list[Snapshot]:
    """The fast solver's places of bits from the first few samples, with weights ±1.

    They are shown whether or not the solver would accept them.
    """
    snapshots = []
    for count in (count for count in COUNTS if count < len(X)):
        request.progress(f"placing bits from {count} samples", None)
        places, _ = place_bits(
            plane_correlations(X[:count].T), grid, np.random.default_rng(request.seed)
        )
        W = np.zeros((grid.size, X.shape[1]))
        W[places.point, np.arange(X.shape[1])] = np.where(places.strength < 0, -1.0, 1.0)
        snapshots.append(
            Snapshot(f"{count} samples,\nequal weights", W, X.mean(axis=0, dtype=np.float64))
        )
    return snapshots


def windows_of(images: NDArray, shape: Sequence[int]) -> NDArray:
    """The middles of images (m, height, width) as windows of ``shape``: (m, rows, columns, *shape).

    >>> windows_of(np.arange(20).reshape(1, 5, 4), (2, 2))[0, 1, 0].tolist()
    [[8, 9], [12, 13]]
    """
    m, (h, w) = len(images), shape
    rows, columns = images.shape[1] // h, images.shape[2] // w
    top, left = (images.shape[1] - rows * h) // 2, (images.shape[2] - columns * w) // 2
    middle = images[:, top : top + rows * h, left : left + columns * w]
    return middle.reshape(m, rows, h, columns, w).swapaxes(2, 3)


def joined(windows: NDArray) -> NDArray:
    """Images (m, height, width) of their windows (m, rows, columns, h, w).

    >>> joined(windows_of(np.arange(16).reshape(1, 4, 4), (2, 2)))[0, 0].tolist()
    [0, 1, 2, 3]
    """
    m, rows, columns, h, w = windows.shape
    return windows.swapaxes(2, 3).reshape(m, rows * h, columns * w)


def observed_bits(values: NDArray, data: ScrambledBits) -> NDArray[np.float64]:
    """Whole numbers (n, points) as the columns of ``data`` would show them, (n, d)."""
    b = data.bits_per_pixel
    bits = values[:, data.order // b].astype(np.int64) >> (b - 1 - data.order % b)
    return (bits & 1).astype(np.float64)


def _draw_block(axes: Any, snapshots: list[Snapshot], data: ScrambledBits, judges: int) -> None:
    unseen, latent, grid = data.X[:judges], data.latent[:judges], data.grid
    windows = windows_of(load_mnist().images[:_DIGITS], grid.shape)
    shown = observed_bits(windows.reshape(-1, grid.size), data)
    d = unseen.shape[1]
    height = max(k for k in range(1, int(d**0.5) + 1) if d % k == 0)
    pages = shown.reshape(*windows.shape[:3], height, d // height)
    _draw_column(axes[:, 0], "as observed", joined(pages))
    for column, snapshot in zip(axes[:, 1:-1].T, snapshots, strict=True):
        r, alignment = recovery_of(latent, (unseen - snapshot.mean) @ snapshot.W.T, grid)
        pictures = align((shown - snapshot.mean) @ snapshot.W.T, alignment, grid)
        pictures = pictures.reshape(windows.shape)
        blank = np.ones(grid.shape, dtype=bool)
        blank[grid.overlap([round(t) for t in alignment.shift])[1]] = False
        pictures[..., blank] = np.nan  # outside the window that was scored
        _draw_column(column, f"{snapshot.label}\nr = {r:.3f}", joined(pictures))
    _draw_column(axes[:, -1], "truth", joined(windows))


def _draw_column(column: Any, title: str, pictures: NDArray) -> None:
    column[0].set_title(title, fontsize=7, loc="center")
    for axes, picture in zip(column, pictures, strict=True):
        axes.imshow(picture, cmap="gray_r", aspect="auto")
        axes.set_facecolor("#d9e8f2")
        axes.set_box_aspect(1)
        frame(axes)
