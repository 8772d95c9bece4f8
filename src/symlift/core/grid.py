"""Regular grids: the domain that a lifted signal lives on.

A `Grid` is an immutable value: its shape, and for each axis whether it closes on itself.  An
`Alignment` is one of the ambiguities that no blind method can resolve: reordered equal axes,
reflections, a translation, a sign.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError

__all__ = ["Alignment", "Grid", "grid_words"]

MAX_AXES = 3
# pairs of points whose displacements are computed at a time
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Alignment:
    """``signal → sign · translate(flip(transpose(signal)), shift)``, applied from right to left.

    Parameters
    ----------
    axes : tuple of int
        Order in which the grid's axes are taken.
    flips : tuple of bool
        Whether each axis is reflected, after the transposition.
    shift : tuple of float, default=()
        Translation in grid steps; content moves towards larger indices.  Empty means none.
    sign : {1, -1}, default=1
        Factor of the signal.

    Examples
    --------
    >>> Alignment(axes=(0,), flips=(True,)).reorient(np.array([[1, 2, 3]]))
    array([[3, 2, 1]])
    """

    axes: tuple[int, ...]
    flips: tuple[bool, ...]
    shift: tuple[float, ...] = ()
    sign: int = 1

    def reorient(self, fields: NDArray) -> NDArray:
        """Transpose and flip the grid axes of fields; a view where numpy can give one.

        Parameters
        ----------
        fields : ndarray of shape (n, *shape)
            Fields, with the grid's axes last.

        Returns
        -------
        ndarray of shape (n, *shape)
            The reoriented fields; translation and sign are not applied.
        """
        out = np.transpose(fields, (0, *(a + 1 for a in self.axes)))
        flipped = tuple(a + 1 for a, flip in enumerate(self.flips) if flip)
        return np.flip(out, flipped) if flipped else out


@dataclass(frozen=True, init=False)
class Grid:
    """A regular grid of one to three axes, each open or periodic.

    Parameters
    ----------
    shape : int or iterable of int
        Number of points on each axis, at least 2; a single number for one axis.
    periodic : bool or iterable of bool, default=False
        Whether axes close on themselves: one flag for all axes, or one for each.  The attribute is
        always a tuple.
    confidence : float, optional
        How reliable a proposed grid is, from 0 to 1.  It is ignored when grids are compared.

    Raises
    ------
    InputError
        If the shape or the flags do not describe a grid of one to three axes.

    Examples
    --------
    >>> grid = Grid((3, 4), periodic=(False, True))
    >>> grid.size, grid.ndim, str(grid)
    (12, 2, '3x4')
    >>> grid.coordinates()[0]  # centred: t_n = n - (N - 1)/2 on each axis
    array([-1. , -1.5])
    >>> Grid((15,), periodic=True) == Grid((15,), periodic=(True,))
    True
    """

    shape: tuple[int, ...]
    periodic: tuple[bool, ...]
    confidence: float | None = field(default=None, compare=False)

    def __init__(
        self,
        shape: int | Iterable[int],
        periodic: bool | Iterable[bool] = False,
        confidence: float | None = None,
    ) -> None:
        # numbers and flags of numpy are accepted like Python's
        raw: Any = shape
        sizes = (raw,) if isinstance(raw, int | np.integer) else raw
        try:
            lengths = tuple(int(s) for s in sizes)
            exact = all(int(s) == s for s in sizes)
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f"grid {raw!r} is not a tuple of whole numbers: give one such as (63,) or (15, 15)"
            ) from None
        if not exact or not 1 <= len(lengths) <= MAX_AXES or min(lengths) < 2:
            raise InputError(
                f"grid {raw!r} must have 1 to {MAX_AXES} axes of at least 2 points each"
            )
        object.__setattr__(self, "shape", lengths)
        object.__setattr__(self, "periodic", _flags(periodic, len(lengths)))
        object.__setattr__(self, "confidence", confidence)

    @classmethod
    def parse(cls, text: str, periodic: bool | Sequence[bool] = False) -> Grid:
        """Read a grid from text such as ``"63"``, ``"15x15"`` or ``"6x6x6"``.

        Parameters
        ----------
        text : str
            Lengths of the axes, separated by ``x``, ``×`` or a comma.
        periodic : bool or sequence of bool, default=False
            Whether axes close on themselves.

        Returns
        -------
        Grid
            The grid that the text describes.

        Raises
        ------
        InputError
            If the text does not describe a grid.
        """
        if not re.fullmatch(r"[0-9]{1,9}([x×,][0-9]{1,9})*", text.strip().lower()):
            raise InputError(f"grid {text!r} is not understood: write it like 63, 15x15 or 6x6x6")
        shape = tuple(int(s) for s in re.split("[x×,]", text.strip().lower()))
        return cls(shape, periodic)

    @classmethod
    def given(cls, grid: Any, periodic: bool | Sequence[bool] = False) -> Grid | None:
        """Convert a grid, a shape or text to a grid; ``"auto"`` gives None.

        Parameters
        ----------
        grid : Grid, int, sequence of int or str
            A grid, its shape, text as in `parse`, or ``"auto"``.
        periodic : bool or sequence of bool, default=False
            Whether axes close on themselves; for a `Grid`, which has its own flags, leave it out.

        Returns
        -------
        Grid or None
            The grid, or None for ``"auto"``.

        Raises
        ------
        InputError
            If ``periodic`` contradicts the flags of a `Grid`, or if no grid is described.

        Examples
        --------
        >>> Grid.given((3, 4)) == Grid.given("3x4") == Grid((3, 4)), Grid.given("auto")
        (True, None)
        """
        if isinstance(grid, Grid):
            if np.any(periodic) and Grid(grid.shape, periodic) != grid:
                raise InputError(
                    f"the grid {grid} has its own periodic flags, and periodic={periodic!r}"
                    " differs: leave periodic out, or give the shape alone"
                )
            return grid
        if not isinstance(grid, str):
            return cls(grid, periodic)
        return None if grid == "auto" else cls.parse(grid, periodic)

    def __str__(self) -> str:
        return "x".join(str(s) for s in self.shape)

    @property
    def ndim(self) -> int:
        """Number P of axes."""
        return len(self.shape)

    @property
    def is_ring(self) -> bool:
        """Whether the grid is a single axis that closes on itself."""
        return self.periodic == (True,)

    @property
    def size(self) -> int:
        """Number of grid points."""
        return math.prod(self.shape)

    def indices(self) -> NDArray[np.int64]:
        """Index of each point on each axis, in flat (C) order.

        Returns
        -------
        ndarray of shape (size, P)
            Row n holds the indices of point n.
        """
        return np.stack(np.unravel_index(np.arange(self.size), self.shape), axis=1)

    def flat(self, indices: NDArray) -> NDArray[np.int64]:
        """Flat index of points given by their indices; periodic axes wrap.

        Parameters
        ----------
        indices : array-like of shape (..., P)
            Index of each point on each axis.

        Returns
        -------
        ndarray of shape (...)
            Flat (C order) index of each point.

        Raises
        ------
        InputError
            If an index lies outside of an open axis.
        """
        index = np.asarray(indices, dtype=np.int64)
        wrapped = np.where(self.periodic, np.mod(index, self.shape), index)
        if np.any(wrapped < 0) or np.any(wrapped >= self.shape):
            raise InputError(f"an index lies outside of the open grid {self}")
        return np.ravel_multi_index(tuple(np.moveaxis(wrapped, -1, 0)), self.shape).astype(np.int64)

    def point_names(self, channels: int = 1) -> list[str]:
        """Name each point: ``p12`` on a line or ring, ``r3c7`` on a plane, ``s1r3c7`` in 3-D.

        Parameters
        ----------
        channels : int, default=1
            Signals at each point; with more than one, ``k0``, ``k1``, … are appended.

        Returns
        -------
        list of str
            One name for each point and channel, channels fastest.

        Examples
        --------
        >>> Grid((2, 2)).point_names()
        ['r0c0', 'r0c1', 'r1c0', 'r1c1']
        """
        letters = ("p",) if self.ndim == 1 else ("s", "r", "c")[-self.ndim :]
        names = [
            "".join(f"{a}{i}" for a, i in zip(letters, at, strict=True))
            for at in self.indices().tolist()
        ]
        return (
            names if channels == 1 else [f"{name}k{k}" for name in names for k in range(channels)]
        )

    def coordinates(self) -> NDArray[np.float64]:
        """Centred coordinates t_n = n - (N - 1)/2 of each point.

        Returns
        -------
        ndarray of shape (size, P)
            Coordinates in grid steps.
        """
        return self.indices() - (np.array(self.shape) - 1) / 2

    def lags(self) -> NDArray[np.int64]:
        """Lag class of every pair of points: equal where the displacement j - i is equal.

        Displacements are taken modulo the period on periodic axes, so that averaging over a class
        is the Toeplitz (open), circulant (ring) or block-Toeplitz (several axes) projection of a
        (size, size) matrix.

        Returns
        -------
        ndarray of shape (size, size)
            Number of the class of each pair (i, j).
        """
        label = np.zeros((self.size, self.size), dtype=np.int64)
        height = max(1, _BLOCK // self.size)  # rows at a time: no further matrix of this size
        for index, length, wraps in zip(self.indices().T, self.shape, self.periodic, strict=True):
            label *= length if wraps else 2 * length - 1
            for start in range(0, self.size, height):
                step = index - index[start : start + height, None]
                label[start : start + height] += (
                    np.mod(step, length) if wraps else step + length - 1
                )
        return label

    def neighbours(self) -> NDArray[np.int64]:
        """List the edges between nearest neighbours, each once, wrapping on periodic axes.

        Returns
        -------
        ndarray of shape (edges, 2)
            Flat indices of the two ends of each edge.
        """
        index = self.indices()
        edges = []
        for axis, (length, wraps) in enumerate(zip(self.shape, self.periodic, strict=True)):
            step = np.zeros(self.ndim, dtype=np.int64)
            step[axis] = 1
            # a period of two has one edge between its points, not two
            inside = (
                np.ones(self.size, dtype=bool)
                if wraps and length > 2
                else index[:, axis] < length - 1
            )
            edges.append(
                np.stack([np.flatnonzero(inside), self.flat(index[inside] + step)], axis=1)
            )
        return np.concatenate(edges)

    def orientations(self) -> Iterator[Alignment]:
        """All reflections and permutations of equal axes, the identity first.

        Axes are equal if they have the same length and are both open or both periodic.

        Yields
        ------
        Alignment
            An orientation, without translation or change of sign.
        """
        kinds = list(zip(self.shape, self.periodic, strict=True))
        for axes in itertools.permutations(range(self.ndim)):
            if all(kinds[a] == kinds[i] for i, a in enumerate(axes)):
                for flips in itertools.product((False, True), repeat=self.ndim):
                    yield Alignment(axes, flips, (0.0,) * self.ndim)

    def overlap(self, shift: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Find slices ``(source, target)``: ``target`` is ``source`` moved by a shift.

        Periodic axes are left whole (roll them); of open axes, the part that both positions share.

        Parameters
        ----------
        shift : sequence of int
            Whole steps along each axis.

        Returns
        -------
        source : tuple of slice
            The points that stay inside of the grid.
        target : tuple of slice
            Where they move to.
        """
        source, target = [], []
        for length, wraps, by in zip(self.shape, self.periodic, shift, strict=True):
            if wraps:
                source.append(slice(None))
                target.append(slice(None))
            else:
                source.append(slice(max(0, -by), length - max(0, by)))
                target.append(slice(max(0, by), length + min(0, by)))
        return tuple(source), tuple(target)


def grid_words(grid: Grid) -> str:
    """Describe a grid in words, for sentences.

    >>> grid_words(Grid((15,), periodic=True)), grid_words(Grid((4, 6), periodic=(False, True)))
    ('ring of 15 points', '4 × 6 grid, axis 2 closed')
    """
    sizes = " × ".join(str(n) for n in grid.shape)
    if grid.ndim == 1:
        return f"{'ring' if grid.is_ring else 'line'} of {sizes} points"
    closed = [str(axis + 1) for axis, wraps in enumerate(grid.periodic) if wraps]
    if not closed:
        return f"{sizes} grid"
    axes = "all axes" if len(closed) == grid.ndim else f"axis {' and '.join(closed)}"
    return f"{sizes} grid, {axes} closed"


def _flags(periodic: bool | Iterable[bool], axes: int) -> tuple[bool, ...]:
    """One flag for each axis."""
    given: Any = periodic
    if isinstance(given, bool | np.bool_ | int):
        return (bool(given),) * axes
    try:
        flags = tuple(bool(p) for p in given)
    except TypeError:
        raise InputError(
            f"periodic {given!r} is neither a bool nor one for each axis: give True or False"
        ) from None
    if len(flags) != axes:
        raise InputError(
            f"periodic has {len(flags)} entries for a grid of {axes} axes: give one for each, or"
            " one bool"
        )
    return flags
