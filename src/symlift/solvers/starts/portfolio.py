"""Which starts are tried on a grid, and in which order: cheap and reliable ones first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.search.settings import PlaceSettings
from symlift.solvers.starts.chain import chain_orders
from symlift.solvers.starts.graph import coordinates_from, spectral_coordinates
from symlift.solvers.starts.sparse import sparse_coordinates
from symlift.statistics.correlations import partial_correlations

__all__ = ["starts_from"]


def starts_from(
    c: NDArray, grid: Grid, rng: np.random.Generator, settings: PlaceSettings
) -> Iterator[NDArray[np.float64]]:
    """Coordinates from several graphs over correlations c, the most reliable first."""
    low, high = settings.ridges
    partial = {r: partial_correlations(c, r) for r in (settings.start_ridge, low, high)}
    faces = grid.ndim > 1
    middle = settings.start_ridge
    if grid.ndim == 1:
        for order in chain_orders(c, grid.periodic[0]):
            yield np.argsort(order)[:, None].astype(np.float64)
    else:
        sparse = (sparse_coordinates(p, grid, settings.edge, rng) for p in partial.values())
        yield from (y for y in sparse if y is not None)
    for ridge, squares in (
        (middle, faces),
        (low, False),
        (high, faces),
        (middle, False),
        (low, faces),
    ):
        yield from coordinates_from(partial[ridge], grid, settings.edge, squares, rng)
    yield from spectral_coordinates(c, grid, rng)
    yield from coordinates_from(c, grid, settings.edge, faces, rng)
