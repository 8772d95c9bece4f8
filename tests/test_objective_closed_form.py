from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from symlift import Grid
from symlift.core.lags import LagClasses
from symlift.solvers.neural.objective.batch import Lifted, Workers
from symlift.solvers.neural.objective.closed_form import GaussianStationarity, MomentStationarity

pytestmark = pytest.mark.portable

GRIDS = [
    Grid((7,), True),
    Grid((8,), True),
    Grid((6,)),
    Grid((3, 4), True),
    Grid((3, 4)),
    Grid((4, 3), (True, False)),
    Grid((2, 3, 3), (True, False, True)),
    Grid((2, 2, 3)),
]
grids = pytest.mark.parametrize(
    "grid", GRIDS, ids=lambda g: f"{g}-{''.join('or'[p] for p in g.periodic)}"
)
measures = pytest.mark.parametrize("measure", [MomentStationarity, GaussianStationarity])


def stationary(grid, seeds=24, skewed=True):
    """All cyclic shifts of a few skewed random fields on a torus, seen through the grid's window:
    stationary exactly.

    Open axes see a part of a longer ring.
    """
    rng = np.random.default_rng(7)
    torus = tuple(
        n if wraps else 2 * n + 1 for n, wraps in zip(grid.shape, grid.periodic, strict=True)
    )
    fields = rng.normal(size=(seeds, *torus))
    if skewed:
        fields = np.exp(0.5 * fields)
    axes = tuple(range(1, 1 + grid.ndim))
    shifted = np.concatenate(
        [np.roll(fields, t, axes) for t in itertools.product(*(range(n) for n in torus))]
    )
    return torch.from_numpy(
        shifted[(slice(None), *(slice(n) for n in grid.shape))].reshape(len(shifted), -1)
    )


def lifted(y):
    return Lifted.of(y, Workers(torch.Generator().manual_seed(0)))


@grids
@measures
def test_nothing_on_exactly_stationary_rows_and_positive_on_a_ramp_of_scales(grid, measure):
    y = stationary(grid)
    assert abs(measure(grid)(lifted(y))) < 1e-10
    assert measure(grid)(lifted(y * torch.linspace(0.5, 2, grid.size, dtype=y.dtype))) > 0.01


@measures
@pytest.mark.parametrize("grid", [Grid((8,), True), Grid((9,)), Grid((4, 5), True)], ids=str)
def test_shuffled_columns_of_a_smooth_field(grid, measure):
    """Skewed noise smoothed along the grid, 4,000 rows: below 0.05; with columns shuffled ten times
    that and above 0.05.
    """
    rng = np.random.default_rng(1)
    longer = tuple(
        n if wraps else n + 1 for n, wraps in zip(grid.shape, grid.periodic, strict=True)
    )
    noise = rng.exponential(size=(4_000, *longer))
    for axis in range(grid.ndim):
        noise = noise + 0.8 * np.roll(noise, 1, axis + 1)
    # a window of a ring that is one point longer is stationary as well
    window = tuple(slice(n) for n in grid.shape)
    y = torch.from_numpy(noise[:, *window].reshape(len(noise), -1))
    near = measure(grid)(lifted(y))
    far = measure(grid)(lifted(y[:, torch.from_numpy(rng.permutation(grid.size))]))
    assert -1e-9 < near < 0.05
    assert far > 10 * near
    assert far > 0.05


@grids
def test_moments_against_the_projection_on_lag_classes(grid, rng, monkeypatch):
    """Σ ‖M - M̄‖²/size with the projection, the moments and their sizes written out in numpy."""
    y = torch.from_numpy(
        rng.gamma(1.0, size=(200, grid.size)) @ rng.normal(size=(grid.size, grid.size))
    )
    batch = lifted(y)
    z = np.clip(batch.z.numpy(), -2.0, 2.0)
    square = z**2 - np.mean(z**2)
    monkeypatch.setattr("symlift.solvers.neural.objective.closed_form.CLIP", 2.0)
    lags = LagClasses(grid)
    moments = [left.T @ right / len(z) for left, right in ((z, z), (square, z), (square, square))]
    low, high = np.sum(moments[0] ** 2), np.sum(moments[2] ** 2) + np.sum(4 * moments[0] ** 4)
    distances = [np.sum((M - lags.project(M)) ** 2) for M in moments]
    total = distances[0] / low + distances[1] / np.sqrt(low * high) + distances[2] / high
    assert math.isclose(MomentStationarity(grid)(batch), total, rel_tol=1e-9)


def test_moments_of_fields_without_third_moments_are_stationary():
    """A Gaussian ring (no third moment, 20,000 rows) reads below 0.02, and spins (z² constant) are
    finite.
    """
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(20_000, 15))
    ring = Grid((15,), True)
    assert (
        MomentStationarity(ring)(lifted(torch.from_numpy(noise + np.roll(noise, 1, axis=1)))) < 0.02
    )
    assert torch.isfinite(MomentStationarity(ring)(lifted(torch.from_numpy(np.sign(noise)))))


@grids
def test_gaussian_measure_against_log_determinants(grid, rng):
    """½ log det C_m - ¼ (log det C_p + log det C_q), weighted by N_l²/N in the mean over axes; C_m
    from the stacked rows.
    """
    mixing, mean = rng.normal(size=(grid.size, grid.size)), rng.normal(size=grid.size)
    y = torch.from_numpy(rng.normal(size=(300, grid.size)) @ mixing + mean)
    batch = lifted(y)
    fields = batch.z.numpy().reshape(-1, *grid.shape)
    total = 0.0
    for axis, (length, wraps) in enumerate(zip(grid.shape, grid.periodic, strict=True)):
        if wraps:
            p, q = fields, np.roll(fields, -1, axis + 1)
        else:
            p, q = np.delete(fields, -1, axis + 1), np.delete(fields, 0, axis + 1)
        p, q = p.reshape(300, -1), q.reshape(300, -1)

        def log_det(rows):
            C = np.cov(rows.T, bias=True).reshape(rows.shape[1], -1)
            return np.linalg.slogdet(C + 1e-3 * np.eye(len(C)))[1]

        divergence = log_det(np.concatenate([p, q])) / 2 - (log_det(p) + log_det(q)) / 4
        assert divergence > 0
        total += length**2 / grid.size / grid.ndim * divergence
    assert math.isclose(GaussianStationarity(grid)(batch), total, rel_tol=1e-8)


def test_gaussian_measure_is_at_least_the_divergence():
    """Two points N(-0.8, 0.6²), N(0.5, 1): above the integrated JS (0.264), by less than 0.1, as
    the mixture is not Gaussian.
    """
    x = torch.linspace(-9, 9, 20_001, dtype=torch.float64)
    p, q = (
        torch.distributions.Normal(m, s).log_prob(x).exp() for m, s in ((-0.8, 0.6), (0.5, 1.0))
    )
    m = (p + q) / 2
    exact = float(
        (torch.special.xlogy(p, p / m) + torch.special.xlogy(q, q / m)).sum() * (x[1] - x[0]) / 2
    )
    noise = torch.randn(200_000, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = noise * torch.tensor([0.6, 1.0]) + torch.tensor([-0.8, 0.5])
    found = float(GaussianStationarity(Grid((2,)))(lifted(y))) / 2  # N²/N = 2
    assert exact < found < exact + 0.1


@measures
@pytest.mark.parametrize("grid", [Grid((4,), True), Grid((2, 3))], ids=str)
def test_gradients_against_finite_differences(grid, measure, rng):
    y = torch.from_numpy(rng.gamma(2.0, size=(9, grid.size))).requires_grad_()
    assert torch.autograd.gradcheck(lambda y: measure(grid)(lifted(y)), (y,))


@measures
def test_both_precisions(measure, dtype):
    grid = Grid((3, 3))
    y = stationary(grid, skewed=False) * torch.linspace(1, 2, 9)
    found, exact = measure(grid).to(dtype)(lifted(y.to(dtype))), measure(grid)(lifted(y))
    assert found.dtype == dtype
    assert math.isclose(found, exact, rel_tol=1e-3)
