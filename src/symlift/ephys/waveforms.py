"""Waveforms on all channels, as arrays (K, L, d): products at all lags, those that are the same.

Traces are in deviations of their noise, so that energies and distances are in units of it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, rfft

__all__ = ["merged", "products", "quiet", "worth_keeping"]

# energy of a channel, in that of the noise of a mean, below which a waveform is not there
_QUIET = 2.5
# events and energy that a waveform needs
_FEWEST, _LEAST = 40, 64.0
# waveforms are compared if they are so much alike; they are one if they differ by no more than this
# energy, and by no more than this part of it
_ALIKE, _APART, _SHARE = 0.85, 12.0, 0.03


def products(a: NDArray, b: NDArray) -> NDArray[np.float32]:
    """(K, M, 2L - 1): Σ a(t) b(t + lag), for lags from 1 - L on, of waveforms (K, L, d) and
    (M, L, d).
    """
    length = a.shape[1]
    fa, fb = (rfft(x, 2 * length, axis=1).transpose(1, 0, 2) for x in (a, b))
    g = irfft(np.conj(fa) @ fb.transpose(0, 2, 1), 2 * length, axis=0)
    g = np.roll(g, length - 1, axis=0)[: 2 * length - 1]
    return np.ascontiguousarray(g.transpose(1, 2, 0), dtype=np.float32)


def quiet(waves: NDArray, count: NDArray) -> NDArray[np.float64]:
    """Means of ``count`` events, 0 on channels where nothing stands out of their noise."""
    energy = np.sum(waves**2, axis=1)
    visible = energy >= _QUIET * waves.shape[1] / np.maximum(count, 1)[:, None]
    return np.asarray(waves * visible[:, None])


def worth_keeping(waves: NDArray, count: NDArray) -> NDArray[np.bool_]:
    """Which waveforms have events enough, and stand out."""
    return np.asarray((count >= _FEWEST) & (np.sum(quiet(waves, count) ** 2, axis=(1, 2)) > _LEAST))


def _moved(wave: NDArray, lag: int) -> tuple[NDArray, NDArray[np.float64]]:
    """wave(t + lag), and 1 where that is known."""
    out, known = np.zeros_like(wave), np.zeros(len(wave))
    inside = slice(max(-lag, 0), len(wave) - max(lag, 0))
    out[inside] = wave[inside.start + lag : inside.stop + lag]
    known[inside] = 1
    return out, known


class _Pool:
    """Waveforms that are still distinct, and how far those are apart that are alike."""

    def __init__(self, waves: NDArray, count: NDArray) -> None:
        self.waves, self.count = waves.copy(), count.astype(np.float64)
        self.live = np.ones(len(waves), dtype=bool)
        self.clean = quiet(self.waves, self.count)
        self.product = products(self.clean, self.clean)
        self.energy = np.maximum(np.sum(self.clean**2, axis=(1, 2)), 1e-9)
        self.apart: dict[tuple[int, int], tuple[float, int]] = {}
        for u in range(len(waves)):
            self.compare(u)

    def compare(self, u: int) -> None:
        """How far waveform u is from each other one that is like it, and at which lag."""
        like = self.product[u].max(axis=1) / np.sqrt(self.energy[u] * self.energy)
        for v in range(len(like)):
            pair = (min(u, v), max(u, v))
            self.apart.pop(pair, None)
            if v != u and self.live[v] and like[v] > _ALIKE:
                self.apart[pair] = self.distance(*pair)

    def distance(self, u: int, v: int) -> tuple[float, int]:
        """By how much more than noise the energy of the difference exceeds what is the same."""
        length = self.waves.shape[1]
        on = (self.clean[u] != 0).any(axis=0) | (self.clean[v] != 0).any(axis=0)
        best = (np.inf, 0)
        middle = int(self.product[u, v].argmax()) - (length - 1)
        for lag in (middle - 1, middle, middle + 1):
            other, known = _moved(self.waves[v], lag)
            energy = float(np.sum(((self.waves[u] - other) * known[:, None])[:, on] ** 2))
            noise = known.sum() * on.sum() * (1 / self.count[u] + 1 / self.count[v])
            best = min(best, (energy - noise, lag))
        same = max(_APART, _SHARE * max(self.energy[u], self.energy[v]))
        return best[0] - same, best[1]

    def join(self, u: int, v: int, lag: int) -> None:
        """v becomes part of u, at the lag of the one with more events."""
        base, other, lag = (u, v, lag) if self.count[u] >= self.count[v] else (v, u, -lag)
        wave, known = _moved(self.waves[other], lag)
        weight = (self.count[other] * known)[:, None]
        total = self.count[base] + weight
        self.waves[u] = (self.count[base] * self.waves[base] + weight * wave) / total
        self.count[u] += self.count[v]
        self.live[v] = False
        self.apart = {pair: far for pair, far in self.apart.items() if v not in pair}
        self.clean[u] = quiet(self.waves[u : u + 1], self.count[u : u + 1])[0]
        self.energy[u] = max(float(np.sum(self.clean[u] ** 2)), 1e-9)
        self.product[u] = products(self.clean[u : u + 1], self.clean)[0]
        self.product[:, u] = self.product[u, :, ::-1]
        self.compare(u)


def merged(waves: NDArray, count: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Waveforms that are the same up to a lag as one, with their events together."""
    pool = _Pool(waves, count)
    while pool.apart:
        (u, v), (far, lag) = min(pool.apart.items(), key=lambda item: item[1][0])
        if far > 0:
            break
        pool.join(u, v, lag)
    return pool.waves[pool.live], pool.count[pool.live]
