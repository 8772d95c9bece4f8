"""The rotations of a sphere, acting on the spherical harmonics of fields."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from symlift.core.harmonics import degrees_of, real_harmonics, so3_generators, turn_harmonics
from symlift.core.representation import along_orbit
from symlift.errors import InputError

__all__ = ["RotationGroup"]


@dataclass(frozen=True)
class RotationGroup:
    """The group SO(3) on functions of the sphere up to a degree, one block of 2l + 1 per degree l.

    ρ(t) = exp(Σ_j t_j L_j) turns a function by the rotation vector t, in radians.  The generators
    do not commute: [L_x, L_y] = L_z.  A filter w₀ that is the same all around its own axis (zonal)
    has one weight r_l for each degree, and its orbit is the sphere: rotations about its axis leave
    it as it is.

    Parameters
    ----------
    degree : int
        Highest degree L of the functions; their dimension is (L + 1)².

    Raises
    ------
    InputError
        If the degree is negative.

    References
    ----------
    "Blind Recovery of Latent Domains via Unsupervised Symmetry Discovery", the closing discussion
    of other geometries.

    Examples
    --------
    >>> group = RotationGroup(1)
    >>> group.act(np.array([[0.0, 0.0, 1.0, 0.0]]), [0.0, np.pi / 2, 0.0]).round(6) + 0.0
    array([[0., 0., 0., 1.]])
    """

    degree: int

    def __post_init__(self) -> None:
        if self.degree < 0:
            raise InputError(f"degree {self.degree} is negative: give a whole number from 0 on")

    @property
    def dimension(self) -> int:
        """Dimension D = (L + 1)² of the space that the group acts on."""
        return (self.degree + 1) ** 2

    @property
    def axes(self) -> int:
        """Number of generators, 3."""
        return 3

    @property
    def filter_size(self) -> int:
        """Number of weights of a zonal filter, one for each degree."""
        return self.degree + 1

    def generators(self) -> NDArray[np.float64]:
        """Build L_x, L_y and L_z.

        Returns
        -------
        ndarray of shape (3, D, D)
            Skew-symmetric matrices.
        """
        return so3_generators(self.degree).copy()

    def act(self, Z: NDArray, t: ArrayLike) -> NDArray:
        """Turn the function of each row of Z.

        Parameters
        ----------
        Z : ndarray of shape (n, D)
            Coefficients of functions.
        t : array-like of shape (3,) or (n, 3)
            Rotation vector in radians, the same for all rows or one for each row.

        Returns
        -------
        ndarray of shape (n, D)
            Coefficients of the turned functions.

        Raises
        ------
        InputError
            If ``t`` does not have three numbers.
        """
        vector = np.asarray(t, dtype=np.float64)
        if vector.shape[-1:] != (3,):
            raise InputError(
                f"a rotation vector of shape {vector.shape} was given: give three numbers, in"
                " radians"
            )
        return turn_harmonics(Z, vector)

    def derivative(self, Z: NDArray, axis: int) -> NDArray:
        """Apply one generator to each row.

        Parameters
        ----------
        Z : ndarray of shape (n, D)
            Coefficients of functions.
        axis : int
            0, 1 or 2 for x, y or z.

        Returns
        -------
        ndarray of shape (n, D)
            L_axis applied to each row.
        """
        return Z @ so3_generators(self.degree)[axis].T.astype(Z.dtype)

    def orbit(self, domain: Any, r: NDArray) -> NDArray:
        """Evaluate the orbit of the zonal filter.

        Parameters
        ----------
        domain : Sphere
            The sphere, whose ``points`` are evaluated.
        r : ndarray of shape (L + 1,)
            Weight of each degree.

        Returns
        -------
        ndarray of shape (points, D)
            Rows w₀ᵀ ρ(g)⁻¹, with g a rotation that takes the north pole to the point.
        """
        ell = degrees_of(self.degree)
        # a rotation takes the zonal Y_l0, 1 at index 0 of its block, to √(4π/(2l+1)) Y_lm(point)
        weight = np.asarray(r)[ell] * np.sqrt(4 * math.pi / (2 * ell + 1)).astype(r.dtype)
        return real_harmonics(domain.points.astype(r.dtype), self.degree) * weight

    def evaluate(self, E: NDArray, domain: Any, r: NDArray, channels: int) -> NDArray:
        """Evaluate a lifting map at the points of a domain.

        Parameters
        ----------
        E : ndarray of shape (channels · D, d)
            Embedding.
        domain : Sphere
            The points.
        r : ndarray of shape (filter_size,)
            Weight of each degree.
        channels : int
            Number of signals at each point.

        Returns
        -------
        ndarray of shape (points · channels, d)
            The orbit times E, channels fastest.
        """
        return along_orbit(self.orbit(domain, r), E, channels)

    def tensors(self) -> dict[str, NDArray]:
        """Return the arrays that describe the group, which are none.

        Returns
        -------
        dict of str to ndarray
            Empty: the degree says it all.
        """
        return {}

    def to(self, dtype: DTypeLike) -> RotationGroup:  # noqa: ARG002 - as other groups have it
        """Return the group itself, which has no precision of its own.

        Parameters
        ----------
        dtype : dtype-like
            A floating-point type of numpy.

        Returns
        -------
        RotationGroup
            The same group.
        """
        return self
