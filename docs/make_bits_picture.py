"""Draw docs/images/bits.png: digits as scrambled bits, as recovered, and as they were.

python docs/make_bits_picture.py [--side 21] [--samples 6000]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from symlift import LatentDomain
from symlift.datasets import image_crops, load_mnist, scrambled_bits
from symlift.metrics import align, signal_recovery
from symlift.plotting import STYLE, save_figure

COLUMNS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=21)
    parser.add_argument("--samples", type=int, default=6_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "images" / "bits.png")
    given = parser.parse_args()

    digits = load_mnist().images
    data = scrambled_bits(image_crops(digits, given.side, given.samples, random_state=0), random_state=0)
    start = time.process_time()
    est = LatentDomain(grid=data.grid.shape, random_state=0).fit(data.X)
    print(f"fitted in {time.process_time() - start:.0f} s of processor time")
    # other images under the same scramble; whole digits say most: much ink, and little of it on the rim
    others = scrambled_bits(image_crops(digits, given.side, 20_000, random_state=1), random_state=0)
    recovered = est.transform(others.X)
    recovery = signal_recovery(others.latent, recovered, data.grid)
    assert recovery.alignment is not None  # noqa: S101 - the global protocol always has one
    images = others.latent.reshape(-1, given.side, given.side)
    ink = images.sum(axis=(1, 2))
    rim = ink - images[:, 1:-1, 1:-1].sum(axis=(1, 2))
    shown = np.argsort(np.where(ink > np.quantile(ink, 0.8), rim, np.inf))[:COLUMNS]
    d = data.X.shape[1]
    height = max(k for k in range(1, int(d**0.5) + 1) if d % k == 0)
    rows = {
        f"{d:,} bits,\nscrambled": others.X[shown].reshape(COLUMNS, height, -1),
        "recovered": align(recovered[shown], recovery.alignment, data.grid).reshape(COLUMNS, *data.grid.shape),
        "hidden truth": images[shown],
    }
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(1.1 * COLUMNS + 1, 3.9), layout="constrained")
        FigureCanvasAgg(figure)
        grids = figure.subplots(len(rows), COLUMNS)
        for line, (label, pictures) in zip(grids, rows.items(), strict=True):
            for axes, picture in zip(line, pictures, strict=True):
                axes.imshow(picture, cmap="gray_r", interpolation="nearest", aspect="auto")
                axes.set_box_aspect(1)
                axes.set_xticks([])
                axes.set_yticks([])
                for spine in axes.spines.values():
                    spine.set(visible=True, color="#c8c8c8", linewidth=0.6)
            line[0].set_ylabel(label, rotation=0, ha="right", va="center", labelpad=8)
        figure.suptitle(f"digits from scrambled bits: r = {recovery.r:.4f}", fontsize=10)
    save_figure(figure, given.out)


if __name__ == "__main__":
    main()
