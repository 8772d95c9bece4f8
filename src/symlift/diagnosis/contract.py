"""What a diagnosis is: a verdict, named tests, next steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from numpy.typing import NDArray

from symlift.notebook import diagnosis_html
from symlift.solvers.contract import Reach, Solution

__all__ = ["Asked", "Diagnosis", "Level", "NextStep", "Refit", "Test", "Verdict"]

#: how much a diagnosis may cost: less than the fit, or several more fits
Level = Literal["quick", "full"]
#: refit(rows, seed, reach) → a solution on the same grid from other rows; the fast solver in place of one that trains
Refit = Callable[[NDArray, int, Reach | None], Solution]


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
    """A verdict, the probability that the result is right, the tests behind both, and next steps where something can be done.

    ``confidence`` is calibrated, at level "quick": of results that are given 0.9, nine in ten have at least half of their columns
    in place, or signals that correlate with the true ones by 0.5 or more.  Level "full" keeps it, and lowers it where two halves
    of the rows disagree or another grid does better; how much it lowers it is not calibrated.

    >>> print(Diagnosis(Verdict.ABSENT, 0.02))
    no evidence for a translation symmetry (confidence 0.02)
    """

    verdict: Verdict
    confidence: float
    tests: tuple[Test, ...] = ()
    next_steps: tuple[NextStep, ...] = ()

    def __str__(self) -> str:
        return f"{self.verdict.words} (confidence {self.confidence:.2f})"

    def _repr_html_(self) -> str:
        return diagnosis_html(self)

    @property
    def tally(self) -> str:
        """How many of the tests that decide were passed, and which were not.

        >>> Diagnosis(Verdict.ABSENT, 0.0, (Test("locality", 0.9, 0.7, True), Test("p_value", 0.5, 0.05, False))).tally
        '1 of 2 tests passed; not passed: p value'
        """
        deciding = [test for test in self.tests if test.passed is not None]
        failed = [test.name.replace("_", " ") for test in deciding if not test.passed]
        passed = f"{len(deciding) - len(failed)} of {len(deciding)} tests passed"
        return passed + (f"; not passed: {', '.join(failed)}" if failed else "")

    def value(self, name: str) -> float | None:
        """The number of one test, None where it was not made."""
        return next((test.value for test in self.tests if test.name == name), None)


@dataclass(frozen=True)
class Asked:
    """What the estimator was asked for, as far as next steps depend on it."""

    mixing: str = "auto"
    solver: str = "fast"
    grid_given: bool = True
