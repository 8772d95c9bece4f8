"""Arrays and settings from Python: each wrong one is refused in one line."""

from __future__ import annotations

import datetime as dt
import decimal
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from scipy import sparse
from sklearn.exceptions import NotFittedError

from symlift import Grid, InputError, LatentDomain, LatentDomains, Sphere
from symlift.core.group import TranslationGroup
from symlift.core.model import LiftedModel
from symlift.datasets import gsn
from symlift.errors import FitWarning

X = gsn(300, (9,), random_state=0).X.astype(np.float64)


def changed(row: int, column: int, value: float, dtype: Any = np.float64) -> np.ndarray:
    out = X.astype(dtype)
    out[row, column] = value
    return out


ARRAYS: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "a word": lambda: "rows",
    "a number": lambda: 3.0,
    "a mapping": lambda: {"x": [1, 2]},
    "an empty list": list,
    "ragged lists": lambda: [[1, 2], [3]],
    "lists of words": lambda: [["a", "b"], ["c", "d"]],
    "no rows": lambda: X[:0],
    "no columns": lambda: X[:, :0],
    "one row": lambda: X[:1],
    "one axis": lambda: X[0],
    "three axes": lambda: X.reshape(300, 3, 3),
    "no axes": lambda: np.array(3.0),
    "complex numbers": lambda: X * 1j,
    "objects": lambda: np.full((20, 3), None),
    "texts": lambda: X.astype("U5"),
    "dates": lambda: np.zeros((20, 3), dtype="datetime64[s]"),
    "records": lambda: np.zeros(20, dtype=[("a", float), ("b", float)]),
    "a sparse matrix": lambda: sparse.csr_array(X),
    "infinity": lambda: changed(5, 3, np.inf),
    "minus infinity": lambda: changed(5, 3, -np.inf),
    "infinity in single precision": lambda: changed(5, 3, np.inf, np.float32),
    "infinity in half precision": lambda: changed(5, 3, np.inf, np.float16),
    "an outlier of 1e300": lambda: changed(5, 3, 1e300),
    "an outlier of -1e300": lambda: changed(5, 3, -1e300),
    "numbers of 1e300": lambda: X * 1e300,
    "numbers of 1e-300": lambda: X * 1e-300,
    "denormal numbers": lambda: X * 1e-310,
    "the least number": lambda: (X > X.mean()) * 5e-324,
    "the largest number": lambda: np.where(X > X.mean(), 1.0, -1.0) * np.finfo(np.float64).max,
    "all equal": lambda: np.ones((50, 9)),
    "all zero": lambda: np.zeros((50, 9)),
    "all zero bytes": lambda: np.zeros((50, 9), dtype=np.uint8),
    "all true": lambda: np.ones((50, 9), dtype=bool),
    "one column varies": lambda: np.where(np.arange(9) == 4, X, 1.0),
    "one column": lambda: X[:, :1],
    "nothing but gaps": lambda: np.full((50, 9), np.nan),
    "gaps and constants": lambda: np.where(X > 0, 1.0, np.nan),
    "a masked outlier": lambda: np.ma.masked_greater(changed(5, 3, 1e300), 1e200),
}


NAMES = list("abcdefghi")


def frame(**columns: Any) -> pd.DataFrame:
    """A data frame with some columns replaced."""
    return pd.DataFrame(X, columns=NAMES).assign(**columns)


def polar_frame(column: Any) -> pl.DataFrame:
    return pl.DataFrame(X, schema=NAMES).with_columns(column.alias("b"))


def arrow_column(entry: Any, kind: pa.DataType) -> pd.DataFrame:
    return frame(b=pd.array([entry] * 300, dtype=pd.ArrowDtype(kind)))


def objects(entry: Any) -> pd.DataFrame:
    return frame(b=pd.Series([1.0] * 299 + [entry], dtype=object))


LISTS = pl.Series([[1, 2]] * 300)
HALF = "column 'b' holds "
#: what libraries of tables and tensors can hold, and what the one line says of it
FRAMES: dict[str, tuple[Callable[[], Any], str]] = {
    "late text": (lambda: objects("x\x1b[31m"), HALF + "text"),
    "dates among objects": (lambda: objects(dt.date(2020, 1, 1)), HALF + "dates"),
    "lists": (lambda: objects([1, 2]), HALF + "lists"),
    "arrays": (lambda: objects(np.ones(3)), HALF + "lists"),
    "mappings": (lambda: objects({}), HALF + "objects of type dict"),
    "complex objects": (lambda: objects(1j), HALF + "complex values"),
    "huge integers": (lambda: objects(10**400), HALF + "integers beyond floats"),
    "complex": (lambda: frame(b=X[:, 1] * 1j), HALF + "complex values"),
    "intervals": (lambda: frame(b=pd.interval_range(0, 300)), HALF + "objects of type Interval"),
    "periods": (lambda: frame(b=pd.period_range("2020", periods=300, freq="D")), HALF + "dates"),
    "time zones": (lambda: frame(b=pd.date_range("2020", periods=300, tz="UTC")), HALF + "dates"),
    "categories": (lambda: frame(b=pd.Categorical(["u", "v"] * 150)), HALF + "text"),
    "arrow texts": (lambda: arrow_column("x", pa.string()), HALF + "text"),
    "arrow lists": (lambda: arrow_column([1, 2], pa.list_(pa.int64())), HALF + "lists"),
    "arrow dates": (
        lambda: arrow_column(dt.datetime(2020, 1, 1), pa.timestamp("s")),
        HALF + "dates",
    ),
    "an arrow table": (lambda: pa.table({"a": X[:, 0], "b": ["x"] * 300}), HALF + "text"),
    "no columns": (lambda: frame()[[]], "0 feature"),
    "nothing": (lambda: pd.DataFrame(), "0 feature"),
    "one column": (lambda: frame()["a"], "Reshape your data"),
    "a name twice": (lambda: pd.DataFrame(X, columns=["a\nb"] * 9), r"'a\\nb': rename"),
    "polars texts": (lambda: polar_frame(pl.lit("x")), HALF + "text"),
    "polars dates": (lambda: polar_frame(pl.lit(dt.date(2020, 1, 1))), HALF + "dates"),
    "polars lists": (lambda: polar_frame(LISTS), HALF + "lists"),
    "polars arrays": (lambda: polar_frame(LISTS.cast(pl.Array(pl.Int64, 2))), HALF + "lists"),
    "polars objects": (
        lambda: polar_frame(pl.Series([object()] * 300, dtype=pl.Object)),
        HALF + "objects of type object",
    ),
    "polars series": (lambda: pl.Series(X[:, 0]), "Reshape your data"),
    "lazy": (lambda: polar_frame(pl.lit(1.0)).lazy(), r"X\.collect"),
    "gradients": (lambda: torch.tensor(X, requires_grad=True), "detach"),
    "sparse tensors": (lambda: torch.tensor(X).to_sparse(), "to_dense"),
    "tensors without numbers": (lambda: torch.empty(300, 9, device="meta"), "cannot be read"),
    "complex tensors": (lambda: torch.tensor(X) * 1j, "Complex data not supported"),
    "eight bits": (lambda: torch.tensor(X).to(torch.float8_e4m3fn), "cannot be read"),
    "images": (lambda: torch.zeros(30, 3, 3), r"give X\.reshape\(30, -1\)"),
    "a path": (lambda: Path("x.npy"), "read the file first"),
    "a generator": (lambda: (row for row in X), "of type generator, no array"),
    "lists of words": (lambda: [[1, 2], [3, "x\ny"]], r"row 2, column 2 of X holds text, 'x\\ny'"),
    "lists of lists": (lambda: [[1, [2, 3]], [3, 4]], "row 1, column 2 of X holds lists"),
    "ragged lists": (lambda: [[1, 2], [3]], "of type list, cannot be read as numbers"),
    "new texts": (lambda: X.astype(np.dtypes.StringDType()), "not numeric"),
}


@pytest.mark.parametrize("case", FRAMES)
def test_tables_that_hold_something_else_are_refused_in_one_line(case: str) -> None:
    make, words = FRAMES[case]
    with pytest.raises(InputError, match=words) as caught:
        LatentDomain((9,), solver="random", random_state=0).fit(make())
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 400


@pytest.mark.parametrize(
    "make",
    [
        lambda: frame().astype("double[pyarrow]"),
        lambda: frame().astype("Float64"),
        lambda: frame().astype(object),
        lambda: frame().assign(b=[decimal.Decimal(float(entry)) for entry in X[:, 1]]),
        lambda: pl.DataFrame(X, schema=NAMES),
        lambda: pa.table(dict(zip(NAMES, X.T, strict=True))),
        lambda: pa.record_batch(dict(zip(NAMES, X.T, strict=True))),
        lambda: torch.tensor(X),
        lambda: X.astype(object),
        lambda: X.astype(np.longdouble),
        X.tolist,
    ],
)
def test_every_kind_of_table_gives_the_same(make: Callable[[], Any]) -> None:
    given = make()
    found = LatentDomain((9,), solver="random", random_state=0).fit(given)
    expected = LatentDomain((9,), solver="random", random_state=0).fit(X).transform(X)
    assert np.allclose(found.transform(given), expected)
    named = getattr(found, "feature_names_in_", NAMES)
    assert list(named) == NAMES


#: rows that have so little in them that moments vanish, matrices are singular, medians are zero
POOR: dict[str, Callable[[], np.ndarray]] = {
    "two rows again and again": lambda: np.repeat(X[:2], 150, 0),
    "one step": lambda: np.outer(np.arange(300) >= 150, np.ones(9)),
    "one row that differs": lambda: np.concatenate([np.zeros((299, 9)), X[:1]]),
    "a ramp": lambda: np.arange(300)[:, None] + np.arange(9),
    "one row and its negative": lambda: np.tile([[1.0, -1.0], [-1.0, 1.0]], (150, 9))[:, :9],
    "a few values far away": lambda: (X * 1e3).astype(np.int64) + 2**62,
}


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("case", POOR)
def test_poor_rows_are_fitted_without_evidence(case: str, periodic: bool) -> None:
    rows = POOR[case]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        est = LatentDomain((9,), periodic=periodic, random_state=0).fit(rows)
        assert np.isfinite(est.transform(rows)).all()
        assert est.diagnose(rows).verdict.value != "present"
    if case == "a few values far away":
        with pytest.raises(InputError, match="along one direction only"):
            LatentDomain((9,), periodic=True, solver="ring", random_state=0).fit(rows)
        return
    for mixing in ("orthogonal", "linear"):
        with pytest.raises(InputError, match="along one direction only"):
            LatentDomain((9,), periodic=periodic, mixing=mixing, random_state=0).fit(rows)
    if periodic:
        with pytest.raises(InputError, match="along one direction only"):
            LatentDomain((9,), periodic=True, solver="ring", random_state=0).fit(rows)


@pytest.mark.parametrize("solver", ["fast", "random"])
@pytest.mark.parametrize("case", ARRAYS)
def test_arrays_that_cannot_be_fitted_are_refused_in_one_line(case: str, solver: str) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        LatentDomain((9,), solver=solver, random_state=0).fit(ARRAYS[case]())
    message = str(caught.value)
    assert message
    # scikit-learn explains its own in a few lines
    assert message.count("\n") <= 3


SETTINGS: dict[str, dict[str, Any]] = {
    "unknown solver": {"solver": "magic"},
    "solver a number": {"solver": 3},
    "solver None": {"solver": None},
    "unknown mixing": {"mixing": "bent"},
    "mixing None": {"mixing": None},
    "grid a word": {"grid": "big"},
    "grid of nothing": {"grid": ()},
    "grid of four": {"grid": (3, 3, 3, 3)},
    "grid of one point": {"grid": (1,)},
    "grid below zero": {"grid": (-9,)},
    "grid of floats": {"grid": (4.5,)},
    "grid NaN": {"grid": (np.nan,)},
    "grid infinite": {"grid": (np.inf,)},
    "grid of words": {"grid": ("9",) * 4},
    "grid None": {"grid": None},
    "grid too large": {"grid": (10,)},
    "grid of 10^12": {"grid": (10**12,)},
    "periodic of two": {"periodic": (True, False)},
    "periodic a word": {"periodic": object()},
    "seed a word": {"random_state": "x"},
    "seed below zero": {"random_state": -1},
    "seed of 2^40": {"random_state": 2**40},
    "seed a float": {"random_state": 1.5},
    "options unknown": {"solver_options": {"colour": "red"}},
    "options a word": {"solver_options": "fast"},
    "options of numbers": {"solver_options": {1: 2}},
    "channels below zero": {"channels": -1},
    "channels a word": {"channels": "x"},
    "channels a fraction": {"channels": 1.5},
    "channels NaN": {"channels": float("nan")},
}


@pytest.mark.parametrize("case", SETTINGS)
def test_settings_that_cannot_be_used_are_refused_in_one_line(case: str) -> None:
    settings = {"grid": (9,), "solver": "random", "random_state": 0} | SETTINGS[case]
    with pytest.raises((ValueError, TypeError)) as caught:
        LatentDomain(**settings).fit(X)
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def fitted() -> LatentDomain:
    return LatentDomain((9,), solver="random", random_state=0).fit(X)


USES: dict[str, Callable[[LatentDomain], Any]] = {
    "transform of other columns": lambda e: e.transform(X[:, :5]),
    "transform of one axis": lambda e: e.transform(X[0]),
    "transform of infinity": lambda e: e.transform(changed(1, 1, np.inf)),
    "transform of a gap": lambda e: e.transform(changed(1, 1, np.nan)),
    "transform of words": lambda e: e.transform(X.astype("U3")),
    "transform of too much": lambda e: e.transform(np.full((3, 9), 1.7e308)),
    "shift by too many": lambda e: e.shift(X, (1.0, 2.0)),
    "shift by nothing": lambda e: e.shift(X, ()),
    "shift by NaN": lambda e: e.shift(X, np.nan),
    "shift by infinity": lambda e: e.shift(X, np.inf),
    "shift by a word": lambda e: e.shift(X, "far"),
    "inverse of other points": lambda e: e.inverse_transform(X[:, :5]),
    "inverse of a gap": lambda e: e.inverse_transform(changed(1, 1, np.nan)),
    "inverse of words": lambda e: e.inverse_transform(X.astype("U3")),
    "grid of other points": lambda e: e.to_grid(X[:, :5]),
    "phase of a line": lambda e: e.phase(X),
    "names too few": lambda e: e.name_columns(["a"]),
    "names a number": lambda e: e.name_columns(3),
    "score of one row": lambda e: e.score(X[:1]),
    "score of too much": lambda e: e.score(X * 1e300),
    "diagnosis of one row": lambda e: e.diagnose(X[:1]),
    "diagnosis of too much": lambda e: e.diagnose(X * 1e200),
    "shift by a list of words": lambda e: e.shift(X, ["a"]),
    "shift by a matrix": lambda e: e.shift(X, np.ones((2, 2))),
    "shift by an imaginary step": lambda e: e.shift(X, 1j),
    "shift by None": lambda e: e.shift(X, None),
    "field at words": lambda e: e.field(X, [["a"]]),
    "inverse of ragged lists": lambda e: e.inverse_transform([[1], [2, 3]]),
    "inverse of None": lambda e: e.inverse_transform(None),
    "grid of None": lambda e: e.to_grid(None),
    "kernel of another size": lambda e: e.model_.kernel(np.eye(5)),
    "score of other columns": lambda e: e.score(X[:, :5]),
}


@pytest.mark.parametrize("case", USES)
def test_wrong_use_of_a_fit_is_refused_in_one_line(fitted: LatentDomain, case: str) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        USES[case](fitted)
    assert str(caught.value).count("\n") <= 3


def test_rows_of_one_direction_have_no_places_on_a_sphere() -> None:
    rng = np.random.default_rng(0)
    rows = np.outer(rng.normal(size=300), rng.normal(size=9))
    with pytest.raises(InputError, match="along one direction only"):
        LatentDomain(Sphere(2), random_state=0).fit(rows)
    never_met = np.where(np.arange(300)[:, None] % 9 != np.arange(9), np.nan, X)
    with pytest.raises(InputError, match="needs whole rows"):
        LatentDomain(Sphere(2), random_state=0).fit(never_met)


def test_rows_that_are_refused_are_not_kept() -> None:
    """A batch that cannot be added leaves the rows before it as they were."""
    est = LatentDomain((9,), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        est.partial_fit(X[:100])
        before = est.stream_.moments.scatter.copy()
        for rows in (X * 1e200, changed(1, 1, np.nan), X[:, :3], X[:0]):
            with pytest.raises(ValueError, match=r"X |0 sample"):
                est.partial_fit(rows)
        assert est.stream_.rows == 100
        assert np.array_equal(est.stream_.moments.scatter, before)

        def interrupted(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LatentDomain, "fit", interrupted)
            with pytest.raises(KeyboardInterrupt):
                est.partial_fit(X)
        assert est.stream_.rows == 100
        assert np.array_equal(est.stream_.moments.scatter, before)
        assert est.partial_fit(X).stream_.rows == 400


def test_first_rows_that_are_refused_or_too_few_are_no_fit(tmp_path: Path) -> None:
    """Else a later call says `AttributeError`, and other columns cannot be given any more."""
    est = LatentDomain((9,), mixing="linear", random_state=0)
    with pytest.raises(InputError, match="NaN"):
        est.partial_fit(changed(1, 1, np.nan))
    assert est.__dict__ == LatentDomain((9,), mixing="linear", random_state=0).__dict__
    est.partial_fit(X[:4])
    for use in (est.transform, est.score, est.diagnose, est.report, est.save):
        with pytest.raises(NotFittedError):
            use(tmp_path / "it" if use in (est.report, est.save) else X)
    assert list(tmp_path.iterdir()) == []


def test_parts_of_a_handful_of_rows_are_no_division_by_zero() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        for rows in (3, 4, 5, 9):
            LatentDomains(random_state=0).fit(X[:rows])


@pytest.mark.parametrize("case", ["threes", "negatives"])
def test_columns_that_repeat_a_few_are_placed_in_more_channels(case: str) -> None:
    rows = X[:, np.arange(9) % 3] if case == "threes" else np.hstack([X[:, :4], -X[:, :5]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        est = LatentDomain((3,), channels=3, random_state=0).fit(rows)
    assert np.isfinite(est.transform(rows)).all()


def test_a_name_that_no_file_can_hold_is_written_escaped(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        est = LatentDomain((9,), random_state=0).fit(X[:60], names=["\ud800", *NAMES[1:]])
    assert est.placement_ is not None
    est.placement_.to_csv(tmp_path / "placement.csv")
    assert "\\ud800" in (tmp_path / "placement.csv").read_text(encoding="utf-8")


MODELS: dict[str, Callable[[], Any]] = {
    "a map of zeros": lambda: LiftedModel.from_lifting_map(np.zeros((9, 9)), Grid((9,))),
    "a map of NaN": lambda: LiftedModel.from_lifting_map(np.full((9, 9), np.nan), Grid((9,))),
    "a map of other rows": lambda: LiftedModel.from_lifting_map(np.eye(8), Grid((9,))),
    "a map of one axis": lambda: LiftedModel.from_lifting_map(np.ones(9), Grid((9,))),
    "planes not square": lambda: TranslationGroup(np.ones((3, 2)), np.ones((1, 1))),
    "too many frequencies": lambda: TranslationGroup(np.eye(3), np.ones((1, 2))),
    "generators not skew": lambda: TranslationGroup.from_generators(np.eye(3)),
    "generators of NaN": lambda: TranslationGroup.from_generators(np.full((3, 3), np.nan)),
    "generators not square": lambda: TranslationGroup.from_generators(np.ones((3, 2))),
}


@pytest.mark.parametrize("case", MODELS)
def test_models_that_are_none_are_refused_in_one_line(case: str) -> None:
    with pytest.raises(ValueError, match=r".+") as caught:
        MODELS[case]()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "dtype",
    [
        np.float16,
        np.float32,
        np.float64,
        np.int8,
        np.uint8,
        np.int16,
        np.int32,
        np.int64,
        np.uint64,
        bool,
    ],
)
@pytest.mark.parametrize("order", ["C", "F", "strided", "read-only", "swapped"])
def test_every_kind_of_array_gives_the_same(dtype: Any, order: str) -> None:
    whole = np.clip(np.round(8 * X), -100, 100)
    rows = (whole > 0) if dtype is bool else np.abs(whole).astype(dtype)
    expected = (
        LatentDomain((9,), solver="random", random_state=0)
        .fit(rows.astype(np.float64))
        .transform(rows.astype(np.float64))
    )
    given = {
        "C": lambda: np.ascontiguousarray(rows),
        "F": lambda: np.asfortranarray(rows),
        "strided": lambda: np.repeat(rows, 2, axis=1)[:, ::2],
        "swapped": lambda: rows.astype(np.dtype(dtype).newbyteorder()),
        "read-only": lambda: rows.copy(),
    }[order]()
    given.flags.writeable = order != "read-only"
    before = given.copy()
    found = LatentDomain((9,), solver="random", random_state=0).fit(given).transform(given)
    assert np.allclose(found, expected, atol=1e-3 * np.abs(expected).max())
    assert np.array_equal(given, before)


@pytest.mark.parametrize("rows", [4, 15, 16, 17])
def test_few_rows_are_placed_or_refused_in_one_line(rows: int) -> None:
    few = gsn(rows, (15,), transform="permutation", random_state=0).X
    for mixing in ("orthogonal", "linear"):
        with pytest.raises(
            InputError,
            match=rf"^{rows} rows are too few for the covariance of 15 columns: give at least 18$",
        ):
            LatentDomain((15,), mixing=mixing, random_state=0).fit(few)
    if rows != 16:
        return  # one of them placed shows it, and takes a second
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # so few rows may show nothing
        assert LatentDomain((15,), random_state=0).fit(few).placement_ is not None
