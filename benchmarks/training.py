"""The paper's training: does it converge from its own start, how fast is it, and does it refine?

    python benchmarks/training.py ours --experiment gsn63-gaussian-dst --seed 379
                                                  ours, one seed of a row of the tables
    python benchmarks/training.py fresh --experiment mnist7-bits --seed 208
                                                  ours on one seed of any row, with r of details
    python benchmarks/training.py recordings --seed 0
                                                  ours on tuned units shown 6 stimuli
    python benchmarks/training.py long --seconds 3600
                                                  63 points from scratch, curve of r and S
    python benchmarks/training.py speed           seconds per step, and those of the authors' code
    python benchmarks/training.py compiled --experiment gsn15-continuous
                                                  milliseconds of a printed step, plain and compiled
    python benchmarks/training.py refine --experiment gsn63-gaussian-dst
                                                  from the fast solver's model and a spoiled one

Runs see X and the grid; a watcher outside of the solver scores the models that it is shown.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import expm

from _common import RESULTS, write
from symlift.core.grid import Grid
from symlift.core.group import TranslationGroup
from symlift.core.model import LiftedModel
from symlift.datasets import Observations, ring_population
from symlift.estimator import LatentDomain
from symlift.metrics import circular_correlation, generator_similarity, signal_recovery
from symlift.solvers.fast import pipeline as fast
from symlift.solvers.neural import training as training_solver
from symlift.solvers.neural.data import split_held_out
from symlift.solvers.neural.presets import PRESETS, Settings, fitted, preset_for
from symlift.solvers.neural.printed import PRINTED
from symlift.solvers.neural.trainer import Trainer
from symlift.solvers.neural.training import starting_model
from symlift_paper import EXPERIMENTS
from symlift_paper.figures.neural import standard_scores
from symlift_paper.jobs import covariance_jobs, training_jobs
from symlift_paper.runner import peak_rss_mb
from symlift_paper.store import Archive, made_entry

#: seconds per step of the authors' TensorFlow code, 2 cores, no GPU, quiet machine: median, and
#: peak
#: memory in GiB
REFERENCE = {
    "ring15": {"seconds_per_step": 0.0187, "inside_fit": 0.054, "peak_gib": 0.77},
    "gsn63": {"seconds_per_step": 0.122, "inside_fit": 0.205, "peak_gib": 1.07},
    "mnist15": {"seconds_per_step": 0.645, "inside_fit": 0.80, "peak_gib": 1.74},
}
REFERENCE_MACHINE = "2 cores, TensorFlow-CPU 2.14.1, the authors' compiled training step"
SCORED = 2_000


def scores(model: LiftedModel, data: Observations) -> dict[str, float]:
    """r, S against the exact derivative, and S against the finite difference (means over axes)."""
    recovered = model.lift(np.asarray(data.X[:SCORED], dtype=np.float64))
    r = signal_recovery(data.latent[:SCORED], recovered, data.grid).r
    exact, difference = (
        generator_similarity(model.generators(), data.transform, data.grid, truth=truth)
        for truth in ("exact", "difference")
    )
    return {
        "r": round(float(r), 4),
        "S_exact": round(float(np.mean(exact)), 4),
        "S": round(float(np.mean(difference)), 4),
    }


def watcher(data: Observations, curve: list[dict[str, Any]], every: int = 1) -> Callable[..., None]:
    """Scores every so many of the models that a training run shows, and prints them."""
    seen = [0]

    def watch(step: int, model: LiftedModel, values: dict[str, float]) -> None:
        seen[0] += 1
        if seen[0] % every == 1 or every == 1:
            point = {
                "step": step,
                "seconds": round(values["seconds"], 1),
                "rank": round(values["rank"], 2),
            }
            point |= {
                "stationarity": round(values.get("stationarity", 0.0), 4),
                **scores(model, data),
            }
            curve.append(point)
            print(json.dumps(point), flush=True)

    return watch


def long(seconds: float, name: str, seed: int) -> dict[str, Any]:
    """63 points from scratch for a given time."""
    data = EXPERIMENTS[name].observe(seed)
    curve: list[dict[str, Any]] = []
    solution = training_solver.solve(
        data.X,
        data.grid,
        np.random.default_rng(seed),
        seconds=seconds,
        watch=watcher(data, curve),
        device="cpu",
    )
    training = solution.trace.training
    assert training is not None  # noqa: S101 - the neural solver always has one
    return {
        "experiment": name,
        "seed": seed,
        "n": len(data.X),
        "ended": training.ended,
        "steps": training.steps,
        "seconds": round(training.seconds, 1),
        "threads": torch.get_num_threads(),
        "settings": dict(training.settings),
        "best": {"step": training.best_step, **scores(solution.model, data)},
        "curve": curve,
    }


def ours(name: str, seed: int, start: str, runs: Path) -> dict[str, Any]:
    """Our training on one seed of a row, from the paper's start or the covariance; a run of the
    tables. It goes on where it was stopped.
    """
    make = covariance_jobs if start == "covariance" else training_jobs
    (job,) = (job for job in make(EXPERIMENTS[name]) if job.seed == seed)
    figures = job.run(runs / f"training_{name}_{start}_seed{seed}")
    Archive(RESULTS / "experiments").add([made_entry(job, figures)])
    print(json.dumps(figures))
    return figures


def fresh(name: str, seed: int, runs: Path) -> dict[str, Any]:
    """Our training from the paper's start on one seed of a row, or of the bits of 7x7 images: r, r
    of details, S. A run of `ours` that has ended is read, not repeated.
    """
    experiment = EXPERIMENTS.get(name) or EXPERIMENTS["mnist15-bits"].model_copy(
        update={"shape": (7, 7), "name": "mnist7-bits"}
    )
    data = experiment.observe(seed)
    used = time.process_time()
    folder = runs / f"training_{name}_paper_seed{seed}"
    solution = training_solver.solve(
        data.X, data.grid, np.random.default_rng(seed), folder=folder, device="cpu"
    )
    used = time.process_time() - used
    training = solution.trace.training
    assert training is not None  # noqa: S101 - the neural solver always has one
    recovery = signal_recovery(data.latent, solution.model.lift(data.X), data.grid)
    result: dict[str, Any] = {
        "experiment": name, "seed": seed, "n": len(data.X), "preset": training.preset,
        "ended": training.ended, "steps": training.steps, "seconds": round(training.seconds, 1),
        "cpu_seconds": round(used, 1), "threads": torch.get_num_threads(),
        "r": round(recovery.r, 4), "r_detail": round(recovery.r_detail, 4),
    }  # fmt: skip
    if data.transform is not None:
        result |= scores(solution.model, data)
    print(json.dumps(result))
    return result


def recordings(name: str, seed: int) -> dict[str, Any]:
    """Our training of the preset for recordings against the solver for rings, on one seed: 110
    units that are shown 6 stimuli, or the recorded head direction (where a seed is the solver's).

    Counts enter as z-scores of their square roots. Both circular correlations are given.
    """
    if name == "gratings":
        data = ring_population(10_000, 110, stimuli=6, random_state=seed)
        grid = Grid((30,), periodic=True)
    else:
        data = EXPERIMENTS["neural-head-direction"].observe(seed)
        grid = Grid((32,), periodic=True)
    X = standard_scores(data.X)
    result: dict[str, Any] = {"data": name, "seed": seed, "n": len(X), "columns": X.shape[1]}
    for solver, options in (("ring", {}), ("neural", {"preset": "visual-coding"})):
        used = time.process_time()
        fit = LatentDomain(grid=grid, solver=solver, random_state=seed, solver_options=options)
        phase = fit.fit(X).phase(X)
        result[solver] = {
            "cpu_seconds": round(time.process_time() - used, 1),
            **{
                form: round(float(abs(circular_correlation(np.ravel(data.latent), phase, form))), 4)
                for form in ("fisher-lee", "jammalamadaka")
            },
        }
        if fit.trace_.training is not None:
            result[solver] |= {
                "steps": fit.trace_.training.steps,
                "ended": fit.trace_.training.ended,
            }
    print(json.dumps(result))
    return result


def spoil(model: LiftedModel, rng: np.random.Generator) -> LiftedModel:
    """Q turned by exp(0.3 · random skew), θ changed by 10 %."""
    group = _explicit(model)
    draw = rng.normal(size=group.Q.shape)
    skew = (draw - draw.T) / math.sqrt(2 * len(draw))
    theta = group.theta * (1 + 0.1 * rng.choice([-1, 1], size=group.theta.shape))
    return replace(model, group=TranslationGroup(group.Q @ expm(0.3 * skew), theta))


def _explicit(model: LiftedModel) -> TranslationGroup:
    assert isinstance(model.group, TranslationGroup)  # noqa: S101 - only large grids keep their planes by a torus' shape
    return model.group


def refine(name: str, seed: int, seconds: float) -> dict[str, Any]:
    """Training from the fast solver's model, and from the same one spoiled."""
    data = EXPERIMENTS[name].observe(seed)
    rng = np.random.default_rng(seed)
    model = fast.solve(data.X, data.grid, rng).model
    result: dict[str, Any] = {"experiment": name, "seed": seed, "seconds": seconds}
    for kind, start in (("fast", model), ("spoiled", spoil(model, rng))):
        curve: list[dict[str, Any]] = []
        solution = training_solver.solve(
            data.X,
            data.grid,
            rng,
            start=start,
            seconds=seconds,
            device="cpu",
            watch=watcher(data, curve),
        )
        before, after = scores(start, data), scores(solution.model, data)
        moved = float(np.linalg.norm(_explicit(solution.model).Q - _explicit(start).Q))
        result[kind] = {
            "before": before,
            "after": after,
            "moved": round(moved, 4),
            "curve": curve,
        } | {
            key: getattr(solution.trace.training, key)
            for key in ("steps", "best_step", "ended", "seconds")
        }
        print(kind, before, after, flush=True)
    return result


#: the authors' released configurations, for equal work in a step
_SPEED: dict[str, tuple[str, Settings]] = {
    "ring15": ("gsn15-continuous", PRESETS["gsn15"]),
    "gsn63": ("gsn63-gaussian-dst", PRESETS["gsn63"].model_copy(update={"batch": 2500})),
    "mnist15": ("mnist15-shuffled", PRESETS["mnist15"].model_copy(update={"batch": 2500})),
}


def speed(name: str, repeats: int) -> dict[str, Any]:
    """Seconds per step: medians over blocks of steps, after a warm-up."""
    experiment, settings = _SPEED[name]
    data = EXPERIMENTS[experiment].observe(0, n=20_000)
    X: NDArray = np.asarray(data.X, dtype=np.float32)
    settings = fitted(settings, data.grid, X.shape[1])
    solution_start = starting_model(X, data.grid, settings, seed=0)
    trainer = Trainer(
        X, *split_held_out(len(X), np.random.default_rng(0)), solution_start, settings, 0
    )
    trainer._set_rates()
    block = 20 if name == "ring15" else 3
    times = []
    for _ in range(repeats + 2):
        begin = time.perf_counter()
        for _ in range(block):
            trainer.step()
        times.append((time.perf_counter() - begin) / block)
    ours = {
        "seconds_per_step": round(statistics.median(times[2:]), 5),
        "p10": round(float(np.quantile(times[2:], 0.1)), 5),
        "p90": round(float(np.quantile(times[2:], 0.9)), 5),
        "peak_gib": round((peak_rss_mb() or 0) / 1024, 2),
        "threads": torch.get_num_threads(),
    }
    reference = REFERENCE[name]
    return {
        "ours": ours,
        "reference": reference,
        "speedup": round(reference["seconds_per_step"] / ours["seconds_per_step"], 2),
    }


def compiled(name: str, repeats: int) -> dict[str, Any]:
    """Processor milliseconds of a printed step, plain and compiled, in turns in one run, and what
    compiling took.
    """
    data = EXPERIMENTS[name].observe(0, n=20_000)
    X: NDArray = np.asarray(data.X, dtype=np.float32)
    row = f"paper-{preset_for(data.grid, X.shape[1], X)}"
    settings = fitted(PRINTED[row], data.grid, X.shape[1])
    start = starting_model(X, data.grid, settings, seed=0)
    split = split_held_out(len(X), np.random.default_rng(0))
    trainers = [Trainer(X, *split, start, settings, 0, compiled=how) for how in (False, True)]
    warm, times = [], ([], [])  # type: tuple[list[float], tuple[list[float], list[float]]]
    for trainer in trainers:
        begin = time.process_time()
        trainer._set_rates()
        for _ in range(3):
            trainer.step()
        warm.append(time.process_time() - begin)
    block = 50 if data.grid.size <= 24 else 5
    for _ in range(repeats):
        for trainer, took in zip(trainers, times, strict=True):
            begin = time.process_time()
            for _ in range(block):
                trainer.step()
            took.append((time.process_time() - begin) / block)
    plain, fast_step = (statistics.median(took) for took in times)
    return {
        "row": row,
        "milliseconds": round(1e3 * plain, 2),
        "compiled": round(1e3 * fast_step, 2),
        "ratio": round(plain / fast_step, 2),
        "compiling_seconds": round(warm[1] - warm[0], 1),
        "threads": torch.get_num_threads(),
    }


def main() -> None:
    """Parse, run, keep."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "what",
        choices=[
            "ours",
            "fresh",
            "recordings",
            "long",
            "speed",
            "compiled",
            "refine",
        ],
    )
    parser.add_argument("--experiment", default="gsn63-gaussian-dst")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument(
        "--runs",
        type=Path,
        default=Path(".symlift-runs"),
        help="where these trainings keep their checkpoints",
    )
    parser.add_argument("--start", choices=["paper", "covariance"], default="paper")
    args = parser.parse_args()
    if args.what == "ours":
        ours(args.experiment, args.seed, args.start, args.runs)
    elif args.what == "recordings":
        kind = "head-direction" if "head" in args.experiment else "gratings"
        label = f"training_recordings_{kind}_seed{args.seed}"
        print(write(label, recordings(kind, args.seed)))
    elif args.what == "fresh":
        label = f"training_fresh_{args.experiment}_seed{args.seed}"
        print(write(label, fresh(args.experiment, args.seed, args.runs)))
    elif args.what == "long":
        print(
            write(
                f"training_long_{args.experiment}", long(args.seconds, args.experiment, args.seed)
            )
        )
    elif args.what == "compiled":
        label = f"training_compiled_{args.experiment}"
        print(write(label, compiled(args.experiment, args.repeats)))
    elif args.what == "speed":
        speeds = {name: speed(name, args.repeats) for name in _SPEED}
        print(write("training_speed", {"reference_machine": REFERENCE_MACHINE, "steps": speeds}))
        print(json.dumps(speeds, indent=1))
    else:
        other = f"_seed{args.seed}" if args.seed else ""
        print(
            write(
                f"training_refine_{args.experiment}{other}",
                refine(args.experiment, args.seed, args.seconds),
            )
        )


if __name__ == "__main__":
    main()
