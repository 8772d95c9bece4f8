"""Channels on contacts: where the sources would have them, and gaps where nobody is.

Distances that are read from fields add up to a bend along a probe, but contacts are where they are:
sources are fitted with channels on contacts, and channels moved to the contacts that the sources
ask for, in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from symlift.ephys.fields import Fields, Sources, adjust, fit_sources, loss, residuals
from symlift.ephys.motions import motions_of

__all__ = ["Arranged", "arrange", "arranged", "contact_costs"]

# rounds of fitting to rank proposals, and to compare the best few
_ROUGH, _FINE, _FEW = 12, 60, 4
# a start that ends so many times as high says nothing against the best one
_RIVAL = 1.2


@dataclass(frozen=True)
class Arranged:
    """Slot of each channel, what the fields leave unexplained, and the sources.

    ``agreement``: the share of channels on which a start that ended nearly as low agrees;
    ``ahead``: by how much any other place of the gaps on a line is worse.
    """

    slot: NDArray[np.int64]
    cost: float
    sources: Sources
    agreement: float = 1.0
    ahead: float = np.inf


def arranged(
    fields: Fields, points: NDArray, slot: NDArray[np.int64], rounds: int = _FINE
) -> Arranged:
    """The sources of channels at ``slot``, and what they leave unexplained."""
    sources = fit_sources(fields, points[slot], rounds=rounds)
    return Arranged(slot, float(loss(residuals(fields, sources, points[slot])).sum()), sources)


def contact_costs(fields: Fields, sources: Sources, points: NDArray) -> NDArray[np.float64]:
    """(d, M): what is unexplained of each channel if it were at each of ``points`` (M, P)."""
    amplitude = np.exp(np.clip(sources.log_amplitude(points), -50, 50))
    target, root = fields.compressed, np.sqrt(fields.weight)
    cost = np.empty((target.shape[1], len(points)))
    for i in range(len(cost)):
        expected = np.arcsinh(amplitude / fields.error[:, i, None])
        cost[i] = loss((target[:, i, None] - expected) * root[:, i, None]).sum(axis=0)
    return cost


def arrange(fields: Fields, points: NDArray, starts: list[NDArray[np.int64]]) -> Arranged:
    """The channels' slots, from the best of ``starts``, each improved by itself."""
    found = sorted(
        (_improved(fields, points, arranged(fields, points, slot)) for slot in starts),
        key=lambda a: a.cost,
    )
    if points.shape[1] == 1 and len(points) > len(found[0].slot):
        found = sorted((_chained(fields, points, one) for one in found), key=lambda a: a.cost)
    best = found[0]
    if len(found) == 1 or found[1].cost > _RIVAL * best.cost:
        return best
    moved = (to[best.slot] for to in motions_of(points, best.slot))
    return replace(best, agreement=max(float(np.mean(slot == found[1].slot)) for slot in moved))


def _improved(fields: Fields, points: NDArray, now: Arranged, rounds: int = 10) -> Arranged:
    """Where the sources would rather have the channels, until that is where they are."""
    for _ in range(rounds):
        best = now
        for slot in _proposals(fields, points, now):
            if not np.array_equal(slot, now.slot):
                best = min(best, arranged(fields, points, slot), key=lambda a: a.cost)
        if best is now:
            break
        now = best
    return now


def _proposals(fields: Fields, points: NDArray, now: Arranged) -> Iterator[NDArray[np.int64]]:
    yield np.asarray(
        linear_sum_assignment(contact_costs(fields, now.sources, points))[1], dtype=np.int64
    )
    free, _ = adjust(fields, points[now.slot], now.sources)
    slot = now.slot
    for _ in range(6):
        laid = np.c_[free, np.ones(len(free))]
        laid = laid @ np.linalg.lstsq(laid, points[slot], rcond=None)[0]
        slot = linear_sum_assignment(np.sum((laid[:, None] - points[None]) ** 2, axis=-1))[1]
    yield np.asarray(slot, dtype=np.int64)


def _chained(fields: Fields, points: NDArray, now: Arranged) -> Arranged:
    """Gaps on a line, moved: the channels between a free contact and another one each move up by
    one.
    """
    order = np.argsort(points[:, 0], kind="stable")
    rank = np.argsort(order)
    while True:
        at = np.full(len(points), -1)
        at[rank[now.slot]] = np.arange(len(now.slot))
        proposals = []
        for gap in np.flatnonzero(at < 0):
            for to in np.flatnonzero(at >= 0):
                new = np.insert(np.delete(at, gap), to, -1)
                slot = np.empty_like(now.slot)
                slot[new[new >= 0]] = order[new >= 0]
                proposals.append(arranged(fields, points, slot, _ROUGH))
        # the same gaps come about in several ways
        few = {one.slot.tobytes(): one.slot for one in sorted(proposals, key=lambda a: a.cost)}
        few.pop(now.slot.tobytes(), None)
        best = min(
            (arranged(fields, points, slot) for slot in list(few.values())[:_FEW]),
            key=lambda a: a.cost,
        )
        if best.cost >= now.cost - 1e-6:
            return replace(now, ahead=best.cost - now.cost)
        now = best
