"""The ring solver: a ring in noisy, tuned channels, found without labels, and nothing where there
is none.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.integrate import quad

from symlift import LatentDomain, load
from symlift.datasets import ring_population
from symlift.errors import FitWarning, InputError
from symlift.metrics import circular_correlation, equivariance_error
from symlift.solvers.ring.read_out import _von_mises_loss, read_out
from symlift.solvers.ring.search import ring_likelihood, search_planes, stabilise, whitened

pytestmark = pytest.mark.portable


@pytest.fixture(scope="module")
def population():
    return ring_population(1_200, 32, random_state=7)


@pytest.fixture(scope="module")
def fitted(population):
    return LatentDomain(grid=(30,), periodic=True, solver="ring", random_state=0).fit(population.X)


@pytest.mark.parametrize("radius2", [0.3, 1.2, 1.9])
def test_ring_likelihood_is_a_density_ratio(radius2):
    """∫ p(u) du = 1 and E_p|u|² = 2, the Gaussian's: p = ratio · g in polar coordinates."""

    def weighted(power: int) -> float:
        def integrand(s: float) -> float:
            return float(
                np.exp(ring_likelihood(np.array([s**2]), radius2)[0] - s**2 / 2) * s * s**power
            )

        return quad(integrand, 0, 8, limit=200)[0]

    assert weighted(0) == pytest.approx(1, abs=1e-6)
    assert weighted(2) == pytest.approx(2, abs=1e-5)


def test_search_finds_a_ring_beside_heavy_tails(rng):
    """A ring in two of six whitened directions, a dense rotation, exponential and Gaussian
    nuisances of equal variance.
    """
    n = 1_500
    angle = rng.uniform(0, 2 * np.pi, n)
    ring = 1.3 * np.stack([np.cos(angle), np.sin(angle)]) + 0.4 * rng.normal(size=(2, n))
    sources = np.concatenate([ring, rng.exponential(size=(2, n)), rng.normal(size=(2, n))]).T
    sources = (sources - sources.mean(axis=0)) / sources.std(axis=0)
    Q = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    U = whitened(sources @ Q.T, 6)
    planes, gains = search_planes(U, rng)
    found, true = ((P[:, 0], P[:, 1]) for P in (U @ planes[0], ring.T))
    # what the true plane itself reads is the most that any plane can be asked for
    attainable = abs(circular_correlation(angle, np.arctan2(*true)))
    assert abs(circular_correlation(angle, np.arctan2(*found))) > attainable - 0.02
    assert gains[0] > 0.2
    assert gains == sorted(gains, reverse=True)


def test_read_out_is_the_von_mises_posterior(rng):
    """Poisson neurons with von Mises tuning: the optimal weights are κ_j (cos φ_j, sin φ_j), linear
    in the counts.
    """
    preferred = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    angle = rng.uniform(0, 2 * np.pi, 4_000)
    X = rng.poisson(3 * np.exp(1.5 * (np.cos(angle[:, None] - preferred) - 1))).astype(float)
    B, _ = read_out(X, np.exp(1j * angle), rng)
    expected = 1.5 * np.stack([np.cos(preferred), np.sin(preferred)], axis=1)
    assert np.corrcoef(B.ravel(), expected.ravel())[0, 1] > 0.98
    assert np.linalg.norm(B) == pytest.approx(np.linalg.norm(expected), rel=0.15)


def test_von_mises_gradient(rng):
    rows, wanted, B = rng.normal(size=(50, 4)), rng.normal(size=(50, 2)), rng.normal(size=(4, 2))
    _, gradient = _von_mises_loss(B, rows, wanted, 0.3)
    for index in np.ndindex(B.shape):
        step = np.zeros_like(B)
        step[index] = 1e-5
        up, down = (_von_mises_loss(B + sign * step, rows, wanted, 0.3)[0] for sign in (1, -1))
        assert gradient[index] == pytest.approx((up - down) / 2e-5, abs=1e-7)


def test_stabilised_counts_know_no_gain_and_stay_so(rng):
    rates = rng.uniform(50, 500, size=(20, 12))
    assert np.allclose(stabilise(rates), stabilise(7.3 * rates))
    counts = rng.poisson(rates).astype(float)
    assert np.allclose(stabilise(stabilise(counts)), stabilise(counts))
    scores = rng.normal(size=(100, 5)) * [1, 2, 3, 4, 5]
    assert np.allclose(stabilise(scores).std(axis=0), 1)


def test_finds_the_angle_and_generalises(population, fitted):
    assert abs(circular_correlation(population.latent, fitted.phase(population.X))) > 0.9
    first, second = population.X[::2], population.X[1::2]
    half = LatentDomain(grid=(30,), periodic=True, solver="ring", random_state=1).fit(first)
    assert abs(circular_correlation(population.latent[1::2], half.phase(second))) > 0.88
    assert fitted.evidence_.found


def test_output_is_a_sinusoid_and_moves_as_one(population, fitted):
    """Rank two; a shift by t steps turns the phase by 2πt/N, keeps the amplitude, and obeys the
    group law exactly.
    """
    X, t = population.X[:50].astype(np.float64), 4.5
    assert np.linalg.matrix_rank(fitted.lifting_map_) == 2
    moved = fitted.shift(X, t)
    turned = np.angle(np.exp(1j * (fitted.phase(moved) - fitted.phase(X) - 2 * np.pi * t / 30)))
    assert np.abs(turned).max() < 1e-8
    assert np.allclose(fitted.amplitude(moved), fitted.amplitude(X))
    assert np.allclose(fitted.shift(moved, 30 - t), X, atol=1e-7)
    assert equivariance_error(fitted.model_, X, [1]) < 1e-9


def test_shift_brings_samples_to_where_real_ones_are(population, fitted):
    """Rows near one angle, moved by a sixth of the ring, are nearer to the rows that are there than
    they were.
    """
    X, phase = population.X.astype(np.float64), fitted.phase(population.X)
    here, there = (np.abs(np.angle(np.exp(1j * (phase - a)))) < 0.35 for a in (0.0, np.pi / 3))
    target = X[there].mean(axis=0)
    before = np.linalg.norm(X[here].mean(axis=0) - target)
    after = np.linalg.norm(fitted.shift(X[here], 5).mean(axis=0) - target)
    assert after < 0.4 * before


def test_same_seed_same_answer_and_survives_saving(population, fitted, tmp_path):
    again = LatentDomain(grid=(30,), periodic=True, solver="ring", random_state=0).fit(population.X)
    assert np.array_equal(again.lifting_map_, fitted.lifting_map_)
    fitted.save(tmp_path)
    assert np.allclose(load(tmp_path).phase(population.X), fitted.phase(population.X))


@pytest.mark.parametrize("kind", ["permuted", "noise"])
def test_says_so_where_there_is_no_ring(kind, population, rng):
    X = (
        rng.permuted(population.X, axis=0)
        if kind == "permuted"
        else rng.poisson(5, size=(1_000, 20)).astype(float)
    )
    with pytest.warns(FitWarning, match="no identifiable domain"):
        est = LatentDomain(grid=(15,), periodic=True, solver="ring", random_state=0).fit(X)
    assert est.evidence_.locality < 0.25


def test_a_constant_unit_and_an_even_ring(population):
    X = population.X.copy()
    X[:, 3] = 2
    with pytest.warns(FitWarning, match="constant"):
        est = LatentDomain(grid=(12,), periodic=True, solver="ring", random_state=0).fit(X)
    assert abs(circular_correlation(population.latent, est.phase(X))) > 0.88
    # nothing moves where nothing was asked to, and the constant unit never does
    X = X.astype(np.float64)
    assert np.abs(est.shift(X, 0) - X).max() < 1e-8
    assert np.abs(est.shift(X, 12) - X).max() < 1e-7
    assert np.array_equal(est.shift(X, 3.5)[:, 3], X[:, 3])
    assert np.allclose(est.shift(est.shift(X, 2), 1), est.shift(X, 3))


def test_the_old_name_is_the_same_solver(population, fitted):
    old = LatentDomain(grid=(30,), periodic=True, solver="homogeneous", random_state=0).fit(
        population.X
    )
    assert np.array_equal(old.lifting_map_, fitted.lifting_map_)
    assert old.trace_.solver == "ring"


def test_evidence_of_a_ring_is_agreement_and_roundness(fitted):
    evidence = fitted.evidence_
    assert evidence.locality == evidence.agreement > 0.25
    assert 0.9 < evidence.roundness < 1.75
    assert evidence.explained is None
    assert [stage.name for stage in fitted.trace_.stages] == ["search", "follow", "read out"]
    assert fitted.placement_ is None


def test_other_grids_are_refused(population):
    for grid, periodic in (
        ((8,), False),
        ((4, 4, 2), True),
        ((4, 4), (True, False)),
        ((2, 8), True),
    ):
        with pytest.raises(InputError, match="finds one angle or two"):
            LatentDomain(grid=grid, periodic=periodic, solver="ring").fit(population.X)
    with pytest.raises(InputError, match="at least 4"):
        LatentDomain(grid=(3,), periodic=True, solver="ring").fit(population.X[:, :3])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("settings", "least"),
    [
        ({"units": 16}, 0.78),
        ({"units": 128, "n": 600}, 0.97),
        ({"gain": 0.6, "movement": 0.6}, 0.85),
        ({"stimuli": 4, "n": 600, "units": 110, "rate": 2.0, "movement": 1.0}, 0.88),
    ],
)
def test_untuned_on_many_draws(settings, least, seed):
    data = ring_population(random_state=seed, **{"n": 1_500, "units": 32, **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        est = LatentDomain(grid=(15,), periodic=True, solver="ring", random_state=seed).fit(data.X)
    assert abs(circular_correlation(data.latent, est.phase(data.X))) > least
