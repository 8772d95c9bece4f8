"""Files that appear whole or not at all, one process at a time, and JSON that any reader takes."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from symlift.datasets import gsn
from symlift.errors import FolderWarning, InputError
from symlift.runs.recover import recover
from symlift.storage import atomic, owner
from symlift.storage.atomic import (
    remove_left,
    sweep,
    write_atomically,
    write_error,
    write_folder_atomically,
)
from symlift.storage.lock import InUseError, Lock
from symlift.storage.owner import Owner
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


# -- folders, and who may remove what --------------------------------------------------------------


def _folder(path: Path, text: str) -> None:
    with write_folder_atomically(path) as new:
        new.mkdir()
        (new / "array").write_text(text)


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_folder_appears_whole_or_not_at_all(tmp_path, monkeypatch, exchanges):
    if not exchanges:
        monkeypatch.setattr(atomic, "_exchange", lambda *_: False)
    path = tmp_path / "a.zarr"
    _folder(path, "first")
    _folder(path, "second")
    assert (path / "array").read_text() == "second"
    with contextlib.suppress(RuntimeError), write_folder_atomically(path) as new:
        new.mkdir()
        raise RuntimeError
    assert (path / "array").read_text() == "second"
    assert [p.name for p in tmp_path.iterdir()] == ["a.zarr"]


@pytest.mark.parametrize("failing", [1, 2])
def test_an_earlier_folder_is_back_after_a_rename_that_fails(tmp_path, monkeypatch, failing):
    path = tmp_path / "a.zarr"
    _folder(path, "first")
    monkeypatch.setattr(atomic, "_exchange", lambda *_: False)
    rename, calls = Path.rename, []

    def fails(self: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) == failing:
            raise OSError(errno.EIO, "Input/output error", str(self))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(OSError, match=r"a\.zarr'$"):
        _folder(path, "second")
    assert (path / "array").read_text() == "first"
    assert [p.name for p in tmp_path.iterdir()] == ["a.zarr"]


@pytest.mark.parametrize("killed_at", [1, 2])
def test_an_earlier_folder_is_back_after_a_kill(tmp_path, killed_at):
    path = tmp_path / "a.zarr"
    _folder(path, "first")
    code = (
        "import os, sys\nfrom pathlib import Path\nfrom symlift.storage import atomic\n"
        "atomic._exchange = lambda *_: False\n"
        "rename, calls = Path.rename, []\n"
        "def kills(self, target):\n"
        "    calls.append(target)\n"
        "    if len(calls) == int(sys.argv[2]):\n"
        "        os._exit(9)\n"
        "    return rename(self, target)\n"
        "Path.rename = kills\n"
        "with atomic.write_folder_atomically(Path(sys.argv[1])) as new:\n"
        "    new.mkdir()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, str(path), str(killed_at)], check=False
    ).returncode
    assert ended == 9
    assert path.exists() == (killed_at == 1)
    sweep(tmp_path)
    assert (path / "array").read_text() == "first"
    assert [p.name for p in tmp_path.iterdir()] == ["a.zarr"]


def test_no_temporary_file_outlives_a_failure(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("first")
    for place, name in ((os, "fsync"), (Path, "chmod"), (Path, "replace")):
        with monkeypatch.context() as patch:

            def fails(*_: object) -> None:
                raise OSError(errno.ENOSPC, "No space left on device")

            patch.setattr(place, name, fails)
            with pytest.raises(OSError, match=r"a\.txt'$"), write_atomically(path) as temporary:
                temporary.write_text("second")
        assert path.read_text() == "first"
        assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_full_disk_is_a_failure_and_other_reasons_are_bad_input(tmp_path):
    full = write_error(tmp_path / "a", OSError(errno.ENOSPC, "No space left on device"), "move")
    assert not isinstance(full, InputError)
    assert str(full) == f"{tmp_path / 'a'} cannot be written (No space left on device): " + (
        "make room or check the disk"
    )
    other = write_error(tmp_path / "a", OSError(errno.EACCES, "Permission denied"), "move it")
    assert isinstance(other, InputError)
    assert str(other).endswith("(Permission denied): move it")


def _without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(owner.fcntl, "flock", fails)


def test_without_locks_of_the_system_one_process_works_and_says_so(tmp_path, monkeypatch):
    _without_locks(monkeypatch)
    path = tmp_path / ".lock"
    lock = Lock(path, "it")
    with pytest.warns(FolderWarning, match="has no locks: see to it"):
        lock.__enter__()
    with pytest.raises(InUseError, match=r"as .*\.lock says"), Lock(path, "it"):
        pass
    named = json.loads(path.read_text())
    lock.__exit__()
    assert not path.exists()
    # one that is known to be gone is no obstacle
    named["owner"] = str(Owner.this()._replace(pid=2**22 + 1))
    path.write_text(json.dumps(named))
    with pytest.warns(FolderWarning), Lock(path, "it"):
        pass
    # one of another container cannot be told from a living one
    named["owner"] = str(Owner.this()._replace(namespace="000000"))
    path.write_text(json.dumps(named))
    with pytest.raises(InUseError, match="remove that file if it is gone"), Lock(path, "it"):
        pass


@pytest.mark.parametrize("locks", [True, False])
def test_what_another_container_writes_stays(tmp_path, monkeypatch, locks):
    """Its process id means nothing here, and its host may have our name: only its lock counts."""
    path, theirs = tmp_path / "a.txt", Owner.this()._replace(namespace="000000", pid=2**22 + 1)
    living = tmp_path / f".a.txt.{theirs}-abcdefgh"
    other = tmp_path / f".b.zarr.{theirs}-abcdefgh"
    living.touch()
    other.mkdir()
    if not locks:
        _without_locks(monkeypatch)
    with contextlib.ExitStack() as held:
        if locks:
            for entry in (living, other):
                assert held.enter_context(owner.locking(entry)) is owner.Lockable.HELD
        with write_atomically(path) as temporary:
            temporary.write_text("mine")
        assert living.exists()
        assert other.exists()
    sweep(tmp_path)
    # with locks, the system has said that it is gone; without, nothing has
    assert (living.exists(), other.exists()) == (not locks, not locks)


def test_what_another_machine_left_stays_unless_nobody_else_may_write(tmp_path):
    far = tmp_path / f".a.txt.{Owner.this()._replace(boot='000000')}-abcdefgh"
    far.touch()
    sweep(tmp_path)
    assert far.exists()
    remove_left(far, alone=True)
    assert not far.exists()


def test_a_lock_of_somebody_else_is_not_removed(tmp_path):
    path = tmp_path / "run" / ".lock"
    path.parent.mkdir()
    with Lock(path, "it"):
        path.unlink()  # somebody removed the folder, and another process made it again
        path.write_text("theirs")
    assert path.read_text() == "theirs"


_RACE = """
import sys, time
from pathlib import Path
from symlift.storage.atomic import write_folder_atomically, write_atomically
from symlift.storage.lock import InUseError, Lock
here = Path(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
try:
    with Lock(here / ".lock", "it"):
        with write_atomically(here / "a.txt") as file, write_folder_atomically(here / "b") as new:
            new.mkdir()
            print("works", flush=True)
            sys.stdin.readline()
            (new / "c").write_text("whole")
            file.write_text("whole")
    print("done", flush=True)
except InUseError:
    print("in use", flush=True)
    with write_atomically(here / "other.txt") as file:  # sweeps the folder first
        file.write_text("whole")
    print("done", flush=True)
"""


@pytest.mark.slow
def test_two_process_namespaces_share_a_folder(tmp_path, request):
    """Two containers of one name: process numbers of one are wrong in the other, 20 times."""
    container = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*container, "true"], check=False).returncode
    ):
        pytest.skip("no namespaces here")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    for race in range(20):
        here = tmp_path / str(race)
        here.mkdir()
        command = [*container, sys.executable, "-c", _RACE, str(here)]
        both = [subprocess.Popen(command, **pipes) for _ in range(2)]
        request.addfinalizer(lambda both=both: [(p.kill(), p.communicate()) for p in both])
        for process in both:
            assert process.stdout.readline() == "ready\n"
        for process in both:
            process.stdin.write("\n")
            process.stdin.flush()
        said = {process.stdout.readline(): process for process in both}
        assert set(said) == {"works\n", "in use\n"}
        assert said["in use\n"].stdout.readline() == "done\n"
        said["works\n"].stdin.write("\n")
        said["works\n"].stdin.flush()
        assert said["works\n"].stdout.readline() == "done\n"
        for process in both:
            assert process.wait() == 0
        assert sorted(p.name for p in here.iterdir()) == ["a.txt", "b", "other.txt"]
        assert (here / "b" / "c").read_text() == (here / "a.txt").read_text() == "whole"
