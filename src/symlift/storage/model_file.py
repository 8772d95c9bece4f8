"""A lifted model as two files: ``model.safetensors`` for its numbers, ``model.json`` for the rest.

Version 1 (symlift 0.1) has explicit planes and one channel; version 2 adds channels, and sparse embeddings into a torus.  Both are
read.  Loading never runs code.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.group import TranslationGroup
from symlift.core.model import LiftedModel
from symlift.core.torus import TorusGroup
from symlift.errors import InputError
from symlift.storage.atomic import sha256_of, write_atomically

__all__ = ["FORMAT_VERSION", "MODEL_FILES", "load_model", "save_model"]

FORMAT_VERSION = 2
MODEL_FILES = ("model.safetensors", "model.json")
_FORMAT = "symlift-lifted-model"
_SPARSE = ("data", "indices", "indptr")


def save_model(model: LiftedModel, folder: str | os.PathLike[str]) -> None:
    """Write the model's two files into ``folder``, each under a temporary name and then renamed."""
    from safetensors.numpy import save_file

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with write_atomically(folder / "model.safetensors") as temporary:
        save_file({name: np.ascontiguousarray(value) for name, value in _tensors(model).items()}, temporary)
        digest = sha256_of(temporary)
    header = {
        "format": _FORMAT, "version": FORMAT_VERSION, "grid": list(model.grid.shape), "periodic": list(model.grid.periodic),
        "confidence": model.grid.confidence, "scale": model.scale, "embedding": model.kind, "columns": model.n_features,
        "channels": model.channels, "torus": list(model.group.shape) if isinstance(model.group, TorusGroup) else None,
        "sha256": digest,
    }  # fmt: skip
    with write_atomically(folder / "model.json") as temporary:
        temporary.write_text(json.dumps(header, indent=1) + "\n")


def _tensors(model: LiftedModel) -> dict[str, NDArray]:
    tensors = {"mean": model.mean}
    if model.is_sparse:
        E = model.E.tocsr()
        tensors |= {f"E.{name}": getattr(E, name) for name in _SPARSE}
    else:
        tensors["E"] = model.E
    if isinstance(model.group, TranslationGroup):
        tensors |= {"Q": model.group.Q, "theta": model.group.theta, "r": model.r}
    return tensors


def load_model(folder: str | os.PathLike[str]) -> LiftedModel:
    """Read what :func:`save_model` wrote; a file that is not what it should be is named in the error."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    folder = Path(folder)
    header_path, tensor_path = folder / "model.json", folder / "model.safetensors"
    for path in (header_path, tensor_path):
        if not path.is_file():
            raise InputError(f"{path} is missing: {folder} is not a saved symlift model")
    try:
        header = json.loads(header_path.read_text())
        version = int(header["version"])
        if header["format"] != _FORMAT:
            raise InputError(f"{header_path} is not a symlift model: its format is {header['format']!r}")
        if version > FORMAT_VERSION:
            raise InputError(
                f"{header_path} has format version {version}, this symlift reads up to {FORMAT_VERSION}: upgrade symlift"
            )
        grid = Grid(tuple(header["grid"]), tuple(header["periodic"]), header["confidence"])
        digest = str(header["sha256"])
        float(header["scale"])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{header_path} is damaged ({type(error).__name__}): save the model again") from None
    if sha256_of(tensor_path) != digest:
        raise InputError(f"{tensor_path} is truncated or does not belong to {header_path.name}: save the model again")
    try:
        return _model(grid, header, load_file(tensor_path))
    except (SafetensorError, KeyError) as error:
        raise InputError(f"{tensor_path} cannot be read ({error}): save the model again") from None


def _model(grid: Grid, header: dict[str, Any], parts: dict[str, NDArray]) -> LiftedModel:
    torus, channels = header.get("torus"), int(header.get("channels", 1))
    group: TranslationGroup | TorusGroup
    group = TorusGroup(tuple(int(n) for n in torus)) if torus else TranslationGroup(parts["Q"], parts["theta"])
    E: Any = parts.get("E")
    if E is None:
        from scipy.sparse import csr_array

        arrays = tuple(parts[f"E.{name}"] for name in _SPARSE)
        E = csr_array(arrays, shape=(channels * group.dimension, int(header["columns"])))
    r = np.zeros(0) if torus else parts["r"]
    return LiftedModel(grid, parts["mean"], float(header["scale"]), E, group, r, header["embedding"], channels)
