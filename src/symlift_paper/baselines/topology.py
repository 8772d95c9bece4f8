"""Topology of images from a bag of pixels (Le Roux et al. 2007).

The pixels are embedded in the plane and interpolated on a grid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from symlift.core.grid import Grid
from symlift.errors import InputError
from symlift_paper.baselines.embedding import isomap_plane, umap_plane
from symlift_paper.baselines.protocol import Baseline, BaselineResult

__all__ = [
    "ISOMAP",
    "UMAP",
    "correlation_distance",
    "embed_columns",
    "grid_weights",
    "near_weights",
    "on_grid",
    "principal_axes",
    "read_columns",
    "upright",
]

READINGS = ("interpolate", "assign", "near")
AXES = ("upright", "own", "principal")
DISTANCES = ("chord", "log")


def correlation_distance(X: NDArray, kind: str = "chord") -> NDArray[np.float64]:
    """``√(2 − 2 corr)``, the distance of two standardised columns, or ``−log |corr|``, (d, d)."""
    if kind not in DISTANCES:
        raise InputError(f"distance {kind!r} is unknown: choose one of {', '.join(DISTANCES)}")
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = np.nan_to_num(np.corrcoef(X, rowvar=False))
    distance: NDArray[np.float64] = (
        np.sqrt(np.maximum(2 - 2 * correlation, 0.0))
        if kind == "chord"
        else np.maximum(-np.log(np.maximum(np.abs(correlation), 1e-12)), 0.0)
    )
    np.fill_diagonal(distance, 0.0)
    return distance


def upright(plane: NDArray) -> NDArray[np.float64]:
    """``plane`` rotated, in whole degrees, to the least area of its bounding box.

    This aligns the sides of a square with the axes. An embedding is defined up to a rotation, and
    the two leading axes of a square are equally long, so that their directions are arbitrary.
    """
    angles = np.deg2rad(np.arange(90))
    turns = np.stack(
        [[np.cos(angles), -np.sin(angles)], [np.sin(angles), np.cos(angles)]]
    ).transpose(2, 0, 1)
    turned = plane @ turns
    best = int(np.ptp(turned, axis=1).prod(axis=1).argmin())
    return np.asarray(turned[best])


def principal_axes(plane: NDArray) -> NDArray[np.float64]:
    """``plane`` about its mean, on the axes of largest and least spread.

    Isomap's own axes are these already, up to rounding.
    """
    centred = plane - plane.mean(axis=0)
    return np.asarray(centred @ np.linalg.svd(centred, full_matrices=False)[2].T)


def on_grid(plane: NDArray, grid: Grid) -> NDArray[np.float64]:
    """Stretch each axis to the extent of the grid: coordinates from 0 to N − 1."""
    low, extent = plane.min(axis=0), np.maximum(np.ptp(plane, axis=0), 1e-12)
    return (plane - low) / extent * (np.array(grid.shape) - 1)


def grid_weights(places: NDArray, grid: Grid, smoothing: float = 3.0) -> NDArray[np.float64]:
    """``w_gi ∝ exp(−smoothing ‖m_g − p_i‖²)``, normalised to row sums of 1.

    Each grid point m_g reads the pixels p_i near it.

    >>> grid = Grid((2, 2))
    >>> grid_weights(grid.indices(), grid).round(2)[0]
    array([0.91, 0.05, 0.05, 0.  ])
    """
    exponent = -smoothing * np.sum((grid.indices()[:, None] - places[None]) ** 2, axis=-1)
    # the nearest pixel has weight 1 before normalisation, so that a grid point far from all pixels
    # reads the nearest
    weights = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def near_weights(places: NDArray, grid: Grid, smoothing: float = 3.0) -> NDArray[np.float64]:
    """``w_gi ∝ exp(−smoothing ‖m_g − p_i‖)`` of the pixels within one step in L1, rows of sum 1.

    A grid point without any such pixel looks one step further, until it has one.

    >>> grid = Grid((2, 2))
    >>> near_weights(grid.indices(), grid).round(2)[0]
    array([0.91, 0.05, 0.05, 0.  ])
    """
    apart = grid.indices()[:, None] - places[None]
    steps = np.abs(apart).sum(axis=-1)
    reach = np.maximum(1.0, np.ceil(steps.min(axis=1, keepdims=True)))
    weights = np.exp(-smoothing * np.linalg.norm(apart, axis=-1)) * (steps <= reach)
    return np.asarray(weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-300))


def _assignment(places: NDArray, grid: Grid) -> NDArray[np.float64]:
    """One pixel for each grid point, at the least sum of squared distances."""
    distance = np.sum((grid.indices()[:, None] - places[None]) ** 2, axis=-1)
    weights = np.zeros(distance.shape)
    weights[linear_sum_assignment(distance)] = 1.0
    return weights


def embed_columns(
    X: NDArray,
    embed: Callable[[NDArray], NDArray[np.float64]],
    threshold: float,
    distance: str = "chord",
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Columns of variance above ``threshold`` times the largest, and their embedded positions."""
    variance = X.var(axis=0)
    varying = np.flatnonzero((variance >= threshold * variance.max()) & (variance > 0))
    if len(varying) < 4:
        raise InputError(
            f"only {len(varying)} columns vary enough for threshold {threshold}: lower it"
        )
    return varying, embed(correlation_distance(X[:, varying], distance))


def read_columns(
    varying: NDArray[np.int64],
    plane: NDArray,
    grid: Grid,
    smoothing: float = 3.0,
    axes: str = "upright",
    reading: str = "interpolate",
) -> BaselineResult:
    """Weights with which each grid point reads the pixels ``varying`` at positions ``plane``.

    ``axes`` says how the embedding is turned onto the grid: upright, as it is, or by its principal
    axes.
    """
    if axes not in AXES:
        raise InputError(f"axes {axes!r} are unknown: choose one of {', '.join(AXES)}")
    if reading not in READINGS:
        raise InputError(f"reading {reading!r} is unknown: choose one of {', '.join(READINGS)}")
    turn = {"upright": upright, "principal": principal_axes}.get(axes)
    places = on_grid(plane if turn is None else turn(plane), grid)
    weights = np.zeros((grid.size, grid.size))
    if reading == "assign":
        weights[:, varying] = _assignment(places, grid)
    else:
        read = near_weights if reading == "near" else grid_weights
        weights[:, varying] = read(places, grid, smoothing)
    return BaselineResult(mean=np.zeros(grid.size), lifting_map=weights)


def recover_field(
    X: NDArray,
    grid: Grid,
    embed: Callable[[NDArray], NDArray[np.float64]],
    threshold: float,
    distance: str = "chord",
    **options: Any,
) -> BaselineResult:
    """Embed pixels of variance above ``threshold`` times the largest, and read them on the grid.

    Not specified in the paper, and chosen here: the distance, the unit of the threshold (a share of
    the largest variance), the form of the weights, in grid steps, and the rotation, which the paper
    does not mention: ``axes="own"`` takes the embedding as it is.  ``reading="assign"`` gives each
    grid point one pixel; the paper interpolates.
    """
    return read_columns(*embed_columns(X, embed, threshold, distance), grid, **options)


def fit_isomap(
    X: NDArray,
    grid: Grid,
    rng: np.random.Generator,  # noqa: ARG001 (called like the others)
    neighbours: int = 5,
    threshold: float = 0.1,
    **options: Any,
) -> BaselineResult:
    """`recover` with Isomap."""
    return recover_field(
        X, grid, lambda D: isomap_plane(D, neighbours, "precomputed"), threshold, **options
    )


def fit_umap(
    X: NDArray,
    grid: Grid,
    rng: np.random.Generator,
    neighbours: int = 5,
    threshold: float = 0.1,
    **options: Any,
) -> BaselineResult:
    """`recover` with UMAP."""
    return recover_field(
        X, grid, lambda D: umap_plane(D, neighbours, rng, "precomputed"), threshold, **options
    )


SEARCH = ({"threshold": (0.05, 0.10, 0.15), "neighbours": (3, 5, 7)},)
ISOMAP = Baseline("isomap", "signals", fit_isomap, SEARCH, axes=(2,))
UMAP = Baseline("umap", "signals", fit_umap, SEARCH, axes=(2,))
