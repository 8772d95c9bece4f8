"""What a diagnosis claims, one by one, and the diagnosis that a fit keeps."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from symlift import LatentDomain, Verdict
from symlift.datasets import gsn
from symlift.diagnosis import Claim, Diagnosis, Test, examine
from symlift.diagnosis.claims import strongest
from symlift.diagnosis.places import partners_kept
from symlift.errors import FitWarning


def fitted(X, grid):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return LatentDomain(grid=grid, random_state=0).fit(X)


@pytest.fixture(scope="module")
def plane():
    X = gsn(600, (4, 5), transform="permutation", random_state=1).X
    return X, fitted(X, (4, 5))


@pytest.fixture(scope="module")
def noise():
    X = np.random.default_rng(5).normal(size=(200, 12))
    return X, fitted(X, (3, 4))


def test_the_diagnosis_of_a_fit_is_not_made_twice(plane, monkeypatch):
    X, est = plane
    monkeypatch.setattr(examine, "diagnose", lambda *_, **__: pytest.fail("computed twice"))
    assert est.diagnose(X) is est.diagnosis_
    assert est.diagnose(X.copy()) is est.diagnosis_


def test_other_rows_levels_and_names_are_diagnosed_anew(plane):
    X, est = plane
    first = est.diagnosis_
    assert est.diagnose(X[:500]) is not first
    again = est.diagnose(X)  # no longer the last ones
    assert again is not first
    assert again == first
    in_blocks = est.diagnose(X, blocks=np.arange(len(X)) // 100)
    assert est.diagnose(X) is not in_blocks
    est.name_columns([f"s{i}" for i in range(20)])
    with pytest.warns(UserWarning, match="feature names"):
        assert est.diagnose(X) is not again


def test_a_result_says_what_it_claims(plane):
    claims = {claim.name: claim for claim in plane[1].diagnosis_.claims}
    assert list(claims) == ["domain", "places", "neighbours", "symmetry"]
    assert all(claim.holds and claim.probability > 0.9 for claim in claims.values())
    assert "a line, which explains" in plane[1].diagnosis_.runner_up
    assert "here)" in plane[1].diagnosis_.would_change


def test_of_noise_nothing_is_claimed_and_nothing_is_there(noise):
    found = noise[1].diagnosis_
    assert found.verdict is Verdict.ABSENT
    assert not any(claim.holds for claim in found.claims)
    assert found.something < 0.1
    assert str(found).endswith(f"(something to find with probability {found.something:.2f})")


def test_what_is_not_stationary_claims_places_without_a_symmetry(plane):
    X = plane[0] * np.linspace(0.2, 3, 20) ** 2 + np.linspace(0, 5, 20)
    X = np.sign(X) * np.abs(X) ** np.linspace(0.5, 3, 20)
    found = fitted(X, (4, 5)).diagnosis_
    claims = {claim.name: claim for claim in found.claims}
    assert claims["symmetry"].probability <= claims["places"].probability
    assert claims["symmetry"].holds == (found.verdict is Verdict.PRESENT)


def test_neighbours_on_roads_are_claimed_and_no_map():
    """A tree of roads on a line: most neighbours are right, the order as a whole cannot be."""
    rng = np.random.default_rng(0)
    d = 60
    apart = np.zeros((d, d))
    for i in range(1, d):
        joins = int(rng.integers(max(0, i - 6), i))
        apart[i, :i] = apart[:i, i] = apart[joins, :i] + 1
    field = np.linalg.cholesky(np.exp(-apart / 3) + 1e-6 * np.eye(d))
    X = rng.normal(size=(600, d)) @ field.T + 0.2 * rng.normal(size=(600, d))
    est = fitted(X, (d,))
    found = est.diagnosis_
    assert found.verdict is Verdict.LOCAL
    assert found.confidence <= 0.3
    at = est.placement_.coordinates[:, 0]
    steps = np.abs(at[:, None] - at) + np.where(np.eye(d) > 0, np.inf, 0)
    six = np.argsort(steps, axis=1, kind="stable")[:, :6]
    right = [(apart[i, six[i]] == 1).any() for i in range(d)]
    assert np.mean(right) > 0.7
    assert "six columns placed nearest" in found.next_steps[0].text


def test_the_strongest_verdict_that_holds():
    close = (Claim("neighbours", 0.9, True),)
    assert strongest(Verdict.ABSENT, close) is Verdict.LOCAL
    assert strongest(Verdict.ORDERED, close) is Verdict.ORDERED
    assert strongest(Verdict.ABSENT, (Claim("neighbours", 0.2, False),)) is Verdict.ABSENT


def test_what_would_change_a_verdict():
    tests = (
        Test("locality", 0.9, 0.7, True),
        Test("stationarity", 0.029, 0.03, True),
        Test("found", 1.0),
    )
    assert Diagnosis(Verdict.PRESENT, 0.9, tests).would_change == (
        "stationarity above 0.03 (0.029 here)"
    )
    failed = (*tests, Test("settled", 0.5, 0.8, False))
    assert Diagnosis(Verdict.ABSENT, 0.1, failed).would_change == (
        "settled of at least 0.8 (0.5 here)"
    )


def test_partners_that_are_near():
    chain = np.exp(-np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0))))
    right = np.array([[1], [0], [1], [2], [3], [4]])
    assert partners_kept([chain, chain], right) == 1
    assert partners_kept([chain], (right + 3) % 6) == 0
