"""Is there a ring, an arc, clusters, a torus, nothing? Domains compete, and a ring has to close."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from symlift import LatentDomain, load
from symlift.cli import app
from symlift.datasets import ring_population
from symlift.diagnosis import Verdict
from symlift.errors import FitWarning
from symlift.solvers.contract import Contest
from symlift.solvers.ring.closing import ENOUGH, closing_link, in_errors
from symlift.solvers.ring.domains import best_fit, climb, closed_curve, clusters, open_curve


def quiet_fit(X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return LatentDomain(grid=(30,), periodic=True, solver="ring", random_state=0).fit(X)


def tuned(angle, rng, units=40):
    """Units with von Mises tuning, and Gaussian noise."""
    away = angle[:, None] - rng.uniform(0, 2 * np.pi, units)
    return np.exp(2 * (np.cos(away) - 1)) + 0.25 * rng.normal(size=away.shape)


def embedded(points, rng, noise=0.15):
    basis = np.linalg.qr(rng.normal(size=(8, 8)))[0][: points.shape[1]]
    return points @ basis + noise * rng.normal(size=(len(points), 8))


def circle(angle):
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


@pytest.fixture(scope="module")
def arc():
    rng = np.random.default_rng(31)
    turned = np.deg2rad(290) * rng.uniform(size=1_000)
    X = tuned(turned, rng)
    return turned, X, quiet_fit(X)


@pytest.fixture(scope="module")
def whole():
    rng = np.random.default_rng(32)
    X = tuned(rng.uniform(0, 2 * np.pi, 1_000), rng)
    return X, quiet_fit(X)


def test_a_ring_closes_and_is_present(whole):
    X, est = whole
    among = est.evidence_.contest
    assert among.domain == est.evidence_.domain == "ring"
    assert among.closing >= ENOUGH
    found = est.diagnose(X)
    assert found.verdict is Verdict.PRESENT
    assert found.contest.probability == pytest.approx(found.confidence, abs=1e-4)
    assert found.value("closing_link") == pytest.approx(among.closing, abs=1e-3)


def test_an_arc_is_no_ring_and_is_named(arc):
    _, X, est = arc
    among = est.evidence_.contest
    assert among.domain == "arc"
    assert among.closing < ENOUGH
    found = est.diagnose(X)
    assert found.verdict is Verdict.ABSENT
    assert "an arc" in str(found)
    assert "closing link" in found.tally


def test_what_is_told_about_an_arc_works(arc):
    """The phase, from the part without rows, is the position along the arc."""
    turned, X, est = arc
    step = est.diagnose(X).next_steps[0]
    assert "est.phase(X)" in step.text
    phase = np.mod(est.phase(X), 2 * np.pi)
    count = np.histogram(phase, 18, (0, 2 * np.pi))[0]
    along = np.mod(phase - (count.argmin() + 0.5) * 2 * np.pi / 18, 2 * np.pi)
    assert abs(spearmanr(along, turned).statistic) > 0.95


def test_no_advice_goes_round(arc):
    """A grid is not proposed again to someone who asked whether there is a ring."""
    assert all("grid" not in step.params for step in arc[2].diagnose(arc[1]).next_steps)


@pytest.mark.parametrize(
    ("kind", "named"), [("two clusters", "clusters"), ("a blob", ""), ("a bow", "line")]
)
def test_what_is_no_curve_or_hardly_bent(kind, named, rng):
    n = 800
    if kind == "two clusters":
        X = embedded(np.sign(rng.normal(size=(n, 1))) + 0.1 * rng.normal(size=(n, 1)), rng)
    elif kind == "a blob":
        X = rng.normal(size=(n, 8)) * np.linspace(0.5, 2, 8)
    else:
        x = rng.uniform(-1, 1, n)
        X = embedded(np.stack([2 * x, 0.8 * x**2], axis=1), rng)
    est = quiet_fit(X)
    assert est.evidence_.contest.domain == named
    assert not est.evidence_.found


def test_two_rings_are_a_torus(rng):
    X = embedded(np.concatenate([circle(a) for a in rng.uniform(0, 6.3, (2, 900))], axis=1), rng)
    est = quiet_fit(X)
    assert est.evidence_.contest.domain == "torus"
    with pytest.warns(FitWarning, match="two angles"):
        assert est.diagnose(X).next_steps[0].params["grid"] == (20, 20)


def test_gain_and_movement_are_no_opening():
    X = ring_population(2_000, 40).X
    est = quiet_fit(X)
    assert est.evidence_.contest.closing >= ENOUGH
    assert est.diagnosis_.verdict is Verdict.PRESENT


@pytest.mark.slow
def test_digits_are_no_ring():
    """Ten classes that fill a space: a closed curve needs many harmonics to run through them."""
    est = quiet_fit(load_digits().data)
    assert est.diagnosis_.verdict is Verdict.ABSENT
    assert est.evidence_.contest.plain < 0.8


@pytest.mark.parametrize(("turn", "closes"), [(360, True), (320, False), (270, False)])
def test_the_closing_link(turn, closes, rng):
    angle = np.deg2rad(turn) * rng.uniform(size=1_600)
    U = circle(angle) * np.sqrt(2) + 0.2 * rng.normal(size=(1_600, 2))
    halves = np.arange(1_600)[::2], np.arange(1_600)[1::2]
    fits = [
        (best_fit(U[a], closed_curve(2), [angle[a][:, None]], even=False), a, b)
        for a, b in (halves, halves[::-1])
    ]
    found = closing_link(U, fits)
    assert found.closes == closes
    assert (found.opening > 0) == (not closes)


def test_a_ring_of_few_stimuli_closes(rng):
    angle = 2 * np.pi * rng.integers(12, size=1_600) / 12
    U = circle(angle) * np.sqrt(2) + 0.12 * rng.normal(size=(1_600, 2))
    halves = np.arange(1_600)[::2], np.arange(1_600)[1::2]
    fits = [
        (best_fit(U[a], closed_curve(2), [angle[a][:, None]], even=False), a, b)
        for a, b in (halves, halves[::-1])
    ]
    assert closing_link(U, fits).closes


def test_more_freedom_never_fits_worse(rng):
    """An open curve of a higher degree, and free visits, start where the simpler fit ended."""
    x = rng.uniform(size=500)
    U = np.stack([2 * x - 1, np.cos(3 * x)], axis=1) + 0.1 * rng.normal(size=(500, 2))
    simple = best_fit(U, open_curve(2), [x[:, None]])
    assert climb(U, open_curve(4), simple.share).likelihood > simple.likelihood - 1e-6
    freed = climb(U, open_curve(2), simple.share, even=False)
    assert freed.likelihood > simple.likelihood - 1e-6
    assert freed.weights.sum() == pytest.approx(1)
    assert clusters(3).size == 2
    assert closed_curve(2).size == open_curve(4).size == 4


def test_differences_in_units_of_their_error(rng):
    assert in_errors(np.full(100, 0.5) + rng.normal(size=100) * 1e-3) > 100
    assert abs(in_errors(rng.normal(size=10_000))) < 4
    assert in_errors(np.zeros(10)) == 0


def test_the_contest_is_kept_and_told(arc, tmp_path):
    _, X, est = arc
    est.save(tmp_path / "model")
    assert load(tmp_path / "model").evidence_.contest == est.evidence_.contest
    np.save(tmp_path / "rows.npy", X)
    options = ["--grid", "30", "--periodic", "--solver", "ring", "--seed", "0", "--json", "--quiet"]
    result = CliRunner().invoke(
        app, ["recover", str(tmp_path / "rows.npy"), *options, "--out", str(tmp_path / "run")]
    )
    assert result.exit_code == 0
    answer = json.loads(result.stdout.splitlines()[-1])
    assert answer["domain"] == "arc"
    assert 0 <= answer["probability"] <= 1
    page = (tmp_path / "run" / "report.html").read_text()
    assert "The rows are most like points of an arc" in page


def test_words_of_a_contest():
    assert Contest("ring", "arc", 4.0).words == (
        "the rows are most like points of a ring; next: an arc"
    )
