"""A sample of the tables through the real command line: a process of its own for each."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import test_attack_experiments as experiments
import test_attack_models as models
import test_attack_runs as runs
from commands import everything

from symlift.datasets import gsn
from symlift.runs.recover import recover

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", gsn(200, (9,), random_state=0).X)
    recover(tmp_path / "x.npy", tmp_path / "run", grid="9", solver="random", check=False)
    return tmp_path


def refused(folder: Path, *arguments: object) -> str:
    before = everything(folder)
    command = [sys.executable, "-m", "symlift", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert everything(folder) == before
    return done.stderr


@pytest.mark.parametrize("case", ["deep lists", "a huge integer", "a pickle", "too large"])
def test_models(folder: Path, case: str) -> None:
    (folder / "run" / "model.json").write_bytes(models.TEXTS[case])
    assert "model.json" in refused(folder, "transform", "run", "x.npy", "--out", "y.npy")


@pytest.mark.parametrize("case", ["Q times 100", "r zero", "E NaN", "theta missing"])
def test_tensors(folder: Path, case: str) -> None:
    _, name, change, words = models.TENSORS[case]
    models.set_tensor(folder / "run", name, change)
    assert words in refused(folder, "transform", "run", "x.npy", "--out", "y.npy")


@pytest.mark.parametrize(
    "case",
    [
        "an anchor bomb",
        "deep and open",
        "a recursive list",
        "a Python object",
        "a number of 5,000 digits",
    ],
)
def test_experiment_files(folder: Path, case: str) -> None:
    (folder / "rows.yaml").write_text(experiments.TEXTS[case][0])
    assert "rows.yaml" in refused(folder, "experiment", "list", "--file", "rows.yaml")


@pytest.mark.parametrize("case", ["deep", "not UTF-8", "a huge integer"])
def test_records(folder: Path, case: str) -> None:
    (folder / "run" / "run.json").write_bytes(runs.TEXTS[case])
    assert "run.json is damaged" in refused(folder, "recover", "x.npy", "--out", "run", "--resume")


@pytest.mark.parametrize("factor", [1e300, 1e-300])
def test_numbers_at_the_edge(folder: Path, factor: float) -> None:
    np.save(folder / "edge.npy", gsn(200, (9,), random_state=0).X.astype(np.float64) * factor)
    assert "by a constant first" in refused(folder, "recover", "edge.npy", "--grid", "9", "--json")


def test_a_run_that_trains_stops_at_sigterm_with_a_checkpoint_and_goes_on(folder: Path) -> None:
    code = (
        "import sys\nfrom symlift.solvers.neural.trainer import Trainer\nfrom symlift.cli import"
        " main\nstep = Trainer.step\ndef told(self):\n    step(self)\n    if self.step_count =="
        " 7:\n        print('go', flush=True)\nTrainer.step = told\nmain()"
    )
    words = [
        "recover",
        "x.npy",
        "--grid",
        "9",
        "--periodic",
        "--solver",
        "neural",
        "--budget",
        "10m",
        "--out",
        "t",
        "--no-check",
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "go\n"
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    assert json.loads((folder / "t" / "run.json").read_text())["status"] == "running"
    assert (folder / "t" / "training" / "checkpoint.safetensors").exists()
    assert not (folder / "t" / ".lock").exists()
