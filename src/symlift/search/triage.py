"""Set aside columns that have no point of their own: constants, row numbers, duplicates, noise.

This comes before any embedding: one noise column distorts shortest paths, and one duplicate takes a
point too many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtri

from symlift.search.rows import ColumnRows, score_rows
from symlift.search.settings import PlaceSettings
from symlift.search.wide_rows import WideRows

__all__ = ["Triage", "sort_columns", "triage", "triage_near"]


@dataclass(frozen=True)
class Triage:
    """``reason`` (d,) why a column is set aside, ``twin`` (d,), and the columns left to place."""

    reason: NDArray[np.str_]
    twin: NDArray[np.int64]
    to_place: NDArray[np.int64]


def sort_columns(
    raw: NDArray,
    rng: np.random.Generator,
    settings: PlaceSettings,
    progress: Callable[[str, float | None], None],
) -> tuple[ColumnRows, NDArray[np.float64], Triage]:
    """Scores of the rows, correlations of all columns, and which columns can be placed."""
    progress("rows", 0.0)
    rows = score_rows(raw, rng, settings)
    c = rows.correlations()
    progress("triage", 0.2)
    sorted_out = triage(rows, c, rows.independent_rows(), settings)
    progress("place", 0.3)
    return rows, c, sorted_out


def triage(rows: ColumnRows, c: NDArray, independent: float, settings: PlaceSettings) -> Triage:
    """Sort the columns by their correlations c (d, d), which were computed from ``rows``."""
    reason = _without_value(rows.alive, rows.alive & _index_like(rows, settings))
    living = np.flatnonzero(reason == "")
    size = np.abs(c[np.ix_(living, living)])
    np.fill_diagonal(size, 0.0)
    group = (
        _twins(*_nearest_few(size), settings)
        if len(rows.scores) >= 8 and len(living) > 4
        else np.arange(len(living))
    )
    return _sorted_out(
        reason,
        group,
        lambda alone: _strangers(
            size[np.ix_(alone, alone)], rows, living[alone], independent, settings
        ),
    )


def triage_near(
    rows: WideRows, near: NDArray[np.int32], c: NDArray[np.float32], settings: PlaceSettings
) -> Triage:
    """The same for very many columns, from the correlations c (living, k) with those ``near``."""
    alive = np.zeros(rows.d, dtype=bool)
    alive[rows.columns] = True
    ramps = np.zeros(rows.d, dtype=bool)
    ramps[rows.columns] = _wide_ramps(rows, settings)
    reason = _without_value(alive, ramps)
    mine = np.flatnonzero(reason[rows.columns] == "")
    few = min(5, near.shape[1])
    new = np.full(len(rows.columns) + 1, -1)  # the last is for no column
    new[mine] = np.arange(len(mine))
    some = new[near[mine, :few]]
    group = _twins(some, np.where(some < 0, 2.0, 1 - np.abs(c[mine, :few])), settings)
    worth = max(rows.independent_rows() * rows.fitted / len(rows.position) - 3, 1.0)
    strongest = np.clip(c[mine, 0], 0.0, 1.0).astype(np.float64)

    def strange(alone: NDArray[np.bool_]) -> NDArray[np.bool_]:
        best = strongest[alone]
        z = np.arctanh(np.minimum(best, 1 - 1e-6)) * np.sqrt(worth)
        return _unrelated(best, z, np.full(len(best), worth), settings)

    return _sorted_out(reason, group, strange)


def _without_value(alive: NDArray[np.bool_], ramps: NDArray[np.bool_]) -> NDArray[np.str_]:
    """Why columns have no value for a placement: they are constant, or count the rows."""
    reason = np.full(len(alive), "", dtype="<U9")
    reason[~alive] = "dead"
    # where many columns rise or fall with the row number, that is the field, not a counter
    if ramps.sum() <= 0.2 * max(alive.sum(), 1):
        reason[ramps] = "index"
    return reason


def _sorted_out(
    reason: NDArray[np.str_],
    group: NDArray[np.int64],
    strange: Callable[[NDArray[np.bool_]], NDArray[np.bool_]],
) -> Triage:
    """Columns without a ``reason`` form groups of copies; ``strange`` marks noise among the first
    of each.
    """
    living = np.flatnonzero(reason == "")
    twin = np.full(len(reason), -1, dtype=np.int64)
    first = np.unique(group, return_index=True)[1]
    leader = living[first[np.searchsorted(np.unique(group), group)]]
    copies = leader != living
    twin[living[copies]] = leader[copies]
    reason[living[copies]] = "duplicate"
    reason[living[~copies][strange(~copies)]] = "noise"
    # a copy of noise is noise
    copied = living[copies]
    reason[copied[reason[twin[copied]] == "noise"]] = "noise"
    twin[reason == "noise"] = -1
    return Triage(reason, twin, np.flatnonzero(reason == ""))


def _index_like(rows: ColumnRows, settings: PlaceSettings) -> NDArray[np.bool_]:
    """Columns that rise or fall monotonically with the row number."""
    n = len(rows.scores)
    if n < settings.index_rows:
        return np.zeros(rows.scores.shape[1], dtype=bool)
    ramp = np.arange(n) - (n - 1) / 2
    ramp /= np.sqrt(np.sum(ramp**2))
    first = np.abs(ramp @ rows.scores) / np.sqrt(
        np.maximum(np.einsum("ij,ij->j", rows.scores, rows.scores), 1e-12)
    )
    index_like = np.zeros(rows.scores.shape[1], dtype=bool)
    for i in np.flatnonzero(
        first > 0.9
    ):  # the scores of a ramp are normal quantiles, whose correlation with it is 0.977
        here = slice(None) if rows.present is None else rows.present[:, i] > 0
        index_like[i] = _rises(rows.scores[here, i], settings)
    return index_like


def _rises(values: NDArray, settings: PlaceSettings) -> bool:
    """Whether values rise or fall monotonically, wherever they are close to a ramp."""
    from scipy.stats import rankdata

    if len(values) < settings.index_rows:
        return False
    rank = rankdata(values)
    return bool(abs(np.corrcoef(rank, np.arange(len(rank)))[0, 1]) > settings.index)


def _wide_ramps(rows: WideRows, settings: PlaceSettings) -> NDArray[np.bool_]:
    """The same for very many columns."""
    n = len(rows.position)
    index_like = np.zeros(len(rows.z), dtype=bool)
    if n < settings.index_rows:
        return index_like
    ramp = np.empty(n, dtype=np.float32)
    ramp[rows.position] = np.arange(n) - (n - 1) / 2
    length = np.sqrt(np.einsum("ij,ij->i", rows.z, rows.z)) * np.linalg.norm(ramp)
    for i in np.flatnonzero(np.abs(rows.z @ ramp) > 0.9 * length):
        index_like[i] = _rises(rows.in_order(np.array([i]))[:, 0], settings)
    return index_like


def _nearest_few(size: NDArray) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The nearest five columns of each, and their distances, from |c| (d, d)."""
    apart = 1 - size
    np.fill_diagonal(apart, np.inf)
    k = min(5, len(size) - 1)
    near = np.argpartition(apart, k - 1, axis=1)[:, :k]
    length = np.take_along_axis(apart, near, axis=1)
    order = np.argsort(length, axis=1)
    return np.take_along_axis(near, order, axis=1), np.take_along_axis(length, order, axis=1)


def _twins(near: NDArray, length: NDArray, settings: PlaceSettings) -> NDArray[np.int64]:
    """Group of each column: columns that are far nearer to each other than to any other column.

    ``near`` (d, k) are the nearest columns, the nearest first (-1: none), at distances ``length``.
    """
    d, k = near.shape
    # in single precision a correlation of 1 is accurate to about 1e-6
    jump = length[:, :-1] + 1e-6 < settings.twin * length[:, 1:]
    tight = jump & (length[:, :-1] < settings.twin_apart)
    count = np.where(tight.any(axis=1), (k - 1) - np.argmax(tight[:, ::-1], axis=1), 0)
    mine = (np.arange(k)[None, :] < count[:, None]) & (near >= 0)
    rows, columns = np.nonzero(mine)[0], near[mine]
    claims = csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(d, d))
    both = claims.multiply(claims.T)
    return connected_components(both, directed=False)[1].astype(np.int64)


def _strangers(
    size: NDArray, rows: ColumnRows, columns: NDArray, independent: float, settings: PlaceSettings
) -> NDArray[np.bool_]:
    """Columns whose strongest correlation is not larger than the maximum expected by chance."""
    d = len(size)
    if d < 3:
        return np.zeros(d, dtype=bool)
    share = independent / len(rows.scores)
    count = (
        np.full(d, len(rows.scores))
        if rows.present is None
        else rows.present[:, columns].sum(axis=0)
    )
    worth = np.maximum(np.minimum(count[:, None], count[None]) * share - 3, 1)
    z = np.arctanh(np.minimum(size, 1 - 1e-6)) * np.sqrt(worth)
    own = np.take_along_axis(worth, z.argmax(axis=1)[:, None], axis=1)[:, 0]
    return _unrelated(size.max(axis=1), z.max(axis=1), own, settings)


def _unrelated(
    strongest: NDArray, z: NDArray, worth: NDArray, settings: PlaceSettings
) -> NDArray[np.bool_]:
    """Columns that are noise by their ``strongest`` correlation (d,), its score z, and the number
    of independent rows that it is ``worth``.
    """
    level = -ndtri(settings.judge.chance / (2 * len(strongest) ** 2))
    # what is not significant is not yet absent: a column is noise only if its strongest correlation
    # would be unusually small among those of the others even at the end of its interval (of MEG,
    # where few rows are independent, 175 of 248 columns were not, at 0.91 in the median)
    least = np.arctanh(np.minimum(strongest, 1 - 1e-6)) + level / np.sqrt(worth)
    usual = np.arctanh(np.minimum(float(np.median(strongest)), 1 - 1e-6))
    strange = (z < level) & (least < usual)
    # with too few rows nearly all columns look unrelated: set none aside
    return strange if strange.mean() < 0.9 else np.zeros(len(z), dtype=bool)
