"""Closed forms that end a training on all rows: bits, few harmonics of a ring, spins behind a
linear map; and how a run uses them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from symlift import Grid, LatentDomain
from symlift.core.lags import LagClasses
from symlift.datasets import bit_planes, gsn
from symlift.metrics import circular_correlation
from symlift.solvers.neural.bit_columns import local_map
from symlift.solvers.neural.clock import Clock
from symlift.solvers.neural.data import split_held_out, strongest_modes
from symlift.solvers.neural.endings import closed_form
from symlift.solvers.neural.few_harmonics import (
    FewHarmonics,
    nearest_circle,
    ring_harmonics,
    tuned_angles,
)
from symlift.solvers.neural.full_batch import FullBatch
from symlift.solvers.neural.presets import PRESETS, fitted
from symlift.solvers.neural.trainer import Trainer
from symlift.solvers.neural.training import solve, starting_model
from symlift.solvers.neural.two_valued import TwoValued, in_line, least_fourth_moment, move_segments

POINTS = 9


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(np.corrcoef(np.ravel(a), np.ravel(b))[0, 1]))


# -- bits ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def numbers():
    """Numbers on a line, the bits of each, scrambled, and the point of each bit."""
    field = gsn(6_000, 12, transform="identity", random_state=0).latent
    low, high = np.quantile(field, [0.02, 0.98])
    pixels = np.clip(255 * (field - low) / (high - low), 0, 255).astype(np.uint8)
    bits = bit_planes(pixels).reshape(len(pixels), 12, 8)[:, :, :4].reshape(len(pixels), -1)
    order = np.random.default_rng(0).permutation(48)
    return pixels, bits[:, order].astype(np.float64), order // 4


def test_bits_go_to_the_points_of_a_map_that_is_nearly_right(numbers):
    pixels, bits, point = numbers
    Z = bits - bits.mean(axis=0)
    near = np.exp(-np.abs(np.arange(12)[:, None] - point))  # a map that smears over the neighbours
    W = local_map(near, Z, Grid((12,)))
    assert np.mean(np.abs(W).argmax(axis=0) == point) > 0.9
    assert np.array_equal(np.count_nonzero(W, axis=1), np.full(12, 4))
    assert correlation(Z @ W.T, pixels - pixels.mean(axis=0)) > correlation(
        Z @ near.T, pixels - pixels.mean(axis=0)
    )


def test_more_columns_than_points_are_closed_in_their_strongest_modes(numbers):
    _, bits, point = numbers
    terms = FullBatch(bits / bits.std(), Grid((12,)))
    truth = np.equal.outer(np.arange(12), point).astype(float)
    closing = terms.close(truth)
    assert np.array_equal(np.count_nonzero(closing.W, axis=0), np.ones(48))
    moved = closing.W[:, np.random.default_rng(0).permutation(48)]
    assert terms._gap_of(terms.bits @ moved.T) > 3 * closing.gap
    # columns that are not two-valued end as an isometry of modes
    rows = gsn(4_000, 13, transform="orthogonal", random_state=3).X
    wider = np.concatenate([rows / rows.std(), 0.01 * rows[::-1, :2]], axis=1)
    W = FullBatch(wider, Grid((13,))).close(np.eye(13, 15)).W
    np.testing.assert_allclose(W @ W.T, np.eye(13), atol=1e-9)


def test_the_strongest_modes_stay_as_the_embedding_of_bits(numbers):
    _, bits, _ = numbers
    grid = Grid((3, 4))
    settings = fitted(PRESETS["mnist7-bits"].model_copy(update={"batch": 50}), grid, 48)
    assert (settings.embedding, settings.compress, settings.dimension) == ("linear", "modes", 19)
    assert settings.full_batch_at is not None
    start = starting_model(bits, grid, settings, seed=0)
    expected = strongest_modes(np.cov(bits.T), 12)
    np.testing.assert_allclose(np.abs(start.E[:12] @ expected.T), np.eye(12), atol=1e-6)
    assert not start.E[12:].any()
    trainer = Trainer(
        bits, *split_held_out(len(bits), np.random.default_rng(0)), start, settings, 0
    )
    trainer._set_rates()
    trainer.step()
    np.testing.assert_allclose(trainer.network.model().E, start.E, atol=1e-6)
    trainer._draw_again()
    np.testing.assert_array_equal(trainer.start.E, start.E)


def test_small_bits_have_a_preset_of_their_own(numbers):
    solution = solve(numbers[1], Grid((3, 4)), np.random.default_rng(0), steps=50, device="cpu")
    assert solution.trace.training.preset == "mnist7-bits"


# -- few harmonics ---------------------------------------------------------------------------------


def test_harmonics_of_a_ring_are_orthonormal():
    F = ring_harmonics(30, 5)
    np.testing.assert_allclose(F.T @ F, np.eye(5), atol=1e-12)
    np.testing.assert_allclose(np.roll(F[:, 1], 7) @ F[:, 3:], 0, atol=1e-12)


def tuned_units(uneven: float) -> tuple[np.ndarray, np.ndarray]:
    """40 units tuned to angles that favour 0 by ``uneven``, and these angles."""
    rng = np.random.default_rng(1)
    angle = rng.vonmises(0.0, uneven, 3_000) if uneven else rng.uniform(-np.pi, np.pi, 3_000)
    preferred = rng.uniform(-np.pi, np.pi, 40)
    X = rng.poisson(16 * np.exp(2 * (np.cos(angle[:, None] - preferred) - 1)))
    X = np.sqrt(X)
    return (X - X.mean(axis=0)) / X.std(axis=0), angle


@pytest.mark.parametrize("uneven", [0.0, 0.8])
def test_the_first_harmonic_of_tuned_units_is_reached_from_random_maps(uneven):
    X, angle = tuned_units(uneven)
    terms = FewHarmonics(X, Grid((20,), periodic=True), 3)
    rng = np.random.default_rng(0)
    first, second = (terms.close(rng.normal(size=(20, 40))) for _ in range(2))
    assert second.agrees(first.gap)
    assert np.linalg.matrix_rank(first.W, tol=1e-6) == 2
    Y = (X - first.centre) @ first.W.T @ np.exp(2j * np.pi * np.arange(20) / 20)
    assert abs(circular_correlation(angle, np.angle(Y))) > 0.98


def test_a_circle_has_its_own_centre():
    rng = np.random.default_rng(0)
    angle = rng.vonmises(0.0, 1.0, 2_000)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    mixing = rng.normal(size=(2, 5))
    Z = ring @ mixing + 0.01 * rng.normal(size=(2_000, 5))
    mean = Z.mean(axis=0)
    A, centre, _ = nearest_circle(Z - mean, rng.normal(size=(2, 5)))
    Y = (Z - mean - centre) @ A.T
    assert np.std(np.linalg.norm(Y, axis=1)) < 0.1
    # near the origin, which is not the mean
    assert np.linalg.norm(A @ (centre + mean)) < 0.5 * np.linalg.norm(A @ mean)


def test_tuning_curves_correct_a_guess_of_the_angles():
    X, angle = tuned_units(0.8)
    rng = np.random.default_rng(0)
    guess = angle + 0.6 * rng.normal(size=len(angle))
    chance = tuned_angles(X, guess)
    np.testing.assert_allclose(chance.sum(axis=1), 1)
    better = np.angle(chance @ np.exp(2j * np.pi * np.arange(64) / 64))
    assert circular_correlation(angle, guess) < 0.8
    assert circular_correlation(angle, better) > 0.98


def test_the_centre_of_a_closing_is_that_of_the_model():
    X, angle = tuned_units(0.8)
    ring = Grid((30,), periodic=True)
    fit = LatentDomain(
        grid=ring,
        solver="neural",
        random_state=0,
        solver_options={"preset": "visual-coding", "settings": {"batch": 50}},
    )
    fit.fit(2.0 * X + 3.0)
    assert fit.trace_.training.ended == "finished"
    assert fit.evidence_.found
    assert abs(circular_correlation(angle, fit.phase(2.0 * X + 3.0))) > 0.98


def test_recordings_are_closed_by_few_harmonics():
    ring = Grid((30,), periodic=True)
    settings = fitted(PRESETS["visual-coding"], ring, 110)
    assert settings.full_batch_at is not None
    rows = np.random.default_rng(0).normal(size=(200, 110))
    assert isinstance(closed_form(settings, ring, rows), FewHarmonics)


# -- spins -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def spins():
    """A chain of spins, each like the one before it with probability 0.85, and a linear map."""
    rng = np.random.default_rng(0)
    flips = np.where(rng.random((20_000, POINTS)) < 0.15, -1, 1)
    flips[:, 0] = rng.choice([-1, 1], len(flips))
    chain = np.cumprod(flips, axis=1).astype(np.float64)
    U, V = (np.linalg.qr(rng.normal(size=(POINTS, POINTS)))[0] for _ in range(2))
    return chain, chain @ (U * np.linspace(0.5, 2, POINTS)) @ V


def test_a_spin_is_the_projection_of_least_fourth_moment(spins):
    chain, _ = spins
    Z = np.linalg.qr(chain - chain.mean(axis=0))[0] * np.sqrt(len(chain))
    start = Z.T @ (chain + np.roll(chain, 1, axis=1) / 2) / len(chain)
    Y = Z @ least_fourth_moment(start.T, Z).T
    assert np.all((Y**4).mean(axis=0) < 1.01)
    best = np.abs(np.corrcoef(Y.T, chain.T)[:POINTS, POINTS:]).max(axis=1)
    assert best.min() > 0.99


def test_spins_behind_a_linear_map_are_closed_whatever_was_trained(spins):
    chain, X = spins
    terms = TwoValued(X, Grid((POINTS,)))
    assert terms.applies
    inverse = np.linalg.lstsq(X, chain, rcond=None)[0].T
    for W in (inverse, np.random.default_rng(1).normal(size=(POINTS, POINTS))):
        closing = terms.close(W)
        assert closing.gap < 2
        Y = X @ closing.W.T
        assert max(correlation(Y, chain), correlation(Y, chain[:, ::-1])) > 0.99
    Y = X @ terms.close(-inverse[::-1]).W.T  # the mirror image that the map asks for
    assert np.mean(Y * chain[:, ::-1]) < -0.99


@pytest.mark.parametrize("ring", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_correlations_give_an_order_and_signs(ring, seed):
    rng = np.random.default_rng(seed)
    place, sign = rng.permutation(33), rng.choice([-1.0, 1.0], 33)
    distance = np.abs(place[:, None] - place)
    distance = np.minimum(distance, 33 - distance) if ring else distance
    noise = 0.005 * rng.normal(size=(33, 33))
    C = (0.86**distance + noise + noise.T) * np.outer(sign, sign)
    order, signs = in_line(C, Grid((33,), periodic=ring))
    steps = np.diff(place[order]) % 33
    assert set(steps) in ({1}, {32})
    assert abs(signs @ sign) == 33


def test_other_fields_have_no_two_valued_projections():
    data = gsn(4_000, POINTS, transform="orthogonal", random_state=0)
    assert not TwoValued(data.X, Grid((POINTS,))).applies


def test_an_order_is_found_by_moving_segments():
    distance = np.abs(np.arange(12)[:, None] - np.arange(12))
    start = np.array([2, 0, 1, 3, 4, 10, 11, 5, 6, 7, 9, 8])
    found = move_segments(0.8**distance, start, LagClasses(Grid((12,))))
    assert found.tolist() in (list(range(12)), list(range(12))[::-1])


def test_spins_are_closed_where_the_embedding_is_learned():
    settings = fitted(PRESETS["ising33"], Grid((33,)), 33)
    assert settings.full_batch_at is not None
    assert settings.close_at is None
    rows = np.random.default_rng(0).normal(size=(200, 33))
    assert isinstance(closed_form(settings, Grid((33,)), rows), TwoValued)
    assert fitted(PRESETS["ising33"], Grid((33,)), 40).full_batch_at is None


# -- draws -----------------------------------------------------------------------------------------


def test_the_least_gap_of_a_closing_outlives_a_draw(spins):
    settings = fitted(PRESETS["gsn15"].model_copy(update={"batch": 50}), Grid((POINTS,)), POINTS)
    _, X = spins
    start = starting_model(X, Grid((POINTS,)), settings, seed=0)
    trainer = Trainer(X, *split_held_out(len(X), np.random.default_rng(0)), start, settings, 0)
    trainer.clock = replace(Clock.start(settings, POINTS), closed=0.7)
    trainer._draw_again()
    assert (trainer.clock.draws, trainer.clock.closed) == (2, 0.7)
