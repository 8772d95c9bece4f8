"""The sphere as a domain: a band limit, and the points where fields are evaluated."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError

__all__ = ["MAX_DEGREE", "Sphere", "spread_points"]

#: (L + 1)³ squared numbers describe the third moment of a field: 17 million at this degree
MAX_DEGREE = 15
# fields are evaluated at so many points for each coefficient, so that they determine it well
_POINTS = 2


@dataclass(frozen=True)
class Sphere:
    """The unit sphere, with fields up to a degree of spherical harmonics.

    Parameters
    ----------
    degree : int, optional
        Highest degree L of the fields, which then have (L + 1)² dimensions. None: to be found from
        the data.
    confidence : float, optional
        How reliable the sphere is, from 0 to 1. It is ignored when spheres are compared.
    axes : bool, default=False
        Whether a point and its antipode are one, as directions of diffusion are: the projective
        plane, whose fields have even degrees only. For columns that are points.

    Raises
    ------
    InputError
        If the degree is not a whole number from 1 to 15.

    Examples
    --------
    >>> sphere = Sphere(5)
    >>> sphere.dimension, sphere.points.shape, str(sphere)
    (36, (72, 3), 'sphere of degree 5')
    >>> Sphere().degree is None
    True
    """

    degree: int | None = None
    confidence: float | None = field(default=None, compare=False)
    axes: bool = False

    def __post_init__(self) -> None:
        if self.degree is None:
            return
        try:
            whole = operator.index(self.degree)
        except TypeError:
            whole = 0
        if not 1 <= whole <= MAX_DEGREE:
            raise InputError(
                f"degree {self.degree!r} of a sphere must be a whole number from 1 to {MAX_DEGREE}"
            )
        object.__setattr__(self, "degree", whole)

    def __str__(self) -> str:
        name = "projective plane" if self.axes else "sphere"
        return name if self.degree is None else f"{name} of degree {self.degree}"

    @property
    def known_degree(self) -> int:
        """The degree, where it is known."""
        if self.degree is None:
            raise InputError("the degree of the sphere is not known yet: fit it, or give Sphere(5)")
        return self.degree

    @property
    def dimension(self) -> int:
        """Number (L + 1)² of coefficients of a field."""
        return (self.known_degree + 1) ** 2

    @cached_property
    def points(self) -> NDArray[np.float64]:
        """Unit vectors where fields are evaluated, (points, 3), evenly spread."""
        return spread_points(_POINTS * self.dimension)

    @property
    def size(self) -> int:
        """Number of points."""
        return _POINTS * self.dimension

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of points, as the shape of a list of them."""
        return (self.size,)

    @property
    def ndim(self) -> int:
        """Number of coordinates of a point, and of generators: 3."""
        return 3

    @property
    def periodic(self) -> tuple[bool, ...]:
        """No axis closes on itself, because there are no axes."""
        return (False,)

    @property
    def is_ring(self) -> bool:
        """A sphere is no ring."""
        return False

    def coordinates(self) -> NDArray[np.float64]:
        """Return the points.

        Returns
        -------
        ndarray of shape (points, 3)
            Unit vectors.
        """
        return self.points

    def point_names(self, channels: int = 1) -> list[str]:
        """Name each point: ``p12``.

        Parameters
        ----------
        channels : int, default=1
            Signals at each point; with more than one, ``k0``, ``k1``, … are appended.

        Returns
        -------
        list of str
            One name for each point and channel, channels fastest.
        """
        names = [f"p{i}" for i in range(self.size)]
        return (
            names if channels == 1 else [f"{name}k{k}" for name in names for k in range(channels)]
        )

    @classmethod
    def given(cls, grid: Any) -> Sphere | None:
        """Return the sphere that is asked for.

        Parameters
        ----------
        grid : object
            A `Sphere`, or the word ``"sphere"``, with a degree if you like: ``"sphere5"``;
            ``"projective"`` for one whose antipodes are the same.

        Returns
        -------
        Sphere or None
            The sphere; None where something else is asked for.

        Examples
        --------
        >>> Sphere.given("sphere5"), Sphere.given((3, 4))
        (Sphere(degree=5, confidence=None, axes=False), None)
        >>> str(Sphere.given("projective"))
        'projective plane'
        """
        if isinstance(grid, Sphere):
            return grid
        text = grid.strip().lower() if isinstance(grid, str) else ""
        if text == "projective":
            return cls(axes=True)
        if not text.startswith("sphere"):
            return None
        degree = text.removeprefix("sphere")
        if degree and not (degree.isascii() and degree.isdigit() and len(degree) < 4):
            raise InputError(f"grid {grid!r} is not understood: write sphere, or sphere5")
        return cls(int(degree) if degree else None)


def spread_points(count: int) -> NDArray[np.float64]:
    """So many unit vectors, evenly spread on a spiral (the lattice of Fibonacci), north first.

    >>> spread_points(100).sum(axis=0).round(1) + 0.0
    array([0., 0., 0.])
    """
    index = np.arange(count)
    z = 1 - (2 * index + 1) / count
    angle = index * math.pi * (3 - math.sqrt(5))
    ring = np.sqrt(1 - z * z)
    return np.stack([ring * np.cos(angle), ring * np.sin(angle), z], axis=1)
