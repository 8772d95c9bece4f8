"""Every change on the disk fails once: nothing is lost, no traceback, nothing is left behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FORMATS = (".npy", ".npz", ".csv", ".tsv", ".parquet", ".zarr")
WORKS = (
    *("recover", "overwrite", "report", "save", "parts", "report of parts"),
    *("training", "experiment"),
    *(f"transform{suffix}" for suffix in FORMATS),
)

#: work → faults that were injected, where every change failed once in each way
INJECTED: dict[str, int] = {}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the library that makes changes fail."""
    folder = tmp_path_factory.mktemp("faults")
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler and Linux")
    source, library = str(HERE / "faults.c"), str(folder / "faults.so")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return folder


@pytest.mark.parametrize("work", WORKS)
@pytest.mark.parametrize(
    "step",
    [
        pytest.param(1, marks=pytest.mark.slow, id="every change"),
        pytest.param(10, id="every tenth change"),
    ],
)
def test_each_change_may_fail(folder: Path, work: str, step: int) -> None:
    if step > 1 and work not in ("overwrite", "transform.npy", "transform.zarr"):
        pytest.skip("in make test-full")
    if work == "parts":  # a search of a second each time, and the changes of "overwrite"
        step *= 10
    done = subprocess.run(
        [sys.executable, str(HERE / "faults.py"), work, str(folder), str(step)],
        env={**os.environ, "LD_PRELOAD": str(folder / "faults.so")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    count = int(done.stdout.splitlines()[-1])
    assert count * step >= 9
    INJECTED[work] = max(count, INJECTED.get(work, 0))


@pytest.mark.slow
def test_there_were_enough_of_them() -> None:
    if set(INJECTED) != set(WORKS):
        pytest.skip("not all works were attacked in this process")
    assert sum(INJECTED.values()) >= 1_000, INJECTED
