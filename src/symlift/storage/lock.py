"""Locks: a file that names its holder; the system releases the lock when the holder ends."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
import warnings
from pathlib import Path
from typing import IO, Self

from symlift.errors import FolderWarning, InputError
from symlift.storage.owner import Lockable, Owner, try_lock
from symlift.storage.plain_files import NotPlainError, open_plain

__all__ = ["InUseError", "Lock", "sweep_locks"]

_LOOK_AGAIN = 0.05  # seconds


class InUseError(InputError):
    """Another process holds the lock."""


class Lock:
    """``with Lock(folder / ".lock", "the run in …")``: held by one process, refused to others.

    A process that does not get the lock raises InUseError.  The file holds process id and host for
    the message.  The lock itself belongs to the system and ends with its process, so a file left by
    a killed process is no obstacle.  ``patience`` is the number of seconds to wait for a holder.

    On a file system without locks the file alone has to do: it is respected unless the process that
    it names is known to be gone, and a warning says so.
    """

    def __init__(self, path: str | os.PathLike[str], what: str, patience: float = 0.0) -> None:
        self.path, self.what, self.patience = Path(path), what, patience
        self.file: IO[str] | None = None

    def __enter__(self) -> Self:
        end = time.monotonic() + self.patience
        while self.file is None:
            file = self._open()
            try:
                self._take(file)
            except InUseError:
                if time.monotonic() >= end:
                    raise
                time.sleep(_LOOK_AGAIN)
            finally:
                if self.file is None:
                    file.close()
        return self

    def _take(self, file: IO[str]) -> None:
        """Lock an open file and write our name into it; leaves ``self.file`` None if it is gone."""
        answer = try_lock(file.fileno())
        if answer is Lockable.BUSY:
            raise InUseError(
                f"{self.what} is in use by {_holder(file)}: wait for it, or stop it first"
            )
        if not self._is_still_there(file):
            return  # its last holder removed it between our opening and our locking it
        self._refuse_foreign(file)
        if answer is Lockable.UNKNOWN:
            self._trust(file)
        file.seek(0)
        file.truncate()
        named = {"pid": os.getpid(), "host": socket.gethostname(), "owner": str(Owner.this())}
        file.write(json.dumps(named))
        file.flush()
        self.file = file

    def _trust(self, file: IO[str]) -> None:
        """Without locks of the system: respect a name in the file, unless its process is gone."""
        owner = Owner.parse(str(_content(file).get("owner", "")))
        if owner is not None and owner.is_alive() is not False:
            raise InUseError(
                f"{self.what} is in use by {_holder(file)}, as {self.path} says, and its file"
                " system has no locks to check that: wait for it, or remove that file if it is gone"
            )
        warnings.warn(
            f"the file system of {self.path.parent} has no locks: see to it that one process at a"
            " time uses it",
            FolderWarning,
            stacklevel=3,
        )

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
            raise NotPlainError(
                f"{self.path} was left by another user (number {status.st_uid}): have it removed"
            )

    @property
    def is_held(self) -> bool:
        """Whether the lock is ours, and its file still there."""
        return self.file is not None and self._is_still_there(self.file)

    def _is_still_there(self, file: IO[str]) -> bool:
        try:
            return os.path.samestat(os.fstat(file.fileno()), self.path.lstat())
        except FileNotFoundError:
            return False

    def __exit__(self, *_: object) -> None:
        if self.file is not None:
            with contextlib.suppress(OSError):
                if self._is_still_there(self.file):  # not the lock of somebody else by now
                    self.path.unlink(missing_ok=True)
            self.file.close()
            self.file = None


def sweep_locks(folder: Path, pattern: str = ".*.lock") -> None:
    """Remove lock files in ``folder`` that nobody holds: what killed processes have left."""
    with contextlib.suppress(OSError):
        for path in folder.glob(pattern):
            with contextlib.suppress(OSError, InputError), Lock(path, path.name):
                pass


def _content(file: IO[str]) -> dict[str, object]:
    try:
        file.seek(0)
        content = json.loads(file.read(1000))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _holder(file: IO[str]) -> str:
    named = _content(file)
    try:
        return f"process {int(str(named['pid']))} on {str(named['host'])[:80]}"
    except (KeyError, ValueError):
        return "another process"
