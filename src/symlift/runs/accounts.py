"""What a run says of every column of its file: which were placed, which were not, and why."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from symlift.core.rows import column_of
from symlift.estimator import LatentDomain
from symlift.runs.readers.options import listed
from symlift.runs.readers.table import LeftOut, Table
from symlift.several import LatentDomains
from symlift.statistics.units import OddUnit, odd_units
from symlift.storage.csv_cells import safe_cell

__all__ = ["add_left_out", "units_in_words", "units_note"]


def add_left_out(path: Path, left_out: Iterable[LeftOut]) -> None:
    """Add the columns of the file that the fit has not seen to a table of places.

    They have no number in the fit: column, point and channel are −1.
    """
    with path.open(newline="", encoding="utf-8", errors="backslashreplace") as file:
        names = next(csv.reader(file))
    empty: dict[str, object] = {
        name: -1 for name in ("column", "part", "point", "channel") if name in names
    }
    with path.open("a", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.DictWriter(file, names, restval="")
        for one in left_out:
            writer.writerow({**empty, "name": safe_cell(one.name), "reason": one.reason})


def units_note(estimator: LatentDomain | LatentDomains, table: Table) -> str:
    """Which columns have other units than the rest of their domain, in one line; "" for none."""
    if isinstance(estimator, LatentDomains):
        if estimator.maps_:  # parts are mixtures of all columns
            return ""
        parts = [estimator.labels_ == part for part in range(len(estimator.domains_))]
    elif estimator.placement_ is not None:
        parts = [~estimator.placement_.left_out]
    else:
        return ""  # a mixture of points has no units of its own
    return units_in_words(table.rows, table.names, parts)


def units_in_words(
    rows: NDArray, names: tuple[str, ...] | None, parts: Iterable[NDArray[np.bool_]]
) -> str:
    """The columns of some parts of a table that have other units than the rest of their part."""
    odd: list[OddUnit] = [one for part in parts for one in odd_units(rows, part)]
    if len(odd) == 1:
        return odd[0].words(column_of(odd[0].column, names))
    words = [one.brief(column_of(one.column, names).removeprefix("column ")) for one in odd]
    return (
        f"{len(odd)} columns differ from the rest in unit or kind: {listed(words, 3)}"
        if odd
        else ""
    )
