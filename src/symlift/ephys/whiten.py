"""Traces with a flat spectrum: spikes become short, whatever filter a recording went through.

One filter for all channels, so that how large a source is on each of them stays as it was. Where
the spectrum ends below the rate, fewer samples are left.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from symlift.ephys.levels import Levels, Parts

__all__ = ["White", "flat_spectrum"]

# samples of a block for the spectrum, and parts that it is taken from
_BLOCK, _SPECTRUM = 2048, 8
# power, in that of the largest frequency, below which a frequency is left as weak as it is: so many
# times what is left beyond the band, which is rounding, between these limits
_ROUNDING, _LEAST, _MOST = 30.0, 1e-16, 1e-10
# the power of a Hann window that leaks less of the large frequencies than rounding
_STEEP = 3
# samples for each half wave of the highest frequency
_DENSE = 3.0
# half the band in deviations of the Gaussian that ends it: an edge would ring
_SOFT = 2.5
# frequency in Hz, and in that at which the band ends, below which less is left: slow waves are long
_SLOW, _SLOWEST = 200.0, 0.1
# half waves of the highest frequency by which the filter makes a waveform longer
_RINGS = 3.0
# seconds at both ends of a part in which it fades, and which are then left out: the jump of an end
# is as large as a spike
_EDGE = 0.025


@dataclass(frozen=True)
class White:
    """How to flatten the spectrum: frequencies, gain, every how many samples are kept; and
    deviation of each channel then.
    """

    parts: Parts
    channels: NDArray[np.int64]
    middle: NDArray[np.float32]
    frequency: NDArray[np.float64]
    gain: NDArray[np.float64]
    every: int
    rate: float
    band: float
    dependent: float
    count: int

    @property
    def window(self) -> tuple[int, int]:
        """Samples before and after an event that its waveform takes."""
        filtered = _RINGS / self.band
        before, after = 0.0004 + filtered, 0.0012 + filtered
        return round(before * self.rate), round(after * self.rate)

    def __call__(self, step: int = 1) -> Iterator[NDArray[np.float32]]:
        """Every so many parts, (samples, channels)."""
        for number, part in enumerate(self.parts()):
            if number % step == 0 and len(part) > 4 * _EDGE * self.rate * self.every:
                yield self.one(part)

    def one(self, part: NDArray) -> NDArray[np.float32]:
        x = np.asarray(part, dtype=np.float32)[:, self.channels] - self.middle
        n = len(x)
        edge = round(_EDGE * self.rate * self.every)
        ramp = 0.5 - 0.5 * np.cos(np.pi * (np.arange(edge, dtype=np.float32) + 0.5) / edge)
        x[:edge] *= ramp[:, None]
        x[n - edge :] *= ramp[::-1, None]
        pad = edge
        size = self.every * next_fast_len(-(-(n + pad) // self.every), real=True)
        spectrum = rfft(x.T, size, axis=1)
        length = size // self.every
        at = np.arange(length // 2 + 1) / size
        gain = np.interp(at, self.frequency, self.gain).astype(np.float32) / self.every
        z = irfft(spectrum[:, : len(at)] * gain, length, axis=1)
        rest = -(-edge // self.every)
        return np.ascontiguousarray(z[:, rest : n // self.every - rest].T, dtype=np.float32)


def flat_spectrum(parts: Parts, levels: Levels, channels: NDArray[np.int64], rate: float) -> White:
    """A flat spectrum for ``channels``, by the mean spectrum of all of them."""
    middle, spread = levels.middle[channels], levels.spread[channels]
    window = (np.hanning(_BLOCK) ** _STEEP).astype(np.float32)[:, None]
    power, count = np.zeros(_BLOCK // 2 + 1), 0
    total = sum(1 for _ in parts())
    for number, part in enumerate(parts()):
        if number % max(total // _SPECTRUM, 1):
            continue
        x = (np.asarray(part, dtype=np.float32)[:, channels] - middle) / spread
        for start in range(0, len(x) - _BLOCK + 1, _BLOCK):
            power += np.sum(np.abs(rfft(x[start : start + _BLOCK] * window, axis=0)) ** 2, axis=1)
            count += len(channels)
    power /= max(count, 1)
    frequency = np.arange(len(power)) / _BLOCK
    rest = float(power[power.argmax() :].min() / power.max())
    least = float(power.max() * np.clip(_ROUNDING * rest, _LEAST, _MOST))
    band = float(frequency[np.flatnonzero(power > least)[-1]])
    gain = np.exp(-0.5 * (frequency / (band / _SOFT)) ** 2) / np.sqrt(power + least)
    slow = min(_SLOW / rate, _SLOWEST * band)
    gain *= 1 - np.exp(-0.5 * (frequency / slow) ** 2)
    gain /= np.sqrt(np.mean(power * gain**2))
    out = power * gain**2
    dependent = float(out.max() / out.mean())
    every = max(1, int(0.5 / band / _DENSE))
    return White(
        parts, channels, middle, frequency, gain, every, rate / every, band * rate, dependent, total
    )
