"""Translations of fields on a torus by Fourier transforms, without a (D, D) matrix.

The group is the same as in 2-plane form.  The planes of a torus are its Fourier modes, so only its
shape has to be stored.  A grid of 64x64 points sits in a torus of 97x97, whose matrix Q would take
700 MB.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from symlift.core.fourier import regular_frequencies
from symlift.core.grid import Grid
from symlift.core.group import plane_basis, spread_filter
from symlift.core.linalg import null_space
from symlift.errors import InputError

__all__ = ["TorusGroup", "torus_around", "torus_frame"]

# fields are transformed in blocks of about this many numbers
_BLOCK = 4_000_000


def torus_around(grid: Grid, padding: float) -> Grid:
    """Torus that holds the grid.

    Open axes are windows of an axis that is longer by ``padding``, rounded up to an odd length.

    >>> str(torus_around(Grid((6, 5), periodic=(False, True)), 0.5))
    '9x5'
    """
    lengths = []
    for length, wraps in zip(grid.shape, grid.periodic, strict=True):
        longer = length if wraps else length + math.ceil(padding * length)
        lengths.append(longer if wraps else longer + 1 - longer % 2)
    return Grid(lengths, periodic=True)


def torus_frame(grid: Grid, torus: Grid) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """Orthogonal frame of a torus: (θ, r, F, window).

    The columns of F (D, D) are the torus' points in plane coordinates; ``window`` lists those
    columns that are the grid's own points.
    """
    theta, r = regular_frequencies(torus.shape)
    D = 2 * theta.shape[1] + 1
    window = torus.flat(grid.indices())
    # the same coordinates as the grid's own, so that the window sits where T(θ) is evaluated
    points = torus.indices() - (np.array(grid.shape) - 1) / 2
    F = (plane_basis(theta, points, D) * spread_filter(r, D)).T
    if F.shape[1] < D:  # self-conjugate modes fill only half of their plane
        F = np.concatenate([F, null_space(F.T)], axis=1)
    return theta, r, F, window


@dataclass(frozen=True)
class TorusGroup:
    """Translations of fields at the points of a torus of ``shape``, by any real number of steps.

    Where an axis has an even number of points, the Nyquist mode keeps the cosine of its rotation:
    the part of it that lies in the space of the points themselves.

    >>> TorusGroup((3,)).act(np.array([[1.0, 0.0, 0.0]]), [1.0]).round(6) + 0.0
    array([[0., 1., 0.]])
    """

    shape: tuple[int, ...]

    @property
    def dimension(self) -> int:
        """Number D of the torus' points."""
        return math.prod(self.shape)

    @property
    def axes(self) -> int:
        """Number P of generators."""
        return len(self.shape)

    @property
    def filter_size(self) -> int:
        """Number of weights of a filter, 0: the filter is flat."""
        return 0

    def act(self, Z: NDArray, t: ArrayLike) -> NDArray[np.float64]:
        """Move fields Z (n, D) by t (P,) steps towards larger indices."""
        steps = np.asarray(t, dtype=np.float64)
        if steps.shape != (self.axes,):
            raise InputError(
                f"a translation of shape {steps.shape} was given for a torus of {self.axes} axes"
            )
        return self._filtered(Z, [_turn(n, by) for n, by in zip(self.shape, steps, strict=True)])

    def derivative(self, Z: NDArray, axis: int) -> NDArray[np.float64]:
        """Apply L_axis to fields Z (n, D): minus the spectral derivative, d/dt of `act` at 0."""
        factors = [_slope(n) if j == axis else np.ones(n) for j, n in enumerate(self.shape)]
        return self._filtered(Z, factors)

    def evaluate(self, E: Any, domain: Any, r: NDArray, channels: int) -> Any:  # noqa: ARG002 - flat
        """The rows of E that belong to the points of a grid, (points · channels, d)."""
        window = Grid(self.shape, True).flat(domain.indices())
        rows = (np.arange(channels) * self.dimension + window[:, None]).ravel()
        return E.tocsr()[rows] if hasattr(E, "tocsr") else E[rows]

    def tensors(self) -> dict[str, NDArray]:
        """The arrays that describe the group: none, the shape says it all."""
        return {}

    def to(self, dtype: DTypeLike) -> TorusGroup:  # noqa: ARG002 - as other groups have it
        """The same group, which has no precision of its own."""
        return self

    def _filtered(self, Z: NDArray, factors: Sequence[NDArray]) -> NDArray[np.float64]:
        fields = np.asarray(Z, dtype=np.float64).reshape(len(Z), *self.shape)
        axes = tuple(range(1, self.axes + 1))
        out = np.empty_like(fields)
        step = max(1, _BLOCK // self.dimension)
        for start in range(0, len(fields), step):
            spectrum = np.fft.fftn(fields[start : start + step], axes=axes)
            for axis, factor in enumerate(factors):
                spectrum *= factor.reshape((-1,) + (1,) * (self.axes - axis - 1))
            out[start : start + step] = np.fft.ifftn(spectrum, axes=axes).real
        return out.reshape(len(Z), -1)


def _turn(n: int, by: float) -> NDArray:
    k = np.fft.fftfreq(n) * n
    factor = np.exp(-2j * np.pi * k * by / n)
    if n % 2 == 0:
        factor[n // 2] = factor[n // 2].real
    return factor


def _slope(n: int) -> NDArray:
    k = np.fft.fftfreq(n) * n
    if n % 2 == 0:
        k[n // 2] = 0.0
    return -2j * np.pi * k / n
