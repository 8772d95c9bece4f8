"""Data for the page's script, which moves one sample along the symmetry."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from symlift.core.group import TranslationGroup, plane_basis, spread_filter
from symlift.core.sphere import Sphere
from symlift.report import draw
from symlift.report.gather import RunContents
from symlift.report.signals import shown_samples
from symlift.statistics.units import shared_range

__all__ = [
    "move_panel",
    "move_payload",
    "plane_coordinates",
    "script_bytes",
    "script_floats",
    "script_json",
]

_MOST_SAMPLE_NUMBERS = 200_000  # plane coordinates in the page, as float32: about 1 MB of base64
_MOST_OBSERVATION_NUMBERS = 300_000  # entries of E⁺Q in the page, as int16: about 0.8 MB of base64


def move_panel(run: RunContents) -> dict[str, Any] | None:
    """Sliders, samples and data of the panel; None where the model is too large for a page."""
    if run.is_large or isinstance(run.model.grid, Sphere):
        return None
    grid = run.model.grid
    payload = move_payload(run)
    axes = [
        {"number": axis + 1, "reach": length / 2 if wraps else max(2, length // 2)}
        for axis, (length, wraps) in enumerate(zip(grid.shape, grid.periodic, strict=True))
    ]
    return {
        "axes": axes,
        "samples": payload["samples"],
        "kind": payload["kind"],
        "real": run.observed is not None,
        "open": not all(grid.periodic),
        "observation": payload["observation"] is not None,
        # an embedding that drops dimensions returns a projection, even for a shift of zero
        "lossy": payload["observation"] is not None
        and np.linalg.matrix_rank(run.model.E) < run.model.n_features,
        "json": script_json(payload),
    }


def plane_coordinates(run: RunContents, group: TranslationGroup, X: NDArray) -> NDArray[np.float64]:
    """c = Qᵀ E (x - mean)/scale of the first channel, one row per sample: what the page moves."""
    model = run.model
    centred = (np.asarray(X, dtype=np.float64) - model.mean) / model.scale
    return centred @ (group.Q.T.astype(np.float64) @ model.E[: group.dimension]).T


def move_payload(run: RunContents) -> dict[str, Any]:
    """Data that the page's script needs to lift and to move: numbers as little-endian base64."""
    model, grid, group = run.model, run.model.grid, run.model.group
    assert isinstance(group, TranslationGroup)  # noqa: S101 - a torus without planes is large
    D = group.dimension
    if run.observed is not None:
        chosen = shown_samples(run)[: max(1, _MOST_SAMPLE_NUMBERS // D)]
        samples = [f"row {i}" for i in run.rows[chosen].tolist()]
        coordinates = plane_coordinates(run, group, run.observed[chosen])
    else:
        # no samples: move the model's own picture of one point, E x = ρ̂(t₀) w₀, with t₀ the middle
        # point of the grid
        samples = ["one point"]
        middle = np.array([[n // 2 - (n - 1) / 2 for n in grid.shape]])
        coordinates = plane_basis(group.theta, middle, D) * spread_filter(model.r, D)
    kind = "ring" if grid.is_ring else "line" if grid.ndim == 1 else "image"
    payload: dict[str, Any] = {
        "kind": kind,
        "shape": list(grid.shape),
        "periodic": list(grid.periodic),
        "dimension": D,
        "samples": samples,
        "coordinates": script_floats(coordinates),
        "theta": script_floats(group.theta),
        "r": script_floats(model.r),
        "ink": script_bytes(draw.GREY),
        "pixels": _pixels(draw.pixel_map(grid.size, grid.shape)) if kind == "image" else None,
        "observation": None,
        # columns in other units do not set the scale of the rest
        "span": None if run.observed is None else [*shared_range(run.signals[chosen])],
    }
    seen = run.seen
    # the first of several channels does not determine the values of the columns
    if (
        run.observed is not None
        and model.channels == 1
        and model.n_features * D <= _MOST_OBSERVATION_NUMBERS
    ):
        E = model.E.astype(np.float64)
        back = (model.scale * (np.linalg.pinv(E, rcond=1e-10) @ group.Q))[seen]
        unit = float(np.abs(back).max()) / 32767 or 1.0
        payload["observation"] = {
            "size": len(seen),
            "unit": unit,
            "matrix": script_bytes(np.round(back / unit).astype("<i2")),
            "mean": script_floats(model.mean[seen]),
            "span": [*shared_range(run.observed[chosen][:, seen])],
            "pixels": _pixels(draw.pixel_map(len(seen), grid.shape)) if kind == "image" else None,
        }
    return payload


def script_floats(values: NDArray) -> str:
    """Numbers as base64 of little-endian float32."""
    with np.errstate(over="ignore"):
        return script_bytes(np.ascontiguousarray(values, dtype="<f4"))


def script_bytes(values: NDArray) -> str:
    """The bytes of an array as base64."""
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")


def _pixels(index: NDArray[np.int32]) -> dict[str, Any]:
    return {
        "rows": index.shape[0],
        "columns": index.shape[1],
        "index": script_bytes(index.astype("<i4")),
    }


def script_json(value: Any) -> Markup:
    """JSON that cannot end its <script> element, whatever its strings hold.

    >>> print(script_json(["</script>"]))
    ["\\u003c/script\\u003e"]
    """
    text = json.dumps(value, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - nothing in it can be read as markup
