"""The paper's propositions and lemmas, as computations: each test names the statement that it
checks.
"""

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
from symlift.solvers.neural.objective.critic import JensenShannon, Layer

pytestmark = pytest.mark.portable

TORI = [(15,), (3, 5), (3, 3, 5)]


def torus_group(
    shape: tuple[int, ...], dtype: type = np.float64, seed: int = 0
) -> TranslationGroup:
    """Translations of a torus, in coordinates that nobody knows."""
    theta, _ = regular_frequencies(shape)
    Q = ortho_group.rvs(2 * theta.shape[1] + 1, random_state=seed)
    return TranslationGroup(Q.astype(dtype), theta.astype(dtype))


@pytest.mark.parametrize("shape", TORI)
def test_oracle_deconvolution(shape, precision, rng):
    """z = Σ_s f(s) ρ(s) h₀ with h_m ≠ 0 on every mode: w⋆ with w_m = h_m/|h_m|² gives f(t) = w⋆ᵀ
    ρ(-t) z back.
    """
    grid = Grid(shape, periodic=True)
    group = torus_group(shape, precision)
    points = grid.coordinates().astype(precision)
    latent = rng.normal(size=(20, grid.size)).astype(precision)
    h = (rng.uniform(0.5, 1.5, group.dimension) * rng.choice([-1, 1], group.dimension)).astype(
        precision
    )
    orbit = group.act(np.tile(group.Q @ h, (grid.size, 1)), points)
    z = latent @ orbit

    # per plane, h is r (cos φ, sin φ): turn the plane by φ so that the filter lies along its first
    # direction
    pairs = h[:-1].reshape(-1, 2)
    modulus, phase = np.linalg.norm(pairs, axis=1), np.arctan2(pairs[:, 1], pairs[:, 0])
    first, second = group.Q[:, 0:-1:2], group.Q[:, 1::2]
    cos, sin = np.cos(phase), np.sin(phase)
    turned = np.stack([cos * first + sin * second, -sin * first + cos * second], axis=-1).reshape(
        len(first), -1
    )
    # a lone column has no plane to turn in: its sign goes into the column itself
    Q = np.concatenate([turned, group.Q[:, -1:] * np.sign(h[-1])], axis=1)
    r = np.concatenate([2 / modulus, 1 / np.abs(h[-1:])]) / grid.size
    scale = 1 / float(np.linalg.norm(r))
    turned_group = TranslationGroup(Q, group.theta)
    eye = np.eye(group.dimension, dtype=precision)
    model = LiftedModel(
        grid,
        np.zeros(group.dimension, dtype=precision),
        scale,
        eye,
        turned_group,
        r * scale,
        "identity",
    )
    recovered = model.lift(z)
    assert recovered.dtype == precision
    assert (
        np.abs(recovered - latent).max()
        < (1e-5 if precision is np.float64 else 1e-4) * np.abs(latent).max()
    )
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
    assert torch.allclose(
        C * torch.softmax(free, 0), torch.full((N,), C / N, dtype=torch.float64), atol=1e-4
    )


@given(st.integers(4, 24), st.data())
def test_flat_spectrum_and_short_support_force_a_delta(N, data):
    """A kernel on at most N/2 neighbouring points with more than one of them has a spectrum that is
    not flat.
    """
    length = data.draw(st.integers(1, N // 2))
    values = data.draw(st.lists(st.floats(0.1, 1.0), min_size=length, max_size=length))
    signs = data.draw(st.lists(st.sampled_from([-1, 1]), min_size=length, max_size=length))
    kernel = np.zeros(N)
    kernel[:length] = np.array(values) * signs
    kernel = np.roll(kernel, data.draw(st.integers(0, N)))
    power = np.abs(np.fft.fft(kernel)) ** 2
    flatness = np.ptp(power) / power.mean()
    # the longest lag of the autocorrelation has one term only, first times last, which cannot
    # cancel
    bound = 2 * abs(values[0] * values[-1]) / np.sum(np.square(values)) if length > 1 else 0.0
    assert (flatness < 1e-9) == (length == 1)
    assert flatness >= bound - 1e-9


def test_shift_invariant_kernel_identifies_the_action_where_it_is_observed():
    """k(s, t) = κ(s - t) and the filter's orbit spanning X_obs give ρ̂ = ρ on X_obs; off it, ρ̂ is
    free.
    """
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
    gaps = [
        np.linalg.norm(group.matrix(t1) - group.matrix(t1 + step)) for step in (1e-1, 1e-2, 1e-3)
    ]
    assert gaps[0] > 5 * gaps[1] > 25 * gaps[2]


def gaussian_entropy(C: np.ndarray) -> float:
    return 0.5 * np.linalg.slogdet(2 * np.pi * np.e * np.atleast_2d(C))[1] if C.size else 0.0


def test_total_correlation_is_a_sum_of_conditional_informations(rng):
    """TC = Σ I(Y_i; Y_{i-1}) + Σ_m Σ_i I(Y_i; Y_{i-m-1} | Y_{i-m:i-1}), in the closed form for
    Gaussians.
    """
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
                h(i, *between)
                + h(i - m - 1, *between)
                - h(i, i - m - 1, *between)
                - (h(*between) if between else 0.0)
            )
    assert np.isclose(total, terms)


@pytest.mark.parametrize("gap", [0.01, 0.1, 1.0])
def test_lifting_bounds_mutual_information_from_below(gap, rng):
    """I(Y_i; Y_j) ≥ ½ log(N_h(Y_j)/‖ρ̂(t_i - t_j) - 1‖²_F), for Gaussian X with E‖X‖² = 1 and ‖w‖ =
    1.
    """
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
    """The lifted signal is a function of continuous t: T(θ) at half steps is the band-limited
    interpolation.
    """
    theta, r = regular_frequencies((9,))
    t = np.arange(9)[:, None] - 4.0
    fine = plane_basis(theta, t + 0.5, 9)
    weights = np.append(np.repeat(r[:-1], 2), r[-1])
    coarse = plane_basis(theta, t, 9)
    half_step = (fine * weights**2) @ coarse.T
    f = np.cos(2 * np.pi * 2 * np.arange(9) / 9)
    assert np.allclose(half_step @ f, np.cos(2 * np.pi * 2 * (np.arange(9) + 0.5) / 9))


# -- from stationarity to a delta kernel, and what the terms do ------------------------------------


def shift(N: int, by: int = 1) -> np.ndarray:
    """T_α of a ring of N points: (T f)[n] = f[n - α]."""
    return np.roll(np.eye(N), by, axis=0)


def moment_gap(rows: np.ndarray, moved: np.ndarray) -> float:
    """How far two samples with equal numbers of rows are apart in their second and third moments,
    relative to their size.
    """
    gaps = []
    for order in ("ni,nj->ij", "ni,nj,nk->ijk"):
        left, right = (
            np.einsum(order, *[y] * (order.count("n")), optimize=True) / len(y)
            for y in (rows, moved)
        )
        gaps.append(np.abs(left - right).max() / np.abs(left).max())
    return max(gaps)


@pytest.mark.parametrize("step", [1, 2, -1])
def test_stationarity_implies_equivariance(step, rng):
    """Y = K F with both stationary: K T K⁻¹ is a symmetry of Y, and where translations are its only
    ones, K T_α = T_β(α) K.
    """
    N = 7
    pulses = rng.exponential(size=(400, N))
    # all shifts of every sample: a field that is stationary without any error, skewed and without
    # mirror symmetry
    F = np.concatenate(
        [
            np.roll(pulses, s, axis=1) @ (np.eye(N) + 0.6 * shift(N) + 0.2 * shift(N, 2)).T
            for s in range(N)
        ]
    )
    F -= F.mean()
    relabelled = np.zeros((N, N))
    relabelled[np.arange(N) * step % N, np.arange(N)] = (
        1.0  # t ↦ step · t, a reparametrisation of the group
    )
    kernel = np.eye(N) + 0.3 * shift(N, 2) - 0.2 * shift(N, 3)
    K = relabelled @ kernel
    Y = F @ K.T
    symmetry = K @ shift(N) @ np.linalg.inv(K)
    assert moment_gap(Y, Y @ symmetry.T) < 1e-9
    # of all permutations of its points, only translations leave the distribution of Y as it is: the
    # assumption holds
    generator = np.random.default_rng(1)
    kept = [
        p for p in (generator.permutation(N) for _ in range(300)) if moment_gap(Y, Y[:, p]) < 1e-9
    ]
    assert all(len(set((p - np.arange(N)) % N)) == 1 for p in kept)
    assert moment_gap(Y, Y[:, ::-1]) > 0.01
    # so the symmetry is one of them: β(1) = step
    assert np.allclose(symmetry, shift(N, step), atol=1e-9)
    assert np.allclose(K @ shift(N), shift(N, step) @ K, atol=1e-9)
    # a map that does not commute with translations gives a field that is not stationary
    spoiled = K + 0.1 * rng.normal(size=(N, N))
    assert moment_gap(F @ spoiled.T, (F @ spoiled.T) @ shift(N).T) > 0.01


@pytest.mark.parametrize("step", [1, 2, -2])
def test_equivariance_implies_a_shift_invariant_kernel(step, rng):
    """K T_α = T_β(α) K ⇒ k(s, t) = κ(s - β⁻¹(t)): the mean over the group of any K has this form,
    and K itself has not.
    """
    N = 9
    K = rng.normal(size=(N, N))
    mean = (
        sum(shift(N, -step * a) @ K @ shift(N, a) for a in range(N)) / N
    )  # equivariant by construction
    assert np.allclose(mean @ shift(N), shift(N, step) @ mean)
    inverse = pow(step, -1, N)
    s, t = np.meshgrid(np.arange(N), np.arange(N))  # rows of K are t, its columns s
    kappa = mean[0]  # κ(r) = k(r, 0)
    assert np.allclose(mean, kappa[(s - inverse * t) % N])
    assert not np.allclose(mean, kappa[(s - inverse * t - 1) % N])
    assert not np.allclose(K, K[0][(s - inverse * t) % N], atol=0.5)


def higher_order(C: np.ndarray) -> tuple[float, float, float]:
    """(TC, Σ I(Y_i; Y_{i-1}), R_{>1}) of a Gaussian with covariance C, each from its own
    definition.
    """

    def h(*index: int) -> float:
        return float(gaussian_entropy(C[np.ix_(index, index)])) if index else 0.0

    d = len(C)
    total = sum(h(i) for i in range(d)) - h(*range(d))
    pairs = sum(h(i) + h(i - 1) - h(i, i - 1) for i in range(1, d))
    rest = sum(
        h(i, *range(i - m, i))
        + h(*range(i - m - 1, i))
        - h(i, *range(i - m - 1, i))
        - h(*range(i - m, i))
        for m in range(1, d - 1)
        for i in range(m + 1, d)
    )
    return total, pairs, rest


def test_total_correlation_bounds_higher_orders_and_its_floor_is_markov(rng):
    """R_{>1} ≤ TC - (d-1)/2 log(N₀/‖ρ̂(Δ) - 1‖²_F) for every lifted field; where TC is at its
    floor, R_{>1} = 0.
    """
    d, points = 6, 3
    # at steps of 0.8 the bound lies above TC and says nothing; at 0.01 it lies below, and entropies
    # of nearly equal values are known to five digits
    slack = []
    for Delta in [0.8] * 20 + [0.01] * 20:
        group = TranslationGroup(
            ortho_group.rvs(d, random_state=rng), rng.uniform(0.2, 1.5, size=(1, 3))
        )
        A = rng.normal(size=(d, d))
        C = A @ A.T / np.trace(A @ A.T)  # E‖X‖² = 1
        w = rng.normal(size=d)
        rows = np.stack(
            [group.matrix([-i * Delta]).T @ (w / np.linalg.norm(w)) for i in range(points)]
        )
        S = rows @ C @ rows.T
        total, pairs, rest = higher_order(S)
        power = np.exp(2 * np.array([gaussian_entropy(S[i, i]) for i in range(1, points)])) / (
            2 * np.pi * np.e
        )
        assert np.allclose(power, np.diag(S)[1:])
        spread = np.linalg.norm(group.matrix([Delta]) - np.eye(d)) ** 2
        assert np.isclose(total, pairs + rest, rtol=1e-3 if Delta < 0.1 else 1e-6)
        assert rest >= -1e-3
        floor = (points - 1) / 2 * np.log(power.min() / spread)
        assert rest <= total - floor + 1e-9
        assert (floor > 0) == (Delta < 0.1)
        if Delta < 0.1:
            slack.append(pairs / floor)
    # what neighbours share is its floor, up to a constant: twice the floor would be no bound
    assert 1 <= min(slack) < 2
    # among stationary fields with the same neighbours the least TC is that of a first-order Markov
    # one, and there R_{>1} = 0
    lags = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    total, pairs, rest = higher_order(0.8**lags)
    assert np.isclose(rest, 0, atol=1e-9)
    assert np.isclose(total, pairs)
    excess = []
    for second in (0.7, 0.67, 0.65, 0.6401):
        other = np.array([1.0, 0.8, second, 0.8**3, 0.8**4])[lags]
        more, same, rest = higher_order(other)
        assert np.isclose(same, pairs)
        assert np.isclose(more - same, rest)
        excess.append(rest)
    assert excess == sorted(excess, reverse=True)
    assert excess[0] > 0.05
    assert excess[-1] < 1e-5


def energy(y: torch.Tensor) -> torch.Tensor:
    """A Markov field of order 1 whose curvature varies from point to point."""
    return torch.log(torch.cosh(y)).sum() + 0.5 * (y[1:] - y[:-1]).square().sum()


def test_hessians_of_a_field_and_of_its_image_are_related(rng):
    """∇²E_F(f) = Kᵀ ∇²E_Y(Kf) K with E_F(f) = E_Y(Kf) + constant, by densities that integrate to
    one.
    """
    N = 5
    K = torch.from_numpy(rng.normal(size=(N, N)))
    f = torch.from_numpy(rng.normal(size=N))
    # p_F(f) = p_Y(Kf) |det K|: the constant is the determinant, and it does not depend on f
    mean, C = torch.zeros(N, dtype=torch.float64), torch.from_numpy(np.eye(N) + 0.3)
    image = torch.distributions.MultivariateNormal(mean, K @ C @ K.T)
    field = torch.distributions.MultivariateNormal(mean, C)
    gaps = [float(field.log_prob(v) - image.log_prob(K @ v)) for v in (f, 2 * f, f + 1)]
    assert np.allclose(gaps, float(torch.linalg.slogdet(K)[1]))

    left = torch.autograd.functional.hessian(lambda v: energy(K @ v), f)
    H = torch.autograd.functional.hessian(energy, K @ f)
    assert torch.allclose(left, K.T @ H @ K, atol=1e-10)
    assert not torch.allclose(left, K @ H @ K.T, atol=1e-2)


def outside_band(M: np.ndarray, p: int) -> float:
    """The largest entry more than p off the diagonal."""
    n = np.arange(len(M))
    return float(np.abs(M[np.abs(np.subtract.outer(n, n)) > p]).max())


def test_banded_hessians_imply_compact_rows_where_curvature_varies(rng):
    """Kᵀ diag(b) K p-banded for all b ⇒ rows of K have diameter ≤ p; with b fixed (Gaussians), an
    all-pass K has long rows.
    """
    N, p = 8, 2
    compact = np.triu(np.tril(rng.normal(size=(N, N)), p // 2), -(p // 2))  # rows of diameter p
    for _ in range(5):
        assert outside_band(compact.T @ np.diag(rng.uniform(0.5, 2, N)) @ compact, p) < 1e-12
    for row in compact:
        support = np.flatnonzero(row)
        assert np.ptp(support) <= p
    # and back: of random maps with few entries in a row, those whose Hessians are banded at every
    # curvature are those with compact rows, and no others
    kinds = []
    for _ in range(200):
        K = np.zeros((N, N))
        for row in K:
            first, length = rng.integers(N - p), rng.choice([p + 1, N], p=[0.9, 0.1])
            row[first + rng.permutation(min(length, N - first))[:2]] = rng.normal(size=2)
        hessians = [K.T @ np.diag(rng.uniform(0.5, 2, N)) @ K for _ in range(3)]
        short = all(np.ptp(np.flatnonzero(row)) <= p for row in K)
        assert (max(outside_band(H, p) for H in hessians) < 1e-12) == short
        kinds.append(short)
    assert 20 < sum(kinds) < 180
    # an all-pass filter: flat spectrum, long rows, a Gaussian white field on both sides with the
    # same (banded) Hessian
    phases = rng.uniform(0, 2 * np.pi, N // 2 - 1)
    spectrum = np.exp(1j * np.concatenate([[0], phases, [0], -phases[::-1]]))
    kernel = np.fft.ifft(spectrum).real
    allpass = np.stack([np.roll(kernel, n) for n in range(N)])
    assert np.ptp(np.flatnonzero(np.abs(allpass[0]) > 1e-3)) > p
    assert outside_band(allpass.T @ np.eye(N) @ allpass, 0) < 1e-12
    # with curvature that varies, it leaves the band: the assumption decides
    varied = [
        outside_band(allpass.T @ np.diag(rng.uniform(0.5, 2, N)) @ allpass, p) for _ in range(5)
    ]
    assert min(varied) > 0.01
    # and what one diagonal entry adds is the outer product of its row: K_li K_lj = 0 for |i - j| >
    # p is all that is needed
    for K, bounded in ((compact, True), (allpass, False)):
        changes = [outside_band(np.outer(K[row], K[row]), p) for row in range(N)]
        assert (max(changes) < 1e-12) == bounded


@pytest.mark.parametrize("N", [5, 8])
def test_delta_autocorrelation_implies_a_flat_spectrum(N, rng):
    """h†ρ(n)h = δ_n0 ⇔ |u_l†h|² = 1/N, by the group's Fourier inversion p_m = Σ_n a_n χ_m(n)*/N."""
    characters = np.exp(2j * np.pi * np.outer(np.arange(N), np.arange(N)) / N)  # [l, n]
    U = np.linalg.qr(rng.normal(size=(N, N)) + 1j * rng.normal(size=(N, N)))[0]

    def autocorrelation(h: np.ndarray) -> np.ndarray:
        return np.array(
            [h.conj() @ U @ np.diag(characters[:, n]) @ U.conj().T @ h for n in range(N)]
        )

    anything = U @ (rng.normal(size=N) + 1j * rng.normal(size=N))
    weights = np.abs(U.conj().T @ anything) ** 2
    assert np.allclose(characters.conj() @ autocorrelation(anything) / N, weights)
    # a vector whose orbit is orthonormal, found without its spectrum: the symmetric
    # orthonormalisation of an orbit
    orbit = np.stack([U @ np.diag(characters[:, n]) @ U.conj().T @ anything for n in range(N)])
    left, _, right = np.linalg.svd(orbit, full_matrices=False)
    h = (left @ right)[0]
    assert np.allclose(autocorrelation(h), np.eye(N)[0], atol=1e-9)
    assert np.allclose(np.abs(U.conj().T @ h) ** 2, 1 / N, atol=1e-9)
    assert np.ptp(weights) > 0.1


def test_divergence_grows_with_the_square_of_the_shift():
    """JS(P(θ), P(θ + s δ)) ≈ s² JS(P(θ), P(θ + δ)), so that one step of N per unit length has 1/N²
    of it: weights w = N².
    """
    x = np.linspace(-12, 12, 200_001)

    def density(centre: float) -> np.ndarray:
        p = 0.7 * np.exp(-((x - centre) ** 2) / 2) + 0.3 * np.exp(
            -((x - centre - 1.5) ** 2) / 0.5
        ) / np.sqrt(0.25)
        return p / np.trapezoid(p, x)

    def js(delta: float) -> float:
        p, q = density(0.0), density(delta)
        m = (p + q) / 2
        return 0.5 * float(np.trapezoid(p * np.log(p / m) + q * np.log(q / m), x))

    small = js(0.01)
    for s in (2.0, 4.0, 8.0):
        assert np.isclose(js(0.01 * s) / small, s**2, rtol=0.01)
    # half of a quarter of Fisher's information
    p = density(0.0)
    fisher = float(np.trapezoid(np.gradient(p, x) ** 2 / p, x))
    assert np.isclose(small, fisher * 0.01**2 / 8, rtol=0.01)
    # N² · JS(1/N) does not depend on the resolution, and the objective weighs with N²/N per point
    assert np.isclose(100**2 * js(1 / 100), 200**2 * js(1 / 200), rtol=0.01)
    shares = [JensenShannon(Grid((n,)), (Layer(2, 3),)).shares[0] for n in (16, 32)]
    assert shares == [16 * 16 / 16, 32 * 32 / 32]


def test_infomax_restricts_reparametrisations_to_permutations_and_flips(rng):
    """Y(t) = f(A⁻¹t), f on a rectangle: the Gaussian entropy on its grid is largest where A
    permutes and flips axes.

    The rectangle matters: beyond it there is no signal, only the floor that the estimator adds to
    the spectrum. On a torus a shear by any amount has the same entropy, since each line is only
    moved along itself.
    """
    n = 4
    half = (n - 1) / 2
    t = np.stack(np.meshgrid(*[np.arange(n) - half] * 2, indexing="ij"), axis=-1).reshape(-1, 2)

    def entropy(A: np.ndarray, bounded: bool = True) -> float:
        places = t @ np.linalg.inv(A).T
        gaps = places[:, None] - places
        C = np.exp(-np.linalg.norm(gaps, axis=-1)) if bounded else _torus_covariance(gaps, n)
        inside = (
            np.abs(places).max(axis=1) <= half + 1e-9 if bounded else np.ones(len(t), dtype=bool)
        )
        return float(np.linalg.slogdet(C * np.outer(inside, inside) + 1e-5 * np.eye(len(t)))[1]) / 2

    flips = [
        np.diag(s) @ p
        for s in ((1, 1), (1, -1), (-1, 1), (-1, -1))
        for p in (np.eye(2), np.eye(2)[::-1])
    ]
    best = entropy(np.eye(2))
    assert np.allclose([entropy(A) for A in flips], best)
    others = [
        np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for a in (0.1, 0.4, np.pi / 4)
    ]
    shear = np.array([[1.0, 0.3], [0.0, 1.0]])
    others += [
        shear,
        np.diag([1.3, 1.0]),
        np.diag([0.8, 1.25]),
        np.diag([2.0, 2.0]),
        np.diag([0.9, 0.9]),
    ]
    others += [np.eye(2) + 0.2 * rng.normal(size=(2, 2)) for _ in range(20)]
    assert max(entropy(A) for A in others) < best - 0.01
    assert np.isclose(entropy(shear, bounded=False), entropy(np.eye(2), bounded=False))


def _torus_covariance(gaps: np.ndarray, n: int) -> np.ndarray:
    """Of a field with all frequencies of an n × n torus, weaker the higher they are."""
    k = (
        2
        * np.pi
        / n
        * np.stack(np.meshgrid(*[[0, 1, -1, 2]] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
    )
    return np.exp(1j * gaps @ k.T) @ (1 / (1 + (k**2).sum(axis=1)))
