"""Localise: independent components of the observations, which sit at points (or at steps) of the
hidden domain.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from picard import picard

from symlift.core.linalg import polar
from symlift.solvers.fast.arrange import fisher_z
from symlift.solvers.fast.settings import DEFAULT, FastSettings
from symlift.statistics.moments import CLIP

__all__ = [
    "energy_dependence",
    "energy_similarities",
    "independent_components",
    "nongaussianity",
    "standardise",
]

# E log cosh of a standard normal variable, to which a component's contrast is compared
_GAUSSIAN_LOG_COSH = 0.374567207


def standardise(S: NDArray) -> NDArray:
    """Columns divided by their deviation and clipped, so that single bursts do not dominate the
    statistics.
    """
    return np.clip(S / np.maximum(S.std(axis=0), 1e-300), -CLIP, CLIP)


def independent_components(
    X: NDArray,
    rng: np.random.Generator,
    settings: FastSettings = DEFAULT,
    start: NDArray | None = None,
) -> tuple[NDArray[np.float64], dict[str, float]]:
    """Unmixing matrix U of centred X: columns of X Uᵀ are as independent as can be, each of unit
    variance.

    Picard-O (extended) on whitened rows. Also returns the contrast Σ |E log cosh s - E log cosh
    g|/d, which distinguishes local optima from the best one. ``start`` is an unmixing matrix to go
    on from.
    """
    rows = np.asarray(X, dtype=np.float64)
    values, vectors = np.linalg.eigh(rows.T @ rows / len(rows))
    whitening = (vectors / np.sqrt(np.maximum(values, 1e-9 * values[-1]))).T
    first = None if start is None else polar(start @ np.linalg.pinv(whitening))
    with warnings.catch_warnings():
        # a warning that the last digits have not converged is of no interest: the contrast decides
        warnings.simplefilter("ignore")
        _, R, S = picard(
            whitening @ rows.T,
            ortho=True,
            extended=True,
            whiten=False,
            centering=False,
            max_iter=settings.component_steps,
            tol=settings.component_tolerance,
            w_init=first,
            random_state=int(rng.integers(2**31)),
        )
    contrast = float(np.abs(_log_cosh(S.T).mean(axis=0) - _GAUSSIAN_LOG_COSH).mean())
    return R @ whitening, {"contrast": contrast}


def _log_cosh(S: NDArray) -> NDArray:
    size = np.abs(S)
    return size + np.log1p(np.exp(-2 * size)) - np.log(2)


def nongaussianity(S_fit: NDArray, S_held: NDArray) -> float:
    """z score of the components' contrast on rows that they were not fitted to; about 0 for
    Gaussian data.

    E log cosh s - E log cosh g on held-out rows, with the sign seen on the fitted ones, summed over
    components. A dense mixing can only be undone if it is large.
    """
    sign = np.sign(_log_cosh(S_fit / S_fit.std(axis=0)).mean(axis=0) - _GAUSSIAN_LOG_COSH)
    held = _log_cosh(S_held / S_held.std(axis=0))
    error = held.std(axis=0) / np.sqrt(len(held))
    return float(
        np.sum(sign * (held.mean(axis=0) - _GAUSSIAN_LOG_COSH)) / np.sqrt(np.sum(error**2))
    )


def energy_dependence(S: NDArray) -> NDArray[np.float64]:
    """corr(|s_i|, |s_j|) of standardised components; zero diagonal."""
    E = np.corrcoef(np.abs(standardise(S)), rowvar=False)
    np.fill_diagonal(E, 0.0)
    return E


def energy_similarities(S: NDArray) -> NDArray[np.float64]:
    """atanh of the correlations of |s| and of log(|s| + 1/10), s standardised: (2, d, d), for
    `arrange`.
    """
    energy = np.abs(S) / np.maximum(S.std(axis=0), 1e-300)
    return np.stack(
        [fisher_z(np.corrcoef(e, rowvar=False)) for e in (energy, np.log(energy + 0.1))]
    )
