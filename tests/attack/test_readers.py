"""Wrong data files: each is refused in one line with exit code 2, and nothing is written."""

from __future__ import annotations

import io
import json
import os
import struct
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
from commands import refused
from pyarrow import feather, parquet
from scipy.io import savemat
from scipy.sparse import csr_matrix

X = np.random.default_rng(1).normal(size=(40, 5))


def buffered(write: Callable[[Any], Any]) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def npy(array: Any) -> bytes:
    return buffered(lambda file: np.save(file, array, allow_pickle=True))


def npz(**arrays: Any) -> bytes:
    return buffered(lambda file: np.savez_compressed(file, **arrays))


def mat(form: str = "5", compressed: bool = False, **arrays: Any) -> bytes:
    return buffered(lambda file: savemat(file, arrays, format=form, do_compression=compressed))


def h5(write: Callable[[Any], Any], **options: Any) -> bytes:
    def fill(buffer: Any) -> None:
        with h5py.File(buffer, "w", **options) as file:
            write(file)

    return buffered(fill)


def mat73(write: Callable[[Any], Any]) -> bytes:
    content = h5(write, userblock_size=512)
    return b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + content[128:]


def table(columns: Any) -> Any:
    return pa.table(columns)


def pq(columns: Any) -> bytes:
    return buffered(lambda file: parquet.write_table(table(columns), file))


def arrow(columns: Any) -> bytes:
    return buffered(lambda file: feather.write_feather(table(columns), file))


def xlsx(rows: list[list[Any]], *more: list[list[Any]]) -> bytes:
    book = openpyxl.Workbook()
    for k, content in enumerate((rows, *more)):
        sheet = book.active if k == 0 else book.create_sheet()
        for row in content:
            sheet.append(row)
    return buffered(book.save)


def nwb(times: Any, ends: Any, **others: Any) -> bytes:
    def write(file: Any) -> None:
        file.create_dataset("units/spike_times", data=times)
        file.create_dataset("units/spike_times_index", data=ends)
        for name, values in others.items():
            file.create_dataset(name.replace("__", "/"), data=values)

    return h5(write)


def declares(content: bytes, size: int) -> bytes:
    """A zip whose directory says of its first member that it unpacks to ``size`` bytes."""
    at = content.index(b"PK\x01\x02")
    return content[: at + 24] + struct.pack("<I", size) + content[at + 28 :]


def zipped(**members: bytes) -> bytes:
    def write(file: Any) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name.replace("__", "/"), content)

    return buffered(write)


def bomb_mat(rows: int, columns: int) -> bytes:
    """A compressed variable that declares far more than is there."""
    size = rows * columns * 8
    inner = (
        struct.pack("<IIII", 6, 8, 6, 0)
        + struct.pack("<IIii", 5, 8, rows, columns)
        + struct.pack("<HHI", 1, 1, ord("X"))
    )
    matrix = (
        struct.pack("<II", 14, min(len(inner) + 8 + size, 2**32 - 1))
        + inner
        + struct.pack("<II", 9, min(size, 2**32 - 1))
    )
    packed = zlib.compress(matrix + bytes(1000))
    return mat()[:128] + struct.pack("<II", 15, len(packed)) + packed


def version_4(
    kind: int = 0,
    rows: int = 3,
    columns: int = 2,
    imaginary: int = 0,
    length: int = 2,
    body: bytes = bytes(48),
) -> bytes:
    return struct.pack("<5i", kind, rows, columns, imaginary, length) + b"X\0" + body


GOOD = {
    ".npy": npy(X),
    ".npz": npz(X=X),
    ".mat": mat(X=X),
    ".h5": h5(lambda f: f.create_dataset("X", data=X)),
    ".parquet": pq({"a": X[:, 0], "b": X[:, 1]}),
    ".arrow": arrow({"a": X[:, 0], "b": X[:, 1]}),
    ".xlsx": xlsx(X.tolist()),
    ".nwb": nwb(np.arange(30.0), [10, 20, 30]),
    ".csv": ("a,b\n" + "0.5,1.5\n" * 20).encode(),
}
GOOD73, GOOD4, PACKED = (
    mat73(lambda f: f.create_dataset("X", data=X)), mat("4", X=X), mat(compressed=True, X=X),
)  # fmt: skip

# name of the file and what it is → (content, words of the one line, further arguments)
CASES: dict[str, tuple[bytes, str, tuple[str, ...]]] = {}


def case(name: str, content: bytes, words: str = "", *arguments: str) -> None:
    assert name not in CASES
    CASES[name] = (content, words, arguments)


# cut short at many places
for suffix, content in GOOD.items():
    if suffix != ".csv":
        for share in (0.02, 0.1, 0.25, 0.5, 0.75, 0.95):
            case(f"x{suffix} cut at {share}", content[: max(1, int(share * len(content)))])
for share in (0.05, 0.3, 0.6, 0.9):
    case(f"x.mat of version 7.3, cut at {share}", GOOD73[: int(share * len(GOOD73))])
    case(f"x.mat of version 4, cut at {share}", GOOD4[: int(share * len(GOOD4))])
    case(f"x.mat, compressed, cut at {share}", PACKED[: int(share * len(PACKED))])
# one kind under the name of another
for suffix in GOOD:
    for other, content in GOOD.items():
        # both are HDF5, as is MATLAB 7.3
        if (
            suffix != other
            and not ({suffix, other} <= {".h5", ".nwb"})
            and (suffix, other) != (".mat", ".h5")
        ):
            case(f"x{suffix} that is {other}", content)
# bytes of nobody
for suffix in GOOD:
    case(f"x{suffix} of 0 bytes", b"", "empty")
    case(f"x{suffix} of zeros", bytes(600))
    case(f"x{suffix} of 255", b"\xff" * 600)
    case(f"x{suffix} of noise", np.random.default_rng(3).bytes(3000))
    case(f"x{suffix} of brackets", b"[" * 5000)
# arrays of the wrong kind
for words, array in {
    "shape (5,)": X[0],
    "reshape(40, 5)": X.reshape(40, 5, 1),
    "complex": X * 1j,
    "shape ()": np.float64(3),
    "no rows": X[:0],
    "no columns": X[:, :0],
    "text": X.astype(str),
}.items():
    case(f"x.npy with {words}", npy(array), words)
    case(f"x.npz with {words}", npz(X=array), words)
for words, array in {
    "shape (5,)": X[0],
    "--grid 5x1": X.reshape(40, 5, 1),
    "no rows": X[:0],
    "no columns": X[:, :0],
}.items():
    case(f"x.h5 with {words}", h5(lambda f, a=array: f.create_dataset("X", data=a)), words)
case("x.npy of objects", npy(np.array([[{}]])), "never loaded")
case("x.npz of objects", npz(X=np.array([[{}]])), "never loaded")
case(
    "x.npy of long doubles",
    npy(X.astype(np.longdouble)) if np.longdouble(0).itemsize > 8 else npy(X * 1j),
)
case("x.npy of dates", npy(np.zeros((3, 3), "M8[s]")), "datetime64")
case("x.npy of fields", npy(np.zeros((3, 3), [("a", float)])), "named fields")
case("x.mat of text", mat(X="hello"), "not a matrix of numbers")
case("x.mat of a struct", mat(X={"a": 1}), "not a matrix of numbers")
case("x.mat of cells", mat(X=np.array([[1, "a"]], dtype=object)), "not a matrix of numbers")
case("x.mat, sparse", mat(X=csr_matrix(np.eye(3))), "full(X)")
case("x.mat, complex", mat(X=X * 1j), "complex")
case("x.mat, 3-D", mat(X=X.reshape(8, 5, 5)), "--grid 5x5")
case("x.mat, empty variable", mat(X=X[:0]), "no rows")
case("x.mat, no variables", mat(), "no arrays")
case("x.mat 4 of text", mat("4", X="hello"), "not a matrix of numbers")
case("x.mat 4, sparse", mat("4", X=csr_matrix(np.eye(3))), "full(X)")
case("x.mat 4, complex", mat("4", X=X * 1j), "complex")
case("x.mat 4 with negative rows", version_4(rows=-3), "not a MATLAB file")
case("x.mat 4 of an unknown kind", version_4(kind=99), "not a MATLAB file")
case("x.mat 4 that declares much", version_4(rows=2**30, columns=2**30), "cut short")
case("x.mat 4 with a long name", version_4(length=2**30), "not a MATLAB file")
case(
    "x.mat 7.3 of text",
    mat73(lambda f: f.create_dataset("X", data=X).attrs.update(MATLAB_class=np.bytes_("char"))),
    "a char",
)
case(
    "x.mat 7.3 of cells",
    mat73(lambda f: f.create_dataset("X", data=X).attrs.update(MATLAB_class=np.bytes_("cell"))),
    "a cell",
)
case(
    "x.mat 7.3, empty",
    mat73(lambda f: f.create_dataset("X", data=[0, 0]).attrs.update(MATLAB_empty=1)),
    "is empty",
)
case("x.mat 7.3 of nothing", mat73(lambda f: None), "no arrays")
# texts whose offsets point far outside: used as they are, they would read memory of others
_TEXTS = buffered(
    lambda file: feather.write_feather(
        table({"t": ["u" * 77, "v" * 99]}), file, compression="uncompressed"
    )
)
_OFFSETS = np.array([0, 77, 176], dtype="<i4").tobytes()
assert _TEXTS.count(_OFFSETS) == 1
case(
    "x.arrow with texts elsewhere",
    _TEXTS.replace(_OFFSETS, np.array([0, 2**30, 2**31 - 1], dtype="<i4").tobytes()),
    "damaged",
)
case("x.h5 of nothing", h5(lambda f: None), "no arrays")
case("x.h5 of text", h5(lambda f: f.create_dataset("X", data=[b"a"])), "no arrays")
case(
    "x.h5 of two",
    h5(lambda f: [f.create_dataset(n, data=X) for n in "ab"]),
    "from /a (40x5), /b (40x5)",
)
case("x.h5 with another key", GOOD[".h5"], "no array 'Y'", "--key", "Y")
case(
    "x.h5 with a group for a key",
    h5(lambda f: f.create_dataset("g/X", data=X)),
    "from /g/X",
    "--key",
    "g",
)
case(
    "x.h5 with a link outside",
    h5(lambda f: f.update({"X": h5py.ExternalLink("/etc/passwd", "/")})),
    "is a link",
    "--key",
    "X",
)
case(
    "x.h5 with a link inside",
    h5(lambda f: f.update({"X": h5py.SoftLink("/X")})),
    "is a link",
    "--key",
    "X",
)
case("x.h5 with a loop", h5(lambda f: f.create_group("a").update({"b": f})), "x.h5")
case(
    "x.h5 kept elsewhere",
    h5(lambda f: f.create_dataset("X", (4, 4), "u1", external=[("/etc/passwd", 0, 16)])),
    "not followed",
)
case(
    "x.h5 of a null",
    h5(lambda f: f.create_dataset("X", data=h5py.Empty("f8"))),
    "is empty",
    "--key",
    "X",
)


def linked_nwb(name: str) -> bytes:
    """Units of which one part is a link to another file."""

    def write(file: Any) -> None:
        parts = {"spike_times": np.arange(5.0), "spike_times_index": [2, 5], "id": [7, 8]}
        for part, values in parts.items():
            if part != name:
                file.create_dataset(f"units/{part}", data=values)
        file.update({f"units/{name}": h5py.ExternalLink("other.h5", "/X")})

    return h5(write)


for name in ("spike_times", "spike_times_index", "id"):
    case(f"x.nwb with {name} elsewhere", linked_nwb(name), f"units/{name} is a link")
case(
    "x.nwb with units elsewhere",
    h5(lambda f: f.update({"units": h5py.ExternalLink("other.h5", "/")})),
    "units is a link",
)
case(
    "x.nwb with ids of a system file",
    h5(
        lambda f: (
            f.create_dataset("units/spike_times", data=[0.0, 1.0]),
            f.create_dataset("units/spike_times_index", data=[1, 2]),
            f.create_dataset("units/id", (2,), "S8", external=[("/etc/passwd", 0, 16)]),
        )
    ),
    "not followed",
)
case("x.nwb of nothing", h5(lambda f: None), "neither units")
case("x.nwb without spikes", nwb(np.zeros(0), [0, 0]), "no spikes")
case("x.nwb with a bad index", nwb(np.arange(5.0), [3, 1]), "do not agree")
case("x.nwb with an index beyond", nwb(np.arange(5.0), [3, 9]), "do not agree")
case("x.nwb with spikes at no time", nwb([0.0, np.nan], [1, 2]), "do not agree")
case("x.nwb with spikes in 2-D", nwb(X, [1, 2]), "no list of numbers")
case("x.nwb with another key", GOOD[".nwb"], "from units (spikes of 3 units)", "--key", "LFP")
case(
    "x.nwb with series and bins",
    nwb([1.0], [1], acquisition__a__data=X),
    "leave out --bin",
    "--key",
    "a",
    "--bin",
    "1",
)
case("x.parquet of text", pq({"a": ["u", "v"]}), "no columns of numbers")
case("x.parquet of lists", pq({"a": [[1, 2], [3]]}), "column 'a' holds list")
case("x.parquet of nothing", pq({}), "no columns")
case("x.parquet without rows", pq({"a": np.zeros(0)}), "no rows")
case("x.arrow of text", arrow({"a": ["u", "v"]}), "no columns of numbers")
case("x.arrow of structs", arrow({"a": [{"b": 1}]}), "column 'a' holds struct")
case("x.xlsx of nothing", xlsx([]), "empty")
case("x.xlsx of words", xlsx([["a", "b"], ["c", "d"]]), "no columns of numbers")
case("x.xlsx of two sheets", xlsx([[1, 2]], [[3, 4]]), "several sheets")
case("x.xlsx with another key", GOOD[".xlsx"], "no sheet 'Data'", "--key", "Data")
case("x.xlsx with a word", xlsx([["a", "b"], [1, 2], [3, "x"], [4, 5]]), "line 3, column 'b': 'x'")
case("x.xlsx that is a zip", zipped(a=b"1"), "no workbook")
case(
    "x.xlsx with entities",
    zipped(xl__workbook__xml=b"", **{"xl/workbook.xml": b"<?xml?><!DOCTYPE a [<!ENTITY b 'c'>]>"}),
    "entities",
)
# more than there can be
case("x.npz that declares less than it holds", declares(GOOD[".npz"], 200), "truncated")
case(
    "x.npz that declares 4 GB",
    declares(GOOD[".npz"], 2**32 - 2),
    "that unpack to 4.0 GB, as no data do",
)
case("x.xlsx that declares 4 GB", declares(GOOD[".xlsx"], 2**32 - 2), "that unpack to")
case("x.mat bomb", bomb_mat(20_000, 20_000), "that unpack to 3.0 GB")
case("x.mat that declares less than its shape", bomb_mat(2**31 - 1, 2**31 - 1), "x.mat")
case(
    "x.h5 bomb",
    h5(lambda f: f.create_dataset("X", (10**7, 10**4), "f8", chunks=(100, 100))),
    "that unpack to",
)
case(
    "x.mat 7.3 bomb",
    mat73(lambda f: f.create_dataset("X", (10**4, 10**7), "f8", chunks=(100, 100))),
    "that unpack to",
)
case(
    "x.nwb bomb",
    h5(lambda f: f.create_dataset("acquisition/a/data", (10**7, 10**4), "f8", chunks=(100, 100))),
    "that unpack to",
)
case("x.nwb over a thousand years", nwb([0.0, 3e13], [1, 2]), "of memory")
case(
    "x.parquet bomb",
    pq({f"c{i}": np.zeros(2_000_000, np.int8) for i in range(20)}),
    "that unpack to",
)
case(
    "x.npy that declares much",
    GOOD[".npy"].replace(b"(40, 5), }", b"(9999999999, 5), }")[: len(GOOD[".npy"])],
    "truncated",
)
# kinds that are not read
for name, words in {
    "x.pkl": "never loaded",
    "x.pt": "never loaded",
    "x.csv.gz": "gunzip -c x.csv.gz",
    "x.zip": "unzip -p",
    "x.xls": "as .xlsx",
    "x.ods": "as .xlsx",
    "x.docx": "unknown suffix '.docx'",
    "x": "unknown suffix ''",
    "x.csv.bz2": "bunzip2",
    "x.npy.xz": "unxz",
}.items():
    case(f"{name} of another kind", b"1,2\n3,4\n", words)
case("x.csv that is gzip", b"\x1f\x8b\x08" + bytes(90), "unpack it first")
# text
for name, text, words in [
    ("header only", "a,b\n", "no rows"),
    ("blank", "\n \n\n", "no rows"),
    ("comment only", "# a,b\n", "no rows"),
    ("words", "a,b\nc,d\ne,f\n", "no columns of numbers"),
    ("a stray word", "a,b\n1,2\n3,x\n4,5\n", "line 3, column 'b': 'x'"),
    ("stray words", "a,b\n" + "1,2\n" * 5 + "1,x\n" * 3, "(3 such entries of 8)"),
    ("a stray without header", "1,2\n3,4\nx,5\n6,7\n", "line 3, column 1: 'x'"),
    ("ragged", "1,2\n3,4\n5\n", "line 3: 1 entries"),
    ("ragged, wide", "1,2\n3,4\n5,6,7\n", "line 3: 3 entries"),
    ("names too many", "a,b,c,d\n1,2\n3,4\n", "4 names in its header"),
    ("names too few", "a,b\n1,2,3,4\n3,4,5,6\n", "2 names in its header, but 4 columns"),
    ("gaps", "a,b\n1,2\n,4\n", "1 of 2 rows have gaps (NaN), in column 'a'"),
    ("gaps everywhere", "a,b\n1,\n,4\n", "2 of 2 rows have gaps (NaN), in 2 columns"),
    ("one row", "1,2,3\n", "one row only"),
    ("open quote", 'a,b\n1,"2\n3,4\n', ""),
    ("hexadecimal", "a,b\n1,2\n0x10,3\n2,3\n", "'0x10'"),
    ("underscores", "a,b\n1,2\n1_0,3\n4,5\n", "'1_0'"),
    ("a long word", "a,b\n1,2\n1," + "z" * 500 + "\n1,3\n", "zzz..."),
    ("NUL", "a,b\n1,2\n\0,3\n", "not text"),
    ("an escape", "a,b\n1,2\n\x1b[31m,3\n", "not text"),
    ("percent", "a,b\n1,2\n3%,4\n5,6\n", "'3%'"),
    ("infinity", "a,b\n1,2\ninf,4\n5,6\n7,9\n", "infinity"),
    ("dates only", "t\n2024-01-01\n2024-01-02\n", "'t' (dates)"),
    ("html", "<html><body>404</body></html>\n", "no rows of numbers"),
    ("json", json.dumps({"a": [1, 2]}, indent=1), ""),
    ("two rows alike", "1,1\n1,1\n", "of which 0 vary"),
]:
    case(f"x.csv: {name}", text.encode(), words)
# options that do not fit
for arguments, words in [
    (("--drop", "c"), "there are a, b"),
    (("--drop", "9"), "there are 2 columns"),
    (("--drop", "2-1"), "counted from 1"),
    (("--drop", "0"), "counted from 1"),
    (("--drop", "a,b"), "no columns of numbers"),
    (("--columns", "aa"), "did you mean 'a'"),
    (("--columns", "a*,z*"), "no such column"),
    (("--index-col", "q"), "no such column"),
    (("--index-col", "*"), "means 2 columns"),
    (("--delimiter", ",,"), "one character"),
    (("--delimiter", "a"), "one character"),
    (("--delimiter", ""), "one character"),
    (("--delimiter", ";"), ""),
    (("--decimal", "x"), "neither"),
    (("--decimal", ",", "--delimiter", ","), "both"),
    (("--bin", "0.1"), "leave out --bin"),
    (("--bin", "-1"), "no width"),
    (("--bin", "nan"), "no width"),
    (("--key", "a"), "leave out --key"),
    (("--nan", "what"), "drop, mean or pairwise"),
    (("--header", "--columns", "c"), "no such column"),
    (("--no-header",), "is not a number"),
    (("--no-header", "--drop", "a"), "give their numbers"),
    (("--transpose", "--columns", "a", "--mixing", "linear"), ""),
]:
    case(f"x.csv {' '.join(arguments)}", GOOD[".csv"], words, *arguments)
for suffix in (".npy", ".parquet", ".h5", ".nwb"):
    for option in ("--delimiter", "--decimal"):
        case(f"x{suffix} {option}", GOOD[suffix], f"leave out {option}", option, ",")
    case(f"x{suffix} --header", GOOD[suffix], "leave out --header", "--header")


@pytest.mark.parametrize("name", CASES)
def test_a_bad_file_is_one_line(tmp_path, monkeypatch, name):
    content, words, arguments = CASES[name]
    monkeypatch.chdir(tmp_path)
    path = Path(name.split()[0].rstrip(":,"))
    path.write_bytes(content)
    message = refused(tmp_path, words, "recover", path, *arguments)
    assert str(path) in message or arguments


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CASES)[::8])
def test_a_bad_file_is_one_line_of_the_real_command(tmp_path, name):
    content, words, arguments = CASES[name]
    path = tmp_path / name.split()[0].rstrip(":,")
    path.write_bytes(content)
    command = [sys.executable, "-m", "symlift", "recover", path.name, *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert words in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def zarray(path: Path, **changes: Any) -> None:
    zarr.save_array(str(path), X)
    meta = json.loads((path / ".zarray").read_text())
    (path / ".zarray").write_text(json.dumps(meta | changes))


ZARR = {
    "a huge shape": ({"shape": [10**7, 10**4]}, "that unpack to"),
    "a huge chunk": ({"chunks": [10**6, 10**5]}, "that unpack to"),
    "no rows": ({"shape": [0, 5]}, "no rows"),
    "one axis": ({"shape": [200], "chunks": [200]}, "shape (200,)"),
    "pickle": ({"filters": [{"id": "pickle"}]}, "never loaded"),
    "a way out": ({"dimension_separator": "/../"}, "neither '.' nor '/'"),
    "an unknown codec": ({"compressor": {"id": "mine"}}, "'mine', which is not read"),
    "objects": ({"dtype": "|O"}, "x.zarr"),
    "complex": ({"dtype": "<c16", "fill_value": [0, 0]}, "complex"),
    "text": ({"dtype": "<U4"}, "text"),
    "a negative shape": ({"shape": [-4, 5]}, "x.zarr"),
    "a bad order": ({"order": "Q"}, "x.zarr"),
    "a bad format": ({"zarr_format": 9}, "x.zarr"),
    "codecs that are words": ({"compressor": "blosc"}, "x.zarr"),
}


@pytest.mark.parametrize("name", ZARR)
def test_a_bad_zarr_is_one_line(tmp_path, monkeypatch, name):
    changes, words = ZARR[name]
    monkeypatch.chdir(tmp_path)
    zarray(Path("x.zarr"), **changes)
    refused(tmp_path, words, "recover", "x.zarr")


def test_damaged_chunks_and_metadata_of_zarr(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    zarr.save_array("x.zarr", X)
    (Path("x.zarr") / "0.0").write_bytes(b"\x02\x01\x00" * 9)
    refused(tmp_path, "x.zarr", "recover", "x.zarr")
    for text in ("", "{", "[]", '"a"', "[" * 100_000):
        (Path("x.zarr") / ".zarray").write_text(text)
        refused(tmp_path, "x.zarr", "recover", "x.zarr")


def test_a_chunk_that_is_shorter_than_it_says(tmp_path, monkeypatch):
    """Blosc believes the length in its header: this one crashed the process."""
    monkeypatch.chdir(tmp_path)
    codec = numcodecs.Blosc()
    array = zarr.open("x.zarr", mode="w", shape=(100, 4), chunks=(100, 4), compressor=codec)
    array[:] = np.zeros((100, 4))
    header = (
        b"\x02\x01!\x08" + (3200).to_bytes(4, "little") * 2 + (960_051_604).to_bytes(4, "little")
    )
    for content in (header + b"9" * 13 + b"\xff" + b"9" * 6 + b"\0", header[:9]):
        (Path("x.zarr") / "0.0").write_bytes(content)
        refused(tmp_path, "damaged", "recover", "x.zarr")


def test_there_are_enough_cases():
    assert len(CASES) + len(ZARR) >= 200


@pytest.mark.parametrize("kind", ["symbolic", "dangling", "pipe"])
@pytest.mark.parametrize("name", ["0.0", ".zarray", "group"])
def test_nothing_outside_of_a_zarr_is_read(tmp_path, monkeypatch, name, kind):
    monkeypatch.chdir(tmp_path)
    zarr.save_array("x.zarr", X)
    path = Path("x.zarr") / name
    if path.exists():
        path.rename("outside")
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(Path("../outside" if kind == "symbolic" else "../nowhere"))
    refused(tmp_path / "x.zarr", "a link or a pipe", "recover", "x.zarr")
