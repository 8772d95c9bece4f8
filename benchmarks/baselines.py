"""The paper's baselines on the paper's rows, each tuned with the truth, beside the paper's figure for it.

    python benchmarks/baselines.py rows [--seeds 3] [--only mnist15]    all but the two that train: signals and phases
    python benchmarks/baselines.py tica                                 topographic ICA, its 24 configurations
    python benchmarks/baselines.py liegan [--steps 15000]               LieGAN on three rings, one configuration, several starts
    python benchmarks/baselines.py why                                  what the differences from the paper come from
    python benchmarks/baselines.py table                                the committed results as a Markdown table

Scores under the paper's protocol (every sample aligned by itself) and under the global one (one alignment), each with the
best settings for it.  A seed fixes data, mixing and baseline.  MNIST and the recordings are read from the folder that
SYMLIFT_DATA names; the recordings are left out without it.  Results go to results/baselines.json, one baseline of one
experiment at a time, so that an interrupted run goes on where it stopped (delete the file, or an entry, to start again).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from _common import RESULTS, write
from symlift.baselines import (
    Baseline,
    Trial,
    Tuned,
    applicable,
    choose,
    get_baseline,
    paper_figure,
    score,
    try_all,
)
from symlift.baselines.figures import PAPER_TICA
from symlift.baselines.glasso import precision_graph
from symlift.baselines.spectra import adjacency, aligned, eigenbasis, loaded_covariance
from symlift.baselines.tica import pooled_energy, pooling, zca
from symlift.datasets import Observations, gsn, image_crops, load_mnist
from symlift.experiments import EXPERIMENTS
from symlift.grid import Grid
from symlift.metrics import circular_correlation, generator_similarity, signal_recovery

# rows of data: enough for the covariances to settle, few enough for the whole table in minutes
ROWS = {"gsn": 20_000, "ising": 20_000, "mnist15": 20_000, "mnist27": 10_000, "recordings": 1_200}
PROTOCOLS = ("paper", "global")


def recording(name: str, seed: int) -> Observations:
    """Up to 1,200 samples of a recording, drawn by the seed; square roots of counts; the latent is the angle in radians."""
    file = {"neural-head-direction": "head_direction_mouse28", "neural-gratings": "allen_732592105_drifting_gratings"}[
        name
    ]
    with np.load(Path(os.environ["SYMLIFT_DATA"]) / f"{file}.npz", allow_pickle=False) as stored:
        counts, degrees, period = stored["X"], stored["angles"], float(stored["period"])
    rows = np.random.default_rng(seed).permutation(len(counts))[: ROWS["recordings"]]
    angles = (2 * np.pi / period * degrees[rows, None]).astype(np.float32)
    X = np.sqrt(counts[rows]).astype(np.float32)
    return Observations(X, angles, None, Grid((12,), periodic=True), (True,), name)


def experiments() -> dict[str, Callable[[int], Observations]]:
    """name → data set of a seed."""

    def rows(name: str) -> int:
        return next(n for key, n in ROWS.items() if name.startswith(key))

    found: dict[str, Callable[[int], Observations]] = {
        name: (lambda seed, name=name: EXPERIMENTS[name].observe(seed, rows(name)))  # type: ignore[misc]
        for name in EXPERIMENTS
        if name.startswith(("gsn", "ising")) or name in ("mnist15-shuffled", "mnist27-shuffled")
    }
    if os.environ.get("SYMLIFT_DATA"):
        for name in ("neural-head-direction", "neural-gratings"):
            found[name] = lambda seed, name=name: recording(name, seed)  # type: ignore[misc]
    return found


# -- keeping ------------------------------------------------------------------------------------------------------------


def kept() -> dict[str, Any]:
    path = RESULTS / "baselines.json"
    return json.loads(path.read_text()) if path.exists() else {}


def keep(section: str, name: str, entry: Any) -> None:
    """Put one entry into the file at once."""
    stored = {key: value for key, value in kept().items() if key not in ("date", "machine")}
    stored.setdefault(section, {})[name] = entry
    write("baselines", stored)


def done(section: str, name: str) -> Any:
    return kept().get(section, {}).get(name)


# -- rows ---------------------------------------------------------------------------------------------------------------


def entry(experiment: str, baseline: Baseline, seeds: int, make: Callable[[int], Observations]) -> dict[str, Any]:
    """One baseline on one experiment: the best settings under each protocol, seed by seed."""
    runs = []
    for seed in range(seeds):
        data = make(seed)
        trials = try_all(baseline, data, np.random.default_rng(seed))
        run: dict[str, Any] = {"seed": seed, "seconds": round(sum(t.seconds for t in trials), 1)}
        protocols = PROTOCOLS if baseline.finds == "signals" else PROTOCOLS[:1]
        for protocol in protocols:
            tuned = choose(baseline.name, trials, data, protocol)
            run[protocol] = {"score": round(tuned.score, 4), "settings": tuned.settings}
            if len(trials) > 1:
                run[protocol]["scores"] = [round(s.score, 4) for s in tuned.scores]
        runs.append(run)
    summary: dict[str, Any] = {"finds": baseline.finds, "paper_figure": paper_figure(experiment, baseline.name)}
    for protocol in protocols:
        values = [run[protocol]["score"] for run in runs]
        summary[protocol] = {"median": round(statistics.median(values), 4), "worst": min(values), "best": max(values)}
    return {
        **summary, "n": len(data.X), "d": data.X.shape[1], "tuned_with_truth": True,
        "configurations": len(trials), "runs": runs,
    }  # fmt: skip


def run_rows(seeds: int, only: str) -> None:
    for experiment, make in experiments().items():
        for baseline in applicable(make(0), slow=False):
            name = f"{experiment} / {baseline.name}"
            if only not in name or done("rows", name):
                continue
            start = time.perf_counter()
            found = entry(experiment, baseline, seeds, make)
            keep("rows", name, found)
            figures = {protocol: found[protocol]["median"] for protocol in PROTOCOLS if protocol in found}
            print(
                f"{name}: {figures}, paper's figure {found['paper_figure']}, {time.perf_counter() - start:.0f} s",
                flush=True,
            )


# -- the two that train -------------------------------------------------------------------------------------------------


def run_tica() -> None:
    baseline = get_baseline("tica")
    for experiment, paper in PAPER_TICA.items():
        if done("tica", experiment):
            continue
        data = EXPERIMENTS[experiment].observe(0, ROWS["gsn"])
        trials = try_all(baseline, data, np.random.default_rng(0))
        table = [
            {
                **trial.settings, "paper_figure": paper[trial.settings["rate"], trial.settings["pool"]],
                **{protocol: round(score(trial.result, data, protocol), 4) for protocol in PROTOCOLS},
                "energy": energies(trial, data), "seconds": round(trial.seconds, 1),
            }
            for trial in trials
        ]  # fmt: skip
        keep("tica", experiment, {"seed": 0, "n": len(data.X), "steps": 5_000, "batch": 250, "table": table})
        for row in table:
            print(experiment, row, flush=True)


def energies(trial: Trial, data: Observations) -> dict[str, float]:
    """The pooled energy that was reached, and that of the true order: ZCA of the latent, point by point."""
    f = data.X @ np.linalg.inv(np.asarray(data.transform))
    H = pooling(data.grid, trial.settings["pool"])
    values = []
    for source, W in ((data.X.astype(np.float64), trial.result.lifting_map), (f, zca(f)[1])):
        values.append(pooled_energy(np.asarray(W), (source - source.mean(axis=0))[:5_000], H)[0])
    return {"reached": round(values[0], 2), "true order": round(values[1], 2)}


def run_liegan(steps: int, only: str, starts: int) -> None:
    baseline = get_baseline("liegan")
    for shifts, start in product(("fft", "discrete", "continuous"), range(starts)):
        experiment = f"gsn15-{shifts}"
        name = f"{experiment} / start {start}"
        if only not in name or done("liegan", name):
            continue
        data = EXPERIMENTS[experiment].observe(0, 50_000)
        settings = {"rate": 1e-3, "discriminator_rate": 2e-4, "penalty": 1.0, "steps": steps}
        (trial,) = try_all(baseline, data, np.random.default_rng(start), [settings])
        along = [
            round(float(generator_similarity(L[None], data.transform, data.grid, truth="exact")[0]), 4)
            for L in trial.result.trace["checkpoints"]
        ]
        found = {
            "seed": 0, "start": start, "n": len(data.X), "settings": settings, "paper_figure": paper_figure(experiment, "liegan"),
            "similarity_exact": round(score(trial.result, data), 4), "checkpoint": trial.result.trace["checkpoint"],
            "similarity_exact_along": along, "losses": [round(v, 4) for v in trial.result.trace["losses"]],
            "seconds": round(trial.seconds, 1), "tuned_with_truth": False,
        }  # fmt: skip
        keep("liegan", name, found)
        print(name, found, flush=True)


# -- why ----------------------------------------------------------------------------------------------------------------


def signs_of_eigenvectors() -> dict[str, Any]:
    """Graphical lasso (α = 0.3) and covariance (rotate) where columns are in order, shuffled, and with random signs."""
    table = {}
    for transform in ("identity", "permutation", "dst1"):
        data = gsn(ROWS["gsn"], 63, transform=transform, random_state=0)
        X = data.X.astype(np.float64)
        S = loaded_covariance(X)
        reference = eigenbasis(adjacency(data.grid))[1]
        for name, matrix in (("glasso", precision_graph(S, 0.3 if transform != "dst1" else 0.01)), ("covariance", S)):
            basis = eigenbasis(matrix)[1]
            draws = np.random.default_rng(0).choice([-1.0, 1.0], size=(20, len(basis)))
            drawn = [score(aligned(X, basis * s @ reference.T), data) for s in draws]
            # the truth chooses each sign: how much of the failure is signs alone
            told = np.sign(np.sum((np.asarray(data.transform) @ basis) * reference, axis=0))
            table[f"{name}, {transform}"] = {
                "first entry positive": round(score(aligned(X, basis @ reference.T), data), 4),
                "random signs": [round(f(drawn), 4) for f in (min, statistics.median, max)],
                "signs from the truth": round(score(aligned(X, basis * told @ reference.T), data), 4),
            }
    return table


def readings_of_embeddings() -> dict[str, Any]:
    """Isomap on images: its own axes or turned upright, interpolated or assigned, from fewer or more samples."""
    images, baseline = load_mnist().images, get_baseline("isomap")
    table = {}
    for side, n in ((15, 1_000), (15, 10_000), (15, 20_000), (27, 10_000)):
        for turn, reading in ((False, "interpolate"), (True, "interpolate"), (True, "assign")):
            by_seed = []
            for seed in range(3):
                data = image_crops(images, (side, side), n, transform="permutation", random_state=seed)
                settings = [{"neighbours": k, "threshold": 0.1, "turn": turn, "reading": reading} for k in (3, 5, 7)]
                trials = try_all(baseline, data, np.random.default_rng(seed), settings)
                by_seed.append([round(score(t.result, data), 4) for t in trials])
            name = f"{side}x{side}, {n} samples, {'upright' if turn else 'own axes'}, {reading}"
            table[name] = {"neighbours": [3, 5, 7], "by_seed": by_seed}
    return table


def correlations_of_phases() -> dict[str, Any]:
    """Fisher–Lee and Jammalamadaka on the same phases, at each number of neighbours."""
    table = {}
    for name in ("neural-head-direction", "neural-gratings"):
        data = recording(name, 0)
        for transformed, X in (("square roots", data.X), ("counts", np.square(data.X)), ("standardised", _z(data.X))):
            for trial in try_all(get_baseline("isomap-phase"), _with(data, X), np.random.default_rng(0)):
                phases, truth = np.asarray(trial.result.phases), np.ravel(data.latent)
                table[f"{name}, {transformed}, k = {trial.settings['neighbours']}"] = {
                    method: round(circular_correlation(truth, phases, method), 4)
                    for method in ("fisher-lee", "jammalamadaka")
                }
    return table


def _z(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)


def _with(data: Observations, X: np.ndarray) -> Observations:
    return Observations(X, data.latent, data.transform, data.grid, data.periodic, data.name)


def columns_in_order() -> dict[str, Any]:
    """Waveform baselines with columns in order, as released and as the text has them."""
    table = {}
    for basis in ("gaussian", "legendre"):
        for variant in ("released", "text"):
            data = gsn(ROWS["gsn"], 63, basis=basis, variant=variant, transform="identity", random_state=0)
            for name in ("glasso", "covariance", "random"):
                tuned: Tuned = choose(name, try_all(get_baseline(name), data, np.random.default_rng(0)), data)
                table[f"{name}, {basis}, {variant}"] = {"score": round(tuned.score, 4), "settings": tuned.settings}
            perfect = signal_recovery(data.latent[:2_000], data.X[:2_000], data.grid, protocol="paper").r
            table[f"X itself, {basis}, {variant}"] = {"score": round(perfect, 4)}
    return table


def run_why() -> None:
    studies: dict[str, Callable[[], dict[str, Any]]] = {
        "signs": signs_of_eigenvectors,
        "embeddings": readings_of_embeddings,
    }
    if os.environ.get("SYMLIFT_DATA"):
        studies["phases"] = correlations_of_phases
    studies["columns in order"] = columns_in_order
    for name, study in studies.items():
        if not done("why", name):
            keep("why", name, study())
        for case, figures in kept()["why"][name].items():
            print(f"{name} | {case}: {figures}", flush=True)


# -- table --------------------------------------------------------------------------------------------------------------


def lines() -> Iterator[str]:
    stored = kept()
    yield "| experiment | baseline | paper's figure | paper's protocol, median (worst) | one alignment, median (worst) |"
    yield "|---|---|---|---|---|"
    for name, found in stored.get("rows", {}).items():
        cells = [f"{found[p]['median']:.3f} ({found[p]['worst']:.3f})" if p in found else "" for p in PROTOCOLS]
        figure = "" if found["paper_figure"] is None else found["paper_figure"]
        yield f"| {name.replace(' / ', ' | ')} | {figure} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("rows", "tica", "liegan", "why", "table"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--steps", type=int, default=15_000)
    options = parser.parse_args()
    if options.what == "rows":
        run_rows(options.seeds, options.only)
    elif options.what == "tica":
        run_tica()
    elif options.what == "liegan":
        run_liegan(options.steps, options.only, options.seeds)
    elif options.what == "why":
        run_why()
    else:
        print("\n".join(lines()))


if __name__ == "__main__":
    main()
