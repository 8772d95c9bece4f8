"""Memory: what a command says under a limit of the system, before libraries fail in their words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from symlift.cli import limits
from symlift.datasets import gsn

_LIMITED = """
import resource, sys
limit = int(sys.argv.pop(1)) << 20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
from symlift.cli import main
main()
"""

needs_limits = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


def limited(megabytes: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _LIMITED, str(megabytes), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@needs_limits
@pytest.mark.parametrize("megabytes", [200, 500, 767])
def test_less_than_libraries_take_is_one_line(megabytes: int) -> None:
    done = limited(megabytes, "recover", "x.npy")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: the limit of {megabytes} MB on memory (ulimit -v) is less than the libraries take:"
        " allow at least 768 MB, and more for large data\n"
    )


@needs_limits
@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [768, 1000])
def test_a_small_run_works_under_a_tight_limit(tmp_path: Path, megabytes: int) -> None:
    np.save(tmp_path / "x.npy", gsn(600, (4, 5), transform="permutation", random_state=1).X)
    done = limited(
        megabytes, "recover", tmp_path / "x.npy", "--grid", "4x5", "--out", tmp_path / "r"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "an identifiable translation symmetry" in done.stdout


def test_one_thread_where_memory_is_tight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "7")  # what was asked for stays
    for limit, threads in ((None, None), (100_000, None), (1_000, "1")):
        monkeypatch.setattr(limits, "_limit", lambda limit=limit: limit)
        limits.within_limits()
        assert limits.os.environ.get("OPENBLAS_NUM_THREADS") == threads
    assert limits.os.environ["OMP_NUM_THREADS"] == "7"
