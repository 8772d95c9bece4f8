"""A phase for every sample from an embedding in the plane: principal components, Isomap, UMAP."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.errors import InputError
from symlift_paper.baselines.embedding import isomap_plane, umap_plane
from symlift_paper.baselines.protocol import Baseline, BaselineResult

__all__ = ["ISOMAP_PHASE", "PCA_PHASE", "UMAP_PHASE", "phases_in_plane", "scaled"]

NEIGHBOURS = (5, 15, 30, 50)
SCALES = ("none", "unit")


def scaled(X: NDArray, scale: str) -> NDArray:
    """X unchanged ("none"), or with columns scaled to unit variance ("unit").

    The latter keeps neurons of high rates from dominating the distances.

    >>> scaled(np.array([[0.0, 5.0], [4.0, 5.0]]), "unit")
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    if scale not in SCALES:
        raise InputError(f"scale {scale!r} is unknown: choose one of {', '.join(SCALES)}")
    if scale == "none":
        return X
    deviation = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


def phases_in_plane(plane: NDArray) -> BaselineResult:
    """``atan2(z₂ − z̄₂, z₁ − z̄₁) mod 2π`` of each embedded sample.

    >>> square = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> phases_in_plane(square).phases.round(3)
    array([0.   , 1.571, 3.142, 4.712])
    """
    z = plane - plane.mean(axis=0)
    return BaselineResult(phases=np.mod(np.arctan2(z[:, 1], z[:, 0]), 2 * np.pi))


def fit_pca(
    X: NDArray,
    grid: Grid,  # noqa: ARG001 (called like the others)
    rng: np.random.Generator,  # noqa: ARG001
    plane: tuple[int, int] = (0, 1),
    scale: str = "none",
) -> BaselineResult:
    """The angle in the plane of two principal components, each scaled to unit variance.

    This baseline is ours, not the paper's: the six planes of the first four components are
    searched.
    """
    if max(plane) >= min(X.shape):
        raise InputError(
            f"plane {plane} needs {max(plane) + 1} components: X of shape {X.shape} has"
            f" {min(X.shape)}"
        )
    X = scaled(X, scale)
    U = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[0]
    return phases_in_plane(U[:, list(plane)])


def fit_isomap_phase(
    X: NDArray,
    grid: Grid,  # noqa: ARG001 (called like the others)
    rng: np.random.Generator,  # noqa: ARG001
    neighbours: int = 5,
    scale: str = "none",
) -> BaselineResult:
    """The angle in the plane of Isomap."""
    return phases_in_plane(isomap_plane(scaled(X, scale), neighbours))


def fit_umap_phase(
    X: NDArray,
    grid: Grid,  # noqa: ARG001 (called like the others)
    rng: np.random.Generator,
    neighbours: int = 15,
    min_dist: float = 0.1,
    scale: str = "none",
) -> BaselineResult:
    """The angle in the plane of UMAP.

    Its search is the paper's, twelve runs of some seconds, with unit variances only.
    """
    return phases_in_plane(umap_plane(scaled(X, scale), neighbours, rng, min_dist=min_dist))


PLANES = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
PCA_PHASE = Baseline(
    "pca-phase", "phases", fit_pca, ({"plane": PLANES, "scale": SCALES},), axes=(1,), square=False
)
ISOMAP_PHASE = Baseline(
    "isomap-phase",
    "phases",
    fit_isomap_phase,
    ({"neighbours": NEIGHBOURS, "scale": SCALES},),
    axes=(1,),
    square=False,
)
UMAP_PHASE = Baseline(
    "umap-phase",
    "phases",
    fit_umap_phase,
    ({"neighbours": NEIGHBOURS, "min_dist": (0.01, 0.1, 0.5), "scale": ("unit",)},),
    axes=(1,),
    square=False,
)
