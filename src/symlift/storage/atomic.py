"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import socket
import tempfile
from pathlib import Path

__all__ = ["sha256_of", "sweep", "write_atomically"]


class write_atomically:  # noqa: N801 - used like a function
    """``with write_atomically(path) as temporary``: ``path`` appears whole when the block succeeds, or not at all.

    The temporary file is named after ``path`` and this process.  What killed processes have left of the same file is removed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __enter__(self) -> Path:
        sweep(self.path)
        handle, name = tempfile.mkstemp(prefix=f".{self.path.name}.{_host()}-{os.getpid()}-", dir=self.path.parent)
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
    """Six hexadecimal digits of the host's name: process ids of another machine say nothing here."""
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:6]


def sweep(path: Path) -> None:
    """Remove temporary files of ``path`` whose process is gone; those of living ones, or of other machines, stay."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.{_host()}-(\d+)-.*")
    with contextlib.suppress(OSError):
        for entry in path.parent.iterdir():
            found = pattern.fullmatch(entry.name)
            if found is not None and not _is_alive(int(found[1])):
                entry.unlink(missing_ok=True)


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
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
