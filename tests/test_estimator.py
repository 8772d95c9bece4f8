from __future__ import annotations

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from symlift import Grid, InputError, LatentDomain, load
from symlift.errors import FitWarning


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
    assert list(pipe[-1].get_feature_names_out())[:2] == ["latentdomain0", "latentdomain1"]


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
    with pytest.warns(FitWarning, match="column 4"):
        est = random_fit(X, grid=(11,))
    assert not est.lifting_map_[:, 4].any()
    with pytest.raises(InputError, match="of which 11 vary"):
        random_fit(X, grid=(12,))


def test_automatic_grid_says_what_it_took(X):
    with pytest.warns(FitWarning, match="line of 12"):
        est = random_fit(X, grid="auto")
    assert est.grid_.shape == (12,)


@pytest.mark.parametrize(
    ("change", "options", "word"),
    [
        (lambda X: np.where(np.arange(12) == 3, np.nan, X), {}, "column 3"),
        (lambda X: np.where(np.arange(300)[:, None] == 7, np.inf, X), {}, "row 7"),
        (lambda X: X, {"grid": (5, 5)}, "25 points"),
        (lambda X: X, {"grid": "5y5"}, "written|write it"),
        (lambda X: X, {"solver": "magic"}, "unknown"),
        (lambda X: X[:12], {}, "too few"),
        (lambda X: X[:, 0], {}, "2D array"),
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
    est.trace_ = {"a": np.float64(1.5), "b": np.arange(2)}
    est.save(tmp_path)
    assert json.loads((tmp_path / "estimator.json").read_text())["trace"] == {"a": 1.5, "b": [0, 1]}
