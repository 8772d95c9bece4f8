"""Kill a piece of work before its k-th write: no clock, no luck.

Python tells an audit hook of every file that is opened, renamed or removed. A forked child counts
those that change something below a folder, and leaves without a word (``os._exit``) before the k-th
of them, as ``kill -9`` would have it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

KILLED, DONE, FAILED = 77, 0, 1

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.chmod",
    "os.truncate",
    "os.link",
    "os.symlink",
}


def _changed_path(event: str, arguments: tuple) -> str | None:
    """What an audit event is about to change, if it is a file."""
    if event in _CHANGES or (
        event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES
    ):
        path = arguments[0]
        if isinstance(path, str | bytes | os.PathLike):
            return str(Path(os.fsdecode(path)).absolute())
    return None


def run_killed(work: Callable[[], object], folder: Path, before: int) -> int:
    """Run ``work`` in a child that dies before its ``before``-th write below ``folder``: KILLED,
    DONE or FAILED.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = FAILED
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        below, count = str(folder.absolute()) + os.sep, 0

        def hook(event: str, arguments: tuple) -> None:
            nonlocal count
            path = _changed_path(event, arguments)
            # what rmtree removes, it names without its folder
            if path is not None and (path.startswith(below) or event in ("os.rmdir", "os.remove")):
                count += 1
                if count == before:
                    os._exit(KILLED)

        sys.addaudithook(hook)
        work()
        code = DONE
    finally:
        os._exit(code)


def temporaries(folder: Path) -> list[str]:
    """Hidden files and folders anywhere below ``folder``."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.name.startswith("."))
