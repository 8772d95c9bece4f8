"""Locks: a file that names its holder; the system releases the lock when the holder ends."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from pathlib import Path
from typing import IO, Self

from symlift.errors import InputError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no such locks; there, files alone must do
    fcntl = None  # type: ignore[assignment]

__all__ = ["InUseError", "Lock", "sweep_locks"]

_LOOK_AGAIN = 0.05  # seconds


class InUseError(InputError):
    """Another process holds the lock."""


class Lock:
    """``with Lock(folder / ".lock", "the run in …")``: held by one process, refused to others.

    A process that does not get the lock raises InUseError.  The file holds process id and host for
    the message.  The lock itself belongs to the system and ends with its process, so a file left by
    a killed process is no obstacle.  ``patience`` is the number of seconds to wait for a holder.
    """

    def __init__(self, path: str | os.PathLike[str], what: str, patience: float = 0.0) -> None:
        self.path, self.what, self.patience = Path(path), what, patience
        self.file: IO[str] | None = None

    def __enter__(self) -> Self:
        end = time.monotonic() + self.patience
        while True:
            file = self.path.open("a+", encoding="utf-8")
            try:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                holder = _holder(file)
                file.close()
                if time.monotonic() >= end:
                    raise InUseError(
                        f"{self.what} is in use by {holder}: wait for it, or stop it first"
                    ) from None
                time.sleep(_LOOK_AGAIN)
                continue
            if self._is_still_there(file):
                break
            file.close()  # its last holder removed it between our opening and our locking it
        file.seek(0)
        file.truncate()
        file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        file.flush()
        self.file = file
        return self

    def _is_still_there(self, file: IO[str]) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), self.path.stat())
        except FileNotFoundError:
            return False

    def __exit__(self, *_: object) -> None:
        if self.file is not None:
            with contextlib.suppress(OSError):
                self.path.unlink(missing_ok=True)
            self.file.close()
            self.file = None


def sweep_locks(folder: Path, pattern: str = ".*.lock") -> None:
    """Remove lock files in ``folder`` that nobody holds: what killed processes have left."""
    with contextlib.suppress(OSError):
        for path in folder.glob(pattern):
            with contextlib.suppress(OSError, InUseError), Lock(path, path.name):
                pass


def _holder(file: IO[str]) -> str:
    try:
        file.seek(0)
        named = json.loads(file.read(1000))
        return f"process {int(named['pid'])} on {str(named['host'])[:80]}"
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return "another process"
