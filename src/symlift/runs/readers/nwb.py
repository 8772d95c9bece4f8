"""Neurodata Without Borders (``.nwb``, extra ``data``): binned spikes of units, or a time series.

The file is read as HDF5: the standard fixes which group holds what, so no schema has to be loaded.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError
from symlift.runs.readers.hdf5 import check_dataset, datasets_of, open_hdf5, read_dataset, within
from symlift.runs.readers.options import ReadOptions, listed
from symlift.runs.readers.table import SeveralError, Sheet
from symlift.storage.bounds import check_size

__all__ = ["read_nwb"]

_BIN = 0.1
_SERIES = ("acquisition/", "processing/", "stimulus/", "analysis/")


def read_nwb(path: Path, options: ReadOptions) -> Sheet:
    with open_hdf5(path) as file:
        contents = _contents(path, file)
        if not contents:
            raise InputError(
                f"{path} holds neither units with spike times nor time series: choose another file"
            )
        sizes = [f"{name} ({what})" for name, (what, _) in contents.items()]
        key = options.key
        if key is None and len(contents) == 1:
            key = next(iter(contents))
        if key is None:
            raise SeveralError(path, "recording", sizes)
        wanted = key.strip("/").removesuffix("/data")
        matching = [name for name in contents if name == wanted] or [
            name for name in contents if name.rpartition("/")[2] == wanted
        ]
        if len(matching) != 1:
            raise InputError(
                f"{path} has no recording {key!r}: choose one with --key, from {listed(sizes)}"
            )
        item = contents[matching[0]][1]
        if matching[0] == "units":
            return _counts(
                path, item, _BIN if options.bin is None else options.bin, options.bin is None
            )
        if options.bin is not None:
            raise InputError(
                f"{path}, {key} is no list of spike times: leave out --bin, which is for --key"
                " units"
            )
        rows = read_dataset(path, item) if item.ndim != 1 else read_dataset(path, _Column(item))
        return Sheet.of(rows)


class _Column:
    """A data set with one axis, as one with two."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset
        self.shape = (*dataset.shape, 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dataset, name)

    def __getitem__(self, part: Any) -> NDArray:
        values: NDArray = np.asarray(self.dataset[part])
        return values.reshape(self.shape)


def _contents(path: Path, file: Any) -> dict[str, tuple[str, Any]]:
    """What can be read: (its size in words, the group or data set) by name."""
    contents: dict[str, tuple[str, Any]] = {}
    units = within(path, file, "units")
    if units is not None and "spike_times" in units and "spike_times_index" in units:
        ends = within(path, units, "spike_times_index")
        contents["units"] = (f"spikes of {len(ends)} units", units)
    for name, item in datasets_of(path, file).items():
        series = name[1:].removesuffix("/data")
        if name.endswith("/data") and series.startswith(_SERIES):
            contents[series] = (" x ".join(str(s) for s in item.shape), item)
    return contents


def _counts(path: Path, units: Any, width: float, unsaid: bool) -> Sheet:
    """Spikes of each unit in bins of ``width`` seconds, from the first spike of all to the last."""
    lists = []
    for name in ("spike_times", "spike_times_index"):
        item = within(path, units, name)
        if item.ndim != 1 or item.dtype.kind not in "fiu":
            raise ValueError(f"{name} is no list of numbers")
        check_dataset(path, item, "the spike times")
        lists.append(np.asarray(item[()]))
    times, ends = lists[0].astype(np.float64), lists[1].astype(np.int64)
    if len(ends) == 0 or len(times) == 0:
        raise InputError(f"{path} has units, but no spikes: choose a time series with --key")
    if (
        np.any(np.diff(ends, prepend=0) < 0)
        or ends[-1] != len(times)
        or not np.isfinite(times).all()
    ):
        raise ValueError("spike times and their index do not agree")
    first, last = float(times.min()), float(times.max())
    bins = int(min((last - first) / width, 1e15)) + 1
    check_size(
        path, bins * len(ends) * 8, what=f"fewer, wider bins than {bins:,} (--bin), or the counts"
    )
    unit = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    at = np.minimum(((times - first) / width).astype(np.int64), bins - 1)
    rows = (
        np.bincount(at * len(ends) + unit, minlength=bins * len(ends))
        .reshape(bins, len(ends))
        .astype(np.float64)
    )
    names = tuple(f"unit {label}" for label in _labels(path, units, len(ends)))
    asked = "; --bin changes that" if unsaid else ""
    note = (
        f"{len(times):,} spikes of {len(ends)} units are counted in {bins:,} bins of {width:g}"
        f" s{asked}"
    )
    return Sheet.of(rows, names, (note,))


def _labels(path: Path, units: Any, count: int) -> list[str]:
    """Return the ids of the units; their numbers, where ids are no whole numbers or short words.

    Strings of any length are left out: thousands of entries may name one that is huge.
    """
    item = within(path, units, "id")
    if item is None or item.shape != (count,) or item.dtype.kind not in "iuS":
        return [str(i) for i in range(count)]
    check_dataset(path, item, "the ids")
    return [v.decode("utf-8", "replace") if isinstance(v, bytes) else str(v) for v in item[()]]
