"""The paper's training: network, clock, trainer, checkpoints, restarts, processes."""

from __future__ import annotations

import itertools
import json
import math
import os
import signal
import socket
import subprocess
import sys
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from scipy.linalg import expm

from symlift import LatentDomain
from symlift.core.grid import Grid
from symlift.core.group import TranslationGroup, rotate_planes
from symlift.datasets import gsn
from symlift.errors import FitWarning, InputError, TrainingError
from symlift.metrics import signal_recovery
from symlift.solvers.contract import no_progress
from symlift.solvers.fast import pipeline as fast
from symlift.solvers.neural import training as neural
from symlift.solvers.neural.checkpoint import read_checkpoint, write_checkpoint
from symlift.solvers.neural.clock import Clock
from symlift.solvers.neural.data import TrainingRows, input_statistics, split_held_out
from symlift.solvers.neural.network import LiftingNetwork, initial_model
from symlift.solvers.neural.objective.batch import Lifted, Workers
from symlift.solvers.neural.objective.critic import Layer
from symlift.solvers.neural.presets import (
    PRESETS,
    Estimator,
    Settings,
    fitted,
    preset_for,
    refining,
)
from symlift.solvers.neural.trainer import CHECK, Budget, Trainer

RING = Grid((15,), periodic=True)
SMALL = Settings(
    batch=64,
    embedding="identity",
    dimension=15,
    estimators=(Estimator(layers=(Layer(4, 5), Layer(8, 3))),),
    steps=10_000,
)


@pytest.fixture(scope="module")
def ring() -> np.ndarray:
    return gsn(2_000, (15,), periodic=True, random_state=0).X.astype(np.float64)


@pytest.fixture
def often(monkeypatch) -> None:
    """Evaluations and checkpoints every 100 steps instead of every 1,000."""
    for name in ("EVALUATE", "SAVE"):
        monkeypatch.setattr(f"symlift.solvers.neural.trainer.{name}", 100 // CHECK)


def start_on(
    grid: Grid, X: np.ndarray, seed: int = 0, dimension: int | None = None, kind: str = "identity"
):
    mean, scale = input_statistics(X)
    d = X.shape[1]
    return initial_model(
        grid,
        np.full(d, mean),
        scale,
        dimension or d,
        kind,
        torch.Generator().manual_seed(seed),
    )


def trainer_on(
    X: np.ndarray, settings: Settings = SMALL, seed: int = 0, grid: Grid = RING, **options
) -> Trainer:
    split = split_held_out(len(X), np.random.default_rng(0))
    start = options.pop("start", None) or start_on(
        grid, X, seed, settings.dimension, settings.embedding
    )
    return Trainer(X, *split, start, settings, seed, **options)


def parameters(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in trainer.state()[0].items()}


def same(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> bool:
    return left.keys() == right.keys() and all(
        torch.equal(left[name], right[name]) for name in left
    )


# -- the start and the network ---------------------------------------------------------------------


def test_the_start_is_near_zero_in_frequency_and_haar_random_in_its_planes(ring):
    models = [start_on(RING, ring, seed) for seed in range(40)]
    theta = np.stack([m.group.theta[0] for m in models])
    assert 1e-4 < np.abs(theta).max() < 0.02
    first = np.stack([m.group.Q[:, 0] for m in models])
    # columns of Haar-random matrices: uncorrelated entries of variance 1/d; Q = I would put all of
    # it in one place
    assert np.abs((first**2).mean(axis=0) - 1 / 15).max() < 0.09
    assert not np.allclose(models[0].group.Q, models[1].group.Q)
    for model in models[:3]:
        assert np.allclose(model.group.Q.T @ model.group.Q, np.eye(15), atol=1e-10)


def test_several_axes_share_planes_and_have_their_own_frequencies():
    X = np.random.default_rng(0).normal(size=(100, 30))
    model = start_on(Grid((5, 6)), X, dimension=45, kind="zero-pad")
    assert model.group.theta.shape == (2, 22)
    assert not np.allclose(model.group.theta[0], model.group.theta[1])


@pytest.mark.portable
@pytest.mark.parametrize("grid", [Grid((6,)), Grid((7,), periodic=True), Grid((3, 4))])
def test_the_network_and_its_model_have_the_same_lifting_map(grid):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, grid.size)) * 3 + 1
    D = grid.size if grid.size % 2 else grid.size + 3
    start = start_on(grid, X, dimension=D, kind="identity" if D == grid.size else "zero-pad")
    network = LiftingNetwork(start, torch.float64)
    with torch.no_grad():
        for p in network.parameters():  # anywhere, offsets and rotations included
            p.add_(
                0.3
                * torch.randn(p.shape, generator=torch.Generator().manual_seed(1), dtype=p.dtype)
            )
    W = network().detach().numpy() / start.scale
    assert np.allclose(network.model().lifting_map(), W, atol=1e-10)


def test_a_given_model_is_kept_by_the_network(ring):
    model = fast.solve(ring, RING, np.random.default_rng(0)).model
    network = LiftingNetwork(model, torch.float64)
    assert np.allclose(network.model().lifting_map(), model.lifting_map(), atol=1e-9)


def test_a_learned_embedding_is_shaped_but_not_scaled():
    X = np.random.default_rng(0).normal(size=(50, 12))
    start = start_on(Grid((6,)), X, dimension=9, kind="linear")
    network = LiftingNetwork(start, torch.float64)
    with torch.no_grad():
        network.E.mul_(7.0).add_(0.1)
    network.condition_embedding()
    singular = torch.linalg.svdvals(network.E.detach())
    assert math.isclose(float(torch.log(singular).mean()), 0.0, abs_tol=1e-12)
    assert float(singular.max() / singular.min()) > 1.01


def test_gradients_of_the_whole_loss_match_finite_differences(ring):
    trainer = trainer_on(
        ring,
        SMALL.model_copy(
            update={"precision": "float64", "gaussian": (1.0, 1.0), "critics": (0.0, 0.0)}
        ),
    )
    network, objective = trainer.network, trainer.objective
    x = trainer.rows.draw(200, trainer.workers)
    noise = torch.linspace(0.1, 0.8, len(network.filter), dtype=torch.float64)

    def loss() -> torch.Tensor:
        batch = Lifted.of(
            x @ network(noise).T, trainer.workers, torch.tensor(3.0, dtype=torch.float64)
        )
        return objective(batch, 0.5)[0]

    loss().backward()
    rng = np.random.default_rng(0)
    for name, p in network.named_parameters():
        if name == "offset":
            continue  # nothing to learn on a ring
        assert p.grad is not None
        assert float(p.grad.abs().max()) > 0, name
        index = tuple(int(rng.integers(n)) for n in p.shape)
        with torch.no_grad():
            p[index] += 1e-5
            above = float(loss())
            p[index] -= 2e-5
            below = float(loss())
            p[index] += 1e-5
        assert math.isclose(
            (above - below) / 2e-5, float(p.grad[index]), rel_tol=1e-4, abs_tol=1e-6
        ), name


# -- data ------------------------------------------------------------------------------------------


def test_one_mean_and_one_deviation_for_all_columns():
    X = np.random.default_rng(0).normal(size=(400, 3)) * [1, 2, 3] + [0, 1, 5]
    mean, deviation = input_statistics(X)
    assert math.isclose(mean, X.mean())
    assert math.isclose(deviation, X.std())


@given(n=st.integers(2, 200))
def test_held_out_rows_are_not_trained_on(n):
    train, held = split_held_out(n, np.random.default_rng(n), most=20)
    assert sorted([*train, *held]) == list(range(n))
    assert len(held) == min(20, n // 5)


def test_mixing_has_the_moments_of_superpositions():
    X = np.random.default_rng(0).exponential(size=(500, 2))
    workers = Workers(torch.Generator().manual_seed(0))
    rows = TrainingRows(X, np.arange(500), torch.zeros(2, dtype=torch.float64), 1.0, mixing=8)
    drawn = rows.draw(40_000, workers).numpy()
    assert np.allclose(drawn.mean(axis=0), 4 * X.mean(axis=0), rtol=0.02)
    expected = 8 * (np.mean(X**2, axis=0) / 2 - X.mean(axis=0) ** 2 / 4)
    assert np.allclose(drawn.var(axis=0), expected, rtol=0.05)


def test_noise_is_added_and_a_memmap_gives_the_same_rows(tmp_path, monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    mean = torch.zeros(4)

    def drawn(data, noise=0.0):
        return TrainingRows(data, np.arange(300), mean, 2.0, noise=noise).draw(
            50, Workers(torch.Generator().manual_seed(3))
        )

    inside = drawn(X)
    monkeypatch.setattr("symlift.solvers.neural.data._IN_MEMORY", 0)
    assert torch.equal(drawn(mapped), inside)
    difference = drawn(mapped, noise=0.5) - inside
    assert 0.4 < float(difference.std()) < 0.6


# -- the clock -------------------------------------------------------------------------------------


def advance(
    clock: Clock, settings: Settings, values: list[float], every: int = 50, step: int = 0
) -> tuple[Clock, int]:
    for value in values:
        step += every
        clock = clock.advance(settings, step, every, value)
    return clock, step


def test_the_rank_waits_for_the_fit_and_opens_by_pairs():
    settings = Settings(rank_speed=0.02, patience=0.05, dwell=100, stall=100_000, settle=200)
    clock = Clock.start(settings, points=5)
    clock, step = advance(clock, settings, [0.5] * 20)
    assert clock.rank == 2.5
    clock, step = advance(clock, settings, [0.0] * 20, step=step)
    assert clock.rank > 3.0
    clock, step = advance(clock, settings, [0.0] * 60, step=step)
    assert clock.rank == clock.full == 5.5
    assert clock.settled is not None
    assert clock.finished
    assert math.isclose(clock.factor, settings.decay**2)  # from a tenth on, a tenth again


def test_a_rank_that_never_fits_goes_on_in_the_end():
    settings = Settings(rank_speed=0.1, stall=500, settle=100)
    clock, _ = advance(Clock.start(settings, points=5), settings, [1.0] * 60)
    assert clock.finished


def test_a_low_rank_that_never_fits_is_lost_until_there_are_no_more_draws():
    settings = Settings(rank_speed=0.1, stall=500, settle=100, must_fit=0.5, retries=2)
    clock, step = advance(Clock.start(settings, points=5, draws=2), settings, [1.0] * 10)
    assert (clock.rank, clock.lost) == (2.5, False)
    clock, _ = advance(clock, settings, [1.0] * 5, step=step)
    assert clock.lost
    patient, _ = advance(clock.start(settings, points=5, draws=3), settings, [1.0] * 60)
    assert patient.finished
    assert not patient.lost
    # what comes in time is not lost, nor is a high rank that stalls
    fine, step = advance(Clock.start(settings, points=5), settings, [0.0] * 13)
    assert (fine.rank, fine.lost) == (4.5, False)
    assert not advance(fine, settings, [1.0] * 30, step=step)[0].lost


def test_the_clock_closes_at_a_rank_that_fits_or_stalls():
    settings = Settings(rank_speed=0.1, stall=500, close_at=4.5)
    for values in ([0.0] * 60, [1.0] * 60):
        clock, step = Clock.start(settings, points=9), 0
        for value in values:
            step += 50
            clock = clock.advance(settings, step, 50, value)
            if clock.closing:
                break
        assert (clock.closing, clock.rank, clock.settled) == (True, 4.5, None)
    near = Clock.start(settings, points=9, opened=True, began=step)
    assert (
        near.advance(settings, step + 50, 50, 1.0).factor > 0.9
    )  # from the whole of the near rate
    assert not advance(near, settings, [0.0] * 60, step=step)[0].closing


def test_the_papers_clock_follows_the_summed_learning_rate():
    settings = Settings(clock="paper", steps=1000, decay=0.1)
    clock = Clock.start(settings, points=20)
    rates = 0.1 ** (np.arange(1, 1001) / 1000)
    for step in (200, 500, 900):
        now = clock.advance(settings, step, 50, 1.0)
        assert now.rank == math.ceil(20 * rates[:step].sum() / rates.sum())
        assert math.isclose(now.factor, 0.1 ** (step / 1000))
        assert not now.finished
    assert clock.advance(settings, 1000, 50, 1.0).finished


def test_a_near_start_only_settles_and_a_limit_bounds_the_rank():
    clock = Clock.start(Settings(settle=100), points=9, opened=True)
    assert clock.rank == 9.5
    assert advance(clock, Settings(settle=100), [9.0, 9.0])[0].finished
    assert Clock.start(Settings(rank_limit=3.0), points=9, opened=True).rank == 3.0


@settings(max_examples=40)
@given(values=st.lists(st.floats(0, 2), min_size=1, max_size=80), points=st.integers(2, 12))
def test_the_clock_never_turns_back(values, points):
    options = Settings(rank_speed=0.05, stall=400, settle=300)
    clock, step = Clock.start(options, points), 0
    for value in values:
        before, step = clock, step + 50
        clock = clock.advance(options, step, 50, value)
        assert before.rank <= clock.rank <= clock.full
        assert options.decay**2 - 1e-12 <= clock.factor <= 1
        assert 0 <= clock.share(options, step) <= 1


# -- presets ---------------------------------------------------------------------------------------


def test_presets_carry_the_papers_weights():
    table = {
        "gsn63": (1.0, 1.0, 0.75),
        "ising33": (1.0, 1.0, 0.75),
        "visual-coding": (2.5, 0.2, 0.2),
        "gsn15": (1.5, 1.0, 0.75),
        "mnist15": (1.0, 0.2, 0.15),
        "mnist27": (1.0, 0.2, 0.15),
        "mnist15-bits": (1.0, 0.2, 0.15),
        "mnist27-bits": (1.0, 0.2, 0.15),
        "mnist7-bits": (1.0, 0.2, 0.15),
    }
    assert {name: (s.stationarity, s.resolution, s.infomax) for name, s in PRESETS.items()} == table


@pytest.mark.parametrize(
    ("grid", "d"),
    [
        (Grid((4,)), 4),
        (Grid((8,), periodic=True), 8),
        (Grid((33,)), 33),
        (Grid((63,)), 80),
        (Grid((4, 5)), 20),
        (Grid((3, 3)), 72),
        (Grid((3, 3, 3)), 27),
        (Grid((30, 30)), 900),
    ],
)
def test_every_grid_has_settings_that_fit(grid, d):
    chosen = fitted(PRESETS[preset_for(grid, d)], grid, d)
    assert chosen.dimension is not None
    X = np.random.default_rng(0).normal(size=(40, d))
    model = start_on(grid, X, dimension=chosen.dimension, kind=chosen.embedding)
    assert model.lifting_map().shape == (grid.size, d)


def test_only_runs_with_all_terms_and_maps_that_keep_lengths_close():
    preset = PRESETS["gsn15"]
    assert fitted(preset, RING, 15).close_at == preset.close_at
    for term in ("stationarity", "resolution", "infomax"):
        assert fitted(preset.model_copy(update={term: 0.0}), RING, 15).close_at is None
    assert fitted(PRESETS["gsn63"], Grid((63,)), 200).close_at is None


def test_bad_settings_are_refused_in_one_line(ring):
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="'x' is unknown: use one of ours, paper, released, gsn15"):
        neural.solve(ring, RING, rng, preset="x")
    with pytest.raises(InputError, match="settings of the training are not valid") as error:
        neural.solve(ring, RING, rng, settings={"batch": 0})
    assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="device 'nonsense' cannot be used"):
        neural.pick_device("nonsense")
    assert neural.pick_device("cpu").type == "cpu"
    with pytest.raises(InputError, match="batch of 64 rows cannot be shared by 5 processes"):
        trainer_on(ring, workers=(0, 5))
    with pytest.raises(
        InputError,
        match="cannot be shared by 64 processes: use a multiple of it, two rows each or more",
    ):
        trainer_on(ring, workers=(0, 64))


# -- training --------------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", ["float32", "float64", "bfloat16"])
def test_a_step_moves_every_parameter(ring, precision):
    trainer = trainer_on(ring, SMALL.model_copy(update={"precision": precision}))
    before = parameters(trainer)
    trainer.run(Budget(steps=100))
    after = parameters(trainer)
    learned = [n for n in before if n.startswith(("network.", "objective."))]
    still = {n for n in learned if torch.equal(before[n], after[n])}
    # offsets have nothing to learn on a ring; base and fixed buffers may stay
    assert still <= {"network.offset", "network.rotation.base", "network.E", "network.mean"}
    assert trainer.ended == "steps"


@pytest.mark.portable
def test_the_same_seed_gives_the_same_run_and_another_one_another(ring):
    one, two, three = (
        parameters(trainer_on(ring, seed=seed).run(Budget(steps=50))) for seed in (1, 1, 2)
    )
    assert same(one, two)
    assert not same(one, three)


def test_training_leaves_the_global_generators_alone(ring):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    trainer_on(ring).run(Budget(steps=50))
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.portable
@pytest.mark.usefixtures("often")
def test_a_resumed_run_equals_an_uninterrupted_one(ring, tmp_path):
    whole = trainer_on(ring).run(Budget(steps=300))
    trainer_on(ring).run(Budget(steps=150), folder=tmp_path)
    again = trainer_on(ring)
    again.restore(tmp_path / "checkpoint.safetensors")
    assert again.step_count == 150
    again.run(Budget(steps=300), folder=tmp_path)
    assert same(parameters(whole), parameters(again))
    assert whole.clock == again.clock
    assert whole.best.step == again.best.step
    told = [json.loads(line) for line in (tmp_path / "training.jsonl").read_text().splitlines()]
    assert [line["step"] for line in told] == [100, 200, 300]


_KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from symlift.solvers.neural import trainer
from test_neural import briefly
trainer.SAVE = 200 // trainer.CHECK
checks = 0
def die(*_):
    global checks
    checks += 1
    if checks == 250 // trainer.CHECK:
        os.kill(os.getpid(), signal.SIGKILL)
briefly(Path(sys.argv[2]), die)
"""


def briefly(folder: Path, progress=no_progress) -> None:
    X = gsn(2000, (15,), periodic=True, random_state=0).X
    rng = np.random.default_rng(0)
    neural.solve(X, RING, rng, folder=folder, steps=300, settings={"batch": 64}, progress=progress)


def test_kill_nine_and_resume_ends_with_identical_parameters(tmp_path, monkeypatch):
    monkeypatch.setattr("symlift.solvers.neural.trainer.SAVE", 200 // CHECK)
    briefly(tmp_path / "whole")
    command = [sys.executable, "-c", _KILLED, str(Path(__file__).parent), tmp_path / "killed"]
    assert subprocess.run(command, timeout=600).returncode == -signal.SIGKILL
    assert read_checkpoint(tmp_path / "killed" / "checkpoint.safetensors")[1]["step"] == 200
    briefly(tmp_path / "killed")
    left, right = (
        read_checkpoint(tmp_path / name / "checkpoint.safetensors") for name in ("whole", "killed")
    )
    assert left[1]["step"] == right[1]["step"] == 300
    assert same(left[0], right[0])


@pytest.mark.portable
@pytest.mark.usefixtures("often")
def test_a_lost_run_starts_again_from_another_draw_and_can_still_be_resumed(ring, tmp_path):
    lost = SMALL.model_copy(
        update={"patience": 1e-9, "rank_speed": 0.02, "stall": 50, "must_fit": 0.3, "retries": 1}
    )
    told: list[str] = []
    whole = trainer_on(ring, lost).run(
        Budget(steps=350), progress=lambda stage, _: told.append(stage)
    )
    assert (whole.clock.draws, whole.clock.began) == (
        2,
        100,
    )  # 1.5 to 2.5 in 50 steps, waited for 50
    assert [("start 2" in stage) for stage in told] == [False] * 2 + [True] * 5
    assert whole.history[0]["step"] == 0
    for steps in (200, 350):
        again = trainer_on(ring, lost)
        if steps == 350:
            again.restore(tmp_path / "checkpoint.safetensors")
            assert again.clock.draws == 2
        again.run(Budget(steps=steps), folder=tmp_path)
    assert same(parameters(whole), parameters(again))
    assert whole.clock == again.clock


@pytest.mark.portable
@pytest.mark.parametrize("periodic", [True, False], ids=["ring", "line"])
@pytest.mark.usefixtures("often")
def test_a_run_that_closes_goes_on_from_the_nearest_isometry_and_can_still_be_resumed(
    ring, tmp_path, periodic
):
    grid = Grid((15,), periodic=periodic)
    embedding = {} if periodic else {"embedding": "zero-pad", "dimension": 25}
    closes = SMALL.model_copy(
        update={"rank_speed": 0.02, "stall": 50, "close_at": 2.5, "data_noise": 0.1, **embedding}
    )
    seen: dict[int, np.ndarray] = {}
    whole = trainer_on(ring, closes, grid=grid)
    whole.run(Budget(steps=100))
    assert (whole.clock.near, whole.clock.began) == (True, 100)
    whole.run(
        Budget(steps=250), watch=lambda step, model, _: seen.setdefault(step, model.lifting_map())
    )
    assert whole.settings.infomax == closes.near_infomax
    assert whole.best.step >= 100  # the objective before was another one
    # warm-up: estimators alone learn, and the map is the isometry that it was when it closed
    assert np.allclose(
        seen[200] @ seen[200].T, np.eye(15) / whole.start.scale**2, atol=1e-4 / whole.start.scale**2
    )
    for steps in (150, 250):
        again = trainer_on(ring, closes, grid=grid)
        if steps == 250:
            again.restore(tmp_path / "checkpoint.safetensors")
        again.run(Budget(steps=steps), folder=tmp_path)
    assert same(parameters(whole), parameters(again))
    assert np.array_equal(whole.best_model().group.Q, again.best_model().group.Q)


@pytest.mark.usefixtures("often")
def test_a_term_that_is_not_finite_stops_the_run_and_names_step_term_and_checkpoint(ring, tmp_path):
    trainer = trainer_on(ring).run(Budget(steps=100), folder=tmp_path)
    with torch.no_grad():
        trainer.objective.resolution.marginals.mean[0, 0] = math.nan
    with pytest.raises(
        TrainingError,
        match=(
            r"resolution term was not finite at step 101: the last good checkpoint is .*safetensors"
        ),
    ):
        trainer.run(folder=tmp_path)
    assert read_checkpoint(tmp_path / "checkpoint.safetensors")[1]["step"] == 100
    broken = trainer_on(ring).run(Budget(steps=50))
    with torch.no_grad():
        broken.network.theta[0, 0] = math.nan
    with pytest.raises(
        TrainingError, match=r"not finite at step 51: there is no checkpoint before it"
    ):
        broken.run()


def test_damaged_and_foreign_checkpoints_are_refused(ring, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    trainer = trainer_on(ring)
    trainer.save(path)
    with pytest.raises(InputError, match="other settings"):
        trainer_on(ring, SMALL.model_copy(update={"rate": 0.5})).restore(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="is damaged"):
        trainer.restore(path)
    save_file({"a": torch.zeros(1)}, path)
    with pytest.raises(InputError, match="is not a symlift checkpoint"):
        trainer.restore(path)
    tensors, header = trainer.state()
    del tensors["generator"]
    write_checkpoint(path, tensors, header)
    with pytest.raises(InputError, match="does not fit this run"):
        trainer.restore(path)


def test_budgets_end_a_run_and_progress_tells_terms_and_rank(ring, monkeypatch):
    told: list[tuple[str, float | None]] = []
    ticks = (
        itertools.count()
    )  # a clock that goes on by a second each time that it is read: once for each check
    monkeypatch.setattr(
        "symlift.solvers.neural.pace.time", SimpleNamespace(perf_counter=lambda: float(next(ticks)))
    )
    solution = neural.solve(
        ring,
        RING,
        np.random.default_rng(0),
        seconds=4.5,
        settings={"batch": 64},
        progress=lambda *a: told.append(a),
    )
    assert solution.trace.training.ended == "seconds"
    assert (
        solution.trace.training.steps == 4 * CHECK
    )  # asked at 1, 2, 3 and 4 seconds; at 5 the budget is spent
    assert solution.trace.training.seconds == 6
    assert len(told) == 4
    assert "stationarity" in told[-1][0]
    assert "rank" in told[-1][0]
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert 0.4 <= shares[-1] <= 1.0


@pytest.mark.usefixtures("often")
def test_the_best_by_held_out_objective_is_kept(ring):
    seen: list[tuple[float, np.ndarray]] = []
    solution = neural.solve(
        ring, RING, np.random.default_rng(0), steps=400, settings={"batch": 64, "rate": 3e-3},
        watch=lambda step, model, values: seen.append((values["held_out"], model.lifting_map())),
    )  # fmt: skip
    values = [value for value, _ in seen]
    assert len(seen) == 5
    assert np.allclose(solution.model.lifting_map(), seen[int(np.argmin(values))][1])
    assert solution.trace.training.held_out == min(values)


def test_of_several_restarts_the_one_with_the_best_held_out_objective_wins(ring):
    solution = neural.solve(
        ring, RING, np.random.default_rng(0), steps=100, settings={"batch": 64, "restarts": 3}
    )
    ends = [end["held_out"] for end in solution.trace.training.restarts]
    assert len(set(ends)) == 3
    assert solution.trace.training.held_out == min(ends)


def test_the_estimator_runs_the_papers_training_by_name(ring):
    est = LatentDomain(grid=(15,), periodic=True, solver="neural", random_state=0)
    with pytest.warns(FitWarning, match="ended before it had converged"):
        est.set_params(solver_options={"steps": 200}).fit(ring)
    assert not est.evidence_.found
    assert est.transform(ring).shape == ring.shape
    assert est.trace_.solver == "neural"


# -- what it finds ---------------------------------------------------------------------------------


def spoiled(model, rng: np.random.Generator):
    """Q turned by exp(0.3 · random skew), θ changed by 10 %."""
    D = model.group.dimension
    draw = rng.normal(size=(D, D))
    skew = (draw - draw.T) / math.sqrt(2 * D)
    theta = model.group.theta * (1 + 0.1 * rng.choice([-1, 1], size=model.group.theta.shape))
    return replace(model, group=TranslationGroup(model.group.Q @ expm(0.3 * skew), theta))


@pytest.mark.portable
def test_from_a_spoiled_model_training_closes_at_least_half_of_the_gap():
    data = gsn(20_000, (15,), periodic=True, random_state=0)
    rng = np.random.default_rng(0)
    good = fast.solve(data.X, RING, rng).model
    bad = spoiled(good, rng)

    def r(model) -> float:
        return signal_recovery(
            data.latent[:2000], model.lift(data.X[:2000]), RING.shape, periodic=True
        ).r

    solution = neural.solve(data.X, RING, rng, start=bad, steps=1_000, settings={"settle": 8_000})
    assert r(bad) < r(good) - 0.05
    assert r(solution.model) > (r(good) + r(bad)) / 2
    moved = solution.model.group.Q - bad.group.Q
    assert np.linalg.norm(moved) > 0.1
    assert np.abs(solution.model.group.theta - bad.group.theta).max() > 1e-3


def test_a_near_start_has_weights_of_its_own_and_what_is_switched_off_stays_off():
    near = refining(PRESETS["ising33"])
    assert (near.moments, near.resolution, near.infomax) == ((30.0, 30.0), 0.1, 30.0)
    assert near.critics == (0.5, 0.5)
    off = refining(Settings(resolution=0.0, infomax=0.0, critics=(0.0, 0.0)))
    assert (off.resolution, off.infomax, off.critics, off.moments) == (
        0.0,
        0.0,
        (0.0, 0.0),
        (0.0, 0.0),
    )


def test_from_a_near_start_estimators_learn_first_and_a_linear_embedding_stays(ring):
    """At first the lifting map is that of the start while critics and mixtures move; then it moves,
    but not its embedding.
    """
    settings = refining(SMALL).model_copy(update={"warm_up": 50, "batch": 50})
    start = replace(start_on(RING, ring), kind="linear", r=np.full(8, 8**-0.5))
    trainer = trainer_on(ring, settings, start=start, near=True)
    before = {name: value.clone() for name, value in parameters(trainer).items()}
    trainer.run(Budget(steps=50))
    warm = parameters(trainer)
    own = [name for name in warm if name.startswith("network.")]
    assert same({name: warm[name] for name in own}, {name: before[name] for name in own})
    assert not same(warm, before)
    warm = {name: value.clone() for name, value in warm.items()}
    trainer.ended = None
    trainer.run(Budget(steps=100))
    after = parameters(trainer)
    assert not torch.equal(after["network.theta"], warm["network.theta"])
    assert np.array_equal(trainer.network.model().E, start.E)


def test_the_last_model_can_be_kept_instead_of_the_best(ring):
    """Terms that are switched off must not be smuggled in again by the choice of a model."""
    good = fast.solve(ring, RING, np.random.default_rng(0)).model
    best, last = (
        neural.solve(
            ring,
            RING,
            np.random.default_rng(0),
            start=good,
            steps=600,  # 100 behind the estimators' own
            settings={"batch": 50, "resolution": 0.0, "keep": keep},
        )
        for keep in ("best", "last")
    )
    assert best.trace.training.best_step == 0
    assert np.allclose(best.model.group.theta, good.group.theta, atol=1e-6)
    assert not np.allclose(last.model.group.theta, good.group.theta, atol=1e-4)


@pytest.fixture(scope="module")
def solved():
    """A larger ring, what the fast solver makes of it, and the generator as it leaves it: to be
    copied, not drawn from.
    """
    data, rng = gsn(20_000, (15,), periodic=True, random_state=1), np.random.default_rng(1)
    return data, fast.solve(data.X, RING, rng).model, rng


@pytest.mark.portable
def test_from_a_good_model_training_does_no_harm(solved):
    data, good, rng = deepcopy(solved)
    solution = neural.solve(data.X, RING, rng, start=good, steps=1_000, settings={"settle": 1_000})
    before, after = (
        signal_recovery(data.latent[:2000], m.lift(data.X[:2000]), RING.shape, periodic=True).r
        for m in (good, solution.model)
    )
    assert after > before - 0.005


@pytest.mark.portable
def test_without_resolution_nothing_puts_the_phases_right(solved):
    """Every other harmonic turned: as stationary as the truth, but not resolved. Only resolution
    sees it.
    """
    data, good, _ = solved
    turned = rotate_planes(good.group.Q, 1.3 * np.array([0, 1, 0, -1, 0, 1, 0]))
    start = replace(good, group=TranslationGroup(turned, good.group.theta))

    def r(model) -> float:
        return signal_recovery(
            data.latent[:2000], model.lift(data.X[:2000]), RING.shape, periodic=True
        ).r

    with_it, without = (
        neural.solve(
            data.X,
            RING,
            np.random.default_rng(1),
            start=start,
            steps=1_000,
            settings={"settle": 1_000, **off},
        )
        for off in ({}, {"resolution": 0.0})
    )
    assert r(start) < 0.85
    assert r(with_it.model) > r(start) + 0.05
    assert r(without.model) < r(start) + 0.02


# -- several processes -----------------------------------------------------------------------------

_WORKER = """
import atexit, os, pathlib, sys, torch
sys.path.insert(0, sys.argv[1])
from test_neural import shared_run
from symlift.solvers.neural.distributed import join_processes
torch.set_num_threads(1)
left = pathlib.Path(sys.argv[2], f"left-{os.environ['RANK']}")
# what is registered first runs last
atexit.register(lambda: torch.distributed.is_initialized() or left.touch())
shared_run(sys.argv[2], *join_processes())
"""


def shared_run(folder: str, rank: int, size: int) -> None:
    """A short training by one of ``size`` processes, and the parameters that it ends with."""
    X = gsn(2000, (15,), periodic=True, random_state=0).X.astype(np.float64)
    coarse = SMALL.estimators[0].model_copy(update={"coarse": 3})
    options = {
        "precision": "float64",
        "estimators": (*SMALL.estimators, coarse),
        "moments": (0.1, 0.1),
        "gaussian": (0.1, 0.1),
        "mixing": 3,
        "data_noise": 0.1,
    }
    trainer = trainer_on(X, SMALL.model_copy(update=options), workers=(rank, size)).run(
        Budget(steps=50)
    )
    save_file(
        {k: v.contiguous() for k, v in trainer.state()[0].items()},
        f"{folder}/{size}-{rank}.safetensors",
    )


def test_two_processes_with_half_a_batch_each_match_one(tmp_path):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    command = [sys.executable, "-c", _WORKER, str(Path(__file__).parent), str(tmp_path)]
    shared = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    both = [
        subprocess.Popen(command, env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in (0, 1)
    ]
    shared_run(str(tmp_path), 0, 1)
    assert [p.wait(timeout=600) for p in both] == [0, 0]
    assert all((tmp_path / f"left-{rank}").exists() for rank in (0, 1))
    one, first, second = (
        load_file(tmp_path / f"{name}.safetensors") for name in ("1-0", "2-0", "2-1")
    )
    for name, value in one.items():
        if name == "generator":
            continue
        assert torch.allclose(first[name], value, rtol=1e-6, atol=1e-9), name
        assert torch.equal(first[name], second[name]), name
