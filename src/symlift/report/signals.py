"""The samples as observed and as recovered, on a ring, and their correlations."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from symlift.core.angles import fundamental
from symlift.report import draw
from symlift.report.gather import RunContents
from symlift.report.ring import ring_panel, stratified
from symlift.statistics.units import shared_range

__all__ = ["gallery_panel", "moments_panel", "ring_of", "shown_samples"]

_SHOWN = 8
_MOST_NUMBERS = 500_000  # in all pictures of the gallery: fewer samples of large fields are shown
_MOST_CHANNELS = 4
_ENOUGH_FOR_MOMENTS = 40
_MOST_COLUMNS = 600  # in a picture of correlations; more columns are subsampled


def shown_samples(run: RunContents) -> NDArray[np.int64]:
    """Indices of the saved samples to draw: random ones, on a ring one from each part of it."""
    if run.observed is None:
        return np.zeros(0, dtype=np.int64)
    model = run.model
    count = max(1, min(_SHOWN, _MOST_NUMBERS // (model.n_features + model.grid.size)))
    if model.grid.is_ring:
        return stratified(np.angle(fundamental(run.signals)), count)
    return np.sort(
        np.random.default_rng(0).choice(
            len(run.observed), min(count, len(run.observed)), replace=False
        )
    )


def gallery_panel(run: RunContents) -> dict[str, Any] | None:
    """Pairs of observed and recovered samples, on one scale each; None without samples."""
    if run.observed is None:
        return None
    grid, model = run.model.grid, run.model
    chosen = shown_samples(run)
    channels = min(model.channels, _MOST_CHANNELS) if grid.ndim == 2 else 1
    # columns without a place are in no picture: a row number would set the scale of all others
    observed = run.observed[chosen][:, run.seen].astype(np.float64)
    recovered = run.fields[chosen]
    if run.placement is not None:
        # columns in their places are shown as measured: with the mean, which lifting subtracts
        recovered = recovered + model.lift(2 * model.mean[None, :]).reshape(recovered.shape[1:])
    recovered = recovered[..., :channels]
    spans = [shared_range(part.reshape(len(part), -1)) for part in (observed, recovered)]
    pixels = [draw.pixel_map(len(run.seen), grid.shape), _side_by_side(grid.shape, channels)]
    pairs = []
    for index, raw, signal in zip(run.rows[chosen].tolist(), observed, recovered, strict=True):
        labels = f"Row {index} as observed", f"Row {index} recovered"
        if grid.ndim == 1:
            line = draw.ring if grid.is_ring else draw.curve
            low, high = _with_zero(spans[0])
            pictures = [
                draw.bars(raw, low, high, labels[0]),
                line(signal[:, 0], *_with_zero(spans[1]), labels[1]),
            ]
        else:
            pictures = [
                Markup('<img class="field" src="{}" width="{}" height="{}" alt="{}">').format(
                    draw.field_png(values, where, *span), where.shape[1], where.shape[0], label
                )
                for values, where, span, label in zip(
                    (raw, signal.T.ravel()), pixels, spans, labels, strict=True
                )
            ]
        pairs.append({"index": index, "observed": pictures[0], "recovered": pictures[1]})
    kind = "ring" if grid.is_ring else ("line", "image", "slices")[grid.ndim - 1]
    scales = (
        []
        if grid.ndim == 1
        else [draw.colour_bar(draw.GREY, *span, "field", "Grey levels") for span in spans]
    )
    return {
        "kind": kind,
        "pairs": pairs,
        "kept": len(run.observed),
        "channels": model.channels,
        "drawn": channels,
        "scales": scales,
        "scale": None,
        "total": run.n_rows,
        "reach": draw.short(max(map(abs, spans[1]))),
        "shape": grid.shape,
        "same_units": run.placement is not None and abs(model.scale - 1) < 1e-9,
    }


def _side_by_side(shape: tuple[int, ...], channels: int) -> NDArray[np.int32]:
    """Pixel map of a field, with several channels next to each other.

    Entry c · size + n is point n of channel c.
    """
    size = int(np.prod(shape))
    one = draw.pixel_map(size, shape)
    if channels == 1:
        return one
    gap = np.full((one.shape[0], 1), -1, dtype=np.int32)
    parts = [part for c in range(channels) for part in (one + c * size, gap)]
    return np.concatenate(parts[:-1], axis=1)


def _with_zero(span: tuple[float, float]) -> tuple[float, float]:
    return min(span[0], 0.0), max(span[1], 0.0)


def ring_of(run: RunContents) -> dict[str, Any] | None:
    """Curves, polar code and moved samples, for a ring of one channel with saved samples."""
    model = run.model
    if (
        run.samples is None
        or len(run.samples.row) < 2
        or not model.grid.is_ring
        or model.channels > 1
        or run.is_large
    ):
        return None
    return ring_panel(model, run.samples.observed, run.samples.label)


def moments_panel(run: RunContents) -> dict[str, Any]:
    """Correlations of the columns before and after lifting, if there are enough samples."""
    count = 0 if run.observed is None else len(run.observed)
    if run.observed is None or count < _ENOUGH_FOR_MOMENTS:
        return {"pictures": [], "kept": count, "needed": _ENOUGH_FOR_MOMENTS}
    pictures = []
    for rows, words, name in (
        (run.observed[:, run.seen], "observed", "column"),
        (run.signals, "recovered", "grid point"),
    ):
        some = rows[:, :: -(-rows.shape[1] // _MOST_COLUMNS)].astype(np.float64)
        deviation = some.std(axis=0)
        # a column that differs from its mean only by rounding is constant
        varies = deviation > 1e-9 * np.abs(some).max(initial=0.0)
        unit = np.where(varies, (some - some.mean(axis=0)) / np.where(varies, deviation, 1.0), 0.0)
        folded = draw.fold(unit.T @ unit / count)
        uri, limit = draw.heat_png(folded)
        bar = draw.colour_bar(draw.DIVERGING, -limit, limit, "map", "Correlation")
        pictures.append(
            {
                "uri": uri,
                "rows": len(folded),
                "columns": folded.shape[1],
                "words": words,
                "bar": bar,
                "name": name,
                "last": rows.shape[1] - 1,
                "alt": f"Correlations of the {rows.shape[1]} {words} columns",
            }
        )
    return {"pictures": pictures, "kept": count, "needed": _ENOUGH_FOR_MOMENTS}
