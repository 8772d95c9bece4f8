"""The paper's training on rings of 15 points, as printed and as released: a queue of runs.

    python benchmarks/rings.py run            the runs that are not finished, in order; it goes on
                                              where it was stopped, within a run as well
    python benchmarks/rings.py run --only paper_gsn15-fft --seconds 3600
                                              those whose names contain this, for so long
    python benchmarks/rings.py list           what is finished, what is not
    python benchmarks/rings.py table          the records as a table of the decision record
    python benchmarks/rings.py archive        finished runs that the paper's tables ask for go there
    python benchmarks/rings.py probe          short trainings by the code there is, under its digest

Each run has a record in ``results/rings``: how many of the steps that were asked for are done, the
curve of r and S, and the map as training left it (no closed form is applied to it). A record has
two digests: of all code, and of what a trained map depends on (trainer, core, data). Checkpoints
are in ``--runs``; without them a run that is not finished begins again.

Code is also changed without a change of what it computes. ``results/ring_probes.json`` has the maps
of short trainings by the code that made the records; as long as the code there is ends them in the
same maps, the records are its own.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

import symlift
from _common import RESULTS, write
from symlift.core.model import LiftedModel
from symlift.solvers.neural import training as training_solver
from symlift_paper import EXPERIMENTS
from symlift_paper.first_table import table1_jobs
from symlift_paper.jobs import Job
from symlift_paper.runner import signal_figures
from symlift_paper.store import Archive, made_entry, source_commit, source_digest
from symlift_paper.studies import MORRIS, ablation_jobs, morris_jobs
from training import scores

PROBES = RESULTS / "ring_probes.json"
#: preset, regime: whole trainings of so many steps, on so many samples
PROBED = (
    ("paper", "gsn15-continuous"),
    ("paper", "gsn15-fft"),
    ("paper", "gsn15-discrete"),
    ("released", "gsn15-continuous"),
)
PROBE_STEPS, PROBE_SAMPLES = 50, 2_000

REGIMES = ("gsn15-continuous", "gsn15-fft", "gsn15-discrete")
#: steps of the LieGAN section (50,000 samples), and of the training table (150,000)
SHORT, LONG = 150_000, 450_000
#: steps between points of a curve
EVERY = 5_000
#: the code that decides a trained map, next to its settings, which are in the record; closed forms,
#: the choice of a preset, and what is read or refused before are not among it
_TRAINED_BY = {
    "core": (
        "differentiable", "embedding", "factor", "grid", "group", "lags", "linalg", "model", "rows",
    ),
    "datasets": ("observations", "randomness", "shot_noise", "transforms"),
    "solvers/neural": ("clock", "compiled", "data", "learners", "network", "trainer"),
    "solvers/neural/objective": (
        "batch", "convolution", "critic", "mixture", "rank", "terms",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One training: which preset, on which draw of which regime, and what differs from it."""

    preset: str
    experiment: str
    seed: int
    steps: int = SHORT
    change: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    samples: int | None = None

    @property
    def name(self) -> str:
        """The name of its record."""
        change = f"_{self.change}" if self.change else ""
        return f"{self.preset}_{self.experiment}_seed{self.seed}_{self.steps}{change}"


#: single changes of the printed training: name → (settings, samples)
CHANGES: dict[str, tuple[dict[str, Any], int | None]] = {
    "simultaneous": ({"updates": "simultaneous"}, None),
    "released-window": ({"window": "share"}, None),
    "standardised": ({"standardise": True}, None),
    "both-clipped": ({"clip": 0.5, "estimator_clip": 0.5}, None),
    "half-entropy": ({"entropy": "gaussian"}, None),
    "three-estimator-steps": ({"estimator_steps": 3}, None),
    "500000-samples": ({}, 500_000),
}


def queue() -> list[Run]:
    """All runs, in the order in which they are worth having."""
    runs = [Run("paper", e, s) for s in range(3) for e in REGIMES]
    runs += [Run("released", e, s) for s in range(3) for e in REGIMES]
    for seed in (0, 1):
        for change, (settings, samples) in CHANGES.items():
            runs.append(Run("paper", REGIMES[0], seed, SHORT, change, settings, samples))
    runs += [Run("paper", e, 0, LONG) for e in REGIMES]
    runs += [_run_of(job, "without") for job in ablation_jobs() if _removed(job)]
    # Morris: the first two trajectories
    return runs + [_run_of(job, "morris") for job in morris_jobs()[: 2 * (len(MORRIS) + 1)]]


def _removed(job: Job) -> bool:
    """Whether a job of the ablation is one on the ring, as printed, that leaves a term out."""
    return job.preset == "paper" and 0.0 in job.settings.values()


def _run_of(job: Job, change: str) -> Run:
    settings = {name: value for name, value in job.settings.items() if name != "steps"}
    name = "-".join([change, *(f"{v:g}" if v else key for key, v in settings.items())])
    steps = job.settings["steps"]
    return Run(str(job.preset), job.experiment.name, job.seed, steps, name, settings)


def digest_of_training(package: Path = Path(symlift.__file__).parent) -> str:
    """Sixteen hexadecimal digits of a hash of the code that trained maps depend on, without its
    docstrings and comments.
    """
    digest = hashlib.sha256()
    for room, names in sorted(_TRAINED_BY.items()):
        for name in names:
            digest.update(f"{room}/{name}\n{_code(package / room / f'{name}.py')}".encode())
    return digest.hexdigest()[:16]


def _code(path: Path) -> str:
    """The lines of a module that are neither empty nor a docstring or comment of their own."""
    text = path.read_text(encoding="utf-8")
    words: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                words |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = enumerate(text.splitlines(), start=1)
    bare = [line for number, line in lines if number not in words and line.strip()]
    return "\n".join(line for line in bare if not line.lstrip().startswith("#"))


def probe(preset: str, experiment: str) -> np.ndarray:
    """The map at the end of a short training, with every rank, rate and noise of a long one."""
    data = EXPERIMENTS[experiment].observe(0, n=PROBE_SAMPLES)
    solution = training_solver.solve(
        data.X, data.grid, np.random.default_rng(0), preset=preset,
        settings={"steps": PROBE_STEPS}, device="cpu",
    )  # fmt: skip
    return solution.model.lifting_map()


def keep_probes() -> None:
    """The maps of all probes under the digest of the code there is."""
    known = json.loads(PROBES.read_text()) if PROBES.is_file() else {}
    maps = {f"{p} {e}": np.round(probe(p, e), 7).tolist() for p, e in PROBED}
    known[digest_of_training()] = {"commit": source_commit(), "maps": maps}
    PROBES.write_text(json.dumps(known) + "\n")


def record_of(run: Run) -> dict[str, Any]:
    """What is kept of a run, or nothing."""
    path = RESULTS / "rings" / f"{run.name}.json"
    return json.loads(path.read_text()) if path.is_file() else {}


def seconds_of(record: dict[str, Any]) -> float:
    """How long a run has taken so far."""
    last = record["curve"][-1]["seconds"] if record.get("curve") else 0.0
    return float(record.get("seconds", last))


def train(run: Run, runs: Path, seconds: float | None) -> dict[str, Any]:
    """Begin a run, or go on with it, for at most so many seconds of training in all."""
    data = EXPERIMENTS[run.experiment].observe(run.seed, n=run.samples)
    folder = runs / "rings" / run.name
    saved = folder / "curve.json"
    curve: list[dict[str, Any]] = json.loads(saved.read_text()) if saved.exists() else []
    result: dict[str, Any] = {
        "name": run.name, "preset": run.preset, "experiment": run.experiment, "seed": run.seed,
        "n": len(data.X), "change": run.change, "changed": run.settings,
        "steps_asked": run.steps, "steps_done": 0, "finished": False,
        "commit": source_commit(), "source": source_digest(),
        "training_source": digest_of_training(), "threads": torch.get_num_threads(),
    }  # fmt: skip
    begun = time.process_time()

    def watch(step: int, model: LiftedModel, values: dict[str, float]) -> None:
        if step % EVERY or step in {point["step"] for point in curve}:
            return
        point = {"step": step, "seconds": round(values["seconds"], 1), "rank": values["rank"]}
        terms = ("stationarity", "resolution", "infomax")
        point |= {name: round(values[name], 4) for name in terms if name in values}
        curve.append(point | scores(model, data))
        print(json.dumps(curve[-1]), flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        saved.write_text(json.dumps(curve))
        _keep(result | {"steps_done": step, "curve": curve})

    solution = training_solver.solve(
        data.X, data.grid, np.random.default_rng(run.seed), preset=run.preset,
        settings={"steps": run.steps, **run.settings}, folder=folder, watch=watch, device="cpu",
        compile=True, seconds=seconds,
    )  # fmt: skip
    training = solution.trace.training
    assert training is not None  # noqa: S101 - the neural solver always has one
    result |= {
        "steps_done": training.steps,
        "finished": training.ended == "finished" and training.steps == run.steps,
        "seconds": round(training.seconds, 1),
        "cpu_seconds_of_this_part": round(time.process_time() - begun, 1),
        "settings": dict(training.settings),
        "trained": scores(solution.model, data),
        "figures": signal_figures(data, solution.model.lift(data.X), solution.model.generators),
        "map": np.round(solution.model.lifting_map(), 6).tolist(),
        "generator": np.round(solution.model.generators()[0], 6).tolist(),
        "curve": curve,
    }
    _keep(result)
    return result


def add_to_archive() -> None:
    """What the tables ask for, of the runs that are finished."""
    jobs = table1_jobs([EXPERIMENTS[name] for name in REGIMES], full=True)
    asked = {job.key: job for job in (*jobs, *ablation_jobs(), *morris_jobs())}
    entries = []
    for run in queue():
        record = record_of(run)
        job = Job(
            experiment=EXPERIMENTS[run.experiment], kind="solver", method="neural", seed=run.seed,
            settings={"steps": run.steps, **run.settings}, preset=run.preset, n=run.samples,
        )  # fmt: skip
        if record.get("finished") and job.key in asked:
            result = {
                "experiment": run.experiment, "solver": "neural", "seed": run.seed,
                **record["figures"], "seconds": record["seconds"], "n": record["n"],
                "ended": "finished", "steps": record["steps_done"], "closed": False,
                # nothing was closed: what was trained is what there is
                **{f"{key}_before_closing": record["figures"][key] for key in ("r", "r_paper")},
            }  # fmt: skip
            made_by = {key: record[key] for key in ("date", "machine", "source", "commit")}
            entries.append(made_entry(job, result) | made_by)
    Archive(RESULTS / "experiments").add(entries)
    print(f"{len(entries)} runs")


def _keep(result: dict[str, Any]) -> None:
    (RESULTS / "rings").mkdir(parents=True, exist_ok=True)
    write(f"rings/{result['name']}", result)


def at_rank(record: dict[str, Any], rank: int) -> str:
    """r and S exact of the last point of a curve at which so much of the rank was open."""
    points = [p for p in record.get("curve", []) if round(p["rank"]) == rank]
    return f"{points[-1]['r']:.3f}, {points[-1]['S_exact']:.3f}" if points else "–"


def table() -> str:
    """The records of finished runs as rows."""
    head = (
        "preset, regime, seed, change",
        "steps",
        "rank 11: r, S exact",
        "rank 13: r, S exact",
        "the end: r, S exact",
        "paper, S",
    )
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for run in queue():
        record = record_of(run)
        if not record.get("finished"):
            continue
        end: dict[str, float] = record["trained"]
        what = f"{run.preset}, {run.experiment.removeprefix('gsn15-')}, {run.seed}"
        what += f", {run.change}" if run.change else ""
        last = f"{end['r']:.3f}, {end['S_exact']:.3f}"
        (paper,) = EXPERIMENTS[run.experiment].paper.similarity_exact
        cells = (what, f"{run.steps:,}", at_rank(record, 11), at_rank(record, 13), last, f"{paper}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Parse, run, keep."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["run", "list", "table", "archive", "probe"])
    parser.add_argument("--only", default="", help="runs whose names contain this")
    parser.add_argument("--seconds", type=float, help="stop this many seconds from now")
    parser.add_argument(
        "--runs", type=Path, default=Path(".symlift-runs"), help="where checkpoints are"
    )
    args = parser.parse_args()
    if args.what == "table":
        print(table())
        return
    if args.what in ("archive", "probe"):
        (add_to_archive if args.what == "archive" else keep_probes)()
        return
    begun = time.monotonic()
    for run in queue():
        record = record_of(run)
        if args.only not in run.name:
            continue
        if args.what == "list" or record.get("finished"):
            done = record.get("steps_done", 0)
            print(f"{run.name}: {done:,} of {run.steps:,}", record.get("trained", ""), flush=True)
            continue
        left = None if args.seconds is None else args.seconds - (time.monotonic() - begun)
        if left is not None and left < 60:
            break
        print(f"-- {run.name}", flush=True)
        train(run, args.runs, None if left is None else seconds_of(record) + left)


if __name__ == "__main__":
    main()
