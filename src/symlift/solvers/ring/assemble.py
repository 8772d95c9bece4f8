"""Assemble: planes of all harmonics into one lifted model, so that observations can be moved along the ring."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.group import TranslationGroup
from symlift.core.linalg import null_space
from symlift.core.model import LiftedModel

__all__ = ["assemble"]


def assemble(X: NDArray, B: NDArray, harmonics: NDArray, grid: Grid) -> LiftedModel:
    """The lifted model: plane h turns by 2πh/N a step, the filter is 1 on the fundamental and 0 elsewhere, and E is invertible.

    Coordinates of plane 1 are u₁ = Bᵀ(x - mean).  Regressing x on them leaves a rest that is uncorrelated with them, on which the
    next harmonic is read out, and so on; rows that vanish on all regressors complete E, and do not turn.
    """
    n, d = X.shape
    mean = X.mean(axis=0)
    rest = X - mean
    covariance = rest.T @ rest / n
    project = np.eye(d)  # (x - mean) → what is left of it
    readouts, regressors = [], []
    for h in range(min(harmonics.shape[1], d // 2 - 1)):
        left = project @ covariance @ project.T
        if h == 0:
            R = B.T
        else:
            wanted = np.stack([harmonics[:, h].real, harmonics[:, h].imag], axis=1)
            cross = project @ (rest.T @ (wanted - wanted.mean(axis=0)) / n)
            R = np.linalg.solve(left + 1e-2 * np.trace(left) / d * np.eye(d), cross).T
        R = R @ project
        spread = R @ covariance @ R.T
        if np.linalg.cond(spread) > 1e8:
            break
        A = project @ covariance @ R.T @ np.linalg.inv(spread)
        # one length for each plane, so that E is well conditioned; the plane's shape is as it was read out
        size = np.sqrt(np.trace(spread) / 2)
        readouts.append(R / size)
        regressors.append(A * size)
        project = project - A @ R
    fixed = null_space(np.concatenate(regressors, axis=1).T).T / np.sqrt(np.trace(covariance) / d)
    E = np.concatenate([*readouts, fixed])
    theta = np.zeros((1, d // 2))
    theta[0, : len(readouts)] = 2 * np.pi * np.arange(1, len(readouts) + 1) / grid.size
    r = np.zeros(d // 2 + d % 2)
    r[0] = 1.0
    return LiftedModel(grid, mean, 1.0, E, TranslationGroup(np.eye(d), theta), r, "linear")
