"""Tune a baseline as the paper does: search its settings with the truth, and report the best."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from symlift.datasets import Observations
from symlift.errors import InputError
from symlift.metrics import circular_correlation, generator_similarity, signal_recovery
from symlift_paper.baselines.protocol import Baseline, BaselineResult, Configuration
from symlift_paper.baselines.scoring import batch_score, sample_score

__all__ = ["Metric", "Score", "Trial", "Tuned", "choose", "score", "try_all", "tune"]

# score(result, data, protocol): higher is better
Metric = Callable[[BaselineResult, Observations, str], float]

# rows that a score is computed from: enough for two decimals, few enough for a search
SCORED = {"paper": 2_000, "global": 5_000, "authors": 500, "batches": 2_500}
TIE = 12  # decimals to which scores are compared: the rest is rounding


@dataclass(frozen=True, eq=False)
class Trial:
    """One configuration, its result, and its duration."""

    settings: Configuration
    result: BaselineResult
    seconds: float


@dataclass(frozen=True)
class Score:
    """One configuration and its score."""

    settings: Configuration
    score: float


@dataclass(frozen=True, eq=False)
class Tuned:
    """The best of a search that uses the truth: an upper bound on blind performance."""

    baseline: str
    protocol: str
    settings: Configuration
    score: float
    scores: tuple[Score, ...]
    seconds: float
    result: BaselineResult
    tuned_with_truth: bool = True

    def summary(self) -> dict[str, object]:
        """Everything except the arrays, ready for JSON."""
        return {
            "baseline": self.baseline,
            "protocol": self.protocol,
            "score": round(self.score, 5),
            "settings": self.settings,
            "scores": [asdict(s) | {"score": round(s.score, 5)} for s in self.scores],
            "seconds": round(self.seconds, 2),
            "tuned_with_truth": self.tuned_with_truth,
        }


def score(result: BaselineResult, data: Observations, protocol: str = "paper") -> float:
    """Agreement of a result with the truth, by the metric for its kind.

    Signals: `signal_recovery` under ``protocol`` (``"paper"`` on the first 2,000 rows, ``"global"``
    on 5,000), or as the authors' scripts score them (``"authors"``, ``"batches"``).  Phases:
    |Fisher–Lee| with ``data.latent``, the true angles in radians, because the sense of rotation is
    arbitrary.  Generators: similarity with the exact derivative, the mean over axes.
    """
    if result.phases is not None:
        return abs(circular_correlation(np.ravel(data.latent), result.phases))
    if result.generators is not None:
        return float(
            generator_similarity(result.generators, data.transform, data.grid, truth="exact").mean()
        )
    rows = slice(0, SCORED.get(protocol))
    if protocol in ("authors", "batches"):
        by = sample_score if protocol == "authors" else batch_score
        return by(data.latent[rows], result.transform(data.X[rows]), data.grid)
    return signal_recovery(
        data.latent[rows], result.transform(data.X[rows]), data.grid, protocol=protocol
    ).r


def try_all(
    baseline: Baseline,
    data: Observations,
    rng: np.random.Generator,
    configurations: Iterable[Configuration] | None = None,
) -> list[Trial]:
    """Run every configuration, each with its own random stream, so that order does not matter."""
    trials = []
    listed = baseline.configurations() if configurations is None else list(configurations)
    for settings, stream in zip(listed, rng.spawn(len(listed)), strict=True):
        start = time.perf_counter()
        result = baseline.run(data.X, data.grid, settings, stream)
        trials.append(Trial(settings, result, time.perf_counter() - start))
    return trials


def choose(
    baseline: str,
    trials: Sequence[Trial],
    data: Observations,
    protocol: str = "paper",
    metric: Metric = score,
) -> Tuned:
    """The trial with the best score; the first of equal ones."""
    if not trials:
        raise InputError(f"{baseline} has no configurations to choose from: give at least one")
    scores = [metric(trial.result, data, protocol) for trial in trials]
    best = int(np.argmax(np.round(scores, TIE)))
    return Tuned(
        baseline=baseline,
        protocol=protocol,
        settings=trials[best].settings,
        score=max(scores),
        scores=tuple(
            Score(trial.settings, value) for trial, value in zip(trials, scores, strict=True)
        ),
        seconds=sum(trial.seconds for trial in trials),
        result=trials[best].result,
    )


def tune(
    baseline: Baseline,
    data: Observations,
    metric: Metric = score,
    protocol: str = "paper",
    rng: np.random.Generator | None = None,
) -> Tuned:
    """Search a baseline's settings *with the truth*, as the paper does for all of them.

    >>> from symlift_paper.baselines import get_baseline
    >>> from symlift.datasets import gsn
    >>> data = gsn(200, 9, random_state=0)
    >>> tuned = tune(get_baseline("covariance"), data, rng=np.random.default_rng(0))
    >>> tuned.tuned_with_truth, len(tuned.scores), tuned.score == max(s.score for s in tuned.scores)
    (True, 18, True)
    """
    stream = np.random.default_rng() if rng is None else rng
    return choose(baseline.name, try_all(baseline, data, stream), data, protocol, metric)
