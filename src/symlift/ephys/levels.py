"""Levels of channels, and how they go together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Levels", "Parts", "correlate", "levels_of", "standard"]

#: parts of the traces, (samples, channels), read anew each time
Parts = Callable[[], Iterator[NDArray]]

# robust deviations at which values are clipped for correlations
_CLIP = 6.0


@dataclass(frozen=True)
class Levels:
    """Middle and robust deviation of each channel, (d,)."""

    middle: NDArray[np.float32]
    spread: NDArray[np.float32]

    @property
    def varies(self) -> NDArray[np.bool_]:
        return self.spread > 0


def levels_of(parts: Parts, every: int = 20) -> Levels:
    """Median and median deviation of each channel, from every so many samples."""
    some = np.concatenate([np.asarray(part[::every], dtype=np.float32) for part in parts()])
    middle = np.median(some, axis=0)
    spread = np.median(np.abs(some - middle), axis=0) / np.float32(0.6745)
    # two values only, or nearly always the same one: the deviation, which is 0 for a flat channel
    spread = np.where(spread > 0, spread, some.std(axis=0))
    return Levels(middle, spread.astype(np.float32))


def correlate(parts: Parts, levels: Levels) -> NDArray[np.float64]:
    """Correlations (d, d) of clipped traces."""
    d = len(levels.middle)
    total = np.zeros((d, d))
    for part in parts():
        z = standard(part, levels)
        z -= z.mean(axis=0)
        total += z.T @ z
    size = np.sqrt(np.maximum(np.diag(total), 1e-12))
    c = np.clip(total / size / size[:, None], -1, 1)
    np.fill_diagonal(c, 1.0)
    return np.asarray(c)


def standard(part: NDArray, levels: Levels, clip: float = _CLIP) -> NDArray[np.float32]:
    """Robust deviations, clipped; 0 on flat channels."""
    safe = np.where(levels.varies, levels.spread, np.inf).astype(np.float32)
    return np.clip((np.asarray(part, dtype=np.float32) - levels.middle) / safe, -clip, clip)
