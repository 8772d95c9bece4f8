"""Files of data: rows from what people have.  No format here can run code (no pickle, ever).

Whatever is wrong with a file becomes one line, an :class:`~symlift.errors.InputError` that names the file and the remedy.
"""

from __future__ import annotations

import hashlib
import os
import stat
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from numpy.typing import NDArray

from symlift.errors import InputError
from symlift.runs.readers.table import Table, brief, check_rows

__all__ = ["READABLE", "Table", "check_file", "content_hash", "read_rows", "read_table"]

_KEYED = (".npz", ".mat", ".zarr")
# suffix → module and function; a format's own imports are made only where it is read
_READERS = {
    ".npy": ("arrays", "read_npy"), ".npz": ("arrays", "read_npz"), ".csv": ("text", "read_csv"),
    ".parquet": ("parquet", "read_parquet"), ".mat": ("matlab", "read_mat"), ".zarr": ("arrays", "read_zarr"),
}  # fmt: skip
READABLE = tuple(_READERS)


def read_rows(path: str | os.PathLike[str], key: str | None = None) -> NDArray:
    """The rows (n, d) of a data file; a memmap where the format allows it (``.npy``).

    ``key`` chooses among several arrays of an ``.npz``, ``.mat`` or ``.zarr``.
    """
    return read_table(path, key).rows


def read_table(path: str | os.PathLike[str], key: str | None = None) -> Table:
    """:func:`read_rows` with the names of the columns."""
    path = Path(path)
    suffix = path.suffix.lower()
    check_file(path, suffix)
    if key is not None and suffix not in _KEYED:
        raise InputError(f"{path} holds one table: leave out --key, which is for {', '.join(_KEYED)}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a parser has to say about a file is said in our own words below
            table = _reader(suffix)(path, key)
    except InputError:
        raise
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text: save it again as UTF-8") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or brief(error)}): check the file") from None
    except Exception as error:  # parsers of foreign bytes raise anything from KeyError to RecursionError
        raise InputError(
            f"{path} is truncated, damaged or not a {suffix} file ({brief(error)}): write it again"
        ) from None
    check_rows(path, table.rows.shape, table.rows.dtype)
    return table


def check_file(path: Path, suffix: str) -> None:
    """Refuse what is not there, not a file, empty, or of an unknown kind; nothing is read."""
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


def _reader(suffix: str) -> Callable[[Path, str | None], Table]:
    module, function = _READERS[suffix]
    reader: Callable[[Path, str | None], Table] = getattr(import_module(f"{__name__}.{module}"), function)
    return reader


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
