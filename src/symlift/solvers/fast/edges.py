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
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.core.linalg import cayley, polar
from symlift.solvers.fast.settings import DEFAULT, FastSettings
from symlift.solvers.fast.stationary import minimise_over_rotations
from symlift.statistics.moments import stationarity

__all__ = [
    "EdgesFrame",
    "edges_frame",
    "energy_matrices",
    "equal_rows",
    "least_variation",
    "neighbour_differences",
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
) -> Callable[[NDArray], tuple[float, NDArray]]:
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
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    values, basis = values[::-1].copy(), vectors[:, ::-1].T
    Z, unseen = ((part @ basis.T).astype(np.float32) for part in (X, held))
    white, white_unseen = unit_rows(Z, values), unit_rows(unseen, values)
    strength, matrices = energy_matrices(white[: settings.energy_rows], settings.energies, rng)
    again = np.sum(matrices * cumulant_of(white_unseen, matrices), axis=(1, 2)) / strength
    real = again > settings.reproduced
    if real.sum() < grid.ndim:
        return None
    operators = np.stack([equal_rows(M) for M in matrices[real]])
    D = neighbour_differences(grid)
    lags = LagClasses(grid)
    best, R = np.inf, np.eye(len(values))
    for _ in range(settings.edge_draws):
        frame = _placed(operators, values, grid, D, Z, rng, settings)
        softness = _softness(frame, Z, D)
        for candidate in _smoothest(frame, Z, D, softness, rng, settings):
            left = float(stationarity(Z @ candidate.T, lags).mean())
            if left < best:
                best, R = left, candidate
        if best < settings.edge_stationary:
            break
    some = unseen[: settings.edge_rows]
    softness = _softness(R, Z, D)
    copies = [
        variation(R * rng.choice([-1.0, 1.0], len(values)), some, D, softness)[0] for _ in range(5)
    ]
    rough = variation(R, some, D, softness)[0] / float(np.mean(copies))
    return EdgesFrame(R @ basis, float(np.min(again[real])), rough)


def _smoothest(
    R: NDArray,
    Z: NDArray,
    D: NDArray,
    softness: float,
    rng: np.random.Generator,
    settings: FastSettings,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The frame of least variation from R, and the same with its mean the other way round.

    The strongest mode is flat, and neighbours differ as little with its sign changed: that has to
    be decided by whether the field is stationary.
    """
    rate, steps = settings.variation_rate / len(R), settings.variation_steps * len(R)
    R = least_variation(R, Z, D, softness, rng, steps, (rate, rate / 20))
    R = _other_signs(R, Z, D, softness, rng, settings)
    R = least_variation(R, Z, D, softness, rng, steps, (rate, rate / 20))
    trial = settings.edge_trial_steps
    return R, least_variation(_turned(R, 0), Z, D, softness, rng, trial, (rate / 5, rate / 20))


def _turned(R: NDArray, mode: int) -> NDArray:
    """The frame with the sign of one mode changed."""
    return R * np.where(np.arange(R.shape[1]) == mode, -1.0, 1.0)


def _other_signs(
    R: NDArray,
    Z: NDArray,
    D: NDArray,
    softness: float,
    rng: np.random.Generator,
    settings: FastSettings,
) -> NDArray[np.float64]:
    """Change the sign of the strong mode for which that leads to the least variation, and again.

    Steps do not turn a mode over: 8 x 8 photographs ended at a detail of 0.80 with the seventh the
    wrong way round, and at 0.92 a few steps after turning it.
    """
    some, rate = Z[: settings.edge_rows], settings.variation_rate / len(R)
    steps, rates = settings.edge_trial_steps, (rate, rate / 10)
    best = variation(R, some, D, softness)[0]
    for _ in range(settings.edge_rounds):
        others = [
            least_variation(_turned(R, k), some, D, softness, rng, steps, rates)
            for k in range(1, min(settings.edge_signs + 1, R.shape[1]))
        ]
        values = [variation(other, some, D, softness)[0] for other in others]
        if min(values) >= best:
            break
        R, best = others[int(np.argmin(values))], min(values)
    return R


def _softness(R: NDArray, Z: NDArray, D: NDArray) -> float:
    """A third of the median difference of neighbours: below it, differences count by their
    squares.
    """
    return 0.3 * float(np.median(np.abs(Z[:2000] @ (D @ R).T.astype(Z.dtype))))


def _placed(
    operators: NDArray,
    values: NDArray,
    grid: Grid,
    D: NDArray,
    Z: NDArray,
    rng: np.random.Generator,
    settings: FastSettings,
) -> NDArray[np.float64]:
    """The smoothest of the frames that tuples of operators place.

    Operators of one coordinate at two bands of frequency, or of no coordinate at all, do not place
    points on a grid; those that do best by their own value are looked at, and the variation after a
    few steps decides.
    """
    m = len(values)
    places = grid.indices() - (np.array(grid.shape) - 1) / 2
    places = places / np.linalg.norm(places, axis=0)
    # half whitened, so that not only the strongest modes become smooth
    spectrum = np.sqrt(np.maximum(values, 1e-9 * values[0]))
    laplacian = settings.smoothness * (D.T @ D).astype(np.float64)
    smooth = laplacian, spectrum / np.linalg.norm(spectrum)
    starts = []
    for which in itertools.combinations(range(len(operators)), grid.ndim):
        chosen = operators[list(which)]
        start = polar(rng.normal(size=(m, m)))
        R, value = minimise_over_rotations(_by_positions(chosen, places), start, 60, 1e-3)
        starts.append((value, chosen, R))
    starts.sort(key=lambda start: start[0])
    frames = []
    for _, chosen, start in starts[: settings.edge_candidates]:
        R = minimise_over_rotations(_by_positions(chosen, places), start, 100)[0]
        R = R * np.where(R[:, :1] < 0, -1.0, 1.0)
        frames.append(minimise_over_rotations(_by_positions(chosen, places, smooth), R, 100)[0])
    some = Z[: settings.edge_rows]
    # one softness for all, so that their variations compare
    softness = _softness(frames[0], Z, D)
    rate = settings.variation_rate / grid.size
    tried = [
        least_variation(R, some, D, softness, rng, settings.edge_trial_steps, (rate, rate / 4))
        for R in frames
    ]
    return min(tried, key=lambda R: variation(R, some, D, softness)[0])
