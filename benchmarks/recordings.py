"""Rings in neural recordings: the ring solver, PCA planes, Isomap, UMAP and DREiMac, with controls.

    python benchmarks/recordings.py [synthetic|ours|transport|baselines|dreimac]…

Without a name: all but ``dreimac``, which needs DREiMac 0.3.2, in an environment of its own.

Ours sees no labels: ``LatentDomain(grid=(N,), periodic=True, solver="ring")`` on spike
counts, five seeds. The solver was developed with both recordings and their labels at hand, so they
are no untouched test of it; draws of ``synthetic`` are. The baselines' whole grids are searched
with the truth in hand, on counts and on stabilised ones, and their best is kept. Date and machine
of the results are those of the part that was measured last. Recordings are read from the folder
that ``SYMLIFT_DATA`` names.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from importlib import metadata
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import Isomap

from _common import RESULTS, write
from populations import best_coordinates
from symlift import LatentDomain
from symlift.datasets import load_recording, ring_population
from symlift.datasets.recordings import ARRAYS
from symlift.errors import FitWarning
from symlift.metrics import circular_correlation
from symlift.solvers.ring.search import stabilise
from symlift_paper.transport import transport_rows

NAME = "real_data_recordings"
SEEDS = range(5)
POINTS = {"head-direction": 32, "drifting-gratings": 30}
#: parts of a turn that one step of the stimulus is: 30° of orientation, 45° of head direction
#: and of orientation
STEPS = {"synthetic gratings": 6, "head-direction": 8, "drifting-gratings": 4}
NEIGHBOURS = (5, 10, 15, 30, 50)
POPULATIONS: dict[str, dict[str, Any]] = {
    "32 units": {},
    "16 units": {"units": 16},
    "128 units, 600 trials": {"units": 128, "n": 600},
    "strong gain and movement": {"gain": 0.6, "movement": 0.6},
    "low rates": {"rate": 1.0},
    "sharp tuning": {"concentration": 6.0},
    "4 stimuli, 110 units, 600 trials, movement": {
        "stimuli": 4,
        "n": 600,
        "units": 110,
        "rate": 2.0,
        "movement": 1.0,
    },
    "6 stimuli, 110 units, 1100 trials, low rates": {
        "stimuli": 6,
        "n": 1100,
        "units": 110,
        "rate": 1.0,
    },
}


def fit(X: NDArray, points: int, seed: int) -> LatentDomain:
    """Ours, as anyone would call it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return LatentDomain(grid=(points,), periodic=True, solver="ring", random_state=seed).fit(X)


def size(truth: NDArray, phase: NDArray) -> float:
    """|circular correlation|: the sense of turning is open."""
    return round(abs(circular_correlation(truth, phase)), 4)


def spread(values: list[float]) -> dict[str, float]:
    """Median and worst."""
    return {"median": round(float(np.median(values)), 4), "worst": round(min(values), 4)}


def plane_phase(embedded: NDArray) -> NDArray[np.float64]:
    """Angle about the mean of a 2-D embedding, as the paper has it."""
    centred = embedded - embedded.mean(axis=0)
    return np.arctan2(centred[:, 1], centred[:, 0])


def best_principal_plane(X: NDArray, truth: NDArray, first: int = 6) -> tuple[float, str]:
    """The best plane of two of the first principal components."""
    scores = PCA(first).fit_transform(X)
    return max(
        (size(truth, plane_phase(scores[:, pair])), str(pair))
        for pair in map(list, combinations(range(first), 2))
    )


def synthetic() -> dict[str, Any]:
    """Ring populations with confounds, five draws each."""
    table: dict[str, Any] = {}
    for name, settings in POPULATIONS.items():
        ours, planes = [], []
        for seed in SEEDS:
            data = ring_population(
                random_state=1_000 + seed, **{"n": 1_500, "units": 32, **settings}
            )
            ours.append(
                size(data.latent, fit(data.X, min(30, data.X.shape[1]), seed).phase(data.X))
            )
            planes.append(best_principal_plane(data.X, data.latent)[0])
        table[name] = {
            "ours": spread(ours),
            "best principal plane, with the truth": spread(planes),
            "draws": ours,
        }
        print(f"{name:46} {table[name]['ours']} PCA {spread(planes)}", flush=True)
    return table


def ours() -> dict[str, Any]:
    """Both recordings: five seeds, the diagnosis, and what should not depend on chance."""
    table: dict[str, Any] = {}
    for name, points in POINTS.items():
        data = load_recording(name)
        fits, seconds = [], []
        for seed in SEEDS:
            start = time.perf_counter()
            fits.append(fit(data.X, points, seed))
            seconds.append(time.perf_counter() - start)
        phases = [est.phase(data.X) for est in fits]
        values = [size(data.latent, phase) for phase in phases]
        diagnosis = fits[0].diagnose(data.X)
        entry: dict[str, Any] = {
            "n": len(data.X),
            "d": data.X.shape[1],
            "grid": points,
            "seeds": values,
            **spread(values),
            "seconds": round(float(np.median(seconds)), 2),
            "agreement of seeds": spread([size(a, b) for a, b in combinations(phases, 2)]),
            "held out": spread(
                [v for seed in SEEDS for v in held_out(data.X, data.latent, points, seed)]
            ),
            "halves of the rows agree": spread([halves(data.X, points, seed) for seed in SEEDS]),
            "permuted columns": spread([permuted(data.X, points, seed) for seed in SEEDS]),
            "evidence": asdict(fits[0].evidence_),
            "search": dict(fits[0].trace_.stages[0].values),
            "verdict": str(diagnosis),
            "tests": {test.name: test.value for test in diagnosis.tests},
        }
        if name == "drifting-gratings":
            entry["windows"] = windows(points)
        table[name] = entry
        print(name, json.dumps(entry, indent=1), flush=True)
    return table


def _split(n: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    order = np.random.default_rng(seed).permutation(n)
    return order[: n // 2], order[n // 2 :]


def _varying(X: NDArray, *parts: NDArray) -> NDArray[np.bool_]:
    """Columns that vary in all parts: a unit that is silent in a half has no weight there."""
    return np.logical_and.reduce([np.ptp(X[part], axis=0) > 0 for part in parts])


def held_out(X: NDArray, truth: NDArray, points: int, seed: int) -> list[float]:
    """Fit on one half of the rows, read the other, both ways."""
    first, second = _split(len(X), seed)
    varying = X[:, _varying(X, first, second)]
    return [
        size(truth[b], fit(varying[a], points, seed).phase(varying[b]))
        for a, b in ((first, second), (second, first))
    ]


def halves(X: NDArray, points: int, seed: int) -> float:
    """Fits on two halves read all rows: do they agree?  No truth involved."""
    first, second = _split(len(X), seed)
    varying = X[:, _varying(X, first, second)]
    return size(
        fit(varying[first], points, 0).phase(varying),
        fit(varying[second], points, 1).phase(varying),
    )


def permuted(X: NDArray, points: int, seed: int) -> float:
    """Evidence where each column's samples are permuted by themselves: there is nothing to find."""
    control = np.random.default_rng(seed).permuted(X, axis=0)
    return float(fit(control, points, seed).evidence_.locality)


def windows(points: int) -> dict[str, float]:
    """Gratings in other time windows: each fitted by itself."""
    with np.load(Path(os.environ["SYMLIFT_DATA"]) / ARRAYS["drifting-gratings"]) as file:
        counts, edges, angles = file["counts_250ms"], file["bin_edges_s"], file["angles"]
    truth = 2 * np.deg2rad(angles.astype(np.float64))
    by_window = {}
    for low, high in ((0.0, 1.0), (1.0, 2.0), (0.0, 0.5), (0.5, 1.0), (0.0, 0.25)):
        chosen = (edges[:-1] >= low - 1e-6) & (edges[1:] <= high + 1e-6)
        X = counts[:, chosen].sum(axis=1).astype(np.float64)
        X = X[:, np.ptp(X, axis=0) > 0]
        values = [size(truth, fit(X, points, seed).phase(X)) for seed in (0, 1)]
        by_window[f"{low:g}-{high:g} s"] = min(values)
    return by_window


def transport() -> dict[str, Any]:
    """Held-out rows moved by one step of the stimulus, with controls, five splits or draws."""
    table: dict[str, Any] = {}
    for name, steps in STEPS.items():
        splits = []
        for seed in SEEDS:
            data = (
                ring_population(1_100, 110, stimuli=6, random_state=1_000 + seed)
                if name == "synthetic gratings"
                else load_recording(name)
            )
            train, test = _split(len(data.X), seed)
            X = data.X[:, _varying(data.X, train)].astype(np.float64)
            est = fit(X[train], POINTS.get(name, 30), seed)
            seen, unseen = ((X[part], data.latent[part]) for part in (train, test))
            moved = transport_rows(est, seen, unseen, steps, np.random.default_rng(seed))
            read = {"held out": size(data.latent[test], est.phase(X[test]))}
            splits.append(moved.summary() | read)
            print(name, seed, splits[-1], flush=True)
        table[name] = {
            "steps of a turn": steps,
            "splits": splits,
            **{key: spread([s[key] for s in splits]) for key in splits[0]},
        }
    return table


def baselines() -> dict[str, Any]:
    """Whole grids, best by the truth."""
    import umap

    table: dict[str, Any] = {}
    for name in POINTS:
        data = load_recording(name)
        grid: dict[str, float] = {}
        for features, X in (
            ("counts", data.X.astype(np.float64)),
            ("stabilised", stabilise(data.X)),
        ):
            value, pair = best_principal_plane(X, data.latent)
            grid[f"PCA plane, best {pair}, {features}"] = value
            for k in NEIGHBOURS:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    embedded = Isomap(n_neighbors=k).fit_transform(X)
                grid[f"Isomap k={k}, {features}"] = size(data.latent, plane_phase(embedded))
            for k in (5, 15, 30, 50):
                for distance in (0.0, 0.1, 0.5):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        embedded = umap.UMAP(
                            n_neighbors=k, min_dist=distance, random_state=0
                        ).fit_transform(X)
                    grid[f"UMAP k={k} distance={distance}, {features}"] = size(
                        data.latent, plane_phase(embedded)
                    )
            print(name, features, json.dumps(grid, indent=1), flush=True)
        best = {
            kind: max((v, key) for key, v in grid.items() if key.startswith(kind))
            for kind in ("PCA", "Isomap", "UMAP")
        }
        table[name] = {
            "best": {kind: {"value": v, "setting": key} for kind, (v, key) in best.items()},
            "grid": grid,
        }
    return table


def dreimac() -> dict[str, Any]:
    """Circular coordinates by persistent cohomology, best by the truth."""
    recordings = {name: load_recording(name) for name in POINTS}
    return {name: best_coordinates(name, data.X, data.latent) for name, data in recordings.items()}


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "synthetic": synthetic, "ours": ours, "transport": transport, "baselines": baselines,
    "dreimac": dreimac,
}  # fmt: skip
VERSIONS = {"baselines": "umap-learn", "dreimac": "dreimac version"}


def main(names: list[str]) -> None:
    for name in names or [part for part in PARTS if part != "dreimac"]:
        result = PARTS[name]()
        path = RESULTS / f"{NAME}.json"
        stored = json.loads(path.read_text()) if path.exists() else {}
        lasting = {*PARTS, *VERSIONS.values()}
        stored = {key: value for key, value in stored.items() if key in lasting}
        if name in VERSIONS:
            stored[VERSIONS[name]] = metadata.version(VERSIONS[name].removesuffix(" version"))
        print(write(NAME, {**stored, name: result}))


if __name__ == "__main__":
    main(sys.argv[1:])
