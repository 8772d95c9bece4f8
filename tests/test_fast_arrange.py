from __future__ import annotations

import numpy as np
import pytest

from symlift import Grid, InputError
from symlift.datasets import gsn
from symlift.metrics import signal_recovery
from symlift.solvers.fast.arrange import arrange, explained, fisher_z, similarities

pytestmark = pytest.mark.portable


@pytest.mark.parametrize(
    ("shape", "periodic", "basis"),
    [
        (31, False, "gaussian"),
        (31, False, "legendre"),
        (14, True, "gaussian"),
        ((8, 8), False, "gaussian"),
        ((6, 9), False, "gaussian"),
        ((7, 9), (True, False), "gaussian"),
        ((4, 4, 4), False, "gaussian"),
    ],
)
def test_shuffled_fields_are_put_in_order(shape, periodic, basis):
    data = gsn(
        6_000,
        shape,
        basis=basis,
        periodic=periodic,
        transform="permutation",
        noise=0.0,
        random_state=3,
    )
    order, quality = arrange(similarities(data.X), data.grid, np.random.default_rng(0))
    assert sorted(order) == list(range(data.grid.size))
    assert signal_recovery(data.latent, data.X[:, order], data.grid).r > 0.99
    assert quality["explained"] > 0.95


def test_a_dense_mixing_cannot_be_arranged_and_says_so():
    data = gsn(6_000, 31, transform="orthogonal", random_state=3)
    _, quality = arrange(similarities(data.X), data.grid, np.random.default_rng(0))
    assert quality["explained"] < 0.7


def test_noise_explains_nothing(rng):
    X = rng.normal(size=(4_000, 25))
    order, quality = arrange(similarities(X), Grid((5, 5)), np.random.default_rng(0))
    assert sorted(order) == list(range(25))
    assert quality["explained"] < 0.5


def test_explained_is_one_for_an_exact_lag_model():
    grid = Grid((9,))
    from symlift.core.lags import LagClasses

    s = fisher_z(0.9 ** np.abs(np.subtract.outer(np.arange(9), np.arange(9))))
    assert explained(s[None], np.arange(9), LagClasses(grid)) > 1 - 1e-9
    assert explained(s[None], np.random.default_rng(0).permutation(9), LagClasses(grid)) < 0.9


def test_columns_must_fill_the_grid():
    with pytest.raises(InputError, match="do not fill"):
        arrange(np.zeros((1, 5, 5)), Grid((2, 3)), np.random.default_rng(0))
