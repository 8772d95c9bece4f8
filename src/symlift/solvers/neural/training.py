"""The paper's training: a lifting network against trained estimators of stationarity, resolution
and infomax.

From the paper's own start (a Haar-random Q, frequencies near zero, a filter of noise) or from a
given model. It is the most general solver, but a thousand times slower than closed-form statistics
where those are enough.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.model import LiftedModel
from symlift.errors import InputError
from symlift.solvers.contract import (
    Evidence,
    Progress,
    Solution,
    Stage,
    Trace,
    TrainingSummary,
    no_progress,
    part_of,
)
from symlift.solvers.neural.board import Watch, both
from symlift.solvers.neural.coarse_to_fine import close_finer, coarse_grid
from symlift.solvers.neural.convergence import all_show, signs_of_convergence
from symlift.solvers.neural.data import (
    centred,
    covariance_of,
    input_statistics,
    split_held_out,
    strongest_modes,
)
from symlift.solvers.neural.distributed import join_processes
from symlift.solvers.neural.full_batch import Closing, FullBatch
from symlift.solvers.neural.network import initial_model
from symlift.solvers.neural.own import OwnParts, OwnTerm, OwnTrainer, Schedule
from symlift.solvers.neural.presets import PRESETS, Settings, fitted, preset_for, refining
from symlift.solvers.neural.printed import PRINTED
from symlift.solvers.neural.released import RELEASED
from symlift.solvers.neural.trainer import Budget, Trainer
from symlift.solvers.registry import CHECKPOINT, TRAINED_MAP
from symlift.statistics.selection import held_out, held_out_in_window
from symlift.storage.atomic import write_atomically

__all__ = [
    "PRESETS",
    "Settings",
    "chosen_settings",
    "on_finer_grid",
    "pick_device",
    "solve",
    "starting_model",
    "train",
]


def solve(
    X: NDArray,
    grid: Grid,
    rng: np.random.Generator,
    progress: Progress = no_progress,
    *,
    preset: str = "ours",
    settings: dict[str, Any] | None = None,
    start: LiftedModel | None = None,
    steps: int | None = None,
    seconds: float | None = None,
    folder: Path | None = None,
    device: str = "auto",
    watch: Watch | None = None,
    tensorboard: bool = False,
    compile: bool = False,  # noqa: A002 - as torch calls it
    terms: Sequence[OwnTerm] = (),
    critic: Callable[[Grid], Any] | None = None,
    embedding: NDArray | Callable[[Any, int], NDArray] | None = None,
    schedule: Schedule | None = None,
    callback: Watch | None = None,
) -> Solution:
    """Train on X (n, d); sees X and the grid, nothing else.

    ``preset`` "paper" is the training as the paper prints it, "released" with the choices of the
    authors' code, "ours" (or "auto") is ours, each for the row of the paper's training table that
    is nearest; a row can be named ("gsn63", "paper-gsn63"). ``settings`` replace single entries of
    it. ``start`` None is the paper's initialisation. ``steps`` and ``seconds`` bound each restart.
    With ``folder``, checkpoints are written there and a run that was killed goes on from them;
    ``tensorboard`` adds its event files (``pip install tensorboard``). ``compile`` makes one
    compiled function of a step where critics alone measure stationarity, as in ``preset="paper"``:
    a third of the time, after a minute.

    ``terms``, ``critic``, ``embedding`` and ``schedule`` are own parts of the method
    (`symlift.solvers.neural.own`); ``callback``, or ``watch``, is called with (step, model, values)
    at evaluations.
    """
    parts = OwnParts(tuple(terms), critic, embedding, schedule)
    if callback is not None:
        watch = both(watch, callback)
    small = grid
    if preset in ("ours", "auto") and start is None:
        small = coarse_grid(grid, X.shape[1])
    row, chosen = chosen_settings(preset, settings, small, X)
    if start is not None:
        chosen = refining(chosen)
    best: Trainer | None = None
    ends = []
    seeds = rng.integers(2**31 - 1, size=chosen.restarts)
    split = split_held_out(len(X), rng)
    for restart, seed in enumerate(seeds):
        where = folder if folder is None or chosen.restarts == 1 else folder / f"restart{restart}"
        trainer = train(
            X,
            split,
            small,
            chosen,
            int(seed),
            start=start,
            device=device,
            budget=Budget(steps, seconds),
            progress=part_of(progress, restart / chosen.restarts, (restart + 1) / chosen.restarts),
            folder=where,
            watch=watch,
            tensorboard=tensorboard,
            compiled=compile,
            parts=parts,
        )
        ends.append(
            {"ended": trainer.ended, "held_out": trainer.best.value, "steps": trainer.step_count}
        )
        if best is None or trainer.best.value < best.best.value:
            best = trainer
    assert best is not None  # noqa: S101 - there is at least one restart
    model = best.best_model() if chosen.keep == "best" else best.network.model()
    closed, signs = _ending(best, model, start is not None)
    summary = TrainingSummary(
        preset=row,
        ended=str(best.ended),
        steps=best.step_count,
        best_step=best.best.step,
        seconds=best.seconds,
        held_out=best.best.value,
        restarts=tuple(ends),
        settings=chosen.model_dump(mode="json"),
        closed=closed,
        signs=signs,
        before_closing=_before_closing(best, closed, folder),
    )
    stages = tuple(Stage("train", record["seconds"], record) for record in best.history)
    converged = closed or all_show(signs)
    if small != grid:
        began = time.perf_counter()
        progress(f"closing on the grid {grid}", None)
        model, closing = on_finer_grid(model, X[split[0]], grid)
        converged = converged and closing.arrived
        stages += (Stage("finer grid", time.perf_counter() - began, {"gap": closing.gap}),)
    ended = held_out_in_window(model.map, np.asarray(X[split[1]], dtype=np.float64), grid)
    evidence = Evidence(
        found=converged,
        carried_by="closed form" if closed or small != grid else "training",
        trained_stationarity=summary.before_closing.get("stationarity"),
        **asdict(ended),
    )
    return Solution(
        model,
        evidence,
        Trace(solver="neural", stages=stages, training=summary),
    )


def _ending(trainer: Trainer, model: LiftedModel, near: bool) -> tuple[bool, dict[str, bool]]:
    """Whether two closings on all rows ended a run, and, where none does, its signs of convergence.

    Where closings are asked for and the rows have what they rest on, nothing else counts.
    """
    if trainer.given["full_batch_at"] is not None:
        closed = trainer.clock.near and trainer.clock.closed is not None
        if closed or not trainer.converged:
            return closed, {}
    W = np.asarray(model.map)
    signs = signs_of_convergence(
        W, trainer.held, trainer.lags, trainer.history, trainer.clock.full, trainer.ended, near
    )
    return False, signs


def _before_closing(trainer: Trainer, closed: bool, folder: Path | None) -> dict[str, float]:
    """Terms on held-out rows of the map that was trained, before a closed form ended the run; with
    ``folder``, the map is kept there, for who knows the truth.
    """
    W = trainer.trained
    # nothing was closed, or it was before the run was stopped and went on
    if not closed or W is None:
        return {}
    if folder is not None and trainer.workers.rank == 0:
        with write_atomically(folder / TRAINED_MAP) as temporary, temporary.open("wb") as file:
            np.save(file, W)
    return asdict(held_out(W, trainer.held, trainer.lags))


def on_finer_grid(model: LiftedModel, rows: NDArray, grid: Grid) -> tuple[LiftedModel, Closing]:
    """A model of a coarse grid carried on to the ``grid`` that was asked for, and the closing
    there.
    """
    Z, mean = centred(rows)
    scale = float(Z.std())
    Z /= scale
    closing = close_finer(np.asarray(model.map), Z, model.lattice, grid)
    return LiftedModel.from_lifting_map(closing.W / scale, grid, mean), closing


def train(
    X: NDArray,
    split: tuple[NDArray[np.int64], NDArray[np.int64]],
    grid: Grid,
    settings: Settings,
    seed: int,
    *,
    start: LiftedModel | None = None,
    device: str = "auto",
    budget: Budget | None = None,
    progress: Progress = no_progress,
    folder: Path | None = None,
    watch: Watch | None = None,
    tensorboard: bool = False,
    compiled: bool = False,
    parts: OwnParts | None = None,
) -> Trainer:
    """One run from one seed; returns the trainer as it ended."""
    model = starting_model(X, grid, settings, seed) if start is None else start
    make: Callable[..., Trainer] = Trainer
    if parts is not None and parts.given:
        make = partial(OwnTrainer, parts=parts)
    trainer = make(
        X,
        *split,
        model,
        settings,
        seed,
        near=start is not None,
        device=pick_device(device),
        workers=join_processes(),
        compiled=compiled,
    )
    if folder is not None and (folder / CHECKPOINT).is_file():
        trainer.restore(folder / CHECKPOINT)
    return trainer.run(budget, progress, folder, watch, tensorboard)


def starting_model(X: NDArray, grid: Grid, settings: Settings, seed: int) -> LiftedModel:
    """The paper's initialisation for X; ``settings`` must fit the grid
    (`symlift.solvers.neural.presets.fitted`).
    """
    mean, scale = input_statistics(X)
    centre = np.full(X.shape[1], mean)
    dimension = settings.dimension or X.shape[1]
    generator = torch.Generator().manual_seed(seed)
    separate = settings.parametrisation == "eigenvectors"
    covariance = covariance_of(X) if settings.start == "covariance" else None
    E = None
    if settings.compress == "modes":
        E = np.zeros((dimension, X.shape[1]))
        E[: grid.size] = strongest_modes(covariance_of(X), grid.size)
    return initial_model(
        grid, centre, scale, dimension, settings.embedding, generator, separate, covariance, E
    )


def pick_device(name: str) -> torch.device:
    """The device called ``name``; "auto" is an accelerator that can do what a step needs, or the
    CPU.
    """
    if name != "auto":
        try:
            device = torch.device(name)
            torch.zeros(1, device=device)
        except (RuntimeError, AssertionError) as error:
            raise InputError(
                f"device {name!r} cannot be used ({str(error).splitlines()[0]}): use cpu or auto"
            ) from None
        return device
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None and accelerator.is_available():
        device = accelerator.current_accelerator()
        try:
            torch.linalg.eigvalsh(torch.eye(3, device=device))
        except (RuntimeError, NotImplementedError):
            return torch.device("cpu")
        return torch.device(device)
    return torch.device("cpu")


def chosen_settings(
    preset: str, overrides: dict[str, Any] | None, grid: Grid, X: NDArray
) -> tuple[str, Settings]:
    """The name of the settings that ``preset`` means for rows ``X`` on ``grid``, and the settings,
    with ``overrides``.
    """
    row = _row(preset, grid, X.shape[1], X)
    return row, _settings(row, overrides, grid, X.shape[1])


def _row(preset: str, grid: Grid, d: int, rows: NDArray | None = None) -> str:
    """The name of the settings that ``preset`` means for these data."""
    if preset in ("paper", "released"):
        return f"{preset}-{preset_for(grid, d, rows)}"
    if preset not in ("ours", "auto"):
        return preset
    name = preset_for(grid, d, rows)
    return "mnist7-bits" if name == "mnist15-bits" and FullBatch.suits(grid, d) else name


def _settings(
    preset: str,
    overrides: dict[str, Any] | None,
    grid: Grid,
    d: int,
    rows: NDArray | None = None,
) -> Settings:
    known = PRESETS | PRINTED | RELEASED
    name = _row(preset, grid, d, rows)
    if name not in known:
        raise InputError(
            f"preset {preset!r} is unknown: use one of ours, paper, released, {', '.join(known)}"
        )
    try:
        chosen = Settings.model_validate({**known[name].model_dump(), **(overrides or {})})
    except ValueError as error:
        raise InputError(
            f"settings of the training are not valid ({' '.join(str(error).split())})"
        ) from None
    return fitted(chosen, grid, d)
