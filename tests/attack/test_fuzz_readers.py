"""Bytes that nobody wrote: every reader reads them or refuses them in one line, each within 1 GB
and 20 s.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pyarrow as pa
import pytest
import zarr
from bounded import bounded
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import ipc, parquet
from test_readers import GOOD, GOOD4, GOOD73, PACKED, arrow, buffered, h5, mat, npy, npz, pq, xlsx

from symlift import InputError
from symlift.runs.readers import ReadOptions, read_table
from symlift.runs.readers.gaps import without_gaps

pytestmark = pytest.mark.fuzz
# a few dozen examples of each in `make test`, the same ones each time; `make fuzz` gives a time for
# all of them together, and gets others
SECONDS = float(os.environ.get("SYMLIFT_FUZZ_SECONDS", "0"))

MANY = np.zeros((2_000, 4))


def packed_arrow(new: Any, codec: str) -> bytes:
    """A stream or file whose buffers are packed, and hold more than they seem to."""
    table = pa.table({"a": MANY[:, 0], "t": ["u"] * len(MANY)})

    def write(file: Any) -> None:
        with new(file, table.schema, options=ipc.IpcWriteOptions(compression=codec)) as writer:
            writer.write_table(table)

    return buffered(write)


def packed_parquet(codec: str) -> bytes:
    table = pa.table({"a": MANY[:, 0], "t": ["u"] * len(MANY)})
    return buffered(lambda file: parquet.write_table(table, file, compression=codec))


SEEDS = {
    ".npy": [GOOD[".npy"], npy(np.arange(6, dtype=">i2").reshape(3, 2, order="F"))],
    ".npz": [GOOD[".npz"], npz(a=np.eye(2), b=np.ones((2, 2), np.float32))],
    ".mat": [GOOD[".mat"], GOOD4, GOOD73, PACKED, mat(X=np.eye(3, dtype=np.int8), Y={"a": 1})],
    ".h5": [
        GOOD[".h5"],
        h5(lambda f: f.create_dataset("X", data=MANY, chunks=(100, 4), compression="gzip")),
    ],
    ".nwb": [GOOD[".nwb"]],
    ".parquet": [GOOD[".parquet"], pq({"a": [1, None], "t": ["u", "v"]}),
                 packed_parquet("zstd"), packed_parquet("gzip")],
    ".arrow": [GOOD[".arrow"], arrow({"a": [1, None], "t": ["u", "v"]}),
               packed_arrow(ipc.new_stream, "zstd"), packed_arrow(ipc.new_file, "lz4")],
    ".xlsx": [GOOD[".xlsx"], xlsx([["a", "b"], [1, 2.5], ["x", None]])],
    ".csv": [b"a,b\n1,2\n3,4\n", b"1;2\n3;4\n", b'"a, b",c\n1e5,-2\n',
             b"t;x\n2024-01-01;1,5\n2024-01-02;\n", "ä,b\n1,2\n".encode("utf-16")],
    ".tsv": [b"a\tb\n1\t2\n"],
    ".txt": [b"  1 2\n 3 4\n", b"# a b\n1 2\n3 4\n"],
}  # fmt: skip
PIECES = [
    b"'",
    b"(",
    b")",
    b"-",
    b"9" * 20,
    b"O",
    b"|O",
    b"<U0",
    b"\n",
    b",",
    b'"',
    b"\0",
    b"\xff",
    b"{",
    b"#",
    b"1e999",
    b";",
    b"\t",
    b"nan",
    b"PK\x03\x04",
    b"\x93NUMPY",
    b"True",
    b"None",
    b"[" * 3000,
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"<c16",
    b"V8",
    b"\xff\xff\xff\x7f",
    b"\xff\xff\xff\xff",
    b"\0\0\0\0",
    b"sep=;\n",
    b"2024-01-01",
    b"1.234,5",
]
OPTIONS = st.builds(
    ReadOptions,
    key=st.none() | st.sampled_from(["X", "units", "a", "/", "Sheet"]),
    columns=st.just(()) | st.just(("a",)) | st.just(("1-2",)),
    drop=st.just(()) | st.just(("1",)),
    index_col=st.none() | st.just("1"),
    transpose=st.booleans(),
    keep=st.booleans(),
    header=st.none() | st.booleans(),
    decimal=st.none() | st.sampled_from(",."),
)


def mutate(draw, content: bytearray) -> bytes:
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(content)))
        kind = draw(st.sampled_from(["flip", "cut", "insert", "delete", "replace"]))
        if kind == "flip" and at < len(content):
            content[at] = draw(st.integers(0, 255))
        elif kind == "cut":
            del content[at:]
        elif kind == "insert":
            content[at:at] = draw(st.sampled_from(PIECES) | st.binary(max_size=8))
        elif kind == "delete":
            del content[at : at + draw(st.integers(1, 8))]
        else:
            piece = draw(st.sampled_from(PIECES))
            content[at : at + len(piece)] = piece
    return bytes(content)


@st.composite
def mutated(draw, suffix):
    return mutate(draw, bytearray(draw(st.sampled_from(SEEDS[suffix])))), draw(
        st.just(ReadOptions()) | OPTIONS
    )


def explore(check: Callable[..., None], *arguments: Any) -> None:
    """Give examples to ``check`` until its share of the time is over."""
    end = time.monotonic() + SECONDS / (len(SEEDS) + 5)  # and the tests below
    examples = settings(max_examples=200 if SECONDS else 25, derandomize=not SECONDS, deadline=None)
    run = examples(check)
    run(*arguments)
    while time.monotonic() < end:
        run(*arguments)


def for_a_while(check: Callable[..., None]) -> Callable[[Any], None]:
    def test(tmp_path_factory: Any) -> None:
        explore(check, tmp_path_factory)

    test.__name__, test.__doc__ = check.__name__, check.__doc__
    return test


def read_or_refuse(path: Path, options: ReadOptions) -> None:
    try:
        with bounded():
            table = without_gaps(path, read_table(path, options=options), "mean")
    except InputError as error:
        message = str(error)
        assert (path.name in message or "--" in message) and "\n" not in message, message  # noqa: PT018 - or it is read
        return
    assert table.rows.ndim == 2
    assert table.rows.size > 0
    assert table.rows.dtype.kind in "fiub"
    assert table.names is None or len(table.names) == table.rows.shape[1]


@pytest.mark.parametrize("suffix", SEEDS)
def test_fuzzed_files_are_read_or_refused(tmp_path_factory, suffix):
    folder = tmp_path_factory.mktemp("fuzz")

    @given(mutated(suffix))
    def check(file):
        content, options = file
        path = folder / f"fuzz{suffix}"
        path.unlink(missing_ok=True)  # an earlier example may still be mapped
        path.write_bytes(content)
        read_or_refuse(path, options)

    explore(check)


@for_a_while
@given(st.data())
def test_inside_of_what_is_compressed(tmp_path_factory, data):
    """Checksums keep random changes from reaching what is inside: here they are made before
    packing.
    """
    folder = tmp_path_factory.getbasetemp() / "inside"
    folder.mkdir(exist_ok=True)
    path = folder / "fuzz.mat"
    size = int.from_bytes(PACKED[132:136], "little")
    inner = mutate(data.draw, bytearray(zlib.decompress(PACKED[136 : 136 + size])))
    packed = zlib.compress(inner)
    path.write_bytes(PACKED[:132] + len(packed).to_bytes(4, "little") + packed)
    read_or_refuse(path, ReadOptions())


SHEET = [b'<row r="1048576">', b'<c r="XFD1048576"><v>1</v></c>', b"</row>", b"<v>", b"&a;",
         b'<dimension ref="A1:XFD1048576"/>', b'r="999999999"', b"<!DOCTYPE a ["]  # fmt: skip


@for_a_while
@given(st.data())
def test_inside_of_a_workbook(tmp_path_factory, data):
    """The same for the parts of a workbook: sheet, list of sheets, texts."""
    path = tmp_path_factory.getbasetemp() / "inside.xlsx"
    with (
        zipfile.ZipFile(io.BytesIO(GOOD[".xlsx"])) as before,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as after,
    ):
        chosen = data.draw(st.sampled_from(sorted(before.namelist())))
        for name in before.namelist():
            content = before.read(name)
            if name == chosen:
                content = mutate(data.draw, bytearray(content))
                piece = data.draw(st.sampled_from([b"", *SHEET]))
                at = content.find(b"<row", data.draw(st.integers(0, len(content))))
                content = content[:at] + piece + content[at:] if at >= 0 else content
            after.writestr(name, content)
    read_or_refuse(path, ReadOptions())


@for_a_while
@given(st.data(), st.sampled_from(["zlib", "bz2", "lz4", "zstd", "blosc", "gzip"]))
def test_chunks_of_zarr(tmp_path_factory, data, codec):
    """Chunks, and what unpacks them."""
    path = tmp_path_factory.getbasetemp() / "chunks.zarr"
    shutil.rmtree(path, ignore_errors=True)
    compressor = numcodecs.get_codec({"id": codec})
    array = zarr.open(str(path), mode="w", shape=(200, 4), chunks=(100, 4), compressor=compressor)
    array[:] = MANY[:200]
    name = data.draw(st.sampled_from(["0.0", "1.0", ".zarray"]))
    (path / name).write_bytes(mutate(data.draw, bytearray((path / name).read_bytes())))
    read_or_refuse(path, ReadOptions())


def _work_for_a_minute():
    end = time.monotonic() + 60
    while time.monotonic() < end:
        pass


def test_bounds_hold_what_they_say():
    """Otherwise nothing above would mean anything."""
    with pytest.raises(AssertionError, match=r"took .* MB"), bounded(memory=50 << 20):
        np.ones(20 << 20)
    with pytest.raises(AssertionError, match="took more than"), bounded(seconds=0.2):
        _work_for_a_minute()
    with bounded():
        np.ones(1 << 20)


WIDE = {
    "numbers": "1," * 4_900_000 + "1\n",
    "numbers in three lines": ("1," * 1_600_000 + "1\n") * 3,
    "points": ("1;" * 1_600_000 + "1\n") * 3,
    "blanks": ("1 " * 1_600_000 + "1\n") * 3,
    "words": "x," * 4_900_000 + "1\n",
    "words below": "1," * 2_400_000 + "x\n" + "1," * 2_400_000 + "1\n",
    "words and blanks": ("x " * 2_400_000 + "1\n") * 2,
    "gaps": "1,n/a," * 800_000 + "1\n" + "n/a,1," * 800_000 + "1\n",
    "dates": ("12:30," * 400_000 + "1\n") * 3,
    "many names": ",".join(f"g{i}" for i in range(400_000)) + "\n" + ("1," * 399_999 + "1\n") * 7,
    "one quotation": '"' * 9_000_000,
    "one number": "a,b\n1," + "9" * 9_000_000 + "\n2,3\n",
    "nothing": ("," * 3_000_000 + "\n") * 3,
    "one column": "a\n" + "1\n" * 4_900_000,
    "one column of words": "a,b\n" + "1,x\n" * 2_400_000,
    "quoted": "a,b\n" + '"1","2"\n' * 1_100_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("case", WIDE)
def test_texts_of_ten_megabytes(tmp_path, case):
    path = tmp_path / "wide.csv"
    path.write_text(WIDE[case])
    assert path.stat().st_size < 10**7
    read_or_refuse(path, ReadOptions())


VALUES = (
    st.none()
    | st.integers()
    | st.text(max_size=6)
    | st.lists(st.integers(-3, 10**9), max_size=3)
    | st.just("<f4")
    | st.just("|O")
)


@for_a_while
@given(
    st.dictionaries(
        st.sampled_from(
            [
                "shape",
                "chunks",
                "dtype",
                "order",
                "fill_value",
                "filters",
                "compressor",
                "zarr_format",
            ]
        ),
        VALUES,
    )
)
def test_fuzzed_zarr(tmp_path_factory, changes):
    path = tmp_path_factory.getbasetemp() / "fuzz.zarr"
    shutil.rmtree(path, ignore_errors=True)
    zarr.save_array(str(path), np.eye(4))
    meta = json.loads((path / ".zarray").read_text())
    (path / ".zarray").write_text(json.dumps(meta | changes))
    read_or_refuse(path, ReadOptions())


TEXTS = st.lists(
    st.lists(
        st.sampled_from(
            [
                "1",
                "-2.5",
                "1,5",
                "",
                "x",
                "n/a",
                "2024-01-01",
                "1e3",
                '"',
                "#",
                "1.000,5",
                "é",
                "12:30",
                "a b",
                "=1",
            ]
        ),
        max_size=5,
    ),
    max_size=12,
)


@for_a_while
@given(
    TEXTS,
    st.sampled_from([",", ";", "\t", " ", "|"]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["utf-8", "utf-16", "latin-1"]),
    OPTIONS,
)
def test_texts_of_all_kinds(tmp_path_factory, rows, delimiter, end, encoding, options):
    path = tmp_path_factory.getbasetemp() / "fuzz.csv"
    path.write_bytes(end.join(delimiter.join(row) for row in rows).encode(encoding))
    read_or_refuse(path, options)
