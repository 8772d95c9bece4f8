"""Kinds of files by their first bytes, and standard input as a file."""

from __future__ import annotations

import mmap
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from symlift.errors import InputError

__all__ = ["STDIN", "kind_by_start", "local_file"]

STDIN = Path("-")
_STARTS = (
    (b"\x93NUMPY", (".npy",)),
    (b"PAR1", (".parquet", ".feather")),
    (b"ARROW1", (".arrow", ".feather")),
    (b"FEA1", (".feather", ".arrow")),
    (b"\x89HDF\r\n\x1a\n", (".h5", ".hdf5", ".nwb", ".mat")),
    (b"MATLAB 5.0 MAT-file", (".mat",)),
    (b"MATLAB 7.3 MAT-file", (".mat", ".h5", ".hdf5")),
    (b"PK\x03\x04", (".npz", ".xlsx", ".zip")),
    (b"\x1f\x8b\x08", (".gz",)),
    (b"BZh9", (".bz2",)),
    (b"\xfd7zXZ\x00", (".xz",)),
    (b"\x28\xb5\x2f\xfd", (".zst",)),
)


def kind_by_start(start: bytes) -> tuple[str, ...] | None:
    """Return the suffixes that fit these first bytes, the likeliest first; None for text."""
    return next((kinds for mark, kinds in _STARTS if start.startswith(mark)), None)


@contextmanager
def local_file(path: Path) -> Iterator[Path]:
    """Yield ``path``; for ``-`` a temporary file with the content of standard input.

    Error messages then name standard input, and the temporary file is removed.
    """
    if path != STDIN:
        yield path
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError(
            "nothing comes by standard input: pipe the data in, as in `cat x.csv | symlift"
            " recover -`"
        )
    with tempfile.TemporaryDirectory(prefix="symlift-") as folder:
        raw = Path(folder) / "raw"
        with raw.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        with raw.open("rb") as file:
            kind = (kind_by_start(file.read(64)) or (".csv",))[0]
            if kind == ".npz":  # both are archives, which may be large
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages:
                    kind = ".npz" if pages.find(b"xl/workbook.xml") < 0 else ".xlsx"
        named = raw.rename(raw.with_name(f"stdin{kind}"))
        try:
            yield named
        except InputError as error:
            raise InputError(str(error).replace(str(named), "standard input")) from None
