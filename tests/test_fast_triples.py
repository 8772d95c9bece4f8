"""Sums over triples of points: equal to the plain formula on every kind of grid and in both
precisions.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.solvers.fast.stationary import Invariant
from symlift.solvers.fast.triples import Triples, pack, unpacked

pytestmark = pytest.mark.portable

GRIDS = [
    Grid((7,)),
    Grid((8,), True),
    Grid((3, 4)),
    Grid((4, 3), True),
    Grid((3, 4), (True, False)),
    Grid((4, 3), (False, True)),
    Grid((2, 3, 3)),
    Grid((3, 2, 3), (False, True, True)),
]


def symmetric(d, seed):
    T = np.random.default_rng(seed).normal(size=(d, d, d))
    return sum(np.transpose(T, p) for p in itertools.permutations(range(3)))


def test_a_packed_tensor_is_the_whole_one():
    T = symmetric(5, 0)
    np.testing.assert_allclose(pack(T)[:, unpacked(5)].reshape(T.shape), T, atol=1e-12)


@pytest.mark.parametrize("grid", GRIDS, ids=lambda g: f"{g}, {g.periodic}")
def test_sums_of_boxes_are_averages_over_equal_displacements(grid):
    T = symmetric(grid.size, 1)
    expected = np.empty_like(T)
    index = LagClasses(grid).index
    # the definition: T[i, j, k] averaged over all triples with both displacements the same
    for u, v in itertools.product(np.unique(index), repeat=2):
        same = (index == u)[:, :, None] & (index == v)[:, None, :]
        if same.any():
            expected[same] = T[same].mean()
    np.testing.assert_allclose(Triples(grid).project(T), expected, atol=1e-12)
    np.testing.assert_allclose(Invariant(LagClasses(grid)).project(T), expected, atol=1e-12)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)])
@pytest.mark.parametrize("columns", [0, 2])
@pytest.mark.parametrize("grid", GRIDS, ids=lambda g: f"{g}, {g.periodic}")
def test_energy_and_gradient_are_those_of_the_plain_formula(grid, columns, dtype, tolerance):
    d = grid.size - columns
    T, V = symmetric(d, 2), np.random.default_rng(3).normal(size=(grid.size, d))
    rotated = np.einsum("ia,jb,kc,abc->ijk", V, V, V, T, optimize=True)
    inside = Triples(grid).project(rotated)
    slope = np.einsum("ijk,jb,kc,abc->ia", inside, V, V, T, optimize=True)
    for part in (Triples(grid), Invariant(LagClasses(grid))):
        # twice: the second time in memory that the first one has used
        for _ in range(2):
            energy, gradient = part.energy(V, pack(T).astype(dtype))
            assert energy == pytest.approx(np.sum(inside**2), rel=tolerance)
            np.testing.assert_allclose(gradient, slope, atol=tolerance * np.abs(slope).max())


def test_a_sixth_of_the_gradient():
    grid = Grid((3, 3))
    rng = np.random.default_rng(4)
    triples, packed = Triples(grid), pack(symmetric(9, 5))
    V, direction = rng.normal(size=(2, 9, 9))
    h = 1e-5
    slope = (
        triples.energy(V + h * direction, packed)[0] - triples.energy(V - h * direction, packed)[0]
    ) / (2 * h)
    assert 6 * np.sum(triples.energy(V, packed)[1] * direction) == pytest.approx(slope, rel=1e-6)
