"""A part of a lattice under places of their own."""

from __future__ import annotations

import numpy as np
import pytest

from symlift.search.settings import PlaceSettings
from symlift.solvers.starts.lattice import _closed_up, _in_box, lattice_under


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


@pytest.mark.parametrize("basis", [[[2, 0], [0, 1]], [[1, 1], [1, -1]], [[1, 2], [-2, 1]]])
def test_points_of_a_lattice_are_counted_in_its_own_steps(basis: list[list[int]]) -> None:
    at = island((9, 7))
    steps = _closed_up(at @ np.array(basis) + 5)
    assert steps is not None
    # the same points, turned or mirrored
    apart, again = (
        np.sort(np.sum((x[:, None] - x[None]) ** 2, axis=-1), axis=1) for x in (at, steps)
    )
    np.testing.assert_allclose(again, apart, atol=1e-9)
    assert _closed_up(np.stack([np.arange(5), 2 * np.arange(5)], axis=1)) is None


def test_a_lattice_on_which_most_points_are_empty_is_none() -> None:
    at = island((12, 12)).astype(float)
    assert _in_box(at) is not None
    loose = np.stack([np.arange(40), np.arange(40) % 9], axis=1).astype(float)
    assert _in_box(loose) is None
