"""MATLAB files of versions 4 and 5 to 7.2; version 7.3 is HDF5.

They are parsed here because damaged files make the reader of scipy crash with a segmentation fault.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError
from symlift.runs.readers.hdf5 import read_mat73
from symlift.runs.readers.options import ReadOptions
from symlift.runs.readers.table import Sheet, check_rows, choose_key
from symlift.storage.bounds import check_size

__all__ = ["read_mat"]

_MAT_STORED = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
_MAT_CLASSES = {
    6: "f8",
    7: "f4",
    8: "i1",
    9: "u1",
    10: "i2",
    11: "u2",
    12: "i4",
    13: "u4",
    14: "i8",
    15: "u8",
}
_MAT_4 = {0: "f8", 1: "f4", 2: "i4", 3: "i2", 4: "u2", 5: "u1"}
_MAT_MATRIX, _MAT_COMPRESSED, _MAT_SPARSE, _MAT_COMPLEX = 14, 15, 5, 0x800


class _MatMatrix(NamedTuple):
    """The parts of a variable: kind, shape, name and the position of its numbers."""

    kind: int
    complex: bool
    shape: tuple[int, ...]
    name: str
    values: tuple[int, memoryview] | None


def _mat_elements(
    data: memoryview, order: str, whole: bool = True
) -> Iterator[tuple[int, memoryview]]:
    """(type, content) of the elements in ``data``; unless ``whole``, the last may be cut short."""
    at = 0
    while at + 8 <= len(data):
        kind, size = (int(v) for v in np.frombuffer(data[at : at + 8], f"{order}u4"))
        start = at + 8
        if kind >> 16:  # up to four bytes fit into the tag
            kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
            if size > 4:
                raise ValueError("bad element")
        content = data[start : start + size]
        if whole and len(content) < size:
            raise ValueError("an element is cut short")
        yield kind, content
        at = max(at + 8, start + size)
        at += 0 if kind == _MAT_COMPRESSED else -at % 8


def _mat_matrix(data: memoryview, order: str, whole: bool = True) -> _MatMatrix:
    parts = _mat_elements(data, order, whole)
    flags = int(np.frombuffer(next(parts)[1], f"{order}u4")[0])
    shape = tuple(int(s) for s in np.frombuffer(next(parts)[1], f"{order}i4"))
    name = bytes(next(parts)[1]).decode("ascii")
    return _MatMatrix(flags & 0xFF, bool(flags & _MAT_COMPLEX), shape, name, next(parts, None))


def read_mat(path: Path, options: ReadOptions) -> Sheet:
    """Read a variable of a ``.mat`` file of any version."""
    with path.open("rb") as file:
        start = file.read(520)
    if start.startswith(b"MATLAB 7.3") or b"\x89HDF\r\n\x1a\n" in start:
        return read_mat73(path, options)
    check_size(path, path.stat().st_size, what="the variable")
    data = memoryview(path.read_bytes())
    order = {b"IM": "<", b"MI": ">"}.get(start[126:128])
    if order is not None:
        return Sheet.of(_read_version_5(path, data, order, options.key))
    order = next((mark for mark in "<>" if _is_version_4(data, mark)), None)
    if order is not None:
        return Sheet.of(_read_version_4(path, data, order, options.key))
    raise InputError(f"{path} is damaged or not a MATLAB file: save it with -v7, or as .npy")


def _read_version_5(path: Path, data: memoryview, order: str, key: str | None) -> NDArray:
    variables = {}
    for kind, content in _mat_elements(data[128:], order):
        if kind == _MAT_COMPRESSED:  # the name is near the beginning
            inside = memoryview(zlib.decompressobj().decompress(content, 65_536))[8:]
        elif kind == _MAT_MATRIX:
            inside = content
        else:
            continue
        name = _mat_matrix(inside, order, whole=False).name
        if name:  # MATLAB keeps things of its own without one
            variables[name] = (kind, content)
    name = choose_key(path, key, variables)
    kind, content = variables[name]
    if kind == _MAT_COMPRESSED:
        content = _inflated(path, content, order)
    matrix = _mat_matrix(content, order)
    if matrix.kind == _MAT_SPARSE:
        raise InputError(f"{path} holds a sparse matrix: save it with full({name})")
    if matrix.kind not in _MAT_CLASSES:
        raise InputError(f"{path}, variable {name}, is not a matrix of numbers: save a plain one")
    dtype = np.dtype(_MAT_CLASSES[matrix.kind])
    check_rows(path, matrix.shape, np.dtype(complex) if matrix.complex else dtype)
    if matrix.values is None or min(matrix.shape) < 0:
        raise ValueError("no values")
    check_size(path, math.prod(matrix.shape) * dtype.itemsize, what="the variable")
    # MATLAB stores whole numbers in the smallest type that holds them
    values = np.frombuffer(matrix.values[1], order + _MAT_STORED[matrix.values[0]])
    return values.astype(dtype).reshape(matrix.shape, order="F")


def _inflated(path: Path, content: memoryview, order: str) -> memoryview:
    """Decompress a variable up to its declared size, which is checked first."""
    stream = zlib.decompressobj()
    start = stream.decompress(content, 65_536)
    declared = int(np.frombuffer(start[4:8], f"{order}u4")[0]) + 8
    check_size(path, declared, len(content), what="the variable")
    rest = stream.decompress(stream.unconsumed_tail, max(declared - len(start), 1))
    return next(_mat_elements(memoryview(start + rest)[:declared], order))[1]


# -- version 4: a header of five integers, a name, the numbers -------------------------------------


def _is_version_4(data: memoryview, order: str) -> bool:
    if len(data) < 20:
        return False
    kind, rows, columns, imaginary, length = (
        int(v) for v in np.frombuffer(data[:20], f"{order}i4")
    )
    own = 0 if order == "<" else 1
    digits = divmod(kind, 1000)[0] == own and 0 <= kind % 1000 <= 52 and 0 < length < 256
    return digits and rows >= 0 and columns >= 0 and imaginary in (0, 1)


class _Variable4(NamedTuple):
    kind: int  # 0 numbers, 1 text, 2 sparse
    shape: tuple[int, int]
    imaginary: bool
    stored: str
    values: memoryview


def _variables_4(data: memoryview, order: str) -> Iterator[tuple[str, _Variable4]]:
    at = 0
    while at < len(data):
        if not _is_version_4(data[at:], order):
            raise ValueError("a variable is cut short")
        kind, rows, columns, imaginary, length = (
            int(v) for v in np.frombuffer(data[at : at + 20], f"{order}i4")
        )
        name = bytes(data[at + 20 : at + 20 + length]).split(b"\0")[0].decode("ascii")
        stored = _MAT_4[kind % 1000 // 10]
        start = at + 20 + length
        at = start + rows * columns * np.dtype(stored).itemsize * (1 + imaginary)
        if at > len(data):
            raise ValueError("a variable is cut short")
        yield name, _Variable4(kind % 10, (rows, columns), bool(imaginary), stored, data[start:at])


def _read_version_4(path: Path, data: memoryview, order: str, key: str | None) -> NDArray:
    variables = dict(_variables_4(data, order))
    name = choose_key(path, key, variables)
    variable = variables[name]
    if variable.kind == 2:
        raise InputError(f"{path} holds a sparse matrix: save it with full({name})")
    if variable.kind != 0:
        raise InputError(f"{path}, variable {name}, is not a matrix of numbers: save a plain one")
    check_rows(path, variable.shape, np.dtype(complex) if variable.imaginary else np.dtype(float))
    check_size(path, 8 * math.prod(variable.shape), what="the variable")
    values = np.frombuffer(variable.values, order + variable.stored)
    return values.astype(np.float64).reshape(variable.shape, order="F")
