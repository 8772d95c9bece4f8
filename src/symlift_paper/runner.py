"""Run one method on one experiment and measure it."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dctn, idctn

from symlift.core.grid import Grid
from symlift.datasets import Observations
from symlift.errors import FitWarning, InputError
from symlift.estimator import LatentDomain
from symlift.metrics import circular_correlation, generator_similarity, signal_recovery
from symlift.solvers.registry import TRAINED_MAP
from symlift.storage.numpy_files import read_array
from symlift_paper.baselines import Baseline, choose, get_baseline, try_all
from symlift_paper.baselines.tuning import SCORED
from symlift_paper.registry import Experiment

__all__ = [
    "ARRIVED",
    "peak_rss_mb",
    "run_baseline",
    "run_closings",
    "run_experiment",
    "run_inverse",
    "signal_figures",
]

#: r, under one alignment, of a map that has arrived at the truth
ARRIVED = 0.9


def peak_rss_mb() -> float | None:
    """Peak resident memory of this process in MB; None if the system does not report it."""
    try:
        import resource
    except ImportError:  # pragma: no cover - Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(peak / (2**20 if sys.platform == "darwin" else 2**10), 1)


def run_experiment(
    experiment: Experiment,
    solver: str = "auto",
    seed: int = 0,
    n: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Fit a solver to the data of an experiment and measure the result.

    Parameters
    ----------
    experiment : Experiment
        The row to run.
    solver : str, default="auto"
        The solver; "auto" takes the experiment's own.
    seed : int, default=0
        Seed of data, transform and solver.
    n : int, optional
        Number of rows instead of the experiment's own.
    options : mapping, optional
        Passed to the solver: settings, budgets and folders of solvers that train.

    Returns
    -------
    dict
        Plain numbers, ready for JSON; None for measures that do not apply.

    Examples
    --------
    >>> from symlift_paper import get_experiment
    >>> result = run_experiment(get_experiment("gsn15-fft"), n=1000)
    >>> result["solver"], result["n"], result["r"] > 0.9
    ('auto', 1000, True)
    """
    data = experiment.observe(seed, n)
    chosen = experiment.solver if solver == "auto" else solver
    estimator = experiment.estimator(seed, chosen)
    start, used = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)  # the truth is known here, and judges the fit
        estimator.set_params(solver_options=options).fit(data.X)
    seconds, used = time.perf_counter() - start, time.process_time() - used
    if data.angles:
        figures = _angles(data, estimator)
    else:
        figures = signal_figures(data, estimator.transform(data.X), lambda: estimator.generators_)
    training = estimator.trace_.training
    ended: dict[str, Any] = {}
    if training is not None:
        # a training that was stopped and went on has taken more than what was measured here
        before = max(0.0, training.seconds - seconds)
        seconds, used = seconds + before, used + before
        ended = {key: getattr(training, key) for key in _TRACED} | {"cpu_seconds": round(used, 1)}
        if not data.angles:
            ended |= _before_closing(data, training.closed, figures, _folder(options))
    return {
        "experiment": experiment.name,
        "solver": chosen,
        "seed": seed,
        **figures,
        "seconds": round(seconds, 2),
        "peak_rss_mb": peak_rss_mb(),
        "n": len(data.X),
        "d": int(data.X.shape[1]),
        "grid": list(estimator.grid_.shape),
        **ended,
    }


def run_baseline(
    experiment: Experiment,
    name: str,
    seed: int = 0,
    n: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Run a baseline on an experiment, with its settings chosen by the truth for each protocol.

    Parameters
    ----------
    experiment : Experiment
        The row to run.
    name : str
        One of the experiment's baselines.
    seed : int, default=0
        Seed of data, transform and baseline.
    n : int, optional
        Number of rows instead of the experiment's ``baseline_n``.
    settings : mapping, optional
        One configuration to run instead of the search.

    Returns
    -------
    dict
        Plain numbers, ready for JSON; ``tuned_with_truth`` says whether settings were searched.

    Examples
    --------
    >>> from symlift_paper import get_experiment
    >>> result = run_baseline(get_experiment("gsn15-fft"), "random", n=200)
    >>> result["baseline"], result["configurations"], result["tuned_with_truth"]
    ('random', 1, False)
    """
    baseline = get_baseline(name)
    data = experiment.observe(seed, experiment.baseline_n if n is None else n)
    listed = [dict(settings)] if settings else _search(experiment, baseline)
    trials = try_all(baseline, data, np.random.default_rng(seed), listed)
    first = "paper"
    if experiment.scoring == "authors":
        first = "batches" if name == "tica" else "authors"
    best = {
        protocol: choose(name, trials, data, protocol)
        for protocol in ((first, "global") if baseline.finds == "signals" else (first,))
    }
    figure = {
        "signals": "r_paper",
        "phases": "circular_correlation",
        "generators": "similarity_exact",
    }[baseline.finds]
    scores = {figure: best[first].score} | ({"r": best["global"].score} if "global" in best else {})
    losses = best[first].result.trace.get("losses")
    trained = {} if losses is None else {"loss": losses[best[first].result.trace["checkpoint"]]}
    return {
        "experiment": experiment.name,
        "baseline": name,
        "seed": seed,
        **dict.fromkeys(_FIGURES),
        **{
            key: [round(v, 5)] if key.startswith("similarity") else round(v, 5)
            for key, v in scores.items()
        },
        "settings": best[first].settings,
        "configurations": len(trials),
        "tuned_with_truth": len(trials) > 1,
        "seconds": round(sum(trial.seconds for trial in trials), 2),
        **trained,
        "n": len(data.X),
        "d": int(data.X.shape[1]),
    }


def run_inverse(experiment: Experiment, seed: int = 0, n: int | None = None) -> dict[str, Any]:
    """The score of a perfect method: the signals behind X by the inverse of the true transform,
    with the noise of X.

    Under the paper's protocol this is far below 1 where some windows are nearly empty: their noise
    has no signal to follow.
    """
    data = experiment.observe(seed, n)
    if data.transform is None:
        raise InputError(f"{experiment.name} has no transform that could be inverted")
    start = time.perf_counter()
    figures = _recovery(
        data, np.linalg.solve(np.asarray(data.transform, dtype=np.float64).T, data.X.T).T
    )
    return {
        "experiment": experiment.name,
        "seed": seed,
        **dict.fromkeys(_FIGURES),
        **figures,
        "seconds": round(time.perf_counter() - start, 2),
        "n": len(data.X),
        "d": int(data.X.shape[1]),
    }


def run_closings(
    experiment: Experiment, starts: int, seed: int = 0, n: int | None = None
) -> dict[str, Any]:
    """The share of random starts from which the closed form of our training arrives without any
    training, and r of those where it says so itself.
    """
    from symlift.solvers.neural.alone import close_random_starts

    data = experiment.observe(seed, n)
    begun, used, scores = time.perf_counter(), time.process_time(), []
    closed = close_random_starts(data.X, data.grid, np.random.default_rng(seed), starts)
    for model in closed:
        if model is not None:
            scores.append(signal_recovery(data.latent, model.lift(data.X), data.grid).r)
    return {
        "experiment": experiment.name,
        "seed": seed,
        **dict.fromkeys(_FIGURES),
        "starts": starts,
        "closed": len(scores),
        "share": round(sum(r >= ARRIVED for r in scores) / starts, 5),
        "closed_r": [round(float(r), 5) for r in scores],
        "seconds": round(time.perf_counter() - begun, 2),
        "cpu_seconds": round(time.process_time() - used, 2),
        "n": len(data.X),
        "d": int(data.X.shape[1]),
    }


def _search(experiment: Experiment, baseline: Baseline) -> list[dict[str, Any]]:
    """The configurations that the experiment names, or the baseline's own."""
    if baseline.name not in experiment.baselines:
        raise InputError(
            f"{baseline.name} is no baseline of {experiment.name}: it has"
            f" {', '.join(experiment.baselines) or 'none'}"
        )
    return baseline.configurations(experiment.baselines[baseline.name])


#: what is kept of how a training went
_TRACED = ("ended", "steps", "best_step", "closed")
_FIGURES = (
    "r",
    "r_per_sample",
    "r_paper",
    "similarity",
    "similarity_exact",
    "similarity_half",
    "circular_correlation",
)


def _folder(options: Mapping[str, Any] | None) -> Path | None:
    return (options or {}).get("folder")


def _before_closing(
    data: Observations, closed: bool, ended: Mapping[str, Any], folder: Path | None
) -> dict[str, float]:
    """r of the map that was trained, before a closed form ended the run; that with which the run
    ``ended`` where none did, and nothing where the map was not kept.

    A map of a coarse grid is compared with the slow waves of the truth that this grid has.
    """
    path = None if folder is None else folder / TRAINED_MAP
    if closed and (path is None or not path.is_file()):
        return {}
    if path is None or not closed:
        return {f"{key}_before_closing": ended[key] for key in ("r", "r_paper")}
    from symlift.solvers.neural.coarse_to_fine import coarse_grid

    W = read_array(path)
    if len(W) != data.grid.size:
        small = coarse_grid(data.grid, data.X.shape[1])
        data = replace(data, grid=small, latent=_slow_waves(data.latent, data.grid, small))
    trained = _recovery(data, (data.X - data.X.mean(axis=0)) @ W.T)
    return {f"{key}_before_closing": trained[key] for key in ("r", "r_paper")}


def _slow_waves(fields: NDArray, grid: Grid, small: Grid) -> NDArray[np.float32]:
    """Fields (n, points) of an open ``grid`` on a ``small`` one over the same window: as many
    cosines along each axis as that has points.
    """
    axes = tuple(range(1, grid.ndim + 1))
    waves = dctn(fields.reshape(-1, *grid.shape), axes=axes, norm="ortho")
    few = waves[(slice(None), *(slice(0, n) for n in small.shape))]
    slow = idctn(few, axes=axes, norm="ortho").reshape(len(fields), -1)
    return np.asarray(slow, dtype=np.float32)


def _angles(data: Observations, estimator: LatentDomain) -> dict[str, Any]:
    """Correlation of the phase with the true angle of each row, up to its direction."""
    truth, phase = np.ravel(data.latent), estimator.phase(data.X)
    # the authors' own form, about circular means, is given next to the paper's numbers; it is
    # misleading for balanced angles
    forms = {"circular_correlation": "fisher-lee", "circular_correlation_means": "jammalamadaka"}
    scores = {
        key: abs(circular_correlation(truth, phase, method=form)) for key, form in forms.items()
    }
    return dict.fromkeys(_FIGURES) | {key: round(float(score), 5) for key, score in scores.items()}


def signal_figures(
    data: Observations, recovered: NDArray, generators: Callable[[], NDArray]
) -> dict[str, Any]:
    """Scores of ``recovered`` signals and, if the data have a transform, of ``generators``."""

    def similarity(**options: Any) -> list[float] | None:
        if data.transform is None:
            return None
        scores = generator_similarity(generators(), data.transform, data.grid, **options)
        return [round(float(s), 5) for s in np.atleast_1d(scores)]

    return dict.fromkeys(_FIGURES) | {
        **_recovery(data, recovered),
        "similarity": similarity(),
        "similarity_exact": similarity(truth="exact"),
        "similarity_half": similarity(bandwidth=0.5),
    }


def _recovery(data: Observations, recovered: NDArray) -> dict[str, float]:
    """r of all samples under one alignment, with and without pooling, and of the first ones each
    aligned by itself.
    """
    recovery = signal_recovery(data.latent, recovered, data.grid)
    rows = slice(0, SCORED["paper"])
    paper = signal_recovery(data.latent[rows], recovered[rows], data.grid, protocol="paper")
    figures = {"r": recovery.r, "r_per_sample": recovery.r_per_sample, "r_paper": paper.r}
    return {name: round(float(value), 5) for name, value in figures.items()}
