"""The folder of a run: what may be replaced or continued, and how it is taken and given back.

A run that replaces another is made aside, in ``.next`` inside of the folder, and swapped in when it is whole (through ``.swap``):
until then the earlier one is there as it was.  A swap that was cut short is finished by the next command.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

from symlift.errors import InputError
from symlift.runs.record import RECORD, Run, Status, open_run
from symlift.solvers.registry import TRAINING_FILES
from symlift.storage.atomic import is_stale, sweep, write_atomically
from symlift.storage.lock import InUseError, Lock

__all__ = [
    "LOCK", "NEXT", "OUTPUTS", "SWAP", "TRAINING", "Claim", "find_input", "is_run", "locked",
    "may_hold_a_run", "run_to_continue", "settled",
    "working_folder",
]  # fmt: skip

TRAINING, LOCK, NEXT, SWAP = "training", ".lock", ".next", ".swap"
#: what a run leaves in its folder, beside its record; metrics.jsonl is of symlift 0.1.  The model's header comes first and goes
#: last: where it is missing, nothing that was saved with it is left
OUTPUTS = (
    "model.json", "model.safetensors", "estimator.json", "gaps.safetensors", "placement.csv", "metrics.jsonl", "samples.npz",
    "signals.npy", "report.html",
)  # fmt: skip


def may_hold_a_run(out: Path) -> bool:
    """Whether ``out`` has a run already; InputError where it cannot be a run folder."""
    if not out.name or out.name == "..":
        raise InputError(f"--out {str(out)!r} is not the name of a run folder: choose another one")
    try:
        if not out.exists() and not out.is_symlink():
            return False
    except OSError as error:
        raise InputError(f"{out} cannot be a run folder ({error.strerror}): choose another --out") from None
    if not out.is_dir():
        raise InputError(f"{out} is a file: choose another --out for the run folder")
    if any((out / place / RECORD).is_file() for place in ("", NEXT, SWAP)):
        return True
    if any(not _is_temporary(entry) for entry in out.iterdir()):
        raise InputError(f"{out} exists and is not a run folder: choose another --out")
    return False


def is_run(folder: Path) -> bool:
    """Whether ``folder`` is to be read as that of a run, rather than as a saved model alone."""
    return os.path.lexists(folder / RECORD) or not (folder / "model.json").exists()


def run_to_continue(out: Path, overwrite: bool, resume: bool) -> Run | None:
    """The run in ``out`` that is to be continued; None where there is none, or where it is to be replaced.

    A run that was to replace another one, and did not end, is the one to continue.
    """
    if not may_hold_a_run(out) or overwrite:
        return None
    run = _pending(out) or open_run(out)
    if resume:
        return run
    if run.record.status is Status.DONE:
        raise InputError(f"{out} holds a finished run: choose another --out, or give --overwrite")
    raise InputError(f"{out} holds a run that did not finish: go on with --resume, or start again with --overwrite")


def working_folder(out: Path) -> Path:
    """Where the run in ``out`` is made: there, or aside."""
    return out / NEXT if (out / NEXT / RECORD).is_file() else out


def find_input(folder: Path) -> Path:
    """The data file of the run in ``folder``, by its name: here, or beside the folder."""
    name = (_pending(folder) or open_run(folder)).record.input.name
    for place in (Path(), folder.absolute().parent):
        if name and Path(name).name == name and (place / name).exists():
            return place / name
    raise InputError(
        f"{name or 'the data file'} is neither here nor beside {folder}: `symlift recover DATA --out {folder} --resume`"
    )


def locked(folder: Path) -> Lock:
    """The lock of the run, or of the saved model, in ``folder``."""
    return Lock(folder / LOCK, f"the run in {folder}")


def settled(folder: Path, to_write: bool = False) -> None:
    """Clear away what a killed command has left in ``folder``, before it is read: its lock, its files, half of a swap.

    An :class:`InUseError` where another process works there, unless what is there can be read all the same.
    """
    try:
        if not any((folder / name).exists() for name in (RECORD, "model.json", NEXT, SWAP)):
            return  # not ours
        if not any(_is_temporary(entry) for entry in folder.iterdir() if entry.name.startswith(".")):
            return
        with locked(folder):
            _settle(folder)
    except InUseError:
        # whoever works there tidies up; what is read here is whole, unless the other one is just swapping
        if to_write or _is_whole(folder):
            raise
    except OSError:
        return  # what cannot be changed can still be read


def _pending(out: Path) -> Run | None:
    """The run that is being made aside, if there is one."""
    places = [out / name for name in (SWAP, NEXT) if (out / name / RECORD).is_file()]
    return open_run(places[0]) if places else None


def _is_whole(out: Path) -> bool:
    """Whether the run that was made aside is finished, and only has to be swapped in."""
    try:
        run = _pending(out)
    except InputError:  # damaged: --overwrite replaces it
        return False
    return run is not None and run.record.status is Status.DONE


def _is_temporary(path: Path) -> bool:
    """What a killed run leaves: its lock, what was made aside, and ``.name.random``, as :class:`write_atomically` names it."""
    if path.name in (NEXT, SWAP):
        return path.is_dir()
    ours = path.name == LOCK or any(path.name.startswith(f".{name}.") for name in (RECORD, *OUTPUTS))
    return ours and path.is_file()


def _settle(folder: Path) -> None:
    """With the lock held: remove what killed writes have left, and finish a swap that was cut short."""
    for place in (folder, folder / NEXT, folder / SWAP):
        sweep(place)
        sweep(place / TRAINING)
        for entry in place.iterdir() if place.is_dir() else ():
            # names of symlift 0.1 do not tell their process
            if entry.name != LOCK and entry.is_file() and _is_temporary(entry) and is_stale(entry.name) is None:
                entry.unlink()
    if (folder / SWAP).is_dir() or _is_whole(folder):
        _swap_in(folder)
    elif (folder / NEXT).is_dir() and not (folder / NEXT / RECORD).is_file():
        shutil.rmtree(folder / NEXT)


def _swap_in(folder: Path) -> None:
    """Put the finished run of ``.next`` in the place of the earlier one; whenever this is cut short, it can be done again.

    The earlier model's header goes last of its files, and the new one's comes last but the record, so that at no moment a model
    of two runs can be loaded.
    """
    moving = folder / SWAP
    if not moving.is_dir():
        _remove_training(folder)
        _remove_results(folder)
        (folder / NEXT).replace(moving)
    last = ("model.json", RECORD)
    names = sorted(entry.name for entry in moving.iterdir() if entry.name not in last)
    for name in (*names, *last):
        if (moving / name).exists():
            _move(moving / name, folder / name)
    moving.rmdir()


def _move(source: Path, target: Path) -> None:
    """Rename; where both are folders, what is inside: somebody may have put files of their own there."""
    if source.is_dir() and target.is_dir():
        for entry in sorted(source.iterdir()):
            _move(entry, target / entry.name)
        source.rmdir()
    else:
        source.replace(target)


def _remove_results(folder: Path) -> None:
    for name in reversed(OUTPUTS):
        (folder / name).unlink(missing_ok=True)


def _remove_training(folder: Path) -> None:
    """The files that trainings have, and no others; folders that are empty then."""
    training = folder / TRAINING
    for path in training.glob("**/*"):
        if path.name in TRAINING_FILES:
            path.unlink(missing_ok=True)
    for path in sorted([*training.glob("**/"), training], reverse=True):
        with contextlib.suppress(OSError):
            path.rmdir()


class Claim:
    """Takes a folder for a run, for one process at a time, and can give it back as it was.

    ``work`` is where the run is made: the folder itself, or aside where it holds an earlier run.
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
            _settle(folder)
        except OSError as error:
            self.release()
            self._remove_folders()
            raise InputError(f"{folder} cannot be written ({error.strerror}): choose another --out") from None

    def begin(self, run: Run) -> None:
        """Write the record of ``run``, which is new or goes on."""
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
                # first the checkpoints, then the request: nobody goes on from what another request has left
                _remove_training(self.work)
            run.write()
            if not goes_on and self.work != self.folder:
                _remove_results(self.work)
        except OSError as error:
            self.undo()
            raise InputError(f"{self.folder} cannot be written ({error.strerror}): choose another --out") from None

    def clear(self) -> None:
        """Remove what an earlier attempt at this run has written: the files that runs have, and no others."""
        _remove_results(self.work)

    def finish(self, run: Run) -> None:
        """Write the last record, and put what was made aside in its place."""
        run.write()
        if self.work != self.folder:
            _swap_in(self.folder)
        run.folder = self.folder

    def release(self) -> None:
        """Let the next one in."""
        self.lock.__exit__()

    def undo(self) -> None:
        """The folder as it was before: nothing, or the run that was there."""
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
