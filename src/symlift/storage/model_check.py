"""Checks of a model that was read from a file, before anything is computed with it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from symlift.core.embedding import EmbeddingKind
from symlift.core.grid import MAX_AXES, Grid
from symlift.core.group import TranslationGroup
from symlift.core.model import LiftedModel
from symlift.core.representation import Representation
from symlift.core.rotations import RotationGroup
from symlift.core.sphere import MAX_DEGREE, Sphere
from symlift.core.torus import TorusGroup
from symlift.errors import InputError

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "SPARSE",
    "ModelHeader",
    "checked_header",
    "checked_model",
    "digest_of",
]

FORMAT, FORMAT_VERSION = "symlift-lifted-model", 3
#: the arrays of a sparse embedding, as scipy names them
SPARSE = ("data", "indices", "indptr")

# Trained planes and filters are orthogonal and of norm 1 to single precision; what was tampered
# with is not.
_ORTHOGONAL, _NORM = 1e-3, 1e-3
# a grid may be finer than the space behind it, within reason: this many points for each dimension
_FINEST = 16
_LONGEST = 2**31

_Length = Annotated[int, Field(ge=1, lt=_LONGEST)]
_Lengths = Annotated[list[_Length], Field(min_length=1, max_length=MAX_AXES)]


class ModelHeader(BaseModel):
    """Content of ``model.json``; version 1 lacks columns, channels, torus and digest, and version 3
    is a model on a sphere.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal["symlift-lifted-model"]
    version: Annotated[int, Field(ge=1, le=FORMAT_VERSION)]
    grid: _Lengths
    periodic: list[bool]
    confidence: Annotated[float | None, Field(ge=0, le=1)]
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    embedding: EmbeddingKind
    columns: _Length | None = None
    channels: _Length = 1
    torus: _Lengths | None = None
    sphere: Annotated[int, Field(ge=1, le=MAX_DEGREE)] | None = None
    axes: bool = False
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    digest: str | None = None


def digest_of(header: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a header, which includes the hash of the tensors."""
    content = {key: value for key, value in header.items() if key != "digest"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def checked_header(raw: Any, where: str) -> ModelHeader:
    """Return the header in ``raw``, which was read from the file ``where``, after checking it."""
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        named = raw.get("format") if isinstance(raw, dict) else type(raw).__name__
        raise InputError(f"{where} is not a symlift model: its format is {str(named)[:40]!r}")
    version = raw.get("version")
    if type(version) is int and version > FORMAT_VERSION:
        raise InputError(
            f"{where} has format version {version}, this symlift reads up to {FORMAT_VERSION}:"
            " upgrade symlift"
        )
    try:
        header = ModelHeader.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])[:60]
        raise InputError(
            f"{where} is damaged, {name}: {first['msg']}; save the model again"
        ) from None
    if header.version >= 2 and header.digest != digest_of(raw):
        raise InputError(
            f"{where} was changed after it was written (its digest differs): save the model again"
        )
    return header


def checked_model(header: ModelHeader, parts: Mapping[str, NDArray]) -> LiftedModel:
    """Build the model of a header and its tensors; an InputError names the first defect."""
    grid: Grid | Sphere
    if header.sphere is None:
        grid = Grid(header.grid, header.periodic, header.confidence)
    else:
        grid = Sphere(header.sphere, header.confidence, header.axes)
    group = _group(header, grid, parts)
    channels, D = header.channels, group.dimension
    if grid.size > _FINEST * D:
        raise InputError(f"the grid {grid} has more points than {D} dimensions can distinguish")
    expected = {"mean"} | ({"E"} if "E" in parts else {f"E.{name}" for name in SPARSE})
    expected |= {*group.tensors(), *(("r",) if group.filter_size else ())}
    if set(parts) != expected:
        raise InputError(
            f"it holds the tensors {', '.join(sorted(parts))[:120]} instead of"
            f" {', '.join(sorted(expected))}"
        )
    for name, value in parts.items():
        if value.dtype.kind != "f" and name not in ("E.indices", "E.indptr"):
            raise InputError(f"{name} has the type {value.dtype}, where real numbers are needed")
    if not all(np.isfinite(value).all() for value in parts.values()):
        raise InputError("the model's parameters hold NaN or infinity")
    E = parts["E"] if "E" in parts else _sparse(header, parts, channels * D)
    r = parts["r"] if group.filter_size else np.zeros(0)
    model = LiftedModel(grid, parts["mean"], header.scale, E, group, r, header.embedding, channels)
    if header.columns not in (None, model.n_features):
        raise InputError(
            f"it names {header.columns} columns, but its embedding has {model.n_features}"
        )
    _check_numbers(model)
    return model


def _group(
    header: ModelHeader, grid: Grid | Sphere, parts: Mapping[str, NDArray]
) -> Representation:
    if isinstance(grid, Sphere):
        if header.torus is not None or header.channels != 1 or tuple(header.grid) != grid.shape:
            raise InputError(f"its header contradicts the {grid}")
        return RotationGroup(grid.known_degree)
    if header.torus is None:
        if "Q" not in parts or "theta" not in parts:
            raise InputError("Q or theta is missing")
        return TranslationGroup(parts["Q"], parts["theta"])
    around = zip(grid.shape, grid.periodic, header.torus, strict=False)
    if len(header.torus) != grid.ndim or any(t != n if wraps else t < n for n, wraps, t in around):
        raise InputError(f"a torus of {header.torus} does not hold the grid {grid}")
    return TorusGroup(tuple(header.torus))


def _sparse(header: ModelHeader, parts: Mapping[str, NDArray], rows: int) -> Any:
    """Return the sparse embedding after checking its indices, which compiled code trusts."""
    from scipy.sparse import csr_array

    data, indices, indptr = (parts[f"E.{name}"] for name in SPARSE)
    columns = header.columns or 0
    sound = (
        all(a.ndim == 1 for a in (data, indices, indptr))
        and indices.dtype.kind == indptr.dtype.kind == "i"
    )
    sound = sound and len(indptr) == rows + 1 and len(data) == len(indices)
    sound = (
        sound and indptr[0] == 0 and indptr[-1] == len(data) and bool((np.diff(indptr) >= 0).all())
    )
    if not sound or indices.min(initial=0) < 0 or indices.max(initial=0) >= columns:
        raise InputError("the sparse embedding E is inconsistent")
    return csr_array((data, indices, indptr), shape=(rows, columns))


def _check_numbers(model: LiftedModel) -> None:
    """Refuse planes that are not orthogonal, a wrong filter or embedding, and overflowing maps."""
    group = model.group
    if isinstance(group, TranslationGroup):
        Q = group.Q.astype(np.float64)
        # no entry of an orthogonal matrix is above 1; a product with larger ones could overflow
        largest = float(np.abs(Q).max(initial=0.0))
        error = largest if largest > 2 else float(np.abs(Q.T @ Q - np.eye(len(Q))).max(initial=0.0))
        if not error < _ORTHOGONAL:
            raise InputError(f"Q is not orthogonal (QᵀQ differs from the identity by {error:.2g})")
    if group.filter_size:
        norm = float(np.linalg.norm(model.r.astype(np.float64)))
        if not abs(norm - 1) < _NORM:
            raise InputError(f"the filter r has norm {norm:.4g}, where 1 is needed")
    if model.kind != "linear" and (
        model.is_sparse or not np.array_equal(model.E, np.eye(*model.E.shape))
    ):
        raise InputError(f"E is not the {model.kind} embedding that it is said to be")
    if model.kind == "identity" and model.E.shape[0] != model.E.shape[1]:
        raise InputError(
            f"the identity embedding has shape {tuple(model.E.shape)}, where a square is needed"
        )
    largest = float(np.abs(model.E.data if model.is_sparse else model.E).max(initial=0.0))
    gain = largest / model.scale
    # what lifting and its inverse square must neither vanish nor overflow
    if not 0 < gain * gain * model.group.dimension < math.inf:
        raise InputError(
            f"with scale {model.scale:.3g} and entries of E up to {largest:.3g}, signals are zero"
            " or overflow"
        )
