"""Folders of Kilosort and phy: the raw file with its channel map as a recording, and the map
written anew.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError
from symlift.storage.atomic import replace_files, write_atomically, write_error
from symlift.storage.numpy_files import UNREADABLE, is_numeric, read_array
from symlift.storage.plain_files import open_regular

__all__ = [
    "KilosortFolder",
    "probe_dictionary",
    "read_kilosort",
    "replace_kilosort_map",
]

_MAP, _POSITIONS, _PARAMETERS = "channel_map.npy", "channel_positions.npy", "params.py"
_PROBE = "probe.json"
#: of parameters, and beyond all of them
_MOST_BYTES, _LARGEST = 1 << 16, 1e15


@dataclass(frozen=True)
class KilosortFolder:
    """A folder of Kilosort or phy, read like a recording of SpikeInterface with a probe.

    Parameters
    ----------
    folder : Path
        Where it is.
    samples : ndarray, (n, channels of the file)
        The raw file, mapped into memory.
    sampling_frequency : float
        Samples per second.
    channel_ids : list of int
        Columns of the raw file (``channel_map.npy``), from 0.
    positions : ndarray, (d, 2)
        Where each is said to be (``channel_positions.npy``).

    Examples
    --------
    >>> from symlift.ephys import check_probe, read_kilosort
    >>> check_probe(read_kilosort("kilosort4"))  # doctest: +SKIP
    """

    folder: Path
    samples: NDArray
    sampling_frequency: float
    channel_ids: list[int]
    positions: NDArray[np.float64]

    def get_num_segments(self) -> int:
        """Return 1: one file is one segment.

        Returns
        -------
        int
            1.
        """
        return 1

    def get_num_samples(self, segment_index: int = 0) -> int:  # noqa: ARG002 - as SpikeInterface
        """Return how many samples each channel has.

        Parameters
        ----------
        segment_index : int, default 0
            Not used.

        Returns
        -------
        int
            The number of rows.
        """
        return len(self.samples)

    def get_traces(
        self,
        segment_index: int = 0,  # noqa: ARG002 - as SpikeInterface
        start_frame: int = 0,
        end_frame: int | None = None,
    ) -> NDArray:
        """Read samples of the mapped channels.

        Parameters
        ----------
        segment_index : int, default 0
            Not used.
        start_frame, end_frame : int
            The first sample, and the one after the last.

        Returns
        -------
        ndarray, (samples, d)
            In the units of the file.
        """
        return np.asarray(self.samples[start_frame:end_frame][:, self.channel_ids])

    def has_probe(self) -> bool:
        """Return True: channels have positions.

        Returns
        -------
        bool
            True.
        """
        return True

    def get_channel_locations(self) -> NDArray[np.float64]:
        """Return where each channel is said to be.

        Returns
        -------
        ndarray, (d, 2)
            In micrometres.
        """
        return self.positions


def read_kilosort(folder: str | Path) -> KilosortFolder:
    """Read a folder of Kilosort or phy, with the raw file that its ``params.py`` names.

    Parameters
    ----------
    folder : str or Path
        It holds ``params.py``, ``channel_map.npy`` and ``channel_positions.npy``. Nothing in it is
        run.

    Returns
    -------
    KilosortFolder
        What `check_probe` and `match_probe` take.

    Examples
    --------
    >>> from symlift.ephys import check_probe, read_kilosort
    >>> check_probe(read_kilosort("kilosort4")).verdict  # doctest: +SKIP
    """
    folder = Path(folder)
    for name in (_MAP, _POSITIONS, _PARAMETERS):
        if not (folder / name).is_file():
            raise InputError(f"{folder} has no {name}: give a folder that Kilosort or phy wrote")
    channels, positions = (_array(folder / name) for name in (_MAP, _POSITIONS))
    channels = channels.ravel()
    if not len(channels):
        raise InputError(f"{folder / _MAP} names no channels: give a run that has some")
    if positions.shape != (len(channels), 2):
        raise InputError(
            f"{folder / _POSITIONS} has the shape {positions.shape}, but {_MAP} has"
            f" {len(channels)} channels: they have to be of one run"
        )
    if not (np.abs(positions) < _LARGEST).all():
        raise InputError(f"{folder / _POSITIONS} holds NaN or infinity: write the positions anew")
    known = _assigned(folder / _PARAMETERS)
    raw = _raw_file(folder, known)
    count, rate = _number(known, "n_channels_dat"), _number(known, "sample_rate")
    if count < 1 or count != int(count) or not rate > 0:
        raise InputError(f"{folder / _PARAMETERS}: n_channels_dat or sample_rate is not possible")
    if channels.dtype.kind not in "iuf" or (channels != np.rint(channels)).any():
        raise InputError(f"{folder / _MAP} does not hold numbers of channels")
    if channels.min() < 0 or channels.max() >= count or len(np.unique(channels)) < len(channels):
        raise InputError(
            f"{folder / _MAP} names channels twice, or such as are not among the {int(count)} of"
            f" {raw.name!r}"
        )
    samples = _mapped(raw, _kind(folder, known), _number(known, "offset", 0.0), int(count))
    ids = channels.astype(np.int64).tolist()
    return KilosortFolder(folder, samples, rate, ids, positions.astype(np.float64))


def _kind(folder: Path, known: dict[str, object]) -> np.dtype[Any]:
    """The type of a sample: of objects, the raw file's bytes would be taken for addresses."""
    named = known.get("dtype", "int16")
    try:
        kind = np.dtype(named) if isinstance(named, str) else None
    except (TypeError, ValueError, SyntaxError):
        kind = None
    if kind is None or not is_numeric(kind):
        raise InputError(
            f"{folder / _PARAMETERS}: dtype {named!r:.60} is no type of numbers: give one such as"
            " 'int16'"
        )
    return kind


def _mapped(raw: Path, kind: np.dtype[Any], offset: float, count: int) -> NDArray:
    """The raw file from ``offset`` on, in rows of ``count`` samples."""
    size = raw.stat().st_size
    if not 0 <= offset <= size or offset != int(offset):
        raise InputError(
            f"{_PARAMETERS}: offset {offset:g} does not lie in {raw.name!r}: give bytes to skip"
        )
    rows = (size - int(offset)) // (kind.itemsize * count)
    if rows < 1:
        raise InputError(f"{raw} is empty: give the recording that was sorted")
    return np.memmap(raw, dtype=kind, mode="r", offset=int(offset), shape=(rows, count))


def _array(path: Path) -> NDArray:
    try:
        return read_array(path)
    except UNREADABLE as error:
        raise InputError(f"{path} is no array of numbers: write it anew with numpy") from error


def _assigned(path: Path) -> dict[str, object]:
    """Names and literal values that a file of Python assigns; nothing is run."""
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            tree = ast.parse(file.read(_MOST_BYTES).decode("utf-8"))
    # what is nested too deeply is a MemoryError or a RecursionError
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise InputError(f"{path} is not what phy writes: name = value in each line") from error
    values: dict[str, object] = {}
    for line in tree.body:
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            with contextlib.suppress(ValueError, TypeError, MemoryError, RecursionError):
                values[line.targets[0].id] = ast.literal_eval(line.value)
    return values


def _number(known: dict[str, object], name: str, usual: float | None = None) -> float:
    value = known.get(name, usual)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < _LARGEST:
        raise InputError(f"{_PARAMETERS} has no number {name}: add a line such as {name} = 1")
    return float(value)


def _raw_file(folder: Path, known: dict[str, object]) -> Path:
    named = known.get("dat_path")
    first = named[0] if isinstance(named, list | tuple) and len(named) == 1 else named
    if not isinstance(first, str):
        raise InputError(f"{folder / _PARAMETERS} names no raw file, or several: dat_path = 'FILE'")
    raw = Path(first) if Path(first).is_absolute() else folder / first
    try:
        exists = raw.is_file()
    except OSError:  # a name that no file can have
        exists = False
    if not exists:
        escaped = repr(str(raw))[1:-1][:300]  # the name comes from the file
        raise InputError(f"{escaped} does not exist: {_PARAMETERS} names it as dat_path")
    return raw


def probe_dictionary(recording: KilosortFolder, positions: NDArray) -> dict[str, object]:
    """Kilosort's probe, as its .json: chanMap, xc, yc, kcoords, n_chan."""
    return {
        "chanMap": [int(i) for i in recording.channel_ids],
        "xc": [float(x) for x in positions[:, 0]],
        "yc": [float(y) for y in positions[:, 1]],
        "kcoords": [0.0] * len(positions),
        "n_chan": int(recording.samples.shape[1]),
    }


def replace_kilosort_map(recording: KilosortFolder, positions: NDArray, folder: Path) -> None:
    """The repaired map in a folder, new or not: all its files, or none."""
    made = not folder.exists()
    try:
        folder.mkdir(exist_ok=True)
        names = [name for name in (_MAP, _POSITIONS, _PROBE) if os.path.lexists(folder / name)]
        with replace_files(folder / _PROBE, names) as new:
            _write_map(recording, positions, new)
    except BaseException as error:
        if made:
            with contextlib.suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise write_error(folder, error, "give another name") from None
        raise


def _write_map(recording: KilosortFolder, positions: NDArray, folder: Path) -> None:
    """The repaired map in a folder that exists: channel_map.npy, channel_positions.npy, and
    Kilosort's probe.json.
    """
    kind = _array(recording.folder / _POSITIONS).dtype
    for name, values in (
        (_MAP, _array(recording.folder / _MAP)),
        (_POSITIONS, np.asarray(positions).astype(kind)),
    ):
        with write_atomically(folder / name) as temporary, temporary.open("wb") as file:
            np.save(file, values)
    with write_atomically(folder / _PROBE) as temporary:
        text = json.dumps(probe_dictionary(recording, positions), allow_nan=False)
        temporary.write_text(text + "\n", encoding="utf-8")
