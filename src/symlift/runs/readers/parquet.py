"""Tables of Apache Parquet (extra ``data``)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError
from symlift.runs.readers.table import Table, extra

__all__ = ["read_parquet"]


def read_parquet(path: Path, _: str | None) -> Table:
    parquet = extra("pyarrow.parquet", path)
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
