"""Generator similarity: is the learned generator the derivative along an axis of the grid?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from symlift.core.fourier import along
from symlift.core.grid import Grid
from symlift.core.sphere import Sphere
from symlift.errors import InputError
from symlift.metrics.fields import GridLike, as_grid
from symlift.metrics.sphere import so3_similarity

__all__ = ["derivative", "generator_similarity", "low_band"]

TRUTHS = ("difference", "exact")
WORST_CONDITION = 1e12


def derivative(length: int, periodic: bool, truth: str = "difference") -> NDArray[np.float64]:
    """True generator of one axis, d/dt in grid steps, (length, length), skew-symmetric.

    ``difference``: ``(f[n+1] - f[n-1])/2``, wrapped only on a ring.  ``exact`` on a ring: the
    spectral derivative, ``2πik/N`` for frequency k, with 0 for the Nyquist mode of an even ring,
    which has no real derivative on the grid.  ``exact`` on an open axis: the derivative of the sinc
    interpolant, ``D[n, m] = (-1)^(n-m)/(n-m)``.

    >>> derivative(3, periodic=False)
    array([[ 0. ,  0.5,  0. ],
           [-0.5,  0. ,  0.5],
           [ 0. , -0.5,  0. ]])
    >>> derivative(3, periodic=False, truth="exact")
    array([[ 0. ,  1. , -0.5],
           [-1. ,  0. ,  1. ],
           [ 0.5, -1. ,  0. ]])
    """
    if truth not in TRUTHS:
        raise InputError(f"truth {truth!r} is unknown: choose one of {', '.join(TRUTHS)}")
    lag = np.subtract.outer(np.arange(length), np.arange(length))
    if truth == "difference":
        ahead = np.mod(lag, length) == length - 1 if periodic else lag == -1
        return 0.5 * ahead.astype(np.float64) - 0.5 * ahead.T.astype(np.float64)
    if periodic:
        # Σ_k (2πik/N) exp(2πik(n-m)/N)/N over |k| < N/2, with ±k taken together
        k = np.arange(1, (length + 1) // 2)
        step = 2 * np.pi / length
        column: NDArray[np.float64] = (
            -(2 * step / length) * np.sin(step * np.outer(np.arange(length), k)) @ k
        )
        return column[np.mod(lag, length)]
    return np.divide(np.where(lag % 2, -1.0, 1.0), lag, out=np.zeros(lag.shape), where=lag != 0)


def low_band(length: int, bandwidth: float) -> NDArray[np.float64]:
    """Orthonormal real Fourier basis of the band ``|k| ≤ bandwidth·N/2``, (length, modes).

    >>> low_band(15, 0.75).shape  # k = 0, ±1 … ±5
    (15, 11)
    """
    highest = math.floor(bandwidth * length / 2 + 1e-9)  # 0.6 · 10 / 2 is 3, not 2.999…
    n = np.arange(length)
    columns = [np.full(length, 1 / math.sqrt(length))]
    for k in range(1, highest + 1):
        angle = 2 * np.pi * k * n / length
        if 2 * k == length:
            columns.append(np.cos(angle) / math.sqrt(length))
        else:
            columns += [
                np.cos(angle) * math.sqrt(2 / length),
                np.sin(angle) * math.sqrt(2 / length),
            ]
    return np.stack(columns, axis=1)


def generator_similarity(
    generators: ArrayLike,
    transform: ArrayLike | None,
    grid: GridLike | Sphere,
    periodic: bool | Sequence[bool] = False,
    bandwidth: float = 0.75,
    truth: str = "difference",
) -> NDArray[np.float64]:
    """Similarity S_β of learned generators with the translations of the grid.

    ``X = latent @ transform``, hence x = A f with A = transform.T, and in native coordinates a
    learned L is ``A⁻¹ L A``.  Both it and the true ``I ⊗ … D_j … ⊗ I`` are projected on |k| ≤ β·N/2
    of every axis, and compared by

        S = |⟨Π A⁻¹LA Π, Π D Π⟩| / (‖Π A⁻¹LA Π‖ ‖Π D Π‖)        (Frobenius)

    under the best assignment of generators to axes; sign and order are ambiguities.  On a sphere,
    D_j are the generators of rotations in spherical harmonics, up to β times the highest degree,
    under the best rotation or reflection of the three; ``truth`` has no effect there.

    Parameters
    ----------
    generators : array-like of shape (P, N, N)
        Learned generators in observation space.
    transform : array-like of shape (N, N) or None
        The matrix with ``X = latent @ transform``; None is the identity (on a sphere, X are the
        coefficients of harmonics).
    grid : Grid, Sphere, int or sequence of int
        A grid, whose own flags count, or its sizes; or a sphere.
    periodic : bool or sequence of bool, default=False
        Whether axes close on themselves, if ``grid`` is given by its sizes.
    bandwidth : float, default=0.75
        Share β of the frequencies of each axis that is compared, in (0, 1].
    truth : {"difference", "exact"}, default="difference"
        Central differences, as in the paper, or the derivative of the band-limited interpolant.
        Relative to differences even an exact translation stays below 1.

    Returns
    -------
    ndarray of shape (P,)
        The similarity for each axis of the grid, from 0 to 1; 0 for a generator that is 0 in the
        band.

    Raises
    ------
    InputError
        If shapes do not fit the grid, or if ``transform`` is singular.

    References
    ----------
    "Blind Recovery of Latent Domains via Unsupervised Symmetry Discovery", section "Experiments",
    evaluation protocol.

    Examples
    --------
    >>> exact = derivative(15, periodic=True, truth="exact")
    >>> generator_similarity([exact], None, 15, periodic=True).round(3)
    array([0.96])
    >>> generator_similarity([-exact], None, 15, periodic=True, truth="exact").round(3)
    array([1.])
    """
    if not 0 < bandwidth <= 1:
        raise InputError(f"bandwidth {bandwidth} is not in (0, 1]: 0.75 is usual")
    if isinstance(grid, Sphere):
        return so3_similarity(generators, transform, grid, bandwidth)
    grid = as_grid(grid, periodic)
    native = _to_native(_check_generators(generators, grid), transform)
    bands = [low_band(length, bandwidth) for length in grid.shape]
    truths = [
        basis.T @ derivative(length, wraps, truth) @ basis
        for basis, length, wraps in zip(bands, grid.shape, grid.periodic, strict=True)
    ]
    for axis, banded in enumerate(truths):
        if not np.linalg.norm(banded) > 1e-12:
            raise InputError(
                f"bandwidth {bandwidth} keeps no derivative on axis {axis} of grid {grid}: raise it"
            )
    table = np.array([_similarities(matrix, bands, truths) for matrix in native])
    learned, axis_of = linear_sum_assignment(table, maximize=True)
    scores = np.empty(grid.ndim)
    scores[axis_of] = table[learned, axis_of]
    return scores


def _check_generators(generators: ArrayLike, grid: Grid) -> NDArray[np.float64]:
    matrices = np.asarray(generators, dtype=np.float64)
    if matrices.shape != (grid.ndim, grid.size, grid.size):
        raise InputError(
            f"generators have shape {matrices.shape}: a {grid} grid needs ({grid.ndim},"
            f" {grid.size}, {grid.size})"
        )
    if not np.isfinite(matrices).all():
        raise InputError("generators have NaN or infinity: the fit failed, use those of another")
    return matrices


def _to_native(matrices: NDArray[np.float64], transform: ArrayLike | None) -> NDArray[np.float64]:
    """``A⁻¹ L A`` with A = transform.T, for every L."""
    if transform is None:
        return matrices
    a = np.asarray(transform, dtype=np.float64).T
    if a.shape != matrices.shape[1:]:
        raise InputError(
            f"transform has shape {a.T.shape}: generators of this size need {matrices.shape[1:]}"
        )
    if not np.isfinite(a).all():
        raise InputError(
            "transform has NaN or infinity: give the matrix with X = latent @ transform"
        )
    try:
        inverse = np.linalg.inv(a)
        condition = float(np.linalg.norm(a, 1) * np.linalg.norm(inverse, 1))
    except np.linalg.LinAlgError:
        condition = math.inf
    if not condition < WORST_CONDITION:
        raise InputError(
            "transform is singular: generators cannot be transformed back, give an invertible one"
        )
    return inverse @ matrices @ a


def _similarities(
    matrix: NDArray[np.float64], bands: list[NDArray[np.float64]], truths: list[NDArray[np.float64]]
) -> list[float]:
    """|Frobenius cosine| in the band of one native generator with the true one of each axis.

    In coordinates of the band the truth is ``I ⊗ … d_j … ⊗ I``, so that its product with G is that
    of d_j with the partial trace of G over the other axes, and no matrix of the full grid is built.
    """
    shape = [len(basis) for basis in bands]
    inner = [basis.T for basis in bands]
    banded = along(matrix.reshape(shape * 2), [*inner, *inner])
    norm, count = float(np.linalg.norm(banded)), math.prod(basis.shape[1] for basis in bands)
    if norm <= 1e-12 * float(np.linalg.norm(matrix)):
        return [0.0] * len(bands)
    scores = []
    for axis, d in enumerate(truths):
        rows = "abc"[: len(bands)]
        columns = rows.replace(rows[axis], "z")
        traced = np.einsum(f"{rows}{columns}->{rows[axis]}z", banded)
        size = float(np.linalg.norm(d)) * math.sqrt(count / len(d))
        scores.append(min(1.0, abs(float(np.sum(traced * d))) / (norm * size)))
    return scores
