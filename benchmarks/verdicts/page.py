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
_NUMBERS = (
    ("expected calibration error of the confidence", "calibration_error", "at most 0.05"),
    ("area under its ROC curve", "area_under_curve", "at least 0.9"),
    ("time of the quick diagnosis over that of the fit, median", "check_over_fit", "at most 1"),
)


def write_page(
    records: list[dict[str, Any]],
    columns: dict[str, dict[str, Any]],
    bins_of: Callable[[NDArray, NDArray], list[tuple[float, float, int]]],
    notes: tuple[str, ...],
) -> None:
    """Put the table into docs/reading-the-diagnosis.md, and the diagram of ``records`` next to its
    other pictures.
    """
    p, y = (
        np.array([r["confidence"] for r in records]),
        np.array([r["right"] for r in records], dtype=float),
    )
    _draw(bins_of(p, y), DOCS / "images" / "reliability.svg")
    put(START, END, table(columns, notes))


def put(start: str, end: str, text: str) -> None:
    """Replace what stands between two marks of docs/reading-the-diagnosis.md."""
    page = DOCS / "reading-the-diagnosis.md"
    before, rest = page.read_text(encoding="utf-8").split(start)
    page.write_text(f"{before}{start}\n{text}\n{end}{rest.split(end)[1]}", encoding="utf-8")


def table(columns: dict[str, dict[str, Any]], notes: tuple[str, ...]) -> str:
    """Markdown: one column for each set of families; of ``notes`` all but the last are changes made
    after reading the first.
    """
    *changes, first = notes
    counts = list(columns.values())
    sizes = "; ".join(
        f"{name}: {c['results']} results of {c['data_sets']} data sets in {c['families']} families"
        for name, c in columns.items()
    )
    lines = [
        f"{sizes[:1].upper()}{sizes[1:]}.",
        "",
        f"| | {' | '.join(columns)} | aim |",
        "|---|" + "---|" * (len(counts) + 1),
    ]
    for words, name, aim in _ROWS:
        shares = [
            f"{c[name][0]} of {c[name][1]} ({100 * c[name][0] / max(c[name][1], 1):.1f} %)"
            for c in counts
        ]
        lines.append(f"| {words} | {' | '.join(shares)} | {aim} |")
    for words, name, aim in _NUMBERS:
        lines.append(f"| {words} | {' | '.join(f'{c[name]:.3f}' for c in counts)} | {aim} |")
    lines += [
        "",
        f"Changes of thresholds or curves after the unseen half had been read: {len(changes)}.",
        "",
    ]
    lines += [*(f"- {change}" for change in changes), "", first]
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
            str(count),
            (sure, right),
            textcoords="offset points",
            xytext=(7, -3 if right > 0.5 else 4),
            fontsize=8,
        )
    axes.set(
        xlabel="confidence",
        ylabel="share of results that are right",
        xlim=(-0.03, 1.08),
        ylim=(-0.03, 1.05),
    )
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
