"""A training that is killed before a write of its checkpoints, its curve or its results ends as one
that was not; ``python killed_training.py FOLDER STEP`` prints how often it was killed, or fails.

A process of its own, which never trains itself: a child that is forked from one whose threads have
worked (torch's, OpenMP's) waits for them for ever.
"""

from __future__ import annotations

import shutil
import sys
import warnings
from pathlib import Path

import numpy as np

# what a training imports only when it needs it, once for all children
import torch._dynamo  # noqa: F401
from kills import DONE, KILLED, run_killed, temporaries

import symlift.metrics  # noqa: F401
from symlift import LatentDomain
from symlift.datasets import gsn
from symlift.errors import FitWarning
from symlift.solvers.neural import pace, trainer

#: more writes than there can be
MOST = 400
FILES = ["checkpoint.safetensors", "training.jsonl"]


def work(here: Path) -> None:
    """Train on the rows of a folder, and write the map there."""
    options = {"steps": 2 * trainer.CHECK, "settings": {"batch": 16}, "folder": here / "training"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # so few steps do not converge
        est = LatentDomain(
            (9,), periodic=True, solver="neural", random_state=0, solver_options=options
        )
        np.save(here.with_suffix(".npy"), est.fit(np.load(here / "x.npy")).lifting_map_)


def trained(here: Path) -> np.ndarray:
    """The map that a training in a folder ends with, or that goes on there."""
    assert run_killed(lambda: work(here), here, MOST) == DONE
    return np.load(here.with_suffix(".npy"))


def attack(folder: Path, step: int) -> int:
    """Kill a training before each ``step``-th write; how often that was."""
    whole, here = folder / "whole", folder / "here"
    whole.mkdir()
    np.save(whole / "x.npy", gsn(60, (9,), random_state=0).X)
    shutil.copytree(whole, here)
    expected = trained(whole)
    for kills, before in enumerate(range(1, MOST, step)):
        shutil.rmtree(here)
        here.mkdir()
        shutil.copy(whole / "x.npy", here)
        ended = run_killed(lambda: work(here), here, before)
        assert ended in (KILLED, DONE), f"failed before write {before}"
        # once more, or again where it was not killed
        assert np.array_equal(trained(here), expected), f"another map after write {before}"
        assert temporaries(here) == [], f"left after write {before}: {temporaries(here)}"
        assert sorted(p.name for p in (here / "training").iterdir()) == FILES
        if ended == DONE:
            return kills
    raise AssertionError("more writes than there should be")


if __name__ == "__main__":
    trainer.CHECK, trainer.SAVE, trainer.EVALUATE = 5, 1, 1
    pace._NOTE_SECONDS = 1e9  # the number of writes must not depend on time
    print(attack(Path(sys.argv[1]), int(sys.argv[2])))
