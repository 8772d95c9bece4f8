"""Columns that are not one for each point: places between points, channels between each other's
points, parts that slipped.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_digits

from symlift import LatentDomain, Verdict
from symlift.core.grid import Grid
from symlift.datasets import gsn
from symlift.errors import FitWarning
from symlift.search.criterion import distance_classes, make_slots
from symlift.search.moves.blocks import local_value, search_slips, slips
from symlift.search.problem import split_halves
from symlift.search.rows import score_rows
from symlift.search.score import ahead, held_out_score
from symlift.search.settings import PlaceSettings
from symlift.solvers.fast.place import engine
from symlift.solvers.fast.place.contract import Placed
from symlift.solvers.fast.place.screen import _Race
from symlift.solvers.starts.scattered import FreePlaces
from test_place import field, put, share_right, shuffled

pytestmark = pytest.mark.portable

SETTINGS = PlaceSettings()


def scattered(
    count: int, grid: Grid, seed: int, n: int = 3_000
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns at random places of the grid's box, the true coordinates, and the field on the grid:
    squared exponential.
    """
    rng = np.random.default_rng(seed)
    at = rng.uniform(0, np.array(grid.shape) - 1, size=(count, grid.ndim))
    everywhere = np.r_[at, grid.indices()]
    apart = np.sum((everywhere[:, None] - everywhere[None]) ** 2, axis=-1)
    values, vectors = np.linalg.eigh(np.exp(-apart / 8))
    z = rng.normal(size=(n, len(everywhere))) @ (vectors * np.sqrt(np.maximum(values, 0))).T
    return z[:, :count] + 0.02 * rng.normal(size=(n, count)), at, z[:, count:]


def aligned(found: Placed, true: np.ndarray) -> tuple[float, tuple[int, ...], tuple[bool, ...]]:
    """R² of the coordinates under the best symmetry of the grid, and the symmetry."""
    grid = found.placement.grid
    best: tuple[float, tuple[int, ...], tuple[bool, ...]] = (-np.inf, (), ())
    for way in grid.orientations():
        y = found.placement.coordinates[:, list(way.axes)]
        y = np.where(way.flips, np.array(grid.shape) - 1 - y, y)
        r2 = 1 - np.sum((y - true) ** 2) / np.sum((true - true.mean(axis=0)) ** 2)
        best = max(best, (float(r2), tuple(way.axes), tuple(bool(f) for f in way.flips)))
    return best


@pytest.mark.parametrize(
    ("count", "grid"),
    [(90, Grid((8, 8))), (50, Grid((8, 8))), (40, Grid((30,))), (80, Grid((9, 6)))],
)
def test_columns_between_points_keep_their_coordinates(count: int, grid: Grid) -> None:
    X, at, _ = scattered(count, grid, 1)
    found = put(X, grid)
    assert found.statistics.carried == "distances"
    assert found.statistics.accepted
    # fewer columns leave the border of the box to be guessed, and which way it is turned
    others = (scattered(count, grid, seed) for seed in (2, 3))
    again = [aligned(put(X, grid), at)[0] for X, at, _ in others]
    assert np.median([aligned(found, at)[0], *again]) > 0.96
    fraction = found.placement.coordinates % 1
    assert np.mean((fraction > 0.1) & (fraction < 0.9)) > 0.5
    assert (
        found.placement.point == grid.flat(np.rint(found.placement.coordinates).astype(int))
    ).all()


def test_field_on_the_grid_is_predicted_from_scattered_columns() -> None:
    grid = Grid((8, 8))
    X, _, latent = scattered(90, grid, 2)
    est = LatentDomain(grid=grid, random_state=0).fit(X)
    z = est.to_grid(est.transform(X))
    r = max(
        abs(np.corrcoef(way.reorient(z).ravel(), latent.ravel())[0, 1])
        for way in grid.orientations()
    )
    assert r > 0.9
    assert est.coverage_.sum() == 90


@pytest.mark.parametrize("count", [40, 120])
def test_sensors_without_a_grid_are_found_and_believed(count: int) -> None:
    X, at, _ = scattered(count, Grid((8, 8)), 4)
    est = LatentDomain(random_state=0).fit(X)
    assert est.evidence_.carried_by == "distances"
    assert est.grid_.ndim == 2
    A = np.c_[est.placement_.coordinates, np.ones(count)]
    left = at - A @ np.linalg.lstsq(A, at, rcond=None)[0]
    assert 1 - np.sum(left**2) / np.sum((at - at.mean(axis=0)) ** 2) > 0.98
    diagnosis = est.diagnose(X)
    assert diagnosis.verdict in (Verdict.PRESENT, Verdict.ORDERED)
    assert diagnosis.confidence > 0.8


def test_places_that_two_parts_of_the_rows_do_not_share_are_not_believed() -> None:
    rng = np.random.default_rng(0)
    # a few factors with random loadings: every plane through them is as good as any other
    X = rng.normal(size=(600, 6)) @ rng.normal(size=(6, 60)) + 0.5 * rng.normal(size=(600, 60))
    with pytest.warns(FitWarning, match="do not trust"):
        est = LatentDomain(grid=(8, 8), random_state=0).fit(X)
    assert est.evidence_.confidence < 0.5


def test_distance_classes_hold_more_pairs_the_farther_they_are() -> None:
    y = np.random.default_rng(0).uniform(size=(30, 2))
    classes = distance_classes(y)
    apart = np.linalg.norm(y[:, None] - y[None], axis=-1)
    upper = np.triu_indices(30, 1)
    label = classes.index[upper]
    assert (classes.index == classes.index.T).all()
    count = np.bincount(label, minlength=classes.classes)
    assert count[0] == 30
    assert (np.diff(count[:-1]) > 0).all()
    # classes are intervals of distance
    ends = [apart[upper][label == k] for k in range(classes.classes)]
    assert all(a.max() <= b.min() for a, b in pairwise(ends))


def test_a_lead_that_comes_from_one_column_is_no_lead_over_columns() -> None:
    rng, d = np.random.default_rng(0), 20
    S = rng.normal(size=(1, d, d))
    S = S + S.transpose(0, 2, 1)
    S[0, np.arange(d), np.arange(d)] = 0
    held = S + 0.1 * rng.normal(size=S.shape)
    score = held_out_score(S, held, np.arange(d), make_slots(Grid((d,))))
    assert score.columns.sum() == pytest.approx(score.explained)
    columns = score.columns.copy()
    columns[0] += 1.0
    other = replace(score, explained=score.explained + 1.0, columns=columns)
    assert ahead(other, score) > 100
    assert 0 < ahead(other, score, over_columns=True) < 2


def test_lattices_with_holes_are_not_taken_for_scattered() -> None:
    X, point = shuffled(3_000, Grid((8, 8)), 3)
    keep = np.sort(np.random.default_rng(0).permutation(64)[:45])
    found = put(X[:, keep], Grid((8, 8)))
    assert found.statistics.carried != "distances"
    assert share_right(point[keep], found) == 1


def test_differences_along_two_axes_share_points() -> None:
    side, n = 8, 6_000
    z = field(n, Grid((side + 1, side + 1)), 4, width=1.5).reshape(n, side + 1, side + 1)
    z += 0.05 * np.random.default_rng(0).normal(size=z.shape)
    pair = np.stack(
        [z[:, 1:, :-1] - z[:, :-1, :-1], z[:, :-1, 1:] - z[:, :-1, :-1]], axis=-1
    ).reshape(n, -1)
    order = np.random.default_rng(1).permutation(pair.shape[1])
    found = put(pair[:, order], Grid((side, side)))
    assert found.n_channels == 2
    assert share_right(order // 2, found) == 1
    agree = np.mean(found.placement.channel == order % 2)
    assert max(agree, 1 - agree) == 1


def test_a_part_that_slipped_comes_back() -> None:
    grid = Grid((6, 6))
    X, point = shuffled(2_000, grid, 5)
    keep = np.flatnonzero(
        grid.indices()[point][:, 1] < 5
    )  # one border column of the grid is empty: room to slip
    true, slots = point[keep], make_slots(grid)
    rng = np.random.default_rng(0)
    S = split_halves(score_rows(X[:, keep], rng, SETTINGS), np.arange(len(keep)), SETTINGS).partial[
        0
    ]
    at = grid.indices()[true]
    at[at[:, 0] > 2, 1] += 1
    wrong = grid.flat(at)
    assert local_value(S, wrong, slots) > local_value(S, true, slots) + 0.02
    assert any((np.rint(moved) == grid.indices()[true]).all() for moved in slips(wrong, slots))
    found = search_slips(S, slots, [wrong], rng)
    assert local_value(S, found.slot, slots) <= local_value(S, true, slots) + 1e-9


def test_mixed_columns_have_no_few_partners() -> None:
    """Behind a rotation a common part still predicts every column, but no few partners do."""
    X, _ = shuffled(3_000, Grid((8, 8)), 5)
    X = X + 2 * np.random.default_rng(1).normal(size=(len(X), 1))
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(64, 64)))[0]
    local = []
    for rows in (X, X @ rotation):
        rng = np.random.default_rng(0)
        halves = split_halves(score_rows(rows, rng, SETTINGS), np.arange(64), SETTINGS)
        local.append(engine._predictable(halves, Grid((8, 8)), SETTINGS))
    assert local == [True, False]


def test_parts_are_not_moved_where_no_arrangement_could_be_local(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # after a sine transform of a field with ends, partners predict 0.01 of a column: moving parts
    # took four fifths of the time of such a fit, and could not succeed
    def moved(*_: object) -> None:
        raise AssertionError("parts were moved")

    monkeypatch.setattr(engine, "search_slips", moved)
    data = gsn(20_000, 63, transform="dst1", random_state=0)
    placed = engine.place_columns(data.X, data.grid, np.random.default_rng(0))
    assert not placed.statistics.accepted
    digits = load_digits().data
    with pytest.raises(AssertionError, match="parts were moved"):
        engine.place_columns(digits, Grid((8, 8)), np.random.default_rng(0))


def test_a_line_with_one_column_for_each_point_is_not_stretched(rng: np.random.Generator) -> None:
    # correlations of a walk depend on where along the line they are, as those of a stationary field
    # on uneven places would
    walk = np.cumsum(rng.normal(size=(1_000, 31)), axis=1)
    true = rng.permutation(31)
    placed = put(walk[:, true], Grid((31,)))
    assert placed.statistics.accepted
    assert share_right(true, placed) == 1.0


def test_columns_of_common_factors_have_no_places() -> None:
    """Factors give every column a place among the others, on which all rows agree."""
    rng = np.random.default_rng(1)
    load = rng.normal(size=(5, 48))
    X = rng.normal(size=(3_000, 5)) @ load + rng.normal(size=(3_000, 48))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        est = LatentDomain(random_state=0).fit(X)
    assert est.diagnose(X).verdict not in (Verdict.PRESENT, Verdict.ORDERED)


def test_columns_along_a_curve_in_a_plane_are_no_plane() -> None:
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(size=60))
    curve = np.c_[np.cos(4 * t), np.sin(4 * t)]
    places = [FreePlaces(y, 1.0, None) for y in (curve, rng.uniform(size=(60, 2)), t[:, None])]
    assert [one.is_curve for one in places] == [True, False, False]


def test_coordinates_of_all_columns_serve_where_some_have_too_few_rows() -> None:
    grid = Grid((7, 7))
    X = field(3_000, grid, 0)
    X[:, :3] *= np.random.default_rng(0).random(size=(3_000, 3)) < 0.003
    read = score_rows(X, np.random.default_rng(0), PlaceSettings())
    race = _Race(read, read.correlations(), np.arange(49), PlaceSettings())
    quick = replace(PlaceSettings(), restarts=0, starts=1)
    given = grid.indices().astype(float)
    assert len(engine.core_columns(read, race.c, race.columns, grid, quick)[0]) < 49
    assert race.fill(grid, quick, given).accepted
