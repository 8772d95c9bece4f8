"""Make the page of a run: each panel is one function of the run.

A panel whose data are missing is replaced by a short note.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import os
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

import symlift
from symlift._estimator_file import EstimatorRecord
from symlift._parts_file import PARTS_FILE
from symlift.core.domain import Domain, domain_words
from symlift.core.model import LiftedModel
from symlift.core.sphere import Sphere
from symlift.report import facts
from symlift.report.gather import RunContents, number, read_run
from symlift.report.globe import globe_gallery, globe_panel
from symlift.report.moving import move_panel
from symlift.report.places import places_panel
from symlift.report.several import part_pages
from symlift.report.signals import gallery_panel, moments_panel, ring_of
from symlift.report.spectrum import generators_panel, spectrum_panel
from symlift.report.take import take_panel
from symlift.report.verdict import evidence_bar, how_to_read, verdict_panel
from symlift.runs.answer import answer
from symlift.runs.record import RECORD, Status, open_run
from symlift.solvers.contract import GridCandidate, Placement
from symlift.storage.atomic import write_atomically, write_error
from symlift.storage.sample_file import Samples

__all__ = ["render", "write_page", "write_report"]

_MOST_WARNINGS, _MOST_VERSIONS = 5, 12
_OTHER = "locality_on_"
_MOST_RUNNERS = 8


def write_report(run: str | os.PathLike[str]) -> Path:
    """Write ``report.html`` into the folder ``run`` of a run or of a saved model, and return its
    path.

    One file that opens offline: style, script and pictures are inside. Only the model has to
    exist; a panel whose data are missing is left out with a note. Several domains have a page
    each, and this one leads to them.
    """
    folder = Path(run)
    if not os.path.lexists(folder / PARTS_FILE):
        return _write(read_run(folder), folder / "report.html")

    def write_one(place: Path) -> RunContents:
        contents = read_run(place)
        _write(contents, place / "report.html")
        return contents

    has_record = (folder / RECORD).is_file()
    name = open_run(folder).record.input.name if has_record else folder.resolve().name
    return part_pages(folder, write_one, name)


def write_page(
    path: str | os.PathLike[str],
    model: LiftedModel,
    estimator: EstimatorRecord,
    placement: Placement | None,
    samples: Samples | None = None,
) -> Path:
    """Write the page of a fit that is in memory."""
    target = Path(path)
    notes = {"samples": "no rows were kept with this fit"} if samples is None else {}
    return _write(
        RunContents(Path(target.stem), model, None, estimator, placement, samples, notes), target
    )


def _write(run: RunContents, target: Path) -> Path:
    page = render(run)
    try:
        with write_atomically(target) as temporary:
            # a name may hold characters that UTF-8 cannot encode; the report is still written
            temporary.write_bytes(page.encode("utf-8", "replace"))
    except OSError as error:
        raise write_error(target, error, "check the folder's permissions") from None
    return target


def render(run: RunContents) -> str:
    """The page as text."""
    css, grids, globe, save, template = _parts()
    on_sphere = isinstance(run.model.grid, Sphere)
    move = globe if on_sphere else grids
    return template.render(
        css=Markup(css),  # noqa: S704 - our own files
        js=Markup(move),  # noqa: S704
        save=Markup(save),  # noqa: S704
        # the browser runs these scripts and no other, whatever a name may contain
        hashes=[
            base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
            for text in (move, save)
        ],
        header=_header(run),
        alternatives=_alternatives(run),
        verdict=verdict_panel(run),
        gallery=globe_gallery(run) if on_sphere else gallery_panel(run),
        no_samples=run.notes.get("samples"),
        places=places_panel(run),
        ring=ring_of(run),
        large=_large(run),
        move=move_panel(run),
        globe=globe_panel(run),
        generators=generators_panel(run),
        spectrum=spectrum_panel(run),
        moments=None if run.is_large or on_sphere else moments_panel(run),
        convergence=_convergence(run),
        reading=how_to_read(run.model.grid),
        take=take_panel(run),
        footer=_footer(run),
        notes=_notes(run),
    )


@cache
def _parts() -> tuple[str, str, str, str, jinja2.Template]:
    """Style, scripts and template of every page."""
    here = files("symlift.report")
    names = ("report.css", "report.js", "globe.js", "save.js", "template.html.j2")
    css, move, globe, save, text = (
        here.joinpath(name).read_text(encoding="utf-8") for name in names
    )
    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=None,
    )
    return css, move, globe, save, environment.from_string(text)


def _header(run: RunContents) -> dict[str, Any]:
    n_features = f"{facts.show(run.counted)} columns"
    entries = [
        ("Domain", _shape(run.domain)),
        (
            "Data",
            n_features if run.n_rows is None else f"{facts.show(run.n_rows)} rows × {n_features}",
        ),
        ("Channels", facts.show(run.model.channels) if run.model.channels > 1 else None),
        ("Solver", _solver(run)),
        ("Time to fit", None if run.seconds is None else _duration(run.seconds)),
    ]
    sentence = answer(run.domain, run.counted, run.placement, run.diagnosis)
    return {
        "name": facts.cut(run.name, 200),
        "answer": sentence,
        "entries": [(k, v) for k, v in entries if v],
        "status": _status(run),
    }


def _alternatives(run: RunContents) -> dict[str, Any] | None:
    """The grid of the model and how well other grids explain the data, or None.

    The others are those of the grid search and those of the diagnosis.
    """
    grid, sure = run.domain, number(run.model.grid.confidence)
    compared = run.estimator.trace.candidates
    tests = () if run.diagnosis is None else run.diagnosis.tests
    others = [
        {
            "name": _other_words(test.name),
            "value": facts.show(test.value),
            "words": (
                "explains less, as it should"
                if test.passed
                else "does equally well: see the next steps"
            ),
            "bar": evidence_bar(test),
        }
        for test in tests
        if test.name.startswith(_OTHER)
    ]
    if not others and not compared and sure is None:
        return None
    origin = "given" if sure is None else f"proposed from the data, confidence {sure:.2f}"
    return {
        "found": _shape(grid),
        "how": origin,
        "others": others,
        "runners": _runners(compared, grid),
    }


def _other_words(name: str) -> str:
    """Words for another grid, from the name of its test.

    >>> _other_words("locality_on_a_line"), _other_words("locality_on_4x6")
    ('Line', '4 × 6 grid')
    """
    grid = facts.pretty(name.removeprefix(_OTHER))
    return (
        grid.removeprefix("a ").capitalize()
        if grid.startswith("a ")
        else f"{grid.replace('x', ' × ')} grid"
    )


def _runners(compared: Sequence[GridCandidate], grid: Domain) -> list[dict[str, Any]]:
    """The domains of the search, the chosen one first, each with a bar of its share."""
    shown = []
    for one in compared[:_MOST_RUNNERS]:
        share = number(one.share)
        other = one.domain
        bar = Markup(
            '<svg class="evidence" viewBox="0 0 310 16" preserveAspectRatio="none" role="img"'
            ' aria-label="{}"><rect class="track" x="0" y="3" width="300" height="10"/><rect'
            ' class="amount" x="0" y="3" width="{}" height="10"/></svg>'
        ).format(
            f"{_shape(other)} explains {facts.show(share)}",
            f"{300 * min(max(share or 0.0, 0.0), 1.0):.1f}",
        )
        shown.append(
            {
                "name": _shape(other),
                "value": facts.show(share),
                "taken": _taken(other, grid),
                "bar": bar,
            }
        )
    return shown


def _taken(other: Domain, grid: Domain) -> bool:
    """Whether a candidate is the domain; the degree of a sphere is found after that."""
    if isinstance(other, Sphere):
        return isinstance(grid, Sphere)
    return other == grid


def _shape(grid: Domain) -> str:
    words = domain_words(grid)
    return words[:1].upper() + words[1:]


def _solver(run: RunContents) -> str:
    """The requested solver, and in brackets the one that was used."""
    asked = run.estimator.solver if run.record is None else run.record.settings.solver
    used = run.estimator.trace.solver or (run.record.solver if run.record is not None else "")
    return facts.show(asked) if used in ("", asked) else f"{facts.show(asked)} ({facts.show(used)})"


def _status(run: RunContents) -> str | None:
    """A sentence for a run that is not done."""
    if run.record is None or run.record.status is Status.DONE:
        return None
    if run.record.status is Status.FAILED:
        return f"This run has failed: {facts.cut(run.record.error or 'it did not say why', 300)}."
    return f"This run has not ended: its status is “{run.record.status}”."


def _notes(run: RunContents) -> list[str]:
    """Warnings of the fit, and what is missing from the report."""
    warnings = [] if run.record is None else run.record.warnings
    read = [] if run.record is None else run.record.input.notes
    lines = [f"As the file was read: {facts.cut(text, 300)}." for text in read[:_MOST_WARNINGS]]
    lines += [f"Warning: {facts.cut(text, 300)}" for text in warnings[:_MOST_WARNINGS]]
    if len(warnings) > _MOST_WARNINGS:
        lines.append(f"{len(warnings) - _MOST_WARNINGS} more warnings are in run.json.")
    # a saved estimator has no record, and nothing is wrong with that
    missing = [
        text
        for name, text in run.notes.items()
        if name != "samples" and text != f"{RECORD} is missing"
    ]
    return lines + [
        f"{facts.cut(text, 300)}. Its part of the page is left out." for text in missing
    ]


def _large(run: RunContents) -> str | None:
    """What is left out of a large model's page, and why."""
    if not run.is_large:
        return None
    left_out = ["moving a sample", "generators", "frequencies", "correlations"]
    if run.model.grid.is_ring:
        left_out.insert(0, "the ring's pictures")
    size = (
        f"{facts.show(run.model.n_features)} columns in {facts.show(run.model.group.dimension)}"
        " dimensions"
    )
    words = f"{', '.join(left_out[:-1])} and {left_out[-1]}"
    return (
        f"This model is large ({size}). {words[:1].upper() + words[1:]} need matrices of that size,"
        " and are left out."
    )


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.2g} s" if seconds < 1 else f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _convergence(run: RunContents) -> facts.Blocks:
    blocks = facts.of_trace(run.estimator.trace)
    shown = () if run.diagnosis is None else [test.name for test in run.diagnosis.tests]
    blocks.add_facts(facts.of_evidence(run.estimator.evidence, but=shown))
    if run.record is not None:
        score = number(run.record.score)
        if score is not None:
            blocks.add_facts(
                [
                    (
                        "score, higher is better: for fits of the same rows on the same grid",
                        facts.show(score),
                    )
                ]
            )
        blocks.add_facts(
            (f"seconds, {name}", facts.show(value)) for name, value in run.record.timings if value
        )
    return blocks


def _footer(run: RunContents) -> list[tuple[str, str]]:
    record, grid = run.record, run.model.grid
    seed = run.estimator.random_state if record is None else record.settings.seed
    versions = {} if record is None else record.versions
    packages = ", ".join(
        f"{facts.show(k)} {facts.show(v)}" for k, v in list(versions.items())[:_MOST_VERSIONS]
    )
    sure = number(grid.confidence)
    entries = [
        ("Seed", "none recorded" if seed is None else str(seed)[:40]),
        (
            "Input SHA-256",
            "none recorded" if record is None else facts.cut(record.input.sha256, 128),
        ),
        ("Grid chosen", None if sure is None else f"by symlift, confidence {sure:.2g}"),
        (
            "Embedding",
            f"{run.model.kind}, {run.model.n_features} → {run.model.group.dimension} dimensions",
        ),
        (
            "Versions",
            packages or f"none recorded; this report was made by symlift {symlift.__version__}",
        ),
        ("Run", None if record is None else facts.show(record.ended or record.started)),
        ("Report", f"{dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M} UTC"),
    ]
    return [(key, value) for key, value in entries if value is not None]
