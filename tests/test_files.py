"""Files as people have them: read right, or refused in one line with a remedy; the remedy is
followed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import zarr
from pyarrow import feather, parquet
from scipy.io import savemat

from symlift import InputError, read
from symlift.core.tabular import check_frame
from symlift.runs.readers import ReadOptions, read_table
from symlift.runs.readers.gaps import without_gaps
from symlift.runs.readers.header import is_header
from symlift.runs.readers.options import positions

X = np.random.default_rng(5).normal(size=(60, 6)).round(4)
NAMES = tuple(f"T{i:02d}" for i in range(1, 7))
TIMES = [f"2024-03-01 {h:02d}:{m:02d}:00" for h in range(10) for m in range(0, 60, 10)]


def lines(rows: Any, names: Any = None, sep: str = ",", decimal: str = ".", end: str = "\n") -> str:
    """A table as text."""
    body = [
        sep.join(v if isinstance(v, str) else repr(float(v)).replace(".", decimal) for v in row)
        for row in rows
    ]
    return end.join(([] if names is None else [sep.join(names)]) + body) + end


def with_times(times: list[str] = TIMES, rows: Any = X) -> list[list[Any]]:
    return [[time, *row] for time, row in zip(times, rows, strict=True)]


def holes(count: int = 7) -> np.ndarray:
    rows = X.copy()
    rows[:count, 2] = np.nan
    return rows


def gappy_text(mark: str, **how: Any) -> str:
    rows = [[mark if np.isnan(v) else float(v) for v in row] for row in holes()]
    return lines(rows, NAMES, **how)


def frame(**extra: Any) -> pd.DataFrame:
    return pd.DataFrame({**extra, **dict(zip(NAMES, X.T, strict=True))})


def excel(path: Path, **sheets: pd.DataFrame) -> None:
    with pd.ExcelWriter(path) as book:
        for name, table in sheets.items():
            table.to_excel(book, sheet_name=name, index=False)


def mat73(path: Path, **arrays: Any) -> None:
    """As MATLAB writes it: a user block of 512 bytes, axes the other way round, the class as an
    attribute.
    """
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, values in arrays.items():
            item = file.create_dataset(name, data=np.asarray(values).T)
            item.attrs["MATLAB_class"] = np.bytes_("double")
        file.create_group("#refs#").create_dataset("a", data=np.zeros((2, 2)))
    with path.open("r+b") as file:
        file.write(
            b"MATLAB 7.3 MAT-file, Platform: GLNXA64, Created on: Fri Mar  1".ljust(124)
            + b"\x00\x02IM"
        )


def hdf5(path: Path, **arrays: Any) -> None:
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file.create_dataset(name.replace("__", "/"), data=values, compression="gzip")


SPIKES = [np.sort(np.random.default_rng(i).uniform(0, 30, 40 + 10 * i)) for i in range(4)]


def nwb(path: Path, units: bool = True, series: tuple[str, ...] = ()) -> None:
    with h5py.File(path, "w") as file:
        file.attrs["nwb_version"] = "2.6.0"
        if units:
            group = file.create_group("units")
            group.create_dataset("spike_times", data=np.concatenate(SPIKES))
            group.create_dataset("spike_times_index", data=np.cumsum([len(s) for s in SPIKES]))
            group.create_dataset("id", data=[3, 5, 8, 9])
        for name in series:
            file.create_dataset(f"{name}/data", data=X.astype(np.float32))
            file.create_dataset(f"{name}/timestamps", data=np.arange(60.0))


def counts() -> np.ndarray:
    first, last = min(s[0] for s in SPIKES), max(s[-1] for s in SPIKES)
    edges = first + 0.1 * np.arange(int((last - first) / 0.1) + 2)
    return np.stack([np.histogram(s, edges)[0] for s in SPIKES], axis=1)


def by_pynwb(path: Path) -> None:
    """The real thing, written by the reference implementation."""
    from datetime import UTC, datetime

    from pynwb import NWBHDF5IO, NWBFile, TimeSeries

    file = NWBFile("a session", "id", datetime(2024, 3, 1, tzinfo=UTC))
    file.add_acquisition(TimeSeries(name="LFP", data=X, unit="V", rate=100.0))
    for spikes in SPIKES:
        file.add_unit(spike_times=spikes)
    with NWBHDF5IO(str(path), "w") as out:
        out.write(file)


def stream(path: Path) -> None:
    with (
        path.open("wb") as file,
        pa.ipc.new_stream(file, pa.Table.from_pandas(frame()).schema) as out,
    ):
        out.write_table(pa.Table.from_pandas(frame()))


def decimals() -> pa.Table:
    column = [pa.array([f"{v:.2f}" for v in X[:, j]]).cast(pa.decimal128(10, 2)) for j in range(2)]
    return pa.table(column, names=["a", "b"])


@dataclass(frozen=True)
class Case:
    """A file and what should come of it: the rows at once, or first a refusal whose remedy (a
    regular expression) is followed.
    """

    name: str
    write: str | bytes | Callable[[Path], Any]
    rows: Any = field(default_factory=lambda: X)
    names: Any = NAMES
    options: dict[str, Any] = field(default_factory=dict)
    notes: str = ""
    refused: str = ""
    remedy: str = ""
    then: dict[str, Any] = field(default_factory=dict)


C = Case
CASES = [
    # delimiters and decimals
    C("plain.csv", lines(X, NAMES)),
    C("no_header.csv", lines(X), names=None),
    C("semicolons.csv", lines(X, NAMES, ";")),
    C("german.csv", lines(X, NAMES, ";", ","), notes="decimal commas"),
    C("german_no_header.csv", lines(X, None, ";", ","), names=None, notes="decimal commas"),
    C(
        "quoted_commas.csv",
        lines([[f'"{v}"'.replace(".", ",") for v in row] for row in X], NAMES),
        notes="decimal commas",
    ),
    C("tabs.tsv", lines(X, NAMES, "\t")),
    C("tabs_commas.tsv", lines(X, NAMES, "\t", ","), notes="decimal commas"),
    C("pipes.csv", lines(X, NAMES, "|")),
    C("blanks.txt", lines(X, NAMES, "   ")),
    C("aligned.txt", "\n".join("".join(f"{v:12.4f}" for v in row) for row in X), names=None),
    C(
        "thousands.csv",
        lines(
            [
                [f"{1e4 * v:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".") for v in r]
                for r in X
            ],
            NAMES,
            ";",
        ),
        rows=(1e4 * X).round(2),
        notes="decimal commas",
    ),
    C("blanks_commas.txt", lines(X, NAMES, " ", ","), notes="decimal commas"),
    C("blanks_commas_no_header.txt", lines(X, None, "  ", ","), names=None, notes="decimal commas"),
    C("mac.csv", lines(X, NAMES, end="\r").encode()),
    C("excel_hint.csv", "sep=;\n" + lines(X, NAMES, ";", ",")),
    C("crlf.csv", lines(X, NAMES, end="\r\n").encode()),
    C("trailing.csv", lines([[*row, ""] for row in X], NAMES, ";")),
    C(
        "odd_delimiter.txt",
        lines(X, NAMES, "!"),
        refused=r"no columns of numbers|not a number|names in its header",
        remedy="--delimiter",
        then={"delimiter": "!"},
    ),
    # encodings
    C("bom.csv", lines(X, NAMES).encode("utf-8-sig")),
    C("utf16.csv", lines(X, NAMES).encode("utf-16"), notes="utf-16"),
    C("utf16_no_bom.csv", lines(X, NAMES).encode("utf-16-le"), notes="utf-16"),
    C(
        "latin1.csv",
        lines(X, [f"Wärme {i}" for i in range(6)], ";").encode("latin-1"),
        names=tuple(f"Wärme {i}" for i in range(6)),
        notes="latin-1",
    ),
    C(
        "cp1252.csv",
        lines(X, [f"€{i}" for i in range(6)], ";").encode("cp1252"),
        names=tuple(f"€{i}" for i in range(6)),
        notes="cp1252",
    ),
    # headers
    C(
        "numbered.csv",
        lines(X, "123456"),
        names=tuple("123456"),
        notes=r"taken as a header: --no-header",
    ),
    C("from_zero.csv", lines(X, "012345"), names=tuple("012345"), notes="--no-header"),
    C(
        "years.csv",
        lines((100 * X).astype(int).astype(float), [str(y) for y in range(2000, 2012, 2)]),
        rows=(100 * X).astype(int),
        names=tuple(str(y) for y in range(2000, 2012, 2)),
        notes="--no-header",
    ),
    C(
        "whole_above_real.csv",
        lines(X, ["17", "3", "25", "4", "9", "12"]),
        names=("17", "3", "25", "4", "9", "12"),
        notes="--no-header",
    ),
    C(
        "first_row_kept.csv",
        lines([[1.0, 2, 3, 4, 5, 6], *X]),
        names=None,
        rows=np.vstack([[1.0, 2, 3, 4, 5, 6], X]),
        options={"header": False},
    ),
    C(
        "all_whole.csv",
        "\n".join(",".join(str(v) for v in row) for row in (10 * X).astype(int)),
        rows=(10 * X).astype(int),
        names=None,
    ),
    C(
        "times_above.csv",
        lines(X, [f"{0.5 * i}" for i in range(6)]),
        names=tuple(f"{0.5 * i}" for i in range(6)),
        notes="--no-header",
    ),
    C(
        "line_breaks.csv",
        lines(X, [f'"T0{i}\n(°C)"' for i in range(6)]),
        names=tuple(f"T0{i} (°C)" for i in range(6)),
    ),
    C(
        "units.csv",
        "T01;T02;T03;T04;T05;T06\n" + ";".join(["°C"] * 6) + "\n" + lines(X, None, ";"),
        notes="units",
    ),
    C(
        "logger.csv",
        "Device: L7\nserial 5522\n\n" + lines(X, NAMES, ";", ","),
        notes="2 lines before the table",
    ),
    C("savetxt.csv", "# " + lines(X, NAMES)),
    C("commented.txt", "% made by hand\n% " + lines(X, NAMES, "\t")),
    C(
        "row_names.txt",
        " ".join(NAMES) + "\n" + lines([[f"r{i}", *row] for i, row in enumerate(X)], None, " "),
        notes="1 .text.",
    ),
    C("pandas_index.csv", frame().to_csv(), notes="counts the rows"),
    # timestamps and text
    C("log.csv", lines(with_times(), ("time", *NAMES)), notes=r"'time' \(dates\) is left out"),
    C(
        "german_log.csv",
        lines(
            with_times([f"{d:02d}.03.2024 10:00" for d in range(1, 31)] * 2),
            ("Zeit", *NAMES),
            ";",
            ",",
        ),
        notes="dates",
    ),
    C(
        "clock.csv",
        lines(
            with_times([f"{h:02d}:{m:02d}" for h in range(10) for m in range(6)]), ("at", *NAMES)
        ),
        notes="dates",
    ),
    C(
        "kept_dates.csv",
        lines(with_times(), ("time", *NAMES)),
        options={"keep": True},
        names=("time", *NAMES),
        rows=np.column_stack([600.0 * np.arange(60), X]),
    ),
    C(
        "station.csv",
        lines([["Berlin", *row, "ok"] for row in X], ("city", *NAMES, "state")),
        notes="2 columns are left out",
    ),
    C(
        "asked_for_text.csv",
        lines([["Berlin", *row] for row in X], ("city", *NAMES)),
        options={"columns": ("city", "T*")},
        refused="'city', which holds text",
        remedy="leave it out",
        then={"columns": ("T*",)},
    ),
    C(
        "stray.csv",
        lines([*X, ["1", "2", "bad", "4", "5", "6"]], NAMES),
        refused="line 62, column 'T03': 'bad'",
        remedy=r"--drop (\S+)",
        rows=np.vstack([X, [1, 2, 3, 4, 5, 6]])[:, [0, 1, 3, 4, 5]],
        names=(*NAMES[:2], *NAMES[3:]),
    ),
    C(
        "wrong_name.csv",
        lines(X, NAMES),
        options={"drop": ("T3",)},
        refused="no such column",
        remedy=r"did you mean '(\S+)'",
        then={"drop": ("T03",)},
        rows=X[:, [0, 1, 3, 4, 5]],
        names=(*NAMES[:2], *NAMES[3:]),
    ),
    C("by_number.csv", lines(X), options={"columns": ("2-3,6",)}, rows=X[:, [1, 2, 5]], names=None),
    # gaps
    C(
        "empty_cells.csv",
        gappy_text(""),
        refused="7 of 60 rows have gaps",
        remedy="--nan (drop) keeps 53",
        rows=X[7:],
    ),
    C(
        "na.csv",
        gappy_text("n/a"),
        refused="in column 'T03'",
        remedy="--nan (pairwise)",
        rows=holes(),
    ),
    C(
        "gaps_no_header.csv",
        gappy_text("NULL").partition("\n")[2],
        refused="in column 3",
        remedy="--nan (mean)",
        names=None,
        rows=np.where(np.isnan(holes()), np.nanmean(holes(), axis=0), holes()),
    ),
    C(
        "gaps.npy",
        lambda p: np.save(p, holes()),
        refused="7 of 60",
        remedy="--nan (drop)",
        rows=X[7:],
        names=None,
    ),
    C(
        "german_gaps.csv",
        gappy_text("", sep=";", decimal=","),
        refused="7 of 60",
        remedy="--nan (drop)",
        rows=X[7:],
    ),
    # the other way round
    C("turned.csv", lines(X.T), notes="give --transpose", rows=X.T, names=None),
    C(
        "turned_names.csv",
        lines(
            [[n, *row] for n, row in zip(NAMES, X.T, strict=True)],
            ["channel", *[f"{t}" for t in range(60)]],
        ),
        options={"transpose": True},
    ),
    C(
        "turned_square.csv",
        lines(
            [[f"n{i}", *row] for i, row in enumerate(X)], ["neuron", *[str(k) for k in range(6)]]
        ),
        names=tuple("012345"),
        notes="rows have names.*give --transpose",
    ),
    C(
        "turned_empty.csv",
        lines([["", *row] for row in X.T]),
        options={"transpose": True, "index_col": "1"},
        names=None,
    ),
    C("turned.npy", lambda p: np.save(p, X.T), options={"transpose": True}, names=None),
    C(
        "labels.csv",
        lines([[str(10 + i), *row] for i, row in enumerate(X.T)]),
        options={"transpose": True, "index_col": "1"},
        names=tuple(str(10 + i) for i in range(6)),
    ),
    # MATLAB
    C("four.mat", lambda p: savemat(p, {"X": X}, format="4"), names=None),
    C(
        "four_two.mat",
        lambda p: savemat(p, {"X": X, "t": np.arange(3)}, format="4"),
        names=None,
        refused="several",
        remedy=r"from (\w+)",
        then={"key": "X"},
    ),
    C("five.mat", lambda p: savemat(p, {"X": X}), names=None),
    C(
        "seven.mat",
        lambda p: savemat(p, {"spikes": X, "info": "a"}, do_compression=True),
        names=None,
        refused="several",
        remedy="--key",
        then={"key": "spikes"},
    ),
    C("seven3.mat", lambda p: mat73(p, counts=X), names=None),
    C(
        "seven3_two.mat",
        lambda p: mat73(p, counts=X, other=X[:3]),
        names=None,
        refused=r"/counts \(6x60\)",
        remedy="--key",
        then={"key": "counts"},
    ),
    # HDF5 and NWB
    C("one.h5", lambda p: hdf5(p, data=X, t=np.arange(60)), names=None),
    C(
        "deep.hdf5",
        lambda p: hdf5(p, session__rates=X, session__other=X[:2]),
        names=None,
        refused=r"several.*/session/other",
        remedy="--key",
        then={"key": "/session/rates"},
    ),
    C(
        "units.nwb",
        nwb,
        rows=counts(),
        names=("unit 3", "unit 5", "unit 8", "unit 9"),
        notes="counted in .* bins of 0.1 s",
    ),
    C(
        "both.nwb",
        lambda p: nwb(p, series=("acquisition/LFP",)),
        rows=counts(),
        names=("unit 3", "unit 5", "unit 8", "unit 9"),
        refused=r"units \(spikes of 4 units\), acquisition/LFP \(60 x 6\)",
        remedy="--key",
        then={"key": "units"},
    ),
    C(
        "series.nwb",
        lambda p: nwb(p, units=False, series=("processing/ecephys/LFP", "acquisition/raw")),
        names=None,
        rows=X.astype(np.float32),
        refused="several",
        remedy="--key",
        then={"key": "LFP"},
    ),
    C(
        "reference.nwb",
        by_pynwb,
        names=None,
        refused=r"units \(spikes of 4 units\), acquisition/LFP",
        remedy="--key",
        then={"key": "acquisition/LFP"},
    ),
    # tables of other programs
    C("frame.parquet", lambda p: parquet.write_table(pa.Table.from_pandas(frame()), p)),
    C(
        "frame_times.parquet",
        lambda p: parquet.write_table(
            pa.Table.from_pandas(frame(t=pd.to_datetime(TIMES), city="Bonn")), p
        ),
        notes="2 columns",
    ),
    C(
        "nulls.parquet",
        lambda p: parquet.write_table(
            pa.Table.from_pandas(pd.DataFrame(holes(), columns=list(NAMES))), p
        ),
        refused="7 of 60",
        remedy="--nan (drop)",
        rows=X[7:],
    ),
    C("frame.feather", lambda p: feather.write_feather(frame(), p)),
    C("stream.arrow", stream),
    C(
        "decimals.parquet",
        lambda p: parquet.write_table(decimals(), p),
        rows=X[:, :2].round(2),
        names=("a", "b"),
    ),
    C(
        "odd_types.parquet",
        lambda p: parquet.write_table(
            pa.table(
                {
                    "a": X[:, 0],
                    "yes": X[:, 1] > 0,
                    "no": pa.nulls(60),
                    "k": pa.array(["u"] * 60).dictionary_encode(),
                }
            ),
            p,
        ),
        rows=np.column_stack([X[:, 0], X[:, 1] > 0]),
        names=("a", "yes"),
        notes=r"'no' \(empty\), 'k' \(text\)",
    ),
    C(
        "whole_nulls.parquet",
        lambda p: parquet.write_table(
            pa.table({"a": [1, 2, None, 4], "b": [True, False, None, True]}), p
        ),
        refused="1 of 4",
        remedy="--nan (drop)",
        rows=[[1, 1], [2, 0], [4, 1]],
        names=("a", "b"),
    ),
    C(
        "one_axis.nwb",
        lambda p: hdf5(p, acquisition__pupil__data=X[:, 0]),
        rows=X[:, :1],
        names=None,
    ),
    C("frame.arrow", lambda p: feather.write_feather(frame(), p, compression="uncompressed")),
    C("book.xlsx", lambda p: excel(p, data=frame())),
    C(
        "book_times.xlsx",
        lambda p: excel(p, data=frame(time=pd.to_datetime(TIMES))),
        notes=r"'time' \(dates\)",
    ),
    C(
        "book_two.xlsx",
        lambda p: excel(p, data=frame(), notes=frame()[:3]),
        refused="several sheets",
        remedy="--key",
        then={"key": "data"},
    ),
    C(
        "book_gaps.xlsx",
        lambda p: excel(p, data=pd.DataFrame(holes(), columns=list(NAMES))),
        refused="7 of 60",
        remedy="--nan (drop)",
        rows=X[7:],
    ),
    C("array.zarr", lambda p: zarr.save_array(str(p), X), names=None),
    C(
        "archive.npz",
        lambda p: np.savez_compressed(p, X=X, y=X[:, 0]),
        names=None,
        refused="several",
        remedy="from X",
        then={"key": "X"},
    ),
    # what is not what it seems
    C(
        "really.csv",
        lambda p: (excel(p.with_suffix(".xlsx"), data=frame()), p.with_suffix(".xlsx").rename(p)),
        refused="begins as .npz does|begins as .xlsx does",
        remedy="suffix",
        then={"suffix": ".xlsx"},
    ),
]


def write(case: Case, folder: Path) -> Path:
    path = folder / case.name
    if callable(case.write):
        case.write(path)
    else:
        path.write_bytes(case.write if isinstance(case.write, bytes) else case.write.encode())
    return path


def load(path: Path, nan: str = "refuse", **options: Any) -> Any:
    return without_gaps(path, read_table(path, options=ReadOptions(**options)), nan)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_file_is_read_right_or_its_remedy_works(tmp_path, case):
    path, options = write(case, tmp_path), dict(case.options)
    if case.refused:
        with pytest.raises(InputError, match=case.refused) as caught:
            load(path, **options)
        said = str(caught.value)
        assert said.startswith(str(path))
        assert "\n" not in said
        found = re.search(case.remedy, said)
        assert found, said
        if "--nan" in case.remedy:
            options["nan"] = found[1]
        elif "--drop" in case.remedy:
            options["drop"] = tuple(shlex.split(found[1]))
        then = dict(case.then)
        if "suffix" in then:
            path = path.rename(path.with_suffix(then.pop("suffix")))
        options |= then
    table = load(path, **options)
    assert table.names == case.names
    assert table.rows.shape == np.shape(case.rows)
    assert np.allclose(table.rows, case.rows, atol=1e-12, equal_nan=True)
    assert re.search(case.notes, "; ".join(table.notes)), table.notes
    assert all("\n" not in note for note in table.notes)


def test_the_table_is_long_enough():
    assert len({case.name for case in CASES}) == len(CASES) >= 40


# -- larger than what is converted at once ---------------------------------------------------------


def test_a_long_file_is_read_as_a_short_one(tmp_path):
    """Entries are converted in blocks: what begins in one and goes on in the next is the same
    column.
    """
    n = 45_000
    rows = np.arange(3.0 * n).reshape(n, 3) / 7
    text = ["t;city;a;b;c"]
    for i, row in enumerate(rows):
        a, b, c = (repr(v) for v in row.tolist())
        text.append(f"2024-01-01 00:00:{i % 60:02d};Bonn;{a};{'' if i == 44_000 else b};{c}")
    path = tmp_path / "x.csv"
    path.write_text("\n".join(text))
    table = read_table(path, options=ReadOptions(keep=True))
    assert table.names == ("t", "a", "b", "c")
    assert np.array_equal(table.rows[:, 0], np.arange(n) % 60)
    assert np.isnan(table.rows[44_000, 2])
    rows[44_000, 1] = np.nan
    assert np.array_equal(table.rows[:, 1:], rows, equal_nan=True)
    path.write_text("\n".join([*text, "x;y;1;2;oops", "x;y;1;2;again"]))
    with pytest.raises(
        InputError,
        match=(
            r"line 45002, column 'c': 'oops' is not a number \(2 such entries of 45,002\).*--drop c"
        ),
    ):
        read_table(path)


# -- what is a header ------------------------------------------------------------------------------

COUNTS = np.random.default_rng(0).poisson(2, (30, 12))


@pytest.mark.parametrize(
    ("first", "below", "header"),
    [
        (range(12), COUNTS, True),
        (range(1, 13), COUNTS, True),
        (range(100, 1300, 100), COUNTS, True),
        (range(2000, 2012), COUNTS, True),
        ([1950, 1960, 1971, 1980, 1991, 2000, 2001, 2003, 2005, 2010, 2015, 2020], COUNTS, True),
        (np.random.default_rng(1).permutation(12) + 5, COUNTS, True),
        ([117, 3, 25, 40, 9, 12, 88, 61, 70, 1, 2, 5], COUNTS, True),
        (COUNTS[3], COUNTS, False),
        ([5, 3, 5, 1, 0, 2, 4, 4, 1, 0, 0, 1], COUNTS, False),
        (range(12), [np.arange(12) + k for k in range(1, 9)], False),  # a ramp that goes on
        ([0, 1, 2], [[2, 0, 1], [0, 0, 3]], False),  # which recurs
        (
            [1950, 1960, 1971, 1980, 1991, 2000, 2001, 2003, 2005, 2010, 2015, 2020],
            np.sort(np.random.default_rng(2).integers(1900, 2100, (9, 12)), axis=1) + np.arange(12),
            False,
        ),
        ([1, 2], [[0.5, 0.25], [0.1, 0.7]], False),  # too few to say
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], np.random.default_rng(3).normal(size=(9, 6)), True),
        (["", "", ""], [[1, 2, 3]], False),
        (["T1", "T2", "7"], [[1, 2, 3], [4, 5, 6]], True),
        (["1", "2", "x"], [[1, 2, 3], [4, 5, 6]], False),
        (["2024-01-01", "2024-01-02", "2024-01-03"], [[1, 2, 3], [4, 5, 7]], True),
    ],
)
def test_a_first_line_of_another_kind_is_a_header(first, below, header):
    texts = [[str(v) for v in row] for row in np.asarray(below).tolist()]
    assert is_header([str(v) for v in first], texts, ".") is header


# -- dates -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "seconds"),
    [
        ("2024-03-01", "2024-03-02", 86_400),
        ("01.03.2024", "02.03.2024", 86_400),
        ("1 Mar 2024", "2 Mar 2024", 86_400),
        ("2024-03-01T10:00:00Z", "2024-03-01T10:00:01.5Z", 1.5),
        ("01.03.2024 10:00", "01.03.2024 10:01", 60),
        ("3/1/2024 1:00 PM", "3/1/2024 2:00 PM", 3600),
        ("10:00:00", "10:00:30", 30),
        ("2024/03/01 10:00:00", "2024/03/01 11:00:00", 3600),
        ("2024-03-01 10:00:00,250", "2024-03-01 10:00:00,750", 0.5),
    ],
)
def test_dates_are_recognised_and_kept_as_seconds(tmp_path, first, second, seconds):
    path = tmp_path / "x.csv"
    path.write_text(f"when;a;b\n{first};1;2\n;3;5\n{second};4;4\n")
    assert read_table(path).names == ("a", "b")
    kept = read_table(path, options=ReadOptions(keep=True))
    assert np.array_equal(kept.rows[:, 0], [0, np.nan, seconds], equal_nan=True)


def test_dates_that_are_not_understood_are_said_so(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("when,a\n99.99.2024,1\n98.99.2024,2\n")
    with pytest.raises(
        InputError, match=r"column 'when': these dates are not understood: write them as 2024-01-31"
    ):
        read_table(path, options=ReadOptions(keep=True))
    assert read_table(path).names == ("a",)


# -- from Python -----------------------------------------------------------------------------------


def test_read_takes_the_options_of_the_command_line(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(gappy_text("", sep=";", decimal=","))
    assert np.isnan(read(path).rows).sum() == 7
    assert read(path, nan="drop").rows.shape == (53, 6)
    assert read(path, nan="drop", columns="T0[12]*", drop=["T02"]).names == ("T01",)
    assert read(path, drop=["T03"]).names == (*NAMES[:2], *NAMES[3:])
    assert list(read(path, columns=["T02", "T01"]).to_frame().columns) == ["T02", "T01"]
    with pytest.raises(InputError, match="7 of 60"):
        read(path, nan="refuse")
    with pytest.raises(InputError, match="use pairwise, drop, mean or refuse"):
        read(path, nan="what")
    every = tmp_path / "every.csv"
    every.write_text("a,b\n1,\n,2\n")
    with pytest.raises(InputError, match=r"every row has gaps.*--nan pairwise"):
        read(every, nan="drop")


def test_names_may_be_numbers_patterns_or_hold_commas():
    names = ["a, b", "2", "T01", "T02"]
    assert positions("--drop", ["a, b"], names, 4) == [0]
    assert positions("--drop", ["2"], names, 4) == [1]  # a name comes before a number
    assert positions("--drop", ["1"], names, 4) == [0]
    assert positions("--drop", ["T*,1-2"], names, 4) == [2, 3, 0, 1]


@pytest.mark.parametrize("maker", ["pandas", "polars"])
def test_frames_that_hold_more_than_numbers(maker):
    import polars as pl

    def make(**columns: Any) -> Any:
        return pd.DataFrame(columns) if maker == "pandas" else pl.DataFrame(columns)

    check_frame(np.eye(3))
    check_frame(make(a=[1, 2], b=[True, False], c=[0.5, None]))
    with pytest.raises(
        InputError, match=r"column 'b' holds text, not numbers: leave it out, X.drop\("
    ):
        check_frame(make(a=[1, 2], b=["u", None]))
    with pytest.raises(InputError, match="'t' holds dates"):
        check_frame(make(t=pd.to_datetime(["2024-01-01", "2024-01-02"]).to_pydatetime().tolist()))
    with pytest.raises(InputError, match=r"9 columns hold no numbers.*…: leave them out, X.select"):
        check_frame(make(**{f"c{i}": ["u", "v"] for i in range(9)}))
    if maker == "pandas":
        from datetime import date

        check_frame(
            pd.DataFrame(
                {"a": pd.Series([1, 2.5], dtype=object), "e": pd.Series([None, None], dtype=object)}
            )
        )
        with pytest.raises(InputError, match="'d' holds dates"):
            check_frame(pd.DataFrame({"d": [date(2024, 1, 1)]}))
        with pytest.raises(InputError, match="'k' holds text"):
            check_frame(pd.DataFrame({"k": pd.Categorical(["u", "v"])}))
