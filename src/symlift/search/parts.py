"""Groups of columns that predict each other: several domains in one table.

Columns of one domain are linked through their neighbours, however far apart they are, and columns
of different domains are not. Links are judged by their sampling noise: a correlation that any two
independent columns of the table could have by chance is no link, however large it is. What few rows
cannot decide stays together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from symlift.errors import InputError
from symlift.search.common_mode import without_common_mode
from symlift.search.links import ColumnLinks, components_of, level_of
from symlift.search.settings import PlaceSettings

__all__ = ["FEWEST_IN_PART", "column_parts", "numbered_parts", "parts_of_number", "weakest_cut"]

#: two columns have one distance between them, and no order
FEWEST_IN_PART = 3
# at most so often are groups joined: each time, at least two become one
_ROUNDS = 20


def column_parts(links: ColumnLinks, settings: PlaceSettings) -> NDArray[np.int64]:
    """The part of each column, the largest part first; -1 for columns that go with no others."""
    return numbered_parts(
        _shared(_joined(_linked(links, settings), links, settings), links, settings)
    )


def _linked(links: ColumnLinks, settings: PlaceSettings) -> NDArray[np.int64]:
    """Connected components of the links that are not there by chance."""
    d = int(links.rows.alive.sum())
    return components_of(np.abs(links.z) > level_of(d * (d - 1) / 2, settings.judge.chance))


def _joined(
    label: NDArray[np.int64], links: ColumnLinks, settings: PlaceSettings
) -> NDArray[np.int64]:
    """Groups joined where all links between them together are not there by chance, or where a link
    as strong as those inside them would not have been seen.
    """
    for _ in range(_ROUNDS):
        size = np.bincount(label)
        if size.max(initial=0) < 2 or len(size) < 2:
            break
        # groups and columns are compared with groups: two columns alone have been compared already
        real = size >= 2
        tests = real.sum() * (len(size) - (real.sum() + 1) / 2)
        z = np.where(real[:, None] | real[None], links.between(label), 0.0)
        together = z > level_of(tests, settings.judge.chance)
        if not together.any():
            together = _undecided(label, links, tests, settings)
        if not together.any():
            break
        label = components_of(together)[label]
    return label


def _undecided(
    label: NDArray[np.int64], links: ColumnLinks, tests: float, settings: PlaceSettings
) -> NDArray[np.bool_]:
    """Pairs of groups (groups, groups) between which there may be a link as strong as inside.

    As strong as the weaker quarter of those that link a column with its nearest one. If there were
    such a link, its measured value would be smaller by at most a few standard errors, and so would
    be the largest between the two groups. A column alone is compared with the group that it
    is linked with most.
    """
    groups = int(label.max()) + 1
    size = np.bincount(label)
    fisher = np.arctanh(np.minimum(np.abs(links.c), 1 - 1e-6))
    fisher[~links.rows.alive] = 0.0
    fisher[:, ~links.rows.alive] = 0.0
    np.fill_diagonal(fisher, 0.0)
    inside = np.where(label[:, None] == label[None], fisher, 0.0).max(axis=1)
    usual = np.array([np.quantile(inside[label == one], 0.25) for one in range(groups)])
    usual[size < 2] = np.inf
    largest, errors = np.zeros((groups, groups)), np.zeros((groups, groups))
    order = np.argsort(label, kind="stable")
    first = np.searchsorted(label[order], np.arange(groups))
    for out, values in (
        (largest, np.abs(links.z)),
        (errors, np.sqrt(np.maximum(links.worth - 3, 0.0))),
    ):
        by_group = np.maximum.reduceat(values[np.ix_(order, order)], first, axis=0)
        out += np.maximum.reduceat(by_group, first, axis=1)
    np.fill_diagonal(largest, 0.0)
    expected = np.minimum(usual[:, None], usual[None]) * errors
    able = largest >= expected - level_of(tests, 2 * settings.judge.chance)
    able &= np.isfinite(expected) & (largest > 0)
    # a column alone goes with one group only
    best = np.where(able, largest / np.maximum(errors, 1e-9), 0.0)
    alone = size < 2
    best[:, alone] = 0.0
    only = np.zeros_like(able)
    only[np.arange(groups), best.argmax(axis=1)] = best.max(axis=1) > 0
    able = np.where(alone[:, None], only, able & ~alone[None])
    return np.asarray(able | able.T)


def _shared(
    label: NDArray[np.int64], links: ColumnLinks, settings: PlaceSettings
) -> NDArray[np.int64]:
    """Groups split where a signal that all columns share is what links them."""
    out = label.copy()
    for one in np.unique(label):
        mine = np.flatnonzero(label == one)
        if len(mine) >= 2 * FEWEST_IN_PART:
            split = without_common_mode(links, mine, settings, FEWEST_IN_PART)
            out[mine] = np.where(split == 0, one, out.max() + split)
    return out


def numbered_parts(label: NDArray[np.int64]) -> NDArray[np.int64]:
    """Parts numbered by size, then by their first column; those with too few columns are none."""
    values, first, count = np.unique(label, return_index=True, return_counts=True)
    order = np.lexsort((first, -count))
    order = order[(count[order] >= FEWEST_IN_PART) & (values[order] >= 0)]
    out = np.full(len(label), -1, dtype=np.int64)
    for number, one in enumerate(order):
        out[label == values[one]] = number
    return out


def parts_of_number(links: ColumnLinks, number: int, settings: PlaceSettings) -> NDArray[np.int64]:
    """Exactly so many parts: those of `column_parts`, joined or cut at their weakest links."""
    label = column_parts(links, settings)
    while (have := int(label.max(initial=-1)) + 1) > number:
        z = links.between(np.where(label < 0, have + np.cumsum(label < 0) - 1, label))
        first, second = np.unravel_index(np.argmax(z[:have, :have]), (have, have))
        label = numbered_parts(np.where(label == max(first, second), min(first, second), label))
    while (have := int(label.max(initial=-1)) + 1) < number:
        cut = weakest_cut(np.abs(links.z), label)
        if cut is None:
            raise InputError(
                f"parts={number}: columns that predict each other make at most {have} parts of"
                f" {FEWEST_IN_PART} and more: ask for fewer parts, or give labels"
            )
        label = numbered_parts(np.where(cut, have, label))
    return label


def weakest_cut(z: NDArray, label: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    """Columns on one side of the weakest link that holds any part together; None if there is none.

    ``z`` (d, d) are the sizes of links, ``label`` (d,) parts; both sides are large enough for a
    part.
    """
    best, weakest = None, np.inf
    for one in range(int(label.max(initial=-1)) + 1):
        mine = np.flatnonzero(label == one)
        if len(mine) < 2 * FEWEST_IN_PART:
            continue
        strength = z[np.ix_(mine, mine)]
        # the strongest tree: lengths are what is missing to more than the largest, so none is 0
        tree = minimum_spanning_tree(strength.max() + 1 - strength).tocoo()
        ends = np.stack([tree.row, tree.col], axis=1)
        ends = ends[np.argsort(strength[tree.row, tree.col], kind="stable")]
        for k, (i, j) in enumerate(ends.tolist()):
            if strength[i, j] >= weakest:
                break
            rest = np.delete(ends, k, axis=0)
            ones = np.ones(len(rest), dtype=np.int8)
            links = csr_matrix((ones, (rest[:, 0], rest[:, 1])), shape=strength.shape)
            side = connected_components(links, directed=False)[1]
            if min(np.bincount(side)) >= FEWEST_IN_PART:
                weakest = strength[i, j]
                best = np.zeros(len(label), dtype=bool)
                best[mine[side == side[j]]] = True
                break
    return best
