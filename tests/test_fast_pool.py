"""The search for a dense mixing: turns of starts, the pool, attempts that share only the data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from symlift import LatentDomain
from symlift.core.grid import Grid
from symlift.datasets import gsn
from symlift.errors import FitWarning
from symlift.solvers.contract import no_progress
from symlift.solvers.fast.contract import ProposedMap, Standing, StartTurn
from symlift.solvers.fast.pool import Pool, chosen, confirmed, run_starts
from symlift.solvers.fast.problem import Problem, same_signals
from symlift.solvers.fast.settings import DEFAULT
from symlift.solvers.fast.starts.points import FromPoints
from symlift.solvers.fast.work import SplitRows, Work

pytestmark = pytest.mark.portable

N = 12


def a_problem(rows: int = 20_000) -> Problem:
    data = gsn(rows, N, transform="orthogonal", random_state=0)
    X = (data.X - data.X.mean(axis=0)) / data.X.std()
    held = rows // 5
    work = Work(DEFAULT, no_progress)
    return Problem(SplitRows(X[held:], X[:held]), Grid((N,)), np.random.default_rng(0), work)


def rotation(seed: int) -> NDArray[np.float64]:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(N, N)))[0]


@dataclass
class Given:
    """A start that proposes given maps, one list in each problem that it sees."""

    name: str
    maps: list[list[ProposedMap]]
    cost: float = 0.5
    after: tuple[str, ...] = ()
    seen: list[Problem] = field(default_factory=list)

    def costs(self, problem: Problem) -> tuple[float, ...]:
        return (self.cost,)

    def applies(self, turn: StartTurn) -> bool:
        return True

    def propose(self, turn: StartTurn) -> Iterator[ProposedMap]:
        self.seen.append(turn.problem)
        yield from self.maps[min(len(self.seen), len(self.maps)) - 1]


def proposed(name: str, W: NDArray[np.float64], standing: Standing) -> ProposedMap:
    return ProposedMap(name, W, standing)


def test_starts_have_their_turns_in_the_order_of_their_cost() -> None:
    problem = a_problem()
    late = Given("late", [[proposed("b", rotation(1), Standing.OPEN)]], 2.0)
    early = Given("early", [[proposed("a", rotation(0), Standing.OPEN)]], 0.3)
    pool = run_starts(problem, [late, early])
    assert [one.name for one in pool.proposals] == ["a", "b"]
    assert [one.start for one in pool.proposals] == ["early", "late"]


@pytest.mark.parametrize(
    ("standing", "names"),
    [
        (Standing.ROUGH, ["same turn", "next turn"]),
        (Standing.OPEN, ["first", "same turn", "next turn"]),
        (Standing.LIKELY, ["first", "same turn"]),
        (Standing.SURE, ["first"]),
        (Standing.ALONE, ["first"]),
    ],
)
def test_what_has_converged_ends_the_search(standing: Standing, names: list[str]) -> None:
    starts = [
        Given("x", [[proposed("first", rotation(0), standing)]], 0.1),
        Given("y", [[proposed("same turn", rotation(1), Standing.OPEN)]], 0.9),
        Given("z", [[proposed("next turn", rotation(2), Standing.OPEN)]], 1.0),
    ]
    assert [one.name for one in run_starts(a_problem(), starts).proposals] == names


def test_least_distortion_is_not_overruled_by_resolution() -> None:
    problem = a_problem()
    field_of = np.linalg.qr(rotation(3))[0]
    truth = gsn(20_000, N, transform="orthogonal", random_state=0).transform
    open_one = proposed("truth", truth, Standing.OPEN)
    alone = proposed("alone", field_of, Standing.ALONE)
    pool = Pool(problem)
    pool.add(replace(open_one, start="x"))
    assert chosen(pool).proposal.name == "truth"
    pool.add(replace(alone, start="y"))
    best = chosen(pool)
    assert best.proposal.name == "alone"
    assert set(best.rivals) == {"alone"}


def test_a_second_attempt_that_ends_elsewhere_does_not_confirm() -> None:
    problem = a_problem()
    ends = [[proposed("it", rotation(k), Standing.SURE)] for k in range(3)]
    start = Given("x", ends)
    pool = run_starts(problem, [start])
    first = pool.proposals[0]
    confirmed_by, agreement, attempts = confirmed(pool, first, [start])
    assert confirmed_by is first
    assert agreement < 0.7
    assert attempts == 1 + DEFAULT.confirming
    # other rows each time, and the same held-out ones
    mine, other, another = (problem.rows.fit, start.seen[1].rows.fit, start.seen[2].rows.fit)
    assert len(other) == len(another) == len(mine) // 2
    assert not np.array_equal(other, another)
    assert all(one.rows.held is problem.rows.held for one in start.seen)


def test_an_attempt_ends_as_soon_as_it_is_where_the_first_was() -> None:
    problem = a_problem()
    W = rotation(0)
    start = Given(
        "x",
        [
            [proposed("it", W, Standing.SURE)],
            # turned round, as a line may be
            [proposed("rough", -W[::-1], Standing.ROUGH), proposed("no", W[:5], Standing.SURE)],
        ],
    )
    pool = run_starts(problem, [start])
    best, agreement, attempts = confirmed(pool, pool.proposals[0], [start])
    assert best is pool.proposals[0]
    assert agreement == pytest.approx(1)
    assert attempts == 2


def test_a_third_attempt_decides_between_two() -> None:
    problem = a_problem()
    wrong, right = rotation(0), rotation(1)
    start = Given("x", [[proposed("it", W, Standing.SURE)] for W in (wrong, right, right)])
    pool = run_starts(problem, [start])
    best, agreement, attempts = confirmed(pool, pool.proposals[0], [start])
    assert np.array_equal(best.W, right)
    assert agreement == pytest.approx(1)
    assert attempts == 3


def test_signals_of_images_agree_by_their_detail() -> None:
    rng = np.random.default_rng(0)
    mean, detail = rng.normal(size=(500, 1)), rng.normal(size=(500, 16))
    rows = 5 * mean + detail
    W = np.eye(16)
    # the mean of each image as it is, and the rest turned
    flat = np.ones((16, 16)) / 16
    other = flat + np.linalg.qr(rng.normal(size=(16, 16)))[0] @ (W - flat)
    assert same_signals(W, other, rows, Grid((16,))) > 0.9
    assert same_signals(W, other, rows, Grid((4, 4))) < 0.6


def test_points_are_proposed_before_they_are_polished() -> None:
    problem = a_problem()
    start = FromPoints()
    *rough, last = start.propose(StartTurn(problem, 0, Pool(problem)))
    assert rough
    assert all(one.standing is Standing.ROUGH for one in rough)
    assert last.standing >= Standing.LIKELY
    assert last.explained == problem.components(0).locality


def test_a_map_that_no_other_attempt_reaches_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    data = gsn(20_000, N, transform="orthogonal", random_state=0)
    sure = LatentDomain(N, random_state=0).fit(data.X)
    assert sure.evidence_.found
    assert sure.evidence_.repeated > DEFAULT.agreed
    monkeypatch.setattr("symlift.solvers.fast.pool.same_signals", lambda *_: 0.4)
    with pytest.warns(FitWarning, match="correlation 0.40"):
        unsure = LatentDomain(N, random_state=0).fit(data.X)
    assert not unsure.evidence_.found
    assert unsure.evidence_.repeated == 0.4
    # it is returned all the same: nothing else was as good
    np.testing.assert_allclose(unsure.lifting_map_, sure.lifting_map_)
