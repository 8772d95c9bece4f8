"""Scattered places as a domain: coordinates, the map, the field anywhere, files and words."""

from __future__ import annotations

import json
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from typer.testing import CliRunner

from symlift import Grid, InputError, LatentDomain, Scattered, load
from symlift.cli import app
from symlift.core.domain import TakenColumns, along_principal_axes, given_domain
from symlift.errors import FitWarning
from symlift.statistics.kriging import falling_with_distance, lag_correlation, weights_from

runner = CliRunner()


def sensors(d: int, axes: int = 2, n: int = 1_500, seed: int = 0, width: float = 0.25):
    """Bumps at random places, seen by sensors at random places (d, axes)."""
    rng = np.random.default_rng(seed)
    at = rng.uniform(0, 1, (d, axes))
    centre, size = rng.uniform(-0.3, 1.3, (n, 8, axes)), rng.normal(size=(n, 8))
    square = np.sum((at[None, :, None] - centre[:, None]) ** 2, axis=-1)
    X = np.einsum("ndk,nk->nd", np.exp(-square / (2 * width**2)), size)
    return X + 0.05 * X.std() * rng.normal(size=X.shape), at


def affine_r2(found, truth):
    A, T = np.c_[found, np.ones(len(found))], truth - truth.mean(axis=0)
    left = T - A @ np.linalg.lstsq(A, T, rcond=None)[0]
    return 1 - np.sum(left**2) / np.sum(T**2)


@pytest.fixture(scope="module")
def fitted():
    X, at = sensors(60)
    return LatentDomain("scattered", random_state=0).fit(X), X, at


def test_places_are_found_and_believed(fitted):
    est, X, at = fitted
    assert est.grid_ == Scattered(2)
    assert affine_r2(est.placement_.coordinates, at) > 0.98
    diagnosis = est.diagnose(X)
    assert diagnosis.verdict.value in ("present", "ordered")
    assert diagnosis.confidence > 0.9


def test_coordinates_are_centred_in_units_of_the_nearest_column(fitted):
    places = fitted[0].grid_.places
    assert np.allclose(places.mean(axis=0), 0)
    spread = places.std(axis=0)
    assert spread[0] >= spread[1]
    assert abs(np.mean(places[:, 0] * places[:, 1])) < 1e-9
    apart = np.linalg.norm(places[:, None] - places[None], axis=-1) + 99 * np.eye(len(places))
    assert np.median(apart.min(axis=1)) == pytest.approx(1.0)


def test_transform_gives_the_placed_columns_and_back(fitted):
    est, X, _ = fitted
    Y = est.transform(X)
    assert np.allclose(Y, X - X.mean(axis=0), atol=1e-6)
    assert np.allclose(est.inverse_transform(Y), X)
    assert np.allclose((X - est.mean_) @ est.lifting_map_.T, Y)
    assert est.to_grid(Y).shape == (len(X), 60)
    assert est.placement_.point.tolist() == list(range(60))
    assert est.coverage_.tolist() == [1] * 60
    assert est.get_feature_names_out()[:2].tolist() == ["p0", "p1"]


def test_a_dead_column_has_no_place_and_keeps_its_mean():
    X, _ = sensors(20)
    X[:, 3] = 7.0
    with pytest.warns(UserWarning, match="constant"):
        est = LatentDomain("scattered", random_state=0).fit(X)
    assert est.transform(X).shape[1] == 19
    assert est.placement_.reason[3] == "dead"
    assert np.isnan(est.placement_.coordinates[3]).all()
    assert np.allclose(est.inverse_transform(est.transform(X))[:, 3], 7.0)


def test_the_field_between_sensors_is_that_of_a_sensor_that_was_left_out():
    X, at = sensors(80, n=3_000)
    est = LatentDomain("scattered", random_state=0).fit(X[:, 1:])
    # the place of the sensor that was left out, in the coordinates that were found
    A = np.c_[at[1:], np.ones(79)]
    where = np.r_[at[0], 1.0] @ np.linalg.lstsq(A, est.placement_.coordinates, rcond=None)[0]
    value, std = est.field(X[:, 1:], where[None], return_std=True)
    truth = X[:, 0] - X[:, 0].mean()
    assert np.corrcoef(value[:, 0], truth)[0, 1] > 0.9
    assert np.sqrt(np.mean((value[:, 0] - truth) ** 2)) < 3 * std[0] + 0.1 * truth.std()
    far = est.field(X[:, 1:], where[None] + 1_000, return_std=True)[1]
    assert far[0] > 2 * std[0]


def test_the_field_on_a_grid_passes_through_its_points():
    from symlift.datasets import gsn

    X = gsn(800, (5, 6), transform="permutation", random_state=1, noise=0.01).X
    est = LatentDomain((5, 6), random_state=0).fit(X)
    Y = est.transform(X)
    value = est.field(X, Grid((5, 6)).indices())
    assert np.corrcoef(value.ravel(), Y.ravel())[0, 1] > 0.98


def test_moving_scattered_places_moves_the_field(fitted):
    est, X, _ = fitted
    step = np.array([0.3, -0.2])
    moved = est.transform(est.shift(X[:200], step))
    wanted = est.field(X[:200], est.grid_.places - step)
    inner = np.abs(est.grid_.places).max(axis=1) < np.median(np.abs(est.grid_.places).max(axis=1))
    still = est.transform(X[:200])
    error, none = (np.mean((a[:, inner] - wanted[:, inner]) ** 2) for a in (moved, still))
    assert error < none
    L = est.generators_
    assert L.shape == (2, 60, 60)
    # to first order, X moved by t is X + L t X
    small = np.array([0.05, 0.02])
    change = est.shift(X[:50], small) - X[:50]
    flow = (X[:50] - est.mean_) @ np.tensordot(small, L, 1).T
    assert np.corrcoef(change.ravel(), flow.ravel())[0, 1] > 0.8


def test_save_and_load(fitted, tmp_path):
    est, X, _ = fitted
    est.save(tmp_path / "run")
    again = load(tmp_path / "run")
    assert again.grid_ == est.grid_
    assert again.grid == "scattered"
    assert np.allclose(again.transform(X), est.transform(X), atol=1e-6)
    assert np.allclose(again.placement_.coordinates, est.placement_.coordinates)
    assert np.allclose(again.field(X[:3], [[0.0, 0.5]]), est.field(X[:3], [[0.0, 0.5]]), atol=1e-3)
    est.save(tmp_path / "bare", samples=False)
    with pytest.raises(InputError, match="samples"):
        load(tmp_path / "bare").field(X[:3], [[0.0, 0.5]])


def test_pictures_and_page(fitted, tmp_path):
    from symlift.plotting import plot_placement, plot_signals

    est, X, _ = fitted
    assert len(plot_placement(est).collections) >= 1
    assert len(plot_signals(est, X[:3]).collections) == 3
    page = est.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert "cattered places in a plane" in page


def test_the_command_line_takes_and_names_them(tmp_path):
    X, _ = sensors(30)
    np.save(tmp_path / "x.npy", X)
    asked = [str(tmp_path / "x.npy"), "--grid", "scattered", "--out", str(tmp_path / "run")]
    shown = runner.invoke(app, ["recover", *asked, "--json"])
    assert shown.exit_code == 0
    summary = json.loads(shown.stdout)
    assert summary["grid"] == "scattered"
    header, *lines = (tmp_path / "run" / "placement.csv").read_text().splitlines()
    assert header.startswith("column,name,axis0,axis1,point")
    assert len(lines) == 30
    out = str(tmp_path / "y.npy")
    again = ["transform", str(tmp_path / "run"), str(tmp_path / "x.npy"), "--out", out]
    assert runner.invoke(app, again).exit_code == 0
    assert np.load(out).shape == X.shape


@pytest.mark.parametrize("d", [40])
def test_auto_prefers_places_to_a_grid_where_there_is_none(d):
    X, at = sensors(d, n=3_000, seed=1)
    with warnings.catch_warnings():  # of two domains that explain about as much
        warnings.simplefilter("ignore", FitWarning)
        est = LatentDomain(random_state=0).fit(X)
    assert isinstance(est.grid_, Scattered)
    assert affine_r2(est.placement_.coordinates, at) > 0.95


def test_auto_takes_an_uneven_line_for_a_line():
    rng = np.random.default_rng(0)
    at = np.sort(rng.uniform(0, 1, 30)) ** 2
    centre, size = rng.uniform(-0.3, 1.3, (2_000, 8)), rng.normal(size=(2_000, 8))
    X = np.einsum("ndk,nk->nd", np.exp(-((at[:, None] - centre[:, None]) ** 2) / 0.02), size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        est = LatentDomain(random_state=0).fit(X + 0.05 * rng.normal(size=X.shape))
    assert est.grid_.ndim == 1
    assert not isinstance(est.grid_, Scattered)


def test_what_cannot_be_is_refused_in_one_line():
    X, _ = sensors(20, n=300)
    for wrong, words in (
        ({"grid": "scattered4"}, "2 or 3 dimensions"),
        ({"grid": "scattered", "periodic": True}, "periodic"),
        ({"grid": "scattered", "mixing": "linear"}, "columns that are points"),
        ({"grid": "scattered", "channels": 2}, "columns that are points"),
    ):
        with pytest.raises(InputError, match=words):
            LatentDomain(**wrong).fit(X)
    with pytest.raises(InputError, match="at least 6"):
        LatentDomain("scattered").fit(X[:, :4])
    est = LatentDomain("scattered", random_state=0).fit(X)
    with pytest.raises(InputError, match="finite coordinates"):
        est.field(X, [1.0, 2.0])
    with pytest.raises(InputError, match="do not fit"):
        est.to_grid(X[:, :3])


def test_space_has_three_coordinates():
    X, at = sensors(60, axes=3, width=0.4)
    est = LatentDomain("scattered3", random_state=0).fit(X)
    assert est.placement_.coordinates.shape == (60, 3)
    assert affine_r2(est.placement_.coordinates, at) > 0.95
    assert str(est.grid_) == "scattered3"
    assert given_domain("auto") is None


# -- mathematics -----------------------------------------------------------------------------------


@given(arrays(np.float64, (7, 2), elements=st.floats(-5, 5)), st.floats(0.1, 6), st.floats(0.5, 3))
@settings(max_examples=40, deadline=None)
def test_along_principal_axes_do_not_depend_on_turn_and_scale(at, angle, scale):
    at = at + np.arange(14).reshape(7, 2) ** 1.5
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    one, other = along_principal_axes(at)[0], along_principal_axes(scale * at @ turn + 3)[0]
    apart = [np.linalg.norm(y[:, None] - y[None], axis=-1) for y in (one, other)]
    assert np.allclose(apart[0], apart[1], atol=1e-6)


def test_along_principal_axes_give_the_map_of_displacements():
    at = np.random.default_rng(0).normal(size=(9, 3))
    places, turn = along_principal_axes(at)
    assert np.allclose(np.diff(places, axis=0), np.diff(at, axis=0) @ turn)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_taken_columns_keep_precision(dtype):
    taken = TakenColumns(np.array([1.0, 2.0, 3.0]), np.array([2, 0]))
    X = np.arange(6, dtype=dtype).reshape(2, 3)
    Y = taken.lift(X)
    assert Y.dtype == dtype
    assert Y.tolist() == [[-1.0, -1.0], [2.0, 2.0]]
    assert taken.unlift(Y).tolist() == [[0.0, 2.0, 2.0], [3.0, 2.0, 5.0]]


def test_prediction_is_exact_under_the_true_covariance():
    """With the correlation known, weights equal those of the full linear system."""
    rng = np.random.default_rng(1)
    at, points = rng.uniform(0, 3, (20, 2)), rng.uniform(0, 3, (5, 2))

    def correlation(delta):
        return 0.9 * np.exp(-np.sum(delta**2, axis=-1))

    weights = weights_from(correlation, at, points, np.ones(20), np.zeros(2))
    K = correlation(at[:, None] - at[None])
    np.fill_diagonal(K, 1.0)
    k = correlation(points[:, None] - at[None])
    exact = k @ np.linalg.inv(K + 1e-3 * np.eye(20))
    full = np.zeros_like(exact)
    np.put_along_axis(full, weights.near, weights.weight, axis=1)
    assert np.allclose(full, exact, atol=1e-8)
    assert np.allclose(weights.error**2, 0.9 - np.sum(exact * k, axis=1), atol=1e-8)


def test_correlation_of_distance_falls_and_starts_at_what_is_not_noise():
    at = np.random.default_rng(0).uniform(0, 5, (60, 2))
    apart = np.linalg.norm(at[:, None] - at[None], axis=-1)
    c = 0.8 * np.exp(-(apart**2))
    np.fill_diagonal(c, 1.0)
    f = falling_with_distance(c, apart)
    values = f(np.stack([np.linspace(0, 5, 50), np.zeros(50)], axis=-1))
    assert all(a >= b - 1e-9 for a, b in pairwise(values))
    assert values[0] == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize("grid", [Grid((12,)), Grid((12,), True), Grid((4, 5)), Grid((4, 5), True)])
def test_lag_correlation_is_the_sum_over_pairs_for_each_point(grid):
    Y = np.random.default_rng(0).normal(size=(50, grid.size))
    c, lags = Y.T @ Y / len(Y), grid.lags()
    index = grid.indices()
    f = lag_correlation(Y, grid)
    for i, j in ((0, 1), (0, grid.size - 1), (3, 7), (2, 2)):
        assert f(index[j] - index[i]) == pytest.approx(
            c[lags == lags[i, j]].sum() / grid.size, abs=1e-9
        )
