"""What a lifting map makes of bits: the number system that it has found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symlift.core.model import LiftedModel
from symlift.errors import InputError

__all__ = ["BitStructure", "bit_structure"]


@dataclass(frozen=True, eq=False)
class BitStructure:
    """Weight of each bit at its own grid point, and what bits of equal significance have in common.

    ``point``, ``significance`` (0 the heaviest) and ``weight`` are (d,); ``mean`` and ``deviation`` of |weight| over the grid are
    (b,), relative to the heaviest; ``base`` is that of the number system, from a straight line through the logarithms
    of the means.  ``channels`` (b, N, N) is the lifting map, for each significance the columns in the order of
    their points; zero where a point lacks that bit.
    """

    point: NDArray[np.int64]
    significance: NDArray[np.int64]
    weight: NDArray[np.float64]
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    base: float
    channels: NDArray[np.float64]


def bit_structure(
    model: LiftedModel | ArrayLike, order: ArrayLike | None = None, bits_per_pixel: int | None = None
) -> BitStructure:
    """The structure of a lifting map across bits, of a model or of W (N, d) itself.

    A bit's own point is where its weight is largest.  Its significance is the rank of its weight there or, to judge a
    recovery, the true one: ``order[j] % bits_per_pixel``, as :func:`~symlift.datasets.scrambled_bits` gives it.

    >>> W = np.kron(np.eye(3), 2.0 ** -np.arange(4))
    >>> found = bit_structure(W)
    >>> found.mean, round(found.base, 6)
    (array([1.   , 0.5  , 0.25 , 0.125]), 2.0)
    """
    W = model.lifting_map() if isinstance(model, LiftedModel) else np.asarray(model, dtype=np.float64)
    if W.ndim != 2 or not W.any():
        raise InputError(f"a lifting map is (grid points, d) and not zero, but this has shape {W.shape}")
    N, d = W.shape
    point = np.abs(W).argmax(axis=0)
    weight = W[point, np.arange(d)]
    if order is None:
        by_weight = np.lexsort((-np.abs(weight), point))
        start = np.searchsorted(point[by_weight], np.arange(N))
        significance = np.empty(d, dtype=np.int64)
        significance[by_weight] = np.arange(d) - start[point[by_weight]]
    else:
        truth = np.asarray(order)
        if truth.shape != (d,) or bits_per_pixel is None:
            raise InputError(f"the true order has shape {truth.shape}: give ({d},), and bits_per_pixel with it")
        significance = (truth % bits_per_pixel).astype(np.int64)
    b = int(significance.max()) + 1
    count = np.maximum(np.bincount(significance, minlength=b), 1)
    mean = np.bincount(significance, np.abs(weight), b) / count
    variance = np.bincount(significance, (np.abs(weight) - mean[significance]) ** 2, b) / count
    channels = np.zeros((b, N, N))
    channels[significance, :, point] = W.T
    heavy = np.flatnonzero(mean > 0)
    base = float(np.exp(-np.polyfit(heavy, np.log(mean[heavy]), 1)[0])) if len(heavy) > 1 else float("nan")
    top = mean.max()
    return BitStructure(point, significance, weight, mean / top, np.sqrt(variance) / top, base, channels)
