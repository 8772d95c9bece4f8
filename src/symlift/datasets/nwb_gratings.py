"""Responses to gratings, read from public NWB sessions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from symlift.datasets.observations import Observations
from symlift.datasets.recordings import angles_of, z_scores
from symlift.errors import InputError
from symlift.runs.readers.hdf5 import check_dataset, open_hdf5, within
from symlift.storage.bounds import check_size

__all__ = ["load_nwb_gratings"]

Unit = Literal["counts", "rates", "z-scores"]
# filter of the data set's own tools for the units of a probe, where the columns exist
QUALITY = {
    "isi_violations": ("<", 0.5),
    "amplitude_cutoff": ("<", 0.1),
    "presence_ratio": (">", 0.9),
}
_TABLES = "_presentations"
#: texts that are read at a time
_TEXTS = 16


def load_nwb_gratings(
    path: str | os.PathLike[str],
    structure: str = "VISp",
    stimulus: str = "static_gratings",
    spatial_frequency: float | None = 0.04,
    window: float = 0.25,
    latency: float = 0.08,
    unit: Unit = "z-scores",
    most_units: int | None = 110,
) -> Observations:
    """Load responses to gratings from a public Allen Visual Coding Neuropixels session (NWB 2).

    There is one row per presentation.  Units have quality "good", lie in ``structure`` and pass the
    data set's own filter.  ``latent`` is the orientation, doubled: its period is 180 degrees.  Only
    h5py is needed (extra ``data``).

    Parameters
    ----------
    path : str or path-like
        The NWB file.
    structure : str, default="VISp"
        Brain structure of the units.
    stimulus : str, default="static_gratings"
        Stimulus; presentations without an orientation are left out.
    spatial_frequency : float or None, default=0.04
        Spatial frequency of the presentations in cycles per degree; None for all.
    window : float, default=0.25
        Duration in seconds in which spikes are counted.
    latency : float, default=0.08
        Start of the window after the onset, in seconds.
    unit : {"z-scores", "counts", "rates"}, default="z-scores"
        Counts, rates in hertz, or z-scores relative to spontaneous activity (`z_scores`).
    most_units : int or None, default=110
        Of more units, those whose responses vary most are kept; None for all.

    Returns
    -------
    Observations
        Responses, and the doubled orientation in radians as ``latent``.

    Raises
    ------
    InputError
        If the file cannot be read or lacks what is needed, or if a parameter is out of range.

    References
    ----------
    "Blind Recovery of Latent Domains via Unsupervised Symmetry Discovery", section "Learning
    rotational symmetry from mouse visual cortex signals".

    Examples
    --------
    >>> load_nwb_gratings("session_732592105.nwb").X.shape[1]  # doctest: +SKIP
    110
    """
    if unit not in get_args(Unit):
        raise InputError(f"unit {unit!r} is unknown: use one of {', '.join(get_args(Unit))}")
    if not window > 0:
        raise InputError(f"window = {window} s must be positive")
    if most_units is not None and most_units < 2:
        raise InputError(f"most_units = {most_units}: keep at least 2, or None for all")
    source = Path(path)
    if not source.is_file():
        raise InputError(f"{source} does not exist: give an NWB file")
    try:
        with open_hdf5(source) as opened:
            file = _Group(source, opened)
            trains = _spike_trains(file, source, structure)
            onsets, degrees = _presentations(file, source, stimulus, spatial_frequency)
            counts = _counts(trains, onsets + latency, window)
            spontaneous = _spontaneous_rates(file, source, trains) if unit == "z-scores" else None
    except InputError:
        raise
    # what h5py says of files that are none, and numpy of tables that do not fit each other
    except (OSError, LookupError, ValueError, TypeError, AttributeError, RuntimeError, MemoryError):
        raise InputError(
            f"{source} is not an HDF5 file, or is damaged: get the NWB file again"
        ) from None
    X = counts / window if unit == "rates" else counts
    if spontaneous is not None:
        X = z_scores(counts, spontaneous * window)
    if most_units is not None and X.shape[1] > most_units:
        X = X[:, np.sort(np.argsort(-X.var(axis=0), kind="stable")[:most_units])]
    return angles_of(
        X, 2 * np.deg2rad(np.mod(degrees, 180.0)), f"{source.stem}-{structure}-{stimulus}"
    )


class _Group:
    """A group of the file, in which links are not followed and sizes are checked."""

    def __init__(self, source: Path, group: Any) -> None:
        self.source, self.group = source, group

    def __contains__(self, name: str) -> bool:
        return name in self.group

    def __iter__(self) -> Iterator[str]:
        return iter(self.group)

    def inside(self, *names: str) -> _Group | None:
        """The group that has this path; None where there is none."""
        group = self.group
        for name in names:
            group = within(self.source, group, name)
            if group is None:
                return None
        return _Group(self.source, group)

    def dataset(self, name: str) -> Any:
        """A column of a table, not read yet."""
        item = within(self.source, self.group, name)
        check_dataset(self.source, item, f"the column {name}")
        return item

    def column(self, name: str) -> NDArray:
        """A column of a table: numbers or texts."""
        item = self.dataset(name)
        if item.dtype.kind != "O":
            return np.asarray(item[()])
        # any number of entries may be one text that is stored once
        texts: list[Any] = []
        size = 0
        for start in range(0, len(item), _TEXTS):
            texts += item[start : start + _TEXTS].tolist()
            size += sum(map(len, texts[start:]))
            check_size(self.source, size, self.source.stat().st_size, what="shorter texts")
        return np.array(texts, dtype=object)


def _names(values: Any) -> list[str]:
    return [v.decode() if isinstance(v, bytes) else str(v) for v in values]


def _spike_trains(file: _Group, source: Path, structure: str) -> list[NDArray[np.float64]]:
    """Spike times of each good unit whose peak channel lies in ``structure``."""
    units = file.inside("units")
    if units is None or "spike_times" not in units or "spike_times_index" not in units:
        raise InputError(
            f"{source} has no units table with spike times: it holds"
            f" {', '.join(sorted(file)) or 'nothing'}"
        )
    electrodes = file.inside("general", "extracellular_ephys", "electrodes")
    if electrodes is None or "location" not in electrodes or "peak_channel_id" not in units:
        raise InputError(
            f"{source} does not say where its units are: it needs electrodes with a location and"
            " peak_channel_id"
        )
    places = dict(
        zip(electrodes.column("id").tolist(), _names(electrodes.column("location")), strict=True)
    )
    where = np.array([places.get(int(channel), "") for channel in units.column("peak_channel_id")])
    good = np.ones(len(where), dtype=bool)
    if "quality" in units:
        good &= np.array(_names(units.column("quality"))) == "good"
    for column, (relation, limit) in QUALITY.items():
        if column in units:
            values = np.asarray(units.column(column), dtype=np.float64)
            good &= values < limit if relation == "<" else values > limit
    chosen = np.flatnonzero(good & (where == structure))
    if not len(chosen):
        structures = ", ".join(sorted(set(where[good].tolist()) - {""})) or "no structure"
        raise InputError(
            f"{source} has no good units in {structure!r}: there are some in {structures}"
        )
    if len(chosen) < 2:
        raise InputError(
            f"{source} has one good unit in {structure!r}: a ring needs several; choose another"
            " structure"
        )
    ends, times = units.column("spike_times_index").astype(np.int64), units.dataset("spike_times")
    starts = np.concatenate([[0], ends[:-1]])
    return [np.sort(times[starts[i] : ends[i]]) for i in chosen]


def _presentations(
    file: _Group, source: Path, stimulus: str, spatial_frequency: float | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Onset and orientation in degrees of each presentation that has one."""
    tables = file.inside("intervals")
    table = None if tables is None else tables.inside(stimulus + _TABLES)
    if table is None or "orientation" not in table:
        gratings = sorted(
            name.removesuffix(_TABLES)
            for name in tables or ()
            if "orientation" in (file.inside("intervals", name) or ())
        )
        raise InputError(
            f"{source} has no presentations of {stimulus!r}: gratings there are"
            f" {', '.join(gratings) or 'none'}"
        )
    onsets, degrees = _numbers(table, "start_time"), _numbers(table, "orientation")
    shown = np.isfinite(degrees)  # blank sweeps have none
    if spatial_frequency is not None and "spatial_frequency" in table:
        frequencies = _numbers(table, "spatial_frequency")
        wanted = shown & np.isclose(frequencies, spatial_frequency)
        if not wanted.any():
            known = (
                ", ".join(
                    f"{f:g}" for f in np.unique(frequencies[shown & np.isfinite(frequencies)])
                )
                or "none"
            )
            raise InputError(
                f"{source} has no {stimulus} of spatial frequency {spatial_frequency:g}: there are"
                f" {known}"
            )
        shown = wanted
    if not shown.any():
        raise InputError(
            f"{source} has no {stimulus} with an orientation among its {len(onsets)} presentations"
        )
    return onsets[shown], degrees[shown]


def _numbers(table: _Group, name: str) -> NDArray[np.float64]:
    """Column of numbers; some files store it as text with "null" for a missing one."""
    values = table.column(name)
    if values.dtype.kind in "OSU":
        return np.array([_number(text) for text in _names(values)])
    return np.asarray(values, dtype=np.float64)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _counts(
    trains: list[NDArray[np.float64]], starts: NDArray, length: float | NDArray
) -> NDArray[np.float64]:
    """Spikes of each train in [start, start + length): (starts, trains)."""
    columns = [np.searchsorted(t, starts + length) - np.searchsorted(t, starts) for t in trains]
    return np.stack(columns, axis=1).astype(np.float64)


def _spontaneous_rates(
    file: _Group, source: Path, trains: list[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Mean rate of each unit in hertz while nothing was shown."""
    tables = file.inside("intervals")
    table = None if tables is None else tables.inside("spontaneous" + _TABLES)
    if table is None:
        intervals = ", ".join(sorted(name.removesuffix(_TABLES) for name in tables or ())) or "none"
        raise InputError(
            f"{source} has no spontaneous activity, which z-scores need (intervals: {intervals}):"
            " use unit='counts'"
        )
    starts, stops = _numbers(table, "start_time"), _numbers(table, "stop_time")
    seconds = float(np.sum(stops - starts))
    if not seconds > 0:
        raise InputError(f"{source} has spontaneous intervals of no length: use unit='counts'")
    return _counts(trains, starts, stops - starts).sum(axis=0) / seconds
