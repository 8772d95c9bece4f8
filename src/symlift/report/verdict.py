"""The texts of the page: the verdict with its tests, and how to read everything else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

from symlift._notebook import larger_is_better, on_scale
from symlift.core.domain import Domain
from symlift.core.sphere import Sphere
from symlift.diagnosis import Claim, Diagnosis, NextStep, Test, Verdict
from symlift.report.facts import cut, pretty, show
from symlift.report.gather import RunContents, number
from symlift.runs.answer import command
from symlift.runs.record import RunRecord
from symlift.solvers.contract import Contest

__all__ = ["evidence_bar", "how_to_read", "verdict_panel"]

_MOST_TESTS, _MOST_STEPS, _MOST_WORDS = 40, 6, 300

#: colour (a class of the style sheet), badge and explanation of each verdict
_MEANING = {
    Verdict.PRESENT: (
        "yes",
        "A symmetry is present",
        (
            "The data have a translation symmetry, and the result passed the tests. The pictures"
            " below can be taken as a reconstruction, up to the ambiguities listed at the end."
        ),
    ),
    Verdict.ORDERED: (
        "ordered",
        "In order, but no symmetry",
        (
            "The places of the columns passed the tests, but the statistics are not the same"
            " everywhere. Use the places; moving a sample along the grid shows what the model"
            " does, not what the data could be."
        ),
    ),
    Verdict.LOCAL: (
        "partly",
        "Neighbours, but no map",
        (
            "Columns that are next to each other here are mostly neighbours, as on roads, graphs or"
            " a sphere pressed on a plane. Use what is near a column; the whole, and distances on"
            " it, are not known to be right."
        ),
    ),
    Verdict.UNIDENTIFIABLE: (
        "partly",
        "Present, but not identifiable",
        (
            "There are signs of a symmetry, but these data do not determine one answer: other"
            " reconstructions explain them equally well. Take the pictures below as one of several"
            " possibilities."
        ),
    ),
    Verdict.ABSENT: (
        "no",
        "No evidence of a symmetry",
        (
            "The result does not differ from what the method finds in data without structure."
            " The pictures below are most likely artefacts of the method; do not rely on them."
        ),
    ),
}
_ANOTHER = (
    "The rows have a structure, and it is not the one that was fitted: no translation of this grid"
    " is a symmetry of them. The pictures below show what the fit made of them."
)
_UNCHECKED = (
    "none",
    "No diagnosis was run",
    (
        "It has not been tested whether this result is real: the method always returns a picture."
        " Run est.diagnose(X) before you rely on it."
    ),
)


def verdict_panel(run: RunContents) -> dict[str, Any]:
    """The verdict in words, the tests that decide it, those for information, and next steps."""
    diagnosis = run.diagnosis
    kind, badge, sentence = _UNCHECKED if diagnosis is None else _MEANING[diagnosis.verdict]
    if isinstance(run.model.grid, Sphere):
        sentence = sentence.replace("translation", "rotation").replace("along the grid", "around")
    panel: dict[str, Any] = {
        "kind": kind,
        "badge": badge,
        "sentence": sentence,
        "said": None,
        "confidence": None,
        "deciding": [],
        "informing": [],
        "steps": [],
        "tally": "",
        "among": None,
        "claims": [],
        "beside": [],
    }
    return panel if diagnosis is None else panel | _diagnosed(diagnosis, run.record)


def _diagnosed(diagnosis: Diagnosis, record: RunRecord | None) -> dict[str, Any]:
    words = diagnosis.words
    other = diagnosis.verdict is Verdict.ABSENT and _is_structured(diagnosis.contest)
    tests = diagnosis.tests[:_MOST_TESTS]
    return {
        "said": words[:1].upper() + words[1:],
        "confidence": None if number(diagnosis.confidence) is None else diagnosis.sure,
        "claims": [_claim(claim) for claim in diagnosis.claims],
        "beside": list(_beside(diagnosis)),
        "tally": cut(diagnosis.tally, _MOST_WORDS),
        "deciding": [_test(test) for test in tests if test.threshold is not None],
        "informing": [_test(test) for test in tests if test.threshold is None],
        "steps": [_step(step, record) for step in diagnosis.next_steps[:_MOST_STEPS]],
        "among": None if diagnosis.contest is None else contest_panel(diagnosis.contest),
        **({"badge": "Another domain", "sentence": _ANOTHER} if other else {}),
    }


def _claim(claim: Claim) -> dict[str, Any]:
    return {
        "name": claim.name.capitalize(),
        "value": f"{claim.probability:.2f}",
        "outcome": "claimed" if claim.holds else "not claimed",
        "bar": _share_bar(claim.probability, f"{claim.name}: {claim.probability:.2f}"),
    }


def _beside(diagnosis: Diagnosis) -> Iterator[str]:
    """The runner-up, and what would change the verdict."""
    if diagnosis.runner_up and diagnosis.contest is None:
        yield f"Next best: {cut(diagnosis.runner_up, _MOST_WORDS)}."
    if diagnosis.would_change:
        yield f"What would change it: {cut(diagnosis.would_change, _MOST_WORDS)}."


def _is_structured(contest: Contest | None) -> bool:
    return contest is not None and contest.domain != ""


def contest_panel(contest: Contest) -> dict[str, Any]:
    """Which domain the rows are points of: in words, and each kind's score as a bar."""
    words = contest.words
    top = max([*contest.scores.values(), 1e-12])
    return {
        "words": words[:1].upper() + words[1:],
        "scores": [
            {
                "name": pretty(name).capitalize(),
                "value": show(value),
                "bar": _share_bar(max(value, 0.0) / top, f"{name}: {value:.3g}"),
            }
            for name, value in sorted(contest.scores.items(), key=lambda pair: -pair[1])
        ],
        "closing": _closing_words(contest),
    }


def _closing_words(contest: Contest) -> str:
    """What is known about the closing link."""
    if contest.closing is None:
        return ""
    open_at = (
        f" The best arc has an opening of about {contest.opening:.0f} degrees."
        if contest.opening
        else ""
    )
    lead = f"{abs(contest.closing):.1f} standard errors"
    if contest.closing < 0:
        return f"A closed curve is {lead} behind an arc.{open_at}"
    return f"A closed curve is {lead} ahead of every arc; two are needed.{open_at}"


def _share_bar(share: float, label: str) -> Markup:
    return Markup(
        '<svg class="evidence" viewBox="0 0 310 16" preserveAspectRatio="none" role="img"'
        ' aria-label="{}"><rect class="track" x="0" y="3" width="300" height="10"/><rect'
        ' class="amount" x="0" y="3" width="{}" height="10"/></svg>'
    ).format(label, f"{300 * min(share, 1.0):.1f}")


def _test(test: Test) -> dict[str, Any]:
    outcome = {True: "passed", False: "not passed", None: ""}[test.passed]
    return {
        "name": pretty(test.name).capitalize(), "value": show(test.value), "limit": _limit(test),
        "outcome": outcome, "reading": cut(test.reading, _MOST_WORDS), "bar": evidence_bar(test),
    }  # fmt: skip


def _limit(test: Test) -> str:
    """The threshold in words."""
    return f"needs at {'least' if larger_is_better(test) else 'most'} {show(test.threshold)}"


def evidence_bar(test: Test) -> Markup:
    """The number as a bar from zero, and a tick at its threshold.

    Shares have a scale from 0 to 1, others up to twice the threshold. A bar that ends in an arrow
    exceeds the scale.
    """
    value, threshold = number(test.value), number(test.threshold)
    if value is None or threshold is None:
        return Markup("")
    along, limit, top = on_scale(value, threshold)
    length, tick = 300 * along, 300 * limit
    arrow = '<path class="beyond" d="M300,3L308,8L300,13Z"/>' if value > top else ""
    label = (
        f"{pretty(test.name)}: {show(test.value)} on a scale from 0 to {show(top)}, threshold"
        f" {show(threshold)}"
    )
    return Markup(
        '<svg class="evidence" viewBox="0 0 310 16" preserveAspectRatio="none" role="img"'
        ' aria-label="{}"><rect class="track" x="0" y="3" width="300" height="10"/><rect'
        ' class="amount" x="0" y="3" width="{}" height="10"/>{}<path class="tick-mark"'
        ' d="M{},0V16"/></svg>'
    ).format(label, f"{length:.1f}", Markup(arrow), f"{tick:.1f}")  # noqa: S704 - our own


def _step(step: NextStep, record: RunRecord | None) -> dict[str, str]:
    text = cut(step.text, _MOST_WORDS)
    return {
        "text": text[:1].upper() + text[1:],
        "call": _call(step.params),
        "command": cut(
            step.command
            if record is None or not step.command
            else command(record, params=step.params, out=f"{Path(record.input.name).stem}-2"),
            _MOST_WORDS,
        ),
    }


def _call(params: Mapping[str, Any]) -> str:
    """The call with these parameters; lists become tuples, since JSON has none.

    >>> _call({"grid": [20], "periodic": True})
    'LatentDomain(grid=(20,), periodic=True)'
    """
    if not params:
        return ""
    given = (
        (key, tuple(value) if isinstance(value, list) else value) for key, value in params.items()
    )
    return cut(
        f"LatentDomain({', '.join(f'{key}={value!r}' for key, value in given)})", _MOST_WORDS
    )


def how_to_read(grid: Domain) -> list[tuple[str, str]]:
    """What was assumed, and what no blind method can determine."""
    if isinstance(grid, Sphere):
        return _sphere_to_read()
    ring = any(grid.periodic)
    several = grid.ndim > 1
    return [
        (
            "What was assumed",
            (
                "That the signals live on a regular grid of the shape named above, and that their"
                " statistics are the same everywhere on it: moving a signal along the grid gives"
                " another signal that is equally likely. Nothing was assumed about the order of"
                " the columns."
            ),
        ),
        (
            "Direction",
            "A signal and its mirror image explain the data equally well"
            + (
                ", on each axis separately; the order of axes of equal length is undetermined, too."
                if several
                else "."
            ),
        ),
        (
            "Sign",
            (
                "A signal and its negative cannot be distinguished: high may be low. All samples"
                " share one sign."
            ),
        ),
        (
            "Origin",
            (
                "A ring has no first point: the whole set may be turned by any amount. "
                if ring
                else ""
            )
            + (
                ""
                if ring and all(grid.periodic)
                else "On an open axis all signals may be shifted by about a step. "
            )
            + "It is the same offset for all samples.",
        ),
        (
            "Sharpness",
            (
                "Filtering all signals in the same way preserves the symmetry. Of all filters,"
                " the modulus is chosen that distorts the observations least, and the phase that"
                " gives the best resolution. Both choices are visible in the kernel."
            ),
        ),
        (
            "Scale",
            (
                "Where columns are points, recovered values are those of the data. Elsewhere"
                " their zero and their unit are chosen, not measured. All samples share one scale."
            ),
        ),
    ]


def _sphere_to_read() -> list[tuple[str, str]]:
    """The same for a sphere."""
    return [
        (
            "What was assumed",
            (
                "That the signals are fields on a sphere, and that their statistics are the same"
                " everywhere on it: turning a field gives another one that is equally likely."
                " Nothing was assumed about the order of the columns."
            ),
        ),
        (
            "Rotation",
            (
                "Where north is, cannot be known: all fields together may be turned by one"
                " rotation. A field and its mirror image explain the data equally well, too."
            ),
        ),
        (
            "Radius",
            (
                "Columns on a cap, such as electrodes, show the radius of their sphere by their"
                " curvature alone: places on a small cap are known up to one factor of all angles."
            ),
        ),
        (
            "Sign and sharpness",
            (
                "Behind a dense mixing, a field and its negative cannot always be distinguished,"
                " nor can fields from what a filter that is the same in all directions makes of"
                " them. All samples share one choice."
            ),
        ),
        (
            "Scale",
            "Zero and unit of recovered values are chosen, not measured; all samples share them.",
        ),
    ]
