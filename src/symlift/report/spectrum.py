"""The model itself: its generators as matrices, its frequencies and its resolution."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.group import TranslationGroup
from symlift.core.rotations import RotationGroup
from symlift.report import draw
from symlift.report.draw import Scale
from symlift.report.gather import RunContents

__all__ = ["generators_panel", "spectrum_panel"]


def generators_panel(run: RunContents) -> list[dict[str, Any]]:
    """L_eff in the order of the columns, and W L_eff W⁺ on the grid.

    The latter should look like a derivative. Empty where the model is too large for matrices.
    """
    if run.is_large:
        return []
    out = []
    for axis, (L, carried) in enumerate(zip(run.model.generators(), _carried(run), strict=True)):
        pictures = []
        sphere = isinstance(run.model.group, RotationGroup)
        where = ("on spherical harmonics", "harmonic") if sphere else ("on the grid", "grid point")
        for matrix, words, name in (
            (L[np.ix_(run.seen, run.seen)], "in the order of the columns", "column"),
            (carried, *where),
        ):
            folded = draw.fold(matrix)
            uri, limit = draw.heat_png(folded)
            pictures.append(
                {
                    "uri": uri,
                    "rows": folded.shape[0],
                    "columns": folded.shape[1],
                    "words": words,
                    "size": f"{matrix.shape[0]} × {matrix.shape[1]}",
                    "folded": folded.shape != matrix.shape,
                    "bar": draw.colour_bar(draw.DIVERGING, -limit, limit, "map", "Entries"),
                    "name": name,
                    "last": matrix.shape[0] - 1,
                    "alt": (
                        f"Heat map of generator {axis + 1}, {words}, {matrix.shape[0]} by"
                        f" {matrix.shape[1]}"
                    ),
                }
            )
        out.append({"number": axis + 1, "pictures": pictures})
    return out


def _carried(run: RunContents) -> NDArray[np.float64]:
    """The generators where they look simple: on the points of a grid, and on the harmonics of a
    sphere, degree by degree.
    """
    model = run.model
    if isinstance(model.group, RotationGroup):
        return model.group.generators()
    U, singular, V = run.decomposed
    held = singular > 1e-6 * singular[0]
    W, inverse = model.lifting_map(), (V[held].T / singular[held]) @ U[:, held].T
    return np.stack([W @ L @ inverse for L in model.generators()])


def spectrum_panel(run: RunContents) -> dict[str, Any] | None:
    """Frequencies, filter, kernel and singular values; None where the model is too large."""
    model, group = run.model, run.model.group
    if run.is_large or not isinstance(group, TranslationGroup):
        return None
    theta = group.theta.astype(np.float64)
    planes = theta.shape[1]
    r = np.abs(model.r.astype(np.float64))
    singular = run.decomposed[1]
    condition = float(singular[0] / singular[-1]) if singular[-1] > 1e-12 * singular[0] else None
    return {
        "planes": planes,
        "frequencies": _frequency_charts(theta, r[:planes]),
        "filter": _filter_chart(theta, r[:planes], r[planes:]),
        "singular": _singular_chart(singular, condition),
        "kernel": _kernel(model.lattice, theta, r),
        "condition": "infinite" if condition is None else f"{condition:.3g}",
        "rank": int(np.sum(singular > 1e-6 * singular[0])),
        "effective": f"{_effective_rank(singular):.0f}",
        "points": model.n_outputs,
    }


def _effective_rank(singular: NDArray) -> float:
    share = singular**2 / np.sum(singular**2)
    share = share[share > 0]
    return float(np.exp(-np.sum(share * np.log(share))))


def _frequency_charts(theta: NDArray, r: NDArray) -> list[dict[str, Any]]:
    if not theta.size:
        return []
    reach = float(np.abs(theta).max())
    if len(theta) == 1:
        order = np.argsort(np.round(np.abs(theta[0]), 9), kind="stable")
        x, y = (
            Scale(
                0, len(order) + 1, "plane, by frequency", ((1, "1"), (len(order), str(len(order))))
            ),
            Scale.angle(reach, "|θ|, radians per step", signed=False),
        )
        body = draw.dots(np.arange(1, len(order) + 1), np.abs(theta[0][order]), r[order], x, y)
        svg = draw.chart(x, y, body, f"Frequencies of {len(order)} planes, sorted")
        return [{"svg": svg, "words": "Frequencies, sorted"}]
    charts = []
    for a in range(len(theta)):
        for b in range(a + 1, len(theta)):
            x, y = (
                Scale.angle(reach, f"θ along axis {b + 1}"),
                Scale.angle(reach, f"θ along axis {a + 1}"),
            )
            # a plane and its conjugate are the same plane: both are drawn
            across, up = (np.concatenate([theta[axis], -theta[axis]]) for axis in (b, a))
            body = draw.dots(across, up, np.concatenate([r, r]), x, y)
            words = f"Frequencies, axes {a + 1} and {b + 1}"
            charts.append(
                {"svg": draw.chart(x, y, body, f"{words}: {theta.shape[1]} planes"), "words": words}
            )
    return charts


def _filter_chart(theta: NDArray, r: NDArray, lone: NDArray) -> Markup:
    """``lone`` is the weight of the constant mode, which exists for an odd dimension."""
    size = np.sqrt(np.sum(theta**2, axis=0))
    size, weight = np.append(size, np.zeros(len(lone))), np.append(r, lone)
    x = Scale.angle(float(size.max(initial=0.0)), "|θ|, radians per step", signed=False)
    y = Scale.upward(float(weight.max(initial=0.0)), "|r|")
    body = draw.dots(size, weight, weight, x, y, stems=len(weight) <= 200)
    return draw.chart(x, y, body, f"Resolving filter: {len(weight)} weights against frequency")


def _singular_chart(singular: NDArray, condition: float | None) -> Markup:
    floor = max(-8.0, float(np.floor(np.log10(max(singular[-1] / singular[0], 1e-8)) - 1e-9)))
    level = np.log10(np.maximum(singular / singular[0], 10.0**floor))
    ticks = tuple(
        (float(v), f"1e{int(v)}".replace("-", "−") if v else "1")
        for v in np.linspace(0, floor, 3).round()
    )
    y = Scale(
        floor - 0.04 * abs(floor),
        0.06 * abs(floor),
        "singular value / largest",
        tuple(dict(ticks).items()),
    )
    x = Scale(0, len(singular) + 1, "number", ((1, "1"), (len(singular), str(len(singular)))))
    px, py = draw.on_drawing(np.arange(1, len(singular) + 1), level, x, y)
    body = f'<path class="line" d="{draw.polyline(px, py)}"/>'
    words = "not invertible" if condition is None else f"condition {condition:.3g}"
    return draw.chart(x, y, body, f"Singular values of the lifting map: {words}")


def _kernel(grid: Grid, theta: NDArray, r: NDArray) -> dict[str, Any]:
    """k(t) = w₀ᵀ ρ̂(-t) w₀ = Σ r_k² cos θ_k·t: how sharply the model can draw a single point."""
    planes = theta.shape[1]
    # on the grid's own steps around zero, so that a sharp kernel shows as one point
    steps = grid.indices() - (np.array(grid.shape) // 2)
    values = np.cos(steps @ theta) @ (r[:planes] ** 2) + float(np.sum(r[planes:] ** 2))
    label = "The kernel: the model's picture of a single point"
    if grid.ndim == 1:
        first, last = int(steps[0, 0]), int(steps[-1, 0])
        x = Scale(first, last, "steps", ((first, f"−{-first}"), (0, "0"), (last, str(last))))
        low = min(float(values.min()) * 1.1, -0.05)
        y = Scale(low, 1.06, "k", ((0.0, "0"), (1.0, "1")))
        px, py = draw.on_drawing(steps[:, 0], values, x, y)
        zero = draw.on_drawing(np.array([x.low, x.high]), np.zeros(2), x, y)[1][0]
        base, line = draw.polyline(px[[0, -1]], np.full(2, zero)), draw.polyline(px, py)
        body = f'<path class="base" d="{base}"/><path class="line" d="{line}"/>'
        return {"svg": draw.chart(x, y, body, label), "uri": None}
    where = draw.pixel_map(grid.size, grid.shape)
    low, high = min(0.0, float(values.min())), float(values.max())
    uri, bar = (
        draw.field_png(values, where, low, high),
        draw.colour_bar(draw.GREY, low, high, "field", "Kernel"),
    )
    return {
        "svg": None,
        "uri": uri,
        "bar": bar,
        "rows": where.shape[0],
        "columns": where.shape[1],
        "alt": label,
    }
