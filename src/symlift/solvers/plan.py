"""What a fit will take: its memory and time, estimated from shapes alone before work begins.

The coefficients were measured (``benchmarks/memory.py`` compares them with peaks); they count
matrices of d columns and tables of rows at the stage that holds most of them.  Time is that of one
core.  Both are upper ends: columns that are set aside, or found in their places at once, take less.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

from symlift.core.domain import Domain, Scattered
from symlift.core.grid import Grid
from symlift.core.rows import sample_size
from symlift.core.sphere import MAX_DEGREE, Sphere
from symlift.errors import CostWarning, InputError
from symlift.search.wide_rows import rows_used
from symlift.solvers.fast.settings import DEFAULT, MOMENT_BATCH
from symlift.solvers.registry import TRAINED
from symlift.storage.free_memory import available_memory, free_swap, size_of

__all__ = ["Plan", "plan_domain", "plan_fit", "plan_parts", "say_cost"]

_MATRIX = 8  # bytes of an entry
_BASE = 15 << 20
#: share of the free memory, and seconds, from which on a plan is said
_MUCH, _LONG = 0.5, 600.0
#: an estimate that exceeds the memory by this factor is refused: estimates are right within it
_SURE = 1.5
#: windows of the grid on which placements are judged
_WINDOW = 150 << 20
#: numbers up to which training copies its rows
_COPIED = 250_000_000
#: products of pairs of columns that third moments on a sphere take at a time, and its tensors
_BLOCK, _TENSORS = 4_000_000, 7.5
#: by what memory grows → how many more columns fit into more memory, and into more time
_POWERS = {1: (1.0, 0.5), 2: (0.5, 1 / 3), 3: (1 / 3, 1 / 3)}


@dataclass(frozen=True)
class Plan:
    """What a fit is expected to take at most, beyond its data.

    >>> plan_fit(200, 20_000, None).say(free=40 << 30)
    '20,000 columns may take about 27.4 GB of memory, and 40.0 GB are free; and about 53 minutes \
on one core: give the grid, whose columns then need no matrix of all pairs, or fewer columns (at \
most about 11,000), or use a machine with more memory'
    """

    columns: int
    points: int
    #: bytes that any fit of this shape takes, and those that it takes where all is tried
    least: int
    memory: int
    seconds: float
    #: whether time and memory go into undoing a mixing, which is not tried for shuffled columns
    unmixes: bool
    #: memory grows with columns (near pairs alone), their squares or their cubes
    power: int = 2
    #: whether a grid has to be proposed first, and whether parts are looked for
    proposes: bool = False
    parts: bool = False
    #: columns that can be placed at most, where that is known
    most: int | None = None

    def say(self, free: int | None = None) -> str:
        """Return one line on a fit that takes much, empty for others; refuse what cannot be.

        Parameters
        ----------
        free : int, optional
            Bytes of memory that are free; those of this machine by default.

        Returns
        -------
        str
            The line.

        Raises
        ------
        InputError
            If the memory cannot do, even where the estimate is too high.
        """
        swap = free_swap() if free is None else 0
        free = available_memory() if free is None else free
        of_memory = f"of memory, and {size_of(free)} are free"
        if self.least > _SURE * (free + swap):
            size = f"about {size_of(self.least)} {of_memory}"
            raise InputError(f"{self._what} take {size}: {self._remedy(free)}")
        much, long = self.memory > _MUCH * free, self.seconds > _LONG
        if not much and not long:
            return ""
        parts = [f"about {size_of(self.memory)} {of_memory}"] if much else []
        if long:
            parts.append(f"about {_time(self.seconds)} on one core")
        return f"{self._what} may take {'; and '.join(parts)}: {self._remedy(free)}"

    @property
    def _wide(self) -> bool:
        return self.points > 1.5 * self.columns

    @property
    def _what(self) -> str:
        if self._wide:
            return f"a grid of {self.points:,} points and {self.columns:,} columns"
        return f"{'parts of ' if self.parts else ''}{self.columns:,} columns"

    def _remedy(self, free: int) -> str:
        if self._wide:
            return "give a smaller grid, or use a machine with more memory"
        if self.unmixes:
            return (
                'give mixing "shuffled" if columns are points, fewer columns, or let it run on a'
                " larger machine"
            )
        memory, time = _POWERS[self.power]
        share = min(1.0, (_MUCH * free / self.memory) ** memory, (_LONG / self.seconds) ** time)
        most = int(share * self.columns)
        most -= most % 10 ** max(len(str(most)) - 2, 0)
        if self.most is not None and self.most <= most:  # more of them are refused anywhere
            return f"give fewer columns (at most {self.most:,})"
        fewer = f"fewer columns (at most about {most:,}), or use a machine with more memory"
        if self.proposes:
            return f"give the grid, whose columns then need no matrix of all pairs, or {fewer}"
        return f"give {fewer}"


def _time(seconds: float) -> str:
    return f"{seconds / 3600:.0f} hours" if seconds > 7200 else f"{seconds / 60:.0f} minutes"


def plan_fit(
    rows: int,
    columns: int,
    points: int | None,
    solver: str = "fast",
    mixing: str = "auto",
    gaps: bool = False,
    width: int = 4,
) -> Plan:
    """Estimate what a fit takes beyond its data.

    Parameters
    ----------
    rows, columns : int
        Shape of the data; columns that are constant do not count.
    points : int or None
        Number of points of the grid; None if it is to be proposed.
    solver : str, default="fast"
        Canonical name of the solver.
    mixing : str, default="auto"
        What is known about the columns.
    gaps : bool, default=False
        Whether there are missing values.
    width : int, default=4
        Bytes of a number in the precision that is computed in.

    Returns
    -------
    Plan
        The estimate.

    Examples
    --------
    >>> plan_fit(20_000, 225, 225, mixing="shuffled").say(free=4 << 30)
    ''
    """
    if solver == "ring":
        memory, seconds = _ringing(rows, columns)
        memory += width * sample_size(rows, columns)
        return Plan(columns, columns, memory, memory, seconds, False)
    many = columns > DEFAULT.place.dense
    proposes = points is None and many
    points = columns if points is None else points
    if solver in TRAINED:
        copied = 4 * rows * columns if rows * columns <= _COPIED else 0
        memory = _BASE + copied + 6 * _MATRIX * columns**2
        return Plan(columns, points, memory, memory, 0.0, False)
    near = many and not proposes
    power = 1 if near else 2
    memory, seconds = (
        _placing_many(rows, columns, points) if near else _placing(rows, columns, points, gaps)
    )
    memory += width * sample_size(rows, columns)
    # a fifth of the rows is held out
    mixed = rows - rows // 5 >= columns >= points and not gaps and mixing != "shuffled"
    if solver == "fast" and mixed:
        more, longer = _unmixing(rows, columns, points)
        return Plan(columns, points, memory, max(memory, more), seconds + longer, True)
    return Plan(columns, points, memory, memory, seconds, False, power, proposes)


def plan_domain(
    rows: int,
    columns: int,
    domain: Domain | None,
    solver: str = "fast",
    mixing: str = "auto",
    gaps: bool = False,
    width: int = 4,
) -> Plan:
    """Estimate what a fit on ``domain`` takes, None to be proposed; `plan_fit` has the rest.

    >>> plan_domain(20_000, 2_000, Sphere(5), mixing="linear").memory >> 30
    448
    """
    if isinstance(domain, Sphere):
        return _plan_sphere(rows, columns, domain, mixing, width)
    if isinstance(domain, Scattered):
        memory, seconds = _placing(rows, columns, columns, gaps)
        memory += width * sample_size(rows, columns)
        most = DEFAULT.place.dense
        return Plan(columns, columns, memory, memory, seconds, False, most=most)
    points = domain.size if isinstance(domain, Grid) else None
    return plan_fit(rows, columns, points, solver, mixing, gaps, width)


def plan_parts(rows: int, columns: int) -> Plan:
    """Estimate what looking for parts among columns takes, before any of them is fitted."""
    r = min(rows, DEFAULT.place.rows)
    memory = _BASE + 20 * r * columns + 20 * _MATRIX * columns**2
    return Plan(columns, columns, memory, memory, 1 + 6e-10 * columns**3, False, parts=True)


def say_cost(plan: Plan, stacklevel: int) -> None:
    """Warn of a fit that may take much memory or time; refuse one that cannot be made here."""
    line = plan.say()
    if line:
        warnings.warn(line, CostWarning, stacklevel=stacklevel + 1)


def _plan_sphere(rows: int, d: int, sphere: Sphere, mixing: str, width: int) -> Plan:
    """All pairs of columns by their angles; or third moments, of which there are d³."""
    memory = seconds = 0.0
    power, most = 2, None
    if mixing in ("auto", "shuffled"):
        memory, seconds = _placing(rows, d, d, False)
        seconds += 6e-5 * d**2
        most = DEFAULT.place.dense
    if mixing != "shuffled" and rows >= 4 * d:
        degree = min(math.isqrt(d) - 1, MAX_DEGREE) if sphere.degree is None else sphere.degree
        tensors = _TENSORS * _MATRIX * d**3 + 3 * _MATRIX * min(_BLOCK, rows * d**2 // 2)
        more = _BASE + 3 * _MATRIX * rows * d + int(tensors)
        if more > memory:
            memory, power, most = more, 3, None
        seconds += 1 + 4e-7 * d**3 + 5e-8 * (degree + 1) ** 2 * d**3
    memory = int(memory) + width * sample_size(rows, d)
    return Plan(d, d, memory, memory, seconds, False, power, most=most)


def _placing_many(rows: int, d: int, points: int) -> tuple[int, float]:
    """Scores of the rows that are used, and statistics of near columns; nothing of size d²."""
    r = rows_used(rows, d, DEFAULT.place)
    # what is made of the scores, and judged in a window, or else what belongs to each column
    scores = int(3.2 * r * d) + min(_WINDOW, 33 * r * d)
    memory = 4 * r * d + max(scores, 8_000 * d) + 2_000 * max(points - d, 0)
    return _BASE + memory, 1.5 + 7e-5 * d + 1.1e-7 * r * d + 4e-13 * r * d**2


def _placing(rows: int, d: int, points: int, gaps: bool) -> tuple[int, float]:
    """Correlations of scores, their inverses, and the search; judged in a window of the grid."""
    r = min(rows, DEFAULT.place.rows)
    scores = (30 if gaps else 20) * r * d
    far = max(points**2 - d**2, 0)  # classes of pairs of points that hold no column
    if d <= DEFAULT.place.dense:
        memory = scores + 40 * _MATRIX * d**2 + 12 * far
        return _BASE + memory, 0.5 + 3e-7 * r * d + 3e-8 * d**3 + 1.5e-6 * far
    memory = scores + _WINDOW + int(9.1 * _MATRIX * d**2) + 12 * far
    return _BASE + memory, 2 + 3e-7 * r * d + 4e-10 * d**3 + 2e-8 * far


def _ringing(rows: int, d: int) -> tuple[int, float]:
    """Rows, their roots and their components; states that each row may be in; covariances."""
    from symlift.solvers.ring.pipeline import MOST_ROWS  # only where it is used next

    r = min(rows, MOST_ROWS)
    return _BASE + 750 * r + 3 * _MATRIX * r * d + 4 * _MATRIX * d**2, 3 + 1.2e-6 * r * d


def _unmixing(rows: int, d: int, points: int) -> tuple[int, float]:
    """Independent components of the rows; moments of third and fourth order of few modes."""
    m = min(rows, DEFAULT.fit_rows + DEFAULT.held_rows)
    memory = 7 * _MATRIX * m * d + 10 * _MATRIX * d**2
    seconds = 6e-8 * m * d**2
    tensors = products = 0
    if points <= DEFAULT.max_third_order:  # of three entries of each row, batch by batch
        products = _MATRIX * min(MOMENT_BATCH, m // 2 * points**2)
    third, fourth = DEFAULT.max_eigenbasis
    if points <= third:
        tensors += 30 * points**3
        seconds += 1.5e-8 * points**4
    if points <= fourth:
        tensors += 4 * points**4
        seconds += 1e-8 * points**5
    memory += max(tensors, products)
    return _BASE + memory, seconds
