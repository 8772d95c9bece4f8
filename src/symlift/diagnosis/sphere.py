"""Is a field on a sphere real?  Third moments of held-out rows, next to what chance finds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from symlift.core.sphere import Sphere
from symlift.diagnosis.contract import Diagnosis, NextStep, Refit, Test, Verdict
from symlift.diagnosis.measures import take_sample
from symlift.diagnosis.settings import DEFAULT
from symlift.diagnosis.sphere_places import check_places_on_sphere, diagnose_places_on_sphere
from symlift.diagnosis.verdict import BARRED, DOUBTED, further_probability, rotation_diagnosis
from symlift.metrics import signal_recovery
from symlift.solvers.contract import Solution
from symlift.solvers.sphere.judge import (
    SIGMAS,
    Judged,
    judge_rows,
    multiplicities,
    needed_share,
)

__all__ = ["check_on_sphere", "diagnose_on_sphere"]

# how steeply the probability rises between what is found by chance and full invariance; results
# halfway are as likely wrong as right
_STEEP = 12.0
_READINGS = {
    "independent_rows": "what the rows are worth, given how alike neighbours in time are",
    "third_moment": (
        "standard errors by which third moments of degrees from 1 on stand out (of pulses of both"
        " signs, which have none: fourth moments with degree 0): without them, no rotation can be"
        " seen"
    ),
    "invariance": (
        "share of what is reproducible of them that rotations of the sphere leave as it is"
    ),
    "found": "1 where rows that the fit held out pass both tests",
    "agreement_of_halves": (
        "correlation of the fields that two halves of the rows give, after one rotation"
    ),
    "confidence": "probability that the result is right, from all of these",
    "control": (
        "invariance that the same search finds in independent directions, where no sphere is"
    ),
    "degrees": "degree up to which third moments show every degree",
}
_NOT_FOUND = "held-out rows show no identifiable sphere: do not trust the result; "


def check_on_sphere(solution: Solution, X: NDArray) -> tuple[Solution, str, Diagnosis]:
    """A fit that has just ended, with its probability, a warning if it should not be trusted, and
    the diagnosis behind both.

    The numbers are those of the fit, from rows that it has held out.
    """
    if solution.placement is not None:
        return check_places_on_sphere(solution, X)
    evidence = solution.evidence
    measured = Judged(evidence.nongaussianity or 0.0, evidence.explained or 0.0, ())
    diagnosis = _judged(solution, X, measured, None)
    doubts = "" if diagnosis.verdict is Verdict.PRESENT else diagnosis.next_steps[0].text
    sure = replace(evidence, confidence=round(diagnosis.confidence, 4))
    return replace(solution, evidence=sure), _NOT_FOUND + doubts if doubts else "", diagnosis


def diagnose_on_sphere(
    solution: Solution, X: NDArray, refit: Refit | None, blocks: NDArray | None
) -> Diagnosis:
    """Tests of a field on a sphere on rows X, and the verdict; with ``refit`` also the agreement of
    two halves of the rows.
    """
    if solution.placement is not None:
        return diagnose_places_on_sphere(solution, X, blocks)
    with threadpool_limits(limits=1):
        measured = judge_rows(solution.model, X)
    agreement = None
    if refit is not None:
        sample = take_sample(X, blocks, len(X))
        one, other = (
            refit(sample.filled[half], seed, None) for seed, half in enumerate(sample.halves)
        )
        rows = sample.filled[: min(len(sample.filled), 2000)]
        same = one.model.grid == other.model.grid
        agreement = (
            signal_recovery(one.model.lift(rows), other.model.lift(rows), one.model.grid).r
            if same
            else 0.0
        )
    return _judged(solution, X, measured, agreement)


def _judged(solution: Solution, X: NDArray, measured: Judged, agreement: float | None) -> Diagnosis:
    tests = _tests(solution, X, measured, agreement)
    passed = {test.name: test.passed for test in tests}
    if all(passed[name] for name in passed if passed[name] is not None):
        verdict = Verdict.PRESENT
    elif (
        not passed["third_moment"]
        and passed.get("independent_rows")
        and _only_second_order(solution, X)
    ):
        verdict = Verdict.UNIDENTIFIABLE
    else:
        verdict = Verdict.ABSENT
    return rotation_diagnosis(verdict, tests, _steps(verdict, passed))


def _tests(
    solution: Solution, X: NDArray, measured: Judged, agreement: float | None
) -> tuple[Test, ...]:
    control = solution.evidence.control or 0.0
    worth = take_sample(X).independent
    words = _READINGS
    tests = [
        _at_least("independent_rows", worth, DEFAULT.independent_rows, words),
        _at_least("third_moment", measured.z, SIGMAS, words),
        _at_least("invariance", measured.share, needed_share(control), words),
        _at_least("found", float(solution.evidence.found), 1.0, words),
    ]
    sure = _probability(measured, control)
    if agreement is not None:
        tests.append(_at_least("agreement_of_halves", agreement, DEFAULT.agreement, words))
        sure = further_probability(sure, agreement)
    if any(test.passed is False for test in tests[:2]):
        sure = min(sure, BARRED)
    if not solution.evidence.found:
        sure = min(sure, DOUBTED)
    tests.append(_at_least("confidence", sure, DEFAULT.confident, words))
    tests.append(Test("control", round(control, 4), reading=words["control"]))
    if measured.degrees:
        tests.append(Test("degrees", float(measured.determined), reading=words["degrees"]))
    return tuple(tests)


def _probability(measured: Judged, control: float) -> float:
    """Grows from what is found by chance to full invariance."""
    way = (measured.share - control) / max(1 - control, 1e-9)
    return 1 / (1 + math.exp(-_STEEP * (float(np.clip(way, -1.0, 1.0)) - 0.5)))


def _only_second_order(solution: Solution, X: NDArray) -> bool:
    """Whether variances come in runs of 1, 3, 5, … where the third moment shows nothing."""
    grid = solution.model.grid
    seen = ~solution.model.unseen
    if not isinstance(grid, Sphere) or seen.sum() < grid.dimension:
        return False
    rows = np.asarray(X[:, seen], dtype=np.float64)
    return multiplicities(np.cov(rows.T), len(rows), grid.known_degree)


def _steps(verdict: Verdict, passed: dict[str, bool | None]) -> tuple[NextStep, ...]:
    if verdict is Verdict.PRESENT:
        return ()
    if verdict is Verdict.UNIDENTIFIABLE:
        text = (
            "variances come in runs of 1, 3, 5, … as on a sphere, but third moments vanish, and"
            " fourth ones with the mean of the field: a Gaussian field cannot be turned back; of"
            " pulses of both signs, give more rows"
        )
        return (NextStep(text),)
    if not passed["independent_rows"]:
        return (NextStep("give more independent rows: these are worth too few for any test"),)
    if not passed["third_moment"]:
        text = "third and fourth moments vanish in sampling noise: give more rows"
        return (NextStep(text),)
    text = "moments are not those of a field on a sphere: let other domains compete, grid='auto'"
    return (NextStep(text, {"grid": "auto"}, "--grid auto"),)


def _at_least(name: str, value: float, threshold: float, words: Mapping[str, str]) -> Test:
    passed = bool(value >= threshold)
    return Test(name, round(float(value), 4), round(threshold, 4), passed, words[name])
