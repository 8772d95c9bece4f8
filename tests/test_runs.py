from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from symlift import Diagnosis, InputError, LatentDomain, Verdict, load
from symlift._estimator_file import read_estimator
from symlift.datasets import gsn
from symlift.diagnosis import NextStep, Test
from symlift.errors import FitWarning, SymliftError
from symlift.runs.readers import ReadOptions
from symlift.runs.record import Status, finished, open_run
from symlift.runs.recover import RunFailedError, recover
from symlift.runs.signals import transform
from symlift.solvers.contract import Solution, Stage, Trace
from symlift.solvers.registry import get_solver
from symlift.storage.strict_json import plain

V010 = Path(__file__).parent / "fixtures" / "v0.1.0" / "run"
# what a run of the random solver leaves: it places no columns
FILES = sorted(
    ["run.json", "model.safetensors", "model.json", "estimator.json", "samples.npz", "signals.npy"]
)


@pytest.fixture
def here(tmp_path, monkeypatch, rng):
    """A folder with data, entered."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", rng.laplace(size=(300, 12)))
    return tmp_path


def fit(here, **options):
    return recover(here / "x.npy", **({"solver": "random", "grid": "3x4"} | options))


def rewrite(folder, **changes):
    """Change what a record says."""
    path = folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def test_a_run_holds_what_its_user_needs(here):
    run = fit(here, seed=3, periodic=True, signals=True)
    assert run.folder.name == "x-symlift"
    assert names(here / "x-symlift") == FILES
    record = json.loads((here / "x-symlift" / "run.json").read_text())
    assert record["status"] == "done"
    assert record["input"] == {
        "name": "x.npy",
        "sha256": record["input"]["sha256"],
        "shape": [300, 12],
        "dtype": "float64",
        "reading": record["input"]["reading"],
        "columns": None,
        "notes": [],
        "left_out": [],
    }
    assert record["settings"] == {
        "grid": "3x4",
        "periodic": True,
        "solver": "random",
        "mixing": "auto",
        "seed": 3,
        "parts": None,
        "preset": None,
        "budget": None,
        "signals": True,
        "check": True,
        "level": "quick",
        "nan": "refuse",
    }
    assert "trace" not in record  # it is in estimator.json
    assert read_estimator(here / "x-symlift").trace.solver == "random"
    assert (record["grid"], record["periodic"], record["solver"]) == (
        [3, 4],
        [True, True],
        "random",
    )
    assert record["started"] <= record["ended"]
    assert record["started"].endswith("+00:00")
    assert {"symlift", "python", "numpy", "torch"} <= set(record["versions"])
    assert record["timings"]["total"] >= record["timings"]["fit"] > 0
    X = np.load("x.npy")
    est = LatentDomain((3, 4), periodic=True, solver="random", random_state=3).fit(X)
    assert np.allclose(load("x-symlift").transform(X), est.transform(X), atol=1e-12)
    assert np.allclose(np.load("x-symlift/signals.npy"), est.transform(X), atol=1e-12)
    with np.load("x-symlift/samples.npz") as samples:
        assert samples["observed"].shape == (300, 12)  # all of them, where they are few
        assert samples["observed"].dtype == np.float32
        assert samples["total"] == 300
        assert np.allclose(samples["observed"], X[samples["row"]], atol=1e-5)


def test_transform_equals_the_estimator_and_checks_columns(here):
    X = np.load("x.npy")
    header = "abcdefghijkl"
    np.savetxt("x.csv", X, delimiter=",", header=",".join(header), comments="")
    run = recover(here / "x.csv", grid="12", solver="random")
    for name in ("y.npy", "y.npz", "y.csv"):
        assert transform(run.folder, here / "x.npy", here / name) == (300, 12)
    expected = load(run.folder).transform(pd.DataFrame(X, columns=list(header)))
    assert np.allclose(np.load("y.npy"), expected, atol=1e-12)
    assert np.allclose(np.load("y.npz")["signals"], expected, atol=1e-12)
    assert np.allclose(np.loadtxt("y.csv", delimiter=",", skiprows=1), expected, atol=1e-12)
    load(run.folder).save(here / "model")  # a saved model serves as well
    transform(here / "model", here / "x.npy", here / "y.npy", overwrite=True)
    np.savetxt("z.csv", X, delimiter=",", header=",".join(reversed(header)), comments="")
    transform(run.folder, here / "z.csv", here / "z.npy")
    reversed_rows = pd.DataFrame(X, columns=list(reversed(header)))[
        list(header)
    ]  # columns are found by their names
    assert np.allclose(np.load("z.npy"), load(run.folder).transform(reversed_rows), atol=1e-12)
    np.savetxt("other.csv", X, delimiter=",", header=",".join("zbcdefghijkl"), comments="")
    with pytest.raises(InputError, match=r"'z' in column 1 where .* 'a'"):
        transform(run.folder, here / "other.csv", here / "other.npy")
    with pytest.raises(InputError, match="the data file itself"):
        transform(run.folder, here / "x.npy", here / "x.npy", overwrite=True)
    assert not (here / "other.npy").exists()


def test_nothing_is_overwritten_unless_told(here):
    first = fit(here, out=here / "run", signals=True)
    (here / "run" / "notes.txt").write_text("mine")
    (here / "run" / "report.html").write_text("old")
    with pytest.raises(InputError, match="choose another --out, or give --overwrite"):
        fit(here, out=here / "run")
    again = fit(here, out=here / "run", seed=1, overwrite=True)
    assert again.record.settings.seed == 1
    assert "signals.npy" not in names(here / "run")  # those were of the first run
    assert "report.html" not in names(here / "run")
    assert (here / "run" / "notes.txt").read_text() == "mine"
    assert first.record.input == again.record.input
    # what is not a run is left alone even when told
    (here / "other").mkdir()
    (here / "other" / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match="is not a run folder"):
        fit(here, out=here / "other", overwrite=True)
    # an empty folder, or one with the rest of a killed write, may be used
    (here / "new").mkdir()
    (here / "new" / ".run.json.abc").touch()
    fit(here, out=here / "new")
    assert ".run.json.abc" not in names(here / "new")


def test_bad_input_leaves_an_earlier_run_as_it_was(here):
    fit(here, out=here / "run")
    before = {p.name: p.read_bytes() for p in (here / "run").iterdir()}
    X = np.load("x.npy")
    X[3, 2] = np.nan
    np.save("nan.npy", X)
    with pytest.raises(
        InputError, match=r"nan\.npy: 1 of 300 rows have gaps .*--nan drop keeps 299"
    ):
        recover(here / "nan.npy", here / "run", solver="random", grid="12", overwrite=True)
    assert {p.name: p.read_bytes() for p in (here / "run").iterdir()} == before
    with pytest.raises(InputError, match=r"nan\.npy"):
        recover(here / "nan.npy", here / "deep" / "er", solver="random", grid="12")
    assert not (here / "deep").exists()


def test_resume_checks_data_and_settings(here):
    run = fit(here, out=here / "run", seed=5)
    expected = load(run.folder).lifting_map_
    rewrite(run.folder, status="running")
    (here / "run" / "model.json").unlink()
    with pytest.raises(InputError, match="--resume, or start again with --overwrite"):
        fit(here, out=here / "run")
    with pytest.raises(InputError, match="is not finished"):
        transform(here / "run", here / "x.npy", here / "y.npy")
    with pytest.raises(InputError, match="started with grid 3x4, not 4x3"):
        recover(here / "x.npy", here / "run", grid="4x3", resume=True)
    with pytest.raises(InputError, match="started with key None, not a"):
        recover(here / "x.npy", here / "run", reading=ReadOptions(key="a"), resume=True)
    np.save("other.npy", np.load("x.npy") + 1)
    with pytest.raises(InputError, match="its hash differs"):
        recover(here / "other.npy", here / "run", resume=True)
    with pytest.raises(InputError, match="give one of them"):
        fit(here, out=here / "run", resume=True, overwrite=True)
    resumed = recover(here / "x.npy", here / "run", resume=True)
    assert resumed.record.resumed == 1
    assert resumed.record.started == run.record.started
    assert np.allclose(load(run.folder).lifting_map_, expected, atol=1e-12)
    before = (here / "run" / "run.json").stat().st_mtime_ns
    done = recover(here / "run", resume=True)  # by the folder alone; the data is beside it
    assert (done.record.status, done.fresh) == ("done", False)
    assert (here / "run" / "run.json").stat().st_mtime_ns == before
    (here / "x.npy").unlink()
    with pytest.raises(InputError, match=r"x\.npy is neither here nor next to"):
        recover(here / "run", resume=True)


def test_resume_where_nothing_was_started_starts(here):
    assert fit(here, out=here / "run", resume=True).record.status == "done"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{",
        '{"format": "else"}',
        '{"format": "symlift-run", "version": 1, "status": "done", "input": 1}',
        "\xff",
    ],
)
def test_a_damaged_record_is_named(here, content):
    (here / "run").mkdir()
    (here / "run" / "run.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(InputError, match=r"run\.json is damaged .*--overwrite"):
        fit(here, out=here / "run", resume=True)
    assert fit(here, out=here / "run", overwrite=True).record.status == "done"


def test_a_record_of_a_later_version_is_refused(here):
    fit(here, out=here / "run")
    rewrite(here / "run", version=99)
    with pytest.raises(InputError, match="upgrade symlift"):
        open_run(here / "run")


def failing(X, grid, rng, *_, **__):
    raise np.linalg.LinAlgError("SVD did not\nconverge")


def test_a_solver_that_fails_leaves_a_failed_run_that_can_go_on(here, monkeypatch):
    fit(here, out=here / "run", signals=True)
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["symlift.solvers.random"], "solve", failing)
        with pytest.raises(RunFailedError, match=r"failed \(LinAlgError: SVD did not converge\)"):
            fit(here, out=here / "run", overwrite=True)
    assert names(here / "run") == sorted(
        [".next", *FILES]
    )  # the earlier run is there until the next one is whole
    assert names(here / "run" / ".next") == ["run.json"]
    assert open_run(here / "run" / ".next").record.error.startswith("LinAlgError")
    transform(here / "run", here / "x.npy", here / "y.npy")
    assert recover(here / "x.npy", here / "run", resume=True).record.resumed == 1
    assert names(here / "run") == [name for name in FILES if name != "signals.npy"]
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["symlift.solvers.random"], "solve", failing)
        with pytest.raises(RunFailedError):
            fit(here, out=here / "first")
    with pytest.raises(InputError, match="has failed"):
        transform(here / "first", here / "x.npy", here / "z.npy")


def test_a_full_disk_is_a_failure_and_an_unwritable_place_bad_input(here, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    (here / "file").touch()
    with pytest.raises(InputError, match=r"cannot be written|is a file"):
        fit(here, out=here / "file" / "run")
    with pytest.raises(InputError, match="choose another --out"):
        fit(here, out=here / ("r" * 300))
    with monkeypatch.context() as patch:
        patch.setattr(LatentDomain, "save", full)
        with pytest.raises(RunFailedError, match="No space left"):
            fit(here, out=here / "run")
    monkeypatch.setattr("symlift.runs.record.Run.write", full)
    with pytest.raises(SymliftError, match="none cannot be written") as caught:
        fit(here, out=here / "none")
    assert not isinstance(caught.value, InputError)  # exit code 1, not 2
    assert not (here / "none").exists()


def test_stages_score_and_diagnosis_are_kept_where_there_are_any(here, monkeypatch):
    def staged(X, grid, rng, *_, **__):
        import warnings

        warnings.warn("look at it", FitWarning, stacklevel=1)
        solution = random_solve(X, grid, rng)
        values = {"quality": np.float32(0.5), "bad": float("nan"), "scores": np.arange(2)}
        stages = (Stage("second order", 0.25, values), Stage("third order"))
        return Solution(
            solution.model, trace=Trace("staged", "the second", stages, {"strength": 2.0})
        )

    get_solver("random")
    told = Diagnosis(
        Verdict.ORDERED,
        0.9,
        (Test("locality", 0.5, 0.2, True, "how local"),),
        (NextStep("fit a ring", {"grid": (12,)}),),
    )
    random_solve = sys.modules["symlift.solvers.random"].solve
    monkeypatch.setattr(sys.modules["symlift.solvers.random"], "solve", staged)
    monkeypatch.setattr(LatentDomain, "score", lambda self, X: 0.25, raising=False)
    monkeypatch.setattr(LatentDomain, "diagnose", lambda self, X, **_: told, raising=False)
    run = fit(here)
    stored = json.loads((run.folder / "estimator.json").read_text())["trace"]
    assert stored["stages"] == [
        {
            "name": "second order",
            "seconds": 0.25,
            "values": {"quality": 0.5, "bad": None, "scores": [0, 1]},
        },
        {"name": "third order", "seconds": 0.0, "values": {}},
    ]
    trace = read_estimator(run.folder).trace
    assert (trace.chosen, trace.stages[0].name, trace.settings) == (
        "the second",
        "second order",
        {"strength": 2.0},
    )
    assert json.loads((run.folder / "run.json").read_text())["diagnosis"]["verdict"] == "ordered"
    record = open_run(run.folder).record
    assert (record.score, record.diagnosis.verdict, record.solver) == (
        0.25,
        Verdict.ORDERED,
        "staged",
    )
    assert record.diagnosis.tests == told.tests
    assert record.diagnosis.next_steps[0].text == "fit a ring"
    assert record.warnings == ["look at it"]

    def broken(self, X, **_):
        raise RuntimeError("no")

    monkeypatch.setattr(LatentDomain, "diagnose", broken, raising=False)
    assert fit(here, overwrite=True).record.warnings == [
        "look at it",
        "diagnosis failed (RuntimeError: no)",
    ]


def test_plain_is_strict_json():
    value = {
        1: (np.int64(2), {3.5}),
        "a": np.array([np.inf, 1.0]),
        "p": object,
        "n": None,
        "t": True,
    }
    text = json.dumps(plain(value), allow_nan=False)
    assert json.loads(text)["a"] == [None, 1.0]
    assert json.loads(text)["1"] == [2, [3.5]]


# -- what 0.1.0 wrote ------------------------------------------------------------------------------


def test_a_run_of_0_1_0_opens(tmp_path):
    run = finished(V010)
    record, told = run.record, json.loads((V010 / "run.json").read_text())
    assert (record.status, run.fresh, record.grid, record.solver) == (
        Status.DONE,
        False,
        (4, 5),
        "fast",
    )
    assert record.input.shape == (600, 20)
    assert (record.settings.mixing, record.settings.check) == ("auto", True)
    assert record.score == told["score"]
    assert (record.diagnosis.verdict, record.diagnosis.confidence) == (Verdict.PRESENT, 0.908)
    assert {test.name: test.value for test in record.diagnosis.tests} == told["diagnosis"][
        "figures"
    ]
    # written again it is one of this version, and says the same
    run.folder = tmp_path
    run.write()
    assert open_run(tmp_path).record == record


def test_a_run_of_0_1_0_loads_and_transforms(tmp_path):
    est = load(V010)
    with np.load(V010 / "samples.npz") as samples:
        observed, recovered = samples["observed"], samples["recovered"]
    assert np.allclose(est.transform(observed), recovered, atol=1e-5)
    np.save(tmp_path / "x.npy", observed)
    assert transform(V010, tmp_path / "x.npy", tmp_path / "y.npy") == (64, 20)
    assert np.allclose(np.load(tmp_path / "y.npy"), recovered, atol=1e-5)
    evidence = read_estimator(V010).evidence
    assert (evidence.found, evidence.reach, evidence.explained, evidence.nongaussianity) == (
        True,
        "coordinates",
        0.853,
        None,
    )
    assert est.trace_.chosen == "coordinates"
    assert [stage.name for stage in est.trace_.stages] == ["arrange", "choose"]
    assert est.trace_.stages[0].values["explained"] == pytest.approx(0.9667, abs=1e-4)


# -- where columns are points ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """A run of a CSV with a header: a field on 5 x 6 points in unknown order."""
    folder = tmp_path_factory.mktemp("named")
    data = gsn(1_000, (5, 6), transform="permutation", random_state=3)
    header = [f"sensor {point}" for point in np.argmax(data.transform, axis=0)]
    np.savetxt(folder / "x.csv", data.X, delimiter=",", header=",".join(header), comments="")
    return recover(folder / "x.csv", folder / "run", grid="5x6", mixing="shuffled"), header


def test_the_names_of_columns_are_kept(named):
    run, header = named
    assert run.record.input.columns == header
    assert json.loads((run.folder / "estimator.json").read_text())["feature_names"] == header
    est = load(run.folder)
    assert list(est.feature_names_in_) == header
    assert est.placement_.names == tuple(header)
    table = pd.read_csv(run.folder / "placement.csv", keep_default_na=False)
    assert list(table["name"]) == header
    assert list(table["point"]) == est.placement_.point.tolist()
    # sensors that are neighbours in truth are neighbours in the table
    order = np.array([int(name.split()[1]) for name in table.sort_values("point")["name"]]).reshape(
        5, 6
    )
    assert set(np.abs(np.diff(order, axis=1)).ravel()) == {1}
    assert set(np.abs(np.diff(order, axis=0)).ravel()) == {6}


def test_a_record_that_recover_wrote_is_read_back_whole(named):
    run, _ = named
    read = open_run(run.folder)
    assert read.record == run.record
    assert (run.fresh, read.fresh) == (True, False)
    assert read.record.diagnosis.verdict is Verdict.PRESENT
    assert read.record.diagnosis.value("locality") > 0.9
    assert (read.record.settings.mixing, read.record.version) == ("shuffled", 2)
    assert "metrics.jsonl" not in names(run.folder)


def test_what_is_stored_is_strict_json(named):
    def refuse(constant):
        raise ValueError(constant)

    for name in ("run.json", "estimator.json", "model.json"):
        json.loads((named[0].folder / name).read_text(), parse_constant=refuse)


def test_a_run_without_its_check(here):
    run = fit(here, check=False)
    assert run.record.diagnosis is None
    assert run.record.score is not None
    assert run.record.timings.check >= 0
    assert json.loads((run.folder / "run.json").read_text())["settings"]["check"] is False


def test_a_placement_goes_when_the_next_run_has_none(named, here):
    """Overwriting removes what the new run does not write."""
    np.savetxt(
        "x.csv",
        np.loadtxt(named[0].folder.parent / "x.csv", delimiter=",", skiprows=1),
        delimiter=",",
    )
    assert "placement.csv" in names(
        recover(here / "x.csv", here / "run", grid="5x6", check=False).folder
    )
    assert "placement.csv" not in names(
        recover(here / "x.csv", here / "run", solver="random", grid="5x6", overwrite=True).folder
    )


def test_an_unknown_mixing_leaves_nothing(here):
    with pytest.raises(InputError, match=r"mixing 'bent' is unknown"):
        fit(here, mixing="bent")
    assert names(here) == ["x.npy"]


def test_resume_keeps_the_mixing(here):
    run = fit(here, out=here / "run", mixing="orthogonal", check=False)
    with pytest.raises(InputError, match="started with mixing orthogonal, not linear"):
        fit(here, out=here / "run", mixing="linear", resume=True)
    rewrite(run.folder, status="running")
    resumed = recover(here / "x.npy", here / "run", resume=True)
    assert (resumed.record.settings.mixing, resumed.record.settings.check) == ("orthogonal", False)
    assert resumed.record.diagnosis is None


# -- kill -9 ---------------------------------------------------------------------------------------

# a run that takes about a second in each of its parts, so that a kill may fall into any
SLOW = """
import sys, time
import symlift.solvers.random as fast
import symlift.core.rows as rows
from symlift.runs import recover as runs
from pathlib import Path
solve, replace, batches = fast.solve, Path.replace, rows.row_batches
def slow_solve(X, grid, rng, *_, **__):
    time.sleep(0.15)
    return solve(X, grid, rng)
def slow_replace(self, target):
    time.sleep(0.04)
    return replace(self, target)
fast.solve, Path.replace = slow_solve, slow_replace
rows.row_batches = lambda n, width: (time.sleep(0.02) or part for part in batches(n, width))
rows._BATCH = 1200
print("go", flush=True)
settings = {"grid": "3x4", "solver": "random", "seed": 7, "signals": True}
runs.recover(Path("x.npy"), Path("run"), resume=len(sys.argv) > 1, **settings)
print("end", flush=True)
"""


def kill_and_resume(here, kills):
    expected = LatentDomain((3, 4), solver="random", random_state=7).fit(np.load("x.npy"))
    moments = random.Random(1)  # noqa: S311 - moments, not secrets
    killed_while, record = [], here / "run" / "run.json"
    for _ in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", SLOW, "--resume"], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout.readline() == "go\n"
        while (
            not killed_while and not record.exists()
        ):  # the first one dies at work, however slow the machine is
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.6))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        # at any moment there is no record or a whole one, and no file under its own name is broken
        killed_while.append(
            json.loads(record.read_text())["status"] if record.exists() else "nothing"
        )
        if (here / "run" / "samples.npz").exists():
            np.load(here / "run" / "samples.npz")["observed"]
        if (here / "run" / "signals.npy").exists():
            assert np.load(here / "run" / "signals.npy").shape == (300, 12)
        if killed_while[-1] == "done":
            assert np.allclose(load(here / "run").lifting_map_, expected.lifting_map_, atol=1e-6)
            record.unlink()  # so that there is something left to kill
            for entry in (here / "run").iterdir():
                entry.unlink()
    run = recover(
        here / "x.npy", here / "run", grid="3x4", solver="random", seed=7, signals=True, resume=True
    )
    assert run.record.status is Status.DONE
    assert names(here / "run") == FILES
    assert np.allclose(load(here / "run").lifting_map_, expected.lifting_map_, atol=1e-6)
    assert np.allclose(np.load("run/signals.npy"), expected.transform(np.load("x.npy")), atol=1e-6)
    return killed_while


def test_killed_at_three_moments_a_run_ends_the_same(here):
    assert "running" in kill_and_resume(here, 3)


@pytest.mark.slow
def test_killed_at_twenty_moments_a_run_ends_the_same(here):
    assert kill_and_resume(here, 20).count("running") > 8


@pytest.mark.parametrize("while_training", [False, True])
def test_a_folder_that_was_removed_stays_removed(here, monkeypatch, while_training):
    import shutil

    out, fit_ = here / "run", LatentDomain.fit

    def removing(self, *arguments, **options):
        fitted = fit_(self, *arguments, **options)
        shutil.rmtree(out)
        if while_training:  # it finds no place for its checkpoint
            raise FileNotFoundError(2, "No such file or directory", str(out / "training"))
        return fitted

    monkeypatch.setattr(LatentDomain, "fit", removing)
    with pytest.raises(RunFailedError, match="was removed or replaced") as caught:
        fit(here, out=out)
    assert "--resume" not in str(caught.value)
    assert not out.exists()


def test_resume_is_not_offered_where_memory_is_missing(here, monkeypatch):
    def large(*_, **__):
        raise MemoryError("Unable to allocate 3.64 TiB")

    monkeypatch.setattr(LatentDomain, "fit", large)
    with pytest.raises(RunFailedError, match="more memory than there is") as caught:
        fit(here, out=here / "run")
    assert "--resume" not in str(caught.value)
    assert "3.64 TiB" in str(caught.value)
