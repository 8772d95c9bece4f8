"""A training that has not converged is not taken for a result."""

from __future__ import annotations

import numpy as np
import pytest

from symlift import LatentDomain
from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.datasets import gsn, ising
from symlift.errors import FitWarning
from symlift.solvers.neural.convergence import STATIONARY, all_show, signs_of_convergence
from symlift.solvers.neural.presets import preset_for
from symlift_paper import Experiment
from symlift_paper.runner import ARRIVED, _slow_waves, run_closings

RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=(2_000, 31))
#: as long as what was once believed, with a batch that a test can afford
SHORT = {"steps": 200, "device": "cpu", "settings": {"batch": 100}}


def pulses(points: int, periodic: bool = False, n: int = 2_000) -> np.ndarray:
    return gsn(n, points, periodic=periodic, transform="orthogonal", random_state=0).X


#: what → (rows, grid, periodic, options)
CASES = {
    "pulses on 31 points, which once were taken for spins": (pulses(31), (31,), False, SHORT),
    "the same on a ring": (pulses(31, True), (31,), True, SHORT),
    "Gaussian noise": (NOISE, (31,), False, SHORT),
    "Gaussian noise on a ring": (NOISE[:, :15], (15,), True, SHORT),
    "signs at random": (np.sign(NOISE), (31,), False, SHORT),
    "noise of unequal columns": (NOISE * np.linspace(0.2, 3, 31), (31,), False, SHORT),
    "cubes of noise": (NOISE**3, (31,), False, SHORT),
    "a ring that is given as a line": (pulses(15, True), (15,), False, SHORT),
    "images that are none": (NOISE[:, :30], (5, 6), False, SHORT),
    "more columns than points of a ring": (NOISE, (12,), True, SHORT),
    "pulses on 40 points": (pulses(40), (40,), False, SHORT),
    "the paper's training, stopped": (
        pulses(15, True),
        (15,),
        True,
        {"preset": "paper", **SHORT},
    ),
    "the paper's training of noise, by its own clock": (
        NOISE[:, :15],
        (15,),
        True,
        {"preset": "paper", "settings": {"steps": 200, "batch": 100}, "device": "cpu"},
    ),
    "the released training of pulses, by a clock that is too short": (
        pulses(15, True),
        (15,),
        True,
        {"preset": "released", "settings": {"steps": 200, "batch": 100}, "device": "cpu"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_has_not_converged_warns_and_is_not_found(case):
    X, grid, periodic, options = CASES[case]
    est = LatentDomain(
        grid=grid, periodic=periodic, solver="neural", random_state=0, solver_options=options
    )
    with pytest.warns(FitWarning, match="ended before it had converged"):
        est.fit(X)
    assert not est.evidence_.found
    assert not est.trace_.training.closed
    assert est.evidence_.carried_by == "training"


@pytest.mark.parametrize("points", [15, 24, 25, 31, 33, 48, 49])
def test_spins_are_told_from_pulses_by_their_rows_and_not_by_their_number(points):
    line, n = Grid((points,)), 4_000
    spins = ising(n, points, transform="linear", random_state=0).X
    assert preset_for(line, points, spins) == "ising33"
    assert preset_for(line, points, pulses(points, n=n)) in ("gsn15", "gsn63")
    assert preset_for(line, points, RNG.normal(size=(n, points))) in ("gsn15", "gsn63")


# -- the signs -------------------------------------------------------------------------------------


RING = Grid((9,), periodic=True)
DATA = gsn(4_000, 9, periodic=True, transform="orthogonal", random_state=1)
TRUTH = np.linalg.inv(DATA.transform).T


def told(held_out: float = 1.0, drift: float = 0.0, rank: float = 9.0) -> list[dict[str, float]]:
    steps = range(101)
    return [
        {
            "step": 1_000 * k,
            "rank": rank,
            "held_out": held_out + drift * k,
            "held_out_stationarity": 0.3,
        }
        for k in steps
    ]


def signs(W: np.ndarray, **changes: object) -> dict[str, bool]:
    given = {"history": told(), "full": 9.0, "ended": "finished"} | changes
    return signs_of_convergence(W, DATA.X, LagClasses(RING), **given)  # type: ignore[arg-type]


def test_the_truth_shows_all_signs():
    assert all_show(signs(TRUTH))
    assert not all_show({})


@pytest.mark.parametrize(
    ("missing", "changes"),
    [
        ("ended by its clock", {"ended": "steps"}),
        ("rank open", {"history": told(rank=7.0)}),
        ("settled", {"history": told(drift=0.02)}),
        ("settled", {"history": told()[:3]}),
        ("learned", {"history": [{**p, "held_out_stationarity": 0.0} for p in told()]}),
    ],
)
def test_each_sign_can_be_missing(missing, changes):
    shown = signs(TRUTH, **changes)
    assert [name for name, there in shown.items() if not there] == [missing]


def test_a_random_map_is_not_stationary_on_halves():
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(9, 9)))[0]
    assert not signs(turn)["stationary on both halves"]
    # from a near start neither rank nor gain are asked for
    assert set(signs(TRUTH, near=True)) == {
        "ended by its clock",
        "settled",
        "stationary on both halves",
    }


# -- what was trained, and what a closed form made of it -------------------------------------------


@pytest.fixture(scope="module")
def closed(tmp_path_factory):
    """Seven spins behind a linear map: the shortest training that a closed form ends."""
    folder = tmp_path_factory.mktemp("training")
    X = ising(3_000, 7, transform="linear", random_state=0).X
    options = {"device": "cpu", "folder": folder, "settings": {"batch": 100}}
    est = LatentDomain(grid=(7,), solver="neural", random_state=0, solver_options=options)
    return est.fit(X), folder


def test_what_was_trained_is_told_apart_from_what_was_closed(closed):
    est, folder = closed
    training = est.trace_.training
    assert est.evidence_.found
    assert (training.closed, est.evidence_.carried_by) == (True, "closed form")
    assert set(training.before_closing) == {"stationarity", "resolution", "distortion"}
    W = np.load(folder / "before_closing.npy")
    ended = est.model_.lifting_map()
    # another map than the one that is returned, and by far a less stationary one
    assert abs(np.sum(W * ended)) < 0.999 * np.linalg.norm(W) * np.linalg.norm(ended)
    assert est.evidence_.trained_stationarity == training.before_closing["stationarity"]
    # how far so few steps come depends on the order of sums, so on the number of threads
    assert est.evidence_.stationarity < min(STATIONARY, est.evidence_.trained_stationarity / 10)


def test_a_report_says_what_was_trained_and_what_was_closed(closed, tmp_path):
    est, _ = closed
    page = est.report(tmp_path / "page.html").read_text(encoding="utf-8")
    for words in ("closed form", "trained stationarity", "training, before closing"):
        assert words in page


def test_spins_are_closed_from_any_start_and_pulses_from_few():
    """What a closed form does alone is measured, so that it is not taken for training."""
    spins = Experiment(name="s", title="spins", source="ising", shape=(7,), transform="linear")
    alone = run_closings(spins, starts=3, n=3_000)
    assert (alone["starts"], alone["closed"], alone["share"]) == (3, 3, 1.0)
    assert min(alone["closed_r"]) > ARRIVED
    pulses = Experiment(name="p", title="pulses", source="gsn", shape=(13,), periodic=True)
    alone = run_closings(pulses, starts=4, n=3_000)
    assert alone["share"] < 1
    assert len(alone["closed_r"]) == alone["closed"]


def test_a_map_of_a_coarse_grid_is_compared_with_slow_waves():
    fine, small = Grid((6, 8)), Grid((3, 4))
    rows, columns = (np.cos(np.pi * (np.arange(n) + 0.5) / n) for n in fine.shape)
    few, less = (np.cos(np.pi * (np.arange(n) + 0.5) / n) for n in small.shape)
    wave, expected = (np.outer(*pair).reshape(1, -1) for pair in ((rows, columns), (few, less)))
    slow = _slow_waves(wave, fine, small)
    assert slow.shape == (1, small.size)
    np.testing.assert_allclose(slow / slow.max(), expected / expected.max(), atol=1e-6)
