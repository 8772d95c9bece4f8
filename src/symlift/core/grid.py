"""Regular grids: the domain a lifted signal lives on.

A :class:`Grid` is an immutable value: its shape, and for each axis whether it closes on itself.  An
:class:`Alignment` is one of the ambiguities that no blind method can resolve: reordered equal axes, reflections, a
translation, a sign.
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

__all__ = ["Alignment", "Grid"]

MAX_AXES = 3


@dataclass(frozen=True)
class Alignment:
    """``signal → sign · translate(flip(transpose(signal)), shift)``, applied in that order, right to left.

    ``axes`` and ``flips`` refer to the grid's axes, ``shift`` is in grid steps (content moves towards larger index).
    """

    axes: tuple[int, ...]
    flips: tuple[bool, ...]
    shift: tuple[float, ...] = ()
    sign: int = 1

    def reorient(self, fields: NDArray) -> NDArray:
        """Transpose and flip the trailing grid axes of ``fields`` (n, *shape); a view where numpy can give one."""
        out = np.transpose(fields, (0, *(a + 1 for a in self.axes)))
        flipped = tuple(a + 1 for a, flip in enumerate(self.flips) if flip)
        return np.flip(out, flipped) if flipped else out


@dataclass(frozen=True, init=False)
class Grid:
    """A regular grid of one to three axes, each open or periodic.

    ``periodic`` is one flag, or one for each axis, and always kept as a tuple.  ``confidence`` says how sure a proposed grid
    is; it does not make two grids different.

    >>> grid = Grid((3, 4), periodic=(False, True))
    >>> grid.size, grid.ndim, str(grid)
    (12, 2, '3x4')
    >>> grid.coordinates()[0]                                # centred: t_n = n - (N - 1)/2 on each axis
    array([-1. , -1.5])
    >>> Grid((15,), periodic=True) == Grid((15,), periodic=(True,))
    True
    """

    shape: tuple[int, ...]
    periodic: tuple[bool, ...]
    confidence: float | None = field(default=None, compare=False)

    def __init__(
        self, shape: int | Iterable[int], periodic: bool | Iterable[bool] = False, confidence: float | None = None
    ) -> None:
        # numpy's own numbers and flags are as good as Python's
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
            raise InputError(f"grid {raw!r} must have 1 to {MAX_AXES} axes of at least 2 points each")
        object.__setattr__(self, "shape", lengths)
        object.__setattr__(self, "periodic", _flags(periodic, len(lengths)))
        object.__setattr__(self, "confidence", confidence)

    @classmethod
    def parse(cls, text: str, periodic: bool | Sequence[bool] = False) -> Grid:
        """Read ``"63"``, ``"15x15"`` or ``"6x6x6"``."""
        if not re.fullmatch(r"[0-9]{1,9}([x×,][0-9]{1,9})*", text.strip().lower()):
            raise InputError(f"grid {text!r} is not understood: write it like 63, 15x15 or 6x6x6")
        shape = tuple(int(s) for s in re.split("[x×,]", text.strip().lower()))
        return cls(shape, periodic)

    @classmethod
    def given(cls, grid: Any, periodic: bool | Sequence[bool] = False) -> Grid | None:
        """What stands for a grid as one: a grid, a shape, or text; None for "auto".

        >>> Grid.given((3, 4)) == Grid.given("3x4") == Grid((3, 4)), Grid.given("auto")
        (True, None)
        """
        if isinstance(grid, Grid):
            if np.any(periodic) and Grid(grid.shape, periodic) != grid:
                raise InputError(
                    f"the grid {grid} says for itself which axes close, and periodic={periodic!r} differs: "
                    "leave periodic out, or give the shape alone"
                )
            return grid
        if not isinstance(grid, str):
            return cls(grid, periodic)
        return None if grid == "auto" else cls.parse(grid, periodic)

    def __str__(self) -> str:
        return "x".join(str(s) for s in self.shape)

    @property
    def ndim(self) -> int:
        """P, the number of axes."""
        return len(self.shape)

    @property
    def is_ring(self) -> bool:
        """One axis that closes on itself."""
        return self.periodic == (True,)

    @property
    def size(self) -> int:
        """The number of grid points."""
        return math.prod(self.shape)

    def indices(self) -> NDArray[np.int64]:
        """Index of each point on each axis, (size, P), in flat (C) order."""
        return np.stack(np.unravel_index(np.arange(self.size), self.shape), axis=1)

    def flat(self, indices: NDArray) -> NDArray[np.int64]:
        """Flat index of each row of ``indices`` (…, P); periodic axes wrap, others must be inside."""
        index = np.asarray(indices, dtype=np.int64)
        wrapped = np.where(self.periodic, np.mod(index, self.shape), index)
        if np.any(wrapped < 0) or np.any(wrapped >= self.shape):
            raise InputError(f"an index lies outside of the open grid {self}")
        return np.ravel_multi_index(tuple(np.moveaxis(wrapped, -1, 0)), self.shape).astype(np.int64)

    def point_names(self, channels: int = 1) -> list[str]:
        """Names of the points: ``p12`` on a line or ring, ``r3c7`` on a plane, ``s1r3c7`` in 3-D, with ``k0`` for channels.

        >>> Grid((2, 2)).point_names()
        ['r0c0', 'r0c1', 'r1c0', 'r1c1']
        """
        letters = ("p",) if self.ndim == 1 else ("s", "r", "c")[-self.ndim :]
        names = ["".join(f"{a}{i}" for a, i in zip(letters, at, strict=True)) for at in self.indices().tolist()]
        return names if channels == 1 else [f"{name}k{k}" for name in names for k in range(channels)]

    def coordinates(self) -> NDArray[np.float64]:
        """Centred coordinates t_n = n - (N - 1)/2 of each point, (size, P)."""
        return self.indices() - (np.array(self.shape) - 1) / 2

    def lags(self) -> NDArray[np.int64]:
        """Lag class of every pair of points, (size, size): equal where the displacement j - i is equal.

        Displacements are taken modulo the period on periodic axes, so that averaging over a class is the Toeplitz
        (open), circulant (ring) or block-Toeplitz (several axes) projection of a (size, size) matrix.
        """
        index = self.indices()
        delta = index[None, :, :] - index[:, None, :]
        label = np.zeros((self.size, self.size), dtype=np.int64)
        for axis, (length, wraps) in enumerate(zip(self.shape, self.periodic, strict=True)):
            width = length if wraps else 2 * length - 1
            step = np.mod(delta[..., axis], length) if wraps else delta[..., axis] + length - 1
            label = label * width + step
        return label

    def neighbours(self) -> NDArray[np.int64]:
        """Edges between nearest neighbours, (edges, 2), each once, wrapping on periodic axes."""
        index = self.indices()
        edges = []
        for axis, (length, wraps) in enumerate(zip(self.shape, self.periodic, strict=True)):
            step = np.zeros(self.ndim, dtype=np.int64)
            step[axis] = 1
            # a period of two has one edge between its points, not two
            inside = np.ones(self.size, dtype=bool) if wraps and length > 2 else index[:, axis] < length - 1
            edges.append(np.stack([np.flatnonzero(inside), self.flat(index[inside] + step)], axis=1))
        return np.concatenate(edges)

    def orientations(self) -> Iterator[Alignment]:
        """All reflections and permutations of equal axes (equal in length and in kind), the identity first."""
        kinds = list(zip(self.shape, self.periodic, strict=True))
        for axes in itertools.permutations(range(self.ndim)):
            if all(kinds[a] == kinds[i] for i, a in enumerate(axes)):
                for flips in itertools.product((False, True), repeat=self.ndim):
                    yield Alignment(axes, flips, (0.0,) * self.ndim)

    def overlap(self, shift: Sequence[int]) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
        """Slices ``(source, target)`` of the grid axes such that ``target`` is ``source`` moved by ``shift``.

        Periodic axes are left whole (roll them); open axes keep the part that both have.
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


def _flags(periodic: bool | Iterable[bool], axes: int) -> tuple[bool, ...]:
    """One flag for each axis."""
    given: Any = periodic
    if isinstance(given, bool | np.bool_ | int):
        return (bool(given),) * axes
    try:
        flags = tuple(bool(p) for p in given)
    except TypeError:
        raise InputError(f"periodic {given!r} is neither a bool nor one for each axis: give True or False") from None
    if len(flags) != axes:
        raise InputError(f"periodic has {len(flags)} entries for a grid of {axes} axes: give one for each, or one bool")
    return flags
