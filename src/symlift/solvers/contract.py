"""The types that solvers share with all other rooms: a result, its evidence, and progress."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from symlift._notebook import placement_html
from symlift.core.domain import Domain, Scattered, along_principal_axes, lattice_of
from symlift.core.grid import Grid
from symlift.core.model import LiftedModel
from symlift.storage.csv_cells import safe_cell

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "LEFT_OUT",
    "REASONS",
    "Evidence",
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
#: the domain of a tuned population; "" if none of these
TunedTo = Literal["", "ring", "torus", "plane"]


def no_progress(stage: str, share: float | None = None) -> None:
    """The progress callback that does nothing."""


def part_of(progress: Progress, first: float, last: float) -> Progress:
    """Progress of a part that covers the shares from ``first`` to ``last`` of the whole."""

    def report(stage: str, share: float | None = None) -> None:
        progress(stage, None if share is None else first + (last - first) * share)

    return report


# -- where columns are -----------------------------------------------------------------------------

#: why a column has no place of its own: those of `LEFT_OUT` are on no grid point, a duplicate is at
#: the point of its twin
LEFT_OUT = ("dead", "noise", "index", "unplaced")
REASONS = ("", *LEFT_OUT, "duplicate")


@dataclass(frozen=True, eq=False)
class Placement:
    """Where each of d columns sits on the grid, if columns are points of it.

    Parameters
    ----------
    grid : Grid, Scattered or Sphere
        The domain.
    coordinates : ndarray of shape (d, axes)
        Position in grid steps, with fractions if the data say so, in [0, N) on periodic axes; NaN
        for columns that are left out. Scattered places: in units of the median distance to the
        nearest one, centred, principal axes first. On a sphere: unit vectors.
    point : ndarray of int, shape (d,)
        Flat index of the nearest grid point, or -1. Scattered places: the column's own number among
        those that are placed.
    channel : ndarray of int, shape (d,)
        Which of the columns of its point a column is (for bits: its significance, 0 the lowest), or
        -1.
    confidence : ndarray of shape (d,)
        From 0 to 1.
    reason : ndarray of str, shape (d,)
        Empty, or why the column has no place of its own: "dead", "noise", "index", "unplaced" or
        "duplicate".
    twin : ndarray of int, shape (d,)
        The column that a duplicate repeats, or -1.
    names : tuple of str, optional
        Names of the columns.

    Examples
    --------
    >>> from symlift import Grid, Placement
    >>> placed = Placement.at_points(Grid((2,)), [1, -1, 0], reason=["", "dead", ""])
    >>> placed.coverage(), placed.left_out
    (array([1, 1]), array([False,  True, False]))
    """

    grid: Domain
    coordinates: NDArray[np.float64]
    point: NDArray[np.int64]
    channel: NDArray[np.int64]
    confidence: NDArray[np.float64]
    reason: NDArray[np.str_]
    twin: NDArray[np.int64]
    names: tuple[str, ...] | None = None

    @classmethod
    def at_points(
        cls,
        grid: Grid,
        point: Any,
        *,
        channel: Any = None,
        confidence: Any = 1.0,
        reason: Any = "",
        twin: Any = -1,
    ) -> Placement:
        """Place columns exactly on grid points.

        Parameters
        ----------
        grid : Grid
            The grid.
        point : array-like of int, shape (d,)
            Flat index of each column's point; -1 leaves the column out.
        channel : array-like of int, optional
            Channel of each column, 0 by default.
        confidence : float or array-like, default=1.0
            Confidence of each column.
        reason : str or array-like, default=""
            Why a column has no place of its own.
        twin : int or array-like, default=-1
            The column that a duplicate repeats.

        Returns
        -------
        Placement
            The placement.
        """
        point = np.asarray(point, dtype=np.int64)
        on = point >= 0
        coordinates = np.where(
            on[:, None], grid.indices()[np.maximum(point, 0)].astype(np.float64), np.nan
        )
        d = len(point)
        return cls(
            grid, coordinates, point,
            np.where(on, 0, -1) if channel is None else np.asarray(channel, dtype=np.int64),
            np.broadcast_to(np.asarray(confidence, dtype=np.float64), d).copy(),
            np.broadcast_to(np.asarray(reason, dtype="U9"), d).copy(),
            np.broadcast_to(np.asarray(twin, dtype=np.int64), d).copy(),
        )  # fmt: skip

    @property
    def lattice(self) -> Grid:
        """The grid, where the domain is one; what is made for grids only is refused elsewhere."""
        return lattice_of(self.grid)

    @property
    def left_out(self) -> NDArray[np.bool_]:
        """Columns that are on no grid point, of shape (d,)."""
        return self.point < 0

    def with_dead(self, varies: NDArray[np.bool_]) -> Placement:
        """Extend a placement of the columns that vary to all columns; the others are dead.

        Parameters
        ----------
        varies : ndarray of bool, shape (d,)
            Which columns vary.

        Returns
        -------
        Placement
            The placement of all d columns.
        """
        d, seen = len(varies), np.flatnonzero(varies)

        def spread(values: NDArray, fill: Any) -> NDArray:
            out = np.full((d, *values.shape[1:]), fill, dtype=values.dtype)
            out[seen] = values
            return out

        return Placement(
            self.grid,
            spread(self.coordinates, np.nan),
            spread(self.point, -1),
            spread(self.channel, -1),
            spread(self.confidence, 1.0),
            spread(self.reason, "dead"),
            spread(np.where(self.twin >= 0, seen[self.twin], -1), -1),
        )

    def named(self, names: Any) -> Placement:
        """Return the placement with names of its columns, or itself if ``names`` is None.

        Parameters
        ----------
        names : sequence of str or None
            One name for each column.

        Returns
        -------
        Placement
            The placement.
        """
        return self if names is None else replace(self, names=tuple(str(name) for name in names))

    def without_grid(self) -> Placement:
        """Give each placed column a place of its own, in units that need no grid.

        The grid's steps must have the same length along all axes.

        Returns
        -------
        Placement
            The same places as `Scattered` has them: turned to principal axes, centred, in units of
            the median distance to the nearest column.
        """
        on = np.flatnonzero(~self.left_out)
        coordinates, point = np.full_like(self.coordinates, np.nan), self.point.copy()
        coordinates[on] = along_principal_axes(self.coordinates[on])[0]
        point[on] = np.arange(len(on))
        domain = Scattered(self.grid.ndim, coordinates[on], self.grid.confidence)
        return replace(self, grid=domain, coordinates=coordinates, point=point)

    def coverage(self, channels: int = 1) -> NDArray[np.int64]:
        r"""Count the columns at each point.

        Parameters
        ----------
        channels : int, default=1
            Number of channels at each point.

        Returns
        -------
        ndarray of int, shape (\*grid,) or (\*grid, channels)
            Number of columns.
        """
        shape = self.grid.shape if channels == 1 else (*self.grid.shape, channels)
        on = ~self.left_out
        slot = self.point[on] if channels == 1 else self.point[on] * channels + self.channel[on]
        return np.bincount(slot, minlength=self.grid.size * channels).reshape(shape)

    def point_confidence(self) -> NDArray[np.float64]:
        r"""Return the confidence of each point.

        Returns
        -------
        ndarray of shape (\*grid,)
            Confidence of the surest column there, 0 where the field was filled in.
        """
        sure = np.zeros(self.grid.size)
        on = ~self.left_out
        np.maximum.at(sure, self.point[on], self.confidence[on])
        return sure.reshape(self.grid.shape)

    def columns(self) -> dict[str, list[Any]]:
        """Return the table that `to_frame` and `to_csv` hold.

        Returns
        -------
        dict of str to list
            Column number (from 0), name, position, point, channel, confidence and reason.
        """
        d = len(self.point)
        names = list(self.names) if self.names is not None else [f"x{i}" for i in range(d)]
        axes = {
            f"axis{j}": np.round(self.coordinates[:, j], 4).tolist() for j in range(self.grid.ndim)
        }
        return {
            "column": list(range(d)),
            "name": names,
            **axes,
            "point": self.point.tolist(),
            "channel": self.channel.tolist(),
            "confidence": np.round(self.confidence, 4).tolist(),
            "reason": self.reason.tolist(),
        }

    def _repr_html_(self) -> str:
        return placement_html(self)

    def to_frame(self) -> DataFrame:
        """Return the table as a pandas data frame.

        Returns
        -------
        pandas.DataFrame
            One row for each column of the data.
        """
        from pandas import DataFrame

        return DataFrame(self.columns())

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table, one line for each column of the data.

        Parameters
        ----------
        path : str or path-like
            The file; coordinates of columns that are left out are empty.
        """
        import csv

        table = self.columns()
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(table)
            for row in zip(*table.values(), strict=True):
                writer.writerow(
                    ["" if isinstance(v, float) and np.isnan(v) else safe_cell(v) for v in row]
                )


# -- what speaks for a result ----------------------------------------------------------------------


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
    domain : {"ring", "torus", "plane", ""}, default=""
        Domain of the rows of a tuned population; empty if nothing supports any (ring solver).
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
    replicated : float, optional
        How alike the places are to those that each of two parts of the rows, which share none,
        gives by itself: the share of columns in the same place, up to symmetries of the grid.
    control : float, optional
        `explained` of the best result that the same search finds from random starts (sphere).
    repeated : float, optional
        Behind a dense mixing: correlation of the signals with those of another attempt, which
        shares nothing with the first but the data.

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
    """A grid that was tried: its shape, which of its axes close, and the share of what is real that
    it explains; ``scattered``: places of their own inside its box.
    """

    shape: tuple[int, ...]
    periodic: tuple[bool, ...]
    share: float
    scattered: bool = False


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
