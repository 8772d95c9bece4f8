"""Rings and tori in populations: recovery of two angles, verdicts, and persistent cohomology.

    python benchmarks/populations.py [recovery|verdicts|verdicts:KIND|dreimac]…

Without a name: ``recovery`` and ``verdicts``. ``verdicts:none`` repeats one kind only.

``recovery``: modules of 60 grid cells, 5,000 rows, at several noise levels; five draws each.
``verdicts``: populations on a ring, a torus, an open plane and on nothing, twenty draws each, every
one fitted as a ring and as a torus. Thresholds of the solver and of its diagnosis were set on other
draws (seeds below 200) of fewer families; the draws here (seeds from 2,000), the families marked
*unseen*, and their settings had no part in that. ``dreimac`` needs DREiMac 0.3.2, in an environment
of its own: circular coordinates for rings, toroidal ones for tori, on counts and on stabilised
rows, over a grid of settings, of which the best *by the truth* is kept. Recordings are read from
the folder that ``SYMLIFT_DATA`` names.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Sequence
from importlib import metadata
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _common import RESULTS, write
from symlift import LatentDomain
from symlift.datasets import load_recording, plane_population, ring_population, torus_population
from symlift.errors import FitWarning
from symlift.metrics import circular_correlation, torus_correlation
from symlift.solvers.ring.search import stabilise
from symlift.storage.strict_json import read_json

NAME = "populations"
SEEDS = range(2_000, 2_005)
DRAWS = range(2_100, 2_120)
NOISE: dict[str, dict[str, Any]] = {
    "rate 16": {"rate": 16.0},
    "rate 8 (the stated noise)": {"rate": 8.0},
    "rate 4": {"rate": 4.0},
    "rate 8, strong gain and speed": {"rate": 8.0, "gain": 0.6, "speed": 0.6},
    "rate 8, square lattice": {"rate": 8.0, "hexagonal": False},
}
GRIDS: dict[str, tuple[int, ...]] = {"ring": (30,), "torus": (20, 20)}


def fit(X: NDArray, domain: str, seed: int) -> LatentDomain:
    """Ours, as anyone would call it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return LatentDomain(
            grid=GRIDS[domain], periodic=True, solver="ring", random_state=seed
        ).fit(X)


def recovery() -> dict[str, Any]:
    """Circular correlations of both angles, the worse of them for each draw."""
    table: dict[str, Any] = {}
    for name, settings in NOISE.items():
        draws, seconds = [], []
        for seed in SEEDS:
            data = torus_population(5_000, 60, random_state=seed, **settings)
            start = time.perf_counter()
            est = fit(data.X, "torus", seed)
            seconds.append(time.perf_counter() - start)
            draws.append([round(v, 4) for v in torus_correlation(data.latent, est.phase(data.X))])
        worse = [min(pair) for pair in draws]
        table[name] = {
            "settings": settings,
            "spikes": round(float(data.X.mean()), 2),
            "draws": draws,
            "seeds": list(SEEDS),
            "median": round(float(np.median(worse)), 4),
            "worst": min(worse),
            "seconds": round(float(np.median(seconds)), 1),
        }
        print(name, table[name], flush=True)
    return table


# -- verdicts --------------------------------------------------------------------------------------


def population(kind: str, seed: int) -> tuple[str, NDArray]:
    """One population of ``kind`` and the name of its family; settings are drawn by the seed."""
    rng = np.random.default_rng(seed)
    n, units = int(rng.choice([3_000, 5_000])), int(rng.choice([40, 60, 90]))
    common: dict[str, Any] = {"gain": float(rng.uniform(0, 0.5)), "random_state": seed}
    pick, extra = seed % 4, dict[str, Any]()
    if kind == "ring":
        family = ("broad", "sharp", "few stimuli (unseen)", "strong movement")[pick]
        extra = (
            {"concentration": 1.5},
            {"concentration": 5.0},
            {"stimuli": 12},
            {"movement": 0.6},
        )[pick]
        return family, ring_population(n, units, **extra, **common).X
    if kind == "torus":
        family = ("hexagonal", "square", "broad tuning (unseen)", "fast runs")[pick]
        extra = ({}, {"hexagonal": False}, {"sharpness": 3.0}, {"speed": 0.5})[pick]
        return (
            family,
            torus_population(
                5_000, max(units, 60), rate=float(rng.uniform(7, 14)), **extra, **common
            ).X,
        )
    if kind == "plane":
        width = (0.15, 0.2, 0.25, 0.3)[pick]
        family = f"fields of {width}" + (" (unseen)" if pick in (0, 2, 3) else "")
        return family, plane_population(n, units, rate=6.0, width=width, **common).X
    family = ("independent", "factors", "gain alone", "latent states")[pick]
    return family, _nothing(family, n, units, rng)


def _nothing(family: str, n: int, units: int, rng: np.random.Generator) -> NDArray[np.float32]:
    strength = 4 * np.exp(0.5 * rng.normal(size=units))
    if family == "independent":
        rates = np.broadcast_to(strength, (n, units))
    elif family == "factors":
        count = int(rng.integers(3, 9))
        mixed = rng.normal(size=(n, count)) @ rng.normal(size=(count, units)) * 0.35
        rates = strength / 2 * np.exp(np.clip(mixed, -5, 3))
    elif family == "gain alone":
        runs = 0.5 * np.minimum(rng.exponential(size=n), 5)
        rates = strength * np.exp(
            np.clip(
                0.5 * rng.normal(size=n)[:, None] + np.outer(runs, rng.normal(size=units)), -5, 3
            )
        )
    else:
        states = 4 * np.exp(0.8 * rng.normal(size=(int(rng.integers(5, 12)), units)))
        rates = states[rng.integers(len(states), size=n)]
    return rng.poisson(rates).astype(np.float32)


def judge(kind: str, X: NDArray, seed: int) -> dict[str, Any]:
    """Verdicts of both fits, whether they are right, and whether the next step names the domain."""
    entry: dict[str, Any] = {}
    for domain in GRIDS:
        est = fit(X, domain, seed)
        diagnosis = est.diagnose(X)
        steps = " ".join(step.text for step in diagnosis.next_steps)
        other = {"ring": "ring", "torus": "torus", "plane": "open plane"}.get(kind)
        entry[domain] = {
            "verdict": diagnosis.verdict.value,
            "confidence": round(diagnosis.confidence, 3),
            "right": diagnosis.verdict.value == ("present" if domain == kind else "absent"),
            "named": None if domain == kind or other is None else other in steps,
            "evidence": [
                est.evidence_.agreement,
                est.evidence_.roundness,
                est.evidence_.ahead,
                est.evidence_.domain,
            ],
        }
    return entry


def verdicts(kinds: Sequence[str] = ("ring", "torus", "plane", "none")) -> dict[str, Any]:
    """Twenty draws of each kind; right where both fits are."""
    table: dict[str, Any] = {}
    for kind in kinds:
        draws = []
        for seed in DRAWS:
            family, X = population(kind, seed)
            draws.append({"seed": seed, "family": family, **judge(kind, X, seed)})
            print(kind, draws[-1], flush=True)
        both = [all(draw[domain]["right"] for domain in GRIDS) for draw in draws]
        named = [
            draw[domain]["named"]
            for draw in draws
            for domain in GRIDS
            if draw[domain]["named"] is not None
        ]
        table[kind] = {
            "right": sum(both),
            "of": len(both),
            "named": sum(named),
            "named_of": len(named),
            "draws": draws,
        }
        print(kind, sum(both), "of", len(both), "named", sum(named), "of", len(named), flush=True)
    return table


# -- persistent cohomology -------------------------------------------------------------------------


def dreimac() -> dict[str, Any]:
    """Circular and toroidal coordinates, the whole grid of settings, the best by the truth."""
    sets: dict[str, tuple[NDArray, NDArray]] = {}
    for name, settings in NOISE.items():
        data = torus_population(5_000, 60, random_state=SEEDS[0], **settings)
        sets[f"torus, {name}"] = (data.X, data.latent)
    for name in ("head-direction", "drifting-gratings"):
        data = load_recording(name)
        sets[name] = (data.X, data.latent)
    return {name: best_coordinates(name, X, truth) for name, (X, truth) in sets.items()}


def best_coordinates(name: str, X: NDArray, truth: NDArray) -> dict[str, Any]:
    """DREiMac's coordinates of one set, with every setting."""
    grid: dict[str, float] = {}
    for features, rows in (("counts", X.astype(np.float64)), ("stabilised", stabilise(X))):
        for components in (None, 6):
            for landmarks in (200, 400):
                label = f"{features}, {components or 'all'} components, {landmarks} landmarks"
                grid |= {
                    f"{label}, {key}": value
                    for key, value in _coordinates(rows, truth, components, landmarks).items()
                }
    best = max(grid, key=lambda key: grid[key])
    print(name, grid[best], best, flush=True)
    return {"best by the truth": grid[best], "setting": best, "grid": grid}


def _coordinates(
    rows: NDArray, truth: NDArray, components: int | None, landmarks: int
) -> dict[str, float]:
    from dreimac import CircularCoords, ToroidalCoords
    from sklearn.decomposition import PCA

    points = rows if components is None else PCA(components).fit_transform(rows)
    warnings.simplefilter("ignore")
    kind = CircularCoords if truth.ndim == 1 else ToroidalCoords
    coordinates, values = kind(points, landmarks, prime=41), {}
    for share, standard in product((0.5, 0.9), (True, False)):
        options = {"perc": share, "standard_range": standard}
        try:
            if truth.ndim == 1:
                value = abs(
                    circular_correlation(
                        truth, coordinates.get_coordinates(cocycle_idx=0, **options)
                    )
                )
            else:
                both = np.asarray(coordinates.get_coordinates(cocycle_idxs=[0, 1], **options))
                value = min(torus_correlation(truth, both.T))
        except Exception as error:  # a setting that does not run there counts as none, and says so
            value = 0.0
            print("   no coordinates:", " ".join(str(error).split()), flush=True)
        values[f"share {share}, {'standard' if standard else 'wide'} range"] = round(
            float(value), 4
        )
    return values


PARTS = {"recovery": recovery, "verdicts": verdicts, "dreimac": dreimac}


def main(names: list[str]) -> None:
    for part in names or ["recovery", "verdicts"]:
        path = RESULTS / f"{NAME}.json"
        before = read_json(path) if path.exists() else {}
        name, _, kind = part.partition(":")
        result = before["verdicts"] | verdicts((kind,)) if kind else PARTS[name]()
        parts = {
            key: value for key, value in before.items() if key in PARTS or key == "dreimac version"
        }
        if name == "dreimac":
            parts["dreimac version"] = metadata.version("dreimac")
        print(write(NAME, {**parts, name: result}))


if __name__ == "__main__":
    main(sys.argv[1:])
