"""Counts and names of an AnnData, or of anything like one; anndata is never imported."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError

__all__ = ["counts_of", "names_of"]


def names_of(adata: Any) -> list[str] | None:
    """Names of the genes, if there are any."""
    names = getattr(adata, "var_names", None)
    return None if names is None else [str(name) for name in names]


def counts_of(
    adata: Any, columns: list[int], layer: str | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Counts (cells, columns) of some genes, dense, and the counts (cells,) of all others, which
    are not unpacked.
    """
    for name in ("X", "obs", "uns"):
        if not hasattr(adata, name):
            raise InputError(f"{type(adata).__name__} has no .{name}: give an AnnData")
    layers = getattr(adata, "layers", None) or {}
    if layer is not None and layer not in layers:
        raise InputError(f"there is no layer {layer!r}: give one of {', '.join(layers) or 'none'}")
    if layer is None and "counts" in layers:
        layer = "counts"
    where = "X" if layer is None else f"layer {layer!r}"
    table = adata.X if layer is None else layers[layer]
    if table is None or getattr(table, "ndim", 2) != 2:
        raise InputError(f"{where} holds no table of cells and genes: give layer=")
    part = table[:, columns]
    part = part.toarray() if hasattr(part, "toarray") else part
    counts = np.asarray(part, dtype=np.float64)
    if not np.isfinite(counts).all():
        raise InputError(f"{where} holds NaN or infinity: give raw counts, layer=")
    if (counts < 0).any():
        raise InputError(f"{where} holds negative numbers, so it was scaled: give counts, layer=")
    rest = np.asarray(table.sum(axis=1), dtype=np.float64).reshape(len(counts)) - counts.sum(axis=1)
    return counts, np.maximum(rest, 0.0)
