"""Commands of other packages: found by their entry points, imported only when they are
asked for.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest
import typer
from typer.testing import CliRunner

from symlift.cli import app, extensions

runner = CliRunner()

other_app = typer.Typer(help="Somebody else's.")


@other_app.command("hello")
def _hello() -> None:
    typer.echo("hello from elsewhere")


@other_app.command("bye")
def _bye() -> None:
    """Nothing."""


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, extensions.GROUP)


def test_the_papers_commands_are_declared_by_the_source_tree_and_load():
    declared = extensions.declared_commands()
    assert declared["experiment"].value == "symlift_paper.commands:experiment_app"
    assert isinstance(declared["experiment"].load(), typer.Typer)


def test_a_source_tree_declares_commands_that_old_metadata_do_not_know(monkeypatch):
    monkeypatch.setattr(extensions, "entry_points", lambda group: [])
    assert set(extensions.declared_commands()) == {"experiment"}


@pytest.mark.parametrize(
    "text",
    [
        None,
        "[project",
        "[project]\nname = 'another'\n[project.entry-points.'symlift.commands']\na = 'b:c'",
    ],
    ids=["none", "not TOML", "another project's"],
)
def test_other_files_declare_nothing(monkeypatch, tmp_path, text):
    package = tmp_path / "src" / "symlift"
    package.mkdir(parents=True)
    if text is not None:
        (tmp_path / "pyproject.toml").write_text(text)
    monkeypatch.setattr(extensions.symlift, "__file__", str(package / "__init__.py"))
    monkeypatch.setattr(extensions, "entry_points", lambda group: [entry("x", "a:b")])
    assert set(extensions.declared_commands()) == {"x"}


def test_an_installed_package_adds_a_command(monkeypatch):
    here = entry("other", f"{__name__}:other_app")
    monkeypatch.setattr(extensions, "entry_points", lambda group: [here])
    assert runner.invoke(app, ["other", "hello"]).stdout == "hello from elsewhere\n"
    listed = runner.invoke(app, ["--help"]).stdout
    assert "Somebody else's." in listed
    assert "The paper's experiments." in listed


def test_a_broken_package_is_a_warning_and_hides_nothing(monkeypatch):
    broken = [entry("other", "no_such_package:app"), entry("demo", f"{__name__}:other_app")]
    monkeypatch.setattr(extensions, "entry_points", lambda group: broken)
    shown = runner.invoke(app, ["--help"])
    assert shown.exit_code == 0
    assert "no command other from no_such_package:app" in shown.stderr
    assert "Somebody else's." not in shown.stdout  # ours come first
    assert runner.invoke(app, ["other"]).exit_code == 2


def test_nothing_of_the_paper_is_imported_for_other_commands():
    code = (
        "import sys; from symlift.cli import app; app(['doctor', '--json'], standalone_mode=False);"
        " sys.exit('symlift_paper' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_papers_commands_are_listed_without_what_they_need():
    code = (
        "import sys; sys.modules['yaml'] = None; from symlift.cli import app;"
        "app(['experiment', '--help'], standalone_mode=False)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "figure" in done.stdout
