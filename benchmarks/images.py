"""Shuffled pixels of photographs: how many find their points, in what time and memory.

    python benchmarks/images.py                 all sizes, and the table of docs/image-data.md
    python benchmarks/images.py 16x16x3 …       some of them

Windows of scikit-image's colour photographs (grey where there is one channel), half of them
mirrored, as single precision; pixels and channels are shuffled together. Every fit has a process of
its own: processor seconds of the fit with its quick check, the largest resident memory with all
imports, the share of the columns at their points, up to the symmetries of the grid, and for several
channels the share of pairs at one point whose channels are those of the photographs.
What is refused is there with the seconds until then.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import _common
from _array_cases import COLOUR, picture

NAME = "images"
#: side, channels and rows
SIZES = {
    "8x8": (8, 1, 3_000),
    "16x16": (16, 1, 3_000),
    "32x32": (32, 1, 3_000),
    "64x64": (64, 1, 3_000),
    "8x8x3": (8, 3, 3_000),
    "12x12x3": (12, 3, 3_000),
    "16x16x3": (16, 3, 3_000),
    "20x20x3": (20, 3, 3_000),
    "32x32x3": (32, 3, 3_000),
    "64x64x3": (64, 3, 1_000),
}
_FIT = """
import json, sys, time, warnings
import numpy as np
from symlift import LatentDomain
from symlift.errors import InputError
from symlift.metrics.placement import placement_agreement
import symlift.solvers.fast.pipeline, symlift.diagnosis.examine
path, side, channels = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
X = np.load(path, mmap_mode="r")
order = np.load(path.replace("x.npy", "order.npy"))
warnings.simplefilter("ignore")
begin = time.process_time()
out = {}
try:
    est = LatentDomain(
        (side, side), channels=channels, mixing="shuffled", random_state=0
    ).fit(X)
    p = est.placement_
    out["placed"] = placement_agreement(p.point, order // channels, est.grid_)
    out["confidence"] = est.evidence_.confidence
    if channels > 1:
        names = [p.channel[order % channels == c] for c in range(channels)]
        out["channels"] = float(np.mean([np.bincount(one).max() / len(one) for one in names]))
except InputError as error:
    out["refused"] = str(error)
lines = open("/proc/self/status").read().splitlines()
peak = next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
seconds = round(time.process_time() - begin, 2)
print(json.dumps({"cpu_seconds": seconds, "peak_mb": round(peak), **out}))
"""


def windows(n: int, side: int, channels: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Windows of photographs, (n, side · side · channels)."""
    pictures = [picture(name, colour=True) / 255 for name in COLOUR]
    out = np.empty((n, side, side, channels), dtype=np.float32)
    for row in range(n):
        whole = pictures[rng.integers(len(pictures))]
        top, left = (rng.integers(length - side) for length in whole.shape[:2])
        one = whole[top : top + side, left : left + side, :3]
        one = one[:, ::-1] if rng.random() < 0.5 else one
        out[row] = one if channels == 3 else one.mean(axis=-1, keepdims=True)
    return out.reshape(n, -1)


def run(side: int, channels: int, n: int, seed: int) -> dict[str, Any]:
    """One fit of shuffled columns."""
    rng = np.random.default_rng(seed)
    rows = windows(n, side, channels, rng)
    order = rng.permutation(rows.shape[1])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npy"
        np.save(path, rows[:, order])
        np.save(path.with_name("order.npy"), order)
        child = subprocess.run(
            [sys.executable, "-c", _FIT, str(path), str(side), str(channels)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return {"seed": seed, **json.loads(child.stdout)}


def table(rows: dict[str, Any]) -> str:
    """The rows as the page has them, medians over the seeds."""
    lines = [
        "| size | columns | rows | in place | seconds | memory |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, row in rows.items():
        fits = row["fits"]
        seconds = float(np.median([fit["cpu_seconds"] for fit in fits]))
        memory = float(np.median([fit["peak_mb"] for fit in fits])) / 1024
        if "refused" in fits[0]:
            placed, memory_words = "refused in one line", ""
        else:
            placed = f"{np.median([fit['placed'] for fit in fits]):.3f}"
            memory_words = f"{memory:.1f} GB"
        lines.append(
            f"| {name.replace('x', '×')} | {row['columns']:,} | {row['n']:,} | {placed} |"
            f" {seconds:.2g} | {memory_words} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run sizes, keep the results, print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=list(SIZES))
    parser.add_argument("--seeds", type=int, default=3)
    asked = parser.parse_args()
    path = _common.RESULTS / f"{NAME}.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() else {}
    for name in asked.names:
        side, channels, n = SIZES[name]
        fits = []
        for seed in range(asked.seeds):
            fits.append(run(side, channels, n, seed))
            print(f"{name}: {fits[-1]}", flush=True)
        rows[name] = {"n": n, "columns": side * side * channels, "fits": fits}
        _common.write(NAME, {"rows": {key: rows[key] for key in SIZES if key in rows}})
    print(table({key: rows[key] for key in SIZES if key in rows}))


if __name__ == "__main__":
    main()
