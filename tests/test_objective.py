from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symlift import Grid
from symlift.core.lags import LagClasses
from symlift.datasets import gsn, ising, random_orthogonal
from symlift.statistics.entropy import joint_entropy, marginal_entropies, resolution
from symlift.statistics.moments import stationarity


@given(st.lists(st.integers(2, 4), min_size=1, max_size=3).map(tuple), st.booleans())
def test_projection_is_the_orthogonal_projection_on_stationary_matrices(shape, periodic):
    grid = Grid(shape, periodic)
    lags = LagClasses(grid)
    M = np.random.default_rng(0).normal(size=(grid.size, grid.size))
    P = lags.project(M)
    assert np.allclose(lags.project(P), P)
    assert np.isclose(np.sum(P * (M - P)), 0)
    if grid.ndim == 1 and not periodic:
        assert all(np.ptp(np.diag(P, k)) < 1e-12 for k in range(1 - grid.size, grid.size))
    if grid.ndim == 1 and periodic:
        assert np.allclose(np.roll(P, (1, 1), (0, 1)), P)


@pytest.mark.parametrize("n", [500, 5_000])
def test_stationarity_is_unbiased_at_the_truth(n):
    """Zero within its own scatter on a stationary field, however few rows; clearly positive on
    shuffled columns.
    """
    grid = Grid((21,))
    lags = LagClasses(grid)
    truth = np.array(
        [stationarity(gsn(n, 21, random_state=seed).latent, lags) for seed in range(12)]
    )
    shuffled = np.array(
        [
            stationarity(gsn(n, 21, transform="permutation", random_state=seed).X, lags)
            for seed in range(3)
        ]
    )
    scatter = truth.std(axis=0) / np.sqrt(len(truth))
    assert np.all(np.abs(truth.mean(axis=0)) < 4 * scatter + 2e-3)
    assert np.all(shuffled.min(axis=0)[[0, 2]] > 5 * np.abs(truth).max(axis=0)[[0, 2]])


def test_stationarity_on_rings_grids_and_spins():
    for data in (gsn(4_000, 12, periodic=True), gsn(4_000, (5, 6)), ising(4_000, 15)):
        lags = LagClasses(data.grid)
        rotated = data.latent @ random_orthogonal(data.grid.size, random_state=1)
        assert np.abs(stationarity(data.latent, lags)).max() < 0.05
        assert stationarity(rotated, lags)[0] > 0.2


@pytest.mark.parametrize("scale", [0.3, 5.0])
def test_marginal_entropies_against_closed_forms(rng, scale):
    n = 40_000
    Y = scale * np.stack([rng.normal(size=n), rng.uniform(size=n), rng.laplace(size=n)], axis=1)
    exact = np.log(scale) + np.array([0.5 * np.log(2 * np.pi * np.e), 0.0, 1 + np.log(2)])
    assert np.abs(marginal_entropies(Y) - exact).max() < 0.03


def test_joint_entropy_is_the_gaussian_log_determinant(rng):
    A = rng.normal(size=(5, 5))
    Y = rng.normal(size=(100_000, 5)) @ A
    exact = 0.5 * np.log(2 * np.pi * np.e) + np.linalg.slogdet(A)[1] / 5
    assert abs(joint_entropy(Y) - exact) < 0.01


def test_resolution_is_total_correlation_for_gaussians(rng):
    """Σ h(y_n) - h(Y) of a Gaussian is -½ log det of its correlation matrix; it does not depend on
    scale.
    """
    C = 0.8 ** np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    Y = rng.multivariate_normal(np.zeros(6), C, size=60_000)
    assert abs(resolution(Y) + np.linalg.slogdet(C)[1] / 12) < 0.02
    assert abs(resolution(100 * Y) - resolution(Y)) < 1e-9
    assert (
        resolution(rng.choice([-1.0, 1.0], size=(1_000, 4))) < -1
    )  # ties: no density, but a finite figure
