"""Columns that share points: the search over several channels, and the numbers that bits encode."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.search.criterion import Slots, fit_lags, make_slots
from symlift.search.moves.descent import refine
from symlift.search.moves.restart import anneal
from symlift.search.schedule import SearchResult, search
from symlift.search.score import explained_elsewhere
from symlift.search.settings import PlaceSettings
from symlift.solvers.fast import bit_places, bits
from symlift.solvers.starts.channels import (
    families,
    matched_channels,
    place_next_to,
    shared_places,
    staggered_places,
)
from symlift.solvers.starts.portfolio import starts_from
from symlift.statistics.correlations import (
    correlations,
    fisher,
    magnitudes,
    partial_correlations,
)

__all__ = ["bit_number_map", "polarities", "search_channels"]

_SAME = 1e-6
_RESTARTS = 8


def search_channels(
    z: NDArray,
    present: NDArray | None,
    S: NDArray,
    S_held: NDArray,
    slots: Slots,
    rng: np.random.Generator,
    settings: PlaceSettings,
    two_valued: bool,
) -> SearchResult:
    """Slots (points and channels) of columns with scores z (n, d) and statistics S, the best of
    several starts.

    The search ends when two starts agree. For bits it ends with the first start that held-out
    statistics support: only one of the starts is right, and the others take minutes. Not so for
    colour, where a group mixed from two channels is supported, too (0.92), with 0.975 of its
    columns right.
    """
    results: list[tuple[float, NDArray[np.int64]]] = []
    known: list[float] = []
    # bits: one start takes 20 s at 648 slots
    most = 2 if two_valued and slots.size > settings.many_slots else settings.channel_starts
    for start in _starts(z, present, S, slots, rng, settings, two_valued):
        results.append(refine(S, start, slots, settings.widths, settings.prior_pairs))
        explained, ceiling, _ = explained_elsewhere(
            S, S_held, results[-1][1], slots, settings.prior_pairs
        )
        known.append(explained)
        believed = two_valued and settings.judge.is_convinced(explained, ceiling)
        least = min(value for value, _ in results)
        agreeing = sum(value < least + _SAME for value, _ in results)
        if believed or agreeing >= settings.judge.agreeing or len(results) == most:
            break
    value, slot = results[int(np.argmax(known))]
    if not two_valued and agreeing < settings.judge.agreeing:
        value, slot = _again(S, value, slot, slots, rng, settings)
    agreeing = settings.judge.agreeing if believed else agreeing
    return SearchResult(value, slot, len(results), agreeing)


def _again(
    S: NDArray,
    value: float,
    slot: NDArray[np.int64],
    slots: Slots,
    rng: np.random.Generator,
    settings: PlaceSettings,
) -> tuple[float, NDArray[np.int64]]:
    """The best of a few annealed restarts around one result, where no two starts agree: a few
    points whose columns are exchanged as a whole are a local optimum (gradients of 8 x 8: 0.97).
    """
    for _ in range(_RESTARTS):
        at = slots.grid.indices()[slot // slots.depth]
        y = at + 0.5 * rng.normal(size=at.shape)
        model = fit_lags(S, slot, slots, 0.5, settings.prior_pairs)
        start = anneal(S, y, slots, model, rng)
        other, moved = refine(S, start, slots, settings.widths, settings.prior_pairs)
        value, slot = (other, moved) if other < value else (value, slot)
    return value, slot


def _starts(
    z: NDArray,
    present: NDArray | None,
    S: NDArray,
    slots: Slots,
    rng: np.random.Generator,
    settings: PlaceSettings,
    two_valued: bool,
) -> Iterator[NDArray[np.int64]]:
    grid, depth = slots.grid, slots.depth
    c = correlations(z, present)
    strongest = np.sort(np.abs(c) - np.eye(len(c)), axis=1)[:, -4:].mean(axis=1)
    if two_valued:
        yield _by_families(c, S, strongest, grid, depth, rng, settings)
    else:
        for ridge in (settings.start_ridge, settings.ridges[0]):
            staggered = staggered_places(partial_correlations(c, ridge), grid, depth, rng)
            if staggered is not None:
                yield staggered
    energy = correlations(magnitudes(z, present), present)
    shared = (
        (c, settings.ridges[1]),
        (energy, settings.start_ridge),
        (c, settings.start_ridge),
        (energy, settings.ridges[1]),
    )
    for correlation, ridge in shared:
        point = shared_places(partial_correlations(correlation, ridge), grid, depth, rng)
        yield matched_channels(S[1], point, grid, depth)
    if not two_valued and len(c) >= grid.size:
        yield _by_families(c, S, strongest, grid, depth, rng, settings)


def _by_families(
    c: NDArray,
    S: NDArray,
    level: NDArray,
    grid: Grid,
    depth: int,
    rng: np.random.Generator,
    settings: PlaceSettings,
) -> NDArray[np.int64]:
    """Place one channel alone, then the others relative to it.

    On bits of photographs, every group holds one channel, and every column is placed correctly.
    """
    groups = list(families(level, grid.size))
    anchor = groups[0]
    own = c[np.ix_(anchor, anchor)]
    S_own = np.stack([fisher(partial_correlations(own, ridge)) for ridge in settings.ridges])
    anchored = search(S_own, make_slots(grid), starts_from(own, grid, rng, settings), rng, settings)
    slot = np.empty(len(c), dtype=np.int64)
    slot[anchor] = anchored.slot * depth + depth - 1
    for rank, group in enumerate(groups[1:], start=1):
        slot[group] = (
            place_next_to(S, anchor, anchored.slot, group, grid, settings.prior_pairs) * depth
            + depth
            - 1
            - rank
        )
    return slot


def polarities(c: NDArray, grid: Grid) -> NDArray[np.float64]:
    """±1 for each two-valued column, which may be inverted: the strongest links become positive."""
    graph = bit_places.nearest_columns(c - np.eye(len(c)), neighbours=2 * grid.ndim)
    return bit_places.polarities_along_tree(graph, c)


def bit_number_map(
    planes: NDArray[np.uint8], c: NDArray, point: NDArray, channel: NDArray, grid: Grid
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The map (N, d) from bits, 0 or 1, to the number that they encode, and each bit's
    significance.

    The lowest significance is 0. planes (d, n) are not inverted; c (d, d): their correlations.
    """
    near = bits.Neighbourhoods(point, grid)
    slopes = bits.bit_weights(planes, near, channel)
    rank = np.argsort(np.argsort(-np.abs(slopes)))
    weights = np.where(slopes < 0, -1, 1) * 2.0 ** -(1 + rank)
    deviation = planes.std(axis=1, dtype=np.float32)
    W = bits.number_map(
        np.asarray(c - np.eye(len(c)), dtype=np.float32), deviation, near, channel, weights
    )
    return W, (len(rank) - 1 - rank)[channel]
