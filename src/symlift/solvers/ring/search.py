"""Search: the plane of whitened observations in which they look most like a ring."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import i0e, i1e

from symlift.core.linalg import polar

__all__ = ["informative_rank", "ring_likelihood", "search_planes", "stabilise", "whitened"]

_MOST_DIMENSIONS = 12
_STARTS, _KEPT, _RANDOM_STARTS, _SEARCH_ROWS, _SAME_PLANE = 256, 8, 20, 1_500, 1.8
_RADII = np.array([0.1, 0.3, 0.6, 0.9, 1.2, 1.4, 1.6, 1.7, 1.8, 1.88, 1.94, 1.97])  # ρ²


def stabilise(X: NDArray) -> NDArray[np.float64]:
    """Vectors with even noise: √(x + 3/8) of counts, and rows of unit length if nothing is
    negative.

    Counts have Poisson noise, which the square root makes even; a gain common to all channels
    scales a row, and leaves its direction. Vectors with negative entries (z-scores) only have their
    columns standardised.

    >>> stabilise(np.array([[3.0, 0.0, 1.0], [30.0, 0.0, 10.0]])).round(1)
    array([[1.4, 0.5, 0.9],
           [1.5, 0.2, 0.9]])
    """
    rows = np.asarray(X, dtype=np.float64)
    if (rows < 0).any():
        return (rows - rows.mean(axis=0)) / np.maximum(rows.std(axis=0), 1e-12)
    roots = np.sqrt(rows + 0.375) if np.array_equal(rows, np.round(rows)) else rows
    lengths = np.maximum(np.linalg.norm(roots, axis=1, keepdims=True), 1e-12)
    return roots * (np.sqrt(rows.shape[1]) / lengths)


def informative_rank(Z: NDArray, rng: np.random.Generator, draws: int = 4) -> int:
    """Principal components that are stronger than those of independently permuted columns (parallel
    analysis), at least 4.
    """
    centred = Z - Z.mean(axis=0)
    strengths = np.linalg.eigvalsh(centred.T @ centred)[::-1]
    chance = np.zeros_like(strengths)
    for _ in range(draws):
        shuffled = rng.permuted(centred, axis=0)
        chance = np.maximum(chance, np.linalg.eigvalsh(shuffled.T @ shuffled)[::-1])
    below = np.flatnonzero(strengths <= chance)
    rank = int(below[0]) if len(below) else len(strengths)
    return min(max(rank, 4), _MOST_DIMENSIONS, Z.shape[1] - 1)


def whitened(Z: NDArray, rank: int) -> NDArray[np.float64]:
    """The first ``rank`` principal coordinates of Z, each of variance one."""
    centred = Z - Z.mean(axis=0)
    spectrum, directions = np.linalg.eigh(centred.T @ centred / len(Z))
    return centred @ (directions[:, ::-1][:, :rank] / np.sqrt(spectrum[::-1][:rank]))


def ring_likelihood(power: NDArray, radius2: float) -> NDArray[np.float64]:
    """log p(u)/g(u) at |u|² = ``power`` for a noisy ring with ρ² = ``radius2``, relative to the
    Gaussian of equal covariance.

    >>> points = np.random.default_rng(0).normal(size=(20_000, 2))
    >>> bool(ring_likelihood((points**2).sum(axis=1), 1.0).mean() < 0)
    True
    """
    noise = 1 - radius2 / 2
    argument = np.sqrt(radius2 * power) / noise
    return (
        -(power + radius2) / (2 * noise)
        + np.log(i0e(argument))
        + argument
        - np.log(noise)
        + power / 2
    )


def search_planes(U: NDArray, rng: np.random.Generator) -> tuple[list[NDArray], list[float]]:
    """Distinct planes (k, 2) of whitened rows that look most like a ring, best first, and their
    mean log-likelihoods.

    Starts: minima of the fourth moments, pairs of the first principal coordinates, and random
    planes, since heavy tails outside of the ring's plane can hide it from fourth moments. The
    ring's radius grows during the ascent: the likelihood of a thin ring has many local maxima.
    """
    n, k = U.shape
    rows = U[rng.choice(n, _SEARCH_ROWS, replace=False)] if n > _SEARCH_ROWS else U
    pairs = [np.eye(k)[:, [i, j]] for i in range(min(k, 4)) for j in range(i)]
    starts = [
        *_flattest_planes(rows, rng),
        *pairs,
        *np.linalg.qr(rng.normal(size=(_RANDOM_STARTS, k, 2)))[0],
    ]
    climbed = sorted((_ascend(rows, B) for B in starts), key=lambda pair: -pair[1])
    planes: list[NDArray] = []
    for B, _ in climbed:
        # the overlap of two planes, tr P₁P₂, is 2 where they are the same
        if all(np.sum((B.T @ other) ** 2) < _SAME_PLANE for other in planes):
            planes.append(B)
    return planes, [_best_radius(U, B)[1] for B in planes]


def _flattest_planes(U: NDArray, rng: np.random.Generator, sweeps: int = 150) -> list[NDArray]:
    """Local minima of E|Bᵀz|⁴ over planes, from many random ones at once, on the fourth moments
    alone.

    With P = BBᵀ it is the quadratic form of P in T = E[zzᵀ ⊗ zzᵀ]; B ← polar((c - T·P) B) goes down
    for c large enough.
    """
    n, k = U.shape
    squares = (U[:, :, None] * U[:, None, :]).reshape(n, -1)
    moments = squares.T @ squares / n
    planes = np.linalg.qr(rng.normal(size=(_STARTS, k, 2)))[0]
    for _ in range(sweeps):
        pulled = ((planes @ planes.swapaxes(1, 2)).reshape(len(planes), -1) @ moments).reshape(
            -1, k, k
        )
        shift = 0.6 * np.linalg.norm(pulled, axis=(1, 2))[:, None, None]
        planes = polar(shift * planes - pulled @ planes)
    flat = (planes @ planes.swapaxes(1, 2)).reshape(len(planes), -1)
    order = np.argsort(np.einsum("si,ij,sj->s", flat, moments, flat))
    distinct: list[int] = []
    for s in order:
        if all(flat[s] @ flat[other] < _SAME_PLANE for other in distinct):
            distinct.append(int(s))
        if len(distinct) == _KEPT:
            break
    return [planes[s] for s in distinct]


def _best_radius(U: NDArray, B: NDArray) -> tuple[float, float]:
    power = ((U @ B) ** 2).sum(axis=1)
    means = [float(ring_likelihood(power, radius2).mean()) for radius2 in _RADII]
    best = int(np.argmax(means))
    return float(_RADII[best]), means[best]


def _ascend(U: NDArray, B: NDArray, steps: int = 20) -> tuple[NDArray, float]:
    """Gradient ascent of the ring's likelihood over planes: broad rings first, then the radius that
    fits best, twice.
    """
    for radius2 in (0.6, 1.2, None, None):
        B = _climb(U, B, radius2 or _best_radius(U, B)[0], steps)
    return B, _best_radius(U, B)[1]


def _climb(U: NDArray, B: NDArray, radius2: float, steps: int) -> NDArray[np.float64]:
    noise, radius, step = 1 - radius2 / 2, np.sqrt(radius2), 1.0
    u = U @ B
    power = np.maximum((u**2).sum(axis=1), 1e-12)
    value = float(ring_likelihood(power, radius2).mean())
    for _ in range(steps):
        argument = radius * np.sqrt(power) / noise
        weight = 1 - 1 / noise + radius / noise * i1e(argument) / i0e(argument) / np.sqrt(power)
        G = U.T @ (weight[:, None] * u) / len(U)
        G -= B @ (B.T @ G)
        while True:
            trial = polar(B + step * G)
            u = U @ trial
            power = np.maximum((u**2).sum(axis=1), 1e-12)
            gained = float(ring_likelihood(power, radius2).mean()) - value
            if gained > 0:
                break
            step /= 3
            if step < 1e-4:
                return B
        B, value, step = trial, value + gained, step * 1.5
        if gained < 1e-6:
            break
    return B
