"""A camera whose pixels are wired up in unknown order: put the picture together again, from the
pictures alone.

Run: python examples/shuffled_image_sensor.py [--out FOLDER] [-n ROWS]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from symlift import LatentDomain
from symlift.datasets import image_crops, load_mnist
from symlift.metrics import align, signal_recovery
from symlift.plotting import gallery, save_figure


def main(n: int = 3000, out: Path | None = None, seed: int = 0) -> dict[str, Any]:
    """Scramble, recover, compare; returns what it prints."""
    # 15 × 15 crops at random places of digits, then one fixed shuffle of the 225 pixels
    data = image_crops(load_mnist().images, (15, 15), n, transform="permutation", random_state=seed)
    X = data.X
    print(f"{len(X)} pictures of {X.shape[1]} pixels in unknown order")

    est = LatentDomain(grid=(15, 15), random_state=seed).fit(X)
    diagnosis = est.diagnose(X)
    print(f"diagnosis: {diagnosis}")

    Y = est.transform(X)
    # each row of the lifting map reads one pixel: which column belongs to which point of the grid
    wiring = np.abs(est.lifting_map_).argmax(axis=1).reshape(est.grid_.shape)
    print(
        f"the pixel in the first corner is column {wiring[0, 0]}, its neighbour is column"
        f" {wiring[0, 1]}"
    )

    # only because this example knows the truth: compare, up to reflections, transposition and sign
    recovery = signal_recovery(data.latent, Y, data.grid)
    print(f"correlation with the hidden pictures: r = {recovery.r:.4f}")

    # moved one pixel along the first axis and read again: the picture moves, on the pixels that it
    # does not leave
    moved = est.to_grid(est.transform(est.shift(X[:500], (1, 0))))
    still = est.to_grid(Y[:500])
    same = float(np.corrcoef(moved[:, 1:].ravel(), still[:, :-1].ravel())[0, 1])
    print(f"a shift by one pixel, read again: r = {same:.4f} with the picture moved by one pixel")

    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        shown = np.argsort(-data.latent[:500].var(axis=1))[:8]
        assert recovery.alignment is not None
        rows: dict[str, Any] = {
            "as wired": X[shown],
            "recovered": align(Y[shown], recovery.alignment, data.grid),
            "hidden": data.latent[shown],
        }
        save_figure(
            gallery(rows, data.grid, title=f"shuffled pixels: r = {recovery.r:.3f}"),
            out / "image_sensor.png",
        )
        print(f"picture: {out / 'image_sensor.png'}")
    return {"r": float(recovery.r), "verdict": diagnosis.verdict, "shift": same}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("-n", type=int, default=3000, help="number of pictures")
    parser.add_argument("--out", type=Path, help="folder for the figure")
    arguments = parser.parse_args()
    main(arguments.n, arguments.out)
