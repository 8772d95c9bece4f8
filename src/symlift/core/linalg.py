"""Linear algebra that several rooms share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["cayley", "null_space", "of_one_direction", "polar"]


def polar(M: NDArray) -> NDArray[np.float64]:
    """Matrix with orthonormal rows (or columns) nearest to M, or to each of a stack.

    This is Löwdin's symmetric orthogonalisation, the orthogonal factor of the polar decomposition.

    >>> polar(np.diag([2.0, -0.5]))
    array([[ 1.,  0.],
           [ 0., -1.]])
    """
    try:
        left, _, right = np.linalg.svd(M, full_matrices=False)
    except np.linalg.LinAlgError:
        # LAPACK's fast SVD now and then ends without a result where all singular values are equal,
        # as those of a rotation up to rounding (photographs, 8 x 8: one fit)
        return _polar_by_gram(M)
    return left @ right


def _polar_by_gram(M: NDArray) -> NDArray[np.float64]:
    """The same, as (M Mᵀ)^(-1/2) M, or as M (MᵀM)^(-1/2) where columns are fewer."""
    if M.shape[-2] > M.shape[-1]:
        return np.swapaxes(_polar_by_gram(np.swapaxes(M, -1, -2)), -1, -2)
    values, vectors = np.linalg.eigh(M @ np.swapaxes(M, -1, -2))
    least = np.finfo(np.float64).eps * values[..., -1:]
    scaled = vectors / np.sqrt(np.maximum(values, np.maximum(least, 1e-300)))[..., None, :]
    return np.asarray(scaled @ (np.swapaxes(vectors, -1, -2) @ M), dtype=np.float64)


def cayley(skew: NDArray) -> NDArray[np.float64]:
    """(I - A/2)⁻¹ (I + A/2) for a skew A: orthogonal, and I + A to first order.

    >>> cayley(np.array([[0.0, -2.0], [2.0, 0.0]]))
    array([[ 0., -1.],
           [ 1.,  0.]])
    """
    eye = np.eye(len(skew))
    return np.asarray(np.linalg.solve(eye - skew / 2, eye + skew / 2), dtype=np.float64)


def of_one_direction(rows: NDArray) -> bool:
    """Whether all rows (n, d), without their mean, are multiples of one: no column then says
    more than any other.

    Of very many rows, some are looked at.

    >>> of_one_direction(np.outer([0.0, 1.0, 5.0], [1.0, -2.0]) + 3)
    True
    """
    some = rows[:: max(1, len(rows) // (10 * rows.shape[1] + 1_000))].astype(np.float64)
    centred = some - some.mean(axis=0)
    sizes = np.linalg.norm(centred, axis=1)
    if not sizes.any():
        return True
    direction = centred[np.argmax(sizes)] / sizes.max()
    centred -= np.outer(centred @ direction, direction)
    return bool(np.abs(centred).max() < 1e-7 * sizes.max())


def null_space(M: NDArray) -> NDArray[np.float64]:
    """Orthonormal columns that M (rows, columns) maps to zero, by its singular values.

    The same as scipy's, without importing scipy.

    >>> np.abs(null_space(np.array([[0.0, 3.0]])))
    array([[1.],
           [0.]])
    """
    _, values, right = np.linalg.svd(M, full_matrices=True)
    tolerance = np.finfo(np.float64).eps * max(M.shape) * values.max(initial=0.0)
    return right[np.sum(values > tolerance) :].T
