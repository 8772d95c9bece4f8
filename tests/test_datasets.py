"""Shot noise, spins and transforms: statistics that a wrong generator would miss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ellipk, lpmv

from symlift import InputError
from symlift.datasets import (
    dst1,
    gsn,
    identity,
    ising,
    random_linear,
    random_orthogonal,
    random_permutation,
)
from symlift.datasets.observations import TEMPORARY
from symlift.datasets.shot_noise import legendre, translate_ring

NAMES = ("identity", "dst1", "permutation", "orthogonal", "linear")
AMPLITUDE_SQUARE = 1 + 1 / 12  # of U[0.5, 1.5)


def errors_of_mean(values):
    """Deviation of each column's mean from the overall mean, in standard errors."""
    return (values.mean(axis=0) - values.mean()) / (values.std(axis=0) / np.sqrt(len(values)))


# -- transforms ------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 40),
    st.integers(0, 2**32 - 1),
    st.sampled_from([dst1, random_permutation, random_orthogonal, identity]),
)
def test_orthogonal_transforms(d, seed, make):
    T = make(d, random_state=seed)
    assert T.shape == (d, d)
    assert T.dtype == np.float64
    np.testing.assert_allclose(T.T @ T, np.eye(d), atol=1e-12)
    np.testing.assert_array_equal(T, make(d, random_state=seed))


def test_dst1_is_scipys():
    from scipy.fft import dst

    np.testing.assert_allclose(dst1(9), dst(np.eye(9), type=1, norm="ortho", axis=1), atol=1e-14)


def test_permutations_are_uniform():
    where = np.array([random_permutation(4, random_state=s).argmax(axis=0) for s in range(2000)])
    counts = np.array([np.bincount(where[:, j], minlength=4) for j in range(4)])
    assert np.abs(counts - 500).max() < 5 * np.sqrt(500 * 0.75)


def test_orthogonal_is_haar():
    """Under Haar, entries have mean 0 and E[Q_ij⁴] = 3/(d(d+2)); a QR without sign repair has a
    biased diagonal.
    """
    Q = np.array([random_orthogonal(4, random_state=s) for s in range(3000)])
    assert np.abs(Q.mean(axis=0)).max() < 5 * 0.5 / np.sqrt(3000)
    np.testing.assert_allclose((Q**4).mean(axis=0), 3 / 24, atol=0.02)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 40), st.floats(0.1, 1), st.floats(1, 10), st.integers(0, 1000))
def test_singular_values_fill_their_range(d, low, high, seed):
    sigma = np.linalg.svd(random_linear(d, low, high, random_state=seed), compute_uv=False)
    assert sigma[0] == pytest.approx(high)
    assert sigma[-1] == pytest.approx(low)
    steps = np.diff(np.log(sigma))
    np.testing.assert_allclose(steps, steps.mean(), atol=1e-6)


# -- observations ----------------------------------------------------------------------------------


@pytest.mark.parametrize("transform", NAMES)
@pytest.mark.parametrize("make", [lambda **k: gsn(3000, 31, **k), lambda **k: ising(3000, 31, **k)])
def test_observation_is_latent_times_transform_plus_noise(make, transform):
    data = make(transform=transform, noise=0.1, random_state=3)
    assert data.X.dtype == data.latent.dtype == np.float32
    assert data.transform.dtype == np.float64
    assert data.X.shape == data.latent.shape == (3000, 31)
    residual = data.X - data.latent @ data.transform
    assert residual.std() == pytest.approx(0.1 * data.latent.std(), rel=0.02)
    assert np.abs(np.corrcoef(residual.T) - np.eye(31)).max() < 6 / np.sqrt(3000)
    assert abs(np.corrcoef(residual.ravel(), data.latent.ravel())[0, 1]) < 5 / np.sqrt(
        residual.size
    )

    clean = make(transform=transform, noise=0, random_state=3)
    np.testing.assert_array_equal(clean.latent, data.latent)
    np.testing.assert_array_equal(clean.transform, data.transform)
    np.testing.assert_allclose(clean.X, clean.latent @ clean.transform, atol=1e-5)


def test_a_given_matrix_acts_from_the_right():
    A = np.random.default_rng(0).normal(size=(12, 12))
    data = gsn(200, 12, transform=A, noise=0)
    np.testing.assert_allclose(data.X, data.latent @ A, atol=1e-5)
    np.testing.assert_array_equal(data.transform, A)
    assert data.name == "gsn-12-gaussian-matrix"


def test_almost_permutations_are_not_taken_for_one():
    A = np.eye(12)
    A[3, 4] = 1.0
    data = gsn(200, 12, transform=A, noise=0)
    np.testing.assert_allclose(data.X[:, 4], data.latent[:, 4] + data.latent[:, 3], rtol=1e-6)


@pytest.mark.parametrize("make", [lambda **k: gsn(4000, 15, **k), lambda **k: ising(500, 9, **k)])
def test_seeds(make):
    first = make(random_state=5)
    again = make(random_state=np.random.default_rng(5))
    np.testing.assert_array_equal(first.X, again.X)
    assert not np.array_equal(first.latent, make(random_state=6).latent)
    by_transform = [make(random_state=5, transform=name) for name in NAMES]
    for data in by_transform:
        np.testing.assert_array_equal(first.latent, data.latent)
    # the noise is its own stream, too
    np.testing.assert_allclose(
        by_transform[1].X - by_transform[1].latent @ by_transform[1].transform,
        first.X - first.latent,
        atol=1e-5,
    )
    state = np.random.get_state()[1].copy()  # noqa: NPY002 (that it stays untouched is the point)
    make(random_state=5)
    np.testing.assert_array_equal(state, np.random.get_state()[1])  # noqa: NPY002


# -- shot noise ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("basis", "variant", "shape"),
    [
        ("gaussian", "released", 31),
        ("gaussian", "text", 31),
        ("gaussian", "released", 8),  # so small that pulses centred far outside reach in
        ("legendre", "released", 31),
        ("legendre", "text", 31),
        ("gaussian", "released", (7, 6)),
        ("gaussian", "released", (4, 3, 4)),
    ],
)
def test_fields_are_stationary_along_the_window(basis, variant, shape):
    data = gsn(6000, shape, basis=basis, variant=variant, random_state=1)
    f = data.latent.astype(float)
    assert np.abs(errors_of_mean(f)).max() < 4.8
    # squares, but bounded: those of narrow pulses are too heavy-tailed for a normal test
    assert np.abs(errors_of_mean(np.minimum(((f - f.mean()) / f.std()) ** 2, 9))).max() < 4.8


def test_released_gaussians_have_unit_area_and_the_published_density():
    """Campbell: E f = rate · E[A] · area with 5/2 pulses on 2 · 63 points."""
    f = gsn(60_000, 63, noise=0).latent
    assert f.mean() == pytest.approx(2.5 / 126, rel=0.02)
    mean_inverse_width = np.log(5) / 2  # E[1/s], s ~ U[0.5, 2.5); ∫h² = 1/(2√π s)
    second = (
        2.5 / 126 * AMPLITUDE_SQUARE * mean_inverse_width / (2 * np.sqrt(np.pi))
        + 20 * 0.25 / 126**2
    )
    assert np.square(f, dtype=np.float64).mean() == pytest.approx(second, rel=0.03)


@pytest.mark.parametrize(("shape", "inside"), [((14, 21), 2.5), ((6, 6, 6), 2.5)])
def test_mass_on_several_axes(shape, inside):
    f = gsn(4000, shape, noise=0).latent
    assert f.sum(axis=1).mean() == pytest.approx(inside, rel=0.06)
    assert (f.max(axis=1) < 1e-3).mean() < 0.1


def test_pulses_of_the_plane_are_isotropic():
    """A lone pulse on a point of a torus has equal values at equal distances: (3, 4), (4, 3), (5,
    0) and (0, 5).
    """
    f = gsn(1000, (21, 21), periodic=True, shifts="discrete", noise=0).latent.reshape(-1, 21, 21)
    rows, columns = np.divmod(f.reshape(-1, 441).argmax(axis=1), 21)
    around = np.arange(-10, 11)
    f = f[
        np.arange(len(f))[:, None, None],
        ((rows[:, None] + around) % 21)[:, :, None],
        ((columns[:, None] + around) % 21)[:, None, :],
    ]
    lone = f[(np.abs(f - f[:, ::-1, ::-1]).max(axis=(1, 2)) < 1e-8) & f.any(axis=(1, 2))]
    assert len(lone) > 100  # 5 in 32
    for row, column in ((4, 3), (5, 0), (0, 5)):
        np.testing.assert_allclose(
            lone[:, 10 + row, 10 + column], lone[:, 13, 14], rtol=1e-4, atol=1e-12
        )


@pytest.mark.parametrize("basis", ["gaussian", "legendre"])
def test_pulse_counts_by_empty_rings(basis):
    """Every pulse of a ring is seen: no pulse has probability 2⁻⁵ (released; of two families with
    slots of their own, each of them with half of the presence, (3/4)¹⁰), 1/11 (text).
    """
    n = 8000
    released = 1 / 32 if basis == "gaussian" else 0.75**10
    for variant, expected in (("released", released), ("text", 1 / 11)):
        empty = (
            (gsn(n, 45, basis=basis, variant=variant, periodic=True).latent == 0).all(axis=1).mean()
        )
        assert abs(empty - expected) < 4.5 * np.sqrt(expected / n)


def test_mass_on_a_ring():
    n = 10_000
    mass = gsn(n, 41, periodic=True, noise=0).latent.sum(axis=1)
    variance = 5 * (AMPLITUDE_SQUARE / 2 - 1 / 4)
    assert abs(mass.mean() - 2.5) < 4.5 * np.sqrt(variance / n)
    assert mass.var() == pytest.approx(variance, rel=0.05)
    text = gsn(n, 41, variant="text", periodic=True, noise=0).latent.sum(axis=1)
    assert text.mean() == pytest.approx(
        5 * np.sqrt(2 * np.pi) * 1.5, rel=0.04
    )  # unit peak: area √(2π) s


def test_text_gaussians_have_unit_peak():
    lone = gsn(4000, 99, variant="text", shifts="discrete", noise=0).latent
    peaks = lone.max(axis=1)
    peaks = peaks[(peaks > 0.4) & (peaks < 1.5)]
    assert 0.5 <= np.quantile(peaks, 0.01)
    assert 0.95 < np.median(peaks) < 1.2


@pytest.mark.parametrize("degree", [2, 3])
@pytest.mark.parametrize("variant", ["released", "text"])
def test_legendre_pulses_are_scipys(degree, variant):
    z, s = np.linspace(-40, 40, 801), 9.0
    if variant == "released":
        expected = lpmv(1, degree, np.sin(np.pi / 2 * np.clip(2 * z / s, -1, 1)))
    else:
        expected = np.where(np.abs(z) / s <= np.pi, lpmv(1, degree, np.cos(z / s)), 0)
    actual = legendre(z.astype(np.float32), np.float32(s), np.array(degree), variant)
    np.testing.assert_allclose(actual, expected, atol=1e-5)


def test_released_legendre_adds_both_families_with_their_own_places():
    """Second moment by Campbell; families at independent places, and odd times even, add without a
    cross term.
    """
    f = gsn(40_000, 63, basis="legendre", noise=0).latent.astype(float)
    u = np.linspace(-1, 1, 20_001)
    energy = (
        sum((lpmv(1, degree, np.sin(np.pi / 2 * u)) ** 2).mean() for degree in (2, 3)) * 10.5
    )  # E[s] times mean over ±1
    # P_3¹ has an area, so that two of the family's pulses in one sample correlate
    area = lpmv(1, 3, np.sin(np.pi / 2 * u)).mean() * 10.5
    # five slots for each family, each with a pulse with probability 1/4, independent of the other's
    expected = 1.25 / 126 * AMPLITUDE_SQUARE * energy + 20 * 0.25**2 * (area / 126) ** 2
    assert (f**2).mean() == pytest.approx(expected, rel=0.03)


def test_text_legendre_uses_one_degree_per_sample():
    """Around its centre P_3¹(cos) is symmetric and P_2¹(cos) too, but only l = 3 has a mean: lone
    pulses tell them apart.
    """
    f = gsn(
        4000, 301, basis="legendre", variant="text", periodic=True, shifts="discrete", noise=0
    ).latent.astype(float)
    rolled = np.stack([np.roll(row, 150 - int(np.abs(row).argmax())) for row in f if row.any()])
    lone = rolled[np.abs(rolled[:, :100]).max(axis=1) < 1e-6]
    lone = lone[np.abs(lone[:, 201:]).max(axis=1) < 1e-6]
    assert len(lone) > 100
    ratio = lone.sum(axis=1) / np.abs(lone).sum(axis=1)
    assert 0.3 < (np.abs(ratio) < 0.01).mean() < 0.7


# -- the ring's regimes ----------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 40).map(lambda h: 2 * h + 1), st.floats(-50, 50), st.integers(0, 1000))
def test_fourier_translation_keeps_magnitudes_and_composes(length, shift, seed):
    signal = np.random.default_rng(seed).normal(size=length)
    moved = translate_ring(signal, np.array([shift]))
    np.testing.assert_allclose(np.abs(np.fft.rfft(moved)), np.abs(np.fft.rfft(signal)), atol=1e-9)
    np.testing.assert_allclose(translate_ring(moved, np.array([-shift])), signal, atol=1e-9)
    whole = round(shift)
    np.testing.assert_allclose(
        translate_ring(signal, np.array([whole])), np.roll(signal, whole), atol=1e-9
    )


def lone_pulse_share(shifts):
    """Share of samples on a ring of 15 whose spectrum is, in modulus, that of one Gaussian at the
    ring's centre.
    """
    f = gsn(6000, 15, periodic=True, shifts=shifts, noise=0, random_state=2).latent
    spectrum = np.abs(np.fft.rfft(f[f.any(axis=1)].astype(float)))
    spectrum = spectrum[:, 1:4] / spectrum[:, :1]
    widths = np.linspace(0.5, 2.5, 4001)
    z = np.arange(-7, 8)
    table = np.abs(np.fft.rfft(np.exp(-(z**2) / 2 / widths[:, None] ** 2)))
    table = table[:, 1:4] / table[:, :1]
    order = np.argsort(table[:, 0])
    predicted = np.stack(
        [np.interp(spectrum[:, 0], table[order, 0], table[order, k]) for k in (1, 2)], axis=1
    )
    # narrow pulses: only there do aliases tell where between two points a pulse was evaluated
    narrow = spectrum[:, 0] > table[np.searchsorted(widths, 0.8), 0]
    match = np.abs(spectrum[:, 1:] - predicted).max(axis=1) < 2e-5
    return (match & narrow).sum() / len(f)


def test_fft_regime_moves_pulses_by_an_exact_cyclic_action():
    share = 5 / 32 * 0.3 / 2  # one pulse, and narrower than 0.8
    n = 6000
    assert abs(lone_pulse_share("fft") - share) < 5 * np.sqrt(share / n)
    assert lone_pulse_share("continuous") < share / 3


def mirror_symmetric(shifts):
    f = gsn(4000, 15, periodic=True, shifts=shifts, noise=0).latent
    f = f[f.any(axis=1)]
    centred = np.take_along_axis(f, (f.argmax(axis=1)[:, None] + np.arange(-7, 8)) % 15, axis=1)
    return (np.abs(centred - centred[:, ::-1]).max(axis=1) < 1e-6).mean()


def test_discrete_regime_has_whole_centres():
    assert (
        mirror_symmetric("discrete") > 5 / 31 - 0.03
    )  # one pulse on a point is symmetric about it
    assert mirror_symmetric("continuous") < 0.01
    assert mirror_symmetric("fft") < 0.01


@pytest.mark.parametrize("shifts", ["continuous", "discrete", "fft"])
@pytest.mark.parametrize("length", [14, 15])
def test_rings_are_stationary_all_the_way_round(shifts, length):
    f = gsn(20_000, length, periodic=True, shifts=shifts, random_state=4).latent.astype(float)
    assert np.abs(errors_of_mean(f)).max() < 4.8
    neighbours = (f - f.mean()) * (np.roll(f, 1, axis=1) - f.mean())
    assert np.abs(errors_of_mean(neighbours)).max() < 4.8  # also across the seam


def test_mixed_axes_wrap_only_where_asked():
    data = gsn(4000, (9, 9), periodic=(True, False), noise=0)
    assert data.periodic == (True, False)
    f = data.latent.reshape(-1, 9, 9).astype(float) - data.latent.mean()
    assert (f[:, 0] * f[:, -1]).mean() > 5 * (f[:, :, 0] * f[:, :, -1]).mean()


def test_generation_crosses_batches():
    assert gsn(3 * TEMPORARY // (5 * 15), 15, noise=0).latent.any(axis=1).mean() > 0.5


# -- Ising -----------------------------------------------------------------------------------------


def test_chain_in_equilibrium_has_correlations_tanh_beta():
    n, beta = 6000, 0.5
    s = ising(n, 12, beta=beta, sweeps=30).latent
    assert set(np.unique(s)) == {-1.0, 1.0}
    for lag in (1, 2, 3):
        products = s[:, lag:] * s[:, :-lag]
        expected = np.tanh(beta) ** lag
        assert np.abs(products.mean(axis=0) - expected).max() < 4.5 / np.sqrt(n)
    assert np.abs(s.mean(axis=0)).max() < 4.5 / np.sqrt(n)


def test_plane_in_equilibrium_has_onsagers_energy():
    beta = 0.3
    s = ising(1500, (5, 5), beta=beta, sweeps=30).latent.reshape(-1, 5, 5)
    modulus = 2 * np.sinh(2 * beta) / np.cosh(2 * beta) ** 2
    onsager = (
        1
        / np.tanh(2 * beta)
        * (1 + 2 / np.pi * (2 * np.tanh(2 * beta) ** 2 - 1) * ellipk(modulus**2))
        / 2
    )
    assert (s[:, 1:] * s[:, :-1]).mean() == pytest.approx(onsager, abs=0.015)
    assert (s[:, :, 1:] * s[:, :, :-1]).mean() == pytest.approx(onsager, abs=0.015)


def test_default_chain_has_growing_domains():
    n = 6000
    s = ising(n, 33).latent
    bonds = s[:, 1:] * s[:, :-1]
    assert np.abs(errors_of_mean(bonds)).max() < 4.8  # stationary: the chain's ends are not felt
    assert 0.6 < bonds.mean() < np.tanh(3)  # ordered, but not in equilibrium
    later = ising(2000, 33, sweeps=40).latent
    assert bonds.mean() + 0.02 < (later[:, 1:] * later[:, :-1]).mean()


def test_no_sweeps_and_no_coupling_leave_coins():
    for kwargs in ({"sweeps": 0}, {"beta": 0.0, "sweeps": 2}):
        s = ising(4000, 9, **kwargs).latent
        assert np.abs(np.corrcoef(s.T) - np.eye(9)).max() < 5 / np.sqrt(4000)


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gsn(0, 15), "n = 0"),
        (lambda: gsn(2.5, 15), "whole number"),
        (lambda: gsn(10, 1), "at least 2"),
        (lambda: gsn(10, 15, basis="haar"), "gaussian, legendre"),
        (lambda: gsn(10, 15, variant="code"), "released, text"),
        (lambda: gsn(10, 15, shifts="real"), "continuous, discrete, fft"),
        (lambda: gsn(10, 15, shifts="fft"), "periodic=True"),
        (lambda: gsn(10, (9, 9), basis="legendre"), "one axis"),
        (lambda: gsn(10, 15, noise=-1), "noise"),
        (lambda: gsn(10, 15, noise=float("nan")), "noise"),
        (lambda: gsn(10, 15, transform="dct"), "identity, dst1, permutation, orthogonal, linear"),
        (lambda: gsn(10, 15, transform=np.eye(14)), r"\(15, 15\)"),
        (lambda: gsn(10, 2, transform=[[1, 2], [3]]), "neither a name nor a matrix"),
        (lambda: gsn(10, 2, transform=[[1, np.nan], [0, 1]]), "NaN"),
        (lambda: gsn(10, 15, random_state=-1), "random_state"),
        (lambda: gsn(10, 15, random_state="seed"), "random_state"),
        (lambda: ising(-3), "n = -3"),
        (lambda: ising(10, beta=(5, 1)), "low <= high"),
        (lambda: ising(10, beta=(1, 2, 3)), "one number, or a pair"),
        (lambda: ising(10, sweeps=-1), "sweeps"),
        (lambda: random_linear(5, low=0), "0 < low"),
        (lambda: dst1(0), "at least 1"),
        (lambda: random_orthogonal(2.5), "at least 1"),
    ],
)
def test_errors_name_the_thing_and_the_remedy(call, message):
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
