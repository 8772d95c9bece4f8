"""From numbers to named tests, and from tests to a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from symlift.core.model import LiftedModel
from symlift.diagnosis.alternatives import Alternative
from symlift.diagnosis.confidence import ANGLES, kind_of, probability
from symlift.diagnosis.contract import Diagnosis, NextStep, Test, Verdict
from symlift.diagnosis.measures import Measures
from symlift.diagnosis.settings import DEFAULT, DiagnosisSettings
from symlift.search.judge import Judge
from symlift.solvers.contract import Evidence
from symlift.solvers.ring.closing import ENOUGH

__all__ = [
    "BARRED",
    "CLAIMING",
    "DOUBTED",
    "Further",
    "better",
    "confidence_in",
    "make_tests",
    "name_of",
    "passed_all",
    "rotation_diagnosis",
    "verdict_of",
]

_MOST_POINTS = 400


@dataclass(frozen=True)
class Further:
    """Results of other fits; None and empty if none was made."""

    agreement: float | None = None
    controls: tuple[float, ...] = ()
    rows_needed: float | None = None
    alternatives: tuple[Alternative, ...] = ()


def name_of(alternative: Alternative) -> str:
    """The test's name for another grid: ``locality_on_a_line``, ``locality_on_a_ring``,
    ``locality_on_4x6``.
    """
    grid = alternative.grid
    if grid.ndim > 1:
        return f"locality_on_{grid}"
    return f"locality_on_a_{'ring' if grid.is_ring else 'line'}"


def make_tests(
    measures: Measures, model: LiftedModel, further: Further, settings: DiagnosisSettings = DEFAULT
) -> tuple[Test, ...]:
    """Every test, those that decide first; ``passed`` is None where a number is for information
    only.
    """
    kind = kind_of(measures)
    rows = settings.independent_rows
    if kind == "scattered":
        rows = settings.independent_rows_between * measures.grid.ndim
    deciding = [
        _at_least(
            "effective_rank",
            measures.rank,
            settings.rank,
            "directions that vectors really use; 1 for copies of a column",
        ),
        _at_least(
            "displacements",
            measures.freedom,
            settings.freedom,
            "pairs of points beyond one for each displacement: with few, any data fit the grid",
        ),
        _at_least(
            "independent_rows",
            measures.independent,
            rows,
            f"what the {measures.rows:,} rows are worth, given how alike neighbours in time are",
        ),
        *_local_tests(measures, further, settings),
    ]
    still = measures.stationarity
    base, scatter = settings.stationarity_of_ranks, settings.stationarity_of_ranks_rows
    if measures.places is None:
        base, scatter = settings.stationarity, settings.stationarity_rows
    limit = base + scatter / max(measures.independent, 1.0)
    reading = (
        "0 where moments depend on displacement alone: what translation being a symmetry means"
    )
    if kind in ANGLES:
        deciding.append(Test("stationarity", round(still, 4), reading=reading))
    else:
        deciding.append(
            Test("stationarity", round(still, 4), round(limit, 4), bool(still <= limit), reading)
        )
    deciding += [
        Test(
            name_of(other),
            round(other.share, 4),
            round(_needed(other, settings), 4),
            not better(other, settings),
            f"the grid {other.grid} must not explain the columns better than {measures.grid}, which"
            f" explains {other.here:.2f}",
        )
        for other in further.alternatives
    ]
    sure = confidence_of(measures, further, deciding)
    deciding.append(
        _at_least(
            "confidence",
            sure,
            settings.components_confident if kind == "components" else settings.confident,
            "probability that the result is right, from all of these",
        )
    )
    return (*deciding, *_informing(measures, model))


def _local_tests(measures: Measures, further: Further, settings: DiagnosisSettings) -> list[Test]:
    """The tests of what displacements explain, which differ with what carries a result."""
    kind, evidence, places = kind_of(measures), measures.evidence, measures.places
    tests: list[Test] = []
    if kind in ANGLES:
        tests += [
            Test(
                "found",
                float(evidence.found),
                1.0,
                evidence.found,
                "the solver's own held-out tests",
            ),
            _at_least(
                "locality",
                evidence.agreement or 0.0,
                settings.angles_local,
                "correlation of the phases that two halves of the columns give",
            ),
            _link_or_lead(evidence, kind),
        ]
    elif places is None:
        reading = (
            "how much of the components' energies displacements on the grid explain, on held-out"
            " rows"
        )
        tests.append(
            _at_least("locality", evidence.explained or 0.0, settings.components_claim, reading)
        )
        reading = (
            "the solver's own held-out tests, and another attempt that ends at the same signals"
        )
        tests.append(Test("found", float(evidence.found), 1.0, evidence.found, reading))
    else:
        real = places.across if places.z >= settings.significant else 0.0
        tests += [
            _at_least(
                "locality",
                real,
                settings.local,
                "share of the reproducible part of columns' correlations that other pairs at the"
                " same displacement predict",
            ),
            _at_least(
                "settled",
                places.settled,
                settings.settled,
                "how well the places agree that two halves of the rows give"
                if kind == "scattered"
                else "share of columns that keep their places on held-out rows",
            ),
            _at_least(
                "locality_beyond_control",
                places.fitted - places.control,
                settings.beyond_control,
                "what displacements explain beyond a control in which correlations are assigned to"
                " other pairs",
            ),
        ]
        if kind == "scattered":
            reading = "the part of a column that the columns nearest to it predict"
            tests.append(_at_least("local", places.predicted, Judge.predicted, reading))
        if places.gaps is not None:
            reading = (
                "share of columns that keep their places when gaps are moved to where plain"
                " correlations put them"
            )
            tests.append(_at_least("gaps", places.gaps.stay, settings.gaps, reading))
    if further.controls:
        reached = places.fitted if places is not None else evidence.locality
        p = (1 + sum(value >= reached for value in further.controls)) / (1 + len(further.controls))
        limit = max(0.05, 1 / (1 + len(further.controls)))
        tests.append(
            Test(
                "p_value",
                round(p, 4),
                round(limit, 4),
                p <= limit + 1e-9,
                f"share of {len(further.controls)} controls that reach as far",
            )
        )
    if evidence.replicated is not None:
        tests.append(
            _at_least(
                "replicated",
                evidence.replicated,
                settings.agreement,
                "how well the order agrees with those of two parts of the rows, or the share of"
                " columns that return when all but a part of a grid is placed again",
            )
        )
    if further.agreement is not None:
        tests.append(
            _at_least(
                "agreement_of_halves",
                further.agreement,
                settings.agreement,
                "share of columns, or correlation of signals, that two halves of the rows agree on",
            )
        )
    return tests


def _link_or_lead(evidence: Evidence, kind: str) -> Test:
    """A ring has to close; a torus has to be ahead of all other domains."""
    if kind == "a ring" and evidence.contest is not None:
        return _at_least(
            "closing_link",
            evidence.contest.closing or 0.0,
            ENOUGH,
            "standard errors by which a ring is ahead of every arc: below, a part of it is empty",
        )
    return _at_least(
        "ahead",
        1.0 if evidence.ahead is None else evidence.ahead,
        DEFAULT.ahead,
        f"how far {'the plane of the phases' if kind == 'angles' else 'a torus'} is ahead"
        f" of the next best {'one' if kind == 'angles' else 'domain'}, as a share of its"
        " likelihood",
    )


def confidence_of(measures: Measures, further: Further, tests: Sequence[Test]) -> float:
    """The calibrated probability; close to 0 if there is too little evidence or another grid does
    better.

    Other fits can lower it but never raise it, because it was calibrated without them.
    """
    barred = any(
        not test.passed
        for test in tests
        if test.name in _BARRING or test.name.startswith("locality_on_")
    )
    # what has no place cannot be in its place
    sure = min(probability(measures), measures.placed)
    # halves that were fitted for this, or parts of the rows in which the search has looked itself
    for agreement in (further.agreement, measures.evidence.replicated):
        if agreement is not None:
            sure = further_probability(sure, agreement)
    if barred:
        return min(sure, BARRED)
    # a place can be right where not every test is passed, except for gaps; angles and components
    # that do not pass hardly ever are
    needed: tuple[str, ...] = ("gaps",)
    if measures.places is None:
        needed = (*CLAIMING, "stationarity")
    elif kind_of(measures) == "scattered":  # distances are all that speaks for such places
        needed = ("gaps", "local", "locality")
    doubted = any(test.passed is False for test in tests if test.name in needed)
    return min(sure, DOUBTED) if doubted else sure


#: tests without which all others are meaningless, and the largest confidence if one of them fails
_BARRING = ("effective_rank", "displacements", "independent_rows")
BARRED, DOUBTED = 0.02, 0.3
#: tests that must be passed, in addition to the probability, for a symmetry
CLAIMING = (
    "locality",
    "ahead",
    "closing_link",
    "settled",
    "locality_beyond_control",
    "found",
    "gaps",
    "local",
)


def confidence_in(verdict: Verdict, sure: float) -> float:
    """The confidence of a result with this verdict: what a test has refused is not probable."""
    return min(sure, DOUBTED) if verdict in (Verdict.ABSENT, Verdict.LOCAL) else sure


def rotation_diagnosis(
    verdict: Verdict, tests: tuple[Test, ...], steps: tuple[NextStep, ...]
) -> Diagnosis:
    """The diagnosis of a sphere, from its tests."""
    sure = next(test.value for test in tests if test.name == "confidence")
    return Diagnosis(verdict, confidence_in(verdict, float(sure or 0.0)), tests, steps, "rotation")


def further_probability(sure: float, agreement: float) -> float:
    """A probability reduced by the disagreement of halves: its odds fall fast if the agreement is
    below 0.9, and do not change above.
    """
    odds = (
        sure / max(1 - sure, 1e-9) * float(np.exp(20.0 * min(agreement - DEFAULT.agreement, 0.0)))
    )
    return odds / (1 + odds)


def passed_all(outcome: Mapping[str, bool | None], names: Sequence[str]) -> bool:
    """Whether none of these tests is failed; those that were not made, or decide nothing, are not.

    >>> passed_all({"locality": True, "found": None}, ["locality", "found", "gaps"])
    True
    """
    return all(outcome.get(name) is not False for name in names)


def verdict_of(
    tests: Sequence[Test], placed: bool, settings: DiagnosisSettings = DEFAULT
) -> Verdict:
    """The verdict; ``placed``: columns have places, so that they can be in order where the field is
    not stationary.
    """
    by_name = {test.name: test for test in tests}
    outcome = {test.name: test.passed for test in tests}

    def passed(name: str) -> bool:
        return passed_all(outcome, [name])

    if not all(passed(name) for name in _BARRING):
        return Verdict.ABSENT
    sure = passed("confidence")
    agreed = passed("agreement_of_halves") and passed("p_value")
    if sure and agreed:
        if passed("stationarity") and all(passed(name) for name in CLAIMING):
            return Verdict.PRESENT
        # places are claimed without what only a symmetry needs
        in_order = all(passed(name) for name in CLAIMING if name != "locality")
        if placed and (in_order or not passed("stationarity")):
            return Verdict.ORDERED
    rival = any(test.name.startswith("locality_on_") and not test.passed for test in tests)
    enough = (
        settings.local if rival else settings.clearly_local if placed else settings.components_local
    )
    local = (by_name["locality"].value or 0.0) >= enough
    # "ahead": a plane of angles that another plane equals is within reach of any data in few states
    beyond = all(
        passed(name) for name in ("ahead", "locality_beyond_control", "p_value", "stationarity")
    )
    if "settled" not in by_name:
        beyond = beyond and "found" in by_name and by_name["found"].value == 1.0
    some_order = (
        "settled" not in by_name or (by_name["settled"].value or 0.0) >= settings.hardly_settled
    )
    return Verdict.UNIDENTIFIABLE if local and beyond and some_order else Verdict.ABSENT


def _informing(measures: Measures, model: LiftedModel) -> list[Test]:
    evidence, places = measures.evidence, measures.places
    tests = []
    if evidence.agreement is None and places is not None:
        tests.append(
            Test(
                "found",
                float(evidence.found),
                reading="1 where the solver's own held-out tests are passed",
            )
        )
    if evidence.repeated is not None:
        tests.append(
            Test(
                "repeated",
                evidence.repeated,
                reading="correlation of the signals with those of another attempt",
            )
        )
    if places is not None:
        tests += [
            Test(
                "control",
                round(places.control, 4),
                reading="what displacements explain after correlations are assigned to other pairs",
            ),
            Test(
                "neighbours_predict",
                round(places.predicted, 4),
                reading="part of a column that neighbours predict",
            ),
            Test(
                "partners_predict",
                round(places.partners, 4),
                reading="the same of as many of its best partners",
            ),
            Test(
                "partners_beside",
                round(places.partners_near, 4),
                reading="share of a column's best partners that are its neighbours",
            ),
        ]
    return [
        *tests,
        Test(
            "resolution",
            round(measures.held_out.resolution, 4),
            reading="total correlation per point; smaller is sharper",
        ),
        Test(
            "distortion",
            round(measures.held_out.distortion, 4),
            reading="0 where the map is an isometry",
        ),
        Test(
            "nongaussianity", evidence.nongaussianity, reading="z score of independent components"
        ),
        Test(
            "condition",
            _condition(model),
            reading="largest over smallest singular value of the lifting map",
        ),
        Test(
            "samples_per_parameter",
            round(measures.rows / max(measures.columns, 1), 2),
            reading="rows for each column",
        ),
    ]


def better(other: Alternative, settings: DiagnosisSettings = DEFAULT) -> bool:
    """Whether another grid explains the columns better than the one in use."""
    return other.share > _needed(other, settings)


def _needed(other: Alternative, settings: DiagnosisSettings) -> float:
    return max(other.here + (settings.cut_ring if other.cut else 0.0), settings.rival)


def _at_least(name: str, value: float, threshold: float, reading: str) -> Test:
    return Test(name, round(float(value), 4), threshold, bool(value >= threshold), reading)


def _condition(model: LiftedModel) -> float | None:
    if model.is_sparse or model.n_outputs > _MOST_POINTS:
        return None
    singular = np.linalg.svd(model.map, compute_uv=False)
    # gains of sixty orders of magnitude overflow and count as singular
    return round(float(singular[0] / max(singular[-1], 1e-200 * singular[0], 1e-300)), 2)
