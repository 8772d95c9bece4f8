"""Probes of SpikeInterface recordings: recovered, matched, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.ephys.check import find_exchanges
from symlift.ephys.traces import parts_of
from symlift.ephys.wiring import Channels, match_contacts, read_channels
from symlift.errors import InputError
from symlift.solvers.contract import Progress, no_progress

if TYPE_CHECKING:
    from probeinterface import Probe

__all__ = ["ProbeCheck", "ProbeMatch", "check_probe", "match_probe", "recover_probe"]

# confidence that a map without exchanges needs to be called right
_CONVINCED = 0.5


@dataclass(frozen=True)
class ProbeMatch:
    """A probe with its wiring, and how sure the contact of each channel is.

    Parameters
    ----------
    probe : Probe
        The probe; ``device_channel_indices`` number the channels as ``recording.channel_ids`` does.
    confidence : ndarray, (d,)
        From 0 to 1 for each channel of the recording; 0 for those without signal, which get the
        contacts that are left. It compares other contacts of a channel, alone and together with
        its neighbours, its row or the whole probe.

    Examples
    --------
    >>> from symlift.ephys import match_probe
    >>> match = match_probe(recording, probe)  # doctest: +SKIP
    >>> match.probe.device_channel_indices  # doctest: +SKIP
    """

    probe: Probe
    confidence: NDArray[np.float64]


@dataclass(frozen=True)
class ProbeCheck:
    """What a check of the map found; channels are named by their ids.

    Parameters
    ----------
    ok : bool
        Nothing is exchanged, and the data would show it if it were.
    swapped : tuple
        Groups of channels that have each other's contacts, two in most cases.
    dead : tuple
        Channels without signal, flat or with the usual noise.
    duplicated : tuple
        Pairs of a channel and the one that it repeats.
    floating : tuple
        Channels without signal that have more noise than others.
    confidence : float
        From 0 to 1, that ``swapped`` is complete.
    swap_confidence : tuple
        From 0 to 1, for each entry of ``swapped``.

    Examples
    --------
    >>> from symlift.ephys import ProbeCheck
    >>> check = ProbeCheck(False, (("ch3", "ch7"),), (), (), (), 0.98, (0.99,))
    >>> check.swapped
    (('ch3', 'ch7'),)
    """

    ok: bool
    swapped: tuple[tuple[Any, ...], ...]
    dead: tuple[Any, ...]
    duplicated: tuple[tuple[Any, Any], ...]
    floating: tuple[Any, ...]
    confidence: float
    swap_confidence: tuple[float, ...] = field(default=())


def recover_probe(
    recording: Any,
    grid: Sequence[int] | str,
    pitch: float | Sequence[float] | None = None,
    *,
    progress: Progress = no_progress,
) -> Probe:
    """Find where the channels of a recording are, on a line or a rectangle of contacts.

    Parameters
    ----------
    recording : BaseRecording
        A SpikeInterface recording, as it is or filtered.
    grid : tuple of int or str
        Contacts along each axis: ``(32,)``, ``(8, 8)`` or ``"8x8"``.
    pitch : float or sequence, optional
        Distance of contacts in micrometres, one for all axes or one for each; steps without it.
    progress : callable, optional
        Called with the stage and the share that is done.

    Returns
    -------
    Probe
        Contacts and their channels, up to translations, rotations and mirrorings that the grid has.

    Examples
    --------
    >>> from spikeinterface.core import generate_ground_truth_recording  # doctest: +SKIP
    >>> recording, _ = generate_ground_truth_recording(durations=[60.0])  # doctest: +SKIP
    >>> from symlift.ephys import recover_probe
    >>> probe = recover_probe(recording, grid=(4,), pitch=20.0)  # doctest: +SKIP
    """
    from probeinterface import Probe

    shape = Grid.parse(grid).shape if isinstance(grid, str) else tuple(int(n) for n in grid)
    if len(shape) not in (1, 2):
        raise InputError(
            f"the grid {'x'.join(map(str, shape))} has {len(shape)} axes: probes have one or two"
        )
    steps = np.broadcast_to(
        np.asarray(1.0 if pitch is None else pitch, dtype=np.float64), len(shape)
    )
    if not (np.isfinite(steps).all() and (steps > 0).all()):
        raise InputError(
            f"pitch {pitch} is not a distance: give micrometres, one number or one for each axis"
        )
    at = Grid(shape).indices() * steps
    # a line runs along y, as probes do
    positions = np.c_[np.zeros(len(at)), at] if len(shape) == 1 else at
    probe = Probe(ndim=2, si_units="um")
    probe.set_contacts(
        positions=positions, shapes="circle", shape_params={"radius": float(steps.min()) / 4}
    )
    return match_probe(recording, probe, progress=progress).probe


def match_probe(recording: Any, probe: Probe, *, progress: Progress = no_progress) -> ProbeMatch:
    """Which channel of a recording is on which contact of a probe, from the traces alone.

    Parameters
    ----------
    recording : BaseRecording
        A SpikeInterface recording, as it is or filtered.
    probe : Probe
        The geometry; its wiring, if it has one, is not used.
    progress : callable, optional
        Called with the stage and the share that is done.

    Returns
    -------
    ProbeMatch
        A copy of the probe, wired; up to motions under which the geometry looks the same.

    Examples
    --------
    >>> from spikeinterface.core import generate_ground_truth_recording  # doctest: +SKIP
    >>> recording, _ = generate_ground_truth_recording(durations=[60.0])  # doctest: +SKIP
    >>> from symlift.ephys import match_probe
    >>> wired = match_probe(recording, recording.get_probe()).probe  # doctest: +SKIP
    """
    positions = _positions(probe)
    channels = read_channels(parts_of(recording), float(recording.sampling_frequency), progress)
    wiring = match_contacts(channels, positions, progress=progress)
    wired = probe.copy()
    device = np.full(len(positions), -1, dtype=np.int64)
    on = np.flatnonzero(wiring.contact >= 0)
    device[wiring.contact[on]] = on
    # `recording.set_probe` wants a contact for every channel: those without signal get what is
    # left, with confidence 0
    rest, free = np.flatnonzero(wiring.contact < 0), np.flatnonzero(device < 0)
    count = min(len(rest), len(free))
    device[free[:count]] = rest[:count]
    wired.set_device_channel_indices(device)
    return ProbeMatch(wired, wiring.confidence)


def check_probe(
    recording: Any, probe: Probe | None = None, *, progress: Progress = no_progress
) -> ProbeCheck:
    """Check whether the map of a recording agrees with its traces.

    Parameters
    ----------
    recording : BaseRecording
        A SpikeInterface recording, as it is or filtered.
    probe : Probe, optional
        A wired probe to check instead of the recording's own.
    progress : callable, optional
        Called with the stage and the share that is done.

    Returns
    -------
    ProbeCheck
        Channels that are exchanged, dead, floating or repeated.

    Examples
    --------
    >>> from spikeinterface.core import generate_ground_truth_recording  # doctest: +SKIP
    >>> recording, _ = generate_ground_truth_recording(durations=[60.0])  # doctest: +SKIP
    >>> from symlift.ephys import check_probe
    >>> check_probe(recording).swapped  # doctest: +SKIP
    ()
    """
    positions = _channel_positions(recording, probe)
    channels = read_channels(parts_of(recording), float(recording.sampling_frequency), progress)
    exchanges, sure = find_exchanges(channels, positions, np.arange(len(positions)), progress)
    ids = np.asarray(recording.channel_ids).tolist()

    def names(reason: str) -> tuple[Any, ...]:
        return tuple(ids[i] for i in channels.which(reason))

    return ProbeCheck(
        ok=not exchanges and sure >= _CONVINCED,
        swapped=tuple(tuple(ids[i] for i in one.channels) for one in exchanges),
        dead=names("dead"),
        duplicated=_copies(channels, ids),
        floating=names("floating"),
        confidence=sure,
        swap_confidence=tuple(one.confidence for one in exchanges),
    )


def _copies(channels: Channels, ids: list[Any]) -> tuple[tuple[Any, Any], ...]:
    return tuple((ids[i], ids[channels.twin[i]]) for i in channels.which("duplicate"))


def _positions(probe: Probe) -> NDArray[np.float64]:
    positions = np.asarray(probe.contact_positions, dtype=np.float64)
    if len(positions) < 4:
        raise InputError(
            f"the probe has {len(positions)} contacts: four are the fewest that have an order"
        )
    if len(np.unique(positions, axis=0)) < len(positions):
        raise InputError("two contacts of the probe are at the same position: give each its own")
    return positions


def _channel_positions(recording: Any, probe: Probe | None) -> NDArray[np.float64]:
    """(d, 2): where each channel is said to be."""
    count = len(recording.channel_ids)
    if probe is None:
        if not recording.has_probe():
            raise InputError("the recording has no probe: give one, or match or recover it")
        return np.asarray(recording.get_channel_locations(), dtype=np.float64)
    device = probe.device_channel_indices
    if device is None:
        raise InputError(
            "the probe is not wired (no device_channel_indices): match it to the recording instead"
        )
    device = np.asarray(device)
    if sorted(device[device >= 0].tolist()) != list(range(count)):
        raise InputError(
            f"the probe is not wired to the {count} channels of the recording: match it instead"
        )
    positions = np.empty((count, 2))
    positions[device[device >= 0]] = _positions(probe)[device >= 0]
    return positions
