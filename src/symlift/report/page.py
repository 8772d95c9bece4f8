"""From a run to the page: each panel is one function of the run, and a panel without its data is a short note."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import torch
from markupsafe import Markup
from numpy.typing import NDArray

import symlift
from symlift.errors import InputError
from symlift.grid import Grid
from symlift.group import plane_basis
from symlift.lifting import LiftedModel, spread_filter, write_atomically
from symlift.report import draw, facts
from symlift.report.draw import Scale
from symlift.report.gather import Run, number, read_run
from symlift.report.ring import ring_panel

__all__ = ["move_payload", "plane_coordinates", "render", "write_report"]

_SHOWN = 8
_ENOUGH_FOR_MOMENTS = 40
_MOST_SAMPLE_NUMBERS = 200_000  # plane coordinates in the page, as float32: about 1 MB of base64
_MOST_OBSERVATION_NUMBERS = 300_000  # entries of E⁺Q in the page, as int16: about 0.8 MB of base64


def write_report(run: str | os.PathLike[str]) -> Path:
    """Write ``report.html`` into the run folder ``run`` and return its path.

    One file that opens offline: style, script and pictures are inside.  Only the model has to be there; a panel whose data
    are missing is left out with a note.
    """
    folder = Path(run)
    page = render(read_run(folder))
    target = folder / "report.html"
    try:
        with write_atomically(target) as temporary:
            # a name may hold what UTF-8 cannot say; the report is still written
            temporary.write_bytes(page.encode("utf-8", "replace"))
    except OSError as error:
        raise InputError(
            f"{target} cannot be written ({error.strerror}): check the folder's permissions and space"
        ) from None
    return target


def render(run: Run) -> str:
    """The page as text."""
    here = files("symlift.report")
    script = here.joinpath("report.js").read_text(encoding="utf-8")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined, loader=None
    )
    template = environment.from_string(here.joinpath("template.html.j2").read_text(encoding="utf-8"))
    return template.render(
        css=Markup(here.joinpath("report.css").read_text(encoding="utf-8")),  # noqa: S704 - our own file
        js=Markup(script),  # noqa: S704 - our own file
        # the browser runs this script and no other, whatever a name may contain
        script_hash=base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii"),
        header=_header(run),
        verdict=_verdict(run),
        gallery=_gallery(run),
        ring=_ring(run),
        move=_move(run),
        generators=_generators(run.model),
        spectrum=_spectrum(run.model),
        moments=_moments(run),
        convergence=_convergence(run),
        reading=_reading(run.model.grid),
        footer=_footer(run),
        notes=_notes(run),
    )


# -- words -------------------------------------------------------------------------------------------------------------


def _shape_words(grid: Grid) -> str:
    sizes = " × ".join(str(n) for n in grid.shape)
    if grid.ndim == 1:
        return f"{'Ring' if grid.axes_periodic[0] else 'Line'} of {sizes} points"
    kind = f"{sizes} grid"
    closed = [str(axis + 1) for axis, wraps in enumerate(grid.axes_periodic) if wraps]
    if len(closed) == grid.ndim:
        return f"{kind}, all axes closed"
    return kind if not closed else f"{kind}, axis {' and '.join(closed)} closed"


def _header(run: Run) -> dict[str, Any]:
    shape = run.get("input", "shape")
    seconds = run.seconds
    rows = shape if isinstance(shape, list | tuple) and len(shape) == 2 else None
    solver = run.get("settings", "solver") or run.trace.get("solver")
    used = run.get("solver") or run.trace.get("solver")
    if isinstance(used, str) and used != solver:
        solver = f"{facts.show(solver)} ({facts.show(used)})" if solver else used
    entries = [
        ("Domain", _shape_words(run.model.grid)),
        (
            "Data",
            f"{facts.show(rows[0])} rows × {facts.show(rows[1])} columns"
            if rows
            else f"{run.model.n_features} columns",
        ),
        ("Solver", facts.show(solver) if solver else None),
        ("Time", _duration(seconds) if seconds is not None else None),
        ("Score", facts.show(number(run.get("score"))) if number(run.get("score")) is not None else None),
    ]
    status = run.get("status")
    ended = not isinstance(status, str) or status.lower() in {
        "done",
        "complete",
        "completed",
        "finished",
        "ok",
        "success",
    }
    return {
        "name": run.name,
        "entries": [(k, v) for k, v in entries if v is not None],
        "status": None if ended else facts.show(status),
    }


def _notes(run: Run) -> list[str]:
    """What was said during the fit, and what the report had to do without."""
    told = run.get("warnings")
    said = (
        [f"Warning: {' '.join(w.split())[:300]}" for w in told[:5] if isinstance(w, str)]
        if isinstance(told, list)
        else []
    )
    if "record" in run.notes:
        said.append(f"{run.notes['record']}: what it would say is left out.")
    return said


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


_WORDS = {
    "yes": (
        "A symmetry is there",
        "The data carry a translation symmetry, and what was found of it held when it was checked. "
        "The pictures below can be taken as a reconstruction, up to the ambiguities listed at the end.",
    ),
    "partly": (
        "There, but not identifiable",
        "There are signs of a symmetry, but these data do not single out one answer: other reconstructions explain them "
        "as well. Take the pictures below as one of several possibilities.",
    ),
    "no": (
        "No evidence of a symmetry",
        "Nothing found here stands out from what the method makes of structureless data. "
        "The pictures below are most likely the method's own invention; do not build on them.",
    ),
    "other": ("Diagnosis", "The figures of the diagnosis are below."),
    "none": (
        "No diagnosis was run",
        "Nobody has checked yet whether this result is real: a method like this always returns a picture. "
        "Run est.diagnose(X) before relying on it.",
    ),
}


def verdict_kind(verdict: str) -> str:
    """Which of the three answers a verdict's text is.

    >>> [verdict_kind(v) for v in ("an identifiable translation symmetry is present and stable", "no evidence for one")]
    ['yes', 'no']
    >>> verdict_kind("present, but not identifiable from these data")
    'partly'
    """
    text = verdict.lower().replace("_", " ").replace("-", " ")
    if any(
        words in text for words in ("not identifiable", "unidentifiable", "non identifiable", "not stable", "unstable")
    ):
        return "partly"
    if (
        text.strip() in {"no", "none", "absent"}
        or "no evidence" in text
        or "not present" in text
        or "no symmetry" in text
    ):
        return "no"
    return "yes" if any(words in text for words in ("present", "stable", "identifiable", "yes")) else "other"


def _verdict(run: Run) -> dict[str, Any]:
    found = run.get("diagnosis")
    said = found.get("verdict") if isinstance(found, dict) else found if isinstance(found, str) else None
    if not isinstance(said, str) or not said.strip():
        badge, sentence = _WORDS["none"]
        return {"kind": "none", "badge": badge, "said": None, "sentence": sentence, "confidence": None, "figures": []}
    kind = verdict_kind(said)
    badge, sentence = _WORDS[kind]
    confidence = number(found.get("confidence")) if isinstance(found, dict) else None
    figures = found.get("figures") if isinstance(found, dict) else None
    rows = list(facts.flat(figures).items())[:24] if isinstance(figures, dict) else []
    return {
        "kind": kind,
        "badge": badge,
        "said": said[:1].upper() + said[1:300],
        "sentence": sentence,
        "confidence": None
        if confidence is None
        else f"{confidence:.0%}"
        if 0 <= confidence <= 1
        else facts.show(confidence),
        "figures": [(facts.pretty(k), v) for k, v in rows],
    }


def _reading(grid: Grid) -> list[tuple[str, str]]:
    """What was assumed, and what no blind method can tell."""
    ring = any(grid.axes_periodic)
    several = grid.ndim > 1
    items = [
        (
            "What was assumed",
            "That the signals live on a regular grid of the shape named above, and that their statistics are the same "
            "everywhere on it: moving a signal along the grid gives another signal that is as likely. Nothing was assumed of "
            "the order of the columns.",
        ),
        (
            "Direction",
            "A signal and its mirror image explain the data equally well"
            + (", on each axis separately; the order of axes of equal length is open, too." if several else "."),
        ),
        ("Sign", "A signal and its negative cannot be told apart: high may be low. All samples share one sign."),
        (
            "Origin",
            ("A ring has no first point: the whole set may be turned by any amount. " if ring else "")
            + ("" if ring and all(grid.axes_periodic) else "On an open axis all signals may sit a step or so off. ")
            + "It is the same offset for all samples.",
        ),
        (
            "Sharpness",
            "Blurring every signal alike keeps all the symmetry. Of all filters, the modulus is the one that distorts the "
            "observations least, and the phase the one that resolves best. Both are choices, and they show in the kernel.",
        ),
        (
            "Scale",
            "Heights are relative. Within one row of pictures all samples share one scale; two rows do not.",
        ),
    ]
    return items


# -- samples -----------------------------------------------------------------------------------------------------------


def _shown(run: Run) -> NDArray[np.int64]:
    """Which of the kept samples are drawn: those that deviate most from the mean say most."""
    assert run.observed is not None  # noqa: S101 - callers ask first
    lifted = run.model.lift(run.observed)
    order = np.argsort(-lifted.var(axis=1), kind="stable")[:_SHOWN]
    return np.sort(order)


def _gallery(run: Run) -> dict[str, Any] | None:
    if run.observed is None:
        return None
    grid, model = run.model.grid, run.model
    chosen = _shown(run)
    observed = run.observed[chosen]
    recovered = model.lift(observed)
    pairs = []
    spans = [(float(part.min()), float(part.max())) for part in (observed, recovered)]
    pixels = [draw.pixel_map(model.n_features, grid.shape), draw.pixel_map(grid.size, grid.shape)]
    for index, raw, signal in zip(run.rows[chosen].tolist(), observed, recovered, strict=True):
        labels = f"Row {index} as observed", f"Row {index} recovered"
        if grid.ndim == 1:
            low, high = min(spans[0][0], 0.0), max(spans[0][1], 0.0)
            line = draw.ring if draw.is_ring(grid) else draw.curve
            pictures = [draw.bars(raw, low, high, labels[0]), line(signal, *_with_zero(spans[1]), labels[1])]
        else:
            pictures = [
                Markup('<img class="field" src="{}" width="{}" height="{}" alt="{}">').format(
                    draw.field_png(values, where, *span), where.shape[1], where.shape[0], label
                )
                for values, where, span, label in zip((raw, signal), pixels, spans, labels, strict=True)
            ]
        pairs.append({"index": index, "observed": pictures[0], "recovered": pictures[1]})
    kind = "ring" if draw.is_ring(grid) else ("line", "image", "slices")[grid.ndim - 1]
    return {"kind": kind, "pairs": pairs, "kept": len(run.observed)}


def _ring(run: Run) -> dict[str, Any] | None:
    """Curves, polar code and moved samples, where the grid is a ring and samples were kept."""
    if run.observed is None or len(run.observed) < 2 or not draw.is_ring(run.model.grid):
        return None
    return ring_panel(run.model, run.observed, run.labels)


def _with_zero(span: tuple[float, float]) -> tuple[float, float]:
    return min(span[0], 0.0), max(span[1], 0.0)


def plane_coordinates(model: LiftedModel, X: NDArray) -> NDArray[np.float64]:
    """c = Qᵀ E (x − mean)/scale, one row a sample: what the page moves."""
    centred = (np.asarray(X, dtype=np.float64) - model.mean.detach().double().numpy()) / model.scale
    return centred @ (model.group.Q.detach().double().T @ model.E.detach().double()).numpy().T


def move_payload(run: Run) -> dict[str, Any]:
    """What the page's script needs to lift and to move: numbers as base64, little-endian."""
    model, grid = run.model, run.model.grid
    D = model.group.dimension
    if run.observed is not None:
        chosen = _shown(run)[: max(1, _MOST_SAMPLE_NUMBERS // D)]
        samples = [f"row {i}" for i in run.rows[chosen].tolist()]
        coordinates = plane_coordinates(model, run.observed[chosen])
    else:
        # no samples: move the model's own picture of one point, E x = ρ̂(t₀) w₀, with t₀ the middle point of the grid
        samples = ["one point"]
        middle = np.array([n // 2 - (n - 1) / 2 for n in grid.shape])
        point = plane_basis(model.group.theta.detach().double(), torch.from_numpy(middle[None, :]), D)
        coordinates = (point * spread_filter(model.r.detach().double(), D)).numpy()
    kind = "ring" if draw.is_ring(grid) else "line" if grid.ndim == 1 else "image"
    payload: dict[str, Any] = {
        "kind": kind,
        "shape": list(grid.shape),
        "periodic": list(grid.axes_periodic),
        "dimension": D,
        "samples": samples,
        "coordinates": _floats(coordinates),
        "theta": _floats(model.group.theta.detach().double().numpy()),
        "r": _floats(model.r.detach().double().numpy()),
        "ink": _bytes(draw.INK),
        "pixels": _pixels(draw.pixel_map(grid.size, grid.shape)) if kind == "image" else None,
        "observation": None,
    }
    if run.observed is not None and model.n_features * D <= _MOST_OBSERVATION_NUMBERS:
        E = model.E.detach().double().numpy()
        back = model.scale * (np.linalg.pinv(E, rcond=1e-10) @ model.group.Q.detach().double().numpy())
        unit = float(np.abs(back).max()) / 32767 or 1.0
        payload["observation"] = {
            "size": model.n_features,
            "unit": unit,
            "matrix": _bytes(np.round(back / unit).astype("<i2")),
            "mean": _floats(model.mean.detach().double().numpy()),
            "pixels": _pixels(draw.pixel_map(model.n_features, grid.shape)) if kind == "image" else None,
        }
    return payload


def _move(run: Run) -> dict[str, Any]:
    grid = run.model.grid
    payload = move_payload(run)
    axes = [
        {"number": axis + 1, "reach": length / 2 if wraps else max(2, length // 2)}
        for axis, (length, wraps) in enumerate(zip(grid.shape, grid.axes_periodic, strict=True))
    ]
    return {
        "axes": axes,
        "samples": payload["samples"],
        "kind": payload["kind"],
        "real": run.observed is not None,
        "why": run.notes.get("samples", ""),
        "open": not all(grid.axes_periodic),
        "observation": payload["observation"] is not None,
        # an embedding that drops dimensions gives back a projection, even at rest
        "lossy": int(np.linalg.matrix_rank(run.model.E.detach().double().numpy())) < run.model.n_features,
        "json": _json(payload),
    }


def _floats(values: NDArray) -> str:
    with np.errstate(over="ignore"):
        return _bytes(np.ascontiguousarray(values, dtype="<f4"))


def _bytes(values: NDArray) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")


def _pixels(index: NDArray[np.int32]) -> dict[str, Any]:
    return {"rows": index.shape[0], "columns": index.shape[1], "index": _bytes(index.astype("<i4"))}


def _json(value: Any) -> Markup:
    """JSON that cannot end its <script> element, whatever its strings hold."""
    text = json.dumps(value, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - nothing in it can be read as markup


# -- the model ---------------------------------------------------------------------------------------------------------


def _generators(model: LiftedModel) -> list[dict[str, Any]]:
    """L_eff in the order of the columns, and carried to the grid, W L_eff W⁺, where it should look like a derivative."""
    W = model.lifting_map()
    inverse = np.linalg.pinv(W, rcond=1e-6)
    out = []
    for axis, L in enumerate(model.generators()):
        pictures = []
        for matrix, words in ((L, "columns as they came"), (W @ L @ inverse, "carried to the grid")):
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
                    "limit": f"{limit:.2g}",
                    "alt": f"Heat map of generator {axis + 1}, {words}, {matrix.shape[0]} by {matrix.shape[1]}",
                }
            )
        out.append({"number": axis + 1, "pictures": pictures})
    return out


def _spectrum(model: LiftedModel) -> dict[str, Any]:
    theta = model.group.theta.detach().double().numpy()
    planes = theta.shape[1]
    r = np.abs(model.r.detach().double().numpy())
    lone = r[planes:]  # the constant mode of an odd dimension
    singular = np.linalg.svd(model.lifting_map(), compute_uv=False)
    condition = float(singular[0] / singular[-1]) if singular[-1] > 1e-12 * singular[0] else None
    return {
        "planes": planes,
        "frequencies": _frequency_charts(theta, r[:planes]),
        "filter": _filter_chart(theta, r[:planes], lone),
        "singular": _singular_chart(singular, condition),
        "kernel": _kernel(model),
        "condition": "infinite" if condition is None else f"{condition:.3g}",
        "rank": int(np.sum(singular > 1e-6 * singular[0])),
        "effective": f"{_effective_rank(singular):.0f}",
        "points": model.grid.size,
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
        order = np.argsort(np.abs(theta[0]))
        x, y = (
            Scale(0, len(order) + 1, "plane, by frequency", ((1, "1"), (len(order), str(len(order))))),
            Scale.angle(reach, "|θ|, radians a step", signed=False),
        )
        body = draw.dots(np.arange(1, len(order) + 1), np.abs(theta[0][order]), r[order], x, y)
        return [
            {
                "svg": draw.chart(x, y, body, f"Frequencies of {len(order)} planes, sorted"),
                "words": "Frequencies, sorted",
            }
        ]
    charts = []
    for a in range(len(theta)):
        for b in range(a + 1, len(theta)):
            x, y = Scale.angle(reach, f"θ along axis {b + 1}"), Scale.angle(reach, f"θ along axis {a + 1}")
            # a plane and its conjugate are the same plane: both are drawn
            body = draw.dots(
                np.concatenate([theta[b], -theta[b]]),
                np.concatenate([theta[a], -theta[a]]),
                np.concatenate([r, r]),
                x,
                y,
            )
            words = f"Frequencies, axes {a + 1} and {b + 1}"
            charts.append({"svg": draw.chart(x, y, body, f"{words}: {theta.shape[1]} planes"), "words": words})
    return charts


def _filter_chart(theta: NDArray, r: NDArray, lone: NDArray) -> Markup:
    size = np.sqrt(np.sum(theta**2, axis=0))
    size, weight = np.append(size, np.zeros(len(lone))), np.append(r, lone)
    x = Scale.angle(float(size.max(initial=0.0)), "|θ|, radians a step", signed=False)
    y = Scale.upward(float(weight.max(initial=0.0)), "|r|")
    body = draw.dots(size, weight, weight, x, y, stems=len(weight) <= 200)
    return draw.chart(x, y, body, f"Resolving filter: {len(weight)} weights against frequency")


def _singular_chart(singular: NDArray, condition: float | None) -> Markup:
    floor = max(-8.0, float(np.floor(np.log10(max(singular[-1] / singular[0], 1e-8)) - 1e-9)))
    level = np.log10(np.maximum(singular / singular[0], 10.0**floor))
    ticks = tuple((float(v), f"1e{int(v)}".replace("-", "−") if v else "1") for v in np.linspace(0, floor, 3).round())
    y = Scale(floor - 0.04 * abs(floor), 0.06 * abs(floor), "singular value / largest", tuple(dict(ticks).items()))
    x = Scale(0, len(singular) + 1, "number", ((1, "1"), (len(singular), str(len(singular)))))
    px, py = draw.place(np.arange(1, len(singular) + 1), level, x, y)
    body = f'<path class="line" d="{draw.polyline(px, py)}"/>'
    words = "not invertible" if condition is None else f"condition {condition:.3g}"
    return draw.chart(x, y, body, f"Singular values of the lifting map: {words}")


def _kernel(model: LiftedModel) -> dict[str, Any]:
    """k(t) = w₀ᵀ ρ̂(−t) w₀ = Σ r_k² cos θ_k·t: how sharply the model can draw a single point."""
    grid = model.grid
    theta, r = model.group.theta.detach().double().numpy(), model.r.detach().double().numpy()
    planes = theta.shape[1]
    # on the grid's own steps around zero, so that a sharp kernel shows as one point
    steps = grid.indices() - (np.array(grid.shape) // 2)
    values = np.cos(steps @ theta) @ (r[:planes] ** 2) + float(np.sum(r[planes:] ** 2))
    label = "The kernel: the model's picture of a single point"
    if grid.ndim == 1:
        x = Scale(float(steps[0, 0]), float(steps[-1, 0]), "steps", ((float(steps[0, 0]), f"−{-int(steps[0, 0])}"),
                  (0.0, "0"), (float(steps[-1, 0]), str(int(steps[-1, 0])))))  # fmt: skip
        low = min(float(values.min()) * 1.1, -0.05)
        y = Scale(low, 1.06, "k", ((0.0, "0"), (1.0, "1")))
        px, py = draw.place(steps[:, 0], values, x, y)
        zero = draw.place(np.array([x.low, x.high]), np.zeros(2), x, y)[1][0]
        base, line = draw.polyline(px[[0, -1]], np.full(2, zero)), draw.polyline(px, py)
        body = f'<path class="base" d="{base}"/><path class="line" d="{line}"/>'
        return {"svg": draw.chart(x, y, body, label), "uri": None}
    where = draw.pixel_map(grid.size, grid.shape)
    uri = draw.field_png(values, where, min(0.0, float(values.min())), float(values.max()))
    return {"svg": None, "uri": uri, "rows": where.shape[0], "columns": where.shape[1], "alt": label}


def _moments(run: Run) -> dict[str, Any]:
    kept = 0 if run.observed is None else len(run.observed)
    if run.observed is None or kept < _ENOUGH_FOR_MOMENTS:
        return {"pictures": [], "kept": kept, "needed": _ENOUGH_FOR_MOMENTS}
    pictures = []
    for rows, words in ((run.observed, "observed"), (run.model.lift(run.observed), "recovered")):
        deviation = rows.std(axis=0)
        unit = (rows - rows.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
        folded = draw.fold(unit.T @ unit / kept)
        uri, _ = draw.heat_png(folded)
        pictures.append({"uri": uri, "rows": len(folded), "columns": folded.shape[1], "words": words,
                         "alt": f"Correlations of the {rows.shape[1]} {words} columns"})  # fmt: skip
    return {"pictures": pictures, "kept": kept, "needed": _ENOUGH_FOR_MOMENTS}


def _convergence(run: Run) -> facts.Blocks:
    blocks = facts.summarise({key: value for key, value in run.trace.items() if key != "solver"})
    timings = run.get("timings")
    if isinstance(timings, dict):
        for key, value in timings.items():
            if number(value) is not None:
                blocks.add_fact(facts.pretty(f"seconds, {key}"), facts.show(float(value)))
    # the stages of a trace are the lines of metrics.jsonl: they need no second drawing
    for key, values in run.metrics.items() if not blocks.tables else ():
        blocks.add_series(facts.pretty(key), values)
    return blocks


def _footer(run: Run) -> list[tuple[str, str]]:
    versions = run.get("versions")
    text = (
        ", ".join(f"{k} {facts.show(v)}" for k, v in list(versions.items())[:12]) if isinstance(versions, dict) else ""
    )
    seed = run.get("settings", "seed")
    digest = run.get("input", "sha256")
    finished = next((run.get(key) for key in ("finished", "ended", "date", "created", "started") if run.get(key)), None)
    now = dt.datetime.now(dt.UTC)
    confidence = number(run.model.grid.confidence)
    entries = [
        ("Seed", str(seed)[:40] if seed is not None else "none recorded"),
        ("Input SHA-256", digest if isinstance(digest, str) and len(digest) <= 128 else "none recorded"),
        ("Grid chosen", None if confidence is None else f"by symlift, confidence {confidence:.2g}"),
        ("Embedding", f"{run.model.kind}, {run.model.n_features} → {run.model.group.dimension} dimensions"),
        ("Versions", text or f"none recorded; this report was made by symlift {symlift.__version__}"),
        ("Run", facts.show(finished) if isinstance(finished, str) else None),
        ("Report", f"{now:%Y-%m-%d %H:%M} UTC"),
    ]
    return [(key, value) for key, value in entries if value is not None]
