"""Fixed linear maps that hide a signal's domain: row vectors are observed as ``x = f @ transform``.

Each function takes the dimension d and a ``random_state`` and returns a (d, d) float64 matrix; the
two that are not random accept ``random_state`` and ignore it, so that all have the same signature.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symlift.datasets.randomness import RandomState, generator
from symlift.errors import InputError

__all__ = [
    "dst1",
    "identity",
    "named_transforms",
    "random_linear",
    "random_orthogonal",
    "random_permutation",
]


def identity(d: int, random_state: RandomState = None) -> NDArray[np.float64]:  # noqa: ARG001
    """Identity matrix: the domain is not hidden.

    >>> identity(2)
    array([[1., 0.],
           [0., 1.]])
    """
    return np.eye(_dimension(d))


def dst1(d: int, random_state: RandomState = None) -> NDArray[np.float64]:  # noqa: ARG001
    """Orthonormal discrete sine transform of type I, symmetric and its own inverse.

    ``S[j, k] = √(2/(d+1)) sin(π j k / (d+1))``, j, k = 1 … d.

    Parameters
    ----------
    d : int
        Dimension.
    random_state : optional
        Ignored.

    Returns
    -------
    ndarray of shape (d, d)
        The matrix S.

    Examples
    --------
    >>> np.allclose(dst1(7) @ dst1(7), np.eye(7))
    True
    """
    k = np.arange(1, _dimension(d) + 1)
    sines: NDArray[np.float64] = np.sin(np.pi / (d + 1) * np.outer(k, k))
    return sines * math.sqrt(2 / (d + 1))


def random_permutation(d: int, random_state: RandomState = None) -> NDArray[np.float64]:
    """Uniformly random permutation matrix: ``f @ P`` has the entries of f in another order.

    Parameters
    ----------
    d : int
        Dimension.
    random_state : int, numpy.random.Generator or None, optional
        Seed.

    Returns
    -------
    ndarray of shape (d, d)
        The matrix P.

    Examples
    --------
    >>> sorted((np.arange(5) @ random_permutation(5, random_state=0)).tolist())
    [0.0, 1.0, 2.0, 3.0, 4.0]
    """
    return np.eye(_dimension(d))[generator(random_state).permutation(d)]


def random_orthogonal(d: int, random_state: RandomState = None) -> NDArray[np.float64]:
    """Random orthogonal matrix from the Haar measure on O(d).

    It is the Q of the QR decomposition of a Gaussian matrix.

    Parameters
    ----------
    d : int
        Dimension.
    random_state : int, numpy.random.Generator or None, optional
        Seed.

    Returns
    -------
    ndarray of shape (d, d)
        The matrix Q.

    Examples
    --------
    >>> Q = random_orthogonal(6, random_state=0)
    >>> np.allclose(Q.T @ Q, np.eye(6))
    True
    """
    Q, R = np.linalg.qr(generator(random_state).standard_normal((_dimension(d), d)))
    # QR is unique, and Q then Haar, only once the diagonal of R is positive
    return Q * np.where(np.diagonal(R) < 0, -1.0, 1.0)


def random_linear(
    d: int, low: float = 0.5, high: float = 2.0, random_state: RandomState = None
) -> NDArray[np.float64]:
    """Random invertible matrix ``U diag(σ) Vᵀ`` with U and V from the Haar measure.

    The singular values σ decrease in geometric steps, so that with ``low = 1/high`` as many
    directions are stretched as are shrunk and |det| = 1.

    Parameters
    ----------
    d : int
        Dimension.
    low : float, default=0.5
        Smallest singular value.
    high : float, default=2.0
        Largest singular value.
    random_state : int, numpy.random.Generator or None, optional
        Seed.

    Returns
    -------
    ndarray of shape (d, d)
        The matrix.

    Raises
    ------
    InputError
        Unless 0 < low <= high.

    Examples
    --------
    >>> np.round(np.linalg.svd(random_linear(3, random_state=0))[1], 6)
    array([2. , 1. , 0.5])
    """
    if not 0 < low <= high < np.inf:
        raise InputError(
            f"singular values from {low} to {high} make no invertible map: give 0 < low <= high"
        )
    rng = generator(random_state)
    U, V = random_orthogonal(d, rng), random_orthogonal(d, rng)
    return (U * np.geomspace(high, low, d)) @ V.T


named_transforms: dict[str, Callable[..., NDArray[np.float64]]] = {
    "identity": identity,
    "dst1": dst1,
    "permutation": random_permutation,
    "orthogonal": random_orthogonal,
    "linear": random_linear,
}


def transform_matrix(
    transform: str | ArrayLike, d: int, rng: np.random.Generator
) -> tuple[str, NDArray[np.float64]]:
    """The name and the (d, d) matrix of a transform given by name or as a matrix."""
    if isinstance(transform, str):
        if transform not in named_transforms:
            raise InputError(
                f"transform {transform!r} is unknown: use {', '.join(named_transforms)}, or a"
                " matrix"
            )
        return transform, named_transforms[transform](d, random_state=rng)
    try:
        matrix = np.array(transform, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"transform is neither a name nor a matrix: use {', '.join(named_transforms)}"
        ) from None
    if matrix.shape != (d, d):
        raise InputError(
            f"transform has shape {matrix.shape}: signals of {d} points need a ({d}, {d}) matrix"
        )
    if not np.isfinite(matrix).all():
        raise InputError("transform has NaN or infinite entries: give a finite matrix")
    return "matrix", matrix


def _dimension(d: int) -> int:
    try:
        size = operator.index(d)
    except TypeError:
        size = 0
    if size < 1:
        raise InputError(f"dimension {d!r} must be a whole number, at least 1")
    return size
