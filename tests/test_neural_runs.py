"""The paper's training from the command line: budgets, presets, run folders that go on after a kill, several processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from symlift import LatentDomain, load, runs
from symlift.datasets import gsn
from symlift.errors import InputError
from symlift.solvers.neural.checkpoint import read_checkpoint


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("data") / "ring.npy"
    np.save(path, gsn(1_500, (9,), periodic=True, random_state=0).X.astype(np.float32))
    return path


def command(*words: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "symlift", *map(str, words)], capture_output=True, text=True, timeout=300, env=env
    )


def recover(data: Path, out: Path, *more: object) -> subprocess.CompletedProcess[str]:
    options = ("--grid", 9, "--periodic", "--solver", "neural", "--out", out, "--no-report", "--json")
    return command("recover", data, *options, *more)


def test_a_budget_ends_the_training_and_the_run_can_be_used(data, tmp_path):
    done = recover(data, tmp_path / "run", "--budget", "2s", "--preset", "gsn15")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["solver"] == "neural"
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["settings"]["budget"] == 2.0
    assert record["trace"]["ended"] == "seconds"
    assert record["trace"]["preset"] == "gsn15"
    assert record["timings"]["fit"] < 30
    assert load(tmp_path / "run").transform(np.load(data)).shape == (1_500, 9)
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert lines[0]["stage"] == "train"
    assert {"step", "rank", "held_out"} <= lines[0].keys()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--budget", "soon"), "budget 'soon' is not understood: give a time such as 90s, 40m or 2h"),
        (("--budget", "0s"), "a budget of 0.0 seconds is no time"),
        (("--preset", "mine"), "preset 'mine' is unknown: use one of auto, gsn15"),
        (("--budget", "5s", "--solver", "fast"), "--budget is for solvers that train: give --solver neural or refine"),
        (("--preset", "gsn15", "--solver", "fast"), "--preset is for solvers that train"),
    ],
)
def test_bad_options_are_one_line_and_leave_nothing(data, tmp_path, words, message):
    done = recover(data, tmp_path / "run", *words)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_killed_run_goes_on_from_its_checkpoint(data, tmp_path):
    out = tmp_path / "run"
    words = [sys.executable, "-m", "symlift", "recover", data, "--grid", "9", "--periodic", "--solver", "neural"]
    process = subprocess.Popen([*map(str, words), "--out", str(out), "--budget", "10m"], stderr=subprocess.DEVNULL)
    path = out / "training" / "checkpoint.safetensors"
    deadline = time.monotonic() + 300
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    step, seconds = (read_checkpoint(path)[1][name] for name in ("step", "seconds"))
    assert step >= 1_000
    # the same command with another budget is another run; as it was, it goes on
    assert recover(data, out, "--resume", "--budget", "1s").returncode == 2
    record = json.loads((out / "run.json").read_text())
    record["settings"]["budget"] = seconds + 1.0  # end soon
    (out / "run.json").write_text(json.dumps(record))
    done = command("recover", data, "--out", out, "--resume", "--no-report", "--json")
    assert done.returncode == 0, done.stderr
    trace = json.loads((out / "run.json").read_text())["trace"]
    assert trace["steps"] > step
    assert [stage["step"] for stage in trace["stages"]][:2] == [0, 1_000]


def test_starting_again_forgets_an_earlier_training(data, tmp_path):
    rows = np.load(data)
    assert rows.shape == (1_500, 9)
    one = runs.recover(data, tmp_path / "run", grid="9", periodic=True, solver="neural", budget=0.5)
    training = tmp_path / "run" / "training"
    (training / "mine.txt").write_text("kept")
    (training / "checkpoint.safetensors").write_bytes(b"nothing to go on from")  # whoever reads it stops with an error
    two = runs.recover(data, tmp_path / "run", grid="9", periodic=True, solver="neural", budget=0.5, overwrite=True)
    assert one.record["trace"]["stages"][0]["step"] == two.record["trace"]["stages"][0]["step"] == 0
    assert read_checkpoint(training / "checkpoint.safetensors")[1]["step"] == two.record["trace"]["steps"]
    assert (training / "mine.txt").read_text() == "kept"


def test_refine_starts_from_the_fast_solver_and_is_not_worse(data):
    X = np.load(data)
    est = LatentDomain(grid=(9,), periodic=True, solver="refine", random_state=0)
    est._fit(X, steps=100)
    assert est.trace_["solver"] == "refine"
    assert est.trace_["stages"][0]["stage"] == "arrange"
    started = next(stage for stage in est.trace_["stages"] if stage["stage"] == "train")
    assert est.trace_["held_out"] <= started["held_out"]
    assert "evidence" in est.trace_


def test_a_trained_model_is_judged_by_what_the_fast_solver_finds_in_halves():
    X = gsn(4_000, (9,), periodic=True, random_state=1).X
    est = LatentDomain(grid=(9,), periodic=True, solver="refine", random_state=0)._fit(X, steps=50)
    good = est.diagnose(X)
    assert good.figures["agreement_of_halves"] > 0.95
    assert good.verdict.endswith("present and stable")
    poor = LatentDomain(grid=(9,), periodic=True, solver="neural", random_state=0)._fit(X, steps=50).diagnose(X)
    assert poor.figures["agreement_of_halves"] < 0.9
    assert not poor.verdict.endswith("present and stable")


def test_tensorboard_gets_the_curves(data, tmp_path):
    pytest.importorskip("tensorboard")
    from symlift.grid import Grid
    from symlift.solvers import neural

    neural.solve(
        np.load(data), Grid((9,), periodic=True), np.random.default_rng(0), steps=50, folder=tmp_path, tensorboard=True
    )
    assert list(tmp_path.glob("events.out.tfevents.*"))


def test_tensorboard_that_is_missing_is_named(data, tmp_path, monkeypatch):
    from symlift.grid import Grid
    from symlift.solvers import neural

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(InputError, match=r"symlift\[neural\]"):
        neural.solve(
            np.load(data),
            Grid((9,), periodic=True),
            np.random.default_rng(0),
            steps=50,
            folder=tmp_path,
            tensorboard=True,
        )


def test_torchrun_trains_one_model_in_two_processes(data, tmp_path):
    out = tmp_path / "run"
    words = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone", "-m", "symlift"]
    options = [
        "recover",
        data,
        "--grid",
        9,
        "--periodic",
        "--solver",
        "neural",
        "--budget",
        "3s",
        "--out",
        out,
        "--no-report",
    ]
    done = subprocess.run(
        [sys.executable, *words, *map(str, options)], capture_output=True, text=True, timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    record = json.loads((out / "run.json").read_text())
    assert record["status"] == "done"
    assert record["trace"]["steps"] >= 50
    assert done.stdout.count("9 columns") == 1  # the second process says nothing
