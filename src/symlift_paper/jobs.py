"""A job: one method on one experiment with one seed, identified by its content, with plain numbers
as its result.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveFloat, PositiveInt

from symlift.solvers.registry import DEFAULT, TRAINED
from symlift_paper.baselines import SLOW
from symlift_paper.prices import steps_price
from symlift_paper.registry import AUTHORS, Experiment, Printed, Training
from symlift_paper.runner import run_baseline, run_closings, run_experiment, run_inverse

__all__ = [
    "Job",
    "authors_jobs",
    "baseline_jobs",
    "ceiling_jobs",
    "closing_jobs",
    "covariance_jobs",
    "printed_jobs",
    "released_jobs",
    "solver_jobs",
    "tabled_jobs",
    "training_jobs",
]

#: changes when entries made before can no longer be compared with new ones; the release is no part
#: of a key, so that a new one finds what older ones measured
FORMAT = 2
#: expected seconds of a method of unknown cost
UNKNOWN_COST = 60.0


class Job(BaseModel):
    """One method on one experiment.

    ``settings`` are those of a training (they replace single entries of a preset), or the one
    configuration of a baseline that is not to be searched, or the number of ``starts`` of a closed
    form. ``steps`` and ``seconds`` bound a
    training; ``preset`` None is ours.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    experiment: Experiment
    kind: Literal["solver", "baseline", "ceiling", "closing"]
    method: str
    seed: NonNegativeInt = 0
    n: PositiveInt | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    steps: PositiveInt | None = None
    seconds: PositiveFloat | None = None
    preset: str | None = None

    @property
    def key(self) -> str:
        """Sixteen hexadecimal digits of the content: whatever can change the result, and nothing
        else.

        What is None is left out, so that a new field with that default changes no key.

        >>> from symlift_paper import EXPERIMENTS
        >>> first = Job(experiment=EXPERIMENTS["gsn15-fft"], kind="solver", method="fast")
        >>> other = first.experiment.model_copy(update={"title": "another"})
        >>> renamed = first.model_copy(update={"experiment": other})
        >>> first.key == renamed.key, first.key == first.model_copy(update={"seed": 1}).key
        (True, False)
        """
        content = self.model_dump(mode="json", exclude={"experiment"}, exclude_none=True)
        descriptive = {"title", "block", "paper", "cost", "seeds", "training", "covariance"}
        descriptive |= {"printed", "tabled", "solver"}
        if self.kind != "baseline":
            descriptive |= {"baselines", "baseline_n"}
        content["experiment"] = self.experiment.model_dump(
            mode="json", exclude=descriptive, exclude_none=True
        )
        if self.kind == "baseline":
            searched = content["experiment"].pop("baselines")
            content["search"] = {} if self.settings else searched.get(self.method, {})
        text = json.dumps({"format": FORMAT, **content}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        """A label for people."""
        settings = f", preset {self.preset}" if self.preset else ""
        settings += "".join(f", {name} {value}" for name, value in self.settings.items())
        return f"{self.experiment.name}, {self.method}, seed {self.seed}{settings}"

    @property
    def _steps(self) -> int | None:
        """Of a training or a baseline that has them: a bound, or those of its settings."""
        steps: int | None = self.steps or self.settings.get("steps")
        return steps

    @property
    def method_text(self) -> str:
        """The method, and which training it is."""
        which = {"paper": ", as printed", "released": ", as released"}
        return self.method + which.get(self.preset or "", "")

    @property
    def cost(self) -> float:
        """Seconds of one core that it will take, as far as known."""
        known = steps_price(self.experiment, self.method, self.preset, self._steps)
        if known is None:
            known = self.experiment.cost.get(
                self.method, 5.0 if self.kind == "ceiling" else UNKNOWN_COST
            )
        return known if self.seconds is None else min(known, self.seconds)

    def run(self, folder: Path | None = None) -> dict[str, Any]:
        """Run the job. A training keeps its checkpoints in ``folder`` and resumes from there."""
        if self.kind == "baseline":
            return run_baseline(self.experiment, self.method, self.seed, self.n, self.settings)
        if self.kind == "ceiling":
            return run_inverse(self.experiment, self.seed, self.n)
        if self.kind == "closing":
            return run_closings(self.experiment, self.settings["starts"], self.seed, self.n)
        options: dict[str, Any] = {}
        if self.method in TRAINED:
            options = {
                "settings": self.settings,
                "steps": self.steps,
                "seconds": self.seconds,
                "folder": folder,
            }
            options |= {"preset": self.preset} if self.preset else {}
            options |= {"compile": True} if self._pays_to_compile() else {}
        return run_experiment(self.experiment, self.method, self.seed, self.n, options)

    def _pays_to_compile(self) -> bool:
        """Whether a training is long enough for a compiled step, and there is a compiler for it;
        the result is the same up to rounding.
        """
        return (
            self.settings.get("clock", self.preset) in ("paper", "released")
            and (self._steps or 0) >= 20_000
            and _has_compiler()
        )


def _has_compiler() -> bool:
    return any(shutil.which(name) for name in ("g++", "clang++"))


def solver_jobs(experiment: Experiment, solver: str = "auto", n: int | None = None) -> list[Job]:
    """The experiment's own solver, or another one, on all of its seeds."""
    chosen = experiment.solver if solver == "auto" else solver
    method = DEFAULT if chosen == "auto" else chosen  # the same work has one name
    return [
        Job(experiment=experiment, kind="solver", method=method, seed=seed, n=n)
        for seed in experiment.seeds
    ]


def ceiling_jobs(experiment: Experiment) -> list[Job]:
    """The score of the inverse of the true transform, if there is a transform."""
    if experiment.source in ("mnist-bits", "recording", "file"):
        return []
    return [
        Job(experiment=experiment, kind="ceiling", method="inverse", seed=seed)
        for seed in experiment.seeds
    ]


def training_jobs(experiment: Experiment) -> list[Job]:
    """Our training, where the experiment asks for it."""
    return _trained(experiment, experiment.training, {})


def covariance_jobs(experiment: Experiment) -> list[Job]:
    """Our training from the covariance, where the experiment asks for it."""
    return _trained(experiment, experiment.covariance, {"start": "covariance"})


def closing_jobs(experiment: Experiment) -> list[Job]:
    """The closed form that ends our training, from random starts, on each of its seeds."""
    training = experiment.training
    if training is None:
        return []
    return [
        Job(
            experiment=experiment,
            kind="closing",
            method="closed form",
            seed=seed,
            settings={"starts": training.starts},
        )
        for seed in training.seeds
    ]


def _trained(
    experiment: Experiment, training: Training | None, settings: dict[str, Any]
) -> list[Job]:
    if training is None:
        return []
    return [
        Job(
            experiment=experiment,
            kind="solver",
            method="neural",
            seed=seed,
            settings=settings,
            seconds=training.seconds,
        )
        for seed in training.seeds
    ]


def printed_jobs(experiment: Experiment) -> list[Job]:
    """The paper's training as printed, where the experiment asks for it."""
    return _printed(experiment, experiment.printed, "paper")


def released_jobs(experiment: Experiment) -> list[Job]:
    """The same with the choices of the authors' code."""
    return _printed(experiment, experiment.printed, "released")


def tabled_jobs(experiment: Experiment) -> list[Job]:
    """As printed over the steps of the paper's training table, where the experiment asks for it."""
    return _printed(experiment, experiment.tabled, "paper")


def _printed(experiment: Experiment, printed: Printed | None, preset: str) -> list[Job]:
    if printed is None:
        return []
    return [
        Job(
            experiment=experiment,
            kind="solver",
            method="neural",
            seed=seed,
            settings={"steps": printed.steps},
            preset=preset,
        )
        for seed in printed.seeds
    ]


def baseline_jobs(experiment: Experiment, slow: bool, n: int | None = None) -> list[Job]:
    """The experiment's baselines on all of its seeds; the slow ones or the others."""
    return [
        Job(experiment=experiment, kind="baseline", method=name, seed=seed, n=n)
        for name in experiment.baselines
        if (name in SLOW) == slow
        for seed in experiment.seeds
    ]


def authors_jobs(experiment: Experiment) -> list[Job]:
    """The baselines of a row of the paper as the authors ran them, except those that train."""
    authors = AUTHORS.get(experiment.name)
    return [] if authors is None else baseline_jobs(authors, slow=False)
