"""The lifting map of a placement: columns at occupied points, linear prediction at empty ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix

from symlift.search.criterion import Slots, fit_lags
from symlift.statistics.kriging import AROUND, nearest, prediction, usual_scale

__all__ = ["placement_map"]


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
    local = usual_scale(scale[columns], apart, near)
    weight = prediction(gram, toward) * local[:, None] / np.maximum(scale[columns][near], 1e-300)
    return np.repeat(holes, near.shape[1]), columns[near].ravel(), weight.ravel()
