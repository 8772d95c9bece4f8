"""Files of rows, written in slices: the file appears whole at the end, or not at all."""

from __future__ import annotations

import mmap
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from symlift.errors import InputError
from symlift.runs.readers.table import check_rows
from symlift.storage.atomic import write_atomically

__all__ = ["WRITABLE", "RowSink", "check_writable", "forget_pages", "open_rows", "write_rows"]

WRITABLE = (".npy", ".npz", ".csv")


class RowSink:
    """Takes slices of rows in order, as an array would (``sink[0:100] = rows``), and sends them to a file."""

    def __init__(self, shape: tuple[int, int], dtype: DTypeLike, write: Callable[[NDArray], Any]) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.done = 0
        self._write = write

    def __setitem__(self, part: slice, rows: ArrayLike) -> None:
        block = np.ascontiguousarray(rows, dtype=self.dtype)
        start, stop, _ = part.indices(self.shape[0])
        if start != self.done or block.shape != (stop - start, self.shape[1]):
            raise ValueError(
                f"rows {start}:{stop} of shape {block.shape} do not follow row {self.done} of {self.shape}"
            )
        self._write(block)
        self.done = stop


def check_writable(path: Path) -> None:
    """A suffix that can be written, in a folder that exists."""
    if path.suffix.lower() not in WRITABLE:
        raise InputError(f"{path} has a suffix that cannot be written: use one of {', '.join(WRITABLE)}")
    if path.is_dir():
        raise InputError(f"{path} is a folder: give the name of a file")
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written, its folder {path.parent} does not exist: make it first")


@contextmanager
def open_rows(
    path: str | os.PathLike[str], shape: tuple[int, int], dtype: DTypeLike = np.float64, key: str = "rows"
) -> Iterator[RowSink]:
    """A :class:`RowSink` into a ``.npy``, ``.npz`` or ``.csv``; the file appears whole at the end, or not at all."""
    path, dtype = Path(path), np.dtype(dtype)
    check_writable(path)
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    with ExitStack() as stack:
        temporary = stack.enter_context(write_atomically(path))
        file: IO[bytes]
        if path.suffix.lower() == ".npz":
            archive = stack.enter_context(zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED))
            file = stack.enter_context(archive.open(f"{key}.npy", "w", force_zip64=True))
        else:
            file = stack.enter_context(temporary.open("wb"))
        if path.suffix.lower() == ".csv":
            digits = "%.9g" if dtype == np.float32 else "%.17g" if dtype.kind == "f" else "%d"
            sink = RowSink(shape, dtype, lambda block: np.savetxt(file, block, fmt=digits, delimiter=","))
        else:
            np.lib.format.write_array_header_1_0(file, header)
            sink = RowSink(shape, dtype, lambda block: file.write(block.view(np.uint8).data))
        yield sink
        if sink.done != shape[0]:
            raise ValueError(f"{path}: {sink.done} of {shape[0]} rows were written")


def write_rows(path: str | os.PathLike[str], array: ArrayLike, key: str = "rows") -> None:
    """Write rows (n, d) to a ``.npy``, ``.npz`` or ``.csv``, whole or not at all."""
    rows = np.asarray(array)
    check_rows(Path(path), rows.shape, rows.dtype)
    with open_rows(path, (rows.shape[0], rows.shape[1]), rows.dtype, key) as sink:
        sink[0 : len(rows)] = rows


def forget_pages(rows: NDArray) -> None:
    """Let go of the pages of a memmap that were read, so that a stream through it does not fill the memory."""
    pages = getattr(rows, "_mmap", None)
    if isinstance(pages, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)
