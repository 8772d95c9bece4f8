"""The picture of docs/decisions/0006: digits and garments, behind a random rotation, and recovered.

    python benchmarks/dense_picture.py [--out docs/images/figures/dense.png]

Data, mixing and fit are those of seed 0 of the rows "MNIST 8x8" and "Fashion-MNIST 8x8" of
dense.py.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

import dense
from _common import RESULTS
from symlift import LatentDomain
from symlift.datasets import Observations
from symlift.metrics import signal_recovery
from symlift.metrics.alignment import align

ROWS = ("MNIST 8x8", "Fashion-MNIST 8x8")
SHOWN = 8


def recovered(data: Observations) -> NDArray[np.float64]:
    """All rows as a fit of them gives them back, turned and signed as the latent ones, at their
    mean and scale.
    """
    estimator = LatentDomain(grid=data.grid.shape, solver="fast", random_state=0).fit(data.X)
    Y = estimator.transform(data.X)
    recovery = signal_recovery(data.latent, Y, data.grid)
    if recovery.alignment is not None:
        Y = align(Y, recovery.alignment, data.grid)
    slope, level = np.polyfit(Y.ravel(), np.asarray(data.latent, dtype=np.float64).ravel(), 1)
    print(f"{data.name}: r {recovery.r:.4f}, detail {recovery.r_detail:.4f}")
    return slope * Y + level


def clearest(latent: NDArray, count: int) -> NDArray[np.int64]:
    """Of the first rows, those of most contrast: an empty corner says nothing to the eye."""
    return np.sort(np.argsort(-latent[:200].std(axis=1), kind="stable")[:count])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--out", type=Path, default=RESULTS.parents[1] / "docs/images/figures/dense.png"
    )
    arguments = parser.parse_args()
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        3, SHOWN * len(ROWS), figsize=(9.6, 2.0), gridspec_kw={"wspace": 0.08, "hspace": 0.08}
    )
    for block, name in enumerate(ROWS):
        data = dense.rows()[name].make(0)
        back = recovered(data)
        for column, row in enumerate(clearest(np.asarray(data.latent), SHOWN), start=block * SHOWN):
            mixed = data.X[row]
            pictures = (
                (data.latent[row], 0, 1),
                (mixed, mixed.min(), mixed.max()),
                (back[row], 0, 1),
            )
            for axis, (values, low, high) in zip(axes[:, column], pictures, strict=True):
                axis.imshow(np.reshape(values, data.grid.shape), cmap="gray", vmin=low, vmax=high)
                axis.set_axis_off()
    for axis, label in zip(axes[:, 0], ("images", "mixed", "recovered"), strict=True):
        axis.text(-0.25, 0.5, label, transform=axis.transAxes, ha="right", va="center", fontsize=9)
    figure.savefig(arguments.out, dpi=130, bbox_inches="tight", facecolor="white")


if __name__ == "__main__":
    main()
