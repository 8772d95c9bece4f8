"""The protocol of the baselines and the search with the truth: arithmetic on fixed inputs, edges,
refusals.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symlift.core.grid import Grid
from symlift.datasets import Observations, gsn
from symlift.errors import InputError
from symlift.metrics import signal_recovery
from symlift.metrics.generators import derivative
from symlift_paper.baselines import (
    SLOW,
    Baseline,
    BaselineResult,
    applicable,
    choose,
    get_baseline,
    score,
    try_all,
    tune,
    tuning,
)
from symlift_paper.baselines.figures import PAPER_TICA

pytestmark = pytest.mark.portable


@pytest.fixture(scope="module")
def data() -> Observations:
    return gsn(300, 9, random_state=0)


def scaled_identity(X, grid, rng, size):
    return BaselineResult(mean=np.zeros(X.shape[1]), lifting_map=size * np.eye(X.shape[1]))


def noisy(X, grid, rng, size):
    return BaselineResult(
        mean=np.zeros(X.shape[1]), lifting_map=size * rng.normal(size=(grid.size, X.shape[1]))
    )


# -- tuning ----------------------------------------------------------------------------------------


def test_tune_takes_the_best_score_and_keeps_them_all(data):
    baseline = Baseline("fixed", "signals", scaled_identity, ({"size": (1.0, 3.0, 2.0)},))
    found = tune(
        baseline,
        data,
        metric=lambda result, _, __: result.lifting_map[0, 0],
        rng=np.random.default_rng(0),
    )
    assert found.settings == {"size": 3.0}
    assert found.score == 3.0
    assert [(s.settings["size"], s.score) for s in found.scores] == [
        (1.0, 1.0),
        (3.0, 3.0),
        (2.0, 2.0),
    ]
    assert found.tuned_with_truth
    np.testing.assert_array_equal(found.result.lifting_map, 3 * np.eye(9))


def test_of_equal_scores_the_first_wins(data):
    baseline = Baseline(
        "fixed", "signals", scaled_identity, ({"size": (3.0, 1.0, 7.0)},)
    )  # apart by rounding
    assert tune(baseline, data, rng=np.random.default_rng(0)).settings == {"size": 3.0}


def test_metric_is_told_the_protocol(data):
    baseline = Baseline("fixed", "signals", scaled_identity, ({"size": (1.0,)},))
    seen = []
    tune(
        baseline,
        data,
        metric=lambda _, __, protocol: seen.append(protocol) or 0.0,
        protocol="global",
    )
    assert seen == ["global"]


def test_runs_do_not_depend_on_how_many_came_before(data):
    one = Baseline("noisy", "signals", noisy, ({"size": (1.0,)},))
    two = Baseline("noisy", "signals", noisy, ({"size": (1.0, 1.0)},))
    (single,) = try_all(one, data, np.random.default_rng(5))
    first, second = try_all(two, data, np.random.default_rng(5))
    np.testing.assert_array_equal(single.result.lifting_map, first.result.lifting_map)
    assert not np.array_equal(first.result.lifting_map, second.result.lifting_map)


def test_summary_is_ready_for_json(data):
    found = tune(get_baseline("covariance"), data, rng=np.random.default_rng(0))
    summary = json.loads(json.dumps(found.summary()))
    assert summary["tuned_with_truth"] is True
    assert summary["score"] == max(s["score"] for s in summary["scores"])
    assert len(summary["scores"]) == len(get_baseline("covariance").configurations()) == 18


def test_nothing_to_choose_from(data):
    with pytest.raises(InputError, match="no configurations"):
        choose("empty", [], data)


# -- scores ----------------------------------------------------------------------------------------


def test_signals_are_scored_by_recovery(data):
    result = noisy(data.X, data.grid, np.random.default_rng(1), 1.0)
    for protocol in ("paper", "global"):
        expected = signal_recovery(
            data.latent, data.X @ result.lifting_map.T, data.grid, protocol=protocol
        ).r
        assert score(result, data, protocol) == pytest.approx(expected)


def test_scores_are_taken_from_the_first_rows(data, monkeypatch):
    monkeypatch.setattr(tuning, "SCORED", {"paper": 100, "global": 200})
    perfect = BaselineResult(mean=np.zeros(9), lifting_map=np.eye(9))
    spoiled = replace(data, X=np.vstack([data.X[:200], data.X[200:][:, ::-1] * 3]))
    assert score(perfect, spoiled, "global") == pytest.approx(
        signal_recovery(data.latent[:200], data.X[:200], 9).r
    )
    half = replace(data, X=np.vstack([data.X[:100], data.X[100:][:, ::-1] * 3]))
    assert score(perfect, half, "paper") == score(perfect, data, "paper")
    assert score(perfect, half, "global") < score(perfect, data, "global")


def test_phases_are_scored_up_to_rotation_and_reflection():
    angles = np.linspace(0, 6, 50).astype(np.float32)
    ring = Observations(
        np.zeros((50, 3), np.float32), angles, None, Grid((3,), periodic=True), (True,), "ring"
    )
    assert score(BaselineResult(phases=1.0 - angles.astype(np.float64)), ring) == pytest.approx(1.0)


def test_generators_are_scored_against_the_exact_derivative():
    data = gsn(50, 15, periodic=True, transform="orthogonal", random_state=0)
    A = data.transform.T
    exact = A @ derivative(15, periodic=True, truth="exact") @ np.linalg.inv(A)
    assert score(BaselineResult(generators=-2 * exact[None]), data) == pytest.approx(1.0)


# -- protocol --------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 3), max_size=3), st.lists(st.integers(1, 3), min_size=1, max_size=2))
def test_every_combination_is_tried_once(first, second):
    families = tuple(
        {f"p{i}": tuple(range(n)) for i, n in enumerate(sizes)} for sizes in (first, second)
    )
    found = Baseline("b", "signals", scaled_identity, families).configurations()
    assert len(found) == np.prod(first, dtype=int) + np.prod(second)
    assert all(len([c for c in found if c == configuration]) <= 2 for configuration in found)


@pytest.mark.parametrize(
    "X",
    [
        np.zeros(5),
        np.zeros((1, 9)),
        np.full((4, 9), np.nan),
        np.zeros((4, 8)),
        np.array([["a"] * 9] * 3),
    ],
)
def test_bad_input_is_refused(X):
    with pytest.raises(InputError):
        get_baseline("random").run(X, Grid((9,)), {}, np.random.default_rng(0))


def test_unknown_names_are_refused(data):
    with pytest.raises(InputError, match="glasso"):
        get_baseline("lasso")
    for name, settings in (
        ("glasso", {"form": "oblique"}),
        ("covariance", {"variant": "colour"}),
        ("tica", {"pool": 4}),
    ):
        with pytest.raises(InputError):
            get_baseline(name).run(data.X, data.grid, settings, np.random.default_rng(0))


def test_only_signals_can_be_transformed():
    with pytest.raises(InputError, match="finds no signals"):
        BaselineResult(phases=np.zeros(3)).transform(np.zeros((3, 2)))


def test_applicable_follows_the_kind_of_data(data):
    def names(observations, **options):
        return {baseline.name for baseline in applicable(observations, **options)}

    angles = Observations(data.X, data.X[:, 0], None, Grid((9,), periodic=True), (True,), "angles")
    bits = Observations(
        np.zeros((10, 32), np.float32),
        np.zeros((10, 4), np.float32),
        None,
        Grid((2, 2)),
        (False,) * 2,
        "bits",
    )
    image = gsn(10, (3, 3), random_state=0)
    assert names(angles) == {"pca-phase", "isomap-phase", "umap-phase"}
    assert names(bits) == set()
    assert names(image) == {"glasso", "covariance", "isomap", "umap", "ica", "random", "tica"}
    assert names(data, slow=False) == names(data) - set(SLOW)


def test_figures_of_the_paper_name_what_exists():
    from symlift_paper import EXPERIMENTS

    assert set(PAPER_TICA) <= set(EXPERIMENTS)
    configurations = {(c["rate"], c["pool"]) for c in get_baseline("tica").configurations()}
    assert sum(map(len, PAPER_TICA.values())) == 24
    assert all(set(row) == configurations for row in PAPER_TICA.values())
