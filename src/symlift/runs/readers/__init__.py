"""Files of data: rows from what people have.  No format here can run code (no pickle, ever).

Whatever is wrong with a file becomes one line, an :class:`~symlift.errors.InputError` that names the file and the remedy.
"""

from __future__ import annotations

import hashlib
import os
import stat
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from numpy.typing import NDArray

from symlift.errors import InputError
from symlift.runs.readers.options import DEFAULT, ReadOptions
from symlift.runs.readers.table import Sheet, Table, brief, check_rows

__all__ = [
    "READABLE",
    "ReadOptions",
    "Table",
    "check_file",
    "content_hash",
    "read",
    "read_rows",
    "read_sheet",
    "read_table",
]

# suffix → module and function; a format's own imports are made only where it is read
_READERS = {
    ".npy": ("arrays", "read_npy"), ".npz": ("arrays", "read_npz"), ".csv": ("text", "read_text"),
    ".tsv": ("text", "read_text"), ".txt": ("text", "read_text"), ".mat": ("matlab", "read_mat"),
    ".h5": ("hdf5", "read_hdf5"), ".hdf5": ("hdf5", "read_hdf5"), ".nwb": ("nwb", "read_nwb"),
    ".parquet": ("arrow", "read_parquet"), ".feather": ("arrow", "read_arrow"), ".arrow": ("arrow", "read_arrow"),
    ".xlsx": ("workbook", "read_xlsx"), ".zarr": ("arrays", "read_zarr"),
}  # fmt: skip
READABLE = tuple(_READERS)
#: which options say something about which files; the others are for all
_FOR = {
    "key": (".npz", ".mat", ".zarr", ".h5", ".hdf5", ".nwb", ".xlsx"), "bin": (".nwb",), "delimiter": (".csv", ".tsv", ".txt"),
    "decimal": (".csv", ".tsv", ".txt", ".xlsx"), "header": (".csv", ".tsv", ".txt", ".xlsx"),
}  # fmt: skip


def read(
    path: str | os.PathLike[str],
    *,
    key: str | None = None,
    columns: Sequence[str] = (),
    drop: Sequence[str] = (),
    index_col: str | None = None,
    transpose: bool = False,
    keep: bool = False,
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool | None = None,
    bin: float | None = None,  # noqa: A002 - as the command line has it
    nan: str = "pairwise",
) -> Table:
    """Rows of numbers from a data file, with the names of its columns, as ``symlift recover`` reads it.

    Parameters
    ----------
    path : a ``.csv``, ``.tsv``, ``.txt``, ``.npy``, ``.npz`` or ``.mat``; with the extra ``data`` also ``.h5``, ``.nwb``,
        ``.xlsx``, ``.parquet``, ``.feather``, ``.arrow`` and ``.zarr``.
    key : which array, sheet, variable or path of a file that holds several.
    columns, drop : columns to read, and to leave out: names, patterns (``T*``), numbers from 1 on, ranges (``2-9``).
    index_col : the column that labels the rows.
    transpose : whether the file holds samples as columns.
    keep : whether dates (as seconds) and row numbers stay with the data.
    delimiter, decimal, header : how a text file is written; found out where they are None.
    bin : width of the bins that spikes of an ``.nwb`` are counted in, in seconds (0.1).
    nan : what becomes of gaps: "pairwise" leaves them, "drop" leaves out their rows, "mean" fills them in, "refuse" raises.

    Returns
    -------
    Table
        ``rows`` (n, d), ``names`` (d,) or None, and ``notes`` on what was left out or found out; ``to_frame()`` is a pandas
        frame that ``LatentDomain.fit`` takes with its names.
    """
    from symlift.runs.readers.gaps import without_gaps

    if nan not in ("pairwise", "drop", "mean", "refuse"):
        raise InputError(f"nan={nan!r} is unknown: use pairwise, drop, mean or refuse")
    options = ReadOptions(
        key, _strings(columns), _strings(drop), index_col, transpose, keep, delimiter, decimal, header, bin
    )
    return without_gaps(Path(path), read_table(path, options=options), nan)


def _strings(names: Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(str(name) for name in names)


def read_rows(path: str | os.PathLike[str], key: str | None = None) -> NDArray:
    """The rows (n, d) of a data file; a memmap where the format allows it (``.npy``).

    ``key`` chooses among several arrays of an ``.npz``, ``.mat`` or ``.zarr``.
    """
    return read_table(path, key).rows


def read_table(
    path: str | os.PathLike[str],
    key: str | None = None,
    options: ReadOptions = DEFAULT,
    wanted: Sequence[str] | None = None,
) -> Table:
    """The columns that ``options`` ask for, as numbers; ``wanted`` are the names of those that a run was fitted to."""
    from symlift.runs.readers.select import select

    path = Path(path)
    options = (options if key is None else replace(options, key=key)).checked()
    sheet = read_sheet(path, options)
    table = select(path, sheet, options, wanted)
    check_rows(path, table.rows.shape, table.rows.dtype)
    return table


def read_sheet(path: Path, options: ReadOptions) -> Sheet:
    """All that a file holds, before columns are chosen."""
    suffix = path.suffix.lower()
    check_file(path, suffix)
    for name in of_no_use(options, suffix):
        what = "holds one table" if name == "key" else f"has no use for --{name}"
        raise InputError(f"{path} {what}: leave out --{name}, which is for {', '.join(_FOR[name])}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a parser has to say about a file is said in our own words below
            sheet = _reader(suffix)(path, options)
    except InputError:
        raise
    except MemoryError:
        raise InputError(
            f"{path} needs more memory than there is: save it as .npy, which is read as it is needed"
        ) from None
    except OSError as error:
        if error.errno is None:  # a library's own words about the content
            raise _damaged(path, suffix, error) from None
        raise InputError(f"{path} cannot be read ({error.strerror or brief(error)}): check the file") from None
    except Exception as error:  # parsers of foreign bytes raise anything from KeyError to RecursionError
        raise _damaged(path, suffix, error) from None
    if sheet.names is None:
        return sheet
    return replace(
        sheet, names=tuple(" ".join(name.split()) for name in sheet.names)
    )  # headers of spreadsheets have line breaks


def of_no_use(options: ReadOptions, suffix: str) -> list[str]:
    """Options that are given, but say nothing about files of this kind."""
    return [name for name in options.given() if suffix not in _FOR.get(name, READABLE)]


def _damaged(path: Path, suffix: str, error: Exception) -> InputError:
    return InputError(f"{path} is truncated, damaged or not a {suffix} file ({brief(error)}): write it again")


def check_file(path: Path, suffix: str) -> None:
    """Refuse what is not there, not a file, empty, or of an unknown kind; no more than its first bytes are read."""
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        if isinstance(error, PermissionError):
            raise InputError(f"{path} cannot be read ({error.strerror}): check its permissions") from None
        raise InputError(f"{path} does not exist: check the path of the data file") from None
    if suffix not in READABLE:
        _refuse_kind(path, suffix, stat.S_ISDIR(status.st_mode))
    if stat.S_ISDIR(status.st_mode):
        if suffix != ".zarr":
            raise InputError(f"{path} is a folder: give the data file itself ({', '.join(READABLE)})")
    elif not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path} is not a regular file: save the data to a file first, or give - and pipe them in")
    elif suffix == ".zarr":
        raise InputError(f"{path} is a file, but a zarr array is a folder: unpack it first")
    elif status.st_size == 0:
        raise InputError(f"{path} is empty (0 bytes): write it again")
    else:
        _check_start(path, suffix)


def _refuse_kind(path: Path, suffix: str, folder: bool) -> None:
    if suffix in (".gz", ".bz2", ".xz", ".zst", ".zip"):
        raise InputError(
            f"{path} is compressed: unpack it first, or pipe it in ({_unpacker(suffix)} {path} | symlift … -)"
        )
    if suffix in (".xls", ".ods"):
        raise InputError(f"{path} is a spreadsheet of another kind: save it as .xlsx or .csv")
    if suffix in (".pkl", ".pickle", ".joblib", ".pt", ".pth"):
        raise InputError(f"{path} is a pickle, which is never loaded: save the array with numpy.save, as .npy")
    what = "is a folder" if folder else f"has the unknown suffix {suffix!r}"
    raise InputError(f"{path} {what}: give a file of one of the kinds {', '.join(READABLE)}")


def _unpacker(suffix: str) -> str:
    return {".gz": "gunzip -c", ".bz2": "bunzip2 -c", ".xz": "unxz -c", ".zst": "unzstd -c", ".zip": "unzip -p"}[suffix]


def _check_start(path: Path, suffix: str) -> None:
    """A file whose first bytes are of another kind than its name says."""
    from symlift.runs.readers.kinds import kind_by_start

    try:
        with path.open("rb") as file:
            start = file.read(520)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): check the file") from None
    kind = kind_by_start(start)
    if kind is None or suffix in kind:
        return
    if kind[0] not in READABLE:
        raise InputError(f"{path} is compressed ({kind[0]}): unpack it first")
    if suffix in (".csv", ".tsv", ".txt", ".parquet", ".npy", ".npz", ".xlsx", ".feather", ".arrow"):
        raise InputError(f"{path} is not a {suffix} file, but begins as {kind[0]} does: give it that suffix")


def _reader(suffix: str) -> Callable[[Path, ReadOptions], Sheet]:
    module, function = _READERS[suffix]
    reader: Callable[[Path, ReadOptions], Sheet] = getattr(import_module(f"{__name__}.{module}"), function)
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
