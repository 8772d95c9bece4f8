"""Generator similarity, circular correlation and equivariance error: closed forms, ceilings, bad
input.
"""

from __future__ import annotations

import math
import time
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symlift.core.grid import Grid
from symlift.errors import InputError
from symlift.metrics import circular_correlation, equivariance_error, generator_similarity
from symlift.metrics.generators import derivative, low_band


def random_linear(rng, d):
    """Not symmetric, not orthogonal: singular values 0.5 to 2."""
    u, v = (np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(2))
    return u @ np.diag(np.linspace(0.5, 2, d)) @ v


def generator(grid, axis, truth="exact"):
    """I ⊗ … D … ⊗ I, built in full."""
    full = np.ones((1, 1))
    for a, (length, wraps) in enumerate(zip(grid.shape, grid.periodic, strict=True)):
        full = np.kron(full, derivative(length, wraps, truth) if a == axis else np.eye(length))
    return full


def observed(native, transform):
    """The generator as seen in observations x = A f, A = transform.T."""
    return transform.T @ native @ np.linalg.inv(transform.T)


def test_similarity_hardly_sees_frequencies_that_are_one_step_too_high():
    """A cosine in which planes count by their frequencies: signals of such a map are wrong, and
    only r shows it.
    """
    harmonic = np.fft.fftfreq(15, 1 / 15)
    modes = np.fft.fft(np.eye(15))
    off = np.fft.ifft(1j * (harmonic + np.sign(harmonic))[:, None] * modes, axis=0).real
    h = np.arange(1, 6)  # the low band
    expected = h @ (h + 1) / math.sqrt((h @ h) * ((h + 1) @ (h + 1)))
    score = generator_similarity(off[None], np.eye(15), 15, periodic=True, truth="exact")
    assert score == pytest.approx([expected], abs=1e-9)
    assert expected > 0.99


# --- generators


@pytest.mark.parametrize("scrambled", [False, True])
def test_ceilings_on_a_ring_of_fifteen(rng, scrambled):
    transform = random_linear(rng, 15) if scrambled else None
    native = derivative(15, periodic=True, truth="exact")
    learned = [observed(native, transform) if scrambled else native]
    k = np.arange(1, 6) * 2 * np.pi / 15
    ceiling = float(k @ np.sin(k) / math.sqrt((k @ k) * (np.sin(k) @ np.sin(k))))
    assert ceiling == pytest.approx(0.960, abs=0.001)
    assert generator_similarity(learned, transform, 15, periodic=True) == pytest.approx(
        [ceiling], abs=1e-9
    )
    assert generator_similarity(
        learned, transform, 15, periodic=True, truth="exact"
    ) == pytest.approx([1], abs=1e-9)


def test_a_transposed_transform_fails(rng):
    transform = random_linear(rng, 15)
    learned = [observed(derivative(15, True, "exact"), transform)]
    assert generator_similarity(learned, transform.T, 15, periodic=True, truth="exact")[0] < 0.9


@pytest.mark.parametrize("shape", [(15,), (16,), (5, 5), (4, 6), (3, 4, 3)])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("truth", ["difference", "exact"])
def test_the_truth_itself_scores_one_in_any_order_and_sign(rng, shape, periodic, truth):
    grid = Grid(shape, periodic)
    transform = random_linear(rng, grid.size)
    learned = [
        (-1.7) ** axis * observed(generator(grid, axis, truth), transform)
        for axis in reversed(range(grid.ndim))
    ]
    scores = generator_similarity(learned, transform, grid, truth=truth)
    np.testing.assert_allclose(scores, 1, atol=1e-9)


def test_open_window_exact_translation_scores_one():
    assert generator_similarity(
        [derivative(15, False, "exact")], None, 15, truth="exact"
    ) == pytest.approx([1])
    assert generator_similarity([derivative(15, False, "exact")], None, 15) == pytest.approx(
        [0.959], abs=0.001
    )


@pytest.mark.parametrize("shape", [(7,), (4, 5), (3, 4, 3)])
@pytest.mark.parametrize("bandwidth", [0.75, 0.9, 1.0])
def test_equals_the_projection_in_full(rng, shape, bandwidth):
    """The same number with every Kronecker product built, on random generators."""
    grid = Grid(shape, tuple(i % 2 == 0 for i in range(len(shape))))
    learned = rng.normal(size=(grid.ndim, grid.size, grid.size))
    for axis in range(grid.ndim):
        learned[axis] += 3 * generator(grid, axis)
    projection = np.ones((1, 1))
    for length in shape:
        k = np.abs(np.fft.fftfreq(length, 1 / length))
        f = np.fft.fft(np.eye(length)) / math.sqrt(length)
        projection = np.kron(projection, ((f.conj().T * (k <= bandwidth * length / 2)) @ f).real)
    expected = []
    for axis in range(grid.ndim):
        a, b = (
            projection @ m @ projection
            for m in (learned[axis], generator(grid, axis, "difference"))
        )
        expected.append(abs(np.sum(a * b)) / np.linalg.norm(a) / np.linalg.norm(b))
    np.testing.assert_allclose(
        generator_similarity(learned, None, grid, bandwidth=bandwidth), expected
    )
    np.testing.assert_allclose(
        generator_similarity(learned[::-1], None, grid, bandwidth=bandwidth), expected
    )


@pytest.mark.parametrize("length", [7, 8])
def test_spectral_derivative_differentiates_what_the_ring_can_hold(length):
    n = np.arange(length)
    for k in range((length + 1) // 2):
        step = 2 * np.pi * k / length
        np.testing.assert_allclose(
            derivative(length, True, "exact") @ np.sin(step * n),
            step * np.cos(step * n),
            atol=1e-12,
        )
    np.testing.assert_allclose(derivative(8, True, "exact") @ (-1.0) ** np.arange(8), 0, atol=1e-12)


def test_low_band_is_symmetric_and_orthonormal():
    for length, modes in [(15, 11), (16, 13), (63, 47)]:
        basis = low_band(length, 0.75)
        assert basis.shape[1] == modes
        np.testing.assert_allclose(basis.T @ basis, np.eye(modes), atol=1e-12)
    assert low_band(8, 1.0).shape == (8, 8)


def test_a_zero_generator_scores_zero():
    assert generator_similarity(np.zeros((1, 15, 15)), None, 15) == pytest.approx([0])


def test_generators_of_27_by_27_are_quick(rng):
    learned = rng.normal(size=(2, 729, 729))
    start = time.process_time()  # not the clock on the wall: the machine may be busy
    generator_similarity(learned, rng.normal(size=(729, 729)), (27, 27))
    assert time.process_time() - start < 4


RING = np.stack([derivative(15, True)])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((RING[0], None, 15), r"generators have shape \(15, 15\): a 15 grid needs \(1, 15, 15\)"),
        ((RING, None, (3, 5)), r"needs \(2, 15, 15\)"),
        ((RING * np.nan, None, 15), "generators have NaN"),
        ((RING, np.ones((15, 15)), 15), "transform is singular"),
        ((RING, np.zeros((15, 15)), 15), "transform is singular"),
        ((RING, np.full((15, 15), np.inf), 15), "transform has NaN or infinity"),
        ((RING, np.eye(14), 15), r"transform has shape \(14, 14\)"),
        ((RING, None, 15, True, 0.0), r"bandwidth 0.0 is not in \(0, 1\]"),
        ((RING, None, 15, True, 0.1), "bandwidth 0.1 keeps no derivative on axis 0"),
        (
            (RING, None, 15, True, 0.75, "sinc"),
            "truth 'sinc' is unknown: choose one of difference, exact",
        ),
    ],
)
def test_bad_generators_are_named(args, message):
    with pytest.raises(InputError, match=message):
        generator_similarity(*args)


# --- circular correlation


def all_pairs(a, b):
    i, j = np.triu_indices(len(a), 1)
    x, y = np.sin(a[i] - a[j]), np.sin(b[i] - b[j])
    return x @ y / math.sqrt((x @ x) * (y @ y))


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.integers(3, 40), st.floats(0, 3))
def test_fisher_lee_is_the_sum_over_all_pairs(seed, n, noise):
    rng = np.random.default_rng(seed)
    a = rng.uniform(-10, 10, n)
    b = a + noise * rng.normal(size=n)
    assert circular_correlation(a, b) == pytest.approx(all_pairs(a, b), abs=1e-9)
    assert circular_correlation(b, a) == pytest.approx(circular_correlation(a, b), abs=1e-12)


def test_rotations_and_reflections_of_angles(rng):
    a = rng.uniform(0, 2 * np.pi, 100)
    assert circular_correlation(a, a + 1.234) == pytest.approx(1)
    assert circular_correlation(a, 1.234 - a + 2 * np.pi) == pytest.approx(-1)
    assert abs(circular_correlation(a, rng.uniform(0, 2 * np.pi, 100))) < 0.3


def test_jammalamadaka_errs_on_balanced_angles(rng):
    """Balanced angles have no mean direction: a rotated copy is called anything, here by a rounding
    of it.
    """
    a = np.arange(12) * np.pi / 6 + 1e-9 * rng.normal(size=12)
    b = a + np.pi / 2 + 1e-3 * rng.normal(size=12)
    assert circular_correlation(a, b) == pytest.approx(1, abs=1e-3)
    assert circular_correlation(a, b, method="jammalamadaka") < 0.9
    tight = rng.normal(size=100) * 0.2
    noisy = tight + 0.1 * rng.normal(size=100)
    assert circular_correlation(tight, noisy, method="jammalamadaka") == pytest.approx(
        circular_correlation(tight, noisy), abs=0.02
    )


def test_equal_angles_correlate_with_nothing(rng):
    a = rng.uniform(0, 6, 20)
    assert circular_correlation(a, np.full(20, 0.3)) == 0
    assert circular_correlation(a, np.full(20, 0.3), method="jammalamadaka") == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (([1.0, 2.0], [1.0, 2.0, 3.0]), "a has 2 angles and b 3"),
        (([[1.0, 2.0]], [1.0, 2.0]), r"a has shape \(1, 2\)"),
        (([1.0], [1.0]), "at least two angles"),
        (([1.0, 2.0], [1.0, np.nan]), "b has NaN or infinity at position 1"),
        (
            ([1.0, 2.0], [1.0, 2.0], "mean"),
            "method 'mean' is unknown: choose one of fisher-lee, jammalamadaka",
        ),
    ],
)
def test_bad_angles_are_named(args, message):
    with pytest.raises(InputError, match=message):
        circular_correlation(*args)


# --- equivariance error


def spectral_shift(fields, t, axis):
    n = fields.shape[axis]
    k = np.fft.rfftfreq(n, 1 / n)
    phase = np.exp(-2j * np.pi * k * t / n).reshape(
        [-1 if a == axis else 1 for a in range(fields.ndim)]
    )
    return np.fft.irfft(np.fft.rfft(fields, axis=axis) * phase, n=n, axis=axis)


def toy_model(grid, mixing, gain=1.0):
    """x = f @ mixing; its action moves f, around on every axis and spectrally by fractions of a
    step.
    """
    unmix = np.linalg.inv(mixing)

    def act(X, t):
        fields = (X @ unmix).reshape(-1, *grid.shape)
        for axis, steps in enumerate(t, start=1):
            whole = float(steps).is_integer()
            fields = (
                np.roll(fields, int(steps), axis) if whole else spectral_shift(fields, steps, axis)
            )
        return gain * fields.reshape(len(X), -1) @ mixing

    return SimpleNamespace(grid=grid, lift=lambda X: X @ unmix, act=act)


@pytest.mark.parametrize(
    ("grid", "t"),
    [
        (Grid((15,), True), 2.3),
        (Grid((16,), True), 3),
        (Grid((15,)), -4),
        (Grid((5, 7), (False, True)), (2, -1.71)),
        (Grid((4, 3, 5), (False, True, True)), (-1, 0.5, 2)),
    ],
)
def test_a_true_action_has_no_error(rng, grid, t):
    model = toy_model(grid, random_linear(rng, grid.size))
    X = rng.normal(size=(20, grid.size))
    assert equivariance_error(model, X, t) < 1e-9
    estimator = SimpleNamespace(transform=model.lift, shift=model.act, grid_=grid)
    assert equivariance_error(estimator, X, t) < 1e-9


def test_errors_are_relative_and_direction_counts(rng):
    grid = Grid((15,), True)
    X = rng.normal(size=(200, 15))
    assert equivariance_error(toy_model(grid, np.eye(15), gain=1.25), 100 * X, 2) == pytest.approx(
        0.25
    )
    backwards = toy_model(grid, np.eye(15))
    forwards = backwards.act
    backwards.act = lambda X, t: forwards(X, [-s for s in t])
    assert equivariance_error(backwards, X, 2) > 1


def test_even_rings_by_fractions_without_nyquist(rng):
    fields = np.fft.irfft(np.fft.rfft(rng.normal(size=(20, 16)))[:, :8], n=16)
    assert equivariance_error(toy_model(Grid((16,), True), np.eye(16)), fields, 0.4) < 1e-9


def test_margin_leaves_out_the_ends(rng):
    grid = Grid((15,))
    X = rng.normal(size=(20, 15))
    model = toy_model(grid, np.eye(15))
    model.lift = lambda X: np.concatenate(
        [X[:, :1] * 0, X[:, 1:]], axis=1
    )  # its first point is blind
    assert equivariance_error(model, X, 2) > 0.1
    assert equivariance_error(model, X, 2, margin=1) < 1e-12


@pytest.mark.parametrize(
    ("t", "margin", "message"),
    [
        (0.5, 0, "shift 0.5 along open axis 0 is not whole: give whole steps"),
        ((1, 1), 0, "give 1 finite number"),
        (float("nan"), 0, "give 1 finite number"),
        (15, 0, "moves all of open axis 0"),
        (5, 5, "shift 5.0 and margin 5 leave no point of open axis 0"),
    ],
)
def test_bad_shifts_are_named(rng, t, margin, message):
    with pytest.raises(InputError, match=message):
        equivariance_error(toy_model(Grid((15,)), np.eye(15)), rng.normal(size=(4, 15)), t, margin)


def test_bad_models_and_observations_are_named(rng):
    model = toy_model(Grid((15,)), np.eye(15))
    with pytest.raises(InputError, match="object has neither lift, act, grid nor"):
        equivariance_error(object(), rng.normal(size=(4, 15)), 1)
    with pytest.raises(InputError, match=r"X has shape \(15,\)"):
        equivariance_error(model, np.ones(15), 1)
    with pytest.raises(InputError, match=r"lift\(X\) is 0"):
        equivariance_error(model, np.zeros((4, 15)), 1)
    with pytest.raises(InputError, match="X has NaN"):
        equivariance_error(model, np.full((4, 15), np.nan), 1)
