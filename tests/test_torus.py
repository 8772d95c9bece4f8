"""Two angles: a torus in noisy, tuned channels, found without labels, and other domains named where
it is not one.
"""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from symlift import LatentDomain, load
from symlift.cli import app
from symlift.core.angles import fundamentals
from symlift.datasets import plane_population, ring_population, torus_population
from symlift.diagnosis import Verdict
from symlift.errors import FitWarning, InputError
from symlift.metrics import equivariance_error, torus_correlation
from symlift.solvers.ring.domains import TORUS, climb
from symlift.solvers.ring.evidence import AngleEvidence, angle_evidence
from symlift.solvers.ring.torus import MODES

pytestmark = pytest.mark.portable


def fit(X, grid=(12, 10)):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return LatentDomain(grid=grid, periodic=True, solver="ring", random_state=0).fit(X)


@pytest.fixture(scope="module")
def population():
    return torus_population(3_000, 60, rate=10.0, random_state=7)


@pytest.fixture(scope="module")
def fitted(population):
    return fit(population.X)


def test_both_angles_are_found(population, fitted):
    assert min(torus_correlation(population.latent, fitted.phase(population.X))) > 0.85
    assert fitted.phase(population.X).shape == fitted.amplitude(population.X).shape == (3_000, 2)
    assert fitted.evidence_.found
    assert fitted.evidence_.domain == "torus"
    assert fitted.diagnose(population.X).verdict is Verdict.PRESENT


def test_a_square_lattice_is_found_as_well():
    data = torus_population(3_000, 60, rate=10.0, hexagonal=False, random_state=8)
    found = fit(data.X)
    assert min(torus_correlation(data.latent, found.phase(data.X))) > 0.9
    assert found.evidence_.domain == "torus"


def test_output_has_rank_four_and_moves_along_both_axes(population, fitted):
    """A shift by (t, s) steps turns the phases by 2πt/N and 2πs/M, keeps the amplitudes, and obeys
    the group law exactly.
    """
    X, t = population.X[:50].astype(np.float64), np.array([2.5, 4.0])
    assert np.linalg.matrix_rank(fitted.lifting_map_) == 4
    assert fitted.generators_.shape == (2, 60, 60)
    moved = fitted.shift(X, t)
    turned = fitted.phase(moved) - fitted.phase(X) - 2 * np.pi * t / np.array([12, 10])
    assert np.abs(np.angle(np.exp(1j * turned))).max() < 1e-8
    assert np.allclose(fitted.amplitude(moved), fitted.amplitude(X))
    assert np.allclose(fitted.shift(moved, np.array([12, 10]) - t), X, atol=1e-6)
    assert equivariance_error(fitted.model_, X, [1, 2]) < 1e-9


def test_shift_brings_rows_to_where_real_ones_are(population, fitted):
    X, phase = population.X.astype(np.float64), fitted.phase(population.X)

    def near(a: float, b: float):
        return np.cos(phase - np.array([a, b])).sum(axis=1) > 1.75

    target = X[near(np.pi / 2, 0)].mean(axis=0)
    before = np.linalg.norm(X[near(0, 0)].mean(axis=0) - target)
    after = np.linalg.norm(fitted.shift(X[near(0, 0)], (3, 0)).mean(axis=0) - target)
    assert after < 0.5 * before


@pytest.mark.slow
def test_halves_agree_whatever_generators_they_take(population, fitted):
    diagnosis = fitted.diagnose(population.X, level="full")
    assert diagnosis.value("agreement_of_halves") > 0.9
    assert diagnosis.verdict is Verdict.PRESENT


def test_saved_and_loaded(population, fitted, tmp_path):
    fitted.save(tmp_path)
    again = load(tmp_path)
    assert np.allclose(again.phase(population.X), fitted.phase(population.X))
    assert again.evidence_ == fitted.evidence_
    assert str(again.grid_) == "12x10"


def test_a_damaged_domain_is_refused(fitted, tmp_path):
    fitted.save(tmp_path)
    path = tmp_path / "estimator.json"
    path.write_text(path.read_text().replace('"domain": "torus"', '"domain": "sphere"'))
    with pytest.raises(InputError, match="damaged"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("data", "grid", "named"),
    [
        (ring_population(2_000, 40, random_state=5), (12, 12), "ring"),
        (torus_population(3_000, 60, rate=10.0, random_state=9), (20,), "torus"),
        (plane_population(2_000, 60, rate=6.0, random_state=5), (12, 12), "open plane"),
        (plane_population(2_000, 60, rate=6.0, random_state=6), (20,), "open plane"),
    ],
    ids=["a ring is no torus", "a torus is no ring", "a plane is no torus", "a plane is no ring"],
)
def test_another_domain_is_absent_and_named(data, grid, named):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        diagnosis = fit(data.X, grid).diagnose(data.X)
    assert diagnosis.verdict is Verdict.ABSENT
    assert any(named in step.text for step in diagnosis.next_steps)


def test_noise_is_neither(rng):
    X = rng.poisson(4, size=(800, 20)).astype(float)
    with pytest.warns(FitWarning, match="no identifiable domain"):
        est = LatentDomain(grid=(8, 8), periodic=True, solver="ring", random_state=0).fit(X)
    assert not est.evidence_.found
    assert est.evidence_.domain == ""


def test_too_few_columns_and_open_grids(population):
    with pytest.raises(InputError, match="at least 8"):
        fit(population.X[:, :7], (5, 5))
    with pytest.raises(InputError, match="ring or a torus"):
        LatentDomain(grid=(6, 10), solver="random", random_state=0).fit(population.X).phase(
            population.X
        )


# -- parts -----------------------------------------------------------------------------------------


def test_expectation_maximisation_climbs(rng):
    """More steps from the same shares never have a smaller likelihood, and shares are
    probabilities.
    """
    at = rng.uniform(0, 2 * np.pi, (400, 2))
    waves = np.stack(
        [np.cos(at[:, 0]), np.sin(at[:, 0]), np.cos(at[:, 1]), np.sin(at[:, 1])], axis=1
    )
    U = waves * np.sqrt(2) * 0.9 + 0.4 * rng.normal(size=waves.shape)
    start = TORUS.near(at + 0.5 * rng.normal(size=at.shape))
    fits = [climb(U, TORUS, start, steps) for steps in (1, 2, 40)]
    assert np.allclose(fits[-1].share.sum(axis=1), 1)
    assert fits[0].likelihood < fits[1].likelihood < fits[2].likelihood
    found = np.angle(fits[2].share @ np.exp(1j * TORUS.states))
    assert min(torus_correlation(at, found)) > 0.75


def test_modes_are_distinct_and_begin_with_the_axes():
    assert MODES[:2].tolist() == [[1, 0], [0, 1]]
    both = np.concatenate([MODES, -MODES])
    assert len(np.unique(both, axis=0)) == len(both)


def test_roundness_of_a_circle_and_of_a_square(rng):
    """E|z|⁴/(E|z|²)² without noise: 1 on a circle, 1.25 for (cos πx, cos πy) with x, y uniform."""
    n, mixing = 40_000, rng.normal(size=(2, 30))
    circle = np.exp(1j * rng.uniform(0, 2 * np.pi, n))
    square = np.cos(np.pi * rng.uniform(size=n)) + 1j * np.cos(np.pi * rng.uniform(size=n))
    for z, expected in ((circle, 1.0), (square, 1.25)):
        rows = np.stack([z.real, z.imag], axis=1) @ mixing + 0.5 * rng.normal(size=(n, 30))
        assert angle_evidence(rows, z, rng).roundness == pytest.approx(expected, abs=0.03)


def test_an_angle_is_round_and_halves_agree_on_it():
    assert AngleEvidence(0.8, 1.2).is_angle
    assert not AngleEvidence(0.8, 1.4).is_angle
    assert not AngleEvidence(0.1, 1.0).is_angle


def test_fundamentals_of_a_point(rng):
    field = np.zeros((5, 7))
    field[3, 2] = 1.0
    z = fundamentals(np.stack([field.ravel()]), (5, 7))[0]
    assert np.allclose(np.mod(np.angle(z), 2 * np.pi), [2 * np.pi * 3 / 5, 2 * np.pi * 2 / 7])


@pytest.mark.parametrize("change", [[[1, 1], [0, -1]], [[0, 1], [1, 0]], [[1, 0], [-1, 1]]])
def test_torus_correlation_sees_through_a_change_of_generators(change, rng):
    a = rng.uniform(0, 2 * np.pi, (300, 2))
    assert min(torus_correlation(a, a @ np.array(change).T + 0.7)) == pytest.approx(1)
    # a double cover is another torus
    assert min(torus_correlation(a, a @ np.array([[1, 1], [1, -1]]).T)) < 0.5
    with pytest.raises(InputError, match="pairs of angles"):
        torus_correlation(a, a[:, 0])


def test_the_command_line_reaches_it(tmp_path):
    X = torus_population(600, 30, rate=12.0, hexagonal=False, random_state=3).X
    np.save(tmp_path / "counts.npy", X)
    options = [
        "--grid",
        "8x6",
        "--periodic",
        "--solver",
        "ring",
        "--seed",
        "0",
        "--json",
        "--quiet",
    ]
    result = CliRunner().invoke(
        app, ["recover", str(tmp_path / "counts.npy"), *options, "--out", str(tmp_path / "run")]
    )
    assert result.exit_code == 0
    answer = json.loads(result.stdout.splitlines()[-1])
    assert answer["grid"] == [8, 6]
    assert answer["periodic"] == [True, True]
    assert answer["solver"] == "ring"
    assert load(tmp_path / "run").phase(X).shape == (600, 2)
    assert (tmp_path / "run" / "report.html").is_file()
