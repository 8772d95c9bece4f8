"""The samples: as observed and as recovered, round a ring, and their correlations before and after."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from symlift.report import draw
from symlift.report.gather import Run
from symlift.report.ring import ring_panel

__all__ = ["gallery_panel", "moments_panel", "ring_of", "shown_samples"]

_SHOWN = 8
_MOST_NUMBERS = 500_000  # of the pictures of the gallery: large fields are shown in smaller number
_ENOUGH_FOR_MOMENTS = 40


def shown_samples(run: Run) -> NDArray[np.int64]:
    """Which of the kept samples are drawn: those that deviate most from the mean say most.

    Deviations that differ by rounding alone are equal, and of equal ones the first are taken, on any processor.
    """
    if run.observed is None:
        return np.zeros(0, dtype=np.int64)
    model = run.model
    deviation = run.signals.var(axis=1)
    # where all signals vanish, what is left of them is rounding of numbers of this size
    size = float(np.abs(run.observed).max() + np.abs(model.mean).max()) / model.scale
    unit = max(float(deviation.max()), (1e-6 * size) ** 2) or 1.0
    count = max(1, min(_SHOWN, _MOST_NUMBERS // (model.n_features + model.grid.size)))
    return np.sort(np.argsort(-np.round(deviation / unit, 6), kind="stable")[:count])


def gallery_panel(run: Run) -> dict[str, Any] | None:
    """Pairs of what was observed and what is recovered; None without samples."""
    if run.observed is None:
        return None
    grid, model = run.model.grid, run.model
    chosen = shown_samples(run)
    observed, recovered = run.observed[chosen], run.signals[chosen]
    pairs = []
    spans = [(float(part.min()), float(part.max())) for part in (observed, recovered)]
    pixels = [draw.pixel_map(model.n_features, grid.shape), draw.pixel_map(grid.size, grid.shape)]
    for index, raw, signal in zip(run.rows[chosen].tolist(), observed, recovered, strict=True):
        labels = f"Row {index} as observed", f"Row {index} recovered"
        if grid.ndim == 1:
            line = draw.ring if grid.is_ring else draw.curve
            low, high = _with_zero(spans[0])
            pictures = [draw.bars(raw, low, high, labels[0]), line(signal, *_with_zero(spans[1]), labels[1])]
        else:
            pictures = [
                Markup('<img class="field" src="{}" width="{}" height="{}" alt="{}">').format(
                    draw.field_png(values, where, *span), where.shape[1], where.shape[0], label
                )
                for values, where, span, label in zip((raw, signal), pixels, spans, labels, strict=True)
            ]
        pairs.append({"index": index, "observed": pictures[0], "recovered": pictures[1]})
    kind = "ring" if grid.is_ring else ("line", "image", "slices")[grid.ndim - 1]
    return {"kind": kind, "pairs": pairs, "kept": len(run.observed), "channels": model.channels}


def _with_zero(span: tuple[float, float]) -> tuple[float, float]:
    return min(span[0], 0.0), max(span[1], 0.0)


def ring_of(run: Run) -> dict[str, Any] | None:
    """Curves, polar code and moved samples, where the grid is a ring of one channel and samples were kept."""
    model = run.model
    if run.observed is None or len(run.observed) < 2 or not model.grid.is_ring or model.channels > 1 or run.is_large:
        return None
    return ring_panel(model, run.observed, run.labels)


def moments_panel(run: Run) -> dict[str, Any]:
    """Correlations of the columns before and after lifting, where there are enough samples for them."""
    kept = 0 if run.observed is None else len(run.observed)
    if run.observed is None or kept < _ENOUGH_FOR_MOMENTS:
        return {"pictures": [], "kept": kept, "needed": _ENOUGH_FOR_MOMENTS}
    pictures = []
    for rows, words in ((run.observed, "observed"), (run.signals, "recovered")):
        deviation = rows.std(axis=0)
        # a column that differs from its mean by rounding alone is constant
        varies = deviation > 1e-9 * np.abs(rows).max(initial=0.0)
        unit = np.where(varies, (rows - rows.mean(axis=0)) / np.where(varies, deviation, 1.0), 0.0)
        folded = draw.fold(unit.T @ unit / kept)
        uri, _ = draw.heat_png(folded)
        pictures.append({"uri": uri, "rows": len(folded), "columns": folded.shape[1], "words": words,
                         "alt": f"Correlations of the {rows.shape[1]} {words} columns"})  # fmt: skip
    return {"pictures": pictures, "kept": kept, "needed": _ENOUGH_FOR_MOMENTS}
