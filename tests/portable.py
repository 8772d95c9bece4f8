"""The numerically sensitive tests (marked ``portable``) as on other processors: one line for each
environment, 1 if one fails.

    python tests/portable.py [--only zen] [--all] [-- arguments of pytest]

OpenBLAS (in the wheels of numpy and scipy), torch with MKL, and numpy itself choose their kernels
by the processor, and each kernel rounds in its own way. Here variables choose instead. What this
processor cannot do is said, and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent

#: name → variables; everything else is as on this machine, with one thread
ENVIRONMENTS: dict[str, dict[str, str]] = {
    "as it is": {},
    "nehalem": {"OPENBLAS_CORETYPE": "Nehalem"},
    "haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "zen": {"OPENBLAS_CORETYPE": "Zen"},
    "skylakex": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "torch default": {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE"},
    "torch avx2": {"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "AVX2"},
    "numpy baseline": {"NPY_DISABLE_CPU_FEATURES": "all that it can do without"},
    "two threads": {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"},
}
# kernels that OpenBLAS may have under another name
SAME = {"Zen": "Haswell"}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

# in a process of its own, because kernels are chosen once; numpy's are those that its wheel has
# beyond its baseline
_PROBE = """
import json, numpy, scipy.linalg, torch
from numpy._core import _multiarray_umath as core
from threadpoolctl import threadpool_info
blas = [part for part in threadpool_info() if part["internal_api"] == "openblas"]
print(json.dumps({
    "openblas": sorted({part["architecture"] for part in blas}),
    "torch": torch.backends.cpu.get_cpu_capability(),
    "numpy": [name for name in core.__cpu_dispatch__ if core.__cpu_features__.get(name)],
    "threads": max([torch.get_num_threads(), *(part["num_threads"] for part in blas)]),
}))
"""


def environment(name: str) -> dict[str, str]:
    """The variables of this process, and those of ``name`` in their place."""
    ruled = {key for chosen in ENVIRONMENTS.values() for key in chosen}
    base = {key: value for key, value in os.environ.items() if key not in ruled} | dict.fromkeys(
        THREADS, "1"
    )
    chosen = dict(ENVIRONMENTS[name])
    if "NPY_DISABLE_CPU_FEATURES" in chosen:
        chosen["NPY_DISABLE_CPU_FEATURES"] = " ".join(probe(base)["numpy"])
    return base | chosen


def probe(variables: dict[str, str]) -> dict:
    """What the libraries have chosen."""
    done = subprocess.run(
        [sys.executable, "-c", _PROBE], env=variables, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def unavailable(name: str, found: dict) -> str | None:
    """Why this processor cannot be taken for ``name``, if it cannot."""
    chosen = ENVIRONMENTS[name]
    core, capability = chosen.get("OPENBLAS_CORETYPE"), chosen.get("ATEN_CPU_CAPABILITY")
    if core and not set(found["openblas"]) <= {core, SAME.get(core)}:
        return f"OpenBLAS takes {', '.join(found['openblas']) or 'no kernels'} instead"
    if capability and capability not in found["torch"].lower().replace("no avx", "default"):
        return f"torch takes {found['torch']} instead"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="environments whose name contains this")
    parser.add_argument(
        "--all",
        action="store_true",
        help="all tests that are not slow, not only those marked portable",
    )
    parser.add_argument("rest", nargs="*", help="handed on to pytest, after --")
    told = parser.parse_args()
    marked = "not slow" if told.all else "portable and not slow"
    failed = 0
    for name in (name for name in ENVIRONMENTS if told.only in name):
        variables = environment(name)
        found = probe(variables)
        label = (
            f"{name:<15} {'/'.join(found['openblas']):<9} torch {found['torch']:<8} threads"
            f" {found['threads']}"
        )
        reason = unavailable(name, found)
        if reason:
            print(f"{label}  left out: {reason}", flush=True)
            continue
        start = time.monotonic()
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-m",
            marked,
            *told.rest,
        ]
        done = subprocess.run(
            command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False
        )
        lines = done.stdout.splitlines()
        outcome = (
            re.sub(r" in [\d.]+s.*", "", lines[-1].strip("= ")) if lines else done.stderr[-300:]
        )
        if done.returncode < 0:  # somebody else ended it: that says nothing of the tests
            outcome = f"no outcome, ended by signal {-done.returncode}"
        print(
            f"{label}  {'ok' if done.returncode == 0 else 'FAILED'}: {outcome},"
            f" {time.monotonic() - start:.0f} s",
            flush=True,
        )
        for line in lines if done.returncode else ():
            if line.startswith(("FAILED", "ERROR")):
                print(f"    {line}", flush=True)
        failed += done.returncode != 0
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
