"""Several fitted domains as files: ``parts.json``, and one folder for each in ``parts/``."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from symlift._estimator_file import FIT_FILES
from symlift.errors import InputError
from symlift.solvers.registry import MIXINGS, SOLVERS, canonical
from symlift.storage.atomic import replace_files, write_atomically
from symlift.storage.model_file import PARTS_FILE
from symlift.storage.plain_files import NotPlainError, check_plain, refuse_links
from symlift.storage.strict_json import dumps, read_json

__all__ = [
    "MAPS_FILE",
    "PARTS",
    "PARTS_FILE",
    "PART_FILES",
    "PartsRecord",
    "part_folder",
    "read_maps",
    "read_parts",
    "remove_parts",
    "replaced_parts",
    "write_maps",
    "write_parts",
]

MAPS_FILE, PARTS = "maps.safetensors", "parts"
#: what the folder of a part can hold
PART_FILES = (*FIT_FILES, "report.html")
FORMAT_VERSION = 1

_Part = Annotated[int, Field(ge=-1, lt=2**31)]


class PartsRecord(BaseModel):
    """What ``parts.json`` holds: settings, and the part of each column."""

    model_config = ConfigDict(extra="ignore")

    format: Literal["symlift-parts"] = "symlift-parts"
    version: int = FORMAT_VERSION
    parts: Literal["auto", "labels"] | Annotated[int, Field(ge=1, lt=2**31)] = "auto"
    grid: str = "auto"
    periodic: bool | list[bool] = False
    solver: str = "auto"
    mixing: Literal[MIXINGS] = "auto"  # type: ignore[valid-type]
    channels: Annotated[str, Field(pattern="^auto$")] | Annotated[int, Field(ge=1, lt=2**31)] = (
        "auto"
    )
    random_state: Annotated[int, Field(ge=0, lt=2**32)] | None = None
    feature_names: list[str] | None = None
    labels: list[_Part]
    count: Annotated[int, Field(ge=0, lt=2**20)]
    mapped: bool = False

    def check(self) -> None:
        """Raise a ValueError where the parts contradict each other."""
        used = set(self.labels) - {-1}
        sound = used == (set() if self.mapped else set(range(self.count)))
        names = self.feature_names
        sound = sound and (names is None or len(names) == len(self.labels))
        if not sound or not self.labels or canonical(self.solver) not in SOLVERS:
            raise ValueError("parts")


def part_folder(folder: str | os.PathLike[str], part: int) -> Path:
    """The folder of one part.

    >>> part_folder("run", 7).as_posix()
    'run/parts/007'
    """
    return Path(folder) / PARTS / f"{part:03d}"


def write_parts(record: PartsRecord, folder: str | os.PathLike[str]) -> None:
    """Write ``parts.json`` into ``folder``, whole or not at all."""
    with write_atomically(Path(folder) / PARTS_FILE) as temporary:
        temporary.write_text(dumps(record.model_dump(), indent=1) + "\n", encoding="utf-8")


def read_parts(folder: str | os.PathLike[str]) -> PartsRecord:
    """Read what `write_parts` wrote; an InputError names what is wrong with it."""
    path = Path(folder) / PARTS_FILE
    refuse_links(Path(folder), (PARTS_FILE, MAPS_FILE, PARTS))
    try:
        record = PartsRecord.model_validate(read_json(path))
        record.check()
    except (OSError, ValidationError, ValueError, TypeError, OverflowError) as error:
        if isinstance(error, NotPlainError):
            raise
        raise InputError(
            f"{path} is damaged ({type(error).__name__}): save the domains again"
        ) from None
    if record.version > FORMAT_VERSION:
        raise InputError(
            f"{path} has format version {record.version}, above {FORMAT_VERSION}: upgrade symlift"
        )
    return record


def write_maps(mean: NDArray, maps: list[NDArray], folder: str | os.PathLike[str]) -> None:
    """Write what leads from the columns to the coordinates of each part."""
    from safetensors.numpy import save

    tensors = {"mean": mean} | {f"map{k}": one for k, one in enumerate(maps)}
    with write_atomically(Path(folder) / MAPS_FILE) as temporary:
        temporary.write_bytes(
            save({name: np.ascontiguousarray(value) for name, value in tensors.items()})
        )


def read_maps(
    folder: str | os.PathLike[str], columns: int, widths: list[int]
) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
    """The mean and the maps that `write_maps` wrote, for so many columns and coordinates."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    path = Path(folder) / MAPS_FILE
    try:
        check_plain(path)
        tensors = load_file(path)
        mean = tensors["mean"].astype(np.float64)
        maps = [tensors[f"map{k}"].astype(np.float64) for k in range(len(widths))]
        shapes = [one.shape for one in (mean, *maps)]
        if shapes != [(columns,), *((columns, width) for width in widths)]:
            raise ValueError("shapes")
        if not all(np.isfinite(one).all() for one in (mean, *maps)):
            raise ValueError("numbers")
    except (SafetensorError, OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, NotPlainError):
            raise
        raise InputError(
            f"{path} is damaged ({type(error).__name__}): save the domains again"
        ) from None
    return mean, maps


def _files_of_parts(folder: Path) -> list[str]:
    """Names of the files of earlier parts below ``folder``, and of no others."""
    refuse_links(folder, (PARTS_FILE, MAPS_FILE, PARTS))
    places = sorted((folder / PARTS).glob("[0-9]*"))
    names = [PARTS_FILE, MAPS_FILE]
    names += [f"{PARTS}/{place.name}/{name}" for place in places for name in PART_FILES]
    return [name for name in names if os.path.lexists(folder / name)]


@contextlib.contextmanager
def replaced_parts(folder: Path) -> Iterator[Path]:
    """Yield a folder to write parts into: they take the place of those in ``folder``, or none."""
    with replace_files(folder / PARTS_FILE, _files_of_parts(folder)) as new:
        yield new
    _remove_empty_parts(folder)


def _remove_empty_parts(folder: Path) -> None:
    for place in (*sorted((folder / PARTS).glob("[0-9]*")), folder / PARTS):
        with contextlib.suppress(OSError):
            place.rmdir()


def remove_parts(folder: Path) -> None:
    """Remove the files of earlier parts, and no others; then the folders that are empty."""
    for name in _files_of_parts(folder):
        (folder / name).unlink(missing_ok=True)
    _remove_empty_parts(folder)
