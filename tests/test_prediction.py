"""Gaps are filled by the best linear prediction from the columns that are there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symlift.datasets import gsn
from symlift.statistics.prediction import GapFiller, pairwise_covariance


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_without_gaps_it_is_the_covariance(rng, dtype):
    X = rng.normal(size=(200, 5)).astype(dtype)
    mean, C = pairwise_covariance(X)
    assert np.allclose(mean, X.mean(axis=0), atol=1e-6)
    assert np.allclose(C, np.cov(X.T, bias=True), atol=1e-6)


def test_with_gaps_each_pair_has_its_own_rows(rng):
    X = rng.normal(size=(4_000, 3)) @ rng.normal(size=(3, 6))
    _, C = pairwise_covariance(np.where(rng.random(X.shape) < 0.2, np.nan, X))
    assert np.allclose(C, np.cov(X.T), atol=0.15 * np.abs(C).max())


def test_a_prediction_is_that_of_the_regression(rng):
    """With all other columns as neighbours, a single gap gets the regression on them, but for the
    small ridge.
    """
    X = rng.normal(size=(500, 4)) @ rng.normal(size=(4, 4)) + rng.normal(size=(500, 4))
    filler, row = GapFiller.of(X), X[:1].copy()
    mean, C = pairwise_covariance(X)
    others = [0, 1, 3]
    expected = mean[2] + C[2, others] @ np.linalg.solve(
        C[np.ix_(others, others)], row[0, others] - mean[others]
    )
    row[0, 2] = np.nan
    assert filler.fill(row)[0, 2] == pytest.approx(expected, abs=0.05 * X.std())


def test_fields_are_filled_in_well(rng):
    X = gsn(3_000, (8, 8), random_state=1).X
    gap = rng.random((500, 64)) < 0.05
    filled = GapFiller.of(X[:2_500]).fill(np.where(gap, np.nan, X[2_500:]))
    assert np.array_equal(filled[~gap], X[2_500:][~gap])
    assert np.corrcoef(filled[gap], X[2_500:][gap])[0, 1] > 0.85


@given(st.integers(1, 6), st.integers(2, 5), st.floats(0, 1), st.integers(0, 1000))
def test_whatever_is_missing_the_result_is_finite(n, d, share, seed):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, d)) < share, np.nan, rng.normal(size=(n, d)))
    filled = GapFiller.of(X).fill(X)
    assert filled.shape == X.shape
    assert np.isfinite(filled).all()
