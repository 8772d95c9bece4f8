"""The page of several domains in one table: one line for each, with a link to its own page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import jinja2
from markupsafe import Markup

from symlift._parts_file import PARTS, part_folder, read_parts
from symlift.core.model import LiftedModel
from symlift.diagnosis import Diagnosis
from symlift.report import facts
from symlift.report.gather import RunContents
from symlift.runs.answer import answer, parts_answer
from symlift.solvers.contract import Placement
from symlift.storage.atomic import write_atomically, write_error

__all__ = ["PartLine", "part_pages", "write_parts_page"]

# names of columns outside all parts that are written out
_NAMED = 200


@dataclass(frozen=True)
class PartLine:
    """One part as the page shows it: its answer in one sentence, its verdict, and its own page."""

    sentence: str
    verdict: str
    confidence: str
    page: str

    @classmethod
    def of(
        cls,
        model: LiftedModel,
        placement: Placement | None,
        diagnosis: Diagnosis | None,
        page: str,
    ) -> PartLine:
        """From what is known of a part."""
        return cls(
            answer(model.grid, model.n_features, placement, diagnosis),
            "not checked" if diagnosis is None else diagnosis.verdict.value,
            "" if diagnosis is None else f"{diagnosis.confidence:.2f}",
            page,
        )


def write_parts_page(
    path: Path, name: str, columns: int, lines: Sequence[PartLine], outside: Sequence[str]
) -> Path:
    """Write the page of all parts; ``outside`` are the names of columns that belong to none."""
    css, template = _template()
    page = template.render(
        css=Markup(css),  # noqa: S704 - our own file
        name=facts.cut(name, 200),
        answer=parts_answer(columns, len(lines), len(outside)),
        lines=lines,
        outside=[facts.cut(one, 80) for one in outside[:_NAMED]],
        more=max(0, len(outside) - _NAMED),
    )
    try:
        with write_atomically(path) as temporary:
            temporary.write_bytes(page.encode("utf-8", "replace"))
    except OSError as error:
        raise write_error(path, error, "check the folder's permissions") from None
    return path


def part_pages(folder: Path, write_page_of: Callable[[Path], RunContents], name: str) -> Path:
    """Write the pages of saved parts and the page that leads to them, ``folder/report.html``.

    ``write_page_of`` writes the page of one part's folder and returns what it showed.
    """
    record = read_parts(folder)
    lines = []
    for k in range(record.count):
        place = part_folder(folder, k)
        run = write_page_of(place)
        page = f"{PARTS}/{place.name}/report.html"
        lines.append(PartLine.of(run.model, run.placement, run.diagnosis, page))
    names = record.feature_names or [f"x{i}" for i in range(len(record.labels))]
    left = [] if record.mapped else [i for i, part in enumerate(record.labels) if part < 0]
    target = folder / "report.html"
    return write_parts_page(target, name, len(names), lines, [names[i] for i in left])


@cache
def _template() -> tuple[str, jinja2.Template]:
    here = files("symlift.report")
    css, text = (
        here.joinpath(name).read_text(encoding="utf-8") for name in ("report.css", "parts.html.j2")
    )
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return css, environment.from_string(text)
