"""What a diagnosis is: a verdict, named tests, next steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from numpy.typing import NDArray

from symlift._notebook import diagnosis_html
from symlift.solvers.contract import Reach, Solution

__all__ = ["LEVELS", "Asked", "Diagnosis", "Level", "NextStep", "Refit", "Test", "Verdict"]

#: cost of a diagnosis: less than the fit, or several more fits
Level = Literal["quick", "full"]
LEVELS: tuple[Level, ...] = ("quick", "full")
#: refit(rows, seed, reach) → a solution on the same grid from other rows; the fast solver in place
#: of one that trains
Refit = Callable[[NDArray, int, Reach | None], Solution]


class Verdict(StrEnum):
    """What was found: ``present``, ``ordered``, ``unidentifiable`` or ``absent``.

    The value is the code that is stored; `words` is the sentence for people.

    Examples
    --------
    >>> from symlift import Verdict
    >>> Verdict("absent").words
    'no evidence for a translation symmetry'
    """

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
    Verdict.ORDERED: (
        "the columns are in their places, but the field is not shown to be stationary: translation"
        " may be no symmetry of it"
    ),
    Verdict.UNIDENTIFIABLE: (
        "a translation symmetry is present, but not identifiable from these data"
    ),
    Verdict.ABSENT: "no evidence for a translation symmetry",
}


@dataclass(frozen=True)
class Test:
    """One named test of a result.

    Parameters
    ----------
    name : str
        Name of the test.
    value : float or None
        Its number.
    threshold : float, optional
        The threshold; None if the number is for information only.
    passed : bool, optional
        Whether the test is passed; None if it decides nothing.
    reading : str, default=""
        What the number means, in words.

    Examples
    --------
    >>> from symlift.diagnosis import Test
    >>> Test("locality", 0.93, 0.7, True).passed
    True
    """

    __test__ = False  # pytest collects classes of this name

    name: str
    value: float | None
    threshold: float | None = None
    passed: bool | None = None
    reading: str = ""


@dataclass(frozen=True)
class NextStep:
    """What to do next.

    Parameters
    ----------
    text : str
        The step in words.
    params : mapping, default={}
        The step as parameters of `LatentDomain`.
    command : str, default=""
        The step as a command.

    Examples
    --------
    >>> from symlift.diagnosis import NextStep
    >>> NextStep("fit a ring instead", {"periodic": True}).params
    {'periodic': True}
    """

    text: str
    params: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """A verdict, the probability that the result is right, the tests behind both, and next steps.

    At level "quick" the confidence is calibrated: of results that are given 0.9, nine in ten have
    at least half of their columns in place, or signals that correlate with the true ones by 0.5 or
    more. Level "full" keeps it, and lowers it if two halves of the rows disagree or another grid
    does better; how much it lowers it is not calibrated.

    Parameters
    ----------
    verdict : Verdict
        What was found.
    confidence : float
        Probability that the result is right.
    tests : tuple of Test, default=()
        Named tests; those that decide come first.
    next_steps : tuple of NextStep, default=()
        What to do next; empty for the best verdict.
    symmetry : {"translation", "rotation"}, default="translation"
        Which symmetry the verdict is about: rotations on a sphere.

    Examples
    --------
    >>> from symlift import Diagnosis, Verdict
    >>> print(Diagnosis(Verdict.ABSENT, 0.02))
    no evidence for a translation symmetry (confidence 0.02)
    """

    verdict: Verdict
    confidence: float
    tests: tuple[Test, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    symmetry: Literal["translation", "rotation"] = "translation"

    @property
    def words(self) -> str:
        """The verdict as a sentence about this symmetry."""
        return self.verdict.words.replace("translation", self.symmetry)

    def __str__(self) -> str:
        return f"{self.words} (confidence {self.confidence:.2f})"

    def _repr_html_(self) -> str:
        return diagnosis_html(self)

    @property
    def tally(self) -> str:
        """How many of the deciding tests were passed, and which were not.

        Examples
        --------
        >>> tests = (Test("locality", 0.9, 0.7, True), Test("p_value", 0.5, 0.05, False))
        >>> Diagnosis(Verdict.ABSENT, 0.0, tests).tally
        '1 of 2 tests passed; not passed: p value'
        """
        deciding = [test for test in self.tests if test.passed is not None]
        failed = [test.name.replace("_", " ") for test in deciding if not test.passed]
        passed = f"{len(deciding) - len(failed)} of {len(deciding)} tests passed"
        return passed + (f"; not passed: {', '.join(failed)}" if failed else "")

    def value(self, name: str) -> float | None:
        """Return the number of one test.

        Parameters
        ----------
        name : str
            Name of the test.

        Returns
        -------
        float or None
            Its number; None if the test was not made.
        """
        return next((test.value for test in self.tests if test.name == name), None)


@dataclass(frozen=True)
class Asked:
    """The parameters of the estimator on which next steps depend."""

    mixing: str = "auto"
    solver: str = "fast"
    grid_given: bool = True
