"""The table and the reliability diagram of the docs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DOCS = Path(__file__).parents[2] / "docs"
START, END = "<!-- verdicts: made by benchmarks/diagnosis.py page -->", "<!-- end of verdicts -->"

_ROWS = (
    ("data without a symmetry called present", "negatives_present", "at most 2 of 100"),
    ("… called ordered", "negatives_ordered", ""),
    ("… called present, but not identifiable", "negatives_unidentifiable", ""),
    ("wrong results called present", "wrong_present", "at most 2 of 100"),
    ("… of data with a symmetry alone", "wrong_positives_present", ""),
    ("right results refused (neither present nor ordered)", "right_refused", "at most 5 of 100"),
    ("right results of stationary fields not called present", "stationary_right_not_present", ""),
    ("wrong results that `fit` warns of", "wrong_warned", "at least 95 of 100"),
    ("right results that `fit` warns of", "right_warned", "at most 5 of 100"),
)


def write_page(
    records: list[dict[str, Any]],
    found: dict[str, Any],
    bins_of: Callable[[NDArray, NDArray], list[tuple[float, float, int]]],
    changes: tuple[str, ...],
) -> None:
    """Put the table into docs/reading-the-diagnosis.md, and the diagram beside its other pictures."""
    p, y = np.array([r["confidence"] for r in records]), np.array([r["right"] for r in records], dtype=float)
    _draw(bins_of(p, y), DOCS / "images" / "reliability.svg")
    page = DOCS / "reading-the-diagnosis.md"
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(START)
    after = rest.split(END)[1]
    page.write_text(before + START + "\n" + table(found, changes) + "\n" + END + after, encoding="utf-8")


def table(found: dict[str, Any], changes: tuple[str, ...]) -> str:
    """Markdown."""
    lines = [
        f"{found['results']} results of {found['data_sets']} data sets in {found['families']} families that set no threshold:",
        "",
        "| | share | aim |",
        "|---|---|---|",
    ]
    for words, name, aim in _ROWS:
        count, of = found[name]
        lines.append(f"| {words} | {count} of {of} ({100 * count / max(of, 1):.1f} %) | {aim} |")
    lines += [
        f"| expected calibration error of the confidence | {found['calibration_error']:.3f} | at most 0.05 |",
        f"| area under its ROC curve | {found['area_under_curve']:.3f} | at least 0.9 |",
        f"| time of the quick diagnosis over that of the fit, median | {found['check_over_fit']:.2f} | at most 1 |",
        "",
        f"Thresholds changed after this half had been read: {len(changes)}.",
        *(f"- {change}" for change in changes),
    ]
    return "\n".join(lines)


def _draw(bins: list[tuple[float, float, int]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "reliability"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(4.2, 4.0), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    for sure, right, count in bins:
        error = np.sqrt(max(right * (1 - right), 0.25 / count) / count)
        axes.errorbar(sure, right, yerr=2 * error, fmt="o", color="C0", markersize=5)
        axes.annotate(
            str(count), (sure, right), textcoords="offset points", xytext=(7, -3 if right > 0.5 else 4), fontsize=8
        )
    axes.set(xlabel="confidence", ylabel="share of results that are right", xlim=(-0.03, 1.08), ylim=(-0.03, 1.05))
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
