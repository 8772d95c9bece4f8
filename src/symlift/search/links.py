"""Links between columns and between groups of columns, in units of their sampling noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtri

from symlift.search.rows import ColumnRows
from symlift.statistics.correlations import correlations
from symlift.statistics.dependence import independent_pairs

__all__ = ["FOLDS", "ColumnLinks", "column_links", "components_of", "fold_of", "level_of"]

#: parts of the rows: each is held out once, while the others predict
FOLDS = 5
# what the sampling noise of a Fisher z of r rows is worth: 1 / (r - 3)
_LOST = 3.0


@dataclass(frozen=True)
class ColumnLinks:
    """Correlations of columns with their sampling noise.

    ``c`` (d, d) are correlations of scores, ``worth`` (d, d) the number of independent rows behind
    each, and ``z`` (d, d) Fisher's z of them in standard errors, 0 for columns that do not vary.
    """

    rows: ColumnRows
    c: NDArray[np.float64]
    worth: NDArray[np.float64]

    @cached_property
    def z(self) -> NDArray[np.float64]:
        """Each correlation in standard errors."""
        errors = np.sqrt(np.maximum(self.worth - _LOST, 0.0))
        z = np.arctanh(np.clip(self.c, -1 + 1e-6, 1 - 1e-6)) * errors
        np.fill_diagonal(z, 0.0)
        z[~self.rows.alive] = 0.0
        z[:, ~self.rows.alive] = 0.0
        return z

    @cached_property
    def folds(self) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
        """Correlations on the rows that predict and on those that are held out, of each fold."""
        fold, every = fold_of(len(self.rows.scores)), np.arange(len(self.c))
        pairs = []
        for one in range(FOLDS):
            first, second = (
                correlations(*self.rows.take(np.flatnonzero(part), every))
                for part in (fold != one, fold == one)
            )
            pairs.append((first, second))
        return pairs

    def between(self, label: NDArray[np.int64]) -> NDArray[np.float64]:
        """Links between groups of columns, (groups, groups), in standard errors.

        Correlations M between two groups on four fifths of the rows predict those on the last one,
        H: Σ M H is 0 on average where the groups are independent, with variance
        tr(C₁ M C₂ Mᵀ)/rows, whatever the correlations C₁ and C₂ inside them are. A column alone is
        a group, too.
        """
        member = _member(label)
        count = member.sum(axis=0)
        inside = np.where(label[:, None] == label[None], self.c, 0.0)
        errors = member.T @ (1 / np.maximum(self.worth, 1.0)) @ member / np.outer(count, count)
        total = np.zeros_like(errors)
        for predicting, held in self.folds:
            m = np.where(label[:, None] == label[None], 0.0, predicting)
            agreement = member.T @ (m * held) @ member
            variance = member.T @ (m * (inside @ m @ inside)) @ member * errors * FOLDS
            total += agreement / np.sqrt(np.maximum(variance, 1e-300))
        # every two folds meet twice, once as predicting and once as held out, so that the sum over
        # folds varies by twice the sum of their variances
        z = total / np.sqrt(2.0 * FOLDS)
        np.fill_diagonal(z, 0.0)
        return z


def column_links(rows: ColumnRows) -> ColumnLinks:
    """Correlations of all columns, and how many independent rows each is worth."""
    worth = independent_pairs(rows.scores)
    if rows.present is not None:
        worth = worth * ((rows.present.T @ rows.present) / len(rows.scores))
    return ColumnLinks(rows, correlations(rows.scores, rows.present), worth)


def level_of(tests: float, chance: float) -> float:
    """Standard errors that any of so many tests exceeds by chance with that probability.

    >>> round(level_of(1, 0.05), 2), round(level_of(1000, 0.05), 2)
    (1.96, 4.06)
    """
    return float(-ndtri(chance / (2 * max(tests, 1.0))))


def components_of(edges: NDArray) -> NDArray[np.int64]:
    """Number of the connected component of each node, from edges (nodes, nodes)."""
    graph = csr_matrix(edges, dtype=np.int8)
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def fold_of(n: int) -> NDArray[np.int64]:
    """Fold of each row: contiguous stretches, dealt in turn."""
    return np.asarray(np.arange(n) * min(n, 4 * FOLDS) // max(n, 1) % FOLDS)


def _member(label: NDArray[np.int64]) -> NDArray[np.float64]:
    """Which column is in which group, (d, groups)."""
    member = np.zeros((len(label), int(label.max(initial=-1)) + 1))
    member[np.arange(len(label)), label] = 1.0
    return member
