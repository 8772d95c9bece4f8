"""Fail each change of a command on the disk, one at a time; run with ``faults.c`` preloaded.

``python faults.py WORK FOLDER STEP``: FOLDER holds ``x.npy``, the runs ``seed0`` and ``seed1``, and
``y.*`` that ``seed0`` gave.  Prints how many faults were injected, or fails.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import io
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import typer

from symlift import load
from symlift.cli import app, main
from symlift.datasets import gsn
from symlift.runs.readers import read
from symlift_paper.registry import read_experiments
from symlift_paper.results import one_experiment

FORMATS = (".npy", ".npz", ".csv", ".tsv", ".parquet", ".zarr")
SETTINGS = ("--grid", "9", "--solver", "random", "--no-check", "--no-report")
TWO = ("--parts", "2", "--grid", "6", "--solver", "random", *SETTINGS[4:], "--signals")
KINDS = {"full": errno.ENOSPC, "broken": errno.EIO, "denied": errno.EACCES, "killed": 0}
ROWS = "- {name: mine, title: t, source: gsn, shape: [9], n: 60, seeds: [0], solver: random}"


def command(*arguments: str) -> Callable[[], object]:
    def work() -> object:
        sys.argv = ["symlift", *arguments]
        return main()

    return work


def training() -> None:
    from symlift import LatentDomain
    from symlift.solvers.neural import trainer

    trainer.CHECK = 2
    options = {"steps": 4, "settings": {"batch": 16}, "folder": Path("training")}
    LatentDomain((9,), periodic=True, solver="neural", random_state=0, solver_options=options).fit(
        np.load("x.npy")
    )


def save() -> None:
    load("seed1").save("model", overwrite=True)


def experiment() -> None:
    one_experiment(read_experiments(ROWS, "rows.yaml")["mine"], "random", cache=Path("cache"))


WORKS: dict[str, Callable[[], object]] = {
    "recover": command("recover", "x.npy", "--out", "run", "--signals", *SETTINGS),
    "overwrite": command(
        "recover", "x.npy", "--out", "seed0", "--seed", "1", "--overwrite", "--signals", *SETTINGS
    ),
    "report": command("report", "seed0"),
    "save": save,
    "parts": command("recover", "two.npy", "--out", "parts0", "--seed", "1", "--overwrite", *TWO),
    "report of parts": command("report", "parts0"),
    "training": training,
    "experiment": experiment,
    **{
        f"transform{suffix}": command(
            "transform", "seed1", "x.npy", "--out", f"y{suffix}", "--overwrite"
        )
        for suffix in FORMATS
    },
}


def forked(here: Path, work: Callable[[], object], fault: Callable[[], object]) -> tuple[int, str]:
    """Run ``work`` in a child whose changes may fail: (exit code, what it said on stderr)."""
    said = here.parent / "said"
    child = os.fork()
    if not child:
        code = 70
        try:
            stream = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(stream, 1)
            os.dup2(stream, 2)
            os.chdir(here)
            fault()
            work()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        except OSError:
            code = 1
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status, said.read_text(errors="replace")


def temporaries(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob(".*") if p.name[:2] != ".z")


@functools.cache
def _before(made: Path, suffix: str) -> list[np.ndarray]:
    """What may be found: as it was, or as it was asked for."""
    if suffix == "parts":
        two = np.load(made / "two.npy")
        return [load(made / f"parts{seed}").transform(two) for seed in (0, 1)]
    if not suffix:
        return [load(made / f"seed{seed}").lifting_map_ for seed in (0, 1)]
    return [read(place / f"y{suffix}").rows for place in (made, made / "new")]


def check_nothing_lost(name: str, here: Path, made: Path) -> None:
    """What was there before is there, as it was or replaced by what was asked for."""
    for seed in (0, 1):
        found = load(here / f"seed{seed}").lifting_map_
        assert any(np.array_equal(found, one) for one in _before(made, "")), f"seed{seed}"
    if "parts" in name:
        found = load(here / "parts0").transform(np.load(made / "two.npy"))
        assert any(np.array_equal(found, one) for one in _before(made, "parts")), "parts0"
    if name == "save":
        found = load(here / "model").lifting_map_
        assert any(np.array_equal(found, one) for one in _before(made, "")), "model"
    suffix = Path(name).suffix
    if suffix:
        rows = read(here / f"y{suffix}").rows
        assert any(np.array_equal(rows, one) for one in _before(made, suffix)), f"y{suffix}"


def prepare(made: Path) -> None:
    """Make what every work begins with."""
    os.chdir(made)
    np.save("x.npy", gsn(60, (9,), random_state=0).X)
    lines = [gsn(200, (6,), transform="permutation", random_state=seed).X for seed in (0, 1)]
    np.save("two.npy", np.hstack(lines))
    (made / "new").mkdir()
    commands = [("recover", "x.npy", "--out", f"seed{s}", "--seed", s, *SETTINGS) for s in "01"]
    commands += [("recover", "two.npy", "--out", f"parts{s}", "--seed", s, *TWO) for s in "01"]
    for seed, place in (("0", ""), ("1", "new/")):
        commands += [
            ("transform", f"seed{seed}", "x.npy", "--out", f"{place}y{suffix}")
            for suffix in FORMATS
        ]
    for arguments in commands:
        code, said = forked(made, command(*arguments), lambda: None)
        assert code == 0, said
    shutil.copytree("seed0", "model", ignore=shutil.ignore_patterns("run.json", "placement.csv"))


def warm_up(name: str, made: Path) -> None:
    """Import what a work imports only when it needs it, once for all children."""
    # typer builds the whole tree of commands anew for each call
    sys.modules["symlift.cli.app"].app = typer.main.get_command(app)  # type: ignore[attr-defined]
    if name == "training":  # what torch has once started does not survive a fork
        import torch._dynamo  # noqa: F401 - as its optimizers do

        import symlift.diagnosis.examine
        import symlift.solvers.neural.training  # noqa: F401

        return
    here = made.parent / "here"
    shutil.copytree(made, here, dirs_exist_ok=True)
    os.chdir(here)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        WORKS[name]()
    os.chdir(made)
    shutil.rmtree(here)


def attack(name: str, made: Path, step: int) -> int:
    """Inject faults into every ``step``-th change of a work, and return how many there were."""
    shim, work, count = ctypes.CDLL(None), WORKS[name], 0
    here = made.parent / "here"
    warm_up(name, made)
    last = changes_of(work, made)
    for kind, number in KINDS.items():
        for k in range(1, last + 1, step):
            shutil.rmtree(here, ignore_errors=True)
            shutil.copytree(made, here)

            def fault(k: int = k, number: int = number) -> None:
                shim.arm(os.fsencode(here), ctypes.c_long(k), number)

            code, said = forked(here, work, fault)
            where = f"{name}, change {k} {kind}: exit {code}, {said[-2000:]}"
            assert "Traceback" not in said, where
            assert code in (0, 1, 2, -signal.SIGKILL), where
            # a run that is whole in .next or .swap is moved by the next command that writes there
            runs = [here / run for run in ("seed0", "parts0")]
            moving = any((run / place).exists() for run in runs for place in (".next", ".swap"))
            # a fit that is saved over another one may be half-way, and the next save moves it
            if not moving and not (name == "save" and list((here / "model").glob(".*"))):
                check_nothing_lost(name, here, made)
            again = work
            if name == "recover" and (here / "run" / "run.json").exists():
                again = command("recover", "x.npy", "--out", "run", "--resume", "--no-report")
            done, said = forked(here, again, lambda: None)
            assert done == 0, f"{where}; and then exit {done}: {said[-2000:]}"
            check_nothing_lost(name, here, made)
            assert temporaries(here) == [], f"{where}; left: {temporaries(here)}"
            count += 1
    return count


def changes_of(work: Callable[[], object], made: Path) -> int:
    """Return how many changes a work makes on the disk."""
    here, shim, told = made.parent / "here", ctypes.CDLL(None), made.parent / "changes"
    shutil.copytree(made, here, dirs_exist_ok=True)

    def counted() -> None:
        try:
            work()
        finally:
            told.write_text(str(shim.changes()))

    code, said = forked(here, counted, lambda: shim.arm(os.fsencode(here), ctypes.c_long(-1), 0))
    assert code == 0, said
    return int(told.read_text())


if __name__ == "__main__":
    folder = Path(sys.argv[2]).resolve()
    if not (folder / "made").exists():
        (folder / "made").mkdir()
        prepare(folder / "made")
    print(attack(sys.argv[1], folder / "made", int(sys.argv[3])))
