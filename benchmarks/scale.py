"""Very many columns: how many find their points, in what time and memory.

    python benchmarks/scale.py 64x64 128x128 …      those rows
    python benchmarks/scale.py                      all rows that take minutes
    python benchmarks/scale.py stream               partial_fit: two columns are exchanged
    python benchmarks/scale.py 512x512 --seeds 1

Rows are mixtures of dead leaves (`_leaves.py`) or of scikit-image's pictures, shuffled, in a memory
map. Every fit has a process of its own: processor seconds, the largest resident memory with all
that was imported (pages of the file included), and the share of the columns at their points, up to
the symmetries of the grid. Next to it the floor: reading the rows and one covariance (up to 4,096
columns) or one random projection to 64 numbers. Seeds that are finished are kept in
results/scale.json: delete it to start again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import _common
from _array_cases import picture
from _leaves import gallery, rows

NAME, PICTURES = "scale", 200


@dataclass(frozen=True)
class Row:
    """Shape of the array, number of rows, seeds, and what is asked for."""

    shape: tuple[int, ...]
    n: int
    seeds: int = 3
    dtype: str = "float32"
    photographs: bool = False
    placed: float = 0.0
    seconds: float | None = None
    memory_gb: float | None = None


ROWS = {
    "64x64": Row((64, 64), 20_000, placed=1.0, memory_gb=1),
    "128x128": Row((128, 128), 4_000, placed=0.999, seconds=60, memory_gb=2),
    "256x256": Row((256, 256), 4_000, 1, placed=0.995, seconds=480, memory_gb=4),
    "512x512": Row((512, 512), 2_000, 1, placed=0.99, seconds=1_500, memory_gb=6),
    "1024x1024": Row((1_024, 1_024), 1_000, 1, "float16", False, 0.98, 5_400, 12),
    "line of 100,000": Row((100_000,), 2_000, 3, placed=0.999, seconds=300, memory_gb=4),
    "48x48x48": Row((48, 48, 48), 4_000, 1, placed=0.999, seconds=900, memory_gb=4),
    "photographs 64x64": Row((64, 64), 4_000, photographs=True),
    "photographs 128x128": Row((128, 128), 4_000, photographs=True),
}
QUICK = ("64x64", "128x128", "256x256", "line of 100,000", "photographs 64x64", "stream")
PHOTOGRAPHS = ("camera", "astronaut", "coffee", "chelsea", "rocket", "motorcycle", "moon", "coins")

_FIT = """
import json, sys, time, warnings
import numpy as np
from symlift import LatentDomain
from symlift.metrics.placement import placement_agreement
import symlift.solvers.fast.pipeline, symlift.diagnosis.examine
def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
path, shape = sys.argv[1], json.loads(sys.argv[2])
X = np.load(path, mmap_mode="r")
warnings.simplefilter("ignore")
begin, wall = time.process_time(), time.perf_counter()
est = LatentDomain(shape, mixing="shuffled", random_state=0).fit(X)
seconds, wall = time.process_time() - begin, time.perf_counter() - wall
truth = np.load(path.replace("x.npy", "order.npy"))
e = est.evidence_
print(json.dumps({
    "placed": placement_agreement(est.placement_.point, truth, est.grid_),
    "cpu_seconds": round(seconds, 1), "wall_seconds": round(wall, 1), "peak_mb": round(peak()),
    "found": bool(e.found), "explained": e.explained, "ceiling": e.ceiling,
    "confidence": e.confidence,
}))
"""
_FLOOR = """
import sys, time
import numpy as np
X = np.load(sys.argv[1], mmap_mode="r")
n, d = X.shape
begin = time.process_time()
batches = (np.asarray(X[a : a + 500], dtype=np.float32) for a in range(0, n, 500))
if d <= 4_096:
    c = np.zeros((d, d), dtype=np.float32)
    for x in batches:
        c += x.T @ x
else:
    R = np.random.default_rng(0).standard_normal((d, 64), dtype=np.float32)
    for x in batches:
        x @ R
print(time.process_time() - begin)
"""


def photographs(row: Row, rng: np.random.Generator) -> list[Any]:
    """scikit-image's own pictures at several scales, each larger than a window."""
    from scipy.ndimage import zoom

    pictures = []
    for name in PHOTOGRAPHS:
        grey = picture(name)
        grey = (grey - grey.mean()) / grey.std()
        for _ in range(3):
            least = 1.2 * max(row.shape) / min(grey.shape)
            scale = float(np.clip(rng.uniform(0.6, 1.2), least, None))
            pictures.append(zoom(grey, scale, order=1).astype(np.float32))
    return pictures


def write_rows(row: Row, seed: int, folder: Path) -> None:
    """The shuffled array as ``x.npy``, and the true point of each column as ``order.npy``."""
    rng = np.random.default_rng(seed)
    d = int(np.prod(row.shape))
    pictures = (photographs if row.photographs else _drawn)(row, rng)
    order = rng.permutation(d)
    out = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype=row.dtype, shape=(row.n, d))
    for i, one in enumerate(rows(row.n, row.shape, pictures, rng)):
        out[i] = one[order]
    out.flush()
    np.save(folder / "order.npy", order)


def _drawn(row: Row, rng: np.random.Generator) -> list[Any]:
    return gallery(PICTURES, row.shape, rng)


def run(name: str, row: Row, seed: int) -> dict[str, Any]:
    """One fit, and its floor."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        write_rows(row, seed, Path(folder))
        print(f"{name}, seed {seed}: rows in {time.perf_counter() - begin:.0f} s", flush=True)
        path = str(Path(folder) / "x.npy")
        fit = _output(_FIT, path, json.dumps(list(row.shape)))
        floor = float(_output(_FLOOR, path))
    result = {"seed": seed, **json.loads(fit), "floor_seconds": round(floor, 2)}
    return result | {"ratio": round(result["cpu_seconds"] / max(floor, 1e-9), 1)}


def stream(seed: int, shape: tuple[int, int] = (32, 32), batches: int = 100) -> dict[str, Any]:
    """`LatentDomain.partial_fit` on batches of 200 rows; two columns are exchanged after batch 60,
    neighbours for odd seeds.
    """
    from symlift import LatentDomain
    from symlift.errors import FitWarning
    from symlift.metrics.placement import placement_agreement

    rng, d, size = np.random.default_rng(seed), shape[0] * shape[1], 200
    pictures = gallery(PICTURES, shape, rng)
    order = rng.permutation(d)
    X = np.stack(list(rows(batches * size, shape, pictures, rng)))[:, order]
    one, other = (int(k) for k in rng.choice(d, 2, replace=False))
    if seed % 2:
        beside = order[one] + (1 if order[one] % shape[1] == 0 else -1)
        other = int(np.flatnonzero(order == beside)[0])
    X[60 * size :, [one, other]] = X[60 * size :, [other, one]]
    est = LatentDomain(shape, mixing="shuffled", random_state=0)
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        for batch in np.split(X, batches):
            est.partial_fit(batch)
    order[[one, other]] = order[[other, one]]
    noticed, placement = est.stream_.exchanges, est.placement_
    return {
        "seed": seed,
        "neighbours": bool(seed % 2),
        "noticed_in_batch": [e.batch for e in noticed],
        "right_columns": [set(e.columns) == {one, other} for e in noticed],
        "placed_afterwards": placement_agreement(placement.point, order, est.grid_)
        if placement is not None
        else 0.0,
        "cpu_seconds": round(time.process_time() - begin, 1),
    }


def _output(code: str, *arguments: str) -> str:
    child = subprocess.run(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True, check=True
    )
    return child.stdout


def main() -> None:
    """Run what is not finished, and keep it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", default=QUICK)
    parser.add_argument("--seeds", type=int)
    asked = parser.parse_args()
    path = _common.RESULTS / f"{NAME}.json"
    for name in asked.names:
        if name == "stream":
            for seed in range(asked.seeds or 4):
                known = json.loads(path.read_text())["rows"] if path.exists() else {}
                fits = known.setdefault(name, {"fits": []})["fits"]
                if seed not in {fit["seed"] for fit in fits}:
                    fits.append(stream(seed))
                    print(f"stream: {fits[-1]}", flush=True)
                    _common.write(NAME, {"rows": known})
            continue
        row = ROWS[name]
        for seed in range(asked.seeds or row.seeds):
            known = json.loads(path.read_text())["rows"] if path.exists() else {}
            mine = known.setdefault(name, {"n": row.n, "d": int(np.prod(row.shape)), "fits": []})
            if seed in {fit["seed"] for fit in mine["fits"]}:
                continue
            fit = run(name, row, seed)
            print(f"{name}: {fit}", flush=True)
            mine["fits"].append(fit)
            mine["asked"] = {
                "placed": row.placed,
                "cpu_seconds": row.seconds,
                "memory_gb": row.memory_gb,
            }
            _common.write(NAME, {"rows": known})


if __name__ == "__main__":
    main()
