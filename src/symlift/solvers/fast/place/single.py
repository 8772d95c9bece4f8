"""One column for each point: searched on two parts of the rows, then on all of them, and judged by
what each part says of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.search.criterion import Slots, fit_lags, make_slots, misfit
from symlift.search.moves.gaps import can_move_gaps
from symlift.search.moves.regrow import GROWN_BY
from symlift.search.problem import Halves
from symlift.search.replicated import PartsSearch, search_parts
from symlift.search.schedule import CHAINS, SearchResult, search
from symlift.search.score import (
    PlaceScore,
    explained_both_ways,
    explained_elsewhere,
    margins,
    neighbour_prediction,
    score_both_ways,
)
from symlift.search.settings import PlaceSettings
from symlift.solvers.fast.place.contract import PlacementStatistics
from symlift.solvers.fast.place.finish import Settled
from symlift.solvers.starts.portfolio import starts_from
from symlift.statistics.correlations import kurtosis_and_skewness, partial_statistics

__all__ = ["is_local", "judged_result", "settle_single"]

# starts where columns look mixed: all of them would be work for nothing
_MIXED_STARTS = 4


def settle_single(
    halves: Halves,
    c: NDArray,
    slots: Slots,
    rng: np.random.Generator,
    settings: PlaceSettings,
    given: NDArray | None = None,
) -> Settled:
    """Place one column per point; ``given`` (d, P): coordinates to begin with."""
    core = halves.columns
    if slots.grid.ndim == 1 and not slots.grid.periodic[0] and len(core) < slots.size:
        # an order is clearer than gaps: it is searched alone, and competes
        alone = make_slots(Grid((len(core),)))
        order = settle_single(halves, c, alone, rng, settings, given)
        if not can_move_gaps(order.slot, slots):
            return replace(order, slots=slots)
        given, settings = order.slot[:, None].astype(float), replace(settings, starts=1)
    own = c[np.ix_(core, core)]
    judge = settings.judge
    tried: dict[str, tuple[SearchResult, float | None]] = {}
    for kind in ("partial", "lags"):
        attempt = _try_line if slots.grid.ndim == 1 else _try_grid
        tried[kind] = attempt(kind, halves, own, slots, rng, settings, given)
        explained, ceiling, _ = _known(kind, halves, tried[kind][0].slot, slots, settings)
        if (tried[kind][1] or 0.0) >= judge.alike or judge.is_convinced(explained, ceiling):
            break
    rated = _rated(halves, slots)
    kind = max(tried, key=lambda one: rated(tried[one][0].slot).explained)
    result, agreement = tried[kind]
    return judged_result(
        kind,
        halves,
        result,
        _all_rows(kind, halves, own, settings),
        slots,
        settings,
        is_local(halves, result.slot, slots, settings),
        agreement,
    )


def _try_grid(
    kind: str,
    halves: Halves,
    c: NDArray,
    slots: Slots,
    rng: np.random.Generator,
    settings: PlaceSettings,
    given: NDArray | None,
) -> tuple[SearchResult, float | None]:
    """Search by one kind of statistic on all rows; what is right there grows again from a part."""
    mixed = _look_mixed(halves, settings)
    starts = islice(
        _begun(starts_from(c, slots.grid, rng, settings), given), _MIXED_STARTS if mixed else None
    )
    # behind a mixing there is nothing to grow, and plain correlations are tried where partial ones
    # are noise
    grow = None if mixed or kind == "lags" else lambda: partial_statistics(c, GROWN_BY)
    S = _all_rows(kind, halves, c, settings)
    hope = _promising(kind, halves, slots, settings, mixed)
    few = len(halves.rows.scores) < settings.few_rows
    result = search(S, slots, starts, rng, settings, 0.5 if few else 1.0, hope, grow)
    judged = result.judged(_rated(halves, slots), settings.judge.errors, halves.both_ways_noise)
    return judged, result.returned


def _try_line(
    kind: str,
    halves: Halves,
    c: NDArray,
    slots: Slots,
    rng: np.random.Generator,
    settings: PlaceSettings,
    given: NDArray | None,
) -> tuple[SearchResult, float]:
    """Search a line or ring by one kind of statistic, on two parts of the rows and then on all, and
    how alike the result is to what each part gives.
    """
    mixed = _look_mixed(halves, settings)
    first, second = (
        _begun(starts_from(part, slots.grid, rng, settings), given) for part in halves.correlations
    )
    most = min(settings.starts or CHAINS, _MIXED_STARTS if mixed else CHAINS)
    pair = halves.statistics(kind)
    parts = search_parts(pair, slots, (first, second), settings, most)
    begun = parts.best
    if not mixed:
        parts = parts.with_turned(pair, slots, settings)

    def starts() -> Iterator[NDArray]:
        points = slots.grid.indices()
        if given is not None:
            yield given
        for slot in (*begun, *parts.best):
            yield points[slot].astype(np.float64)
        if parts.agreement < settings.judge.alike and not mixed and settings.starts is None:
            yield from starts_from(c, slots.grid, rng, settings)

    S = _all_rows(kind, halves, c, settings)
    few = len(halves.rows.scores) < settings.few_rows
    # with few rows, what the parts say of each other decides nothing
    hope = None if few else _promising(kind, halves, slots, settings, mixed)
    result = search(S, slots, starts(), rng, settings, 0.5 if few else 1.0, hope)
    if not mixed:
        result = result.with_turned(S, slots, settings)
    result = _with_parts(result, parts, S, slots, settings)
    result = result.judged(_rated(halves, slots), settings.judge.errors, halves.both_ways_noise)
    return result, parts.replicates(result.slot, slots.grid)


def _promising(
    kind: str, halves: Halves, slots: Slots, settings: PlaceSettings, mixed: bool
) -> Callable[[NDArray], bool]:
    """Whether an arrangement is worth more work than starts."""

    def promising(slot: NDArray) -> bool:
        explained, ceiling, z = _known(kind, halves, slot, slots, settings)
        if settings.judge.is_convinced(explained, ceiling):
            return True
        return settings.judge.has_hope(explained, ceiling, z) and not mixed

    return promising


def _begun(starts: Iterator[NDArray], given: NDArray | None) -> Iterator[NDArray]:
    if given is not None:
        yield given
    yield from starts


def _with_parts(
    result: SearchResult, parts: PartsSearch, S: NDArray, slots: Slots, settings: PlaceSettings
) -> SearchResult:
    """The result of all rows, with what the parts reached in its pool."""
    more = [slot for end in parts.ends for _, slot in end] + parts.begun
    return result.joined((misfit(S, slot, slots, settings.prior_pairs), slot) for slot in more)


def _all_rows(
    kind: str, halves: Halves, c: NDArray, settings: PlaceSettings
) -> NDArray[np.float64]:
    """The statistics of all rows, whose plain correlations are c."""
    if kind == "partial":
        return partial_statistics(c, settings.ridges)
    return halves.rows.statistics(kind, settings.ridges, None, halves.columns, c)


def _known(
    kind: str, halves: Halves, slot: NDArray, slots: Slots, settings: PlaceSettings
) -> tuple[float, float, float]:
    return explained_both_ways(halves.statistics(kind), slot, slots, settings.prior_pairs)


def _rated(halves: Halves, slots: Slots) -> Callable[[NDArray], PlaceScore]:
    """What placements are compared by: the common target, each part judged by the other."""
    return lambda slot: score_both_ways(halves.target, slot, slots)


def _look_mixed(halves: Halves, settings: PlaceSettings) -> bool:
    """Whether partial correlations are normal numbers, and not because they are noise.

    Behind a rotation every pair of columns is like every other one. On small grids a search finds
    some order in them (15 points: displacements explain 0.2 to 0.3 of what is real, in the right
    order of points 0.6 and more), so that what is explained does not show it.
    """
    S, S_held = halves.partial
    for s, held in zip(S, S_held, strict=True):
        kurtosis, skewness = kurtosis_and_skewness(s)
        if kurtosis > settings.few_partners or abs(skewness) > settings.mostly_positive:
            return False
        # partial correlations of a signal far below its noise are normal, too
        if np.vdot(s, held) < settings.mostly_real * np.vdot(held, held):
            return False
    return True


def is_local(halves: Halves, slot: NDArray, slots: Slots, settings: PlaceSettings) -> bool:
    """Whether neighbours predict columns, or lags explain plain correlations.

    After a sine transform of a field with ends, the weak correlations that remain are ordered, too,
    by frequency: partial correlations explain 0.6 of them, but neighbours predict 0.01 of a column
    (digits 0.6, faces 0.9), and lags explain 0.3 of plain correlations (0.9 for a field with ten
    times its power of added noise).
    """
    predicted = 1 - np.exp(neighbour_prediction(*halves.correlations, slot, slots.grid).mean())
    if settings.judge.is_local(float(predicted)):
        return True
    explained, ceiling, _ = explained_elsewhere(*halves.lags, slot, slots, settings.prior_pairs)
    return settings.judge.explains_enough(explained / max(ceiling, 1e-9))


def judged_result(
    kind: str,
    halves: Halves,
    result: SearchResult,
    S: NDArray,
    slots: Slots,
    settings: PlaceSettings,
    whole: bool,
    agreement: float | None = None,
) -> Settled:
    """The result of a search with its confidence, and whether it is accepted; S: the statistics
    that it was fitted to.
    """
    explained, ceiling, z = _known(kind, halves, result.slot, slots, settings)
    share = explained / ceiling if ceiling > 0 else 0.0
    accepted = bool(whole and settings.judge.accepts(kind, explained, ceiling, z))
    model = fit_lags(S, result.slot, slots, 0.0, settings.prior_pairs)
    margin = margins(halves.statistics(kind)[1], result.slot, slots, model)
    sure = _confidence(margin, share if accepted else 0.0, result)
    statistics = PlacementStatistics(
        kind, explained, ceiling, accepted, result.misfit, result.starts, result.agreeing, agreement
    )
    return Settled(slots, halves.columns, result.slot, sure, statistics, {"share": share, "z": z})


def _confidence(margin: NDArray, share: float, result: SearchResult) -> NDArray[np.float64]:
    """Confidence between 0 and 1 for each column.

    Combines the share of real structure that the placement explains, whether starts agreed, and the
    column's own margin. Textures, 50 to 500 rows: where no second start ended at the best optimum,
    0.02 to 0.97 of the columns were right (median 0.4), else 0.97 to 1. Where held-out rows prefer
    other slots for most columns, as with a signal 10 dB below the noise, hardly any column is
    placed correctly.
    """
    whole = np.clip((share - 0.2) / 0.5, 0, 1) * (0.98 if result.agreeing >= 2 else 0.5)
    usual = float(np.median(margin))
    if usual <= 0:
        return np.full(len(margin), 0.2 * whole)
    return np.asarray(whole * np.clip(0.6 + margin / usual, 0.1, 1))
