"""Data files: read rows from what people have, write rows back.  No format here can run code (no pickle, ever).

Whatever is wrong with a file becomes one line, an :class:`~symlift.errors.InputError` that names the file and the remedy.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import mmap
import os
import re
import stat
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from symlift.errors import InputError
from symlift.lifting import write_atomically

__all__ = [
    "READABLE", "WRITABLE", "RowSink", "Table", "content_hash", "open_rows", "read_rows", "read_table", "write_rows",
]  # fmt: skip

READABLE = (".npy", ".npz", ".csv", ".parquet", ".mat", ".zarr")
WRITABLE = (".npy", ".npz", ".csv")
_KEYED = (".npz", ".mat", ".zarr")
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*([eE][-+]?\d+)?|\.\d+([eE][-+]?\d+)?|nan|inf|infinity)\s*", re.IGNORECASE)


class Table(NamedTuple):
    """Rows (n, d) of numbers, and the names of the columns where the file has them."""

    rows: NDArray
    names: tuple[str, ...] | None = None


def read_rows(path: str | os.PathLike[str], key: str | None = None) -> NDArray:
    """The rows (n, d) of a data file; a memmap where the format allows it (``.npy``).

    ``key`` chooses among several arrays of an ``.npz``, ``.mat`` or ``.zarr``.
    """
    return read_table(path, key).rows


def read_table(path: str | os.PathLike[str], key: str | None = None) -> Table:
    """:func:`read_rows` with the names of the columns."""
    path = Path(path)
    suffix = path.suffix.lower()
    _check_file(path, suffix)
    if key is not None and suffix not in _KEYED:
        raise InputError(f"{path} holds one table: leave out --key, which is for {', '.join(_KEYED)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a parser has to say about a file is said in our own words below
            table = _READERS[suffix](path, key)
    except InputError:
        raise
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text: save it again as UTF-8") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or _brief(error)}): check the file") from None
    except Exception as error:  # parsers of foreign bytes raise anything from KeyError to RecursionError
        raise InputError(
            f"{path} is truncated, damaged or not a {suffix} file ({_brief(error)}): write it again"
        ) from None
    _check_rows(path, table.rows.shape, table.rows.dtype)
    return table


def _check_file(path: Path, suffix: str) -> None:
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        if isinstance(error, PermissionError):
            raise InputError(f"{path} cannot be read ({error.strerror}): check its permissions") from None
        raise InputError(f"{path} does not exist: check the path of the data file") from None
    if suffix not in READABLE:
        what = "is a folder" if stat.S_ISDIR(status.st_mode) else f"has the unknown suffix {suffix!r}"
        raise InputError(f"{path} {what}: give a file of one of the kinds {', '.join(READABLE)}")
    if stat.S_ISDIR(status.st_mode):
        if suffix != ".zarr":
            raise InputError(f"{path} is a folder: give the data file itself ({', '.join(READABLE)})")
    elif not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path} is not a regular file: save the data to a file first")
    elif suffix == ".zarr":
        raise InputError(f"{path} is a file, but a zarr array is a folder: unpack it first")
    elif status.st_size == 0:
        raise InputError(f"{path} is empty (0 bytes): write it again")


def _check_rows(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Two axes, something in them, and numbers."""
    if dtype.kind == "c":
        raise InputError(f"{path} holds complex numbers: save real and imaginary parts as columns of their own")
    if dtype.kind == "O":
        raise InputError(f"{path} holds Python objects, which are never loaded: save a plain array of numbers")
    if dtype.kind not in "fiub":
        what = "text" if dtype.kind in "SU" else f"{dtype} entries" if dtype.names is None else "named fields"
        raise InputError(f"{path} holds {what}, not numbers: save a plain array of numbers")
    if len(shape) != 2:
        size = tuple(int(s) for s in shape)
        if len(size) > 2:
            inner = "x".join(map(str, size[1:]))
            remedy = f"flatten each sample, X.reshape({size[0]}, {math.prod(size[1:])}), and give --grid {inner}"
        else:
            remedy = "save a table with one row a sample, X.reshape(n, d)"
        raise InputError(f"{path} has shape {size}, but rows and columns (n, d) are needed: {remedy}")
    if 0 in shape:
        raise InputError(
            f"{path} has no {'rows' if shape[0] == 0 else 'columns'} (shape {tuple(shape)}): give data that is not empty"
        )


def _brief(error: BaseException) -> str:
    """An exception in a few words on one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:100]}" if text else type(error).__name__


def _choose(path: Path, key: str | None, names: Iterable[str]) -> str:
    """The one array that is meant."""
    there = list(names)
    listed = ", ".join(there[:12]) + (f" and {len(there) - 12} more" if len(there) > 12 else "")
    if not there:
        raise InputError(f"{path} holds no arrays: write it again")
    if key is None:
        if len(there) > 1:
            raise InputError(f"{path} holds several arrays: choose one with --key, from {listed}")
        return there[0]
    if key not in there:
        raise InputError(f"{path} has no array {key!r}: choose one with --key, from {listed}")
    return key


def _extra(module: str, path: Path) -> Any:
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise InputError(
            f"{path} needs {package}, which is not installed: pip install 'symlift[data]', or save it as .npy"
        ) from None


# -- one reader for each format ----------------------------------------------------------------------------------------


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
    _check_rows(path, shape, dtype)
    needed, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if there < needed:
        raise InputError(f"{path} is truncated: {there} of {needed} bytes of data are there; write it again")


def _read_npy(path: Path, _: str | None) -> Table:
    with path.open("rb") as file:
        _check_npy_header(path, file, path.stat().st_size)
    return Table(np.load(path, mmap_mode="r", allow_pickle=False))


def _read_npz(path: Path, key: str | None) -> Table:
    with zipfile.ZipFile(path) as archive:
        members = {i.filename.removesuffix(".npy"): i for i in archive.infolist() if i.filename.endswith(".npy")}
        member = members[_choose(path, key, members)]
        with archive.open(member) as file:
            _check_npy_header(path, file, member.file_size)
        with archive.open(member) as file:
            rows: NDArray = np.lib.format.read_array(file, allow_pickle=False)
            file.read(1)  # at the end of a member zipfile compares its checksum
    return Table(rows)


def _read_csv(path: Path, _: str | None) -> Table:
    delimiter, names, skip = _csv_head(path)
    try:
        # comments: a '#' further down is a mistake and should be told
        rows = np.loadtxt(str(path.resolve()), dtype=np.float64, delimiter=delimiter, skiprows=skip, ndmin=2,
                          comments=None, quotechar='"', encoding="utf-8-sig")  # fmt: skip
    except ValueError as error:
        if not isinstance(error, UnicodeDecodeError):
            _locate_csv_error(path, delimiter, names, skip)
        raise
    if rows.size == 0:
        raise InputError(f"{path} has no rows of numbers: give data that is not empty")
    if names is not None and len(names) != rows.shape[1]:
        raise InputError(f"{path} has {len(names)} names in its header, but {rows.shape[1]} columns: make them agree")
    if names is not None and not names[0] and np.array_equal(rows[:, 0], np.arange(len(rows))):
        raise InputError(
            f"{path} counts its rows in a first column without a name: save it without the index (index=False)"
        )
    return Table(rows, names)


def _csv_head(path: Path) -> tuple[str, tuple[str, ...] | None, int]:
    """Delimiter, names of the columns if the first line has them, and how many lines to skip before the numbers.

    A first line is a header where most of it is not numbers, or where it counts its columns from 0 (as pandas writes).
    """
    with path.open(encoding="utf-8-sig", newline="") as file:
        before, first = 0, ""
        for line in file:
            if line.strip():
                first = line
                break
            before += 1
    delimiter = max(",;\t", key=first.count)
    marked = first.lstrip().startswith("#")
    fields = next(csv.reader([first.lstrip().lstrip("#") if marked else first], delimiter=delimiter), [])
    fields = [field.strip() for field in fields]
    words = sum(1 for field in fields if not _NUMBER.fullmatch(field))
    labels = fields if fields and fields[0] else fields[1:]  # an index has no name
    counts = len(labels) > 2 and labels == [str(i) for i in range(len(labels))]
    if any(fields) and (marked or counts or 2 * words > len(fields)):
        return delimiter, tuple(fields), before + 1
    return delimiter, None, before


def _locate_csv_error(path: Path, delimiter: str, names: tuple[str, ...] | None, skip: int) -> None:
    """Say which line and which column could not be read; returns where all of them look right."""
    width = None if names is None else len(names)
    with path.open(encoding="utf-8-sig", newline="") as file:
        for _ in range(skip):
            next(file)
        reader = csv.reader(file, delimiter=delimiter)
        for fields in reader:
            line = skip + reader.line_num
            if not fields:
                continue
            width = len(fields) if width is None else width
            if len(fields) != width:
                raise InputError(
                    f"{path}, line {line}: {len(fields)} entries where the lines before have {width}: make all rows equally long"
                )
            for column, field in enumerate(fields, start=1):
                if _NUMBER.fullmatch(field):
                    continue
                if not field.strip():
                    raise InputError(f"{path}, line {line}, column {column} is empty: fill it in or drop the row")
                shown = field if len(field) <= 30 else field[:27] + "..."
                comma = delimiter != "," and _NUMBER.fullmatch(field.replace(",", "."))
                remedy = "write decimals with a point" if comma else "correct it or drop the column"
                raise InputError(f"{path}, line {line}, column {column}: {shown!r} is not a number: {remedy}")


def _read_parquet(path: Path, _: str | None) -> Table:
    parquet = _extra("pyarrow.parquet", path)
    table = parquet.read_table(path)
    names, columns = [], []
    for name in table.column_names:
        if name.startswith("__index_level_"):  # the index of a data frame is not data
            continue
        column: NDArray = table.column(name).to_numpy()
        if column.dtype.kind not in "fiub":
            raise InputError(f"{path}, column {name!r} does not hold plain numbers: drop or convert it")
        names.append(str(name))
        columns.append(column)
    if not columns:
        raise InputError(f"{path} has no columns: give data that is not empty")
    return Table(np.column_stack(columns), tuple(names))


# MATLAB 5 files are read here and not by scipy, whose reader can be brought to a segmentation fault by a damaged file.
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


def _read_mat(path: Path, key: str | None) -> Table:
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
    name = _choose(path, key, found)
    kind, content = found[name]
    if kind == _MAT_COMPRESSED:
        content = next(_mat_elements(memoryview(zlib.decompress(content)), order))[1]
    matrix = _mat_matrix(content, order)
    if matrix.kind == _MAT_SPARSE:
        raise InputError(f"{path} holds a sparse matrix: save it with full({name})")
    if matrix.kind not in _MAT_CLASSES:
        raise InputError(f"{path}, variable {name}, is not a matrix of numbers: save a plain one")
    _check_rows(path, matrix.shape, np.dtype(complex) if matrix.complex else np.dtype(_MAT_CLASSES[matrix.kind]))
    if matrix.values is None or min(matrix.shape) < 0:
        raise ValueError("no values")
    # MATLAB stores whole numbers in the smallest type that holds them
    values = np.frombuffer(matrix.values[1], order + _MAT_STORED[matrix.values[0]])
    return Table(values.astype(_MAT_CLASSES[matrix.kind]).reshape(matrix.shape, order="F"))


def _read_zarr(path: Path, key: str | None) -> Table:
    for entry in path.rglob("*"):
        # a codec named in the metadata is run by the library, and one of them is pickle
        if entry.name in (".zarray", ".zgroup", ".zmetadata", "zarr.json") and "pickle" in json.dumps(
            json.loads(entry.read_text(encoding="utf-8")), ensure_ascii=False
        ):
            raise InputError(f"{path} is stored with pickle, which is never loaded: save a plain array of numbers")
    zarr = _extra("zarr", path)
    store = zarr.open(str(path), mode="r")
    if not hasattr(store, "shape"):
        store = store[_choose(path, key, sorted(str(name) for name, _ in store.arrays()))]
    elif key is not None:
        raise InputError(f"{path} holds one array: leave out --key")
    _check_rows(path, tuple(store.shape), np.dtype(store.dtype))
    return Table(np.asarray(store[...]))


_READERS: dict[str, Callable[[Path, str | None], Table]] = {
    ".npy": _read_npy, ".npz": _read_npz, ".csv": _read_csv, ".parquet": _read_parquet, ".mat": _read_mat, ".zarr": _read_zarr,
}  # fmt: skip


def content_hash(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's bytes; of names and bytes in order for a folder (zarr)."""
    path = Path(path)
    try:
        if not path.is_dir():
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        whole = hashlib.sha256()
        for entry in sorted(p for p in path.rglob("*") if p.is_file()):
            whole.update(f"{entry.relative_to(path).as_posix()}\0{content_hash(entry)}\0".encode())
        return whole.hexdigest()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): check the file") from None


# -- writing -----------------------------------------------------------------------------------------------------------


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
    _check_rows(Path(path), rows.shape, rows.dtype)
    with open_rows(path, (rows.shape[0], rows.shape[1]), rows.dtype, key) as sink:
        sink[0 : len(rows)] = rows


def forget_pages(rows: NDArray) -> None:
    """Let go of the pages of a memmap that were read, so that a stream through it does not fill the memory."""
    pages = getattr(rows, "_mmap", None)
    if isinstance(pages, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)
