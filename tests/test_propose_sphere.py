"""The sphere among the domains that are compared when none is given."""

from __future__ import annotations

import numpy as np
import pytest

from symlift import LatentDomain, propose
from symlift.core.sphere import Sphere, spread_points
from symlift.datasets import gsn, sphere_noise
from symlift.search.criterion import distance_classes
from symlift.search.problem import split_halves
from symlift.search.rows import score_rows
from symlift.search.score import both_scores
from symlift.search.settings import PlaceSettings
from symlift.solvers.fast.propose import propose_grid
from symlift.solvers.sphere.angles import same_places
from symlift.solvers.sphere.proposal import field_on_sphere, flattened, sphere_in_pool


def halves_of(X):
    settings = PlaceSettings()
    rows = score_rows(X, np.random.default_rng(0), settings)
    return split_halves(rows, np.arange(X.shape[1]), settings)


def seen_at(places, seed=0, width=0.4):
    return sphere_noise(3000, 7, sensors=places, noise=0.2, random_state=seed, width=width).X


@pytest.mark.slow
def test_columns_around_a_sphere_are_proposed_and_placed(tmp_path):
    places = spread_points(40)[np.random.default_rng(0).permutation(40)]
    est = LatentDomain(random_state=0).fit(seen_at(places))
    assert est.grid_ == Sphere(5)
    assert same_places(est.placement_.coordinates, places) > 0.98
    first, *others = est.trace_.candidates
    assert first.sphere
    assert str(first.domain) == "sphere"
    assert first.share > max(one.share for one in others if len(one.shape) < 3)
    page = est.report(tmp_path / "page.html").read_text(encoding="utf-8")
    assert '<li class="taken"><span class="test-name">Sphere</span>' in page


def test_a_sphere_has_to_explain_more_than_what_is_simpler():
    places = spread_points(40)
    halves = halves_of(seen_at(places))
    found = sphere_in_pool(halves, [], PlaceSettings())
    assert found is not None
    own = np.arange(40)
    same = both_scores(halves, own, distance_classes(places))
    # as good as itself: enough against space, and not against a plane
    assert sphere_in_pool(halves, [(3, same)], PlaceSettings()) is not None
    assert sphere_in_pool(halves, [(2, same)], PlaceSettings()) is None


@pytest.mark.parametrize("kind", ["cap", "plane", "few", "noise"])
def test_what_a_plane_can_hold_is_no_sphere(kind):
    rng = np.random.default_rng(1)
    if kind == "cap":
        z, turn = rng.uniform(0.5, 1, 40), rng.uniform(0, 2 * np.pi, 40)
        r = np.sqrt(1 - z * z)
        X = seen_at(np.stack([r * np.cos(turn), r * np.sin(turn), z], axis=1))
    elif kind == "plane":
        at, source = rng.uniform(0, 6, (40, 2)), rng.uniform(-1, 7, (400, 2))
        gain = np.exp(-0.5 * np.sum((at[:, None] - source) ** 2, axis=2))
        X = rng.exponential(size=(3000, 400)) @ gain.T + 0.3 * rng.normal(size=(3000, 40))
    else:
        X = seen_at(spread_points(18)) if kind == "few" else rng.normal(size=(3000, 40))
    assert sphere_in_pool(halves_of(X), [], PlaceSettings()) is None


def test_a_flat_map_keeps_angles_from_the_middle():
    places = spread_points(200)[:60]
    flat = flattened(places)
    middle = places.mean(axis=0) / np.linalg.norm(places.mean(axis=0))
    assert np.allclose(np.linalg.norm(flat, axis=1), np.arccos(places @ middle))
    # near the middle distances are those on the sphere
    near = np.argsort(-(places @ middle))[:4]
    apart = np.arccos(np.clip(places[near] @ places[near].T, -1, 1))
    assert np.allclose(np.linalg.norm(flat[near][:, None] - flat[near], axis=2), apart, rtol=0.05)


def test_fields_behind_a_rotation_are_proposed():
    data = sphere_noise(4000, 4, random_state=0)
    found = propose(data.X, random_state=0)
    assert [str(one.domain) for one in found] == ["sphere"]
    # what was asked for excludes it
    rng = np.random.default_rng(0)
    without = propose_grid(data.X, rng)
    assert without is None or not isinstance(without.grid, Sphere)


@pytest.mark.parametrize("kind", ["ring", "torus", "normal"])
def test_other_fields_behind_a_rotation_are_not(kind):
    if kind == "normal":
        X = sphere_noise(3000, 4, pulses="normal", random_state=0).X
    else:
        shape = 25 if kind == "ring" else (5, 5)
        X = gsn(3000, shape, periodic=True, transform="orthogonal", random_state=0).X
    assert field_on_sphere(np.asarray(X, dtype=np.float64)) is None


@pytest.mark.parametrize("shape", [25, pytest.param((5, 5), marks=pytest.mark.slow)])
def test_rings_and_tori_behind_a_rotation_are_proposed(shape):
    """Multiplicities of 25 columns are 2, 2, 2 … or 1, 3, 5 …, which tells them apart."""
    X = gsn(3000, shape, periodic=True, transform="orthogonal", random_state=0).X
    first = propose(X, random_state=0)[0]
    assert not first.sphere
    assert first.shape == ((25,) if shape == 25 else shape)
    assert all(first.periodic)
