"""Very many columns: statistics of near pairs only, and the placement that follows from them."""

from __future__ import annotations

import time
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter

from symlift import LatentDomain, load
from symlift.core.grid import Grid
from symlift.errors import FitWarning, InputError
from symlift.metrics.placement import placement_agreement
from symlift.search.settings import PlaceSettings
from symlift.search.wide_rows import score_columns
from symlift.solvers.fast.place.engine import place_columns
from symlift.solvers.placement import Placement
from symlift.solvers.starts import graph, long_chain
from symlift.statistics import neighbours
from symlift.statistics.correlations import correlations, partial_correlations
from symlift.statistics.neighbours import (
    NearPairs,
    local_correlations,
    local_partial,
    nearby_columns,
)

SIDE = 36


def field(n: int, shape: tuple[int, ...], seed: int = 0, width: float = 1.5) -> np.ndarray:
    """Smooth noise with ends, (n, points)."""
    rng = np.random.default_rng(seed)
    larger = rng.normal(size=(n, *(side + 8 for side in shape)))
    smooth = gaussian_filter(larger, (0, *(width for _ in shape)))
    inside = smooth[(slice(None), *(slice(4, -4) for _ in shape))]
    rows = inside.reshape(n, -1) / inside.std()
    return (rows + 0.05 * rng.normal(size=rows.shape)).astype(np.float32)


def unit(rows: np.ndarray) -> np.ndarray:
    z = (rows - rows.mean(axis=0)).T
    return np.ascontiguousarray(z / np.linalg.norm(z, axis=1)[:, None], dtype=np.float32)


@pytest.fixture(scope="module")
def shuffled() -> tuple[np.ndarray, np.ndarray]:
    rows = field(400, (SIDE, SIDE))
    order = np.random.default_rng(1).permutation(SIDE * SIDE)
    return rows[:, order], order


# -- statistics ------------------------------------------------------------------------------------


def test_landmarks_find_the_columns_that_all_products_find(shuffled, monkeypatch):
    z = unit(shuffled[0])
    c = z @ z.T
    np.fill_diagonal(c, -2)
    best = np.argsort(-c, axis=1)[:, :12]
    monkeypatch.setattr(neighbours, "_CELL", 300)  # fewer than columns, so that landmarks are used
    near, value = nearby_columns(z, 12, np.random.default_rng(0))
    recall = np.mean([len(np.intersect1d(a, b)) for a, b in zip(near, best, strict=True)]) / 12
    assert recall > 0.99
    assert np.allclose(value, np.take_along_axis(c, near.astype(np.int64), axis=1), atol=1e-5)
    assert (np.diff(value, axis=1) <= 0).all()


def test_a_signal_that_all_columns_share_does_not_bring_all_pairs_back(monkeypatch):
    rng = np.random.default_rng(0)
    z = unit(rng.normal(size=(60, 1)) + 0.1 * rng.normal(size=(60, 900)))
    sizes = []
    monkeypatch.setattr(neighbours, "_CELL", 128)
    merge = neighbours._merge

    def counted(near, value, members, new, c):
        sizes.append(len(members))
        merge(near, value, members, new, c)

    monkeypatch.setattr(neighbours, "_merge", counted)
    nearby_columns(z, 8, rng)
    assert max(sizes) <= 128


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1_000), st.integers(2, 6), st.sampled_from([0.01, 0.1, 0.5]))
def test_local_partial_correlations_are_those_of_the_neighbourhood(seed, k, ridge):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(50, 12)) @ rng.normal(size=(12, 12))
    z = unit(rows)
    near = np.stack([rng.permutation(np.delete(np.arange(12), i))[:k] for i in range(12)])
    near[3, -1] = -1
    p = local_partial(z, np.arange(12), near, (ridge,))[0]
    c = correlations(z.T, None)
    for i, others in enumerate(near):
        ids = np.r_[i, others[others >= 0]]
        whole = partial_correlations(c[np.ix_(ids, ids)], ridge)
        assert np.allclose(p[i, others >= 0], whole[0, 1:], atol=1e-3)
    assert p[3, -1] == 0


def test_local_correlations_have_their_own_scale_in_each_part_of_the_rows():
    z = unit(np.random.default_rng(0).normal(size=(40, 5)))
    group = np.array([[0, 1, 2], [3, -1, 4]])
    ((_, (first, second)),) = local_correlations([z[:, :30], z[:, 30:]], group)
    assert np.allclose(np.diagonal(first, axis1=1, axis2=2), 1, atol=1e-5)
    a, b = z[3, 30:], z[4, 30:]
    assert second[1, 0, 2] == pytest.approx(a @ b / np.sqrt(a @ a * (b @ b)), abs=1e-5)
    assert second[1, 0, 1] == 0


def test_near_pairs_are_read_like_a_matrix():
    rng = np.random.default_rng(0)
    near = np.array([[1, 2], [2, 0], [3, 1], [-1, 2]], dtype=np.int32)
    value = rng.normal(size=near.shape)
    pairs = NearPairs(near, value)
    dense = pairs[np.arange(4)[:, None], np.arange(4)[None]]
    assert np.allclose(dense, dense.T)
    assert dense[0, 3] == 0
    assert dense[0, 1] == pytest.approx((value[0, 0] + value[1, 1]) / 2)
    assert dense[0, 2] == pytest.approx(value[0, 1])  # only one has the other among its nearest


def test_rows_are_scored_without_a_copy_of_the_data(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 40)).astype(np.float16)
    X[7] *= 300  # one wild row
    X[3, 5] = np.nan
    np.save(tmp_path / "x.npy", X)
    alive = np.ones(40, dtype=bool)
    alive[9] = False
    rows = score_columns(
        np.load(tmp_path / "x.npy", mmap_mode="r"), alive, rng, PlaceSettings(rows=1_000)
    )
    assert rows.z.shape == (39, 119)
    assert rows.z.dtype == np.float32
    assert np.allclose(rows.z.sum(axis=1), 0, atol=1e-4)
    assert np.allclose(np.linalg.norm(rows.fit, axis=1), 1, atol=1e-5)
    expected = np.delete(X.astype(float), 7, axis=0)[:, rows.columns]
    scored = rows.in_order(np.arange(39))
    assert np.corrcoef(scored[:, 2], expected[:, 2])[0, 1] > 0.99  # the order of the data
    assert np.isclose(scored[3, 5], 0, atol=1e-6)  # a gap
    X[0, 0] = np.inf
    with pytest.raises(InputError, match="row 1, column 1"):
        score_columns(X, alive, rng, PlaceSettings())


# -- placement -------------------------------------------------------------------------------------


def test_shuffled_columns_above_the_limit_find_their_points(shuffled):
    X, order = shuffled
    est = LatentDomain((SIDE, SIDE), mixing="shuffled", random_state=0).fit(X)
    assert placement_agreement(est.placement_.point, order, est.grid_) == 1.0
    assert est.evidence_.found
    assert est.evidence_.explained > 0.9 * est.evidence_.ceiling
    assert est.evidence_.confidence > 0.9
    assert (est.placement_.confidence > 0.5).all()
    moved = est.to_grid(est.transform(est.shift(X[:3], (0, 2))))
    still = est.to_grid(est.transform(X[:3]))
    assert np.allclose(moved[:, 4:-4, 6:-4], still[:, 4:-4, 4:-6], atol=1e-3)


def test_dead_copied_noisy_and_counting_columns_are_set_aside(shuffled):
    X, order = shuffled
    rng, d = np.random.default_rng(2), X.shape[1]
    dead = rng.permutation(d)[:25]
    X = X.copy()
    X[:, dead] = 1.0
    alive = np.setdiff1d(np.arange(d), dead)
    noise = rng.normal(size=(len(X), 6))
    wide = np.c_[X, noise, X[:, alive[:5]], np.arange(len(X))].astype(np.float32)
    placed = place_columns(wide, Grid((SIDE, SIDE)), np.random.default_rng(0)).placement
    assert (placed.reason[dead] == "dead").all()
    assert (placed.reason[d : d + 6] == "noise").all()
    assert (placed.reason[d + 6 : d + 11] == "duplicate").all()
    assert (placed.twin[d + 6 : d + 11] == alive[:5]).all()
    assert placed.reason[-1] == "index"
    assert placement_agreement(placed.point[alive], order[alive], placed.grid) > 0.99


def test_empty_points_are_predicted_from_the_columns_around_them(shuffled):
    X, order = shuffled
    rng = np.random.default_rng(3)
    keep = np.sort(rng.permutation(X.shape[1])[:-60])
    est = LatentDomain((SIDE, SIDE), mixing="shuffled", random_state=0).fit(X[:, keep])
    agreement = placement_agreement(est.placement_.point, order[keep], est.grid_)
    assert agreement > 0.99
    truth = np.empty_like(X)
    truth[:, order] = X
    truth = truth.reshape(-1, SIDE, SIDE)
    signal = est.to_grid(est.transform(X[:, keep]))
    best = max(
        np.corrcoef(side.ravel(), truth.ravel())[0, 1]
        for turned in (signal, signal.swapaxes(1, 2))
        for side in (turned, turned[:, ::-1], turned[:, :, ::-1], turned[:, ::-1, ::-1])
    )
    assert best > 0.98


def test_noise_is_not_placed():
    X = np.random.default_rng(0).normal(size=(200, 1_300)).astype(np.float32)
    with pytest.warns(FitWarning, match="no identifiable domain"):
        est = LatentDomain((36, 36), mixing="shuffled", random_state=0).fit(X)
    assert not est.evidence_.found
    assert est.evidence_.confidence < 0.5


def test_many_columns_at_each_point_are_refused_at_once():
    X = np.zeros((20, 32 * 32 * 12), dtype=np.float32)
    X[::2] = 1
    X[1] = np.arange(X.shape[1])
    begin = time.process_time()
    for grid, options in (
        ((32, 32), {"channels": 12}),
        ((32, 32), {"mixing": "shuffled", "channels": 12}),
        ((32, 32), {"mixing": "shuffled"}),
        ((32, 32), {}),
        ("auto", {"channels": 3}),
    ):
        with pytest.raises(InputError, match="12,288 columns") as caught:
            LatentDomain(grid, random_state=0, **options).fit(X)
        assert "\n" not in str(caught.value)
    assert time.process_time() - begin < 5  # a second for each; 0.02 is usual


def test_no_confidence_is_above_the_share_of_columns_that_have_a_place():
    X = field(1_500, (12, 12))
    rng = np.random.default_rng(0)
    # as many columns again that vary with the field, and are no points of it
    mixed = X @ rng.normal(size=(144, 60)) / 12 + 0.3 * rng.normal(size=(1_500, 60))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        est = LatentDomain((12, 12), mixing="shuffled", random_state=0).fit(np.c_[X, mixed])
    diagnosis = est.diagnose(np.c_[X, mixed])
    unplaced = np.sum(est.placement_.reason == "unplaced")
    share = 1 - unplaced / (unplaced + np.sum(~est.placement_.left_out))
    assert share < 0.9
    assert diagnosis.confidence <= share + 1e-4
    assert est.evidence_.confidence <= share + 1e-4


def test_nothing_of_the_size_of_all_pairs_is_made(tmp_path):
    side = 70
    d = side * side
    X = field(150, (side, side))[:, np.random.default_rng(0).permutation(d)]
    est = LatentDomain((side, side), mixing="shuffled", random_state=0)
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        est.fit(X)
        est.diagnose(X)
    est.inverse_transform(est.transform(est.shift(X[:2], (1.5, 0))))
    est.placement_.to_csv(tmp_path / "placement.csv")
    est.save(tmp_path / "run")
    est.report(tmp_path / "page.html")
    again = load(tmp_path / "run")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * d * d
    assert len((tmp_path / "placement.csv").read_text().splitlines()) == d + 1
    assert np.array_equal(again.placement_.point, est.placement_.point)


def test_a_volume_is_solved_without_a_factorisation(monkeypatch):
    side = 11
    order = np.random.default_rng(1).permutation(side**3)
    X = field(500, (side, side, side))[:, order]
    monkeypatch.setattr(graph, "_DIRECT", 500)
    monkeypatch.setattr(graph, "splu", None)
    est = LatentDomain((side,) * 3, mixing="shuffled", random_state=0).fit(X)
    assert placement_agreement(est.placement_.point, order, est.grid_) == 1.0


# -- lines and rings -------------------------------------------------------------------------------


def line(n: int, points: int, closed: bool, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    ends = 0 if closed else 12
    rows = gaussian_filter(rng.normal(size=(n, points + 2 * ends)), (0, 2.5), mode="wrap")
    rows = rows[:, ends : ends + points]
    return (rows / rows.std() + 0.05 * rng.normal(size=rows.shape)).astype(np.float32)


@pytest.mark.parametrize("closed", [False, True])
def test_a_long_line_or_ring_finds_its_order(closed):
    X = line(300, 2_400, closed)
    order = np.random.default_rng(1).permutation(2_400)
    est = LatentDomain(2_400, periodic=closed, mixing="shuffled", random_state=0).fit(X[:, order])
    assert placement_agreement(est.placement_.point, order, est.grid_) > 0.999
    assert est.evidence_.found


def test_missing_columns_of_a_long_line_leave_their_points_empty():
    X = line(600, 2_000, closed=False)
    rng = np.random.default_rng(1)
    keep = np.sort(rng.permutation(np.arange(1, 1_999))[:-12])
    keep = rng.permutation(np.r_[0, keep, 1_999])
    est = LatentDomain(2_000, mixing="shuffled", random_state=0).fit(X[:, keep])
    assert placement_agreement(est.placement_.point, keep, est.grid_) > 0.99


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_a_window_is_mended_between_the_ends_that_stay(seed, first, last):
    rng = np.random.default_rng(seed)
    d = 10
    true = np.r_[0, 1 + rng.permutation(d - 2), d - 1]
    links = np.zeros((d, d))
    links[true[:-1], true[1:]] = links[true[1:], true[:-1]] = 1.0
    better = long_chain._improved(links, (first, last))
    assert sorted(better) == list(range(d))
    assert not first or better[0] == 0
    assert not last or better[-1] == d - 1
    before = links[np.arange(d - 1), np.arange(1, d)].sum()
    assert links[better[:-1], better[1:]].sum() >= before


def test_a_segment_that_closes_on_itself_is_cut_at_its_weakest_link():
    i, j = long_chain._without_cycles(
        np.array([0, 1, 0, 3]), np.array([1, 2, 2, 4]), np.array([0.9, 0.5, 0.7, 0.8]), 6
    )
    assert list(zip(i, j, strict=True)) == [(0, 1), (0, 2), (3, 4)]


# -- gaps, and several columns at a point ----------------------------------------------------------


def test_gaps_of_very_many_columns_are_filled_from_those_beside(shuffled):
    X, _ = shuffled
    rng = np.random.default_rng(0)
    gaps = rng.random(X.shape) < 0.02
    holed = np.where(gaps, np.nan, X)
    est = LatentDomain((SIDE, SIDE), mixing="shuffled", random_state=0).fit(holed)
    assert est.gap_filler_.near.shape == (SIDE * SIDE, 8)
    filled = est.inverse_transform(est.transform(holed))
    missed = np.sqrt(np.mean((filled - X)[gaps] ** 2))
    assert missed < 0.3 * X.std()


def test_columns_beside_a_column_are_the_nearest_on_its_grid():
    placed = Placement.at_points(Grid((5,), periodic=True), [3, 0, 1, -1, 4, 2])
    assert placed.beside(2)[1].tolist() in ([2, 4], [4, 2])
    assert placed.beside(2)[3].tolist() == [4, 5]


def coloured(n: int, side: int, seed: int = 0) -> np.ndarray:
    """Three channels that share most of a field, (n, points · 3), channels fastest."""
    common, *own = (field(n, (side, side), seed=seed + k) for k in range(4))
    rows = np.stack([common + 0.5 * one for one in own], axis=-1)
    return rows.reshape(n, -1)


@pytest.mark.parametrize("channels", ["auto", 3])
def test_several_columns_at_each_point_find_their_points_and_channels(channels):
    side = 22
    order = np.random.default_rng(1).permutation(3 * side * side)
    X = coloured(600, side)[:, order]
    est = LatentDomain((side, side), mixing="shuffled", channels=channels, random_state=0).fit(X)
    placed = est.placement_
    assert placement_agreement(placed.point, order // 3, est.grid_) > 0.999
    table = np.zeros((3, 3))
    np.add.at(table, (order % 3, placed.channel), 1)
    assert table.max(axis=1).sum() > 0.999 * len(order)
    assert est.to_grid(est.transform(X[:2])).shape == (2, side, side, 3)
    assert est.evidence_.found


def test_a_hole_of_one_channel_is_filled_from_that_channel():
    side = 22
    order = np.random.default_rng(1).permutation(3 * side * side)[20:]
    rows = coloured(600, side)
    X = rows[:, order]
    est = LatentDomain((side, side), mixing="shuffled", channels=3, random_state=0).fit(X)
    assert placement_agreement(est.placement_.point, order // 3, est.grid_) > 0.99
    assert (est.coverage_ == 0).sum() >= 20
    fields = est.to_grid(est.transform(X))
    empty = np.argwhere(est.coverage_ == 0)
    weak = fields.std(axis=0)[tuple(empty.T)] / fields.std(axis=0).mean()
    assert (weak > 0.5).mean() > 0.9


def test_more_channels_than_can_be_told_apart_are_refused(shuffled):
    with pytest.raises(InputError, match="at most 6"):
        LatentDomain((12, 12), mixing="shuffled", channels=9).fit(shuffled[0])
