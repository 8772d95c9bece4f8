"""Smooth fields with edges, such as photographs, behind a rotation.

Their third moment is mostly noise, and the order of their variances is not that of their waves, so
neither components nor the covariance's eigenbasis leads to them. Two things do:

*Where contrast is.* Edges lie on one side of the window or the other. The fourth cumulant of
whitened rows of unit length, as an operator on matrices, has eigenmatrices of large eigenvalue, and
among the largest are the **position operators**: multiplication by a coordinate, up to a function
of frequency, which scaling removes. No component has to be found, and no sign resolved.

*Least variation.* The mean of |y_n - y_m| over neighbours has its least value over rotations at the
field itself (8 x 8 photographs: detail 0.998 started there). From random rotations, or from the
eigenbasis, it ends elsewhere (0.4 to 0.6); from the position operators it ends there.

Both are done on a coarse grid with as many of the strongest modes as it has points, where every
draw ends at the field; finer grids start from there.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.core.linalg import cayley, polar
from symlift.solvers.fast.descend import Criterion, Gap, descend
from symlift.solvers.fast.eigenbasis import levels
from symlift.solvers.fast.settings import DEFAULT, FastSettings
from symlift.statistics.moments import stationarity

__all__ = [
    "EdgesFrame",
    "ModesOnGrid",
    "edges_frame",
    "energy_matrices",
    "equal_rows",
    "finer_frame",
    "least_variation",
    "neighbour_differences",
    "principal_modes",
    "variation",
]

_ROWS = 2048


@dataclass(frozen=True, eq=False)
class EdgesFrame:
    """A frame (points, columns), and what held-out rows say of it.

    ``reproduced`` is the part of the position operators' cumulant that held-out rows show again,
    ``roughness`` their variation over that of copies in which modes have random signs.
    """

    W: NDArray[np.float64]
    reproduced: float
    roughness: float


def neighbour_differences(grid: Grid) -> NDArray[np.float32]:
    """Differences of neighbours along every axis, as a matrix (pairs, points)."""
    index = np.arange(grid.size).reshape(grid.shape)
    parts = []
    for axis, wraps in enumerate(grid.periodic):
        upper = np.roll(index, -1, axis)
        both = np.stack([index, upper]).swapaxes(1, axis + 1)
        parts.append(both[:, : None if wraps else -1].reshape(2, -1))
    low, high = np.concatenate(parts, axis=1)
    D = np.zeros((len(low), grid.size), dtype=np.float32)
    D[np.arange(len(low)), low] = -1
    D[np.arange(len(low)), high] = 1
    return D


def variation(
    R: NDArray, Z: NDArray, D: NDArray, softness: float
) -> tuple[float, NDArray[np.float64]]:
    """Mean of sqrt(e² + softness²) over differences e of neighbours in R z, and its gradient in
    R.
    """
    E = Z @ (D @ R.astype(Z.dtype)).T
    size = np.sqrt(E**2 + np.asarray(softness**2, dtype=Z.dtype))
    return float(size.mean()), D.T @ ((E / size).T @ Z).astype(np.float64) / E.size


def principal_modes(X: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Variances of the modes of centred rows X, the strongest first, and the modes as rows."""
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    return values[::-1].copy(), vectors[:, ::-1].T


def unit_rows(Z: NDArray, values: NDArray) -> NDArray[np.float32]:
    """Whitened rows of equal length, whitened once more: what is left of them without contrast."""
    white = Z / np.sqrt(np.maximum(values, 1e-9 * values[0]))
    white /= np.maximum(np.linalg.norm(white, axis=1, keepdims=True), 1e-300)
    variances, vectors = np.linalg.eigh(white.T @ white / len(white))
    again = (vectors / np.sqrt(np.maximum(variances, 1e-9 * variances[-1]))) @ vectors.T
    return (white @ again).astype(np.float32)


def cumulant_of(Z: NDArray, M: NDArray) -> NDArray[np.float32]:
    """The fourth cumulant of white rows Z applied to symmetric matrices M (k, m, m)."""
    k, m, _ = M.shape
    stacked = np.ascontiguousarray(M.transpose(1, 0, 2)).reshape(m, k * m)
    out = np.zeros((k * m, m), dtype=np.float32)
    traces = np.trace(M, axis1=1, axis2=2)
    for start in range(0, len(Z), _ROWS):
        z = Z[start : start + _ROWS]
        energy = np.einsum("nkm,nm->nk", (z @ stacked).reshape(-1, k, m), z) - traces
        out += (energy[:, :, None] * z[:, None]).reshape(len(z), k * m).T @ z
    return out.reshape(k, m, m) / len(Z) - 2 * M


def energy_matrices(
    Z: NDArray, count: int, rng: np.random.Generator, rounds: int = 12
) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
    """Eigenvalues (largest first) and eigenmatrices of the fourth cumulant of white rows, by
    iteration of a subspace twice as large.
    """
    m = Z.shape[1]
    some = Z[: max(len(Z) // 4, 8 * m)]
    M = rng.normal(size=(2 * count, m, m)).astype(np.float32)
    M += M.transpose(0, 2, 1)
    for turn in range(rounds):
        # the first rounds only turn the subspace: a part of the rows is enough
        M = cumulant_of(some if turn < rounds - 3 else Z, M)
        Q = np.linalg.qr(M.reshape(len(M), -1).T)[0]
        M = np.ascontiguousarray(Q.T).reshape(M.shape)
    T = M.reshape(len(M), -1) @ cumulant_of(Z, M).reshape(len(M), -1).T
    values, vectors = np.linalg.eigh((T + T.T) / 2)
    order = np.argsort(-values, kind="stable")[:count]
    return values[order].astype(np.float64), np.einsum("ab,aij->bij", vectors[:, order], M)


def equal_rows(M: NDArray, rounds: int = 50) -> NDArray[np.float64]:
    """D M D of norm 1 with a positive diagonal D for which all rows have the same norm.

    In the eigenbasis of the covariance, an operator f(frequency) x f(frequency) has rows of unequal
    norm; multiplication by x alone has rows of about the same.
    """
    A = np.asarray(M, dtype=np.float64)
    scale = np.ones(len(A))
    for _ in range(rounds):
        size = np.linalg.norm(A * scale * scale[:, None], axis=1)
        scale *= np.sqrt(size.mean() / np.maximum(size, 1e-9 * size.max()))
    A = A * scale * scale[:, None]
    return A / np.linalg.norm(A)


def _by_positions(
    operators: NDArray, places: NDArray, smooth: tuple[NDArray, NDArray] | None = None
) -> Gap:
    """R ↦ -Σ_axis ⟨diag(place), R X̂ Rᵀ⟩ + ⟨Laplacian, R Λ Rᵀ⟩ and its gradient: each point where
    the operators say, and neighbours alike.
    """

    def function(R: NDArray) -> tuple[float, NDArray]:
        value, gradient = 0.0, np.zeros_like(R)
        for operator, place in zip(operators, places.T, strict=True):
            push = place[:, None] * (R @ operator)
            value -= float(np.vdot(push, R))
            gradient -= 2 * push
        if smooth is not None:
            laplacian, spectrum = smooth
            pull = laplacian @ (R * spectrum)
            value += float(np.vdot(pull, R))
            gradient += 2 * pull
        return value, gradient

    return function


def least_variation(
    R: NDArray,
    Z: NDArray,
    D: NDArray,
    softness: float,
    rng: np.random.Generator,
    steps: int,
    rates: tuple[float, float],
    batch: int = 1000,
) -> NDArray[np.float64]:
    """Rotate modes so that neighbours differ least, by Adam on small batches of rows.

    A step is R ← R cayley(-Ω) with Ω skew in the coordinates of modes, each of its entries scaled
    by its own size (Adam): weak modes move as far as strong ones. L-BFGS on all rows stands still
    with the weak ones mixed (8 x 8 photographs: detail 0.85 after 500 steps; this: 0.99).
    """
    mean = np.zeros((R.shape[1],) * 2)
    square = np.zeros_like(mean)
    for step in range(1, steps + 1):
        rate = rates[0] * (rates[1] / rates[0]) ** (step / steps)
        _, G = variation(R, Z[rng.integers(len(Z), size=batch)], D, softness)
        A = R.T @ G
        A -= A.T
        mean += 0.1 * (A - mean)
        square += 0.01 * (A**2 - square)
        size = np.sqrt(square / (1 - 0.99**step)) + 1e-12
        R = R @ cayley(-rate * (mean / (1 - 0.9**step)) / size)
    return polar(R)


def finer_frame(
    R: NDArray, coarse: Grid, fine: Grid, rng: np.random.Generator
) -> NDArray[np.float64]:
    """A frame on the fine grid: the coarse one's waves, drawn on more points, and new modes as
    waves of higher frequency with random signs.
    """
    waves: NDArray = np.ones((1, 1))
    known: NDArray = np.ones((1, 1))
    frequency, new = np.zeros(1), np.zeros(1, dtype=bool)
    for c, f in zip(coarse.shape, fine.shape, strict=True):
        cosines = dct(np.eye(f), axis=0, norm="ortho")
        known = np.kron(known, cosines[:c].T @ dct(np.eye(c), axis=0, norm="ortho"))
        waves = np.kron(waves, cosines)
        frequency = np.add.outer(frequency, (np.arange(f) / f) ** 2).ravel()
        new = np.logical_or.outer(new, np.arange(f) >= c).ravel()
    order = np.flatnonzero(new)[np.argsort(frequency[new], kind="stable")]
    signs = rng.choice([-1.0, 1.0], len(order))
    return np.concatenate([known @ R, waves[order].T * signs], axis=1)


def edges_frame(
    X: NDArray,
    held: NDArray,
    grid: Grid,
    rng: np.random.Generator,
    settings: FastSettings = DEFAULT,
) -> EdgesFrame | None:
    """The frame of least variation from the position operators of rows X (n, d), on a grid of two
    open axes; None where held-out rows do not show the operators again.
    """
    values, basis = principal_modes(X)
    Z, unseen = ((part @ basis.T).astype(np.float32) for part in (X, held))
    windows = [
        ModesOnGrid(small, Z, values, settings) for small in levels(grid, settings.edge_points)
    ]
    first, last = windows[0], windows[-1]
    operators, reproduced = first.position_operators(unseen, rng)
    if len(operators) < grid.ndim:
        return None
    lags = LagClasses(grid)
    best, R = np.inf, np.eye(len(values))
    for frame in first.drawn(operators, rng)[: settings.edge_followed]:
        for before, window in itertools.pairwise(windows):
            frame = window.smoothed(finer_frame(frame, before.grid, window.grid, rng), rng)
        for candidate in (frame, last.mean_turned(frame, rng)):
            left = float(stationarity(Z @ candidate.T, lags).mean())
            if left < best:
                best, R = left, candidate
        if best < settings.edge_stationary:
            break
    return EdgesFrame(R @ basis, reproduced, last.roughness(R, unseen, rng))


def _turned(R: NDArray, mode: int) -> NDArray:
    """The frame with the sign of one mode changed."""
    return R * np.where(np.arange(R.shape[1]) == mode, -1.0, 1.0)


class ModesOnGrid:
    """The strongest modes of the rows, as many as a grid has points, and frames of them on it."""

    def __init__(self, grid: Grid, Z: NDArray, values: NDArray, settings: FastSettings) -> None:
        self.grid, self.settings = grid, settings
        self.Z = np.ascontiguousarray(Z[:, : grid.size])
        self.some = self.Z[: settings.edge_rows]
        self.values = values[: grid.size]
        self.D = neighbour_differences(grid)

    def position_operators(
        self, unseen: NDArray, rng: np.random.Generator
    ) -> tuple[NDArray[np.float64], float]:
        """Eigenmatrices that held-out rows show again, and the least part of them that is shown."""
        m, settings = self.grid.size, self.settings
        white, white_unseen = (unit_rows(part[:, :m], self.values) for part in (self.Z, unseen))
        strength, matrices = energy_matrices(white[: settings.energy_rows], settings.energies, rng)
        again = np.sum(matrices * cumulant_of(white_unseen, matrices), axis=(1, 2)) / strength
        real = again > settings.reproduced
        operators = np.array([equal_rows(M) for M in matrices[real]])
        return operators, float(np.min(again[real], initial=1.0))

    def drawn(self, operators: NDArray, rng: np.random.Generator) -> list[NDArray[np.float64]]:
        """Frames of several draws, those of least variation first."""
        frames = []
        for _ in range(self.settings.edge_draws):
            R = self.smoothed(self.placed(operators, rng), rng)
            frames.append(self.smoothed(self.other_signs(R, rng), rng))
        softness = self.softness(frames[0])
        return sorted(frames, key=lambda R: variation(R, self.some, self.D, softness)[0])

    def placed(self, operators: NDArray, rng: np.random.Generator) -> NDArray[np.float64]:
        """The smoothest of the frames that tuples of operators place.

        Operators of one coordinate at two bands of frequency, or of no coordinate at all, do not
        place points on a grid; those that do best by their own value are looked at, and the
        variation after a few steps decides.
        """
        grid, settings, m = self.grid, self.settings, self.grid.size
        places = grid.indices() - (np.array(grid.shape) - 1) / 2
        places = places / np.linalg.norm(places, axis=0)
        # half whitened, so that not only the strongest modes become smooth
        spectrum = np.sqrt(np.maximum(self.values, 1e-9 * self.values[0]))
        laplacian = settings.smoothness * (self.D.T @ self.D).astype(np.float64)
        smooth = laplacian, spectrum / np.linalg.norm(spectrum)
        starts = []
        for which in itertools.combinations(range(len(operators)), grid.ndim):
            chosen = operators[list(which)]
            start = polar(rng.normal(size=(m, m)))
            placed = Criterion(_by_positions(chosen, places))
            starts.append((descend(start, [placed], 60, 1e-3), placed, chosen))
        starts.sort(key=lambda start: start[0].value)
        frames = []
        for end, placed, chosen in starts[: settings.edge_candidates]:
            R = descend(end.W, [placed], 100).W
            R = R * np.where(R[:, :1] < 0, -1.0, 1.0)
            smoother = Criterion(_by_positions(chosen, places, smooth))
            frames.append(descend(R, [smoother], 100).W)
        # one softness for all, so that their variations compare
        softness = self.softness(frames[0])
        tried = [self._trial(R, softness, rng, (1, 1 / 4)) for R in frames]
        return min(tried, key=lambda R: variation(R, self.some, self.D, softness)[0])

    def smoothed(self, R: NDArray, rng: np.random.Generator) -> NDArray[np.float64]:
        """The frame of least variation from R."""
        steps, softness = self.settings.variation_steps * len(R), self.softness(R)
        return least_variation(R, self.Z, self.D, softness, rng, steps, self._rates(1, 1 / 20))

    def other_signs(self, R: NDArray, rng: np.random.Generator) -> NDArray[np.float64]:
        """Change the sign of the strong mode for which that leads to the least variation, and
        again.

        Steps do not turn a mode over: 8 x 8 photographs ended at a detail of 0.80 with the seventh
        the wrong way round, and at 0.92 a few steps after turning it.
        """
        softness = self.softness(R)
        best = variation(R, self.some, self.D, softness)[0]
        for _ in range(self.settings.edge_rounds):
            others = [
                self._trial(_turned(R, k), softness, rng, (1, 1 / 10))
                for k in range(1, min(self.settings.edge_signs + 1, len(R)))
            ]
            values = [variation(other, self.some, self.D, softness)[0] for other in others]
            if min(values) >= best:
                break
            R, best = others[int(np.argmin(values))], min(values)
        return R

    def mean_turned(self, R: NDArray, rng: np.random.Generator) -> NDArray[np.float64]:
        """The frame of least variation with the mean the other way round.

        The strongest mode is flat, and neighbours differ as little with its sign changed: that has
        to be decided by whether the field is stationary.
        """
        steps, softness = self.settings.edge_trial_steps, self.softness(R)
        rates = self._rates(1 / 5, 1 / 20)
        return least_variation(_turned(R, 0), self.Z, self.D, softness, rng, steps, rates)

    def roughness(self, R: NDArray, unseen: NDArray, rng: np.random.Generator) -> float:
        """Variation of held-out rows over that of copies in which modes have random signs."""
        some, softness = unseen[: self.settings.edge_rows], self.softness(R)
        copies = [R * rng.choice([-1.0, 1.0], R.shape[1]) for _ in range(5)]
        value, *others = (variation(Q, some, self.D, softness)[0] for Q in (R, *copies))
        return value / float(np.mean(others))

    def softness(self, R: NDArray) -> float:
        """A third of the median difference of neighbours: below it, differences count by their
        squares.
        """
        sizes = np.abs(self.Z[:2000] @ (self.D @ R).T.astype(self.Z.dtype))
        # rows of few values have neighbours that are mostly equal
        return max(0.3 * float(np.median(sizes)), 0.01 * float(sizes.mean()))

    def _trial(
        self, R: NDArray, softness: float, rng: np.random.Generator, parts: tuple[float, float]
    ) -> NDArray[np.float64]:
        steps = self.settings.edge_trial_steps
        return least_variation(R, self.some, self.D, softness, rng, steps, self._rates(*parts))

    def _rates(self, first: float, last: float) -> tuple[float, float]:
        rate = self.settings.variation_rate / self.grid.size
        return rate * first, rate * last
