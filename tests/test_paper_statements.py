"""The paper's propositions and lemmas, as computations: each test names the statement that it checks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ortho_group

from symlift import Grid, LiftedModel
from symlift.group import TranslationGroup, plane_basis, regular_frequencies

TORI = [(15,), (3, 5), (3, 3, 5)]


def torus_group(shape: tuple[int, ...], dtype: torch.dtype = torch.float64, seed: int = 0) -> TranslationGroup:
    """Translations of a torus, in coordinates that nobody knows."""
    theta, _ = regular_frequencies(shape)
    Q = ortho_group.rvs(2 * theta.shape[1] + 1, random_state=seed)
    return TranslationGroup(torch.tensor(Q, dtype=dtype), torch.tensor(theta, dtype=dtype))


@pytest.mark.parametrize("shape", TORI)
def test_oracle_deconvolution(shape, dtype, rng):
    """z = Σ_s f(s) ρ(s) h₀ with h_m ≠ 0 on every mode: w⋆ with w_m = h_m/|h_m|² gives f(t) = w⋆ᵀ ρ(-t) z back."""
    grid = Grid(shape, periodic=True)
    group = torus_group(shape, dtype)
    points = torch.tensor(grid.coordinates(), dtype=dtype)
    latent = torch.tensor(rng.normal(size=(20, grid.size)), dtype=dtype)
    h = torch.tensor(rng.uniform(0.5, 1.5, group.dimension) * rng.choice([-1, 1], group.dimension), dtype=dtype)
    orbit = group.act((group.Q @ h).expand(grid.size, -1), points)
    z = latent @ orbit

    # per plane, h is r (cos φ, sin φ): turn the plane by φ so that the filter lies along its first direction
    pairs = h[:-1].reshape(-1, 2)
    modulus, phase = pairs.norm(dim=1), torch.atan2(pairs[:, 1], pairs[:, 0])
    first, second = group.Q[:, 0:-1:2], group.Q[:, 1::2]
    cos, sin = torch.cos(phase), torch.sin(phase)
    turned = torch.stack([cos * first + sin * second, -sin * first + cos * second], dim=-1).flatten(1)
    # a lone column has no plane to turn in: its sign goes into the column itself
    Q = torch.cat([turned, group.Q[:, -1:] * torch.sign(h[-1])], dim=1)
    r = torch.cat([2 / modulus, 1 / h[-1:].abs()]) / grid.size
    scale = 1 / float(r.norm())
    turned_group = TranslationGroup(Q, group.theta)
    eye = torch.eye(group.dimension, dtype=dtype)
    model = LiftedModel(
        grid, torch.zeros(group.dimension, dtype=dtype), scale, eye, turned_group, r * scale, "identity"
    )
    recovered = model.lift(z)
    assert (recovered - latent).abs().max() < (1e-5 if dtype == torch.float64 else 1e-4) * latent.abs().max()
    if dtype == torch.float64:
        assert (recovered - latent).abs().max() < 1e-10


@pytest.mark.parametrize("N", [9, 15])
def test_delta_autocorrelation_means_flat_spectrum_and_fixed_kernel_energy(N, rng):
    """h₀ᵀρ(n)h₀ = δ_n0 ⇒ |h_m|² flat; then Σ|κ_n|² = 1 for every filter of norm one."""
    group = torus_group((N,))
    _, r = regular_frequencies((N,))
    h = group.Q @ torch.from_numpy(np.append(np.stack([r[:-1], 0 * r[:-1]], 1).ravel(), r[-1]))
    steps = torch.arange(N, dtype=torch.float64)[:, None]
    orbit = group.act(h.expand(N, -1), steps)
    assert torch.allclose(orbit @ h, torch.eye(N, dtype=torch.float64)[0], atol=1e-12)
    for _ in range(5):
        w = torch.from_numpy(rng.normal(size=N))
        kernel = orbit @ (w / w.norm())
        assert np.isclose(float((kernel**2).sum()), 1)
    assert not np.isclose(
        float(((group.act((h * torch.arange(N)).expand(N, -1), steps) @ (w / w.norm())) ** 2).sum()), 1
    )


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
    group = TranslationGroup(
        torch.eye(dimension, dtype=torch.float64), torch.tensor([[0.3, 0.9, 1.7, 2.2]], dtype=torch.float64)
    )
    h = torch.tensor([1.0, 0.2, 0.7, -0.4, 0.9, 0.1, 0.0, 0.0, 1.0], dtype=torch.float64)  # nothing in the fourth plane
    w = torch.tensor([0.5, 0.1, -0.8, 0.4, 0.3, 0.6, 0.0, 0.0, 0.7], dtype=torch.float64)
    observed = torch.tensor([1, 1, 1, 1, 1, 1, 0, 0, 1], dtype=torch.bool)
    s = torch.linspace(-4, 4, 15, dtype=torch.float64)[:, None]

    def kernel(theta):
        learned = TranslationGroup(group.Q, theta)
        return group.act(h.expand(15, -1), s) @ learned.act(w.expand(15, -1), s).T

    def shift_invariant(k):
        return all(float(torch.diagonal(k, lag).std(unbiased=False)) < 1e-9 for lag in range(-13, 14))

    elsewhere, wrong = group.theta.clone(), group.theta.clone()
    elsewhere[0, 3] += 0.5
    wrong[0, 1] += 0.5
    assert shift_invariant(kernel(elsewhere))
    assert not shift_invariant(kernel(wrong))
    difference = TranslationGroup(group.Q, elsewhere).matrix([1.3]) - group.matrix([1.3])
    assert difference[:, observed].abs().max() < 1e-12
    assert difference.abs().max() > 0.1


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_continuity_bound_of_the_lifted_function(axes, dtype, rng):
    """|y(t₁) - y(t₂)| ≤ ‖w‖ ‖ρ̂(-t₁) - ρ̂(-t₂)‖_F ‖z‖, and the right side vanishes as t₁ → t₂."""
    Q = torch.tensor(ortho_group.rvs(10, random_state=0), dtype=dtype)
    group = TranslationGroup(Q, torch.tensor(rng.normal(size=(axes, 5)), dtype=dtype))
    for _ in range(20):
        w, z = torch.tensor(rng.normal(size=(2, 10)), dtype=dtype)
        t1, t2 = torch.tensor(rng.normal(size=(2, axes)), dtype=dtype)
        difference = group.matrix(-t1) - group.matrix(-t2)
        assert abs(float(w @ difference @ z)) <= float(w.norm() * torch.linalg.norm(difference) * z.norm()) * (1 + 1e-5)
    gaps = [float(torch.linalg.norm(group.matrix(t1) - group.matrix(t1 + step))) for step in (1e-1, 1e-2, 1e-3)]
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
    Q = torch.from_numpy(ortho_group.rvs(d, random_state=2))
    group = TranslationGroup(Q, torch.tensor([[0.5, 1.0, 1.5]], dtype=torch.float64))
    A = rng.normal(size=(d, d))
    C = A @ A.T
    C /= np.trace(C)
    w = rng.normal(size=d)
    w /= np.linalg.norm(w)
    rows = np.stack([group.matrix([-t]).numpy().T @ w for t in (0.0, gap)])
    S = rows @ C @ rows.T
    information = gaussian_entropy(S[0, 0]) + gaussian_entropy(S[1, 1]) - gaussian_entropy(S)
    spread = np.linalg.norm(group.matrix([gap]).numpy() - np.eye(d)) ** 2
    assert information >= 0.5 * np.log(S[1, 1] / spread) - 1e-9


def test_plane_basis_evaluates_between_grid_points():
    """The lifted signal is a function of continuous t: T(θ) at half steps is the band-limited interpolation."""
    theta, r = regular_frequencies((9,))
    t = np.arange(9)[:, None] - 4.0
    fine = plane_basis(torch.from_numpy(theta), torch.from_numpy(t + 0.5), 9).numpy()
    weights = np.append(np.repeat(r[:-1], 2), r[-1])
    coarse = plane_basis(torch.from_numpy(theta), torch.from_numpy(t), 9).numpy()
    half_step = (fine * weights**2) @ coarse.T
    f = np.cos(2 * np.pi * 2 * np.arange(9) / 9)
    assert np.allclose(half_step @ f, np.cos(2 * np.pi * 2 * (np.arange(9) + 0.5) / 9))
