"""Files and folders that appear whole or not at all.

What is not yet whole has a temporary name that says who makes it, and its maker holds a lock on it.
It is removed by others only where its maker is provably gone: the system has released the lock, or,
on file systems without locks, the process has ended, of the same boot and process namespace.  A
process id and a host's name prove nothing: two containers may share both.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from symlift.errors import InputError, SymliftError
from symlift.storage.owner import OWNER, Lockable, Owner, locking, try_lock
from symlift.storage.plain_files import is_plain_folder, open_plain

__all__ = [
    "is_mark",
    "remove_left",
    "replace_files",
    "sha256_of",
    "sweep",
    "write_atomically",
    "write_error",
    "write_folder_atomically",
]

# .NAME.OWNER-RANDOM; a name is cut, since file systems allow 255 bytes
_TEMPORARY = re.compile(rf"\..+\.({OWNER})-[^.]{{8}}")
_LONGEST = 120
_NEW, _OLD = "new", "old"
# earlier files that wait to be put back; new ones, once all earlier ones are aside
_ASIDE, _READY = "aside", "ready"
# reasons for which the user can do nothing about the input
_FAILURES = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.ENOMEM, errno.ESTALE)


def write_error(path: Path, error: OSError, remedy: str) -> SymliftError:
    """Return the error for what cannot be written: bad input (exit code 2), or a failure (1)."""
    reason = error.strerror or type(error).__name__
    if error.errno in _FAILURES:
        return SymliftError(f"{path} cannot be written ({reason}): make room or check the disk")
    return InputError(f"{path} cannot be written ({reason}): {remedy}")


class _Temporary:
    """Reserve a temporary name next to ``path``, with a lock on it, and release it at the end."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def _reserve(self, folder: bool) -> None:
        sweep(self.path.parent)
        mark = f".{self.path.name[:_LONGEST]}.{Owner.this()}-"
        while True:
            self.handle: int | None = None
            if folder:
                self.temporary = Path(tempfile.mkdtemp(prefix=mark, dir=self.path.parent))
                self._open_folder()
            else:
                self.handle, name = tempfile.mkstemp(prefix=mark, dir=self.path.parent)
                self.temporary = Path(name)
            # another process may have swept it between its making and its locking
            busy = self.handle is not None and try_lock(self.handle) is Lockable.BUSY
            if not busy and self._is_ours():
                return
            self._remove()
            self._close()

    def _open_folder(self) -> None:
        if os.name == "nt":  # pragma: no cover - there, folders cannot be opened
            return
        try:
            self.handle = os.open(self.temporary, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except FileNotFoundError:  # swept
            pass
        except OSError:
            self.temporary.rmdir()
            raise

    def _is_ours(self) -> bool:
        try:
            status = self.temporary.lstat()
        except FileNotFoundError:
            return False
        return self.handle is None or os.path.samestat(os.fstat(self.handle), status)

    def _close(self) -> None:
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        try:
            if kind is None:
                self._keep()
        except BaseException as failure:
            self._name(failure)
            raise
        else:
            self._name(error)
        finally:
            self._remove()
            self._close()

    def _keep(self) -> None:
        raise NotImplementedError

    def _remove(self) -> None:
        raise NotImplementedError

    def _name(self, error: BaseException | None) -> None:
        """Have a failure of the system name the file that was asked for."""
        if isinstance(error, OSError) and error.errno is not None:
            named = error.filename
            if named is None or str(self.temporary) in str(named):
                error.filename = str(self.path)
                if error.filename2 is not None:
                    del error.filename2  # None would be printed


class write_atomically(_Temporary):  # noqa: N801 - used like a function
    """``with write_atomically(path) as temporary``: ``path`` appears whole, or not at all.

    The temporary file is renamed when the block succeeds and removed when anything fails.  It has
    to be written in place: a library that replaces it would lose its lock.
    """

    def __enter__(self) -> Path:
        self._reserve(folder=False)
        return self.temporary

    def _keep(self) -> None:
        # mkstemp makes private files; a result should have the mode that any new file gets
        self.temporary.chmod(0o666 & ~_umask())
        if self.handle is not None:
            os.fsync(self.handle)
        if os.name == "nt":  # pragma: no cover - there, what is open cannot be renamed
            self._close()
        self.temporary.replace(self.path)

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            if self._is_ours():  # not renamed
                self.temporary.unlink()


class write_folder_atomically(_Temporary):  # noqa: N801 - used like a function
    """``with write_folder_atomically(path) as new``: the folder ``new``, made in the block, takes
    the place of ``path``, or nothing changes.

    Where the system can exchange two names in one step, ``path`` is there at every moment.  Else
    the earlier folder is moved aside first, back again if that fails, and by the next writer if the
    process is killed in between.
    """

    def __enter__(self) -> Path:
        self._reserve(folder=True)
        return self.temporary / _NEW

    def _keep(self) -> None:
        new = self.temporary / _NEW
        _flush(new)
        new.chmod(0o777 & ~_umask())
        if not os.path.lexists(self.path):
            new.rename(self.path)
        elif not _exchange(new, self.path):
            aside = self.temporary / _OLD / self.path.name
            aside.parent.mkdir()
            self.path.rename(aside)
            try:
                new.rename(self.path)
            except BaseException:
                aside.rename(self.path)
                raise

    def _remove(self) -> None:
        _remove_folder(self.temporary)


class replace_files(_Temporary):  # noqa: N801 - used like a function
    """``with replace_files(folder / head, names) as new``: what the block writes into the folder
    ``new`` takes the place of the files ``names`` in ``folder``, all of them or none.

    Other files in ``folder`` stay as they are.  ``head`` is the file without which the others are
    not read: it goes first and comes last.  A process that is killed in between leaves either all
    earlier files aside or all new ones ready, and the next writer moves those into place.
    """

    def __init__(self, path: str | os.PathLike[str], names: Iterable[str]) -> None:
        super().__init__(path)
        self.names = sorted(names, key=lambda name: name != self.path.name)

    def __enter__(self) -> Path:
        self._reserve(folder=True)
        new = self.temporary / _NEW
        try:
            new.mkdir()
        except BaseException as error:
            self.__exit__(type(error), error)
            raise
        return new

    def _keep(self) -> None:
        new, folder = self.temporary / _NEW, self.path.parent
        _flush(new)
        for place in [*map(Path, self.names), *_inside(new)]:
            _check_place(folder, place)
        for name in self.names:
            _move(folder / name, self.temporary / _ASIDE / name)
        new.rename(self.temporary / _READY)
        _move_all(self.temporary / _READY, folder, self.path.name)

    def _remove(self) -> None:
        _remove_folder(self.temporary)


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    source.replace(target)


def _move_all(source: Path, target: Path, last: str | None = None) -> None:
    """Move all files below one folder to the same names below another, that of ``last`` last."""
    for name in sorted(_inside(source), key=lambda path: (str(path) == last, path)):
        _move(source / name, target / name)


def _inside(folder: Path) -> list[Path]:
    """Names of all files below a folder."""
    return [
        Path(place, name).relative_to(folder)
        for place, _, names in os.walk(folder)
        for name in names
    ]


def _check_place(folder: Path, name: Path) -> None:
    """Refuse a folder where a file is to be, and a file where its folder is to be."""
    wrong = errno.EISDIR if is_plain_folder(folder / name) else 0
    for parent in name.parents[:-1]:
        if os.path.lexists(folder / parent) and not is_plain_folder(folder / parent):
            wrong, name = errno.ENOTDIR, parent
    if wrong:
        raise OSError(wrong, os.strerror(wrong), str(folder / name))


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def _flush(folder: Path) -> None:
    """Have the disk hold every file below ``folder``."""
    for place, _, names in os.walk(folder):
        for name in names:
            descriptor = open_plain(Path(place, name))
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; False where the system cannot."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # pragma: no cover - not Linux
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return call(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0


def _remove_folder(temporary: Path) -> None:
    """Remove a temporary folder, after putting back what was moved aside into it."""
    with contextlib.suppress(OSError):
        for place in (_READY, _ASIDE):
            if is_plain_folder(temporary / place):
                _move_all(temporary / place, temporary.parent, _head(temporary))
                # first: without new ones that are ready, earlier ones would be put back
                shutil.rmtree(temporary / _ASIDE, ignore_errors=True)
                break
        for aside in (temporary / _OLD).iterdir() if is_plain_folder(temporary / _OLD) else ():
            home = temporary.parent / aside.name
            if not os.path.lexists(home):
                aside.rename(home)
        shutil.rmtree(temporary, ignore_errors=True)


def _head(temporary: Path) -> str:
    """Return the name that a temporary folder, ``.NAME.OWNER-RANDOM``, is made for."""
    parts = _TEMPORARY.fullmatch(temporary.name)
    return "" if parts is None else temporary.name[1 : parts.start(1) - 1]


def _is_gone(path: Path, lock: Lockable) -> bool | None:
    """Whether the maker of a temporary file or folder is gone; None where that is unknown.

    Also None for a name that is not that of a temporary file of this version.
    """
    parts = _TEMPORARY.fullmatch(path.name)
    owner = None if parts is None else Owner.parse(parts[1])
    if lock is Lockable.BUSY:
        return False
    if owner is None or not owner.is_of_this_boot:
        return None
    alive = owner.is_alive()
    if alive is not None:
        return not alive
    return True if lock is Lockable.HELD else None


def is_mark(name: str) -> bool:
    """Whether this is the name of a temporary file or folder of this version."""
    return _TEMPORARY.fullmatch(name) is not None


def remove_left(path: Path, alone: bool = False) -> None:
    """Remove a temporary file or folder whose maker is gone.

    ``alone`` says that nobody else may write here, since a lock of ours forbids it: then also one
    whose maker is unknown.
    """
    # with its lock held: its maker, if it has only just made it, sees that it is gone
    with locking(path) as lock, contextlib.suppress(OSError):
        gone = _is_gone(path, lock)
        if gone or (alone and gone is None):
            if is_plain_folder(path):
                _remove_folder(path)
            else:
                path.unlink(missing_ok=True)


def sweep(folder: Path) -> None:
    """Remove what killed processes left in ``folder``, where they are provably gone."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if is_mark(entry.name):
                remove_left(Path(entry.path))


def sha256_of(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with os.fdopen(open_plain(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
