"""What checks and matches of probes hand back, and how it reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symlift.maps.verdict import MapFault, MapVerdict, map_verdict

if TYPE_CHECKING:
    from probeinterface import Probe

__all__ = ["ProbeCheck", "ProbeMatch", "ProbeRank", "WindowCheck"]


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
class ProbeRank:
    """One of several layouts, and how well it explains a recording.

    Parameters
    ----------
    number : int
        Which one of the list it is, from 0.
    probe : Probe
        The layout, wired: as it is given, or without the faults that it has.
    faults : tuple of MapFault
        What was changed: the layout mirrored in parts, its contacts counted another way.
    probability : float
        From 0 to 1, among the layouts of the list.
    cost : float
        What it leaves unexplained.

    Examples
    --------
    >>> from symlift.ephys import match_probe
    >>> ranks = match_probe(recording, [one, other])  # doctest: +SKIP
    >>> ranks[0].number, ranks[0].probability  # doctest: +SKIP
    """

    number: int
    probe: Probe
    faults: tuple[MapFault, ...]
    probability: float
    cost: float


@dataclass(frozen=True)
class WindowCheck:
    """A part of a recording: from and to which second, whether its map agrees, and what is wrong.

    Parameters
    ----------
    start, stop : float
        Seconds from the beginning.
    verdict : MapVerdict
        As for a whole recording.
    sentences : tuple of str
        What is wrong, in words.

    Examples
    --------
    >>> from symlift.ephys import check_probe
    >>> check_probe(recording, windows="1min").windows[0].verdict  # doctest: +SKIP
    """

    start: float
    stop: float
    verdict: MapVerdict
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class ProbeCheck:
    """What a check of the map found; channels are named by their ids.

    Parameters
    ----------
    ok : bool
        Nothing is wrong, and the data would show it if it were.
    swapped : tuple
        Groups of channels that have each other's contacts, two in most cases.
    dead : tuple
        Channels that are flat.
    duplicated : tuple
        Pairs of a channel and the one that it repeats.
    floating : tuple
        Channels without signal that have more noise than others.
    confidence : float
        From 0 to 1, that ``swapped`` is complete.
    swap_confidence : tuple
        From 0 to 1, for each entry of ``swapped``.
    faults : tuple of MapFault
        What is wrong with blocks of channels or the whole map, one after the other.
    cannot_tell : tuple of MapFault
        Other maps that the traces do not rule out: with one of them, ``ok`` is False.
    whole : tuple of str
        Motions of the whole probe, which change no distance between contacts: a map is right up to
        these, unless known contacts (``anchors``) rule them out.
    silent : tuple
        Channels without spikes: they have the usual noise, and nothing says where they are.
    positions : ndarray, (d, 2)
        Where the channels belong, in micrometres.
    windows : tuple of WindowCheck
        Parts of the recording, where they were asked for.

    Examples
    --------
    >>> from symlift.ephys import ProbeCheck
    >>> check = ProbeCheck(False, (("ch3", "ch7"),), (), (), (), 0.98, (0.99,))
    >>> check.swapped
    (('ch3', 'ch7'),)
    >>> check.verdict.value
    'wrong'
    """

    ok: bool
    swapped: tuple[tuple[Any, ...], ...]
    dead: tuple[Any, ...]
    duplicated: tuple[tuple[Any, Any], ...]
    floating: tuple[Any, ...]
    confidence: float
    swap_confidence: tuple[float, ...] = field(default=())
    faults: tuple[MapFault, ...] = field(default=())
    cannot_tell: tuple[MapFault, ...] = field(default=())
    whole: tuple[str, ...] = field(default=())
    silent: tuple[Any, ...] = field(default=())
    positions: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 2)), repr=False)
    windows: tuple[WindowCheck, ...] = field(default=())

    @property
    def verdict(self) -> MapVerdict:
        """Wrong, if anything is; else what is left open, and whether the rest is sure."""
        wrong = bool(self.swapped or self.faults)
        return map_verdict(wrong, bool(self.cannot_tell), self.confidence)

    @property
    def probability(self) -> float:
        """That the repaired map is right: of one without faults, its confidence."""
        each = [one.probability for one in self.faults] + list(self.swap_confidence)
        return float(np.prod(each)) if each else self.confidence

    @property
    def changed(self) -> WindowCheck | None:
        """The first part of the recording whose map is wrong."""
        return next((one for one in self.windows if one.verdict is MapVerdict.WRONG), None)
