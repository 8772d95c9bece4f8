"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import socket
import tempfile
from pathlib import Path

from symlift.storage.plain_files import open_plain

__all__ = ["is_stale", "sha256_of", "sweep", "write_atomically"]

# .NAME.HOST-PID-START-RANDOM
_TEMPORARY = re.compile(r"\..+\.([0-9a-f]{6})-(\d{1,10})-(\d{1,20})-[^.]{8}")


class write_atomically:  # noqa: N801 - used like a function
    """``with write_atomically(path) as temporary``: ``path`` appears whole, or not at all.

    The temporary file is named after ``path`` and this process, and renamed when the block
    succeeds.  Temporary files that killed processes left in the same folder are removed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __enter__(self) -> Path:
        sweep(self.path.parent)
        pid = os.getpid()
        mark = f".{self.path.name[:120]}.{_host()}-{pid}-{_started(pid)}-"
        handle, name = tempfile.mkstemp(prefix=mark, dir=self.path.parent)
        os.close(handle)
        self.temporary = Path(name)
        return self.temporary

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.temporary.unlink(missing_ok=True)
            return
        # mkstemp makes private files; a result should have the mode that any new file gets
        umask = os.umask(0)
        os.umask(umask)
        self.temporary.chmod(0o666 & ~umask)
        with self.temporary.open("rb") as file:
            os.fsync(file.fileno())
        self.temporary.replace(self.path)


def _host() -> str:
    """Return six hexadecimal digits of the host's name; a process id is valid on one host only."""
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:6]


def _started(pid: int) -> int:
    """Return the start of a process in ticks since boot; 0 if the system does not report it.

    Process ids are reused; a pair of id and start time is not.
    """
    try:
        return int(
            Path(f"/proc/{pid}/stat").read_text(errors="replace").rsplit(")", 1)[1].split()[19]
        )
    except (OSError, ValueError, IndexError):
        return 0


def is_stale(name: str) -> bool | None:
    """Whether a file name is that of a temporary file whose process is gone.

    None if the name is not that of a temporary file of this machine.
    """
    parts = _TEMPORARY.fullmatch(name)
    if parts is None or parts[1] != _host():
        return None
    pid, began = int(parts[2]), int(parts[3])
    return not _is_alive(pid) or _started(pid) not in (0, began)


def sweep(folder: Path) -> None:
    """Remove temporary files of this machine in ``folder`` whose process is gone."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.name.startswith(".") and is_stale(entry.name):
                with contextlib.suppress(OSError):
                    Path(entry.path).unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    if os.name == "nt":  # pragma: no cover - there, signal 0 would end the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with os.fdopen(open_plain(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
