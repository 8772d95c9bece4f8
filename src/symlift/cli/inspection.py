"""``symlift inspect``: describe a data file."""

from __future__ import annotations

from dataclasses import asdict

from symlift.cli.console import AsJson, echo, print_json
from symlift.cli.reading import (
    Bin,
    Columns,
    DataFile,
    Decimal,
    Delimiter,
    Drop,
    Gap,
    Header,
    IndexCol,
    Keep,
    Key,
    Nan,
    Transpose,
    reading_of,
)

__all__ = ["inspect"]


def inspect(
    data: DataFile,
    key: Key = None,
    columns: Columns = None,
    drop: Drop = None,
    index_col: IndexCol = None,
    transpose: Transpose = False,
    nan: Nan = None,
    keep: Keep = False,
    gap: Gap = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    header: Header = None,
    width: Bin = None,
    as_json: AsJson = False,
) -> None:
    """Describe a data file and whether it is fit for recovery, without fitting anything.

    Example: symlift inspect log.csv
    """
    reading = reading_of(
        key, columns, drop, index_col, transpose, keep, gap, delimiter, decimal, header, width
    )
    from symlift.runs.inspect import inspect as look
    from symlift.runs.readers.kinds import local_file

    with local_file(data) as file:
        inspection = look(file, reading, nan, data)
    if as_json:
        print_json({**asdict(inspection), "fit": inspection.fit})
        return
    for line in inspection.lines():
        echo(line)
