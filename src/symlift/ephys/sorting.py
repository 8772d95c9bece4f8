"""Neurons in the traces: waveforms that recur, what each is on every channel.

Large moments are clustered; the waveforms are then looked for in the traces, the clearest first,
each taken away before the next; and all are estimated at once by least squares, so that what
overlaps is not counted twice. What is left is clustered again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, rfft
from scipy.linalg import cho_factor, cho_solve
from scipy.ndimage import maximum_filter1d

from symlift.ephys.waveforms import merged, products, quiet, worth_keeping
from symlift.ephys.whiten import White

__all__ = ["Neurons", "sort_neurons"]

# deviations from which a moment is large, and milliseconds around it in which none may be larger
_LARGE, _ALONE = 5.0, 0.5
# channels that go with a channel; those that clusters are made by, and components of them
_NEAR, _SEEN, _COMPONENTS = 10, 6, 5
# moments of a channel that are clustered, the fewest of a cluster, and deviations between two
_MOST, _FEWEST, _APART = 600, 15, 4.0
# logarithm of how much likelier an event must be than none
_SURE = 9.0
# by how much, of its energy and in deviations, an event may be smaller than its waveform
_SMALLER, _NOISE = 0.25, 4.0
# waveforms so much alike are not looked for in the same moment; a product below this is none
_ALIKE, _PRODUCT = 0.5, 2.0
_PASSES, _BLOCK = 8, 1024
# every so many parts are used to find the waveforms, of as many as that or more; rounds of it
_EVERY, _MANY, _ROUNDS = 3, 45, 2


@dataclass(frozen=True)
class Neurons:
    """Waveforms (K, L, d) in deviations of the noise, counts of events (K,), and the noise (d,)."""

    waves: NDArray[np.float64]
    count: NDArray[np.float64]
    noise: NDArray[np.float32]


@dataclass(frozen=True)
class _Window:
    """Samples before and after an event; deviations of the noise of one sample; samples around a
    large moment; and the channels near each.
    """

    before: int
    after: int
    sample: float
    around: int
    near: NDArray[np.int64]

    @property
    def lags(self) -> NDArray[np.int64]:
        return np.arange(-self.before, self.after)


def sort_neurons(white: White, c: NDArray) -> Neurons:
    """Waveforms of neurons on channels with correlations ``c`` (d, d)."""
    some = list(white(1 if white.count < _MANY else _EVERY))
    noise = np.median(np.abs(np.concatenate([part[::7] for part in some])), axis=0) / 0.6745
    # neighbouring samples have their noise in common: the deviation of a sum of independent ones
    scale = float(np.sqrt(max(white.dependent / white.every, 1.0)))
    noise = (noise * scale).astype(np.float32)
    some = [part / noise for part in some]
    before, after = white.window
    window = _Window(
        before,
        after,
        1 / scale,
        2 * max(1, round(_ALONE / 1000 * white.rate)) + 1,
        np.argsort(-np.abs(c), axis=1, kind="stable")[:, 1 : 1 + _NEAR],
    )
    waves, count = _chosen(*_discovered(some, window))
    for _ in range(_ROUNDS):
        if not len(waves):
            break
        left: list[NDArray] = []
        waves, count = _estimated(some, waves, window, left.append)
        more = _discovered(left, window, some)
        waves, count = _chosen(np.concatenate([waves, more[0]]), np.concatenate([count, more[1]]))
    if len(waves):
        waves, count = _estimated((part / noise for part in white()), waves, window)
        strong = worth_keeping(waves, count)
        waves, count = waves[strong], count[strong]
    return Neurons(waves, count, noise)


def _chosen(waves: NDArray, count: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Distinct waveforms with events enough, without noise."""
    waves, count = merged(waves, count)
    strong = worth_keeping(waves, count)
    return quiet(waves[strong], count[strong]), count[strong]


def _moments(
    part: NDArray, window: _Window, whole: NDArray | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Moments and channels at which a channel is far from 0, and farther than those near it.

    Of a remainder of the ``whole``, those where little was taken away.
    """
    size = np.abs(part)
    largest = maximum_filter1d(size, window.around, axis=0)
    moment, channel = np.nonzero((size > _LARGE * window.sample) & (size >= largest))
    own = size[moment, channel]
    good = (largest[moment[:, None], window.near[channel]] <= own[:, None]).all(axis=1)
    good &= (moment >= window.before) & (moment < len(part) - window.after)
    if whole is not None:
        taken = maximum_filter1d(np.abs(whole - part), 2 * window.before + 1, axis=0)
        good &= taken[moment, channel] < 0.5 * own
    return moment[good], channel[good]


def _discovered(
    parts: list[NDArray], window: _Window, whole: list[NDArray] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means of clusters of large moments, and how many each has."""
    d = len(window.near)
    by_channel: list[list[NDArray]] = [[] for _ in range(d)]
    for number, part in enumerate(parts):
        moment, channel = _moments(part, window, None if whole is None else whole[number])
        for i in range(d):
            at = moment[channel == i]
            if len(at):
                by_channel[i].append(part[at[:, None] + window.lags])
    waves, count = [np.zeros((0, len(window.lags), d))], [0]
    for i in range(d):
        events = np.concatenate(by_channel[i])[:_MOST] if by_channel[i] else np.zeros((0, 1, d))
        if len(events) < 2 * _FEWEST:
            continue
        seen = events[:, :, np.r_[i, window.near[i][:_SEEN]]].reshape(len(events), -1)
        u, size, _ = np.linalg.svd(seen - seen.mean(axis=0), full_matrices=False)
        label = _clusters(u[:, :_COMPONENTS] * size[:_COMPONENTS])
        for k in range(label.max() + 1):
            waves.append(events[label == k].mean(axis=0)[None])
            count.append(int((label == k).sum()))
    return np.concatenate(waves).astype(np.float64), np.array(count[1:], dtype=np.float64)


def _clusters(x: NDArray) -> NDArray[np.int64]:
    """Labels of points (n, k), -1 for none: dense regions, those that are not apart as one."""
    from sklearn.cluster import HDBSCAN

    label = HDBSCAN(min_cluster_size=_FEWEST, min_samples=5, copy=True).fit_predict(x)
    if label.max() < 0:
        return np.zeros(len(x), dtype=np.int64)
    while label.max() > 0:
        closest = min(
            (_separation(x[label == i], x[label == j]), i, j)
            for i in range(1, label.max() + 1)
            for j in range(i)
        )
        if closest[0] > _APART:
            break
        label[label == closest[1]] = closest[2]
        label[label > closest[1]] -= 1
    return np.asarray(label, dtype=np.int64)


def _separation(a: NDArray, b: NDArray) -> float:
    """Deviations between two clouds along the line through their centres."""
    line = a.mean(axis=0) - b.mean(axis=0)
    p, q = a @ line, b @ line
    return float((p.mean() - q.mean()) / np.sqrt((p.var() + q.var()) / 2 + 1e-12))


def _estimated(
    parts: Iterable[NDArray],
    waves: NDArray,
    window: _Window,
    left: Callable[[NDArray], object] | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Waveforms by least squares at the moments where ``waves`` are found, and how many those are;
    ``left`` gets what remains of each part.
    """
    K, L, d = waves.shape
    search = _Search(waves, window)
    sums, whole = np.zeros((K, L, d)), np.zeros(d)
    pairs, count, samples = np.zeros((K, K, 2 * L - 1)), np.zeros(K), 0
    small = waves.astype(np.float32)
    for part in parts:
        unit, moment = search(part)
        samples, whole = samples + len(part), whole + part.sum(axis=0)
        count += np.bincount(unit, minlength=K)
        for k in np.unique(unit):
            sums[k] += part[moment[unit == k][:, None] + window.lags].sum(axis=0)
        _count_pairs(pairs, unit, moment, L)
        if left is not None:
            rest = part.copy()
            for k, t in zip(unit, moment, strict=True):
                rest[t - window.before : t + window.after] -= small[k]
            left(rest)
    lag = np.arange(L)[:, None] - np.arange(L)[None] + L - 1
    normal = pairs[:, :, lag].transpose(0, 2, 1, 3).reshape(K * L, K * L)
    normal[np.diag_indices(K * L)] += 1.0
    # in addition to the waveforms each channel has a constant, which is eliminated
    often = np.repeat(count, L)[:, None]
    normal -= often * often.T / samples
    right = sums.reshape(K * L, d) - often * whole / samples
    factor = cho_factor(normal, overwrite_a=True, check_finite=False)
    return cho_solve(factor, right, check_finite=False).reshape(K, L, d), count


def _count_pairs(pairs: NDArray, unit: NDArray, moment: NDArray, length: int) -> None:
    """Add to pairs (K, K, 2L - 1) how often a unit follows another one by each lag."""
    cells: list[NDArray] = [np.zeros(0, dtype=np.int64)]
    for ahead in range(len(moment)):
        apart = moment[ahead:] - moment[: len(moment) - ahead]
        near = np.flatnonzero(apart < length)
        if not len(near):
            break
        first, second, lag = unit[near], unit[near + ahead], apart[near] + length - 1
        cells.append(np.ravel_multi_index((first, second, lag), pairs.shape))
        if ahead:
            back = 2 * length - 2 - lag
            cells.append(np.ravel_multi_index((second, first, back), pairs.shape))
    pairs += np.bincount(np.concatenate(cells), minlength=pairs.size).reshape(pairs.shape)


class _Search:
    """Where waveforms are in a part, the clearest first."""

    def __init__(self, waves: NDArray, window: _Window) -> None:
        self.window = window
        K, self.length, _ = waves.shape
        self.product = products(waves, waves)
        self.energy = self.product[np.arange(K), np.arange(K), self.length - 1].copy()
        self.touches = [np.flatnonzero(row) for row in np.abs(self.product).max(2) > _PRODUCT]
        size = np.sqrt(self.energy)
        like = self.product.max(axis=2) / size / size[:, None]
        self.alike = [np.flatnonzero(row) for row in like > _ALIKE]
        smaller = np.maximum(_SMALLER * self.energy, _NOISE * size)
        self.least = np.maximum(_SURE, self.energy / 2 - smaller)
        self.block = max(_BLOCK, 8 * self.length)
        spectrum = rfft(waves, self.block, axis=1).transpose(1, 0, 2)
        self.spectrum = np.conj(spectrum).astype(np.complex64)

    def scores(self, part: NDArray) -> NDArray[np.float32]:
        """(K, n): logarithm of how much likelier each waveform is than none at each sample."""
        n, d = part.shape
        step = self.block - self.length + 1
        blocks = -(-n // step)
        padded = np.zeros(((blocks - 1) * step + self.block, d), dtype=np.float32)
        padded[self.window.before : self.window.before + n] = part
        cut = np.stack([padded[i * step : i * step + self.block] for i in range(blocks)])
        spectrum = self.spectrum @ rfft(cut, axis=1).transpose(1, 2, 0)
        c = irfft(spectrum, self.block, axis=0)[:step]
        c = np.ascontiguousarray(c.transpose(1, 2, 0)).reshape(len(self.energy), -1)[:, :n]
        return np.asarray(c - self.energy[:, None] / 2)

    def __call__(self, part: NDArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Units and moments, in the order of time."""
        s = self.scores(part)
        n, L = s.shape[1], self.length
        apart, short = L // 2, self.window.before
        taken = np.zeros(s.shape, dtype=bool)
        spikes: list[tuple[int, int]] = []
        for _ in range(_PASSES):
            unit, moment = np.nonzero(s[:, 1:-1] > self.least[:, None])
            moment = moment + 1
            value = s[unit, moment]
            peak = (value >= s[unit, moment - 1]) & (value >= s[unit, moment + 1])
            order = np.argsort(-value[peak], kind="stable")
            unit, moment = unit[peak][order], moment[peak][order]
            closed = taken.copy()
            before = len(spikes)
            for k, t in zip(unit.tolist(), moment.tolist(), strict=True):
                if closed[k, t]:
                    continue
                low, high = max(t - L + 1, 0), min(t + L, n)
                rows = self.touches[k]
                s[rows, low:high] -= self.product[k][rows, low - t + L - 1 : high - t + L - 1]
                closed[rows, max(t - apart, 0) : t + apart] = True
                taken[self.alike[k], max(t - short, 0) : t + short + 1] = True
                spikes.append((t, k))
            if len(spikes) == before:
                break
        inside = [(t, k) for t, k in spikes if t >= short and t < n - self.window.after]
        pairs = np.array(sorted(inside), dtype=np.int64).reshape(-1, 2)
        return pairs[:, 1], pairs[:, 0]
