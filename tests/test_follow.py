"""`symlift watch`: rows of a file that grows, or of a pipe."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter
from typer.testing import CliRunner

from symlift import load
from symlift.cli.app import app
from symlift.errors import InputError
from symlift.runs.follow import lines_of, tables_of
from symlift.runs.readers.options import ReadOptions

SIDE = 6
NAMES = [f"s{k}" for k in range(SIDE * SIDE)]


def field(n: int, seed: int = 0) -> np.ndarray:
    """A smooth field on a square, its columns shuffled."""
    rng = np.random.default_rng(seed)
    smooth = gaussian_filter(rng.normal(size=(n, SIDE + 8, SIDE + 8)), (0, 1.2, 1.2))
    rows = smooth[:, 4:-4, 4:-4].reshape(n, -1)
    rows = rows / rows.std() + 0.05 * rng.normal(size=(n, SIDE * SIDE))
    return rows[:, rng.permutation(SIDE * SIDE)]


def text(rows: np.ndarray, names: list[str] | None = None) -> str:
    head = "" if names is None else ",".join(names) + "\n"
    return head + "".join(",".join(f"{v:.5g}" for v in row) + "\n" for row in rows)


@pytest.fixture(scope="module")
def exchanged() -> np.ndarray:
    """Columns 3 and 20 exchange places after 1,000 of 1,400 rows."""
    X = field(1_400)
    X[1_000:, [3, 20]] = X[1_000:, [20, 3]]
    return X


def test_an_exchange_is_said_with_its_first_row(exchanged):
    said = CliRunner().invoke(
        app, ["watch", "-", "--grid", "6x6", "--batch", "100", "-q"], input=text(exchanged, NAMES)
    )
    assert said.exit_code == 0, said.output
    first, last, grid = said.stdout.splitlines()
    assert "'s3'" in first
    assert "'s20'" in first
    assert "from row 1,001 on (batch 11)" in first
    assert last == "the rows have ended: 1,400 rows in 14 batches, exchanges of columns: 1"
    assert grid == "grid: 6x6"


def test_rows_without_an_exchange_and_as_json(tmp_path):
    folder = tmp_path / "model"
    options = ["--grid", "6x6", "--idle", "0", "--json", "-q", "--exit-code", "--out", str(folder)]
    file = tmp_path / "log.csv"
    file.write_text(text(field(600), NAMES))
    said = CliRunner().invoke(app, ["watch", str(file), *options])
    assert said.exit_code == 0, said.output
    last = {"rows": 600, "batches": 3, "exchanges": 0, "grid": "6x6"}
    assert [json.loads(line) for line in said.stdout.splitlines()] == [last]
    assert list(load(folder).feature_names_in_) == NAMES
    again = CliRunner().invoke(app, ["watch", str(file), *options])
    assert isinstance(again.exception, InputError)


def test_a_file_is_followed_while_it_grows(tmp_path):
    file, rows = tmp_path / "log.csv", field(60)
    file.write_text(text(rows[:20], NAMES))
    whole = text(rows)

    def write() -> None:
        with file.open("a") as out:
            for part in (whole[len(text(rows[:20])) : -30], whole[-30:]):  # not at the end of a row
                time.sleep(0.3)
                out.write(part)
                out.flush()

    writer = threading.Thread(target=write)
    writer.start()
    tables = list(tables_of(file, lines_of(file, idle=1.5), 20, ReadOptions()))
    writer.join()
    assert [len(table.rows) for table in tables] == [20, 20, 20]
    assert all(table.names == tuple(NAMES) for table in tables)
    np.testing.assert_allclose(np.concatenate([t.rows for t in tables]), rows, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["rows.npy", "missing.csv"])
def test_what_cannot_be_followed_is_said(tmp_path: Path, name: str):
    (tmp_path / "rows.npy").write_bytes(b"")
    with pytest.raises(InputError, match="give"):
        next(lines_of(tmp_path / name))


def test_a_file_that_becomes_shorter_is_refused(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text(text(field(5)))
    lines = lines_of(file)
    for _ in range(5):
        next(lines)
    file.write_text("1,2\n")
    with pytest.raises(InputError, match="cut short"):
        next(lines)
