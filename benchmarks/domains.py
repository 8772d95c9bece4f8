"""Domains beyond one grid: spheres behind dense mixings, columns on spheres, what is none of these.

    python benchmarks/domains.py [NAME …] [--seeds 5]

Each row is run with seeds 0 to 4; the table shows the median and, in brackets, the worst.  Rows
whose name contains one of the given words are run; results are kept in results/domains.json, where
other rows stay as they are.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from _common import RESULTS, write
from _sphere_cases import columns, dense, dipoles, no_sphere

Run = Callable[[int], dict[str, Any]]


@dataclass(frozen=True)
class Row:
    """A row of the table: its name, what is to be reached, and how a seed is run."""

    name: str
    target: str
    run: Run


def dense_row(
    degree: int, n: int, target: str, pulses: str = "gaussian", condition: float = 1
) -> Row:
    """A sphere behind a dense mixing."""
    mixing = "a rotation" if condition == 1 else f"a map of condition {condition:g}"
    name = f"sphere of degree {degree}, {pulses} pulses, {mixing}, {n:,} rows"
    return Row(name, target, partial(dense, degree, n, pulses, condition))


ROWS = [
    dense_row(5, 40_000, "r ≥ 0.995 (0.99), S ≥ 0.99, silent, 5 s"),
    dense_row(7, 40_000, "r ≥ 0.995 (0.99), S ≥ 0.99, silent, 10 s"),
    dense_row(9, 40_000, "r ≥ 0.995 (0.99), S ≥ 0.99, silent, 30 s"),
    dense_row(5, 5_000, "r ≥ 0.98, 10 s"),
    dense_row(5, 2_000, "r ≥ 0.94, 10 s"),
    dense_row(5, 40_000, "r ≥ 0.98, 20 s", "band"),
    dense_row(5, 40_000, "r ≥ 0.98, 20 s", "two"),
    dense_row(5, 40_000, "r ≥ 0.98 by fourth moments, 20 s", "signed"),
    dense_row(5, 40_000, "r ≥ 0.98, 60 s", condition=3),
    dense_row(5, 40_000, "r ≥ 0.95, 60 s", condition=10),
    *(
        Row(
            f"columns on a sphere, {where}, noise {noise:g}, {dead:.0%} dead",
            "≥ 0.98 of the living within half of the mean distance to the nearest, 10 s",
            partial(columns, where, noise, dead),
        )
        for where in ("uniform", "cap")
        for noise, dead in ((0.3, 0.0), (0.3, 0.2), (1.0, 0.2))
    ),
    *(
        Row(
            f"a cap over dipoles at depth {depth:g}, far sources {far:g}",
            "agreement of places ≥ 0.9",
            partial(dipoles, depth, far),
        )
        for depth in (0.2, 0.35, 0.5)
        for far in (0.0, 1.0)
    ),
    *(
        Row(f"no sphere: {kind}", "never present", partial(no_sphere, kind))
        for kind in (
            "gaussian field",
            "white noise",
            "ring",
            "torus",
            "grid",
            "independent",
            "few skewed",
        )
    ),
]
# numbers for which small values are the worst, and those for which large ones are
_SMALL, _LARGE = (
    ("r", "r_detail", "similarity", "right", "right_scaled", "agreement", "score", "placed"),
    ("cpu", "confidence"),
)


def summary(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Median and worst of every number, and how often each verdict was given."""
    out: dict[str, Any] = {}
    for key in (*_SMALL, *_LARGE):
        values = [record[key] for record in records if key in record]
        if values:
            worst = min(values) if key in _SMALL else max(values)
            out[key] = {"median": round(float(np.median(values)), 4), "worst": worst}
    verdicts = [str(record.get("verdict")) for record in records]
    out["verdicts"] = {name: verdicts.count(name) for name in sorted(set(verdicts))}
    out["warned"] = sum(bool(record.get("warned")) for record in records)
    return out


def line(name: str, target: str, row: dict[str, Any]) -> str:
    """One line of the table."""
    numbers = ", ".join(
        f"{key} {row[key]['median']:g} ({row[key]['worst']:g})"
        for key in (*_SMALL, *_LARGE)
        if key in row
    )
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in row["verdicts"].items())
    return f"{name}: {numbers}; {verdicts}; {row['warned']} warned  [{target}]"


def main() -> None:
    parser = argparse.ArgumentParser(description="Benchmark of domains beyond one grid.")
    parser.add_argument("names", nargs="*", help="run rows whose name contains one of these")
    parser.add_argument("--seeds", type=int, default=5)
    chosen = parser.parse_args()
    path = RESULTS / "domains.json"
    rows = json.loads(path.read_text())["rows"] if path.exists() else {}
    for row in ROWS:
        if chosen.names and not any(word in row.name for word in chosen.names):
            continue
        records = [row.run(seed) for seed in range(chosen.seeds)]
        rows[row.name] = {"target": row.target, "seeds": records, **summary(records)}
        print(line(row.name, row.target, rows[row.name]), flush=True)
        write("domains", {"rows": {one.name: rows[one.name] for one in ROWS if one.name in rows}})


if __name__ == "__main__":
    main()
