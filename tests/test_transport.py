"""Rows that are moved by one step of the stimulus arrive where they should, and controls do not."""

from __future__ import annotations

import numpy as np
import pytest

from symlift import LatentDomain
from symlift.datasets import ring_population
from symlift.errors import FitWarning
from symlift_paper.transport import transport_rows


@pytest.fixture(scope="module")
def gratings():
    data = ring_population(900, 40, rate=12.0, stimuli=6, gain=0.1, movement=0.0, random_state=3)
    # six stimuli with little noise: any closed curve can be drawn through six states
    est = LatentDomain(grid=(30,), periodic=True, solver="ring", random_state=0)
    with pytest.warns(FitWarning, match="clusters"):
        est.fit(data.X[:450])
    return data.X.astype(np.float64), np.ravel(data.latent), est


def test_moved_rows_arrive_and_controls_do_not(gratings):
    X, angles, est = gratings
    halves = (X[:450], angles[:450]), (X[450:], angles[450:])
    moved = transport_rows(est, *halves, 6, np.random.default_rng(0))
    assert moved.removed > 0.7
    assert moved.wrong_way < 0
    assert abs(moved.random_generator) < 0.4
    assert moved.mixed > moved.mixed_unmoved
    assert moved.worst_step <= moved.removed
    assert set(moved.summary()) == set(vars(moved))


def test_the_sense_of_rotation_is_no_part_of_the_score(gratings):
    """Labels that run the other way round give the same numbers."""
    X, angles, est = gratings
    one, other = (
        transport_rows(
            est, (X[:450], s * angles[:450]), (X[450:], s * angles[450:]), 6,
            np.random.default_rng(0),
        )
        for s in (1, -1)
    )  # fmt: skip
    assert other.removed == pytest.approx(one.removed, abs=1e-9)
    assert other.wrong_way == pytest.approx(one.wrong_way, abs=1e-9)


def test_a_model_that_moves_nothing_removes_nothing(gratings, monkeypatch):
    X, angles, est = gratings
    monkeypatch.setattr(LatentDomain, "shift", lambda self, rows, t: np.asarray(rows))
    still = transport_rows(
        est, (X[:450], angles[:450]), (X[450:], angles[450:]), 6, np.random.default_rng(0)
    )
    assert still.removed == pytest.approx(0.0, abs=1e-12)
    assert still.random_generator == pytest.approx(0.0, abs=1e-9)
