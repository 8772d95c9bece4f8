"""The folder of a run: which runs may be replaced or continued, and how it is claimed and released.

A run that replaces another is made in ``.next`` inside the folder and swapped in when it is
complete (through ``.swap``): until then the earlier run stays as it was.  A swap that was
interrupted is finished by the next command that writes there; commands that only read move and
remove nothing.  No command follows a link under a name that a run folder can have.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from symlift._parts_file import MAPS_FILE, PARTS, PARTS_FILE, remove_parts
from symlift.errors import InputError
from symlift.runs.record import RECORD, Run, Status, open_run
from symlift.solvers.registry import TRAINING_FILES
from symlift.storage.atomic import is_mark, remove_left, sweep, write_atomically, write_error
from symlift.storage.lock import Lock
from symlift.storage.plain_files import NotPlainError, is_plain_file, is_plain_folder, refuse_links

__all__ = [
    "LOCK", "NEXT", "OUTPUTS", "SWAP", "TRAINING", "FolderClaim", "find_input", "is_run", "locked",
    "may_hold_a_run", "readable", "run_to_continue", "settled", "working_folder",
]  # fmt: skip

TRAINING, LOCK, NEXT, SWAP = "training", ".lock", ".next", ".swap"
#: the files of a run, next to its record; metrics.jsonl was written by symlift 0.1.  The model's
#: header is removed last: if it is missing, so is everything that was saved with it
OUTPUTS = (
    PARTS_FILE,
    "model.json",
    "model.safetensors",
    "estimator.json",
    "gaps.safetensors",
    MAPS_FILE,
    "placement.csv",
    "metrics.jsonl",
    "samples.npz",
    "signals.npy",
    "report.html",
)


def may_hold_a_run(out: Path) -> bool:
    """Whether ``out`` holds a run already; InputError if it cannot be a run folder."""
    if not out.name or out.name == "..":
        raise InputError(f"--out {str(out)!r} is not the name of a run folder: choose another one")
    try:
        if not out.exists() and not out.is_symlink():
            return False
    except OSError as error:
        raise InputError(
            f"{out} cannot be a run folder ({error.strerror}): choose another --out"
        ) from None
    if not out.is_dir():
        raise InputError(f"{out} is a file: choose another --out for the run folder")
    if any((out / place / RECORD).is_file() for place in ("", NEXT, SWAP)):
        return True
    if any(not _is_temporary(entry) for entry in out.iterdir()):
        raise InputError(f"{out} exists and is not a run folder: choose another --out")
    return False


def is_run(folder: Path) -> bool:
    """Whether ``folder`` is to be read as a run, rather than as a saved model only."""
    saved = any((folder / name).exists() for name in ("model.json", PARTS_FILE))
    return os.path.lexists(folder / RECORD) or not saved


def run_to_continue(out: Path, overwrite: bool, resume: bool) -> Run | None:
    """Return the run in ``out`` to continue; None if there is none, or if it is to be replaced.

    If a run that was to replace another one did not finish, that run is the one to continue.
    """
    if not may_hold_a_run(out) or overwrite:
        return None
    run = _pending(out) or open_run(out)
    if resume:
        return run
    if run.record.status is Status.DONE:
        raise InputError(f"{out} holds a finished run: choose another --out, or give --overwrite")
    raise InputError(
        f"{out} holds a run that did not finish: continue it with --resume, or start again with"
        " --overwrite"
    )


def working_folder(out: Path) -> Path:
    """Return where the run in ``out`` is made: in ``out`` itself, or in ``.next`` inside it."""
    return out / NEXT if (out / NEXT / RECORD).is_file() else out


def find_input(folder: Path) -> Path:
    """Find the data file of the run in ``folder`` by its name: here, or next to the folder."""
    name = (_pending(folder) or open_run(folder)).record.input.name
    for place in (Path(), folder.absolute().parent):
        if name and Path(name).name == name and (place / name).exists():
            return place / name
    raise InputError(
        f"{name or 'the data file'} is neither here nor next to {folder}: "
        f"name it, `symlift recover DATA --out {folder} --resume`"
    )


def locked(folder: Path) -> Lock:
    """Return the lock of the run, or of the saved model, in ``folder``."""
    return Lock(folder / LOCK, f"the run in {folder}")


def readable(folder: Path) -> Path:
    """Return the folder to read the run of, without changing anything: ``folder``, or ``.next``.

    A run in ``.next`` that is done only has to be moved: the earlier one may be incomplete already.
    """
    _refuse_links(folder)
    if is_plain_folder(folder / SWAP):
        raise InputError(
            f"a new run is being moved into {folder}, or was when a command was killed: wait for"
            f" it, or finish that with `symlift report {folder}`"
        )
    return folder / NEXT if _is_whole(folder) else folder


def settled(folder: Path) -> None:
    """Clean up after a killed command, before ``folder`` is written: lock, temporary files, swap.

    Raises InUseError if another process is at work there.
    """
    _refuse_links(folder)
    try:
        if not any(
            (folder / name).exists() for name in (RECORD, "model.json", PARTS_FILE, NEXT, SWAP)
        ):
            return  # neither a run nor a model
        if not any(
            _is_temporary(entry)
            for place in _places(folder)
            for entry in place.iterdir()
            if entry.name.startswith(".")
        ):
            return
        with locked(folder):
            _settle(folder)
    except OSError:
        return  # writing will fail as well, and says where


def _places(run: Path) -> list[Path]:
    """Return the folder of a run and those of its parts."""
    inside = (run / PARTS).iterdir() if is_plain_folder(run / PARTS) else ()
    return [run, *sorted(path for path in inside if path.name.isdecimal())]


def _refuse_links(folder: Path) -> None:
    """Refuse links under the names that a run folder can have, and anywhere in its folders."""
    refuse_links(folder, (RECORD, *OUTPUTS, LOCK, NEXT, SWAP, TRAINING, PARTS))
    folders = [folder / name for name in (NEXT, SWAP, TRAINING, PARTS)]
    for path in folders + _places(folder)[1:]:
        if os.path.lexists(path) and not is_plain_folder(path):
            raise NotPlainError(f"{path} is a file, where a run has a folder: remove it")


def _pending(out: Path) -> Run | None:
    """Return the run in ``.next`` or ``.swap``, if there is one."""
    places = [out / name for name in (SWAP, NEXT) if (out / name / RECORD).is_file()]
    return open_run(places[0]) if places else None


def _is_whole(out: Path) -> bool:
    """Whether the run in ``.next`` is finished and only has to be swapped in."""
    try:
        run = _pending(out)
    except InputError:  # damaged: --overwrite replaces it
        return False
    return run is not None and run.record.status is Status.DONE


def _is_temporary(path: Path) -> bool:
    """Whether a killed run left this: a lock, ``.next``, ``.swap`` or a file not yet renamed."""
    if path.name in (NEXT, SWAP):
        return is_plain_folder(path)
    ours = path.name == LOCK or any(
        path.name.startswith(f".{name}.") for name in (RECORD, *OUTPUTS)
    )
    return ours and (is_plain_file(path) or (is_mark(path.name) and is_plain_folder(path)))


def _settle(folder: Path) -> None:
    """With the lock held: remove temporary files and finish a swap that was interrupted."""
    for run in (folder, folder / NEXT, folder / SWAP):
        sweep(run / TRAINING)
        for place in _places(run) if run.is_dir() else ():
            sweep(place)
            for entry in place.iterdir():
                # nobody else makes a run here, whatever the name says of its maker: the lock is
                # ours
                if entry.name not in (LOCK, NEXT, SWAP) and _is_temporary(entry):
                    remove_left(entry, alone=True)
    if (folder / SWAP).is_dir() or _is_whole(folder):
        _swap_in(folder)
    elif (folder / NEXT).is_dir() and not (folder / NEXT / RECORD).is_file():
        shutil.rmtree(folder / NEXT)


def _swap_in(folder: Path) -> None:
    """Replace the earlier run by the finished one in ``.next``; can be repeated if interrupted.

    The earlier model's header is removed last of its files, and the new header is moved last
    before the record, so that at no moment files of two runs can be loaded as one model.
    """
    moving = folder / SWAP
    if not moving.is_dir():
        _remove_training(folder)
        _remove_results(folder)
        (folder / NEXT).replace(moving)
    last = (PARTS_FILE, "model.json", RECORD)
    names = sorted(entry.name for entry in moving.iterdir() if entry.name not in last)
    for name in (*names, *last):
        if (moving / name).exists():
            _move(moving / name, folder / name)
    moving.rmdir()


def _move(source: Path, target: Path) -> None:
    """Rename; merge two folders, since the user may have put files there."""
    if source.is_dir() and target.is_dir():
        for entry in sorted(source.iterdir()):
            _move(entry, target / entry.name)
        source.rmdir()
    else:
        source.replace(target)


def _remove_results(folder: Path) -> None:
    remove_parts(folder)
    for name in reversed(OUTPUTS):
        (folder / name).unlink(missing_ok=True)


def _remove_training(folder: Path) -> None:
    """Remove the files that trainings write, and no others; then the folders that are empty."""
    training = folder / TRAINING
    for path in training.glob("**/*"):
        if path.name in TRAINING_FILES:
            path.unlink(missing_ok=True)
    for path in sorted([*training.glob("**/"), training], reverse=True):
        with contextlib.suppress(OSError):
            path.rmdir()


class FolderClaim:
    """Claim a folder for a run, for one process at a time; ``undo`` restores it as it was.

    ``work`` is where the run is made: the folder itself, or ``.next`` if it holds an earlier run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = self.work = folder
        self.made: list[Path] = []
        self.previous: bytes | None = None
        self.begun = False
        self.lock = locked(folder)
        try:
            for place in (*reversed(folder.parents), folder):
                if not place.is_dir():
                    place.mkdir(exist_ok=True)
                    self.made.append(place)
            self.lock.__enter__()
            _refuse_links(folder)  # again, with the lock held: others may be at work here
            _settle(folder)
        except InputError:
            self.release()
            raise
        except OSError as error:
            self.release()
            self._remove_folders()
            raise write_error(folder, error, "choose another --out") from None

    def begin(self, run: Run) -> None:
        """Write the record of ``run``, which is new or continued."""
        goes_on = run.record.resumed > 0
        if goes_on:
            self.work = working_folder(self.folder)
            self.previous = (self.work / RECORD).read_bytes()
        elif (self.folder / RECORD).exists():
            self.work = self.folder / NEXT
        run.folder, self.begun = self.work, True
        try:
            self.work.mkdir(exist_ok=True)
            if not goes_on:
                # remove checkpoints before the record is written: they are of another request
                _remove_training(self.work)
            run.write()
            if not goes_on and self.work != self.folder:
                _remove_results(self.work)
        except OSError as error:
            self.undo()
            raise write_error(self.folder, error, "choose another --out") from None

    @property
    def is_there(self) -> bool:
        """Whether the folder is still the one that was claimed."""
        return self.lock.is_held and self.work.is_dir()

    def clear(self) -> None:
        """Remove the results of an earlier attempt at this run, and no other files."""
        _remove_results(self.work)

    def finish(self, run: Run) -> None:
        """Write the final record, and move a run made in ``.next`` into place."""
        run.write()
        if self.work != self.folder:
            _swap_in(self.folder)
        run.folder = self.folder

    def release(self) -> None:
        """Release the lock."""
        self.lock.__exit__()

    def undo(self) -> None:
        """Restore the folder as it was before: absent, empty, or with the earlier run."""
        path = self.work / RECORD
        with contextlib.suppress(OSError):
            if self.previous is not None:
                with write_atomically(path) as temporary:
                    temporary.write_bytes(self.previous)
            elif self.begun and self.work != self.folder:
                shutil.rmtree(self.work, ignore_errors=True)
            elif self.begun:
                _remove_training(self.work)
                path.unlink(missing_ok=True)
        self.release()
        self._remove_folders()

    def _remove_folders(self) -> None:
        for folder in reversed(self.made):
            with contextlib.suppress(OSError):
                folder.rmdir()
