"""The steps of a diagnosis: sample, measures, tests, verdict, next steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from symlift.core.sphere import Sphere
from symlift.diagnosis.bootstrap import with_survival
from symlift.diagnosis.claims import claims_of, next_best, something_of, strongest
from symlift.diagnosis.confidence import contest_of
from symlift.diagnosis.contract import Asked, Diagnosis, Refit, Verdict
from symlift.diagnosis.measures import Sample, measure, take_sample
from symlift.diagnosis.places import PlacedRows, rows_in_places
from symlift.diagnosis.refits import all_further, cheap_further
from symlift.diagnosis.sphere import check_on_sphere, diagnose_on_sphere
from symlift.diagnosis.steps import next_steps
from symlift.diagnosis.verdict import Further, confidence_in, make_tests, verdict_of
from symlift.errors import InputError
from symlift.solvers.contract import Solution
from symlift.solvers.registry import TRAINED
from symlift.statistics.selection import HeldOut

__all__ = ["check_fit", "check_request", "diagnose"]

_ROWS = 30_000
_NOT_FOUND = "held-out rows show no identifiable domain on this grid: do not trust the result; "
_NOT_CONVERGED = (
    "training ended before it had converged: do not trust the result; give it more steps or"
    " seconds, or another random_state, and look at diagnose"
)


def check_request(level: str, blocks: Any, rows: int) -> None:
    """Refuse a level that is unknown, and blocks that do not name every row."""
    if level not in ("quick", "full"):
        raise InputError(f"level {level!r} is unknown: use quick or full")
    if blocks is not None and np.shape(blocks) != (rows,):
        raise InputError(
            f"blocks has the shape {np.shape(blocks)}: give one name for each of the {rows} rows"
        )


def check_fit(
    solution: Solution, X: NDArray, asked: Asked, names: Sequence[str] | None = None
) -> tuple[Solution, str, Diagnosis | None]:
    """A fit that has just ended, with its probability and that of each column, a warning if it
    should not be trusted, and the quick diagnosis behind both.

    Solvers that report no evidence, those that train and the random baseline, are believed; but
    training knows by itself where it has not converged.
    """
    if isinstance(solution.model.grid, Sphere):
        return check_on_sphere(solution, X)
    silent = solution.evidence.explained is None and solution.evidence.agreement is None
    # a refined model has the evidence of its start
    if silent or asked.solver in TRAINED:
        doubts = _NOT_CONVERGED if silent and not solution.evidence.found else ""
        return solution, doubts, None
    # products of small matrices become slower with a second thread
    with threadpool_limits(limits=1):
        sample = take_sample(X)
        placed = rows_in_places(sample.raw, solution, sample.halves)
        further, measured = cheap_further(solution, placed), _just_measured(solution, placed)
        diagnosis = _judged(solution, sample, placed, further, asked, names, measured=measured)
        sure = round(diagnosis.confidence, 4)
        evidence = replace(solution.evidence, confidence=sure, contest=diagnosis.contest)
        placement = with_survival(solution, sample, placed, diagnosis.confidence)
    doubts = (
        ""
        if diagnosis.verdict in (Verdict.PRESENT, Verdict.ORDERED)
        else _NOT_FOUND + diagnosis.next_steps[0].text
    )
    return replace(solution, evidence=evidence, placement=placement), doubts, diagnosis


def _just_measured(solution: Solution, placed: PlacedRows | None) -> HeldOut | None:
    """Terms of the objective that the fit has measured itself, if no test depends on them: columns
    that have places are tested by the stationarity of their ranks.
    """
    evidence = solution.evidence
    if placed is None or evidence.carried_by == "distances":
        return None
    if evidence.stationarity is None or evidence.resolution is None or evidence.distortion is None:
        return None
    return HeldOut(evidence.stationarity, evidence.resolution, evidence.distortion)


def diagnose(
    solution: Solution,
    X: NDArray,
    refit: Refit | None = None,
    trained: bool = False,
    blocks: ArrayLike | None = None,
    asked: Asked | None = None,
    names: Sequence[str] | None = None,
) -> Diagnosis:
    """Tests of a result on rows X (n, d), and the verdict that follows.

    Without ``refit`` only cheap tests are made: numbers of two halves of the rows, and a control of
    the placement. With it also the agreement of fits to two halves of the rows, several controls
    and other grids. Halves are contiguous in time if rows depend on their neighbours, or consist of
    whole ``blocks`` (n,) if those are given.
    """
    named = None if blocks is None else np.asarray(blocks)
    if isinstance(solution.model.grid, Sphere):
        return diagnose_on_sphere(solution, X, refit, named)
    if refit is None:
        sample = take_sample(X, named)
        with threadpool_limits(limits=1):
            placed = rows_in_places(sample.raw, solution, sample.halves)
            return _judged(
                solution, sample, placed, cheap_further(solution, placed), asked or Asked(), names
            )
    sample = take_sample(X, named, _ROWS)
    further, reference = all_further(solution, sample, refit, trained)
    placed = rows_in_places(sample.raw, solution, sample.halves)
    return _judged(solution, sample, placed, further, asked or Asked(), names, reference)


def _judged(
    solution: Solution,
    sample: Sample,
    placed: PlacedRows | None,
    further: Further,
    asked: Asked,
    names: Sequence[str] | None,
    reference: Solution | None = None,
    measured: HeldOut | None = None,
) -> Diagnosis:
    """Tests, verdict and next steps; the numbers of a ``reference`` are used if the solution has
    none.
    """
    measures = measure(solution, sample, placed, measured=measured)
    if reference is not None:
        theirs = rows_in_places(sample.raw, reference, sample.halves)
        measures = replace(measure(reference, sample, theirs), held_out=measures.held_out)
    tests = make_tests(measures, solution.model, further)
    sure = float(next(test.value for test in tests if test.name == "confidence") or 0.0)
    among = contest_of(measures, sure)
    something = something_of(measures, sure, among)
    claims = claims_of(measures, tests, sure, something, among)
    verdict = strongest(verdict_of(tests, solution.placement is not None), claims)
    sure = confidence_in(verdict, sure)
    gaps = None if measures.places is None else measures.places.gaps
    between = () if gaps is None else gaps.between
    rows = sample.raw if sample.is_wide else sample.filled
    steps = next_steps(verdict, tests, solution, further, rows, asked, names, between)
    return Diagnosis(
        verdict, sure, tests, steps, contest=among, claims=claims, something=round(something, 4),
        runner_up=next_best(further, among),
    )  # fmt: skip
