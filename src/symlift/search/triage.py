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
from symlift.statistics.correlations import correlations

__all__ = ["Triage", "sort_columns", "triage"]


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
    c = correlations(rows.scores, rows.present)
    progress("triage", 0.2)
    sorted_out = triage(rows, c, rows.independent_rows(), settings)
    progress("place", 0.3)
    return rows, c, sorted_out


def triage(rows: ColumnRows, c: NDArray, independent: float, settings: PlaceSettings) -> Triage:
    """Sort the columns by their correlations c (d, d), which were computed from ``rows``."""
    d = len(c)
    reason = np.full(d, "", dtype="<U9")
    reason[~rows.alive] = "dead"
    ramps = rows.alive & _index_like(rows, settings)
    # where many columns rise or fall with the row number, that is the field, not a counter
    if ramps.sum() <= 0.2 * max(rows.alive.sum(), 1):
        reason[ramps] = "index"
    living = np.flatnonzero(reason == "")
    size = np.abs(c[np.ix_(living, living)])
    np.fill_diagonal(size, 0.0)
    twin = np.full(d, -1, dtype=np.int64)
    group = (
        _twins(size, settings)
        if len(rows.scores) >= 8 and len(living) > 4
        else np.arange(len(living))
    )
    first = np.unique(group, return_index=True)[1]
    leader = living[first[np.searchsorted(np.unique(group), group)]]
    copies = leader != living
    twin[living[copies]] = leader[copies]
    reason[living[copies]] = "duplicate"
    alone = np.ix_(~copies, ~copies)
    strange = _strangers(size[alone], rows, living[~copies], independent, settings)
    reason[living[~copies][strange]] = "noise"
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
    from scipy.stats import rankdata

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
        rank = rankdata(rows.scores[here, i])
        if len(rank) >= settings.index_rows:
            index_like[i] = abs(np.corrcoef(rank, np.arange(len(rank)))[0, 1]) > settings.index
    return index_like


def _twins(size: NDArray, settings: PlaceSettings) -> NDArray[np.int64]:
    """Group of each column: columns that are far nearer to each other than to any other column."""
    apart = 1 - size
    np.fill_diagonal(apart, np.inf)
    k = min(5, len(size) - 1)
    near = np.argpartition(apart, k - 1, axis=1)[:, :k]
    length = np.take_along_axis(apart, near, axis=1)
    order = np.argsort(length, axis=1)
    near, length = (
        np.take_along_axis(near, order, axis=1),
        np.take_along_axis(length, order, axis=1),
    )
    # in single precision a correlation of 1 is accurate to about 1e-6
    jump = length[:, :-1] + 1e-6 < settings.twin * length[:, 1:]
    tight = jump & (length[:, :-1] < settings.twin_apart)
    count = np.where(tight.any(axis=1), (k - 1) - np.argmax(tight[:, ::-1], axis=1), 0)
    mine = np.arange(k)[None, :] < count[:, None]
    rows, columns = np.nonzero(mine)[0], near[mine]
    claims = csr_matrix((np.ones(len(rows)), (rows, columns)), shape=size.shape)
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
    level = -ndtri(settings.noise / (2 * d * d))
    worth = np.maximum(np.minimum(count[:, None], count[None]) * share - 3, 1)
    z = np.arctanh(np.minimum(size, 1 - 1e-6)) * np.sqrt(worth)
    best = z.max(axis=1)
    # what is not significant is not yet absent: a column is noise only if its strongest correlation
    # would be unusually small among those of the others even at the end of its interval (of MEG,
    # where few rows are independent, 175 of 248 columns were not, at 0.91 in the median)
    strongest = size.max(axis=1)
    own = np.take_along_axis(worth, z.argmax(axis=1)[:, None], axis=1)[:, 0]
    least = np.arctanh(np.minimum(strongest, 1 - 1e-6)) + level / np.sqrt(own)
    usual = np.arctanh(np.minimum(float(np.median(strongest)), 1 - 1e-6))
    strange = (best < level) & (least < usual)
    # with too few rows nearly all columns look unrelated: set none aside
    return strange if strange.mean() < 0.9 else np.zeros(d, dtype=bool)
