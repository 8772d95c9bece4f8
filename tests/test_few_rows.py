"""Dense mixings from few rows: third moments are mostly noise, the shared marginal is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

from symlift import LatentDomain
from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.datasets import Observations, gsn
from symlift.metrics import signal_recovery
from symlift.solvers.fast.descend import Criterion
from symlift.solvers.fast.frames import point_signs
from symlift.solvers.fast.pipeline import solve
from symlift.solvers.fast.polish import sharpest
from symlift.solvers.fast.settings import DEFAULT
from symlift.solvers.fast.sharpen import pooled_entropy
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
    best = sharpest({"far": far, "near": near}, X, Criterion(gap, m.noise), 20)
    assert best.name == "near"
    assert r(best.W) > r(stationary) + 0.01
    assert pooled_entropy(X @ best.W.T)[0] < pooled_entropy(X @ near.T)[0]
    assert best.gap == pytest.approx(gap(best.W)[0])


def test_a_dense_mixing_is_undone_from_seven_hundred_rows() -> None:
    data = few(700, 0)
    est = LatentDomain(grid=31, random_state=0).fit(data.X)
    assert signal_recovery(data.latent, est.transform(data.X), data.grid).r > 0.9
    attempts = [stage for stage in est.trace_.stages if stage.name == "localise"]
    assert len(attempts) >= 2  # one attempt cannot confirm itself
    agreements = [s.values["agreement"] for s in est.trace_.stages if s.name == "agree"]
    assert max(agreements) > DEFAULT.same_signals


def test_one_wrong_overlap_does_not_turn_half_of_a_line_round(rng: np.random.Generator) -> None:
    n, points, broken = 400, 24, 11
    S = rng.exponential(size=(n, points)) - 1
    S += 0.5 * rng.normal(size=S.shape)  # skewnesses of some three deviations each
    # mixing columns of neighbours overlap by one half, and once with the wrong sign
    chain = np.eye(points) + np.diag(np.full(points - 1, 0.5), 1)
    chain[broken, broken + 1] = -0.1
    overlaps_of_columns = chain + chain.T - np.eye(points)
    U = np.linalg.inv(np.linalg.cholesky(overlaps_of_columns + 0.1 * np.eye(points)).T)
    assert (point_signs(S, U, Grid((points,))) == 1).all()


def test_a_fit_that_no_second_attempt_confirms_warns() -> None:
    data = few(700, 0)
    settings = replace(DEFAULT, same_signals=1.1)
    sure, unsure = (
        solve(data.X, data.grid, np.random.default_rng(0), settings=s) for s in (DEFAULT, settings)
    )
    assert sure.evidence.found
    assert not unsure.evidence.found
