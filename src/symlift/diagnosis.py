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
from symlift.core.model import LiftedModel
from symlift.core.rows import take_rows
from symlift.metrics.equivariance import equivariance_error
from symlift.metrics.placement import placement_agreement
from symlift.metrics.recovery import signal_recovery
from symlift.notebook import diagnosis_html
from symlift.solvers.contract import Reach, Solution
from symlift.statistics.dependence import effective_rank, independent_rows
from symlift.statistics.selection import held_out_in_window

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
# of fields with a symmetry it lay within 0.011 of 0, of data without one at 0.065 or more
_STATIONARITY = 0.03
# 2x2, 2x3 and lines up to 7 points have fewer pairs than this beyond one for each displacement: anything fits them
_FREEDOM = 18
# columns that are copies of one have an effective rank of 1
_RANK = 1.5
# rows that are worth fewer than this share of their number depend on their neighbours in time
_INDEPENDENT = 0.5
_MOST_POINTS = 1_024


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

    def _repr_html_(self) -> str:
        return diagnosis_html(self)

    def value(self, name: str) -> float | None:
        """The number of one test, None where it was not made."""
        return next((test.value for test in self.tests if test.name == name), None)


#: refit(rows, seed, reach) → a solution on the same grid from other rows; the fast solver in place of one that trains
Refit = Callable[[NDArray, int, Reach | None], Solution]


def diagnose(
    solution: Solution, X: NDArray, refit: Refit, trained: bool = False, blocks: NDArray | None = None
) -> Diagnosis:
    """Held-out numbers of a fit, its agreement between independent halves of the data, and a control.

    Halves are contiguous in time where rows depend on their neighbours, or whole ``blocks`` (n,) where those are given.  The
    control permutes the samples of each column independently, which keeps every marginal and destroys the field.  Training again
    on each would take hours: a ``trained`` model has to agree with what the fast solver finds in either half instead.
    """
    rng = np.random.default_rng(0)
    chosen = np.arange(len(X)) if len(X) <= _ROWS else np.sort(rng.choice(len(X), _ROWS, replace=False))
    rows = take_rows(X, chosen).astype(np.float64)
    independent = independent_rows(rows)
    halves = _halves(len(rows), independent, None if blocks is None else np.asarray(blocks)[chosen], rng)
    model, grid = solution.model, solution.model.grid
    parts = held_out_in_window(model.map, rows[rng.permutation(len(rows))], grid, model.channels)
    # halves go as far as the fit itself went; the control need not go further than components to show that it has nothing
    reach = None if trained else solution.evidence.reach
    first, second = (refit(rows[half], seed, reach) for seed, half in enumerate(halves))
    pairs = ((solution, first), (solution, second)) if trained else ((first, second),)
    head = rows[rng.permutation(len(rows))[:_HEAD]]
    agreement = min(_agreement(a, b, head) for a, b in pairs)
    control = refit(rng.permuted(rows, axis=0), 2, "components" if reach == "general" else reach)
    here, alternatives = _localities_of_columns(rows, solution)
    own = (first if trained else solution).evidence
    # a simpler grid only has to do as well; a line, which a ring can be cut into, has to do better than the ring
    needed = max(_ARRANGED, here + (0.05 if grid.ndim == 1 else -0.003))
    margin = own.locality - max(control.evidence.locality, 0.0)  # a control below 0 is chance, not a reason to believe
    rank, freedom = effective_rank(rows), _freedom(grid)
    moved = equivariance_error(model, head[:1_000], [1] * grid.ndim) if model.channels == 1 else None
    tests = (
        Test("locality", own.locality, reading="how much of pairwise statistics displacements on the grid explain"),
        Test("locality_of_control", control.evidence.locality, reading="the same, with each column's samples permuted"),
        Test("locality_beyond_control", round(margin, 4), _LOCALITY_MARGIN, margin >= _LOCALITY_MARGIN,
             "locality that no control reaches"),
        Test("found", float(own.found), 1.0, own.found, "the solver's own held-out tests"),
        Test("agreement_of_halves", round(float(agreement), 4), _AGREEMENT, bool(agreement > _AGREEMENT),
             "share of columns, or correlation of signals, that two halves of the rows agree on"),
        *(Test(f"locality_on_a_{name}", round(value, 4), round(needed, 4), value <= needed,
               f"a {name} must not explain the columns as well as the grid {grid}") for name, value in alternatives.items()),
        Test("stationarity", round(parts.stationarity, 4), _STATIONARITY, parts.stationarity <= _STATIONARITY,
             "0 where moments depend on displacement alone: what translation being a symmetry means"),
        Test("displacements", float(freedom), _FREEDOM, freedom >= _FREEDOM,
             "pairs of points beyond one for each displacement: with few, any data fit the grid"),
        Test("effective_rank", round(rank, 2), _RANK, rank >= _RANK, "directions that the vectors really use"),
        Test("resolution", round(parts.resolution, 4), reading="total correlation per point; smaller is sharper"),
        Test("distortion", round(parts.distortion, 4), reading="0 where the map is an isometry"),
        Test("equivariance_error", None if moved is None else round(moved, 6),
             reading="0 where moving the observation moves the signal"),
        Test("nongaussianity", own.nongaussianity, reading="z score of independent components"),
        Test("condition", _condition(model), reading="largest over smallest singular value of the lifting map"),
        Test("independent_rows", round(independent, 1), reading="what the rows are worth, given how alike neighbours in time are"),
        Test("samples_per_parameter", round(len(X) / model.n_features, 2)),
    )  # fmt: skip
    return judge(tests, grid, solution)


def _agreement(a: Solution, b: Solution, rows: NDArray) -> float:
    """Of two placements the share of columns at one point, of two maps the correlation of their signals; up to symmetries."""
    if a.placement is not None and b.placement is not None:
        return placement_agreement(a.placement.point, b.placement.point, a.model.grid, shift_open=True)
    return signal_recovery(a.model.lift(rows), b.model.lift(rows), a.model.grid).r


def _halves(
    n: int, independent: float, blocks: NDArray | None, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of two halves that know nothing of each other."""
    if blocks is not None:
        names = np.unique(blocks)
        chosen = np.isin(blocks, names[rng.permutation(len(names))[: max(1, len(names) // 2)]])
        return np.flatnonzero(chosen), np.flatnonzero(~chosen)
    order = rng.permutation(n) if independent > _INDEPENDENT * n else np.arange(n)
    return np.sort(order[: n // 2]), np.sort(order[n // 2 :])


def _freedom(grid: Grid) -> int:
    """Pairs of points less the number of displacements: what is left to test a grid by."""
    classes = np.prod([n if wraps else 2 * n - 1 for n, wraps in zip(grid.shape, grid.periodic, strict=True)])
    return int(grid.size * (grid.size - 1) // 2 - (classes - 1) // 2)


def _condition(model: LiftedModel) -> float | None:
    if model.is_sparse or model.n_outputs > _MOST_POINTS:
        return None
    singular = np.linalg.svd(model.map, compute_uv=False)
    return round(float(singular[0] / max(singular[-1], 1e-300)), 2)


def _localities_of_columns(rows: NDArray, solution: Solution) -> tuple[float, dict[str, float]]:
    """How well the columns themselves fit the grid, and a line or ring that is simpler, or open where the grid closes.

    Folding a line into rows gives a grid that explains it no less, and a line can be bent into a ring: a fit does not show that.
    """
    from symlift.solvers.fast.arrange import arrange, explained_elsewhere, similarities

    grid, placed = solution.model.grid, solution.placement
    if placed is not None and (placed.coverage() == 1).all():
        rows = rows[:, np.argsort(np.where(placed.point < 0, grid.size, placed.point))[: grid.size]]
    if rows.shape[1] != grid.size or grid.size > _MOST_POINTS:
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


def judge(tests: tuple[Test, ...], grid: Grid, solution: Solution | None = None) -> Diagnosis:
    """The verdict.  Each threshold's distance, as a share of what is possible, makes the confidence."""
    by_name = {test.name: test for test in tests}

    def passed(name: str) -> bool:
        return name not in by_name or bool(by_name[name].passed)

    margin = by_name["locality_beyond_control"].value or 0.0
    agreement = by_name["agreement_of_halves"].value or 0.0
    better = [test for test in tests if test.name.startswith("locality_on_a_") and not test.passed]
    steps = _next_steps(by_name, better, grid, solution)
    if margin < _LOCALITY_MARGIN or not passed("effective_rank"):
        sure = 1 - margin / _LOCALITY_MARGIN if passed("effective_rank") else 1.0
        return Diagnosis(Verdict.ABSENT, _share(sure), tests, steps)
    if passed("found") and agreement > _AGREEMENT and not better and passed("displacements"):
        sure = min((agreement - _AGREEMENT) / (1 - _AGREEMENT), (margin - _LOCALITY_MARGIN) / (1 - _LOCALITY_MARGIN))
        ordered = not passed("stationarity")
        if not ordered or (solution is not None and solution.placement is not None):
            verdict = Verdict.ORDERED if ordered else Verdict.PRESENT
            return Diagnosis(verdict, _share(0.5 + sure / 2), tests, steps if ordered else ())
    return Diagnosis(Verdict.UNIDENTIFIABLE, _share(1 - agreement / 2), tests, steps)


def _next_steps(
    tests: Mapping[str, Test], better: list[Test], grid: Grid, solution: Solution | None
) -> tuple[NextStep, ...]:
    """What to try where the verdict is not the best one, the likeliest help first."""
    steps = []
    if better:
        name = max(better, key=lambda test: test.value or 0.0).name.removeprefix("locality_on_a_")
        steps.append(
            NextStep(
                f"the columns fit a {name} of {grid.size} points as well as the grid {grid}, or better: fit that instead",
                {"grid": (grid.size,), "periodic": name == "ring"},
                f"symlift recover DATA --grid {grid.size}{' --periodic' if name == 'ring' else ''}",
            )
        )
    if "displacements" in tests and not tests["displacements"].passed:
        steps.append(NextStep(f"a grid of {grid} has too few displacements to be tested: give more columns"))
    if "effective_rank" in tests and not tests["effective_rank"].passed:
        steps.append(NextStep("the columns are all but copies of one another: give columns that differ"))
    if not tests["agreement_of_halves"].passed:
        steps.append(NextStep("two halves of the rows disagree: give about twice as many rows, or check the grid"))
    if "stationarity" in tests and not tests["stationarity"].passed and solution is not None:
        if solution.placement is not None:
            steps.append(
                NextStep(
                    "the order of the columns can be used, but shifts cannot: use est.placement_, and not est.shift"
                )
            )
        else:
            steps.append(
                NextStep(
                    "the signals are not stationary on this grid: if each column is a point, say so",
                    {"mixing": "shuffled"},
                    f"symlift recover DATA --grid {grid} --mixing shuffled",
                )
            )
    if not steps and not tests["found"].passed:
        steps.append(NextStep("check the grid's shape and periodicity, or let it be proposed", {"grid": "auto"}))
    return tuple(steps)


def _share(value: float) -> float:
    return round(float(np.clip(value, 0, 1)), 3)
