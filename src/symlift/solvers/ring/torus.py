"""Two angles: the closed surface that a population tuned to a torus traces, by
expectation-maximisation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from symlift.solvers.ring.domains import TORUS, best_fit, climb, torus_starts

__all__ = ["MODES", "follow_torus"]

#: harmonics m of e^{i m·φ} that are followed, and moved by the group: the fundamental one of each
#: axis first
MODES = np.array(
    [(1, 0), (0, 1), (1, 1), (1, -1), (2, 0), (0, 2), (2, 1), (1, 2), (2, -1), (1, -2)]
)
_SEARCH_ROWS = 3_000


def follow_torus(
    U: NDArray, planes: list[NDArray], rng: np.random.Generator
) -> tuple[NDArray[np.complex128], float]:
    """Posterior means of e^{i m·φ} (n, modes) for whitened rows on a torus, and the log-likelihood
    relative to a Gaussian.

    Pairs of ``planes`` that look like rings are the starts; with a single plane, the second angle
    starts at random.
    """
    starts = torus_starts(U, planes)
    if not starts:
        angle = np.arctan2(*(U @ planes[0]).T[::-1])
        starts = [np.stack([angle, rng.uniform(0, 2 * np.pi, len(U))], axis=1)]
    some = rng.permutation(len(U))[:_SEARCH_ROWS]
    first = best_fit(U[some], TORUS, [at[some] for at in starts])
    fit = climb(U, TORUS, first.shares(U))
    return fit.share @ np.exp(1j * TORUS.states @ MODES.T), fit.likelihood
