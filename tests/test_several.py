"""Several domains in one table: parts among columns, parts among subspaces, files, command line."""

from __future__ import annotations

import csv
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from typer.testing import CliRunner

from symlift import InputError, LatentDomain, LatentDomains, load
from symlift.cli.app import app
from symlift.datasets import gsn, random_orthogonal
from symlift.errors import FitWarning
from symlift.metrics import signal_recovery
from symlift.search.links import column_links, level_of
from symlift.search.parts import column_parts, parts_of_number
from symlift.search.row_noise import RowNoise
from symlift.search.rows import score_rows
from symlift.search.settings import PlaceSettings
from symlift.statistics.correlations import correlations, fisher, partial_statistics
from symlift.statistics.dependence import independent_pairs

SETTINGS = PlaceSettings()


def links_of(X):
    return column_links(score_rows(X, np.random.default_rng(0), SETTINGS))


def parts_of(X):
    return column_parts(links_of(X), SETTINGS)


def table(n=1_200, seed=0, common=0.0):
    """Two lines of 12, a grid of 5x5, a dead column and six unrelated columns, shuffled."""
    rng = np.random.default_rng(seed)
    fields = [gsn(n, s, random_state=seed * 10 + k).X for k, s in enumerate([(12,), (12,), (5, 5)])]
    X = np.concatenate([x / x.std() for x in fields], axis=1)
    X += common * rng.normal(size=(n, 1))
    X = np.concatenate([X, np.ones((n, 1)), rng.normal(size=(n, 6))], axis=1)
    part = np.repeat([1, 2, 0, -1], [12, 12, 25, 7])
    shuffle = rng.permutation(len(part))
    return X[:, shuffle], part[shuffle]


def same_partition(a, b):
    """Whether labels agree up to the numbers of the parts; -1 is -1."""
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    return len(pairs) == len(set(a)) == len(set(b)) and all((x < 0) == (y < 0) for x, y in pairs)


def test_columns_of_each_domain_are_one_part_and_unrelated_ones_none():
    for seed in range(3):
        X, part = table(seed=seed)
        assert same_partition(parts_of(X), part)


def test_a_common_signal_does_not_join_domains():
    X, part = table(6_000, common=0.5)
    linked = np.abs(links_of(X).z) > level_of(len(part) ** 2, 0.01)
    assert linked[np.ix_(part == 1, part == 2)].any()  # by correlations alone, they are linked
    assert same_partition(parts_of(X), part)


@pytest.mark.parametrize("slow", [False, True])
def test_independent_columns_have_no_parts(slow):
    X = np.random.default_rng(3).normal(size=(400, 60))
    assert (parts_of(np.cumsum(X, axis=0) if slow else X) == -1).all()


def test_one_domain_is_never_split():
    rng = np.random.default_rng(1)
    x = gsn(300, (12, 12), random_state=1).X
    noisy = x + x.std() * rng.normal(size=x.shape)
    assert (parts_of(noisy) == 0).all()
    y = gsn(800, (6, 6), random_state=1).X
    assert (parts_of(y + y.std() * rng.normal(size=(800, 1))) == 0).all()
    line = rng.normal(size=(1_000, 30))
    for k in range(1, 30):
        r = 0.3 if k == 15 else 0.9
        line[:, k] = r * line[:, k - 1] + np.sqrt(1 - r * r) * line[:, k]
    assert (parts_of(line) == 0).all()


def test_a_number_of_parts_is_kept_to():
    X, part = table(1_200, common=0.2)
    links = links_of(X)
    assert same_partition(parts_of_number(links, 3, SETTINGS), part)
    for number in (1, 2, 4):
        labels = parts_of_number(links, number, SETTINGS)
        assert set(labels[part >= 0]) == set(range(number))
    with pytest.raises(InputError, match=r"parts=50: .* at most .*: ask for fewer"):
        parts_of_number(links, 50, SETTINGS)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_parts_do_not_depend_on_order_sign_or_scale(seed):
    rng = np.random.default_rng(seed)
    X, _ = table(600, seed=4)
    shuffle = rng.permutation(X.shape[1])
    scaled = X[:, shuffle] * rng.choice([-3.0, 0.1, 20.0], X.shape[1])
    assert same_partition(parts_of(scaled), parts_of(X)[shuffle])


def test_links_between_independent_groups_are_standard_normal():
    rng, values = np.random.default_rng(0), []
    for _ in range(60):
        mixing = rng.normal(size=(2, 6, 6)) + 1.0
        X = np.concatenate([rng.normal(size=(300, 6)) @ m for m in mixing], axis=1)
        values.append(links_of(X).between(np.repeat([0, 1], 6))[0, 1])
    assert abs(np.mean(values)) < 0.5
    assert 0.6 < np.std(values) < 1.4


def test_independent_rows_of_pairs():
    rng = np.random.default_rng(0)
    walk = np.zeros((2_000, 40))
    for k in range(1, 2_000):  # autocorrelations 0.9^k: 1 + 2 Σ 0.81^k = 9.5 rows count as one
        walk[k] = 0.9 * walk[k - 1] + rng.normal(size=40)
    worth = independent_pairs(walk)[~np.eye(40, dtype=bool)]
    assert 0.8 < np.median(worth) / (2_000 / 9.53) < 1.25
    c = np.corrcoef(walk, rowvar=False)[~np.eye(40, dtype=bool)]
    assert 0.8 < np.std(c * np.sqrt(worth)) < 1.2


def test_noise_of_sums_over_pairs_is_what_other_rows_show():
    rng, d = np.random.default_rng(0), 6
    mixing = 0.5 * rng.normal(size=(d, d)) + np.eye(d) + 0.5
    weights = rng.normal(size=(3, d, d))
    weights = weights + weights.transpose(0, 2, 1)
    for w in weights:
        np.fill_diagonal(w, 0.0)
        w -= w.sum() / (d * (d - 1))
        np.fill_diagonal(w, 0.0)

    def scores():
        X = rng.normal(size=(600, d)) @ mixing
        return (X - X.mean(axis=0)) / X.std(axis=0)

    def total(X):
        c = correlations(X, None)
        return np.sum(weights * np.stack([fisher(c), *partial_statistics(c, (0.03, 0.3))]))

    expected = np.std([total(scores()) for _ in range(200)])
    X = scores()
    noise = RowNoise(X, correlations(X, None), (0.03, 0.3), len(X)).variance(weights)
    assert 0.75 < np.sqrt(noise) / expected < 1.33


# -- the estimator ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fit():
    X, part = table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return X, part, LatentDomains(random_state=0).fit(X)


def test_each_part_is_a_fitted_domain(fit):
    X, part, est = fit
    assert same_partition(est.labels_, part)
    assert sorted(str(domain.grid_) for domain in est.domains_) == ["12", "12", "5x5"]
    assert [domain.n_features_in_ for domain in est.domains_] == [25, 12, 12]
    Y = est.transform(X)
    first = est.domains_[0].transform(X[:, est.labels_ == 0])
    assert Y.shape == (len(X), 49) == (len(X), est.n_outputs_)
    assert np.array_equal(Y[:, :25], first)
    names = est.get_feature_names_out()
    assert (names[0], names[25], len(set(names))) == ("part0__r0c0", "part1__p0", 49)
    assert [one.verdict.value for one in est.diagnose(X)] == ["present"] * 3


def test_saved_domains_come_back(fit, tmp_path):
    X, _, est = fit
    est.save(tmp_path)
    again = load(tmp_path)
    assert isinstance(again, LatentDomains)
    assert np.array_equal(again.labels_, est.labels_)
    assert np.array_equal(again.transform(X), est.transform(X))
    with pytest.raises(InputError, match="overwrite=True"):
        est.save(tmp_path)
    labels = np.where(est.labels_ > 0, est.labels_ - 1, -1)
    two = LatentDomains(labels, grid=12, mixing="shuffled")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        two.fit(X).save(tmp_path, overwrite=True)
    assert len(load(tmp_path).domains_) == 2
    assert not (tmp_path / "parts" / "002").exists()
    (tmp_path / "parts.json").write_text("{}")
    with pytest.raises(InputError, match=r"parts\.json is damaged"):
        load(tmp_path)


def test_reports_lead_to_the_page_of_each_part(fit, tmp_path):
    page = fit[2].report(tmp_path / "page.html").read_text()
    assert "56 columns form 3 parts; 7 belong to none" in page
    for k in range(3):
        assert f'href="page-part{k}.html"' in page
        assert (tmp_path / f"page-part{k}.html").is_file()


def test_settings_follow_scikit_learn(fit):
    est = clone(fit[2]).set_params(parts=3, grid=(12,))
    assert est.get_params()["parts"] == 3
    assert not hasattr(est, "labels_")
    assert est.__sklearn_tags__().input_tags.allow_nan
    assert not LatentDomains(mixing="linear").__sklearn_tags__().input_tags.allow_nan


def test_gaps_are_read_over(fit):
    X, part, _ = fit
    X = X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.02] = np.nan
    assert same_partition(parts_of(X), part)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ("many", "parts='many' is not understood"),
        (0, "parts=0 is not positive"),
        ([0, 1], "shape"),
        (np.zeros(56), "whole numbers"),
        (np.r_[np.full(28, 0), np.full(28, 2)], "without a gap"),
        (np.r_[np.zeros(55, int), 1], "part 1 has one column only"),
        (True, "not understood"),
    ],
)
def test_wrong_parts_are_refused_in_one_line(fit, parts, words):
    with pytest.raises(InputError, match=words) as error:
        LatentDomains(parts).fit(fit[0])
    assert "\n" not in str(error.value)


def test_nothing_to_find_is_a_warning():
    X = np.random.default_rng(0).normal(size=(300, 20))
    with pytest.warns(FitWarning, match="there are no parts"):
        est = LatentDomains().fit(X)
    assert est.transform(X).shape == (300, 0)
    assert est.diagnose(X) == est.domains_ == []


# -- behind a dense mixing -------------------------------------------------------------------------


def test_independent_lines_behind_one_rotation(tmp_path):
    lines = [gsn(12_000, (15,), random_state=k) for k in (1, 2)]
    X = np.concatenate([line.X for line in lines], axis=1) @ random_orthogonal(30, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        est = LatentDomains(mixing="orthogonal", grid=15, random_state=0).fit(X)
    assert len(est.domains_) == 2
    assert (est.labels_ == -1).all()
    whole = np.concatenate(est.maps_, axis=1)
    np.testing.assert_allclose(whole.T @ whole, np.eye(30), atol=1e-8)
    halves = np.split(est.transform(X), 2, axis=1)
    r = [[signal_recovery(line.latent, y, line.grid).r for y in halves] for line in lines]
    assert np.max(r, axis=1).min() > 0.95
    assert np.min(r, axis=1).max() < 0.2
    est.save(tmp_path)
    assert np.array_equal(load(tmp_path).transform(X), est.transform(X))
    with pytest.raises(InputError, match="mixtures belong to none"):
        LatentDomains(np.zeros(30, int), mixing="orthogonal").fit(X)


def test_one_line_behind_a_rotation_is_one_part():
    from symlift.solvers.fast.subspaces import independent_subspaces

    X = gsn(8_000, (24,), transform="orthogonal", random_state=0).X
    maps = independent_subspaces(X - X.mean(axis=0), None, True, np.random.default_rng(0))
    assert [one.shape for one in maps] == [(24, 24)]


# -- the command line ------------------------------------------------------------------------------


def test_recover_parts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, part = table()
    np.save("x.npy", X)
    runner = CliRunner()
    made = runner.invoke(app, ["recover", "x.npy", "--parts", "auto", "--out", "run", "--json"])
    assert made.exit_code == 0, made.output
    summary = json.loads(made.stdout.splitlines()[-1])
    assert [one["columns"] for one in summary["parts"]] == [25, 12, 12]
    assert {one["verdict"] for one in summary["parts"]} == {"present"}
    rows = list(csv.DictReader(Path("run/placement.csv").read_text().splitlines()))
    assert list(rows[0])[:5] == ["column", "name", "part", "axis0", "axis1"]
    assert same_partition(np.array([int(row["part"]) for row in rows]), part)
    assert sorted(row["reason"] for row in rows if row["part"] == "-1") == ["dead", *["noise"] * 6]
    assert isinstance(load("run"), LatentDomains)
    lifted = runner.invoke(app, ["transform", "run", "x.npy", "--out", "y.npy"])
    assert lifted.exit_code == 0, lifted.output
    np.testing.assert_allclose(np.load("y.npy"), load("run").transform(X))
    # one domain takes the place of several, and nothing of them stays
    again = ["recover", "x.npy", "--grid", "7x8", "--out", "run", "--overwrite", "--no-check"]
    assert runner.invoke(app, [*again, "--mixing", "shuffled", "--no-report"]).exit_code == 0
    assert isinstance(load("run"), LatentDomain)
    assert not (tmp_path / "run" / "parts").exists()


@pytest.mark.parametrize("wrong", [["--parts", "0"], ["--parts", "x"], ["--parts", "900"]])
def test_recover_refuses_wrong_parts(tmp_path, monkeypatch, wrong):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", table(300)[0])
    done = CliRunner().invoke(app, ["recover", "x.npy", *wrong, "--out", "run"])
    assert isinstance(done.exception, InputError) or done.exit_code == 2
    assert not (tmp_path / "run").exists()
