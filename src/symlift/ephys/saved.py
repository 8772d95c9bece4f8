"""Recordings that SpikeInterface has saved: what would run code is refused before it loads them.

SpikeInterface makes an object of whatever class or function a saved recording names, and unpickles
what lies next to it.  Who is given a recording by somebody else would run what that one likes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from symlift.errors import InputError
from symlift.storage.numpy_files import UNREADABLE, NpyHeader
from symlift.storage.plain_files import NotPlainError
from symlift.storage.strict_json import read_json

__all__ = ["check_saved"]

#: functions would be called as well, such as the one that loads a pickle
_CLASS = re.compile(r"spikeinterface(\.\w+)+\.[A-Z]\w*Recording(Extractor)?")
_PICKLES = (".pkl", ".pickle")
_RECORDINGS = ("Recording", "Recording|Sorting")
#: what makes SpikeInterface take a folder for something else, and load what that consists of
_OTHERS = ("sorter_output", "waveforms")
_INFO, _FOLDER, _CACHED = "spikeinterface_info.json", "si_folder.json", "cached.json"
_AGAIN = "save the recording itself with recording.save(folder=…), in a format without pickles"


def check_saved(path: Path) -> None:
    """Refuse a recording that SpikeInterface could not load without running what it says.

    Parameters
    ----------
    path : pathlib.Path
        What SpikeInterface is to load: a folder that it saved, zarr or not, or a .json file.
    """
    todo, seen = [path], set()
    while todo:
        one = todo.pop()
        if one not in seen:
            seen.add(one)
            todo += _checked(one)


def _checked(path: Path) -> Iterator[Path]:
    """Check one file or folder, and yield those that it names."""
    if path.suffix in _PICKLES:
        raise _pickled(path)
    if path.is_dir() and path.suffix == ".zarr":
        _check_zarr(path)
    elif path.is_dir():
        description = _description(path)
        for array in (*path.glob("*.npy"), *path.glob("properties/*.npy")):
            _check_array(array)
        if description is not None:
            yield from _named(description, path)
    elif path.suffix == ".json":
        yield from _named(path, path.parent)


def _description(folder: Path) -> Path | None:
    """The file that says how to load a folder; None for one that another class reads."""
    if (folder / _INFO).exists():
        info = _read(folder / _INFO)
        _check_kind(folder, info.get("object") if isinstance(info, dict) else None)
    for name in _OTHERS:
        if (folder / name).exists():
            raise InputError(f"{folder} is no recording, since it holds {name}: {_AGAIN}")
    if (folder / _FOLDER).exists():
        return folder / _FOLDER
    for suffix in _PICKLES:
        if (folder / _CACHED).with_suffix(suffix).exists():
            raise _pickled((folder / _CACHED).with_suffix(suffix))
    return folder / _CACHED if (folder / _CACHED).exists() else None


def _named(description: Path, base: Path) -> Iterator[Path]:
    """Check the classes in a description, and yield the files and folders that it names."""
    for key, value in _entries(_read(description)):
        if key == "class" and not (isinstance(value, str) and _CLASS.fullmatch(value)):
            raise InputError(
                f"{description} names {str(value)[:60]!r} as a class, which is no recording of"
                f" SpikeInterface: {_AGAIN}"
            )
        if key == "folder_metadata" and value is not None:
            raise InputError(f"{description} keeps properties elsewhere ({key}): {_AGAIN}")
        if isinstance(value, str) and len(value) < 4096 and "\0" not in value:
            yield from (place for place in (base / value,) if _is_there(place))


def _is_there(path: Path) -> bool:
    try:
        return path.is_dir() or (path.is_file() and path.suffix in (".json", *_PICKLES))
    except OSError:  # a name that no file can have
        return False


def _entries(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """All values in a description, each with the name that it or its list has."""
    yield key, value
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _entries(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _entries(inner, key)


def _check_zarr(path: Path) -> None:
    from symlift.runs.readers.arrays import check_zarr

    try:
        for meta in check_zarr(path, codecs=None):
            for kind in _infos(meta):
                _check_kind(path, kind)
    except InputError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(path, error) from None


def _infos(meta: Any) -> Iterator[Any]:
    """Kinds of objects that the metadata of a zarr folder declare."""
    if isinstance(meta, dict):
        for key, value in meta.items():
            if key == "spikeinterface_info":
                yield value.get("object") if isinstance(value, dict) else None
            yield from _infos(value)


def _check_kind(path: Path, kind: Any) -> None:
    if kind not in _RECORDINGS:
        raise InputError(f"{path} is no recording, but {str(kind)[:60]!r}: {_AGAIN}")


def _check_array(path: Path) -> None:
    """Refuse an array of objects, which would be unpickled."""
    try:
        with path.open("rb") as file:
            objects = NpyHeader(file, path.stat().st_size).dtype.hasobject
    except UNREADABLE:
        raise InputError(f"{path} is no array, or damaged: {_AGAIN}") from None
    if objects:
        raise _pickled(path)


def _read(path: Path) -> Any:
    try:
        return read_json(path)
    except NotPlainError:
        raise
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> InputError:
    return InputError(f"{path} is damaged ({type(error).__name__}): {_AGAIN}")


def _pickled(path: Path) -> InputError:
    return InputError(f"{path} is or holds a pickle, which is never loaded: {_AGAIN}")
