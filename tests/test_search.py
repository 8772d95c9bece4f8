"""The parts of the search: segments of a chain, the judge, the parts of the rows, and what users
get from them.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symlift import LatentDomain
from symlift.core.grid import Grid
from symlift.errors import FitWarning, InputError
from symlift.search.criterion import make_slots
from symlift.search.moves.segments import chain_length, displacement, improve_chain, reversals
from symlift.search.rows import split_rows
from symlift.search.score import ahead, held_out_score
from symlift.solvers.starts.chain import chain_orders
from symlift.statistics.correlations import fisher


def links(d: int, seed: int) -> np.ndarray:
    drawn = np.random.default_rng(seed).normal(size=(d, d))
    return drawn + drawn.T - 2 * np.diag(np.diag(drawn))


def walk(n: int, d: int, seed: int, closed: bool = False) -> np.ndarray:
    """A field of correlation length 3 on a line or ring of d points."""
    at = np.arange(d)
    apart = np.abs(at[:, None] - at[None])
    apart = np.minimum(apart, d - apart) if closed else apart
    root = np.linalg.cholesky(np.exp(-apart / 3) + 1e-9 * np.eye(d))
    return np.random.default_rng(seed).normal(size=(n, d)) @ root.T


# -- segments --------------------------------------------------------------------------------------


@given(d=st.integers(4, 12), seed=st.integers(0, 10_000), closed=st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_segment_that_moves_adds_what_the_gain_says(d: int, seed: int, closed: bool) -> None:
    v, order = links(d, seed), np.arange(d)
    before = chain_length(v, order, closed)
    moved = displacement(v, closed)
    if moved is not None:
        assert sorted(moved) == list(range(d))
        assert chain_length(v, moved, closed) > before
    turned = order.copy()
    for first, last in reversals(v, closed):
        turned[first : last + 1] = turned[first : last + 1][::-1].copy()
        after = chain_length(v, turned, closed)
        assert after > before
        before = after


@given(d=st.integers(4, 9), seed=st.integers(0, 10_000), closed=st.booleans())
@settings(max_examples=40, deadline=None)
def test_no_single_reversal_improves_the_end(d: int, seed: int, closed: bool) -> None:
    v = links(d, seed)
    end = improve_chain(v, np.random.default_rng(seed).permutation(d), closed)
    best = chain_length(v, end, closed)
    for first in range(d):
        for last in range(first + 1, d):
            other = end.copy()
            other[first : last + 1] = other[first : last + 1][::-1].copy()
            assert chain_length(v, other, closed) <= best + 1e-9


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("d", [9, 40, 120])
def test_chains_find_the_order_of_a_line_and_of_a_ring(d: int, closed: bool) -> None:
    shuffle = np.random.default_rng(d).permutation(d)
    c = np.corrcoef(walk(4_000, d, 1, closed)[:, shuffle], rowvar=False)
    order = shuffle[next(iter(chain_orders(c, closed)))]
    step = np.abs(np.diff(np.r_[order, order[0]] if closed else order))
    assert (np.minimum(step, d - step) if closed else step).max() == 1


# -- the judge -------------------------------------------------------------------------------------


def test_the_truth_is_ahead_of_a_part_turned_round_and_a_ring_earns_its_link() -> None:
    d = 30
    halves = [fisher(np.corrcoef(walk(3_000, d, seed), rowvar=False))[None] for seed in (1, 2)]
    true, turned = np.arange(d), np.r_[np.arange(20), np.arange(29, 19, -1)]
    line, ring = make_slots(Grid((d,))), make_slots(Grid((d,), True))
    best = held_out_score(*halves, true, line)
    assert 0.9 < best.share < 1.05
    assert ahead(best, held_out_score(*halves, turned, line)) > 5
    assert ahead(best, held_out_score(*halves, true, ring)) > 5
    assert ahead(best, best) == 0
    closed = [
        fisher(np.corrcoef(walk(3_000, d, seed, closed=True), rowvar=False))[None]
        for seed in (1, 2)
    ]
    assert ahead(held_out_score(*closed, true, ring), held_out_score(*closed, true, line)) > 2


def test_classes_that_hold_one_pair_each_are_not_believed_for_being_many() -> None:
    """Noise has nothing to explain, however many means are fitted to it."""
    rng = np.random.default_rng(0)
    halves = [fisher(np.corrcoef(rng.normal(size=(500, 24)), rowvar=False))[None] for _ in "ab"]
    for grid in (Grid((24,)), Grid((4, 6))):
        assert held_out_score(*halves, np.arange(24), make_slots(grid), 0.0).explained < 0.05


@given(n=st.integers(2, 500))
def test_every_row_is_fitted_or_held_out_and_both_parts_have_rows(n: int) -> None:
    fit, held = split_rows(n, 0.2)
    assert sorted(np.r_[fit, held]) == list(range(n))
    assert len(fit)
    assert len(held)


# -- what users get --------------------------------------------------------------------------------


def test_an_order_comes_back_although_no_unmixing_was_found() -> None:
    """Eight maturities move together: too few columns to be sure, but their order is there."""
    rng = np.random.default_rng(3)
    level, slope = (np.cumsum(rng.normal(size=400)) for _ in "ab")
    maturity = np.array([0.25, 0.5, 1, 2, 3, 5, 7, 10])
    X = level[:, None] + slope[:, None] * np.exp(-maturity / 2) + 0.05 * rng.normal(size=(400, 8))
    shuffle = rng.permutation(8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        est = LatentDomain(grid=8, random_state=0).fit(X[:, shuffle])
    assert est.placement_ is not None
    order = shuffle[np.argsort(est.placement_.coordinates[:, 0])]
    assert abs(np.corrcoef(order, np.arange(8))[0, 1]) > 0.9


def test_columns_that_cannot_be_points_are_refused_or_fitted_but_never_a_raw_error() -> None:
    rng = np.random.default_rng(0)
    share = np.array([0.3, 0.2, 0.15, 0.1, 0.08, 0.07, 0.05, 0.05])
    one_hot = np.eye(8)[rng.choice(8, size=500, p=share)]
    line = rng.normal(size=(400, 11)).cumsum(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        for X in (one_hot, np.c_[line, line.sum(axis=1)]):
            for grid in ("auto", X.shape[1], (2, X.shape[1] // 2)):
                assert LatentDomain(grid=grid, random_state=0).fit(X).grid_.size >= X.shape[1]


def test_noise_on_many_columns_is_fitted_within_memory() -> None:
    X = np.random.default_rng(0).normal(size=(300, 1_260)).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        est = LatentDomain(grid=(35, 36), mixing="shuffled", random_state=0).fit(X)
    assert not est.evidence_.found


def test_channels_of_very_many_columns_are_refused_in_one_line() -> None:
    X = np.random.default_rng(0).normal(size=(50, 1_203)).astype(np.float32)
    with pytest.raises(InputError, match=r"channels=7 .* 1,203 columns"):
        LatentDomain(grid=(13, 13), channels=7, random_state=0).fit(X)


@pytest.mark.parametrize("setting", [{"mixing": "shuffled"}, {"channels": 2}])
def test_other_solvers_name_the_settings_that_they_ignore(setting: dict[str, object]) -> None:
    X = np.random.default_rng(0).normal(size=(200, 12))
    with pytest.warns(FitWarning, match=f"{next(iter(setting))}=.* has no effect"):
        LatentDomain(grid=12, solver="random", **setting).fit(X)
