"""The sphere on the page: pictures of both halves, and data for the globe that can be turned."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from symlift.core.harmonics import real_harmonics
from symlift.core.sphere import Sphere
from symlift.metrics.sphere import to_coefficients
from symlift.report import draw
from symlift.report.facts import cut
from symlift.report.gather import RunContents
from symlift.report.moving import script_bytes, script_floats, script_json
from symlift.report.signals import shown_samples
from symlift.solvers.contract import Placement

__all__ = ["both_halves", "globe_gallery", "globe_panel", "globe_places", "looking_from"]

# pixels across one half in the gallery, and the gap between halves, as a share of that
_SIDE, _GAP = 96, 0.08
# entries of the map back to columns in the page, as int16: about 0.8 MB of base64
_MOST_OBSERVATION_NUMBERS = 300_000
# names at dots, and radius of a half in the drawing of places
_MOST_NAMED, _NAME, _RADIUS = 80, 10, 150.0
# length of the mean of unit vectors from which they are a cap, which has a middle to look at: that
# of half a sphere is 0.5, of 60 columns at random all around 0.11 (0.25 once in a hundred draws)
_CAP = 0.2


def sphere_of(run: RunContents) -> Sphere | None:
    """The sphere of a run, if its domain is one."""
    grid = run.model.grid
    return grid if isinstance(grid, Sphere) else None


def looking_from(placement: Placement | None) -> NDArray[np.float64]:
    """The camera (3, 3), whose rows point right, up and to the viewer: above the middle of a cap,
    and with the north upwards where columns are all around, or nowhere.
    """
    toward = np.array([0.0, -1.0, 0.0])
    if placement is not None and (~placement.left_out).any():
        middle = placement.coordinates[~placement.left_out].mean(axis=0)
        if np.linalg.norm(middle) > _CAP:
            toward = middle / np.linalg.norm(middle)
    side = np.cross([0.0, 0.0, 1.0], toward)
    if np.linalg.norm(side) < 1e-6:
        side = np.array([1.0, 0.0, 0.0])
    right = side / np.linalg.norm(side)
    return np.stack([right, np.cross(toward, right), toward])


def both_halves(camera: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Pixels (rows, columns) of the front and, next to it, of the back as seen from behind, and the
    unit vectors that they show; -1 is the paper.
    """
    at = (np.arange(_SIDE) + 0.5) * 2 / _SIDE - 1
    x, y = np.meshgrid(at, -at)
    inside = x * x + y * y < 1
    z = np.sqrt(np.maximum(1 - x * x - y * y, 0))
    count = int(inside.sum())
    gap = np.full((_SIDE, max(1, int(_GAP * _SIDE))), -1, dtype=np.int32)
    halves, points = [], []
    for number, way in enumerate((1.0, -1.0)):
        index = np.full((_SIDE, _SIDE), -1, dtype=np.int32)
        index[inside] = number * count + np.arange(count)
        halves += [index, gap]
        # from behind, right is left
        points.append(np.stack([way * x[inside], y[inside], way * z[inside]], axis=1))
    return np.concatenate(halves[:-1], axis=1), np.concatenate(points) @ camera


def globe_gallery(run: RunContents) -> dict[str, Any] | None:
    """Pairs of observed rows, as bars, and recovered fields, as two halves of a globe."""
    sphere = sphere_of(run)
    if run.observed is None or sphere is None:
        return None
    chosen = shown_samples(run)
    observed = run.observed[chosen].astype(np.float64)
    where, points = both_halves(looking_from(run.placement))
    values = _coefficients(run, sphere, chosen) @ real_harmonics(points, sphere.known_degree).T
    low, high = min(0.0, float(observed.min())), max(0.0, float(observed.max()))
    span = float(values.min()), float(values.max())
    pairs = []
    for index, raw, field in zip(run.rows[chosen].tolist(), observed, values, strict=True):
        picture = Markup('<img class="field" src="{}" width="{}" height="{}" alt="{}">').format(
            draw.field_png(field, where, *span), where.shape[1], where.shape[0],
            f"Row {index} recovered, on both halves of the sphere",
        )  # fmt: skip
        bars = draw.bars(raw, low, high, f"Row {index} as observed")
        pairs.append({"index": index, "observed": bars, "recovered": picture})
    return {
        "kind": "globe", "pairs": pairs, "kept": len(run.observed), "channels": 1, "drawn": 1,
        "scales": [], "total": run.n_rows, "reach": draw.short(max(map(abs, span))), "shape": (),
        "same_units": False, "scale": draw.colour_bar(draw.GREY, *span, "field", "Grey levels"),
    }  # fmt: skip


def globe_panel(run: RunContents) -> dict[str, Any] | None:
    """Samples and data of the globe; None where the domain is no sphere, or the model is large."""
    sphere = sphere_of(run)
    if sphere is None or run.is_large:
        return None
    chosen = shown_samples(run)
    if len(chosen):
        samples = [f"row {i}" for i in run.rows[chosen].tolist()]
        coefficients = _coefficients(run, sphere, chosen)
    else:  # the field that is as narrow as the degree allows, at the north
        samples = ["one point"]
        coefficients = real_harmonics(np.array([[0.0, 0.0, 1.0]]), sphere.known_degree)
    observed = len(chosen) > 0 and run.placement is None
    observed = observed and run.model.n_features * sphere.size <= _MOST_OBSERVATION_NUMBERS
    payload: dict[str, Any] = {
        "kind": "globe",
        "degree": sphere.known_degree,
        "points": sphere.size,
        "samples": samples,
        "coefficients": script_floats(coefficients),
        "camera": looking_from(run.placement).ravel().round(9).tolist(),
        "ink": script_bytes(draw.GREY),
        "columns": _columns(run.placement),
        "observation": _observation(run) if observed else None,
    }
    return {
        "samples": samples, "real": len(chosen) > 0, "observation": observed,
        "columns": len(payload["columns"]), "json": script_json(payload),
    }  # fmt: skip


def _coefficients(run: RunContents, sphere: Sphere, chosen: NDArray) -> NDArray[np.float64]:
    """Coefficients of the recovered fields of some samples."""
    assert run.observed is not None  # noqa: S101 - asked for by callers
    return to_coefficients(run.model.lift(run.observed[chosen]), sphere)


def _observation(run: RunContents) -> dict[str, Any]:
    """The map from fields at the points to columns, and their means."""
    back = run.model.unlift(np.eye(run.model.grid.size)) - run.model.mean
    unit = float(np.abs(back).max()) / 32767 or 1.0
    return {
        "size": run.model.n_features,
        "unit": unit,
        "matrix": script_bytes(np.round(back / unit).astype("<i2")),
        "mean": script_floats(run.model.mean),
    }


def _columns(placement: Placement | None) -> list[dict[str, Any]]:
    """Names and places of the columns that have a place."""
    if placement is None:
        return []
    on = np.flatnonzero(~placement.left_out)
    return [
        {"name": _name(placement, column), "at": placement.coordinates[column].round(5).tolist()}
        for column in on.tolist()
    ]


def _name(placement: Placement, column: int) -> str:
    name = f"x{column}" if placement.names is None else placement.names[column]
    return cut(name, _NAME) or "–"


def globe_places(placement: Placement) -> list[Markup]:
    """Drawings of the columns on the half of the sphere where most are, and on the other if there
    are any: areas are true.
    """
    on = np.flatnonzero(~placement.left_out)
    seen = placement.coordinates[on] @ looking_from(placement).T
    front = seen[:, 2] >= 0
    halves = [("front", 1.0, front)] + ([("back", -1.0, ~front)] if not front.all() else [])
    return [
        _half(placement, on[part], seen[part] * [way, 1, way], which, len(on) <= _MOST_NAMED)
        for which, way, part in halves
    ]


def _half(placement: Placement, column: NDArray, seen: NDArray, which: str, named: bool) -> Markup:
    """One half of the sphere in Lambert's projection, its rim at the radius of the drawing."""
    r, middle = _RADIUS, _RADIUS + 20
    at = middle + seen[:, :2] * [r, -r] / np.sqrt(1 + seen[:, 2:])
    body = [Markup('<circle class="base" cx="{m}" cy="{m}" r="{r}"/>').format(m=f"{middle:g}", r=r)]
    for number, (a, b) in zip(column.tolist(), at, strict=True):
        sure = float(np.clip(np.nan_to_num(placement.confidence[number]), 0, 1))
        body.append(
            Markup('<circle class="place" style="--sure:{}" cx="{}" cy="{}" r="4"/>').format(
                f"{sure:.2f}", f"{a:.1f}", f"{b:.1f}"
            )
        )
        if named:
            body.append(
                Markup('<text class="tick" x="{}" y="{}">{}</text>').format(
                    f"{a + 6:.1f}", f"{b + 3:.1f}", _name(placement, number)
                )
            )
    return Markup('<svg viewBox="0 0 {s} {s}" role="img" aria-label="{}">{}</svg>').format(
        f"{len(column)} columns on the {which} of the sphere",
        Markup("").join(body),
        s=f"{2 * middle:g}",
    )
