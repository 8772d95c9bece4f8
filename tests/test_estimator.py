from __future__ import annotations

import csv
import json
import re
from dataclasses import asdict

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from symlift import Grid, InputError, LatentDomain, load
from symlift.datasets import gsn
from symlift.errors import FitWarning
from symlift.solvers.contract import Evidence, Stage, Trace
from symlift.solvers.fast.settings import DEFAULT, FastSettings


@pytest.fixture
def X(rng):
    return rng.laplace(size=(300, 12))


def random_fit(X, **options):
    settings = {"grid": (X.shape[-1],), "solver": "random", "random_state": 0} | options
    return LatentDomain(**settings).fit(X)


def test_attributes_agree_with_each_other(X):
    est = random_fit(X, grid=(3, 4), periodic=(True, False))
    assert est.grid_ == Grid((3, 4), (True, False))
    assert est.lifting_map_.shape == (12, 12)
    assert est.generators_.shape == (2, 12, 12)
    Y = est.transform(X)
    assert np.allclose(Y, (X - est.mean_) @ est.lifting_map_.T)
    assert est.to_grid(Y).shape == (300, 3, 4)
    assert np.allclose(est.inverse_transform(Y), X)
    assert np.allclose(est.mean_, X.mean(axis=0))


def test_same_seed_same_result_and_the_global_state_is_left_alone(X):
    np.random.seed(5)  # noqa: NPY002 - the point is that it is not touched
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    a, b, c = random_fit(X), random_fit(X), random_fit(X, random_state=1)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    assert np.array_equal(a.lifting_map_, b.lifting_map_)
    assert not np.allclose(a.lifting_map_, c.lifting_map_)


def test_shift_moves_signals_on_a_ring(X):
    est = random_fit(X[:, :11], periodic=True)
    rolled = np.roll(est.transform(X[:, :11]), 2, axis=1)
    assert np.allclose(est.transform(est.shift(X[:, :11], 2)), rolled)
    assert np.allclose(est.shift(est.shift(X[:, :11], 0.3), 0.7), est.shift(X[:, :11], [1.0]))


def test_phase_and_amplitude_follow_a_shift(X):
    est = random_fit(X[:, :11], periodic=True)
    moved = est.shift(X[:, :11], 1.5)
    turn = np.angle(np.exp(1j * (est.phase(moved) - est.phase(X[:, :11]))))
    assert np.allclose(turn, 2 * np.pi * 1.5 / 11)
    assert np.allclose(est.amplitude(moved), est.amplitude(X[:, :11]))
    with pytest.raises(InputError, match="ring"):
        random_fit(X).phase(X)


def test_save_and_load(X, tmp_path):
    frame = pd.DataFrame(X, columns=[f"sensor{i}" for i in range(12)])
    est = random_fit(frame, grid="3x4")
    est.save(tmp_path / "run")
    again = load(tmp_path / "run")
    assert np.array_equal(again.transform(frame), est.transform(frame))
    assert list(again.feature_names_in_) == list(frame.columns)
    assert again.trace_ == est.trace_
    assert again.grid_ == est.grid_
    (tmp_path / "run" / "estimator.json").write_text("{")
    with pytest.raises(InputError, match="damaged"):
        load(tmp_path / "run")
    with pytest.raises(InputError, match="missing"):
        load(tmp_path / "nothing")


def test_works_where_scikit_learn_expects_it(X):
    est = LatentDomain(grid=(12,), solver="random", random_state=0)
    twin = clone(est)
    assert twin.get_params() == est.get_params()
    pipe = make_pipeline(StandardScaler(), twin).fit(X)
    assert pipe.transform(X).shape == (300, 12)
    assert list(pipe[-1].get_feature_names_out())[:2] == ["p0", "p1"]


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_frames_keep_their_names_and_come_back_as_frames(X, library):
    frame = library.DataFrame({f"sensor{i}": X[:, i] for i in range(12)})
    est = random_fit(frame, grid=(3, 4)).set_output(transform=library.__name__)
    assert list(est.feature_names_in_) == [f"sensor{i}" for i in range(12)]
    signals = est.transform(frame)
    assert isinstance(signals, library.DataFrame)
    assert list(signals.columns) == list(est.get_feature_names_out())
    assert np.allclose(signals.to_numpy(), random_fit(X, grid=(3, 4)).transform(X))


def test_takes_tensors_memmaps_and_single_precision(X, tmp_path):
    reference = random_fit(X).lifting_map_
    assert np.allclose(random_fit(torch.from_numpy(X)).lifting_map_, reference)
    kept = np.memmap(tmp_path / "x.dat", dtype=np.float32, mode="w+", shape=X.shape)
    kept[:] = X
    est = random_fit(kept)
    assert np.allclose(est.lifting_map_, reference, atol=1e-6)
    assert est.transform(kept).dtype == np.float32


def test_constant_columns_get_weight_zero_and_a_warning(X):
    X[:, 4] = 3.0
    with pytest.warns(FitWarning, match="column 5"):
        est = random_fit(X, grid=(11,))
    assert not est.lifting_map_[:, 4].any()
    with pytest.raises(InputError, match="of which 11 vary"):
        random_fit(X, grid=(12,))


def test_automatic_grid_says_what_it_took(X):
    with pytest.warns(FitWarning, match="line of 7"):
        est = random_fit(X[:, :7], grid="auto")
    assert est.grid_.shape == (7,)


@pytest.mark.parametrize(
    ("change", "options", "word"),
    [
        (lambda X: np.where(np.arange(12) == 3, np.nan, X), {}, "column 4"),
        (lambda X: np.where(np.arange(300)[:, None] == 7, np.inf, X), {}, "row 8"),
        (lambda X: X, {"grid": (5, 5)}, "25 points"),
        (lambda X: X, {"grid": "5y5"}, "written|write it"),
        (lambda X: X, {"solver": "magic"}, "unknown"),
        (lambda X: X[:12], {}, "too few"),
        (lambda X: X[:, 0], {}, "rows and columns"),
        (lambda X: X[:0], {}, "0 sample"),
    ],
)
def test_bad_input_is_named(X, change, options, word):
    with pytest.raises(ValueError, match=word):
        random_fit(change(X), **({"grid": (12,)} | options))


def test_signals_of_the_wrong_width_are_named(X):
    with pytest.raises(InputError, match="must be"):
        random_fit(X).to_grid(X[:, :3])


def test_trace_is_plain_json(X, tmp_path):
    est = random_fit(X)
    est.trace_ = Trace(
        "x", stages=(Stage("one", 0.5, {"a": np.float64(1.5), "b": np.arange(2), "c": np.nan}),)
    )
    est.save(tmp_path)
    stored = json.loads((tmp_path / "estimator.json").read_text())["trace"]
    assert stored["stages"] == [
        {"name": "one", "seconds": 0.5, "values": {"a": 1.5, "b": [0, 1], "c": None}}
    ]


# -- parameters ------------------------------------------------------------------------------------


def test_flags_of_numpy_are_flags(X):
    for periodic in (np.bool_(True), np.array([True]), [np.bool_(True)]):
        assert random_fit(X[:, :11], periodic=periodic).grid_ == Grid((11,), periodic=True)
    assert random_fit(X, grid=(3, 4), periodic=np.array([True, False])).grid_ == Grid(
        (3, 4), (True, False)
    )


def test_a_grid_and_a_periodic_that_contradict_each_other_are_refused(X):
    with pytest.raises(InputError, match="leave periodic out") as caught:
        random_fit(X, grid=Grid((12,)), periodic=True)
    assert "\n" not in str(caught.value)
    for grid in (Grid((3, 4), (True, False)), Grid((3, 4), True)):
        with pytest.raises(InputError, match="differs"):
            random_fit(X, grid=grid, periodic=(False, True))
    assert random_fit(X, grid=Grid((12,), True), periodic=True).grid_.is_ring
    assert random_fit(X, grid=Grid((12,), True)).grid_.is_ring


def test_an_unknown_mixing_is_one_line(X):
    with pytest.raises(
        InputError, match="mixing 'bent' is unknown: use one of auto, shuffled, orthogonal, linear"
    ) as caught:
        random_fit(X, mixing="bent")
    assert "\n" not in str(caught.value)


def test_a_model_is_one_short_line(X):
    for options in ({}, {"grid": (3, 4)}, {"grid": (5,), "periodic": True}):
        shown = repr(random_fit(X, **options).model_)
        assert shown.startswith("LiftedModel(grid ")
        assert "\n" not in shown
        assert len(shown) < 100


# -- saving ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seed", "kept"), [(7, 7), (np.int64(9), 9), (None, None), (np.random.RandomState(3), None)]
)
@pytest.mark.filterwarnings("ignore:mixing")  # which a random map ignores
def test_the_seed_is_kept(X, tmp_path, seed, kept):
    random_fit(X, random_state=seed, periodic=True, mixing="orthogonal").save(tmp_path)
    again = load(tmp_path)
    assert again.random_state == kept
    assert (again.solver, again.mixing, again.channels) == ("random", "orthogonal", "auto")
    assert Grid(again.grid, again.periodic) == again.grid_ == Grid((12,), True)


def test_a_loaded_estimator_fits_the_same_again(X, tmp_path):
    est = random_fit(X, random_state=7)
    est.save(tmp_path)
    assert np.array_equal(clone(load(tmp_path)).fit(X).lifting_map_, est.lifting_map_)


def test_a_saved_model_is_overwritten_only_when_told(X, tmp_path):
    first, second = random_fit(X), random_fit(X, random_state=1)
    first.save(tmp_path / "model")
    before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    with pytest.raises(InputError, match="overwrite=True"):
        second.save(tmp_path / "model")
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == before
    second.save(tmp_path / "model", overwrite=True)
    assert np.array_equal(load(tmp_path / "model").lifting_map_, second.lifting_map_)
    assert sorted(before) == sorted(path.name for path in (tmp_path / "model").iterdir())


@pytest.mark.parametrize(
    "damage",
    [
        {"placement": {"coordinates": [[1.0, 2.0]]}},
        {"version": 99},
        {"trace": 3},
        {"random_state": "x"},
        {"evidence": {"found": []}},
    ],
    ids=lambda damage: next(iter(damage)),
)
def test_a_damaged_estimator_is_named(X, tmp_path, damage):
    random_fit(X).save(tmp_path)
    path = tmp_path / "estimator.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | damage))
    with pytest.raises(InputError, match=r"estimator\.json (is damaged|has format version 99)"):
        load(tmp_path)


# -- where columns are -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def told():
    """What the progress callback of the fit below was called with."""
    return []


@pytest.fixture(scope="module")
def shuffled(told):
    """A field on 5 x 6 points in unknown order, as a frame with names, and its fit."""
    data = gsn(2_000, (5, 6), transform="permutation", random_state=3)
    true = np.argmax(data.transform, axis=0)  # the point of each column
    frame = pd.DataFrame(data.X, columns=[f"sensor {point}" for point in true])
    est = LatentDomain(grid=(5, 6), random_state=0)
    return frame, true, est.fit(frame, progress=lambda stage, share: told.append((stage, share)))


def same_up_to_symmetry(grid, found, true):
    """Whether points are the true ones, seen from one of the sides that nobody can tell apart."""
    index = np.arange(grid.size).reshape(1, *grid.shape)
    return any(
        np.array_equal(found, side.reorient(index).ravel()[true]) for side in grid.orientations()
    )


def test_every_column_is_placed(shuffled):
    _, true, est = shuffled
    placed = est.placement_
    assert same_up_to_symmetry(est.grid_, placed.point, true)
    assert np.array_equal(placed.coordinates, est.grid_.indices()[placed.point])
    assert np.array_equal(est.coverage_, np.ones((5, 6)))
    assert est.n_channels_ == 1
    assert not placed.left_out.any()
    assert set(placed.reason) == {""}
    assert set(placed.channel) == {0}
    # the lifting map is that placement
    assert np.array_equal(np.argmax(np.abs(est.lifting_map_), axis=0), placed.point)


def test_a_placement_is_a_table(shuffled, tmp_path):
    frame, _, est = shuffled
    table = est.placement_.to_frame()
    assert list(table.columns) == [
        "column",
        "name",
        "axis0",
        "axis1",
        "point",
        "channel",
        "confidence",
        "reason",
    ]
    assert list(table["name"]) == list(frame.columns)
    assert np.array_equal(table["axis0"] * 6 + table["axis1"], table["point"])
    est.placement_.to_csv(tmp_path / "placement.csv")
    with (tmp_path / "placement.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == list(frame.columns)
    assert [int(row["point"]) for row in rows] == list(table["point"])


def test_a_placement_survives_saving(shuffled, tmp_path):
    frame, _, est = shuffled
    est.save(tmp_path)
    again = load(tmp_path)
    assert np.array_equal(again.placement_.coordinates, est.placement_.coordinates)
    assert again.placement_.columns() == est.placement_.columns()
    assert np.array_equal(again.coverage_, est.coverage_)
    assert list(again.feature_names_in_) == list(frame.columns)
    assert again.evidence_ == est.evidence_


def test_a_dead_column_is_on_no_point(shuffled, tmp_path):
    frame, true, _ = shuffled
    X = np.insert(frame.to_numpy(), 4, 2.5, axis=1)
    with pytest.warns(FitWarning, match="column 5"):
        est = LatentDomain(grid=(5, 6), random_state=0).fit(X)
    placed = est.placement_
    assert (placed.point[4], placed.channel[4], placed.reason[4]) == (-1, -1, "dead")
    assert np.isnan(placed.coordinates[4]).all()
    assert same_up_to_symmetry(est.grid_, np.delete(placed.point, 4), true)
    assert np.array_equal(est.coverage_, np.ones((5, 6)))
    placed.to_csv(tmp_path / "placement.csv")
    line = (tmp_path / "placement.csv").read_text().splitlines()[5]
    assert line.startswith("4,x4,,,-1,-1,")
    est.save(tmp_path / "model")
    assert np.array_equal(
        load(tmp_path / "model").placement_.coordinates, placed.coordinates, equal_nan=True
    )
    assert np.allclose(est.shift(X[:5], [0, 0]), X[:5], atol=1e-8)


def test_there_is_no_placement_where_columns_are_no_points(X):
    est = random_fit(X)
    assert est.placement_ is None
    assert est.coverage_ is None
    assert est.evidence_ == Evidence()
    with pytest.raises(InputError, match="3 names were given for 12"):
        est.name_columns(["a", "b", "c"])


def test_signals_are_named_by_their_points(X):
    assert list(random_fit(X).get_feature_names_out()[[0, 11]]) == ["p0", "p11"]
    assert list(random_fit(X, grid=(3, 4)).get_feature_names_out()[[0, 5, 11]]) == [
        "r0c0",
        "r1c1",
        "r2c3",
    ]
    assert list(random_fit(X, grid=(2, 2, 3)).get_feature_names_out()[[0, 11]]) == [
        "s0r0c0",
        "s1r1c2",
    ]


# -- watching --------------------------------------------------------------------------------------


def test_progress_is_called_with_stages_and_shares(shuffled, told):
    shares = [(stage, share) for stage, share in told if share is not None]
    assert (
        [stage for stage, _ in shares]
        == ["place", "choose"]
        == [stage.name for stage in shuffled[2].trace_.stages]
    )
    assert all(0 <= share <= 1 for _, share in shares)
    assert "place: triage" in [stage for stage, _ in told]


def test_verbose_prints_stages_to_stderr(X, capsys):
    random_fit(X)
    assert capsys.readouterr() == ("", "")
    random_fit(X, verbose=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r" +\d+\.\d s  drawing\n +\d+\.\d s  checking\n", err)


def test_settings_of_the_fast_solver_are_recorded(shuffled, tmp_path):
    frame, _, est = shuffled
    assert est.trace_.solver == "fast"
    assert est.trace_.settings == asdict(DEFAULT)
    other = LatentDomain(
        grid=(5, 6), random_state=0, solver_options={"settings": FastSettings(attempts=2)}
    )
    other.fit(frame).save(tmp_path)
    assert other.trace_.settings["attempts"] == load(tmp_path).trace_.settings["attempts"] == 2


def test_columns_that_are_said_to_be_shuffled_are_never_mixed(X):
    with pytest.warns(FitWarning, match="no identifiable domain"):
        est = LatentDomain(grid=(12,), mixing="shuffled", random_state=0).fit(X)
    assert [stage.name for stage in est.trace_.stages] == ["place", "choose"]
    assert est.trace_.chosen == "coordinates"
    assert sorted(est.placement_.point) == list(range(12))
    assert np.array_equal(np.count_nonzero(np.abs(est.lifting_map_) > 1e-12, axis=0), np.ones(12))


def test_a_rotation_is_never_resolved_into_another_map(X):
    with pytest.warns(FitWarning, match="no identifiable domain"):
        est = LatentDomain(grid=(12,), mixing="orthogonal", random_state=0).fit(X)
    stages = {stage.name for stage in est.trace_.stages}
    assert "localise" in stages
    assert "resolve" not in stages
    W = est.lifting_map_
    assert np.allclose(W @ W.T, np.eye(12) * (W[0] @ W[0]), atol=1e-8)


@pytest.mark.parametrize("stage", ["grid", "solver", "end"])
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(tmp_path, monkeypatch, stage):
    from sklearn.exceptions import NotFittedError

    import symlift.estimator as module
    from symlift import load

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    X = gsn(60, (9,), random_state=0).X
    fresh = LatentDomain((9,), periodic=True, solver="random", random_state=0)
    fitted = LatentDomain((9,), periodic=True, solver="random", random_state=0)
    fitted.fit(X, names=[f"old{i}" for i in range(9)])
    before = dict(vars(fitted))
    with monkeypatch.context() as patch:
        if stage == "grid":
            patch.setattr(module, "choose_grid", interrupt)
        else:
            patch.setattr(LatentDomain, "_solve" if stage == "solver" else "_some", interrupt)
        for estimator in (fresh, fitted):
            with pytest.raises(KeyboardInterrupt):
                estimator.fit(X[:, ::-1] * 2, names=[f"new{i}" for i in range(9)])
    assert vars(fitted).keys() == before.keys()
    assert all(vars(fitted)[name] is value for name, value in before.items())
    fitted.save(tmp_path)
    assert list(load(tmp_path).feature_names_in_) == [f"old{i}" for i in range(9)]
    with pytest.raises(NotFittedError):
        fresh.save(tmp_path / "fresh")
    with pytest.raises(NotFittedError):
        fresh.transform(X)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("names", "several columns have the name 'a'"),
        ("sparse frame", "sparse data frame"),
        ("sparse", r"X\.toarray\(\)"),
        ("bfloat16", "convert it to float32"),
    ],
)
def test_odd_rows_are_refused_in_one_line(kind, words):
    from scipy.sparse import csr_array

    X = gsn(60, (9,), random_state=0).X
    rows = {
        "names": lambda: pd.DataFrame(X, columns=list("aabcdefgh")),
        "sparse frame": lambda: pd.DataFrame(X).astype(pd.SparseDtype(float)),
        "sparse": lambda: csr_array(X),
        "bfloat16": lambda: torch.tensor(X).to(torch.bfloat16),
    }[kind]()
    with pytest.raises(InputError, match=words) as caught:
        LatentDomain((9,), periodic=True, solver="random").fit(rows)
    assert "\n" not in str(caught.value)
