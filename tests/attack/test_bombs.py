"""Small files that unpack to large ones: refused before they are unpacked, in one line.

What is limited is what a file may take: each is read in a process of its own, whose address space
and time are bounded.
"""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numcodecs
import numpy as np
import openpyxl
import pyarrow as pa
import pytest
import zarr
from pyarrow import ipc, parquet

from symlift.errors import InputError
from symlift.runs.readers import READABLE, read

ROWS = np.arange(15.0).reshape(5, 3)
LARGE = 600 << 20  # bytes
ZEROS = np.zeros(LARGE // 8)


def deflated() -> bytes:
    packer = zlib.compressobj(9)
    return b"".join(packer.compress(bytes(1 << 24)) for _ in range(LARGE >> 24)) + packer.flush()


def numbers() -> Any:
    return pa.record_batch({"a": pa.array(ZEROS[: 1 << 20])})


def texts() -> Any:
    return pa.record_batch({"a": np.arange(100.0), "s": pa.array(["x" * 10**6] * 100)})


def arrow(new: Callable[..., Any], batch: Any, count: int) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        packed = ipc.IpcWriteOptions(compression="zstd")
        with path.open("wb") as file, new(file, batch.schema, options=packed) as writer:
            for _ in range(count):
                writer.write_batch(batch)

    return write


def zarr_chunk(codec: Any, packed: Callable[[], bytes]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        array = zarr.open(str(path), mode="w", shape=(5, 3), dtype="f8", compressor=codec)
        array[:] = ROWS
        (path / "0.0").write_bytes(packed())

    return write


def hdf5_chunk(path: Path) -> None:
    with h5py.File(path, "w") as file:
        data = file.create_dataset("X", data=ROWS, chunks=(5, 3), compression="gzip")
        data.id.write_direct_chunk((0, 0), deflated())


def nwb_ids(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["units/spike_times"] = np.arange(5.0)
        file["units/spike_times_index"] = np.arange(1, 6)
        file.create_dataset("units/id", (5,), f"S{LARGE}", chunks=(1,), compression="gzip")


def sheet(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        book, raw = openpyxl.Workbook(), io.BytesIO()
        for row in ROWS.tolist():
            book.active.append(row)
        book.save(raw)
        with (
            zipfile.ZipFile(raw) as before,
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as after,
        ):
            for name in before.namelist():
                content = before.read(name)
                after.writestr(name, change(content) if name.endswith("sheet1.xml") else content)

    return write


def far(content: bytes) -> bytes:
    cell = b'<row r="%d"><c r="XFD%d" t="n"><v>1</v></c></row>'
    cells = b"".join(cell % (i, i) for i in range(30, 20_030))
    return content.replace(b"</sheetData>", cells + b"</sheetData>")


def entities(start: str) -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        text = start + content.decode().split("?>", 1)[-1]
        return text.encode("utf-16" if "UTF-16" in start else "utf-8")

    return change


HIDDEN = '<?xml version="1.0" encoding="UTF-16"?><!DOCTYPE w [<!ENTITY a "1">]>'
LATE = '<?xml version="1.0"?>' + " " * 5000 + '<!DOCTYPE w [<!ENTITY a "1">]>'
BOMBS: dict[str, tuple[Callable[[Path], None], str]] = {
    "stream.arrow": (arrow(ipc.new_stream, numbers(), 75), "that unpack to"),
    "file.feather": (arrow(ipc.new_file, numbers(), 75), "that unpack to"),
    "texts.feather": (arrow(ipc.new_file, texts(), 6), "that unpack to"),
    "zlib.zarr": (zarr_chunk(numcodecs.Zlib(), deflated), "holds a piece of"),
    "bz2.zarr": (
        zarr_chunk(numcodecs.BZ2(), lambda: numcodecs.BZ2().encode(ZEROS)),
        "holds a piece of",
    ),
    "lzma.zarr": (
        zarr_chunk(numcodecs.LZMA(), lambda: numcodecs.LZMA(preset=0).encode(ZEROS)),
        "holds a piece of",
    ),
    "zstd.zarr": (
        zarr_chunk(numcodecs.Zstd(), lambda: numcodecs.Zstd().encode(ZEROS)),
        "holds a piece of",
    ),
    "lz4.zarr": (
        zarr_chunk(numcodecs.LZ4(), lambda: numcodecs.LZ4().encode(ZEROS)),
        "holds a piece of",
    ),
    "blosc.zarr": (
        zarr_chunk(numcodecs.Blosc(), lambda: numcodecs.Blosc().encode(ZEROS)),
        "holds a piece of",
    ),
    "gzip.h5": (hdf5_chunk, "holds a piece of"),
    "ids.nwb": (nwb_ids, "that unpack to"),
    "row.xlsx": (
        sheet(lambda content: content.replace(b'<row r="5"', b'<row r="999999999999"')),
        "beyond any sheet",
    ),
    "far.xlsx": (sheet(far), "that unpack to"),
    "hidden.xlsx": (sheet(entities(HIDDEN)), "defines entities"),
    "late.xlsx": (sheet(entities(LATE)), "defines entities"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_one_line(tmp_path: Path, name: str) -> None:
    write, words = BOMBS[name]
    write(tmp_path / name)
    with pytest.raises(InputError, match=words) as caught:
        read(tmp_path / name)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_texts_that_are_stored_once_stay_one(tmp_path: Path) -> None:
    """9,000 rows of one text of a million letters: 9 GB, if each row had its own."""
    one = pa.DictionaryArray.from_arrays(np.zeros(9_000, "i4"), pa.array(["x" * 10**6]))
    table = pa.table({"a": np.arange(9_000.0), "b": np.arange(9_000.0) ** 2, "s": one})
    parquet.write_table(table, tmp_path / "x.parquet")
    with ipc.new_file(str(tmp_path / "x.feather"), table.schema) as writer:
        writer.write_table(table)
    for name in ("x.parquet", "x.feather"):
        assert read(tmp_path / name).rows.shape == (9_000, 2)


_BOUNDED = """
import resource, sys
from symlift.runs.readers import read
import pyarrow.parquet, pyarrow.ipc, zarr, h5py, openpyxl
start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read(sys.argv[1])
except Exception:
    pass
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_neither_memory_nor_time(tmp_path: Path, name: str) -> None:
    BOMBS[name][0](tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-c", _BOUNDED, str(tmp_path / name)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert int(done.stdout) < 300_000  # kB


def test_every_reader_that_unpacks_is_attacked() -> None:
    """`.npy` and text are not packed; `.npz` and `.mat` are attacked among the wrong files."""
    attacked = {Path(name).suffix for name in BOMBS} | {".parquet", ".hdf5"}
    assert set(READABLE) - attacked == {".npy", ".npz", ".csv", ".tsv", ".txt", ".mat"}
