"""The fast solver's stages, each as the mathematics it claims to be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm, toeplitz
from scipy.stats import ortho_group

from symlift import Grid
from symlift.core.lags import LagClasses
from symlift.core.linalg import polar
from symlift.datasets import gsn, ising
from symlift.solvers.fast.components import independent_components, nongaussianity
from symlift.solvers.fast.descend import Criterion, descend
from symlift.solvers.fast.frames import (
    nearest_in_turn,
    points_frame,
    position_frames,
    stationary_frame,
)
from symlift.solvers.fast.increments import increments_frame
from symlift.solvers.fast.resolve import (
    SharedEntropy,
    least_distortion_filter,
    relative_loss,
    resolve,
    unit_determinant,
)
from symlift.solvers.fast.sharpen import pooled_entropy
from symlift.solvers.fast.stationary import invariance_gap, minimise_over_rotations, moments
from symlift.statistics.selection import distortion, held_out

pytestmark = pytest.mark.portable


def rows_of(data):
    X = data.X.astype(np.float64)
    X -= X.mean(axis=0)
    return X / X.std()


def score(W, X, lags):
    return held_out(W, X, lags).value()


def finite_difference(function, x, directions, h=1e-5):
    return np.array([(function(x + h * v) - function(x - h * v)) / (2 * h) for v in directions])


def allpass(n: int, strength: float, rng: np.random.Generator) -> np.ndarray:
    """A random circulant rotation: the same spectrum, other phases."""
    phase = np.exp(1j * strength * rng.normal(size=n // 2 + 1))
    phase[0] = 1.0
    return np.fft.irfft(phase[:, None] * np.fft.rfft(np.eye(n), axis=0), n, axis=0)


def test_gap_gradient_and_its_value_at_the_truth(rng):
    data = gsn(20_000, 11, transform="orthogonal", random_state=1)
    X = rows_of(data)
    m = moments(X)
    gap = invariance_gap(m, LagClasses(data.grid))
    truth = data.transform  # x = f @ transform, so f = x @ transformᵀ
    value, _ = gap(truth)
    assert value < 1.5 * m.noise
    assert gap(ortho_group.rvs(11, random_state=0))[0] > 20 * m.noise
    W = rng.normal(size=(11, 11))
    directions = rng.normal(size=(4, 11, 11))
    slopes = finite_difference(lambda w: gap(w)[0], W, directions)
    assert np.allclose(slopes, np.sum(directions * gap(W)[1], axis=(1, 2)), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "grid", [Grid((9,), True), Grid((3, 4)), Grid((2, 2, 3), (True, False, True))]
)
def test_gap_vanishes_for_moments_that_are_invariant(grid, rng):
    """All translates (torus) of a few signals have moments that are exactly invariant on periodic
    axes.
    """
    if not all(grid.periodic):
        grid = Grid(grid.shape, periodic=True)
    signals = rng.exponential(size=(3, *grid.shape))
    rolled = [
        np.roll(signals, shift, axis=tuple(range(1, grid.ndim + 1))).reshape(3, -1)
        for shift in np.ndindex(*grid.shape)
    ]
    X = np.concatenate(rolled)
    X = X - X.mean(axis=0)
    value, _ = invariance_gap(moments(X), LagClasses(grid))(np.eye(grid.size))
    assert abs(value) < 1e-12


def test_minimise_over_rotations_descends_and_stays_orthogonal():
    data = gsn(20_000, 11, periodic=True, transform="orthogonal", random_state=2)
    gap = invariance_gap(moments(rows_of(data)), LagClasses(data.grid))
    K = np.random.default_rng(0).normal(size=(11, 11))
    start = expm(0.1 * (K - K.T)) @ data.transform
    W, value = minimise_over_rotations(gap, start, 200)
    assert np.allclose(W @ W.T, np.eye(11), atol=1e-10)
    assert value < 0.1 * gap(start)[0]


def test_shared_entropy_and_its_gradient(rng):
    Z = rng.normal(size=(4_000, 5))
    Z /= Z.std()
    entropy = SharedEntropy(0.1)
    value, gradient = entropy(Z)
    assert abs(value - 0.5 * np.log(2 * np.pi * np.e)) < 0.02
    directions = rng.normal(size=(3, *Z.shape))
    slopes = finite_difference(lambda z: entropy(z)[0], Z, directions, h=1e-6)
    assert np.allclose(slopes, np.sum(directions * gradient, axis=(1, 2)), rtol=2e-2, atol=1e-5)
    assert (
        entropy(rng.uniform(-np.sqrt(3), np.sqrt(3), size=(4_000, 5)))[0] < value
    )  # flat is less than Gaussian


@pytest.mark.parametrize("grid", [Grid((6,)), Grid((2, 3), True)])
def test_gradient_of_the_resolving_objective(grid, rng):
    X = rng.laplace(size=(3_000, 6)) @ rng.normal(size=(6, 6))
    loss = relative_loss(
        rng.normal(size=(6, 6)), X, LagClasses(grid), 0.3, isometry=2.0, stationary=5.0
    )
    theta = 0.05 * rng.normal(size=36)
    directions = rng.normal(size=(5, 36))
    slopes = finite_difference(lambda v: loss(v)[0], theta, directions, h=1e-6)
    assert np.allclose(slopes, directions @ loss(theta)[1], rtol=2e-2, atol=2e-3)
    turned_round = np.diag(
        [-2.0, 0, 0, 0, 0, 0]
    ).ravel()  # a map of the other determinant is a wall, not a way through
    assert loss(turned_round)[0] > loss(np.zeros(36))[0] + 100


def test_distortion_is_zero_for_isometries_only(rng):
    Q = ortho_group.rvs(7, random_state=0)
    assert abs(distortion(3 * Q)) < 1e-12
    assert distortion(Q * np.linspace(0.5, 2, 7)) > 0.1
    assert np.isclose(abs(np.linalg.det(unit_determinant(rng.normal(size=(5, 5))))), 1)


@pytest.mark.parametrize("grid", [Grid((21,)), Grid((20,), True), Grid((4, 5))])
def test_least_distortion_filter_undoes_a_short_kernel(grid):
    """V = B Q with B a short symmetric blur: the filter that makes V nearest to an isometry is
    about B⁻¹.
    """
    Q = ortho_group.rvs(grid.size, random_state=1)
    lags = LagClasses(grid)
    kernel = np.eye(grid.size)
    i, j = grid.neighbours().T
    kernel[i, j] = kernel[j, i] = 0.2
    V = lags.project(kernel) @ Q
    W = least_distortion_filter(V, lags)
    assert distortion(W) < 0.02 * distortion(V)
    K = W @ np.linalg.inv(V)
    assert np.allclose(K, K.T)
    assert np.allclose(lags.project(K), K)


@pytest.mark.parametrize(
    "data",
    [
        gsn(12_000, 15, periodic=True, random_state=5),
        gsn(12_000, 31, random_state=5),
        gsn(12_000, 31, basis="legendre", random_state=5),
        ising(12_000, 21, random_state=5),
    ],
    ids=["ring", "gaussian line", "legendre line", "ising"],
)
def test_the_choice_rejects_all_pass_and_mirrored_copies(data, rng):
    """Stationarity alone cannot tell an all-pass copy on a ring; resolution alone cannot tell a
    mirrored half.
    """
    X, lags, N = rows_of(data), LagClasses(data.grid), data.grid.size
    truth = score(np.eye(N), X, lags)
    for strength in (0.3, 1.0):
        assert truth < score(allpass(N, strength, rng), X, lags)
    mirrored = np.eye(N)
    mirrored[N // 2 :] = mirrored[N // 2 :][::-1]
    assert truth < score(mirrored, X, lags) - 0.05
    K = rng.normal(size=(N, N))
    assert truth < score(expm(0.05 * (K - K.T)), X, lags)


def test_stationarity_alone_would_not_reject_an_all_pass_copy_on_a_ring(rng):
    data = gsn(12_000, 15, periodic=True, random_state=5)
    X = rows_of(data)
    m = moments(X)
    gap = invariance_gap(m, LagClasses(data.grid))
    copy = allpass(15, 1.0, rng)
    assert gap(copy)[0] < 1.5 * m.noise
    assert pooled_entropy(X @ copy.T)[0] > pooled_entropy(X)[0] + 0.01


def test_sharpen_undoes_small_all_pass_copies(rng):
    data = gsn(20_000, 15, periodic=True, random_state=6)
    X = rows_of(data)
    m = moments(X)
    gap = invariance_gap(m, LagClasses(data.grid))
    small = allpass(15, 0.15, rng)
    sharper = Criterion(gap, m.noise).sharp(X[:6_000], 20)
    sharp = descend(small, [sharper], 80).W
    assert pooled_entropy(X @ sharp.T)[0] < pooled_entropy(X @ small.T)[0]


def test_components_of_shot_noise_are_its_points():
    data = gsn(20_000, 21, transform="orthogonal", random_state=7)
    X = rows_of(data)
    U, quality = independent_components(X[:10_000], np.random.default_rng(0))
    assert quality["contrast"] > 0.05
    assert nongaussianity(X[:10_000] @ U.T, X[10_000:] @ U.T) > 20
    W, quality = points_frame(X[:15_000], X[15_000:], U, data.grid, np.random.default_rng(0))
    assert quality["locality"] > 0.8
    placed = np.abs(W @ data.transform.T)
    assert np.mean(placed.max(axis=1) > 0.8) > 0.8  # each row on a point of its own
    C, C_held = (part.T @ part / len(part) for part in (X[:10_000], X[10_000:]))
    better, misfit = stationary_frame(W, C, C_held, LagClasses(data.grid))
    assert np.allclose(better @ better.T, np.eye(21), atol=1e-10)
    assert misfit < 0.2
    frames = position_frames(X, U)
    assert len(frames) == 4
    assert all(np.allclose(F @ F.T, np.eye(21), atol=1e-8) for F in frames.values())


def test_gaussian_components_show_no_evidence(rng):
    X = rng.normal(size=(8_000, 12)) @ rng.normal(size=(12, 12))
    U, _ = independent_components(X[:4_000], np.random.default_rng(0))
    assert abs(nongaussianity(X[:4_000] @ U.T, X[4_000:] @ U.T)) < 4


def test_polar_is_the_nearest_orthogonal_matrix(rng):
    M = rng.normal(size=(6, 6))
    W = polar(M)
    others = [ortho_group.rvs(6, random_state=k) for k in range(20)]
    assert all(np.linalg.norm(M - W) <= np.linalg.norm(M - Q) for Q in others)
    positive = toeplitz([2.0, 0.5, 0.1, 0.0, 0.0, 0.0])
    assert np.allclose(
        polar(positive @ W), W
    )  # a symmetric positive filter does not change the frame


def test_walls_of_spins_are_summed_up_and_resolved():
    data = ising(15_000, 15, transform="linear", random_state=8)
    X = rows_of(data)
    U, _ = independent_components(X[:10_000], np.random.default_rng(1))
    W, quality = increments_frame(X[:10_000], X[10_000:], U, np.random.default_rng(1))
    assert quality["locality"] > 0.3
    assert quality["global"] > 2
    lags = LagClasses(data.grid)
    W = resolve(W, X[:8_000].astype(np.float32), lags)
    kernel = np.abs(unit_determinant(W) @ data.transform.T)
    best = max(np.trace(kernel), np.trace(kernel[::-1]))
    assert best / kernel.sum() > 0.5


@pytest.mark.parametrize("by", [1, 2, 4])
def test_a_ring_that_was_read_every_kth_point_is_put_in_turn(by):
    rng = np.random.default_rng(0)
    raw = rng.exponential(size=(3_000, 9)) * (rng.uniform(size=(3_000, 9)) < 0.3)
    Y = raw + 0.5 * np.roll(raw, 1, axis=1) + 0.5 * np.roll(raw, -1, axis=1)
    W = np.eye(9)[np.arange(9) * by % 9]
    lags = np.corrcoef(Y @ nearest_in_turn(W, Y).T, rowvar=False)[0]
    assert sorted(np.argsort(-lags)[1:3]) == [1, 8]
    # every third point is no ring of nine: nothing is changed where magnitudes and values do not
    # agree on one
    noise = rng.normal(size=(3_000, 9))
    kept = nearest_in_turn(np.eye(9), noise)
    assert sorted(kept.argmax(axis=1)) == list(range(9))
