"""Our training on scrambled bits, from a start to the model that it ends with.

A run takes several draws of the start, each for a few hundred steps, until the closed form that
follows arrives twice (`symlift.solvers.neural.full_batch`): what is kept here is the last draw.
Steps are counted, not seconds, so that the same seed gives the same pictures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symlift.core.model import LiftedModel
from symlift.datasets.bits import ScrambledBits
from symlift.solvers.neural.data import split_held_out
from symlift.solvers.neural.full_batch import Closing, FullBatch
from symlift.solvers.neural.presets import PRESETS, fitted
from symlift.solvers.neural.trainer import CHECK, Budget, Trainer
from symlift.solvers.neural.training import train
from symlift_paper.figures.request import Request

__all__ = ["SHAPE", "BitTraining", "Snapshot", "train_on_bits"]

#: the size of the paper's own pictures of bits: 392 of them
SHAPE = (7, 7)
_MOST_JUDGES = 2_000


@dataclass(frozen=True, eq=False)
class Snapshot:
    """An intermediate lifting map and its label."""

    label: str
    W: NDArray[np.float64]
    mean: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BitTraining:
    """A run of our training on scrambled bits.

    The first ``judges`` rows of ``data`` were not seen by it. ``draw`` holds step and lifting map
    of its last draw, every few steps; ``modes`` is what the closed form makes of the last of them,
    before each bit goes to one point, and ``model`` what the run returns. A run that a budget
    stopped has no ``modes``.
    """

    data: ScrambledBits
    judges: int
    draw: tuple[tuple[int, NDArray[np.float64]], ...]
    modes: NDArray[np.float64] | None
    model: LiftedModel
    steps: int
    draws: int

    def snapshots(self) -> list[Snapshot]:
        """The draw's start, two of its states and its last, then both parts of the closed form."""
        mean = self.model.mean.astype(np.float64)
        chosen = [*self.draw[:3], *self.draw[3:][-1:]]
        shots = [Snapshot(f"{step} steps\nof critics", W, mean) for step, W in chosen]
        if self.modes is not None:
            shots.append(Snapshot("closed form:\nmodes", self.modes, mean))
            shots.append(Snapshot("closed form:\nbits", self.model.lifting_map(), mean))
        return shots


class _Followed:
    """The closed form of a run, and the map at which its last search began."""

    def __init__(self, inner: FullBatch) -> None:
        self.inner, self.applies = inner, inner.applies
        self.begun: NDArray[np.float64] | None = None

    def close(self, W: NDArray) -> Closing:
        self.begun = np.asarray(W, dtype=np.float64)
        return self.inner.close(W)


def train_on_bits(request: Request) -> BitTraining:
    """Train on the bits of the request's first experiment, on images of `SHAPE`."""
    data = request.observe(request.experiments[0].model_copy(update={"shape": SHAPE}))
    assert isinstance(data, ScrambledBits)  # noqa: S101 - this experiment's data are
    judges = min(_MOST_JUDGES, len(data.X) // 10)
    X = data.X[judges:]
    settings = fitted(PRESETS["mnist7-bits"], data.grid, X.shape[1])
    # drawn as `solve` draws them, so that solver="neural" ends with the same model
    rng = np.random.default_rng(request.seed)
    seed = int(rng.integers(2**31 - 1, size=1)[0])
    split = split_held_out(len(X), rng)
    trainer = train(X, split, data.grid, settings, seed, device="cpu", budget=Budget(steps=0))
    draw, modes = _last_draw(trainer, request)
    return BitTraining(
        data,
        judges,
        tuple(draw),
        modes,
        trainer.best_model(),
        trainer.step_count,
        trainer.clock.draws,
    )


def _last_draw(
    trainer: Trainer, request: Request
) -> tuple[list[tuple[int, NDArray[np.float64]]], NDArray[np.float64] | None]:
    """Run to the end; steps and maps of the last draw, and the isometry of its strongest modes."""
    full = trainer.full_batch
    assert isinstance(full, FullBatch)  # noqa: S101 - bits in their strongest modes have it
    trainer.full_batch = search = _Followed(full)
    draw: list[tuple[int, NDArray[np.float64]]] = []
    began = 0
    while trainer.ended not in ("finished", "seconds"):
        if trainer.clock.began != began:
            began, draw = trainer.clock.began, []
        draw.append((trainer.step_count - began, trainer.network.model().lifting_map()))
        budget = Budget(trainer.step_count + CHECK, request.seconds)
        trainer.run(budget, request.progress)
    if trainer.ended == "seconds" or search.begun is None:
        return draw, None
    draw.append((trainer.step_count - began, search.begun))
    return draw, full.close_modes(search.begun).W
