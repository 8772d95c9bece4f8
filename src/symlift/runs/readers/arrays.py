"""Arrays of numpy: ``.npy`` as a memory map, ``.npz``; and ``.zarr``.  Never a pickle."""

from __future__ import annotations

import json
import math
import zipfile
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError
from symlift.runs.readers.table import Table, check_rows, choose, extra

__all__ = ["read_npy", "read_npz", "read_zarr"]


def _check_npy_header(path: Path, file: IO[bytes], size: int) -> None:
    """Look at the header only, so that nothing is allocated for a file that cannot be right."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    else:  # later versions differ in the names of fields only
        raise InputError(
            f"{path} has version {version[0]}.{version[1]} of the npy format: save a plain array of numbers"
        )
    if any(s < 0 for s in shape):
        raise ValueError(f"shape {shape}")
    check_rows(path, shape, dtype)
    needed, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if there < needed:
        raise InputError(f"{path} is truncated: {there} of {needed} bytes of data are there; write it again")


def read_npy(path: Path, _: str | None) -> Table:
    with path.open("rb") as file:
        _check_npy_header(path, file, path.stat().st_size)
    return Table(np.load(path, mmap_mode="r", allow_pickle=False))


def read_npz(path: Path, key: str | None) -> Table:
    with zipfile.ZipFile(path) as archive:
        members = {i.filename.removesuffix(".npy"): i for i in archive.infolist() if i.filename.endswith(".npy")}
        member = members[choose(path, key, members)]
        with archive.open(member) as file:
            _check_npy_header(path, file, member.file_size)
        with archive.open(member) as file:
            rows: NDArray = np.lib.format.read_array(file, allow_pickle=False)
            file.read(1)  # at the end of a member zipfile compares its checksum
    return Table(rows)


def read_zarr(path: Path, key: str | None) -> Table:
    for entry in path.rglob("*"):
        # a codec named in the metadata is run by the library, and one of them is pickle
        if entry.name in (".zarray", ".zgroup", ".zmetadata", "zarr.json") and "pickle" in json.dumps(
            json.loads(entry.read_text(encoding="utf-8")), ensure_ascii=False
        ):
            raise InputError(f"{path} is stored with pickle, which is never loaded: save a plain array of numbers")
    zarr = extra("zarr", path)
    store = zarr.open(str(path), mode="r")
    if not hasattr(store, "shape"):
        store = store[choose(path, key, sorted(str(name) for name, _ in store.arrays()))]
    elif key is not None:
        raise InputError(f"{path} holds one array: leave out --key")
    check_rows(path, tuple(store.shape), np.dtype(store.dtype))
    return Table(np.asarray(store[...]))
