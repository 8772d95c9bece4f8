"""Probes of SpikeInterface recordings: recovered, matched, checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from symlift.core.grid import Grid
from symlift.ephys.channels import Channels, read_channels
from symlift.ephys.check import Exchange
from symlift.ephys.claimed import (
    ClaimedMap,
    claimed_map,
    contacts_of,
    seconds_of_window,
    shanks_of,
    wired_contacts,
)
from symlift.ephys.judged import FieldCriterion, JudgedMap, judge_channels, rejudged
from symlift.ephys.results import ProbeCheck, ProbeMatch, ProbeRank, WindowCheck
from symlift.ephys.traces import parts_of, seconds_in
from symlift.ephys.wiring import Wiring, match_contacts
from symlift.errors import InputError
from symlift.maps.judge import NO_ANCHORS, TEMPERATURE, Anchors
from symlift.maps.verdict import CONVINCED, MapFault, MapVerdict, named_faults
from symlift.maps.whole import whole_motions
from symlift.solvers.contract import Progress, no_progress

if TYPE_CHECKING:
    from probeinterface import Probe

__all__ = ["check_probe", "match_probe", "recover_probe"]


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


@overload
def match_probe(
    recording: Any,
    probe: Sequence[Probe],
    *,
    anchors: Mapping[Any, int] | None = None,
    progress: Progress = no_progress,
) -> tuple[ProbeRank, ...]: ...


@overload
def match_probe(
    recording: Any,
    probe: Probe,
    *,
    anchors: Mapping[Any, int] | None = None,
    progress: Progress = no_progress,
) -> ProbeMatch: ...


def match_probe(
    recording: Any,
    probe: Probe | Sequence[Probe],
    *,
    anchors: Mapping[Any, int] | None = None,
    progress: Progress = no_progress,
) -> ProbeMatch | tuple[ProbeRank, ...]:
    """Find the contact of each channel, from the traces alone, or rank several layouts.

    Parameters
    ----------
    recording : BaseRecording
        A SpikeInterface recording, as it is or filtered.
    probe : Probe or sequence of Probe
        The geometry; its wiring, if it has one, is not used. Of several layouts each is taken as
        it is wired, and with the faults that maps have: mirrored, turned or exchanged in parts,
        rows and columns exchanged. One that is not wired is wired from nothing.
    anchors : mapping, optional
        Contacts that are known: the id of a channel and the number of its contact.
    progress : callable, optional
        Called with the stage and the share that is done.

    Returns
    -------
    ProbeMatch or tuple of ProbeRank
        A copy of the probe, wired; up to motions under which the geometry looks the same. Of
        several layouts all of them, the best first.

    Examples
    --------
    >>> from spikeinterface.core import generate_ground_truth_recording  # doctest: +SKIP
    >>> recording, _ = generate_ground_truth_recording(durations=[60.0])  # doctest: +SKIP
    >>> from symlift.ephys import match_probe
    >>> wired = match_probe(recording, recording.get_probe()).probe  # doctest: +SKIP
    """
    if isinstance(probe, Sequence):
        return _ranked(recording, probe, anchors, progress)
    positions = contacts_of(probe)
    channels = read_channels(parts_of(recording), float(recording.sampling_frequency), progress)
    wiring = match_contacts(channels, positions, progress=progress)
    known = _anchors(anchors, recording, positions)
    wiring = rejudged(channels, wiring, positions, shanks_of(probe), known)
    return ProbeMatch(_wired(probe, wiring.contact), wiring.confidence)


def _wired(probe: Probe, contact: NDArray[np.int64]) -> Probe:
    """A copy of the probe with each channel on its contact, and those without on what is left."""
    wired = probe.copy()
    device = np.full(len(contacts_of(probe)), -1, dtype=np.int64)
    on = np.flatnonzero(contact >= 0)
    device[contact[on]] = on
    # `recording.set_probe` wants a contact for every channel: those without signal get what is
    # left, with confidence 0
    rest, free = np.flatnonzero(contact < 0), np.flatnonzero(device < 0)
    count = min(len(rest), len(free))
    device[free[:count]] = rest[:count]
    wired.set_device_channel_indices(device)
    return wired


def _ranked(
    recording: Any,
    layouts: Sequence[Probe],
    anchors: Mapping[Any, int] | None,
    progress: Progress,
) -> tuple[ProbeRank, ...]:
    if not layouts:
        raise InputError("there is no layout to rank: give one probe or more")
    channels = read_channels(parts_of(recording), float(recording.sampling_frequency), progress)
    ids = np.asarray(recording.channel_ids).tolist()
    ranks = []
    for number, layout in enumerate(layouts):
        progress(f"layout {number}", 0.5 + 0.5 * number / len(layouts))
        at = contacts_of(layout)
        known = _anchors(anchors, recording, at)
        if layout.device_channel_indices is None:
            wiring = match_contacts(channels, at)
            wiring = rejudged(channels, wiring, at, shanks_of(layout), known)
            probe = _wired(layout, wiring.contact)
        else:
            probe = layout
        contact = wired_contacts(probe, len(ids))
        judged = judge_channels(
            channels, at[contact], _shanks_at(probe, contact), (), known, match=False
        )
        new = _nearest_contacts(at, judged.positions)
        ranks.append(
            ProbeRank(
                number,
                _wired(layout, new),
                (*named_faults(judged.judgement.faults, ids), *_swaps(judged.exchanges, ids)),
                0.0,
                FieldCriterion(channels, len(ids)).cost(judged.positions),
            )
        )
    least = min(one.cost for one in ranks)
    weight = np.exp(-np.array([one.cost - least for one in ranks]) / TEMPERATURE)
    weight /= weight.sum()
    ranks = [replace(one, probability=float(w)) for one, w in zip(ranks, weight, strict=True)]
    # of layouts that explain it equally well, the one that needs the fewest changes
    return tuple(sorted(ranks, key=lambda one: (round(one.cost, 3), len(one.faults), one.number)))


def _swaps(exchanges: Sequence[Exchange], ids: Sequence[Any]) -> Iterator[MapFault]:
    for one in exchanges:
        names = tuple(ids[i] for i in one.channels)
        words = f"channels {' '.join(map(str, names))} are swapped"
        yield MapFault("swapped", words, names, one.confidence, 0.0)


def check_probe(
    recording: Any,
    probe: Probe | None = None,
    *,
    layouts: Sequence[Probe] = (),
    anchors: Mapping[Any, int] | None = None,
    windows: str | float | None = None,
    progress: Progress = no_progress,
) -> ProbeCheck:
    """Check whether the map of a recording agrees with its traces.

    Parameters
    ----------
    recording : BaseRecording
        A SpikeInterface recording, as it is or filtered, or what `read_kilosort` returns.
    probe : Probe, optional
        A wired probe to check instead of the recording's own.
    layouts : sequence of Probe, optional
        Other wired probes that the recording may have been made with.
    anchors : mapping, optional
        Contacts that are known: the id of a channel and the number of its contact.
    windows : str or float, optional
        Check parts of this length, such as ``"1min"`` or seconds: the result is that of the first
        part whose map is wrong, and ``changed`` says which that is.
    progress : callable, optional
        Called with the stage and the share that is done.

    Returns
    -------
    ProbeCheck
        Blocks of channels that are reversed, shifted, exchanged or turned, contacts that are
        counted in another order, channels that are exchanged, without spikes, dead, floating or
        repeated; and what the traces cannot tell.

    Examples
    --------
    >>> from spikeinterface.core import generate_ground_truth_recording  # doctest: +SKIP
    >>> recording, _ = generate_ground_truth_recording(durations=[60.0])  # doctest: +SKIP
    >>> from symlift.ephys import check_probe
    >>> check_probe(recording).swapped  # doctest: +SKIP
    ()
    """
    claim = claimed_map(recording, probe)
    ids = np.asarray(recording.channel_ids).tolist()
    others = [
        (_layout_name(one, k), contacts_of(one)[wired_contacts(one, len(ids))])
        for k, one in enumerate(layouts)
    ]
    known = _anchors(anchors, recording, claim.contacts)

    def within(span: tuple[float, float]) -> ProbeCheck:
        channels = read_channels(
            parts_of(recording, span), float(recording.sampling_frequency), progress
        )
        judged = judge_channels(
            channels, claim.positions, claim.shanks, others, known, progress=progress
        )
        return _check_of(channels, judged, claim, known, ids)

    if windows is None:
        return within((0.0, np.inf))
    length = seconds_of_window(windows)
    count = max(1, round(seconds_in(recording) / length))
    spans = [(k * length, (k + 1) * length if k + 1 < count else np.inf) for k in range(count)]
    checks = [within(span) for span in spans]
    parts = tuple(
        WindowCheck(start, min(stop, seconds_in(recording)), one.verdict, _sentences(one))
        for (start, stop), one in zip(spans, checks, strict=True)
    )
    wrong = (one for one in checks if one.verdict is MapVerdict.WRONG)
    unsure = (one for one in checks if not one.ok)
    # a part that leaves something open must not hide a later one that is wrong
    return replace(next(wrong, None) or next(unsure, checks[0]), windows=parts)


def _sentences(check: ProbeCheck) -> tuple[str, ...]:
    swaps = (f"channels {' '.join(map(str, group))} are swapped" for group in check.swapped)
    return (*(one.sentence for one in check.faults), *swaps)


def _check_of(
    channels: Channels, judged: JudgedMap, claim: ClaimedMap, known: Anchors, ids: list[Any]
) -> ProbeCheck:
    def names(numbers: NDArray[np.int64]) -> tuple[Any, ...]:
        return tuple(ids[i] for i in numbers)

    wrong = named_faults(judged.judgement.faults, ids)
    undecided = named_faults(judged.judgement.undecided, ids)
    swapped, positions = judged.exchanges, judged.positions
    if judged.anew is not None:
        wrong, undecided, swapped = (_rewired(channels, judged.anew, ids),), (), ()
        positions = _placed_anew(claim.positions, judged.anew.contact)
    whole = whole_motions(positions) if judged.anew is None else []
    open_to = tuple(
        one.words[0]
        for one in whole
        if not len(known.columns) or not known.broken(positions[one.to])
    )
    sure = judged.confidence
    return ProbeCheck(
        ok=not (wrong or swapped or undecided) and sure >= CONVINCED,
        swapped=tuple(names(np.array(one.channels)) for one in swapped),
        dead=names(channels.which("dead")),
        duplicated=tuple((ids[i], ids[channels.twin[i]]) for i in channels.which("duplicate")),
        floating=names(channels.which("floating")),
        confidence=sure,
        swap_confidence=tuple(one.confidence for one in swapped),
        faults=wrong,
        cannot_tell=undecided,
        whole=open_to,
        silent=names(np.union1d(channels.which("silent"), channels.unheard)),
        positions=positions,
    )


def _rewired(channels: Channels, anew: Wiring, ids: list[Any]) -> MapFault:
    """Neither blocks nor exchanges explain the traces: the wiring from nothing."""
    living = channels.living
    moved = living[anew.contact[living] != living]
    words = f"{len(moved)} of {len(living)} channels belong elsewhere: wire the probe anew"
    sure = float(np.median(anew.confidence[living]))
    return MapFault("rewired", words, tuple(ids[i] for i in moved), sure, 0.0)


def _placed_anew(positions: NDArray, contact: NDArray[np.int64]) -> NDArray[np.float64]:
    rest, free = np.flatnonzero(contact < 0), np.setdiff1d(np.arange(len(positions)), contact)
    on = contact.copy()
    on[rest] = free[: len(rest)]
    return np.asarray(positions[on])


def _anchors(
    anchors: Mapping[Any, int] | None, recording: Any, contacts: NDArray[np.float64]
) -> Anchors:
    if not anchors:
        return NO_ANCHORS
    ids = np.asarray(recording.channel_ids).tolist()
    for channel, contact in anchors.items():
        if channel not in ids:
            raise InputError(f"anchor {channel}: the recording has no channel of this id")
        if not 0 <= contact < len(contacts):
            raise InputError(
                f"anchor {channel}: contact {contact} of {len(contacts)}: numbers start at 0"
            )
    columns = np.array([ids.index(channel) for channel in anchors], dtype=np.int64)
    return Anchors(columns, contacts[list(anchors.values())])


def _nearest_contacts(contacts: NDArray, positions: NDArray) -> NDArray[np.int64]:
    return np.asarray(cKDTree(contacts).query(positions)[1], dtype=np.int64)


def _layout_name(probe: Probe, number: int) -> str:
    return str(getattr(probe, "name", "") or f"layout {number}")


def _shanks_at(probe: Probe, contact: NDArray[np.int64]) -> NDArray[np.int64] | None:
    shanks = shanks_of(probe)
    return None if shanks is None else shanks[contact]
