"""Who makes a file, and whether that process is still there."""

from __future__ import annotations

import contextlib
import enum
import errno
import functools
import hashlib
import os
import re
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

fcntl: Any
try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no such locks
    fcntl = None

__all__ = ["OWNER", "Lockable", "Owner", "locking", "try_lock"]


#: how `Owner` is written, as a regular expression
OWNER = r"[0-9a-f]{12}-\d{1,10}-\d{1,20}"


class Lockable(enum.Enum):
    """What came of asking for a lock."""

    HELD = "held"  # by us, from now on
    BUSY = "busy"  # another one has it
    UNKNOWN = "unknown"  # the file system has no locks


def try_lock(descriptor: int) -> Lockable:
    """Ask for the lock of an open file or folder; it ends when the file is closed."""
    if fcntl is None:  # pragma: no cover - Windows
        return Lockable.UNKNOWN
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        busy = error.errno in (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES)
        return Lockable.BUSY if busy else Lockable.UNKNOWN
    return Lockable.HELD


@contextlib.contextmanager
def locking(path: Path) -> Iterator[Lockable]:
    """Ask for the lock of what has this name, for the length of a block; links are not followed."""
    careful = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = None
    # to lock a file for oneself, some network file systems want it open for writing
    with contextlib.suppress(OSError):
        descriptor = os.open(path, careful | (os.O_RDONLY if path.is_dir() else os.O_RDWR))
    try:
        yield Lockable.UNKNOWN if descriptor is None else try_lock(descriptor)
    finally:
        if descriptor is not None:
            os.close(descriptor)


class Owner(NamedTuple):
    """A process: the boot of its system, its process namespace, its number there and its start.

    Numbers are reused, and mean something in one namespace of one boot only.

    >>> Owner.parse(str(Owner.this())) == Owner.this()
    True
    >>> Owner.this().is_alive()
    True
    """

    boot: str
    namespace: str
    pid: int
    start: int  # in ticks since the boot; 0 if unknown

    def __str__(self) -> str:
        return f"{self.boot}{self.namespace}-{self.pid}-{self.start}"

    @classmethod
    def this(cls) -> Owner:
        """Return this process."""
        pid = os.getpid()
        return cls(_boot(), _namespace(), pid, _started(pid))

    @classmethod
    def parse(cls, text: str) -> Owner | None:
        """Return the process that ``str`` of it names; None for any other text."""
        if re.fullmatch(OWNER, text) is None:
            return None
        place, pid, start = text.split("-")
        return cls(place[:6], place[6:], int(pid), int(start))

    @property
    def is_of_this_boot(self) -> bool:
        """Whether it is of the system that runs now: only there locks and numbers say anything."""
        return self.boot == _boot()

    def is_alive(self) -> bool | None:
        """Whether the process is there; None if that cannot be known from here."""
        if not self.is_of_this_boot or self.namespace != _namespace() or os.name == "nt":
            return None
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except (PermissionError, OverflowError):
            pass
        return self.start == 0 or _started(self.pid) in (0, self.start)


def _digits(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:6]


@functools.cache
def _boot() -> str:
    try:
        return _digits(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
    except OSError:  # pragma: no cover - not Linux, where containers have a system of their own
        return _digits(f"{socket.gethostname()} {uuid.getnode()}")


def _namespace() -> str:
    try:
        return _digits(str(Path("/proc/self/ns/pid").readlink()))
    except OSError:  # pragma: no cover - not Linux
        return "0" * 6


def _started(pid: int) -> int:
    """Return the start of a process in ticks since boot; 0 if the system does not report it."""
    try:
        if str(Path("/proc/self").readlink()) != str(os.getpid()):
            return 0  # the numbers in /proc are those of another namespace
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        return int(text.rsplit(")", 1)[1].split()[19])
    except (OSError, ValueError, IndexError):
        return 0
