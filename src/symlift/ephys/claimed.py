"""The map that a recording or a probe claims: where each channel is said to be."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symlift.errors import InputError

if TYPE_CHECKING:
    from probeinterface import Probe

__all__ = [
    "ClaimedMap",
    "claimed_map",
    "contacts_of",
    "seconds_of_window",
    "shanks_of",
    "wired_contacts",
]


@dataclass(frozen=True)
class ClaimedMap:
    """Where channels are said to be (d, 2), the shank of each (d,) where the probe names it, and
    the probe's contacts (M, 2) in their own order.
    """

    positions: NDArray[np.float64]
    shanks: NDArray[np.int64] | None
    contacts: NDArray[np.float64]


def claimed_map(recording: Any, probe: Probe | None) -> ClaimedMap:
    """The map of ``probe``, or else the recording's own."""
    count = len(recording.channel_ids)
    if probe is not None:
        contact, contacts = wired_contacts(probe, count), contacts_of(probe)
        shanks = shanks_of(probe)
        return ClaimedMap(contacts[contact], None if shanks is None else shanks[contact], contacts)
    if not recording.has_probe():
        raise InputError("the recording has no probe: give one, or match or recover it")
    positions = np.asarray(recording.get_channel_locations(), dtype=np.float64)
    return ClaimedMap(positions, None, positions)


def contacts_of(probe: Probe) -> NDArray[np.float64]:
    """(M, 2): the contacts of a probe."""
    positions = np.asarray(probe.contact_positions, dtype=np.float64)
    if len(positions) < 4:
        raise InputError(
            f"the probe has {len(positions)} contacts: four are the fewest that have an order"
        )
    if len(np.unique(positions, axis=0)) < len(positions):
        raise InputError("two contacts of the probe are at the same position: give each its own")
    return positions


def wired_contacts(probe: Probe, count: int) -> NDArray[np.int64]:
    """(d,): the contact of each of ``count`` channels."""
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
    contacts_of(probe)
    contact = np.empty(count, dtype=np.int64)
    contact[device[device >= 0]] = np.flatnonzero(device >= 0)
    return contact


def shanks_of(probe: Probe) -> NDArray[np.int64] | None:
    """(M,): the shank of each contact, where the probe has several."""
    shanks = getattr(probe, "shank_ids", None)
    if shanks is None or len(np.unique(shanks)) < 2:
        return None
    return np.unique(np.asarray(shanks).astype(str), return_inverse=True)[1].astype(np.int64)


def seconds_of_window(text: str | float) -> float:
    """60, "60s", "1min" or "1 min" in seconds."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*(s|min|h)?", str(text).strip().lower())
    seconds = 0.0 if match is None else float(match[1]) * {"min": 60, "h": 3600}.get(match[2], 1)
    if seconds < 5:
        raise InputError(f"windows {text!r} is no time of 5 s or more: give one such as 1min")
    return seconds
