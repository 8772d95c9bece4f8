"""Growing an arrangement again from a part of it, and turning segments of a line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from symlift import LatentDomain
from symlift.core.grid import Grid
from symlift.diagnosis.contract import Verdict
from symlift.metrics.placement import placement_agreement, shifted_alike
from symlift.search.criterion import make_slots, misfit
from symlift.search.moves.regrow import crossed, grown, near_fit, partners, regrown
from symlift.search.moves.segments import chain_length, likely_reversals
from symlift.search.schedule import search, turned_segments
from symlift.search.settings import PlaceSettings
from symlift.solvers.fast.place.engine import place_columns
from symlift.statistics.correlations import correlations, partial_statistics


def smooth(grid: Grid, steps: tuple[float, ...], rows: int, seed: int) -> NDArray[np.float64]:
    """Rows of a Gaussian field whose steps differ in length from axis to axis, (rows, points)."""
    at = grid.indices() * np.array(steps)
    apart = np.sqrt(np.sum((at[:, None] - at[None]) ** 2, axis=-1))
    root = np.linalg.cholesky(np.exp(-apart) + 1e-6 * np.eye(grid.size))
    return np.asarray(np.random.default_rng(seed).normal(size=(rows, grid.size)) @ root.T)


def by_displacement(grid: Grid, noise: float, seed: int) -> NDArray[np.float64]:
    """A statistic (1, d, d) that falls with displacement, unequally along the axes, and noise."""
    index, shape = grid.indices(), np.array(grid.shape)
    apart = np.abs(index[:, None] - index[None])
    apart = np.where(grid.periodic, np.minimum(apart, shape - apart), apart)
    length = apart @ np.linspace(1.0, 1.6, grid.ndim)
    error = np.random.default_rng(seed).normal(size=length.shape) * noise
    s = np.exp(-length) + (error + error.T) / 2
    np.fill_diagonal(s, 0.0)
    return np.asarray(s[None])


@pytest.mark.parametrize(
    "grid",
    [Grid((9, 7)), Grid((9, 7), (True, False)), Grid((8, 8), True), Grid((5, 4, 4)), Grid((20,))],
    ids=str,
)
def test_growth_from_a_right_part_gives_the_whole(grid: Grid) -> None:
    S, at = by_displacement(grid, 0.01, 0), grid.indices()
    seed = np.flatnonzero((np.abs(at - at[grid.size // 2]) <= 1).all(axis=1))
    found = grown(S, at, seed, grid, near_fit(S, at, grid).lags)
    assert placement_agreement(np.arange(grid.size), found, grid, shift_open=True) == 1


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 7), st.integers(3, 7), st.integers(0, 4), st.integers(0, 10**6))
def test_growth_stays_in_the_box_and_uses_no_place_twice(
    a: int, b: int, missing: int, draw: int
) -> None:
    rng, grid = np.random.default_rng(draw), Grid((a, b))
    d = grid.size - missing
    S = rng.normal(size=(2, d, d))
    S = S + S.swapaxes(1, 2)
    slot = rng.permutation(grid.size)[:d]
    for new in regrown(S, slot, grid, rng):
        assert new.shape == (d,)
        assert len(np.unique(new)) == d
        assert (new >= 0).all()
        assert (new < grid.size).all()


@given(st.integers(3, 6), st.integers(3, 6), st.booleans(), st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_partners_are_the_columns_at_a_displacement(a: int, b: int, wraps: bool, draw: int) -> None:
    grid, rng = Grid((a, b), (wraps, False)), np.random.default_rng(draw)
    at = grid.indices()[rng.permutation(grid.size)[: grid.size - 2]]
    offsets = np.array([(0, 1), (1, 0), (-1, 1)])
    found = partners(at, grid, offsets)
    for i, k in np.ndindex(found.shape):
        apart = at[i] - at - offsets[k]
        apart[:, 0] = apart[:, 0] % a if wraps else apart[:, 0]
        there = np.flatnonzero((apart == 0).all(axis=1))
        assert found[i, k] == (there[0] if len(there) else -1)


def test_near_lags_are_means_of_pairs_at_one_displacement() -> None:
    grid = Grid((4, 5))
    S, at = by_displacement(grid, 0.1, 1), grid.indices()
    near = near_fit(S, at, grid)
    for k, offset in enumerate(near.lags.offsets):
        here = (at[:, None] - at[None] == offset).all(axis=-1)
        assert near.lags.K[0, k] == pytest.approx(S[0][here].sum() / (here.sum() + 2.0))
    assert near.fit.shape == (20,)
    # a column and its neighbours exchanged fit worse
    worse = at.copy()
    worse[[7, 18]] = worse[[18, 7]]
    assert near_fit(S, worse, grid).fit[[7, 18]].max() < near.fit[[7, 18]].min()


def test_a_slipped_row_comes_back() -> None:
    grid = Grid((8, 10))
    S, at = by_displacement(grid, 0.02, 2), grid.indices()
    at[at[:, 0] >= 5, 1] = (at[at[:, 0] >= 5, 1] + 1) % 10
    slot, rng = grid.flat(at), np.random.default_rng(0)
    slots = make_slots(grid)
    ends = [new for _ in range(8) for new in regrown(S, slot, grid, rng)]
    best = min(ends, key=lambda new: misfit(S, new, slots))
    assert placement_agreement(np.arange(grid.size), best, grid) == 1


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_grid_of_unequal_steps_is_found(seed: int) -> None:
    grid = Grid((9, 12))
    X = smooth(grid, (0.5, 0.3), 2_000, seed)
    order = np.random.default_rng(seed + 100).permutation(grid.size)
    found = place_columns(X[:, order], grid, np.random.default_rng(seed))
    assert placement_agreement(order, found.placement.point, grid) >= 0.98


def test_a_stretch_that_runs_backwards_is_turned() -> None:
    grid = Grid((40,))
    X = smooth(grid, (0.5,), 1_000, 3)
    S = partial_statistics(correlations(X, None), PlaceSettings().ridges)
    slot = np.arange(40)
    slot[8:31] = slot[8:31][::-1]
    value, mended = turned_segments(S, slot, make_slots(grid), PlaceSettings())
    assert value < misfit(S, slot, make_slots(grid))
    assert np.array_equal(mended, np.arange(40)) or np.array_equal(mended, np.arange(40)[::-1])


@given(st.integers(4, 9), st.booleans(), st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_likely_reversals_are_those_of_the_longest_chains(d: int, closed: bool, draw: int) -> None:
    v = np.random.default_rng(draw).normal(size=(d, d))
    v = v + v.T
    np.fill_diagonal(v, 0.0)
    order = np.arange(d)

    def length(first: int, last: int) -> float:
        new = order.copy()
        new[first : last + 1] = new[first : last + 1][::-1]
        return chain_length(v, new, closed)

    every = sorted(
        (length(i, j) for i in range(d) for j in range(i + 1, d) if (i, j) != (0, d - 1)),
        reverse=True,
    )
    chosen = likely_reversals(v, closed, 3)
    np.testing.assert_allclose([length(i, j) for i, j in chosen], every[: len(chosen)], atol=1e-9)


def test_an_order_that_parts_of_the_rows_do_not_share_is_not_believed() -> None:
    rng = np.random.default_rng(0)
    X = smooth(Grid((30,)), (0.4,), 1_500, 5)[:, rng.permutation(30)]
    est = LatentDomain(grid=(30,), random_state=0).fit(X)
    assert est.evidence_.replicated == pytest.approx(1.0)
    right = est.diagnose(X)
    est.solution_ = replace(est.solution_, evidence=replace(est.evidence_, replicated=0.2))
    est.diagnosis_ = None  # the one that the fit has kept
    doubtful = est.diagnose(X)
    assert right.verdict in (Verdict.PRESENT, Verdict.ORDERED)
    assert doubtful.verdict not in (Verdict.PRESENT, Verdict.ORDERED)
    assert doubtful.confidence < 0.01 < right.confidence


def test_what_does_not_come_back_from_a_part_is_known() -> None:
    """Columns that no grid explains: no two attempts agree, and growth mostly ends elsewhere."""
    returned = []
    for seed in range(5):
        rng, d = np.random.default_rng(seed), 36
        S = rng.normal(size=(2, d, d))
        S = S + S.swapaxes(1, 2)
        S[:, np.arange(d), np.arange(d)] = 0
        starts = iter([rng.uniform(0, 5, size=(d, 2)) for _ in range(3)])
        quick = replace(PlaceSettings(), restart_slots=10)
        end = search(S, make_slots(Grid((6, 6))), starts, rng, quick, partial=lambda S=S: S)
        assert end.agreeing == 1
        returned.append(end.returned)
    assert np.median(returned) < 0.9


@pytest.mark.parametrize("grid", [Grid((9, 7)), Grid((8, 8), True), Grid((5, 4, 4))], ids=str)
def test_what_two_arrangements_share_grows_to_the_whole(grid: Grid) -> None:
    """One is wrong at one end, the other, which is mirrored, at the other end."""
    S, at, rng = by_displacement(grid, 0.01, 0), grid.indices(), np.random.default_rng(0)
    quarter = grid.shape[0] // 4
    first, second = np.arange(grid.size), np.arange(grid.size)
    low, high = np.flatnonzero(at[:, 0] < quarter), np.flatnonzero(at[:, 0] >= 3 * quarter)
    first[low], second[high] = rng.permutation(low), rng.permutation(high)
    mirrored = at[second].copy()
    mirrored[:, 1] = grid.shape[1] - 1 - mirrored[:, 1]
    second = grid.flat(mirrored)
    largest = shifted_alike(first, second, grid)[0]
    right = np.flatnonzero((first == np.arange(grid.size)) & ~np.isin(np.arange(grid.size), high))
    assert len(np.setdiff1d(right, largest)) == 0
    ends = [crossed(S, first, second, grid, rng) for _ in range(4)]
    assert max(placement_agreement(np.arange(grid.size), end, grid) for end in ends) == 1
