"""Files that appear whole or not at all, one process at a time, and JSON that any reader takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from symlift.datasets import gsn
from symlift.errors import InputError
from symlift.runs.recover import recover
from symlift.storage.atomic import sweep, write_atomically
from symlift.storage.lock import InUseError, Lock
from symlift.storage.strict_json import dumps


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.txt"
    with write_atomically(path) as temporary:
        temporary.write_text("first")
        assert not path.exists()
    assert path.read_text() == "first"
    writing = write_atomically(path)
    writing.__enter__().write_text("second")
    writing.__exit__(RuntimeError)  # the block failed
    assert path.read_text() == "first"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_leftovers_of_the_dead_are_swept_and_those_of_the_living_stay(tmp_path):
    path = tmp_path / "a.txt"
    child = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os, sys\nfrom symlift.storage.atomic import write_atomically\n"
            "write_atomically(sys.argv[1]).__enter__()\nos._exit(9)",
            str(path),
        ],
        check=False,
    )
    assert child.returncode == 9
    assert len(list(tmp_path.iterdir())) == 1  # a killed write has left its file
    living = write_atomically(path)
    mine = living.__enter__()
    other = tmp_path / ".b.txt.unrelated"
    other.touch()
    sweep(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([mine.name, other.name])
    living.__exit__(RuntimeError)


def test_one_process_at_a_time(tmp_path):
    path = tmp_path / ".lock"
    hold = (
        "import sys\nfrom symlift.storage.lock import Lock\n"
        "with Lock(sys.argv[1], 'it'):\n    print('held', flush=True)\n    sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", hold, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout.readline() == "held\n"
    with (
        pytest.raises(InUseError, match=rf"it is in use by process {other.pid} on "),
        Lock(path, "it"),
    ):
        pass
    other.kill()  # however it ends, the lock ends with it
    other.communicate()
    with Lock(path, "it"):
        assert json.loads(path.read_text())["pid"] == os.getpid()
    assert not path.exists()


def test_a_run_folder_in_use_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", gsn(200, 9, random_state=0).X)
    run = recover(tmp_path / "x.npy", tmp_path / "run", grid="9", solver="random", check=False)
    before = {p.name: p.read_bytes() for p in run.folder.iterdir()}
    with Lock(run.folder / ".lock", "held"), pytest.raises(InputError, match="in use by process"):
        recover(
            tmp_path / "x.npy",
            tmp_path / "run",
            grid="9",
            solver="random",
            check=False,
            overwrite=True,
        )
    assert {p.name: p.read_bytes() for p in run.folder.iterdir()} == before


def test_json_is_strict():
    text = dumps(
        {1: (np.int64(2), {3.5}), "a": np.array([np.inf, 1.0]), "p": object, "n": None, "t": True}
    )
    assert json.loads(text)["a"] == [None, 1.0]
    assert json.loads(text)["1"] == [2, [3.5]]
    assert "Infinity" not in text
