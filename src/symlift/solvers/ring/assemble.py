"""Assemble: planes of all harmonics into one lifted model, so that observations can be moved along
the ring or the torus.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.group import TranslationGroup
from symlift.core.linalg import null_space
from symlift.core.model import LiftedModel

__all__ = ["assemble"]


def assemble(
    X: NDArray, given: list[NDArray], harmonics: NDArray, modes: NDArray, grid: Grid
) -> LiftedModel:
    """The lifted model: plane h turns by 2π m_h / N per step, the filter has equal weights on the
    given planes and 0 elsewhere.

    ``harmonics`` (n, H) are posterior means of e^{i m_h · φ} for the ``modes`` m_h (H, axes), the
    fundamental ones first; those are read out by the ``given`` B (d, 2), u = Bᵀ(x - mean).
    Regressing x on them leaves a residual that is uncorrelated with them, from which the next
    harmonic is read out, and so on; rows that vanish on all regressors complete E, which is
    invertible, and do not turn.
    """
    n, d = X.shape
    mean = X.mean(axis=0)
    rest = X - mean
    covariance = rest.T @ rest / n
    project = np.eye(d)  # (x - mean) → residual
    readouts = [_to_size(B.T, covariance) for B in given]
    # all given planes at once, because they are correlated with each other
    R = np.concatenate(readouts)
    regressors = [covariance @ R.T @ np.linalg.inv(R @ covariance @ R.T)]
    project -= regressors[0] @ R
    for h in range(len(given), min(harmonics.shape[1], d // 2 - 1)):
        left = project @ covariance @ project.T
        wanted = np.stack([harmonics[:, h].real, harmonics[:, h].imag], axis=1)
        cross = project @ (rest.T @ (wanted - wanted.mean(axis=0)) / n)
        R = np.linalg.solve(left + 1e-2 * np.trace(left) / d * np.eye(d), cross).T @ project
        if np.linalg.cond(R @ covariance @ R.T) > 1e8:
            break
        R = _to_size(R, covariance)
        A = project @ covariance @ R.T @ np.linalg.inv(R @ covariance @ R.T)
        readouts.append(R)
        regressors.append(A)
        project = project - A @ R
    fixed = null_space(np.concatenate(regressors, axis=1).T).T / np.sqrt(np.trace(covariance) / d)
    E = np.concatenate([*readouts, fixed])
    theta = np.zeros((grid.ndim, d // 2))
    theta[:, : len(readouts)] = 2 * np.pi * modes[: len(readouts)].T / np.array(grid.shape)[:, None]
    r = np.zeros(d // 2 + d % 2)
    r[: len(given)] = 1 / np.sqrt(len(given))
    return LiftedModel(grid, mean, 1.0, E, TranslationGroup(np.eye(d), theta), r, "linear")


def _to_size(R: NDArray, covariance: NDArray) -> NDArray[np.float64]:
    """R (2, d) with readings of variance one on average: E is then well conditioned, and the
    plane's shape stays as it is.
    """
    return R / np.sqrt(np.trace(R @ covariance @ R.T) / 2)
