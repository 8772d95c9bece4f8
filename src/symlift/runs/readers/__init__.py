"""Data files: read rows of numbers from the formats people use; no format can run code (no pickle).

Whatever is wrong with a file becomes an `InputError` of one line that names the file and a remedy.
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
from typing import Any

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
    ".npy": ("arrays", "read_npy"),
    ".npz": ("arrays", "read_npz"),
    ".csv": ("text", "read_text"),
    ".tsv": ("text", "read_text"),
    ".txt": ("text", "read_text"),
    ".mat": ("matlab", "read_mat"),
    ".h5": ("hdf5", "read_hdf5"),
    ".hdf5": ("hdf5", "read_hdf5"),
    ".nwb": ("nwb", "read_nwb"),
    ".parquet": ("arrow", "read_parquet"),
    ".feather": ("arrow", "read_arrow"),
    ".arrow": ("arrow", "read_arrow"),
    ".xlsx": ("workbook", "read_xlsx"),
    ".zarr": ("arrays", "read_zarr"),
}
READABLE = tuple(_READERS)
#: which kinds of files an option applies to; options that are not listed apply to all
_FOR = {
    "key": (".npz", ".mat", ".zarr", ".h5", ".hdf5", ".nwb", ".xlsx"),
    "bin": (".nwb",),
    "delimiter": (".csv", ".tsv", ".txt"),
    "decimal": (".csv", ".tsv", ".txt", ".xlsx"),
    "header": (".csv", ".tsv", ".txt", ".xlsx"),
}


def read(
    path: str | os.PathLike[str],
    *,
    key: str | None = None,
    columns: Sequence[str] = (),
    drop: Sequence[str] = (),
    index_col: str | None = None,
    transpose: bool = False,
    keep: bool = False,
    gap: Sequence[float | str] = (),
    delimiter: str | None = None,
    decimal: str | None = None,
    header: bool | None = None,
    bin: float | None = None,  # noqa: A002 - as the command line has it
    nan: str = "pairwise",
) -> Table:
    """Read rows of numbers and column names from a data file, as ``symlift recover`` does.

    Parameters
    ----------
    path : str or os.PathLike
        A ``.csv``, ``.tsv``, ``.txt``, ``.npy``, ``.npz`` or ``.mat`` file; with the extra
        ``data`` also ``.h5``, ``.nwb``, ``.xlsx``, ``.parquet``, ``.feather``, ``.arrow`` and
        ``.zarr``.
    key : str, optional
        Which array, sheet, variable or path to read from a file that holds several.
    columns : sequence of str, default=()
        Columns to read: names, patterns (``T*``), numbers counted from 1, ranges (``2-9``).
        Empty reads all columns.
    drop : sequence of str, default=()
        Columns to leave out, written as for ``columns``.
    index_col : str, optional
        The column that labels the rows; it is not part of the data.
    transpose : bool, default=False
        Whether the file holds samples as columns.
    keep : bool, default=False
        Whether dates (as seconds) and row numbers stay in the data.
    gap : sequence of float or str, default=()
        Numbers that stand for gaps, such as -9999.
    delimiter : str, optional
        What separates the entries of a text file; detected when None.
    decimal : {".", ","}, optional
        Decimal mark of a text file or a workbook; detected when None.
    header : bool, optional
        Whether the first line names the columns; detected when None.
    bin : float, optional
        Width in seconds of the bins in which the spikes of an ``.nwb`` file are counted; 0.1 when
        None.
    nan : {"pairwise", "drop", "mean", "refuse"}, default="pairwise"
        What to do with gaps: leave them as NaN, drop their rows, fill in the column's mean, or
        raise an error.

    Returns
    -------
    Table
        ``rows`` (n, d), ``names`` (d,) or None, and ``notes`` on what was skipped or detected.
        ``to_frame()`` converts it to a pandas frame that ``LatentDomain.fit`` takes.

    Raises
    ------
    InputError
        If the file is missing, damaged, of an unknown kind or does not hold numbers.

    Examples
    --------
    >>> import os, tempfile
    >>> import symlift
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "log.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("a;b\\n1,5;2\\n3;4,5\\n")
    ...     table = symlift.read(path)
    >>> table.rows
    array([[1.5, 2. ],
           [3. , 4.5]])
    >>> table.names, table.notes
    (('a', 'b'), ('numbers have decimal commas',))
    """
    from symlift.runs.readers.gaps import without_gaps

    if nan not in ("pairwise", "drop", "mean", "refuse"):
        raise InputError(f"nan={nan!r} is unknown: use pairwise, drop, mean or refuse")
    options = ReadOptions(
        key,
        _strings(columns),
        _strings(drop),
        index_col,
        transpose,
        keep,
        _strings([gap] if isinstance(gap, int | float) else gap),
        delimiter,
        decimal,
        header,
        bin,
    )
    return without_gaps(Path(path), read_table(path, options=options), nan)


def _strings(names: Sequence[Any]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(str(name) for name in names)


def read_rows(path: str | os.PathLike[str], key: str | None = None) -> NDArray:
    """Read the rows (n, d) of a data file; as a memory map where the format allows it (``.npy``).

    ``key`` chooses among several arrays of an ``.npz``, ``.mat`` or ``.zarr``.
    """
    return read_table(path, key).rows


def read_table(
    path: str | os.PathLike[str],
    key: str | None = None,
    options: ReadOptions = DEFAULT,
    wanted: Sequence[str] | None = None,
) -> Table:
    """Read the columns that ``options`` select; ``wanted`` are the names a run was fitted to."""
    from symlift.runs.readers.marks import with_marks
    from symlift.runs.readers.select import select

    path = Path(path)
    options = (options if key is None else replace(options, key=key)).checked()
    sheet = read_sheet(path, options)
    table = with_marks(path, select(path, sheet, options, wanted), options.gap)
    check_rows(path, table.rows.shape, table.rows.dtype)
    return table


def read_sheet(path: Path, options: ReadOptions) -> Sheet:
    """Read everything a file holds, before columns are selected."""
    suffix = path.suffix.lower()
    check_file(path, suffix)
    for name in of_no_use(options, suffix):
        reason = "holds one table" if name == "key" else f"has no use for --{name}"
        raise InputError(
            f"{path} {reason}: leave out --{name}, which is for {', '.join(_FOR[name])}"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # problems are reported below, in our own words
            sheet = _reader(suffix)(path, options)
    except InputError:
        raise
    except MemoryError:
        raise InputError(
            f"{path} needs more memory than there is: save it as .npy, which is read as it is"
            " needed"
        ) from None
    except OSError as error:
        if error.errno is None:  # raised by a library about the content, not by the system
            raise _damaged(path, suffix, error) from None
        raise InputError(
            f"{path} cannot be read ({error.strerror or brief(error)}): check the file"
        ) from None
    except Exception as error:  # parsers raise anything from KeyError to RecursionError
        raise _damaged(path, suffix, error) from None
    if sheet.names is None:
        return sheet
    # headers of spreadsheets may contain line breaks
    return replace(sheet, names=tuple(" ".join(name.split()) for name in sheet.names))


def of_no_use(options: ReadOptions, suffix: str) -> list[str]:
    """Return the options that were given but do not apply to files of this kind."""
    return [name for name in options.given() if suffix not in _FOR.get(name, READABLE)]


def _damaged(path: Path, suffix: str, error: Exception) -> InputError:
    return InputError(
        f"{path} is truncated, damaged or not a {suffix} file ({brief(error)}): write it again"
    )


def check_file(path: Path, suffix: str) -> None:
    """Refuse a path that is missing, not a file, empty or of an unknown kind.

    Only the first bytes are read.
    """
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        if isinstance(error, PermissionError):
            raise InputError(
                f"{path} cannot be read ({error.strerror}): check its permissions"
            ) from None
        raise InputError(f"{path} does not exist: check the path of the data file") from None
    if suffix not in READABLE:
        _refuse_kind(path, suffix, stat.S_ISDIR(status.st_mode))
    if stat.S_ISDIR(status.st_mode):
        if suffix != ".zarr":
            raise InputError(
                f"{path} is a folder: give the data file itself ({', '.join(READABLE)})"
            )
    elif not stat.S_ISREG(status.st_mode):
        raise InputError(
            f"{path} is not a regular file: save the data to a file first, or give - and pipe"
            " them in"
        )
    elif suffix == ".zarr":
        raise InputError(f"{path} is a file, but a zarr array is a folder: unpack it first")
    elif status.st_size == 0:
        raise InputError(f"{path} is empty (0 bytes): write it again")
    else:
        _check_start(path, suffix)


def _refuse_kind(path: Path, suffix: str, folder: bool) -> None:
    if suffix in (".gz", ".bz2", ".xz", ".zst", ".zip"):
        raise InputError(
            f"{path} is compressed: unpack it first, or pipe it in ({_unpacker(suffix)} {path} |"
            " symlift … -)"
        )
    if suffix in (".xls", ".ods"):
        raise InputError(f"{path} is a spreadsheet of another kind: save it as .xlsx or .csv")
    if suffix in (".pkl", ".pickle", ".joblib", ".pt", ".pth"):
        raise InputError(
            f"{path} is a pickle, which is never loaded: save the array with numpy.save, as .npy"
        )
    problem = "is a folder" if folder else f"has the unknown suffix {suffix!r}"
    raise InputError(f"{path} {problem}: give a file of one of the kinds {', '.join(READABLE)}")


def _unpacker(suffix: str) -> str:
    return {
        ".gz": "gunzip -c",
        ".bz2": "bunzip2 -c",
        ".xz": "unxz -c",
        ".zst": "unzstd -c",
        ".zip": "unzip -p",
    }[suffix]


def _check_start(path: Path, suffix: str) -> None:
    """Refuse a file whose first bytes contradict its suffix."""
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
    if suffix in (
        ".csv",
        ".tsv",
        ".txt",
        ".parquet",
        ".npy",
        ".npz",
        ".xlsx",
        ".feather",
        ".arrow",
    ):
        raise InputError(
            f"{path} is not a {suffix} file, but begins as {kind[0]} does: give it that suffix"
        )


def _reader(suffix: str) -> Callable[[Path, ReadOptions], Sheet]:
    module, function = _READERS[suffix]
    reader: Callable[[Path, ReadOptions], Sheet] = getattr(
        import_module(f"{__name__}.{module}"), function
    )
    return reader


def content_hash(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's bytes; for a folder (zarr), of names and bytes in order."""
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
