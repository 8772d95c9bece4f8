"""Places on a sphere by second and third moments, and under far sources."""

from __future__ import annotations

import numpy as np
import pytest

from symlift.core.linalg import polar
from symlift.core.sphere import spread_points
from symlift.datasets import sphere_noise
from symlift.search.problem import split_halves
from symlift.search.rows import score_rows
from symlift.search.settings import PlaceSettings
from symlift.solvers.sphere.angles import (
    by_kernel,
    legendre_values,
    without_first_component,
)
from symlift.solvers.sphere.moments import FieldMoments, by_moments, clipped, moments_of


def cap(count=48, radius=1.0, seed=0):
    rng = np.random.default_rng(seed)
    z, turn = rng.uniform(np.cos(radius), 1, count), rng.uniform(0, 2 * np.pi, count)
    ring = np.sqrt(1 - z * z)
    return np.stack([ring * np.cos(turn), ring * np.sin(turn), z], axis=1)


def heat(cosines, width, size, degree=10):
    ell = np.arange(degree + 1)
    a = (2 * ell + 1) * np.exp(-0.5 * ell * (ell + 1) * width**2)
    return size * np.tensordot(a / a.sum(), legendre_values(cosines, degree)[0], 1)


def off(u, truth):
    """Mean angle between places after the best turn."""
    return np.arccos(np.clip(np.sum(u @ polar(u.T @ truth) * truth, axis=1), -1, 1)).mean()


def test_moments_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    x = rng.exponential(size=(400, 5)) + 0.3 * rng.exponential(size=(400, 1))
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    found = moments_of(x, 400.0)
    assert np.allclose(found.second, z.T @ z / 400)
    third = np.einsum("ni,nj->ij", z**2 - 1, z) / 400
    assert np.allclose(found.third, (third + third.T) / 2)
    # weights are one over squared standard errors, as repeated draws show them
    draws = [moments_of(x[rng.integers(0, 400, 400)], 400.0) for _ in range(300)]
    above = np.triu_indices(5, 1)
    for kind, weight in zip(("second", "third"), found.weights, strict=True):
        scatter = np.std([getattr(one, kind)[above] for one in draws], axis=0)
        assert 0.5 < np.median(scatter) * np.sqrt(weight) < 2


def test_gaps_and_negative_pulses_change_no_moment():
    rng = np.random.default_rng(1)
    x = rng.exponential(size=(2000, 9)) @ rng.uniform(0, 1, (9, 5))
    whole = moments_of(x, 2000.0)
    assert np.allclose(moments_of(-x, 2000.0).third, whole.third)
    holes = np.where(rng.random(x.shape) < 0.2, np.nan, x)
    some = moments_of(holes, 2000.0)
    assert np.abs(some.second - whole.second).max() < 0.1
    assert np.abs(some.third - whole.third).max() < 0.5


def test_exact_moments_give_exact_places():
    truth = cap()
    cosines = np.clip(truth @ truth.T, -1, 1)
    exact = FieldMoments(heat(cosines, 0.25, 0.5), heat(cosines, 0.18, 0.4), (8000.0, 3000.0))
    start = truth + 0.1 * np.random.default_rng(0).normal(size=truth.shape)
    start /= np.linalg.norm(start, axis=1, keepdims=True)
    assert off(start, truth) > 0.1
    assert off(by_moments(start, exact, 10), truth) < 0.01


def test_the_radius_of_a_noisy_cap_is_in_both_moments():
    """Correlations alone leave it open: means of six draws, 0.048 and 0.042 radians."""
    before, after = [], []
    for seed in range(6):
        truth = cap(seed=seed)
        X = sphere_noise(6000, 9, sensors=truth, noise=1.0, random_state=seed).X
        settings = PlaceSettings()
        rows = score_rows(X, np.random.default_rng(0), settings)
        halves = split_halves(rows, np.arange(len(truth)), settings)
        u = by_kernel(truth, rows.correlations(), 10)[0]
        moments = moments_of(clipped(X, halves, settings), float(len(X)))
        before.append(off(u, truth))
        after.append(off(by_moments(u, moments, 10), truth))
    assert np.mean(after) < 0.95 * np.mean(before)


@pytest.mark.parametrize("size", [0.0, 1.0, 3.0])
def test_a_common_mode_is_taken_out_with_its_gains(size):
    rng = np.random.default_rng(2)
    places = spread_points(40)
    local = heat(np.clip(places @ places.T, -1, 1), 0.3, 1.0)
    gain = size * rng.uniform(0.5, 1.5, 40)
    c = local + np.outer(gain, gain) + 0.05 * np.eye(40)
    deviation = np.sqrt(np.diag(c))
    rest = without_first_component(c / deviation[:, None] / deviation)
    assert np.allclose(np.diag(rest), 1)
    above = np.triu_indices(40, 1)
    assert np.corrcoef(rest[above], local[above])[0, 1] > 0.95
