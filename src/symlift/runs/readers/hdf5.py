"""HDF5 files (``.h5``, ``.hdf5``) and MATLAB 7.3, which is HDF5 with transposed arrays.

Needs the extra ``data``.  Links to other files, and data stored in them, are not followed.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError
from symlift.runs.readers.inflate import check_packed
from symlift.runs.readers.options import ReadOptions, listed
from symlift.runs.readers.table import SeveralError, Sheet, check_rows, extra
from symlift.storage.bounds import check_size

__all__ = [
    "check_dataset",
    "datasets_of",
    "open_hdf5",
    "read_dataset",
    "read_hdf5",
    "read_mat73",
    "within",
]

_MOST_OBJECTS, _DEEPEST = 20_000, 32


def open_hdf5(path: Path) -> Any:
    """Open the file for reading."""
    return extra("h5py", path).File(path, "r")


def read_hdf5(path: Path, options: ReadOptions) -> Sheet:
    with open_hdf5(path) as file:
        return Sheet.of(read_dataset(path, _chosen(path, file, options.key)))


def read_mat73(path: Path, options: ReadOptions) -> Sheet:
    with open_hdf5(path) as file:
        dataset = _chosen(path, file, options.key, skip=("#refs#", "#subsystem#"))
        kind = dataset.attrs.get("MATLAB_class", b"")
        name = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
        if name in ("char", "cell", "struct", "function_handle") or "MATLAB_empty" in dataset.attrs:
            what = "empty" if "MATLAB_empty" in dataset.attrs else f"a {name}"
            raise InputError(
                f"{path}, variable {dataset.name[1:]}, is {what}, not a matrix of numbers: save a"
                " plain one"
            )
        return Sheet.of(read_dataset(path, dataset, turned=True))


def datasets_of(path: Path, file: Any, skip: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return all numeric data sets with at least one axis by path, without following links."""
    h5py = extra("h5py", path)
    datasets: dict[str, Any] = {}
    todo: list[tuple[Any, str, int]] = [(file, "", 0)]
    seen = 0
    while todo:
        group, where, depth = todo.pop()
        for name in group:
            seen += 1
            if seen > _MOST_OBJECTS or depth > _DEEPEST:
                raise InputError(
                    f"{path} holds more than {_MOST_OBJECTS:,} objects, or nests them deeply:"
                    " choose one with --key"
                )
            if name in skip or not isinstance(group.get(name, getlink=True), h5py.HardLink):
                continue
            item = group[name]
            if isinstance(item, h5py.Group):
                todo.append((item, f"{where}/{name}", depth + 1))
            elif (
                isinstance(item, h5py.Dataset)
                and item.shape is not None
                and item.dtype.kind in "fiub"
                and item.ndim
            ):
                datasets[f"{where}/{name}"] = item
    return dict(sorted(datasets.items()))


def within(path: Path, group: Any, name: str) -> Any:
    """Return what a group itself holds under ``name``; None where there is nothing.

    Links are refused: they may lead to another file, and that may be any file of the system.
    """
    h5py = extra("h5py", path)
    link = group.get(name, getlink=True, default=None)
    if link is None:
        return None
    if not isinstance(link, h5py.HardLink):
        where = f"{group.name.strip('/')}/{name}".lstrip("/")
        raise InputError(
            f"{path}, {where} is a link, which is not followed: save the data themselves in the"
            " file"
        )
    return group[name]


def check_dataset(path: Path, dataset: Any, what: str = "the array") -> None:
    """Refuse data that are kept in other files, or whose declared size is beyond the limits."""
    if dataset.external or dataset.is_virtual:
        raise InputError(
            f"{path}, {dataset.name} is kept in other files, which are not followed: save it in one"
            " file"
        )
    stored, itemsize = dataset.id.get_storage_size(), dataset.dtype.itemsize
    size = math.prod(int(s) for s in dataset.shape) * itemsize
    check_size(path, size, min(stored, path.stat().st_size), what=what)
    # a chunk is unpacked whole, however little of it is asked for
    chunk = math.prod(dataset.chunks or (0,)) * itemsize
    check_size(path, chunk, stored, what=f"{what} in smaller chunks")
    if dataset.compression == "gzip":
        # filters that come before it in reading change the order of bytes, not their number
        for i in range(dataset.id.get_num_chunks()):
            offset = dataset.id.get_chunk_info(i).chunk_offset
            _, packed = dataset.id.read_direct_chunk(offset)
            check_packed(path, "zlib", packed, chunk)


def read_dataset(path: Path, dataset: Any, turned: bool = False) -> NDArray:
    """Read the rows of a data set, after checking where they are and the size they declare."""
    shape = tuple(int(s) for s in (dataset.shape[::-1] if turned else dataset.shape))
    check_rows(path, shape, dataset.dtype)
    check_dataset(path, dataset)
    values: NDArray = np.asarray(dataset[()])
    return values.T if turned else values


def _chosen(path: Path, file: Any, key: str | None, skip: tuple[str, ...] = ()) -> Any:
    h5py = extra("h5py", path)
    if key is not None:
        link, parts = file, [part for part in key.split("/") if part]
        for part in parts:
            if not isinstance(link, h5py.Group) or part not in link:
                link = None
                break
            if not isinstance(link.get(part, getlink=True), h5py.HardLink):
                raise InputError(
                    f"{path}, {key} is a link, which is not followed: give the path of the data"
                    " themselves"
                )
            link = link[part]
        if isinstance(link, h5py.Dataset) and parts:
            if link.shape is None:
                raise InputError(f"{path}, {key} is empty: choose another one with --key")
            return link
    available = datasets_of(path, file, skip)
    sizes = [f"{name} ({'x'.join(map(str, item.shape))})" for name, item in available.items()]
    if key is not None:
        raise InputError(
            f"{path} has no array {key!r}: choose one with --key, from {listed(sizes) or 'none'}"
        )
    tables = [item for item in available.values() if item.ndim == 2]
    if not available:
        raise InputError(f"{path} holds no arrays of numbers: save one as a plain data set")
    if len(tables) > 1 or (not tables and len(available) > 1):
        raise SeveralError(path, "array", sizes)
    return tables[0] if tables else next(iter(available.values()))
