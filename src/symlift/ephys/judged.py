"""A map of channels against what the traces say: faults of blocks, exchanges, and the map that is
found from nothing where neither explains the traces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from symlift.ephys.arrange import arranged, saturation
from symlift.ephys.channels import Channels
from symlift.ephys.check import Exchange, find_exchanges
from symlift.ephys.wiring import Wiring, match_contacts
from symlift.maps.faults import Kind
from symlift.maps.judge import NO_ANCHORS, Anchors, Judgement, judge_map, price
from symlift.maps.whole import whole_motions
from symlift.solvers.contract import Progress, no_progress
from symlift.solvers.fast.place.points import in_steps
from symlift.statistics.correlations import fisher, partial_correlations

__all__ = ["FieldCriterion", "JudgedMap", "judge_channels", "rejudged"]

# rounds of fitting for a rough and for a close look
_ROUGH, _FINE = 12, 60
# the part of all that could be unexplained above which a map is compared with one found from
# nothing, and what that must be worth
_DOUBTFUL, _WORTH = 0.4, 30.0
_RIDGE = 0.01
# faults one after the other, and maps that are equally good, from which the same is done: any
# map can be made a little better by some blocks
_SEVERAL, _MANY = 2, 4
# faults of so few channels are exchanges, and rings of so few can be read
_FEW = 3


class FieldCriterion:
    """What the fields of neurons leave unexplained when channels are at given positions."""

    def __init__(self, channels: Channels, count: int) -> None:
        self.channels = channels
        self.count = count

    @property
    def living(self) -> NDArray[np.int64]:
        return self.channels.living

    @cached_property
    def alike(self) -> NDArray[np.float64]:
        S = np.zeros((self.count, self.count))
        living = self.living
        S[np.ix_(living, living)] = fisher(partial_correlations(self.channels.correlation, _RIDGE))
        return S

    def cost(self, positions: NDArray, rough: bool = False) -> float:
        points, _ = in_steps(positions)
        rounds = _ROUGH if rough else _FINE
        return arranged(self.channels.fields, points, self.living, rounds).cost


@dataclass(frozen=True)
class JudgedMap:
    """Faults and exchanges of a map, what is undecided, and where channels belong.

    ``confidence``: that nothing else is wrong. ``anew``: the wiring from nothing, if it explains
    the traces better than all repairs of the map.
    """

    judgement: Judgement
    exchanges: tuple[Exchange, ...]
    confidence: float
    positions: NDArray[np.float64]
    anew: Wiring | None = None


def judge_channels(
    channels: Channels,
    positions: NDArray,
    shanks: NDArray[np.int64] | None = None,
    layouts: Sequence[tuple[str, NDArray]] = (),
    anchors: Anchors = NO_ANCHORS,
    progress: Progress = no_progress,
    match: bool = True,
) -> JudgedMap:
    """A map that puts channels at ``positions`` (d, P); with ``match``, one that nothing explains
    is compared with a map from nothing, which takes longer than all the rest.
    """
    every = np.arange(len(positions))
    criterion = FieldCriterion(channels, len(positions))
    progress("blocks", 0.55)
    whole = whole_motions(positions) if len(anchors.columns) else []
    judged = judge_map(criterion, positions, shanks, layouts, anchors, whole)
    most = saturation(len(channels.living)) * max(len(channels.fields.amplitude), 1)
    if not match and judged.cost > _DOUBTFUL * most:
        # one of several layouts, and not this one: exchanges would only make it a little better
        return JudgedMap(judged, (), 0.0, judged.positions)
    progress("exchanges", 0.7)
    left = find_exchanges(channels, judged.positions, every, progress)
    layout = any(one.fault.kind is Kind.LAYOUT for one in judged.faults)
    several = len(judged.faults) >= _SEVERAL
    if (
        judged.faults
        and not layout
        and (several or left.groups or _moved(judged, channels) <= _FEW)
    ):
        # fewer words for the same: exchanges alone. Two blocks in reverse, one in the other, are
        # one exchange
        alone = find_exchanges(channels, positions, every, progress)
        repairs = len(left.groups) + len(judged.faults)
        if price(alone.cost, len(alone.groups)) <= price(left.cost, repairs):
            judged = Judgement((), (), positions, every, alone.cost, judged.claimed)
            left = alone
    placed = judged.positions[left.contact]
    anew = None
    doubtful = (
        left.cost > _DOUBTFUL * most
        or left.moved > len(channels.living) / 2
        or len(judged.faults) >= _SEVERAL
        or len(judged.undecided) >= _MANY
    )
    if match and doubtful:
        progress("match", 0.8)
        wiring = match_contacts(channels, positions)
        # many exchanges of two can be put right one by one, long rings of channels cannot
        tangled = max((len(one.channels) for one in left.groups), default=0) > _FEW
        many = left.moved > len(channels.living) / 2
        if wiring.arranged.cost < left.cost - _WORTH or (many and tangled):
            anew = wiring
    return JudgedMap(judged, left.groups, left.confidence, placed, anew)


def _moved(judged: Judgement, channels: Channels) -> int:
    return int((judged.to[channels.living] != channels.living).sum())


def rejudged(
    channels: Channels,
    wiring: Wiring,
    positions: NDArray,
    shanks: NDArray[np.int64] | None = None,
    anchors: Anchors = NO_ANCHORS,
) -> Wiring:
    """A wiring from nothing, with shanks turned and exchanged as the traces ask for, and the
    confidence of what they leave open.

    A search that moves channels next to each other ends with each shank turned by itself.
    """
    contact, count = wiring.contact, len(positions)
    d = len(contact)
    rest, free = np.flatnonzero(contact < 0), np.setdiff1d(np.arange(count), contact)
    on = np.full(max(count, d), -1, dtype=np.int64)
    on[:d] = contact
    # the others, and channels that do not exist, take what is left, so that shanks are full
    others = np.r_[rest, np.arange(d, len(on))][: len(free)]
    on[others] = free
    taken = np.flatnonzero(on >= 0)
    rank = np.full(len(on), -1)
    rank[taken] = np.arange(len(taken))
    criterion = FieldCriterion(_renumbered(channels, rank), len(taken))
    given = positions[on[taken]]
    group = None if shanks is None else shanks[on[taken]]
    known = Anchors(rank[anchors.columns], anchors.positions)
    whole = whole_motions(given) if len(anchors.columns) else []
    judged = judge_map(criterion, given, group, (), known, whole)
    new = np.full(d, -1, dtype=np.int64)
    living = channels.living
    new[living] = on[taken][judged.to[rank[living]]]
    sure = wiring.confidence.copy()
    for one in judged.undecided:
        moved = one.fault.to != np.arange(len(taken))
        sure[living] = np.where(
            moved[rank[living]], np.minimum(sure[living], 1 - one.probability), sure[living]
        )
    return replace(wiring, contact=new, confidence=sure)


def _renumbered(channels: Channels, rank: NDArray[np.int64]) -> Channels:
    return replace(channels, living=rank[channels.living])
