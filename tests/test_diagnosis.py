from __future__ import annotations

import numpy as np
import pytest

from symlift import Grid, LatentDomain, Verdict
from symlift.datasets import gsn, ising, random_orthogonal
from symlift.diagnosis import Test, judge
from symlift.errors import FitWarning

pytestmark = pytest.mark.portable


def diagnosis(X, shape, periodic=False, seed=0):
    return LatentDomain(grid=shape, periodic=periodic, random_state=seed).fit(X).diagnose(X)


@pytest.mark.parametrize(
    "data",
    [
        gsn(6_000, 21, transform="permutation", random_state=1),
        gsn(12_000, 15, periodic=True, transform="orthogonal", random_state=1),
        gsn(6_000, (6, 6), transform="permutation", random_state=1),
        ising(30_000, 17, transform="linear", random_state=1),
    ],
    ids=["shuffled line", "ring, dense", "shuffled grid", "spins, linear"],
)
def test_a_symmetry_that_is_there_is_found(data):
    found = diagnosis(data.X, data.grid.shape, data.grid.periodic)
    assert found.verdict is Verdict.PRESENT
    assert 0.5 <= found.confidence <= 1
    assert found.value("agreement_of_halves") > 0.95
    assert found.value("locality") > found.value("locality_of_control") + 0.3
    assert found.value("equivariance_error") < 1e-6
    assert str(found).startswith(Verdict.PRESENT.words)
    assert found.next_steps == ()
    for test in found.tests:
        assert (test.threshold is None) == (test.passed is None)
        assert test.passed is not False, test.name


@pytest.mark.filterwarnings("ignore::symlift.errors.FitWarning")
@pytest.mark.parametrize("kind", ["white", "permuted columns", "mixture", "low rank", "gaussian ring"])
def test_one_that_is_not_is_not(kind, rng):
    n, periodic = 5_000, False
    if kind == "white":
        X = rng.normal(size=(n, 15))
    elif kind == "permuted columns":
        X = rng.permuted(gsn(n, 15, random_state=2).X, axis=0)
    elif kind == "mixture":
        X = rng.normal(size=(n, 15)) + 3 * rng.normal(size=(4, 15))[rng.integers(4, size=n)]
    elif kind == "low rank":
        X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, 15)) + 0.1 * rng.normal(size=(n, 15))
    else:
        field = np.fft.irfft(np.fft.rfft(rng.normal(size=(n, 15))) / (1 + np.arange(8) ** 2), 15)
        X, periodic = field @ random_orthogonal(15, random_state=0), True
    assert diagnosis(X, (15,), periodic).verdict in (Verdict.ABSENT, Verdict.UNIDENTIFIABLE)


@pytest.mark.filterwarnings("ignore:held-out rows")
@pytest.mark.parametrize(
    ("data", "shape", "periodic", "words"),
    [
        (gsn(8_000, 21, transform="permutation", random_state=2), (21,), True, "line of 21"),
        (gsn(8_000, 24, transform="permutation", random_state=2), (4, 6), False, "line of 24"),
        (gsn(8_000, 24, periodic=True, transform="permutation", random_state=2), (4, 6), False, "ring of 24"),
    ],
    ids=["a line bent into a ring", "a line folded into rows", "a ring folded into rows"],
)
def test_a_simpler_grid_that_fits_as_well_is_named(data, shape, periodic, words):
    est = LatentDomain(grid=shape, periodic=periodic, random_state=0).fit(data.X)
    with pytest.warns(FitWarning, match=words):
        found = est.diagnose(data.X)
    assert found.verdict is not Verdict.PRESENT


def judged(locality=0.9, control=0.1, agreement=0.99, found=True, **alternatives):
    """The verdict on numbers; alternatives are (value, needed) of simpler grids."""
    margin = locality - max(control, 0.0)
    tests = (
        Test("locality", locality), Test("locality_of_control", control),
        Test("locality_beyond_control", margin, 0.2, margin >= 0.2), Test("found", float(found), 1.0, found),
        Test("agreement_of_halves", agreement, 0.9, agreement > 0.9),
        *(Test(f"locality_on_a_{name}", value, needed, value <= needed) for name, (value, needed) in alternatives.items()),
    )  # fmt: skip
    return judge(tests, Grid((4, 6)))


def test_verdicts_follow_from_the_tests():
    assert judged().verdict is Verdict.PRESENT
    assert judged(found=False).verdict is Verdict.UNIDENTIFIABLE
    assert judged(agreement=0.5).verdict is Verdict.UNIDENTIFIABLE
    assert judged(locality=0.15).verdict is Verdict.ABSENT
    assert judged(locality=0.0, found=False).verdict is Verdict.ABSENT
    assert judged(agreement=0.91).confidence < judged().confidence
    assert judged().value("agreement_of_halves") == 0.99
    assert judged().value("nothing") is None
    assert judged().next_steps == ()


def test_a_simpler_grid_is_a_next_step_in_words_parameters_and_command():
    found = judged(line=(0.95, 0.9), ring=(0.97, 0.9))
    assert found.verdict is Verdict.UNIDENTIFIABLE
    (step,) = found.next_steps
    assert "a ring of 24 points" in step.text
    assert step.params == {"grid": (24,), "periodic": True}
    assert step.command == "symlift recover DATA --grid 24 --periodic"
    assert judged(line=(0.85, 0.9)).verdict is Verdict.PRESENT


def test_verdicts_are_codes_and_words():
    assert [v.value for v in Verdict] == ["present", "ordered", "unidentifiable", "absent"]
    assert len({v.words for v in Verdict}) == 4
    assert all("\n" not in v.words and v.words != v.value for v in Verdict)


def test_score_prefers_the_truth_and_is_comparable(rng):
    data = gsn(4_000, 15, periodic=True, transform="orthogonal", random_state=3)
    good = LatentDomain(grid=15, periodic=True, random_state=0).fit(data.X)
    bad = LatentDomain(grid=15, periodic=True, solver="random", random_state=0).fit(data.X)
    held = gsn(4_000, 15, periodic=True, transform=data.transform, random_state=4).X
    assert good.score(held) > bad.score(held) + 0.5


def test_the_random_baseline_can_be_diagnosed_too(rng):
    X = gsn(3_000, 9, random_state=1).X
    est = LatentDomain(grid=9, solver="random", random_state=0).fit(X)
    assert est.diagnose(X).verdict is Verdict.ABSENT  # it has no evidence to show


def test_an_unknown_domain_warns(rng):
    with pytest.warns(FitWarning, match="no identifiable domain"):
        LatentDomain(grid=12, random_state=0).fit(rng.normal(size=(3_000, 12)))
