"""The lifting map of a placement: columns at occupied points, linear prediction at empty ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix

from symlift.search.criterion import Slots, fit_lags

__all__ = ["AROUND", "nearest", "placement_map", "prediction", "usual_scale"]

# number of nearby columns that an empty point is predicted from, and their assumed noise variance
AROUND, _NUGGET = 24, 1e-3


def placement_map(
    c: NDArray,
    columns: NDArray,
    slot: NDArray,
    weight: NDArray,
    scale: NDArray,
    slots: Slots,
    d: int,
) -> csr_matrix:
    """W (slots, d), acting on X - mean.

    ``columns`` (k,) at ``slot`` (k,) with ``weight`` (k,), which sum to 1 per slot; c (k, k): their
    correlations; scale (d,): the standard deviations of the columns. An empty slot gets the best
    linear prediction of a standardised field from the nearby columns, under the mean covariance of
    each lag, times the typical standard deviation around it.
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
    # one column per slot: copies would make the system singular
    first = np.unique(slot, return_index=True)[1]
    columns, slot, c = columns[first], slot[first], c[np.ix_(first, first)]
    lag = c - np.eye(len(c))
    K = fit_lags(lag[None], slot, slots, 0.0, 0.5).K[0]
    at = slots.grid.indices()[slots.point].astype(float)
    apart = np.abs(at[holes][:, None] - at[slot][None])
    shape = np.array(slots.grid.shape)
    apart = np.where(slots.grid.periodic, np.minimum(apart, shape - apart), apart)
    distance = np.sqrt(np.sum(apart**2, axis=-1))
    near = nearest(distance, AROUND * slots.depth)
    gram = K[slots.index[slot[near][:, :, None], slot[near][:, None, :]]]
    toward = K[slots.index[holes[:, None], slot[near]]]
    apart = np.take_along_axis(distance, near, axis=1)
    weight = prediction(gram, toward) * usual_scale(scale[columns], apart, near)
    return np.repeat(holes, near.shape[1]), columns[near].ravel(), weight.ravel()


def nearest(distance: NDArray, count: int) -> NDArray[np.int64]:
    """The ``count`` columns that are nearest to each point, (points, count)."""
    k = min(count, distance.shape[1])
    return np.argpartition(distance, k - 1, axis=1)[:, :k]


def prediction(gram: NDArray, toward: NDArray) -> NDArray[np.float64]:
    """Weights (m, k) of the best linear prediction from k standardised columns, gram (m, k, k)."""
    gram = gram.copy()
    own = np.arange(gram.shape[1])
    gram[:, own, own] = 1.0
    values, vectors = np.linalg.eigh(gram)
    # means over pairs need not form a covariance matrix: negative directions are noise
    inverse = np.einsum(
        "hij,hj,hkj->hik", vectors, 1 / (np.maximum(values, 0.0) + _NUGGET), vectors
    )
    return np.einsum("hij,hj->hi", inverse, toward)


def usual_scale(scale: NDArray, apart: NDArray, near: NDArray) -> NDArray[np.float64]:
    """The typical deviation around each point, divided by that of each column ``near`` (m, k),
    which is ``apart`` (m, k) from it.
    """
    usual = np.maximum(scale[near], 1e-300)
    nearness = 1 / (1 + apart**2)
    local = np.exp(np.sum(np.log(usual) * nearness, axis=1) / np.sum(nearness, axis=1))
    return np.asarray(local[:, None] / usual)
