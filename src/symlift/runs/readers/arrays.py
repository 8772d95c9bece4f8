"""Arrays of numpy: ``.npy`` as a memory map, ``.npz``; and ``.zarr``.  Never a pickle."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError
from symlift.runs.readers.inflate import PACKERS, check_packed
from symlift.runs.readers.options import ReadOptions
from symlift.runs.readers.table import Sheet, check_rows, choose_key, extra
from symlift.storage.bounds import check_size
from symlift.storage.numpy_files import NpyHeader
from symlift.storage.plain_files import is_plain_file, is_plain_folder

__all__ = ["check_zarr", "read_npy", "read_npz", "read_zarr"]

_CODECS = frozenset(
    [
        "blosc",
        "zlib",
        "gzip",
        "zstd",
        "lz4",
        "lzma",
        "bz2",
        "shuffle",
        "delta",
        "fixedscaleoffset",
        "astype",
        "packbits",
        "quantize",
        "bitround",
        "crc32",
        "crc32c",
        "adler32",
        "bytes",
        "transpose",
        "sharding_indexed",
    ]
)


def _check_npy_header(path: Path, file: IO[bytes], size: int) -> None:
    """Look at the header only, so that nothing is allocated for a file that cannot be right."""
    header = NpyHeader(file, size)
    check_rows(path, header.shape, header.dtype)
    if header.available < header.needed:
        raise InputError(
            f"{path} is truncated: {header.available} of {header.needed} bytes of data are there;"
            " write it again"
        )


def read_npy(path: Path, _: ReadOptions) -> Sheet:
    with path.open("rb") as file:
        _check_npy_header(path, file, path.stat().st_size)
    return Sheet.of(np.load(path, mmap_mode="r", allow_pickle=False))


def read_npz(path: Path, options: ReadOptions) -> Sheet:
    with zipfile.ZipFile(path) as archive:
        members = {
            i.filename.removesuffix(".npy"): i
            for i in archive.infolist()
            if i.filename.endswith(".npy")
        }
        member = members[choose_key(path, options.key, members)]
        check_size(
            path, member.file_size, min(member.compress_size, path.stat().st_size), what="the array"
        )
        with archive.open(member) as file:
            _check_npy_header(path, file, member.file_size)
        with archive.open(member) as file:
            rows: NDArray = np.lib.format.read_array(file, allow_pickle=False)
            file.read(1)  # at the end of a member zipfile compares its checksum
    return Sheet.of(rows)


def read_zarr(path: Path, options: ReadOptions) -> Sheet:
    for _ in check_zarr(path):
        pass
    zarr = extra("zarr", path)
    store = zarr.open(str(path), mode="r")
    if not hasattr(store, "shape"):
        store = store[
            choose_key(path, options.key, sorted(str(name) for name, _ in store.arrays()))
        ]
    elif options.key is not None:
        raise InputError(f"{path} holds one array: leave out --key")
    shape, dtype = tuple(int(s) for s in store.shape), np.dtype(store.dtype)
    check_rows(path, shape, dtype)
    stored = sum(entry.stat().st_size for entry in path.rglob("*") if entry.is_file())
    check_size(path, math.prod(shape) * dtype.itemsize, stored, what="the array")
    # a chunk is unpacked whole, however little of it is asked for
    check_size(
        path,
        math.prod(int(s) for s in store.chunks) * dtype.itemsize,
        stored,
        what="the array in smaller chunks",
    )
    _check_chunks(path)
    return Sheet.of(np.asarray(store[...]))


def _check_chunks(path: Path) -> None:
    """Refuse chunks that unpack to far more than their array declares."""
    for header in path.rglob(".zarray"):
        meta = json.loads(header.read_text(encoding="utf-8"))
        if any(name in PACKERS for name in _codecs({"filters": meta.get("filters")})):
            raise InputError(f"{path} is packed more than once: save the array again")
        packer = next(_codecs({"compressor": meta.get("compressor")}), "")
        if packer not in PACKERS:
            continue
        declared = math.prod(meta["chunks"]) * np.dtype(meta["dtype"]).itemsize
        for entry in header.parent.rglob("*"):
            if not entry.name.startswith(".") and entry.is_file():
                check_packed(path, packer, entry.read_bytes(), declared)


def check_zarr(path: Path, codecs: Collection[str] | None = _CODECS) -> Iterator[Any]:
    """Yield each piece of a folder's metadata; refuse what leads out of it, and pickles.

    A codec named in the metadata is run by the library: only those of ``codecs``; any if None.
    """
    for entry in path.rglob("*"):
        # what would lead out of the folder, or is no file: a link in it, a pipe
        if not (is_plain_file(entry) or is_plain_folder(entry)):
            raise InputError(
                f"{path} holds {entry.relative_to(path)}, a link or a pipe, which is not followed:"
                " copy the array with what it holds"
            )
        if entry.name not in (".zarray", ".zattrs", ".zgroup", ".zmetadata", "zarr.json"):
            continue
        check_size(entry, 20 * entry.stat().st_size)
        meta = json.loads(entry.read_text(encoding="utf-8"))
        yield meta
        if entry.name == ".zattrs":  # the user's own
            continue
        # a separator goes into the names of files: "/../" would leave the folder
        if any(mark not in (".", "/") for mark in _separators(meta)):
            raise InputError(
                f"{path} separates the numbers of its chunks by neither '.' nor '/': save the array"
                " again"
            )
        for codec in _codecs(meta):
            if "pickle" in codec:
                raise InputError(
                    f"{path} is stored with pickle, which is never loaded: save a plain array of"
                    " numbers"
                )
            if codecs is not None and codec not in codecs:
                raise InputError(
                    f"{path} is stored with {codec[:40]!r}, which is not read: save a plain array"
                    " of numbers"
                )


def _separators(meta: Any) -> Iterator[Any]:
    """What separates the numbers in chunks' names, anywhere in the metadata of version 2 or 3."""
    if isinstance(meta, dict):
        for key, value in meta.items():
            if key in ("dimension_separator", "separator") and value is not None:
                yield value
            yield from _separators(value)
    elif isinstance(meta, list):
        for value in meta:
            yield from _separators(value)


def _codecs(meta: Any) -> Iterator[str]:
    """Names of all codecs in the metadata of zarr, of version 2 ("id") or 3 ("name" among
    "codecs").
    """
    if isinstance(meta, dict):
        for key, value in meta.items():
            if key in ("compressor", "filters", "codecs", "index_codecs"):
                yield from (
                    str(c.get("id", c.get("name", "")))
                    for c in (value if isinstance(value, list) else [value])
                    if c
                )
            yield from _codecs(value)
    elif isinstance(meta, list):
        for value in meta:
            yield from _codecs(value)
