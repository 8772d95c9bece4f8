"""A lifting map, or a map to spherical harmonics, factored into the parameters of a model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symlift.core.embedding import EmbeddingKind, embed_rows, embedding_matrix
from symlift.core.grid import Grid
from symlift.core.group import TranslationGroup
from symlift.core.representation import Representation
from symlift.core.rotations import RotationGroup
from symlift.core.sphere import Sphere
from symlift.core.torus import TorusGroup, torus_around, torus_frame
from symlift.errors import InputError

__all__ = ["Factors", "check_factors", "factor_harmonics", "factor_map"]

# for grids of more points than this, only the shape of the torus is stored, not its Fourier planes
_MAX_EXPLICIT = 1024
# an embedding with a larger share of entries than this gains nothing from being sparse
_SPARSE = 0.1


@dataclass(frozen=True, eq=False)
class Factors:
    """The parameters of `LiftedModel`, which explains them."""

    grid: Grid | Sphere
    mean: NDArray
    scale: float
    E: Any
    group: Representation
    r: NDArray
    kind: EmbeddingKind
    channels: int = 1


def check_factors(model: Factors) -> None:
    """Raise an InputError where shapes do not fit, or a parameter is not finite."""
    D, C = model.group.dimension, model.channels
    if model.kind not in get_args(EmbeddingKind):
        raise InputError(
            f"embedding kind {model.kind!r} is unknown: use one of"
            f" {', '.join(get_args(EmbeddingKind))}"
        )
    if C < 1 or model.E.ndim != 2 or model.E.shape[0] != C * D:
        raise InputError(
            f"E has shape {tuple(model.E.shape)}, but the group acts on {D} dimensions: E must"
            f" be ({C * D}, d)"
        )
    if model.mean.shape != model.E.shape[1:]:
        raise InputError(
            f"mean has shape {model.mean.shape}: it must be ({model.E.shape[1]},), one entry per"
            " column of E"
        )
    planes = model.group.filter_size
    if model.r.shape != (planes,):
        raise InputError(
            f"r has shape {model.r.shape}: it must be ({planes},), one weight per plane or degree"
        )
    if model.group.axes != model.grid.ndim:
        raise InputError(
            f"the group has {model.group.axes} generators, but the grid {model.grid} has"
            f" {model.grid.ndim} axes"
        )
    if model.kind == "identity" and any(
        wraps and length % 2 == 0
        for length, wraps in zip(model.grid.shape, model.grid.periodic, strict=True)
    ):
        raise InputError(
            f"the ring {model.grid} has an even number of points: its one-step shift has no real"
            " logarithm in d dimensions, so 'identity' cannot hold it; use 'zero-pad'"
        )
    if not (np.isfinite(model.scale) and model.scale > 0):
        raise InputError(f"scale is {model.scale}: it must be a positive number")
    stored = (model.mean, model.r, model.E.data if hasattr(model.E, "tocsr") else model.E)
    if not all(np.isfinite(v).all() for v in (*stored, *model.group.tensors().values())):
        raise InputError("the model's parameters hold NaN or infinity")


def factor_map(
    W: Any, grid: Grid, mean: ArrayLike | None, padding: float, channels: int
) -> Factors:
    """The parameters of `LiftedModel.from_lifting_map`."""
    sparse = hasattr(W, "tocsr")
    W = W if sparse else np.asarray(W, dtype=np.float64)
    if W.ndim != 2 or W.shape[0] != grid.size * channels:
        raise InputError(
            f"a lifting map of shape {W.shape} does not fit the grid {grid}: it needs"
            f" {grid.size * channels} rows"
        )
    values = W.data if sparse else W
    if not np.isfinite(values).all() or not np.any(values):
        raise InputError("the lifting map is zero or holds NaN or infinity")
    d = W.shape[1]
    offset = np.zeros(d) if mean is None else np.array(mean, dtype=np.float64)
    scale = float(np.sqrt(min(d, W.shape[0])) / np.linalg.norm(values))
    torus = torus_around(grid, padding)
    if sparse or grid.size > _MAX_EXPLICIT:
        E = embed_rows(scale * W, torus.flat(grid.indices()), torus.size, channels)
        E = E if sparse or E.nnz < _SPARSE * np.prod(E.shape) else E.toarray()
        return Factors(
            grid, offset, scale, E, TorusGroup(torus.shape), np.zeros(0), "linear", channels
        )
    theta, r, F, window = torus_frame(grid, torus)
    D, V = len(F), scale * W
    kind: EmbeddingKind
    if channels == 1 and d == grid.size and np.abs(V @ V.T - np.eye(d)).max() < 1e-9:
        # Qᵀ E = F_window V with E = (I, 0)ᵀ: the first d columns of Qᵀ are those, the rest is
        # any completion
        rest = np.delete(F, window, axis=1)
        Q = np.concatenate([F[:, window] @ V, rest], axis=1).T
        kind = "identity" if D == d else "zero-pad"
        E = embedding_matrix(kind, d, D)
    else:
        Q, kind = F.T, "linear"
        E = np.zeros((channels, D, d))
        E[:, window] = V.reshape(grid.size, channels, d).swapaxes(0, 1)
        E = E.reshape(channels * D, d)
    return Factors(
        grid,
        offset,
        scale,
        E,
        TranslationGroup(np.ascontiguousarray(Q), theta),
        r,
        kind,
        channels,
    )


def factor_harmonics(E: ArrayLike, sphere: Sphere, mean: ArrayLike) -> Factors:
    """The parameters of `LiftedModel.from_harmonics`."""
    degree = sphere.known_degree
    r = np.sqrt(2 * np.arange(degree + 1) + 1.0) / (degree + 1)
    scale = math.sqrt(4 * math.pi) / (degree + 1)
    return Factors(
        sphere,
        np.array(mean, dtype=np.float64),
        scale,
        np.array(E, dtype=np.float64),
        RotationGroup(degree),
        r,
        "linear",
    )
