"""Statistics of very many columns: the nearest ones of each, and nothing of size d².

Columns that are near each other on a grid correlate most, so that pairs farther apart are never
needed.  Landmarks find the nearest columns: two columns near each other correlate most with the
same few landmarks, and only columns that share one are compared.  With one landmark for 32 columns
this finds what all d² products find (photographs of 128x128: 1.000 of the pairs, at a tenth of the
work).  Partial correlations are those inside the neighbourhood of each column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    """
    d = len(z)
    near = np.full((d, count), -1, dtype=np.int32)
    value = np.full((d, count), -2.0, dtype=np.float32)
    for members in _cells(z, rng):
        some = z[members]
        c = some @ some.T
        np.fill_diagonal(c, -2.0)
        few = min(count, len(members) - 1)
        best = np.argpartition(-c, few - 1, axis=1)[:, :few]
        _merge(near, value, members, members[best], np.take_along_axis(c, best, axis=1))
    return near, value


def _cells(z: NDArray[np.float32], rng: np.random.Generator) -> Iterator[NDArray[np.int32]]:
    """Groups of columns that have a landmark in common; all columns where they are few."""
    d = len(z)
    if d <= _CELL:
        yield np.arange(d, dtype=np.int32)
        return
    marks = np.sort(rng.choice(d, d // _PER_MARK, replace=False))
    at_marks = z[marks]
    best = np.empty((d, _MARKS), dtype=np.int32)
    for part in _blocks(d, len(marks)):
        c = z[part] @ at_marks.T
        best[part] = np.argpartition(-c, _MARKS - 1, axis=1)[:, :_MARKS]
    order = np.argsort(best, axis=None, kind="stable")
    column = (order // _MARKS).astype(np.int32)
    start = np.searchsorted(best.ravel()[order], np.arange(len(marks) + 1))
    for first, last in pairwise(start):
        members = rng.permutation(column[first:last])
        for some in np.array_split(members, 1 + (last - first - 1) // _CELL):
            if len(some) > 1:
                yield np.sort(some)


def _merge(near: NDArray, value: NDArray, members: NDArray, new: NDArray, c: NDArray) -> None:
    """Keep the best of what ``members`` had and of the ``new`` ones (members, few), in place."""
    old = near[members]
    known = (new[:, :, None] == old[:, None, :]).any(axis=2)
    both = np.concatenate([value[members], np.where(known, -3.0, c)], axis=1)
    best = np.argsort(-both, axis=1, kind="stable")[:, : near.shape[1]]
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
