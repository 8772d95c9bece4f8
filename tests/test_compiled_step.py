"""The compiled training step: the same numbers as the step that it replaces."""

from __future__ import annotations

import math
import shutil
import sysconfig
from pathlib import Path

import numpy as np
import pytest
import torch

from symlift.core.grid import Grid
from symlift.errors import FitWarning, TrainingError
from symlift.solvers.neural import compiled
from symlift.solvers.neural.compiled import CompiledStep
from symlift.solvers.neural.objective.convolution import Layer
from symlift.solvers.neural.presets import Estimator, Settings
from symlift.solvers.neural.trainer import Trainer
from symlift.solvers.neural.training import starting_model

SMALL = Estimator(layers=(Layer(2, 3), Layer(3, 3)), padding="cyclic", head="pooled", whole=False)
RING, IMAGE = Grid((7,), periodic=True), Grid((8, 5))


def settings_of(grid: Grid, **more: object) -> Settings:
    """The printed training in small: its clock, its parametrisation, double precision."""
    shared = {
        "estimators": (SMALL,), "batch": 24, "embedding": "identity", "dimension": grid.size,
        "parametrisation": "eigenvectors", "clock": "paper", "steps": 1_000, "keep": "last",
        "precision": "float64",
    }  # fmt: skip
    return Settings(**shared | more)  # type: ignore[arg-type]


def trainer_of(grid: Grid, settings: Settings, compile_steps: bool) -> Trainer:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, grid.size)) ** 3
    start = starting_model(X, grid, settings, 3)
    rows = np.arange(200)
    return Trainer(X, rows[:160], rows[160:], start, settings, 3, compiled=compile_steps)


def parameters_of(trainer: Trainer) -> dict[str, torch.Tensor]:
    return trainer.network.state_dict() | trainer.objective.state_dict()


def take_steps(trainer: Trainer, count: int) -> Trainer:
    trainer._set_rates()
    for _ in range(count):
        trainer.step()
    return trainer


def call_it_as_it_is(monkeypatch) -> None:
    """Let the function that would be compiled be called itself, which takes no compiler."""
    monkeypatch.setattr(compiled.torch, "compile", lambda function, **_: function)
    step = CompiledStep.__call__

    def traced(self, *given):
        with monkeypatch.context() as within:
            self.asked = self.asked or self._numbers_asked(*given[1:])
            within.setattr(torch.compiler, "is_compiling", lambda: True)
            return step(self, *given)

    monkeypatch.setattr(CompiledStep, "__call__", traced)


CASES = {
    "ring": (RING, {}),
    "two estimators, one of them coarse": (
        RING,
        {"estimators": (SMALL, SMALL.model_copy(update={"coarse": 2}))},
    ),
    "an image, clipped": (
        IMAGE,
        {
            "estimators": (Estimator(layers=(Layer(2, 3), Layer(3, 3))),),
            "embedding": "zero-pad",
            "dimension": 45,
            "clip": 0.01,
        },
    ),
    "a learned embedding, planes": (RING, {"embedding": "linear", "parametrisation": "planes"}),
    "alternating, printed entropy, nothing standardised": (
        RING,
        {"updates": "alternating", "entropy": "printed", "standardise": False},
    ),
    "three steps of estimators, all clipped": (
        RING,
        {"updates": "alternating", "estimator_steps": 3, "clip": 0.01, "estimator_clip": 0.02},
    ),
    "one generator, the code's window and the larger direction": (
        RING,
        {
            "parametrisation": "generator",
            "window": "share",
            "estimator_clip": 0.02,
            "estimators": (SMALL.model_copy(update={"norm": "share", "either": True}),),
        },
    ),
    "no stationarity": (RING, {"stationarity": 0.0}),
    "no resolution": (RING, {"resolution": 0.0}),
    "no infomax": (RING, {"infomax": 0.0}),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_compiled_gives_the_numbers_of_the_plain_step(name, monkeypatch):
    call_it_as_it_is(monkeypatch)
    grid, more = CASES[name]
    settings = settings_of(grid, **more)
    plain = take_steps(trainer_of(grid, settings, compile_steps=False), 12)
    other = take_steps(trainer_of(grid, settings, compile_steps=True), 12)
    assert other.learners.compiled_step is not None
    assert plain.learners.compiled_step is None
    before = parameters_of(trainer_of(grid, settings, compile_steps=False))
    after, expected = parameters_of(other), parameters_of(plain)
    assert {name for name in after if not torch.equal(after[name], before[name])} >= {
        name for name in expected if not torch.equal(expected[name], before[name])
    }
    for key, value in expected.items():
        assert torch.allclose(after[key], value, rtol=1e-7, atol=1e-9), key
    assert torch.allclose(other.sums, plain.sums, rtol=1e-7, atol=1e-9)
    # the same random numbers were used up
    assert torch.equal(other.workers.generator.get_state(), plain.workers.generator.get_state())


def test_optimisers_hold_what_a_plain_step_would_have_left(monkeypatch):
    call_it_as_it_is(monkeypatch)
    settings = settings_of(RING)
    plain = take_steps(trainer_of(RING, settings, compile_steps=False), 6)
    other = take_steps(trainer_of(RING, settings, compile_steps=True), 6)
    tensors, header = plain.state()
    others, other_header = other.state()
    assert header["step"] == other_header["step"]
    assert tensors.keys() == others.keys()
    for name, value in tensors.items():
        if value.is_floating_point():
            assert torch.allclose(others[name], value, rtol=1e-7, atol=1e-10), name


def test_steps_that_cannot_be_compiled_are_taken_as_before():
    settings = settings_of(RING, moments=(1.0, 1.0))
    trainer = take_steps(trainer_of(RING, settings, compile_steps=True), 2)
    assert trainer.learners.compiled_step is None
    assert trainer.step_count == 2
    assert not CompiledStep.suits(trainer.objective, trainer.workers)


# torch's compiler makes no valid code of this for processors without vector instructions
COMPILER = (
    shutil.which("g++")
    and (Path(sysconfig.get_path("include")) / "Python.h").is_file()
    and torch.backends.cpu.get_cpu_capability() != "DEFAULT"
)


@pytest.mark.skipif(not COMPILER, reason="there is no compiler, or nothing to compile against")
# a compiler that is wrong here is found out (below), and then plain steps give the same numbers
@pytest.mark.filterwarnings("ignore:the training step cannot be compiled")
def test_the_compiled_function_gives_them_too_and_a_run_resumes(tmp_path):
    settings = settings_of(RING, stationarity=0.0, steps=60)  # without critics: half a minute less
    plain = take_steps(trainer_of(RING, settings, compile_steps=False), 10)
    other = take_steps(trainer_of(RING, settings, compile_steps=True), 10)
    for key, value in parameters_of(plain).items():
        assert torch.allclose(parameters_of(other)[key], value, rtol=1e-6, atol=1e-8), key
    other.save(tmp_path / "checkpoint")
    again = trainer_of(RING, settings, compile_steps=True)
    again.restore(tmp_path / "checkpoint")
    take_steps(again, 5), take_steps(other, 5)
    for key, value in parameters_of(other).items():
        assert torch.equal(parameters_of(again)[key], value), key


def raises(*_: object) -> torch.Tensor:
    raise torch._dynamo.exc.TorchDynamoException("inductor raised:\nno compiler\nmore lines")


def does_not_run(*_: object) -> torch.Tensor:
    raise RuntimeError


def is_wrong(x: torch.Tensor, noise: object, rank: object, draws: object, state, adam):
    for average in adam[0]:
        average.add_(0.1)
    for p in state[0].values():
        p.fill_(math.nan)
    return x.new_ones(4)


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (raises, "inductor raised: no compiler"),
        (does_not_run, "its code does not run here"),
        (is_wrong, "not those of a plain one"),
    ],
)
def test_where_compiling_fails_plain_steps_go_on(monkeypatch, broken, told):
    monkeypatch.setattr(compiled.torch, "compile", lambda function, **_: broken)
    settings = settings_of(RING)
    with pytest.warns(FitWarning, match=rf"compiled here \(.*{told}\): plain"):
        other = take_steps(trainer_of(RING, settings, compile_steps=True), 6)
    plain = take_steps(trainer_of(RING, settings, compile_steps=False), 6)
    tensors, others = plain.state()[0], other.state()[0]
    assert tensors.keys() == others.keys()
    assert all(torch.equal(others[name], value) for name, value in tensors.items())


def test_compiled_code_that_fails_later_names_what_is_not_finite(monkeypatch):
    """Compiled code raises an error without a word where a decomposition fails."""
    call_it_as_it_is(monkeypatch)
    trainer = take_steps(trainer_of(RING, settings_of(RING), compile_steps=True), 3)
    trainer.learners.compiled_step._compiled["both"] = does_not_run
    with pytest.raises(RuntimeError) as raised:
        trainer.step()
    assert type(raised.value) is RuntimeError
    with torch.no_grad():
        trainer.network.filter.fill_(math.nan)
    with pytest.raises(TrainingError, match="not finite at step 4: there is no checkpoint"):
        trainer.run()
