"""Own terms, critics, embeddings and schedules in a training."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from symlift import Grid, InputError
from symlift.datasets import gsn
from symlift.solvers.neural.data import split_held_out
from symlift.solvers.neural.objective.critic import JensenShannon
from symlift.solvers.neural.own import OwnParts, OwnTerm
from symlift.solvers.neural.trainer import Budget, Trainer
from symlift.solvers.neural.training import _settings, solve, train

RING = Grid((9,), periodic=True)
X = gsn(600, 9, periodic=True, transform="orthogonal", random_state=0).X
SETTINGS = {"steps": 100, "batch": 60}


def power(batch):
    return batch.workers.mean(batch.z.square()).mean()


def trained(
    steps: int = 50, preset: str = "paper", folder=None, precision: str = "float32", **parts
) -> Trainer:
    return train(
        X,
        split_held_out(len(X), np.random.default_rng(0)),
        RING,
        _settings(preset, SETTINGS | {"precision": precision}, RING, 9),
        1,
        device="cpu",
        budget=Budget(steps),
        folder=folder,
        parts=OwnParts(**parts),
    )


def map_of(trainer: Trainer) -> np.ndarray:
    return trainer.network.model().lifting_map()


def test_a_term_without_weight_changes_nothing_and_one_with_weight_does():
    plain, nothing = trained(), trained(terms=[OwnTerm("power", 0.0, power)])
    np.testing.assert_array_equal(map_of(plain), map_of(nothing))
    assert (
        np.abs(map_of(trained(terms=[OwnTerm("power", 3.0, power)])) - map_of(plain)).max() > 1e-6
    )


def test_a_term_has_its_curve_and_counts_in_the_loss():
    weights = []

    def weight(opened: float) -> float:
        weights.append(opened)
        return 0.5

    trainer = trained(100, terms=[OwnTerm("power", weight, power)])
    last = trainer.history[-1]
    assert last["power"] > 0
    terms = trainer.settings.stationarity * last["stationarity"]
    terms += trainer.settings.resolution * last["resolution"]
    terms += trainer.settings.infomax * last["infomax"]
    assert last["loss"] > terms
    assert min(weights) < max(weights) <= 1


def test_a_term_that_learns_is_trained_with_the_estimators():
    class Level(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.level = torch.nn.Parameter(torch.zeros(()))

        def forward(self, batch):
            return (power(batch).detach() + 1 - self.level).square()

    given = Level()
    trainer = trained(terms=[OwnTerm("level", 1.0, given)])
    (own,) = trainer.objective.own
    assert abs(own.level.item()) > 1e-3
    assert given.level.item() == 0  # what was given is left as it was


def test_an_own_critic_is_asked_instead_of_the_printed_ones():
    class Shy(JensenShannon):
        asked = 0

        def __init__(self, grid: Grid) -> None:
            super().__init__(grid, _settings("paper", None, grid, 9).estimators[0].layers)

        def adversarial(self, batch, weight):
            Shy.asked += 1
            return super().adversarial(batch, weight / 2)

    trainer = trained(critic=Shy)
    assert len(trainer.objective.base.critics) == 1
    assert Shy.asked == 2 * trainer.step_count  # the text's updates alternate
    with pytest.raises(InputError, match="adversarial"):
        trained(critic=lambda grid: torch.nn.Linear(grid.size, 1))


def test_an_own_schedule_takes_the_place_of_the_printed_clock():
    trainer = trained(100, schedule=lambda done: (done / 2, 1 - done / 2))
    assert [point["rank"] for point in trainer.history] == [1.0, trainer.clock.full / 2]
    for group in trainer.learners.model_optimiser.param_groups:  # set for the last 50 steps
        assert group["lr"] == pytest.approx(0.75 * trainer.settings.rate * group["gain"])
    with pytest.raises(InputError, match="printed clock"):
        trained(preset="ours", schedule=lambda done: (done, 1.0))


def test_an_own_embedding_is_where_a_run_starts():
    E = np.diag(np.arange(1.0, 10.0))
    for given in (E, lambda rows, dimension: E[:dimension]):
        trainer = trained(0, embedding=given)
        np.testing.assert_array_equal(trainer.start.E, E)
    with pytest.raises(InputError, match="shape"):
        trained(0, embedding=np.eye(3))


def test_a_run_with_own_parts_goes_on_where_it_was_stopped(tmp_path):
    parts = {"terms": [OwnTerm("power", 0.3, power)], "schedule": lambda done: (done, 1.0)}
    whole = trained(100, **parts)
    trained(50, folder=tmp_path, **parts)
    resumed = trained(100, folder=tmp_path, **parts)
    np.testing.assert_array_equal(map_of(resumed), map_of(whole))
    with pytest.raises(InputError, match="does not fit this run"):
        trained(100, folder=tmp_path)


def test_names_of_terms_are_their_own():
    for names in (["loss"], ["a", "a"]):
        with pytest.raises(InputError, match="rename"):
            OwnParts(terms=[OwnTerm(name, 1.0, power) for name in names])
    with pytest.raises(InputError, match="one number"):
        trained(terms=[OwnTerm("field", 1.0, lambda batch: batch.z)])


def test_a_callback_sees_every_evaluation():
    seen: list[int] = []
    solve(
        X,
        RING,
        np.random.default_rng(0),
        preset="paper",
        settings=SETTINGS,
        steps=5,
        device="cpu",
        terms=[OwnTerm("power", 0.1, power)],
        callback=lambda step, model, values: seen.append(step),
    )
    assert seen[0] == 0


SHARED = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_own_parts import OwnTerm, map_of, power, trained
import numpy as np
trainer = trained(precision="float64", terms=[OwnTerm("power", 0.5, power)])
if trainer.workers.rank == 0:
    np.save(Path(sys.argv[2]), map_of(trainer))
"""


@pytest.mark.slow
def test_two_processes_share_an_own_term(tmp_path):
    (tmp_path / "shared.py").write_text(SHARED)
    words = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone"]
    words += [str(tmp_path / "shared.py"), str(Path(__file__).parent), str(tmp_path / "map.npy")]
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    alone = map_of(trained(precision="float64", terms=[OwnTerm("power", 0.5, power)]))
    np.testing.assert_allclose(np.load(tmp_path / "map.npy"), alone, atol=1e-6)
