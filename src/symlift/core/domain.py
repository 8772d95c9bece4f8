"""The domains that signals live on: grids, places of their own without any grid, the sphere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symlift.core.grid import Grid, grid_words
from symlift.core.rows import apply_to_rows
from symlift.core.sphere import Sphere
from symlift.errors import InputError

__all__ = [
    "Domain",
    "Scattered",
    "TakenColumns",
    "along_principal_axes",
    "domain_words",
    "given_domain",
    "lattice_of",
]

_DIMENSIONS = (2, 3)


@dataclass(frozen=True)
class Scattered:
    """Places without a grid, in a plane or in space.

    Parameters
    ----------
    dimension : {2, 3}, default=2
        Number of coordinates.
    places : ndarray of shape (k, dimension), optional
        Where the columns are that were placed, in units of the median distance to the nearest one,
        centred, principal axes first; None before a fit. They are ignored when domains are
        compared.
    confidence : float, optional
        How reliable a proposal is, from 0 to 1; ignored when domains are compared.

    Raises
    ------
    InputError
        If the dimension is neither 2 nor 3.

    Examples
    --------
    >>> Scattered(), str(Scattered(3))
    (Scattered(dimension=2), 'scattered3')
    """

    dimension: int = 2
    places: NDArray[np.float64] | None = field(default=None, compare=False, repr=False)
    confidence: float | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.dimension not in _DIMENSIONS:
            raise InputError(
                f"scattered places have 2 or 3 dimensions, not {self.dimension!r}: give"
                ' grid="scattered" or "scattered3", and for a line its number of points'
            )

    def __str__(self) -> str:
        return "scattered" if self.dimension == 2 else f"scattered{self.dimension}"

    @property
    def ndim(self) -> int:
        """Number of coordinates."""
        return self.dimension

    @property
    def size(self) -> int:
        """Number of columns that were placed."""
        return 0 if self.places is None else len(self.places)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of placed columns, the only axis of signals."""
        return (self.size,)

    @property
    def periodic(self) -> tuple[bool, ...]:
        """False for each coordinate."""
        return (False,) * self.dimension

    @property
    def is_ring(self) -> bool:
        """False."""
        return False

    def point_names(self, channels: int = 1) -> list[str]:  # noqa: ARG002 - one column at a place
        """Name each place by its number, ``p0``, ``p1`` and so on.

        Parameters
        ----------
        channels : int, default=1
            Ignored: there is one column at each place.

        Returns
        -------
        list of str
            One name for each place.
        """
        return [f"p{i}" for i in range(self.size)]


Domain = Grid | Scattered | Sphere


def given_domain(domain: Any, periodic: bool | Sequence[bool] = False) -> Domain | None:
    """Convert what a user gives to a domain; "auto" gives None.

    >>> given_domain("scattered3"), given_domain("3x4") == Grid((3, 4)), given_domain("auto")
    (Scattered(dimension=3), True, None)
    """
    sphere = Sphere.given(domain)
    if sphere is not None:
        if np.any(periodic):
            raise InputError(
                f"a sphere has no periodic axes, and periodic={periodic!r}: leave it out"
            )
        return sphere
    if isinstance(domain, str) and domain.startswith("scattered"):
        dimension = domain.removeprefix("scattered") or "2"
        domain = Scattered(int(dimension) if dimension.isdecimal() else -1)
    if not isinstance(domain, Scattered):
        return Grid.given(domain, periodic)
    if np.any(periodic):
        raise InputError("scattered places are on no closed axis: leave periodic out")
    return domain


def lattice_of(domain: Domain) -> Grid:
    """The domain, if it is a grid; what is made for grids alone is refused elsewhere.

    >>> lattice_of(Grid((4, 6))).size
    24
    """
    if not isinstance(domain, Grid):
        raise InputError(
            f"this is made for grids, and the domain is a {domain}: use transform, shift and"
            " generators_, which work for both"
        )
    return domain


def domain_words(domain: Domain) -> str:
    """Describe a domain in words, for sentences.

    >>> domain_words(Scattered()), domain_words(Grid((15,), periodic=True))
    ('set of scattered places in a plane', 'ring of 15 points')
    """
    if isinstance(domain, Grid):
        return grid_words(domain)
    if isinstance(domain, Sphere):
        return str(domain)
    return f"set of scattered places in {'a plane' if domain.dimension == 2 else 'space'}"


def along_principal_axes(
    at: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Places ``at`` (k, P), centred, principal axes first, in units of the median distance to the
    nearest one; and the matrix (P, P) that turns and scales displacements so.

    The sign of an axis is that of its largest coordinate.

    >>> places, turn = along_principal_axes(np.array([[0.0, 0.0], [0.0, 2.0], [0.0, 6.0]]))
    >>> places[:, 0].round(3) + 0.0
    array([-1.333, -0.333,  1.667])
    """
    centred = at - at.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2].T
    turned = centred @ axes
    largest = turned[np.abs(turned).argmax(axis=0), np.arange(turned.shape[1])]
    from scipy.spatial import cKDTree  # a tenth of a second, which only this needs

    nearest = np.asarray(cKDTree(at).query(at, 2)[0])[:, 1]
    unit = max(float(np.median(nearest)), 1e-300)
    turn = axes * np.where(largest < 0, -1.0, 1.0) / unit
    return centred @ turn, turn


@dataclass(frozen=True, eq=False)
class TakenColumns:
    """The map from observations to the columns that have places: Y = (X - mean)[:, columns].

    Parameters
    ----------
    mean : ndarray of shape (d,)
        Mean of each column.
    columns : ndarray of int, shape (k,)
        The columns that are taken.
    """

    mean: NDArray[np.float64]
    columns: NDArray[np.int64]

    @property
    def n_outputs(self) -> int:
        """Number of signals."""
        return len(self.columns)

    @property
    def n_features(self) -> int:
        """Number of columns of the observations."""
        return len(self.mean)

    def lift(self, X: ArrayLike) -> NDArray:
        """Signals (n, k) of observations (n, d)."""

        def step(x: NDArray) -> NDArray:
            return (x - self.mean.astype(x.dtype))[:, self.columns]

        return apply_to_rows(X, self.n_features, step, self.n_outputs, None)

    def unlift(self, Y: ArrayLike) -> NDArray:
        """Observations (n, d) with the given signals (n, k); other columns have their mean."""

        def step(y: NDArray) -> NDArray:
            x = np.tile(self.mean.astype(y.dtype), (len(y), 1))
            x[:, self.columns] += y
            return x

        return apply_to_rows(Y, self.n_outputs, step, self.n_features, None)

    def lifting_map(self) -> NDArray[np.float64]:
        """W (k, d) in Y = (X - mean) Wᵀ."""
        W = np.zeros((self.n_outputs, self.n_features))
        W[np.arange(self.n_outputs), self.columns] = 1.0
        return W
