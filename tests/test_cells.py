"""Names that would be formulas in a spreadsheet, or steer a terminal."""

from __future__ import annotations

import base64
import csv
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from typer.testing import CliRunner

from symlift.cli import app
from symlift.runs.readers import read_table
from symlift.runs.writers import open_rows
from symlift.storage.csv_cells import plain_cell, safe_cell

FORMULAS = ("=1+1", "+1+1", "-cmd", "@SUM(A1)", "\t=1", "'=1+1", "''-a", " =2", "＝1")
STEERS = "a\x1b[2Jb"


@given(st.text(alphabet="'=+-@ \t1a.", max_size=8))
def test_a_cell_is_read_back_as_it_was(text: str) -> None:
    written = safe_cell(text)
    if written != text:
        assert plain_cell(written) == text
    assert written[:1] not in ("=", "@", "\t")


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_names_are_read_back_as_they_were(tmp_path: Path, suffix: str) -> None:
    names = [name.strip() for name in FORMULAS]
    names = [*dict.fromkeys(names), "plain", "-1.5e3"]
    path = tmp_path / f"x{suffix}"
    rows = np.random.default_rng(0).normal(size=(9, len(names)))
    with open_rows(path, rows.shape, names=names) as sink:
        sink[0:9] = rows
    delimiter = "\t" if suffix == ".tsv" else ","
    header = path.read_text(encoding="utf-8").splitlines()[0].split(delimiter)
    assert all(cell[0] == "'" for cell in header[:-2])
    assert header[-2:] == ["plain", "-1.5e3"]
    assert read_table(path).names == tuple(names)


def _recovered(folder: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]) -> str:
    monkeypatch.chdir(folder)
    field = np.random.default_rng(0).normal(size=(400, 30))
    X = sum(np.roll(field, k, axis=1)[:, : len(names)] * 0.6**k for k in range(4))
    # no text file may hold them all
    parquet.write_table(pa.table(dict(zip(names, X.T, strict=True))), "x.parquet")
    done = CliRunner().invoke(app, ["recover", "x.parquet", "--grid", str(len(names)), "--verbose"])
    assert done.exit_code == 0, done.output
    return done.output


def test_no_formula_in_placement_or_downloads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"={i}+cmd" for i in range(12)]
    _recovered(tmp_path, monkeypatch, names)
    with (tmp_path / "x-symlift" / "placement.csv").open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    assert [row["name"] for row in table] == [f"'{name}" for name in names]
    page = (tmp_path / "x-symlift" / "report.html").read_text(encoding="utf-8")
    for data in re.findall(r"data:text/csv;base64,([A-Za-z0-9+/=]+)", page):
        for row in csv.reader(base64.b64decode(data).decode().splitlines()):
            assert not any(cell.startswith(("=", "@")) for cell in row)


def test_names_cannot_steer_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = _recovered(tmp_path, monkeypatch, [f"{STEERS}{i}" for i in range(12)])
    assert "\x1b" not in said
    assert r"a\x1b[2Jb" in said
