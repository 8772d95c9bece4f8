"""Smooth fields with edges: derivatives, cumulants as operators, position operators, and a small
recovery.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from symlift.core.grid import Grid
from symlift.metrics import signal_recovery
from symlift.solvers.fast.edges import (
    cumulant_of,
    edges_frame,
    energy_matrices,
    equal_rows,
    finer_frame,
    least_variation,
    neighbour_differences,
    unit_rows,
    variation,
)
from symlift.solvers.fast.settings import FastSettings

pytestmark = pytest.mark.portable


def rotation(d, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def half_planes(n, side, seed):
    """Images of straight edges anywhere, of any direction, contrast and sign: stationary in the
    window, and symmetric in sign.
    """
    rng = np.random.default_rng(seed)
    place = np.stack(np.meshgrid(*2 * [np.arange(side)], indexing="ij"), axis=-1).reshape(-1, 2)
    f = rng.normal(size=(n, 1)) * np.ones(side * side)
    for _ in range(3):
        angle = rng.uniform(0, np.pi, (n, 1))
        offset = rng.uniform(-2 * side, 2 * side, (n, 1))
        along = np.cos(angle) * (place[:, 0] - side / 2) + np.sin(angle) * (place[:, 1] - side / 2)
        f += rng.laplace(size=(n, 1)) * np.tanh(2 * (along - offset))
    return f + 0.01 * rng.normal(size=f.shape)


def scale_mixture(n, side, seed):
    """A smooth Gaussian field of random contrast: heavy tails, but no edge that has a place."""
    rng = np.random.default_rng(seed)
    axis = np.arange(side)
    kernel = np.exp(-np.abs(axis[:, None] - axis) / 4)
    root = np.linalg.cholesky(np.kron(kernel, kernel))
    return rng.gamma(1.0, size=(n, 1)) * (rng.normal(size=(n, side * side)) @ root.T)


def hidden(f, seed):
    A = rotation(f.shape[1], seed)
    X = (f - f.mean(axis=0)) @ A
    return X / X.std(), A


@pytest.mark.parametrize("grid", [Grid((4,)), Grid((3, 4)), Grid((4, 3), periodic=(True, False))])
def test_differences_of_neighbours(grid):
    D = neighbour_differences(grid)
    pairs = sum(
        grid.size // n * (n if wraps else n - 1)
        for n, wraps in zip(grid.shape, grid.periodic, strict=True)
    )
    assert D.shape == (pairs, grid.size)
    np.testing.assert_array_equal(D.sum(axis=1), 0)
    index = grid.indices()
    for low, high in zip(D.argmin(axis=1), D.argmax(axis=1), strict=True):
        step = np.abs(index[low] - index[high])
        wrapped = np.where(grid.periodic, np.minimum(step, np.array(grid.shape) - step), step)
        assert wrapped.sum() == 1


@pytest.mark.parametrize(("dtype", "close"), [(np.float64, 1e-6), (np.float32, 2e-2)])
def test_gradient_is_that_of_the_variation(dtype, close):
    grid = Grid((2, 3))
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 6)).astype(dtype)
    D, R, direction = neighbour_differences(grid), rotation(6, 1), rng.normal(size=(6, 6))
    h = 1e-5 if dtype is np.float64 else 1e-2
    ahead, behind = (variation(R + s * h * direction, Z, D, 0.1)[0] for s in (1, -1))
    slope = float(np.vdot(variation(R, Z, D, 0.1)[1], direction))
    assert (ahead - behind) / (2 * h) == pytest.approx(slope, rel=close)


def test_cumulant_as_an_operator():
    """It is that of the definition, symmetric, and that of rotated rows is rotated."""
    rng = np.random.default_rng(0)
    Z = rng.laplace(size=(3_000, 4))
    Z -= Z.mean(axis=0)
    Z = np.linalg.solve(np.linalg.cholesky(Z.T @ Z / len(Z)), Z.T).T
    M = rng.normal(size=(3, 4, 4))
    M += M.transpose(0, 2, 1)
    fourth = np.einsum("ni,nj,nk,nl->ijkl", Z, Z, Z, Z) / len(Z)
    one = np.eye(4)
    gauss = sum(
        np.einsum(f"{a},{b}->ijkl", one, one) for a, b in (("ij", "kl"), ("ik", "jl"), ("il", "jk"))
    )
    plain = np.einsum("ijkl,akl->aij", fourth - gauss, M)
    np.testing.assert_allclose(cumulant_of(Z, M), plain, atol=2e-5)
    Q = rotation(4, 1)
    np.testing.assert_allclose(
        cumulant_of(Z @ Q.T, Q @ M @ Q.T), Q @ cumulant_of(Z, M) @ Q.T, atol=2e-5
    )


def test_eigenmatrices():
    """Of independent components they are the components' own projections."""
    rng = np.random.default_rng(0)
    Z = rng.laplace(size=(40_000, 5)) * [1, 1, 1, 1, 1]
    Z /= Z.std(axis=0)
    values, matrices = energy_matrices(Z.astype(np.float32), 2, rng)
    assert np.all(np.diff(values) <= 0)
    again = cumulant_of(Z, matrices)
    np.testing.assert_allclose(again, values[:, None, None] * matrices, atol=0.1 * values[0])
    off = matrices * (1 - np.eye(5))
    assert np.linalg.norm(off) < 0.2 * np.linalg.norm(matrices)


def test_rows_of_equal_norm():
    """A coordinate weighted by frequency becomes a matrix of rows of the same length."""
    rng = np.random.default_rng(0)
    M = rng.normal(size=(6, 6))
    M += M.T
    weight = np.geomspace(0.1, 1, 6)
    A, B = equal_rows(M), equal_rows(M * weight * weight[:, None])
    np.testing.assert_allclose(A, B, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(A, axis=1), np.linalg.norm(A) / 6**0.5, rtol=1e-4)


def test_rows_of_one_length_do_not_know_contrast():
    Z = np.random.default_rng(0).normal(size=(500, 4)) @ np.diag([3.0, 2.0, 1.0, 0.5])
    values = np.var(Z, axis=0)
    contrast = np.random.default_rng(1).uniform(0.1, 10, (500, 1))
    np.testing.assert_allclose(unit_rows(Z, values), unit_rows(contrast * Z, values), atol=1e-4)


def test_least_variation_stays_at_the_field_and_comes_back_to_it():
    side = 5
    f = half_planes(8_000, side, 0)
    f -= f.mean(axis=0)
    grid, D = Grid((side, side)), neighbour_differences(Grid((side, side)))
    vectors = np.linalg.eigh(f.T @ f)[1][:, ::-1]
    Z = (f @ vectors).astype(np.float32)
    softness = 0.3 * float(np.median(np.abs(f @ D.T)))
    rng = np.random.default_rng(1)
    skew = 0.1 * rng.normal(size=(25, 25))
    spoiled = vectors @ np.linalg.qr(np.eye(25) + skew - skew.T)[0]
    detail = [
        signal_recovery(f, Z @ R.T, grid).r_detail
        for R in (
            spoiled,
            *(
                least_variation(start, Z, D, softness, rng, 600, (0.02, 0.001), 500)
                for start in (vectors, spoiled)
            ),
        )
    ]
    assert detail[0] < 0.9
    assert min(detail[1:]) > 0.97


@pytest.mark.parametrize(("few", "many"), [((3, 4), (5, 6)), ((5,), (8,)), ((4, 4), (4, 4))])
def test_finer_frames_draw_the_same_waves_on_more_points(few, many):
    """They are rotations; a constant stays constant and a slow cosine stays that cosine."""
    coarse, fine = Grid(few), Grid(many)
    rng = np.random.default_rng(0)
    R = rotation(coarse.size, 1)
    F = finer_frame(R, coarse, fine, rng)
    np.testing.assert_allclose(F.T @ F, np.eye(fine.size), atol=1e-12)
    z = np.zeros((2, fine.size))
    for grid, waves in ((coarse, []), (fine, z)):
        place = (grid.indices()[:, 0] + 0.5) / grid.shape[0]
        pictures = np.stack([np.ones(grid.size), np.cos(np.pi * place)]) / grid.size**0.5
        if grid is coarse:
            z[:, : coarse.size] = pictures @ R
        else:
            np.testing.assert_allclose(waves @ F.T, pictures, atol=1e-12)


FAST = replace(
    FastSettings(), energy_rows=12_000, energies=6, variation_steps=24, edge_trial_steps=80,
    edge_signs=6, edge_candidates=3, edge_draws=2,
)  # fmt: skip


# from one grid, and from a coarse one to a finer one
@pytest.mark.parametrize(("side", "fewest"), [(5, 25), (6, 16)])
def test_images_with_edges_behind_a_rotation(side, fewest):
    grid, settings = Grid((side, side)), replace(FAST, edge_points=fewest)
    f = half_planes(16_000, side, 3)
    X, _ = hidden(f, 4)
    frame = edges_frame(X[4_000:], X[:4_000], grid, np.random.default_rng(0), settings)
    assert frame is not None
    assert frame.reproduced > 0.5
    assert frame.roughness < 0.95
    recovery = signal_recovery(f, X @ frame.W.T, grid)
    assert recovery.r_detail > 0.9
    np.testing.assert_allclose(frame.W @ frame.W.T, np.eye(grid.size), atol=1e-8)


def test_heavy_tails_without_edges_are_turned_down():
    """Contrast alone has no place: no operator comes back, or the frame is no smoother than others
    with the same covariance.
    """
    X, _ = hidden(scale_mixture(12_000, 5, 0), 1)
    settings = replace(FAST, edge_draws=1)
    frame = edges_frame(X[4_000:], X[:4_000], Grid((5, 5)), np.random.default_rng(0), settings)
    assert frame is None or frame.roughness > settings.rough
