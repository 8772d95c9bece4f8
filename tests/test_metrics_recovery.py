"""Signal recovery: against brute force, and its closed-form ceilings."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from symlift.core.grid import Alignment, Grid
from symlift.errors import InputError
from symlift.metrics import align, fields, signal_recovery

pytestmark = pytest.mark.portable


def fourier_shift(y, t, axis):
    """Reference interpolation by FFT, the Nyquist mode kept real."""
    n = y.shape[axis]
    k = np.fft.fftfreq(n, 1 / n)
    factor = np.exp(-2j * np.pi * k * t / n)
    if n % 2 == 0:
        factor[n // 2] = np.cos(np.pi * t)
    factor = factor.reshape([-1 if a == axis else 1 for a in range(y.ndim)])
    return np.fft.ifft(np.fft.fft(y, axis=axis) * factor, axis=axis).real


def reference_pearson(latent, recovered, grid, axes, flips, shift):
    """Apply an alignment step by step to (n, *shape) arrays and correlate what overlaps."""
    y = np.transpose(recovered, (0, *(a + 1 for a in axes)))
    f = latent
    for axis, (flip, t, wraps) in enumerate(zip(flips, shift, grid.periodic, strict=True), start=1):
        if flip:
            y = np.flip(y, axis)
        if wraps:
            y = fourier_shift(y, t, axis)
        else:
            t, n = int(t), grid.shape[axis - 1]
            y = np.take(y, range(max(0, -t), n - max(0, t)), axis)
            f = np.take(f, range(max(0, t), n - max(0, -t)), axis)
    a, b = f.ravel() - f.mean(), y.ravel() - y.mean()
    size = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / size) if size > 1e-9 else 0.0


def brute_force(latent, recovered, grid):
    """max |r| of every alignment, one after the other; rings in tenths of a step, then refined."""
    spans = [
        np.arange(10 * n) / 10 if wraps else range(-max(1, n // 10), max(1, n // 10) + 1)
        for n, wraps in zip(grid.shape, grid.periodic, strict=True)
    ]
    kinds = list(zip(grid.shape, grid.periodic, strict=True))
    best = (-1.0, (), (), ())
    for axes in itertools.permutations(range(grid.ndim)):
        if [kinds[a] for a in axes] != kinds:
            continue
        for flips in itertools.product((False, True), repeat=grid.ndim):
            for shift in itertools.product(*spans):
                r = abs(reference_pearson(latent, recovered, grid, axes, flips, shift))
                best = max(best, (r, axes, flips, shift))
    r, axes, flips, shift = best
    rings = [a for a, wraps in enumerate(grid.periodic) if wraps]
    if not rings:
        return r, r

    def loss(x):
        moved = [x[rings.index(a)] if a in rings else t for a, t in enumerate(shift)]
        return -abs(reference_pearson(latent, recovered, grid, axes, flips, moved))

    start = [shift[a] for a in rings]
    result = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-14})
    return r, max(r, -result.fun)


def candidates(grid):
    """How many alignments brute force has to try."""
    spans = [10 * n if wraps else 3 for n, wraps in zip(grid.shape, grid.periodic, strict=True)]
    return math.prod(spans) * sum(1 for _ in grid.orientations())


@st.composite
def cases(draw):
    ndim = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(2, 7 if ndim == 1 else 4)) for _ in range(ndim))
    grid = Grid(shape, tuple(draw(st.booleans()) for _ in shape))
    assume(candidates(grid) <= 4000)
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    latent = rng.normal(2, 1, size=(draw(st.integers(2, 5)), *shape))
    recovered = (
        draw(st.sampled_from([0.0, 1.0])) * latent[:, ::-1] + rng.normal(size=latent.shape) - 1
    )
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return latent.astype(dtype), recovered.astype(dtype), grid


@settings(max_examples=30, deadline=None, derandomize=True)
@given(cases())
def test_pooled_r_equals_brute_force(case):
    latent, recovered, grid = case
    recovery = signal_recovery(latent, recovered, grid)
    f, y = latent.astype(np.float64), recovered.astype(np.float64)
    coarse, refined = brute_force(f, y, grid)
    a = recovery.alignment
    # refinement may climb one of two peaks that are equally high on the tenths, never fall below
    # them
    assert recovery.r >= coarse - 1e-9
    assert recovery.r == pytest.approx(refined, abs=1e-6)
    assert recovery.r == pytest.approx(
        a.sign * reference_pearson(f, y, grid, a.axes, a.flips, a.shift), abs=1e-9
    )


@settings(max_examples=40, deadline=None, derandomize=True)
@given(cases())
def test_alignment_applied_reproduces_r(case):
    latent, recovered, grid = case
    recovery = signal_recovery(latent, recovered, grid)
    moved = align(recovered, recovery.alignment, grid)
    assert moved.shape == recovered.shape
    assert np.isfinite(moved).all()
    target = (slice(None), *grid.overlap([round(t) for t in recovery.alignment.shift])[1])
    r = np.corrcoef(latent[target].ravel().astype(np.float64), moved[target].ravel())[0, 1]
    assert recovery.r == pytest.approx(r, abs=1e-9)
    assert 0 <= recovery.r <= 1
    if np.std(latent, axis=tuple(range(1, latent.ndim))).min() > 0.5 and latent[target][0].size > 2:
        rows = [
            np.corrcoef(a.ravel(), b.ravel())[0, 1]
            for a, b in zip(latent[target], moved[target], strict=True)
        ]
        assert recovery.r_per_sample == pytest.approx(np.mean(rows), abs=1e-6)


def band_limited(rng, n, shape, periodic):
    """Noise without a Nyquist mode on periodic axes of even length, so that any shift is
    invertible.
    """
    f = rng.normal(size=(n, *shape))
    for axis, (length, wraps) in enumerate(zip(shape, periodic, strict=True), start=1):
        if wraps and length % 2 == 0:
            spectrum = np.fft.fft(f, axis=axis)
            np.moveaxis(spectrum, axis, 0)[length // 2] = 0
            f = np.fft.ifft(spectrum, axis=axis).real
    return f


RINGS = [
    ((15,), (True,), (3.37,)),
    ((16,), (True,), (-5.5,)),
    ((50,), (True,), (24.71,)),
    ((7, 7), (True, True), (1.23, -2.78)),
    ((6, 8), (True, True), (0.05, 3.999)),
    ((9, 6), (False, True), (0, 2.456)),
    ((4, 5, 4), (True, False, True), (1.31, 0, -0.66)),
    ((4, 4, 4), (True, True, True), (1.31, 0.5, -0.66)),
]


@pytest.mark.parametrize(("shape", "periodic", "shift"), RINGS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_known_alignment_on_rings_scores_one(rng, shape, periodic, shift, dtype):
    grid = Grid(shape, periodic)
    latent = band_limited(rng, 40, shape, periodic)
    orientation = list(grid.orientations())[-1]
    recovered = orientation.reorient(latent)
    for axis, t in enumerate(shift, start=1):
        recovered = fourier_shift(recovered, t, axis) if t else recovered
    recovery = signal_recovery(latent.astype(dtype), (5 - 3 * recovered).astype(dtype), grid)
    assert recovery.r == pytest.approx(1, abs=1e-6)
    assert recovery.r_per_sample == pytest.approx(1, abs=1e-6)
    assert recovery.alignment.sign == -1


def test_nyquist_modes_keep_their_axis_when_axes_are_permuted(rng):
    """A fraction of a step damps the alternating mode of its own axis only, here after a cyclic
    permutation.
    """
    grid = Grid((4, 4, 4), True)
    latent = band_limited(rng, 20, (4, 4, 4), (True,) * 3)
    recovered = fourier_shift(latent, 0.5, 1).transpose(0, 2, 3, 1)
    recovered = recovered + (-1.0) ** np.arange(4) * rng.normal(size=(20, 4, 4, 1))
    recovery = signal_recovery(latent, recovered, grid)
    a = recovery.alignment
    assert not float(a.shift[0]).is_integer()
    assert recovery.r == pytest.approx(
        a.sign * reference_pearson(latent, recovered, grid, a.axes, a.flips, a.shift)
    )
    assert (
        recovery.r > 0.95
    )  # half a step along that axis removes the disturbance, and nothing else


@pytest.mark.parametrize("shape", [(30,), (15, 15), (21, 15), (5, 5, 5)])
def test_every_known_alignment_on_open_windows_scores_one(rng, shape):
    """Cut two windows out of one wide field: only the overlap is common to both."""
    grid = Grid(shape)
    reach = [max(1, n // 10) for n in shape]
    wide = rng.normal(size=(30, *(n + 2 * m for n, m in zip(shape, reach, strict=True))))
    shift = [m if i % 2 else -m for i, m in enumerate(reach)]

    def cut(by):
        return wide[
            (
                slice(None),
                *(slice(m - t, m - t + n) for m, t, n in zip(reach, by, shape, strict=True)),
            )
        ]

    latent, seen = cut([0] * len(shape)), cut(shift)
    for orientation in grid.orientations():
        recovery = signal_recovery(latent, -2 * orientation.reorient(seen), grid)
        assert recovery.r == pytest.approx(1, abs=1e-9)
        assert recovery.r_per_sample == pytest.approx(1, abs=1e-9)


def test_shifts_are_limited_on_open_axes(rng):
    latent = rng.normal(size=(300, 15))
    assert signal_recovery(latent, np.roll(latent, 1, axis=1), 15).r == pytest.approx(1)
    assert signal_recovery(latent, np.roll(latent, 2, axis=1), 15).r < 0.1
    assert signal_recovery(
        latent, np.roll(latent, 2, axis=1), 15, periodic=True
    ).r == pytest.approx(1)


def test_alignment_says_what_maps_recovered_onto_latent(rng):
    latent = rng.normal(size=(40, 15))
    recovery = signal_recovery(latent, -np.roll(latent, -4, axis=1), 15, periodic=True)
    assert recovery.alignment == Alignment((0,), (False,), (4.0,), -1)
    np.testing.assert_allclose(
        align(-np.roll(latent, -4, axis=1), recovery.alignment, 15, periodic=True), latent
    )


def test_ties_go_to_the_plainest_alignment():
    latent = np.tile(
        [0.0, 1.0, 0.0, 1.0, 0.0], (3, 1)
    )  # a palindrome: flipped and not are the same
    assert signal_recovery(latent, latent, 5).alignment == Alignment((0,), (False,), (0.0,), 1)


def test_unequal_axes_are_not_permuted(rng):
    latent = rng.normal(size=(200, 3, 5))
    turned = latent.transpose(0, 2, 1).reshape(200, 15)
    assert signal_recovery(latent, turned, (3, 5)).r < 0.3
    kinds = Grid((5, 5), (True, False))  # equal in length, not in kind
    square = rng.normal(size=(200, 5, 5))
    assert signal_recovery(square, square.transpose(0, 2, 1), kinds).r < 0.3


@pytest.mark.parametrize("periodic", [False, True])
def test_translating_recovered_on_a_ring_changes_nothing(rng, periodic):
    grid = Grid((9, 5), (periodic, True))
    latent, recovered = rng.normal(size=(2, 20, 9, 5))
    recovered = recovered + latent
    moved = fourier_shift(recovered, 1.618, 2)
    assert signal_recovery(latent, recovered, grid).r == pytest.approx(
        signal_recovery(latent, moved, grid).r, abs=1e-7
    )


@pytest.mark.parametrize(
    ("shape", "periodic"), [((15,), True), ((63,), False), ((15, 15), False), ((10, 10), True)]
)
def test_noise_scores_below_five_standard_errors(rng, shape, periodic):
    n, size = 200, math.prod(shape)
    scores = [signal_recovery(*rng.normal(size=(2, n, size)), shape, periodic).r for _ in range(10)]
    assert np.mean(scores) < 5 / math.sqrt(n * size)


def test_near_empty_samples_do_not_count_per_sample(rng):
    latent = rng.normal(size=(50, 20))
    latent[:10] *= 0.05
    recovered = latent.copy()
    recovered[:10] = rng.normal(size=(10, 20)) * 0.05
    assert signal_recovery(latent, recovered, 20).r_per_sample == pytest.approx(1)
    latent[:10] *= 3  # now above a tenth of the rms deviation
    assert signal_recovery(latent, recovered, 20).r_per_sample < 0.9


def test_per_sample_deviation_is_about_each_samples_own_mean(rng):
    latent = rng.normal(size=(40, 20))
    latent[:5] = 100.0  # far from the global mean, and yet empty
    recovered = latent + 0.0
    assert signal_recovery(latent, recovered, 20).r_per_sample == pytest.approx(1)


def test_constant_samples_of_recovered_score_zero(rng):
    latent = rng.normal(size=(10, 20))
    recovered = latent.copy()
    recovered[:5] = 0.1
    assert signal_recovery(latent, recovered, 20).r_per_sample == pytest.approx(0.5)


def test_constant_recovered_scores_zero(rng):
    recovery = signal_recovery(rng.normal(size=(10, 20)), np.full((10, 20), 0.1), 20)
    assert (recovery.r, recovery.r_per_sample) == (0, 0)


def test_a_field_that_lives_in_one_corner(rng):
    """Overlaps without any variation correlate with nothing, and raise no warning."""
    latent = np.zeros((20, 4))
    latent[:, 0] = rng.normal(size=20)
    assert signal_recovery(latent, latent[:, ::-1], 4).r == pytest.approx(1)


def test_samples_constant_in_themselves_have_no_r_per_sample():
    latent = np.repeat(np.arange(5.0)[:, None], 4, axis=1)
    recovery = signal_recovery(latent, latent, 4)
    assert recovery.r == pytest.approx(1)
    assert recovery.r_per_sample == 0


def test_batches_and_offsets_do_not_matter(rng, monkeypatch):
    latent = rng.normal(size=(100, 6, 4)) + 1000
    recovered = np.roll(latent, 1, axis=2) + 0.5 * rng.normal(size=latent.shape)
    whole = signal_recovery(latent, recovered, (6, 4), (False, True))
    monkeypatch.setattr(fields, "BATCH_VALUES", 150)
    split = signal_recovery(latent, recovered - 1e6, (6, 4), (False, True))
    assert split.r == pytest.approx(whole.r, abs=1e-8)
    assert split.r_per_sample == pytest.approx(whole.r_per_sample, abs=1e-8)


def test_flat_shaped_and_integer_input_agree(rng):
    latent = rng.integers(0, 255, size=(30, 5, 5), dtype=np.uint8)
    other = rng.integers(0, 255, size=(30, 5, 5), dtype=np.uint8)
    assert signal_recovery(latent, other, (5, 5)) == signal_recovery(
        latent.reshape(30, 25), other, Grid((5, 5))
    )


def test_a_grid_keeps_its_own_flags(rng):
    latent = rng.normal(size=(30, 15))
    moved = np.roll(latent, 7, axis=1)
    assert signal_recovery(latent, moved, Grid((15,), True), periodic=False).r == pytest.approx(1)


# --- the paper's protocol


def test_paper_waveforms_against_brute_force(rng):
    latent, recovered = rng.normal(size=(2, 12, 9))
    best = [
        max(abs(np.corrcoef(f, np.roll(g, s))[0, 1]) for g in (y, y[::-1]) for s in range(9))
        for f, y in zip(latent, recovered, strict=True)
    ]
    recovery = signal_recovery(latent, recovered, 9, protocol="paper")
    assert recovery.r == pytest.approx(np.mean(best))
    assert recovery.r_per_sample == recovery.r
    assert recovery.alignment is None


@pytest.mark.parametrize("shape", [(5, 5), (4, 5), (3, 3, 3)])
def test_paper_images_against_brute_force(rng, shape):
    grid = Grid(shape)
    latent, recovered = rng.normal(size=(2, 8, *shape))
    turned = [o.reorient(recovered) for o in grid.orientations()]
    assert len(turned) == {(5, 5): 8, (4, 5): 4, (3, 3, 3): 48}[shape]
    best = [
        max(abs(np.corrcoef(latent[i].ravel(), t[i].ravel())[0, 1]) for t in turned)
        for i in range(8)
    ]
    assert signal_recovery(latent, recovered, grid, protocol="paper").r == pytest.approx(
        np.mean(best)
    )


def test_paper_leaves_out_constant_samples_only(rng):
    latent = rng.normal(size=(10, 15))
    latent[3] = 0.1
    latent[4] *= 1e-6
    assert signal_recovery(latent, latent[:, ::-1], 15, protocol="paper").r == pytest.approx(1)
    each = np.stack(
        [s * np.roll(row, k) for k, (s, row) in enumerate(zip([1, -1] * 5, latent, strict=True))]
    )
    assert signal_recovery(latent, each, 15, protocol="paper").r == pytest.approx(1)


# --- speed and bad input


def test_fast_enough(rng):
    latent, recovered = rng.normal(size=(2, 20_000, 225))
    start = time.process_time()  # not the clock on the wall: the machine may be busy
    signal_recovery(latent, recovered, (15, 15))
    assert time.process_time() - start < 4  # 0.7 s where nothing else runs; the promise is 2 s


def test_detail_is_r_without_each_samples_own_mean():
    rng = np.random.default_rng(3)
    latent = rng.normal(size=(400, 4, 5)) + 3 * rng.normal(size=(400, 1, 1))
    recovered = latent + 0.5 * rng.normal(size=latent.shape)
    recovery = signal_recovery(latent, -recovered[:, ::-1], (4, 5))
    a, b = (
        v.reshape(400, -1) - v.reshape(400, -1).mean(axis=1, keepdims=True)
        for v in (latent, recovered)
    )
    assert recovery.r_detail == pytest.approx(np.corrcoef(a.ravel(), b.ravel())[0, 1], abs=1e-9)
    assert recovery.r_detail < recovery.r


def test_a_map_that_finds_only_the_mean_has_no_detail():
    rng = np.random.default_rng(4)
    latent = rng.normal(size=(500, 6, 6)) + 2.6 * rng.normal(size=(500, 1, 1))
    only_mean = latent.mean(axis=(1, 2), keepdims=True) + 0.1 * rng.normal(size=latent.shape)
    recovery = signal_recovery(latent, only_mean, (6, 6))
    assert recovery.r > 0.9
    assert abs(recovery.r_detail) < 0.1


GOOD = np.random.default_rng(1).normal(size=(6, 12))
HOLED = np.where(np.arange(72).reshape(6, 12) == 40, np.nan, GOOD)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((GOOD, GOOD[:, :11], 12), r"recovered has shape \(6, 11\): a 12 grid needs \(n, 12\)"),
        (
            (GOOD, GOOD, (3, 5)),
            r"latent has shape \(6, 12\): a 3x5 grid needs \(n, 15\) or \(n, 3, 5\)",
        ),
        ((GOOD[0], GOOD, 12), "latent has shape"),
        ((GOOD, GOOD[:4], 12), "latent has 6 samples and recovered 4"),
        ((GOOD, HOLED, 12), "recovered has NaN or infinity at row 3, column 4"),
        ((HOLED, GOOD, 12), "latent has NaN or infinity at row 3, column 4"),
        ((GOOD[:0], GOOD[:0], 12), "latent is empty"),
        ((GOOD + 1j, GOOD, 12), "latent has dtype complex128"),
        ((np.full((6, 12), 0.1), GOOD, 12), "latent is constant"),
        ((np.full((6, 12), 0.1), GOOD, 12, False, "paper"), "latent is constant in every sample"),
        (
            (GOOD, GOOD, 12, False, "each"),
            "protocol 'each' is unknown: choose one of global, paper",
        ),
        ((GOOD, GOOD, (3, 4), (True,)), "periodic has 1 entries"),
    ],
)
def test_bad_input_is_named(args, message):
    with pytest.raises(InputError, match=message) as caught:
        signal_recovery(*args)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("shift", "message"),
    [
        ((0.5,), "shift 0.5 along open axis 0 is not whole"),
        ((12.0,), "moves all of open axis 0"),
        ((1.0, 1.0), "give 1"),
    ],
)
def test_align_refuses_what_an_open_window_cannot_show(shift, message):
    with pytest.raises(InputError, match=message):
        align(GOOD, Alignment((0,), (False,), shift), 12)
