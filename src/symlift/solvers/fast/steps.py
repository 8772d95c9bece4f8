"""Piecewise constant fields on a line, behind a rotation.

Most differences of neighbours are zero, so independent components are those differences, to the
third digit. A rotation keeps the angles between their rows: each overlaps by one half with the
difference before it and the one after it, and with no other. That chain is the order of the line;
summed up along it, the differences give the field except its mean, which is the direction that no
difference contains.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.core.linalg import polar
from symlift.solvers.fast.edges import ModesOnGrid, principal_modes
from symlift.solvers.fast.settings import DEFAULT, FastSettings
from symlift.statistics.moments import stationarity

__all__ = ["chain_of_steps", "steps_frame", "summed_steps"]

# share of a chain's links that few rows may hide (2,000 rows of a line of 40: the weakest link is
# 0.2 in two draws of four, and right after least variation)
_MISSING = 0.1


def chain_of_steps(U: NDArray, settings: FastSettings = DEFAULT) -> NDArray[np.float64] | None:
    """Unit rows of U in the order in which each overlaps by about -1/2 with the next, without the
    one that overlaps least; None where most of them form no chain.
    """
    V = U / np.linalg.norm(U, axis=1, keepdims=True)
    G = V @ V.T
    size = np.abs(G) - np.eye(len(G))
    odd = np.argmin(np.sort(size, axis=1)[:, -2:].sum(axis=1))
    size[odd] = size[:, odd] = -1
    second = np.sort(size, axis=1)[:, -2]
    second[odd] = np.inf
    order = [int(np.argmin(second))]
    left = np.arange(len(G)) != odd
    for _ in range(len(G) - 2):
        left[order[-1]] = False
        order.append(int(np.argmax(np.where(left, size[order[-1]], -1))))
    links = G[order[:-1], order[1:]]
    far = np.abs(G[np.ix_(order, order)][np.triu_indices(len(order), 2)])
    # some that are missing do not matter: where they tear the sum apart, least variation mends it
    if np.quantile(np.abs(links), _MISSING) < settings.linked or (
        np.quantile(far, 1 - _MISSING / 10) > settings.unlinked
    ):
        return None
    return V[order] * np.cumprod(np.concatenate([[1.0], -np.sign(links)]))[:, None]


def summed_steps(steps: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The rotations (N, N) nearest to frames whose differences of neighbours are √2 times the given
    unit rows (N - 1, N): the mean can have either sign.
    """
    n = len(steps) + 1
    summed = np.linalg.pinv(np.diff(np.eye(n), axis=0)) @ (np.sqrt(2) * steps)
    mean = np.outer(np.ones(n), np.linalg.svd(steps)[2][-1]) / np.sqrt(n)
    return polar(summed + mean), polar(summed - mean)


def steps_frame(
    U: NDArray,
    X: NDArray,
    held: NDArray,
    grid: Grid,
    rng: np.random.Generator,
    settings: FastSettings = DEFAULT,
) -> tuple[NDArray[np.float64], float] | None:
    """The frame of least variation from the sum of the components U (N, N) of rows X, if these form
    a chain of steps; and how rough held-out rows are in it.

    Errors add up along the sum; a few steps of least variation remove them (r 0.97 → 0.9998).
    """
    steps = chain_of_steps(U, settings)
    if steps is None:
        return None
    values, basis = principal_modes(X)
    modes = ModesOnGrid(grid, (X @ basis.T).astype(np.float32), values, settings)
    frames = [modes.smoothed(W @ basis.T, rng) for W in summed_steps(steps)]
    lags = LagClasses(grid)
    R = min(frames, key=lambda R: float(stationarity(modes.Z @ R.T, lags).mean()))
    return R @ basis, modes.roughness(R, (held @ basis.T).astype(np.float32), rng)
