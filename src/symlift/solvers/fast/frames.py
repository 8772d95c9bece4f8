"""Frames: from components in unknown order and sign to a first orthogonal lifting map."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.lags import LagClasses
from symlift.core.linalg import polar
from symlift.solvers.fast.arrange import arrange, explained_held_out, fisher_z
from symlift.solvers.fast.components import energy_dependence, energy_similarities, standardise
from symlift.solvers.fast.innovations import overlaps

__all__ = [
    "linked_frame",
    "nearest_in_turn",
    "point_signs",
    "points_frame",
    "position_frames",
    "stationary_frame",
]

# median z score of the skewness: 0.7 without any, 9.7 for 255 pulses from 32,000 rows. Overlaps are
# the weaker evidence: on a line a single wrong one turns all points behind it round
_SKEWED = 5.0
# square of an overlap of neighbours over its scatter (63 pulses from 1,500 rows: 0.55 over some
# 0.15): the evidence of an overlap in the units of that of a skewness
_OVERLAP_EVIDENCE = 13.0
_SIGN_ROUNDS = 20


def points_frame(
    X: NDArray, held: NDArray, U: NDArray, grid: Grid, rng: np.random.Generator
) -> tuple[NDArray[np.float64], dict[str, float]]:
    """Components are deconvolved points of the field: put them in order, choose signs,
    orthogonalise.

    With s = G f and G a symmetric positive filter, the polar factor of the ordered unmixing matrix
    is the true frame if the measurement is orthogonal. Also returns the share of the components'
    energies on held-out rows that the order explains.
    """
    S = X @ U.T
    energies = energy_similarities(S)
    order, quality = arrange(energies, grid, rng)
    quality["locality"] = explained_held_out(
        energies, energy_similarities(held @ U.T), order, LagClasses(grid)
    )
    signs = point_signs(S[:, order], U[order], grid)
    return polar(signs[:, None] * U[order]), quality


def linked_frame(
    X: NDArray, U: NDArray, grid: Grid, rng: np.random.Generator
) -> NDArray[np.float64]:
    """The same, with the components in an order that explains their energies and the overlaps of
    their mixing columns together.

    From 1,500 rows of 63 pulses, 17 draws, two attempts each: right in 33 of 34, by energies alone
    in 31, by overlaps alone in 30.
    """
    S = X @ U.T
    links = fisher_z(np.abs(overlaps(U)))[None]
    order, _ = arrange(np.concatenate([energy_similarities(S), links]), grid, rng)
    return polar(point_signs(S[:, order], U[order], grid)[:, None] * U[order])


def point_signs(S: NDArray, U: NDArray, grid: Grid) -> NDArray[np.float64]:
    """Signs that make the distributions at all points equal: by their skewness if they have one,
    otherwise such that the mixing columns of neighbours agree, too.

    Skewness does not depend on the mixing; mixing columns overlap as the field does only where the
    mixing is orthogonal. Neither decides alone if there are few rows: of 62 overlaps of 63 pulses
    from 1,500 rows up to two have the wrong sign, each of which turns all points behind it round,
    and of 63 skewnesses up to four. Each weighs by its evidence: z times what z is typically,
    which vanishes without any skewness. A node that stands for the positive sign holds the
    skewnesses.
    """
    s = standardise(S)
    cubes = s * s * s  # `** 3` takes a hundred times as long: 0.3 s for 40,000 rows of 144
    z = cubes.mean(axis=0) / np.maximum(cubes.std(axis=0), 1e-300) * np.sqrt(len(S))
    typical = float(np.median(np.abs(z)))
    if typical > _SKEWED:
        return np.where(z < 0, -1.0, 1.0)
    i, j = grid.neighbours().T
    overlap = overlaps(U)[i, j]
    links = np.zeros((grid.size + 1, grid.size + 1))
    links[i, j] = links[j, i] = overlap / max(float(np.median(np.abs(overlap))), 1e-300)
    links[-1, :-1] = links[:-1, -1] = typical * z / _OVERLAP_EVIDENCE
    signs = np.where(np.linalg.eigh(links)[1][:, -1] < 0, -1.0, 1.0)
    for _ in range(_SIGN_ROUNDS):
        for k in range(grid.size):
            signs[k] = -signs[k] if signs[k] * (links[k] @ signs) < 0 else signs[k]
    return signs[:-1] * signs[-1]


def position_frames(
    X: NDArray, U: NDArray, floors: tuple[float, ...] = (0.002, 0.01)
) -> dict[str, NDArray[np.float64]]:
    """Latent points of a line as eigenvectors of the position operator, however many components sit
    at each point.

    With centred energies e_k at embedded positions τ_k, N = E[(Σ e_k) x xᵀ] and P = E[(Σ τ_k e_k) x
    xᵀ]: for a stationary field N^{-1/2} P N^{-1/2} is the latent coordinate itself. Which energies
    and which regularisation of N (``floors``) start in the right basin depends on the data, so four
    combinations are tried.
    """
    S = X @ U.T
    position = np.argsort(np.argsort(_fiedler(energy_dependence(S)))).astype(np.float64)
    C = X.T @ X
    frames = {}
    for power in (1, 2):
        energy = np.abs(standardise(S)) ** power
        energy = energy - energy.mean(axis=0)
        values, vectors = np.linalg.eigh((X * energy.sum(axis=1)[:, None]).T @ X)
        P = (X * (energy @ position)[:, None]).T @ X
        for floor in floors:
            root = (vectors / np.sqrt(np.maximum(values, floor * values.max()))) @ vectors.T
            W = np.linalg.eigh(root @ P @ root)[1].T
            steps = np.sum((W[1:] @ C) * W[:-1], axis=1)
            frames[f"position {power} {floor}"] = (
                W * np.cumprod(np.append(1.0, np.where(steps < 0, -1.0, 1.0)))[:, None]
            )
    return frames


def _fiedler(dependence: NDArray) -> NDArray[np.float64]:
    """Second eigenvector of the normalised Laplacian of the dependences that stand out: seriation
    on a line.
    """
    away = ~np.eye(len(dependence), dtype=bool)
    # a negative quantile must not be subtracted: it would link all pairs
    G = np.maximum(dependence - max(np.quantile(dependence[away], 0.3), 0.0), 0.0) * away + 1e-9
    degree = G.sum(axis=1)
    _, vectors = np.linalg.eigh(-G / np.sqrt(np.outer(degree, degree)))
    return vectors[:, 1] / np.sqrt(degree)


def stationary_frame(
    W: NDArray, C: NDArray, C_held: NDArray, lags: LagClasses, steps: int = 30
) -> tuple[NDArray[np.float64], float]:
    """W ← polar(T W C) with C = E[x xᵀ] and T the lag average of W C Wᵀ, as long as the misfit to
    ``C_held`` of held-out rows falls.

    For fixed T, tr(T W C Wᵀ) is convex in W, so each step lowers ‖W C Wᵀ - T‖². Many steps would
    fit sampling noise: each must reduce the held-out misfit ‖W C Wᵀ - T‖/‖C‖ by a twentieth.
    Returns the frame and that misfit.
    """

    def misfit(V: NDArray) -> float:
        S = V @ C_held @ V.T
        return float(np.linalg.norm(S - lags.project(S)) / np.linalg.norm(C_held))

    value = misfit(W)
    for _ in range(steps):
        proposal = polar(lags.project(W @ C @ W.T) @ W @ C)
        new = misfit(proposal)
        if new > 0.95 * value:
            break
        W, value = proposal, new
    return W, value


def nearest_in_turn(W: NDArray, rows: NDArray) -> NDArray[np.float64]:
    """W (N, d) of a ring with its points in the order in which neighbours correlate most.

    Taking every k-th point of a ring, with k and N coprime, gives another ring that is just as
    stationary. Correlations of values and of magnitudes must both be strongest k points apart for
    the order to be changed.
    """
    Y = rows @ W.T
    N = Y.shape[1]
    strength = []
    for z in (Y, np.abs(Y - Y.mean(axis=0))):
        c = np.corrcoef(z, rowvar=False)
        strength.append(
            [
                float(np.mean(c[np.arange(N), (np.arange(N) + lag) % N]))
                for lag in range(1, N // 2 + 1)
            ]
        )
    values, magnitudes = (int(np.argmax(one)) + 1 for one in strength)
    if values != magnitudes or values == 1 or math.gcd(values, N) > 1:
        return W
    return W[np.arange(N) * values % N]
