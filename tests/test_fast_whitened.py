"""Mixings that are not orthogonal: frames of whitened rows."""

from __future__ import annotations

import numpy as np
import pytest

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.datasets import gsn, random_linear
from symlift.metrics import signal_recovery
from symlift.solvers.fast.components import independent_components
from symlift.solvers.fast.resolve import resolve
from symlift.solvers.fast.stationary import invariant_part
from symlift.solvers.fast.whitened import recoloured, smoothed_gap, smoothing, whitened_frames
from symlift.statistics.selection import held_out

pytestmark = pytest.mark.portable


def test_smoothing_keeps_constants_in_the_middle_and_ends_at_the_identity() -> None:
    G = smoothing(41, 2.0)
    assert G.sum(axis=1)[20] == pytest.approx(1, abs=1e-6)
    assert np.allclose(G, G.T)
    assert np.array_equal(smoothing(5, 0.0), np.eye(5))


def test_the_smoothed_gap_has_the_gradient_of_its_value(rng: np.random.Generator) -> None:
    X = rng.exponential(size=(300, 9)) - 1
    third = np.einsum("ni,nj,nk->ijk", X, X, X) / len(X)
    gap = smoothed_gap(third, smoothing(9, 1.0), invariant_part(LagClasses(Grid((9,)))))
    W, step = rng.normal(size=(2, 9, 9))
    value, gradient = gap(W)
    assert 0 < value < 1
    e = 1e-5
    slope = (gap(W + e * step)[0] - gap(W - e * step)[0]) / (2 * e)
    assert slope == pytest.approx(float(np.vdot(gradient, step)), rel=1e-5)


def test_overlaps_give_the_whitened_field_its_covariance_back(rng: np.random.Generator) -> None:
    data = gsn(4_000, 40, basis="legendre", noise=0.0, random_state=1)
    f = data.latent - data.latent.mean(axis=0)
    values, vectors = np.linalg.eigh(f.T @ f / len(f))
    root = (vectors / np.sqrt(np.maximum(values, 1e-6 * values[-1]))) @ vectors.T
    A = random_linear(40, 0.5, 2.0, rng)
    V = root @ np.linalg.inv(A.T)
    x = f @ A

    def r(W: np.ndarray) -> float:
        return float(signal_recovery(f, x @ W.T, data.grid).r)

    assert r(V) < 0.8
    assert r(recoloured(V, LagClasses(data.grid))) > max(r(V) + 0.1, 0.9)


def test_wavelets_behind_a_map_of_condition_ten_are_recovered_from_whitened_rows() -> None:
    data = gsn(20_000, 31, basis="legendre", noise=0.0, random_state=3)
    rng = np.random.default_rng(3)
    X = data.latent @ random_linear(31, 10**-0.5, 10**0.5, rng)
    X = X - X.mean(axis=0)
    X = X / X.std() + 0.02 * rng.normal(size=X.shape)
    U, _ = independent_components(X[:10_000], rng)
    lags = LagClasses(data.grid)
    maps = [
        resolve(W, X[:8_000].astype(np.float32), lags)
        for W in whitened_frames(X, U, data.grid).values()
    ]
    best = min(maps, key=lambda W: held_out(W, X[8_000:], lags).value())
    assert signal_recovery(data.latent, X @ best.T, data.grid).r > 0.95


def test_rows_without_a_third_moment_have_no_such_frame(rng: np.random.Generator) -> None:
    X = rng.normal(size=(2_000, 12))
    assert whitened_frames(X, np.eye(12), Grid((12,))) == {}
