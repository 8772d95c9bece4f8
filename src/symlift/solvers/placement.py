"""Where columns are: the result of every solver that places them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from symlift._notebook import placement_html
from symlift.core.domain import Domain, Scattered, along_principal_axes, lattice_of
from symlift.core.grid import Grid
from symlift.storage.csv_cells import safe_cell

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["LEFT_OUT", "REASONS", "Placement"]

#: why a column has no place of its own: those of `LEFT_OUT` are on no grid point, a duplicate is at
#: the point of its twin
LEFT_OUT = ("dead", "noise", "index", "unplaced")
REASONS = ("", *LEFT_OUT, "duplicate")
#: lines of a table that are made at once
_LINES = 65_536


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
        return self._table(slice(0, len(self.point)))

    def _table(self, part: slice) -> dict[str, list[Any]]:
        """The table of some columns."""
        number = range(len(self.point))[part]
        names = [f"x{i}" for i in number] if self.names is None else list(self.names[part])
        axes = {
            f"axis{j}": np.round(self.coordinates[part, j], 4).tolist()
            for j in range(self.grid.ndim)
        }
        return {
            "column": list(number),
            "name": names,
            **axes,
            "point": self.point[part].tolist(),
            "channel": self.channel[part].tolist(),
            "confidence": np.round(self.confidence[part], 4).tolist(),
            "reason": self.reason[part].tolist(),
        }

    def beside(self, count: int) -> NDArray[np.int64]:
        """The columns nearest to each column: by place, or, of those left out, by number.

        Parameters
        ----------
        count : int
            How many.

        Returns
        -------
        ndarray of int, shape (d, count)
            Columns, the nearest first; fewer where there are fewer.
        """
        d = len(self.point)
        count = min(count, d - 1)
        every = np.arange(d)[:, None]
        near = (every + 1 + np.arange(count)) % d
        on = np.flatnonzero(~self.left_out)
        if len(on) > count:
            period = np.where(self.lattice.periodic, self.lattice.shape, 0)
            tree = cKDTree(self.coordinates[on], boxsize=period if period.any() else None)
            hits = np.asarray(tree.query(self.coordinates[on], k=count + 1)[1])
            mine = hits == np.arange(len(on))[:, None]
            mine[~mine.any(axis=1), -1] = True  # of many at one point, it is not among its nearest
            near[on] = on[hits[~mine].reshape(len(on), count)]
        return near

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

        # names may hold halves of characters, which no file can
        halves = "backslashreplace"
        with Path(path).open("w", newline="", encoding="utf-8", errors=halves) as file:
            writer = csv.writer(file)
            writer.writerow(self._table(slice(0, 0)))
            for start in range(0, len(self.point), _LINES):
                table = self._table(slice(start, start + _LINES))
                for row in zip(*table.values(), strict=True):
                    writer.writerow(
                        ["" if isinstance(v, float) and np.isnan(v) else safe_cell(v) for v in row]
                    )
