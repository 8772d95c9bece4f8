"""Dense mixings of digits, garments, photographs, decays, linear processes and pulses.

    python benchmarks/dense.py run [--only mnist] [--seeds 5]   measure what has no record yet
    python benchmarks/dense.py table                            median, worst and targets
    python benchmarks/dense.py nothing [--seeds 3]              is any of twelve fields without a
                                                                domain believed?

Every (row, seed) is a file of its own in results/dense, written at once and skipped when present. A
seed fixes data, mixing and solver; the solver sees the observations and the grid. n = 40,000 rows
and 2 % noise unless the row says otherwise. MNIST is read from the folder that SYMLIFT_DATA names,
Fashion-MNIST from Debian's package dataset-fashion-mnist, a second collection of photographs from
its package mate-backgrounds.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dense_fields as fields
from _common import RESULTS, write
from symlift import LatentDomain
from symlift.datasets import Observations
from symlift.errors import FitWarning
from symlift.metrics import signal_recovery
from symlift.storage.atomic import write_atomically
from symlift_paper.store import machine

N = 40_000
FOLDER = RESULTS / "dense"
MOST_SEEDS = 10


@dataclass(frozen=True)
class Row:
    """How data are made from a seed, and what to reach: median and worst of r (of r_detail for
    images), seconds.
    """

    make: Callable[[int], Observations]
    median: float
    worst: float | None
    seconds: float
    image: bool = False
    seeds: int = 5


def rows() -> dict[str, Row]:
    """Every row of the table."""
    table: dict[str, Row] = {}
    for side, median, worst, seconds in (
        (8, 0.985, 0.96, 30),
        (12, 0.975, 0.95, 150),
        (15, 0.96, 0.9, 600),
    ):
        make = partial(fields.digits, side, N)
        table[f"MNIST {side}x{side}"] = Row(
            make, median, worst, seconds, image=True, seeds=5 if side < 15 else 3
        )
    for side, median, worst, seconds in ((8, 0.98, 0.95, 30), (12, 0.95, 0.9, 150)):
        table[f"Fashion-MNIST {side}x{side}"] = Row(
            partial(fields.garments, side, N), median, worst, seconds, image=True
        )
    for side, median, worst, seconds in ((8, 0.9, 0.8, 60), (12, 0.8, 0.7, 300)):
        table[f"photographs {side}x{side}"] = Row(
            partial(fields.patches, side, N), median, worst, seconds, image=True
        )
    for shape in ((9, 13), (7, 16)):
        for collection, of in (("scikit-image", ""), ("mate", " of mate-backgrounds")):
            make = partial(fields.patches, shape, N, collection=collection)
            name = f"photographs{of} {shape[0]}x{shape[1]}"
            table[name] = Row(make, 0.95, 0.9, 300, image=True, seeds=3)
    for name, periodic in (("line", False), ("ring", True)):
        table[f"decays, {name} 63"] = Row(partial(fields.decays, 63, periodic, N), 0.99, 0.97, 60)
    for name, kind, condition in (
        ("AR(1), Laplace", "laplace", 1.0),
        ("MA(3), exponential", "exponential", 1.0),
        ("AR(1), Bernoulli-Gauss", "bernoulli-gauss", 1.0),
        ("AR(1), Laplace, condition 4", "laplace", 4.0),
    ):
        make = partial(fields.linear_process, kind, N, condition=condition)
        table[f"{name}, line 50"] = Row(make, 0.97, 0.93, 60)
    table["shot noise, line 255"] = Row(partial(fields.shot_noise, 255, N), 0.99, None, 180)
    table["shot noise, 6x6x6"] = Row(partial(fields.shot_noise, (6, 6, 6), N), 0.99, None, 120)
    for basis in ("gaussian", "legendre"):
        for condition, median in ((10.0, 0.995), (30.0, 0.985)):
            make = partial(fields.shot_noise, 63, N, basis=basis, condition=condition)
            table[f"{basis} 63, condition {condition:g}"] = Row(make, median, None, 90)
    table["piecewise constant, line 40"] = Row(
        partial(fields.piecewise_constant, N), 0.95, None, 60
    )
    table["piecewise constant, line 40, n = 2000"] = Row(
        partial(fields.piecewise_constant, 2_000), 0.95, None, 60, seeds=10
    )
    table["gaussian 63, n = 1500"] = Row(partial(fields.shot_noise, 63, 1_500), 0.95, 0.90, 60)
    table["gaussian 63, n = 5000"] = Row(partial(fields.shot_noise, 63, 5_000), 0.985, None, 60)
    table["legendre 63, text, DST-I"] = Row(partial(fields.text_wavelets, N), 0.9, None, 120)
    return table


def measure(data: Observations, seed: int) -> dict[str, Any]:
    """Fit and score one data set."""
    estimator = LatentDomain(
        grid=data.grid.shape, periodic=data.grid.periodic, solver="fast", random_state=seed
    )
    start, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        estimator.fit(data.X)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    recovery = signal_recovery(data.latent, estimator.transform(data.X), data.grid)
    return {
        "r": round(float(recovery.r), 5),
        "r_detail": round(float(recovery.r_detail), 5),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2),  # what a machine that nobody else uses would take on one core
        "chosen": estimator.trace_.chosen,
        "evidence": asdict(estimator.evidence_),
    }


def place(name: str, seed: int) -> Path:
    """Where the record of one row and seed is kept."""
    return FOLDER / f"{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}_{seed}.json"


def run(only: str, seeds: int | None) -> None:
    """Measure every record that is not there yet; the first seeds of all rows first."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for seed in range(MOST_SEEDS):
        for name, row in rows().items():
            path = place(name, seed)
            if only not in name or seed >= min(row.seeds, seeds or MOST_SEEDS) or path.exists():
                continue
            record = {
                "row": name,
                "seed": seed,
                **measure(row.make(seed), seed),
                "date": datetime.now(UTC).strftime("%Y-%m-%d"),
                "machine": machine(),
                "python": platform.python_version(),
                "versions": {
                    package: version(package) for package in ("numpy", "scipy", "python-picard")
                },
            }
            with write_atomically(path) as temporary:
                temporary.write_text(json.dumps(record, indent=1) + "\n")
            accepted = record["evidence"]["found"]
            print(
                f"{name:36} seed {seed}: r {record['r']:.4f}  detail {record['r_detail']:.4f}  "
                f"{record['seconds']:.1f} s  {record['chosen']}{'' if accepted else ', warns'}",
                flush=True,
            )


def table() -> None:
    """What is kept, next to the targets."""
    print(
        "| row | to reach (worst), seconds | median (worst) | r, median | seconds, of CPU | warned"
        " | seeds |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, row in rows().items():
        records = [
            json.loads(p.read_text())
            for p in (place(name, seed) for seed in range(MOST_SEEDS))
            if p.exists()
        ]
        target = f"{row.median}" + (f" ({row.worst})" if row.worst else "") + f", {row.seconds:g} s"
        if not records:
            print(f"| {name} | {target} | not measured | | | | |")
            continue
        figure = [record["r_detail" if row.image else "r"] for record in records]
        r, seconds = ([record[key] for record in records] for key in ("r", "seconds"))
        cpu = [record.get("cpu_seconds", record["seconds"]) for record in records]
        warned = sum(not record["evidence"]["found"] for record in records)
        print(
            f"| {name} | {target} | {statistics.median(figure):.4f} ({min(figure):.4f}) |"
            f" {statistics.median(r):.4f} | {statistics.median(seconds):.0f},"
            f" {statistics.median(cpu):.0f} | {warned} | {len(records)} |"
        )


def nothing(seeds: int) -> None:
    """Whether fields without a domain are believed; the table is kept as `dense_nothing.json`."""
    table: dict[str, list[dict[str, Any]]] = {}
    for seed in range(seeds):
        for name, X, shape, periodic in fields.without_domain(12_000, seed):
            estimator = LatentDomain(shape, periodic=periodic, solver="fast", random_state=seed)
            cpu = time.process_time()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                estimator.fit(X)
            record = {
                "seed": seed,
                "found": estimator.evidence_.found,
                "warned": any(issubclass(one.category, FitWarning) for one in caught),
                "repeated": estimator.evidence_.repeated,
                "confidence": estimator.evidence_.confidence,
                "chosen": estimator.trace_.chosen,
                "cpu_seconds": round(time.process_time() - cpu, 1),
            }
            table.setdefault(name, []).append(record)
            print(f"{name:42} seed {seed}: {record}", flush=True)
    write("dense_nothing", {"table": table})
    believed = sum(not record["warned"] for records in table.values() for record in records)
    print(f"believed: {believed} of {sum(len(records) for records in table.values())}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["run", "table", "nothing"])
    parser.add_argument("--only", default="")
    parser.add_argument("--seeds", type=int)
    arguments = parser.parse_args()
    if arguments.what == "run":
        run(arguments.only, arguments.seeds)
    elif arguments.what == "nothing":
        nothing(arguments.seeds or 3)
    else:
        table()


if __name__ == "__main__":
    main()
