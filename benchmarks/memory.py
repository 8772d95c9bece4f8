"""Peak memory of fits: ``python benchmarks/memory.py [plan [NAME ...] | rows]``.

2,000,000 × 225 numbers in a memory map, single precision and bytes, with and without constant
columns, each in a process of its own: the largest resident memory beyond that after the imports.
Pages of the file count while they are mapped.

With ``plan``, twenty-one shapes of arrays in memory, or those that are named: the peak that is
predicted before the fit begins, and the one that is measured.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

import _common

ROWS, SIDE = 2_000_000, 15
LIMIT_MB = 600
#: by how much a prediction and the peak may differ
FACTOR = 1.5

#: rows, grid of the field, what is done to its columns, what the fit knows of that, and its grid
SHAPES: dict[str, tuple[int, tuple[int, ...], str, str, tuple[int, ...]]] = {
    "1,000 x 225, shuffled": (1_000, (15, 15), "permutation", "shuffled", (15, 15)),
    "20,000 x 225, shuffled": (20_000, (15, 15), "permutation", "shuffled", (15, 15)),
    "20,000 x 225, rotated, all is tried": (20_000, (15, 15), "overlaps", "auto", (15, 15)),
    "3,000 x 324, rotated": (3_000, (18, 18), "orthogonal", "auto", (18, 18)),
    "20,000 x 900, shuffled": (20_000, (30, 30), "permutation", "shuffled", (30, 30)),
    "500 x 900, shuffled": (500, (30, 30), "permutation", "shuffled", (30, 30)),
    "2,000 x 1,600, shuffled": (2_000, (40, 40), "permutation", "shuffled", (40, 40)),
    "500 x 4,096, shuffled": (500, (64, 64), "permutation", "shuffled", (64, 64)),
    "300 x 5,184, shuffled": (300, (72, 72), "permutation", "shuffled", (72, 72)),
    "1,000 x 400 on 6,400 points": (1_000, (20, 20), "permutation", "shuffled", (80, 80)),
    # shapes that no coefficient was fitted on
    "4,000 x 100, rotated": (4_000, (100,), "orthogonal", "auto", (100,)),
    "50,000 x 400, shuffled": (50_000, (20, 20), "permutation", "shuffled", (20, 20)),
    "8,000 x 512, shuffled": (8_000, (8, 8, 8), "permutation", "shuffled", (8, 8, 8)),
    "5,000 x 1,089, shuffled": (5_000, (33, 33), "permutation", "shuffled", (33, 33)),
    "3,000 x 2,500, shuffled": (3_000, (50, 50), "permutation", "shuffled", (50, 50)),
}

#: rows, columns, the domain, and what the fit knows of its columns
DOMAINS: dict[str, tuple[int, int, str, str]] = {
    "1,000 x 300 on a sphere": (1_000, 300, "sphere", "shuffled"),
    "1,200 x 300 behind a mixing of a sphere": (1_200, 300, "sphere", "linear"),
    "1,000 x 900, scattered": (1_000, 900, "scattered", "shuffled"),
    "500 x 600 in ten parts": (500, 600, "parts", "auto"),
    "20,000 x 100 on a ring": (20_000, 100, "ring", "auto"),
    "4,000 x 1,000 on a ring": (4_000, 1_000, "ring", "auto"),
}

CASES: dict[str, dict[str, Any]] = {
    "float32": {"dtype": "float32", "constant": 0},
    "float32, 9 constant columns": {"dtype": "float32", "constant": 9},
    "uint8": {"dtype": "uint8", "constant": 0},
    "uint8, 9 constant columns": {"dtype": "uint8", "constant": 9},
}

_CHILD = """
import json, sys, time, warnings
import numpy as np
from symlift import LatentDomain
import symlift.solvers.fast.pipeline, symlift.solvers.fast.propose, symlift._estimator_file
import symlift.diagnosis.examine, sklearn.isotonic
# the kernel's high-water mark of this program; getrusage would include that of the parent
def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
from symlift import LatentDomains, Sphere
import symlift.solvers.sphere.pipeline, symlift.solvers.ring.pipeline
grid, mixing, mapped = json.loads(sys.argv[2])
X = np.load(sys.argv[1], mmap_mode="r" if mapped else None)
warnings.simplefilter("ignore")
before, start = peak(), time.perf_counter()
if grid == "parts":
    est = LatentDomains(mixing=mixing, random_state=0).fit(X).domains_[0]
elif grid == "ring":
    est = LatentDomain((30,), periodic=True, solver="ring", random_state=0).fit(X)
else:
    # of a mixing, the lowest degree: its third moments are those of all columns anyway
    of = Sphere(2) if (grid, mixing) == ("sphere", "linear") else grid
    of = of if isinstance(grid, str) else tuple(grid)
    est = LatentDomain(of, mixing=mixing, random_state=0).fit(X)
seconds = round(time.perf_counter() - start, 1)
memory = {"imports_mb": round(before), "fit_mb": round(peak() - before), "seconds": seconds}
cpu = {"cpu_seconds": round(time.process_time(), 1)}
evidence = {"found": bool(est.evidence_.found), "explained": est.evidence_.explained}
print(json.dumps(memory | cpu | evidence))
"""


def fit_alone(path: Path, grid: tuple[int, ...] | str, mixing: str, mapped: bool) -> dict[str, Any]:
    """Fit the rows of a file in a process of its own; its peak memory and time."""
    child = subprocess.run(
        [sys.executable, "-c", _CHILD, str(path), json.dumps([grid, mixing, mapped])],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(child.stdout))


def write_rows(path: Path, rows: int, dtype: str, constant: int) -> None:
    """Shuffled shot noise on a grid of 15x15, tiled to as many rows as are asked for, each time
    with other noise.
    """
    from symlift.datasets import gsn

    field = gsn(20_000, (SIDE, SIDE), transform="permutation", random_state=0).X
    low, high = np.quantile(field, [0.001, 0.999])
    rng = np.random.default_rng(0)
    out = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=(rows, SIDE * SIDE))
    for start in range(0, rows, len(field)):
        block = field[: rows - start] + rng.normal(
            scale=0.02 * field.std(), size=(1, SIDE * SIDE)
        ).astype(np.float32)
        if dtype == "uint8":
            block = np.clip(255 * (block - low) / (high - low), 0, 255)
        if constant:
            block[:, :: (SIDE * SIDE) // constant + 1] = 3
        out[start : start + len(block)] = block.astype(dtype)
    out.flush()


def measure(rows: int) -> dict[str, Any]:
    """Every case in a process of its own."""
    peaks: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, case in CASES.items():
            path = Path(folder) / "x.npy"
            write_rows(path, rows, case["dtype"], case["constant"])
            start = time.perf_counter()
            peaks[name] = fit_alone(path, (SIDE, SIDE), "auto", True) | {
                "file_mb": round(path.stat().st_size / 2**20)
            }
            print(f"{name}: {peaks[name]}, {time.perf_counter() - start:.0f} s in all", flush=True)
            path.unlink()
    return peaks


def overlapping(rows: int, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Pulses that overlap so much that no stage is convinced, behind a rotation: fits of shot noise
    end early, and hold less.
    """
    rng, size = np.random.default_rng(0), int(np.prod(shape))
    pulses = rng.exponential(size=(rows, *shape)) * (rng.random((rows, *shape)) < 0.1)
    field = gaussian_filter(pulses, (0, *(1.2 for _ in shape)), mode="constant")
    turn = np.linalg.qr(rng.normal(size=(size, size)))[0]
    return (field.reshape(rows, size) @ turn).astype(np.float32)


def of_domain(rows: int, columns: int, domain: str, mixing: str) -> NDArray[np.float32]:
    """Shuffled rows of a field on a sphere, between grid points, or on lines that know nothing of
    each other; of a mixing, rows without any order, which nothing ends early; columns tuned to a
    ring.
    """
    from symlift.datasets import ring_population

    rng = np.random.default_rng(0)
    if mixing == "linear":
        return rng.exponential(size=(rows, columns)).astype(np.float32)
    if domain == "ring":
        tuned = ring_population(rows, columns, rate=8.0, movement=0.0, random_state=0).X
        return (tuned + rng.normal(size=tuned.shape)).astype(np.float32)
    if domain == "sphere":
        u, bumps = (rng.normal(size=(size, 3)) for size in (columns, 300))
        u, bumps = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in (u, bumps))
        X = rng.normal(size=(rows, len(bumps))) @ np.exp(6 * (bumps @ u.T - 1))
    elif domain == "scattered":
        side = int(np.ceil(np.sqrt(3 * columns)))
        field = gaussian_filter(rng.normal(size=(rows, side, side)), (0, 2, 2))
        X = field.reshape(rows, -1)[:, rng.choice(side**2, columns, replace=False)]
    else:
        lines = [gaussian_filter(rng.normal(size=(rows, 60)), (0, 2)) for _ in range(columns // 60)]
        X = np.hstack(lines)
    X = X / X.std() + 0.1 * rng.normal(size=X.shape)
    return X[:, rng.permutation(columns)].astype(np.float32)


def plan_of(rows: int, columns: int, domain: str, mixing: str) -> Any:
    """What is said before such a fit begins."""
    from symlift import Scattered, Sphere
    from symlift.solvers.plan import plan_domain, plan_fit, plan_parts

    if domain == "parts":
        return plan_parts(rows, columns)
    if domain == "ring":
        return plan_fit(rows, columns, 30, "ring")
    # as in the child
    of = Scattered() if domain == "scattered" else Sphere(2 if mixing == "linear" else None)
    return plan_domain(rows, columns, of, mixing=mixing)


def compare(names: list[str]) -> dict[str, Any]:
    """Every shape that is named: the peak that the plan names, and the one that a fit has."""
    from symlift.datasets import gsn
    from symlift.solvers.plan import plan_fit

    compared: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npy"
        for name in names:
            grid: tuple[int, ...] | str
            if name in DOMAINS:
                rows, columns, grid, mixing = DOMAINS[name]
                np.save(path, of_domain(rows, columns, grid, mixing))
                plan = plan_of(rows, columns, grid, mixing)
            else:
                rows, field, transform, mixing, grid = SHAPES[name]
                X = (
                    overlapping(rows, field)
                    if transform == "overlaps"
                    else gsn(rows, field, transform=transform, random_state=0).X
                )
                np.save(path, X)
                plan = plan_fit(rows, X.shape[1], int(np.prod(grid)), mixing=mixing)
                del X
            predicted = {
                "predicted_mb": round(plan.memory / 2**20),
                "predicted_seconds": round(plan.seconds, 1),
            }
            measured = fit_alone(path, grid, mixing, False)
            ratio = round(predicted["predicted_mb"] / measured["fit_mb"], 2)
            compared[name] = measured | predicted | {"ratio": ratio, "made": _common.made()}
            print(f"{name}: {compared[name]}", flush=True)
    return compared


def main_plan(named: list[str]) -> None:
    """Compare, print, keep; records of shapes that are not named stay as they are."""
    before: dict[str, Any] = {}
    if named:
        before = json.loads((_common.RESULTS / "memory_plan.json").read_text())["shapes"]
    shapes = before | compare(named or [*SHAPES, *DOMAINS])
    worst = max(max(shape["ratio"], 1 / shape["ratio"]) for shape in shapes.values())
    print(f"worst: a factor of {worst:.2f} (limit {FACTOR})")
    _common.write("memory_plan", {"factor": FACTOR, "worst": round(worst, 2), "shapes": shapes})
    sys.exit(worst > FACTOR)


def main() -> None:
    """Measure, print, keep."""
    if sys.argv[1:2] == ["plan"]:
        main_plan(sys.argv[2:])
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    cases = measure(rows)
    worst = max(case["fit_mb"] for case in cases.values())
    print(f"worst: {worst} MB above the imports (limit {LIMIT_MB})")
    if rows == ROWS:
        _common.write(
            "memory", {"rows": rows, "columns": SIDE * SIDE, "limit_mb": LIMIT_MB, "cases": cases}
        )
    sys.exit(worst > LIMIT_MB)


if __name__ == "__main__":
    main()
