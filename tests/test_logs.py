"""Logs as people have them, from the raw file to the right answer by the printed commands alone."""

from __future__ import annotations

import csv
import io
import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import h5py
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import typer
import zarr
from scipy.io import savemat
from sklearn.datasets import load_digits

from symlift import LatentDomain
from symlift.cli import app
from symlift.datasets import gsn, ring_population
from symlift.plotting import plot_signals
from symlift.report.draw import short
from symlift.report.gather import read_run
from symlift.report.moving import move_payload
from symlift.report.signals import gallery_panel, shown_samples
from symlift.report.spectrum import generators_panel
from symlift.runs.answer import command as repeated
from symlift.runs.readers import READABLE, ReadOptions
from symlift.runs.readers.marks import known_marks, with_marks
from symlift.runs.readers.table import Table
from symlift.runs.record import open_run
from symlift.statistics.units import odd_units, shared_range

sys.path.insert(0, str(Path(__file__).parent / "attack"))
from commands import run_command

N, D = 700, 12
NAMES = [f"T{i:02d}" for i in range(1, D + 1)]
ORDER = np.random.default_rng(3).permutation(D)  # column k sits at place ORDER[k]
TRUTH = [NAMES[k] for k in np.argsort(ORDER)]


def loggers() -> np.ndarray:
    """Temperatures (n, d) along a pipe, in °C, each logger with an offset of its own."""
    rng = np.random.default_rng(5)
    field = gsn(N, (D,), random_state=2).latent[:, ORDER]
    return 15 + 3 * field + 0.5 * rng.normal(size=D) + 0.05 * rng.normal(size=(N, D))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def next_command(text: str) -> list[str] | None:
    """The last command that was suggested, as a shell takes it."""
    lines = [line for line in text.splitlines() if line.startswith("next: symlift ")]
    return shlex.split(lines[-1].removeprefix("next: symlift ")) if lines else None


def follow(path: str) -> str:
    """Type `symlift inspect FILE`, then what is printed, until a run is done: all that was said."""
    command: list[str] | None = ["inspect", path]
    said = ""
    for _ in range(4):
        assert command is not None, said
        code, out, err = run_command(*command)
        assert code == 0, err
        said += err + out
        if command[0] == "recover":
            return said
        command = next_command(out)
    raise AssertionError(said)


def line_of(run: str) -> list[str]:
    """The names of the columns in the order that was found."""
    with Path(run, "placement.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if int(row["point"]) >= 0]
    return [row["name"] for row in sorted(rows, key=lambda row: float(row["axis0"]))]


def reasons_of(run: str) -> dict[str, str]:
    with Path(run, "placement.csv").open(newline="", encoding="utf-8") as file:
        return {row["name"]: row["reason"] for row in csv.DictReader(file) if row["reason"]}


# -- twenty files ----------------------------------------------------------------------------------


def stamp(i: int) -> str:
    return f"2024-03-{1 + i // 1440:02d} {i // 60 % 24:02d}:{i % 60:02d}:00"


def text(
    rows: np.ndarray,
    *,
    names: list[str] | None = None,
    sep: str = ",",
    decimal: str = ".",
    cell: Callable[[float], str] = "{:.3f}".format,
    before: list[str] | None = None,
    after: list[str] | None = None,
    above: str = "",
    below: str = "",
    end: str = "",
) -> str:
    """A table of text; ``before`` and ``after`` are columns to the left and to the right, each with
    its name first, ``above`` and ``below`` lines around the header, ``end`` ends each line.
    """
    names = NAMES if names is None else names
    before, after = before or [], after or []
    lines = [sep.join([*before, *names, *after])]
    for i, row in enumerate(rows):
        cells = [cell(v).replace(".", decimal) for v in row]
        lines.append(
            sep.join([*(_left(c, i) for c in before), *cells, *(_right(c) for c in after)])
        )
    lines[1:1] = [below] if below else []
    return above + "\n".join(line + end for line in lines) + "\n"


def _left(name: str, i: int) -> str:
    return {"time": stamp(i), "Zeit": f"{1 + i // 1440:02d}.03.2024 {stamp(i)[11:16]}",
            "No": str(i + 1), "": str(i), "epoch": str(1_709_251_200 + 60 * i)}[name]  # fmt: skip


def _right(name: str) -> str:
    return {"spare": "", "status": "ok", "": "", "reserve": "", "battery": "3.6"}[name]


def holed(rows: np.ndarray, mark: float = np.nan, share: float = 0.01) -> np.ndarray:
    out = rows.copy()
    out[np.random.default_rng(9).random(rows.shape) < share] = mark
    return out


def blank(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.3f}"


def fahrenheit(rows: np.ndarray, column: int = 4) -> np.ndarray:
    out = rows.copy()
    out[:, column] = 1.8 * out[:, column] + 32
    return out


def repeated_header(rows: np.ndarray) -> str:
    lines = text(rows, before=["time"]).splitlines()
    for at in (600, 400, 150):  # the logger was started again
        lines.insert(at, lines[0])
    return "\n".join(lines) + "\n"


def commented(rows: np.ndarray) -> str:
    lines = text(rows, before=["time"]).splitlines()
    lines.insert(500, "# battery changed")
    lines.insert(90, "# sensor cleaned, see notes")
    return "# site: pump house\n# logger: 7\n" + "\n".join(lines) + "\n"


#: file name → (its text, or bytes, from the rows; what has to be said; reasons in placement.csv)
FILES: dict[str, tuple[Callable[[np.ndarray], str | bytes], str, dict[str, str]]] = {
    "plain.csv": (lambda x: text(x), "12 columns form an open line", {}),
    "fahrenheit.csv": (
        lambda x: text(fahrenheit(x), before=["No", "time"], after=["spare", "status"]),
        "column 'T05' differs from the rest in unit or kind, as °F among °C would",
        {"No": "index", "time": "dates", "spare": "empty", "status": "text"},
    ),
    "millivolts.csv": (
        lambda x: text(x * np.where(np.arange(D) == 7, 1000, 1.0), before=["time"]),
        "column 'T08' differs from the rest in unit or kind, as units of a thousandth would",
        {"time": "dates"},
    ),
    "kelvin.tsv": (
        lambda x: text(x + 273.15 * (np.arange(D) == 2), sep="\t"),
        "column 'T03' differs from the rest in unit or kind, as K among °C would",
        {},
    ),
    "empty columns.csv": (
        lambda x: text(x, before=["time"], after=["spare", "reserve"]),
        "12 of 15 columns form an open line",
        {"time": "dates", "spare": "empty", "reserve": "empty"},
    ),
    "duplicated header.csv": (
        repeated_header, "lines that repeat the header are skipped (3)", {"time": "dates"}
    ),
    "german.csv": (
        lambda x: text(holed(x), before=["Zeit"], sep=";", decimal=",", cell=blank),
        "numbers have decimal commas",
        {"Zeit": "dates"},
    ),
    "units row.csv": (
        lambda x: text(x, before=["time"], below="-," + ",".join(["°C"] * D)),
        "the line below the header holds units and is skipped",
        {"time": "dates"},
    ),
    "nines.csv": (
        lambda x: text(holed(x, -9999), cell="{:.2f}".format),
        "entries are -9999, far from all others",
        {},
    ),
    "positive nines.csv": (
        lambda x: text(holed(x, 999.9), cell="{:.1f}".format, before=["time"]),
        "entries are 999.9, far from all others",
        {"time": "dates"},
    ),
    "nan.csv": (lambda x: text(holed(x), cell="{:.3f}".format), "rows have gaps", {}),
    "blanks.csv": (lambda x: text(holed(x, share=0.06), cell=blank), "--nan pairwise", {}),
    "trailing.csv": (
        lambda x: text(x, before=["time"], end=","), "12 of", {"time": "dates"}
    ),
    "bom.csv": (
        lambda x: b"\xef\xbb\xbf" + text(x, before=["time"]).encode(), "12 of 13", {"time": "dates"}
    ),
    "utf16.txt": (
        lambda x: text(x, sep="\t", before=["time"]).encode("utf-16"), "12 of 13", {"time": "dates"}
    ),
    "comments.csv": (commented, "comments between the rows are skipped (2)", {"time": "dates"}),
    "preamble.csv": (
        lambda x: text(x, before=["Zeit"], sep=";", above="Gerät: Logger 7\nOrt: Halle\n\n"),
        "2 lines before the table are skipped",
        {"Zeit": "dates"},
    ),
    "excel.csv": (
        lambda x: "sep=;\n" + text(x, sep=";", decimal=",", before=["No"]), "12 of 13",
        {"No": "index"},
    ),
    "frame.csv": (
        lambda x: text(x, before=["", "time"], after=["battery"]),
        "12 of 15 columns form an open line",
        {"column 1": "index", "time": "dates", "battery": "dead"},
    ),
    "blanks between.txt": (
        lambda x: text(x, sep="   ", before=["epoch"]), "12 of 13", {"epoch": "index"}
    ),
    "-dash.csv": (lambda x: text(holed(x), cell=blank, after=["status"]), "", {"status": "text"}),
    "twins.csv": (  # two columns of one name
        lambda x: text(x, names=["T01" if n == "T02" else n for n in NAMES]),
        "12 columns form an open line",
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_log_goes_to_the_right_answer_by_printed_commands(here, name):
    make, words, reasons = FILES[name]
    content = make(loggers())
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    said = follow("./" + name if name.startswith("-") else name)
    assert words in said
    run = f"{Path(name).stem}-symlift"
    run = run if Path(run).exists() else f"./{run}"
    truth = ["T01" if n == "T02" else n for n in TRUTH] if name == "twins.csv" else TRUTH
    assert line_of(run) in (truth, truth[::-1])
    assert "an identifiable translation symmetry is present and stable" in said
    assert reasons_of(run) == reasons
    # one count everywhere
    total = D + len(reasons)
    assert f" rows of {total:,} columns: solver" in said
    placed = f"{D} of {total} columns" if reasons else f"{D} columns"
    assert f"\n{placed} form an open line" in said


# -- three logs as their owners have them ----------------------------------------------------------


def test_a_pipe(here):
    """Heat that travels along 16 loggers on a pipe; the fifth is in °F, one was never connected."""
    rng = np.random.default_rng(11)
    n, d = 1500, 16
    source = np.convolve(rng.normal(size=n + 80), np.hanning(9), mode="same")
    heat = np.zeros((n, d))
    for k in range(d):  # later and weaker, one logger after the other
        heat[:, k] = 0.93**k * source[40 - 2 * k : 40 - 2 * k + n]
    order = rng.permutation(d)
    rows = 40 + 6 * heat[:, order] + 0.2 * rng.normal(size=(n, d))
    names = [f"PT{i + 1:02d}" for i in range(d)]
    file = text(
        fahrenheit(rows), names=names, before=["time"], after=["spare"], sep=";", decimal=","
    )
    Path("pipe.csv").write_text(file)
    said = follow("pipe.csv")
    truth = [names[k] for k in np.argsort(order)]
    assert line_of("pipe-symlift") in (truth, truth[::-1])
    assert "16 of 18 columns form an open line" in said
    assert "column 'PT05' differs from the rest in unit or kind, as °F among °C would" in said


def field_of(places: np.ndarray, n: int, rng: np.random.Generator, length: float) -> np.ndarray:
    """Gaussian fields (n, places) whose correlation falls off with the distance."""
    distance = np.linalg.norm(places[:, None] - places[None], axis=-1)
    root = np.linalg.cholesky(np.exp(-((distance / length) ** 2)) + 1e-6 * np.eye(len(places)))
    return rng.normal(size=(n, len(places))) @ root.T


def placed_like(run: str, places: np.ndarray, names: list[str]) -> float:
    """R² of the true places of columns by those found, turned, scaled and mirrored as fits best."""
    with Path(run, "placement.csv").open(newline="", encoding="utf-8") as file:
        found = {row["name"]: row for row in csv.DictReader(file) if int(row["point"]) >= 0}
    at = np.array([[float(found[name][f"axis{j}"]) for j in range(2)] for name in names])
    at, true = at - at.mean(axis=0), places - places.mean(axis=0)
    U, size, V = np.linalg.svd(at.T @ true)
    return float(
        1 - np.sum((at @ (U @ V) * size.sum() / np.sum(at**2) - true) ** 2) / np.sum(true**2)
    )


@pytest.mark.slow
def test_a_field_of_scattered_loggers(here):
    rng = np.random.default_rng(21)
    places = rng.random((58, 2)) * [3.0, 2.0]
    names = [f"logger_{i + 1:03d}" for i in range(58)]
    rows = 12 + 4 * field_of(places, 1200, rng, 0.8) + 0.1 * rng.normal(size=(1200, 58))
    Path("field.csv").write_text(
        text(fahrenheit(rows), names=names, before=["time"], after=["status"])
    )
    said = follow("field.csv")
    assert "58 of 60 columns have scattered places in a plane" in said
    assert "column 'logger_005' differs from the rest in unit or kind, as °F among °C would" in said
    assert "present and stable" in said
    assert placed_like("field-symlift", places, names) > 0.98


@pytest.mark.slow
def test_stations_with_gaps(here):
    """Stations that started, failed and ended at different times; -9999 where there is nothing."""
    rng = np.random.default_rng(31)
    places = rng.random((40, 2)) * [2.0, 2.0]
    names = [f"ST{i + 1:03d}" for i in range(40)]
    rows = 5 + 8 * field_of(places, 2000, rng, 0.9) + 0.3 * rng.normal(size=(2000, 40))
    for k in range(40):
        start, end = np.sort(rng.integers(0, 2000, 2))
        out = end - start < 900
        rows[start : end if out else start, k] = -9999
    rows[rng.random(rows.shape) < 0.02] = -9999
    Path("stations.csv").write_text(text(rows, names=names, before=["time"], cell="{:.1f}".format))
    said = follow("stations.csv")
    assert "far from all others" in said
    assert "--nan pairwise" in said
    assert "40 of 41 columns have scattered places in a plane" in said
    assert placed_like("stations-symlift", places, names) > 0.97


# -- what is printed runs, whatever the file is ----------------------------------------------------


def _mat(path: Path, rows: np.ndarray) -> None:
    savemat(path, {"animal": "m28", "trial": np.arange(N)[:, None], "counts": rows})


def _hdf5(path: Path, rows: np.ndarray) -> None:
    with h5py.File(path, "w") as file:
        file["log/time"] = np.arange(float(N))
        file["log/temperature"] = rows
        file["log/again"] = rows[:, ::-1]


def _nwb(path: Path, rows: np.ndarray) -> None:
    with h5py.File(path, "w") as file:
        file.attrs["nwb_version"] = "2.6.0"
        for name in ("acquisition/LFP", "acquisition/other one"):
            file.create_dataset(f"{name}/data", data=rows)
            file.create_dataset(f"{name}/timestamps", data=np.arange(float(N)))


def _xlsx(path: Path, rows: np.ndarray) -> None:
    with pd.ExcelWriter(path) as book:
        pd.DataFrame({"remark": ["calibrated", "moved"]}).to_excel(book, sheet_name="Remarks (1)")
        pd.DataFrame(rows[:200], columns=NAMES).to_excel(book, sheet_name="Data (2)", index=False)


def _zarr(path: Path, rows: np.ndarray) -> None:
    group = zarr.open_group(str(path), mode="w")
    for name, array in (("labels", np.arange(N)), ("log", rows)):
        group[name] = array


def _frame(rows: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"time": pd.date_range("2024-03-01", periods=N, freq="min")}).join(
        pd.DataFrame(rows, columns=NAMES)
    )


MAKERS: dict[str, Callable[[Path, np.ndarray], object]] = {
    "a b.npy": np.save,
    "gaps.npy": lambda p, x: np.save(p, holed(x)),
    "infinite.npy": lambda p, x: np.save(p, np.c_[x, np.full(N, np.inf)]),
    "several.npz": lambda p, x: np.savez(p, label=np.arange(N), log=x),
    "one.mat": _mat,
    "log.h5": _hdf5,
    "log.hdf5": _hdf5,
    "session.nwb": _nwb,
    "book.xlsx": _xlsx,
    "log.parquet": lambda p, x: _frame(x).to_parquet(p),
    "log.feather": lambda p, x: _frame(x).to_feather(p),
    "log.zarr": _zarr,
    "log.tsv": lambda p, x: p.write_text(text(x, sep="\t")),
    "log.txt": lambda p, x: p.write_text(text(x, sep=" ")),
    "log;1.csv": lambda p, x: p.write_text(text(x, before=["time"])),
    "channels.csv": lambda p, x: p.write_text(text(x[:60].T, names=[f"s{i}" for i in range(60)])),
}


@pytest.mark.parametrize("name", MAKERS)
def test_printed_commands_run_for_every_reader(here, name):
    MAKERS[name](Path(name), loggers())
    said = follow(name)
    if name not in ("book.xlsx", "channels.csv"):  # few rows: nothing is promised
        assert "12 columns form" in said or "12 of 13 columns form" in said


def test_readers_are_all_there():
    suffixes = {Path(name).suffix for name in MAKERS} | {Path(name).suffix for name in FILES}
    assert suffixes == set(READABLE) - {".arrow"}  # read as .feather is


def test_printed_commands_run_for_standard_input(here, monkeypatch):
    data = text(holed(loggers()), cell=blank, before=["time"]).encode()

    def pipe() -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    pipe()
    code, out, err = run_command("inspect", "-")
    assert code == 0, err
    pipe()
    code, out, err = run_command(*(next_command(out) or []))
    assert code == 0, err
    assert line_of("stdin-symlift") in (TRUTH, TRUTH[::-1])


def test_what_is_suggested_after_a_run_runs_as_printed(here):
    """Counts of a population on a ring, from another folder, with gaps, as a line of points."""
    rows = ring_population(900, 20, random_state=2).X.astype(float)
    rows[3, 4] = -9999
    Path("my data").mkdir()
    table = text(rows, names=[f"n{i}" for i in range(20)], cell="{:.0f}".format)
    Path("my data/counts.csv").write_text(table)
    code, out, err = run_command(
        "recover", "my data/counts.csv", "--gap", "-9999", "--nan", "drop", "--no-report"
    )
    assert code == 0, err
    assert "1 entries are -9999, and read as gaps" in err
    command = next_command(out)
    assert command is not None, out
    code, out, err = run_command(*command, "--json")
    assert code == 0, err
    answer = json.loads(out)
    assert (answer["n"], answer["run"]) == (899, "counts-symlift-2")
    assert (answer["solver"], answer["periodic"]) == ("ring", [True])


def test_nothing_is_suggested_where_nothing_can_be_fitted(here):
    Path("one.csv").write_text("a,b\n" + "1,2\n" * 40)
    code, out, _ = run_command("inspect", "one.csv")
    assert code == 0
    assert out.endswith("not fit for recovery\n")
    assert next_command(out) is None


# -- options ---------------------------------------------------------------------------------------


def test_inspect_takes_every_reading_option():
    command = typer.main.get_command(app)
    options = {
        name: {o for p in command.commands[name].params for o in p.opts}  # type: ignore[attr-defined]
        for name in ("inspect", "transform", "recover")
    }
    reading = {f"--{f.name.replace('_', '-')}" for f in fields(ReadOptions)} | {"--nan"}
    assert reading <= options["inspect"]
    assert reading <= options["recover"]
    assert reading <= options["transform"]


def test_a_check_may_be_full(here):
    np.save("x.npy", loggers())
    code, _, err = run_command("recover", "x.npy", "--grid", "12", "--no-report")
    assert code == 0, err
    quick = json.loads(Path("x-symlift/run.json").read_text())["diagnosis"]["tests"]
    code, _, err = run_command(
        "recover", "x.npy", "--grid", "12", "--no-report", "--check", "full", "--overwrite"
    )
    assert code == 0, err
    record = json.loads(Path("x-symlift/run.json").read_text())
    assert {test["name"] for test in record["diagnosis"]["tests"]} > {t["name"] for t in quick}
    assert record["settings"]["level"] == "full"
    assert shlex.split(repeated(open_run(Path("x-symlift")).record))[-2:] == ["--check", "full"]
    for arguments, words in (
        (["--check", "thorough"], "--check thorough is unknown: give quick or full"),
        (["--check", "full", "--no-check"], "contradict each other"),
    ):
        code, _, err = run_command("recover", "x.npy", "--overwrite", *arguments)
        assert code == 2
        assert words in err


@pytest.mark.parametrize("gap", ["many", "nan", "inf"])
def test_a_mark_of_a_gap_is_a_number(here, gap):
    np.save("x.npy", loggers())
    code, _, err = run_command("inspect", "x.npy", "--gap", gap)
    assert code == 2
    assert f"--gap {gap} is no number" in err


def test_numbers_that_only_look_like_marks_are_data():
    rows = np.random.default_rng(0).normal(size=(300, 4))
    rows[:, 1] = np.linspace(9000, 9999, 300)  # reached step by step
    rows[:, 2] = -32768  # the whole column
    rows[5, 0] = 1234  # far out, and no mark
    assert not known_marks(rows)
    rows[7, 3] = 99999
    assert known_marks(rows) == {"99999": 1}
    rows[5, 0], rows[9:12, 0] = 0, 999.9
    assert known_marks(rows.astype(np.float32)) == {"99999": 1, "999.9": 3}
    table = with_marks(Path("x"), Table(rows.astype(np.float32)), ("999.9", "99999"))
    assert np.isnan(table.rows).sum() == 4
    assert table.notes == ("4 entries are 999.9 or 99999, and read as gaps",)


# -- units -----------------------------------------------------------------------------------------


def test_columns_of_one_unit_are_not_called_odd():
    rng = np.random.default_rng(0)
    digits = load_digits().data
    rates = rng.poisson(np.exp(rng.normal(1, 0.7, 60)), size=(800, 60))
    photographs = gsn(500, (8, 8), random_state=1).latent
    offsets = rng.normal(size=(400, 30)) + 2 * rng.normal(size=30)
    for rows in (digits, rates, photographs, offsets, rng.normal(size=(50, 6)), np.zeros((9, 20))):
        assert odd_units(rows) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: 1.8 * x + 32, "as °F among °C would"),
        (lambda x: x + 273.15, "as K among °C would"),
        (lambda x: 1000 * x, "as units of a thousandth would"),
        (lambda x: x / 1000, "as units a thousand times as large would"),
        (lambda x: 40 * x + 900, ""),
    ],
)
def test_a_column_in_other_units_is_named(change, words):
    rows = loggers()
    rows[:, 9] = change(rows[:, 9])
    rows[::7, 3] = np.nan
    (odd,) = odd_units(rows)
    assert (odd.column, odd.likely) == (9, words)


def test_gaps_and_wild_columns_do_not_set_the_range():
    rows = loggers()
    low, high = rows.min(), rows.max()
    rows[:, 2] *= 1e6
    rows[0, 5] = np.nan
    assert shared_range(rows) == pytest.approx((low, high), rel=0.2)
    assert shared_range(np.full((3, 9), np.nan)) == (0.0, 0.0)


# -- pictures --------------------------------------------------------------------------------------


def test_pictures_of_a_report_show_placed_columns_on_their_common_scale(here):
    """A row number and a logger in °F are in the file; neither sets the scale."""
    rows = loggers()
    file = text(fahrenheit(rows), before=["No", "time"], after=["spare"])
    Path("log.csv").write_text(file)
    follow("log.csv")
    contents = read_run(Path("log-symlift"))
    assert contents.counted == D + 3
    assert (gallery := gallery_panel(contents)) is not None
    assert gallery["reach"] == short(shared_range(rows[contents.rows[shown_samples(contents)]])[1])
    assert (moving := move_payload(contents))["observation"]["size"] == D
    assert moving["observation"]["span"][1] < rows.max() + 0.01
    assert max(map(abs, moving["span"])) < 1.1 * np.abs(rows - rows.mean(axis=0)).max()
    (generator,) = generators_panel(contents)
    assert generator["pictures"][0]["size"] == f"{D} × {D}"
    page = Path("log-symlift/report.html").read_text(encoding="utf-8")
    assert "12 of 15 columns have a place; 3 are left out." in page
    assert "as °F among °C would" in page
    assert "15 columns</" in page


def test_plots_of_signals_have_the_common_scale():
    rows = loggers()
    rows[:, 4] *= 1000
    est = LatentDomain(12, random_state=0).fit(rows)
    axes = plot_signals(est, rows[:4])
    steps = -np.diff(axes.get_yticks())
    assert steps.max() < 5 * np.ptp(loggers() - loggers().mean(axis=0))
    plt.close("all")
