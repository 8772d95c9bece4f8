"""Tables of Apache Parquet, Feather and Arrow (extra ``data``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError
from symlift.runs.readers.bounds import check_size
from symlift.runs.readers.options import ReadOptions, column_name
from symlift.runs.readers.table import Other, Sheet, extra

__all__ = ["read_arrow", "read_parquet"]


def read_parquet(path: Path, _: ReadOptions) -> Sheet:
    parquet = extra("pyarrow.parquet", path)
    with parquet.ParquetFile(path) as file:
        meta = file.metadata
        if meta.num_rows < 0:
            raise ValueError("rows")
        check_size(path, meta.num_rows * meta.num_columns * 8, path.stat().st_size)
        declared = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
        check_size(path, declared, path.stat().st_size)
        return _sheet(path, file.read())


def read_arrow(path: Path, _: ReadOptions) -> Sheet:
    ipc = extra("pyarrow.ipc", path)
    with path.open("rb") as file:
        start = file.read(6)
    if start == b"ARROW1":
        with ipc.open_file(str(path)) as reader:
            rows = sum(reader.get_batch(i).num_rows for i in range(reader.num_record_batches))
            check_size(path, rows * len(reader.schema) * 8, path.stat().st_size)
            return _sheet(path, reader.read_all())
    if start.startswith(b"FEA1"):
        raise InputError(
            f"{path} is a Feather file of version 1: write it again as version 2, or as .parquet"
        )
    with path.open("rb") as file, ipc.open_stream(file) as reader:
        return _sheet(path, reader.read_all())


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


def _other(path: Path, names: tuple[str, ...], j: int, column: Any) -> Other:
    from pyarrow import string, types

    kind = column.type
    if types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if types.is_temporal(kind) and not types.is_duration(kind):
        entries = ["" if v is None else v for v in column.cast(string()).to_pylist()]
        return Other("dates", [entry.rstrip("Z") for entry in entries])
    if types.is_string(kind) or types.is_large_string(kind):
        return Other("text", ["" if v is None else v for v in column.to_pylist()])
    raise InputError(
        f"{path}, column {column_name(names, j)} holds {kind}, which is no plain number: make"
        " columns of numbers of it, or write the file without it"
    )
