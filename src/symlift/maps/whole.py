"""Motions of a whole map, which change no distance: no data show them, known places do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from symlift.maps.faults import Fault, Kind
from symlift.maps.motions import motions_of

__all__ = ["whole_motions"]


def whole_motions(positions: NDArray) -> list[Fault]:
    """Motions that carry all of the ``positions`` (d, P) to positions, as faults."""
    d = len(positions)
    every = np.arange(d)
    apart = cdist(positions, positions)
    np.fill_diagonal(apart, np.inf)
    extends = np.ptp(positions, axis=0) > 1e-9
    points = positions[:, extends] / float(np.median(apart.min(axis=1)))
    return [
        Fault(Kind.TURNED, to, (every,), words=(f"{_named(points, to)} as a whole",))
        for to in motions_of(points, every)
        if (to != every).any()
    ]


def _named(points: NDArray, to: NDArray[np.int64]) -> str:
    """What a motion does, from where it carries each point."""
    if points.shape[1] == 1:
        return "turned end to end"
    centred, moved = points - points.mean(axis=0), points[to] - points[to].mean(axis=0)
    turn = np.linalg.lstsq(centred, moved, rcond=None)[0]
    if points.shape[1] != 2:
        return "mirrored" if np.linalg.det(turn) < 0 else "turned"
    if np.linalg.det(turn) > 0:
        angle = round(float(np.degrees(np.arctan2(turn[0, 1], turn[0, 0]))))
        return f"turned by {abs(angle)} degrees"
    if abs(turn[0, 0]) < 0.5:
        return "mirrored in a diagonal"
    return "mirrored left to right" if turn[0, 0] < 0 else "mirrored upside down"
