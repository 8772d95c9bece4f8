"""Rows that keep coming: exact moments, a sample, forgetting, and columns that exchange places."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter

from symlift import LatentDomain
from symlift.errors import FitWarning, InputError
from symlift.metrics.placement import placement_agreement
from symlift.statistics import stream as module
from symlift.statistics.stream import RunningMoments, Stream

SIDE = 8


def rows(n: int, seed: int = 0) -> np.ndarray:
    """A smooth field on a square with ends."""
    rng = np.random.default_rng(seed)
    smooth = gaussian_filter(rng.normal(size=(n, SIDE + 8, SIDE + 8)), (0, 1.2, 1.2))
    field = smooth[:, 4:-4, 4:-4].reshape(n, -1)
    return field / field.std() + 0.05 * rng.normal(size=(n, SIDE * SIDE))


def followed(
    X: np.ndarray, batch: int, half_life: float | None = None
) -> tuple[Stream, list[module.ColumnExchange]]:
    stream, rng = Stream.of(X.shape[1]), np.random.default_rng(0)
    noticed = [
        stream.add(X[start : start + batch], rng, half_life) for start in range(0, len(X), batch)
    ]
    return stream, [one for one in noticed if one is not None]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1_000), st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_moments_are_those_of_all_rows(seed, sizes):
    X = np.random.default_rng(seed).normal(size=(sum(sizes), 3)) * [1, 10, 1e3] + [1e4, 0, -5]
    moments = RunningMoments.none(3)
    for part in np.split(X, np.cumsum(sizes)[:-1]):
        moments.add(part)
    assert np.allclose(moments.mean, X.mean(axis=0), rtol=1e-9)
    assert np.allclose(moments.covariance, np.cov(X.T, bias=True), rtol=1e-6, atol=1e-6)
    assert moments.weight == len(X)


def test_forgotten_rows_lose_half_of_their_weight_in_a_half_life():
    X = np.r_[np.zeros((100, 2)), np.ones((100, 2))]
    stream, _ = followed(X, batch=100, half_life=100)
    assert stream.moments.weight == pytest.approx(150)
    assert stream.moments.mean == pytest.approx([2 / 3, 2 / 3])


def test_the_sample_is_of_all_rows_alike_and_of_the_last_ones_if_others_are_forgotten(monkeypatch):
    monkeypatch.setattr(module, "_SAMPLED", 200 * 2)
    X = np.repeat(np.arange(4_000.0)[:, None], 2, axis=1)
    stream, _ = followed(X, batch=90)
    assert stream.sample.shape == (200, 2)
    assert abs(stream.sample.mean() - 2_000) < 4 * 4_000 / np.sqrt(12 * 200)
    recent, _ = followed(X, batch=90, half_life=25)
    assert (recent.sample[:, 0] == np.arange(3_900, 4_000)).all()


@pytest.mark.parametrize("distance", ["apart", "adjacent"])
def test_an_exchange_is_noticed_at_once_and_nothing_else_is(distance):
    X = rows(3_000, seed=1)
    one, other = (9, 50) if distance == "apart" else (27, 28)
    assert followed(X, batch=50)[1] == []
    X[1_500:, [one, other]] = X[1_500:, [other, one]]
    stream, noticed = followed(X, batch=50)
    assert [(e.batch, e.first_row, e.columns, e.places) for e in noticed] == [
        (31, 1_500, (one, other), (other, one))
    ]
    # rows before and after agree again
    expected = np.corrcoef(rows(3_000, seed=1).T)
    assert np.abs(stream.moments.correlations - expected).max() < 1e-6
    assert stream.in_columns(np.arange(64))[one] == other


def test_louder_rows_and_other_gains_are_no_exchange():
    X = rows(3_000, seed=2)
    X[1_500:] *= 3.0
    X[2_000:, 5] *= 0.1
    X[2_000:, 6] += 40.0
    assert followed(X, batch=50)[1] == []


def test_three_columns_in_a_circle_are_noticed():
    X = rows(3_000, seed=3)
    X[2_000:, [3, 30, 60]] = X[2_000:, [30, 60, 3]]
    _, noticed = followed(X, batch=100)
    assert [(e.batch, dict(zip(e.columns, e.places, strict=True))) for e in noticed] == [
        (21, {3: 30, 30: 60, 60: 3})
    ]


def test_partial_fit_finds_what_fit_finds_and_follows_columns():
    order = np.random.default_rng(4).permutation(SIDE * SIDE)
    X = rows(2_400, seed=4)[:, order]
    X[1_600:, [2, 40]] = X[1_600:, [40, 2]]
    est = LatentDomain((SIDE, SIDE), mixing="shuffled", random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FitWarning)
        for part in np.split(X, 24):
            est.partial_fit(part)
            assert est.transform(part).shape == (100, SIDE * SIDE)
    said = [str(w.message) for w in caught if "exchanged" in str(w.message)]
    assert len(said) == 1
    assert "column 3 and column 41" in said[0]
    assert "row 1,601" in said[0]
    truth = order.copy()
    truth[[2, 40]] = order[[40, 2]]
    assert placement_agreement(est.placement_.point, truth, est.grid_) == 1.0
    whole = LatentDomain((SIDE, SIDE), mixing="shuffled", random_state=0).fit(X[:1_600])
    assert placement_agreement(whole.placement_.point, order, whole.grid_) == 1.0
    # the map goes with the places
    truth_at = est.placement_.point
    lifted = est.transform(X[-1:] * 0 + est.mean_)
    assert np.allclose(lifted, 0, atol=1e-6)
    one_hot = est.mean_[None] + np.eye(SIDE * SIDE)[2]
    assert int(np.abs(est.transform(one_hot)[0]).argmax()) == truth_at[2]
    assert est.stream_.rows == 2_400


def test_partial_fit_goes_on_from_a_fit_and_a_fit_begins_anew():
    X = rows(1_400, seed=5)
    est = LatentDomain((SIDE, SIDE), mixing="shuffled", random_state=0).fit(X[:600])
    before = est.placement_.point.copy()
    X[1_000:, [2, 40]] = X[1_000:, [40, 2]]
    for part in np.split(X[600:1_000], 8):
        est.partial_fit(part)
    assert np.array_equal(est.placement_.point, before)  # fewer rows than the fit had
    with pytest.warns(FitWarning, match="column 3 and column 41"):
        est.partial_fit(X[1_000:1_050])
    assert list(est.placement_.point[[2, 40]]) == list(before[[40, 2]])
    assert not hasattr(est.fit(X[:600]), "stream_")


def test_what_partial_fit_cannot_do_is_refused_in_one_line():
    est = LatentDomain((SIDE, SIDE), random_state=0)
    X = rows(50)
    with pytest.raises(InputError, match="half_life is 0"):
        est.partial_fit(X, half_life=0)
    X[3, 4] = np.nan
    with pytest.raises(InputError, match="row 4, column 5"):
        est.partial_fit(X)
    with pytest.raises(InputError, match="at most: use fit"):
        Stream.of(5_000)
    few = LatentDomain(SIDE * SIDE, mixing="linear", random_state=0).partial_fit(rows(50))
    assert not hasattr(few, "model_")
