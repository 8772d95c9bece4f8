"""A start for probes of several shanks: channels that see the same neurons are a shank.

A search over all contacts at once can end with two shanks mixed, channel by channel, and no move of
a few channels takes them apart. Neurons do: hardly one is seen by two shanks.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from symlift.ephys.arrange import arrange_channels, arranged
from symlift.ephys.fields import Fields
from symlift.maps.faults import groups_apart
from symlift.maps.motions import motions_of
from symlift.search.parts import weakest_cut
from symlift.solvers.fast.place.points import in_steps, place_on_points, point_slots

__all__ = ["start_by_shanks"]

# shanks whose orders are all compared; channels of a part, and neurons, that have an order
_MANY, _FEWEST = 7, 4
# errors of an amplitude from which a channel hears a neuron, and starts that are followed
_HEARD, _STARTS = 3.0, 2
# rounds of fitting to compare ways round
_ROUGH = 12


def start_by_shanks(c: NDArray, fields: Fields, points: NDArray) -> NDArray[np.int64] | None:
    """The contact at ``points`` (M, P) of each channel, with correlations c (d, d): the channels of
    each shank by themselves, shanks that share neurons next to each other, each the way round that
    explains the fields best. None if there is one shank, or if channels are not in such parts.
    """
    group = groups_apart(points)
    shanks = [np.flatnonzero(group == k) for k in range(int(group.max()) + 1)]
    if not 1 < len(shanks) <= _MANY:
        return None
    shared = _shared_neurons(fields)
    label = _parts(shared, len(shanks))
    if label is None:
        return None
    parts = [np.flatnonzero(label == k) for k in range(len(shanks))]
    order = _order(shared, parts, points, shanks)
    if order is None:
        return None
    slot = np.full(len(c), -1, dtype=np.int64)
    for shank, part in zip(shanks, (parts[k] for k in order), strict=True):
        at, _ = in_steps(points[shank])
        local = _alone(c[np.ix_(part, part)], fields.of(part), at)
        ways = [shank[to[local]] for to in motions_of(at, np.arange(len(at)))]
        slot[part] = ways[0]
        now = np.flatnonzero(slot >= 0)
        if len(ways) > 1 and len(now) > len(part):
            slot[part] = min(ways, key=lambda way: _cost(fields, points, slot, part, way))
    return slot


def _shared_neurons(fields: Fields) -> NDArray[np.float64]:
    """(d, d): how much the neurons that two channels see are the same, from 0 to 1."""
    size = np.maximum(fields.amplitude, 0.0)
    size = np.sqrt(size / np.maximum(np.linalg.norm(size, axis=1, keepdims=True), 1e-12))
    both = size.T @ size
    own = np.sqrt(np.maximum(np.diag(both), 1e-12))
    return np.asarray(both / own / own[:, None])


def _parts(shared: NDArray, count: int) -> NDArray[np.int64] | None:
    """(d,): so many parts, cut where channels share least."""
    label = np.zeros(len(shared), dtype=np.int64)
    for number in range(1, count):
        cut = weakest_cut(shared, label)
        if cut is None:
            return None
        label[cut] = number
    return label


def _order(
    shared: NDArray, parts: list[NDArray], points: NDArray, shanks: list[NDArray]
) -> tuple[int, ...] | None:
    """The part on each shank: parts that share neurons on shanks that are near each other."""
    between = np.array([[shared[np.ix_(a, b)].max() for b in parts] for a in parts])
    middle = np.array([points[shank].mean(axis=0) for shank in shanks])
    apart = cdist(middle, middle)
    near = np.exp(-apart / np.median(apart[np.triu_indices(len(shanks), 1)]))
    fits = [
        order
        for order in permutations(range(len(parts)))
        if all(len(parts[k]) <= len(shank) for k, shank in zip(order, shanks, strict=True))
    ]
    return max(fits, key=lambda o: float(np.sum(near * between[np.ix_(o, o)])), default=None)


def _alone(c: NDArray, fields: Fields, at: NDArray) -> NDArray[np.int64]:
    """The contact at ``at`` of each channel of one shank."""
    seen = (fields.amplitude > _HEARD * fields.error).sum(axis=1) > 1
    if len(c) < _FEWEST or seen.sum() < _FEWEST:
        return np.arange(len(c))
    starts = [slot for _, slot in place_on_points(c, point_slots(at))[:_STARTS]]
    return arrange_channels(fields.some(seen), at, starts).slot


def _cost(
    fields: Fields, points: NDArray, slot: NDArray, part: NDArray, way: NDArray[np.int64]
) -> float:
    """What the channels that have a contact leave unexplained with ``part`` on ``way``."""
    tried = slot.copy()
    tried[part] = way
    now = np.flatnonzero(tried >= 0)
    return arranged(fields.of(now), points, tried[now], _ROUGH).cost
