"""Real data: digits whose pixels or bits were scrambled, and neural recordings.

    python benchmarks/real_data.py images [--seeds 5] [--only bits]
    python benchmarks/real_data.py recordings              what `benchmarks/recordings.py` measures

Rows of the paper with five scrambles each, and what goes beyond it with three. Each run is a
process of its own, so that its peak memory is its own, data included. A seed fixes crops, scramble
and solver; a solver sees X and the grid only. MNIST is read from the folder that SYMLIFT_DATA
names. Results go to results/real_data_images.json, run by run, so an interrupted run goes on where
it stopped (delete the file to start again). ``seconds`` is wall clock, ``cpu_seconds`` what the
process itself used: on a busy machine they differ.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np

import recordings
from _common import RESULTS, write
from symlift import LatentDomain
from symlift.datasets import Observations, ScrambledBits, image_crops, load_mnist, scrambled_bits
from symlift.metrics import bit_structure, generator_similarity, signal_recovery
from symlift_paper.runner import peak_rss_mb

NAME, N = "real_data_images", 50_000
FIRST = 10  # seeds below were used while the solver was designed
Row = dict[str, Any]


def rows() -> dict[str, Row]:
    """name → what to make, how many scrambles, what the paper reports, and the targets."""
    paper15: Row = {"r": 0.995, "similarity": [0.921, 0.949], "gpu_hours": 41}
    paper27: Row = {"r": 0.947, "similarity": [0.718, 0.716], "gpu_hours": 132}
    return {
        "MNIST 15x15, shuffled": {
            "side": 15,
            "paper": paper15,
            "target": {"r": 0.999, "seconds": 10},
        },
        "MNIST 27x27, shuffled": {
            "side": 27,
            "paper": paper27,
            "target": {"r": 0.99, "seconds": 120},
        },
        "MNIST 15x15, bits": {
            "side": 15,
            "bits": {},
            "paper": {"r": 0.944, "gpu_hours": 8},
            "target": {"r": 0.99, "seconds": 60},
        },
        "MNIST 27x27, bits": {
            "side": 27,
            "bits": {},
            "paper": {"r": 0.941, "gpu_hours": 28},
            "target": {"r": 0.98, "seconds": 600},
        },
        "MNIST 15x15, bits, half of them inverted": {
            "side": 15,
            "bits": {"inverted": 0.5},
            "seeds": 3,
        },
        "MNIST 15x15, 5 to 8 bits a pixel": {"side": 15, "bits": {"fewest": 5}, "seeds": 3},
        "MNIST 15x15, 4 bits a pixel": {"side": 15, "bits": {"bits_per_pixel": 4}, "seeds": 3},
        "MNIST 15x15, 12 bits a pixel": {
            "side": 15,
            "bits": {"bits_per_pixel": 12},
            "subpixel": True,
            "seeds": 3,
        },
        "MNIST 15x15, bits, 5,000 samples": {"side": 15, "bits": {}, "n": 5_000, "seeds": 3},
    }


def observe(row: Row, seed: int) -> Observations:
    crops = image_crops(
        load_mnist().images,
        row["side"],
        row.get("n", N),
        random_state=seed,
        subpixel=row.get("subpixel", False),
        transform="identity" if "bits" in row else "permutation",
    )
    return scrambled_bits(crops, **row["bits"], random_state=seed) if "bits" in row else crops


def measure(row: Row, seed: int) -> dict[str, Any]:
    """Fit and score one data set in this process."""
    start = time.perf_counter()
    data = observe(row, seed)
    made = time.perf_counter() - start
    estimator = LatentDomain(grid=data.grid.shape, solver="fast", random_state=seed)
    start, cpu = time.perf_counter(), time.process_time()
    estimator.fit(data.X)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = peak_rss_mb()
    recovery = signal_recovery(data.latent, estimator.transform(data.X), data.grid)
    result: dict[str, Any] = {
        "seed": seed, "n": len(data.X), "d": int(data.X.shape[1]), "r": round(float(recovery.r), 5),
        "r_per_sample": round(float(recovery.r_per_sample), 5), "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2), "seconds_to_make_data": round(made, 2), "peak_rss_mb": peak,
    }  # fmt: skip
    if data.transform is not None:
        options: dict[str, dict[str, Any]] = {
            "similarity": {},
            "similarity_half": {"bandwidth": 0.5},
            "similarity_exact": {"truth": "exact"},
        }
        for name, option in options.items():
            scores = generator_similarity(
                estimator.generators_, data.transform, data.grid, **option
            )
            result[name] = [round(float(s), 5) for s in scores]
    if isinstance(data, ScrambledBits):
        truth = bit_structure(estimator.model_, data.order, data.bits_per_pixel)
        slopes = list(estimator.evidence_.bit_slopes)
        result["base"] = round(truth.base, 4)
        result["weight_mean"], result["weight_deviation"] = (
            truth.mean.round(5).tolist(),
            truth.deviation.round(5).tolist(),
        )
        # what the data said before weights were rounded to powers of two: the four heaviest, the
        # others drown in noise
        result["base_of_slopes"] = round(
            float(np.exp(-np.polyfit(np.arange(4), np.log(slopes[:4]), 1)[0])), 4
        )
    return result


def run_images(seeds: int, only: str) -> None:
    path = RESULTS / f"{NAME}.json"
    table: dict[str, Any] = json.loads(path.read_text())["table"] if path.exists() else {}
    for name, row in rows().items():
        if only not in name:
            continue
        runs = table.get(name, {}).get("runs", [])
        for seed in range(FIRST + len(runs), FIRST + min(seeds, row.get("seeds", seeds))):
            command = [sys.executable, __file__, "images", "--one", name, "--seed", str(seed)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            runs.append(json.loads(done.stdout.splitlines()[-1]))
            summary: dict[str, Any] = {
                key: row[key] for key in ("paper", "target") if key in row
            } | {
                "median_r": statistics.median(run["r"] for run in runs),
                "worst_r": min(run["r"] for run in runs),
                "median_seconds": statistics.median(run["seconds"] for run in runs),
                "slowest_seconds": max(run["seconds"] for run in runs),
                "median_cpu_seconds": statistics.median(run["cpu_seconds"] for run in runs),
                "peak_rss_mb": max(run["peak_rss_mb"] or 0 for run in runs),
            }
            table[name] = {**summary, "runs": runs}
            write(NAME, {"n": N, "table": table})
            print(
                f"{name:42} seed {seed}  r {runs[-1]['r']:.5f}  {runs[-1]['seconds']:.1f} s",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    images = commands.add_parser("images", help="shuffled pixels and scrambled bits")
    images.add_argument("--seeds", type=int, default=5)
    images.add_argument("--only", default="", help="rows whose name contains this")
    images.add_argument("--one", help="measure one row here, for one --seed, and print it")
    images.add_argument("--seed", type=int, default=0)
    commands.add_parser("recordings", help="rings of tuned neurons")
    given = parser.parse_args()
    if given.command == "recordings":
        recordings.main([])
    elif given.one:
        print(json.dumps(measure(rows()[given.one], given.seed)))
    else:
        run_images(given.seeds, given.only)


if __name__ == "__main__":
    main()
