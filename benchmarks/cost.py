"""What a step of training and a fit cost against the number of points, and the picture of it.

    python benchmarks/cost.py steps      seconds per step: as printed, ours, the diagonalisations
    python benchmarks/cost.py images [mnist27-bits]
                                         the first 200 printed steps on 27x27 images and their bits
    python benchmarks/cost.py fits       seconds per fit of the fast solver
    python benchmarks/cost.py picture    docs/images/figures/cost.png from results/cost.json

All times are processor seconds of one core. Steps are those of the preset of 63 points on lines of
other lengths, with one batch for both, so that only d differs. Steps on images have the batches of
their presets. Finished sizes are kept: delete results/cost.json to start again.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from _common import RESULTS, write
from symlift import Grid, LatentDomain
from symlift.datasets import gsn
from symlift.plotting import new_figure, styled, write_figure
from symlift.solvers.neural.data import split_held_out
from symlift.solvers.neural.objective.terms import Objective
from symlift.solvers.neural.presets import Settings
from symlift.solvers.neural.trainer import Trainer
from symlift.solvers.neural.training import _settings, starting_model
from symlift_paper import EXPERIMENTS

NAME = "cost"
SECTIONS = ("steps", "images", "fits")
BATCH, ROWS = 1_000, 5_000
SIZES = (15, 31, 63, 127, 255, 511)
KINDS = {"as printed": "paper-gsn63", "ours": "gsn63"}
#: rows of images, and the steps that are taken on each (25 minutes of a core as printed)
IMAGES, IMAGE_STEPS = ("mnist27-shuffled", "mnist27-bits"), {"as printed": 200, "ours": 10}
#: the last steps, whose terms are kept
LAST = 10
FITS = {"random rotation": (15, 31, 63), "permuted columns": (15, 31, 63, 127, 255)}


def spent(call: Callable[[], object], repeats: int) -> float:
    """Median processor seconds of a call, after one that does not count."""
    call()
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return float(f"{statistics.median(times):.4g}")


def begun(X: NDArray, grid: Grid, settings: Settings) -> Trainer:
    """A trainer before its first step."""
    start = starting_model(X, grid, settings, seed=0)
    trainer = Trainer(X, *split_held_out(len(X), np.random.default_rng(0)), start, settings, 0)
    trainer._set_rates()
    return trainer


def step_seconds(preset: str, d: int) -> float:
    """One step of the map and of all estimators."""
    grid, data = Grid(d), gsn(ROWS, d, transform="dst1", random_state=0)
    X: NDArray = np.asarray(data.X, dtype=np.float32)
    wider = d + 2 * round(18 * d / 63)  # 99 for 63
    settings = _settings(preset, {"batch": BATCH, "dimension": wider}, grid, d)
    return spent(begun(X, grid, settings).step, 9 if d < 100 else 5)


def image_steps(preset: str, name: str, count: int) -> dict[str, Any]:
    """The first ``count`` steps on a row of images, with the batch that the preset has: processor
    seconds of one (median and slowest) and of all, and the terms' means over the last few.
    """
    data = EXPERIMENTS[name].observe(0, n=ROWS)
    settings = _settings(preset, None, data.grid, data.X.shape[1], data.X)
    trainer = begun(data.X, data.grid, settings)
    times = []
    for step in range(count):
        if step == count - LAST:
            trainer.sums.zero_()
        begin = time.process_time()
        trainer.step()
        times.append(time.process_time() - begin)
    if not all(bool(p.isfinite().all()) for p in trainer.network.parameters()):
        raise SystemExit(f"{preset} on {name}: parameters are not finite after {count} steps")
    return {
        "steps": count,
        "seconds_per_step": float(f"{statistics.median(times):.4g}"),
        "slowest": float(f"{max(times):.4g}"),
        "seconds": round(sum(times), 1),
        "terms": {
            term: float(f"{value / LAST:.4g}")
            for term, value in zip(Objective.names, trainer.sums.tolist(), strict=True)
        },
    }


def diagonalisations(d: int) -> float:
    """The two of every step of the paper's, with their gradients: a Hermitian matrix of the
    augmented dimension, and the covariance of the output.
    """
    wider = d + 2 * round(18 * d / 63)
    random = torch.Generator().manual_seed(0)
    A = torch.randn(wider, wider, generator=random)
    Y = torch.randn(BATCH, d, generator=random)
    H = (1j * (A - A.T)).requires_grad_()
    C = (Y.T @ Y / BATCH).requires_grad_()

    def both() -> None:
        for matrix in (H, C):
            values, vectors = torch.linalg.eigh(matrix)
            total = values.square().sum() + vectors.abs().square().square().sum()
            torch.autograd.grad(total, matrix)

    return spent(both, 9)


def stored_results() -> dict[str, Any]:
    path = RESULTS / f"{NAME}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def keep(section: str, curve: str, size: int | str, seconds: float | dict[str, Any]) -> None:
    result = {key: value for key, value in stored_results().items() if key in SECTIONS}
    result.setdefault(section, {}).setdefault(curve, {})[str(size)] = seconds
    write(NAME, result)
    print(f"{section}: {curve}, {size}: {seconds}", flush=True)


def done(section: str, curve: str, size: int | str) -> bool:
    return str(size) in stored_results().get(section, {}).get(curve, {})


def run_steps() -> None:
    torch.set_num_threads(1)
    for d in SIZES:
        for curve, preset in KINDS.items():
            if not done("steps", curve, d):
                keep("steps", curve, d, step_seconds(preset, d))
        if not done("steps", "two diagonalisations alone", d):
            keep("steps", "two diagonalisations alone", d, diagonalisations(d))


def run_images(names: tuple[str, ...] = IMAGES) -> None:
    torch.set_num_threads(1)
    for name in names:
        for curve, preset in (("as printed", "paper"), ("ours", "ours")):
            if not done("images", curve, name):
                keep("images", curve, name, image_steps(preset, name, IMAGE_STEPS[curve]))


def run_fits() -> None:
    for curve, sizes in FITS.items():
        for d in sizes:
            if done("fits", curve, d):
                continue
            transform = "permutation" if curve == "permuted columns" else "orthogonal"
            X = gsn(20_000, d, transform=transform, random_state=0).X
            begin = time.process_time()
            LatentDomain(grid=(d,), solver="fast", random_state=0).fit(X)
            keep("fits", curve, d, float(f"{time.process_time() - begin:.4g}"))


def slope(points: dict[str, float], last: int = 3) -> float:
    """Exponent of d over the largest sizes."""
    sizes, seconds = zip(*[(int(d), s) for d, s in points.items()][-last:], strict=True)
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def picture() -> None:
    result = stored_results()
    with styled():
        figure = new_figure(7.2, 3.2)
        for place, (section, title) in enumerate(
            (("steps", f"a step of training, batch {BATCH:,}"), ("fits", "a whole fit, fast"))
        ):
            axes = figure.add_subplot(1, 2, 1 + place)
            for curve, points in result[section].items():
                d = [int(size) for size in points]
                axes.loglog(
                    d, list(points.values()), marker="o", markersize=3.5,
                    label=f"{curve}: d^{slope(points):.1f}",
                )  # fmt: skip
            axes.set_xticks([15, 31, 63, 127, 255, 511])
            axes.set_xticklabels(["15", "31", "63", "127", "255", "511"])
            axes.minorticks_off()
            axes.set_xlabel("points on the line, d")
            axes.set_ylabel("processor seconds")
            axes.set_title(title)
            axes.legend(frameon=False, loc="lower right" if place else "upper left")
        write_figure(figure, RESULTS.parents[1] / "docs/images/figures/cost.png", "png")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    runs = {"steps": run_steps, "fits": run_fits, "picture": picture}
    parser.add_argument("what", choices=(*runs, "images"))
    parser.add_argument("row", nargs="?", choices=IMAGES, help="the only row that `images` takes")
    args = parser.parse_args()
    if args.what == "images":
        run_images((args.row,) if args.row else IMAGES)
    else:
        runs[args.what]()


if __name__ == "__main__":
    main()
