"""Very many columns: how many find their points, in what time and memory.

    python benchmarks/scale.py 64x64 128x128 …      those rows
    python benchmarks/scale.py                      all rows that take minutes
    python benchmarks/scale.py stream               partial_fit: two columns are exchanged
    python benchmarks/scale.py cluster              rows on two workers of a Dask cluster
    python benchmarks/scale.py 1024x1024 --rows F   rows are kept in the folder F, and taken from it
    python benchmarks/scale.py picture --rows F     a megapixel photograph by that placement
    python benchmarks/scale.py draw                 cost against the number of columns, for the docs

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
import math
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
    channels: int = 1
    #: share of the columns that is missing, constant, a copy of another one, or noise
    spoiled: float = 0.0
    placed: float = 0.0
    seconds: float | None = None
    memory_gb: float | None = None


ROWS = {
    "64x64": Row((64, 64), 20_000, placed=1.0, memory_gb=1),
    "128x128": Row((128, 128), 4_000, placed=0.999, seconds=60, memory_gb=2),
    "256x256": Row((256, 256), 4_000, 1, placed=0.995, seconds=480, memory_gb=4),
    "512x512": Row((512, 512), 2_000, 1, placed=0.99, seconds=1_500, memory_gb=6),
    "1024x1024": Row((1_024, 1_024), 1_000, 1, "float16", placed=0.98, seconds=5_400, memory_gb=12),
    "line of 100,000": Row((100_000,), 2_000, 3, placed=0.999, seconds=300, memory_gb=4),
    "48x48x48": Row((48, 48, 48), 4_000, 1, placed=0.999, seconds=900, memory_gb=4),
    "photographs 64x64": Row((64, 64), 4_000, photographs=True),
    "photographs 128x128": Row((128, 128), 4_000, photographs=True),
    "colours 64x64": Row((64, 64), 4_000, photographs=True, channels=3),
    "spoiled 128x128": Row((128, 128), 4_000, spoiled=0.07),
}
QUICK = (
    "64x64", "128x128", "256x256", "512x512", "line of 100,000", "48x48x48", "photographs 64x64",
    "photographs 128x128", "colours 64x64", "spoiled 128x128", "stream", "cluster",
)  # fmt: skip
#: pictures that have colours
COLOURED = ("astronaut", "coffee", "chelsea", "rocket", "motorcycle", "retina")
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
path, shape, channels = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
X = np.load(path, mmap_mode="r")
warnings.simplefilter("ignore")
begin, wall = time.process_time(), time.perf_counter()
est = LatentDomain(shape, mixing="shuffled", channels=channels, random_state=0).fit(X)
seconds, wall = time.process_time() - begin, time.perf_counter() - wall
truth = np.load(path.replace("x.npy", "order.npy"))
e, placed = est.evidence_, est.placement_
np.save(path.replace("x.npy", "placed.npy"), placed.point)
real = truth >= 0
def agreement():
    whole = placement_agreement(placed.point[real], truth[real] // channels, est.grid_)
    if channels == 1:
        return whole
    table = np.zeros((channels, channels))
    np.add.at(table, (truth[real] % channels, np.maximum(placed.channel[real], 0)), 1)
    return min(whole, table.max(axis=1).sum() / real.sum())
print(json.dumps({
    "placed": agreement(),
    "left_out_rightly": float(placed.left_out[~real].mean()) if not real.all() else None,
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
    for name in PHOTOGRAPHS if row.channels == 1 else COLOURED:
        one = picture(name, row.channels > 1)
        one = (one - one.mean()) / one.std()
        for _ in range(3):
            least = 1.2 * max(row.shape) / min(one.shape[:2])
            scale = float(np.clip(rng.uniform(0.6, 1.2), least, None))
            scales = (scale, scale, 1)[: one.ndim]
            pictures.append(zoom(one, scales, order=1).astype(np.float32))
    return pictures


def write_rows(row: Row, seed: int, folder: Path) -> None:
    """The shuffled array as ``x.npy``, and the true slot of each column as ``order.npy``: its
    point, or point · channels + channel; -1 for columns that have none.
    """
    rng = np.random.default_rng(seed)
    shape = row.shape if row.channels == 1 else (*row.shape, row.channels)
    d = int(np.prod(shape))
    pictures = (photographs if row.photographs else _drawn)(row, rng)
    order = rng.permutation(d)
    out = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype=row.dtype, shape=(row.n, d))
    dead, noise, copies = _spoil(row, order, rng)
    for i, one in enumerate(rows(row.n, shape, pictures, rng, row.channels > 1)):
        out[i] = one[order]
        out[i, dead] = 1.0
        out[i, noise] = rng.standard_normal(len(noise))
        out[i, copies[0]] = out[i, copies[1]]
    out.flush()
    order[dead] = order[noise] = -1
    order[copies[0]] = order[copies[1]]
    np.save(folder / "order.npy", order)


def _spoil(row: Row, order: Any, rng: np.random.Generator) -> tuple[Any, Any, tuple[Any, Any]]:
    """Columns that are made constant, noise, or copies of others: the points that they would have
    are empty.
    """
    if not row.spoiled:
        none = np.zeros(0, dtype=np.int64)
        return none, none, (none, none)
    some = rng.permutation(len(order))[: int(row.spoiled * len(order))]
    dead, noise, copies = np.array_split(some, 3)
    others = np.setdiff1d(np.arange(len(order)), some)
    return dead, noise, (copies, rng.choice(others, len(copies), replace=False))


def _drawn(row: Row, rng: np.random.Generator) -> list[Any]:
    return gallery(PICTURES, row.shape, rng, apart=math.prod(row.shape) > 500_000)


def run(name: str, row: Row, seed: int, folder_of_rows: Path | None = None) -> dict[str, Any]:
    """One fit, and its floor; rows that are in ``folder_of_rows`` are taken from it."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) if folder_of_rows is None else folder_of_rows / f"{name}-{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "x.npy"
        if not (folder / "order.npy").exists():
            begin = time.perf_counter()
            write_rows(row, seed, folder)
            print(f"{name}, seed {seed}: rows in {time.perf_counter() - begin:.0f} s", flush=True)
        fit = _output(_FIT, str(path), json.dumps(list(row.shape)), str(row.channels))
        floor = float(_output(_FLOOR, str(path)))
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


_CLUSTER = """
import json, os, sys, threading, time
import numpy as np
from symlift import LatentDomain
def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
path, where = sys.argv[1:]
X = np.load(path, mmap_mode="r")
def block(path, block_info=None):
    start, stop = block_info[None]["array-location"][0]
    return np.array(np.load(path, mmap_mode="r")[start:stop])
def fit(X):
    begin = time.perf_counter()
    est = LatentDomain((16, 16), mixing="shuffled", random_state=0).fit(X)
    return est, time.perf_counter() - begin
if __name__ == "__main__":
    if where == "here":
        used = time.process_time
        est, wall = fit(X)
        seconds = time.process_time()
    else:
        import dask.array as da
        from distributed import Client, LocalCluster
        n, d = X.shape
        rows = (100_000,) * (n // 100_000)
        lazy = da.map_blocks(block, path, chunks=(rows, (d,)), dtype=X.dtype, meta=X[:0])
        options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(**options) as two, Client(two) as client:
            est, wall = fit(lazy)
            seconds = time.process_time() + sum(client.run(time.process_time).values())
    np.save(path.replace("x.npy", where + ".npy"), est.lifting_map_)
    print(json.dumps({"wall_seconds": round(wall, 1), "cpu_seconds": round(seconds, 1),
                      "peak_mb": round(peak()), "point": est.placement_.point.tolist()}))
"""


def cluster(seed: int, n: int = 2_000_000, side: int = 16) -> dict[str, Any]:
    """The same rows on one machine and through two workers, which read them from the file."""
    from symlift.core.grid import Grid
    from symlift.metrics.placement import placement_agreement

    rng, d = np.random.default_rng(seed), side * side
    some = np.stack(list(rows(20_000, (side, side), gallery(PICTURES, (side, side), rng), rng)))
    order = rng.permutation(d)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npy"
        out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, d))
        for start in range(0, n, len(some)):  # no row is there twice
            share = rng.random((len(some), 1), dtype=np.float32)
            mixed = share * some + (1 - share) * some[rng.permutation(len(some))]
            out[start : start + len(some)] = mixed[:, order]
        out.flush()
        here, away = (json.loads(_output(_CLUSTER, str(path), w)) for w in ("here", "workers"))
        maps = [np.load(path.with_name(f"{w}.npy")) for w in ("here", "workers")]
    agreement = [
        placement_agreement(np.array(r.pop("point")), order, Grid((side, side)))
        for r in (here, away)
    ]
    return {
        "seed": seed,
        "here": here | {"placed": agreement[0]},
        "workers": away | {"placed": agreement[1]},
        "farthest": float(np.abs(maps[0] - maps[1]).max()),
    }


def draw(known: dict[str, Any]) -> None:
    """Processor seconds and floors against the number of columns, as docs/images/scale.png."""
    import matplotlib.pyplot as plt

    squares = [known[name] for name in ROWS if name in known and _plain(name)]
    squares.sort(key=lambda row: row["d"])
    figure, axes = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
    columns = [row["d"] for row in squares]
    for what, label in (("cpu_seconds", "fit"), ("floor_seconds", "floor")):
        medians = [np.median([fit[what] for fit in row["fits"]]) for row in squares]
        axes.loglog(columns, medians, "o-", label=label)
    axes.set(xlabel="columns", ylabel="processor seconds")
    axes.legend(frameon=False)
    figure.savefig(Path(__file__).parent.parent / "docs" / "images" / "scale.png", dpi=160)


def megapixel(folder_of_rows: Path) -> None:
    """A photograph that the fit has not seen, shuffled as the rows were, and put in order by their
    placement: docs/images/megapixel.jpg.
    """
    import matplotlib.pyplot as plt

    folder, side = folder_of_rows / "1024x1024-0", 1_024
    truth, placed = np.load(folder / "order.npy"), np.load(folder / "placed.npy")
    photograph = picture("retina", True)[190 : 190 + side, 190 : 190 + side] / 255
    shuffled = photograph.reshape(-1, 3)[truth]
    recovered = np.zeros_like(shuffled)
    recovered[placed[placed >= 0]] = shuffled[placed >= 0]
    figure, axes = plt.subplots(1, 2, figsize=(8, 4.1), layout="constrained")
    for ax, rows_of, title in zip(
        axes, (shuffled, recovered), ("shuffled", "recovered"), strict=True
    ):
        ax.imshow(rows_of.reshape(side, side, 3))
        ax.set(title=title, xticks=[], yticks=[])
    out = Path(__file__).parent.parent / "docs" / "images" / "megapixel.jpg"
    figure.savefig(out, dpi=130, pil_kwargs={"quality": 82})


def _plain(name: str) -> bool:
    """Squares of dead leaves, which differ in their size alone."""
    row = ROWS[name]
    return len(row.shape) == 2 and not (row.photographs or row.spoiled)


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
    parser.add_argument("--rows", type=Path, help="folder in which rows are kept")
    asked = parser.parse_args()
    path = _common.RESULTS / f"{NAME}.json"
    for name in asked.names:
        if name == "picture":
            megapixel(asked.rows)
            continue
        if name == "draw":
            draw(json.loads(path.read_text())["rows"])
            continue
        if name in ("stream", "cluster"):
            one = stream if name == "stream" else cluster
            for seed in range(asked.seeds or (4 if name == "stream" else 1)):
                known = json.loads(path.read_text())["rows"] if path.exists() else {}
                fits = known.setdefault(name, {"fits": []})["fits"]
                if seed not in {fit["seed"] for fit in fits}:
                    fits.append(one(seed))
                    print(f"{name}: {fits[-1]}", flush=True)
                    _common.write(NAME, {"rows": known})
            continue
        row = ROWS[name]
        for seed in range(asked.seeds or row.seeds):
            known = json.loads(path.read_text())["rows"] if path.exists() else {}
            mine = known.setdefault(
                name, {"n": row.n, "d": int(np.prod(row.shape)) * row.channels, "fits": []}
            )
            if seed in {fit["seed"] for fit in mine["fits"]}:
                continue
            fit = run(name, row, seed, asked.rows)
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
