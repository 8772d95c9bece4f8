"""A module of grid cells: find the two angles behind the spikes, without the position of the
animal, and test whether they are real.

Run: python examples/grid_cells.py [--out FOLDER] [-n ROWS]
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift import LatentDomain
from symlift.datasets import ring_population, torus_population
from symlift.errors import FitWarning
from symlift.metrics import torus_correlation
from symlift.plotting import save_figure


def main(n: int = 5000, out: Path | None = None, seed: int = 0) -> dict[str, Any]:
    """Find the torus of grid cells, then ask for one where there is only a ring; returns what it
    prints.
    """
    warnings.simplefilter("ignore", FitWarning)
    data = torus_population(
        n, 60, rate=8.0, random_state=seed
    )  # spike counts; data.latent holds the angles, and is not looked at
    print(f"{n} rows of {data.X.shape[1]} cells, {data.X.mean():.1f} spikes a cell and row")

    est = LatentDomain(grid=(20, 20), periodic=True, solver="ring", random_state=seed).fit(data.X)
    diagnosis = est.diagnose(data.X)
    print(f"diagnosis: {diagnosis}")

    phase = est.phase(data.X)  # (n, 2), in radians
    # only because this example knows the truth: any two generators of the lattice are as good as
    # any other
    correlation = min(torus_correlation(data.latent, phase))
    print(f"circular correlation with the true angles: {correlation:.3f} at least")

    moved = est.shift(data.X, (5, 0))  # a quarter of the first axis
    turned = np.angle(np.exp(1j * (est.phase(moved) - phase)))
    print(
        f"moved by 5 of 20 steps, the first angle turns by {np.rad2deg(turned[:, 0]).mean():.0f}"
        " degrees"
    )

    ring = ring_population(n, 60, random_state=seed).X
    other = (
        LatentDomain(grid=(20, 20), periodic=True, solver="ring", random_state=seed)
        .fit(ring)
        .diagnose(ring)
    )
    print(
        f"head-direction cells instead: {other.verdict.value}; next step:"
        f" {other.next_steps[0].text}"
    )
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        draw(data.X, phase, out / "grid_cells.png")
    return {"correlation": correlation, "verdict": diagnosis.verdict, "other": other}


def draw(X: NDArray, phase: NDArray, path: Path, bins: int = 15) -> None:
    """Mean counts of eight cells over the two angles that were found: each has one bump, which
    wraps.
    """
    import matplotlib.pyplot as plt

    place = np.floor(np.mod(phase, 2 * np.pi) / (2 * np.pi) * bins).astype(int) % bins
    flat = place[:, 0] * bins + place[:, 1]
    rows = np.maximum(np.bincount(flat, minlength=bins**2), 1)
    figure, axes = plt.subplots(2, 4, figsize=(8, 4.2), layout="constrained")
    for axis, cell in zip(axes.flat, np.argsort(-X.var(axis=0)), strict=False):
        mean = np.bincount(flat, X[:, cell], minlength=bins**2) / rows
        axis.imshow(mean.reshape(bins, bins), origin="lower", extent=(0, 360, 0, 360))
        axis.set(title=f"cell {cell}", xticks=[0, 360], yticks=[0, 360])
    figure.supxlabel("second angle, degrees")
    figure.supylabel("first angle, degrees")
    save_figure(figure, path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("-n", type=int, default=5000, help="number of rows")
    parser.add_argument("--out", type=Path, help="folder for the figure")
    arguments = parser.parse_args()
    main(arguments.n, arguments.out)
