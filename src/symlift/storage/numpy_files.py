"""Files of numpy that come from anywhere: what their headers say is checked before it is believed.

`numpy.load` makes room for the array that a header declares, whatever follows, and a memory map of
objects takes the file's bytes for addresses.
"""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from symlift.storage.bounds import check_size
from symlift.storage.plain_files import open_regular

__all__ = ["UNREADABLE", "NpyHeader", "is_numeric", "read_array", "read_arrays"]

#: what reading such a file may raise
UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    MemoryError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
)


def is_numeric(dtype: np.dtype[Any]) -> bool:
    """Whether entries are plain real numbers, of at most eight bytes.

    >>> is_numeric(np.dtype("f4")), is_numeric(np.dtype("O")), is_numeric(np.dtype("(3,)i2"))
    (True, False, False)
    """
    return dtype.kind in "fiub" and 0 < dtype.itemsize <= 8


class NpyHeader:
    """What the head of an ``.npy`` file declares; ValueError where it is none.

    Parameters
    ----------
    file : binary file, at its start
    size : bytes of the whole file
    """

    def __init__(self, file: IO[bytes], size: int) -> None:
        first, second = np.lib.format.read_magic(file)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get((first, second))
        if read is None:  # later versions differ in the names of fields only
            raise ValueError(f"version {first}.{second} of the npy format")
        try:
            self.shape, _, self.dtype = read(file)
        except (ValueError, OSError, EOFError):
            raise
        except Exception as error:  # it is parsed as Python, which fails in many ways
            raise ValueError(f"{type(error).__name__} in the header") from None
        if any(s < 0 for s in self.shape):
            raise ValueError(f"shape {self.shape}")
        self.needed = math.prod(self.shape) * self.dtype.itemsize
        self.available = size - file.tell()

    def check(self) -> None:
        """Raise ValueError where there are no numbers, or fewer than are declared."""
        if not is_numeric(self.dtype):
            raise ValueError(f"entries of type {self.dtype}"[:80])
        if self.available < self.needed:
            raise ValueError(f"{self.available} of {self.needed} bytes are there")


def read_array(path: Path) -> NDArray:
    """Read an ``.npy`` file of numbers; ValueError where it is none."""
    with os.fdopen(open_regular(path), "rb") as file:
        header = NpyHeader(file, os.fstat(file.fileno()).st_size)
        header.check()
        check_size(path, header.needed)
        file.seek(0)
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def read_arrays(
    path: Path,
    names: Iterable[str] | None = None,
    most: int | None = None,
    opened: Callable[[Path], int] = open_regular,
) -> dict[str, NDArray]:
    """Read arrays of numbers from an ``.npz`` file: those of ``names`` that it holds, or all.

    ValueError where one is none, or where they take more than ``most`` bytes.
    """
    out = {}
    with os.fdopen(opened(path), "rb") as stream, zipfile.ZipFile(stream) as archive:
        members = {
            one.filename.removesuffix(".npy"): one
            for one in archive.infolist()
            if one.filename.endswith(".npy")
        }
        wanted = [name for name in (members if names is None else names) if name in members]
        total = sum(members[name].file_size for name in wanted)
        if most is not None and total > most:
            raise ValueError("too large")
        # no more than what the file itself has is behind it, whatever its directory says
        check_size(path, total, os.fstat(stream.fileno()).st_size, what="the arrays")
        for name in wanted:
            with archive.open(members[name]) as file:
                NpyHeader(file, members[name].file_size).check()
            with archive.open(members[name]) as file:
                out[name] = np.asarray(np.lib.format.read_array(file, allow_pickle=False))
                file.read(1)  # at the end of a member zipfile compares its checksum
    return out
