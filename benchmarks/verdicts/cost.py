"""Cost of the check at the end of a fit, relative to the fit, on every row of the README."""

from __future__ import annotations

import time
import warnings
from typing import Any

from _common import write
from symlift.diagnosis.examine import check_fit
from symlift.errors import FitWarning
from symlift_paper.registry import get_experiment
from verdicts.page import put

ROWS = (
    "mnist15-shuffled",
    "mnist27-shuffled",
    "mnist15-bits",
    "gsn63-gaussian-dst",
    "ising33-linear",
)
_START, _END = "<!-- cost: made by benchmarks/diagnosis.py cost -->", "<!-- end of cost -->"


def cost() -> None:
    """Fit each row once, make its check once more, and diagnose it; seconds of processor time."""
    warnings.simplefilter("ignore", FitWarning)
    table: list[dict[str, Any]] = []
    for name in ROWS:
        experiment = get_experiment(name)
        X = experiment.observe(0).X
        start = time.process_time()
        est = experiment.estimator(0, "auto").fit(X)
        whole = time.process_time() - start
        start = time.process_time()
        check_fit(est.solution_, X, est._asked(), est._names)
        check = time.process_time() - start
        start = time.process_time()
        judged = est.diagnose(X)
        diagnosis = time.process_time() - start
        row = {
            "row": name,
            "title": experiment.title,
            "fit": round(whole - check, 2),
            "check": round(check, 2),
            "ratio": round(check / max(whole - check, 1e-3), 3),
            "diagnose": round(diagnosis, 2),
            "verdict": judged.verdict.value,
            "confidence": judged.confidence,
        }
        table.append(row)
        print(row, flush=True)
        print(write("diagnosis_cost", {"table": table}))
        put(_START, _END, _markdown(table))


def _markdown(table: list[dict[str, Any]]) -> str:
    lines = [
        "| row of the README | fit, s | its check, s | check / fit | `diagnose(X)`, s |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['title']} | {row['fit']:.1f} | {row['check']:.2f} | {row['ratio']:.2f} |"
        f" {row['diagnose']:.2f} |"
        for row in table
    ]
    return "\n".join(lines)
