"""Do the rows go all the way round a ring, or was an arc closed to one?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from symlift.core.angles import fundamental
from symlift.core.model import LiftedModel

__all__ = ["coverage", "coverage_of"]

#: the part of the ring that is looked at, and the number of evenly spread rows that it holds at
#: least
_PART, _ROWS = 1 / 12, 20


def coverage(phase: NDArray, weight: NDArray | None = None) -> float:
    """Weight of the rows in the emptiest twelfth of a ring, as a share of what an even spread has.

    Where rows are few, a larger part is looked at, in which an even spread has 20 of them.

    Parameters
    ----------
    phase : ndarray of shape (n,)
        Angles in radians.
    weight : ndarray of shape (n,), optional
        How much each row counts; rows without a signal have no phase.

    Returns
    -------
    float
        1 for an even spread; 0 where a part of the ring has no rows.

    Examples
    --------
    >>> angle = np.linspace(0, 2 * np.pi, 600, endpoint=False)
    >>> round(coverage(angle), 2), round(coverage(angle * 0.8), 2)
    (0.98, 0.0)
    """
    n = len(phase)
    share = min(max(_PART, _ROWS / max(n, 1)), 0.5)
    turned = np.mod(phase, 2 * np.pi)
    order = np.argsort(turned, kind="stable")
    around = np.concatenate([turned[order], turned[order] + 2 * np.pi])
    weights = (np.ones(n) if weight is None else weight)[order]
    total = np.concatenate([[0.0], np.cumsum(np.tile(weights, 2))])
    # parts that begin just behind a row: the emptiest one is among them
    first = np.arange(1, n + 1)
    end = np.maximum(np.searchsorted(around, around[:n] + 2 * np.pi * share, side="left"), first)
    return float((total[end] - total[first]).min() / max(weights.sum() * share, 1e-300))


def coverage_of(model: LiftedModel, rows: NDArray) -> float:
    """`coverage` of rows on the ring of a model, each with the amplitude that it has there."""
    wave = fundamental(model.lift(rows))
    return coverage(np.angle(wave), np.abs(wave))
