"""The paper's training from the command line: budgets, presets, run folders that go on after a
kill, several processes.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save

from symlift import LatentDomain, load
from symlift._estimator_file import read_estimator
from symlift.cli import main
from symlift.datasets import gsn
from symlift.diagnosis import Verdict
from symlift.errors import FitWarning, InputError
from symlift.runs import recover as runs
from symlift.runs.record import Status
from symlift.solvers.neural import trainer
from symlift.solvers.neural.checkpoint import read_checkpoint, write_checkpoint


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("data") / "ring.npy"
    np.save(path, gsn(1_500, (9,), periodic=True, random_state=0).X.astype(np.float32))
    return path


def run_command(monkeypatch, *words: object) -> int:
    """The command line in this process: its exit code."""
    monkeypatch.setattr(sys, "argv", ["symlift", *map(str, words)])
    monkeypatch.setattr(
        "warnings.showwarning", warnings.showwarning
    )  # which the command line sets for good
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def recover(monkeypatch, data: Path, out: Path, *more: object) -> int:
    options = (
        "--grid",
        9,
        "--periodic",
        "--solver",
        "neural",
        "--out",
        out,
        "--no-report",
        "--json",
    )
    return run_command(monkeypatch, "recover", data, *options, *more)


def test_a_budget_ends_the_training_and_the_run_can_be_used(data, tmp_path, monkeypatch, capsys):
    code = recover(monkeypatch, data, tmp_path / "run", "--budget", "0.5s", "--preset", "gsn15")
    done = capsys.readouterr()
    assert code == 0, done.err
    told = json.loads(done.out)
    assert told["solver"] == "neural"
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["settings"]["budget"] == 0.5
    trace = read_estimator(tmp_path / "run").trace
    assert trace.training.ended == "seconds"
    assert trace.training.preset == "gsn15"
    # how soon after its budget a training ends is counted in checks, by a clock of its own, in
    # test_neural
    assert record["timings"]["fit"] >= trace.training.seconds >= 0.5
    assert load(tmp_path / "run").transform(np.load(data)).shape == (1_500, 9)
    assert trace.stages[0].name == "train"
    assert {"step", "rank", "held_out"} <= trace.stages[0].values.keys()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--budget", "soon"),
            "budget 'soon' is not understood: give a time such as 90s, 40m or 2h",
        ),
        (("--budget", "0s"), "a budget of 0.0 seconds is not positive"),
        (("--preset", "mine"), "preset 'mine' is unknown: use one of ours, paper, released, gsn15"),
        (
            ("--budget", "5s", "--solver", "fast"),
            "--budget is for solvers that train: give --solver neural or refine",
        ),
        (("--preset", "gsn15", "--solver", "fast"), "--preset is for solvers that train"),
    ],
)
def test_bad_options_are_one_line_and_leave_nothing(
    data, tmp_path, monkeypatch, capsys, words, message
):
    assert recover(monkeypatch, data, tmp_path / "run", *words) == 2
    told = capsys.readouterr().err
    assert message in " ".join(told.split())
    assert told.count("\n") == 1
    assert not (tmp_path / "run").exists()


_OFTEN = """
from symlift.solvers.neural import trainer
trainer.EVALUATE = trainer.SAVE = 200 // trainer.CHECK
from symlift.cli import main
main()
"""


def test_a_killed_run_goes_on_from_its_checkpoint(data, tmp_path, monkeypatch, capsys):
    out = tmp_path / "run"
    words = [
        sys.executable,
        "-c",
        _OFTEN,
        "recover",
        data,
        "--grid",
        "9",
        "--periodic",
        "--solver",
        "neural",
    ]
    process = subprocess.Popen(
        [*map(str, words), "--out", str(out), "--budget", "10m"], stderr=subprocess.DEVNULL
    )
    path = out / "training" / "checkpoint.safetensors"
    deadline = time.monotonic() + 300
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    step, seconds = (read_checkpoint(path)[1][name] for name in ("step", "seconds"))
    assert step >= 200
    for name in ("EVALUATE", "SAVE"):
        monkeypatch.setattr(trainer, name, 200 // trainer.CHECK)
    # the same command with another budget is another run; as it was, it goes on
    assert recover(monkeypatch, data, out, "--resume", "--budget", "1s") == 2
    record = json.loads((out / "run.json").read_text())
    record["settings"]["budget"] = seconds + 1.0  # end soon
    (out / "run.json").write_text(json.dumps(record))
    code = run_command(
        monkeypatch, "recover", data, "--out", out, "--resume", "--no-report", "--json"
    )
    assert code == 0, capsys.readouterr().err
    trace = read_estimator(out).trace
    assert trace.training.steps > step
    assert [stage.values["step"] for stage in trace.stages][:2] == [0, 200]


def test_starting_again_forgets_an_earlier_training(data, tmp_path):
    rows = np.load(data)
    assert rows.shape == (1_500, 9)
    runs.recover(data, tmp_path / "run", grid="9", periodic=True, solver="neural", budget=0.5)
    one = read_estimator(tmp_path / "run").trace
    training = tmp_path / "run" / "training"
    (training / "mine.txt").write_text("kept")
    (training / "checkpoint.safetensors").write_bytes(
        b"nothing to go on from"
    )  # whoever reads it stops with an error
    again = runs.recover(
        data, tmp_path / "run", grid="9", periodic=True, solver="neural", budget=0.5, overwrite=True
    )
    two = read_estimator(tmp_path / "run").trace
    assert again is not None
    assert again.record.status is Status.DONE
    assert one.stages[0].values["step"] == two.stages[0].values["step"] == 0
    assert read_checkpoint(training / "checkpoint.safetensors")[1]["step"] == two.training.steps
    assert (training / "mine.txt").read_text() == "kept"


def test_refine_starts_from_the_fast_solver_and_is_not_worse(data):
    X = np.load(data)
    est = LatentDomain(grid=(9,), periodic=True, solver="refine", random_state=0)
    est.set_params(solver_options={"steps": 100}).fit(X)
    assert est.trace_.solver == "refine"
    assert est.trace_.stages[0].name == "place"
    started = next(stage for stage in est.trace_.stages if stage.name == "train")
    assert est.trace_.training.held_out <= started.values["held_out"]
    assert est.evidence_.found
    assert est.evidence_.explained is not None


@pytest.mark.portable
def test_a_trained_model_is_judged_by_what_the_fast_solver_finds_in_halves():
    X = gsn(4_000, (9,), periodic=True, random_state=1).X
    est = (
        LatentDomain(grid=(9,), periodic=True, solver="refine", random_state=0)
        .set_params(solver_options={"steps": 50})
        .fit(X)
    )
    good = est.diagnose(X)
    assert good.value("agreement_of_halves") > 0.95
    assert good.verdict is Verdict.PRESENT
    assert good.verdict.words.endswith("present and stable")
    short = LatentDomain(grid=(9,), periodic=True, solver="neural", random_state=0)
    with pytest.warns(FitWarning, match="ended before it had converged"):
        short.set_params(solver_options={"steps": 50}).fit(X)
    poor = short.diagnose(X)
    assert poor.value("agreement_of_halves") < 0.9
    assert poor.verdict is not Verdict.PRESENT
    assert not poor.verdict.words.endswith("present and stable")


def test_tensorboard_gets_the_curves(data, tmp_path):
    pytest.importorskip("tensorboard")
    from symlift.core.grid import Grid
    from symlift.solvers.neural import training as neural

    neural.solve(
        np.load(data),
        Grid((9,), periodic=True),
        np.random.default_rng(0),
        steps=50,
        folder=tmp_path,
        tensorboard=True,
    )
    assert list(tmp_path.glob("events.out.tfevents.*"))


def test_tensorboard_that_is_missing_is_named(data, tmp_path, monkeypatch):
    from symlift.core.grid import Grid
    from symlift.solvers.neural import training as neural

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(InputError, match=r"pip install tensorboard"):
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
        "1s",
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
    assert read_estimator(out).trace.training.steps >= 50
    assert done.stdout.count("rows of 9 columns") == 1  # the second process says nothing


def test_one_changed_byte_of_a_checkpoint_is_seen(tmp_path):
    """Anywhere in its tensors: a run that went on from another number would end elsewhere."""
    path = tmp_path / "checkpoint.safetensors"
    tensors = {"a": torch.randn(3, 4), "b": torch.tensor(7), "c": torch.zeros(5, dtype=torch.uint8)}
    write_checkpoint(path, tensors, {"step": 3})
    found, header = read_checkpoint(path)
    assert header == {"step": 3}
    assert all(torch.equal(found[name], value) for name, value in tensors.items())
    raw = path.read_bytes()
    size = sum(value.numel() * value.element_size() for value in tensors.values())
    for at in (*range(len(raw) - size, len(raw), 3), raw.index(b"step")):
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
        with pytest.raises(InputError, match="is damaged"):
            read_checkpoint(path)


@pytest.mark.parametrize("value", [1.0, math.nan, math.inf])
def test_checkpoints_of_the_first_version_have_no_digest_and_are_read(tmp_path, value):
    path = tmp_path / "checkpoint.safetensors"
    metadata = {"format": "symlift-training", "version": "1", "header": "{}"}
    path.write_bytes(save({"a": torch.full((2,), value)}, metadata=metadata))
    if value == 1.0:
        assert read_checkpoint(path)[0]["a"].tolist() == [1.0, 1.0]
    else:
        with pytest.raises(InputError, match="is damaged"):
            read_checkpoint(path)
