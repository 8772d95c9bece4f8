"""Compare a map of channels with the data: exchanges that explain the fields better, and by how
much.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from symlift.ephys.arrange import Arranged, arranged, improved, with_neighbours_anew
from symlift.ephys.channels import Channels
from symlift.ephys.fields import Fields, best_contacts, contact_costs
from symlift.ephys.slips import filled
from symlift.maps.motions import motions_of, turns
from symlift.search.moves.descent import refine
from symlift.search.settings import PlaceSettings
from symlift.solvers.contract import Progress, no_progress
from symlift.solvers.fast.place.points import in_steps, place_on_points, point_slots
from symlift.statistics.correlations import fisher, partial_correlations

__all__ = ["Exchange", "Exchanges", "find_exchanges"]

# least gain in cost for an exchange to be reported: exchanges on right maps gain less, true ones
# more
_WORTH = 30.0
# half of the confidence
_HALF = 10.0
_ROUNDS = 12
# share of the channels from whose exchange on other starts are tried, and how many
_MANY, _STARTS = 0.1, 4
# rounds of fitting to compare those, and how many are followed
_ROUGH, _FOLLOWED = 12, 3


@dataclass(frozen=True)
class Exchange:
    """Channels whose contacts were permuted cyclically: each belongs where the next one is; and the
    confidence.
    """

    channels: tuple[int, ...]
    confidence: float


@dataclass(frozen=True)
class Exchanges:
    """What is exchanged, the confidence that nothing else is, the contacts (d,) after that, and
    what these leave unexplained.
    """

    groups: tuple[Exchange, ...]
    confidence: float
    contact: NDArray[np.int64]
    cost: float

    @property
    def moved(self) -> int:
        """How many channels are elsewhere."""
        return sum(len(one.channels) for one in self.groups)


def find_exchanges(
    channels: Channels,
    positions: NDArray,
    claimed: NDArray[np.int64],
    progress: Progress = no_progress,
) -> Exchanges:
    """Exchanges that turn the ``claimed`` contacts (d,) into those that explain the fields best."""
    points, _ = in_steps(positions)
    fields, living = channels.fields, channels.living
    slot = claimed[living]
    progress("contacts", 0.6)
    best = _settled(fields, points, slot)
    if (best.slot != slot).mean() > _MANY:
        best = min(
            best, *_from_elsewhere(channels, points, slot, best), key=lambda a: round(a.cost, 6)
        )
    progress("exchanges", 0.9)
    slots = _as_claimed(points, slot, best.slot)
    exchanges = []
    for cycle in _cycles(slot, slots):
        undone = slots.copy()
        undone[cycle] = slot[cycle]
        worth = (
            arranged(fields, points, undone).cost - best.cost if _is_bijection(undone) else np.inf
        )
        if worth > _WORTH:
            exchanges.append(
                Exchange(tuple(int(i) for i in living[cycle]), float(worth / (worth + _HALF)))
            )
        else:
            slots = undone
    after = arranged(fields, points, slots)
    contact = claimed.copy()
    contact[living] = slots
    return Exchanges(tuple(exchanges), _stability(fields, points, after), contact, after.cost)


def _from_elsewhere(
    channels: Channels, points: NDArray, slot: NDArray, best: Arranged
) -> Iterator[Arranged]:
    """Where the best of several starts end, on the contacts that are taken."""
    taken = np.sort(slot)
    at, fields = points[taken], channels.fields
    claimed, settled = np.searchsorted(taken, slot), np.searchsorted(taken, best.slot)
    starts = [*_more_starts(channels, at, claimed), settled]
    orders = [order for start in starts for order in _turned(at, start)]
    orders.append(filled(fields, at, claimed, best.slot != slot))
    first = {round(a.cost, 3): a for a in (arranged(fields, at, order, _ROUGH) for order in orders)}
    for cost in sorted(first)[:_FOLLOWED]:
        start = improved(fields, at, arranged(fields, at, first[cost].slot))
        end, _ = with_neighbours_anew(fields, at, start)
        yield replace(end, slot=taken[end.slot])


def _turned(at: NDArray, order: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """An assignment to points, turned and mirrored, on those that are nearest."""
    middle = (at.min(axis=0) + at.max(axis=0)) / 2
    for turn in turns(at.shape[1]):
        places = (at[order] - middle) @ turn + middle
        apart = np.sum((places[:, None] - at[None]) ** 2, axis=-1)
        yield np.asarray(linear_sum_assignment(apart)[1], dtype=np.int64)


def _more_starts(channels: Channels, at: NDArray, claimed: NDArray) -> Iterator[NDArray[np.int64]]:
    """The claimed map onto the points ``at`` improved by pairs of channels, and maps made from
    nothing.
    """
    c, settings, slots = channels.correlation, PlaceSettings(), point_slots(at)
    S = np.stack([fisher(partial_correlations(c, ridge)) for ridge in settings.ridges])
    yield refine(S, claimed, slots, (0.0,), settings.prior_pairs, rounds=60)[1]
    for _, order in place_on_points(c, slots)[:_STARTS]:
        yield order


def _settled(fields: Fields, points: NDArray, slot: NDArray[np.int64]) -> Arranged:
    """Move channels to the contacts that fit the sources best, among those in use, until nothing
    changes.
    """
    now = arranged(fields, points, slot)
    taken = np.sort(slot)
    for _ in range(_ROUNDS):
        new = arranged(fields, points, taken[best_contacts(fields, now.sources, points[taken])])
        if new.cost >= now.cost - 1e-6:
            break
        now = new
    return now


def _as_claimed(points: NDArray, claimed: NDArray, slots: NDArray) -> NDArray[np.int64]:
    """The result, rotated or mirrored as the geometry allows, so that most channels are where the
    map claims.
    """
    carried = [to[slots] for to in motions_of(points, slots)]
    return np.asarray(max(carried, key=lambda slot: int((slot == claimed).sum())), dtype=np.int64)


def _cycles(claimed: NDArray, slots: NDArray) -> list[NDArray[np.int64]]:
    """Groups of channels that take each other's contacts, those that stay left out."""
    at = {int(contact): i for i, contact in enumerate(claimed)}
    left = set(np.flatnonzero(claimed != slots).tolist())
    groups = []
    while left:
        i = min(left)
        group = []
        while i in left:
            left.remove(i)
            group.append(i)
            i = at.get(int(slots[i]), -1)
        groups.append(np.array(group))
    return groups


def _is_bijection(slot: NDArray) -> bool:
    return len(np.unique(slot)) == len(slot)


def _stability(fields: Fields, points: NDArray, now: Arranged) -> float:
    """Confidence that no other channels are exchanged, from the cost of the cheapest exchange of
    two.
    """
    cost = contact_costs(fields, now.sources, points[now.slot])
    change = cost - np.diag(cost)[:, None]
    change = change + change.T
    np.fill_diagonal(change, np.inf)
    least = max(float(np.quantile(change.min(axis=1), 0.05)), 0.0)
    return least / (least + _HALF)
