"""Starts from the covariance's eigenbasis: gradients, what commutes with what, coarse and fine
grids, and small recoveries.
"""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from symlift import LatentDomain
from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.metrics import signal_recovery
from symlift.solvers.contract import no_progress
from symlift.solvers.fast.contract import ProposedMap, Standing, StartTurn
from symlift.solvers.fast.eigenbasis import (
    coarser,
    eigenbasis_frames,
    finer_start,
    fitted_modes,
    levels,
    same_signs,
    smooth_modes,
)
from symlift.solvers.fast.fourth_moments import fourth_gap, fourth_modes, quadruple_classes
from symlift.solvers.fast.mode_moments import explained_third_moment, mode_moments, third_sums
from symlift.solvers.fast.pool import Pool
from symlift.solvers.fast.problem import Problem
from symlift.solvers.fast.settings import DEFAULT
from symlift.solvers.fast.starts.spectrum import FourthOrder, ThirdOrder
from symlift.solvers.fast.stationary import Invariant, invariance_gap, moments
from symlift.solvers.fast.work import SplitRows, Work

pytestmark = pytest.mark.portable


def rotation(d, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def moving_average(n, length, seed, symmetric=False):
    """A stationary field with a third moment, or (symmetric) only a fourth."""
    rng = np.random.default_rng(seed)
    e = rng.exponential(size=(n, length + 3)) - 1
    if symmetric:
        e = rng.normal(size=(n, length + 3)) * (rng.random((n, length + 3)) < 0.1)
    return sum(b * e[:, 3 - k : 3 - k + length] for k, b in enumerate((1.0, 0.8, 0.5, 0.3)))


def hidden(f, seed):
    A = rotation(f.shape[1], seed)
    X = (f - f.mean(axis=0)) @ A
    return X / X.std(), A


@pytest.mark.parametrize("order", [3, 4])
def test_gradient_is_that_of_the_gap(order):
    grid = Grid((2, 3))
    X, _ = hidden(moving_average(500, 6, 0), 1)
    modes = mode_moments(X) if order == 3 else fourth_modes(X)
    gap = modes.criterion(0.25, LagClasses(grid)).gap
    W, direction = rotation(6, 2), np.random.default_rng(3).normal(size=(6, 6))
    h = 1e-5 if order == 3 else 3e-3  # the fourth is worked with in single precision
    slope = (gap(W + h * direction)[0] - gap(W - h * direction)[0]) / (2 * h)
    assert np.sum(gap(W)[1] * direction) == pytest.approx(slope, rel=1e-3)


def test_whitening_commutes_with_rotations():
    f = moving_average(2_000, 8, 4)
    X, A = hidden(f, 5)
    Y = X @ A.T
    lags, a = LagClasses(Grid((8,))), 0.5
    values = []
    for rows, W in ((X, A), (Y, np.eye(8))):
        modes = mode_moments(rows)
        values.append(modes.criterion(a, lags).gap(W @ modes.basis.T)[0])
        power, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
        white = rows @ (vectors * power ** (-a / 2)) @ vectors.T
        values.append(invariance_gap(moments(white), lags)(W)[0])
    np.testing.assert_allclose(values, values[0], rtol=1e-8)


def test_each_triple_once_is_the_whole_third_moment():
    Z = np.random.default_rng(6).normal(size=(50, 5))
    np.testing.assert_allclose(third_sums(Z), np.einsum("na,nb,nc->abc", Z, Z, Z), atol=1e-10)


def test_fourth_cumulant_is_the_moment_without_its_gaussian_part():
    X = np.random.default_rng(7).laplace(size=(4_000, 4)) @ rotation(4, 8)
    X -= X.mean(axis=0)
    modes = fourth_modes(X, longest=np.inf)
    K = modes.halves[0][1]
    Z = (X @ modes.basis.T)[::2]
    C = Z.T @ Z / len(Z)
    full = np.einsum("na,nb,nc,nd->abcd", Z, Z, Z, Z, optimize=True) / len(Z)
    gauss = (
        np.einsum("ab,cd->abcd", C, C)
        + np.einsum("ac,bd->abcd", C, C)
        + np.einsum("ad,bc->abcd", C, C)
    )
    np.testing.assert_allclose(K, full - gauss, atol=2e-4)


def test_stationary_tensors_have_no_gap():
    grid = Grid((2, 3), periodic=(False, True))
    lags = LagClasses(grid)
    index, count = quadruple_classes(lags)
    rng = np.random.default_rng(9)
    N = grid.size
    K = rng.normal(size=len(count))[index].reshape(N, N, N, N)
    # the invariant tensor that is symmetric as well: an average over the places of its four indices
    K = sum(np.transpose(K, p) for p in itertools.permutations(range(4)))
    C = lags.project(np.eye(N))
    gap = fourth_gap(C / np.linalg.norm(C), (K / np.linalg.norm(K)).astype(np.float32), lags)
    assert gap(np.eye(N))[0] == pytest.approx(0, abs=1e-5)
    assert gap(rotation(N, 10))[0] > 0.01


def test_projection_on_invariant_tensors_is_a_projection():
    invariant = Invariant(LagClasses(Grid((2, 3))))
    T = np.random.default_rng(11).normal(size=(6, 6, 6))
    once = invariant.project(T)
    np.testing.assert_allclose(invariant.project(once), once, atol=1e-12)
    assert np.vdot(once, T - once) == pytest.approx(0, abs=1e-10)


@pytest.mark.parametrize(
    ("shape", "periodic"), [((15, 15), False), ((63,), True), ((6, 6, 6), False), ((8, 8), False)]
)
def test_levels_go_up_to_the_grid_itself(shape, periodic):
    grid = Grid(shape, periodic)
    found = levels(grid, 16)
    assert found[-1] == grid
    sizes = [g.size for g in found]
    assert sizes == sorted(set(sizes))
    assert all(g.periodic == grid.periodic for g in found)
    assert coarser(grid, grid.size) == grid


def test_modes_are_fitted_to_the_spectrum_of_the_data():
    grid = Grid((6, 5))
    values, vectors = smooth_modes(grid, 2.0, 1.0, 0.85)
    found = fitted_modes(grid, values)
    # the strongest modes are those of the covariance that made the spectrum, up to sign
    assert np.abs(np.sum(found[:, :3] * vectors[:, :3], axis=0)).min() > 0.99


def test_a_finer_start_keeps_the_waves_of_the_coarse_frame():
    small, grid = Grid((8,)), Grid((16,))
    coarse, fine = smooth_modes(small, 3.0, 1.0)[1], smooth_modes(grid, 6.0, 1.0)[1]
    fine = same_signs(coarse, fine, small, grid)
    np.testing.assert_allclose(fine.T @ fine, np.eye(16), atol=1e-10)
    W = finer_start(coarse, coarse, fine, np.random.default_rng(0))
    np.testing.assert_allclose(W @ W.T, np.eye(16), atol=1e-10)
    np.testing.assert_allclose(W[:, :4], fine[:, :4], atol=1e-10)
    # the same waves, on twice as many points
    ends = np.rint(np.linspace(0, 15, 8)).astype(int)
    assert all(np.corrcoef(W[ends, k], coarse[:, k])[0, 1] > 0.9 for k in range(1, 4))


def problem_of(X, held, grid, seed):
    work = Work(DEFAULT, no_progress)
    return Problem(SplitRows(X, held), grid, np.random.default_rng(seed), work)


def applying(problem):
    """Starts from the eigenbasis that have something to propose."""
    turn = StartTurn(problem, 0, Pool(problem))
    return [start for start in (ThirdOrder(), FourthOrder()) if start.applies(turn)]


def proposed(X, held, grid, seed) -> tuple[ProposedMap, int]:
    """What the first of them proposes at last, and the order of its moments."""
    problem = problem_of(X, held, grid, seed)
    *_, last = applying(problem)[0].propose(StartTurn(problem, 0, Pool(problem)))
    return last, problem.work.stages[-1].values["order"]


@pytest.mark.parametrize("symmetric", [False, True])
def test_linear_processes_come_back_from_a_rotation(symmetric):
    f = moving_average(20_000, 16, 12, symmetric)
    X, _ = hidden(f, 13)
    found, order = proposed(X[4_000:], X[:4_000], Grid((16,)), 0)
    assert found.standing is Standing.ALONE
    assert order == (4 if symmetric else 3)
    np.testing.assert_allclose(found.W @ found.W.T, np.eye(16), atol=1e-6)
    assert signal_recovery(f[:3_000], X[:3_000] @ found.W.T, (16,)).r > 0.9


def test_the_gap_ranks_a_frame_that_has_arrived():
    f = moving_average(20_000, 16, 14)
    X, A = hidden(f, 15)
    modes = mode_moments(X)
    *_, found = eigenbasis_frames(modes, Grid((16,)), np.random.default_rng(1))
    criterion = modes.criterion(max(found.ratios), LagClasses(Grid((16,))))
    assert found.last < 1.2
    assert criterion.ratio(A @ modes.basis.T) < 1
    assert criterion.ratio(rotation(16, 16)) > 4


def test_a_mixing_that_is_not_orthogonal_is_given_up_early():
    f = moving_average(40_000, 24, 26, symmetric=False)
    f = (f > np.quantile(f, 0.9)).astype(float) @ np.diag(np.ones(24))
    X = f @ rotation(24, 27) @ np.diag(np.geomspace(0.2, 5, 24)) @ rotation(24, 28)
    X = (X - X.mean(axis=0)) / X.std()
    assert not list(eigenbasis_frames(mode_moments(X), Grid((24,)), np.random.default_rng(3)))


def test_independent_values_have_every_symmetry_and_explain_nothing():
    rng = np.random.default_rng(17)
    X, A = hidden(rng.exponential(size=(20_000, 12)), 18)
    modes = mode_moments(X[4_000:])
    assert explained_third_moment(A, modes, X[:4_000], Grid((12,)), 0.5) < 0.1
    f = moving_average(20_000, 12, 19)
    X, A = hidden(f, 20)
    modes = mode_moments(X[4_000:])
    assert explained_third_moment(A, modes, X[:4_000], Grid((12,)), 0.5) > 0.5


def test_gaussian_fields_have_nothing_to_start_from():
    rng = np.random.default_rng(21)
    field = np.fft.irfft(
        np.fft.rfft(rng.normal(size=(8_000, 12)), axis=1) / (1 + np.arange(7.0)), 12, axis=1
    )
    X, _ = hidden(field, 22)
    assert not applying(problem_of(X[2_000:], X[:2_000], Grid((12,), True), 2))


def test_a_fit_that_has_not_arrived_warns():
    # not stationary at all: no rotation makes it so, however local its components are
    rng = np.random.default_rng(23)
    f = moving_average(6_000, 12, 24) * np.geomspace(0.2, 5, 12)
    X = f @ rotation(12, 25) + 0.01 * rng.normal(size=f.shape)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator = LatentDomain(grid=(12,), mixing="orthogonal", random_state=0).fit(X)
    assert not estimator.evidence_.found
    assert caught
