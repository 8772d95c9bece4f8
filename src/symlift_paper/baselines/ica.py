"""Independent components without a topology, and a random orthogonal map.

They show how much of a score is due to order, and how much to chance.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from picard import picard

from symlift.core.grid import Grid
from symlift.datasets import random_orthogonal
from symlift_paper.baselines.protocol import Baseline, BaselineResult

__all__ = ["ICA", "RANDOM", "components", "random_map"]


def components(
    X: NDArray,
    grid: Grid,  # noqa: ARG001 (called like the others)
    rng: np.random.Generator,
    iterations: int = 100,
    rows: int = 5_000,
) -> BaselineResult:
    """Picard-O (extended) on the first 5,000 rows, whitened.

    The components have unit variance and random order. This baseline is ours, not the paper's: it
    undoes the mixing without knowledge of the domain, so that only the order and signs are missing.
    """
    X = X[:rows]
    mean = X.mean(axis=0)
    values, vectors = np.linalg.eigh((X - mean).T @ (X - mean) / len(X))
    whitening = (vectors / np.sqrt(np.maximum(values, max(1e-9 * float(values[-1]), 1e-300)))).T
    with warnings.catch_warnings():
        # warnings about convergence to the last digit do not matter here
        warnings.simplefilter("ignore")
        _, R, _ = picard(
            whitening @ (X - mean).T,
            ortho=True,
            extended=True,
            whiten=False,
            centering=False,
            max_iter=iterations,
            tol=1e-3,
            random_state=int(rng.integers(2**31)),
        )
    return BaselineResult(mean=mean, lifting_map=(R @ whitening)[rng.permutation(len(R))])


def random_map(
    X: NDArray,
    grid: Grid,  # noqa: ARG001 (called like the others)
    rng: np.random.Generator,
) -> BaselineResult:
    """A random orthogonal map (Haar measure): the paper's *Random* column, the level of chance."""
    return BaselineResult(mean=X.mean(axis=0), lifting_map=random_orthogonal(X.shape[1], rng))


ICA = Baseline("ica", "signals", components)
RANDOM = Baseline("random", "signals", random_map)
