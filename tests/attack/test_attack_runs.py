"""Run folders, caches and archives that were tampered with: one line, exit code 2, and nothing
changed.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commands import everything, refused, run_command

from symlift.datasets import gsn
from symlift.runs.recover import recover
from symlift.storage.lock import Lock
from symlift_paper.jobs import Job
from symlift_paper.registry import read_experiments
from symlift_paper.store import Archive, Cache


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("runs")
    np.save(here / "x.npy", gsn(200, (9,), random_state=0).X)
    recover(here / "x.npy", here / "run", grid="9", solver="random", check=False)
    return here


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def set_record(run: Path, **changes: Any) -> None:
    path = run / "run.json"
    record = json.loads(path.read_text())
    for key, value in changes.items():
        where, _, name = key.rpartition("__")
        (record[where] if where else record)[name] = value
    path.write_text(json.dumps(record))


TEXTS = {
    "empty": b"",
    "cut": b'{"format": "symlift-run"',
    "no object": b"[]",
    "null": b"null",
    "not UTF-8": b"\xff\xfe{}",
    "deep": b"[" * 100_000,
    "deep objects": b'{"a":' * 10_000,
    "zero bytes": bytes(500),
    "a huge integer": b'{"version": ' + b"9" * 9000 + b"}",
    "another format": b'{"format": "other", "version": 2}',
    "no version": b'{"format": "symlift-run"}',
}
RECORDS: dict[str, Any] = {
    "version a word": {"version": "two"},
    "version later": {"version": 99},
    "version zero": {"version": None},
    "version below": {"version": -1, "status": 3},
    "unknown status": {"status": "happy"},
    "status a list": {"status": []},
    "no start": {"started": None},
    "input a word": {"input": "x.npy"},
    "input without name": {"input": {}},
    "shape of three": {"input__shape": [1, 2, 3]},
    "shape of words": {"input__shape": ["a", "b"]},
    "hash a number": {"input__sha256": 3},
    "columns a word": {"input__columns": "abc"},
    "seed below zero": {"settings__seed": -1},
    "seed a word": {"settings__seed": "x"},
    "seed of 5000 digits": {"settings__seed": 10**4200},
    "unknown nan": {"settings__nan": "guess"},
    "budget a word": {"settings__budget": "long"},
    "settings a list": {"settings": []},
    "timings a word": {"timings": "long"},
    "versions a list": {"versions": [1]},
    "warnings a word": {"warnings": "none"},
    "grid a word": {"grid": "nine"},
    "grid of words": {"grid": ["a"]},
    "diagnosis a word": {"diagnosis": "good"},
    "diagnosis unknown": {"diagnosis": {"verdict": "sure", "confidence": 1.0}},
    "resumed a word": {"resumed": "often"},
    "error a list": {"error": []},
}
COMMANDS = {
    "resume": ("recover", "x.npy", "--out", "run", "--resume"),
    "transform": ("transform", "run", "x.npy", "--out", "y.npy"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", TEXTS)
def test_a_record_that_is_none_is_refused(folder: Path, case: str, command: str) -> None:
    (folder / "run" / "run.json").write_bytes(TEXTS[case])
    refused(folder, "run.json is damaged", *COMMANDS[command])


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", RECORDS)
def test_a_record_that_no_run_has_is_refused(folder: Path, case: str, command: str) -> None:
    if "5000" in case:
        text = (
            (folder / "run" / "run.json").read_text().replace('"seed": 0', '"seed": ' + "9" * 5000)
        )
        (folder / "run" / "run.json").write_text(text)
    else:
        set_record(folder / "run", **RECORDS[case])
    refused(folder, "run.json", *COMMANDS[command])


# settings that are well formed, and that no command line would have accepted
SETTINGS = {
    "grid unreadable": ({"settings__grid": "9by9"}, "grid '9by9'"),
    "grid of one point": ({"settings__grid": "1"}, "at least 2"),
    "unknown solver": ({"settings__solver": "magic"}, "solver 'magic'"),
    "unknown mixing": ({"settings__mixing": "bent"}, "mixing 'bent'"),
    "seed too large": ({"settings__seed": 2**40}, "seed"),
    "a preset without training": ({"settings__preset": "ours"}, "--preset is for"),
    "a budget without training": ({"settings__budget": 5.0}, "--budget is for"),
    "another hash": ({"input__sha256": "0" * 64}, "its hash differs"),
    "a key for one table": ({"input__reading": {"key": "a"}}, "leave out --key"),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_settings_of_a_record_are_checked_as_those_of_a_command_are(
    folder: Path, case: str
) -> None:
    changes, words = SETTINGS[case]
    set_record(folder / "run", status="running", **changes)
    refused(folder, words, "recover", "x.npy", "--out", "run", "--resume")


def make_kind(path: Path, kind: str) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    {
        "a folder": lambda: path.mkdir(),
        "a broken link": lambda: path.symlink_to("nowhere"),
        "a circle": lambda: path.symlink_to(path.name),
        "a pipe": lambda: os.mkfifo(path),
    }[kind]()


KINDS = ["a folder", "a broken link", "a circle", "a pipe"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["run.json", "model.json", "model.safetensors"])
def test_files_that_are_something_else_are_refused(folder: Path, name: str, kind: str) -> None:
    make_kind(folder / "run" / name, kind)
    before = sorted(p.name for p in (folder / "run").iterdir())
    code, out, err = run_command("transform", "run", "x.npy", "--out", "y.npy")
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert sorted(p.name for p in (folder / "run").iterdir()) == before
    assert not (folder / "y.npy").exists()


@pytest.mark.parametrize("kind", ["a file", "a broken link", "a circle", "a pipe"])
def test_a_run_folder_that_is_something_else_is_refused(folder: Path, kind: str) -> None:
    (folder / "other").write_text("mine") if kind == "a file" else make_kind(folder / "other", kind)
    for command in (("recover", "x.npy", "--out", "other", "--overwrite"), ("report", "other")):
        code, out, err = run_command(*command)
        assert (code, out, err.count("\n")) == (2, "", 1), err


OUTS = ["", ".", "..", "x.npy", "x.npy/run", "a" * 300, "mine"]


@pytest.mark.parametrize("flag", ["--overwrite", "--resume", "--quiet"])
@pytest.mark.parametrize("out", OUTS)
def test_places_that_are_no_run_folders_are_refused(folder: Path, out: str, flag: str) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.tex").write_text("mine")
    refused(
        folder, "--out", "recover", "x.npy", "--grid", "9", "--solver", "random", "--out", out, flag
    )


# -- what killed processes leave -------------------------------------------------------------------

LEFT = {
    "a lock": {".lock": "{}"},
    "a lock of nobody": {".lock": '{"pid": 999999999, "host": "elsewhere"}'},
    "a lock of nonsense": {".lock": "\x00" * 50},
    "a temporary file of 0.1": {".run.json.abc": ""},
    "an empty folder aside": {".next": None},
    "a request that was not written": {".next/.run.json.x": ""},
    "half of a swap": {".swap": None},
    "half of the page of a part": {"parts/000/.report.html.abc": ""},
}


@pytest.mark.parametrize("command", ["report", "recover"])
@pytest.mark.parametrize("case", LEFT)
def test_leftovers_are_cleared_by_the_next_command_that_writes(
    folder: Path, case: str, command: str, monkeypatch
) -> None:
    stand_in = SimpleNamespace(write_report=lambda run: run / "report.html")
    monkeypatch.setitem(sys.modules, "symlift.report", stand_in)
    expected = everything(folder / "run")
    for name, text in LEFT[case].items():
        path = folder / "run" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir() if text is None else path.write_text(text)
    words = {
        "report": ("report", "run"),
        "recover": (
            "recover",
            "x.npy",
            "--out",
            "run",
            "--grid",
            "9",
            "--solver",
            "random",
            "--no-check",
            "--overwrite",
            "--no-report",
        ),
    }
    assert run_command(*words[command])[0] == 0
    folders = {"parts", "parts/000"}  # may hold files of the user
    assert everything(folder / "run").keys() - folders == expected.keys()


@pytest.mark.parametrize("command", ["recover", "resume", "report", "demo"])
def test_a_folder_in_use_is_left_alone(folder: Path, command: str) -> None:
    set_record(folder / "run", status="running" if command == "resume" else "done")
    words = {
        "recover": ("recover", "x.npy", "--out", "run", "--overwrite"),
        "resume": COMMANDS["resume"],
        "report": ("report", "run"),
        "demo": ("demo", "--out", "run"),
    }
    with Lock(folder / "run" / ".lock", "it"):
        refused(folder, f"in use by process {os.getpid()} on ", *words[command])


# -- caches and archives ---------------------------------------------------------------------------

ROWS = "- {name: mine, title: t, source: gsn, shape: [9], n: 60, seeds: [0]}"
ENTRIES: dict[str, Any] = {
    "empty": b"",
    "cut": b"{",
    "a list": b"[]",
    "null": b"null",
    "deep": b"[" * 100_000,
    "not UTF-8": b"\xff",
    "huge": b"9" * 10_000,
    "no result": {"result": None},
    "result a list": {"result": []},
    "no job": {"job": None},
    "job a word": {"job": "x"},
    "job without seed": {"job": {"experiment": "mine", "kind": "solver", "method": "random"}},
    "no machine": {"machine": None},
    "machine a word": {"machine": "fast"},
    "versions a list": {"machine": {"processor": "", "cores": 1, "python": "", "versions": []}},
    "no date": {"date": None},
    "similarity a word": {"result": {"seconds": 1.0, "similarity": ""}},
    "r a text of digits": {"result": {"seconds": 1.0, "r": "0.9"}},
    "no seconds": {"result": {"r": 0.9}},
    "commit a number": {"commit": 3},
    "key a number": {"key": 3},
}


@pytest.fixture(scope="module")
def entry(tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, dict[str, Any]]:
    experiment = read_experiments(ROWS, "rows.yaml")["mine"]
    job = Job(experiment=experiment, kind="solver", method="random")
    return job, Cache(tmp_path_factory.mktemp("cache")).run(job)


def damaged(entry: dict[str, Any], case: str) -> bytes:
    change = ENTRIES[case]
    return change if isinstance(change, bytes) else json.dumps(entry | change).encode()


def run_mine(folder: Path) -> tuple[object, ...]:
    """The command that runs the row of `ROWS` with its cache in ``folder``."""
    return (
        "experiment",
        "run",
        "mine",
        "--file",
        folder / "rows.yaml",
        "--cache",
        folder,
        "--solver",
        "random",
    )


@pytest.mark.parametrize("case", [*ENTRIES, "of another run"])
def test_a_cached_result_that_is_none_is_refused(tmp_path: Path, entry, case: str) -> None:
    job, good = entry
    (tmp_path / "rows.yaml").write_text(ROWS)
    path = Cache(tmp_path).path(job)
    path.write_bytes(
        json.dumps(good | {"key": "0" * 16}).encode()
        if case == "of another run"
        else damaged(good, case)
    )
    refused(tmp_path, "delete it and run again", *run_mine(tmp_path))


@pytest.mark.parametrize("case", [c for c in ENTRIES if c != "key a number"])
def test_an_archive_that_is_none_is_refused(tmp_path: Path, entry, case: str) -> None:
    job, good = entry
    (tmp_path / "cache").mkdir()
    (tmp_path / "archive").mkdir()
    (tmp_path / "rows.yaml").write_text(ROWS)
    Cache(tmp_path / "cache").path(job).write_text(json.dumps(good))
    change = ENTRIES[case]
    raw = change if isinstance(change, bytes) else json.dumps({job.key: good | change}).encode()
    (tmp_path / "archive" / "mine.json").write_bytes(raw)
    arguments = (
        "experiment",
        "table",
        "mine",
        "--file",
        tmp_path / "rows.yaml",
        "--cache",
        tmp_path / "cache",
    )
    before = (tmp_path / "archive" / "mine.json").read_bytes()
    code, out, err = run_command(
        *arguments, "--archive", tmp_path / "archive", "--quiet", "--budget", "0s"
    )
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert "mend or move the file away" in err
    assert (tmp_path / "archive" / "mine.json").read_bytes() == before
    assert sorted(p.name for p in (tmp_path / "archive").iterdir()) == ["mine.json"]


def test_a_cache_entry_and_an_archive_in_use_say_so(tmp_path: Path, entry, monkeypatch) -> None:
    job, good = entry
    (tmp_path / "rows.yaml").write_text(ROWS)
    path = Cache(tmp_path).path(job)
    with Lock(tmp_path / f".{path.name}.lock", "it"):
        refused(tmp_path, f"in use by process {os.getpid()} on ", *run_mine(tmp_path))
    monkeypatch.setattr(Archive, "patience", 0.0)
    archive = Archive(tmp_path / "archive")
    archive.add([good])
    with (
        Lock(tmp_path / "archive" / ".lock", "it"),
        pytest.raises(ValueError, match=r"the archive in .* is in use by"),
    ):
        archive.add([good])
    assert archive.entries() == {job.key: good}
    assert run_command(*run_mine(tmp_path))[0] == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["rows.yaml", "archive", path.name])
