"""What a diagnosis is: a verdict, named tests, next steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from numpy.typing import NDArray

from symlift._notebook import diagnosis_html
from symlift.solvers.contract import Contest, Reach, Solution

__all__ = ["LEVELS", "Asked", "Claim", "Diagnosis", "Level", "NextStep", "Refit", "Test", "Verdict"]

#: cost of a diagnosis: less than the fit, or several more fits
Level = Literal["quick", "full"]
LEVELS: tuple[Level, ...] = ("quick", "full")
#: refit(rows, seed, reach) → a solution on the same grid from other rows; the fast solver in place
#: of one that trains
Refit = Callable[[NDArray, int, Reach | None], Solution]


class Verdict(StrEnum):
    """What was found: ``present``, ``ordered``, ``local``, ``unidentifiable`` or ``absent``.

    The value is the code that is stored; `words` is the sentence for people.

    Examples
    --------
    >>> from symlift import Verdict
    >>> Verdict("absent").words
    'no evidence for a translation symmetry'
    """

    PRESENT = "present"
    ORDERED = "ordered"
    LOCAL = "local"
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
    Verdict.LOCAL: (
        "columns that are next to each other are neighbours, but the whole is not known to be in"
        " its places"
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
class Claim:
    """One thing that a result says, and how probable it is.

    Parameters
    ----------
    name : {"domain", "places", "neighbours", "symmetry"}
        The domain and no other; the places on it, or the map to them; which columns are next to
        each other, whatever the whole is; that its translations are symmetries.
    probability : float
        Probability that it is right.
    holds : bool
        Whether it is claimed: it is probable, and its tests are passed.

    Examples
    --------
    >>> from symlift.diagnosis import Claim
    >>> str(Claim("neighbours", 0.93, True)), str(Claim("symmetry", 0.3, False))
    ('neighbours 0.93', 'symmetry 0.30 (not claimed)')
    """

    name: Literal["domain", "places", "neighbours", "symmetry"]
    probability: float
    holds: bool

    def __str__(self) -> str:
        return f"{self.name} {self.probability:.2f}{'' if self.holds else ' (not claimed)'}"


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
        Probability that the result is right: its domain, and the places on it or the map to them.
    tests : tuple of Test, default=()
        Named tests; those that decide come first.
    next_steps : tuple of NextStep, default=()
        What to do next; empty for the best verdict.
    symmetry : {"translation", "rotation"}, default="translation"
        Which symmetry the verdict is about: rotations on a sphere.
    contest : Contest, optional
        Which domain the rows are points of, and the runner-up (ring solver).
    claims : tuple of Claim, default=()
        What the result says, one by one, each with its probability.
    something : float, optional
        Probability that there is something to find in these rows, whether or not this result is it.
    runner_up : str, default=""
        The best other domain that the result was compared with, in words.

    Examples
    --------
    >>> from symlift import Diagnosis, Verdict
    >>> print(Diagnosis(Verdict.PRESENT, 0.97))
    an identifiable translation symmetry is present and stable (confidence 0.97)
    >>> print(Diagnosis(Verdict.ABSENT, 0.02, something=0.1))
    no evidence for a translation symmetry (something to find with probability 0.10)
    """

    verdict: Verdict
    confidence: float
    tests: tuple[Test, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    symmetry: Literal["translation", "rotation"] = "translation"
    contest: Contest | None = None
    claims: tuple[Claim, ...] = ()
    something: float | None = None
    runner_up: str = ""

    @property
    def words(self) -> str:
        """The verdict as a sentence about this symmetry."""
        return self.verdict.words.replace("translation", self.symmetry)

    def __str__(self) -> str:
        among = "" if self.contest is None else f"; {self.contest.words}"
        return f"{self.words} ({self.sure}){among}"

    @property
    def sure(self) -> str:
        """How sure the verdict is, in words: about the result, or about there being one.

        Examples
        --------
        >>> Diagnosis(Verdict.ORDERED, 0.9).sure, Diagnosis(Verdict.ABSENT, 0.0, something=0.8).sure
        ('confidence 0.90', 'something to find with probability 0.80')
        """
        if self.verdict is Verdict.ABSENT and self.something is not None:
            return f"something to find with probability {self.something:.2f}"
        beside = next((c for c in self.claims if c.name == "neighbours"), None)
        if self.verdict is Verdict.LOCAL and beside is not None:
            return (
                f"confidence {beside.probability:.2f} in neighbours, {self.confidence:.2f} in all"
            )
        return f"confidence {self.confidence:.2f}"

    @property
    def would_change(self) -> str:
        """What would change the verdict, in words.

        The tests that are not passed, or the one that is nearest to its threshold; empty if none
        decides.

        Examples
        --------
        >>> tests = (Test("locality", 0.9, 0.7, True), Test("settled", 0.85, 0.8, True))
        >>> Diagnosis(Verdict.PRESENT, 0.9, tests).would_change
        'settled below 0.8 (0.85 here)'
        >>> Diagnosis(Verdict.ABSENT, 0.1, (Test("locality", 0.2, 0.7, False),)).would_change
        'locality of at least 0.7 (0.2 here)'
        """
        decided = [
            (test, test.value, test.threshold)
            for test in self.tests
            if test.passed is not None and test.value is not None and test.threshold is not None
        ]
        failed = [one for one in decided if not one[0].passed]
        nearest = sorted(decided, key=lambda one: abs(one[1] - one[2]) / max(abs(one[2]), 1e-12))
        return "; ".join(_changed(*one) for one in failed or nearest[:1])

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


def _changed(test: Test, value: float, threshold: float) -> str:
    """A test that would turn out the other way, in words."""
    name, rises = test.name.replace("_", " "), value < threshold
    if rises:
        way = "above" if test.passed else "of at least"
    else:
        way = "below" if test.passed else "of at most"
    return f"{name} {way} {threshold:.4g} ({value:.4g} here)"


@dataclass(frozen=True)
class Asked:
    """The parameters of the estimator on which next steps depend."""

    mixing: str = "auto"
    solver: str = "fast"
    grid_given: bool = True
