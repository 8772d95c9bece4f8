"""Domains beyond one grid: several domains in one table.

    python benchmarks/parts.py run [--seeds 0 1 2 3 4] [--only shanks] [--real FOLDER]
    python benchmarks/parts.py table

One file for each row and seed in results/parts/, so that a run that was interrupted goes on. A
row is a function of the seed that returns what was measured; `rows_of` lists them with their
targets. `mouse markers` needs the folder of real arrays (see real_arrays.py).
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import spearmanr

from _common import RESULTS
from symlift import LatentDomains
from symlift.datasets import gsn, random_orthogonal
from symlift.metrics import signal_recovery
from symlift_paper.store import machine

OUT = RESULTS / "parts"


@dataclass(frozen=True)
class Row:
    """A row of the table: what is measured, and what each number is to reach."""

    name: str
    measure: Callable[[int], dict[str, float]]
    targets: dict[str, float]


def fitted(X: NDArray, seed: int, **settings: Any) -> tuple[LatentDomains, dict[str, float]]:
    """The fit of X, and the processor seconds that it took."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        est = LatentDomains(random_state=seed, **settings).fit(X)
    return est, {"cpu_s": round(time.process_time() - start, 1), "parts": len(est.domains_)}


def in_own_part(truth: NDArray, labels: NDArray) -> float:
    """Share of the columns in their own part, parts matched to the truth one to one; columns of
    no part count as one part of their own.
    """
    true, part = np.unique(truth), np.unique(labels)
    table = np.array([[np.sum((truth == a) & (labels == b)) for b in part] for a in true])
    # those of no part have to be found as such
    for i, j in np.argwhere((true[:, None] < 0) != (part[None] < 0)):
        table[i, j] = 0
    return float(table[linear_sum_assignment(-table)].sum() / len(truth))


def order(truth: NDArray, est: LatentDomains) -> float:
    """Mean rank correlation of places with positions (part, position) in each true part."""
    at = np.full(len(truth), np.nan)
    for k, domain in enumerate(est.domains_):
        if domain.placement_ is not None:
            at[est.labels_ == k] = domain.placement_.coordinates[:, 0]
    groups = [truth[:, 0] == a for a in np.unique(truth[:, 0])]
    pairs = [(at[m & np.isfinite(at)], truth[m & np.isfinite(at), 1]) for m in groups]
    return float(np.mean([abs(spearmanr(a, b).statistic) if len(a) > 3 else 0 for a, b in pairs]))


# -- several domains in one table ------------------------------------------------------------------


def shanks(seed: int, common: float = 0.0, n: int = 4_000) -> tuple[NDArray, NDArray, NDArray]:
    """Three shanks of 16, two grids of 8x8 and 30 strangers, shuffled: rows, parts, places."""
    rng = np.random.default_rng(seed)
    shapes = [(16,), (16,), (16,), (8, 8), (8, 8)]
    fields = [gsn(n, shape, random_state=int(rng.integers(2**31))).X for shape in shapes]
    X = np.concatenate([x / x.std() for x in fields], axis=1)
    X += common * rng.normal(size=(n, 1)) * rng.uniform(0.5, 1.5, X.shape[1])
    X = np.concatenate([X, rng.normal(size=(n, 30))], axis=1)
    part = np.repeat([0, 1, 2, 3, 4, -1], [16, 16, 16, 64, 64, 30])
    place = np.concatenate([*(np.arange(x.shape[1]) for x in fields), np.zeros(30, dtype=int)])
    shuffle = rng.permutation(len(part))
    return X[:, shuffle], part[shuffle], place[shuffle]


def exact_places(part: NDArray, place: NDArray, est: LatentDomains) -> float:
    """Share of all columns that are exactly in place (strangers: in none), up to reflections."""
    right = float(np.sum((part < 0) & (est.labels_ < 0)))
    for k, domain in enumerate(est.domains_):
        if domain.placement_ is None:
            continue
        mine, grid = est.labels_ == k, domain.grid_
        point, best = domain.placement_.point, 0
        shape = (16,) if (mine.sum()) < 40 else (8, 8)
        if grid.shape != shape:
            continue
        for a in np.unique(part[mine]):
            cells = np.arange(np.prod(shape)).reshape(shape)
            turned = [cells, cells.T] if len(shape) == 2 else [cells]
            for one in turned:
                flips = [
                    one,
                    one[::-1],
                    *([one[:, ::-1], one[::-1, ::-1]] if one.ndim == 2 else []),
                ]
                for flip in flips:
                    same = flip.ravel()[np.maximum(point, 0)] == place[mine]
                    best = max(best, int(np.sum(same & (point >= 0) & (part[mine] == a))))
        right += best
    return right / len(part)


def measure_shanks(seed: int, common: float = 0.0) -> dict[str, float]:
    X, part, place = shanks(seed, common)
    est, spent = fitted(X, seed)
    return {
        "in_own_part": in_own_part(part, est.labels_),
        "exact": exact_places(part, place, est),
        **spent,
    }


def chromosomes(seed: int, n: int, lengths: tuple[int, ...]) -> tuple[NDArray, NDArray]:
    """Genotypes 0, 1, 2 of a cross: 20 markers on each chromosome (cM), recombination without
    interference, 1 % of the entries wrong, 1 % missing; rows, and (chromosome, position).
    """
    rng, tables, truth = np.random.default_rng(seed), [], []
    for number, length in enumerate(lengths):
        at = np.sort(rng.uniform(0, length, 20))
        share = 0.5 * (1 - np.exp(-2 * np.diff(at) / 100))
        genotype = np.zeros((n, 20))
        for _ in range(2):
            crossed = rng.random((n, 19)) < share
            first = rng.integers(0, 2, (n, 1))
            genotype += np.cumsum(np.concatenate([first, crossed], axis=1), axis=1) % 2
        wrong = rng.random(genotype.shape) < 0.01
        genotype[wrong] = rng.integers(0, 3, int(wrong.sum()))
        genotype[rng.random(genotype.shape) < 0.01] = np.nan
        tables.append(genotype)
        truth += [(number, x) for x in at]
    shuffle = rng.permutation(len(truth))
    return np.concatenate(tables, axis=1)[:, shuffle], np.array(truth)[shuffle]


def measure_chromosomes(seed: int) -> dict[str, float]:
    X, truth = chromosomes(seed, 300, (100, 90, 80, 70, 60))
    est, spent = fitted(X, seed)
    share = in_own_part(truth[:, 0], est.labels_)
    return {"in_own_part": share, "order": order(truth, est), **spent}


def mouse_markers(folder: Path) -> Callable[[int], dict[str, float]]:
    def measure(seed: int) -> dict[str, float]:
        data = np.load(folder / "mouse_markers.npz")
        shuffle = np.random.default_rng(12345 + seed).permutation(data["X"].shape[1])
        X, truth = data["X"][:, shuffle].astype(float), data["coords"][shuffle]
        est, spent = fitted(X, seed)
        share = in_own_part(truth[:, 0], est.labels_)
        return {"in_own_part": share, "order": order(truth, est), **spent}

    return measure


def measure_rotation(seed: int) -> dict[str, float]:
    """Two independent lines of 31 behind one dense rotation, 20,000 rows: the worse r."""
    lines = [gsn(20_000, (31,), random_state=10 * seed + k) for k in (1, 2)]
    latent = np.concatenate([line.X for line in lines], axis=1)
    X = latent @ random_orthogonal(62, random_state=seed)
    est, spent = fitted(X, seed, mixing="orthogonal")
    Y = np.split(est.transform(X), np.cumsum([d.lifter_.n_outputs for d in est.domains_])[:-1], 1)
    each = [
        max(
            (signal_recovery(line.latent, y, line.grid).r for y in Y if y.shape[1] == 31), default=0
        )
        for line in lines
    ]
    return {"r": float(min(each)), **spent}


# -- where there is one domain, or none ------------------------------------------------------------


def white_noise(seed: int) -> NDArray:
    return np.random.default_rng(seed).normal(size=(500, 200))


def slow_strangers(seed: int) -> NDArray:
    """Independent columns that drift."""
    return np.cumsum(np.random.default_rng(seed).normal(size=(500, 100)), axis=0)


def noisy_grid(seed: int) -> NDArray:
    """12x12 under noise as strong as the signal, from 300 rows."""
    x = gsn(300, (12, 12), random_state=seed).X
    return np.asarray(x + x.std() * np.random.default_rng(seed).normal(size=x.shape))


def weak_link(seed: int) -> NDArray:
    """A line of 40 whose halves are linked by a correlation of 0.3 (others: 0.9), 1,000 rows."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(1_000, 40))
    for k in range(1, 40):
        r = 0.3 if k == 20 else 0.9
        x[:, k] = r * x[:, k - 1] + np.sqrt(1 - r * r) * x[:, k]
    return np.asarray(x)


def grid_and_common_signal(seed: int) -> NDArray:
    """One 12x12 grid, 2,000 rows, under a common signal as strong as itself."""
    x = gsn(2_000, (12, 12), random_state=seed).X
    return np.asarray(x + x.std() * np.random.default_rng(seed).normal(size=(len(x), 1)))


def as_one_or_none(make: Callable[[int], NDArray], parts: int) -> Callable[[int], dict[str, float]]:
    """The share of columns in the only part, or in none."""

    def measure(seed: int) -> dict[str, float]:
        from symlift.search.links import column_links
        from symlift.search.parts import column_parts
        from symlift.search.rows import score_rows
        from symlift.search.settings import PlaceSettings

        settings, X = PlaceSettings(), make(seed)
        links = column_links(score_rows(X, np.random.default_rng(seed), settings))
        labels = column_parts(links, settings)
        return {
            "share": float(np.mean(labels == (0 if parts else -1))),
            "parts": labels.max() + 1.0,
        }

    return measure


def rows_of(real: Path | None) -> list[Row]:
    several = [
        Row("3 shanks of 16, 2 grids of 8x8, 30 strangers", measure_shanks,
            {"in_own_part": 1.0, "exact": 1.0, "cpu_s": 60}),
        Row("the same with a common signal (0.3)", lambda seed: measure_shanks(seed, 0.3),
            {"in_own_part": 1.0, "exact": 1.0, "cpu_s": 60}),
        Row("5 chromosomes of 20 markers, 300 rows", measure_chromosomes,
            {"in_own_part": 0.98, "order": 0.99, "cpu_s": 60}),
        Row("2 lines of 31 behind one rotation", measure_rotation, {"r": 0.98, "cpu_s": 60}),
        Row("white noise", as_one_or_none(white_noise, 0), {"share": 1.0}),
        Row("slow strangers", as_one_or_none(slow_strangers, 0), {"share": 1.0}),
        Row("noisy grid of 12x12", as_one_or_none(noisy_grid, 1), {"share": 1.0}),
        Row("line with a weak link", as_one_or_none(weak_link, 1), {"share": 1.0}),
        Row("grid and a common signal", as_one_or_none(grid_and_common_signal, 1), {"share": 1.0}),
    ]  # fmt: skip
    if real is not None:
        targets = {"in_own_part": 0.98, "order": 0.99, "cpu_s": 60}
        several.append(Row("mouse markers", mouse_markers(real), targets))
    return several


def record_of(row: Row, seed: int) -> Path:
    words = "".join(c if c.isalnum() else "-" for c in row.name)
    return OUT / f"{words}-{seed}.json"


def run(rows: list[Row], seeds: list[int]) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    for row in rows:
        for seed in seeds:
            path = record_of(row, seed)
            if path.exists():
                continue
            measured = {"row": row.name, "seed": seed, **row.measure(seed)}
            path.write_text(json.dumps({**measured, "machine": machine()}, indent=1) + "\n")
            print(json.dumps(measured), flush=True)


def table(rows: list[Row]) -> None:
    """Median (worst) over seeds, next to the targets."""
    for row in rows:
        records = [json.loads(path.read_text()) for path in sorted(OUT.glob("*.json"))]
        mine = [one for one in records if one["row"] == row.name]
        cells = []
        for name, target in row.targets.items():
            values = [one[name] for one in mine]
            if not values:
                continue
            worst = max(values) if name == "cpu_s" else min(values)
            sign = "≤" if name == "cpu_s" else "≥"
            cells.append(f"{name} {np.median(values):.4g} ({worst:.4g}), {sign} {target:g}")
        parts = sorted({int(one["parts"]) for one in mine if "parts" in one})
        print(f"| {row.name} | {len(mine)} | {parts} | {'; '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--only", default="")
    parser.add_argument("--real", type=Path)
    asked = parser.parse_args()
    rows = [row for row in rows_of(asked.real) if asked.only in row.name]
    if asked.what == "run":
        run(rows, asked.seeds)
    else:
        table(rows)


if __name__ == "__main__":
    main()
