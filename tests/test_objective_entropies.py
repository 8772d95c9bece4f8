from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from symlift.solvers.neural.objective.batch import Lifted, Workers
from symlift.solvers.neural.objective.mixture import MixtureMarginals
from symlift.solvers.neural.objective.rank import joint_entropy_to_rank, rank_window
from symlift.statistics.entropy import joint_entropy

UNIT = 0.5 * math.log(2 * math.pi * math.e)  # entropy of N(0, 1)


def workers(seed=0):
    return Workers(torch.Generator().manual_seed(seed))


def batch_of(z, draws):
    """A batch whose z is taken as it is."""
    return Lifted(z, z.new_zeros(()), z.new_tensor(z.shape[1]), draws)


# -- the lifted batch ------------------------------------------------------------------------------


@given(st.integers(2, 30), st.integers(1, 6), st.floats(0.01, 100), st.floats(-50, 50))
def test_a_lifted_batch_has_global_mean_0_and_rms_1(n, points, scale, offset):
    y = offset + scale * torch.randn(
        n, points, generator=torch.Generator().manual_seed(n), dtype=torch.float64
    )
    batch = Lifted.of(y, workers())
    assert abs(batch.z.mean()) < 1e-10
    assert abs(batch.z.square().mean() - 1) < 1e-10
    assert torch.allclose(batch.z * batch.log_scale.exp() + y.mean(), y)
    assert math.isclose(batch.log_scale, math.log(y.std(correction=0)), rel_tol=1e-9, abs_tol=1e-9)
    assert batch.rank == points
    assert Lifted.of(y, workers(), torch.tensor(1.5)).rank == 1.5


def test_covariance_and_joint_entropy_against_numpy(rng, dtype, tolerance):
    """One scalar is taken off, not one for each column: columns keep their own means, and the
    covariance takes them off.
    """
    y = torch.from_numpy(
        rng.normal(size=(500, 4)) @ rng.normal(size=(4, 4)) + [0.0, 1.0, 2.0, 3.0]
    ).to(dtype)
    batch = Lifted.of(y, workers())
    exact = np.cov(batch.z.double().numpy().T, bias=True)
    assert np.allclose(batch.covariance(), exact, atol=tolerance)
    assert batch.covariance() is batch.covariance()
    assert batch.joint_entropy() is batch.joint_entropy()
    spectrum = np.linalg.eigvalsh(exact)[::-1] + 1e-5
    window = 1 / (1 + np.exp(3.3 * (np.arange(1, 5) - 4)))
    wanted = UNIT + 0.5 * np.sum(window * np.log(spectrum)) / window.sum()
    assert math.isclose(batch.joint_entropy(), wanted, abs_tol=tolerance)
    assert batch.z.dtype == batch.covariance().dtype == batch.joint_entropy().dtype == dtype


def test_one_process_means_and_draws():
    draws, values = workers(5), torch.arange(12.0).view(4, 3)
    assert torch.equal(draws.mean(values), values.mean(dim=0))
    assert draws.average(values) is values
    assert draws.uniform(2, 5, 3, values).shape == (2, 5, 3)
    assert draws.normal(5, 3, values).shape == (5, 3)
    found = draws.integers(3, 200, values.device)
    assert found.shape == (200,)
    assert set(found.tolist()) == {0, 1, 2}
    # the same seed draws the same; nothing touches the global state
    state = torch.random.get_rng_state()
    assert torch.equal(workers(5).uniform(2, 5, 3, values), workers(5).uniform(2, 5, 3, values))
    assert torch.equal(state, torch.random.get_rng_state())


def test_processes_share_one_draw():
    """What each of two processes draws for its rows is what one draws for all of them."""
    like = torch.zeros(())
    pairs = [Workers(torch.Generator().manual_seed(1), rank, 2) for rank in range(2)]
    alone = workers(1)
    assert torch.equal(
        torch.cat([w.uniform(2, 3, 4, like) for w in pairs], dim=1), alone.uniform(2, 6, 4, like)
    )
    assert torch.equal(torch.cat([w.normal(3, 4, like) for w in pairs]), alone.normal(6, 4, like))
    assert torch.equal(
        torch.cat([w.integers(9, 3, like.device) for w in pairs]), alone.integers(9, 6, like.device)
    )


# -- marginal entropies ----------------------------------------------------------------------------

WEIGHTS, MEANS, DEVIATIONS = (
    torch.tensor([0.6, 0.4]),
    torch.tensor([-1.0, 1.3]),
    torch.tensor([0.3, 0.6]),
)


def lattice(reach=12.0):
    z = torch.linspace(-reach, reach, 20_001, dtype=torch.float64)
    return z, float(z[1] - z[0])


def mixture_entropy():
    """-∫ p log p of the mixture of two Gaussians above."""
    z, dz = lattice()
    p = (
        (
            WEIGHTS
            * torch.exp(torch.distributions.Normal(MEANS, DEVIATIONS).log_prob(z[:, None].float()))
        )
        .sum(1)
        .double()
    )
    return float(-torch.special.xlogy(p, p).sum() * dz)


def set_to(marginals, weights, means, deviations):
    with torch.no_grad():
        marginals.logit.copy_(weights.log()[:, None])
        marginals.mean.copy_(means[:, None])
        marginals.log_variance.copy_(2 * deviations.log()[:, None])


def test_mixtures_integrate_to_one():
    """At the start, and far beyond all limits: limited parameters still make a density."""
    torch.manual_seed(0)
    z, dz = lattice(40.0)
    for spread in (0.0, 1.0, 8.0):
        marginals = MixtureMarginals(points=3).double()
        with torch.no_grad():
            for parameter in marginals.parameters():
                parameter.add_(spread * torch.randn_like(parameter))
            total = marginals.log_density(z[:, None].expand(-1, 3)).exp().sum(dim=0) * dz
        assert torch.allclose(total, torch.ones(3, dtype=torch.float64), atol=1e-6)


def test_log_density_is_that_of_its_gaussians(dtype, tolerance):
    """The polynomial form against torch.distributions, limits included: log-variances in [-5, 2.5],
    logits in ±3.5.
    """
    marginals = MixtureMarginals(points=2, components=3).to(dtype)
    set_to(
        marginals,
        torch.tensor([1.0, 1e-3, 1e3]),
        torch.tensor([0.5, -1.0, 2.0]),
        torch.tensor([0.01, 1.0, 20.0]),
    )
    components = torch.distributions.MixtureSameFamily(
        torch.distributions.Categorical(logits=torch.tensor([0.0, -3.5, 3.5], dtype=dtype)),
        torch.distributions.Normal(
            torch.tensor([0.5, -1.0, 2.0], dtype=dtype),
            torch.exp(torch.tensor([-2.5, 0.0, 1.25], dtype=dtype)),
        ),
    )
    z = torch.linspace(-4, 4, 101, dtype=dtype)[:, None].expand(-1, 2)
    assert torch.allclose(marginals.log_density(z), components.log_prob(z), atol=20 * tolerance)


def test_cross_entropy_of_the_right_mixture_is_its_entropy():
    """-∫ p log p̂ = -∫ p log p to 1e-6 for p̂ = p, and clearly more for another; the batch's mean
    to 4 standard errors.
    """
    marginals = MixtureMarginals(points=1, components=2).double()
    set_to(marginals, WEIGHTS.double(), MEANS.double(), DEVIATIONS.double())
    z, dz = lattice()
    with torch.no_grad():
        log_density = marginals.log_density(z[:, None])[:, 0]
        assert abs(-(log_density.exp() * log_density).sum() * dz - mixture_entropy()) < 1e-6
        start = MixtureMarginals(points=1).double().log_density(z[:, None])[:, 0]
        assert -(log_density.exp() * start).sum() * dz > mixture_entropy() + 0.3
        sample = draw_mixture(40_000, torch.Generator().manual_seed(0)).double()[:, None]
        error = float(marginals.log_density(sample).std()) / 200
        assert abs(marginals(batch_of(sample, workers())) - mixture_entropy()) < 4 * error


def draw_mixture(n, generator):
    component = torch.multinomial(WEIGHTS, n, replacement=True, generator=generator)
    return MEANS[component] + DEVIATIONS[component] * torch.randn(n, generator=generator)


def test_trained_mixtures_come_to_the_entropies_of_known_densities():
    """From the standard start, 300 steps: a mixture's and a Gaussian's entropy within 0.02 above,
    on rows not seen in training.
    """
    generator = torch.Generator().manual_seed(0)

    def draw(n):
        return torch.stack([draw_mixture(n, generator), torch.randn(n, generator=generator)], dim=1)

    marginals = MixtureMarginals(points=2)
    optimiser = torch.optim.Adam(marginals.parameters(), lr=3e-2)
    decay = torch.optim.lr_scheduler.ExponentialLR(optimiser, 0.1 ** (1 / 300))
    for _ in range(300):
        marginals(batch_of(draw(1_000), workers())).backward()
        optimiser.step()
        optimiser.zero_grad()
        decay.step()
    with torch.no_grad():
        log_density = marginals.log_density(draw(200_000))
    found, error = -log_density.mean(dim=0), log_density.std(dim=0) / math.sqrt(200_000)
    exact = torch.tensor([mixture_entropy(), UNIT])
    assert torch.all(error < 0.003)
    assert torch.all(found > exact - 4 * error)
    assert torch.all(found < exact + 0.02 + 4 * error)


def test_mixtures_gradients_reach_every_parameter_and_agree_with_finite_differences():
    torch.manual_seed(0)
    marginals = MixtureMarginals(points=2, components=3).double()
    z = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    names = [name for name, _ in marginals.named_parameters()]
    values = [p.detach().clone().requires_grad_() for p in marginals.parameters()]

    def cross_entropy(z, *values):
        return torch.func.functional_call(
            marginals, dict(zip(names, values, strict=True)), (batch_of(z, workers()),)
        )

    assert torch.autograd.gradcheck(cross_entropy, (z, *values))
    for gradient in torch.autograd.grad(cross_entropy(z, *values), (z, *values)):
        assert torch.all(gradient != 0)


# -- joint entropy ---------------------------------------------------------------------------------


def random_covariance(points, seed=0):
    A = torch.randn(
        points, points, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    return A @ A.T / points + 0.05 * torch.eye(points, dtype=torch.float64)


@pytest.mark.parametrize("points", [1, 2, 7])
def test_joint_entropy_is_the_gaussian_log_determinant(points):
    """h/N = ½ log 2πe + log det (C + ridge)/2N, exactly; a rank far beyond N opens all of it."""
    C = random_covariance(points)
    exact = UNIT + torch.logdet(C + 1e-5 * torch.eye(points, dtype=torch.float64)) / (2 * points)
    assert torch.isclose(joint_entropy_to_rank(C), exact, rtol=1e-10)
    assert torch.isclose(
        joint_entropy_to_rank(C, torch.tensor(points + 8.0, dtype=torch.float64)), exact, rtol=1e-8
    )


@pytest.mark.parametrize("points", [1, 2, 5])
def test_joint_entropy_of_samples_with_a_known_covariance(points):
    """100,000 rows: to 0.01 of the log-determinant (a standard error of 1/√(2nN) = 0.002), and as
    the numpy estimate has it.
    """
    C = random_covariance(points, seed=3)
    y = torch.randn(
        100_000, points, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    y = y @ torch.linalg.cholesky(C).T
    batch = Lifted.of(y, workers(), torch.tensor(points + 8.0, dtype=torch.float64))
    found = batch.joint_entropy() + batch.log_scale
    assert abs(found - (UNIT + torch.logdet(C) / (2 * points))) < 0.01
    assert abs(found - joint_entropy(y.numpy())) < 1e-3


def test_the_window_opens_from_the_largest_eigenvalue_on(dtype):
    window = rank_window(12, torch.tensor(5.0, dtype=dtype))
    exact = 1 / (np.exp(3.3 * (np.arange(1, 13) - 5.0)) + 1)
    assert window.dtype == dtype
    assert np.allclose(window, exact, atol=1e-6)
    spectrum = torch.tensor([4.0, 2.0, 1e-3, 1e-4], dtype=dtype)
    # half a rank beyond the second: the leading two count, 0.84 of the second and 0.16 of the third
    C = torch.diag(spectrum[[2, 0, 3, 1]])
    w = rank_window(4, torch.tensor(2.5, dtype=dtype))
    wanted = UNIT + 0.5 * (w * torch.log(spectrum + 1e-5)).sum() / w.sum()
    assert torch.isclose(
        joint_entropy_to_rank(C, torch.tensor(2.5, dtype=dtype)), wanted, rtol=1e-5
    )
    ranks = [
        float(joint_entropy_to_rank(C, torch.tensor(k, dtype=dtype)))
        for k in (1.0, 2.0, 3.0, 4.0, 9.0)
    ]
    assert ranks == sorted(ranks, reverse=True)


@pytest.mark.parametrize("rank", [None, 1.5, 3.0])
def test_joint_entropys_gradient_against_finite_differences(rank):
    A = torch.linalg.cholesky(random_covariance(4)).requires_grad_()
    k = None if rank is None else torch.tensor(rank, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda A: joint_entropy_to_rank(A @ A.T, k), (A,))


def test_joint_entropys_gradient_needs_no_gap_between_eigenvalues(dtype, tolerance):
    """C = 2I: with all of the rank ½ C⁻¹/N, as for a log-determinant; with part of it finite, and
    right along I.
    """
    C = (2 * torch.eye(5, dtype=dtype)).requires_grad_()
    (full,) = torch.autograd.grad(joint_entropy_to_rank(C), C)
    assert torch.allclose(full, torch.eye(5, dtype=dtype) / (2 * 5 * (2 + 1e-5)), atol=tolerance)
    (part,) = torch.autograd.grad(joint_entropy_to_rank(C, torch.tensor(2.5, dtype=dtype)), C)
    assert torch.isfinite(part).all()
    assert math.isclose(part.trace(), 0.5 / (2 + 1e-5), rel_tol=1e-4)
    (none,) = torch.autograd.grad(joint_entropy_to_rank(0 * C, torch.tensor(2.5, dtype=dtype)), C)
    assert torch.isfinite(none).all()
