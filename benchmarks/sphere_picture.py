"""The pictures of the sphere: the turning globe of the README, and those of docs/beyond-grids.md.

    python benchmarks/sphere_picture.py [--out docs/images]

Shot noise on a sphere of degree 9, 100 dimensions behind an unknown rotation, 20,000 rows; and 60
columns at points of a sphere, in any order.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from _common import RESULTS
from symlift import LatentDomain
from symlift.core.harmonics import real_harmonics, rotation_matrix
from symlift.core.sphere import Sphere, spread_points
from symlift.datasets import sphere_noise
from symlift.metrics import signal_recovery
from symlift.metrics.sphere import to_coefficients
from symlift.plotting import plot_generators, plot_placement, plot_signals, styled

SIDE, GAP, FRAMES, TILT = 130, 18, 24, 0.35
PAPER, INK = 255, 60


def globes(c: NDArray[np.float64], sphere: Sphere, angle: float) -> list[NDArray[np.uint8]]:
    """Fields with coefficients c (n, D) on globes turned by an angle, as grey pictures."""
    at = (np.arange(SIDE) + 0.5) * 2.08 / SIDE - 1.04
    x, up = np.meshgrid(at, -at)
    inside = x * x + up * up < 1
    depth = np.sqrt(np.maximum(1 - x * x - up * up, 0))[inside]
    seen = np.stack([x[inside], -depth, up[inside]], axis=1)
    points = seen @ rotation_matrix([TILT, 0, 0]) @ rotation_matrix([0, 0, angle])
    values = c @ real_harmonics(points, sphere.known_degree).T
    pictures = []
    for field, own in zip(values, c, strict=True):
        whole = real_harmonics(sphere.points, sphere.known_degree) @ own
        unit = np.clip((field - whole.min()) / np.ptp(whole), 0, 1)
        picture = np.full((SIDE, SIDE), PAPER, dtype=np.uint8)
        picture[inside] = 235 * unit * (0.75 + 0.25 * depth)
        pictures.append(picture)
    return pictures


def raw(x: NDArray[np.float64]) -> NDArray[np.uint8]:
    """A row of 100 columns as the square of pixels that it looks like."""
    unit = (x - x.min()) / np.ptp(x)
    square = (235 * unit.reshape(10, 10)).astype(np.uint8)
    return np.kron(square, np.ones((SIDE // 10, SIDE // 10), dtype=np.uint8))


def turning_globe(path: Path) -> None:
    """Rows as they came, above, and their fields on globes that turn, below."""
    data = sphere_noise(20_000, 9, random_state=0)
    est = LatentDomain(grid="sphere", mixing="orthogonal", random_state=0).fit(data.X)
    Y = est.transform(data.X[:5000])
    print(f"{est.grid_}: r {signal_recovery(data.latent[:5000], Y, data.grid).r:.4f}")
    # of the first rows, those of most contrast
    shown = np.sort(np.argsort(-Y[:200].std(axis=1), kind="stable")[:4])
    c = to_coefficients(Y[shown], est.grid_)
    wide, tall = 4 * SIDE + 5 * GAP, 2 * SIDE + 4 * GAP
    frames = []
    for number in range(FRAMES):
        page = Image.new("L", (wide, tall), PAPER)
        pen = ImageDraw.Draw(page)
        pen.text((GAP, 3), "100 columns, mixed by an unknown rotation, as they came", fill=INK)
        pen.text((GAP, SIDE + 2 * GAP + 3), "the fields on a sphere that they are", fill=INK)
        turned = globes(c, est.grid_, 2 * np.pi * number / FRAMES)
        for k, (row, globe) in enumerate(zip(shown, turned, strict=True)):
            left = GAP + k * (SIDE + GAP)
            page.paste(Image.fromarray(raw(data.X[row].astype(float))), (left, GAP))
            page.paste(Image.fromarray(globe), (left, SIDE + 3 * GAP))
        frames.append(page.quantize(32))
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=100, loop=0)


def pages(folder: Path) -> None:
    """Three pictures for the page: fields, a generator, places."""
    import matplotlib.pyplot as plt

    data = sphere_noise(4000, 5, random_state=0)
    dense = LatentDomain(grid="sphere", mixing="orthogonal", random_state=0).fit(data.X)
    places = spread_points(60)[np.random.default_rng(0).permutation(60)]
    X = sphere_noise(3000, 7, sensors=places, noise=0.3, width=0.35, random_state=0).X
    placed = LatentDomain(grid="sphere", mixing="shuffled", random_state=0).fit(X)
    with styled():
        figure, axes = plt.subplots(1, 2, figsize=(9, 2.6), width_ratios=(2.4, 1))
        plot_signals(dense, data.X, ax=axes[0], count=5)
        plot_generators(dense, 2, ax=axes[1])
        figure.savefig(folder / "sphere-fields.png", dpi=110, bbox_inches="tight")
        figure, ax = plt.subplots(figsize=(7.5, 3.6))
        plot_placement(placed, ax=ax)
        figure.savefig(folder / "sphere-places.png", dpi=110, bbox_inches="tight")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=RESULTS.parents[1] / "docs/images")
    chosen = parser.parse_args()
    mpl.use("Agg")
    turning_globe(chosen.out / "globe.gif")
    pages(chosen.out / "figures")


if __name__ == "__main__":
    main()
