"""The time of a training: checkpoints by the clock and at stop signals, and a budget that counts
over resumptions.
"""

from __future__ import annotations

import itertools
import json
import os
import signal

import numpy as np
import pytest

from symlift.core.grid import Grid
from symlift.datasets import gsn
from symlift.solvers.neural import pace as paces
from symlift.solvers.neural import training
from symlift.solvers.neural.checkpoint import read_checkpoint
from symlift.solvers.neural.pace import Pace
from symlift.solvers.neural.trainer import CHECK, Trainer

RING = Grid((9,), True)


class Clock:
    """A clock that goes on when it is told to, and by ``step`` each time that it is read."""

    def __init__(self, step: float = 0.0) -> None:
        self.time, self.step = 1000.0, step

    def __call__(self) -> float:
        self.time += self.step
        return self.time


def test_a_checkpoint_is_due_every_twenty_seconds(tmp_path):
    clock = Clock()
    pace = Pace(tmp_path, 5.0, clock)
    assert (pace.seconds, pace.due()) == (5.0, False)
    clock.time += 19.9
    assert not pace.due()
    clock.time += 0.1
    assert pace.due()
    pace.saved()
    assert not pace.due()
    assert Pace(None, 0.0, clock).due() is False


def test_the_time_that_is_spent_is_noted_and_counts_on(tmp_path):
    clock = Clock()
    pace = Pace(tmp_path, 0.0, clock)
    clock.time += 9.0  # killed before any checkpoint
    assert not pace.due()
    assert Pace(tmp_path, 0.0, clock).seconds == 9.0
    assert Pace(tmp_path, 30.0, clock).seconds == 30.0
    for text in (
        "",
        "{",
        '{"seconds": "x"}',
        '{"seconds": -5}',
        "[]",
        '{"seconds": NaN}',
        "9" * 2000,
    ):
        (tmp_path / "spent.json").write_text(text)
        assert 0 <= Pace(tmp_path, 3.0, clock).seconds <= 3.0


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
def test_a_stop_signal_waits_for_the_checkpoint(tmp_path, number, raised):
    before = signal.getsignal(number)
    with Pace(tmp_path, 0.0, Clock()) as pace:
        os.kill(os.getpid(), number)
        assert pace.due()
        with pytest.raises(raised):
            pace.saved()
        with pytest.raises(raised):  # asked again: at once
            pace._asked(number, None)
    assert signal.getsignal(number) is before


@pytest.fixture(scope="module")
def ring():
    return gsn(600, (9,), periodic=True, random_state=0).X


def train(X, folder, steps, **options):
    rng = np.random.default_rng(0)
    return training.solve(
        X, RING, rng, steps=steps, settings={"batch": 32}, folder=folder, **options
    )


def state(folder):
    tensors, header = read_checkpoint(folder / "checkpoint.safetensors")
    return {name: value.numpy().copy() for name, value in tensors.items()}, header


@pytest.mark.parametrize(
    "at", [CHECK - 13, CHECK, CHECK + 1], ids=["in between", "at a check", "after one"]
)
def test_stopped_at_any_step_a_training_ends_the_same(ring, tmp_path, monkeypatch, at):
    train(ring, tmp_path / "whole", 2 * CHECK)
    step = Trainer.step

    def stopped(self):
        step(self)
        if self.step_count == at:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "step", stopped)
        with pytest.raises(SystemExit):
            train(ring, tmp_path / "stopped", 2 * CHECK)
    assert state(tmp_path / "stopped")[1]["step"] == at
    train(ring, tmp_path / "stopped", 2 * CHECK)
    whole, again = state(tmp_path / "whole"), state(tmp_path / "stopped")
    assert again[1]["step"] == 2 * CHECK
    assert whole[0].keys() == again[0].keys()
    assert all(np.array_equal(whole[0][name], again[0][name]) for name in whole[0])


def test_checkpoints_are_written_by_the_clock(ring, tmp_path, monkeypatch):
    steps = []
    save = Trainer.save
    monkeypatch.setattr(
        Trainer, "save", lambda self, path: (steps.append(self.step_count), save(self, path))
    )
    clock = Clock(step=1.0)  # a second for each reading: one in a step, a few at a check
    monkeypatch.setattr(paces.time, "perf_counter", clock)
    train(ring, tmp_path, CHECK)
    assert len(steps) >= 2
    assert all(10 <= late - early <= 20 for early, late in itertools.pairwise(steps[:-1]))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint.safetensors", "spent.json"]


def test_a_budget_counts_over_resumptions(ring, tmp_path, monkeypatch):
    (tmp_path / "spent.json").write_text(
        json.dumps({"seconds": 59.0})
    )  # five kills have used up nearly all of it
    clock = Clock(step=0.25)
    monkeypatch.setattr(paces.time, "perf_counter", clock)
    solution = train(ring, tmp_path, 10 * CHECK, seconds=60.0)
    assert solution.trace.training.ended == "seconds"
    assert solution.trace.training.steps <= CHECK
    assert solution.trace.training.seconds >= 60.0
