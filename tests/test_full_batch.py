"""The end of a training on all rows at once, when it is tried, and starts from the covariance."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from symlift import Grid
from symlift.datasets import gsn
from symlift.metrics import signal_recovery
from symlift.solvers.neural import trainer as trainers
from symlift.solvers.neural.clock import Clock
from symlift.solvers.neural.data import split_held_out
from symlift.solvers.neural.full_batch import Closing, FullBatch, most_local
from symlift.solvers.neural.presets import PRESETS, Settings, fitted
from symlift.solvers.neural.trainer import Trainer
from symlift.solvers.neural.training import solve, starting_model

LINE = Grid((13,))


@pytest.fixture(scope="module")
def line():
    return gsn(10_000, 13, transform="orthogonal", random_state=3)


@pytest.fixture(scope="module")
def terms(line) -> FullBatch:
    return FullBatch(line.X / line.X.std(), LINE)


def turned(W: np.ndarray, size: float) -> np.ndarray:
    draw = np.random.default_rng(0).normal(size=W.shape)
    return W @ expm(size * (draw - draw.T) / np.sqrt(2 * len(W)))


def test_a_spoiled_map_is_brought_home_and_the_gap_says_so(line, terms):
    start = turned(line.transform, 0.7)
    before = signal_recovery(line.latent, line.X @ start.T, LINE).r
    found = terms.close(start)
    after = signal_recovery(line.latent, line.X @ found.W.T, LINE).r
    assert before < 0.9
    assert after > 0.98
    assert found.gap < 1
    np.testing.assert_allclose(found.W @ found.W.T, np.eye(13), atol=1e-9)


def test_a_map_of_other_planes_does_not_arrive(terms):
    random = np.linalg.qr(np.random.default_rng(1).normal(size=(13, 13)))[0]
    assert terms.close(random).gap > 2


def test_fields_that_are_symmetric_in_sign_have_no_third_moment(terms):
    rows = np.random.default_rng(0).normal(size=(2_000, 13))
    assert terms.applies
    assert not FullBatch(rows, LINE).applies


def test_closings_agree_where_both_have_arrived_at_one_gap():
    W = np.eye(3)
    assert Closing(W, 0.51).agrees(0.5)
    assert not Closing(W, 0.51).agrees(None)
    assert not Closing(W, 0.6).agrees(0.5)
    assert not Closing(W, 7.01).agrees(7.0)
    # bits may differ by more, but not from one that has not arrived
    assert Closing(W, 0.7, same=1.0).agrees(0.5)
    assert not Closing(W, 0.7, same=1.0).agrees(400.0)


@pytest.mark.parametrize("k", [1, 2, 4, 7])
def test_a_ring_in_steps_of_k_is_put_in_order(k):
    data = gsn(3_000, 15, periodic=True, transform="identity", random_state=0)
    shuffled = np.eye(15)[k * np.arange(15) % 15]
    found = most_local(shuffled, data.X - data.X.mean(axis=0))
    steps = np.diff(found.argmax(axis=1)) % 15
    assert set(steps.tolist()) in ({1}, {14})


def test_only_isometries_of_a_few_points_are_searched():
    assert FullBatch.suits(LINE, 13)
    assert FullBatch.suits(LINE, 14)
    assert not FullBatch.suits(LINE, 12)
    assert not FullBatch.suits(Grid((15, 15)), 225)
    gsn63 = PRESETS["gsn63"]
    assert fitted(gsn63, Grid((63,)), 63).full_batch_at == 8.5
    assert fitted(gsn63, Grid((63,)), 70).full_batch_at is None


def test_the_clock_asks_for_closings_from_a_rank_on():
    settings = Settings(
        full_batch_at=2.5, full_batch_every=200, rank_speed=0.01, dwell=50, patience=1.0
    )
    clock, asked = Clock.start(settings, points=9), []
    for step in range(50, 1001, 50):
        clock = clock.advance(settings, step, every=50, stationarity=0.0)
        if clock.closing_on_all:
            asked.append((step, clock.rank >= 2.5))
            clock = clock.after_closing(settings, 10.0 - step / 1000, arrived=False)
    assert asked == [(200, True), (400, True), (600, True), (800, True), (1000, True)]
    assert clock.closed == pytest.approx(9.0)
    assert clock.after_closing(settings, 20.0, arrived=False).closed == pytest.approx(9.0)
    assert not clock.lost


def test_a_run_whose_closings_do_not_arrive_is_lost():
    settings = Settings(full_batch_tries=2, retries=1)
    clock = Clock.start(settings, points=9).after_closing(settings, 9.0, arrived=False)
    assert not clock.lost
    assert clock.after_closing(settings, 8.0, arrived=False).lost
    assert not clock.after_closing(settings, 1.0, arrived=True).lost
    again = Clock.start(settings, points=9, draws=2).after_closing(settings, 9.0, arrived=False)
    assert not again.after_closing(settings, 9.0, arrived=False).lost


def small() -> Settings:
    changed = {"full_batch_at": 1.5, "full_batch_every": 100, "batch": 100}
    return fitted(PRESETS["gsn15"].model_copy(update=changed), LINE, 13)


def test_a_run_ends_with_the_map_that_two_closings_agree_on(line, tmp_path, monkeypatch):
    gaps = iter([9.0, 0.5, 0.7, 0.51])
    W = line.transform
    monkeypatch.setattr(FullBatch, "close", lambda *_: Closing(W, next(gaps)))
    settings = small()
    split = split_held_out(len(line.X), np.random.default_rng(0))
    start = starting_model(line.X, LINE, settings, seed=0)
    ended = Trainer(line.X, *split, start, settings, 0).run(folder=tmp_path)
    assert (ended.ended, ended.step_count, ended.clock.closed) == ("finished", 400, 0.51)
    found = ended.best_model().lifting_map()
    np.testing.assert_allclose(found / np.linalg.norm(found[0]), W, atol=1e-6)
    # what was finished stays finished, and has the same model
    again = Trainer(line.X, *split, start, settings, 0)
    again.restore(tmp_path / trainers.CHECKPOINT)
    assert again.run().step_count == 400
    np.testing.assert_allclose(again.best_model().lifting_map(), found, atol=1e-9)


def test_a_start_from_the_covariance_has_planes_of_neighbouring_modes():
    ring = Grid((15,), periodic=True)
    data = gsn(20_000, 15, periodic=True, transform="orthogonal", random_state=0)
    t = np.arange(15)
    first = np.stack([np.cos(2 * np.pi * t / 15), np.sin(2 * np.pi * t / 15)], axis=1)
    mixed = data.transform.T @ first * np.sqrt(2 / 15)

    def overlap(kind: str) -> float:
        settings = fitted(PRESETS["gsn15"].model_copy(update={"start": kind}), ring, 15)
        group = starting_model(data.X, ring, settings, seed=0).group
        planes = group.Q[:, :14].reshape(15, 7, 2)
        inside = np.linalg.norm(np.einsum("dpk,dj->pkj", planes, mixed), axis=(1, 2)) ** 2 / 2
        assert np.abs(group.theta).max() < 0.01
        return float(inside.max())

    assert overlap("paper") < 0.6
    assert overlap("covariance") > 0.95


def test_a_start_from_the_covariance_can_be_asked_for(line):
    solution = solve(
        line.X,
        LINE,
        np.random.default_rng(0),
        preset="gsn15",
        steps=50,
        settings={"start": "covariance"},
        device="cpu",
    )
    assert solution.trace.training.settings["start"] == "covariance"
