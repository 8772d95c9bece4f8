"""Are columns on a sphere in their places?  What angles explain of other rows and pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from symlift.core.sphere import Sphere
from symlift.diagnosis.confidence import CURVES
from symlift.diagnosis.contract import Diagnosis, NextStep, Test, Verdict
from symlift.diagnosis.measures import Sample, take_sample
from symlift.diagnosis.places import PlacedRows, PlaceMeasures, measure_places
from symlift.diagnosis.settings import DEFAULT
from symlift.diagnosis.verdict import BARRED, DOUBTED, rotation_diagnosis
from symlift.search.criterion import DistanceClasses
from symlift.search.judge import Judge
from symlift.search.problem import Halves
from symlift.search.rows import score_rows
from symlift.search.settings import PlaceSettings
from symlift.solvers.contract import Placement, Solution
from symlift.solvers.sphere.angles import same_places
from symlift.solvers.sphere.places import (
    agreement_of_ways,
    angle_classes,
    axes_places,
    beyond_circles,
    leaves_out_sources,
    places_of,
)

__all__ = ["check_places_on_sphere", "diagnose_places_on_sphere"]

# most columns that are tested, and fewest rows of a half
_COLUMNS, _FEWEST_ROWS = 256, 8
_NOT_FOUND = "held-out rows show no columns on a sphere: do not trust the result; "
_READINGS = {
    "independent_rows": "what the rows are worth, given how alike neighbours in time are",
    "locality": (
        "share of the reproducible part of columns' correlations that other pairs at the same"
        " angle predict"
    ),
    "settled": "how well the places agree that two halves of the rows give",
    "agreement_of_ways": (
        "how well places by profiles of partial correlations agree with those by what the leading"
        " component leaves, each from one half of the rows; under far sources, in place of locality"
    ),
    "locality_beyond_control": (
        "what angles explain beyond a control in which correlations are assigned to other pairs"
    ),
    "beyond_a_circle": (
        "standard errors by which places on the sphere explain more than places on a great circle"
    ),
    "stationarity": (
        "0 where moments depend on the angle alone: what rotation being a symmetry means"
    ),
    "found": "1 where the solver's own held-out tests are passed",
    "confidence": "probability that the result is right, from all of these",
}


def check_places_on_sphere(solution: Solution, X: NDArray) -> tuple[Solution, str, Diagnosis]:
    """A fit that has just ended, with its probability and that of each column, a warning if it
    should not be trusted, and the diagnosis behind both.
    """
    diagnosis = diagnose_places_on_sphere(solution, X, None)
    sure = round(diagnosis.confidence, 4)
    placement = solution.placement
    if placement is not None:
        confidence = np.where(placement.point >= 0, sure, placement.confidence)
        placement = replace(placement, confidence=confidence)
    fine = diagnosis.verdict in (Verdict.PRESENT, Verdict.ORDERED)
    evidence = replace(solution.evidence, confidence=sure)
    doubts = "" if fine else _NOT_FOUND + diagnosis.next_steps[0].text
    return replace(solution, evidence=evidence, placement=placement), doubts, diagnosis


def diagnose_places_on_sphere(solution: Solution, X: NDArray, blocks: NDArray | None) -> Diagnosis:
    """Tests of places on a sphere on rows X, and the verdict."""
    sample = take_sample(X, blocks)
    with threadpool_limits(limits=1):
        tests = _tests(solution, sample)
    passed = {test.name: test.passed for test in tests}
    decided = [name for name, value in passed.items() if value is not None]
    wrong = [name for name in decided if not passed[name]]
    verdict = Verdict.ABSENT
    if not wrong:
        verdict = Verdict.PRESENT
    elif wrong == ["stationarity"]:
        verdict = Verdict.ORDERED
    return rotation_diagnosis(verdict, tests, _steps(verdict, passed))


def _tests(solution: Solution, sample: Sample) -> tuple[Test, ...]:
    rows = _placed_rows(solution.placement, sample)
    tests = [_at_least("independent_rows", sample.independent, DEFAULT.independent_rows)]
    if rows is None:
        return (
            *tests,
            _at_least("found", 0.0, 1.0),
            _at_least("confidence", 0.0, DEFAULT.confident),
        )
    u = np.asarray(rows.coordinates)
    axes = isinstance(solution.model.grid, Sphere) and solution.model.grid.axes
    settled, several = _agreement(rows.halves, axes)
    measures = replace(measure_places(rows, np.random.default_rng(0)), settled=settled)
    real = measures.across if measures.z >= DEFAULT.significant else 0.0
    # far sources are no function of angles
    under = real < DEFAULT.local and leaves_out_sources(solution.trace.chosen)
    if under:
        measures = replace(measures, across=several)
    limit = DEFAULT.stationarity_of_ranks + DEFAULT.stationarity_of_ranks_rows / max(
        sample.independent, 1.0
    )
    still = measures.stationarity
    tests += [
        *(
            [
                Test("locality", round(real, 4), reading=_READINGS["locality"]),
                _at_least("agreement_of_ways", several, DEFAULT.settled),
            ]
            if under
            else [_at_least("locality", real, DEFAULT.local)]
        ),
        _at_least("settled", settled, DEFAULT.settled),
        _at_least(
            "locality_beyond_control", measures.fitted - measures.control, DEFAULT.beyond_control
        ),
        _at_least("beyond_a_circle", beyond_circles(rows.halves, u, axes), Judge.errors),
        Test(
            "stationarity",
            round(still, 4),
            round(limit, 4),
            still <= limit,
            _READINGS["stationarity"],
        ),
        _at_least("found", float(solution.evidence.found), 1.0),
    ]
    sure = CURVES["scattered"](_features(measures))
    if not tests[0].passed:
        sure = min(sure, BARRED)
    if any(test.passed is False for test in tests if test.name not in ("stationarity", "found")):
        sure = min(sure, DOUBTED)
    return (*tests, _at_least("confidence", sure, DEFAULT.confident))


def _features(measures: PlaceMeasures) -> dict[str, float]:
    """The inputs of the curve for columns between points, each between 0 and 1."""

    def clip(value: float) -> float:
        return min(max(float(value), 0.0), 1.0)

    predicted, partners = max(measures.predicted, 0.0) + 0.02, max(measures.partners, 0.0) + 0.02
    return {
        "agreement": clip((measures.settled - 0.6) / 0.35),
        "across": clip(measures.across) * clip((measures.z - 2) / 3),
        "beyond": clip((measures.fitted - measures.control) / 0.5),
        "neighbours": clip(2 * predicted / partners - 1),
        "beside": clip((measures.partners_near - measures.by_chain) / (0.85 - measures.by_chain)),
    }


def _placed_rows(placement: Placement | None, sample: Sample) -> PlacedRows | None:
    """Scores of the columns that have places, with classes of their angles."""
    if placement is None:
        return None
    column = np.flatnonzero((placement.point >= 0) & (placement.reason == ""))[:_COLUMNS]
    rows = score_rows(
        sample.raw[:, column], np.random.default_rng(0), PlaceSettings(rows=len(sample.raw))
    )
    first, second = (np.flatnonzero(np.isin(rows.number, half)) for half in sample.halves)
    if min(len(first), len(second)) < _FEWEST_ROWS:
        return None
    halves = Halves(rows, np.arange(len(column)), first, second, PlaceSettings().ridges)
    u = placement.coordinates[column]
    near = angle_classes(u, isinstance(placement.grid, Sphere) and placement.grid.axes)
    # a column is at no angle to itself: a class of its own, where moments hold its noise, too
    index = np.where(np.eye(len(u), dtype=bool), 0, near.index + 1).astype(np.int32)
    classes = DistanceClasses(index, near.classes + 1)
    return PlacedRows(rows, column, np.arange(len(column)), classes, halves, u)


def _agreement(halves: Halves, axes: bool) -> tuple[float, float]:
    """The best agreement of places that the two halves of the rows give, over ways to find them;
    and that of two ways that leave far sources out, each with one half.
    """
    if axes:
        placed = axes_places(halves, PlaceSettings())
        return (0.0 if placed is None else placed.agreement), 0.0
    one, other = (places_of(c) for c in halves.correlations)
    both = {name: same_places(u, other[name]) for name, u in one.items() if name in other}
    return max(both.values(), default=0.0), agreement_of_ways(one, other)


def _steps(verdict: Verdict, passed: dict[str, bool | None]) -> tuple[NextStep, ...]:
    if verdict is Verdict.PRESENT:
        return ()
    if verdict is Verdict.ORDERED:
        text = (
            "use the places (est.placement_), and not est.shift: the columns are in their places,"
            " rotation is no symmetry"
        )
        return (NextStep(text),)
    if passed.get("beyond_a_circle") is False:
        text = "places on a circle explain as much: fit a ring or a line, or let grids compete"
        return (NextStep(text, {"grid": "auto"}, "--grid auto"),)
    names: Sequence[str] = [name for name, value in passed.items() if value is False]
    text = (
        f"tests not passed: {', '.join(names)}; give more rows, or let grids compete, grid='auto'"
    )
    return (NextStep(text.replace("_", " "), {"grid": "auto"}, "--grid auto"),)


def _at_least(name: str, value: float, threshold: float) -> Test:
    passed = bool(value >= threshold)
    return Test(name, round(float(value), 4), round(threshold, 4), passed, _READINGS[name])
