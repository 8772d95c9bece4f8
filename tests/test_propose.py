from __future__ import annotations

import numpy as np
import pytest

from symlift import Grid, LatentDomain
from symlift.datasets import gsn
from symlift.errors import FitWarning
from symlift.search.settings import PlaceSettings
from symlift.solvers.fast.place.screen import step_distribution
from symlift.solvers.fast.propose import _of_fewest_dimensions, candidate_grids, propose_grid

pytestmark = pytest.mark.portable


@pytest.mark.parametrize(
    ("shape", "periodic", "transform"),
    [
        ((24,), False, "permutation"),
        ((24,), True, "permutation"),
        ((6, 6), False, "permutation"),
        ((5, 8), False, "permutation"),
        ((6, 7), True, "permutation"),
        ((3, 4, 4), False, "permutation"),
        ((24,), True, "orthogonal"),
        ((6, 6), False, "orthogonal"),
    ],
)
def test_the_true_grid_is_proposed(shape, periodic, transform):
    data = gsn(8_000, shape, periodic=periodic, transform=transform, random_state=5)
    found = propose_grid(data.X, np.random.default_rng(0))
    assert found is not None
    assert [one.shape for one in found.candidates].count(found.grid.shape) >= 1
    assert (found.candidates[0].shape, found.candidates[0].periodic) == (
        found.grid.shape,
        found.grid.periodic,
    )
    assert found.runner_up not in (None, found.grid)
    found = found.grid
    assert sorted(zip(found.shape, found.periodic, strict=True)) == sorted(
        zip(data.grid.shape, data.grid.periodic, strict=True)
    )
    assert 0 < found.confidence <= 1


@pytest.mark.parametrize(
    ("shape", "left_out"), [((8, 8), 1), ((4, 20), 0)], ids=["a missing point", "one to five"]
)
def test_holes_and_long_rectangles_are_proposed(shape, left_out):
    X = gsn(6_000, shape, transform="permutation", random_state=5).X
    found = propose_grid(X[:, left_out:], np.random.default_rng(0))
    assert found is not None
    found = found.grid
    assert (sorted(found.shape), any(found.periodic)) == (sorted(shape), False)


@pytest.mark.parametrize(
    "grid",
    [Grid((7,)), Grid((6,), True), Grid((3, 5)), Grid((4, 3), (False, True)), Grid((2, 3, 4))],
)
def test_steps_are_distributed_as_counted(grid):
    index = grid.indices()
    apart = np.abs(index[:, None] - index[None])
    apart = np.where(grid.periodic, np.minimum(apart, np.array(grid.shape) - apart), apart).sum(
        axis=-1
    )
    assert np.allclose(step_distribution(grid), np.bincount(apart.ravel()) / grid.size**2)


def test_nothing_is_proposed_for_noise(rng):
    assert propose_grid(rng.normal(size=(3_000, 16)), np.random.default_rng(0)) is None
    with pytest.warns(FitWarning) as caught:
        est = LatentDomain(random_state=0).fit(rng.normal(size=(3_000, 16)))
    told = [str(warning.message) for warning in caught]
    assert "could not be determined" in told[0]
    assert "no identifiable domain" in told[1]
    assert est.grid_ == Grid((16,), confidence=0.0)


def test_the_default_is_to_propose():
    data = gsn(5_000, (5, 6), transform="permutation", random_state=6)
    est = LatentDomain(random_state=0).fit(data.X)
    assert sorted(est.grid_.shape) == [5, 6]
    assert est.grid_.confidence > 0.15


def test_candidates_have_d_points_each():
    for d in (2, 7, 12, 36, 64):
        grids = list(candidate_grids(d))
        assert all(grid.size == d for grid in grids)
        assert len({(g.shape, g.periodic) for g in grids}) == len(grids)
        assert grids[0] == Grid((d,))


def test_candidates_are_kept_and_a_close_runner_up_is_named():
    data = gsn(3_000, 16, transform="permutation", random_state=1)
    est = LatentDomain(random_state=0).fit(data.X)
    first, *others = est.trace_.candidates
    assert (first.shape, first.periodic) == ((16,), (False,))
    assert len(others) >= 2
    assert others == sorted(others, key=lambda one: -one.share)
    assert LatentDomain(grid=16, random_state=0).fit(data.X).trace_.candidates == ()


def test_an_unsure_grid_names_the_other(monkeypatch):
    from symlift.solvers.contract import GridCandidate
    from symlift.solvers.fast import propose

    data = gsn(2_000, 16, periodic=True, transform="permutation", random_state=1)
    close = (GridCandidate((16,), (True,), 0.91), GridCandidate((4, 4), (False, True), 0.9))
    unsure = propose.Proposal(Grid((16,), True, confidence=0.52), close)
    monkeypatch.setattr(propose, "propose_grid", lambda *_: unsure)
    with pytest.warns(
        FitWarning,
        match=(
            r"the ring of 16 points explains 91 % of the reproducible correlation, the 4 × 4 grid,"
            r" axis 2 closed, 90 %: give grid="
        ),
    ):
        LatentDomain(random_state=0).fit(data.X)


class _Candidate:
    """What `_of_fewest_dimensions` reads of a domain that was filled."""

    def __init__(self, shape, share, between=False, converged=False):
        self.grid, self.share = Grid(shape), share
        self.between, self.converged = between, converged

    def as_good_as(self, other, _settings):
        return self.share > other.share - 0.03


@pytest.mark.parametrize(
    ("share", "converged", "left"),
    [(0.58, True, 2), (0.58, False, 3), (0.50, True, 3)],
    ids=["a grid", "a grid that does not come back", "a grid that explains less than a plane"],
)
def test_places_in_space_do_not_compete_with_a_grid_that_equals_a_plane(share, converged, left):
    plane, space = (_Candidate(s, v, between=True) for s, v in (((9, 9), 0.60), ((5, 5, 4), 0.65)))
    grid = _Candidate((9, 8), share, converged=converged)
    assert len(_of_fewest_dimensions([space, plane, grid], PlaceSettings())) == left
