"""Columns on a sphere: places by angles, the field between them, and what is said of both."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from symlift import InputError, LatentDomain, Sphere, Verdict, load
from symlift.core.harmonics import real_harmonics, rotation_matrix
from symlift.core.linalg import polar
from symlift.core.sphere import spread_points
from symlift.datasets import gsn, sphere_noise
from symlift.errors import FitWarning
from symlift.solvers.sphere import places as sphere_module
from symlift.solvers.sphere.angles import (
    by_kernel,
    by_paths,
    great_circles,
    kernel_of,
    legendre_values,
    profiles_of,
    same_places,
    spherical_scaling,
)
from symlift.solvers.sphere.places import agreement_of_ways, framed_places, places_of


def random_points(count: int, seed: int) -> np.ndarray:
    v = np.random.default_rng(seed).normal(size=(count, 3))
    return v / np.linalg.norm(v, axis=1, keepdims=True)


def in_place(u: np.ndarray, truth: np.ndarray) -> float:
    """Share of columns within half of the mean distance to the nearest, after one turn."""
    angle = np.arccos(np.clip(np.sum(u @ polar(u.T @ truth) * truth, axis=1), -1, 1))
    between = np.arccos(np.clip(truth @ truth.T, -1, 1)) + 9 * np.eye(len(truth))
    return float(np.mean(angle < between.min(axis=1).mean() / 2))


@pytest.fixture(scope="module")
def places():
    order = np.random.default_rng(0).permutation(60)
    return spread_points(60)[order]


@pytest.fixture(scope="module")
def data(places):
    return sphere_noise(3000, 7, sensors=places, noise=0.3, random_state=0, width=0.35)


@pytest.fixture(scope="module")
def est(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return LatentDomain(grid="sphere", mixing="shuffled", random_state=0).fit(data.X)


# -- the pieces ------------------------------------------------------------------------------------


def test_legendre_polynomials_and_their_slopes():
    t, h = np.linspace(-0.9, 0.9, 7), 1e-6
    slope = legendre_values(t, 6)[1]
    assert np.allclose(
        slope, (legendre_values(t + h, 6)[0] - legendre_values(t - h, 6)[0]) / (2 * h), atol=1e-6
    )
    # the addition theorem
    u = random_points(2, 0)
    Y = real_harmonics(u, 3)
    assert np.isclose(legendre_values(u[0] @ u[1], 3)[0][3], 4 * np.pi / 7 * (Y[0, 9:] @ Y[1, 9:]))


def test_scaling_on_a_sphere_recovers_places_from_angles():
    u = random_points(40, 1)
    angles = np.arccos(np.clip(u @ u.T, -1, 1))
    best = max(same_places(u, one) for one in spherical_scaling(angles))
    assert best > 0.99
    found = by_paths(list(spherical_scaling(angles))[-1], angles)
    assert found[1] < 1e-8
    assert same_places(u, found[0]) > 1 - 1e-6


def test_a_kernel_and_the_places_fit_each_other():
    u = random_points(40, 2)
    weights = np.array([0.1, 0.4, 0.3, 0.15])
    i, j = np.triu_indices(40, 1)
    c = np.eye(40)
    c[i, j] = c[j, i] = weights @ legendre_values(np.sum(u[i] * u[j], axis=1), 3)[0]
    assert np.allclose(kernel_of(u, c, 3), weights, atol=1e-4)
    rng = np.random.default_rng(0)
    start = u + 0.1 * rng.normal(size=u.shape)
    found, left = by_kernel(start / np.linalg.norm(start, axis=1, keepdims=True), c, 3)
    assert left < 1e-7
    assert same_places(u, found) > 1 - 1e-4


def test_agreement_is_up_to_turns_and_mirrors():
    u = random_points(20, 3)
    assert np.isclose(same_places(u, -u @ rotation_matrix([1.0, 2.0, 0.3])), 1)
    assert same_places(u, random_points(20, 4)) < 0.6
    assert all(np.linalg.svd(ring)[1][-1] < 1e-9 for ring in great_circles(u, u @ u.T))


def test_the_frame_of_places_follows_a_rule():
    u = random_points(15, 5)
    R = rotation_matrix([0.3, 0.9, -2.0])
    assert np.allclose(framed_places(u), framed_places(-u @ R), atol=1e-9)
    first, second, _ = framed_places(u)[:3]
    assert np.allclose(first, [0, 0, 1])
    assert abs(second[1]) < 1e-9


# -- the whole -------------------------------------------------------------------------------------


def test_columns_are_in_their_places(est, data, places):
    placement = est.placement_
    assert placement.coordinates.shape == (60, 3)
    assert np.allclose(np.linalg.norm(placement.coordinates, axis=1), 1)
    assert in_place(placement.coordinates, places) == 1
    assert est.coverage_.sum() == 60
    assert est.coverage_.shape == (est.grid_.size,)
    nearest = np.argmax(placement.coordinates @ est.grid_.points.T, axis=1)
    assert np.array_equal(nearest, placement.point)
    assert "axis2" in placement.columns()
    assert "60 of 60 columns" in placement._repr_html_()


def test_the_field_between_the_columns_is_that_of_the_sphere(est, data, places):
    assert est.grid_ == Sphere(6)
    # the true field at the points where the recovered one is evaluated, turned as the columns are
    turn = polar(est.placement_.coordinates.T @ places)
    at = real_harmonics(est.grid_.points @ turn, 7)
    truth = data.latent @ np.linalg.pinv(real_harmonics(data.grid.points, 7)).T @ at.T
    Y = est.transform(data.X)
    assert np.corrcoef((truth - truth.mean(0)).ravel(), Y.ravel())[0, 1] > 0.93


def test_the_verdict_and_the_file(est, data, tmp_path):
    diagnosis = est.diagnose(data.X)
    assert diagnosis.verdict is Verdict.PRESENT
    assert diagnosis.confidence > 0.8
    est.save(tmp_path)
    again = load(tmp_path)
    assert np.array_equal(again.placement_.coordinates, est.placement_.coordinates)
    assert np.array_equal(again.transform(data.X[:5]), est.transform(data.X[:5]))
    est.placement_.to_csv(tmp_path / "places.csv")
    assert (tmp_path / "places.csv").read_text().startswith("column,name,axis0,axis1,axis2,point")


def test_dead_columns_copies_noise_and_gaps(places):
    X = sphere_noise(3000, 7, sensors=places, noise=0.3, random_state=1, width=0.35).X.astype(
        np.float64
    )
    rng = np.random.default_rng(0)
    X[:, 5] = 1.0
    X[:, 9] = rng.normal(size=3000)
    X[:, 12] = X[:, 3]
    X[rng.random(X.shape) < 0.02] = np.nan
    X[:, 5] = 1.0
    with pytest.warns(FitWarning, match="constant"):
        est = LatentDomain(grid="sphere", random_state=0).fit(X)
    placement = est.placement_
    assert placement.reason[5] == "dead"
    assert placement.reason[9] == "noise"
    assert np.isnan(placement.coordinates[[5, 9]]).all()
    living = placement.reason == ""
    assert in_place(placement.coordinates[living], places[living]) > 0.95
    whole = np.nan_to_num(X[:4])
    assert np.array_equal(est.shift(whole, [0.1, 0, 0])[:, [5, 9]], whole[:, [5, 9]])


def test_a_gaussian_field_has_places(places):
    X = sphere_noise(3000, 7, pulses="normal", sensors=places, noise=0.3, width=0.35).X
    est = LatentDomain(grid="sphere", mixing="shuffled").fit(X)
    assert in_place(est.placement_.coordinates, places) > 0.95


@pytest.mark.parametrize("name", ["ring", "torus", "white"])
def test_other_columns_are_never_present_on_a_sphere(name):
    X = {
        "ring": lambda: gsn(3000, 30, periodic=True, transform="permutation").X,
        "torus": lambda: gsn(3000, (6, 6), periodic=True, transform="permutation").X,
        "white": lambda: np.random.default_rng(0).normal(size=(3000, 30)),
    }[name]()
    with pytest.warns(FitWarning, match="no columns on a sphere"):
        est = LatentDomain(grid="sphere", mixing="shuffled").fit(X)
    diagnosis = est.diagnose(X)
    assert diagnosis.verdict is Verdict.ABSENT
    if name == "ring":
        assert "circle" in diagnosis.next_steps[0].text


def dipoles(seed: int, depth: float, far: float) -> tuple[np.ndarray, np.ndarray]:
    """Radial fields of dipoles under a cap, as magnetometers see them, and three far sources that
    reach all columns, unevenly: points and rows.
    """
    rng = np.random.default_rng([seed, 7])
    z, turn = rng.uniform(np.cos(1.2), 1, 60), rng.uniform(0, 2 * np.pi, 60)
    ring = np.sqrt(1 - z * z)
    u = np.stack([ring * np.cos(turn), ring * np.sin(turn), z], axis=1)
    source = rng.normal(size=(300, 3))
    source *= (1 - depth) / np.linalg.norm(source, axis=1, keepdims=True)
    moment = np.cross(rng.normal(size=source.shape), source)
    gain = u @ moment.T / np.linalg.norm(u[:, None] - source, axis=2) ** 3
    X = rng.laplace(size=(2000, 300)) @ (gain / (gain.std() * np.sqrt(300))).T
    X += 0.2 * rng.normal(size=X.shape)
    rng = np.random.default_rng([seed, 9])
    for _ in range(3):
        v, w = rng.normal(size=(2, 3))
        reach = 1 + u @ v + (u @ w) ** 2
        X += far * np.outer(rng.normal(size=2000), reach / np.sqrt(np.mean(reach**2)))
    return u, X


@pytest.mark.parametrize("depth", [0.2, 0.35, 0.5])
def test_columns_that_see_dipoles_are_placed(depth):
    u, X = dipoles(0, depth, 0.0)
    est = LatentDomain(grid="sphere", mixing="shuffled", random_state=0).fit(X)
    assert same_places(est.placement_.coordinates, u) > 0.9


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_profiles_hardly_notice_what_reaches_all_columns(seed):
    _, X = dipoles(seed, 0.35, 0.0)
    common = 3 * np.random.default_rng(seed).normal(size=(len(X), 1))
    alone, with_it = (np.corrcoef(rows.T) for rows in (X, X + common))
    pairs = np.triu_indices(len(alone), 1)

    def same(a, b):
        return np.corrcoef(a[pairs], b[pairs])[0, 1]

    assert np.abs(with_it - alone)[pairs].mean() > 0.5
    assert same(profiles_of(alone), profiles_of(with_it)) > 0.9
    # a column that is like no other has no profile
    assert np.array_equal(profiles_of(np.eye(9)), np.eye(9))


def test_places_without_far_sources_are_taken_where_neighbours_predict_more_there(monkeypatch):
    """Three far sources draw correlations on a surface of their own, which explains them."""
    u, X = dipoles(1, 0.2, 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        est = LatentDomain(grid="sphere", mixing="shuffled", random_state=0).fit(X)
        monkeypatch.setattr(sphere_module, "_predict_more", lambda *_: False)
        without = LatentDomain(grid="sphere", mixing="shuffled", random_state=0).fit(X)
    assert "profiles" in est.trace_.chosen
    assert same_places(est.placement_.coordinates, u) > 0.7
    assert same_places(without.placement_.coordinates, u) < 0.3


def test_two_ways_agree_on_places_under_far_sources_and_not_where_columns_lie_on_no_surface():
    def ways(X: np.ndarray) -> float:
        one, other = (places_of(np.corrcoef(half.T)) for half in (X[::2], X[1::2]))
        return agreement_of_ways(one, other)

    rng = np.random.default_rng(0)
    loadings = rng.normal(size=(10, 48))
    factors = rng.laplace(size=(2000, 10)) @ loadings + 0.5 * rng.normal(size=(2000, 48))
    assert ways(dipoles(0, 0.3, 1.0)[1]) > 0.8
    assert ways(factors) < 0.7
    assert ways(rng.normal(size=(2000, 48))) < 0.3


def test_too_few_columns_are_refused():
    X = gsn(500, 6, transform="permutation").X
    with pytest.raises(InputError, match="fewer than 8 columns"):
        LatentDomain(grid="sphere", mixing="shuffled").fit(X)
