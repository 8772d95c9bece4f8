"""Write rows to files in slices: the file appears whole at the end, or not at all."""

from __future__ import annotations

import csv
import errno
import io
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from symlift.errors import InputError
from symlift.runs.readers.table import check_rows, extra
from symlift.storage.atomic import write_atomically, write_folder_atomically
from symlift.storage.csv_cells import safe_cell

__all__ = ["WRITABLE", "RowSink", "check_writable", "open_rows", "write_rows"]

WRITABLE = (".npy", ".npz", ".csv", ".tsv", ".parquet", ".zarr")
_NEEDS = {".parquet": "pyarrow.parquet", ".zarr": "zarr"}
_CHUNK = 16 << 20  # bytes


class RowSink:
    """Write slices of rows to a file, in order, assigned as to an array (``sink[0:9] = rows``)."""

    def __init__(
        self, shape: tuple[int, int], dtype: DTypeLike, write: Callable[[NDArray], Any]
    ) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self.done = 0
        self._write = write

    def __setitem__(self, part: slice, rows: ArrayLike) -> None:
        block = np.ascontiguousarray(rows, dtype=self.dtype)
        start, stop, _ = part.indices(self.shape[0])
        if start != self.done or block.shape != (stop - start, self.shape[1]):
            raise ValueError(
                f"rows {start}:{stop} of shape {block.shape} do not follow row {self.done} of"
                f" {self.shape}"
            )
        self._write(block)
        self.done = stop


def check_writable(path: Path) -> None:
    """Refuse a suffix that cannot be written, a missing folder, or a missing package."""
    suffix = path.suffix.lower()
    if suffix not in WRITABLE:
        raise InputError(
            f"{path} has a suffix that cannot be written: use one of {', '.join(WRITABLE)}"
        )
    if path.is_dir() and suffix != ".zarr":
        raise InputError(f"{path} is a folder: give the name of a file")
    if not path.parent.is_dir():
        raise InputError(
            f"{path} cannot be written, its folder {path.parent} does not exist: make it first"
        )
    if suffix in _NEEDS:
        extra(_NEEDS[suffix], path)


@contextmanager
def open_rows(
    path: str | os.PathLike[str],
    shape: tuple[int, int],
    dtype: DTypeLike = np.float64,
    key: str = "rows",
    names: Sequence[str] | None = None,
) -> Iterator[RowSink]:
    """Open a file of a kind in ``WRITABLE`` as a `RowSink`; it appears whole or not at all.

    Formats with named columns get ``names``.
    """
    path, dtype = Path(path), np.dtype(dtype)
    check_writable(path)
    with ExitStack() as stack:
        write = _OPEN[path.suffix.lower()](path, shape, dtype, key, names, stack)
        sink = RowSink(shape, dtype, write)
        yield sink
        if sink.done != shape[0]:
            raise ValueError(f"{path}: {sink.done} of {shape[0]} rows were written")


_Write = Callable[[NDArray], Any]


def _open_npy(
    path: Path,
    shape: tuple[int, int],
    dtype: np.dtype,
    key: str,
    _: Sequence[str] | None,
    stack: ExitStack,
) -> _Write:
    temporary = stack.enter_context(write_atomically(path))
    file: IO[bytes]
    if path.suffix.lower() == ".npz":
        archive = stack.enter_context(zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED))
        file = stack.enter_context(archive.open(f"{key}.npy", "w", force_zip64=True))
    else:
        file = stack.enter_context(temporary.open("wb"))
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return lambda block: file.write(block.view(np.uint8).data)


def _open_text(
    path: Path,
    _: tuple[int, int],
    dtype: np.dtype,
    __: str,
    names: Sequence[str] | None,
    stack: ExitStack,
) -> _Write:
    temporary = stack.enter_context(write_atomically(path))
    file = stack.enter_context(temporary.open("wb"))
    digits = "%.9g" if dtype == np.float32 else "%.17g" if dtype.kind == "f" else "%d"
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    if names is not None:
        line = io.StringIO()
        csv.writer(line, delimiter=delimiter, lineterminator="\n").writerow(
            [safe_cell(name) for name in names]
        )
        file.write(line.getvalue().encode())
    return lambda block: np.savetxt(file, block, fmt=digits, delimiter=delimiter)


def _open_parquet(
    path: Path,
    shape: tuple[int, int],
    dtype: np.dtype,
    _: str,
    names: Sequence[str] | None,
    stack: ExitStack,
) -> _Write:
    arrow, parquet = extra("pyarrow", path), extra("pyarrow.parquet", path)
    labels = list(names) if names is not None else [f"x{i}" for i in range(shape[1])]
    schema = arrow.schema([(label, arrow.from_numpy_dtype(dtype)) for label in labels])
    temporary = stack.enter_context(write_atomically(path))
    writer = stack.enter_context(parquet.ParquetWriter(temporary, schema))
    return lambda block: writer.write_table(
        arrow.table([arrow.array(np.ascontiguousarray(c)) for c in block.T], schema=schema)
    )


def _open_zarr(
    path: Path,
    shape: tuple[int, int],
    dtype: np.dtype,
    _: str,
    __: Sequence[str] | None,
    stack: ExitStack,
) -> _Write:
    """Make the array in a temporary folder, which takes the place of an earlier one at the end."""
    zarr = extra("zarr", path)
    temporary = stack.enter_context(write_folder_atomically(path))
    rows = max(1, min(shape[0], _CHUNK // max(shape[1] * dtype.itemsize, 1)))
    with _own_errors(path):
        temporary.mkdir()
        array = zarr.open(
            str(temporary), mode="w", shape=shape, dtype=dtype, chunks=(rows, shape[1])
        )
    done = 0

    def write(block: NDArray) -> None:
        nonlocal done
        with _own_errors(path):
            array[done : done + len(block)] = block
        done += len(block)

    return write


@contextmanager
def _own_errors(path: Path) -> Iterator[None]:
    """Raise a failure of the system as such: zarr makes a KeyError of it."""
    try:
        yield
    except KeyError as error:
        reason = error.__context__
        number = reason.errno if isinstance(reason, OSError) else None
        raise OSError(number or errno.EIO, os.strerror(number or errno.EIO), str(path)) from None


_OPEN = {
    ".npy": _open_npy,
    ".npz": _open_npy,
    ".csv": _open_text,
    ".tsv": _open_text,
    ".parquet": _open_parquet,
    ".zarr": _open_zarr,
}


def write_rows(path: str | os.PathLike[str], array: ArrayLike, key: str = "rows") -> None:
    """Write rows (n, d) to a file of a kind in ``WRITABLE``, whole or not at all."""
    rows = np.asarray(array)
    check_rows(Path(path), rows.shape, rows.dtype)
    with open_rows(path, (rows.shape[0], rows.shape[1]), rows.dtype, key) as sink:
        sink[0 : len(rows)] = rows
