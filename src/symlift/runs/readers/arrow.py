"""Tables of Apache Parquet, Feather and Arrow (extra ``data``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError
from symlift.runs.readers.inflate import arrow_sizes
from symlift.runs.readers.options import ReadOptions, column_name
from symlift.runs.readers.table import Other, Sheet, extra
from symlift.storage.bounds import check_size

__all__ = ["read_arrow", "read_parquet"]


def read_parquet(path: Path, _: ReadOptions) -> Sheet:
    parquet = extra("pyarrow.parquet", path)
    with parquet.ParquetFile(path) as file:
        texts = [
            file.schema.column(i).path
            for i in range(file.metadata.num_columns)
            if file.schema.column(i).physical_type == "BYTE_ARRAY"
        ]
    # a text that is stored once stays one, however many rows have it
    with parquet.ParquetFile(path, read_dictionary=texts) as file:
        meta = file.metadata
        if meta.num_rows < 0:
            raise ValueError("rows")
        check_size(path, meta.num_rows * meta.num_columns * 8, path.stat().st_size)
        declared = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
        check_size(path, declared, path.stat().st_size)
        return _sheet(path, _gathered(path, file))


def _gathered(path: Path, file: Any) -> Any:
    """The table of a Parquet file, piece by piece: what it declares may be less than it holds."""
    from pyarrow import Table

    batches, total = [], 0
    for batch in file.iter_batches():
        total += batch.nbytes
        check_size(path, total, path.stat().st_size)
        batches.append(batch)
    return Table.from_batches(batches, None if batches else file.schema_arrow)


def read_arrow(path: Path, _: ReadOptions) -> Sheet:
    ipc = extra("pyarrow.ipc", path)
    with path.open("rb") as file:
        start = file.read(6)
    if start.startswith(b"FEA1"):
        raise InputError(
            f"{path} is a Feather file of version 1: write it again as version 2, or as .parquet"
        )
    # a file is a stream between two marks; its table of contents, at the end, is not needed
    skip = 8 if start == b"ARROW1" else 0
    if skip:
        with ipc.open_file(str(path)):
            pass  # refuses a file that was cut short
    _check_messages(path, ipc, skip)
    with extra("pyarrow", path).memory_map(str(path)) as file:
        file.seek(skip)
        with ipc.open_stream(file) as reader:
            table = reader.read_all()
            # offsets and indices are used as they are, and wrong ones read beyond the buffers
            table.validate(full=True)
            return _sheet(path, table)


def _check_messages(path: Path, ipc: Any, skip: int) -> None:
    """Add up what all messages unpack to, before any of them is."""
    stored, total = path.stat().st_size, 0
    with extra("pyarrow", path).memory_map(str(path)) as file:
        file.seek(skip)
        columns = len(ipc.read_schema(file))
        while True:
            try:
                message = ipc.read_message(file)
            except EOFError:
                return
            if message is None:
                return
            total += arrow_sizes(message, columns)
            check_size(path, total, stored)


def _sheet(path: Path, table: Any) -> Sheet:
    """Numbers, dates and texts of an arrow table; the index of a data frame is not data."""
    chosen = [
        i for i, name in enumerate(table.column_names) if not name.startswith("__index_level_")
    ]
    names = tuple(str(table.column_names[i]) for i in chosen)
    at, columns, others = [], [], {}
    for j, i in enumerate(chosen):
        column = table.column(i)
        values = _numbers(column)
        if values is None:
            others[j] = _other(path, names, j, column)
        elif column.null_count == len(column) > 0:
            others[j] = Other("empty", [])
        else:
            at.append(j)
            columns.append(values)
    if not chosen:
        raise InputError(f"{path} has no columns: give data that is not empty")
    kind = np.result_type(*columns) if columns else np.dtype(float)
    check_size(path, table.num_rows * max(len(columns), 1) * kind.itemsize)
    rows = np.column_stack(columns) if columns else np.empty((table.num_rows, 0))
    return Sheet(rows, len(chosen), tuple(at), names, others)


def _numbers(column: Any) -> NDArray | None:
    """A column of numbers, NaN where it has none; None where it holds something else."""
    from pyarrow import bool_, float64, types

    kind = column.type
    if types.is_boolean(kind) or types.is_null(kind):
        column = (
            column.cast(float64())
            if types.is_null(kind) or column.null_count
            else column.cast(bool_())
        )
    elif types.is_decimal(kind) or types.is_float16(kind):
        column = column.cast(float64())
    elif not (types.is_integer(kind) or types.is_floating(kind)):
        return None
    if column.null_count and not types.is_floating(column.type):
        column = column.cast(float64(), safe=False)
    values: NDArray = column.to_numpy()
    return values


def _shared(column: Any) -> list[str]:
    """Entries of a column that refers to a list of texts: each text once."""
    entries: list[str] = []
    for chunk in column.chunks:
        texts = chunk.dictionary.to_pylist()
        entries += [("" if i is None else texts[i] or "") for i in chunk.indices.to_pylist()]
    return entries


def _other(path: Path, names: tuple[str, ...], j: int, column: Any) -> Other:
    from pyarrow import string, types

    kind = column.type
    if types.is_dictionary(kind):
        kind = kind.value_type
        if types.is_string(kind) or types.is_large_string(kind):
            return Other("text", _shared(column))
        column = column.cast(kind)
    if types.is_temporal(kind) and not types.is_duration(kind):
        entries = ["" if v is None else v for v in column.cast(string()).to_pylist()]
        return Other("dates", [entry.rstrip("Z") for entry in entries])
    if types.is_string(kind) or types.is_large_string(kind):
        return Other("text", ["" if v is None else v for v in column.to_pylist()])
    raise InputError(
        f"{path}, column {column_name(names, j)} holds {kind}, which is no plain number: make"
        " columns of numbers of it, or write the file without it"
    )
