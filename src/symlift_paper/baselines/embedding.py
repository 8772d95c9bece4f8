"""Isomap and UMAP in two dimensions, for pixels (`topology`) and for samples (`phase`)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from symlift.errors import InputError

__all__ = ["isomap_plane", "umap_plane"]


def isomap_plane(
    points: NDArray, neighbours: int, metric: str = "euclidean"
) -> NDArray[np.float64]:
    """Isomap in the plane, (points, 2); ``metric="precomputed"`` takes distances."""
    from sklearn.manifold import Isomap  # slow to import

    with warnings.catch_warnings():
        # Isomap warns that it joins the components of a graph by their shortest links
        warnings.simplefilter("ignore")
        # dense: the iterative solver starts from numpy's global random state, and the leading axes
        # of a square are degenerate
        count = min(neighbours, len(points) - 1)
        embedding = Isomap(n_neighbors=count, n_components=2, metric=metric, eigen_solver="dense")
        return np.asarray(embedding.fit_transform(points), dtype=np.float64)


def umap_plane(
    points: NDArray,
    neighbours: int,
    rng: np.random.Generator,
    metric: str = "euclidean",
    min_dist: float = 0.1,
) -> NDArray[np.float64]:
    """UMAP in the plane, (points, 2); needs the extra ``paper``."""
    UMAP = _umap()
    # numba sets the OpenMP threads of the whole process, including torch's, to the number of cores:
    # they are reset at the end
    with threadpool_limits(limits=1), warnings.catch_warnings():
        # UMAP warns that it is single-threaded when seeded, and that precomputed distances cannot
        # be inverted
        warnings.simplefilter("ignore")
        embedding = UMAP(
            n_neighbors=max(2, min(neighbours, len(points) - 1)),
            min_dist=min_dist,
            n_components=2,
            metric=metric,
            n_jobs=1,
            random_state=int(rng.integers(2**31)),
        )
        return np.asarray(embedding.fit_transform(points), dtype=np.float64)


def _umap() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from umap import UMAP  # seconds to import: it compiles
    except ImportError:
        raise InputError(
            "UMAP is not installed: pip install 'symlift[paper]', or use Isomap"
        ) from None
    return UMAP
