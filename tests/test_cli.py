from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from symlift import __version__
from symlift.cli import app, main

runner = CliRunner()


def test_version_and_help_name_an_example_for_every_command():
    assert runner.invoke(app, ["--version"]).output.strip() == f"symlift {__version__}"
    for command in (["demo"], ["doctor"], ["experiment", "list"], ["experiment", "run"]):
        result = runner.invoke(app, [*command, "--help"])
        assert result.exit_code == 0
        assert "Example: symlift" in result.output


def test_experiment_list_and_run_as_json():
    listed = json.loads(runner.invoke(app, ["experiment", "list", "--json"]).stdout)
    assert listed["ising33-linear"]["paper"]["r"] == 0.960
    result = runner.invoke(
        app, ["experiment", "run", "gsn15-fft", "--solver", "random", "-n", "500", "--seed", "2", "--json"]
    )
    assert result.exit_code == 0
    assert result.stdout.count("\n") == 1
    measured = json.loads(result.stdout)
    assert {"experiment", "solver", "seed", "r", "r_per_sample", "r_paper", "similarity", "similarity_exact", "similarity_half",
            "circular_correlation", "seconds", "peak_rss_mb", "n", "d", "grid"} <= set(measured)  # fmt: skip
    assert (measured["n"], measured["d"], measured["grid"], measured["seed"]) == (500, 15, [15], 2)
    assert 0 <= measured["r"] < 0.9  # a random map recovers nothing


def test_tables_for_people():
    assert "mnist27-shuffled" in runner.invoke(app, ["experiment", "list"]).output
    shown = runner.invoke(app, ["experiment", "run", "gsn15-discrete", "--solver", "random", "-n", "400"]).output
    assert "0.9933" in shown
    assert "torch" in runner.invoke(app, ["doctor"]).output
    assert json.loads(runner.invoke(app, ["doctor", "--json"]).stdout)["symlift"] == __version__


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["experiment", "run", "nothing"], "nothing"),
        (["experiment", "run", "gsn15-fft", "--solver", "magic", "-n", "300"], "magic"),
        (["experiment", "run", "gsn15-fft", "-n", "9"], "too few"),
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
    code = "import sys, symlift; print([m for m in ('matplotlib', 'umap', 'typer', 'sklearn', 'torch') if m in sys.modules])"
    env = {**os.environ, "PYTHONWARNINGS": "ignore"}
    run = lambda *a: subprocess.run([sys.executable, *a], capture_output=True, text=True, env=env, cwd=tmp_path)  # noqa: E731
    assert run("-c", code).stdout.strip() == "[]"
    done = run("-m", "symlift", "experiment", "run", "nothing")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
