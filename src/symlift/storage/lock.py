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
from symlift.storage.plain_files import NotPlainError, open_plain

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
            file = self._open()
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
        self._refuse_foreign(file)
        file.seek(0)
        file.truncate()
        file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        file.flush()
        self.file = file
        return self

    def _open(self) -> IO[str]:
        """Open the file of the lock: never through a link, and never one with another name."""
        descriptor = open_plain(self.path, os.O_RDWR | os.O_CREAT)
        if os.fstat(descriptor).st_nlink > 1:
            os.close(descriptor)
            raise NotPlainError(
                f"{self.path} is a hard link, so that writing it would change another file: remove"
                " it"
            )
        return os.fdopen(descriptor, "r+", encoding="utf-8")

    def _refuse_foreign(self, file: IO[str]) -> None:
        """Refuse a file with content that another user left: it may not be a lock at all.

        Where the system assigns other owners (squashed roots, mounts with ``uid=``), a new file
        looks foreign as well, but is empty.
        """
        status = os.fstat(file.fileno())
        if status.st_size and hasattr(os, "geteuid") and status.st_uid != os.geteuid():
            file.close()
            raise NotPlainError(
                f"{self.path} was left by another user (number {status.st_uid}): have it removed"
            )

    def _is_still_there(self, file: IO[str]) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), self.path.lstat())
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
            with contextlib.suppress(OSError, InputError), Lock(path, path.name):
                pass


def _holder(file: IO[str]) -> str:
    try:
        file.seek(0)
        named = json.loads(file.read(1000))
        return f"process {int(named['pid'])} on {str(named['host'])[:80]}"
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return "another process"
