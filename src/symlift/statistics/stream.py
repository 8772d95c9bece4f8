"""Rows that keep coming: exact moments of all of them, a sample, and columns that exchange places.

Every column has a role: what its nearest columns predict of it. Two columns that exchange places
exchange their roles, whatever else the data do, and that shows within one batch of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import ndtri

from symlift.core.rows import column_of
from symlift.errors import InputError

__all__ = ["MOST_STREAMED", "ColumnExchange", "RunningMoments", "Stream"]

#: columns up to which all pairs are kept
MOST_STREAMED = 4_096
#: columns that a role is made of, and the ridge of their prediction
_PARTNERS, _RIDGE = 8, 1e-2
#: numbers of the sample of rows that fits are made from
_SAMPLED = 16_000_000
#: batches without which no change is looked for, fewest rows of a batch for it, and the probability
#: of ever reporting one that did not happen
_FEWEST_BATCHES, _FEWEST_ROWS, _FALSE = 5, 20, 1e-3


@dataclass(frozen=True)
class ColumnExchange:
    """Columns that have exchanged places: ``columns[k]`` is now where ``places[k]`` was.

    Parameters
    ----------
    batch : int
        Number of the first batch that disagrees, counted from 1.
    first_row : int
        Number of rows before that batch.
    columns, places : tuple of int
        Columns, and the columns whose places they have taken.
    """

    batch: int
    first_row: int
    columns: tuple[int, ...]
    places: tuple[int, ...]

    def words(self, names: Any = None) -> str:
        """Return the exchange in one line, with the ``names`` of the columns if they have any."""
        who = " and ".join(column_of(column, names) for column in self.columns)
        return (
            f"{who} have exchanged places from row {self.first_row + 1:,} on (batch {self.batch}):"
            " the placement follows them; see stream_.exchanges"
        )


@dataclass
class RunningMoments:
    """Weight, mean (d,) and scatter Σ w (x - mean)(x - mean)ᵀ (d, d) of rows, exact.

    >>> moments = RunningMoments.none(2)
    >>> for rows in ([[0.0, 1.0]], [[2.0, 3.0], [4.0, 8.0]]):
    ...     moments.add(np.array(rows))
    >>> moments.mean, moments.covariance[0, 1].round(3)
    (array([2., 4.]), np.float64(4.667))
    """

    weight: float
    mean: NDArray[np.float64]
    scatter: NDArray[np.float64]

    @classmethod
    def none(cls, d: int) -> RunningMoments:
        """Return moments of no rows."""
        return cls(0.0, np.zeros(d), np.zeros((d, d)))

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Covariance of all rows so far."""
        return self.scatter / max(self.weight, 1e-12)

    @property
    def correlations(self) -> NDArray[np.float64]:
        """Correlations of all rows so far; 0 with columns that are constant."""
        size = np.sqrt(np.diag(self.scatter))
        inverse = np.where(size > 1e-150, 1 / np.maximum(size, 1e-150), 0.0)
        c = self.scatter * inverse * inverse[:, None]
        np.fill_diagonal(c, 1.0)
        return np.asarray(c)

    def forget(self, share: float) -> None:
        """Give all rows so far this share of their weight."""
        self.weight *= share
        self.scatter = self.scatter * share

    def add(self, rows: NDArray) -> None:
        """Add rows (m, d) of weight 1."""
        x = np.asarray(rows, dtype=np.float64)
        mean = x.mean(axis=0)
        centred = x - mean
        scatter = self.scatter + centred.T @ centred
        total = self.weight + len(x)
        step = mean - self.mean
        # the two means differ: what lies between them is scatter, too
        scatter += np.multiply.outer(step, step * (self.weight * len(x) / total))
        self.scatter = scatter
        self.mean = self.mean + step * (len(x) / total)
        self.weight = total


@dataclass
class Roles:
    """How each column is predicted: by columns ``near`` (d, k) with weights b (d, k)."""

    near: NDArray[np.int64]
    b: NDArray[np.float64]

    @classmethod
    def of(cls, c: NDArray) -> Roles:
        """The roles that correlations c (d, d) show."""
        d = len(c)
        k = min(_PARTNERS, d - 1)
        size = np.abs(c)
        np.fill_diagonal(size, -1.0)
        near = np.argpartition(-size, k - 1, axis=1)[:, :k]
        gram = c[near[:, :, None], near[:, None, :]] + _RIDGE * np.eye(k)
        toward = np.take_along_axis(c, near, axis=1)
        return cls(near, np.linalg.solve(gram, toward[..., None])[..., 0])

    def left(self, c: NDArray, column: NDArray, role: NDArray) -> NDArray[np.float64]:
        """Variance that ``role`` leaves of ``column`` (arrays of one shape), by correlations c.

        Where the column itself predicts that role, the two have exchanged places.
        """
        near, b = self.near[role], self.b[role]
        near = np.where(near == column[..., None], role[..., None], near)
        toward = c[column[..., None], near]
        gram = c[near[..., :, None], near[..., None, :]]
        rest = 1 - 2 * np.sum(b * toward, axis=-1) + np.einsum("...i,...ij,...j", b, gram, b)
        return np.maximum(rest, 1e-9)


@dataclass
class Stream:
    """All rows so far, in the order of the roles that columns had in the first batch.

    Parameters
    ----------
    moments : RunningMoments
        Exact moments, with forgetting if that was asked for.
    role : ndarray of int of shape (d,)
        The role of each column: its own number, unless columns have exchanged places.
    """

    moments: RunningMoments
    role: NDArray[np.int64]
    rows: int = 0
    batches: int = 0
    sample: NDArray = field(default_factory=lambda: np.zeros((0, 0)))
    exchanges: list[ColumnExchange] = field(default_factory=list)
    #: mean, scatter and number of the log ratios of earlier batches, one for each role
    usual: NDArray[np.float64] = field(default_factory=lambda: np.zeros((2, 0)))
    judged: int = 0

    @classmethod
    def of(cls, columns: int) -> Stream:
        """Return a stream without rows."""
        if columns > MOST_STREAMED:
            raise InputError(
                f"partial_fit keeps all pairs of {columns:,} columns, and takes {MOST_STREAMED:,}"
                " at most: use fit, which streams from a file of any size"
            )
        none = RunningMoments.none(columns)
        return cls(none, np.arange(columns), usual=np.zeros((2, columns)))

    def copy(self) -> Stream:
        """Return one that can be added to, while this one stays as it is."""
        return replace(
            self,
            moments=replace(self.moments),
            sample=self.sample.copy(),
            exchanges=list(self.exchanges),
            usual=self.usual.copy(),
        )

    def add(
        self, rows: NDArray, rng: np.random.Generator, half_life: float | None = None
    ) -> ColumnExchange | None:
        """Add a batch; return the exchange of columns that it shows, if it shows one."""
        if half_life is not None and not half_life > 0:
            raise InputError(f"half_life is {half_life}: give a positive number of rows")
        exchange = None
        if len(rows) >= _FEWEST_ROWS:
            exchange = self._compared(rows)
        if exchange is not None:
            self.exchanges.append(exchange)
            role = self.role.copy()
            role[list(exchange.columns)] = self.role[list(exchange.places)]
            self.role = role
        inside = np.empty_like(rows)
        inside[:, self.role] = rows
        if half_life is not None:
            self.moments.forget(0.5 ** (len(rows) / half_life))
        self.moments.add(inside)
        self._keep(inside, rng, half_life)
        self.rows += len(rows)
        self.batches += 1
        return exchange

    def in_columns(self, values: NDArray) -> NDArray:
        """Values of roles (…, d) as values of the columns that have these roles now."""
        return values[..., self.role]

    def _keep(self, rows: NDArray, rng: np.random.Generator, half_life: float | None) -> None:
        """A sample of all rows, or of the last ones if older ones are to be forgotten."""
        most = max(64, _SAMPLED // rows.shape[1])
        if not len(self.sample):
            self.sample = rows[:most].copy()
            return
        if half_life is not None:
            most = min(most, max(64, int(4 * half_life)))
        room = most - len(self.sample)
        whole = np.concatenate([self.sample, rows[: max(room, 0)]]) if room > 0 else self.sample
        rest = rows[max(room, 0) :]
        if half_life is not None:
            self.sample = np.concatenate([whole, rest])[-most:]
            return
        # each later row takes the place of one that was kept, with the probability that keeps all
        # rows so far equally likely
        seen = self.rows + max(room, 0) + np.arange(len(rest))
        at = rng.integers(seen + 1)
        taken = at < most
        whole = whole.copy() if taken.any() and room <= 0 else whole
        whole[at[taken]] = rest[taken]
        self.sample = whole

    def _compared(self, rows: NDArray) -> ColumnExchange | None:
        """The exchange that a batch shows against the rows before it, if any."""
        if self.moments.weight < 2 * _PARTNERS + 2:
            return None
        batch = RunningMoments.none(rows.shape[1])
        inside = np.empty_like(rows)
        inside[:, self.role] = rows
        batch.add(inside)
        c, reference = batch.correlations, self.moments.correlations
        roles, own = Roles.of(reference), np.arange(rows.shape[1])
        # how much more is left of each column than before; what all have in common is no exchange
        more = np.log(roles.left(c, own, own)) - np.log(roles.left(reference, own, own))
        more -= np.median(more)
        exchange = None
        if self.judged >= _FEWEST_BATCHES:
            level = -ndtri(_FALSE / (len(more) * (self.judged + 1.0) ** 2))
            spread = self._spread(len(rows))
            off = np.flatnonzero((more - self.usual[0]) / spread > level)
            exchange = self._exchange(c, roles, off, level * spread)
        if exchange is None:
            self.judged += 1
            step = more - self.usual[0]
            self.usual[0] += step / self.judged
            self.usual[1] += step * (more - self.usual[0])
        return exchange

    def _spread(self, rows: int) -> NDArray[np.float64]:
        """Standard error of a log ratio: that of normal numbers, or that of the earlier batches."""
        seen = np.sqrt(self.usual[1] / max(self.judged - 1, 1))
        # few batches give a noisy deviation: those of all columns belong together
        common = float(np.sqrt(np.mean(seen**2)))
        several = np.sqrt((self.judged * seen**2 + 4 * common**2) / (self.judged + 4))
        return np.maximum(several, np.sqrt(2 / rows)) * np.sqrt(1 + 1 / max(self.judged, 1))

    def _exchange(
        self, c: NDArray, roles: Roles, off: NDArray, wanted: NDArray
    ) -> ColumnExchange | None:
        """The best assignment of the columns that are ``off`` to their roles, if it is another."""
        if not 2 <= len(off) <= MOST_STREAMED // 4:
            return None
        cost = np.log(roles.left(c, *np.broadcast_arrays(off[:, None], off[None])))
        mine, other = linear_sum_assignment(cost)
        gain = np.diag(cost)[mine] - cost[mine, other]
        moved = (mine != other) & (gain > wanted[off[mine]])
        # all members of a cycle, or none
        chosen = set(mine[moved])
        while not chosen <= {int(k) for k in other[list(chosen)]}:
            chosen = {k for k in chosen if k in {int(o) for o in other[list(chosen)]}}
        if len(chosen) < 2:
            return None
        column_of = np.empty_like(self.role)
        column_of[self.role] = np.arange(len(self.role))
        who = sorted(chosen)
        columns = tuple(int(column_of[off[k]]) for k in who)
        places = tuple(int(column_of[off[other[k]]]) for k in who)
        return ColumnExchange(self.batches + 1, self.rows, columns, places)
