"""Results on disk: a cache with a file per finished job, and an archive with a file per experiment.

Runs write into a cache, which several processes can use at once. Tables and pages are made from an
archive, which is meant to be committed: the same entries, sorted, in a few files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

import symlift
from symlift import __version__
from symlift.errors import InputError
from symlift.storage.atomic import sweep, write_atomically
from symlift.storage.lock import Lock, sweep_locks
from symlift.storage.plain_files import refuse_links
from symlift.storage.strict_json import plain, read_json
from symlift_paper.jobs import Job

__all__ = [
    "Archive",
    "Cache",
    "Entry",
    "default_cache",
    "machine",
    "made_entry",
    "source_commit",
    "source_digest",
]

# import names of packages, where they differ from the package name
_MODULES = {"scikit-learn": "sklearn", "python-picard": "picard"}

#: a finished job: its definition, its result, the machine and the date
Entry = dict[str, Any]


def default_cache() -> Path:
    """$SYMLIFT_CACHE, or a folder in the user's cache folder."""
    given = os.environ.get("SYMLIFT_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(given) if given else base / "symlift" / "experiments"


def machine() -> dict[str, Any]:
    """Processor, number of cores, and versions of the relevant packages."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        model = names[0] if names else model
    packages = [
        p
        for p in ("numpy", "scipy", "torch", "scikit-learn", "python-picard")
        if find_spec(_MODULES.get(p, p))
    ]
    return {
        "processor": model,
        "cores": (
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        ),
        "python": platform.python_version(),
        "versions": {"symlift": __version__} | {name: metadata.version(name) for name in packages},
    }


@cache
def source_digest() -> str:
    """Sixteen hexadecimal digits of a hash of all code that results depend on.

    Results of a different hash are computed again.
    """
    library, ours = Path(symlift.__file__).parent, Path(__file__).parent
    presentation = {"cli", "plotting", "report"}
    paths = [
        path
        for path in library.rglob("*.py")
        if path.relative_to(library).parts[0] not in presentation
    ]
    paths += [ours / "runner.py", *(ours / "baselines").rglob("*.py")]
    digest = hashlib.sha256()
    for path in sorted(paths):
        name = path.relative_to(library.parent).as_posix()
        digest.update(f"{name}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@cache
def source_commit() -> str | None:
    """The commit whose source this is; None where the source is not that of a commit."""
    packages = [Path(symlift.__file__).parent, Path(__file__).parent]
    git = shutil.which("git")
    if git is None:
        return None

    def answer(*words: str) -> str:
        given = [git, "-C", str(packages[0]), *words]
        run = subprocess.run(given, capture_output=True, text=True, check=True)  # noqa: S603
        return run.stdout.strip()

    try:
        # an installed copy inside somebody else's repository is no part of it
        answer("ls-files", "--error-unmatch", "--", *(str(p / "__init__.py") for p in packages))
        changed = answer("status", "--porcelain", "--", *map(str, packages))
        return None if changed else answer("rev-parse", "HEAD")
    except (OSError, subprocess.CalledProcessError):
        return None


def made_entry(job: Job, result: dict[str, Any]) -> Entry:
    """The entry of a job that was just run here."""
    return {
        "key": job.key,
        "job": (
            job.model_dump(mode="json", exclude={"experiment"})
            | {"experiment": job.experiment.name}
        ),
        "result": plain(result),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": machine(),
        "source": source_digest(),
        "commit": source_commit(),
    }


class Cache:
    """Entries of finished jobs by content and code, one file each, written atomically."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, job: Job) -> Path:
        """The path of a job's entry, which need not exist yet."""
        return (
            self.folder
            / f"{job.experiment.name}.{job.method}.{job.seed}.{job.key}.{source_digest()}.json"
        )

    def get(self, job: Job) -> Entry | None:
        """The entry of a job, if it was finished before."""
        path = self.path(job)
        try:
            entry = _entry(read_json(path))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise InputError(
                f"the cached result {path} cannot be read ({_brief(error)}): delete it and run"
                " again"
            ) from None
        if entry["key"] != job.key:
            raise InputError(f"the cached result {path} is of another run: delete it and run again")
        return entry

    def forget(self, jobs: Iterable[Job]) -> None:
        """Delete the entries of jobs, so that they are run again."""
        for job in jobs:
            self.path(job).unlink(missing_ok=True)

    def run(self, job: Job) -> Entry:
        """The entry of a job, cached or computed now; an interrupted training is resumed."""
        entry = self.get(job)
        if entry is not None:
            return entry
        path = self.path(job)
        new = not self.folder.exists()
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with Lock(path.with_name(f".{path.name}.lock"), f"the run of {job.label}"):
                # another process may have finished it in the meantime
                return self.get(job) or self._make(job, path)
        finally:
            if new:  # remove the folder if nothing was written
                with contextlib.suppress(OSError):
                    self.folder.rmdir()

    def _make(self, job: Job, path: Path) -> Entry:
        training = path.with_suffix(".training")
        refuse_links(self.folder, [training.name])
        entry = made_entry(job, job.run(training))
        text = json.dumps(entry, allow_nan=False, sort_keys=True) + "\n"
        with write_atomically(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        shutil.rmtree(training, ignore_errors=True)
        return entry

    def settle(self) -> None:
        """Remove what killed processes left: locks, files, and trainings that have a result."""
        sweep(self.folder)
        sweep_locks(self.folder)
        for training in self.folder.glob("*.training"):
            if training.with_suffix(".json").is_file():
                shutil.rmtree(training, ignore_errors=True)


class Archive:
    """Permanent entries, ``NAME.json`` for each experiment: {key: entry}."""

    #: seconds to wait for another process that is adding entries
    patience = 10.0

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def entries(self) -> dict[str, Entry]:
        """All entries by key."""
        entries: dict[str, Entry] = {}
        for path in sorted(self.folder.glob("*.json")):
            entries |= self._read(path)
        return entries

    def _read(self, path: Path) -> dict[str, Entry]:
        try:
            raw = read_json(path)
            if not isinstance(raw, dict):
                raise ValueError("no mapping")
            return {key: _entry(entry) for key, entry in raw.items()}
        except (OSError, ValueError) as error:
            raise InputError(
                f"the archived results {path} cannot be read ({_brief(error)}): mend or move the"
                " file away"
            ) from None

    def add(self, entries: Iterable[Entry]) -> None:
        """Add entries, and replace older ones with the same key."""
        by_experiment: dict[str, dict[str, Entry]] = {}
        for entry in entries:
            by_experiment.setdefault(entry["job"]["experiment"], {})[entry["key"]] = entry
        self.folder.mkdir(parents=True, exist_ok=True)
        # reading, adding and writing is one step; another process needs the lock only for a moment
        with Lock(self.folder / ".lock", f"the archive in {self.folder}", patience=self.patience):
            for name, new in by_experiment.items():
                self._write(self.folder / f"{name}.json", new)

    def _write(self, path: Path, new: dict[str, Entry]) -> None:
        entries = self._read(path) if path.is_file() else {}
        # one line per entry, sorted by job: a diff then shows what changed
        ordered = sorted((entries | new).items(), key=lambda item: (_what(item[1]), item[0]))
        lines = ",\n".join(
            f"{json.dumps(key)}: {json.dumps(entry, sort_keys=True)}" for key, entry in ordered
        )
        text = "{\n" + lines + "\n}\n"
        with write_atomically(path) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _what(entry: Entry) -> str:
    job = entry["job"]
    return json.dumps([job["kind"], job["method"], job["settings"], job["seed"]], sort_keys=True)


class _EntryFile(BaseModel):
    """The fields of an entry that tables need."""

    class _Job(BaseModel):
        experiment: str
        kind: str
        method: str
        seed: int
        settings: dict[str, Any] = Field(default_factory=dict)

    class _Machine(BaseModel):
        processor: str
        cores: int | None
        python: str
        versions: dict[str, str]

    class _Result(BaseModel):
        # a text is no number, not even one of digits
        model_config = ConfigDict(strict=True)

        seconds: float
        cpu_seconds: float | None = None
        r: float | None = None
        r_paper: float | None = None
        r_per_sample: float | None = None
        r_before_closing: float | None = None
        r_paper_before_closing: float | None = None
        circular_correlation: float | None = None
        circular_correlation_means: float | None = None
        similarity: list[float] | None = None
        similarity_exact: list[float] | None = None
        similarity_half: list[float] | None = None
        loss: float | None = None
        share: float | None = None
        starts: int | None = None
        steps: int | None = None

    key: str
    job: _Job
    result: _Result
    date: str
    machine: _Machine
    source: str | None = None
    commit: str | None = None


def _entry(raw: Any) -> Entry:
    """``raw`` unchanged, if it is an entry; raise ValueError otherwise."""
    _EntryFile.model_validate(raw)
    entry: Entry = raw
    return entry


def _brief(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(str(part) for part in first['loc'])[:80]}: {first['msg']}"
    return " ".join(str(error).split())[:200]
