"""Groups of events, for recordings too short or too noisy to distinguish neurons.

An *event* is a moment at which a channel is far from its middle, and farther than the channels that
go with it; events of one channel that look alike are averaged, so that noise of single moments no
longer counts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from symlift.ephys.fields import Fields
from symlift.ephys.levels import Levels, Parts

__all__ = ["groups_of"]

# robust deviations from which an event is one
_EVENT = 5.0
# milliseconds around an event in which no larger one may be
_ALONE = 0.5
# events of a channel that are looked at, in all and in one part, that a group needs, and groups of
# a channel
_MOST, _PART, _FEWEST, _GROUPS = 1_500, 60, 40, 6
# deviations of a mean, and the part of its largest amplitude, below which a field is as good as
# zero
_NOISE, _FLOOR = 2.0, 0.015
# channels that go with a channel, of which none may be farther from its middle
_NEAR = 10
# milliseconds by which a source may reach other channels later or earlier
_LATER = (-0.16, 0.0, 0.16, 0.32, 0.48, 0.64)


def groups_of(
    parts: Parts,
    levels: Levels,
    c: NDArray,
    channels: NDArray[np.int64],
    rate: float,
    rng: np.random.Generator,
) -> Fields:
    """Mean amplitudes of groups of events on ``channels`` (k,), with correlations c (k, k);
    positive where they go along.
    """
    near = np.argsort(-np.abs(c), axis=1, kind="stable")[:, 1 : 1 + _NEAR]
    width = 2 * max(1, round(_ALONE / 1000 * rate)) + 1
    later = np.unique(np.rint(np.array(_LATER) / 1000 * rate).astype(np.int64))
    events: list[list[NDArray]] = [[] for _ in channels]
    for part in parts():
        x = np.asarray(part, dtype=np.float32)[:, channels] - levels.middle[channels]
        z = np.abs(x) / levels.spread[channels]
        largest = maximum_filter1d(z, width, axis=0)
        moment, channel = np.nonzero((z > _EVENT) & (z >= largest))
        alone = (largest[moment[:, None], near[channel]] < z[moment, channel][:, None]).all(axis=1)
        alone &= (moment + later[0] >= 0) & (moment + later[-1] < len(x))
        for i in range(len(channels)):
            at = moment[alone & (channel == i)]
            at = at if len(at) <= _PART else np.sort(rng.choice(at, _PART, replace=False))
            events[i].append(x[at[:, None] + later] * np.sign(x[at, i])[:, None, None])
    amplitude, error = [], []
    now = int(np.flatnonzero(later == 0)[0])
    for i in range(len(channels)):
        for group in _groups(
            np.concatenate(events[i]), now, levels.spread[channels], np.r_[i, near[i]], rng
        ):
            mean = group.mean(axis=0)
            amplitude.append(np.where(np.arange(len(channels)) == i, mean[now], mean.max(axis=0)))
            noise = group[:, now].std(axis=0) / np.sqrt(len(group))
            error.append(np.hypot(_NOISE * noise, _FLOOR * mean[now, i]))
    if not amplitude:
        return Fields(np.zeros((0, len(channels))), np.ones((0, len(channels))))
    return Fields(
        np.array(amplitude, dtype=np.float64), np.maximum(np.array(error, dtype=np.float64), 1e-9)
    )


def _groups(
    events: NDArray, now: int, spread: NDArray, around: NDArray, rng: np.random.Generator
) -> Iterator[NDArray[np.float32]]:
    """Events (n, moments, k) of one channel, in groups that are similar on channels ``around``."""
    from sklearn.cluster import KMeans

    if len(events) > _MOST:
        events = events[np.sort(rng.choice(len(events), _MOST, replace=False))]
    count = min(_GROUPS, len(events) // _FEWEST)
    if count < 1:
        return
    seen = events[:, now, around] / spread[around]
    label = KMeans(count, n_init=2, random_state=0).fit_predict(seen)
    for one in range(count):
        mine = events[label == one]
        if len(mine) >= _FEWEST // 2:
            yield mine
