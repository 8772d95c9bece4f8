"""One training run: alternating updates of lifting network and estimators, its clock, its
checkpoints and its best model.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.linalg import LinAlgError  # type: ignore[attr-defined]

from symlift.core.group import TranslationGroup
from symlift.core.lags import LagClasses
from symlift.core.linalg import polar
from symlift.core.model import LiftedModel
from symlift.errors import InputError, TrainingError
from symlift.solvers.contract import Progress, no_progress
from symlift.solvers.neural.board import Watch, board, both
from symlift.solvers.neural.checkpoint import named_under, read_checkpoint, write_checkpoint
from symlift.solvers.neural.clock import Clock
from symlift.solvers.neural.data import TrainingRows, covariance_of
from symlift.solvers.neural.distributed import said_by_first
from symlift.solvers.neural.endings import ClosedForm, closed_form
from symlift.solvers.neural.full_batch import Closing
from symlift.solvers.neural.learners import Learners
from symlift.solvers.neural.network import LiftingNetwork, initial_model
from symlift.solvers.neural.objective.batch import Workers
from symlift.solvers.neural.objective.terms import Objective
from symlift.solvers.neural.pace import Pace
from symlift.solvers.neural.presets import Settings, refining
from symlift.solvers.registry import CHECKPOINT, CURVE
from symlift.statistics.selection import held_out
from symlift.storage.atomic import write_atomically
from symlift.storage.strict_json import dumps

__all__ = ["Budget", "Trainer"]

#: steps between checks of the losses: nothing inside a step waits for the device
CHECK = 50
#: checks between looks at held-out rows, and at most between checkpoints, which are written by time
#: as well
EVALUATE, SAVE = 20, 20
#: the most rows that the end of a run takes at once
_FULL_BATCH = 200_000


@dataclass(frozen=True)
class Budget:
    """Limits that end a run independently of the clock."""

    steps: int | None = None
    seconds: float | None = None

    def spent(self, step: int, seconds: float) -> str | None:
        """Which budget is used up, if one is."""
        if self.steps is not None and step >= self.steps:
            return "steps"
        return "seconds" if self.seconds is not None and seconds >= self.seconds else None

    def share(self, step: int, seconds: float) -> float:
        """How much of the budget is used up."""
        return max(
            step / self.steps if self.steps else 0.0,
            seconds / self.seconds if self.seconds else 0.0,
        )


@dataclass
class _Best:
    """The best model so far by the held-out objective, as tensors."""

    value: float = math.inf
    step: int = 0
    tensors: dict[str, Tensor] = field(default_factory=dict)


class Trainer:
    """Trains a lifting network from ``start`` on rows ``X[train]``; judges it on ``X[held]``.

    Everything that a step depends on is in `state`: a run that was killed and resumed gives the
    same result bit for bit.
    """

    def __init__(
        self,
        X: NDArray,
        train: NDArray[np.int64],
        held: NDArray[np.int64],
        start: LiftedModel,
        settings: Settings,
        seed: int,
        near: bool = False,
        device: torch.device | None = None,
        workers: tuple[int, int] = (0, 1),
        compiled: bool = False,
    ) -> None:
        self.given = settings.model_dump(mode="json")
        self.settings, self.grid, self.seed = settings, start.lattice, seed
        self.device = device or torch.device("cpu")
        self.dtype = torch.float64 if settings.precision == "float64" else torch.float32
        if settings.batch % workers[1] or settings.batch < 2 * workers[1]:
            raise InputError(
                f"a batch of {settings.batch} rows cannot be shared by {workers[1]} processes: "
                "use a multiple of it, two rows each or more"
            )
        self.rows_each = settings.batch // workers[1]
        self.workers = Workers(torch.Generator(self.device).manual_seed(seed), *workers)
        self.clock = Clock.start(settings, start.grid.size, opened=near)
        self.compiled = compiled
        self._begin(start, seed)
        self.rows = TrainingRows(
            X, train, self.network.mean, start.scale, settings.mixing, settings.data_noise
        )
        self.held = np.asarray(X[held], dtype=np.float64)
        self.lags = LagClasses(start.lattice)
        self.covariance = covariance_of(X[train]) if settings.start == "covariance" else None
        self.step_count, self.seconds = 0, 0.0
        self.best = _Best()
        self.ended: str | None = None
        self.history: list[dict[str, float]] = []
        # the map that a closed form on all rows has replaced: what was trained, not closed
        self.trained: NDArray | None = None

    def _begin(self, start: LiftedModel, seed: int) -> None:
        """Network, estimators and optimisers as they are before the first step."""
        settings, self.start = self.settings, start
        # the embedding of a near start decides what is measured as an isometry; let loose, it
        # whitens the field
        keep = self.clock.near or settings.compress == "modes"
        self.learners = Learners(
            start, settings, seed, keep, self.dtype, self.workers, compiled=self.compiled
        )
        self.sums = torch.zeros(len(Objective.names), dtype=self.dtype, device=self.device)
        # the first step at which each term was not finite, or infinity
        self.broken = torch.full(
            (len(Objective.names),), math.inf, dtype=torch.float64, device=self.device
        )

    @property
    def network(self) -> LiftingNetwork:
        """The lifting network."""
        return self.learners.network

    @property
    def objective(self) -> Objective:
        """The objective, with its estimators."""
        return self.learners.objective

    @property
    def converged(self) -> bool:
        """Whether two closings on all rows have agreed; True where none are asked for, or none
        apply to these rows.
        """
        if self.given["full_batch_at"] is None:
            return True
        closed = self.clock.near and self.clock.closed is not None
        return closed or not self.full_batch.applies

    def _draw_again(self) -> None:
        """Begin from another draw of the start; best model, history, the steps taken and the least
        gap of a closing stay.
        """
        draws = self.clock.draws + 1
        begun = Clock.start(self.settings, self.grid.size, draws=draws, began=self.step_count)
        self.clock = replace(begun, closed=self.clock.closed)
        seed, start = self._another_seed(draws), self.start
        generator = torch.Generator().manual_seed(seed)
        separate = self.settings.parametrisation == "eigenvectors"
        model = initial_model(
            self.grid,
            start.mean,
            start.scale,
            start.group.dimension,
            start.kind,
            generator,
            separate,
            self.covariance,
            start.E if self.settings.compress == "modes" else None,
        )
        self._begin(model, seed)

    def _another_seed(self, number: int) -> int:
        return int(np.random.SeedSequence((self.seed, number)).generate_state(1)[0])

    def _go_near(self, W: NDArray, clock: Clock, centre: NDArray | float = 0.0) -> None:
        """From here on, training from the map ``W`` as from a near start, with a ``clock`` for
        that; the row ``centre`` is lifted to zero.
        """
        self.settings, self.clock = refining(self.settings), clock
        scale, mean = self.start.scale, self.start.mean
        start = LiftedModel.from_lifting_map(W / scale, self.grid, mean + scale * centre)
        self._begin(start, self._another_seed(0))

    @cached_property
    def full_batch(self) -> ClosedForm:
        """The closed-form terms of all training rows."""
        return closed_form(self.settings, self.grid, self.rows.first(_FULL_BATCH))

    def _close(self, watch: Watch | None) -> None:
        """Go over to the nearest exact model, and on from there as from a near start.

        Near the end, the map is nearly a shifted copy of one kernel, but its frequencies are not
        yet those of a torus. The isometry nearest to it is one by construction: cyclic shifts of
        its output are an exact group.
        """
        self._end_near(Closing(polar(self.network.model().lifting_map()), math.inf), watch)

    def _close_on_all(self, watch: Watch | None) -> None:
        """The same on all rows at once, which ends the run where two such closings agree."""
        if not self.full_batch.applies:
            return
        trained = np.asarray(self.network.model().map)
        closing = self.full_batch.close(trained)
        if closing.agrees(self.clock.closed):
            self.trained = trained
            self._end_near(closing, watch, finished=True, closed=closing.gap)
        else:
            self.clock = self.clock.after_closing(self.settings, closing.gap, closing.arrived)

    def _end_near(self, closing: Closing, watch: Watch | None, **clock: Any) -> None:
        near, draws, began = refining(self.settings), self.clock.draws, self.step_count
        begun = Clock.start(near, self.grid.size, opened=True, draws=draws, began=began)
        self._go_near(closing.W, replace(begun, **clock), closing.centre)
        self.best = _Best()  # it was the best of another objective
        self._evaluate(watch, {})

    # -- one step ----------------------------------------------------------------------------------

    def step(self) -> None:
        """One batch, and both updates, at once or one after the other; more batches before it where
        estimators take several steps. Nothing here waits for the device.
        """
        settings = self.settings
        # batches for estimators alone, and one for the model
        batches = [
            self.rows.draw(self.rows_each, self.workers) for _ in range(settings.estimator_steps)
        ]
        noise = None
        if settings.filter_noise:
            draw = torch.randn(
                self.network.filter.shape,
                generator=self.workers.generator,
                dtype=self.dtype,
                device=self.device,
            )
            faded = math.exp(-(self.step_count - self.clock.began) / settings.noise_steps)
            noise = settings.filter_noise * faded * draw
        rank = torch.tensor(self.clock.rank, dtype=self.dtype, device=self.device)
        values = self.learners.update(batches, noise, rank, self.clock.opened)
        self.step_count += 1
        if settings.recondition is not None and self.step_count % settings.recondition == 0:
            self.network.condition_embedding()
        self.sums += values
        self.broken.clamp_max_(
            torch.where(torch.isfinite(values), math.inf, float(self.step_count)).double()
        )

    def _set_rates(self) -> None:
        settings, factor = self.settings, self.clock.factor
        # the same for all steps up to the next check
        begun = self.step_count - self.step_count % CHECK
        rate = 0.0 if begun - self.clock.began < settings.warm_up else settings.rate
        self.learners.set_rates(rate * factor, settings.estimator_rate * factor)

    # -- a run -------------------------------------------------------------------------------------

    def run(
        self,
        budget: Budget | None = None,
        progress: Progress = no_progress,
        folder: Path | None = None,
        watch: Watch | None = None,
        tensorboard: bool = False,
    ) -> Trainer:
        """Train until the clock or the budget ends; ``ended`` says which: "finished", "steps" or
        "seconds".

        With ``folder``, checkpoints and ``training.jsonl`` go there, and event files for
        TensorBoard where they are asked for; ``watch(step, model, values)`` is called at
        evaluations.
        """
        budget = budget or Budget()
        path = None if folder is None or self.workers.rank > 0 else folder / CHECKPOINT
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            if tensorboard:
                watch = both(watch, board(path.parent))
        with Pace(None if path is None else path.parent, self.seconds) as pace:
            if self.step_count == 0:
                self._evaluate(watch, {})
            while True:
                self.seconds = pace.seconds
                spent = budget.spent(self.step_count, self.seconds)
                self.ended = "finished" if self.clock.finished else self._agree(spent)
                if self.ended is not None:
                    break
                self._set_rates()
                for _ in range(CHECK - self.step_count % CHECK):
                    self._guarded_step(path)
                    if path is not None and self.step_count % CHECK and pace.due():
                        self._stop_if_broken(path)
                        self._save(path, pace)
                due = self._check(path, budget, progress, watch)
                if path is not None and (pace.due() or due):
                    self._save(path, pace)
            self.seconds = pace.seconds
            if path is not None:
                self._save(path, pace)
        return self

    def _save(self, path: Path, pace: Pace) -> None:
        self.seconds = pace.seconds
        self.save(path)
        pace.saved()

    def _agree(self, ended: str | None) -> str | None:
        """Clocks of different processes differ; the first process decides."""
        return ended if self.workers.size == 1 else said_by_first(ended)

    def _guarded_step(self, path: Path | None) -> None:
        try:
            self.step()
        except LinAlgError:
            # a decomposition met a value that is not finite
            self.step_count += 1
            self.broken.clamp_max_(float(self.step_count))
            self._stop_if_broken(path)

    def _stop_if_broken(self, path: Path | None) -> None:
        broken = self.broken.tolist()
        if min(broken) == math.inf:
            return
        first = min(range(len(broken)), key=broken.__getitem__)
        where = (
            f"the last good checkpoint is {path}"
            if path is not None and path.exists()
            else "there is no checkpoint before it"
        )
        raise TrainingError(
            f"the {Objective.names[first]} term was not finite at step {int(broken[first])}:"
            f" {where}; lower the learning rates, or clip gradients"
        )

    def _check(
        self, path: Path | None, budget: Budget, progress: Progress, watch: Watch | None
    ) -> bool:
        """What is looked at every few steps; whether a checkpoint is due by their number."""
        self._stop_if_broken(path)
        means = dict(zip(Objective.names, (self.sums / CHECK).tolist(), strict=True))
        self.sums.zero_()
        self.network.rotation.fold()
        self.clock = self.clock.advance(
            self.settings, self.step_count, CHECK, means["stationarity"]
        )
        share = max(
            self.clock.share(self.settings, self.step_count),
            budget.share(self.step_count, self.seconds),
        )
        progress(_told(means, self.clock), min(1.0, share))
        checks = self.step_count // CHECK
        if checks % EVALUATE == 0 or self.clock.finished:
            self._evaluate(watch, means)
        if self.clock.closing:
            self._close(watch)
        elif self.clock.closing_on_all:
            self._close_on_all(watch)
        if self.clock.lost:
            self._draw_again()
        if path is not None and checks % EVALUATE == 0:
            with write_atomically(path.parent / CURVE) as temporary:
                temporary.write_text(
                    "".join(dumps(record) + "\n" for record in self.history[1:]), encoding="utf-8"
                )
        return checks % SAVE == 0

    def _evaluate(self, watch: Watch | None, means: dict[str, float]) -> None:
        model = self.network.model()
        parts = held_out(np.asarray(model.map), self.held, self.lags)  # dense, however many columns
        value = parts.value(self.settings.infomax)
        record = {
            "step": self.step_count,
            "seconds": round(self.seconds, 3),
            "rank": self.clock.rank,
            "factor": self.clock.factor,
            **means,
            "held_out": value,
            **{f"held_out_{name}": part for name, part in asdict(parts).items()},
        }
        self.history.append(record)
        if value < self.best.value:
            self.best = _Best(value, self.step_count, _model_tensors(model))
        if watch is not None:
            watch(self.step_count, model, record)

    def best_model(self) -> LiftedModel:
        """The model with the least held-out objective so far."""
        best = {name: value.numpy() for name, value in self.best.tensors.items()}
        group = TranslationGroup(best["Q"], best["theta"])
        return LiftedModel(
            self.grid, best["mean"], self.start.scale, best["E"], group, best["r"], self.start.kind
        )

    # -- what is kept ------------------------------------------------------------------------------

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """All that the rest of the run depends on: tensors by name, and the rest as JSON can hold
        it.
        """
        tensors = self.learners.tensors()
        tensors |= {f"best.{name}": value for name, value in self.best.tensors.items()}
        tensors["generator"] = self.workers.generator.get_state()
        tensors["sums"] = self.sums
        header = {
            "step": self.step_count, "seconds": self.seconds, "clock": asdict(self.clock),
            "best": {"value": self.best.value, "step": self.best.step}, "history": self.history,
            "settings": self.given,
        }  # fmt: skip
        return tensors, header

    def save(self, path: Path) -> None:
        """Write a checkpoint."""
        write_checkpoint(path, *self.state())

    def restore(self, path: Path) -> None:
        """Go on where a checkpoint was written."""
        tensors, header = read_checkpoint(path)
        if header["settings"] != self.given:
            raise InputError(
                f"{path} was written by a run with other settings: use the same, or start again"
            )
        try:
            clock = Clock(**header["clock"])
            if clock.near and not self.clock.near:  # any isometry has the right shapes
                self._go_near(np.eye(self.grid.size, len(self.start.mean)), clock)
            self.learners.restore(tensors)
            self.workers.generator.set_state(tensors["generator"])
            if "sums" in tensors:  # checkpoints of symlift 0.1 were written between two checks only
                self.sums.copy_(tensors["sums"])
            self.best = _Best(
                header["best"]["value"], header["best"]["step"], named_under("best.", tensors)
            )
            self.clock = clock
            self.step_count, self.seconds = header["step"], header["seconds"]
            self.history = header["history"]
        except (RuntimeError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{path} does not fit this run ({type(error).__name__}): give the same data and"
                " settings, or start again"
            ) from None


def _told(means: dict[str, float], clock: Clock) -> str:
    terms = ", ".join(
        f"{name} {means[name]:.3f}" for name in ("stationarity", "resolution", "infomax")
    )
    again = f", start {clock.draws}" if clock.draws > 1 else ""
    return f"training ({terms}, rank {clock.rank:.1f} of {clock.full:.0f}{again})"


def _model_tensors(model: LiftedModel) -> dict[str, Tensor]:
    parts = {"mean": model.mean, "E": model.E, "r": model.r}
    if isinstance(model.group, TranslationGroup):
        parts |= {"Q": model.group.Q, "theta": model.group.theta}
    return {name: torch.from_numpy(value.copy()) for name, value in parts.items()}
