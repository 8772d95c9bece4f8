"""Rows that may be larger than memory: looked at once, sampled, converted in batches, and numbers
at the edge.
"""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from symlift import Grid, InputError, LatentDomain, LiftedModel
from symlift.core import rows as rows_module
from symlift.core.rows import (
    ColumnsOf,
    batches_of,
    check_finite,
    forget_pages,
    survey,
    take_rows,
)
from symlift.datasets import gsn
from symlift.errors import RowError
from symlift.runs.signals import lift_to_file


@pytest.fixture
def small(monkeypatch):
    """Arrays of a few thousand numbers are large."""
    for name, value in (
        ("MAX_SAMPLE", 9_000),
        ("_SAMPLED", 4_500),
        ("_LEAST_ROWS", 400),
        ("_BATCH", 1_000),
    ):
        monkeypatch.setattr(rows_module, name, value)


def stored(tmp_path, X):
    np.save(tmp_path / "x.npy", X)
    return np.load(tmp_path / "x.npy", mmap_mode="r")


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int16", "bool"])
def test_a_survey_tells_what_a_look_at_everything_would(rng, small, tmp_path, dtype):
    X = rng.normal(size=(3000, 9)) * 30
    X = X > 0 if dtype == "bool" else np.abs(X).astype(dtype)
    X[:, 4] = 1
    X[:, 7] = 0
    X[2999, 7] = 1  # varies once in all rows: as good as constant
    seen = survey(stored(tmp_path, X), np.random.default_rng(0), allow_nan=False)
    assert seen.rows.shape == (500, 9)
    assert seen.rows.dtype == (np.float32 if dtype in ("float32", "uint8", "bool") else np.float64)
    assert not seen.gaps
    assert not seen.varies[4]
    assert seen.varies[[0, 1, 2, 3, 5, 6, 8]].all()
    # rows are rows of X, in their order
    at = (
        [
            int(np.flatnonzero((row == X.astype(seen.rows.dtype)).all(axis=1))[0])
            for row in seen.rows
        ]
        if dtype[0] == "f"
        else [0]
    )
    assert at == sorted(at)


def test_a_fit_looks_at_a_memory_map_once_and_solves_a_sample(small, tmp_path, monkeypatch):
    X = gsn(3000, (9,), random_state=0).X.copy()
    X[:, 3] = 2.0
    passes, solved = [], []
    batches = rows_module.batches_of
    monkeypatch.setattr(
        rows_module, "batches_of", lambda given: passes.append(given.shape) or batches(given)
    )
    import symlift.solvers.random as solver

    solve = solver.solve
    monkeypatch.setattr(
        solver, "solve", lambda rows, *a, **k: solved.append(rows) or solve(rows, *a, **k)
    )
    mapped = stored(tmp_path, X)
    with pytest.warns(match="1 constant columns get weight 0"):
        est = LatentDomain((8,), solver="random", random_state=0).fit(mapped)
    assert passes == [(3000, 9)]
    assert solved[0].shape == (500, 8)
    assert not np.shares_memory(solved[0], mapped)
    assert est.mean_[3] == 2.0
    assert est.transform(mapped).shape == (3000, 8)


def test_small_arrays_are_fitted_as_they_are(monkeypatch):
    X = np.random.default_rng(0).laplace(size=(200, 9))
    seen = survey(X, np.random.default_rng(0), allow_nan=False)
    assert seen.rows is X or np.shares_memory(seen.rows, X)


def test_training_sees_all_rows_by_index(small, tmp_path):
    X = np.arange(3000 * 9, dtype=np.int32).reshape(3000, 9)
    view = ColumnsOf(stored(tmp_path, X), np.array([0, 2, 5]))
    assert (view.shape, view.size, len(view), view.dtype) == ((3000, 3), 9000, 3000, np.float64)
    assert np.array_equal(view[np.array([7, 9])], X[[7, 9]][:, [0, 2, 5]])
    assert np.array_equal(take_rows(view, np.array([2, 2999])), X[[2, 2999]][:, [0, 2, 5]])


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_pages_are_let_go_and_nothing_is_lost(tmp_path, mode):
    np.save(tmp_path / "x.npy", np.arange(20_000.0).reshape(2_000, 10))
    X = np.load(tmp_path / "x.npy", mmap_mode=mode)
    if mode != "r":
        X[5, 5] = -1.0
    before = np.array(X)
    forget_pages(X[3:])
    assert np.array_equal(X, before)
    forget_pages(np.zeros(3))
    assert isinstance(X._mmap, mmap.mmap)


def test_infinity_after_a_gap_is_found(small):
    X = np.random.default_rng(0).normal(size=(900, 3))
    X[2, 1], X[800, 2] = np.nan, np.inf
    with pytest.raises(InputError, match=r"infinity \(row 801, column 3\)"):
        check_finite(X, allow_nan=True)
    with pytest.raises(InputError, match=r"NaN or infinity \(row 3, column 'b'\)"):
        check_finite(X, allow_nan=False, names=["a", "b", "c"])


# -- numbers at the edge ---------------------------------------------------------------------------


def edge(rng, factor, dtype=np.float64):
    return (gsn(400, (9,), random_state=1).X.astype(np.float64) * factor).astype(dtype)


@pytest.mark.parametrize("solver", ["random", "fast"])
@pytest.mark.parametrize("factor", [1e300, 1e200, 1e60])
def test_numbers_whose_powers_overflow_are_refused(rng, factor, solver):
    with pytest.raises(InputError, match=r"whose powers overflow: .*divide X by a constant"):
        LatentDomain((9,), solver=solver, random_state=0).fit(edge(rng, factor))


@pytest.mark.parametrize("factor", [1e-300, 5e-324, 1e-60])
def test_numbers_whose_powers_vanish_are_refused(rng, factor):
    X = edge(rng, factor)
    with pytest.raises(InputError, match=r"multiply X by a constant|of which \d vary"):
        LatentDomain((9,), solver="random", random_state=0).fit(X)


def test_one_outlier_is_named(rng):
    X = edge(rng, 1.0)
    X[17, 3] = 1e300
    with pytest.raises(
        InputError, match=r"X holds 1e\+300 \(row 18, column 4\).*drop that entry if it is alone"
    ):
        LatentDomain((9,), random_state=0).fit(X)


@pytest.mark.parametrize(
    ("factor", "dtype"),
    [(1e40, np.float64), (1e-40, np.float64), (1e30, np.float32), (1e-30, np.float32)],
)
def test_the_scale_of_the_data_changes_nothing(factor, dtype):
    X = gsn(1500, (9,), transform="permutation", random_state=1).X
    plain = LatentDomain((9,), mixing="shuffled", random_state=0).fit(X.astype(np.float64))
    large = LatentDomain((9,), mixing="shuffled", random_state=0).fit(
        (X.astype(np.float64) * factor).astype(dtype)
    )
    assert np.array_equal(plain.placement_.point, large.placement_.point)


def test_a_row_that_overflows_is_named(rng):
    X = edge(rng, 1.0)
    est = LatentDomain((9,), solver="random", random_state=0).fit(X)
    X[5] = 1.7e308
    with pytest.raises(InputError, match="row 6 is so large that its signal overflows"):
        est.transform(X)


@pytest.mark.parametrize(
    ("value", "what"), [(1.7e308, "is so large"), (np.nan, "holds NaN or infinity")]
)
def test_a_row_is_named_by_its_place_in_the_file(rng, tmp_path, small, value, what):
    model = LiftedModel.from_lifting_map(3 * np.eye(9), Grid(9))
    X = rng.normal(size=(3000, 9))
    X[1499] = value
    assert len(list(batches_of(X))) > 1
    with pytest.raises(RowError, match=f"^row 1,500 {what}"):
        lift_to_file(model, X, tmp_path / "signals.npy")
    assert not list(tmp_path.iterdir())  # nothing half-written


def test_a_file_that_is_cut_short_while_it_is_read_is_named(small, tmp_path):
    X = np.random.default_rng(0).normal(size=(3000, 9))
    mapped = stored(tmp_path, X)
    est = LatentDomain((9,), solver="random", random_state=0).fit(mapped)
    with (tmp_path / "x.npy").open("r+b") as file:
        file.truncate(5000)
    for use in (
        est.fit,
        est.transform,
        est.model_.lift,
        lambda rows: take_rows(rows, np.array([2999])),
    ):
        with pytest.raises(InputError, match=r"x\.npy was cut short while it was read"):
            use(mapped)
