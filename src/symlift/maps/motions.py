"""Rigid motions under which contacts, or those with a channel on them, are where contacts are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

__all__ = ["motions_of", "turns"]

_NEAR = 0.1


def motions_of(points: NDArray, needed: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Motions that carry all of the points (M, P) that are ``needed``, in steps, to points: the
    point of each, -1 for none.

    The identity is the first.  Rotations are by quarters of a turn.
    """
    tree = cKDTree(points)
    centre = int(np.argmin(np.sum((points - points.mean(axis=0)) ** 2, axis=1)))
    motions: dict[bytes, NDArray[np.int64]] = {}
    for turn in turns(points.shape[1]):
        turned = points @ turn
        for j in np.argsort(np.sum((points - points[centre]) ** 2, axis=1), kind="stable"):
            by = points[j] - turned[centre]
            apart, nearest = tree.query(turned + by)
            to = np.where(apart < _NEAR, nearest, -1)
            if (to[needed] >= 0).all():
                motions.setdefault(to.tobytes(), to)
    return list(motions.values())


def turns(dimension: int) -> Iterator[NDArray[np.float64]]:
    """Mirrorings, and rotations by quarters of a turn."""
    if dimension != 2:
        for signs in np.ndindex(*(2,) * dimension):
            yield np.diag(1.0 - 2.0 * np.array(signs))
        return
    quarter = np.array([[0.0, 1.0], [-1.0, 0.0]])
    for mirror in (1.0, -1.0):
        for power in range(4):
            yield np.diag([1.0, mirror]) @ np.linalg.matrix_power(quarter, power)
