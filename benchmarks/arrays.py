"""Columns as they really come: one record for each array and seed.

    python benchmarks/arrays.py run [--only natural] [--seeds 3]   measure what has no record yet
    python benchmarks/arrays.py summary                            the table of docs/measured.md
    python benchmarks/arrays.py table                              median and worst, and targets
    python benchmarks/arrays.py run --textures                     on the pictures that thresholds
                                                                   were set on (kept apart)
    python benchmarks/arrays.py grids [--only torus]               25 arrays with unknown grids
    python benchmarks/arrays.py grid-table                         the grids that "auto" proposed

A record holds the share of living columns at their true point (up to the grid's symmetries and,
where living columns leave border rows empty, one translation), r and r_detail of the field, the
mean confidence, processor seconds, peak memory, what the engine says of itself, machine and
versions. It is written at once to results/arrays/ROW-SEED.json and skipped when it is there.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import _array_cases as cases
import _grid_cases as grid_cases
from _array_cases import Case
from _common import RESULTS
from symlift import LatentDomain, Placement
from symlift.core.domain import Domain
from symlift.core.grid import Grid
from symlift.errors import FitWarning
from symlift.solvers.fast.propose import propose_grid
from symlift_paper.store import machine

FOLDER = RESULTS / "arrays"
N = 20_000
Maker = Callable[[np.random.Generator], Case]


# -- what is measured: one adaptor -----------------------------------------------------------------


@dataclass(frozen=True)
class Fit:
    """What a fit gives: placement, channels, the field of rows, and what it says of itself."""

    placement: Any
    n_channels: int
    field: NDArray
    verdict: dict[str, Any]


def fit_array(X: NDArray, grid: Grid, seed: int) -> Fit:
    """A fit as a user makes it, every setting at its default."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        est = LatentDomain(grid=grid, random_state=seed).fit(X)
    e, d = est.evidence_, X.shape[1]
    verdict = {
        "chosen": est.trace_.chosen,
        "carried": e.carried_by,
        "explained": e.explained,
        "ceiling": e.ceiling,
        "accepted": e.found,
    }
    placement = est.placement_ or Placement.at_points(
        grid, np.full(d, -1), reason="unplaced", confidence=0.0
    )
    return Fit(placement, est.n_channels_, est.transform(X[:3_000]), verdict)


# -- rows ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """How to make the array, and what is asked: (field of the record, least median, least worst),
    seconds, megabytes.
    """

    make: Maker
    asked: tuple[tuple[str, float, float], ...]
    seconds: float
    megabytes: float | None = None


def rows(names: tuple[str, ...] = cases.PHOTOGRAPHS) -> dict[str, Row]:
    """The table."""

    def natural(
        damage: Callable[[Case, np.random.Generator], Case] | None = None,
        n: int = N,
        side: int = 16,
    ) -> Maker:
        def make(rng: np.random.Generator) -> Case:
            case = cases.natural(side, n, names)(rng)
            return damage(case, rng) if damage else case

        return make

    placed = (("placed", 1.0, 1.0),)
    filled = (("placed", 1.0, 1.0), ("r_filled", 0.9, 0.9))
    strangers = (("placed", 0.99, 0.99), ("precision", 0.95, 0.95), ("recall", 0.95, 0.95))
    channels = (("placed", 1.0, 1.0), ("channels", 0.99, 0.99))
    number = (("r", 0.95, 0.95), ("r_detail", 0.9, 0.9))
    believed = (("placed", 1.0, 1.0), ("accepted", 1.0, 1.0))
    return {
        "natural 16x16": Row(natural(), placed, 6),
        "one dead column": Row(natural(lambda c, g: cases.dead(c, 0.0, g)), filled, 6),
        "10 % dead": Row(natural(lambda c, g: cases.dead(c, 0.1, g)), filled, 6),
        "5 % of points missing": Row(natural(lambda c, g: cases.missing(c, 0.05, g)), filled, 6),
        "one duplicate": Row(natural(lambda c, g: cases.duplicated(c, 1, g)), strangers, 10),
        "+ 10 % noise columns": Row(
            natural(lambda c, g: cases.with_noise(c, 0.1, g)), strangers, 10
        ),
        "10 % replaced by noise": Row(
            natural(lambda c, g: cases.with_noise(c, 0.1, g, instead=True)), strangers, 10
        ),
        "an index column": Row(natural(cases.with_index), strangers, 10),
        "one column x 1000": Row(natural(cases.scaled), strangers, 10),
        "colour 12x12 x 3": Row(lambda g: cases.colour(12, N, g), channels, 30),
        "gradients 12x12 x 2": Row(lambda g: cases.gradients(12, N, g, names), channels, 30),
        "bits of natural 9x9": Row(lambda g: cases.bits(9, N, g, names), number, 60),
        "bits of natural 12x12": Row(lambda g: cases.bits(12, N, g, names), number, 60),
        "MNIST 28x28": Row(lambda g: cases.mnist(10_000, g), (("placed", 0.97, 0.97),), 60),
        "digits 8x8": Row(cases.digits, (("placed", 0.9, 0.9),), 10),
        "faces 9x9": Row(cases.faces, (("placed", 0.9, 0.9),), 10),
        "noise at -10 dB": Row(natural(lambda c, g: cases.noisy(c, 10, g)), believed, 5),
        "noise at 0 dB": Row(natural(lambda c, g: cases.noisy(c, 0, g)), believed, 5),
        "signal at -5 dB": Row(natural(lambda c, g: cases.noisy(c, -5, g)), believed, 5),
        "signal at -10 dB": Row(natural(lambda c, g: cases.noisy(c, -10, g)), believed, 5),
        "1 % of rows x 100": Row(natural(cases.wild_rows), believed, 5),
        "0.1 % of entries x 1000": Row(natural(cases.wild_entries), believed, 5),
        "gains and offsets": Row(natural(cases.gains), believed, 5),
        "200 rows": Row(natural(n=200), (("placed", 0.99, 0.95),), 5),
        "100 rows": Row(natural(n=100), (("placed", 0.8, 0.0),), 5),
        "5 % NaN": Row(natural(lambda c, g: cases.not_a_number(c, 0.05, g)), placed, 10),
        "300 sensors": Row(
            lambda g: cases.sensors(300, 5_000, g), (("r2", 0.98, 0.98), ("r", 0.95, 0.95)), 20
        ),
        "shot noise 12x12x12": Row(
            lambda g: cases.shot_noise((12, 12, 12), N, g), placed, 30, 1_500
        ),
        "natural 64x64": Row(natural(side=64), (("placed", 0.999, 0.999),), 60, 4_000),
    }


# -- one record ------------------------------------------------------------------------------------


def measure(row: Row, seed: int) -> dict[str, Any]:
    """Make the array of one seed, fit it, and compare with the truth."""
    case = row.make(np.random.default_rng(seed))
    before, wall = time.process_time(), time.perf_counter()
    fit = fit_array(case.X, case.grid, seed)
    record: dict[str, Any] = {
        "seed": seed,
        "n": len(case.X),
        "d": case.X.shape[1],
        "grid": str(case.grid),
        "seconds": round(time.process_time() - before, 2),
        "wall_seconds": round(time.perf_counter() - wall, 2),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "n_channels": fit.n_channels,
        **fit.verdict,
        "accepted": float(fit.verdict["accepted"]),
    }
    share, orientation, shift = cases.placed(case.point, fit.placement.point, case.grid)
    at = fit.placement.point >= 0
    record["placed"] = round(share, 5)
    record["confidence"] = round(float(fit.placement.confidence[at].mean()), 4) if at.any() else 0.0
    record |= _strangers(case, fit) | _channels(case, fit) | _field(case, fit, orientation, shift)
    return record


def _strangers(case: Case, fit: Fit) -> dict[str, float]:
    """Precision and recall of the columns that were named as noise, index or duplicate."""
    reason = fit.placement.reason
    named = {int(i) for i in np.flatnonzero(np.isin(reason, ["noise", "index"]))}
    doubled = {
        frozenset((int(i), int(fit.placement.twin[i])))
        for i in np.flatnonzero(reason == "duplicate")
    }
    true = case.strangers | {frozenset(pair) for pair in case.twins.items()}
    reported = named | doubled
    hit = len(reported & true)
    return {
        "precision": hit / len(reported) if reported else 1.0,
        "recall": hit / len(true) if true else 1.0,
    }


def _channels(case: Case, fit: Fit) -> dict[str, float]:
    """Share of the points whose columns have the channels that they have elsewhere, under the best
    matching of channels.
    """
    if case.n_channels == 1:
        return {}
    from scipy.optimize import linear_sum_assignment

    at = (fit.placement.channel >= 0) & (case.point >= 0)
    counts = np.zeros((case.n_channels, max(fit.n_channels, case.n_channels)))
    np.add.at(counts, (case.channel[at], fit.placement.channel[at]), 1)
    match = np.full(counts.shape[1], -1)
    true, assigned = linear_sum_assignment(-counts)
    match[assigned] = true
    wrong = np.unique(case.point[at][match[fit.placement.channel[at]] != case.channel[at]])
    return {
        "channels": 1 - len(wrong) / case.grid.size if fit.n_channels == case.n_channels else 0.0
    }


def _field(case: Case, fit: Fit, orientation: Any, shift: NDArray) -> dict[str, float]:
    """r and r_detail of the field, and of its filled points alone, under the alignment of the
    columns.
    """
    if case.coordinates is not None:
        return _scattered(case, fit)
    width = fit.n_channels
    if (
        case.latent is None
        or orientation is None
        or width > 1
        or case.latent.shape[1] != case.grid.size
        or shift.any()
    ):
        return {}
    turned = orientation.reorient(fit.field.reshape(-1, *case.grid.shape)).reshape(
        len(fit.field), -1
    )
    latent = case.latent[: len(turned)] - case.latent.mean(axis=0)
    empty = fit.placement.coverage(1)[None] == 0
    hole = orientation.reorient(empty).ravel()
    out = {
        "r": abs(_pearson(latent, turned)),
        "r_detail": abs(
            _pearson(
                latent - latent.mean(axis=1, keepdims=True),
                turned - turned.mean(axis=1, keepdims=True),
            )
        ),
    }
    if hole.any() and not hole.all():
        level, turned_level = (z[:, ~hole].mean(axis=1, keepdims=True) for z in (latent, turned))
        out["r_filled"] = _pearson(latent[:, hole] - level, turned[:, hole] - turned_level)
    return {key: round(value, 5) for key, value in out.items()}


def _scattered(case: Case, fit: Fit) -> dict[str, float]:
    """R² of coordinates after symmetries, a translation and a scale for each axis; r of the field
    on the grid.
    """
    true, coordinates = case.coordinates, fit.placement.coordinates
    if true is None or case.latent is None:
        return {}
    at = ~np.isnan(coordinates).any(axis=1)
    best = {"r2": 0.0, "r": 0.0}
    for orientation in case.grid.orientations():
        y = coordinates[at][:, list(orientation.axes)]
        left = total = 0.0
        for axis in range(case.grid.ndim):
            slope, offset = np.polyfit(y[:, axis], true[at, axis], 1)
            slope = abs(slope) * (-1 if orientation.flips[axis] else 1)
            offset = float(np.mean(true[at, axis] - slope * y[:, axis]))
            left += float(np.sum((true[at, axis] - slope * y[:, axis] - offset) ** 2))
            total += float(np.sum((true[at, axis] - true[at, axis].mean()) ** 2))
        turned = orientation.reorient(
            fit.field[:, : case.grid.size].reshape(-1, *case.grid.shape)
        ).reshape(len(fit.field), -1)
        best["r2"] = max(best["r2"], 1 - left / total)
        best["r"] = max(best["r"], abs(_pearson(case.latent[: len(turned)], turned)))
    return {key: round(value, 5) for key, value in best.items()}


def _pearson(a: NDArray, b: NDArray) -> float:
    a, b = (np.asarray(z, dtype=np.float64) - z.mean(dtype=np.float64) for z in (a, b))
    return float(np.vdot(a, b) / max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-300))


def _path(name: str, seed: int, textures: bool) -> Path:
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower().replace("%", "percent")).strip("-")
    return FOLDER / ("textures" if textures else "") / f"{slug}-{seed}.json"


def run(only: str, seeds: int, textures: bool) -> None:
    """Every record that is missing, each in a process of its own, so that its peak memory is its
    own.
    """
    for name in rows():
        for seed in range(seeds):
            if only in name and not _path(name, seed, textures).exists():
                flags = ["--textures"] if textures else []
                subprocess.run(
                    [sys.executable, __file__, "one", "--only", name, "--seed", str(seed), *flags],
                    check=False,
                )


def one(name: str, seed: int, textures: bool) -> None:
    """One record, written at once."""
    row = rows(cases.TEXTURES if textures else cases.PHOTOGRAPHS)[name]
    stamp = {"row": name, "date": datetime.now(UTC).strftime("%Y-%m-%d"), "machine": machine()}
    record = {**stamp, **measure(row, seed)}
    path = _path(name, seed, textures)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n")
    shown = {
        k: record[k]
        for k in ("placed", "r", "r_detail", "r_filled", "r2", "channels", "precision", "recall")
        if k in record
    }
    print(
        f"{name:26} {seed}  {shown}  confidence {record['confidence']}  {record['seconds']} s",
        flush=True,
    )


def table(textures: bool) -> None:
    """Median and worst of every row, next to what is asked."""
    print(
        "| array | measured | median | worst | asked (median, worst) | confidence | CPU s, slowest"
        " | asked | peak MB |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name, row in rows().items():
        records = [
            json.loads(p.read_text())
            for s in range(100)
            if (p := _path(name, s, textures)).exists()
        ]
        for field, median, worst in row.asked if records else ():
            values = [float(record.get(field, 0.0)) for record in records]
            cells = [
                f"{statistics.median(values):.4f}",
                f"{min(values):.4f}",
                f"{median:g}, {worst:g}",
            ]
            sure = statistics.median(record["confidence"] for record in records)
            slow, most = (
                max(record["seconds"] for record in records),
                max(record["peak_rss_mb"] for record in records),
            )
            met = (
                statistics.median(values) >= median and min(values) >= worst and slow <= row.seconds
            )
            cells += [f"{sure:.2f}", f"{slow:.1f}", f"{row.seconds:g}", f"{most}"]
            print(f"| {name} | {field}{'' if met else ' (not met)'} | " + " | ".join(cells) + " |")


def summary() -> None:
    """The table of docs/measured.md: rows that have all three records."""
    print("| array | placed, median (worst of 3) | processor seconds, slowest |")
    print("|---|---|---|")
    for name, row in rows().items():
        records = [
            json.loads(p.read_text()) for s in range(3) if (p := _path(name, s, False)).exists()
        ]
        if len(records) == 3:
            # sensors at random places are on no point: R² of their coordinates
            field = "r2" if row.asked[0][0] == "r2" else "placed"
            values = [record[field] for record in records]
            slow = max(record["seconds"] for record in records)
            named = f"{name}, R²" if field == "r2" else name
            print(f"| {named} | {statistics.median(values):.3f} ({min(values):.3f}) | {slow:.1f} |")


# -- grids that nobody gave ------------------------------------------------------------------------

# a grid is said with confidence from here on: below, `fit` names the runner-up
SURE = 0.65


def grid_record(name: str, seed: int) -> dict[str, Any]:
    """What grid="auto" makes of one array: right, unsure, or wrong; dense ones next to the fit on
    the true grid.
    """
    X, grid = grid_cases.CASES[name](np.random.default_rng(seed))
    before = time.process_time()
    proposal = propose_grid(X, np.random.default_rng(seed))
    seconds = time.process_time() - before
    proposed = None if proposal is None else proposal.grid
    right = (
        (proposed is None)
        if grid is None
        else proposed is not None and _axes(proposed) == _axes(grid)
    )
    sure = proposed is not None and (proposed.confidence or 0.0) >= SURE
    record = {
        "seed": seed,
        "n": len(X),
        "d": X.shape[1],
        "true": None if grid is None else _axes(grid),
        "found": None if proposed is None else _axes(proposed),
        "confidence": None if proposed is None else proposed.confidence,
        "candidates": (
            []
            if proposal is None
            else [[c.shape, c.periodic, c.share] for c in proposal.candidates[:4]]
        ),
        "outcome": "right" if right else "wrong" if sure else "unsure",
        "seconds": round(seconds, 2),
    }
    if "mixed" in name and grid is not None:
        before = time.process_time()
        fit_array(X, grid, seed)
        record["fit_seconds"] = round(time.process_time() - before, 2)
    return record


def _axes(grid: Domain) -> list[list[Any]]:
    """Axes of a grid in no order: which is first cannot be known."""
    if not isinstance(grid, Grid):
        return [[str(grid), False]]
    return sorted([n, wraps] for n, wraps in zip(grid.shape, grid.periodic, strict=True))


def run_grids(only: str, seeds: int) -> None:
    """Every record of a grid that is missing."""
    for name in grid_cases.CASES:
        for seed in range(seeds):
            path = _path(f"grid {name}", seed, False)
            if only in name and not path.exists():
                stamp = {
                    "row": name,
                    "date": datetime.now(UTC).strftime("%Y-%m-%d"),
                    "machine": machine(),
                }
                record = {**stamp, **grid_record(name, seed)}
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(record, indent=1) + "\n")
                shown = f"{record['outcome']:7} found {record['found']} ({record['confidence']})"
                print(f"{name:32} {seed}  {shown}  {record['seconds']} s", flush=True)


def grid_table() -> None:
    """Outcomes of all seeds."""
    print("| array | columns | outcome of each seed | confidence, median | CPU s, slowest |")
    print("|---|---|---|---|---|")
    total = {"right": 0, "unsure": 0, "wrong": 0}
    for name in grid_cases.CASES:
        records = [
            json.loads(p.read_text())
            for s in range(100)
            if (p := _path(f"grid {name}", s, False)).exists()
        ]
        if not records:
            continue
        outcomes = [record["outcome"] for record in records]
        for outcome in outcomes:
            total[outcome] += 1
        sure = [record["confidence"] for record in records if record["confidence"] is not None]
        cells = [
            str(records[0]["d"]),
            ", ".join(outcomes),
            f"{statistics.median(sure):.2f}" if sure else "none",
        ]
        print(
            f"| {name} | {' | '.join(cells)} | {max(record['seconds'] for record in records):.1f} |"
        )
    print("\n" + ", ".join(f"{count} {outcome}" for outcome, count in total.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["run", "one", "table", "summary", "grids", "grid-table"])
    parser.add_argument("--only", default="")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--textures", action="store_true")
    arguments = parser.parse_args()
    if arguments.what == "run":
        run(arguments.only, arguments.seeds, arguments.textures)
    elif arguments.what == "one":
        one(arguments.only, arguments.seed, arguments.textures)
    elif arguments.what == "summary":
        summary()
    elif arguments.what == "grids":
        run_grids(arguments.only, arguments.seeds)
    elif arguments.what == "grid-table":
        grid_table()
    else:
        table(arguments.textures)


if __name__ == "__main__":
    main()
