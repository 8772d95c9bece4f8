"""The paper's baselines on the paper's rows, each tuned with the truth, next to the paper's number.

    python benchmarks/baselines.py rows [--seeds 3] [--only mnist15]   all but the two that train
    python benchmarks/baselines.py tica                                topographic ICA
    python benchmarks/baselines.py liegan [--steps 15000]              LieGAN on three rings
    python benchmarks/baselines.py why                                 why results differ from the
                                                                       paper's
    python benchmarks/baselines.py table                               results as a Markdown table

Topographic ICA runs in 24 configurations, LieGAN in one from several starts.
Scores under the paper's protocol (every sample aligned by itself) and under the global one (one
alignment), each with the best settings for it. A seed fixes data, mixing and baseline. MNIST and
the recordings are read from the folder that SYMLIFT_DATA names; the recordings are left out without
it. Results go to results/baselines.json, one baseline of one experiment at a time, so that an
interrupted run goes on where it stopped (delete the file, or an entry, to start again).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np

from _common import RESULTS, made, write
from symlift.datasets import (
    Observations,
    gsn,
    image_crops,
    ising,
    load_mnist,
    load_recording,
    random_linear,
    shot_noise,
)
from symlift.metrics import circular_correlation, generator_similarity
from symlift_paper import EXPERIMENTS
from symlift_paper.baselines import (
    Baseline,
    Trial,
    applicable,
    choose,
    get_baseline,
    score,
    try_all,
)
from symlift_paper.baselines.embedding import isomap_plane, umap_plane
from symlift_paper.baselines.figures import PAPER_TICA
from symlift_paper.baselines.glasso import precision_graph
from symlift_paper.baselines.scoring import shift_correlations
from symlift_paper.baselines.spectra import adjacency, aligned, eigenbasis, loaded_covariance
from symlift_paper.baselines.tica import pooled_energy, pooling, zca
from symlift_paper.baselines.topology import embed_columns, read_columns

# rows of data: enough for the covariances to settle, few enough for the whole table in minutes
ROWS = {"gsn": 20_000, "ising": 20_000, "mnist15": 20_000, "mnist27": 10_000, "recordings": 1_200}
# the largest images take minutes per seed
SEEDS = {"mnist27": 1}
# 729 columns: a sweep of graphical lasso is seconds, and smaller α are slower still
SEARCH = {
    "mnist27-shuffled / glasso": {
        "alpha": (0.1, 0.3, 0.5),
        "form": ("orthogonal", "scaled"),
        "iterations": (3,),
    }
}
RECORDINGS = {"neural-head-direction": "head-direction", "neural-gratings": "drifting-gratings"}
PROTOCOLS = ("paper", "global")
#: experiment → baseline → what the paper reports
PAPER = {
    name: experiment.paper.baselines
    for name, experiment in EXPERIMENTS.items()
    if experiment.paper.baselines
}


def recording(name: str, seed: int) -> Observations:
    """Up to 1,200 rows of a recording, drawn by the seed: spike counts and angles in radians."""
    data = load_recording(name)
    rows = np.random.default_rng(seed).permutation(len(data.X))[: ROWS["recordings"]]
    return replace(data, X=data.X[rows], latent=data.latent[rows])


def experiments() -> dict[str, Callable[[int], Observations]]:
    """name → data set of a seed."""

    def rows(name: str) -> int:
        return next(n for key, n in ROWS.items() if name.startswith(key))

    makers: dict[str, Callable[[int], Observations]] = {
        name: lambda seed, name=name: EXPERIMENTS[name].observe(seed, rows(name))  # type: ignore[misc]
        for name in EXPERIMENTS
        if name.startswith(("gsn", "ising")) or name in ("mnist15-shuffled", "mnist27-shuffled")
    }
    if os.environ.get("SYMLIFT_DATA"):
        for name, file in RECORDINGS.items():
            makers[name] = lambda seed, file=file: recording(file, seed)  # type: ignore[misc]
    return makers


# -- keeping ---------------------------------------------------------------------------------------


def stored_results() -> dict[str, Any]:
    path = RESULTS / "baselines.json"
    return json.loads(path.read_text()) if path.exists() else {}


def keep(section: str, name: str, entry: dict[str, Any]) -> None:
    """Put one entry into the file at once."""
    stored = {
        key: value for key, value in stored_results().items() if key not in ("date", "machine")
    }
    stored.setdefault(section, {})[name] = entry | {"made": made()}
    write("baselines", stored)


def done(section: str, name: str) -> Any:
    return stored_results().get(section, {}).get(name)


# -- rows ------------------------------------------------------------------------------------------


def entry(
    experiment: str, baseline: Baseline, seeds: int, make: Callable[[int], Observations]
) -> dict[str, Any]:
    """One baseline on one experiment: the best settings under each protocol, seed by seed."""
    start, runs = time.perf_counter(), []
    for seed in range(seeds):
        data = make(seed)
        searched = baseline.configurations(SEARCH.get(f"{experiment} / {baseline.name}"))
        trials = try_all(baseline, data, np.random.default_rng(seed), searched)
        run: dict[str, Any] = {"seed": seed, "seconds": round(sum(t.seconds for t in trials), 1)}
        protocols = PROTOCOLS if baseline.finds == "signals" else PROTOCOLS[:1]
        for protocol in protocols:
            tuned = choose(baseline.name, trials, data, protocol)
            run[protocol] = {"score": round(tuned.score, 4), "settings": tuned.settings}
            if len(trials) > 1:
                run[protocol]["scores"] = [round(s.score, 4) for s in tuned.scores]
        runs.append(run)
    summary: dict[str, Any] = {
        "finds": baseline.finds,
        "paper_figure": PAPER.get(experiment, {}).get(baseline.name),
    }
    for protocol in protocols:
        values = [run[protocol]["score"] for run in runs]
        summary[protocol] = {
            "median": round(statistics.median(values), 4),
            "worst": min(values),
            "best": max(values),
        }
    return {
        **summary,
        "n": len(data.X),
        "d": data.X.shape[1],
        "tuned_with_truth": len(trials) > 1,
        "configurations": len(trials),
        "seeds": seeds,
        "seconds": round(time.perf_counter() - start, 1),
        "runs": runs,
    }


def run_rows(seeds: int, only: str) -> None:
    for experiment, make in experiments().items():
        for baseline in applicable(make(0), slow=False):
            name = f"{experiment} / {baseline.name}"
            if only not in name or done("rows", name):
                continue
            most = next(
                (count for key, count in SEEDS.items() if experiment.startswith(key)), seeds
            )
            measured = entry(experiment, baseline, min(seeds, most), make)
            keep("rows", name, measured)
            figures = {
                protocol: measured[protocol]["median"]
                for protocol in PROTOCOLS
                if protocol in measured
            }
            print(
                f"{name}: {figures}, paper's number {measured['paper_figure']},"
                f" {measured['seconds']:.0f} s",
                flush=True,
            )


# -- the two that train ----------------------------------------------------------------------------


def run_tica() -> None:
    baseline = get_baseline("tica")
    for experiment, paper in PAPER_TICA.items():
        if done("tica", experiment):
            continue
        data = EXPERIMENTS[experiment].observe(0, ROWS["gsn"])
        trials = try_all(baseline, data, np.random.default_rng(0))
        table = [
            {
                **trial.settings,
                "paper_figure": paper[trial.settings["rate"], trial.settings["pool"]],
                **{
                    protocol: round(score(trial.result, data, protocol), 4)
                    for protocol in PROTOCOLS
                },
                "energy": energies(trial, data),
                "seconds": round(trial.seconds, 1),
            }
            for trial in trials
        ]
        keep(
            "tica",
            experiment,
            {"seed": 0, "n": len(data.X), "steps": 5_000, "batch": 250, "table": table},
        )
        for row in table:
            print(experiment, row, flush=True)


def energies(trial: Trial, data: Observations) -> dict[str, float]:
    """The pooled energy that was reached, and that of the true order: ZCA of the latent, point by
    point.
    """
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
            round(
                float(generator_similarity(L[None], data.transform, data.grid, truth="exact")[0]), 4
            )
            for L in trial.result.trace["checkpoints"]
        ]
        record = {
            "seed": 0,
            "start": start,
            "n": len(data.X),
            "settings": settings,
            "paper_figure": PAPER[experiment]["liegan"],
            "similarity_exact": round(score(trial.result, data), 4),
            "checkpoint": trial.result.trace["checkpoint"],
            "similarity_exact_along": along,
            "losses": [round(v, 4) for v in trial.result.trace["losses"]],
            "seconds": round(trial.seconds, 1),
            "tuned_with_truth": False,
        }
        keep("liegan", name, record)
        print(name, record, flush=True)


# -- why -------------------------------------------------------------------------------------------


def signs_of_eigenvectors() -> dict[str, Any]:
    """Graphical lasso (α = 0.3) and covariance (rotate) where columns are in order, shuffled, and
    with random signs.
    """
    table = {}
    for transform in ("identity", "permutation", "dst1"):
        data = gsn(ROWS["gsn"], 63, transform=transform, random_state=0)
        X = data.X.astype(np.float64)
        S = loaded_covariance(X)
        reference = eigenbasis(adjacency(data.grid))[1]
        for name, matrix in (
            ("glasso", precision_graph(S, 0.3 if transform != "dst1" else 0.01)),
            ("covariance", S),
        ):
            basis = eigenbasis(matrix)[1]
            draws = np.random.default_rng(0).choice([-1.0, 1.0], size=(20, len(basis)))
            drawn = [score(aligned(X, basis * s @ reference.T), data) for s in draws]
            # the truth chooses each sign: how much of the failure is signs alone
            true_signs = np.sign(np.sum((np.asarray(data.transform) @ basis) * reference, axis=0))
            table[f"{name}, {transform}"] = {
                "first entry positive": round(score(aligned(X, basis @ reference.T), data), 4),
                "random signs": [round(f(drawn), 4) for f in (min, statistics.median, max)],
                "signs from the truth": round(
                    score(aligned(X, basis * true_signs @ reference.T), data), 4
                ),
            }
    return table


def readings_of_embeddings() -> dict[str, Any]:
    """Embedded pixels, read four ways: own axes or turned upright, interpolated or assigned; best
    of k = 3, 5, 7, seed by seed.
    """
    images = load_mnist().images
    embeddings: dict[str, Callable[..., Any]] = {
        "isomap": lambda D, k, seed: isomap_plane(D, k, "precomputed"),  # noqa: ARG005
        "umap": lambda D, k, seed: umap_plane(D, k, np.random.default_rng(seed), "precomputed"),
    }
    table = {}
    cases = [("isomap", 15, n, False, 5) for n in (1_000, 2_000, 10_000, 20_000)] + [
        ("isomap", 15, 20_000, True, 5),
        ("isomap", 27, 10_000, False, 3),
        ("umap", 15, 20_000, False, 5),
        ("umap", 27, 10_000, False, 3),
    ]
    for method, side, n, subpixel, seeds in cases:
        scores_of: dict[str, list[list[float]]] = {}
        for seed in range(seeds):
            data = image_crops(images, (side, side), n, "permutation", subpixel, seed)
            X, embed = data.X.astype(np.float64), embeddings[method]
            placed = [embed_columns(X, partial(embed, k=k, seed=seed), 0.1) for k in (3, 5, 7)]
            for axes, reading in product(("own", "upright"), ("interpolate", "assign")):
                scores = [
                    round(
                        score(
                            read_columns(columns, plane, data.grid, axes=axes, reading=reading),
                            data,
                        ),
                        3,
                    )
                    for columns, plane in placed
                ]
                scores_of.setdefault(
                    f"{axes if axes == 'upright' else 'own axes'}, {reading}", []
                ).append(scores)
        name = f"{method}, {side}x{side}, {n} crops" + (
            ", at fractions of a pixel" if subpixel else ""
        )
        table[name] = {
            way: {
                "best of k: median": round(statistics.median(map(max, scores)), 3),
                "least and largest": [min(map(max, scores)), max(map(max, scores))],
                "k = 3, 5, 7 by seed": scores,
            }
            for way, scores in scores_of.items()
        }  # fmt: skip
    return table


def angles_of_embeddings() -> dict[str, Any]:
    """How far Isomap's own axes are turned from the grid's (degrees modulo 90, by k), and what
    interpolation alone costs.
    """
    images, table = load_mnist().images, {}
    for seed in range(5):
        data = image_crops(images, (15, 15), ROWS["mnist15"], "permutation", random_state=seed)
        true = data.grid.indices()[np.asarray(data.transform).argmax(axis=0)]
        exact = read_columns(np.arange(225), true.astype(np.float64), data.grid, axes="own")
        angles = []
        for k in (3, 5, 7):
            _, plane = embed_columns(
                data.X.astype(np.float64),
                lambda D, k=k: isomap_plane(D, k, "precomputed"),  # type: ignore[misc]
                0.1,
            )
            left, _, right = np.linalg.svd(plane.T @ (true - true.mean(axis=0)))
            turn = left @ right
            angles.append(round(float(np.degrees(np.arctan2(turn[0, 1], turn[0, 0]))) % 90, 1))
        table[f"seed {seed}"] = {
            "k = 3, 5, 7": angles,
            "exact places, interpolated": round(score(exact, data), 4),
        }
    return table


def correlations_of_phases() -> dict[str, Any]:
    """|Fisher–Lee| and |Jammalamadaka| of the same phases, for counts, their roots, and counts at
    unit variance.
    """
    table: dict[str, Any] = {}
    neighbours = (5, 15, 30, 50)
    for name, file in RECORDINGS.items():
        data = recording(file, 0)
        truth = np.ravel(data.latent).astype(np.float64)
        for method in ("isomap-phase", "umap-phase"):
            if (name, method) == ("neural-head-direction", "umap-phase"):
                continue  # minutes, and the paper has no number to explain
            for prepared, X in (
                ("counts", data.X),
                ("roots", np.sqrt(data.X)),
                ("unit variance", _z(data.X)),
            ):
                # one row of numbers for each definition, along the neighbours
                trials = try_all(
                    get_baseline(method),
                    replace(data, X=X),
                    np.random.default_rng(0),
                    [{"neighbours": k} for k in neighbours],
                )
                table[f"{name}, {method}, {prepared}"] = {"neighbours": list(neighbours)} | {
                    kind: [
                        round(
                            abs(circular_correlation(truth, np.asarray(t.result.phases), kind)), 3
                        )
                        for t in trials
                    ]
                    for kind in ("fisher-lee", "jammalamadaka")
                }
    return table


def _z(X: np.ndarray) -> np.ndarray:
    return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)


REACHES = (0, 1, 3, 6, 10, 31)
SCORED_ROWS = 600


def per_sample(latent: np.ndarray, recovered: np.ndarray, empty_is_zero: bool) -> list[float]:
    """Mean best |Pearson| over flips and cyclic shifts up to each of REACHES; near-empty windows as
    they are, or as 0.
    """
    size, points = latent.std(axis=1), latent.shape[1]
    r = np.abs(shift_correlations(latent, recovered))
    live = size > 1e-6 * size.max()
    figures = []
    for reach in REACHES:
        shifts = np.unique(np.arange(-reach, reach + 1) % points)
        best = r[:, :, shifts].max(axis=(0, 2))
        figures.append(
            float((best * live).mean()) if empty_is_zero else float(best[size > 0].mean())
        )
    return figures


def last_family(make: Callable[[], Observations]) -> np.ndarray:
    """The latent of Legendre pulses without those of degree 3: what the authors' code returns as
    the hidden signal.
    """
    pulse = shot_noise._pulse

    def only(distance: Any, scales: Any, degrees: Any, variant: str) -> Any:
        return pulse(distance, scales, degrees, variant) * np.float32(degrees == 2)

    with patch.object(shot_noise, "_pulse", only):
        return make().latent


def _waveforms(source: str, variant: str, transform: str, seed: int) -> Observations:
    if source == "ising":
        low = float(variant.split()[0])
        return ising(4_000, 33, transform=random_linear(33, low, 1 / low, seed), random_state=seed)
    return gsn(4_000, 63, source, variant, transform=transform, random_state=seed)


def ways_to_score() -> dict[str, Any]:
    """Waveforms under every reading of data and score that the text leaves open: best of each
    search, median of three seeds.

    Data as released or as the text has them; columns in order or shuffled; the truth the sum of
    both pulse families or the last alone; shifts up to REACHES; near-empty windows as they are, or
    counted 0.
    """
    kinds = [
        *product(
            ("gaussian", "legendre"), ("released", "text"), ("identity", "permutation", "dst1")
        ),
        *product(("ising",), ("0.5 to 2", "0.75 to 1.33"), ("linear",)),
    ]
    table: dict[str, Any] = {}
    for source, variant, transform in kinds:
        scores_of: dict[str, list[list[float]]] = {}
        for seed in range(3):
            make = partial(_waveforms, source, variant, transform, seed)
            data = make()
            truths = {"sum": data.latent}
            if (source, variant) == ("legendre", "released"):
                truths["last family"] = last_family(make)
            for name in ("glasso", "covariance", "random"):
                recovered = [
                    t.result.transform(data.X[:SCORED_ROWS])
                    for t in try_all(get_baseline(name), data, np.random.default_rng(seed))
                ]
                for (truth, f), zero in product(truths.items(), (False, True)):
                    figures = np.max(
                        [per_sample(f[:SCORED_ROWS], y, zero) for y in recovered], axis=0
                    )
                    key = (
                        f"{name}, {truth}, near-empty windows"
                        f" {'count 0' if zero else 'as they are'}"
                    )
                    scores_of.setdefault(key, []).append(figures.tolist())
        table[f"{source}, {variant}, {transform}"] = {"shifts up to": list(REACHES)} | {
            key: np.median(values, axis=0).round(3).tolist() for key, values in scores_of.items()
        }
    return table


def closest_ways() -> Iterator[str]:
    """For each block of the paper's table our own way to score, and the three that come closest to
    all of its numbers.
    """
    table, methods = stored_results()["why"]["ways to score"], ("glasso", "covariance", "random")
    yield (
        "| block: glasso, covariance, random of each row | data | columns | truth | empty windows |"
        " shifts up to | difference |"
    )
    yield "|---|---|---|---|---|---|---|"
    for block, experiment, variants, columns in (
        ("gaussian", "gsn63-gaussian", ("released", "text"), ("permutation", "identity")),
        ("legendre", "gsn63-legendre", ("released", "text"), ("permutation", "identity")),
        ("ising", "ising33", ("0.5 to 2", "0.75 to 1.33"), ("linear",)),
    ):
        paper = [
            PAPER[name][method]
            for name in PAPER
            if name.startswith(experiment)
            for method in methods
        ]
        yield f"| {block}, the paper: {paper} | | | | | | |"
        ways = []
        for variant, column, truth, empty, at in product(
            variants,
            columns,
            ("sum", "last family"),
            ("as they are", "count 0"),
            range(len(REACHES)),
        ):
            cases = [
                table[f"{block}, {variant}, {t}"]
                for t in ([column] if block == "ising" else [column, "dst1"])
            ]
            keys = [f"{method}, {truth}, near-empty windows {empty}" for method in methods]
            if keys[0] in cases[0]:
                ours = [case[key][at] for case in cases for key in keys]
                off = round(float(np.mean(np.abs(np.subtract(ours, paper)))), 3)
                ways.append(
                    (
                        off,
                        (
                            f"| {ours} | {variant} | {column} | {truth} | {empty} | {REACHES[at]} |"
                            f" {off} |"
                        ),
                    )
                )
        own = ways[
            len(REACHES) - 1
        ]  # as our table has them: released, shuffled, the sum, as they are, all shifts
        yield from (line for _, line in [own, *sorted(ways)[:3]])


def run_why() -> None:
    studies: dict[str, Callable[[], dict[str, Any]]] = {
        "signs": signs_of_eigenvectors,
        "embeddings": readings_of_embeddings,
        "angles": angles_of_embeddings,
    }
    if os.environ.get("SYMLIFT_DATA"):
        studies["phases"] = correlations_of_phases
    studies["ways to score"] = ways_to_score
    for name, study in studies.items():
        if not done("why", name):
            start = time.perf_counter()
            keep("why", name, study() | {"seconds": round(time.perf_counter() - start, 1)})
        for case, figures in stored_results()["why"][name].items():
            print(f"{name} | {case}: {figures}", flush=True)
    print("\n".join(closest_ways()))


# -- table -----------------------------------------------------------------------------------------


def lines() -> Iterator[str]:
    stored = stored_results()
    yield (
        "| experiment | baseline | paper's number | paper's protocol, median (worst) | one"
        " alignment, median (worst) | configurations | seeds | n |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    order = [*PAPER, *experiments()]
    for name, entry in sorted(
        stored.get("rows", {}).items(), key=lambda item: order.index(item[0].split(" / ")[0])
    ):
        cells = [
            f"{entry[p]['median']:.3f} ({entry[p]['worst']:.3f})" if p in entry else ""
            for p in PROTOCOLS
        ]
        figure = "" if entry["paper_figure"] is None else f"{entry['paper_figure']:.3f}"
        counts = f"{entry['configurations']} | {len(entry['runs'])} | {entry['n']}"
        yield f"| {name.replace(' / ', ' | ')} | {figure} | {' | '.join(cells)} | {counts} |"
    yield from (
        "",
        (
            "| experiment | LieGAN in the paper | similarity by start | the last checkpoint's, by"
            " start | steps |"
        ),
    )
    yield "|---|---|---|---|---|"
    for experiment in ("gsn15-fft", "gsn15-discrete", "gsn15-continuous"):
        runs = [
            run
            for name, run in sorted(stored.get("liegan", {}).items())
            if name.startswith(experiment)
        ]
        chosen, last = (
            ", ".join(f"{value:.3f}" for value in values)
            for values in (
                [r["similarity_exact"] for r in runs],
                [r["similarity_exact_along"][-1] for r in runs],
            )
        )
        steps = ", ".join(str(r["settings"]["steps"]) for r in runs)
        yield f"| {experiment} | {PAPER[experiment]['liegan']} | {chosen} | {last} | {steps} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
