"""Checkpoints of a whole training run: one safetensors file, tensors by name and the rest as JSON
in its header.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from symlift.errors import InputError
from symlift.storage.atomic import write_atomically
from symlift.storage.plain_files import check_plain
from symlift.storage.strict_json import loads

__all__ = [
    "FORMAT_VERSION",
    "named_under",
    "optimiser_state",
    "read_checkpoint",
    "restore_optimiser",
    "write_checkpoint",
]

# version 1 had no digest
FORMAT_VERSION = 2
_FORMAT = "symlift-training"


def write_checkpoint(path: Path, tensors: dict[str, Tensor], header: dict[str, Any]) -> None:
    """Write under a temporary name, then rename: a run killed at any moment leaves the previous
    checkpoint whole.
    """
    here = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    text = json.dumps(header)
    metadata = {"format": _FORMAT, "version": str(FORMAT_VERSION), "header": text}
    with write_atomically(path) as temporary:
        temporary.write_bytes(save(here, metadata=metadata | {"digest": _digest(here, text)}))


def _digest(tensors: dict[str, Tensor], header: str) -> str:
    """A hash of everything that a checkpoint holds."""
    digest = hashlib.sha256(header.encode())
    for name, value in sorted(tensors.items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _check(tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Raise ValueError where bytes have changed since they were written; in a file without a
    digest, where they are no numbers.
    """
    if int(metadata["version"]) > 1:
        if metadata["digest"] != _digest(tensors, metadata["header"]):
            raise ValueError("its digest is another")
    elif not all(torch.isfinite(value).all() for value in tensors.values()):
        raise ValueError("not finite")


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `write_checkpoint` wrote. Never runs code."""
    try:
        check_plain(path)
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != _FORMAT:
                raise InputError(
                    f"{path} is not a symlift checkpoint: remove it, or start again with"
                    " --overwrite"
                )
            if int(metadata["version"]) > FORMAT_VERSION:
                raise InputError(
                    f"{path} has format version {metadata['version']}, this symlift reads up to"
                    f" {FORMAT_VERSION}: upgrade symlift"
                )
            header: dict[str, Any] = loads(metadata["header"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
            _check(tensors, metadata)
            return tensors, header
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} is damaged ({type(error).__name__}): remove it, or start again with"
            " --overwrite"
        ) from None


def optimiser_state(prefix: str, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """An optimiser's tensors, ``prefix.parameter.name``."""
    state = optimiser.state_dict()["state"]
    return {
        f"{prefix}.{index}.{name}": value
        for index, entry in state.items()
        for name, value in entry.items()
    }


def restore_optimiser(
    prefix: str, optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]
) -> None:
    """Restore what `optimiser_state` returned; learning rates are set by the schedule."""
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        if name.startswith(f"{prefix}."):
            index, entry = name.removeprefix(f"{prefix}.").split(".", 1)
            state.setdefault(int(index), {})[entry] = value
    optimiser.load_state_dict(
        {"state": state, "param_groups": optimiser.state_dict()["param_groups"]}
    )


def named_under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with ``prefix``, under the rest of their names."""
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }
