"""What the check of a map comes to, and how it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.maps.judge import Weighed

__all__ = ["CONVINCED", "MapFault", "MapVerdict", "map_verdict", "named_faults"]

# confidence that a map without faults needs to be called right
CONVINCED = 0.5


class MapVerdict(StrEnum):
    """What the check of a map comes to.

    Examples
    --------
    >>> from symlift.maps import MapVerdict
    >>> MapVerdict.CANNOT_TELL.value
    'cannot tell'
    """

    RIGHT = "right"
    WRONG = "wrong"
    CANNOT_TELL = "cannot tell"
    UNCERTAIN = "uncertain"


def map_verdict(wrong: bool, undecided: bool, confidence: float) -> MapVerdict:
    """Wrong, if anything is; else what the data leave open, and whether the rest is sure."""
    if wrong:
        return MapVerdict.WRONG
    if undecided:
        return MapVerdict.CANNOT_TELL
    return MapVerdict.RIGHT if confidence >= CONVINCED else MapVerdict.UNCERTAIN


@dataclass(frozen=True)
class MapFault:
    """Something that is wrong with a map, or that the data cannot rule out.

    Parameters
    ----------
    kind : str
        "reversed", "shifted", "exchanged", "turned", "counted", "layout" or "rewired".
    sentence : str
        The same in words, with the names of channels.
    channels : tuple
        The names of the channels that belong elsewhere.
    probability : float
        From 0 to 1, that the map without it is right, among all that were looked at.
    gain : float
        By how much less the map without it leaves unexplained, like a difference of two
        logarithms of likelihoods.

    Examples
    --------
    >>> from symlift.maps import MapFault
    >>> MapFault("reversed", "channels 8 to 15 are in reverse order", (8, 15), 0.99, 120.0).kind
    'reversed'
    """

    kind: str
    sentence: str
    channels: tuple[Any, ...]
    probability: float
    gain: float


def _moved(to: NDArray[np.int64]) -> list[int]:
    return [int(i) for i in np.flatnonzero(to != np.arange(len(to)))]


def named_faults(weighed: Sequence[Weighed], ids: Sequence[Any]) -> tuple[MapFault, ...]:
    """Faults with the names of channels."""
    return tuple(
        MapFault(
            one.fault.kind.value,
            one.fault.sentence(ids),
            tuple(ids[i] for i in _moved(one.fault.to)),
            one.probability,
            one.gain,
        )
        for one in weighed
    )
