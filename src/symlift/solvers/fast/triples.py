"""Triples of grid points with equal displacements: the stationary part of a rotated third moment.

‖Π W^{⊗3} T‖² and its gradient take four contractions of 2n⁴ operations each if T is only an array.
It is symmetric, so that

- of the first contraction, pairs of the two columns that are still unrotated are computed once;
- of the second, pairs (i, k) of points with i no later than k on the first axis, about half;
- of the third, triples (i, j, k) with i no later than both, about a third: any other triple is one
  of these in another order;
- of the gradient again the pairs, about half.

Sums over equal displacements are sums of shifted boxes. Nothing is sorted, and nothing of n³
numbers is looked up by index.
"""

from __future__ import annotations

import functools
from math import prod

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid

__all__ = ["Triples", "pack", "unpacked"]


class Triples:
    """Triples (i, j, k) of grid points in classes: the same up to a translation, in whatever order
    the three are named.

    A class is looked up by the displacements i → k, whose first coordinate is at least 0, and i →
    j, each as an index into a box of displacements.
    """

    def __init__(self, grid: Grid) -> None:
        n, *others = grid.shape
        self.shape = grid.shape
        #: number of points that share their first coordinate
        self.layer = grid.size // n
        box = (n, *(2 * m - 1 for m in others))
        self.boxes = box * 2
        ahead, any_way = _displacements(grid.shape, 0), _displacements(grid.shape, 1 - n)
        self.classes = _classes(grid, ahead, any_way).reshape(*box, 2 * n - 1, *box[1:])
        #: the same for pairs of displacements that both go ahead
        rear = (*(slice(None) for _ in box), slice(n - 1, None))
        self.ahead = np.ascontiguousarray(self.classes[rear]).ravel()
        # a triple of which one point is the first is summed in two of its six orders
        ties = (ahead[:, None, 0] == 0).astype(int) + (ahead[:, 0] == 0)
        self.orders = (3 / (1 + ties)).ravel()
        places = _places(grid.shape, ahead).ravel()
        self.count = np.bincount(self.ahead, self.orders * places, self.classes.max() + 1)
        self.corners = [
            [_corner(grid.shape, i, rest) for rest in np.ndindex(*others)] for i in range(n)
        ]
        self._memory: dict[str, NDArray] = {}

    def energy(self, V: NDArray, packed: NDArray) -> tuple[float, NDArray]:
        """‖Π V^{⊗3} T‖² and a sixth of its gradient in V (points, columns); T as `pack` gives it.

        The work is done in the precision of T.
        """
        V = np.ascontiguousarray(V, dtype=packed.dtype)
        points, columns = V.shape
        n, layer = self.shape[0], self.layer
        first = np.matmul(V, packed, out=self._array("first", (points, packed.shape[1]), V.dtype))
        whole = self._array("whole", (layer, columns * columns), V.dtype)
        pairs = self._array("pairs", (layer**2 * n * (n + 1) // 2, columns), V.dtype)
        index = unpacked(columns)
        total = self._array("total", self.boxes, V.dtype)
        total[...] = 0
        parts = np.split(pairs, np.cumsum([layer * (points - i * layer) for i in range(n)])[:-1])
        for i, part in enumerate(parts):
            later = V[i * layer :]
            np.take(first[i * layer : (i + 1) * layer], index, axis=1, out=whole, mode="clip")
            np.matmul(
                later,
                whole.reshape(layer, columns, columns),
                out=part.reshape(layer, len(later), columns),
            )
            triples = self._array("block", (len(part), len(later)), V.dtype)
            self._add(total, i, np.matmul(part, later.T, out=triples))
        means, value = self._means(total)
        # of two points that differ on the first axis, only one order is among the pairs
        means[1:] *= 2
        gradient = np.zeros((points, columns))
        for i, part in enumerate(parts):
            inside = self._array("block", (len(part), points), V.dtype)
            gradient += self._fill(means, i, inside).T @ part
        return value, gradient

    def project(self, tensor: NDArray) -> NDArray:
        """The nearest stationary tensor to a symmetric one (points, points, points)."""
        layer = self.layer
        total = np.zeros(self.boxes, dtype=tensor.dtype)
        starts = range(0, len(tensor), layer)
        for i, start in enumerate(starts):
            self._add(total, i, tensor[start : start + layer, start:, start:])
        means, _ = self._means(total)
        out = np.empty_like(tensor)
        for i, start in enumerate(starts):
            block = np.empty((layer, len(tensor) - start, len(tensor)), dtype=tensor.dtype)
            out[start : start + layer, start:] = self._fill(means, i, block)
            out[start:, start : start + layer] = block.transpose(1, 0, 2)
        return out

    def _add(self, total: NDArray, i: int, triples: NDArray) -> None:
        """Add values at triples whose first point has first coordinate i, and the others no less,
        to the boxes of their displacements.
        """
        shape = (self.shape[0] - i, *self.shape[1:])
        for (ahead, others, _), values in zip(
            self.corners[i], triples.reshape(-1, *shape, *shape), strict=True
        ):
            total[(*ahead, *others, *ahead, *others)] += values

    def _means(self, total: NDArray) -> tuple[NDArray, float]:
        """The mean of every class, at each pair of displacements, and the squared norm of all."""
        sums = np.bincount(self.ahead, self.orders * total.ravel(), len(self.count))
        means = sums / np.maximum(self.count, 1)
        return means.astype(total.dtype)[self.classes], float(sums @ means)

    def _fill(self, means: NDArray, i: int, out: NDArray) -> NDArray:
        """The means at triples whose first point has first coordinate i, the last no less, and the
        second any.
        """
        shape = (self.shape[0] - i, *self.shape[1:])
        for (ahead, others, any_way), values in zip(
            self.corners[i], out.reshape(-1, *shape, *self.shape), strict=True
        ):
            values[...] = means[(*ahead, *others, *any_way, *others)]
        return out

    def _array(self, name: str, shape: tuple[int, ...], dtype: np.dtype) -> NDArray:
        """Memory that the next step uses again: fresh pages cost as much as a contraction."""
        size = prod(shape)
        memory = self._memory.get(name)
        if memory is None or memory.size < size or memory.dtype != dtype:
            memory = self._memory[name] = np.empty(size, dtype=dtype)
        return memory[:size].reshape(shape)


def pack(tensor: NDArray) -> NDArray:
    """A symmetric tensor (columns, columns, columns) as (columns, pairs), each pair once."""
    i, j = np.triu_indices(len(tensor))
    return np.ascontiguousarray(tensor[:, i, j])


@functools.cache
def unpacked(columns: int) -> NDArray[np.intp]:
    """Where pairs of columns are among those that `pack` keeps."""
    i, j = np.triu_indices(columns)
    where = np.empty((columns, columns), dtype=np.intp)
    where[i, j] = where[j, i] = np.arange(len(i))
    return where.ravel()


def _corner(shape: tuple[int, ...], i: int, rest: tuple[int, ...]) -> tuple[tuple[slice, ...], ...]:
    """Where displacements from the point (i, *rest) lie in a box: on the first axis to points that
    are no earlier, on the others to all, and on the first axis to all.
    """
    n, *lengths = shape
    others = tuple(slice(m - 1 - at, 2 * m - 1 - at) for m, at in zip(lengths, rest, strict=True))
    return (slice(0, n - i),), others, (slice(n - 1 - i, 2 * n - 1 - i),)


def _displacements(shape: tuple[int, ...], first: int) -> NDArray[np.int64]:
    """All displacements (many, axes) in C order, those on the first axis from ``first`` on."""
    axes = [np.arange(first, shape[0]), *(np.arange(1 - m, m) for m in shape[1:])]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(shape))


def _places(shape: tuple[int, ...], steps: NDArray) -> NDArray[np.int64]:
    """In how many places i, i + u and i + v lie on the grid, for all pairs of ``steps``."""
    u, v = steps[:, None], steps[None]
    span = np.maximum(np.maximum(u, v), 0) - np.minimum(np.minimum(u, v), 0)
    return np.prod(np.maximum(np.array(shape) - span, 0), axis=-1)


def _classes(grid: Grid, first: NDArray, second: NDArray) -> NDArray[np.intp]:
    """The class of (0, u, v) for u in ``first`` and v in ``second``: the least code that any of its
    points gives as the origin, the others in either order.
    """
    length = np.array(grid.shape)
    width = np.where(grid.periodic, length, 4 * length)
    scale = np.cumprod(np.append(width[1:], 1)[::-1])[::-1]

    def code(step: NDArray) -> NDArray:
        return np.mod(step, width) @ scale

    u, v = first[:, None], second[None]
    size = int(np.prod(width))
    best = np.full((len(first), len(second)), size * size)
    for one, other in ((u, v), (-u, v - u), (-v, u - v)):
        a, b = code(one), code(other)
        best = np.minimum(best, np.minimum(a, b) * size + np.maximum(a, b))
    return np.unique(best, return_inverse=True)[1].reshape(best.shape)
