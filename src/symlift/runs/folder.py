"""The folder of a run: what may be replaced or continued, and how it is taken and given back."""

from __future__ import annotations

import contextlib
import errno
from pathlib import Path

from symlift.errors import InputError
from symlift.runs.record import RECORD, Run, Status, open_run
from symlift.solvers.registry import CHECKPOINT, CURVE
from symlift.storage.atomic import write_atomically
from symlift.storage.lock import Lock

__all__ = ["LOCK", "OUTPUTS", "TRAINING", "Claim", "find_input", "may_hold_a_run", "record_bytes", "run_to_continue"]

TRAINING = "training"
LOCK = ".lock"
#: what a run leaves in its folder, beside its record; metrics.jsonl is of symlift 0.1
OUTPUTS = (
    "model.safetensors", "model.json", "estimator.json", "gaps.safetensors", "placement.csv", "metrics.jsonl", "samples.npz",
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
    if (out / RECORD).is_file():
        return True
    if any(not _is_temporary(entry) for entry in out.iterdir()):
        raise InputError(f"{out} exists and is not a run folder: choose another --out")
    return False


def run_to_continue(out: Path, overwrite: bool, resume: bool) -> Run | None:
    """The run in ``out`` that is to be continued; None where there is none, or where it is to be replaced."""
    if not may_hold_a_run(out) or overwrite:
        return None
    run = open_run(out)
    if resume:
        return run
    if run.record.status is Status.DONE:
        raise InputError(f"{out} holds a finished run: choose another --out, or give --overwrite")
    raise InputError(f"{out} holds a run that did not finish: go on with --resume, or start again with --overwrite")


def record_bytes(folder: Path) -> bytes | None:
    """The record in ``folder`` as it is on disk, None where there is none (or where no folder of that name can be)."""
    path = folder / RECORD
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return None
        raise


def find_input(folder: Path) -> Path:
    """The data file of the run in ``folder``, by its name: here, or beside the folder."""
    name = open_run(folder).record.input.name
    for place in (Path(), folder.absolute().parent):
        if name and Path(name).name == name and (place / name).exists():
            return place / name
    raise InputError(
        f"{name or 'the data file'} is neither here nor beside {folder}: `symlift recover DATA --out {folder} --resume`"
    )


def _is_temporary(path: Path) -> bool:
    """What a killed run leaves: its lock, and ``.name.random``, as :class:`write_atomically` names it."""
    ours = path.name == LOCK or any(path.name.startswith(f".{name}.") for name in (RECORD, *OUTPUTS))
    return ours and path.is_file()


class Claim:
    """Takes a folder for a run, for one process at a time, and can give it back as it was.

    ``seen`` is the record that the caller has found there (None: none), as bytes: another process may have been quicker.
    """

    def __init__(self, run: Run, seen: bytes | None) -> None:
        self.run = run
        self.made: list[Path] = []
        self.previous: bytes | None = None
        self.lock = Lock(run.folder / LOCK, f"the run in {run.folder}")
        try:
            for folder in (*reversed(run.folder.parents), run.folder):
                if not folder.is_dir():
                    folder.mkdir(exist_ok=True)
                    self.made.append(folder)
            self.lock.__enter__()
        except OSError as error:
            self._remove_folders()
            raise InputError(f"{run.folder} cannot be written ({error.strerror}): choose another --out") from None
        try:
            self.previous = record_bytes(run.folder)
            if self.previous != seen:
                raise InputError(f"another process has just written the run in {run.folder}: look at it first")
            self.sweep()
            run.write()
        except OSError as error:
            self.undo()
            raise InputError(f"{run.folder} cannot be written ({error.strerror}): choose another --out") from None
        except InputError:
            self.release()
            raise

    def sweep(self) -> None:
        """Remove what killed writes have left; with the lock held, nobody else writes here."""
        for entry in self.run.folder.iterdir():
            if _is_temporary(entry) and entry.name != LOCK:
                entry.unlink()

    def release(self) -> None:
        """Let the next one in."""
        self.lock.__exit__()

    def clear(self) -> None:
        """Remove the results of an earlier run: the files that runs have, and no others."""
        for name in OUTPUTS:
            (self.run.folder / name).unlink(missing_ok=True)

    def forget_training(self) -> None:
        """Remove what an earlier training left: the files that trainings have, and no others."""
        for path in (self.run.folder / TRAINING).glob("**/*"):
            if path.name in (CHECKPOINT, CURVE):
                path.unlink(missing_ok=True)

    def undo(self) -> None:
        """The folder as it was before: nothing, or the run that was there."""
        path = self.run.folder / RECORD
        if self.previous is not None:
            with contextlib.suppress(OSError), write_atomically(path) as temporary:
                temporary.write_bytes(self.previous)
            self.release()
            return
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
        self.release()
        self._remove_folders()

    def _remove_folders(self) -> None:
        for folder in reversed(self.made):
            with contextlib.suppress(OSError):
                folder.rmdir()
