"""The paper's propositions and lemmas, as computations: each test names the statement that it checks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ortho_group

from symlift import Grid, LiftedModel
from symlift.core.fourier import regular_frequencies
from symlift.core.group import TranslationGroup, plane_basis

pytestmark = pytest.mark.portable

TORI = [(15,), (3, 5), (3, 3, 5)]


def torus_group(shape: tuple[int, ...], dtype: type = np.float64, seed: int = 0) -> TranslationGroup:
    """Translations of a torus, in coordinates that nobody knows."""
    theta, _ = regular_frequencies(shape)
    Q = ortho_group.rvs(2 * theta.shape[1] + 1, random_state=seed)
    return TranslationGroup(Q.astype(dtype), theta.astype(dtype))


@pytest.mark.parametrize("shape", TORI)
def test_oracle_deconvolution(shape, precision, rng):
    """z = Σ_s f(s) ρ(s) h₀ with h_m ≠ 0 on every mode: w⋆ with w_m = h_m/|h_m|² gives f(t) = w⋆ᵀ ρ(-t) z back."""
    grid = Grid(shape, periodic=True)
    group = torus_group(shape, precision)
    points = grid.coordinates().astype(precision)
    latent = rng.normal(size=(20, grid.size)).astype(precision)
    h = (rng.uniform(0.5, 1.5, group.dimension) * rng.choice([-1, 1], group.dimension)).astype(precision)
    orbit = group.act(np.tile(group.Q @ h, (grid.size, 1)), points)
    z = latent @ orbit

    # per plane, h is r (cos φ, sin φ): turn the plane by φ so that the filter lies along its first direction
    pairs = h[:-1].reshape(-1, 2)
    modulus, phase = np.linalg.norm(pairs, axis=1), np.arctan2(pairs[:, 1], pairs[:, 0])
    first, second = group.Q[:, 0:-1:2], group.Q[:, 1::2]
    cos, sin = np.cos(phase), np.sin(phase)
    turned = np.stack([cos * first + sin * second, -sin * first + cos * second], axis=-1).reshape(len(first), -1)
    # a lone column has no plane to turn in: its sign goes into the column itself
    Q = np.concatenate([turned, group.Q[:, -1:] * np.sign(h[-1])], axis=1)
    r = np.concatenate([2 / modulus, 1 / np.abs(h[-1:])]) / grid.size
    scale = 1 / float(np.linalg.norm(r))
    turned_group = TranslationGroup(Q, group.theta)
    eye = np.eye(group.dimension, dtype=precision)
    model = LiftedModel(
        grid, np.zeros(group.dimension, dtype=precision), scale, eye, turned_group, r * scale, "identity"
    )
    recovered = model.lift(z)
    assert recovered.dtype == precision
    assert np.abs(recovered - latent).max() < (1e-5 if precision is np.float64 else 1e-4) * np.abs(latent).max()
    if precision is np.float64:
        assert np.abs(recovered - latent).max() < 1e-10


@pytest.mark.parametrize("N", [9, 15])
def test_delta_autocorrelation_means_flat_spectrum_and_fixed_kernel_energy(N, rng):
    """h₀ᵀρ(n)h₀ = δ_n0 ⇒ |h_m|² flat; then Σ|κ_n|² = 1 for every filter of norm one."""
    group = torus_group((N,))
    _, r = regular_frequencies((N,))
    h = group.Q @ np.append(np.stack([r[:-1], 0 * r[:-1]], 1).ravel(), r[-1])
    steps = np.arange(N, dtype=np.float64)[:, None]
    orbit = group.act(np.tile(h, (N, 1)), steps)
    assert np.allclose(orbit @ h, np.eye(N)[0], atol=1e-12)
    for _ in range(5):
        w = rng.normal(size=N)
        kernel = orbit @ (w / np.linalg.norm(w))
        assert np.isclose(np.sum(kernel**2), 1)
    other = group.act(np.tile(h * np.arange(N), (N, 1)), steps)
    assert not np.isclose(np.sum((other @ (w / np.linalg.norm(w))) ** 2), 1)


def test_infomax_flattens_the_kernel_spectrum(rng):
    """max Σ log(s_m |κ_m|²) with Σ|κ_m|² = C is at |κ_m|² = C/N, whatever the spectrum s."""
    N, C = 12, 2.0
    spectrum = torch.tensor(rng.uniform(0.1, 5, N))
    free = torch.tensor(rng.normal(size=N), requires_grad=True)
    optimiser = torch.optim.LBFGS([free], max_iter=200, line_search_fn="strong_wolfe")

    def closure():
        optimiser.zero_grad()
        loss = -torch.log(spectrum * C * torch.softmax(free, 0)).sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    assert torch.allclose(C * torch.softmax(free, 0), torch.full((N,), C / N, dtype=torch.float64), atol=1e-4)


@given(st.integers(4, 24), st.data())
def test_flat_spectrum_and_short_support_force_a_delta(N, data):
    """A kernel on at most N/2 neighbouring points with more than one of them has a spectrum that is not flat."""
    length = data.draw(st.integers(1, N // 2))
    values = data.draw(st.lists(st.floats(0.1, 1.0), min_size=length, max_size=length))
    signs = data.draw(st.lists(st.sampled_from([-1, 1]), min_size=length, max_size=length))
    kernel = np.zeros(N)
    kernel[:length] = np.array(values) * signs
    kernel = np.roll(kernel, data.draw(st.integers(0, N)))
    power = np.abs(np.fft.fft(kernel)) ** 2
    flatness = np.ptp(power) / power.mean()
    # the longest lag of the autocorrelation has one term only, first times last, which cannot cancel
    bound = 2 * abs(values[0] * values[-1]) / np.sum(np.square(values)) if length > 1 else 0.0
    assert (flatness < 1e-9) == (length == 1)
    assert flatness >= bound - 1e-9


def test_shift_invariant_kernel_identifies_the_action_where_it_is_observed():
    """k(s, t) = κ(s - t) and the filter's orbit spanning X_obs give ρ̂ = ρ on X_obs; off it, ρ̂ is free."""
    dimension = 9
    group = TranslationGroup(np.eye(dimension), np.array([[0.3, 0.9, 1.7, 2.2]]))
    h = np.array([1.0, 0.2, 0.7, -0.4, 0.9, 0.1, 0.0, 0.0, 1.0])  # nothing in the fourth plane
    w = np.array([0.5, 0.1, -0.8, 0.4, 0.3, 0.6, 0.0, 0.0, 0.7])
    observed = np.array([1, 1, 1, 1, 1, 1, 0, 0, 1], dtype=bool)
    s = np.linspace(-4, 4, 15)[:, None]

    def kernel(theta):
        learned = TranslationGroup(group.Q, theta)
        return group.act(np.tile(h, (15, 1)), s) @ learned.act(np.tile(w, (15, 1)), s).T

    def shift_invariant(k):
        return all(np.diagonal(k, lag).std() < 1e-9 for lag in range(-13, 14))

    elsewhere, wrong = group.theta.copy(), group.theta.copy()
    elsewhere[0, 3] += 0.5
    wrong[0, 1] += 0.5
    assert shift_invariant(kernel(elsewhere))
    assert not shift_invariant(kernel(wrong))
    difference = TranslationGroup(group.Q, elsewhere).matrix([1.3]) - group.matrix([1.3])
    assert np.abs(difference[:, observed]).max() < 1e-12
    assert np.abs(difference).max() > 0.1


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_continuity_bound_of_the_lifted_function(axes, precision, rng):
    """|y(t₁) - y(t₂)| ≤ ‖w‖ ‖ρ̂(-t₁) - ρ̂(-t₂)‖_F ‖z‖, and the right side vanishes as t₁ → t₂."""
    Q = ortho_group.rvs(10, random_state=0).astype(precision)
    group = TranslationGroup(Q, rng.normal(size=(axes, 5)).astype(precision))
    for _ in range(20):
        w, z = rng.normal(size=(2, 10)).astype(precision)
        t1, t2 = rng.normal(size=(2, axes)).astype(precision)
        difference = group.matrix(-t1) - group.matrix(-t2)
        bound = np.linalg.norm(w) * np.linalg.norm(difference) * np.linalg.norm(z)
        assert abs(w @ difference @ z) <= bound * (1 + 1e-5)
    gaps = [np.linalg.norm(group.matrix(t1) - group.matrix(t1 + step)) for step in (1e-1, 1e-2, 1e-3)]
    assert gaps[0] > 5 * gaps[1] > 25 * gaps[2]


def gaussian_entropy(C: np.ndarray) -> float:
    return 0.5 * np.linalg.slogdet(2 * np.pi * np.e * np.atleast_2d(C))[1] if C.size else 0.0


def test_total_correlation_is_a_sum_of_conditional_informations(rng):
    """TC = Σ I(Y_i; Y_{i-1}) + Σ_m Σ_i I(Y_i; Y_{i-m-1} | Y_{i-m:i-1}), in the closed form for Gaussians."""
    d = 7
    A = rng.normal(size=(d, d))
    C = A @ A.T + np.eye(d)

    def h(*index: int) -> float:
        return gaussian_entropy(C[np.ix_(index, index)])

    total = sum(h(i) for i in range(d)) - h(*range(d))
    terms = 0.0
    for m in range(d - 1):
        for i in range(m + 1, d):
            between = tuple(range(i - m, i))
            terms += (
                h(i, *between) + h(i - m - 1, *between) - h(i, i - m - 1, *between) - (h(*between) if between else 0.0)
            )
    assert np.isclose(total, terms)


@pytest.mark.parametrize("gap", [0.01, 0.1, 1.0])
def test_lifting_bounds_mutual_information_from_below(gap, rng):
    """I(Y_i; Y_j) ≥ ½ log(N_h(Y_j)/‖ρ̂(t_i - t_j) - 1‖²_F), for Gaussian X with E‖X‖² = 1 and ‖w‖ = 1."""
    d = 6
    group = TranslationGroup(ortho_group.rvs(d, random_state=2), np.array([[0.5, 1.0, 1.5]]))
    A = rng.normal(size=(d, d))
    C = A @ A.T
    C /= np.trace(C)
    w = rng.normal(size=d)
    w /= np.linalg.norm(w)
    rows = np.stack([group.matrix([-t]).T @ w for t in (0.0, gap)])
    S = rows @ C @ rows.T
    information = gaussian_entropy(S[0, 0]) + gaussian_entropy(S[1, 1]) - gaussian_entropy(S)
    spread = np.linalg.norm(group.matrix([gap]) - np.eye(d)) ** 2
    assert information >= 0.5 * np.log(S[1, 1] / spread) - 1e-9


def test_plane_basis_evaluates_between_grid_points():
    """The lifted signal is a function of continuous t: T(θ) at half steps is the band-limited interpolation."""
    theta, r = regular_frequencies((9,))
    t = np.arange(9)[:, None] - 4.0
    fine = plane_basis(theta, t + 0.5, 9)
    weights = np.append(np.repeat(r[:-1], 2), r[-1])
    coarse = plane_basis(theta, t, 9)
    half_step = (fine * weights**2) @ coarse.T
    f = np.cos(2 * np.pi * 2 * np.arange(9) / 9)
    assert np.allclose(half_step @ f, np.cos(2 * np.pi * 2 * (np.arange(9) + 0.5) / 9))
