"""README.md: short, its two blocks run word for word, its links lead somewhere."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from symlift.cli import app
from symlift.datasets import gsn
from test_docs import blocks, slug

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the demonstration has left its rows (smaller ones, to be quick)."""
    place = tmp_path_factory.mktemp("readme")
    (place / "demo").mkdir()
    X = gsn(1500, (6, 7), transform="permutation", random_state=0).X
    np.save(place / "demo" / "observed.npy", X)
    return place


def test_it_fits_two_screens():
    # rendered at 1280 pixels in the manner of GitHub, this many lines are 1,700 pixels
    assert len(TEXT.splitlines()) <= 75
    (python,) = blocks(README, "python")
    commands, shell = blocks(README, "sh")
    assert [line.split()[1] for line in commands.splitlines()] == ["demo", "test"]
    assert len([line for line in python.splitlines() if line]) == 8
    assert len(shell.splitlines()) == 3
    table = re.findall(r"^\|.*\|$", TEXT, re.MULTILINE)
    assert len(table) == 2 + 6
    assert len(re.findall(r"^- ", TEXT, re.MULTILINE)) == 6


def test_its_python_runs_word_for_word(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    (code,) = blocks(README, "python")
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)  # noqa: S102 - that is the test
    assert "present and stable" in capsys.readouterr().out
    assert names["Y"].shape == (1500, *names["est"].grid_.shape)
    assert (folder / "page.html").stat().st_size > 10_000


def test_its_commands_run_word_for_word(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["symlift"])
    for line in blocks(README, "sh")[1].splitlines():
        command, *arguments = shlex.split(line, comments=True)
        assert command == "symlift"
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
    assert (folder / "run" / "report.html").is_file()
    assert (folder / "run" / "placement.csv").is_file()
    assert np.load(folder / "signals.npy").shape == (1500, 42)


def test_options_of_the_table_exist():
    helped = CliRunner().invoke(app, ["recover", "--help"], env={"COLUMNS": "200"}).output
    options = set(re.findall(r"--[a-z-]+", "".join(re.findall(r"^\|.*\|$", TEXT, re.MULTILINE))))
    assert options - {"--", "---"} <= set(re.findall(r"--[a-z-]+", helped))


def test_its_links_lead_somewhere():
    targets = re.findall(r"\]\(([^)\s]+)\)", TEXT)
    assert len(targets) > 10
    for target in targets:
        file, _, anchor = target.partition("#")
        assert (ROOT / file).is_file(), target
        if anchor:
            headings = re.findall(r"^#+ (.+)$", (ROOT / file).read_text("utf-8"), re.MULTILINE)
            assert anchor in map(slug, headings), target
