"""Killed before every write: nothing half-written, no leftovers after the next command, the same
result in the end.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from commands import everything
from kills import DONE, KILLED, run_killed, temporaries

from symlift import load
from symlift.datasets import gsn
from symlift.errors import InputError
from symlift.runs.folder import settled
from symlift.runs.record import Status, open_run
from symlift.runs.recover import recover
from symlift.runs.signals import transform
from symlift.storage.lock import InUseError
from symlift_paper.registry import read_experiments
from symlift_paper.results import fill_tables, one_experiment

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

#: in `make test` every fifth write; all of them in `make test-full`
EVERY = [
    pytest.param(1, marks=pytest.mark.slow, id="every write"),
    pytest.param(5, id="every fifth write"),
]
each_write = pytest.mark.parametrize("step", EVERY)
SETTINGS = {"grid": "9", "solver": "random", "check": False}
ROWS = "- {name: mine, title: t, source: gsn, shape: [9], n: 60, seeds: [0], solver: random}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, a finished run of seed 0, and what seed 1 gives."""
    here = tmp_path_factory.mktemp("kills")
    np.save(here / "x.npy", gsn(60, (9,), random_state=0).X)
    (here / "rows.yaml").write_text(ROWS)
    for seed in (0, 1):
        recover(here / "x.npy", here / f"seed{seed}", seed=seed, signals=True, **SETTINGS)
    return here


def each_kill(
    made: Path, tmp_path: Path, work: Callable[[Path], object], step: int, most: int = 400
):
    """A fresh copy of the folder for each write, in which ``work`` was killed before it; ends when
    it was not.
    """
    for before in range(1, most, step):
        here = tmp_path / str(before)
        shutil.copytree(made, here)
        ended = run_killed(lambda here=here: work(here), here, before)
        assert ended in (KILLED, DONE), f"failed before write {before}"
        yield here, before, ended
        if ended == DONE:
            return
        shutil.rmtree(here)
    raise AssertionError("more writes than there should be")


def map_of(folder: Path) -> np.ndarray:
    return load(folder).lifting_map_


def is_whole(folder: Path) -> None:
    """Every file that has its own name can be read."""
    for path in folder.rglob("*"):
        if path.is_file() and not any(
            part.startswith(".") for part in path.relative_to(folder).parts
        ):
            if path.suffix == ".json":
                json.loads(path.read_text())
            elif path.suffix in (".npy", ".npz"):
                np.load(path)
            elif path.suffix == ".html":
                assert path.read_text().rstrip().endswith("</html>")


@each_write
def test_recover(made, tmp_path, step):
    def work(here):
        recover(here / "x.npy", here / "run", seed=1, signals=True, **SETTINGS)

    kills = 0
    for here, _, ended in each_kill(made, tmp_path, work, step):
        is_whole(here)
        if ended == KILLED:
            kills += 1
            run = recover(
                here / "x.npy", here / "run", seed=1, signals=True, resume=True, **SETTINGS
            )
            assert run.record.status is Status.DONE
        assert np.array_equal(map_of(here / "run"), map_of(made / "seed1"))
        assert np.array_equal(
            np.load(here / "run" / "signals.npy"), np.load(made / "seed1" / "signals.npy")
        )
        assert temporaries(here) == []
    assert kills * step > 15


@each_write
def test_overwrite(made, tmp_path, step):
    """Until the new run is whole the old one is, and --resume never takes the one for the other."""

    def work(here):
        recover(here / "x.npy", here / "seed0", seed=1, signals=True, overwrite=True, **SETTINGS)

    kills, asked, old, new = 0, False, map_of(made / "seed0"), map_of(made / "seed1")
    for here, _, ended in each_kill(made, tmp_path, work, step):
        is_whole(here)
        run = here / "seed0"
        if ended == KILLED:
            kills += 1
            try:
                found = map_of(run)  # one of the two, whole, or neither: never a mixture
            except InputError as error:
                assert "missing" in str(error)  # noqa: PT017 - a swap in the making
            else:
                assert np.array_equal(found, old) or np.array_equal(found, new)
            asked = asked or (run / ".next" / "run.json").exists()
            again = recover(here / "x.npy", run, resume=True)
            # from the first trace of the request on, it is the request that is continued
            assert again.record.settings.seed == (1 if asked else 0)
            assert again.record.status is Status.DONE
            if not asked:
                recover(here / "x.npy", run, seed=1, signals=True, overwrite=True, **SETTINGS)
        assert np.array_equal(map_of(run), new)
        assert open_run(run).record.settings.seed == 1
        assert temporaries(here) == []
        assert sorted(p.name for p in run.iterdir()) == sorted(
            p.name for p in (made / "seed1").iterdir()
        )
    assert kills * step > 30
    assert asked


@each_write
def test_a_killed_overwrite_is_read_as_one_of_the_two_runs(made, tmp_path, step):
    """Reading changes nothing; where a swap is half done it says so, and what finishes it."""

    def work(here):
        recover(here / "x.npy", here / "seed0", seed=1, signals=True, overwrite=True, **SETTINGS)

    seen = set()
    for here, _, _ in each_kill(made, tmp_path, work, step):
        before = everything(here / "seed0")
        try:
            transform(here / "seed0", here / "x.npy", here / "y.npy")
        except InputError as error:
            assert "symlift report" in str(error)  # noqa: PT017 - a swap in the making
            assert everything(here / "seed0") == before
            settled(here / "seed0")
            transform(here / "seed0", here / "x.npy", here / "y.npy")
        else:
            assert everything(here / "seed0") == before
        signals = np.load(here / "y.npy")
        same = [np.array_equal(signals, np.load(made / f"seed{k}" / "signals.npy")) for k in (0, 1)]
        assert sum(same) == 1
        seen.add(same.index(True))
    assert seen == {0, 1}


def test_transform(made, tmp_path):
    def work(here):
        transform(here / "seed1", here / "x.npy", here / "y.npy")

    for here, _, _ in each_kill(made, tmp_path, work, 1):
        is_whole(here)
        transform(here / "seed1", here / "x.npy", here / "y.npy", overwrite=True)
        assert np.array_equal(np.load(here / "y.npy"), np.load(made / "seed1" / "signals.npy"))
        assert temporaries(here) == []


def test_report(made, tmp_path, monkeypatch):
    from symlift.cli.running import report

    monkeypatch.setattr("symlift.report.page.render", lambda run: "<html>page</html>")

    def work(here):
        report(here / "seed1", quiet=True)

    for here, _, _ in each_kill(made, tmp_path, work, 1):
        is_whole(here)
        report(here / "seed1", quiet=True)
        assert (here / "seed1" / "report.html").read_text() == "<html>page</html>"
        assert temporaries(here) == []


@each_write
def test_demo(made, tmp_path, monkeypatch, step):
    from symlift.cli import demo

    small = gsn(300, (9,), transform="permutation", random_state=0)
    monkeypatch.setattr(demo, "demo_data", lambda seed: (small, "shot noise"))
    monkeypatch.setattr(demo, "write_report", lambda run: run / "report.html")
    monkeypatch.setattr(demo, "save_figure", lambda figure, path: path.write_bytes(b"picture"))
    monkeypatch.setattr(demo, "gallery", lambda *_, **__: None)
    expected = None
    for here, _, ended in each_kill(
        made, tmp_path, lambda here: demo.run_demo(here / "demo", 0, "random"), step
    ):
        is_whole(here)
        if ended == KILLED:
            demo.run_demo(here / "demo", 0, "random")
        names = sorted(str(p.relative_to(here)) for p in (here / "demo").rglob("*"))
        expected = expected or names
        assert names == expected
        assert temporaries(here) == []


def test_experiment(made, tmp_path):
    experiment = read_experiments(ROWS, "rows.yaml")["mine"]

    def work(here):
        return one_experiment(experiment, "random", cache=here / "cache")

    first = None
    for here, _, _ in each_kill(made, tmp_path, work, 1):
        is_whole(here)
        result = work(here)
        first = first or result
        assert {k: v for k, v in result.items() if k not in ("seconds", "peak_rss_mb")} == {
            k: v for k, v in first.items() if k not in ("seconds", "peak_rss_mb")
        }
        work(
            here
        )  # what is in the cache is found, and what a kill has left is cleared all the same
        assert temporaries(here) == []
        assert len(list((here / "cache").iterdir())) == 1


@each_write
def test_table(made, tmp_path, step):
    def work(here):
        filled = fill_tables(
            ["mine"],
            file=here / "rows.yaml",
            cache=here / "cache",
            archive=here / "archive",
            page=here / "page.md",
        )
        for table in filled.tables:
            table.write(here / "tables")

    expected = None
    for here, _, _ in each_kill(made, tmp_path, work, step):
        is_whole(here)
        work(here)
        names = sorted(str(p.relative_to(here)) for p in here.rglob("*"))
        expected = expected or names
        assert names == expected
        assert temporaries(here) == []


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(1, marks=pytest.mark.slow, id="every write"),
        pytest.param(9, id="every ninth write"),
    ],
)
def test_training(tmp_path, step):
    """In a process of its own: this one has threads that have worked."""
    script = Path(__file__).with_name("killed_training.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), str(step)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) * step > 15


# -- several at once -------------------------------------------------------------------------------

_AT_ONCE = """
import sys
from pathlib import Path
import symlift.solvers.random as solver
from symlift.errors import FitWarning, InputError
from symlift.storage.lock import InUseError
from symlift.runs.recover import recover
from symlift_paper.results import one_experiment
from symlift_paper.registry import read_experiments
import symlift.solvers.fast.pipeline
solve = solver.solve
def waiting(*a, **k):  # the one that works goes on when it is told to
    print("works", flush=True)
    sys.stdin.readline()
    return solve(*a, **k)
solver.solve = waiting
print("ready", flush=True)
sys.stdin.readline()
here = Path(sys.argv[2])
try:
    if sys.argv[1] == "run":
        recover(here / "x.npy", here / "run", grid="9", solver="random", check=False)
    elif sys.argv[1] == "overwrite":
        settings = {"grid": "9", "solver": "random", "check": False, "seed": 1}
        recover(here / "x.npy", here / "seed0", overwrite=True, **settings)
    else:
        rows = read_experiments((here / "rows.yaml").read_text(), "rows.yaml")
        one_experiment(rows["mine"], "random", cache=here / "cache")
    print("done", flush=True)
except InUseError as error:
    print(f"in use: {error}", flush=True)
"""


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("what", ["run", "overwrite", "cache"])
def test_of_several_at_once_one_works_and_the_others_say_so(made, tmp_path, request, what, count):
    here = tmp_path / "here"
    shutil.copytree(made, here)
    command = [sys.executable, "-c", _AT_ONCE, what, str(here)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(count)]
    request.addfinalizer(lambda: [(process.kill(), process.communicate()) for process in processes])

    def tell(process):
        process.stdin.write("\n")
        process.stdin.flush()

    for process in processes:
        assert process.stdout.readline() == "ready\n"
    first, *others = processes
    tell(first)
    assert first.stdout.readline() == "works\n"  # it holds the lock now
    before = {p.name for p in here.rglob("*")}
    for process in others:
        tell(process)
        assert f"is in use by process {first.pid} on " in process.stdout.readline()
    assert {p.name for p in here.rglob("*")} == before
    tell(first)
    assert first.stdout.readline() == "done\n"
    for process in processes:
        process.wait()
    assert temporaries(here) == []
    if what != "cache":
        run = here / ("run" if what == "run" else "seed0")
        assert np.array_equal(map_of(run), map_of(made / ("seed0" if what == "run" else "seed1")))


_COMMAND = """
import sys
from symlift.cli import main
import symlift.runs.recover, symlift.solvers.fast.pipeline, symlift.diagnosis.examine
print("ready", flush=True)
sys.stdin.readline()
sys.argv = ["symlift", *sys.argv[1:]]
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("again", [False, True], ids=["new", "overwritten"])
def test_of_two_containers_that_recover_one_works_and_one_says_so(tmp_path, request, again):
    """The real command in two process namespaces with one hostname, ten times: what is in one
    folder afterwards is one whole run.
    """
    container = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*container, "true"], check=False).returncode
    ):
        pytest.skip("no namespaces here")
    np.save(tmp_path / "x.npy", gsn(4_000, (8, 8), transform="permutation", random_state=0).X)
    settings = {"grid": "8x8", "check": False}
    for seed in (0, 1):
        recover(tmp_path / "x.npy", tmp_path / f"seed{seed}", seed=seed, **settings)
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    options = ["--grid", "8x8", "--no-check", "--no-report", "--quiet", "--seed", "1"]
    options += ["--overwrite"] if again else []
    for race in range(10):
        run = tmp_path / str(race)
        if again:
            shutil.copytree(tmp_path / "seed0", run)
        command = [*container, sys.executable, "-c", _COMMAND, "recover", str(tmp_path / "x.npy")]
        command += ["--out", str(run), *options]
        both = [subprocess.Popen(command, text=True, **pipes) for _ in range(2)]
        request.addfinalizer(lambda both=both: [(p.kill(), p.communicate()) for p in both])
        for process in both:
            assert process.stdout.readline() == "ready\n"
        for process in both:
            process.stdin.write("\n")
            process.stdin.flush()
        said = [process.communicate(timeout=120)[1] for process in both]
        assert sorted(process.returncode for process in both) == [0, 2], said
        (refused,) = (err for process, err in zip(both, said, strict=True) if process.returncode)
        assert refused.count("\n") == 1
        assert " is in use by " in refused
        assert np.array_equal(map_of(run), map_of(tmp_path / "seed1"))
        assert open_run(run).record.settings.seed == 1
        assert temporaries(run) == []
        is_whole(run)


def test_in_use_is_bad_input():
    assert issubclass(InUseError, InputError)
