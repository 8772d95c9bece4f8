"""The end of a training run behind a linear map, on all rows at once, where the field has two
values: spins.

No isometry is looked for there, and fields that are symmetric in sign have no third moment. But the
*resolution* term is sharp: of all projections of unit variance, those with two values have the
least fourth moment, 1, so that each spin is a minimum of it over the sphere of whitened rows, and a
fixed point takes a few steps to it. *Infomax* asks for as many different ones as there are points.
*Stationarity* is what orders them: of all orders, the one whose covariance depends on displacements
alone, by moves of segments. Signs and the first order are those of the field that critics have
trained.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.solvers.neural.full_batch import Closing

__all__ = ["TwoValued", "least_fourth_moment", "move_segments"]

#: rows of the search, its steps, the largest fourth moment of a source, the largest correlation of
#: two different ones, and how often starts are drawn
_ROWS, _STEPS, _FOURTH, _ALIKE, _DRAWS = 20_000, 60, 1.05, 0.97, 30


class TwoValued:
    """The closed-form terms of rows ``X`` (n, d) on a line or ring of d points, for fields of two
    values behind a linear map.
    """

    def __init__(self, X: NDArray, grid: Grid) -> None:
        Z = np.asarray(X, dtype=np.float64)
        Z = Z - Z.mean(axis=0)
        values, vectors = np.linalg.eigh(Z.T @ Z / len(Z))
        self.deviation = np.sqrt(np.maximum(values, 1e-12 * values[-1]))
        self.whitening = vectors / self.deviation
        self.colouring = (vectors * self.deviation).T
        self.rows = Z @ self.whitening
        self.lags = LagClasses(grid)
        self.rng = np.random.default_rng(0)

    @staticmethod
    def suits(grid: Grid, columns: int) -> bool:
        """Whether sources can be put in order: one axis, and as many columns as points."""
        return grid.ndim == 1 and columns == grid.size

    @cached_property
    def sources(self) -> NDArray[np.float64]:
        """Projections (count, d) of whitened rows that have two values, as many as are different,
        at most d.

        Starts are random maps of the observations as they are: in whitened coordinates, most
        directions are differences of neighbours, from which no step leads to a spin.
        """
        rows, d = self.rows[:_ROWS], self.rows.shape[1]
        sources = np.zeros((0, d))
        for _ in range(_DRAWS):
            V = least_fourth_moment(self.rng.normal(size=(d, d)) * self.deviation, rows)
            for v, fourth in zip(V, ((rows @ V.T) ** 4).mean(axis=0), strict=True):
                if fourth < _FOURTH and np.abs(sources @ v).max(initial=0.0) < _ALIKE:
                    sources = np.concatenate([sources, v[None]])
            if len(sources) in (0, d):
                break
        return least_fourth_moment(sources[:d], self.rows) if len(sources) else sources

    @property
    def applies(self) -> bool:
        """Whether all sources were reached: no other field is closed here."""
        return len(self.sources) == self.rows.shape[1]

    def close(self, W: NDArray) -> Closing:
        """The sources in the order that is most stationary, from that of the map ``W``."""
        sources, count = self.sources, len(self.rows)
        along = self._unit(W @ self.colouring.T) @ sources.T  # (points, sources)
        sources = sources * np.where(along.sum(axis=0) < 0, -1.0, 1.0)[:, None]
        order = linear_sum_assignment(np.abs(along), maximize=True)[1]
        order = move_segments(sources @ sources.T, order, self.lags)
        sources = sources[order]
        halves = [np.cov((self.rows[k::2] @ sources.T).T, bias=True) for k in (0, 1)]
        C, stationary = halves[0] + halves[1], self.lags.project(halves[0] + halves[1])
        noise = float(np.linalg.norm(halves[0] - halves[1])) ** 2
        gap = float(np.linalg.norm(C - stationary) ** 2 / max(noise, 1e-12 * count))
        return Closing(sources @ self.whitening.T, gap)

    @staticmethod
    def _unit(V: NDArray) -> NDArray[np.float64]:
        return np.asarray(V / np.maximum(np.linalg.norm(V, axis=1, keepdims=True), 1e-300))


def least_fourth_moment(V: NDArray, rows: NDArray) -> NDArray[np.float64]:
    """Directions from the rows of ``V`` (k, d) on, each for itself, to a least fourth moment of
    whitened ``rows`` (n, d): the fixed point v ← 3v - E[(v·z)³ z], of unit length.
    """
    V = TwoValued._unit(V)
    for _ in range(_STEPS):
        new = TwoValued._unit(3 * V - ((rows @ V.T) ** 3).T @ rows / len(rows))
        turned = np.abs(np.sum(new * V, axis=1)).min()
        V = new
        if turned > 1 - 1e-9:
            break
    return V


def move_segments(C: NDArray, order: NDArray[np.int64], lags: LagClasses) -> NDArray[np.int64]:
    """The order of the rows and columns of ``C`` in which most of it depends on displacements
    alone, from ``order`` on: a segment moves elsewhere, as it is or turned round, until no move
    gains. Orders that are nearly right arrive, random ones rarely.

    >>> distance = np.abs(np.arange(6)[:, None] - np.arange(6))
    >>> move_segments(0.8**distance, np.array([0, 2, 1, 3, 5, 4]), LagClasses(Grid((6,)))).tolist()
    [0, 1, 2, 3, 4, 5]
    """
    index, count = lags.index.ravel(), np.bincount(lags.index.ravel())

    def stationary(order: NDArray) -> float:
        sums = np.bincount(index, C[np.ix_(order, order)].ravel())
        return float(np.sum(sums**2 / count))

    best, moved = stationary(order), True
    while moved:
        moved = False
        for new in _moves(order):
            value = stationary(new)
            if value > best * (1 + 1e-9):
                best, order, moved = value, new, True
                break
    return order


def _moves(order: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Every order with one segment elsewhere, short segments first."""
    size = len(order)
    for length in range(1, size // 2 + 1):
        for first in range(size - length + 1):
            segment = order[first : first + length]
            rest = np.concatenate([order[:first], order[first + length :]])
            for place in range(len(rest) + 1):
                yield np.concatenate([rest[:place], segment, rest[place:]])
                if length > 1:
                    yield np.concatenate([rest[:place], segment[::-1], rest[place:]])
