"""How large neurons are on every channel: their waveforms, each as one shape that comes later where
it is smaller.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from symlift.ephys.fields import Fields
from symlift.ephys.groups import groups_of
from symlift.ephys.levels import Levels, Parts
from symlift.ephys.sorting import Neurons, sort_neurons
from symlift.ephys.whiten import flat_spectrum

__all__ = ["events_of"]

# neurons for each channel below which groups of events are used instead
_ENOUGH = 1 / 3
# deviations of a mean, and the part of its largest amplitude, below which a field is as good as
# zero
_NOISE, _FLOOR = 2.0, 0.003
# the part of an amplitude that the model of a source does not get right
_RELATIVE = 0.03
# milliseconds by which a source may reach other channels later, and steps of a sample in which that
# is looked for
_LATER, _STEPS = 1.0, 8
# deviations from which a channel shows the shape, and from which it shows its own delay; and the
# part of the largest amplitude below which delays are not looked at
_SHAPE, _OWN, _WEAK = 8.0, 20.0, 0.02


def events_of(
    parts: Parts, levels: Levels, c: NDArray, channels: NDArray[np.int64], rate: float
) -> Fields:
    """Amplitudes of neurons on ``channels`` (k,), with correlations c (k, k)."""
    white = flat_spectrum(parts, levels, channels, rate)
    neurons = sort_neurons(white, c)
    if len(neurons.count) < _ENOUGH * len(channels):
        return groups_of(parts, levels, c, channels, rate, np.random.default_rng(0))
    amplitude, noise = _amplitudes(neurons, white.rate)
    floor = _FLOOR * amplitude.max(axis=1, initial=0.0, keepdims=True)
    error = np.maximum(np.hypot(_NOISE * noise, floor), 1e-9)
    return Fields(amplitude, error, _RELATIVE)


def _amplitudes(neurons: Neurons, rate: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Amplitudes (K, d), in those of the channel that is largest, and their deviations."""
    K, length, d = neurons.waves.shape
    size = next_fast_len(2 * length, real=True)
    later = np.arange(round(_LATER / 1000 * rate * _STEPS) + 1) / _STEPS
    angle = 2 * np.pi * np.arange(size // 2 + 1) / size
    delays = np.exp(-1j * angle * later[:, None])
    twice = np.where((angle > 0) & (angle < np.pi - 1e-9), 2.0, 1.0)
    amplitude, error = np.zeros((K, d)), np.ones((K, d))
    for k in range(K):
        spectrum = rfft(neurons.waves[k] * neurons.noise, size, axis=0)
        main = int(np.argmax(np.sum(neurons.waves[k] ** 2, axis=0)))
        shape = spectrum[:, main]
        for last in (False, False, True):
            energy = float(np.sum(irfft(shape, size) ** 2))
            # (lags, d): each channel on the shape, later by each lag
            on = np.real(np.conj(delays * shape) * twice @ spectrum) / size / energy
            noise = neurons.noise / np.sqrt(max(neurons.count[k], 1.0) * energy)
            lag, mine = _delayed(on, noise, main, later)
            if not last:
                weight = np.where(mine > _SHAPE * noise, mine / noise**2, 0.0)
                early = spectrum * np.exp(1j * angle[:, None] * lag)
                shape = early @ weight / np.sum(weight * mine)
        amplitude[k], error[k] = mine, noise
    return amplitude, error


def _delayed(
    on: NDArray, noise: NDArray, main: int, later: NDArray
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Delay and amplitude of each channel.

    The largest value over delays is too large for weak channels: they get the delay that grows with
    the logarithm of the amplitude as it does on strong ones.
    """
    columns = np.arange(on.shape[1])
    first = on.argmax(axis=0)
    peak = on[first, columns]
    top = peak[main]
    strong = (peak > _SHAPE * noise) & (peak > _WEAK * top)
    fall = np.log(top / np.maximum(peak[strong], 1e-12))
    weight = np.minimum((peak[strong] / noise[strong]) ** 2, 1e4)
    steep = float(np.sum(weight * fall**2))
    slope = max(0.0, float(np.sum(weight * fall * later[first[strong]])) / max(steep, 1e-9))
    mine, lag = peak, later[first]
    for _ in range(4):
        lag = np.clip(slope * np.log(top / np.maximum(mine, noise)), 0, later[-1])
        lag = np.where(peak > _OWN * noise, later[first], lag)
        mine = on[np.rint(lag * _STEPS).astype(np.int64), columns]
    return lag, mine
