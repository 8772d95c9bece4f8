"""A lifted model as two files: ``model.safetensors`` for its numbers, ``model.json`` for the rest.

Version 1 (symlift 0.1) has explicit planes and one channel; version 2 adds channels, sparse
embeddings into a torus, and a digest over both files; a model on a sphere names its degree and has
version 3, which older versions of symlift refuse.  All are read.  Loading never runs code.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from symlift.core.model import LiftedModel
from symlift.core.sphere import Sphere
from symlift.core.torus import TorusGroup
from symlift.errors import InputError
from symlift.storage.atomic import sha256_of, write_atomically
from symlift.storage.model_check import (
    FORMAT,
    FORMAT_VERSION,
    SPARSE,
    checked_header,
    checked_model,
    digest_of,
)
from symlift.storage.plain_files import NotPlainError
from symlift.storage.strict_json import read_json

__all__ = ["FORMAT_VERSION", "HEADER", "MODEL_FILES", "PARTS_FILE", "load_model", "save_model"]

HEADER = "model.json"
MODEL_FILES = ("model.safetensors", HEADER)
#: what a folder has instead of a model, where it holds those of several parts
PARTS_FILE = "parts.json"
_MOST_HEADER = 2**20


def save_model(model: LiftedModel, folder: str | os.PathLike[str]) -> None:
    """Write a model's two files, ``model.safetensors`` and ``model.json``, into a folder.

    Parameters
    ----------
    model : LiftedModel
        The model to write.
    folder : str or os.PathLike
        Where to write it; made if it does not exist.  Each file is written under a temporary name
        and then renamed, so that it appears whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> from symlift import Grid, LiftedModel
    >>> model = LiftedModel.from_lifting_map(np.eye(5), Grid((5,), periodic=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, folder)
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['model.json', 'model.safetensors']
    """
    from safetensors.numpy import save

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with write_atomically(folder / "model.safetensors") as temporary:
        # save_file would put another file in the place of the temporary one
        tensors = {name: np.ascontiguousarray(value) for name, value in _tensors(model).items()}
        temporary.write_bytes(save(tensors))
        digest = sha256_of(temporary)
    on_sphere = isinstance(model.grid, Sphere)
    header = {
        "format": FORMAT,
        "version": FORMAT_VERSION if on_sphere else 2,
        "grid": list(model.grid.shape),
        "periodic": list(model.grid.periodic),
        "confidence": None if model.grid.confidence is None else float(model.grid.confidence),
        "scale": float(model.scale),
        "embedding": model.kind,
        "columns": model.n_features,
        "channels": model.channels,
        "torus": list(model.group.shape) if isinstance(model.group, TorusGroup) else None,
        "sha256": digest,
    }
    if isinstance(model.grid, Sphere):
        header["sphere"] = model.grid.known_degree
        if model.grid.axes:
            header["axes"] = True
    with write_atomically(folder / "model.json") as temporary:
        temporary.write_text(
            json.dumps(header | {"digest": digest_of(header)}, indent=1, allow_nan=False) + "\n"
        )


def _tensors(model: LiftedModel) -> dict[str, NDArray]:
    tensors = {"mean": model.mean}
    if model.is_sparse:
        E = model.E.tocsr()
        tensors |= {f"E.{name}": getattr(E, name) for name in SPARSE}
    else:
        tensors["E"] = model.E
    return tensors | model.group.tensors() | ({"r": model.r} if model.r.size else {})


def load_model(folder: str | os.PathLike[str]) -> LiftedModel:
    """Read and check a model that ``save_model`` or ``LatentDomain.save`` wrote.

    Parameters
    ----------
    folder : str or os.PathLike
        The folder with ``model.safetensors`` and ``model.json``.

    Returns
    -------
    LiftedModel
        The model, checked: shapes, finite numbers, orthogonal planes, a filter of norm 1.

    Raises
    ------
    InputError
        If a file is missing, damaged or does not hold a model; the message names the problem.

    Examples
    --------
    >>> import tempfile
    >>> from symlift import Grid, LiftedModel
    >>> model = LiftedModel.from_lifting_map(np.eye(5), Grid((5,), periodic=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, folder)
    ...     again = load_model(folder)
    >>> again.grid == model.grid, np.allclose(again.lifting_map(), model.lifting_map())
    (True, True)
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    folder = Path(folder)
    header_path, tensor_path = folder / "model.json", folder / "model.safetensors"
    for path in (header_path, tensor_path):
        if not os.path.lexists(path):
            raise InputError(f"{path} is missing: {folder} is not a saved symlift model")
    try:
        raw = read_json(header_path, _MOST_HEADER)
    except (OSError, ValueError) as error:
        if isinstance(error, NotPlainError):
            raise
        raise InputError(
            f"{header_path} is damaged ({_brief(error)}): save the model again"
        ) from None
    header = checked_header(raw, str(header_path))
    try:
        if sha256_of(tensor_path) != header.sha256:
            raise InputError(
                f"{tensor_path} is truncated or does not belong to {header_path.name}: save the"
                " model again"
            )
        parts = load_file(tensor_path)
    # tensor types that numpy lacks, such as eight-bit floats, raise errors of many kinds
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{tensor_path} cannot be read ({_brief(error)}): save the model again"
        ) from None
    try:
        return checked_model(header, parts)
    except InputError as error:
        raise InputError(f"{folder} holds no sound model: {error}; save the model again") from None


def _brief(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__
