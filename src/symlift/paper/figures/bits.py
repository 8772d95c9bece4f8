"""Digits emerging from scrambled bits.

Snapshots of the paper's training, and of the fast solver with increasing numbers of samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.model import LiftedModel
from symlift.metrics import align
from symlift.paper.figures.request import WIDTH, Request, recovery_of
from symlift.plotting import frame, new_figure
from symlift.solvers.fast.bit_places import place_bits, plane_correlations
from symlift.solvers.neural.data import split_held_out
from symlift.solvers.neural.presets import PRESETS, fitted, preset_for
from symlift.solvers.neural.trainer import Budget
from symlift.solvers.neural.training import train

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# a tenth of the paper's batch size: on a CPU, ten times as many steps in the same time
BATCH = 250
SNAPSHOTS = 5
# numbers of samples that bits are placed from, before all samples are used
COUNTS = (30, 60, 125, 250)
_DIGITS, _MOST_JUDGES = 2, 2_000


@dataclass(frozen=True, eq=False)
class Snapshot:
    """An intermediate lifting map and its label."""

    label: str
    W: NDArray[np.float64]
    mean: NDArray[np.float64]


def paint(request: Request) -> Figure:
    """Above, the paper's training from its own start; below, the fast solver.

    r and pictures are of held-out samples.
    """
    experiment = request.experiments[0]
    data = request.observe(experiment)
    judges = min(_MOST_JUDGES, len(data.X) // 10)
    X, unseen, latent = data.X[judges:], data.X[:judges], data.latent[:judges]
    trained = training_snapshots(X, data.grid, request)
    placed = placement_snapshots(X, data.grid, request)
    estimator = request.fit(experiment, X)
    placed.append(
        Snapshot(f"{len(X):,} samples,\nweights found", estimator.lifting_map_, estimator.mean_)
    )
    figure = new_figure(
        WIDTH,
        5.6,
        f"{data.X.shape[1]:,} scrambled bits of {data.grid} images: seed {request.seed}, r on"
        f" {judges:,} unseen samples",
    )
    shown = whole_digits(latent.reshape(-1, *data.grid.shape))
    blocks = (
        (trained, f"(a) the paper's training from its own start, n = {len(X):,}, {BATCH} a batch"),
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
        _draw_block(
            part.subplots(_DIGITS, len(snapshots) + 2), snapshots, unseen, latent, shown, data.grid
        )
    return figure


def training_snapshots(X: NDArray, grid: Grid, request: Request) -> list[Snapshot]:
    """The model at the start and at equal intervals of the training time."""
    settings = fitted(
        PRESETS[preset_for(grid, X.shape[1])].model_copy(update={"batch": BATCH}), grid, X.shape[1]
    )
    split = split_held_out(len(X), np.random.default_rng(request.seed))
    models: list[tuple[str, LiftedModel]] = []

    def start(step: int, model: LiftedModel, _: dict[str, float]) -> None:
        models.append((f"step {step},\n0 s", model))

    # at least one step, however short the time
    first = Budget(steps=1)
    trainer = train(
        X, split, grid, settings, request.seed, budget=first, progress=request.progress, watch=start
    )
    for part in range(1, SNAPSHOTS):
        trainer.run(
            Budget(seconds=(request.seconds or 0.0) * part / (SNAPSHOTS - 1)), request.progress
        )
        models.append(
            (f"step {trainer.step_count:,},\n{trainer.seconds:.0f} s", trainer.network.model())
        )
    return [Snapshot(label, m.lifting_map(), m.mean.astype(np.float64)) for label, m in models]


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


def whole_digits(images: NDArray) -> NDArray[np.int64]:
    """Indices of images (n, height, width) with much ink, and little of it on the rim."""
    ink = images.sum(axis=(1, 2))
    rim = ink - images[:, 1:-1, 1:-1].sum(axis=(1, 2))
    return np.argsort(np.where(ink >= np.quantile(ink, 0.8), rim, np.inf), kind="stable")[:_DIGITS]


def _draw_block(
    axes: Any,
    snapshots: list[Snapshot],
    unseen: NDArray,
    latent: NDArray,
    shown: NDArray,
    grid: Grid,
) -> None:
    d = unseen.shape[1]
    height = max(k for k in range(1, int(d**0.5) + 1) if d % k == 0)
    _draw_column(axes[:, 0], "as observed", unseen[shown].reshape(len(shown), height, -1))
    for column, snapshot in zip(axes[:, 1:-1].T, snapshots, strict=True):
        recovered = (unseen - snapshot.mean) @ snapshot.W.T
        r, alignment = recovery_of(latent, recovered, grid)
        pictures = align(recovered[shown], alignment, grid).reshape(-1, *grid.shape)
        blank = np.ones(grid.shape, dtype=bool)
        blank[grid.overlap([round(t) for t in alignment.shift])[1]] = False
        pictures[:, blank] = np.nan  # outside the window that was scored
        _draw_column(column, f"{snapshot.label}\nr = {r:.3f}", pictures)
    _draw_column(axes[:, -1], "truth", latent[shown].reshape(-1, *grid.shape))


def _draw_column(column: Any, title: str, pictures: NDArray) -> None:
    column[0].set_title(title, fontsize=7, loc="center")
    for axes, picture in zip(column, pictures, strict=False):
        axes.imshow(picture, cmap="gray_r", aspect="auto")
        axes.set_facecolor("#d9e8f2")
        axes.set_box_aspect(1)
        frame(axes)
