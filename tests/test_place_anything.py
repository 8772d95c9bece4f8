"""Whatever the numbers of rows and columns and the damage, the engine raises no raw error."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symlift import LatentDomain
from symlift.core.grid import Grid
from symlift.errors import FitWarning, InputError
from symlift.search.settings import PlaceSettings
from symlift.solvers.contract import REASONS
from symlift.solvers.fast.place.engine import place_columns
from symlift.solvers.fast.settings import DEFAULT

DAMAGES = (
    "none",
    "dead",
    "all dead",
    "duplicates",
    "noise",
    "index",
    "huge",
    "nan",
    "nan column",
    "nan row",
    "bits",
    "ties",
)
GRIDS = (
    Grid((4,)),
    Grid((9,), True),
    Grid((3, 3)),
    Grid((2, 5)),
    Grid((4, 4), True),
    Grid((3, 4), (True, False)),
    Grid((2, 2, 3)),
)
QUICK = PlaceSettings(restarts=3, channel_starts=2)


def damaged(n: int, d: int, damage: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = np.cumsum(rng.normal(size=(n, d)), axis=1)
    if damage == "dead":
        X[:, : max(1, d // 3)] = 1.0
    elif damage == "all dead":
        X[:] = 2.0
    elif damage == "duplicates":
        X[:, d // 2 :] = X[:, : d - d // 2]
    elif damage == "noise":
        X = rng.normal(size=(n, d))
    elif damage == "index":
        X[:, 0] = np.arange(n)
    elif damage == "huge":
        X *= 10.0 ** rng.integers(-30, 30, size=d)
    elif damage == "nan":
        X[rng.random(X.shape) < 0.3] = np.nan
    elif damage == "nan column":
        X[:, 0] = np.nan
    elif damage == "nan row":
        X[0] = np.nan
    elif damage == "bits":
        X = (X > 0).astype(float)
    elif damage == "ties":
        X = np.rint(X)
    return X


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    d=st.integers(1, 24),
    rows=st.floats(0, 1),
    grid=st.sampled_from(GRIDS),
    damage=st.sampled_from(DAMAGES),
    seed=st.integers(0, 1_000),
)
def test_only_input_errors_and_promised_shapes(
    d: int, rows: float, grid: Grid, damage: str, seed: int
) -> None:
    n = 2 + round(rows * max(3 * d - 2, 1))
    X = damaged(n, d, damage, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = place_columns(X, grid, np.random.default_rng(seed), settings=QUICK)
        except InputError:
            return
    p = found.placement
    assert p.coordinates.shape == (d, grid.ndim)
    assert all(a.shape == (d,) for a in (p.point, p.channel, p.confidence, p.reason, p.twin))
    assert set(p.reason) <= set(REASONS)
    out = np.isin(p.reason, ["dead", "noise", "index", "unplaced"])
    assert np.array_equal(p.point == -1, out)
    assert np.array_equal(np.isnan(p.coordinates).all(axis=1), out)
    assert ((p.point >= -1) & (p.point < grid.size)).all()
    assert ((p.confidence >= 0) & (p.confidence <= 1)).all()
    assert np.array_equal(p.twin >= 0, p.reason == "duplicate")
    W = np.asarray(found.W)
    assert W.shape == (grid.size * found.n_channels, d)
    assert np.isfinite(W).all()
    assert np.isfinite(found.mean).all()


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    d=st.integers(1, 16),
    rows=st.floats(0, 1),
    grid=st.sampled_from((*GRIDS, "auto")),
    damage=st.sampled_from(DAMAGES),
    seed=st.integers(0, 1_000),
)
def test_a_fit_of_anything_ends_or_is_refused_in_one_line(
    d: int, rows: float, grid: Grid | str, damage: str, seed: int
) -> None:
    """From 2 rows to three times as many as columns: fit, transform and diagnosis, or one
    InputError.
    """
    n = 2 + round(rows * max(3 * d - 2, 1))
    X = damaged(n, d, damage, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", FitWarning)
        try:
            options = {"settings": replace(DEFAULT, place=QUICK)}
            est = LatentDomain(
                grid, mixing="shuffled", random_state=seed, solver_options=options
            ).fit(X)
        except InputError:
            return
        signals = est.transform(X)
        found = est.diagnose(X)
    assert signals.shape == (n, est.grid_.size * est.n_channels_)
    assert np.isfinite(signals).all()
    assert 0 <= found.confidence <= 1
    assert len(est.placement_.point) == d
