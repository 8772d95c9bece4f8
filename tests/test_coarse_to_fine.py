"""Images that are trained on a coarse grid and closed on a fine one."""

from __future__ import annotations

import numpy as np
import pytest

from symlift import Grid
from symlift.core.linalg import polar
from symlift.metrics import signal_recovery
from symlift.solvers.fast.edges import finer_frame
from symlift.solvers.neural import coarse_to_fine, data
from symlift.solvers.neural.coarse_to_fine import close_finer, coarse_grid
from symlift.solvers.neural.full_batch import TRUNCATED
from symlift.solvers.neural.training import solve

SMALL, FINE = Grid((4, 4)), Grid((6, 6))


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    """Sparse spots of one shape on 6x6 points, and the same behind a rotation."""
    rng = np.random.default_rng(0)
    spots = rng.exponential(size=(12_000, 12, 12)) * (rng.random((12_000, 12, 12)) < 0.03)
    place = np.arange(-3, 4)
    shape = np.exp(-0.5 * (place[:, None] ** 2 + place**2) / 1.2**2)
    field = sum(
        shape[i, j] * spots[:, i : i + 6, j : j + 6] for i in range(7) for j in range(7)
    ).reshape(-1, 36)
    field += 0.02 * field.std() * rng.normal(size=field.shape)
    field = (field - field.mean(axis=0)) / field.std()
    return field, field @ np.linalg.qr(rng.normal(size=(36, 36)))[0]


def coarse_map(field: np.ndarray, X: np.ndarray) -> np.ndarray:
    """The isometry of the strongest modes of X that is nearest to the field at 4x4 places."""
    at = np.rint(np.linspace(0, 5, 4)).astype(int)
    places = FINE.flat(np.stack(np.meshgrid(at, at, indexing="ij"), axis=-1).reshape(-1, 2))
    modes = np.linalg.eigh(X.T @ X)[1][:, ::-1][:, :16]
    return polar(field[:, places].T @ X @ modes) @ modes.T


def test_which_grids_are_trained_coarsely():
    assert coarse_grid(Grid((15, 15)), 225).shape == (7, 7)
    assert coarse_grid(Grid((15, 15)), 1800).shape == (7, 7)
    assert coarse_grid(Grid((10, 20)), 200).shape == (4, 9)
    assert coarse_grid(Grid((27, 27)), 5832).shape == (7, 7)
    for grid in (Grid((7, 7)), Grid((255,)), Grid((40, 40)), Grid((15, 15), periodic=True)):
        assert coarse_grid(grid, grid.size) == grid


def test_a_coarse_frame_stays_what_it_is_on_the_fine_grid():
    rng = np.random.default_rng(0)
    W = np.linalg.qr(rng.normal(size=(16, 16)))[0]
    V = finer_frame(W, SMALL, FINE, rng)
    np.testing.assert_allclose(V.T @ V, np.eye(36), atol=1e-10)
    # a constant is a constant on both, and the modes that carry it are the same
    np.testing.assert_allclose(V.sum(axis=0)[:16] / 6, W.sum(axis=0) / 4, atol=1e-10)
    np.testing.assert_allclose(V.sum(axis=0)[16:], 0, atol=1e-10)


def test_weak_modes_are_put_in_place_on_the_fine_grid(blobs):
    field, X = blobs
    closing = close_finer(coarse_map(field, X), X, SMALL, FINE)
    assert closing.arrived
    np.testing.assert_allclose(closing.W @ closing.W.T, np.eye(36), atol=1e-6)
    recovered = signal_recovery(field, X @ closing.W.T, FINE)
    assert recovered.r > 0.98
    assert recovered.r_detail > 0.95


def test_of_more_columns_than_points_a_truncated_field_may_arrive(blobs):
    """Each point twice, with noise of its own: the strongest modes are isometric to the field."""
    field, X = blobs
    rng = np.random.default_rng(2)
    twice = np.concatenate([X, X], axis=1) + 0.05 * rng.normal(size=(len(X), 72))
    twice = (twice - twice.mean(axis=0)) / twice.std()
    closing = close_finer(coarse_map(field, twice), twice, SMALL, FINE)
    assert closing.limit == TRUNCATED > close_finer(coarse_map(field, X), X, SMALL, FINE).limit
    assert closing.arrived
    assert signal_recovery(field, twice @ closing.W.T, FINE).r > 0.98


def test_more_points_than_third_moments_pixels_go_to_their_points(blobs, monkeypatch):
    monkeypatch.setattr(coarse_to_fine, "_MOST", 25)
    field, _ = blobs
    rng = np.random.default_rng(1)
    order, sign = rng.permutation(36), rng.choice([-1.0, 1.0], 36)
    X = field[:, order] * sign
    closing = close_finer(coarse_map(field, X), X, SMALL, FINE)
    assert closing.arrived
    assert np.count_nonzero(closing.W) == 36
    assert signal_recovery(field, X @ closing.W.T, FINE).r > 0.9999


def test_more_points_than_third_moments_other_mixings_keep_an_isometry(blobs, monkeypatch):
    monkeypatch.setattr(coarse_to_fine, "_MOST", 25)
    field, X = blobs
    closing = close_finer(coarse_map(field, X), X, SMALL, FINE)
    np.testing.assert_allclose(closing.W @ closing.W.T, np.eye(36), atol=1e-6)
    assert np.count_nonzero(np.abs(closing.W) > 0.01) > 360
    assert signal_recovery(field, X @ closing.W.T, FINE).r > 0.9


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_rectifier_guesses_weak_modes_from_strong_ones(blobs, sign):
    field, X = sign * blobs[0], sign * blobs[1]
    modes = np.linalg.eigh(X.T @ X)[1][:, ::-1].T
    truth = np.linalg.lstsq(X, field, rcond=None)[0].T @ modes.T  # (points, modes)
    rng = np.random.default_rng(0)
    frame = np.concatenate([truth[:, :16], rng.normal(size=(36, 20))], axis=1)
    W = coarse_to_fine._rectified(frame, modes, X, 16)
    np.testing.assert_allclose(W @ W.T, np.eye(36), atol=1e-6)
    np.testing.assert_allclose((W @ modes.T)[:, :16], truth[:, :16], atol=1e-6)
    weak = np.sum((W @ modes.T) * truth, axis=0)[16:]  # cosines with the true waves
    assert np.median(weak) > 0.5
    assert weak.mean() > 0.3


def test_more_points_than_third_moments_bits_go_to_one_point_each(blobs, monkeypatch):
    monkeypatch.setattr(coarse_to_fine, "_MOST", 25)
    field, _ = blobs
    levels = np.digitize(field, np.quantile(field, [0.5, 0.75, 0.9]))
    bits = ((levels[:, :, None] >> np.arange(2)) & 1).reshape(len(field), -1).astype(float)
    X = (bits - bits.mean(axis=0)) / bits.std()
    closing = close_finer(coarse_map(field, X), X, SMALL, FINE)
    # too coarse a frame to place them right, but there is one point for each, and two for a point
    np.testing.assert_array_equal(np.count_nonzero(closing.W, axis=0), 1)
    np.testing.assert_array_equal(np.count_nonzero(closing.W, axis=1), 2)
    assert closing.gap > 0


def test_a_run_ends_on_the_grid_that_was_asked_for(blobs, monkeypatch):
    monkeypatch.setattr(coarse_to_fine, "_COARSE", 16)
    monkeypatch.setattr(
        coarse_to_fine.FullBatch, "suits", staticmethod(lambda grid, _: grid.size < 20)
    )
    seen = []
    solution = solve(
        blobs[1],
        FINE,
        np.random.default_rng(0),
        lambda stage, _: seen.append(stage),
        settings={"batch": 20},
        steps=50,
        device="cpu",
    )
    assert seen[-1] == "closing on the grid 6x6"
    assert solution.model.grid == FINE
    assert solution.model.lifting_map().shape == (36, 36)
    last = solution.trace.stages[-1]
    assert last.name == "finer grid"
    assert last.values["gap"] > 0
    assert not solution.evidence.found  # after 50 steps


def test_rows_of_gigabytes_are_centred_in_single_precision(monkeypatch):
    X = np.random.default_rng(0).normal(3, 2, size=(50, 4)).astype(np.float32)
    double, mean = data.centred(X)
    monkeypatch.setattr(data, "_SINGLE", 100)
    single, same = data.centred(X)
    assert (double.dtype, single.dtype) == (np.float64, np.float32)
    np.testing.assert_allclose(mean, same, rtol=1e-6)
    np.testing.assert_allclose(single, X - mean, atol=1e-5)
    assert X.mean() > 2  # the caller's rows stay what they were


def test_the_strongest_of_many_columns_are_found_alone(monkeypatch):
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(9, 9)))[0]
    C = (Q * np.arange(1, 10)) @ Q.T
    all_modes = data.strongest_modes(C, 4)
    monkeypatch.setattr(data, "_MANY_COLUMNS", 5)
    some = data.strongest_modes(C, 4)
    assert some.shape == (4, 9)
    np.testing.assert_allclose(np.abs(some @ all_modes.T), np.eye(4), atol=1e-9)
    np.testing.assert_allclose(np.abs(some @ Q)[:, :4:-1], np.eye(4), atol=1e-9)
