"""Caps that are turned or mirrored as a whole: no distance changes, known places show it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

__all__ = ["WHOLE", "Turned", "centre_of", "turned_cap"]

#: what no data of a cap say
WHOLE = ("turned as a whole", "mirrored as a whole")
# an anchor is where it is known to be, in distances of neighbours; by how much worse a motion
# brings channels to sites that is e times less probable; and the probability of another one from
# which it is left open
_NEAR, _OFF, _OPEN = 0.5, 0.1, 0.2


@dataclass(frozen=True)
class Turned:
    """Positions after the motion that anchors ask for; what that is, "" for none; how probable it
    is among those that they allow; and what remains open.
    """

    positions: NDArray[np.float64]
    words: str
    probability: float
    open_to: tuple[str, ...]


def turned_cap(
    positions: NDArray, sites: NDArray, columns: NDArray[np.int64], places: NDArray
) -> Turned:
    """The motion about the middle of the cap that brings columns to the ``places`` (k, P) where
    they are known to be; of several, the one that brings most channels to ``sites``.
    """
    if not len(columns):
        return Turned(positions, "", 1.0, WHOLE)
    middle, step = centre_of(sites), _step(sites)
    centred, goal = positions - middle, places - middle
    rank = int(np.sum(np.linalg.svd(goal, compute_uv=False) > 0.2 * step))
    # with one direction fewer than there are, a rotation is known, and a mirror in the anchors'
    # plane is left
    open_to: tuple[str, ...] = WHOLE if rank < goal.shape[1] - 1 else ()
    agree = bool(np.linalg.norm(centred[columns] - goal, axis=1).max() < _NEAR * step)
    motions = [np.eye(goal.shape[1])] if agree else []
    for sign in (1.0, -1.0):
        motion = _motion(centred[columns], goal, sign)
        apart = np.linalg.norm(centred[columns] @ motion - goal, axis=1).max()
        if apart < _NEAR * step and all(np.abs(motion - other).max() > 0.05 for other in motions):
            motions.append(motion)
    if not motions:
        return Turned(positions, "not where its anchors are", 0.5, open_to)
    off = [cdist(centred @ m, sites - middle).min(axis=1).mean() / step for m in motions]
    weight = np.exp(-np.array(off) / _OFF)
    weight /= weight.sum()
    best = 0 if agree else int(weight.argmax())
    rivals = [_named(motions[best].T @ m) for k, m in enumerate(motions) if k != best]
    if len(rivals) and 1 - weight[best] > _OPEN and not open_to:
        open_to = tuple(rivals)
    words = "" if agree else _named(motions[best])
    moved = positions if agree else centred @ motions[best] + middle
    return Turned(moved, words, float(weight[best]), open_to)


def _motion(one: NDArray, other: NDArray, sign: float) -> NDArray[np.float64]:
    """The rotation, or with sign -1 the rotation and mirror, that carries rows of ``one`` to those
    of ``other`` best (Kabsch).
    """
    u, _, vt = np.linalg.svd(one.T @ other)
    last = np.ones(one.shape[1])
    last[-1] = sign * np.sign(np.linalg.det(u @ vt))
    return np.asarray(u @ np.diag(last) @ vt)


def _named(motion: NDArray) -> str:
    """What a motion does."""
    d = len(motion)
    if np.linalg.det(motion) < 0:
        left = np.eye(d)
        left[0, 0] = -1.0
        if np.abs(motion - left).max() < 0.2:
            return "mirrored left to right"
        return "mirrored"
    cosine = (np.trace(motion) - (d - 2)) / 2
    return f"turned by {round(float(np.degrees(np.arccos(np.clip(cosine, -1, 1)))))} degrees"


def centre_of(sites: NDArray) -> NDArray[np.float64]:
    """The middle of the sphere that sites in space are on, or the mean of those in a plane."""
    if sites.shape[1] == 2 or len(sites) < 5:
        return np.asarray(sites.mean(axis=0))
    A = np.c_[2 * sites, np.ones(len(sites))]
    return np.asarray(np.linalg.lstsq(A, np.sum(sites**2, axis=1), rcond=None)[0][:-1])


def _step(positions: NDArray) -> float:
    apart = cdist(positions, positions)
    np.fill_diagonal(apart, np.inf)
    return float(np.median(apart.min(axis=1)))
