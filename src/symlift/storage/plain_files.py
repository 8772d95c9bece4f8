"""Files and folders that are what their names say: links are never followed, nor are pipes opened.

A run folder may lie where others can write.  A link planted there under a name that symlift uses
would make a command read, overwrite or empty something elsewhere, with the rights of whoever runs
it.  So what is opened by name is opened here.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from symlift.errors import InputError

__all__ = [
    "NotPlainError",
    "check_plain",
    "is_plain_file",
    "is_plain_folder",
    "open_plain",
    "open_regular",
    "refuse_links",
]

# without waiting: the open of a pipe would wait for its other end
_CAREFULLY = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class NotPlainError(InputError):
    """A link, a pipe or another thing that is not a regular file, where a file is expected."""


def _mode(path: Path) -> int:
    """Return the kind of what has this name, without following it; 0 where there is nothing."""
    try:
        return path.lstat().st_mode
    except (OSError, ValueError):
        return 0


def is_plain_file(path: Path) -> bool:
    """Whether ``path`` is a regular file, and not a link to one."""
    return stat.S_ISREG(_mode(path))


def is_plain_folder(path: Path) -> bool:
    """Whether ``path`` is a folder, and not a link to one."""
    return stat.S_ISDIR(_mode(path))


def _is_link(path: Path) -> bool:
    return stat.S_ISLNK(_mode(path))


def _linked(path: Path) -> NotPlainError:
    return NotPlainError(
        f"{path} is a link, and links in a run folder are not followed: put the file or folder"
        " itself there, or remove the link"
    )


def open_plain(path: Path, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Open a regular file and return its descriptor; NotPlainError for a link or anything else."""
    if _is_link(path):  # also where the system cannot refuse it by itself
        raise _linked(path)
    try:
        return open_regular(path, flags | getattr(os, "O_NOFOLLOW", 0), mode)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):  # made a link in the meantime
            raise _linked(path) from None
        raise


def open_regular(path: Path, flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Open a regular file, also through a link: one that the user has named, not found."""
    try:
        descriptor = os.open(path, flags | _CAREFULLY, mode)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a pipe or a socket without another end
            raise _odd(path) from None
        raise
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise _odd(path)


def _odd(path: Path) -> NotPlainError:
    return NotPlainError(f"{path} is not a regular file: remove it")


def check_plain(path: Path) -> None:
    """Refuse what `open_plain` refuses, for libraries that open files themselves."""
    os.close(open_plain(path))


def refuse_links(folder: Path, names: Iterable[str]) -> None:
    """Refuse links under any of ``names`` in ``folder``, and anywhere in the folders among them."""
    for name in names:
        path = folder / name
        if _is_link(path):
            raise _linked(path)
        # os.walk names links to folders among the folders, and does not enter them
        for place, folders, files in os.walk(path, followlinks=False):
            for entry in (*folders, *files):
                if _is_link(Path(place, entry)):
                    raise _linked(Path(place, entry))
