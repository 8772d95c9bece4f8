"""Assign columns to given points in any arrangement, not only a grid.

A pairwise statistic of two columns is modelled as a function of the distance between their points,
and columns are assigned so that this explains most. Points may stay empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from symlift.search.moves.descent import refine
from symlift.search.settings import PlaceSettings
from symlift.solvers.starts.graph import (
    classical_scaling,
    neighbour_graph,
    paths_through,
    stress_majorisation,
)
from symlift.solvers.starts.scattered import best_partners, monotone_scaling
from symlift.statistics.correlations import partial_correlations, partial_statistics

__all__ = ["PointSlots", "in_steps", "place_on_points", "point_slots"]

# rotations with which coordinates are aligned to the points, and rounds of assignment and alignment
_TURNS, _ROUNDS = 12, 6
# distances that differ by less than this, in steps, are in the same class
_SAME = 0.05


@dataclass(frozen=True)
class PointSlots:
    """Points (M, P), in steps, as slots; ``index`` (M, M): distance class of each pair."""

    points: NDArray[np.float64]
    index: NDArray[np.int32]
    distance: NDArray[np.float64]

    @property
    def size(self) -> int:
        return len(self.points)

    @property
    def classes(self) -> int:
        return len(self.distance)

    @cached_property
    def _apart(self) -> NDArray[np.float64]:
        return np.abs(self.distance[:, None] - self.distance[None])

    def smooth(self, values: NDArray, width: float) -> NDArray[np.float64]:
        """Functions of distance (classes,), smoothed by a Gaussian of ``width`` steps."""
        if width <= 0:
            return values
        return np.asarray(np.exp(-0.5 * (self._apart / width) ** 2) @ values)


def in_steps(positions: NDArray) -> tuple[NDArray[np.float64], float]:
    """Positions (M, D) in the P directions that they extend in, (M, P), in steps; and the step.

    A step is the median distance to the nearest point.
    """
    centred = np.asarray(positions, dtype=np.float64) - np.mean(positions, axis=0)
    _, size, axes = np.linalg.svd(centred, full_matrices=False)
    extends = size > 1e-6 * max(size[0], 1e-12)
    # the given axes, the longest first, where they do: those of a staggered probe are turned by a
    # little
    longest = np.argsort(-np.sum(centred**2, axis=0), kind="stable")
    flat = centred[:, longest] if extends.all() else centred @ axes[extends].T
    apart = distances(flat)
    np.fill_diagonal(apart, np.inf)
    unit = float(np.median(apart.min(axis=1)))
    return flat / unit, unit


def distances(points: NDArray) -> NDArray[np.float64]:
    """Distances (M, M) between points (M, P)."""
    return np.asarray(np.sqrt(np.sum((points[:, None] - points[None]) ** 2, axis=-1)))


def point_slots(points: NDArray) -> PointSlots:
    """Slots at ``points`` (M, P), given in steps."""
    apart = distances(points)
    level, index = np.unique(np.rint(apart / _SAME), return_inverse=True)
    return PointSlots(points, index.reshape(apart.shape).astype(np.int32), level * _SAME)


def place_on_points(
    c: NDArray, slots: PointSlots, settings: PlaceSettings | None = None
) -> list[tuple[float, NDArray[np.int64]]]:
    """Assignments of columns with correlations c (d, d) to the points, the best first.

    Each is (misfit, slot of each column).
    """
    settings = settings or PlaceSettings()
    S = partial_statistics(c, settings.ridges)
    refined: list[tuple[float, NDArray[np.int64]]] = []
    for y in _coordinates(c, slots.points.shape[1], settings):
        for slot in _laid_over(y, slots.points):
            refined.append(refine(S, slot, slots, settings.widths, settings.prior_pairs))
    return sorted(refined, key=lambda pair: round(pair[0], 9))


def _coordinates(
    c: NDArray, dimension: int, settings: PlaceSettings
) -> Iterator[NDArray[np.float64]]:
    """Coordinates (d, P) by monotone scaling of correlations, and by paths in a neighbour graph."""
    near = min(4 * dimension + 4, len(c) - 1)
    for least in (0.15, 0.05):
        edges = best_partners(c, near)
        length = np.sqrt(-np.log(np.clip(c, 1e-6, 1 - 1e-9)))
        y = monotone_scaling(c, (edges | edges.T) & (c > least), length, dimension)
        if y is not None:
            yield y
            break
    p = partial_correlations(c, settings.start_ridge)
    paths = paths_through(neighbour_graph(p, 2 * dimension, settings.edge, squares=False))
    values, vectors = classical_scaling(paths, dimension)
    yield stress_majorisation(np.maximum(paths, 1e-3), vectors * np.sqrt(np.maximum(values, 1e-9)))


def _laid_over(y: NDArray, points: NDArray) -> Iterator[NDArray[np.int64]]:
    """Distinct slots of columns at coordinates y (d, P), aligned to the points in several ways."""
    P = points.shape[1]
    centred = y - y.mean(axis=0)
    middle = points.mean(axis=0)
    seen: set[bytes] = set()
    long = np.linalg.svd(points - middle, full_matrices=False)[1]
    # principal axes: if the points extend much farther in one direction, so do the coordinates
    _, size, axes = np.linalg.svd(centred, full_matrices=False)
    turned = centred @ axes.T
    scale = float(
        np.sqrt(np.sum(long**2) / len(points)) / max(np.sqrt(np.sum(size**2) / len(y)), 1e-12)
    )
    for turn in _turns(P, long):
        slot = _nearest(turned @ turn * scale + middle, points)
        for _ in range(_ROUNDS):
            A = np.c_[turned, np.ones(len(turned))]
            laid = A @ np.linalg.lstsq(A, points[slot], rcond=None)[0]
            new = _nearest(laid, points)
            if np.array_equal(new, slot):
                break
            slot = new
        if slot.tobytes() not in seen:
            seen.add(slot.tobytes())
            yield slot


def _turns(dimension: int, long: NDArray) -> Iterator[NDArray[np.float64]]:
    """Rotations and reflections that are tried."""
    if dimension == 1:
        yield np.eye(1)
    elif dimension == 2:
        round_about = long[1] > 0.6 * long[0]
        for angle in np.arange(_TURNS) * (2 * np.pi / _TURNS) if round_about else (0.0, np.pi):
            turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
            yield turn
            yield np.diag([1.0, -1.0]) @ turn
    else:
        for signs in np.ndindex(*(2,) * dimension):
            yield np.diag(1.0 - 2.0 * np.array(signs))


def _nearest(y: NDArray, points: NDArray) -> NDArray[np.int64]:
    cost = np.sum((y[:, None] - points[None]) ** 2, axis=-1)
    return np.asarray(linear_sum_assignment(cost)[1], dtype=np.int64)
