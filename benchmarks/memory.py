"""Peak memory of a fit to a large memory map: ``python benchmarks/memory.py [rows]``.

2,000,000 × 225 numbers in a memory map, single precision and bytes, with and without constant
columns, each in a process of its own: the largest resident memory beyond that after the imports.
Pages of the file count while they are mapped.
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

import _common

ROWS, SIDE = 2_000_000, 15
LIMIT_MB = 600

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
# the kernel's high-water mark of this program; getrusage would include that of the parent
def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
X = np.load(sys.argv[1], mmap_mode="r")
warnings.simplefilter("ignore")
before, start = peak(), time.perf_counter()
est = LatentDomain((15, 15), mixing=sys.argv[2], random_state=0).fit(X)
seconds = round(time.perf_counter() - start, 1)
memory = {"imports_mb": round(before), "fit_mb": round(peak() - before), "seconds": seconds}
evidence = {"found": bool(est.evidence_.found), "explained": est.evidence_.explained}
print(json.dumps(memory | evidence))
"""


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
            child = subprocess.run(
                [sys.executable, "-c", _CHILD, str(path), "auto"],
                capture_output=True,
                text=True,
                check=True,
            )
            peaks[name] = json.loads(child.stdout) | {"file_mb": round(path.stat().st_size / 2**20)}
            print(f"{name}: {peaks[name]}, {time.perf_counter() - start:.0f} s in all", flush=True)
            path.unlink()
    return peaks


def main() -> None:
    """Measure, print, keep."""
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
