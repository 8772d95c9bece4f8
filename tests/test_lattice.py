"""A part of a lattice under places of their own."""

from __future__ import annotations

import numpy as np
import pytest

from symlift.search.settings import PlaceSettings
from symlift.solvers.starts.lattice import lattice_under


def island(shape: tuple[int, int]) -> np.ndarray:
    """Points of an L, (d, 2)."""
    x, y = np.indices(shape)
    return np.argwhere((x < shape[0] // 2) | (y < shape[1] // 2))


@pytest.mark.parametrize("turn", [0.0, 0.4, 1.2])
def test_a_part_of_a_lattice_is_found_under_places(turn: float) -> None:
    rng = np.random.default_rng(3)
    at = island((13, 10)).astype(float)
    apart = np.linalg.norm(at[:, None] - at[None], axis=-1)
    c = np.exp(-apart / 2) * 0.98 + 0.02 * np.eye(len(at))
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    # as places are: turned, in no unit, and bent
    y = 1.7 * at @ rotation + 0.3 * rng.normal(size=at.shape) + 0.01 * at**2
    under = lattice_under(y, c, rng, PlaceSettings())
    assert under is not None
    grid, steps = under
    assert sorted(grid.shape) == [10, 13]
    # an isometry, but for a few corners: distances are those of the truth
    same = np.abs(np.linalg.norm(steps[:, None] - steps[None], axis=-1) - apart) < 1e-9
    assert np.median(same.mean(axis=1)) > 0.9


def test_columns_without_places_have_no_lattice() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 40))
    y = rng.normal(size=(40, 2))
    assert lattice_under(y, np.corrcoef(X.T), rng, PlaceSettings()) is None
