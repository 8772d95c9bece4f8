"""The end of a training run behind a linear map, on all rows at once, where the field has two
values: spins.

No isometry is looked for there, and fields that are symmetric in sign have no third moment. But the
*resolution* term is sharp: of all projections of unit variance, those with two values have the
least fourth moment, 1, so that each spin is a minimum of it over the sphere of whitened rows, and a
fixed point takes a few steps to it. *Infomax* asks for as many different ones as there are points.
*Stationarity* is what orders them: spins that are near are more alike than those that are far, so
that the slowest mode of the graph of their correlations runs from one end of the line to the other;
of the orders near that one, the covariance of the right one depends on displacements alone. Signs
are those that make neighbours alike. What critics have trained decides between mirror images only.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.solvers.neural.full_batch import Closing

__all__ = ["TwoValued", "in_line", "least_fourth_moment", "move_segments"]

#: rows of the search, its steps, the largest fourth moment of a source, the largest correlation of
#: two different ones
_ROWS, _STEPS, _FOURTH, _ALIKE = 20_000, 60, 1.05, 0.97
#: how often starts are drawn, how often at random, and how far from a source those next to it are
_DRAWS, _RANDOM, _APART = 30, 2, 0.6
#: the largest gap of an order that has arrived: a few modes have most of the variance of spins, so
#: that the noise of two halves varies; wrong orders are beyond 500
_ARRIVED = 10.0


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

        The first starts are random maps of the observations as they are: in whitened coordinates,
        most directions are differences of neighbours, from which no step leads to a spin. What they
        miss is next to what they reach (`_next_to`).
        """
        rows, d = self.rows[:_ROWS], self.rows.shape[1]
        sources = np.zeros((0, d))
        for draw in range(_DRAWS):
            if draw < _RANDOM:
                start = self.rng.normal(size=(d, d)) * self.deviation
            else:
                start = self._next_to(sources)
            V = least_fourth_moment(start, rows)
            for v, fourth in zip(V, ((rows @ V.T) ** 4).mean(axis=0), strict=True):
                if fourth < _FOURTH and np.abs(sources @ v).max(initial=0.0) < _ALIKE:
                    sources = np.concatenate([sources, v[None]])
            if len(sources) in (0, d):
                break
        return least_fourth_moment(sources[:d], self.rows) if len(sources) else sources

    def _next_to(self, sources: NDArray) -> NDArray[np.float64]:
        """Starts for those that are missing: between two that follow each other, and a step from
        each one towards what no source spans, as beyond the ends of a line.
        """
        order, signs = in_line(sources @ sources.T, self.lags.grid)
        line = (sources * signs[:, None])[order]
        rest = np.linalg.svd(sources)[2][len(sources) :]
        apart = self._unit(self.rng.normal(size=(len(line), len(rest))) @ rest)
        return np.concatenate([line[1:] + line[:-1], line + _APART * apart])

    @property
    def applies(self) -> bool:
        """Whether all sources were reached: no other field is closed here."""
        return len(self.sources) == self.rows.shape[1]

    def close(self, W: NDArray) -> Closing:
        """The sources in the order that is most stationary; of its mirror images, the one that is
        nearest to the map ``W``.
        """
        sources, count = self.sources, len(self.rows)
        order, signs = in_line(sources @ sources.T, self.lags.grid)
        sources = sources * signs[:, None]
        sources = sources[move_segments(sources @ sources.T, order, self.lags)]
        trained = self._unit(W @ self.colouring.T)
        images = [sign * sources[::turn] for sign in (1, -1) for turn in (1, -1)]
        sources = max(images, key=lambda image: float(np.sum(trained * image)))
        halves = [np.cov((self.rows[k::2] @ sources.T).T, bias=True) for k in (0, 1)]
        C, stationary = halves[0] + halves[1], self.lags.project(halves[0] + halves[1])
        noise = float(np.linalg.norm(halves[0] - halves[1])) ** 2
        gap = float(np.linalg.norm(C - stationary) ** 2 / max(noise, 1e-12 * count))
        return Closing(sources @ self.whitening.T, gap, _ARRIVED)

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


def in_line(C: NDArray, grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """An order of the rows of a correlation matrix ``C`` along a line or round a ring, and the sign
    of each row with which neighbours are alike: by the slowest modes of the graph whose links are
    correlations.

    >>> place, sign = np.array([3, 0, 4, 1, 2]), np.array([1, -1, 1, 1, -1])
    >>> C = 0.8 ** np.abs(place[:, None] - place) * np.outer(sign, sign)
    >>> order, signs = in_line(C, Grid((5,)))
    >>> place[order].tolist() in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0]), int(abs(signs @ sign))
    (True, 5)
    """
    link = np.abs(C)
    slow = np.linalg.eigh(np.diag(link.sum(axis=1)) - link)[1]
    round_it = grid.is_ring and len(C) > 2
    along = np.arctan2(slow[:, 2], slow[:, 1]) if round_it else slow[:, 1]
    order = np.argsort(along)
    steps = C[order[1:], order[:-1]]
    signs = np.empty(len(C))
    signs[order] = np.cumprod(np.append(1.0, np.where(steps < 0, -1.0, 1.0)))
    return order, signs


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
