from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from symlift import Diagnosis, InputError, LatentDomain, Verdict, __version__, load
from symlift.cli import app, main
from symlift.datasets import gsn
from symlift.diagnosis import NextStep
from symlift.solvers.registry import get_solver

runner = CliRunner()


def test_version_and_help_name_an_example_for_every_command():
    assert runner.invoke(app, ["--version"]).output.strip() == f"symlift {__version__}"
    commands = (
        ["demo"],
        ["doctor"],
        ["recover"],
        ["transform"],
        ["report"],
        ["experiment", "list"],
        ["experiment", "run"],
    )
    for command in commands:
        result = runner.invoke(app, [*command, "--help"])
        assert result.exit_code == 0
        assert "Example: symlift" in result.output


def test_experiment_list_and_run_as_json():
    listed = json.loads(runner.invoke(app, ["experiment", "list", "--json"]).stdout)
    assert listed["ising33-linear"]["paper"]["r"] == 0.960
    result = runner.invoke(
        app,
        [
            "experiment",
            "run",
            "gsn15-fft",
            "--solver",
            "random",
            "-n",
            "500",
            "--seed",
            "2",
            "--json",
        ],
    )
    assert result.exit_code == 0
    assert result.stdout.count("\n") == 1
    measured = json.loads(result.stdout)
    assert {
        "experiment",
        "solver",
        "seed",
        "r",
        "r_per_sample",
        "r_paper",
        "similarity",
        "similarity_exact",
        "similarity_half",
        "circular_correlation",
        "seconds",
        "peak_rss_mb",
        "n",
        "d",
        "grid",
    } <= set(measured)
    assert (measured["n"], measured["d"], measured["grid"], measured["seed"]) == (500, 15, [15], 2)
    assert 0 <= measured["r"] < 0.9  # a random map recovers nothing


def test_tables_for_people():
    assert "mnist27-shuffled" in runner.invoke(app, ["experiment", "list"]).output
    shown = runner.invoke(
        app, ["experiment", "run", "gsn15-discrete", "--solver", "random", "-n", "400"]
    ).output
    assert "0.9933" in shown
    assert "torch" in runner.invoke(app, ["doctor"]).output
    assert json.loads(runner.invoke(app, ["doctor", "--json"]).stdout)["symlift"] == __version__


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["experiment", "run", "nothing"], "nothing"),
        (["experiment", "run", "gsn15-fft", "--solver", "magic", "-n", "300"], "magic"),
        (["experiment", "run", "gsn15-fft", "-n", "9", "--solver", "ring"], "too few"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(monkeypatch, capsys, arguments, word):
    monkeypatch.setattr(sys, "argv", ["symlift", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    message = capsys.readouterr().err
    assert word in message
    assert message.count("\n") == 1


def test_bad_usage_is_exit_code_two():
    assert runner.invoke(app, ["experiment", "run", "gsn15-fft", "--seed", "x"]).exit_code == 2
    assert runner.invoke(app, ["fly"]).exit_code == 2


def test_module_entry_point_and_cheap_import(tmp_path):
    """`import symlift` must not pull in matplotlib, umap, scikit-learn or the command line."""
    code = (
        "import sys, symlift; print([m for m in ('matplotlib', 'umap', 'typer', 'sklearn', 'torch')"
        " if m in sys.modules])"
    )
    env = {**os.environ, "PYTHONWARNINGS": "ignore"}

    def run(*a):
        return subprocess.run(
            [sys.executable, *a], capture_output=True, text=True, env=env, cwd=tmp_path
        )

    assert run("-c", code).stdout.strip() == "[]"
    done = run("-m", "symlift", "experiment", "run", "nothing")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


# -- recover, transform, report --------------------------------------------------------------------


@pytest.fixture
def call(monkeypatch, capsys):
    """Run the command line as a user does: (exit code, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["symlift", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        out, err = capsys.readouterr()
        return caught.value.code or 0, out, err

    return run


@pytest.fixture
def here(tmp_path, monkeypatch, rng):
    """A folder with data, entered; the report is drawn by a stand-in."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", rng.laplace(size=(200, 12)))
    np.save("narrow.npy", rng.laplace(size=(200, 5)))  # few grids to propose
    monkeypatch.setitem(sys.modules, "symlift.report", StandIn)
    return tmp_path


class StandIn:
    """symlift.report, without its cost."""

    @staticmethod
    def write_report(folder):
        (folder / "report.html").write_text("<html>")
        return folder / "report.html"


RANDOM = ("--solver", "random", "--grid", "3x4")


def test_recover_transform_report_as_a_user_would(here, call):
    code, out, err = call("recover", "x.npy", *RANDOM, "--seed", 4, "--out", "run")
    assert (code, err) == (0, "")
    assert "grid: 3x4, open" in out
    assert "200 rows of 12 columns: solver random, seed 4" in out
    assert "report: run/report.html" in out
    code, out, err = call("transform", "run", "x.npy", "--out", "y.npy")
    assert (code, out, err) == (0, "signals: y.npy (200 rows of 12 grid points)\n", "")
    X = np.load("x.npy")
    est = LatentDomain((3, 4), solver="random", random_state=4).fit(X)
    assert np.allclose(np.load("y.npy"), est.transform(X), atol=1e-12)
    assert np.allclose(load("run").transform(X), est.transform(X), atol=1e-12)
    assert call("report", "run") == (0, "report: run/report.html\n", "")
    code, out, _ = call("recover", "x.npy", "--out", "run", "--resume")
    assert code == 0
    assert "was done already" in out


def test_json_is_one_line_and_quiet_is_quiet(here, call):
    code, out, err = call("recover", "x.npy", *RANDOM, "--periodic", "--signals", "--json")
    assert (code, err, out.count("\n")) == (0, "", 1)
    told = json.loads(out)
    assert told["grid"] == [3, 4]
    assert told["periodic"] == [True, True]
    assert told["signals"] == "x-symlift/signals.npy"
    assert told["report"] == "x-symlift/report.html"
    assert (told["n"], told["d"], told["seed"], told["status"]) == (200, 12, 0, "done")
    assert (told["verdict"], told["placement"]) == ("absent", None)
    out = call("transform", "x-symlift", "x.npy", "--out", "y.csv", "--json")[1]
    assert json.loads(out) == {"signals": "y.csv", "shape": [200, 12]}
    assert json.loads(call("report", "x-symlift", "--json")[1]) == {
        "report": "x-symlift/report.html"
    }
    # also of what the fit has to say: it is in run.json
    assert call("recover", "narrow.npy", "--solver", "random", "--out", "q", "--quiet") == (
        0,
        "",
        "",
    )
    assert (
        "could not be determined"
        in json.loads((here / "q" / "run.json").read_text())["warnings"][0]
    )
    assert call("transform", "q", "narrow.npy", "--out", "y.npy", "--quiet") == (0, "", "")
    assert call("report", "q", "--quiet") == (0, "", "")


def strict(text):
    """JSON as the standard has it."""

    def refuse(constant):
        raise ValueError(constant)

    return json.loads(text, parse_constant=refuse)


def test_placement_is_told_where_columns_are_points(here, call):
    data = gsn(600, (4, 5), transform="permutation", random_state=1)
    np.save("field.npy", data.X)
    arguments = ("recover", "field.npy", "--grid", "4x5", "--mixing", "shuffled", "--no-report")
    code, out, err = call(*arguments, "--json")
    assert (code, err, out.count("\n")) == (0, "", 1)
    told = strict(out)
    assert told["placement"] == "field-symlift/placement.csv"
    assert told["verdict"] == "present"
    assert 0.5 <= told["confidence"] <= 1
    assert told["report"] is None
    assert len((here / "field-symlift" / "placement.csv").read_text().splitlines()) == 21
    out = call(*arguments, "--overwrite", "--no-check")[1]
    assert out.endswith(
        "\n20 columns were fitted to a 4 × 5 grid; nothing has been checked yet\nplacement:"
        " field-symlift/placement.csv\n"
    )


def test_without_the_check_there_is_no_verdict(here, call):
    told = strict(call("recover", "x.npy", *RANDOM, "--no-check", "--json")[1])
    assert (told["verdict"], told["confidence"], told["status"]) == (None, None, "done")
    assert told["score"] is not None
    out = call("recover", "x.npy", *RANDOM, "--no-check", "--overwrite")[1]
    assert "verdict" not in out
    assert "score: " in out


def test_json_is_strict(here, call, monkeypatch):
    monkeypatch.setattr(LatentDomain, "score", lambda self, X: float("nan"))
    assert strict(call("recover", "x.npy", *RANDOM, "--no-check", "--json")[1])["score"] is None
    assert strict((here / "x-symlift" / "run.json").read_text())["score"] is None
    strict(call("doctor", "--json")[1])


def test_warnings_are_one_line_on_stderr(here, call):
    code, out, err = call("recover", "narrow.npy", "--solver", "random", "--no-report")
    assert code == 0
    assert "report" not in out
    assert not (here / "narrow-symlift" / "report.html").exists()
    assert err.startswith("warning: the grid could not be determined")
    assert err.count("\n") == 1


def test_verdict_and_score_are_told(here, call, monkeypatch):
    found = Diagnosis(
        Verdict.UNIDENTIFIABLE,
        0.875,
        next_steps=(
            NextStep("fit a ring instead", {"periodic": True}, "symlift recover DATA --periodic"),
        ),
    )
    monkeypatch.setattr(LatentDomain, "score", lambda self, X: 0.25, raising=False)
    monkeypatch.setattr(LatentDomain, "diagnose", lambda self, X, **_: found, raising=False)
    out = call("recover", "x.npy", *RANDOM)[1]
    assert "score: 0.25 (higher is better, among fits of these rows on this grid)" in out
    # the answer comes last: a sentence, where it is, whether to believe it, what to do next, the
    # report
    assert out.endswith(
        "\nThe 12 columns show signs of a 3 × 4 grid, but these data do not single out one answer;"
        f" confidence 0.88\nverdict: {Verdict.UNIDENTIFIABLE.words} (confidence 0.88)\nnext: fit a"
        " ring instead\nnext: symlift recover x.npy --grid 3x4 --periodic --solver random --seed 0"
        " --out x-symlift-2\nreport: x-symlift/report.html\n"
    )


def test_progress_is_shown_to_people_only_and_verbose_tells_each_step(here, call, monkeypatch):
    err = call("recover", "x.npy", *RANDOM, "--verbose")[2]
    told = [
        found[1] for line in err.splitlines() if (found := re.match(r" +\d+\.\d s  (.*)", line))
    ]
    assert told == [
        "reading",
        "fitting",
        "fitting: drawing",
        "fitting: checking",
        "checking",
        "writing",
        "drawing",
    ]
    # and the numbers of each test
    assert re.search(
        r"^stationarity: -?[\d.e-]+, threshold 0\.0[\d]+, (not )?passed$", err, re.MULTILINE
    )
    screen = io.StringIO()
    monkeypatch.setattr(
        "symlift.cli.console.err", Console(file=screen, force_terminal=True, width=100)
    )
    assert call("recover", "x.npy", *RANDOM, "--overwrite", "--signals")[0] == 0
    assert "\x1b[" in screen.getvalue()
    assert "writing" in screen.getvalue() or "drawing" in screen.getvalue()
    before = screen.getvalue()
    assert call("recover", "x.npy", *RANDOM, "--overwrite", "--quiet")[0] == 0
    assert screen.getvalue() == before


# forty and more ways to get it wrong: the arguments, and what the one line must name
MISUSE = {
    "1 missing file": (["recover", "none.npy"], "none.npy does not exist"),
    "2 a folder": (["recover", "folder"], "folder is a folder"),
    "3 empty file": (["recover", "empty.npy"], "empty.npy is empty"),
    "4 truncated npy": (["recover", "cut.npy"], "cut.npy is truncated"),
    "5 truncated npz": (["recover", "cut.npz"], "cut.npz is truncated"),
    "6 text called npy": (["recover", "text.npy"], "not a .npy file"),
    "7 Python objects": (["recover", "objects.npy"], "never loaded"),
    "8 complex numbers": (["recover", "complex.npy"], "complex numbers"),
    "9 one axis": (["recover", "line.npy"], "rows and columns (n, d) are needed"),
    "10 images not flattened": (
        ["recover", "images.npy"],
        "X.reshape(20, 12), and give --grid 3x4",
    ),
    "11 no rows": (["recover", "norows.npy"], "has no rows"),
    "12 no columns": (["recover", "nocolumns.npy"], "has no columns"),
    "13 one row": (["recover", "onerow.npy"], "one row only"),
    "14 unknown suffix": (["recover", "x.docx"], "unknown suffix '.docx'"),
    "15 several arrays, no key": (["recover", "two.npz"], "choose one with --key, from a, b"),
    "16 unknown key": (["recover", "two.npz", "--key", "c"], "no array 'c'"),
    "17 key for a csv": (["recover", "words.csv", "--key", "a"], "leave out --key"),
    "18 word in a csv": (["recover", "words.csv"], "line 3, column 'b': 'oops'"),
    "19 ragged csv": (["recover", "ragged.csv"], "line 2: 1 entries"),
    "20 csv with a hole": (
        ["recover", "hole.csv"],
        "1 of 2 rows have gaps (NaN), in column 2: --nan drop keeps 1",
    ),
    "21 MATLAB 7.3": (["recover", "new.mat"], "damaged or not a .mat file"),
    "22 parquet without pyarrow": (["recover", "x.parquet"], "symlift[data]"),
    "23 NaN": (
        ["recover", "nan.npy", *RANDOM],
        "nan.npy: 1 of 200 rows have gaps (NaN), in column 3: --nan drop keeps 199",
    ),
    "24 infinity": (["recover", "inf.npy", *RANDOM], "inf.npy: X holds NaN or infinity"),
    "25 too few rows": (["recover", "few.npy", *RANDOM], "few.npy: 10 rows are too few"),
    "26 grid larger than the data": (
        ["recover", "x.npy", "--grid", "5x5", "--mixing", "linear"],
        "grid 5x5 has 25 points",
    ),
    "27 grid not understood": (
        ["recover", "x.npy", "--grid", "15by15"],
        "grid '15by15' is not understood",
    ),
    "28 grid of too many axes": (["recover", "x.npy", "--grid", "2x2x2x2"], "1 to 3 axes"),
    "29 grid of one point": (["recover", "x.npy", "--grid", "1"], "at least 2 points"),
    "30 unknown solver": (["recover", "x.npy", "--solver", "magic"], "solver 'magic' is unknown"),
    "31 seed not a number": (["recover", "x.npy", "--seed", "x"], "--seed"),
    "32 seed below zero": (["recover", "x.npy", "--seed", "-1"], "--seed"),
    "33 no data": (["recover"], "DATA"),
    "34 unknown option": (["recover", "x.npy", "--fast"], "--fast"),
    "35 unknown command": (["recoverr", "x.npy"], "recoverr"),
    "36 too many arguments": (["recover", "x.npy", "x.npy"], "x.npy"),
    "37 run exists": (["recover", "x.npy", "--out", "run"], "give --overwrite"),
    "38 not a run folder": (
        ["recover", "x.npy", "--out", "folder", "--overwrite"],
        "is not a run folder",
    ),
    "39 out is a file": (["recover", "x.npy", "--out", "x.npy"], "x.npy is a file"),
    "40 out below a file": (
        ["recover", "x.npy", *RANDOM, "--out", "x.npy/run"],
        "choose another --out",
    ),
    "41 out is here": (["recover", "x.npy", "--out", "."], "choose another one"),
    "42 overwrite and resume": (
        ["recover", "x.npy", "--overwrite", "--resume"],
        "give one of them",
    ),
    "43 quiet and verbose": (["recover", "x.npy", "--quiet", "--verbose"], "give one of them"),
    "44 resume with other data": (
        ["recover", "few.npy", "--out", "run", "--resume"],
        "its hash differs",
    ),
    "45 resume with another grid": (
        ["recover", "x.npy", "--out", "run", "--resume", "--grid", "12"],
        "leave out --grid",
    ),
    "46 damaged run": (["recover", "x.npy", "--out", "broken", "--resume"], "run.json is damaged"),
    "47 transform without --out": (["transform", "run", "x.npy"], "--out"),
    "48 transform by no run": (
        ["transform", "none", "x.npy", "--out", "y.npy"],
        "none does not exist",
    ),
    "49 transform by a folder": (
        ["transform", "folder", "x.npy", "--out", "y.npy"],
        "folder is not a run folder",
    ),
    "50 transform other columns": (
        ["transform", "run", "wide.npy", "--out", "y.npy"],
        "wide.npy has 13 columns",
    ),
    "51 transform NaN": (
        ["transform", "run", "nan.npy", "--out", "y.npy"],
        "nan.npy: 1 of 200 rows have gaps",
    ),
    "52 transform to a strange file": (
        ["transform", "run", "x.npy", "--out", "y.xlsx"],
        "use one of .npy, .npz, .csv",
    ),
    "53 transform onto a file": (
        ["transform", "run", "x.npy", "--out", "few.npy"],
        "give --overwrite",
    ),
    "54 transform into no folder": (
        ["transform", "run", "x.npy", "--out", "no/y.npy"],
        "make it first",
    ),
    "55 damaged model": (
        ["transform", "cutrun", "x.npy", "--out", "y.npy"],
        "save the model again",
    ),
    "56 transform by an unfinished run": (
        ["transform", "killed", "x.npy", "--out", "y.npy"],
        "--resume",
    ),
    "57 report of no run": (["report", "none"], "none does not exist"),
    "58 report of an unfinished run": (["report", "killed"], "is not finished"),
    "59 a name with a line break": (["recover", "a\nb.npy"], "does not exist"),
    "60 constant data": (["recover", "constant.npy", *RANDOM], "of which 0 vary"),
    "61 unknown mixing": (
        ["recover", "x.npy", *RANDOM, "--mixing", "bent"],
        "mixing 'bent' is unknown: use one of auto, shuffled",
    ),
}


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """A folder with everything that can be wrong."""
    here = tmp_path_factory.mktemp("wrong")
    rng = np.random.default_rng(0)
    X = rng.laplace(size=(200, 12))
    nan, inf = X.copy(), X.copy()
    nan[3, 2], inf[5, 1] = np.nan, np.inf
    arrays = {
        "x": X,
        "complex": X * 1j,
        "line": X[0],
        "images": X[:20].reshape(20, 3, 4),
        "norows": X[:0],
        "nocolumns": X[:, :0],
        "onerow": X[:1],
        "nan": nan,
        "inf": inf,
        "few": X[:10],
        "wide": np.ones((20, 13)),
        "constant": np.ones((200, 12)),
    }
    for name, array in arrays.items():
        np.save(here / f"{name}.npy", array)
    np.save(here / "objects.npy", np.array([[object()]]), allow_pickle=True)
    np.savez(here / "two.npz", a=X, b=X)
    (here / "cut.npz").write_bytes((here / "two.npz").read_bytes()[:999])
    (here / "cut.npy").write_bytes((here / "x.npy").read_bytes()[:999])
    texts = {
        "text.npy": "1,2",
        "x.docx": "1",
        "words.csv": "a,b\n1,2\n3,oops\n",
        "ragged.csv": "1,2\n3\n",
        "hole.csv": "1,2\n3,\n",
        "new.mat": "MATLAB 7.3 MAT-file, by x",
        "x.parquet": "PAR1",
        "empty.npy": "",
    }
    for name, text in texts.items():
        (here / name).write_text(text)
    (here / "folder").mkdir()
    (here / "folder" / "thesis.tex").touch()
    from symlift.runs.recover import recover

    for name in ("run", "broken", "killed", "cutrun"):
        recover(here / "x.npy", here / name, grid="3x4", solver="random")
    (here / "broken" / "run.json").write_text("{")
    record = json.loads((here / "killed" / "run.json").read_text())
    (here / "killed" / "run.json").write_text(json.dumps(record | {"status": "running"}))
    (here / "cutrun" / "model.safetensors").write_bytes(b"")
    return here


def everything(folder):
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None
        for p in folder.rglob("*")
    }


@pytest.mark.parametrize("case", MISUSE)
def test_misuse_is_one_line_exit_code_two_and_leaves_nothing(case, wrong, call, monkeypatch):
    arguments, words = MISUSE[case]
    monkeypatch.chdir(wrong)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    before = everything(wrong)
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert words in err
    assert ": " in err[7:] or " must " in err  # what is wrong, and what to do
    assert everything(wrong) == before


def test_a_failure_is_exit_code_one(here, call, monkeypatch):
    def failing(X, grid, rng, *_, **__):
        raise ZeroDivisionError("by zero")

    get_solver("random")
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["symlift.solvers.random"], "solve", failing)
        code, out, err = call("recover", "x.npy", *RANDOM)
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert "x-symlift failed (ZeroDivisionError: by zero)" in err
        code, out, err = call("recover", "x.npy", "--resume", "--verbose")
        assert code == 1
        assert "Traceback" in err
    assert call("recover", "x.npy", "--resume")[0] == 0


def test_a_report_that_fails_does_not_spoil_the_run(here, call, monkeypatch):
    def broken(folder):
        raise InputError("run is odd: do it again") if raising == "input" else KeyError("x")

    monkeypatch.setattr(StandIn, "write_report", staticmethod(broken))
    raising = "else"
    code, _, err = call("recover", "x.npy", *RANDOM)
    assert (code, err.count("\n")) == (1, 1)
    assert "`symlift report x-symlift`" in err
    assert json.loads((here / "x-symlift" / "run.json").read_text())["status"] == "done"
    raising = "input"
    assert call("report", "x-symlift")[0] == 2


@pytest.mark.parametrize(
    ("raised", "code", "words"),
    [
        (OSError(28, "No space left on device", "y.npy"), 1, "error: y.npy: No space left"),
        (BrokenPipeError(32, "Broken pipe"), 1, ""),
        (KeyboardInterrupt(), 130, "error: interrupted"),
    ],
)
def test_the_system_says_no(here, call, monkeypatch, raised, code, words):
    def stop(*_, **__):
        raise raised

    monkeypatch.setattr("symlift.runs.signals.transform", stop)
    got, out, err = call("transform", "run", "x.npy", "--out", "y.npy")
    assert (got, out) == (code, "")
    assert words in err
    assert err.count("\n") == bool(words)


def test_no_arguments_show_the_help(call):
    code, out, err = call()
    assert code == 2
    assert "recover" in out + err


def test_interrupted_by_control_c_a_run_can_go_on(here):
    code = (
        # a shell that starts things in the background has them ignore Ctrl-C
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\nimport sys, time,"
        " symlift.cli as cli, symlift.solvers.random as r\ndef slow(*_, **__):\n    print('go',"
        " flush=True)\n    time.sleep(300)\nr.solve = slow\nsys.argv = ['symlift', 'recover',"
        " 'x.npy', '--grid', '12', '--solver', 'random']\ncli.main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "go\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=200)
    assert (process.returncode, out) == (130, "")
    assert err == "error: interrupted: continue with the same command and --resume\n"
    assert json.loads((here / "x-symlift" / "run.json").read_text())["status"] == "running"


def test_colour_is_for_terminals_that_want_it(here, call, monkeypatch):
    for settings, coloured in (
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ):
        for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
            monkeypatch.delenv(name, raising=False)
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.setattr("symlift.cli.console.err", Console(stderr=True))
        code, out, err = call("recover", "none.npy")
        assert (code, out) == (2, "")
        assert ("\x1b[31m" in err) == coloured


def test_completion_is_offered():
    assert "--install-completion" in runner.invoke(app, ["--help"]).output


def test_interrupted_while_it_is_imported_is_one_line(here):
    code = (
        "import sys\nclass Stop:\n    def find_spec(self, name, *_):\n        if name =="
        " 'symlift.cli.console':\n            raise KeyboardInterrupt\nsys.meta_path.insert(0,"
        " Stop())\nfrom symlift.cli import main\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted\n")


def test_what_an_estimator_saved_can_be_reported(here, call):
    LatentDomain((3, 4), solver="random", random_state=0).fit(np.load("x.npy")).save("saved")
    assert call("report", "saved") == (0, "report: saved/report.html\n", "")
