"""The types that solvers share with all other rooms: a result, its evidence, and progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from symlift.core.domain import Domain, Scattered
from symlift.core.grid import Grid
from symlift.core.model import LiftedModel
from symlift.core.sphere import Sphere
from symlift.solvers.placement import LEFT_OUT, REASONS, Placement

__all__ = [
    "LEFT_OUT",
    "REASONS",
    "Contest",
    "Evidence",
    "GridCandidate",
    "Placement",
    "Progress",
    "Reach",
    "Solution",
    "Solver",
    "Stage",
    "Trace",
    "TrainingSummary",
    "TunedTo",
    "no_progress",
    "part_of",
]

#: called with (stage, share that is done, or None), for a progress bar
Progress = Callable[[str, float | None], None]
#: how far a solver went: columns put in order, independent components, or all invertible maps
Reach = Literal["coordinates", "components", "general"]
#: the domain that rows are points of; "" if none of these
TunedTo = Literal["", "clusters", "line", "arc", "ring", "torus", "plane"]


def no_progress(stage: str, share: float | None = None) -> None:
    """The progress callback that does nothing."""


def part_of(progress: Progress, first: float, last: float) -> Progress:
    """Progress of a part that covers the shares from ``first`` to ``last`` of the whole."""

    def report(stage: str, share: float | None = None) -> None:
        progress(stage, None if share is None else first + (last - first) * share)

    return report


_DOMAIN_WORDS: Mapping[TunedTo, str] = {
    "": "a cloud without a domain", "clusters": "clusters", "line": "an open line",
    "arc": "an arc", "ring": "a ring", "torus": "a torus", "plane": "an open plane",
}  # fmt: skip


# -- what speaks for a result ----------------------------------------------------------------------


@dataclass(frozen=True)
class Contest:
    """Which domain the rows are points of, by candidates that are judged on held-out rows.

    Of all candidates within two standard errors of the best the simplest is taken, so that margins
    can be negative. A ring has to earn its closing link, else it is an arc.

    Parameters
    ----------
    domain : {"", "clusters", "line", "arc", "ring", "torus", "plane"}
        The domain; empty if nothing is ahead of a Gaussian cloud.
    runner_up : {"", "clusters", "line", "arc", "ring", "torus", "plane"}
        The domain that is next to it.
    margin : float
        Standard errors by which the domain is ahead of the runner-up.
    closing : float, optional
        Standard errors by which a ring is ahead of the best arc.
    opening : float, optional
        The opening of the best arc, in degrees of its turn; 0 where none is better than the ring.
    beyond : float, optional
        Standard errors by which a closed curve is ahead of all that is no curve.
    plain : float, optional
        Share of the best score that a closed curve of three harmonics reaches, or one of two with
        an independent open variable; low for curves that fill a space.
    scores : mapping, default={}
        Log-likelihood of a held-out row under the best candidate of each kind, relative to a
        Gaussian.
    probability : float, optional
        Probability that the domain is right.

    Examples
    --------
    >>> from symlift import LatentDomain
    >>> from symlift.datasets import ring_population
    >>> X = ring_population(1_000, 40, rate=8.0, movement=0.0, random_state=0).X
    >>> est = LatentDomain(grid=(30,), periodic=True, solver="ring", random_state=0).fit(X)
    >>> est.evidence_.contest.domain
    'ring'
    """

    domain: TunedTo
    runner_up: TunedTo
    margin: float
    closing: float | None = None
    opening: float | None = None
    beyond: float | None = None
    plain: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    probability: float | None = None

    @property
    def words(self) -> str:
        """The winner and the runner-up in words.

        >>> Contest("arc", "ring", 3.1, probability=0.94).words
        'the rows are most like points of an arc (probability 0.94); next: a ring'
        """
        sure = "" if self.probability is None else f" (probability {self.probability:.2f})"
        winner = _DOMAIN_WORDS[self.domain]
        return f"the rows are most like points of {winner}{sure}; next: {self.runner_up_words}"

    @property
    def runner_up_words(self) -> str:
        """The runner-up in words.

        >>> Contest("arc", "", 3.1).runner_up_words
        'a cloud without a domain'
        """
        return _DOMAIN_WORDS[self.runner_up]


@dataclass(frozen=True)
class Evidence:
    """Numbers that support a result, on rows that it was not fitted to.

    A number that does not apply to the solver is None.

    Parameters
    ----------
    found : bool, default=True
        Whether the solver's own tests are passed.
    reach : {"coordinates", "components", "general"}, optional
        How far the solver had to go.
    explained : float, optional
        Share of pairwise statistics (of columns, or of the energies of components) that
        displacements on the grid explain; about 0 without a domain.
    ceiling : float, optional
        Share that any model could explain, given the sampling noise between two halves of the rows.
    carried_by : str, default=""
        What carried it: statistics of displacements ("lags"), of neighbours ("neighbours") or
        others; "training" alone, or a "closed form" that began where training had got to.
    nongaussianity : float, optional
        Standard score of the components; a dense mixing can only be undone if it is large.
    agreement : float, optional
        Correlation of the phases that two halves of the columns give (ring; torus: the worse of
        both).
    roundness : float, optional
        Fourth moment of the plane of the phases, 1 on a circle and 2 in a Gaussian blob (ring;
        torus: the worse of both).
    ahead : float, optional
        Lead of the plane of the phases over the next best one (ring), or of a torus over all other
        domains (torus), as a share of its likelihood.
    domain : {"", "clusters", "line", "arc", "ring", "torus", "plane"}, default=""
        Domain that rows are points of; empty if nothing supports any (ring solver).
    stationarity : float, optional
        Stationarity of the map that was chosen, a term of its held-out score.
    resolution : float, optional
        Resolution of that map.
    distortion : float, optional
        Distortion of that map.
    trained_stationarity : float, optional
        Stationarity of what a training had reached before a closed form ended it.
    confidence : float, optional
        Probability that the result is right, from tests that cost little.
    bit_slopes : tuple of float, default=()
        What a bit of each significance adds to its neighbours, the heaviest first, if columns are
        bits.
    control : float, optional
        `explained` of the best result that the same search finds from random starts (sphere).
    repeated : float, optional
        Behind a dense mixing: correlation of the signals with those of another attempt, which
        shares nothing with the first but the data.
    replicated : float, optional
        On a line or ring: the rank correlation (of a ring: the mean resultant) with the order that
        each of two parts of the rows, which share none, gives by itself. On a grid that no two
        attempts agreed on: the share of columns that return when all but a part of them are placed
        again. On a sphere: how alike the places are that two parts of the rows give.
    contest : Contest, optional
        The competition of domains, with its runner-up (ring solver).

    Examples
    --------
    >>> from symlift import LatentDomain
    >>> from symlift.datasets import gsn
    >>> X = gsn(600, (4, 5), transform="permutation", random_state=1).X
    >>> evidence = LatentDomain(grid=(4, 5), random_state=0).fit(X).evidence_
    >>> evidence.found, evidence.confidence > 0.9
    (True, True)
    """

    found: bool = True
    reach: Reach | None = None
    explained: float | None = None
    ceiling: float | None = None
    carried_by: str = ""
    nongaussianity: float | None = None
    agreement: float | None = None
    roundness: float | None = None
    ahead: float | None = None
    domain: TunedTo = ""
    stationarity: float | None = None
    resolution: float | None = None
    distortion: float | None = None
    trained_stationarity: float | None = None
    confidence: float | None = None
    bit_slopes: tuple[float, ...] = ()
    control: float | None = None
    repeated: float | None = None
    replicated: float | None = None
    contest: Contest | None = None

    @property
    def locality(self) -> float:
        """The value to compare controls with: `explained`, on a ring `agreement`, otherwise 0."""
        known = self.explained if self.explained is not None else self.agreement
        return 0.0 if known is None else known


@dataclass(frozen=True)
class Stage:
    """One stage of a solver: its name, how long it took, and numbers for people to read."""

    name: str
    seconds: float = 0.0
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingSummary:
    """How a training went: the preset, how it ended and after how many steps, the best model on
    held-out rows, and whether a closed form ended it or which signs of convergence it shows.
    """

    preset: str
    ended: str
    steps: int
    best_step: int
    seconds: float
    held_out: float
    restarts: tuple[Mapping[str, Any], ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    closed: bool = False
    signs: Mapping[str, bool] = field(default_factory=dict)
    #: terms on held-out rows of what was trained, where a closed form then ended the run
    before_closing: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class GridCandidate:
    """A grid that was compared with others, on held-out rows.

    Parameters
    ----------
    shape : tuple of int
        Number of points along each axis.
    periodic : tuple of bool
        Whether each axis closes on itself.
    share : float
        The share of the reproducible correlation that it explains.
    scattered : bool, default=False
        Whether columns have places of their own inside the box of this grid.
    sphere : bool, default=False
        Whether it is a sphere.

    Examples
    --------
    >>> str(GridCandidate((4, 6), (False, False), 0.97).domain)
    '4x6'
    """

    shape: tuple[int, ...]
    periodic: tuple[bool, ...]
    share: float
    scattered: bool = False
    sphere: bool = False

    @property
    def domain(self) -> Domain:
        """What to give as the ``grid`` of a fit."""
        if self.sphere:
            return Sphere()
        return Scattered(len(self.shape)) if self.scattered else Grid(self.shape, self.periodic)


@dataclass(frozen=True)
class Trace:
    """What a solver did, stage by stage, for people to read.

    Parameters
    ----------
    solver : str, default=""
        Name of the solver.
    chosen : str, default=""
        The candidate that was chosen.
    stages : tuple of Stage, default=()
        Name, seconds and numbers of each stage.
    settings : mapping, default={}
        Settings that the solver ran with.
    training : TrainingSummary, optional
        How a training went.
    candidates : tuple of GridCandidate, default=()
        The grids that ``grid="auto"`` compared: the one that was taken, then the others, best
        first.

    Examples
    --------
    >>> from symlift import LatentDomain
    >>> from symlift.datasets import gsn
    >>> X = gsn(600, (4, 5), transform="permutation", random_state=1).X
    >>> LatentDomain(grid=(4, 5), random_state=0).fit(X).trace_.solver
    'fast'
    """

    solver: str = ""
    chosen: str = ""
    stages: tuple[Stage, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    training: TrainingSummary | None = None
    candidates: tuple[GridCandidate, ...] = ()


@dataclass(frozen=True, eq=False)
class Solution:
    """What a solver returns: the model, the places of columns where they are points, the evidence,
    and what each stage did.

    ``scattered``: columns have places of their own, and the model's grid is only what the field is
    drawn on; its steps then have the same length along all axes.
    """

    model: LiftedModel
    evidence: Evidence = field(default_factory=Evidence)
    trace: Trace = field(default_factory=Trace)
    placement: Placement | None = None
    scattered: bool = False


#: solve(X, grid, rng, progress=…, **options)
Solver = Callable[..., Solution]
