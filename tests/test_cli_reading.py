"""Commands that read files: standard input, what inspect says, how signals are written, exit codes
for scripts.
"""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import zarr
from rich.console import Console

from symlift import Diagnosis, InputError, Verdict, load, read
from symlift.runs.inspect import inspect
from symlift.runs.readers import ReadOptions
from symlift.runs.readers.kinds import local_file
from symlift.runs.record import InputRecord, open_run
from symlift_paper import commands as experiments

sys.path.insert(0, str(Path(__file__).parent / "attack"))
from commands import everything, refused, run_command

RANDOM = ("--grid", "4", "--solver", "random", "--no-check", "--no-report")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.laplace(size=(50, 4)), columns=list("abcd"))
    frame.to_csv("x.csv", index=False)
    frame.assign(t=pd.date_range("2024-01-01", periods=50)).to_csv("t.csv", index=False)
    return tmp_path


class Piped:
    """Standard input with bytes in it."""

    def __init__(self, content: bytes, terminal: bool = False) -> None:
        self.buffer = io.BytesIO(content)
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


def npy_bytes(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def test_standard_input_is_read_by_its_content(here, monkeypatch):
    X = pd.read_csv("x.csv").to_numpy()
    frame = pd.DataFrame(X)
    book = io.BytesIO()
    frame.to_excel(book, index=False)
    for k, content in enumerate((Path("x.csv").read_bytes(), npy_bytes(X), book.getvalue())):
        monkeypatch.setattr(sys, "stdin", Piped(content))
        code, out, err = run_command("recover", "-", "--out", f"run{k}", *RANDOM, "--json")
        assert (code, json.loads(out)["n"]) == (0, 50), err
        assert open_run(Path(f"run{k}")).record.input.name.startswith("stdin.")
    monkeypatch.setattr(sys, "stdin", Piped(Path("x.csv").read_bytes()))
    assert run_command("transform", "run0", "-", "--out", "y.npy")[0] == 0
    assert np.allclose(np.load("y.npy"), load("run0").transform(pd.read_csv("x.csv")))
    monkeypatch.setattr(sys, "stdin", Piped(b"a,b\n1,2\n3,oops\n4,5\n"))
    assert "standard input, line 3, column 'b'" in refused(here, "oops", "recover", "-")
    monkeypatch.setattr(sys, "stdin", Piped(b""))
    refused(here, "standard input is empty", "recover", "-")
    monkeypatch.setattr(sys, "stdin", Piped(b"", terminal=True))
    refused(here, "pipe the data in", "recover", "-")


def test_nothing_of_standard_input_stays(here, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = everything(tmp_path)
    monkeypatch.setattr(sys, "stdin", Piped(b"1,2\n3,4\n"))
    with local_file(Path("-")) as path:
        assert path.read_bytes() == b"1,2\n3,4\n"
    assert everything(tmp_path) == before


@pytest.mark.parametrize("name", ["y.csv", "y.tsv", "y.parquet", "y.zarr", "y.npy", "y.npz"])
def test_signals_are_written_with_names_where_the_format_has_them(here, name):
    assert run_command("recover", "x.csv", "--out", "run", *RANDOM)[0] == 0
    assert run_command("transform", "run", "x.csv", "--out", name)[0] == 0
    expected = load("run").transform(pd.read_csv("x.csv"))
    if name == "y.zarr":
        assert np.allclose(zarr.open(name, mode="r")[...], expected)
    else:
        table = read(name)
        assert np.allclose(table.rows, expected)
        assert table.names == (None if name in ("y.npy", "y.npz") else ("p0", "p1", "p2", "p3"))
    # nothing is replaced unasked, everything when asked
    refused(here, "give --overwrite", "transform", "run", "x.csv", "--out", name)
    assert run_command("transform", "run", "x.csv", "--out", name, "--overwrite")[0] == 0
    assert {p.name for p in here.iterdir()} == {"x.csv", "t.csv", "run", name}


def test_a_write_that_fails_leaves_nothing(here, monkeypatch):
    assert run_command("recover", "x.csv", "--out", "run", *RANDOM)[0] == 0
    before = everything(here)

    def fail(*_, **__):
        raise InputError("no more")

    monkeypatch.setattr("symlift.core.model.LiftedModel.lift", fail)
    for name in ("y.csv", "y.parquet", "y.zarr"):
        assert run_command("transform", "run", "x.csv", "--out", name)[0] == 2
        assert everything(here) == before


def test_transform_reads_as_the_run_was_read(here):
    frame = pd.read_csv("t.csv")
    code, _, err = run_command(
        "recover", "t.csv", "--drop", "b", "--out", "run", "--grid", "3", *RANDOM[2:]
    )
    assert code == 0
    assert "note: column 't' (dates) is left out" in err
    assert run_command("transform", "run", "t.csv", "--out", "y.npy")[0] == 0
    assert np.allclose(np.load("y.npy"), load("run").transform(frame[list("acd")]))
    # without the column that was dropped, in another order, in another format, with more columns
    frame[["d", "a", "c"]].to_csv("other.tsv", sep="\t", index=False)
    frame.assign(e=1.5).to_parquet("other.parquet")
    for name in ("other.tsv", "other.parquet"):
        assert run_command("transform", "run", name, "--out", "z.npy", "--overwrite")[0] == 0
        assert np.allclose(np.load("z.npy"), np.load("y.npy"))
    frame.loc[[3, 4], "a"] = np.nan
    frame.to_csv("gaps.csv", index=False)
    refused(
        here,
        "2 of 50 rows have gaps (NaN), in column 'a': --nan drop keeps 48",
        "transform",
        "run",
        "gaps.csv",
        "--out",
        "g.npy",
    )
    for nan, n in (("drop", 48), ("mean", 50)):
        assert (
            run_command(
                "transform", "run", "gaps.csv", "--out", "g.npy", "--nan", nan, "--overwrite"
            )[0]
            == 0
        )
        assert np.load("g.npy").shape == (n, 3)
    filled = frame[list("acd")].fillna(pd.Series(load("run").mean_, index=list("acd")))
    assert np.allclose(np.load("g.npy"), load("run").transform(filled))
    refused(
        here,
        "drop, mean or pairwise",
        "transform",
        "run",
        "gaps.csv",
        "--out",
        "h.npy",
        "--nan",
        "what",
    )


def test_records_of_before_are_read():
    old = InputRecord.model_validate({"name": "x.npz", "sha256": "0", "shape": [3, 2], "key": "a"})
    assert old.reading == ReadOptions(key="a")
    assert InputRecord.model_validate(old.model_dump(mode="json")) == old


def test_inspect_says_what_is_there_and_what_to_do(here):
    rng = np.random.default_rng(1)
    walk = np.cumsum(rng.normal(size=(400, 3)), axis=0)
    frame = pd.DataFrame(walk, columns=list("abc")).assign(
        same=lambda f: f.a, dead=7.0, id=np.arange(400), when="2024-01-01"
    )
    frame.loc[[5, 6], "b"] = np.nan
    frame.loc[len(frame)] = frame.loc[399]
    frame.to_csv("log.csv", index=False)
    seen = inspect(Path("log.csv"), ReadOptions())
    assert (seen.rows, seen.columns, seen.gaps, seen.columns_with_gaps) == (401, 6, 2, {"b": 2})
    assert (seen.constant, seen.index_like, seen.alike) == (("dead",), ("id",), ("same",))
    assert seen.duplicate_rows == 1
    assert seen.independent < 100
    assert not seen.fit
    assert seen.command == "symlift recover log.csv --nan drop"
    code, out, err = run_command("inspect", "log.csv", "--drop", "id", "--drop", "same")
    assert (code, err) == (0, "")
    assert "they follow each other in time" in out
    assert "gaps: 2 of 401 rows, most in b (2)" in out
    assert out.endswith("next: symlift recover log.csv --drop id --drop same --nan drop\n")
    assert {p.name for p in here.iterdir()} == {"x.csv", "t.csv", "log.csv"}
    fine = json.loads(run_command("inspect", "x.csv", "--json")[1])
    assert (fine["fit"], fine["problems"], fine["command"]) == (True, [], "symlift recover x.csv")
    np.savez("two.npz", X=walk, y=walk[:3])
    code, out, _ = run_command("inspect", "two.npz")
    assert (code, out) == (0, "two.npz holds X, y\nnext: symlift inspect two.npz --key X\n")
    turned = inspect_array(walk.T)
    assert turned.command.endswith("--transpose")
    assert "1 of 3" not in str(turned.problems)
    broken = walk.copy()
    broken[3, 1] = np.inf
    assert "1 entries are infinite" in str(inspect_array(broken).problems)
    assert "0 of 3 columns vary" in str(inspect_array(np.ones((5, 3))).problems)


def inspect_array(array: np.ndarray):
    np.save("array.npy", array)
    return inspect(Path("array.npy"), ReadOptions())


def test_no_evidence_is_exit_code_three_where_it_is_asked_for(here, monkeypatch):
    for verdict, code in ((Verdict.ABSENT, 3), (Verdict.PRESENT, 0), (Verdict.ORDERED, 0)):
        monkeypatch.setattr(
            "symlift.LatentDomain.diagnose", lambda self, X, v=verdict, **_: Diagnosis(v, 0.9)
        )
        arguments = (
            "recover",
            "x.csv",
            "--grid",
            "4",
            "--solver",
            "random",
            "--no-report",
            "--overwrite",
        )
        assert run_command(*arguments, "--exit-code")[0] == code
        assert run_command(*arguments)[0] == 0
    refused(here, "give one of them", "recover", "x.csv", "--exit-code", "--no-check")


def test_names_of_experiments_are_never_cut(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(experiments, "Console", lambda: Console(file=out, width=30))
    code, _, _ = run_command("experiment", "list")
    assert code == 0
    for name in (
        "gsn63-gaussian-identity",
        "mnist27-shuffled",
        "neural-head-direction",
        "ablation",
    ):
        assert name in out.getvalue()


def test_extras_of_writing_are_named_when_missing(here, monkeypatch):
    assert run_command("recover", "x.csv", "--out", "run", *RANDOM)[0] == 0
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "zarr", None)
    for name in ("y.parquet", "y.zarr"):
        refused(here, "pip install 'symlift[data]'", "transform", "run", "x.csv", "--out", name)


def test_extras_of_reading_are_named_when_missing(here, monkeypatch):
    pd.read_csv("x.csv").to_excel("x.xlsx", index=False)
    pd.read_csv("x.csv").to_parquet("x.parquet")
    Path("x.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    for name, module in (("x.xlsx", "openpyxl"), ("x.parquet", "pyarrow"), ("x.h5", "h5py")):
        for inner in [key for key in sys.modules if key.partition(".")[0] == module] + [
            module,
            f"{module}.parquet",
        ]:
            monkeypatch.setitem(sys.modules, inner, None)
        refused(
            here,
            f"{name} needs {module}, which is not installed: pip install 'symlift[data]'",
            "recover",
            name,
        )


def test_gaps_are_predicted_where_signals_are_kept(here):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4))
    X[::9, 2] = np.nan
    np.save("gaps.npy", X)
    arguments = (
        "--grid",
        "4",
        "--mixing",
        "shuffled",
        "--no-check",
        "--no-report",
        "--signals",
        "--nan",
        "pairwise",
    )
    code, _, err = run_command("recover", "gaps.npy", *arguments)
    assert code == 0, err
    assert np.allclose(np.load("gaps-symlift/signals.npy"), load("gaps-symlift").transform(X))
    assert run_command("transform", "gaps-symlift", "gaps.npy", "--out", "y.npy")[0] == 0
    assert np.allclose(np.load("y.npy"), load("gaps-symlift").transform(X))


def test_a_pipe_that_is_no_file_is_said_so(here):
    os.mkfifo("pipe.csv")
    assert "give - and pipe them in" in run_command("recover", "pipe.csv")[2]
