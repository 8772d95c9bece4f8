"""Permuted MNIST, undone: `examples/permuted_mnist.py` in full, three seeds.

    python benchmarks/permuted_digits.py [--out FOLDER]

Each seed draws its own shuffle, its own start of the networks and its own order of images. MNIST is
read from the folder that ``SYMLIFT_DATA`` names.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from _common import write

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

from permuted_mnist import main as run

NAME = "permuted_mnist"
SEEDS = range(3)
EPOCHS = 2


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean accuracy, its spread over seeds, and training time of each network."""
    table = {}
    for name in runs[0]["curves"]:
        last = [100 * one["curves"][name]["accuracy"][-1] for one in runs]
        table[name] = {
            "accuracy": [round(value, 2) for value in last],
            "mean": round(float(np.mean(last)), 3),
            "spread": round(float(np.ptp(last)), 3),
            "seconds": round(float(np.median([one["curves"][name]["seconds"] for one in runs])), 1),
        }
    return table


def draw(one: dict[str, Any], path: Path) -> None:
    """Digits as they came, as recovered and as they were, and the accuracy while networks were
    trained.
    """
    shuffled, original = (images[:8] for images in one["shown"])
    figure = plt.figure(figsize=(10, 3.4), layout="constrained")
    left, right = np.ravel(np.asarray(figure.subfigures(1, 2, width_ratios=(1.5, 1))))
    rows = {
        "shuffled": shuffled,
        "recovered": one["estimator"].transform(shuffled),
        "original": original,
    }
    axes = left.subplots(3, len(shuffled), squeeze=False)
    for line, (name, images) in zip(axes, rows.items(), strict=True):
        for axis, image in zip(line, images, strict=True):
            axis.imshow(image.reshape(28, 28), cmap="gray")
            axis.set(xticks=[], yticks=[])
        line[0].set_ylabel(name)
    axis = right.subplots()
    for name, curve in one["curves"].items():
        axis.plot(curve["images"], [100 * value for value in curve["accuracy"]], label=name)
    axis.set(xlabel="training images seen", ylabel="test accuracy, %", ylim=(85, 100))
    axis.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main(out: Path | None = None) -> None:
    start, runs = time.perf_counter(), []
    for seed in SEEDS:
        runs.append(run(epochs=EPOCHS, seed=seed))
        result = {
            "seeds": list(SEEDS)[: len(runs)],
            "epochs": EPOCHS,
            "placed": [round(one["placed"], 4) for one in runs],
            "seconds to place": [round(one["seconds"], 1) for one in runs],
            "networks": summary(runs),
            "seconds": round(time.perf_counter() - start, 1),
            "curves": [one["curves"] for one in runs],
        }
        print(write(NAME, result), result["networks"], flush=True)
    if out is not None:
        draw(runs[0], out / "permuted_mnist.png")


if __name__ == "__main__":
    main(Path(sys.argv[sys.argv.index("--out") + 1]) if "--out" in sys.argv else None)
