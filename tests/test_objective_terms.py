from __future__ import annotations

import pytest
import torch

from symlift import Grid
from symlift.solvers.neural.objective.batch import Lifted, Workers
from symlift.solvers.neural.objective.closed_form import GaussianStationarity, MomentStationarity
from symlift.solvers.neural.objective.critic import JensenShannon, Layer
from symlift.solvers.neural.objective.mixture import MixtureMarginals
from symlift.solvers.neural.objective.terms import Infomax, Objective, Resolution

LAYERS = (Layer(4, 3), Layer(5, 3), Layer(3, 3))
GRID = Grid((4, 4), (True, False))
SHARES = {"critics": (1.0, 0.5), "gaussian": (0.0, 0.4), "moments": (0.3, 0.0)}


def workers(seed=0):
    return Workers(torch.Generator().manual_seed(seed))


def objective(weights=(1.5, 1.0, 0.75), shares=SHARES, grid=GRID, dtype=torch.float64):
    """An objective with a fine and a coarse estimator."""
    torch.manual_seed(0)
    critics = [JensenShannon(grid, LAYERS), JensenShannon(grid, LAYERS, (2,) * grid.ndim)]
    return Objective(grid, critics, weights, shares).to(dtype)


def lifted(dtype=torch.float64, grid=GRID, seed=0, rows=60):
    """A batch of a skewed field that is far from stationary, and the y that it was made of."""
    generator = torch.Generator().manual_seed(seed)
    scale = torch.linspace(0.5, 3, grid.size, dtype=dtype)
    y = (
        torch.randn(rows, grid.size, generator=generator, dtype=dtype).exp() * scale
    ).requires_grad_()
    return y, Lifted.of(y, workers(seed), torch.tensor(grid.size - 0.5, dtype=dtype))


def close(found, wanted):
    return torch.allclose(
        torch.as_tensor(found).double(), torch.as_tensor(wanted).double(), rtol=1e-6, atol=1e-7
    )


@pytest.mark.parametrize("opened", [0.0, 0.3, 1.0])
def test_values_are_the_weighted_sums_of_the_terms(opened):
    """values = (S, R, I, w_S S + w_R R + w_I I), with shares that run from the first to the last
    value.
    """
    model = objective()
    _, batch = lifted()
    _, values = model(batch, opened)
    assert values.shape == (len(Objective.names),)
    assert not values.requires_grad

    _, again = lifted()  # the same draws
    S = 0.0
    critic_share = 1.0 + (0.5 - 1.0) * opened
    for estimator in model.critics:
        S += critic_share / 2 * estimator.adversarial(again, 1.0)[1]
    S += 0.4 * opened * GaussianStationarity(GRID)(again) + 0.3 * (1 - opened) * MomentStationarity(
        GRID
    )(again)
    marginal = -model.resolution.marginals.log_density(again.z).mean()
    R, I = marginal - again.joint_entropy(), -(again.joint_entropy() + again.log_scale)  # noqa: E741
    assert close(values, torch.stack([S, R, I, 1.5 * S + R + 0.75 * I]))


def test_shares_run_from_first_to_last_and_stop_there():
    model = objective()
    assert [model.share("critics", opened) for opened in (-1.0, 0.0, 0.5, 1.0, 2.0)] == [
        1.0,
        1.0,
        0.75,
        0.5,
        0.5,
    ]
    assert [model.share("gaussian", opened) for opened in (0.0, 0.25, 1.0)] == pytest.approx(
        [0.0, 0.1, 0.4]
    )


def test_infomax_follows_the_scale_of_y_and_resolution_does_not():
    y, batch = lifted()
    larger = Lifted.of(10 * y, workers(), batch.rank)
    resolution, infomax = Resolution(MixtureMarginals(GRID.size).double()), Infomax()
    assert close(resolution(larger), resolution(batch))
    assert close(infomax(larger), infomax(batch) - torch.log(torch.tensor(10.0)))


@pytest.mark.parametrize("seed", range(3))
def test_the_losss_gradient_is_each_players_own(seed):
    """y: ∂(values' total)/∂y. Mixtures: w_R ∂R/∂. Critics: -∂JS/∂, whatever the weight and the
    share are.
    """
    model = objective()
    y, batch = lifted(seed=seed)
    loss, _ = model(batch, 0.3)
    loss.backward()

    y2, again = lifted(seed=seed)
    total, climb = 0.0, 0.0
    for estimator in model.critics:
        for axis, share in enumerate(estimator.shares):
            js = estimator.along(again.z, axis, again.workers)
            climb = climb - js
            total = total + 1.5 * 0.85 / 2 * share * js.clamp_min(0)
    total = (
        total
        + 1.5 * 0.12 * GaussianStationarity(GRID)(again)
        + 1.5 * 0.21 * MomentStationarity(GRID)(again)
    )
    resolution = model.resolution(again)
    total = total + resolution + 0.75 * Infomax()(again)
    (wanted,) = torch.autograd.grad(total, y2, retain_graph=True)
    assert torch.allclose(y.grad, wanted, rtol=1e-7, atol=1e-12)
    critics = list(model.critics.parameters())
    for parameter, wanted in zip(
        critics, torch.autograd.grad(climb, critics, retain_graph=True), strict=True
    ):
        assert torch.allclose(parameter.grad, wanted, rtol=1e-7, atol=1e-12)
    mixtures = list(model.resolution.parameters())
    for parameter, wanted in zip(mixtures, torch.autograd.grad(resolution, mixtures), strict=True):
        assert torch.allclose(parameter.grad, wanted, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("grid", [Grid((8,), True), Grid((9,)), GRID, Grid((4, 4, 4))], ids=str)
def test_gradients_reach_every_parameter_and_the_input(grid, dtype):
    model = objective(grid=grid, dtype=dtype)
    y, batch = lifted(dtype, grid)
    loss, values = model(batch, 0.5)
    assert loss.dtype == values.dtype == dtype
    assert torch.isfinite(values).all()
    loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.dtype == dtype
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().max() > 0, name
    assert torch.isfinite(y.grad).all()
    assert torch.all(y.grad.abs().amax(dim=0) > 0)


def test_both_precisions_have_the_same_closed_terms():
    shares = {"gaussian": (1.0, 1.0), "moments": (1.0, 1.0)}
    found = []
    for dtype in (torch.float32, torch.float64):
        y, _ = lifted()
        model = objective(shares=shares, dtype=dtype)
        found.append(model(Lifted.of(y.detach().to(dtype), workers()))[1].double())
    assert torch.allclose(*found, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("off", [0, 1, 2])
def test_a_weight_of_zero_switches_its_term_off(off):
    """Its parameters are not there, its value is 0, and the others are what they were."""
    weights = tuple(
        0.0 if index == off else weight for index, weight in enumerate((1.5, 1.0, 0.75))
    )
    model, everything = objective(weights), objective()
    _, values = model(lifted()[1], 0.5)
    _, full = everything(lifted()[1], 0.5)
    kept = [index for index in range(3) if index != off]
    assert values[off] == 0
    assert torch.equal(values[kept], full[kept])
    assert close(values[3], sum(weights[index] * full[index] for index in kept))
    names = {name.split(".")[0] for name, _ in model.named_parameters()}
    assert names == (
        {"resolution"} if off == 0 else {"critics"} if off == 1 else {"critics", "resolution"}
    )


def test_what_is_off_costs_nothing():
    """No draw, no covariance, no spectrum, no term called."""
    _, batch = lifted()
    before = batch.workers.generator.get_state()
    model = objective((0.0, 0.0, 0.0))
    assert not list(model.parameters())
    assert not list(model.buffers())
    assert not model.closed
    assert torch.equal(model(batch)[1], torch.zeros(4, dtype=torch.float64))
    assert torch.equal(batch.workers.generator.get_state(), before)
    assert not batch._cache
    # a closed form whose share is 0 at this rank is not computed either
    model = objective((1.0, 0.0, 0.0), {"critics": (0.0, 0.0), "gaussian": (0.0, 1.0)})
    assert len(model.critics) == 0
    assert list(model.closed) == ["gaussian"]
    assert model(batch, 0.0)[1][0] == 0
    assert not batch._cache
    assert model(batch, 1.0)[1][0] > 0
    assert set(batch._cache) == {"covariance"}


def test_constrain_reaches_all_critics():
    model = objective()
    with torch.no_grad():
        for parameter in model.critics.parameters():
            parameter.mul_(100)
    for _ in range(30):
        model.constrain()
    for module in model.modules():
        if hasattr(module, "bound"):
            norms = torch.linalg.matrix_norm(module.weight.permute(0, 1, 3, 2).flatten(1, 2), 2)
            assert torch.all(norms < 1.01 * module.bound)
