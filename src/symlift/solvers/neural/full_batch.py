"""The end of a training run on all rows at once: the paper's three terms in closed form, by L-BFGS
over isometries.

*Infomax*, among maps of one scale, is largest for an isometry: here it is the set that is searched,
and no longer a term. *Stationarity* is the distance of the whole second and third moment from
those of a stationary field, with every pair of lags. *Resolution* is the entropy of the marginal
that all points of a stationary field share. Moments are taken once; a step then takes
milliseconds and has no noise of batches or critics in it.

The basin is wide: five harmonics of thirty that critics have put in place are enough. Modes count
by their variance at first; on the path through partial whitenings C^(-a/2), which commute with an
isometry, the weak ones gain weight.

Of more columns than points, the strongest modes are taken, as many as there are points. Where such
columns are two-valued, as bits are, each then goes to one point
(`symlift.solvers.neural.bit_columns`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.core.linalg import polar
from symlift.solvers.fast.bits import two_valued
from symlift.solvers.fast.descend import descend
from symlift.solvers.fast.mode_moments import ModeMoments, mode_moments
from symlift.solvers.neural.bit_columns import local_map
from symlift.solvers.neural.data import centred, strongest_modes

__all__ = ["TRUNCATED", "Closing", "FullBatch", "most_local"]

#: partial whitenings, in their order
_PATH = (0.0, 0.5)
#: the most L-BFGS steps at each, and the relative gain of ten steps that ends them
_STEPS, _GAIN = 1000, 1e-5
#: weight of the entropy in units of what sampling adds to the gap, and the most steps: in a window,
#: and on a ring, where stationarity leaves phases open and the entropy alone decides
_SHARP_WINDOW, _SHARP_RING = (3.0, 80), (20.0, 300)
_SHARP_ROWS = 8_000
#: the largest gap of a converged map; two gaps that differ by a smaller share than this are the
#: same
_ARRIVED, _SAME = 1.5, 0.05
#: the same for bits, a few of which may be at another point each time
_SAME_BITS = 1.0
#: the largest gap where modes are left out, since the rest is only nearly stationary, and the most
#: bits of one point: where there are more, the grid is a coarse one
TRUNCATED, _MOST_BITS = 5.0, 16
#: the largest number of points whose third moments are kept, and the largest share of sampling
#: noise in them
_POINTS, _NOISE = 128, 0.5


@dataclass(frozen=True, eq=False)
class Closing:
    """A lifting map (points, columns), and its gap in units of what sampling adds to that of the
    truth: about 1 or less where it has arrived. It is an isometry, except for bits, spins and few
    harmonics.
    """

    W: NDArray[np.float64]
    gap: float
    #: the largest gap of a map that has arrived, and the share by which two of them may differ
    limit: float = _ARRIVED
    same: float = _SAME
    #: the row (columns,) that is lifted to zero; 0 is the mean that training has
    centre: NDArray[np.float64] | float = 0.0

    def agrees(self, before: float | None) -> bool:
        """Whether it has converged, to the same gap as the best of those ``before`` it."""
        if before is None or max(self.gap, before) > self.limit:
            return False
        return abs(self.gap - before) <= self.same * before

    @property
    def arrived(self) -> bool:
        """Whether the gap is what sampling leaves of the truth's."""
        return self.gap <= self.limit


class FullBatch:
    """The closed-form terms of rows ``X`` (n, d) of about unit deviation on a grid of d points, or
    of fewer.
    """

    def __init__(self, X: NDArray, grid: Grid) -> None:
        Z, _ = centred(X)
        self.strongest: NDArray | None = None
        self.bits: NDArray | None = None
        if Z.shape[1] > grid.size:
            few = Z.shape[1] <= _MOST_BITS * grid.size
            self.bits = Z if few and two_valued(Z) else None
            self.strongest = strongest_modes(Z.T @ Z, grid.size)
            Z = np.asarray(Z @ self.strongest.T, dtype=np.float64)
            Z = Z / Z.std()
        self.rows = Z[:_SHARP_ROWS]
        self.lags = LagClasses(grid)
        self.modes: ModeMoments = mode_moments(Z)

    @staticmethod
    def suits(grid: Grid, columns: int) -> bool:
        """Whether isometries can be searched: no fewer columns than points, and not too many
        points.
        """
        return grid.size <= min(columns, _POINTS)

    @property
    def applies(self) -> bool:
        """Whether there is a third moment: fields that are symmetric in sign have none."""
        return self.modes.noise_share(0.0) < _NOISE

    def close(self, W: NDArray) -> Closing:
        """Stationarity along the path of whitenings from the isometry nearest to ``W``, then
        resolution as well.
        """
        closing = self.close_modes(W)
        if self.bits is None:
            return closing
        W = local_map(closing.W, self.bits, self.lags.grid)
        return Closing(W, self._gap_of(self.bits @ W.T), same=_SAME_BITS)

    def close_modes(self, W: NDArray) -> Closing:
        """The same, before bits go to one point each: an isometry of the strongest modes."""
        if self.strongest is None:
            return self._close(polar(W))
        closing = self._close(polar(W @ self.strongest.T))
        return Closing(closing.W @ self.strongest, closing.gap, TRUNCATED)

    def _gap_of(self, Y: NDArray) -> float:
        """The gap of a field as it stands, over its sampling noise."""
        modes = mode_moments(Y - Y.mean(axis=0))
        return modes.criterion(_PATH[0], self.lags).ratio(modes.basis.T)

    def _close(self, W: NDArray) -> Closing:
        basis = self.modes.basis
        # what is on record was measured without the gap's curvatures
        path = [replace(self.modes.criterion(a, self.lags), planes=None) for a in _PATH]
        frame = descend(W @ basis.T, path, _STEPS, _GAIN).W
        ring = self.lags.grid.is_ring
        strength, steps = _SHARP_RING if ring else _SHARP_WINDOW
        last = path[-1].in_data(basis)
        W = descend(frame @ basis, [last.sharp(self.rows, strength)], steps).W
        left = last.ratio(W)
        return Closing(most_local(W, self.rows) if ring else W, left)


def most_local(W: NDArray, Z: NDArray) -> NDArray[np.float64]:
    """W with the points of its ring taken in steps of k, for the k, coprime to the number of
    points, for which dependence is shortest. None of the three terms determines this order: a field
    is as stationary under steps of k. Starts near zero prefer slow harmonics, and so the right
    order; here it is chosen by the correlation of squares, summed over distances.
    """
    size = len(W)
    power = (Z @ W.T) ** 2
    C = np.corrcoef(power.T)
    lag = np.array([np.mean(C[np.arange(size), (np.arange(size) + k) % size]) for k in range(size)])
    distance = np.minimum(np.arange(size), size - np.arange(size))
    steps = [k for k in range(1, size // 2 + 1) if math.gcd(k, size) == 1]
    costs = [float(distance @ np.abs(lag[k * np.arange(size) % size])) for k in steps]
    return W[steps[int(np.argmin(costs))] * np.arange(size) % size]
