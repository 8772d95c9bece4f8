from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io.matlab
from scipy.io import savemat
from scipy.sparse import csr_matrix

from symlift import InputError
from symlift.core.rows import forget_pages
from symlift.runs.readers import content_hash, read_rows, read_table
from symlift.runs.writers import open_rows, write_rows


@pytest.fixture
def X(rng):
    return rng.laplace(size=(40, 5))


# -- what is right ---------------------------------------------------------------------------------


def test_npy_is_a_memmap_in_any_order_and_byte_order(tmp_path, X):
    for k, array in enumerate(
        (X, X.astype(">f4"), np.asfortranarray(X), (X * 9).astype(np.int16), X > 0)
    ):
        np.save(tmp_path / f"{k}.npy", array)
        rows = read_rows(tmp_path / f"{k}.npy")
        assert isinstance(rows, np.memmap)
        assert np.array_equal(rows, array)
        assert not rows.flags.writeable
        forget_pages(rows)
        assert np.array_equal(rows, array)
    with (tmp_path / "v2.npy").open("wb") as file:
        np.lib.format.write_array(file, X, version=(2, 0))
    assert np.array_equal(read_rows(tmp_path / "v2.npy"), X)


def test_npz_with_one_array_or_a_key(tmp_path, X):
    np.savez(tmp_path / "one.npz", X)
    np.savez_compressed(tmp_path / "two.npz", a=X, b=X[:3])
    assert np.array_equal(read_rows(tmp_path / "one.npz"), X)
    assert np.array_equal(read_rows(str(tmp_path / "two.npz"), "b"), X[:3])


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ("1,2\n3,4\n", None, [[1, 2], [3, 4]]),
        ("a,b\r\n1,2\r\n3,4e-1\r\n", ("a", "b"), [[1, 2], [3, 0.4]]),
        ("\ufeffa;b\n1;.5\n\n3;-4.\n", ("a", "b"), [[1, 0.5], [3, -4]]),
        ("\n1\t2\n", None, [[1, 2]]),
        ("# a,b\n1,2\n", ("a", "b"), [[1, 2]]),
        ('"x, m","y"\n"1",2\n', ("x, m", "y"), [[1, 2]]),
        (
            "0,1,2\n5,6,7\n",
            ("0", "1", "2"),
            [[5, 6, 7]],
        ),  # as pandas names columns that have no names
        ("7\n8", None, [[7], [8]]),
        ("nan,1\n2,inf\n", None, [[np.nan, 1], [2, np.inf]]),  # the estimator names row and column
        ("a,b\n1 , 2\n", ("a", "b"), [[1, 2]]),
        ("1,2\n3,\n", None, [[1, 2], [3, np.nan]]),  # a gap
        ("1,5;2,5\n1,5;2,5\n1;1\n", None, [[1.5, 2.5], [1.5, 2.5], [1, 1]]),
        (",a,b\n0,5,5\n1,6,6\n", ("a", "b"), [[5, 5], [6, 6]]),  # the index of a data frame
        (",0,1,2\n0,5,5,5\n1,6,6,6\n", ("0", "1", "2"), [[5, 5, 5], [6, 6, 6]]),
        (",,\n1,2,3\n", None, [[1, 2, 3]]),
    ],
)
def test_csv_with_and_without_header(tmp_path, text, names, rows):
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode())
    table = read_table(path)
    assert table.names == names
    assert np.array_equal(table.rows, np.array(rows, dtype=float), equal_nan=True)


@pytest.mark.parametrize("compressed", [False, True])
def test_mat_with_one_variable_or_a_key(tmp_path, X, compressed):
    savemat(tmp_path / "one.mat", {"X": X}, do_compression=compressed)
    several = {"X": X, "Y": X[:2], "s": {"a": 1}, "c": "text", "a_rather_long_name": X[:3]}
    savemat(tmp_path / "two.MAT", several, appendmat=False, do_compression=compressed)
    assert np.array_equal(read_rows(tmp_path / "one.mat"), X)
    assert np.array_equal(read_rows(tmp_path / "two.MAT", "Y"), X[:2])
    assert np.array_equal(read_rows(tmp_path / "two.MAT", "a_rather_long_name"), X[:3])
    with pytest.raises(InputError, match="from X, Y, s, c, a_rather_long_name"):
        read_rows(tmp_path / "two.MAT")
    for kind in (
        np.float32,
        np.int8,
        np.uint8,
        np.int16,
        np.uint16,
        np.int32,
        np.uint32,
        np.int64,
        np.uint64,
        bool,
    ):
        rows = (50 * np.abs(X[:3])).astype(kind)
        savemat(tmp_path / "kind.mat", {"k": rows}, do_compression=compressed)
        read = read_rows(tmp_path / "kind.mat")
        assert np.array_equal(read, rows)
        assert kind is bool or read.dtype == kind


def test_mat_as_matlab_writes_it():
    """Doubles that are whole numbers stored as bytes, both byte orders: files that came with
    scipy's tests.
    """
    folder = Path(scipy.io.matlab.__file__).parent / "tests" / "data"
    files = sorted(folder.glob("testdouble_[67]*.mat")) + sorted(
        folder.glob("testmatrix_[67]*.mat")
    )
    if not files:
        pytest.skip("scipy is installed without its test data")
    for path in files:
        name = path.name.split("_")[0]
        assert np.array_equal(read_rows(path, name), scipy.io.loadmat(path)[name]), path


def test_parquet(tmp_path, X):
    import pyarrow as pa
    from pyarrow import parquet

    columns = {"a": X[:, 0], "b": X[:, 1].astype(np.float32), "__index_level_0__": np.arange(40)}
    parquet.write_table(pa.table(columns), tmp_path / "x.parquet")
    table = read_table(tmp_path / "x.parquet")
    assert table.names == ("a", "b")
    assert np.allclose(table.rows, X[:, :2])
    parquet.write_table(pa.table({"a": ["u", "v"]}), tmp_path / "text.parquet")
    with pytest.raises(InputError, match=r"text\.parquet has no columns of numbers: 'a' \(text\)"):
        read_rows(tmp_path / "text.parquet")
    parquet.write_table(pa.table({}), tmp_path / "none.parquet")
    with pytest.raises(InputError, match="no columns"):
        read_rows(tmp_path / "none.parquet")


def test_zarr(tmp_path, X):
    import zarr

    zarr.save_array(str(tmp_path / "x.zarr"), X)
    zarr.save_group(str(tmp_path / "two.zarr"), a=X, b=X[:2])
    assert np.array_equal(read_rows(tmp_path / "x.zarr"), X)
    assert np.array_equal(read_rows(tmp_path / "two.zarr", "b"), X[:2])
    with pytest.raises(InputError, match="from a, b"):
        read_rows(tmp_path / "two.zarr")
    with pytest.raises(InputError, match="leave out --key"):
        read_rows(tmp_path / "x.zarr", "a")


def test_extras_are_named_when_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "zarr", None)
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    (tmp_path / "x.zarr").mkdir()
    for name in ("x.parquet", "x.zarr"):
        with pytest.raises(InputError, match=r"not installed: pip install 'symlift\[data\]'"):
            read_rows(tmp_path / name)


def test_pickle_is_never_loaded_not_even_through_a_codec_of_zarr(tmp_path):
    store = tmp_path / "x.zarr"
    store.mkdir()
    (store / ".zarray").write_text('{"filters": [{"id": "\\u0070ickle"}]}')
    with pytest.raises(InputError, match="pickle, which is never loaded"):
        read_rows(store)


# -- what is wrong ---------------------------------------------------------------------------------


def _npy(array) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def _npz(**arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _mat(**arrays) -> bytes:
    buffer = io.BytesIO()
    savemat(buffer, arrays)
    return buffer.getvalue()


def _negative() -> bytes:
    return _npy(np.zeros((2, 3))).replace(b"(2, 3)", b"(-2,3)")


BAD = {
    "x.npy truncated": (_npy(np.zeros((9, 9)))[:-5], "truncated: 643 of 648"),
    "x.npy cut in its header": (_npy(np.zeros((9, 9)))[:20], "write it again"),
    "x.npy not numpy": (b"hello, this is not an array", "not a .npy file"),
    "x.npy negative shape": (_negative(), "damaged"),
    "x.npy version 3": (b"\x93NUMPY\x03\x00", "version 3.0"),
    "x.npy 1-D": (_npy(np.zeros(5)), r"shape \(5,\).*X.reshape\(n, d\)"),
    "x.npy scalar": (_npy(np.float64(5)), r"shape \(\)"),
    "x.npy 3-D": (_npy(np.zeros((7, 3, 4))), r"X.reshape\(7, 12\), and give --grid 3x4"),
    "x.npy no rows": (_npy(np.zeros((0, 4))), "no rows"),
    "x.npy no columns": (_npy(np.zeros((4, 0))), "no columns"),
    "x.npy complex": (_npy(np.zeros((4, 2), complex)), "complex"),
    "x.npy objects": (_npy(np.array([[object()]])), "never loaded"),
    "x.npy text": (_npy(np.array([["a"]])), "holds text"),
    "x.npy dates": (_npy(np.zeros((2, 2), "M8[s]")), "datetime64"),
    "x.npy fields": (_npy(np.zeros((2, 2), [("a", float)])), "named fields"),
    "x.npz not a zip": (b"PK nothing", "not a .npz file"),
    "x.npz truncated": (_npz(a=np.zeros((9, 9)))[:200], "not a .npz file"),
    "x.npz several": (
        _npz(a=np.zeros((2, 2)), b=np.zeros((2, 2))),
        "choose one with --key, from a, b",
    ),
    "x.npz many": (_npz(**{f"a{k}": np.zeros((2, 2)) for k in range(20)}), "and 8 more"),
    "x.npz objects": (_npz(a=np.array([[object()]])), "never loaded"),
    "x.npz empty": (_npz(), "no arrays"),
    "x.csv words": (
        b"a,b\n1,2\n3,oops\n",
        r"line 3, column 'b': 'oops' is not a number: correct it.*--drop b",
    ),
    "x.csv word in the first row": (b"1,2,oops\n3,4,5\n", r"line 1, column 3: 'oops'"),
    "x.csv long word": (b"1,2\n3," + b"z" * 99 + b"\n", r"line 2, column 2: 'z{27}\.\.\.'"),
    "x.csv ragged": (b"1,2\n\n3\n", "line 3: 1 entries where other lines have 2"),
    "x.csv decimal comma later": (
        b"a;b\n" + b"1.5;2.5\n" * 300 + b"1;2,5\n",
        "line 302, column 'b'.*--decimal ,",
    ),
    "x.csv header only": (b"a,b\n", "no rows"),
    "x.csv blank": (b"\n\n", "no rows"),
    "x.csv names do not fit": (b"a,b,c\n1,2\n1,2\n", "3 names in its header, but 2 columns"),
    "x.csv not text": (b"1,2\n\x01\x00\x07,3\n", "not text"),
    "x.csv a stranger's letters": (b"1,2\n\xff\xfe,3\n", "line 2, column 1: 'ÿþ' is not a number"),
    "x.csv hexadecimal": (b"1,2\n0x10,3\n", "line 2, column 1"),
    "x.csv huge field": (b"a" * 200_000 + b"," + b"b" * 200_000, "x.csv"),
    "x.mat 7.3": (b"MATLAB 7.3 MAT-file" + b" " * 600, "not a .mat file"),
    "x.mat rubbish": (b"rubbish" * 100, "not a MATLAB file"),
    "x.mat truncated": (_mat(X=np.eye(9))[:400], "cut short"),
    "x.mat cut in its values": (_mat(X=np.eye(9))[:184], "x.mat"),
    "x.mat complex": (_mat(X=np.eye(9) * 1j), "complex"),
    "x.mat text": (_mat(X="hello"), "not a matrix of numbers"),
    "x.mat struct": (_mat(X={"a": 1}), "not a matrix of numbers"),
    "x.mat sparse": (_mat(X=csr_matrix(np.eye(3))), r"full\(X\)"),
    "x.mat 3-D": (_mat(X=np.zeros((4, 3, 2))), "--grid 3x2"),
    "x.mat nothing": (_mat(), "no arrays"),
    "x.mat bad tag": (_mat()[:128] + b"\x01\x00\x09\x00" * 2, "bad element"),
    "x.mat other things": (_mat()[:128] + b"\x05\x00\x04\x00" * 2, "no arrays"),
    "x.mat no values": (
        _mat(X=np.eye(9))[:132] + b"\x28\0\0\0" + _mat(X=np.eye(9))[136:176],
        "no values",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_one_line_with_name_and_remedy(tmp_path, case):
    content, words = BAD[case]
    path = tmp_path / case.split()[0]
    path.write_bytes(content)
    with pytest.raises(InputError, match=words) as caught:
        read_rows(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_bad_places(tmp_path, X, monkeypatch):
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", a=X)
    savemat(tmp_path / "sparse.mat", {"S": csr_matrix(np.eye(3))})
    (tmp_path / "folder.npy").mkdir()
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.csv").touch()
    (tmp_path / "x.tab").write_text("1 2")
    (tmp_path / "file.zarr").write_text("1 2")
    os.mkfifo(tmp_path / "pipe.csv")
    cases = [
        ("none.npy", None, "does not exist"),
        ("a\0b.npy", None, "does not exist"),
        ("z" * 300, None, "does not exist"),
        ("folder.npy", None, "is a folder"),
        ("folder", None, "is a folder"),
        ("empty.csv", None, "empty"),
        ("x.tab", None, r"unknown suffix '.tab'.*\.npy, \.npz, \.csv"),
        ("file.zarr", None, "unpack"),
        ("pipe.csv", None, "not a regular file"),
        ("x.npy", "a", "leave out --key"),
        ("x.npz", "b", "no array 'b'.*from a"),
        ("sparse.mat", None, r"full\(S\)"),
        ("sparse.mat", "T", "no array 'T'"),
    ]
    for name, key, words in cases:
        with pytest.raises(InputError, match=words):
            read_rows(tmp_path / name, key)

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(InputError, match=r"x\.npy cannot be read \(Permission denied\)"):
        read_rows(tmp_path / "x.npy")
    with pytest.raises(InputError, match="Permission denied"):
        content_hash(tmp_path / "x.npy")
    monkeypatch.setattr("pathlib.Path.stat", refuse)
    with pytest.raises(InputError, match="permissions"):
        read_rows(tmp_path / "x.npy")


def test_a_lying_archive_is_caught_by_its_checksum(tmp_path, X):
    content = bytearray(_npz(a=X))
    content[300] ^= 1
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(InputError, match="CRC"):
        read_rows(tmp_path / "x.npz")


# -- writing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv"])
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_what_is_written_is_read_back_exactly(tmp_path, X, suffix, kind):
    path = tmp_path / f"y{suffix}"
    rows = (100 * X).astype(kind)
    write_rows(path, rows)
    assert np.array_equal(read_rows(path).astype(kind), rows)
    if suffix == ".npz":
        assert zipfile.ZipFile(path).namelist() == ["rows.npy"]
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_nothing_is_left_of_a_write_that_fails(tmp_path, X):
    with (
        pytest.raises(ValueError, match="do not follow row 0"),
        open_rows(tmp_path / "y.npy", (4, 5)) as sink,
    ):
        sink[1:2] = X[:1]
    with (
        pytest.raises(ValueError, match="2 of 4 rows"),
        open_rows(tmp_path / "y.npz", (4, 5)) as sink,
    ):
        sink[0:2] = X[:2]
    for name, words in (
        ("y.xls", "use one of .npy"),
        ("no/y.npy", "does not exist"),
        ("d.npy", "is a folder"),
    ):
        (tmp_path / "d.npy").mkdir(exist_ok=True)
        with pytest.raises(InputError, match=words):
            write_rows(tmp_path / name, X)
    with pytest.raises(InputError, match="complex"):
        write_rows(tmp_path / "y.npy", X * 1j)
    assert [p.name for p in tmp_path.iterdir()] == ["d.npy"]


def test_hash_of_files_and_folders(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "sub" / "x").write_bytes(b"1")
    assert content_hash(tmp_path / "a") == content_hash(tmp_path / "b")
    (tmp_path / "b" / "sub" / "x").write_bytes(b"2")
    assert content_hash(tmp_path / "a") != content_hash(tmp_path / "b")
    assert content_hash(tmp_path / "b" / "sub" / "x").startswith("d4735e3a")


@pytest.mark.parametrize(
    "rows", [40_960, pytest.param(1_310_720, marks=pytest.mark.slow)], ids=["640 MB", "20 GB"]
)
def test_a_file_larger_than_the_memory_allowed_streams_through_transform(tmp_path, rows):
    """A sparse file; the signals are written while at most 200 MB above the imports are held,
    however many rows there are.
    """
    code = """
import json, resource, sys
import numpy as np
from pathlib import Path
from symlift import Grid, LiftedModel
from symlift.runs.readers import read_rows
from symlift.runs.signals import lift_to_file
model = LiftedModel.from_lifting_map(np.random.default_rng(0).normal(size=(4, 4096)), Grid((4,)))
model.lift(np.zeros((2, 4096), np.float32))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
lift_to_file(model, read_rows("x.npy"), Path("y.npy"))
print(json.dumps({"mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024}))
"""
    shape = (rows, 4096)
    with (tmp_path / "x.npy").open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 4 * shape[0] * shape[1])
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["mb"] < 200
    assert read_rows(tmp_path / "y.npy").shape == (rows, 4)


def test_a_header_of_many_names(tmp_path):
    """Before the delimiter is known, a header is one entry: longer than the csv module allows."""
    import csv

    names = [f"ENSG{i:011d}.1" for i in range(12_000)]
    rows = np.random.default_rng(0).integers(0, 50, (30, len(names)))
    lines = [",".join(names), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    before = csv.field_size_limit()
    table = read_table(tmp_path / "x.csv")
    assert csv.field_size_limit() == before
    assert table.names == tuple(names)
    np.testing.assert_array_equal(table.rows, rows)
