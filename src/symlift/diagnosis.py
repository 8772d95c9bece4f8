"""Is the result real?  An answer from the data alone: a verdict, the named tests that it rests on, and what to do next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.metrics.equivariance import equivariance_error
from symlift.metrics.recovery import signal_recovery
from symlift.solvers.contract import Reach, Solution
from symlift.statistics.selection import held_out

__all__ = ["Diagnosis", "NextStep", "Refit", "Test", "Verdict", "diagnose"]


class Verdict(StrEnum):
    """What was found; the value is the code that is stored, :attr:`words` is how people read it."""

    PRESENT = "present"
    ORDERED = "ordered"
    UNIDENTIFIABLE = "unidentifiable"
    ABSENT = "absent"

    @property
    def words(self) -> str:
        """The verdict as a sentence."""
        return _WORDS[self]


_WORDS = {
    Verdict.PRESENT: "an identifiable translation symmetry is present and stable",
    Verdict.ORDERED: "the columns are in their places, but the field is not stationary: translation is no symmetry of it",
    Verdict.UNIDENTIFIABLE: "a translation symmetry is present, but not identifiable from these data",
    Verdict.ABSENT: "no evidence for a translation symmetry",
}

_ROWS, _SIMILARITY_ROWS, _HEAD = 30_000, 6_000, 4_000
# halves of the data have to give the same signals; columns permuted over samples must not look as local as the data do
_AGREEMENT, _LOCALITY_MARGIN = 0.9, 0.2
# columns that are shuffled points of a line or ring explain this much of their statistics there
_ARRANGED = 0.8


@dataclass(frozen=True)
class Test:
    """One named test: its number, its threshold (None: for information), whether it is passed, and what it means."""

    __test__ = False  # pytest collects classes of this name

    name: str
    value: float | None
    threshold: float | None = None
    passed: bool | None = None
    reading: str = ""


@dataclass(frozen=True)
class NextStep:
    """What to do next: in words, as parameters of :class:`~symlift.LatentDomain`, and as a command."""

    text: str
    params: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """A verdict, how sure it is (0 to 1), the tests that it rests on, and next steps where there is something to do.

    >>> print(Diagnosis(Verdict.ABSENT, 0.9))
    no evidence for a translation symmetry (confidence 0.90)
    """

    verdict: Verdict
    confidence: float
    tests: tuple[Test, ...] = ()
    next_steps: tuple[NextStep, ...] = ()

    def __str__(self) -> str:
        return f"{self.verdict.words} (confidence {self.confidence:.2f})"

    def value(self, name: str) -> float | None:
        """The number of one test, None where it was not made."""
        return next((test.value for test in self.tests if test.name == name), None)


#: refit(rows, seed, reach) → a solution on the same grid from other rows; the fast solver in place of one that trains
Refit = Callable[[NDArray, int, Reach | None], Solution]


def diagnose(solution: Solution, X: NDArray, refit: Refit, trained: bool = False) -> Diagnosis:
    """Held-out numbers of a fit, its agreement between independent halves of the data, and a control.

    The control permutes the samples of each column independently, which keeps every marginal and destroys the field.  Training
    again on each would take hours: a ``trained`` model has to agree with what the fast solver finds in either half instead.
    """
    rng = np.random.default_rng(0)
    rows = X if len(X) <= _ROWS else X[np.sort(rng.choice(len(X), _ROWS, replace=False))]
    rows = rows[rng.permutation(len(rows))]
    model, grid = solution.model, solution.model.grid
    W = model.lifting_map()
    parts = held_out(W, rows - rows.mean(axis=0), LagClasses(grid))
    singular = np.linalg.svd(W, compute_uv=False)
    spectrum = np.linalg.eigvalsh(np.cov(rows.T).reshape(rows.shape[1], -1))
    # halves go as far as the fit itself went; the control need not go further than components to show that it has nothing
    reach = None if trained else solution.evidence.reach
    first, second = (refit(part, seed, reach) for seed, part in enumerate((rows[::2], rows[1::2])))
    pairs = ((solution, first), (solution, second)) if trained else ((first, second),)
    head = rows[:_HEAD]
    agreement = min(signal_recovery(a.model.lift(head), b.model.lift(head), grid).r for a, b in pairs)
    control = refit(rng.permuted(rows, axis=0), 2, "components" if reach == "general" else reach)
    here, alternatives = _localities_of_columns(rows, grid)
    own = (first if trained else solution).evidence
    # a simpler grid only has to do as well; a line, which a ring can be cut into, has to do better than the ring
    needed = max(_ARRANGED, here + (0.05 if grid.ndim == 1 else -0.003))
    margin = own.locality - max(control.evidence.locality, 0.0)  # a control below 0 is chance, not a reason to believe
    tests = (
        Test("locality", own.locality, reading="how much of pairwise statistics displacements on the grid explain"),
        Test("locality_of_control", control.evidence.locality, reading="the same, with each column's samples permuted"),
        Test("locality_beyond_control", round(margin, 4), _LOCALITY_MARGIN, margin >= _LOCALITY_MARGIN,
             "locality that no control reaches"),
        Test("found", float(own.found), 1.0, own.found, "the solver's own held-out tests"),
        Test("agreement_of_halves", round(float(agreement), 4), _AGREEMENT, bool(agreement > _AGREEMENT),
             "correlation of the signals that two halves of the rows give"),
        *(Test(f"locality_on_a_{name}", round(value, 4), round(needed, 4), value <= needed,
               f"a {name} must not explain the columns as well as the grid {grid}") for name, value in alternatives.items()),
        Test("stationarity", round(parts.stationarity, 4), reading="0 where moments depend on displacement alone"),
        Test("resolution", round(parts.resolution, 4), reading="total correlation per point; smaller is sharper"),
        Test("distortion", round(parts.distortion, 4), reading="0 where the map is an isometry"),
        Test("equivariance_error", round(equivariance_error(model, rows[:1_000], [1] * grid.ndim), 6),
             reading="0 where moving the observation moves the signal"),
        Test("nongaussianity", own.nongaussianity, reading="z score of independent components"),
        Test("effective_rank", round(float(spectrum.sum() ** 2 / np.sum(spectrum**2)), 2)),
        Test("condition", round(float(singular[0] / max(singular[-1], 1e-300)), 2)),
        Test("samples_per_parameter", round(len(X) / W.shape[1], 2)),
    )  # fmt: skip
    return judge(tests, grid)


def _localities_of_columns(rows: NDArray, grid: Grid) -> tuple[float, dict[str, float]]:
    """How well the columns themselves fit the grid, and a line or ring that is simpler, or open where the grid closes.

    Folding a line into rows gives a grid that explains it no less, and a line can be bent into a ring: a fit does not show that.
    """
    from symlift.solvers.fast.arrange import arrange, explained_elsewhere, similarities

    if rows.shape[1] != grid.size:
        return 0.0, {}
    simpler = {"line": Grid((grid.size,)), "ring": Grid((grid.size,), periodic=True)}
    bent = grid.ndim == 1 and grid.periodic[0]
    asked = {
        name: other for name, other in simpler.items()
        if other != grid and (LagClasses(other).count.size < LagClasses(grid).count.size or bent)
    }  # fmt: skip
    if not asked:
        return 0.0, {}
    fit, held = (similarities(rows[part][:_SIMILARITY_ROWS]) for part in (slice(0, None, 2), slice(1, None, 2)))

    def locality(other: Grid) -> float:
        order, _ = arrange(fit, other, np.random.default_rng(0))
        return explained_elsewhere(fit, held, order, LagClasses(other))

    return locality(grid), {name: locality(other) for name, other in asked.items()}


def judge(tests: tuple[Test, ...], grid: Grid) -> Diagnosis:
    """The verdict.  Each threshold's distance, as a share of what is possible, makes the confidence."""
    by_name = {test.name: test for test in tests}
    margin = by_name["locality_beyond_control"].value or 0.0
    agreement = by_name["agreement_of_halves"].value or 0.0
    better = [test for test in tests if test.name.startswith("locality_on_a_") and not test.passed]
    steps: tuple[NextStep, ...] = ()
    if better:
        best = max(better, key=lambda test: test.value or 0.0)
        name = best.name.removeprefix("locality_on_a_")
        steps = (
            NextStep(
                f"the columns fit a {name} of {grid.size} points as well as the grid {grid}, or better: fit that instead",
                {"grid": (grid.size,), "periodic": name == "ring"},
                f"symlift recover DATA --grid {grid.size}{' --periodic' if name == 'ring' else ''}",
            ),
        )
    if margin < _LOCALITY_MARGIN:
        sure = 1 - margin / _LOCALITY_MARGIN
        return Diagnosis(Verdict.ABSENT, _share(sure), tests, steps)
    if by_name["found"].passed and agreement > _AGREEMENT and not better:
        sure = min((agreement - _AGREEMENT) / (1 - _AGREEMENT), (margin - _LOCALITY_MARGIN) / (1 - _LOCALITY_MARGIN))
        return Diagnosis(Verdict.PRESENT, _share(0.5 + sure / 2), tests, steps)
    return Diagnosis(Verdict.UNIDENTIFIABLE, _share(1 - agreement / 2), tests, steps)


def _share(value: float) -> float:
    return round(float(np.clip(value, 0, 1)), 3)
