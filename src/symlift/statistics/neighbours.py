"""Statistics of very many columns: the nearest ones of each, and nothing of size d².

Columns that are near each other on a grid correlate most, so that pairs farther apart are never
needed.  Landmarks find the nearest columns: two columns near each other correlate most with the
same few landmarks, and only columns that share one are compared.  With one landmark for 32 columns
this finds what all d² products find (photographs of 128x128: 1.000 of the pairs, at a tenth of the
work).  Partial correlations are those inside the neighbourhood of each column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "NearPairs",
    "local_correlations",
    "local_partial",
    "nearby_columns",
    "predicted_from",
    "regression",
]

#: columns for one landmark, landmarks of each column, and the most columns that are compared at
#: once: where all columns follow one signal, a few landmarks would have them all
_PER_MARK, _MARKS, _CELL = 32, 5, 2_048
#: landmarks from which on they are found in two steps, the coarser ones, and how many of those a
#: column shares with its landmarks
_MANY_MARKS, _COARSE, _SHARED = 1_536, 512, 3
#: columns whose neighbours are looked for among all, the share of them that has to be found, and
#: the columns up to which all pairs are compared where it is not
_CHECKED, _ENOUGH, _ALL_PAIRS = 128, 0.98, 20_000
#: numbers of a block of products
_BLOCK = 4_000_000
#: added to the variance of columns that predict another one: some are copies of each other
_RIDGE = 1e-3


@dataclass(frozen=True)
class NearPairs:
    """Symmetric values of the pairs of each column and the ``near`` ones (d, k), -1 for none.

    It is read like a matrix, by arrays of both columns; pairs that are not near have the value 0.

    >>> pairs = NearPairs(np.array([[1], [0], [1]]), np.array([[0.5], [0.3], [0.2]]))
    >>> pairs[np.array([0, 1, 2]), np.array([1, 2, 0])]
    array([0.4, 0.2, 0. ])
    """

    near: NDArray[np.int32]
    value: NDArray

    def __len__(self) -> int:
        return len(self.near)

    def __getitem__(self, pair: tuple[Any, ...]) -> NDArray[np.float64]:
        i, j = np.broadcast_arrays(pair[0], pair[1])
        out = np.empty(i.size)
        flat_i, flat_j = i.ravel(), j.ravel()
        # blocks that stay in the cache
        for part in _blocks(i.size, self.near.shape[1], 1_000_000):
            out[part] = self._mean(flat_i[part], flat_j[part])
        return out.reshape(i.shape)

    def _mean(self, i: NDArray, j: NDArray) -> NDArray[np.float64]:
        """Each column of a pair may have the other one among its nearest."""
        total, count = np.zeros(len(i)), np.zeros(len(i))
        for one, other in ((i, j), (j, i)):
            here = self.near[one] == other[:, None]
            known = here.any(axis=1)
            total[known] += self.value[one[known]][here[known]]
            count += known
        return total / np.maximum(count, 1)


def _blocks(count: int, width: int, numbers: int = _BLOCK) -> Iterator[slice]:
    step = max(1, numbers // max(width, 1))
    yield from (slice(start, min(count, start + step)) for start in range(0, count, step))


def nearby_columns(
    z: NDArray[np.float32], count: int, rng: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The ``count`` columns that correlate most with each column, and their correlations.

    z (d, n) are standardised columns of unit length.  Both results are (d, count), the strongest
    first; -1 with the value -2 where fewer were compared.  Memory: O(d · count) and one block.

    Some columns are compared with all: where a way to find neighbours misses those, the next one,
    which compares more, is taken.
    """
    d = len(z)
    if d <= _CELL:
        return _compared(z, [np.arange(d, dtype=np.int32)], count)
    marks = np.sort(rng.choice(d, d // _PER_MARK, replace=False))
    some = np.sort(rng.choice(d, _CHECKED, replace=False))
    # the farther ones only say a little more
    wanted = _among_all(z, some, (count + 1) // 2)
    best: tuple[float, NDArray[np.int32], NDArray[np.float32]] | None = None
    for of_marks in (_nearest_marks_in_steps, _nearest_marks):
        if of_marks is _nearest_marks_in_steps and len(marks) < _MANY_MARKS:
            continue
        near, value = _compared(z, _cells(of_marks(z, marks), len(marks), rng), count)
        recall = _found(wanted, near[some])
        if best is None or recall > best[0]:
            best = recall, near, value
        if recall >= _ENOUGH:
            break
    if best is None or (best[0] < _ENOUGH and d <= _ALL_PAIRS):
        return _all_compared(z, count)
    return best[1], best[2]


def _among_all(z: NDArray[np.float32], some: NDArray, count: int) -> NDArray[np.int64]:
    """The ``count`` nearest of all columns to ``some``; -1 where they correlate no more than the
    nearest of unrelated columns would.
    """
    c = np.concatenate([z[some] @ z[part].T for part in _blocks(len(z), len(some))], axis=1)
    c[np.arange(len(some)), some] = -2.0
    best = np.argpartition(-c, count - 1, axis=1)[:, :count]
    chance = np.sqrt(2 * np.log(len(z)) / z.shape[1])
    return np.where(np.take_along_axis(c, best, axis=1) > chance, best, -1)


def _found(wanted: NDArray, near: NDArray) -> float:
    """The share of the ``wanted`` columns (some, k), without -1, that are among those ``near``."""
    hit = (wanted[:, :, None] == near[:, None, :]).any(axis=2) & (wanted >= 0)
    return float(hit.sum()) / max(int((wanted >= 0).sum()), 1) if (wanted >= 0).any() else 1.0


def _all_compared(
    z: NDArray[np.float32], count: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Every column compared with all others, block by block."""
    d = len(z)
    near, value = np.empty((d, count), np.int32), np.empty((d, count), np.float32)
    for part in _blocks(d, d, 1_000_000):
        c = z[part] @ z.T
        c[np.arange(len(c)), np.arange(part.start, part.stop)] = -2.0
        best = np.argpartition(-c, count - 1, axis=1)[:, :count]
        near[part], value[part] = best, np.take_along_axis(c, best, axis=1)
    return _sorted(near, value)


def _sorted(
    near: NDArray[np.int32], value: NDArray[np.float32]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The strongest first."""
    for part in _blocks(len(near), near.shape[1]):
        order = np.argsort(-value[part], axis=1, kind="stable")
        near[part] = np.take_along_axis(near[part], order, axis=1)
        value[part] = np.take_along_axis(value[part], order, axis=1)
    return near, value


def _compared(
    z: NDArray[np.float32], cells: Iterable[NDArray[np.int32]], count: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The nearest columns of each, when only those that share a cell are compared."""
    near = np.full((len(z), count), -1, dtype=np.int32)
    value = np.full((len(z), count), -2.0, dtype=np.float32)
    for members in cells:
        some = z[members]
        c = some @ some.T
        np.fill_diagonal(c, -2.0)
        few = min(count, len(members) - 1)
        best = np.argpartition(-c, few - 1, axis=1)[:, :few]
        _merge(near, value, members, members[best], np.take_along_axis(c, best, axis=1))
    return _sorted(near, value)


def _nearest_marks(z: NDArray[np.float32], marks: NDArray) -> NDArray[np.int32]:
    """Numbers of the landmarks that each column correlates most with, (d, ``_MARKS``)."""
    return _few_marks(z, z[marks], _MARKS)


def _few_marks(
    z: NDArray[np.float32], at_marks: NDArray[np.float32], few: int
) -> NDArray[np.int32]:
    best = np.empty((len(z), few), dtype=np.int32)
    for part in _blocks(len(z), len(at_marks)):
        c = z[part] @ at_marks.T
        best[part] = np.argpartition(-c, few - 1, axis=1)[:, :few]
    return best


def _nearest_marks_in_steps(z: NDArray[np.float32], marks: NDArray) -> NDArray[np.int32]:
    """The same, where a column is compared only with landmarks that share a coarser one with it:
    of a million columns, in a fiftieth of the products.
    """
    coarse = marks[:: max(1, len(marks) // _COARSE)]
    best = _few_marks(z, z[coarse], _SHARED)
    near = np.full((len(z), _MARKS), -1, dtype=np.int32)
    value = np.full((len(z), _MARKS), -2.0, dtype=np.float32)
    columns, marks_of = _members(best, len(coarse)), _members(best[marks], len(coarse))
    for members, others in zip(columns, marks_of, strict=True):
        if not len(members) or not len(others):
            continue
        at_marks = z[marks[others]]
        for part in _blocks(len(members), max(len(others), z.shape[1])):
            c = z[members[part]] @ at_marks.T
            few = min(_MARKS, len(others))
            new = np.argpartition(-c, few - 1, axis=1)[:, :few]
            _merge(near, value, members[part], others[new], np.take_along_axis(c, new, axis=1))
    return near


def _members(best: NDArray[np.int32], marks: int) -> list[NDArray[np.int32]]:
    """The columns that have each landmark among their ``best`` (d, k); -1 stands for none."""
    order = np.argsort(best, axis=None, kind="stable")
    start = np.searchsorted(best.ravel()[order], np.arange(marks + 1))
    column = (order // best.shape[1]).astype(np.int32)
    return [column[first:last] for first, last in pairwise(start)]


def _cells(
    best: NDArray[np.int32], marks: int, rng: np.random.Generator
) -> Iterator[NDArray[np.int32]]:
    """Groups of columns that have a landmark in common."""
    for column in _members(best, marks):
        members = rng.permutation(column)
        for some in np.array_split(members, 1 + (len(members) - 1) // _CELL):
            if len(some) > 1:
                yield np.sort(some)


def _merge(near: NDArray, value: NDArray, members: NDArray, new: NDArray, c: NDArray) -> None:
    """Keep the best of what ``members`` had and of the ``new`` ones (members, few), in place."""
    old, k = near[members], near.shape[1]
    known = (new[:, :, None] == old[:, None, :]).any(axis=2)
    both = np.concatenate([value[members], np.where(known, -3.0, c)], axis=1)
    best = np.argpartition(-both, k - 1, axis=1)[:, :k]
    near[members] = np.take_along_axis(np.concatenate([old, new], axis=1), best, axis=1)
    value[members] = np.take_along_axis(both, best, axis=1)


def local_correlations(
    parts: Sequence[NDArray[np.float32]], group: NDArray[np.integer]
) -> Iterator[tuple[slice, list[NDArray[np.float32]]]]:
    """Correlations (m, k, k) inside each ``group`` (d, k) of columns, block by block.

    ``parts`` are scores (columns, n) of some rows each, and each has its own correlations. Numbers
    below 0 in a group stand for no column, which correlates with none.
    """
    k = group.shape[1]
    eye = np.eye(k, dtype=np.float32)
    for block in _blocks(len(group), k * max(z.shape[1] for z in parts)):
        ids = group[block]
        exists = ids >= 0
        correlations = []
        for z in parts:
            some = z[np.maximum(ids, 0)]
            c = some @ some.transpose(0, 2, 1)
            size = np.sqrt(np.maximum(np.diagonal(c, axis1=1, axis2=2), 1e-12))
            c /= size[:, :, None]
            c /= size[:, None, :]
            if not exists.all():
                c = np.where(exists[:, :, None] & exists[:, None, :], c, eye)
            correlations.append(c)
        yield block, correlations


def local_partial(
    z: NDArray[np.float32],
    columns: NDArray[np.integer],
    near: NDArray[np.integer],
    ridges: tuple[float, ...],
) -> NDArray[np.float32]:
    """Partial correlations (m, d, k) of ``columns`` (d,) with those ``near`` (d, k), given the
    others of these, -1 for none.

    One for each ridge, from (1 - ridge) c + ridge I of the k + 1 columns.
    """
    d, k = near.shape
    out = np.empty((len(ridges), d, k), dtype=np.float32)
    eye = np.eye(k + 1, dtype=np.float32)
    for part, (c,) in local_correlations([z], np.concatenate([columns[:, None], near], axis=1)):
        for p, ridge in zip(out, ridges, strict=True):
            precision = np.linalg.inv((1 - np.float32(ridge)) * c + np.float32(ridge) * eye)
            size = np.maximum(np.diagonal(precision, axis1=1, axis2=2), 1e-12)
            p[part] = -precision[:, 0, 1:] / np.sqrt(size[:, :1] * size[:, 1:])
    out[:, near < 0] = 0.0
    return np.clip(out, -1, 1)


def regression(gram: NDArray, toward: NDArray, exists: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Weights (m, k) that predict columns, each from k others, by least squares.

    gram (m, k, k) are the correlations of those that predict, ``toward`` (m, k) those with the
    column itself; ``exists`` (m, k) marks those that there are, the others get 0.
    """
    both = exists[:, :, None] & exists[:, None, :]
    eye = np.eye(exists.shape[1])
    wanted = np.where(exists, toward, 0.0)[..., None]
    return np.asarray(np.linalg.solve(np.where(both, gram, eye) + _RIDGE * eye, wanted)[..., 0])


def predicted_from(
    gram: NDArray,
    toward: NDArray,
    gram_held: NDArray,
    toward_held: NDArray,
    exists: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Log of the held-out residual variance of columns, each predicted from k others.

    gram (m, k, k) are the correlations of those that predict, ``toward`` (m, k) those with the
    column itself, both on fitted and on held-out rows; ``exists`` (m, k) marks those that there
    are.
    """
    b = regression(gram, toward, exists)
    gram_held = np.where(exists[:, :, None] & exists[:, None, :], gram_held, 0.0)
    toward_held = np.where(exists, toward_held, 0.0)
    left = 1 - 2 * np.sum(b * toward_held, axis=1) + np.einsum("di,dij,dj->d", b, gram_held, b)
    return np.log(np.maximum(left, 1e-6))
