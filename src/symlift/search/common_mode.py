"""Groups of columns that only a common signal links, such as a reference that all channels share.

Two parts of one domain are linked by neighbours: a column at the edge is predicted best by the few
columns next to it. Two domains that share a signal are not: there the mean of very many columns
predicts best. Held-out rows decide.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_matrix

from symlift.search.links import FOLDS, ColumnLinks, components_of, fold_of, level_of
from symlift.search.settings import PlaceSettings
from symlift.statistics.correlations import partial_correlations
from symlift.statistics.neighbours import regression

__all__ = ["without_common_mode"]

# columns of its own group, and of others, that predict a column
_PARTNERS = 4
# partners of each column that propose groups: each column of a line has two neighbours
_NEIGHBOURS = 2
_ROUNDS = 20


def without_common_mode(
    links: ColumnLinks, columns: NDArray[np.int64], settings: PlaceSettings, fewest: int
) -> NDArray[np.int64]:
    """Group of each of ``columns``; all 0 unless a common signal predicts better than neighbours.

    Groups start as components of the graph of best partners. Those between which single columns
    predict better than the common signal are joined, and what is left is taken only if the common
    signal predicts better than single columns between them, beyond noise.
    """
    whole = np.zeros(len(columns), dtype=np.int64)
    c = links.c[np.ix_(columns, columns)]
    worth = float(np.median(links.worth[np.ix_(columns, columns)]))
    label = _proposed(partial_correlations(c, settings.start_ridge), worth, settings)
    for _ in range(_ROUNDS):
        if label.max() == 0:
            return whole
        errors = _errors(links, columns, label)
        lead, partner = _lead_of_factor(errors, links, columns, label)
        small = np.bincount(label)[label] < fewest
        near = small | (lead < -level_of(len(columns), settings.judge.chance))
        if not near.any():
            break
        groups = int(label.max()) + 1
        together = np.zeros((groups, groups), dtype=bool)
        together[label[near], label[partner[near]]] = True
        label = components_of(together)[label]
    # the sum over columns of one group counts as one test: their errors are not independent
    level = level_of(2 * (label.max() + 1), settings.judge.chance)
    over_columns, over_nothing = _pooled(errors, worth, label)
    return label if min(over_columns.min(), over_nothing.min()) > level else whole


def _proposed(p: NDArray, worth: float, settings: PlaceSettings) -> NDArray[np.int64]:
    """Components of the graph of best partners by partial correlation, as far as those are beyond
    noise: the end of a line has one neighbour only.
    """
    size, d = np.abs(p), len(p)
    near = np.argsort(-size, axis=1, kind="stable")[:, :_NEIGHBOURS]
    z = np.arctanh(np.minimum(size, 1 - 1e-6)) * np.sqrt(max(worth - d, 0.0))
    edges = np.zeros((d, d), dtype=bool)
    edges[np.arange(d)[:, None], near] = True
    return components_of(edges & (z > level_of(d * (d - 1) / 2, settings.judge.chance)))


def _lead_of_factor(
    errors: _Errors, links: ColumnLinks, columns: NDArray[np.int64], label: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """By how many standard errors the common signal predicts each column better than the nearest
    column of another group does, and that column.
    """
    worth = np.median(links.worth[np.ix_(columns, columns)], axis=1)
    c = np.abs(links.c[np.ix_(columns, columns)])
    partner = np.where(label[:, None] == label[None], -1.0, c).argmax(axis=1)
    return _in_errors(errors.by_column - errors.by_factor, worth), partner


def _pooled(
    errors: _Errors, worth: float, label: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lead of the common signal in each group, over the nearest columns and over nothing."""
    member = label[:, None] == np.arange(label.max() + 1)
    over_columns, over_nothing = (
        _in_errors((other - errors.by_factor) @ member, worth)
        for other in (errors.by_column, errors.by_nothing)
    )
    return over_columns, over_nothing


def _in_errors(lead: NDArray, worth: NDArray | float) -> NDArray[np.float64]:
    """Means over rows in standard errors, of rows that are worth so many independent ones."""
    error = lead.std(axis=0) / np.sqrt(np.maximum(np.asarray(worth) - 1, 1.0))
    return np.asarray(lead.mean(axis=0) / np.maximum(error, 1e-12))


@dataclass(frozen=True)
class _Errors:
    """Squared errors (rows, columns) of three predictions of each column on held-out rows: by the
    best partners of its own group alone, by those and the nearest column of another group, and by
    those and the common signal.
    """

    by_nothing: NDArray[np.float64]
    by_column: NDArray[np.float64]
    by_factor: NDArray[np.float64]


def _errors(links: ColumnLinks, columns: NDArray[np.int64], label: NDArray[np.int64]) -> _Errors:
    every, d = np.arange(len(links.rows.scores)), len(columns)
    z = np.asarray(links.rows.take(every, columns)[0], dtype=np.float64)
    fold = fold_of(len(z))
    same = label[:, None] == label[None]
    out = np.zeros((3, *z.shape))
    for one in range(FOLDS):
        c = links.folds[one][0][np.ix_(columns, columns)]
        size, held = np.abs(c), fold == one
        # the common signals are further columns, which columns are predicted from like others
        common = _common_signals(c, label)
        c = np.block([[c, c @ common.T], [common @ c, common @ c @ common.T]])
        rows = np.concatenate([z[held], z[held] @ common.T], axis=1)
        own = _best(np.where(same, size, -1.0), _PARTNERS)
        other = _best(np.where(same, -1.0, size), 1)
        further = (np.empty((d, 0), dtype=np.int64), other, d + label[:, None])
        for k, more in enumerate(further):
            out[k, held] = z[held] - _predicted(rows, c, np.concatenate([own, more], axis=1))
    return _Errors(*(out**2))


def _best(size: NDArray, count: int) -> NDArray[np.int64]:
    """The ``count`` columns of largest size for each, -1 where there are fewer; not itself."""
    size = size.copy()
    np.fill_diagonal(size, -1.0)
    count = min(count, len(size) - 1)
    near = np.argsort(-size, axis=1, kind="stable")[:, :count]
    return np.where(np.take_along_axis(size, near, axis=1) > 0, near, -1)


def _predicted(rows: NDArray, c: NDArray, near: NDArray[np.int64]) -> NDArray[np.float64]:
    """Columns 0, 1, … of rows (n, D) by least squares from the columns ``near`` (d, k) of each.

    ``c`` (D, D) are correlations, on other rows; -1 stands for no column.
    """
    d, k = near.shape
    used, j, mine = near >= 0, np.maximum(near, 0), np.arange(d)[:, None]
    weight = regression(c[j[:, :, None], j[:, None, :]], c[mine, j], used)
    at = np.broadcast_to(mine, (d, k))
    weights = csr_matrix((weight[used], (j[used], at[used])), shape=(rows.shape[1], d))
    return np.asarray(rows @ weights)


def _common_signals(c: NDArray, label: NDArray[np.int64]) -> NDArray[np.float64]:
    """For each group, the leading principal component of the columns outside it, of variance 1:
    weights (groups, d).
    """
    weights = np.zeros((int(label.max()) + 1, len(c)))
    for one, weight in enumerate(weights):
        rest = np.flatnonzero(label != one)
        values, vectors = eigh(
            c[np.ix_(rest, rest)], subset_by_index=[len(rest) - 1, len(rest) - 1]
        )
        weight[rest] = vectors[:, 0] / np.sqrt(max(float(values[0]), 1e-12))
    return weights
