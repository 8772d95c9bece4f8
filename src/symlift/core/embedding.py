"""Embeddings E of columns in the dimensions that a group acts on, dense or sparse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError

__all__ = ["EmbeddingKind", "embed_rows", "embedding_matrix", "pseudo_inverse", "times"]

EmbeddingKind = Literal["identity", "zero-pad", "linear"]

_RCOND = 1e-10


def embedding_matrix(kind: EmbeddingKind, d: int, dimension: int) -> NDArray[np.float64]:
    """E of the two fixed kinds: the identity, or zeros below it up to ``dimension`` rows.

    >>> embedding_matrix("zero-pad", 2, 3)
    array([[1., 0.],
           [0., 1.],
           [0., 0.]])
    """
    if kind == "identity" and dimension != d:
        raise InputError(
            f"the identity embedding keeps d = {d} dimensions, but {dimension} are asked for: use"
            " 'zero-pad'"
        )
    if kind == "linear" or dimension < d:
        raise InputError(
            f"a {kind} embedding of {d} into {dimension} dimensions has to be given as a matrix"
        )
    return np.eye(dimension, d)


def embed_rows(V: Any, window: NDArray, size: int, channels: int) -> Any:
    """Sparse E (channels · size, d) with the rows of V (window · channels, d) at ``window``."""
    from scipy.sparse import coo_array, csr_array

    V = coo_array(V)
    point, channel = np.divmod(V.row, channels)
    return csr_array(
        (V.data, (channel * size + window[point], V.col)), shape=(channels * size, V.shape[1])
    )


def pseudo_inverse(M: Any) -> Callable[[NDArray], NDArray]:
    """Rows z ↦ rows M⁺ z.  Rows of M that are zero throughout are left out of the work."""
    used = np.flatnonzero(np.asarray(np.abs(M).sum(axis=1)).reshape(-1))
    part = M[used]
    if not hasattr(M, "tocsr"):
        inverse = np.linalg.pinv(part, rcond=_RCOND).T
        return lambda rows: rows[:, used] @ inverse
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import splu

    # normal equations: a tiny ridge replaces the Moore–Penrose rule where columns are unseen or
    # proportional
    gram = (part.T @ part).tocsc()
    solver = splu((gram + 1e-9 * gram.diagonal().max() * eye_array(gram.shape[0])).tocsc())
    return lambda rows: (
        solver.solve(np.ascontiguousarray(part.T @ rows[:, used].T.astype(np.float64))).T
    )


def times(rows: NDArray, M: Any) -> NDArray:
    """rows Mᵀ, whether M is sparse or not."""
    return np.asarray((M @ rows.T).T) if hasattr(M, "tocsr") else rows @ M.T
