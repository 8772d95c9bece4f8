from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from symlift import Grid
from symlift.datasets import gsn
from symlift.solvers.neural.objective.batch import Lifted, Workers
from symlift.solvers.neural.objective.convolution import (
    Convolution,
    Field,
    _Chosen,
    _stochastic_pool,
    _Windows,
)
from symlift.solvers.neural.objective.critic import (
    Critics,
    JensenShannon,
    Layer,
    coarse_grain,
    critics_rows,
    donsker_varadhan,
    jensen_shannon,
    shifted_pair,
)

CONVOLUTION = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
LAYERS = (Layer(4, 3), Layer(5, 3), Layer(3, 3))


def workers(seed=0):
    return Workers(torch.Generator().manual_seed(seed))


def batch_of(z, draws):
    """A batch whose z is taken as it is."""
    return Lifted(z, z.new_zeros(()), z.new_tensor(z.shape[1]), draws)


# -- the estimates, with critics that are known to be right ----------------------------------------


def log_normal(mean, covariance):
    """x (…, d) → log density of N(mean, covariance)."""
    mean, covariance = torch.as_tensor(mean).double(), torch.as_tensor(covariance).double()
    return torch.distributions.MultivariateNormal(mean, covariance).log_prob


def mixed(p, q):
    """log of the density of the equal mixture."""
    return lambda x: torch.logaddexp(p(x), q(x)) - math.log(2)


def integrated_jensen_shannon(p, q, d, reach=9.0, points=601):
    """½ ∫ p log p/m + ½ ∫ q log q/m on a fine lattice (exact to 1e-6 for the densities here)."""
    axis = torch.linspace(-reach, reach, points, dtype=torch.float64)
    x = torch.cartesian_prod(*[axis] * d).view(-1, d)
    m = mixed(p, q)(x)
    total = sum((log.exp() * (log - m)).sum() for log in (p(x), q(x)))
    return float(total) / 2 * float(axis[1] - axis[0]) ** d


GAUSSIANS = {
    "1-D": ([0.5], [[0.49]], [-0.2], [[1.0]]),
    "2-D": ([0.3, -0.1], [[1.0, 0.6], [0.6, 0.8]], [0.0, 0.2], [[1.2, -0.3], [-0.3, 0.9]]),
}


@pytest.mark.parametrize("name", GAUSSIANS)
def test_donsker_varadhan_with_the_best_critic_is_the_divergence_of_gaussians(rng, name):
    """KL = ½ (tr C_q⁻¹C_p + Δᵀ C_q⁻¹ Δ - d + log det C_q/C_p), to 4 standard errors, themselves
    below 1 %, of 400,000 samples.
    """
    mean_p, C_p, mean_q, C_q = (np.array(part) for part in GAUSSIANS[name])
    gap, inverse = mean_q - mean_p, np.linalg.inv(C_q)
    exact = 0.5 * (
        np.trace(inverse @ C_p)
        + gap @ inverse @ gap
        - len(gap)
        + np.log(np.linalg.det(C_q) / np.linalg.det(C_p))
    )
    n = 400_000
    x_p = torch.from_numpy(rng.multivariate_normal(mean_p, C_p, size=n))
    x_q = torch.from_numpy(rng.multivariate_normal(mean_q, C_q, size=n))

    def best(x):
        return log_normal(mean_p, C_p)(x) - log_normal(mean_q, C_q)(x)

    # a second channel: any other critic gives less
    f_p, f_q = (torch.stack([best(x), 0.5 * best(x) + 1], dim=1) for x in (x_p, x_q))
    estimate, worse = donsker_varadhan(f_p, f_q, workers())
    error = math.sqrt((best(x_p).var() + best(x_q).exp().var()) / n)
    assert error < 0.01 * exact
    assert abs(estimate - exact) < 4 * error
    assert worse < estimate - 4 * error


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("name", GAUSSIANS)
def test_jensen_shannon_with_the_best_critics_against_numerical_integration(rng, name, whole):
    """To 0.003 (about 4 standard errors) with 200,000 samples; critics in the wrong order give less
    than nothing.
    """
    mean_p, C_p, mean_q, C_q = GAUSSIANS[name]
    p, q = log_normal(mean_p, C_p), log_normal(mean_q, C_q)
    exact = integrated_jensen_shannon(p, q, len(mean_p))
    even, odd = (
        tuple(
            torch.from_numpy(rng.multivariate_normal(m, C, size=100_000))
            for m, C in ((mean_p, C_p), (mean_q, C_q))
        )
        for _ in range(2)
    )
    x = critics_rows(even, odd, whole)
    m = mixed(p, q)(x)
    f = torch.stack([p(x[0]) - m[0], q(x[1]) - m[1]])[..., None]
    assert abs(jensen_shannon(f, workers()) - exact) < 0.003
    swapped = torch.stack([q(x[0]) - m[0], p(x[1]) - m[1]])[..., None]
    assert jensen_shannon(swapped, workers()) < 0
    # two channels are two estimates, and their mean is taken; a constant on a critic changes
    # nothing
    assert torch.isclose(
        jensen_shannon(torch.cat([f, 0 * f + 3], dim=3), workers()),
        jensen_shannon(f, workers()) / 2,
    )


@pytest.mark.parametrize("whole", [True, False])
def test_jensen_shannon_is_half_the_sum_of_two_donsker_varadhan_bounds(dtype, tolerance, whole):
    """Each critic has all rows of its own and, as m, all of p and q, or p of the even and q of the
    odd rows.
    """
    p, q = torch.randn(2, 20, 3, generator=torch.Generator().manual_seed(0), dtype=dtype)
    rows = critics_rows((p[::2], q[::2]), (p[1::2], q[1::2]), whole)
    draws, m = workers(), torch.cat([p, q] if whole else [p[::2], q[1::2]])
    critics = (lambda x: 2 * x, lambda x: x.square())
    left, right = (
        donsker_varadhan(f(own), f(m), draws) for f, own in zip(critics, (p, q), strict=True)
    )
    found = jensen_shannon(
        torch.stack([f(row) for f, row in zip(critics, rows, strict=True)]), draws
    )
    assert torch.isclose(found, (left + right).mean() / 2, atol=tolerance)


def test_an_odd_row_is_left_out():
    torch.manual_seed(0)
    estimator = JensenShannon(Grid((6,), True), LAYERS).double()
    z = torch.randn(21, 6, dtype=torch.float64)
    assert torch.equal(estimator(batch_of(z, workers())), estimator(batch_of(z[:20], workers())))


# -- trained critics -------------------------------------------------------------------------------


def trained(estimator, draw, steps, rate=1e-2, rows=500, seed=0):
    """Critics after ``steps`` of Adam on fresh rows, the learning rate falling to a tenth."""
    draws = workers(seed)
    optimiser = torch.optim.Adam(estimator.parameters(), lr=rate, eps=1e-7)
    decay = torch.optim.lr_scheduler.ExponentialLR(optimiser, 0.1 ** (1 / steps))
    for _ in range(steps):
        loss, _ = estimator.adversarial(batch_of(draw(rows, draws.generator), draws), 1.0)
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        estimator.constrain()
        decay.step()
    return estimator


@torch.no_grad()
def held_out(estimator, axis, batches):
    """Mean of the estimate over batches that the critics have not seen, and its standard error."""
    values = torch.stack([estimator.along(z, axis, workers(), expected=True) for z in batches])
    return float(values.mean()), float(values.std()) / math.sqrt(len(values))


WIDE = (Layer(12, 3, pool=False), Layer(12, 3, pool=False), Layer(4, 3))


@pytest.mark.parametrize("seed", [0, 1])
def test_trained_critics_reach_the_divergence_of_two_unequal_points(seed):
    """A line of two points, N(-0.8, 0.6²) and N(0.5, 1): at most 5 % below the integral, above it
    only by sampling noise.
    """
    scale, mean = torch.tensor([0.6, 1.0]), torch.tensor([-0.8, 0.5])
    exact = integrated_jensen_shannon(log_normal([-0.8], [[0.36]]), log_normal([0.5], [[1.0]]), 1)

    def draw(rows, generator):
        return mean + scale * torch.randn(rows, 2, generator=generator)

    torch.manual_seed(seed)
    estimator = trained(JensenShannon(Grid((2,)), WIDE), draw, steps=200, seed=seed)
    fresh = torch.Generator().manual_seed(seed + 100)
    value, error = held_out(estimator, 0, [draw(5_000, fresh) for _ in range(10)])
    assert error < 0.01 * exact
    assert 0.95 * exact - 4 * error < value < exact + 4 * error
    # one axis of two points: JS · N²/N
    batch = batch_of(draw(5_000, fresh), workers())
    expected = 2 * estimator.along(batch.z, 0, batch.workers, expected=True)
    assert torch.isclose(estimator(batch), expected)


def test_trained_critics_reach_the_divergence_of_correlations_on_a_square():
    """A 2×2 grid of unit Gaussians, rows correlated by ±0.8: a step across rows is seen (95 %), one
    along them is nothing.
    """
    C, D = np.array([[1, 0.8], [0.8, 1]]), np.array([[1, -0.8], [-0.8, 1]])
    factor = torch.block_diag(*[torch.from_numpy(np.linalg.cholesky(M)).float() for M in (C, D)])
    exact = integrated_jensen_shannon(log_normal([0.0, 0.0], C), log_normal([0.0, 0.0], D), 2)

    def draw(rows, generator):
        return torch.randn(rows, 4, generator=generator) @ factor.T

    torch.manual_seed(0)
    estimator = trained(JensenShannon(Grid((2, 2)), WIDE), draw, steps=300)
    fresh = torch.Generator().manual_seed(100)
    batches = [draw(5_000, fresh) for _ in range(10)]
    across, error = held_out(estimator, 0, batches)
    assert error < 0.01 * exact
    assert 0.95 * exact - 4 * error < across < exact + 4 * error
    along, _ = held_out(estimator, 1, batches)
    assert abs(along) < 0.01 * exact


def test_stationarity_is_nothing_on_a_stationary_ring_and_clear_on_shuffled_columns():
    """Held-out rows of a shot-noise ring: 0 to 4 standard errors and 0.001; columns shuffled: 50
    times that and more.
    """
    grid = Grid((8,), periodic=True)
    fields = torch.from_numpy(
        np.asarray(gsn(24_000, 8, periodic=True, noise=0.1).latent, dtype=np.float32)
    )
    fields = Lifted.of(fields, workers()).z
    found = {}
    for name, z in (("ring", fields), ("shuffled", fields[:, [0, 4, 1, 6, 7, 3, 5, 2]])):
        train, held = z[:16_000], z[16_000:]

        def draw(rows, generator, train=train):
            return train[torch.randint(len(train), (rows,), generator=generator)]

        torch.manual_seed(0)
        estimator = trained(
            JensenShannon(grid, (Layer(6, 3, pool=False), Layer(6, 3), Layer(4, 3))),
            draw,
            steps=150,
        )
        found[name] = held_out(estimator, 0, held.chunk(16))
    (value, error), (positive, _) = found["ring"], found["shuffled"]
    assert abs(value) < 4 * error + 0.001
    assert positive > 50 * (4 * error + 0.001)


# -- the network -----------------------------------------------------------------------------------


def convolved(x, kernel, bias, stride, periodic):
    """torch's convolution of x (n, channels, *shape) with padding that keeps the size, cyclic or
    zero by axis.
    """
    for axis, wraps in enumerate(periodic):
        width = kernel.shape[2 + axis]
        pad = [(0, 0)] * x.ndim
        pad[2 + axis] = (width // 2, width - width // 2 - 1)
        x = torch.from_numpy(np.pad(x.numpy(), pad, mode="wrap" if wraps else "constant"))
    return CONVOLUTION[len(periodic)](x, kernel, bias, stride=stride)


def kernel_of(layer, critic, ndim):
    """(filters, channels, *kernel), as torch has it."""
    weight = layer.weight[critic].detach().permute(1, 0, 2)
    return weight.reshape(*weight.shape[:2], *[layer.layer.kernel] * ndim)


def pooled_members(values, pool):
    """values (n, channels, *shape) → (n, members, channels, pools): pairs along each axis of more
    than one point.
    """
    shape = values.shape[2:]
    halves = [2 if pool and n > 1 else 1 for n in shape]
    pools = [n // h for n, h in zip(shape, halves, strict=True)]
    members = []
    for member in itertools.product(*(range(h) for h in halves)):
        part = values
        for axis, (first, step, count) in enumerate(zip(member, halves, pools, strict=True)):
            part = part.index_select(2 + axis, torch.arange(count) * step + first)
        members.append(part.flatten(2))
    return torch.stack(members, dim=1)


shapes = st.one_of(
    st.tuples(st.integers(1, 9)),
    st.tuples(st.integers(1, 13), st.integers(2, 5)),
    st.tuples(st.integers(2, 8), st.integers(1, 3), st.integers(2, 3)),
)


@given(
    shapes,
    st.tuples(*[st.booleans()] * 3),
    st.integers(1, 5),
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
)
def test_a_layer_is_torchs_convolution(shape, periodic, width, stride, pool, last):
    """Zero and cyclic padding, strides, one to three axes; the members of pools come one after the
    other.
    """
    periodic = periodic[: len(shape)]
    field = Field(shape, periodic)
    torch.manual_seed(0)
    layer = Convolution(2, 3, field, Layer(4, width, stride, pool), last, bound=1.0).double()
    with torch.no_grad():
        layer.bias.normal_()
    x = torch.randn(2, 5, 3, *shape, dtype=torch.float64)
    lead = shape[0] if len(shape) > 1 else 1
    rows = x.view(2, 5, 3, lead, -1).transpose(2, 3).reshape(2, 5, lead, -1)
    got = layer.convolve(rows, layer.matrix(), layer.offset()).detach()
    for critic in range(2):
        full = convolved(
            x[critic],
            kernel_of(layer, critic, len(shape)),
            layer.bias[critic].detach(),
            stride,
            periodic,
        )
        assert full.shape[2:] == tuple(-(-n // stride) for n in shape)
        if last:
            want = full.flatten(2).mean(dim=2)
        else:
            want = pooled_members(full, pool)
            assert layer.members == want.shape[1]
            assert math.prod(layer.shape) == want.shape[3]
            # pools of the leading axis come first, then members, filters, and pools of the other
            # axes
            want = want.unflatten(3, (layer.shape[0] if len(shape) > 1 else 1, -1)).permute(
                0, 3, 1, 2, 4
            )
        assert torch.allclose(got[critic].reshape(5, -1), want.reshape(5, -1), atol=1e-12)


@pytest.mark.parametrize(
    ("grid", "layers", "kept"),
    [
        # rings of 8, 4, 2 points close; one of 15 does not after pooling
        (Grid((8,), True), (Layer(4, 5), Layer(3, 3), Layer(2, 3)), [(True,), (True,), (True,)]),
        (Grid((15,), True), (Layer(4, 5), Layer(3, 3), Layer(2, 3)), [(True,), (False,), (False,)]),
        (
            Grid((12,), True),
            (Layer(4, 5, 2), Layer(3, 3, 2, pool=False), Layer(2, 3)),
            [(True,), (True,), (False,)],
        ),
        (Grid((9,)), (Layer(4, 5), Layer(2, 3)), [(False,), (False,)]),
        (
            Grid((6, 4), (False, True)),
            (Layer(4, 3), Layer(3, 3), Layer(2, 3)),
            [(False, True)] * 2 + [(False, False)],
        ),
        (
            Grid((4, 2, 3), (True, True, False)),
            (Layer(3, 3), Layer(2, 3)),
            [(True, True, False), (True, False, False)],
        ),
        # long leading axes, on which windows slide
        (Grid((17, 3)), (Layer(4, 3), Layer(3, 3), Layer(2, 3)), [(False, False)] * 3),
        (
            Grid((16, 4), True),
            (Layer(4, 3), Layer(3, 3), Layer(2, 3)),
            [(True, True)] * 2 + [(True, False)],
        ),
    ],
    ids=str,
)
def test_a_network_of_critics_is_that_of_torchs_layers(grid, layers, kept):
    """Input on four channels plus embedding, convolutions, pools (their expectation), ELU, global
    average, limits.
    """
    torch.manual_seed(0)
    critics = Critics(grid, layers).double()
    with torch.no_grad():
        for parameter in critics.parameters():
            parameter.normal_(std=2.0)
    x = torch.randn(7, grid.size, dtype=torch.float64)
    with torch.no_grad():
        got = critics(x.expand(2, -1, -1))
    for critic in range(2):
        embedding = 5 * torch.tanh(critics.embedding[critic].detach() / 5)
        values = (x[:, None] + embedding.view(1, 4, -1)).view(7, 4, *grid.shape)
        for index, (layer, periodic) in enumerate(zip(critics.convolutions, kept, strict=True)):
            bias = layer.bias[critic].detach()
            values = convolved(
                values, kernel_of(layer, critic, grid.ndim), bias, layers[index].stride, periodic
            )
            if index < len(layers) - 1:
                parts = pooled_members(values, layers[index].pool)
                share = parts.clamp_min(1e-8)
                values = (functional.elu(parts) * share / share.sum(dim=1, keepdim=True)).sum(dim=1)
                values = values.view(7, -1, *layer.shape)
        want = 25 * torch.tanh(values.flatten(2).mean(dim=2) / 25)
        assert want.abs().max() > 1  # far enough from 0 for the limits to matter
        assert torch.allclose(got[critic], want, atol=1e-9)


@pytest.mark.parametrize("members", [2, 4, 8])
def test_stochastic_pooling_draws_in_proportion_to_the_positive_part(members):
    """40,000 draws: frequencies and means to 5 standard errors; negative members are never drawn
    beside a positive one.
    """
    n = 40_000
    torch.manual_seed(members)
    pools = torch.randn(members, 3, dtype=torch.float64)
    pools[0, 0], pools[1, 0] = 1.5, -0.5  # at least one of each sign
    pools[:, 2] = -pools[:, 2].abs()  # nothing positive: all alike
    values = pools.reshape(1, 1, -1).expand(1, n, -1).contiguous()
    drawn = _stochastic_pool(values, members, workers())[0]
    expected = _stochastic_pool(values[:, :1], members, None)[0, 0]
    for pool in range(3):
        choice = (drawn[:, pool, None] == pools[:, pool]).double()
        assert torch.all(choice.sum(dim=1) == 1)
        positive = pools[:, pool].clamp_min(0)
        share = (
            positive / positive.sum() if positive.sum() > 0 else torch.full((members,), 1 / members)
        )
        assert torch.all(
            (choice.mean(dim=0) - share).abs() <= 5 * (share * (1 - share) / n).sqrt() + 1e-6
        )
        assert (
            abs(drawn[:, pool].mean() - expected[pool])
            < 5 * drawn[:, pool].std() / math.sqrt(n) + 1e-6
        )


@pytest.mark.parametrize("members", [2, 4])
def test_elu_after_a_pool_is_a_pool_after_elu(members, dtype, tolerance):
    values = torch.randn(
        2, 300, members * 5, generator=torch.Generator().manual_seed(0), dtype=dtype
    )
    after = functional.elu(_stochastic_pool(values, members, workers(3)))
    before = _stochastic_pool(functional.elu(values), members, workers(3))
    assert torch.allclose(after, before, atol=tolerance)
    # the expectation too, wherever there is something positive to choose
    some = (values.view(2, 300, members, 5) > 0.1).any(dim=2)
    after = functional.elu(_stochastic_pool(values, members, None))[some]
    before = _stochastic_pool(functional.elu(values), members, None)[some]
    assert torch.allclose(after, before, atol=1e-6)


def test_the_gradient_of_a_pool_goes_to_the_chosen_member():
    for members in (2, 4):
        values = torch.randn(
            1, 50, members * 3, generator=torch.Generator().manual_seed(1), requires_grad=True
        )
        out = _stochastic_pool(values, members, workers())
        out.sum().backward()
        gradient = values.grad.view(50, members, 3)
        assert torch.all(gradient.sum(dim=1) == 1)
        assert set(gradient.unique().tolist()) == {0.0, 1.0}
        assert torch.equal(
            (gradient * values.detach().view(50, members, 3)).sum(dim=1), out[0].detach()
        )


@pytest.mark.parametrize("members", [2, 4, 8])
def test_the_gradient_of_a_choice_is_autograds(members):
    """Against a one-hot product, for every choice."""
    parts = torch.randn(
        1, members, members, 3, dtype=torch.float64, requires_grad=True
    )  # row i chooses member i
    before = (
        torch.ones(members, members, dtype=torch.float64)
        .triu()[None, :, :, None]
        .expand(-1, -1, -1, 3)
    )
    chosen = _Chosen.apply(parts, before.contiguous())
    one_hot = torch.eye(members, dtype=torch.float64)[None, :, :, None]
    assert torch.equal(chosen, (parts * one_hot).sum(dim=2))
    weight = torch.randn_like(chosen)
    (gradient,) = torch.autograd.grad((chosen * weight).sum(), parts)
    assert torch.equal(gradient, one_hot * weight[:, :, None])


@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 4))
def test_windows_and_their_gradient(window, step, count):
    """Windows by slices, and the gradient against finite differences."""
    values = torch.randn(
        2, 3, (count - 1) * step + window, 2, dtype=torch.float64, requires_grad=True
    )
    seen = _Windows.apply(values, window, step)
    want = torch.stack(
        [values[:, :, i * step : i * step + window].flatten(2) for i in range(count)], dim=2
    )
    assert torch.equal(seen, want)
    assert torch.autograd.gradcheck(lambda x: _Windows.apply(x, window, step), values)


def test_windows_slide_where_the_leading_axis_is_long():
    """15 × 15 images: along the first layer; later ones, lines, and the last layer take all points
    at once.
    """
    layers = (Layer(4, 5), Layer(6, 3), Layer(8, 3))
    assert [layer.slides for layer in Critics(Grid((15, 15)), layers).convolutions] == [
        True,
        False,
        False,
    ]
    assert not any(layer.slides for layer in Critics(Grid((63,)), layers).convolutions)


def test_constrain_holds_the_spectral_norm_of_every_layer():
    """Kernels as (channels · taps) × filters: at most 10^(1/layers) after 30 power iterations (1
    %), and untouched below it.
    """
    torch.manual_seed(0)
    critics = Critics(Grid((8,), True), LAYERS).double()
    small = critics.convolutions[1]
    with torch.no_grad():
        critics.convolutions[0].weight.mul_(50)
        critics.convolutions[2].weight.mul_(3)
        small.weight.mul_(0.5)
    before = small.weight.detach().clone()
    for _ in range(30):
        critics.constrain()

    def norms(layer):
        return torch.linalg.matrix_norm(layer.weight.detach().permute(0, 1, 3, 2).flatten(1, 2), 2)

    bound = 10 ** (1 / 3)
    assert all(torch.all(norms(layer) < 1.01 * bound) for layer in critics.convolutions)
    assert torch.all(norms(critics.convolutions[0]) > 0.99 * bound)
    assert torch.equal(small.weight, before)


# -- pairs, blocks and weights ---------------------------------------------------------------------


def test_shifted_pairs_of_rings_and_lines():
    line = torch.arange(2 * 3 * 4).view(2, 3, 4)
    p, q = shifted_pair(line, 0, periodic=False)
    assert torch.equal(p, line[:, :-1])
    assert torch.equal(q, line[:, 1:])
    p, q = shifted_pair(line, 1, periodic=True)
    assert torch.equal(p, line)
    assert torch.equal(q[:, :, :-1], line[:, :, 1:])
    assert torch.equal(q[:, :, -1], line[:, :, 0])


@given(st.lists(st.tuples(st.integers(2, 7), st.integers(1, 3)), min_size=1, max_size=3))
def test_coarse_graining_takes_one_member_of_each_block(axes):
    """Values that name their own place: the same offset in all blocks of a sample, one for each
    axis.
    """
    shape, factors = tuple(n for n, q in axes if n >= q), tuple(q for n, q in axes if n >= q)
    if not shape:
        return
    n = 60
    places = torch.stack(torch.meshgrid(*[torch.arange(s) for s in shape], indexing="ij"))
    offsets = []
    for axis, place in enumerate(places):
        coarse = coarse_grain(place.expand(n, *shape), factors, workers())
        assert coarse.shape == (n, *(s // q for s, q in axes if s >= q))
        blocks = torch.arange(shape[axis] // factors[axis]) * factors[axis]
        found = (coarse.movedim(1 + axis, -1) - blocks).reshape(n, -1)
        assert torch.all(found == found[:, :1])
        offsets.append(found[:, 0])
        assert set(offsets[-1].tolist()) == set(range(factors[axis]))
    if len(shape) > 1 and factors[0] == factors[1] > 1:
        assert not torch.equal(offsets[0], offsets[1])


@pytest.mark.parametrize(
    ("grid", "factors", "shares", "coarse"),
    [
        (Grid((15,), True), (), [15], Grid((15,), True)),
        (Grid((4, 6)), (), [16 / 24 / 2, 36 / 24 / 2], Grid((4, 6))),
        (Grid((9, 8), True), (2, 2), [16 / 16 / 2, 16 / 16 / 2], Grid((4, 4), (False, True))),
        (Grid((3, 4, 5)), (), [9 / 60 / 3, 16 / 60 / 3, 25 / 60 / 3], Grid((3, 4, 5))),
    ],
    ids=str,
)
def test_axes_weigh_their_squared_length_over_the_size(grid, factors, shares, coarse):
    """N_l²/N in a mean over axes; a ring that blocks do not fill is treated as a line."""
    estimator = JensenShannon(grid, LAYERS, factors).double()
    assert np.allclose(estimator.shares, shares)
    assert estimator.coarse == coarse
    z = torch.randn(40, grid.size, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    each = torch.stack(
        [estimator.along(z, axis, workers(2), expected=True) for axis in range(grid.ndim)]
    )
    if not factors:  # without random blocks
        total = estimator(batch_of(z, workers(2)))
        assert torch.isclose(total, (torch.tensor(shares) * each.clamp_min(0)).sum())


# -- one backward pass for both players ------------------------------------------------------------


@pytest.mark.parametrize(
    "grid", [Grid((6,), True), Grid((4, 3)), Grid((4, 4), (True, False))], ids=str
)
def test_one_backward_pass_gives_critics_and_lifting_map_their_own_gradients(grid):
    """Critics: -∂JS/∂φ. z: weight · share · ∂JS/∂z for each axis whose estimate is above 0, and
    nothing from the others.
    """
    weight, signs = 0.7, set()
    for seed in range(4):
        torch.manual_seed(seed)
        estimator = JensenShannon(grid, LAYERS).double()
        parameters = list(estimator.parameters())
        z = torch.randn(30, grid.size, dtype=torch.float64, requires_grad=True)
        if seed % 2:  # fresh critics fall short of 0; those that know these rows do not
            trained(estimator, lambda rows, generator, z=z: z.detach(), steps=20)
        loss, value = estimator.adversarial(batch_of(z, workers(seed)), weight)
        estimator.zero_grad()
        loss.backward()

        again, draws = (
            z.detach().clone().requires_grad_(),
            workers(seed),
        )  # the same draws of the pools
        each = [estimator.along(again, axis, draws) for axis in range(grid.ndim)]
        climb = torch.autograd.grad(-torch.stack(each).sum(), parameters, retain_graph=True)
        for parameter, wanted in zip(parameters, climb, strict=True):
            assert torch.allclose(parameter.grad, wanted, rtol=1e-9, atol=1e-12)
        descend = torch.zeros_like(z)
        for js, share in zip(each, estimator.shares, strict=True):
            signs.add(bool(js > 0))
            if js > 0:
                descend += weight * share * torch.autograd.grad(js, again, retain_graph=True)[0]
        assert torch.allclose(z.grad, descend, rtol=1e-9, atol=1e-12)
        clipped = sum(
            share * js.detach().clamp_min(0)
            for js, share in zip(each, estimator.shares, strict=True)
        )
        assert torch.isclose(value, clipped)
        assert not value.requires_grad
    assert signs == {True, False}  # both sides of the gate were seen


def test_a_batch_without_gradient_still_trains_critics():
    estimator = JensenShannon(Grid((6,), True), LAYERS)
    loss, _ = estimator.adversarial(batch_of(torch.randn(20, 6), workers()), 1.0)
    loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in estimator.parameters())
