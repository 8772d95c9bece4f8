"""MATLAB 5 files, read here and not by scipy, whose reader can be brought to a segmentation fault by a damaged file."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from symlift.errors import InputError
from symlift.runs.readers.table import Table, check_rows, choose

__all__ = ["read_mat"]

_MAT_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_MAT_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
_MAT_MATRIX, _MAT_COMPRESSED, _MAT_SPARSE, _MAT_COMPLEX = 14, 15, 5, 0x800


class _MatMatrix(NamedTuple):
    """The parts of one variable: what it is, its shape and name, and where its numbers are."""

    kind: int
    complex: bool
    shape: tuple[int, ...]
    name: str
    values: tuple[int, memoryview] | None


def _mat_elements(data: memoryview, order: str, whole: bool = True) -> Iterator[tuple[int, memoryview]]:
    """(type, content) of the elements in ``data``; the last one may be cut short unless ``whole``."""
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


def read_mat(path: Path, key: str | None) -> Table:
    data = memoryview(path.read_bytes())
    start = bytes(data[:520])
    if start.startswith(b"MATLAB 7.3") or b"\x89HDF\r\n\x1a\n" in start:
        raise InputError(f"{path} is a MATLAB 7.3 (HDF5) file: save it with -v7, or as .npy")
    order = {b"IM": "<", b"MI": ">"}.get(start[126:128])
    if order is None:
        raise InputError(f"{path} is damaged or not a MATLAB 5 file: save it with -v7, or as .npy")
    found = {}
    for kind, content in _mat_elements(data[128:], order):
        if kind == _MAT_COMPRESSED:  # the name is near the beginning
            inside = memoryview(zlib.decompressobj().decompress(content, 65_536))[8:]
        elif kind == _MAT_MATRIX:
            inside = content
        else:
            continue
        name = _mat_matrix(inside, order, whole=False).name
        if name:  # MATLAB keeps things of its own without one
            found[name] = (kind, content)
    name = choose(path, key, found)
    kind, content = found[name]
    if kind == _MAT_COMPRESSED:
        content = next(_mat_elements(memoryview(zlib.decompress(content)), order))[1]
    matrix = _mat_matrix(content, order)
    if matrix.kind == _MAT_SPARSE:
        raise InputError(f"{path} holds a sparse matrix: save it with full({name})")
    if matrix.kind not in _MAT_CLASSES:
        raise InputError(f"{path}, variable {name}, is not a matrix of numbers: save a plain one")
    check_rows(path, matrix.shape, np.dtype(complex) if matrix.complex else np.dtype(_MAT_CLASSES[matrix.kind]))
    if matrix.values is None or min(matrix.shape) < 0:
        raise ValueError("no values")
    # MATLAB stores whole numbers in the smallest type that holds them
    values = np.frombuffer(matrix.values[1], order + _MAT_STORED[matrix.values[0]])
    return Table(values.astype(_MAT_CLASSES[matrix.kind]).reshape(matrix.shape, order="F"))
