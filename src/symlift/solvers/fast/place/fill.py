"""The lifting map that follows from a placement: columns where there are some, linear prediction where there are none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix

from symlift.solvers.fast.place.slots import Slots, fit_lags

__all__ = ["lifting_map"]

# columns around a hole that it is predicted from, and the noise that they are taken to have
_AROUND, _NUGGET = 24, 1e-3


def lifting_map(
    c: NDArray, columns: NDArray, slot: NDArray, weight: NDArray, scale: NDArray, slots: Slots, d: int
) -> csr_matrix:
    """W (slots, d), acting on X - mean.

    ``columns`` (k,) at ``slot`` (k,) with ``weight`` (k,), which sum to 1 in a slot; c (k, k): their correlations;
    scale (d,): the columns' deviations.  A hole takes the best linear prediction of a standard field from the columns
    around it, under the covariance that lags have on average, times the deviation that is usual around it.
    """
    parts = [(slot, columns, weight)]
    holes = np.setdiff1d(np.arange(slots.size), slot)
    if len(holes) and len(slot) >= 2:
        parts.append(_predictions(c, columns, slot, scale, slots, holes))
    row, column, value = (np.concatenate(p) for p in zip(*parts, strict=True))
    return coo_matrix((value, (row, column)), shape=(slots.size, d)).tocsr()


def _predictions(
    c: NDArray, columns: NDArray, slot: NDArray, scale: NDArray, slots: Slots, holes: NDArray
) -> tuple[NDArray, NDArray, NDArray]:
    """Rows, columns and weights of the predicted slots."""
    first = np.unique(slot, return_index=True)[1]  # one column a slot: copies would make the system singular
    columns, slot, c = columns[first], slot[first], c[np.ix_(first, first)]
    lag = c - np.eye(len(c))
    K = fit_lags(lag[None], slot, slots, 0.0, 0.5).K[0]
    at = slots.grid.indices()[slots.point].astype(float)
    apart = np.abs(at[holes][:, None] - at[slot][None])
    shape = np.array(slots.grid.shape)
    apart = np.where(slots.grid.periodic, np.minimum(apart, shape - apart), apart)
    distance = np.sum(apart**2, axis=-1)
    k = min(_AROUND * slots.depth, len(slot))
    near = np.argpartition(distance, k - 1, axis=1)[:, :k]  # (holes, k)
    gram = K[slots.index[slot[near][:, :, None], slot[near][:, None, :]]]
    gram[:, np.arange(k), np.arange(k)] = 1.0
    values, vectors = np.linalg.eigh(gram)
    # lag means need not be a covariance: negative directions are noise
    inverse = np.einsum("hij,hj,hkj->hik", vectors, 1 / (np.maximum(values, 0.0) + _NUGGET), vectors)
    toward = K[slots.index[holes[:, None], slot[near]]]
    weight = np.einsum("hij,hj->hi", inverse, toward)
    usual = np.take_along_axis(np.broadcast_to(scale[columns], distance.shape), near, axis=1)
    nearness = 1 / (1 + np.take_along_axis(distance, near, axis=1))
    local = np.exp(np.sum(np.log(np.maximum(usual, 1e-300)) * nearness, axis=1) / np.sum(nearness, axis=1))
    weight = weight * local[:, None] / np.maximum(usual, 1e-300)
    return np.repeat(holes, k), columns[near].ravel(), weight.ravel()
