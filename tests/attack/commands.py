"""What tables of attacks share: the command line in this process, and a folder that must be as it
was.
"""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path

import pytest
import typer

from symlift.cli import app, console, main

# typer builds the whole tree of commands anew for each call, which takes four times as long as
# refusing what is wrong
_COMMAND = typer.main.get_command(app)


def run_command(*arguments: object) -> tuple[int, str, str]:
    """Run the command line as a user does, in this process: (exit code, stdout, stderr)."""
    out, err = io.StringIO(), io.StringIO()
    before = sys.argv
    sys.argv = ["symlift", *map(str, arguments)]
    # rich answers with the stream of the moment where none was set: to put that back would bind the
    # console to it for good
    shown, module = console.err._file, sys.modules["symlift.cli.app"]
    console.err.file = err
    module.app = _COMMAND
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as caught,
        ):
            main()
    finally:
        sys.argv = before
        console.err._file = shown
        module.app = app
    code = caught.value.code
    return code if isinstance(code, int) else 0, out.getvalue(), err.getvalue()


def everything(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder, hidden ones as well, with its bytes."""
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None
        for p in sorted(folder.rglob("*"))
    }


def refused(folder: Path, words: str, *arguments: object, code: int = 2) -> str:
    """Run a command that must be refused: its exit code, one line that holds ``words``, and nothing
    changed in ``folder``.
    """
    before = everything(folder)
    status, out, err = run_command(*arguments)
    assert (status, out) == (code, ""), err
    assert err.startswith("error: "), err
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    assert len(err) < 1000
    assert words in err, err
    assert everything(folder) == before
    return err
