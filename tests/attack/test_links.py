"""Links planted in a run folder, under every name that it can have, for every command: nothing
outside of the folder changes.
"""

from __future__ import annotations

import itertools
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from commands import everything, run_command

from symlift._parts_file import MAPS_FILE, PART_FILES, PARTS, PARTS_FILE
from symlift.datasets import gsn
from symlift.errors import InputError
from symlift.runs.folder import LOCK, NEXT, OUTPUTS, SWAP, TRAINING
from symlift.runs.record import RECORD
from symlift.runs.recover import recover
from symlift.solvers.registry import TRAINING_FILES
from symlift.storage.lock import Lock
from symlift_paper.jobs import Job
from symlift_paper.registry import read_experiments
from symlift_paper.store import Cache

FOLDERS = (NEXT, SWAP, TRAINING, PARTS)
#: as temporary files of this and of earlier versions are named
TEMPORARY = (".run.json.abc", ".model.json.0123456789ab-99999999-1-abcdefgh")
HERE = (RECORD, *OUTPUTS, LOCK, *TEMPORARY)
NAMES = (
    *HERE,
    *FOLDERS,
    *(f"{place}/{name}" for place in (NEXT, SWAP) for name in (*HERE, TRAINING, PARTS)),
    *(f"{TRAINING}/{name}" for name in (*TRAINING_FILES, "restart0")),
)
#: those through which symlift 0.2 reached what they point to
WORST = (LOCK, NEXT, SWAP, TRAINING, RECORD, "model.json", f"{NEXT}/{TRAINING}")
OVERWRITE = ("--grid", "9", "--solver", "random", "--no-check", "--no-report", "--overwrite")
COMMANDS = {
    "recover": ("recover", "x.npy", "--out", "run"),
    "overwrite": ("recover", "x.npy", "--out", "run", *OVERWRITE),
    "resume": ("recover", "x.npy", "--out", "run", "--resume"),
    "transform": ("transform", "run", "x.npy", "--out", "y.npy"),
    "report": ("report", "run"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, a finished run, and a place outside that nobody may change: a file, and a run."""
    here = tmp_path_factory.mktemp("links")
    np.save(here / "x.npy", gsn(60, (9,), random_state=0).X)
    recover(here / "x.npy", here / "run", grid="9", solver="random", check=False)
    outside = here / "outside"
    shutil.copytree(here / "run", outside / "folder")
    (outside / "folder" / TRAINING).mkdir()
    for name in TRAINING_FILES:
        (outside / "folder" / TRAINING / name).write_text("mine")
        (outside / "folder" / name).write_text("mine")
    (outside / "file").write_text("mine")
    return here


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("symlift.report.page.render", lambda run: "<html>page</html>")
    return tmp_path


def plant(here: Path, name: str, kind: str) -> None:
    """Plant a link in the run folder, in place of what has its name."""
    path, is_folder = here / "run" / name, Path(name).name in (*FOLDERS, "restart0")
    path.parent.mkdir(exist_ok=True)
    if path.parent.name in (NEXT, SWAP) and path.name != RECORD:
        shutil.copy(here / "run" / RECORD, path.parent)
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    target = here / "outside" / ("folder" if is_folder else "file")
    if kind == "hard":
        os.link(here / "outside" / "file", path)
    else:
        path.symlink_to(target if kind == "symbolic" else here / "outside" / "nowhere")


CASES = list(itertools.product(NAMES, ("symbolic", "hard", "dangling"), COMMANDS))


@pytest.mark.parametrize(
    ("name", "kind", "command"),
    [
        pytest.param(*case, marks=() if case[0] in WORST else pytest.mark.slow, id="-".join(case))
        for case in CASES
    ],
)
def test_nothing_outside_changes(here: Path, name: str, kind: str, command: str) -> None:
    plant(here, name, kind)
    before = everything(here / "outside")
    code, _, err = run_command(*COMMANDS[command])
    assert everything(here / "outside") == before
    assert "Traceback" not in err
    assert (code, err.count("\n")) in ((0, 0), (2, 1)), err
    if kind != "hard" and name not in TEMPORARY and Path(name).name not in TEMPORARY:
        assert code == 2, err
        assert "is a link" in err
        assert name in err


@pytest.fixture(scope="module")
def of_parts(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a run of two domains."""
    here = tmp_path_factory.mktemp("parts")
    shutil.copytree(made / "outside", here / "outside")
    lines = [gsn(400, (6,), transform="permutation", random_state=seed).X for seed in (0, 1)]
    np.save(here / "x.npy", np.hstack(lines))
    recover(here / "x.npy", here / "run", parts="2", check=False)
    return here


_OF_PARTS = (
    *(PARTS, PARTS_FILE, MAPS_FILE, f"{PARTS}/000"),
    *(f"{PARTS}/001/{name}" for name in (*PART_FILES, ".report.html.abc", "mine")),
)
_AGAIN = ("--parts", "2", "--no-check", "--no-report", "--overwrite")


@pytest.mark.slow
@pytest.mark.parametrize("command", [*COMMANDS, "as one"])
@pytest.mark.parametrize("kind", ["symbolic", "hard", "dangling"])
@pytest.mark.parametrize("name", _OF_PARTS)
def test_nothing_outside_of_a_run_of_parts_changes(
    of_parts: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    kind: str,
    command: str,
) -> None:
    shutil.copytree(of_parts, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    path, place = tmp_path / "run" / name, tmp_path / "outside"
    is_folder = name in (PARTS, f"{PARTS}/000")
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    if kind == "hard":
        os.link(place / "file", path)
    else:
        target = place / ("folder" if is_folder else "file")
        path.symlink_to(target if kind == "symbolic" else place / "nowhere")
    before = everything(place)
    arguments = {
        **COMMANDS,
        "overwrite": ("recover", "x.npy", "--out", "run", *_AGAIN),
        "as one": ("recover", "x.npy", "--out", "run", *OVERWRITE),
    }[command]
    code, _, err = run_command(*arguments)
    assert everything(place) == before
    assert "Traceback" not in err
    assert code in (0, 2), err
    if code or kind != "hard":
        assert code == 2, err
        assert err.splitlines()[-1].startswith("error: ")
        assert kind == "hard" or "is a link" in err


@pytest.mark.parametrize("kind", ["symbolic", "hard", "dangling"])
@pytest.mark.parametrize("name", [LOCK, "run", "observed.npy", "demo.png"])
def test_a_demonstration_changes_nothing_outside(
    here: Path, name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from symlift.cli import demo

    small = gsn(60, (9,), random_state=0), "shot noise"
    monkeypatch.setattr(demo, "demo_data", lambda seed: small)
    monkeypatch.setattr(demo, "gallery", lambda *_, **__: None)
    monkeypatch.setattr(demo, "save_figure", lambda figure, path: None)
    (here / "run").rename(here / "demo")
    target = here / "outside" / ("folder" if name == "run" else "file")
    if kind == "hard":
        os.link(here / "outside" / "file", here / "demo" / name)
    else:
        (here / "demo" / name).symlink_to(target if kind == "symbolic" else target / "nowhere")
    before = everything(here / "outside")
    try:
        demo.run_demo(here / "demo", 0, "random")
    except InputError as error:
        assert name in str(error)  # noqa: PT017 - refused or replaced, both leave it alone
    assert everything(here / "outside") == before


@pytest.mark.parametrize("kind", ["symbolic", "hard", "dangling"])
@pytest.mark.parametrize("suffix", [".json", ".training", ".lock"])
def test_a_cache_changes_nothing_outside(here: Path, suffix: str, kind: str) -> None:
    text = "- {name: mine, title: t, source: gsn, shape: [9], n: 60, seeds: [0]}"
    job = Job(
        experiment=read_experiments(text, "rows.yaml")["mine"], kind="solver", method="random"
    )
    cache = Cache(here / "cache")
    (here / "cache").mkdir()
    entry = cache.path(job)
    path = entry.with_name(f".{entry.name}.lock") if suffix == ".lock" else entry
    path = path.with_suffix(suffix)
    target = here / "outside" / ("folder" if suffix == ".training" else "file")
    if kind == "hard":
        os.link(here / "outside" / "file", path)
    else:
        path.symlink_to(target if kind == "symbolic" else here / "outside" / "nowhere")
    before = everything(here / "outside")
    cache.settle()
    try:
        cache.run(job)
    except InputError as error:
        assert path.name in str(error)  # noqa: PT017
    assert everything(here / "outside") == before


@pytest.mark.parametrize("kind", ["symbolic", "hard", "dangling", "pipe"])
def test_a_lock_is_no_way_out(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").write_text("mine")
    path = tmp_path / LOCK
    if kind == "hard":
        os.link(tmp_path / "file", path)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / ("file" if kind == "symbolic" else "nowhere"))
    with pytest.raises(InputError, match=r"\.lock is .*remove"), Lock(path, "it"):
        pass
    assert (tmp_path / "file").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


def test_a_lock_that_another_user_left_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / LOCK).write_text("not a lock")
    monkeypatch.setattr(os, "geteuid", lambda: (tmp_path / LOCK).stat().st_uid + 1)
    with pytest.raises(InputError, match="another user"), Lock(tmp_path / LOCK, "it"):
        pass
    assert (tmp_path / LOCK).read_text() == "not a lock"


@pytest.mark.parametrize("name", ["run.json", "estimator.json", "gaps.safetensors", "samples.npz"])
@pytest.mark.parametrize("command", ["transform", "report"])
def test_a_pipe_is_not_waited_for(here: Path, name: str, command: str) -> None:
    (here / "run" / name).unlink(missing_ok=True)
    os.mkfifo(here / "run" / name)
    code, _, err = run_command(*COMMANDS[command])
    assert code == (2 if name != "samples.npz" and command == "transform" else code)
    assert code in (0, 2)
    assert err.count("\n") == (1 if code else 0)


def test_reading_moves_and_removes_nothing(here: Path) -> None:
    """What a killed command has left stays for the next one that writes there."""
    run = here / "run"
    shutil.copytree(run, run / NEXT)
    (run / ".run.json.abc").write_text("")
    (run / LOCK).write_text("{}")
    before = everything(run)
    assert run_command(*COMMANDS["transform"])[0] == 0
    assert everything(run) == before
    (run / NEXT).rename(run / SWAP)
    before = everything(run)
    code, _, err = run_command("transform", "run", "x.npy", "--out", "z.npy")
    assert (code, everything(run) == before) == (2, True)
    assert "symlift report run" in err
    assert run_command(*COMMANDS["report"])[0] == 0
    assert run_command("transform", "run", "x.npy", "--out", "z.npy")[0] == 0
    assert not any(name.startswith(".") for name in everything(run))
