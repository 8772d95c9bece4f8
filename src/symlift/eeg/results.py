"""What checks and matches of montages hand back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.eeg.recordings import with_positions
from symlift.maps.verdict import MapFault, MapVerdict, map_verdict

__all__ = ["MontageCheck", "MontageMatch"]


@dataclass(frozen=True)
class MontageCheck:
    """What a check of the montage found; channels are named by their labels.

    Parameters
    ----------
    ok : bool
        Nothing is wrong, and the data would show it if it were.
    names : tuple of str
        Labels of the channels that were checked.
    positions : ndarray, (d, 3)
        Where they belong.
    swapped : tuple
        Groups of channels that have each other's places: each belongs where the next one is.
    swap_confidence : tuple of float
        From 0 to 1, for each of them.
    faults : tuple of MapFault
        What is wrong with banks of channels or the whole cap.
    cannot_tell : tuple of MapFault
        Other maps that the data do not rule out: with one of them, ``ok`` is False.
    whole : tuple of str
        What changes no distance: a map is right up to that, unless anchors rule it out.
    confidence : float
        From 0 to 1, that ``swapped`` is complete; of channels next to each other, which are much
        alike, swaps are named where the data show them, but not counted here.
    dead, noise : tuple of str
        Channels that are flat, and those that go with no other.
    duplicated : tuple
        Pairs of a channel and the one that it repeats.

    Examples
    --------
    >>> import numpy as np
    >>> from symlift.eeg import MontageCheck
    >>> check = MontageCheck(False, ("C3", "C4"), np.eye(2, 3), swapped=(("C3", "C4"),))
    >>> check.verdict.value
    'wrong'
    """

    ok: bool
    names: tuple[str, ...]
    positions: NDArray[np.float64] = field(repr=False)
    swapped: tuple[tuple[str, ...], ...] = ()
    swap_confidence: tuple[float, ...] = ()
    faults: tuple[MapFault, ...] = ()
    cannot_tell: tuple[MapFault, ...] = ()
    whole: tuple[str, ...] = ()
    confidence: float = 0.0
    dead: tuple[str, ...] = ()
    noise: tuple[str, ...] = ()
    duplicated: tuple[tuple[str, str], ...] = ()

    @property
    def verdict(self) -> MapVerdict:
        """Wrong, if anything is; else what is left open, and whether the rest is sure."""
        wrong = bool(self.swapped or self.faults)
        return map_verdict(wrong, bool(self.cannot_tell), self.confidence)

    def repaired(self, raw: Any) -> Any:
        """Put the channels of a copy of an MNE object where they belong.

        Parameters
        ----------
        raw : Raw or Epochs
            What was checked.

        Returns
        -------
        Raw or Epochs
            A copy with a montage in which each channel has its repaired place.
        """
        return with_positions(raw, self.names, self.positions)


@dataclass(frozen=True)
class MontageMatch:
    """Channels on the sites of a template.

    Parameters
    ----------
    sites : tuple of str
        The site of each channel; "" for those without a place.
    positions : ndarray, (d, 3)
        Where these are; NaN for those without a place.
    names : tuple of str
        Labels of the channels.
    confidence : ndarray, (d,)
        From 0 to 1, that a channel would not rather have another one's site.
    whole : tuple of str
        What changes no distance, and what the data therefore leave open.

    Examples
    --------
    >>> from symlift.eeg import match_montage
    >>> match_montage(raw, "standard_1020").sites  # doctest: +SKIP
    """

    sites: tuple[str, ...]
    positions: NDArray[np.float64] = field(repr=False)
    names: tuple[str, ...]
    confidence: NDArray[np.float64]
    whole: tuple[str, ...] = ()

    def placed(self, raw: Any) -> Any:
        """Put the channels of a copy of an MNE object on their sites.

        Parameters
        ----------
        raw : Raw or Epochs
            What was matched.

        Returns
        -------
        Raw or Epochs
            A copy with a montage.
        """
        has = np.asarray(np.isfinite(self.positions).all(axis=1))
        names = tuple(name for name, placed in zip(self.names, has, strict=True) if placed)
        return with_positions(raw, names, self.positions[has])
