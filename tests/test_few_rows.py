"""Dense mixings from few rows: third moments are mostly noise, the shared marginal is not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

from symlift import LatentDomain
from symlift.core.lags import LagClasses
from symlift.datasets import Observations, gsn
from symlift.metrics import signal_recovery
from symlift.solvers.fast.sharpen import pooled_entropy, sharpest_start
from symlift.solvers.fast.stationary import invariance_gap, minimise_over_rotations, moments

pytestmark = pytest.mark.portable


def few(n: int, seed: int) -> Observations:
    return gsn(n, 31, transform="orthogonal", noise=0.02, random_state=seed)


def test_sharpening_a_frame_as_it_is_beats_the_minimum_of_a_noisy_gap(
    rng: np.random.Generator,
) -> None:
    data = few(600, 4)
    X = (data.X - data.X.mean(axis=0)) / data.X.std()
    m = moments(X)
    gap = invariance_gap(m, LagClasses(data.grid))
    A = rng.normal(size=(31, 31))
    near = expm(0.03 * (A - A.T)) @ data.transform

    def r(W: np.ndarray) -> float:
        return float(signal_recovery(data.latent, X @ W.T, data.grid).r)

    assert 0.7 < r(near) < 0.98
    stationary = minimise_over_rotations(gap, near, 300)[0]
    assert gap(stationary)[0] < gap(data.transform)[0]  # less than the truth leaves: noise
    far = np.linalg.qr(rng.normal(size=(31, 31)))[0]
    name, W = sharpest_start({"far": far, "near": near}, X, gap, 20 * m.noise)
    assert name == "near"
    assert r(W) > r(stationary) + 0.01
    assert pooled_entropy(X @ W.T)[0] < pooled_entropy(X @ near.T)[0]


def test_a_dense_mixing_is_undone_from_seven_hundred_rows() -> None:
    data = few(700, 0)
    est = LatentDomain(grid=31, random_state=0).fit(data.X)
    assert signal_recovery(data.latent, est.transform(data.X), data.grid).r > 0.9
    attempts = [stage for stage in est.trace_.stages if stage.name == "localise"]
    assert len(attempts) >= 2  # one attempt cannot confirm itself
