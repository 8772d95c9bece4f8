"""Curvatures of planes of rotation: what they are derived from, and that steps become fewer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.core.linalg import cayley
from symlift.solvers.fast.descend import descend
from symlift.solvers.fast.frames import points_frame
from symlift.solvers.fast.mode_moments import mode_moments
from symlift.solvers.fast.planes import Planes
from symlift.solvers.fast.stationary import (
    covariance_gap,
    moments,
    second_moment,
)

pytestmark = pytest.mark.portable


def rotation(d, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def skew(d, seed):
    A = np.random.default_rng(seed).normal(size=(d, d))
    return A - A.T


def smooth_rows(n, length, seed):
    """Skewed, stationary, and with modes of very different variance."""
    e = np.random.default_rng(seed).exponential(size=(n, length + 6)) - 1
    f = sum(0.8**k * e[:, 6 - k : 6 - k + length] for k in range(7))
    return f - f.mean(axis=0)


def test_curvature_of_independent_skewed_axes_is_what_a_rotation_changes():
    # only T_aaa: no cross terms, so the estimate is exact
    d, angle = 4, 1e-4
    values, cubes = np.array([4.0, 2.0, 1.0, 0.5]), np.array([1.0, -2.0, 0.7, 0.2])
    C, T = np.diag(values), np.zeros((d, d, d))
    T[np.arange(d), np.arange(d), np.arange(d)] = cubes
    planes = Planes(C, T, 0.3)
    # eigenvalues ascend
    here = [int(np.abs(v).argmax()) for v in planes.vectors.T]
    for a, b in ((0, 1), (1, 3)):
        A = np.zeros((d, d))
        A[here[a], here[b]], A[here[b], here[a]] = angle, -angle
        R = cayley(A)
        second = np.linalg.norm(R @ C @ R.T - C) ** 2
        third = np.linalg.norm(np.einsum("ia,jb,kc,abc->ijk", R, R, R, T) - T) ** 2
        expected = 2 * (second + 0.3 * third) / angle**2
        assert planes.curvature[a, b] == pytest.approx(expected, rel=1e-3)


def test_a_newton_step_undoes_the_curvature_in_any_coordinates():
    X = smooth_rows(2_000, 8, 0) @ rotation(8, 1)
    modes = mode_moments(X)
    planes = modes.criterion(0.5, LagClasses(Grid((modes.basis.shape[1],)))).planes
    assert planes is not None
    W, A = rotation(8, 2), skew(8, 3)
    step = planes.newton(A, W @ modes.basis.T)
    np.testing.assert_allclose(step, -step.T, atol=1e-9 * np.abs(step).max())
    V = W @ modes.basis.T @ planes.vectors
    np.testing.assert_allclose((V.T @ step @ V) * planes.curvature, V.T @ A @ V, atol=1e-9)
    np.testing.assert_allclose(planes.in_data(modes.basis).newton(A, W), step, rtol=1e-6, atol=1e-9)


def test_fewer_steps_with_curvatures():
    d = 24
    X = smooth_rows(8_000, d, 4)
    A = rotation(d, 5)
    modes = mode_moments(X @ A)
    scaled = modes.criterion(0.0, LagClasses(Grid((d,))))
    plain = replace(scaled, planes=None)
    start = cayley(0.05 * skew(d, 6)) @ A @ modes.basis.T
    end = descend(start, [scaled], 15)
    np.testing.assert_allclose(end.W @ end.W.T, np.eye(d), atol=1e-9)
    assert end.value < 1.5 * scaled.noise < scaled.gap(start)[0]
    assert end.value < descend(start, [plain], 15).value


def test_covariance_gap_has_its_gradient_and_the_truth_its_sampling_noise():
    lags = LagClasses(Grid((12,)))
    X = smooth_rows(6_000, 12, 7)
    second, noise = second_moment(X)
    gap = covariance_gap(second, lags)
    W, direction = rotation(12, 8), np.random.default_rng(9).normal(size=(12, 12))
    slope = (gap(W + 1e-6 * direction)[0] - gap(W - 1e-6 * direction)[0]) / 2e-6
    assert np.sum(gap(W)[1] * direction) == pytest.approx(slope, rel=1e-4)
    assert gap(np.eye(12))[0] < 2 * noise < gap(W)[0]
    np.testing.assert_allclose(second, moments(X).second, atol=1e-12)


def test_moderate_skewness_decides_the_signs_of_components():
    # columns of this mixing do not overlap at all, so that their overlaps say nothing
    length = 20
    X = smooth_rows(4_000, length, 10)
    U = np.diag(np.where(np.arange(length) < 10, 1.0, -1.0))
    W, quality = points_frame(X[1_000:], X[:1_000], U, Grid((length,)), np.random.default_rng(0))
    assert quality["locality"] > 0.5
    assert abs(W.sum()) == length
