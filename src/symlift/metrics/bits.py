"""Structure of a lifting map across bits: the number system that it found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symlift.core.model import LiftedModel
from symlift.errors import InputError

__all__ = ["BitStructure", "bit_structure"]


@dataclass(frozen=True, eq=False)
class BitStructure:
    """Weight of each bit at its own grid point, and statistics over bits of equal significance.

    Parameters
    ----------
    point : ndarray of shape (d,)
        Grid point of each bit, where its weight is largest.
    significance : ndarray of shape (d,)
        Rank of each bit at its point, 0 for the heaviest.
    weight : ndarray of shape (d,)
        Weight of each bit at its point.
    mean : ndarray of shape (b,)
        Mean of |weight| over the grid for each significance, relative to the heaviest.
    deviation : ndarray of shape (b,)
        Its standard deviation over the grid, relative to the heaviest.
    base : float
        Base of the number system, from a straight line through the logarithms of ``mean``.
    channels : ndarray of shape (b, N, N)
        The lifting map for each significance, columns in the order of their points; zero where a
        point lacks that bit.

    Examples
    --------
    >>> bit_structure(np.kron(np.eye(3), 2.0 ** -np.arange(4))).channels.shape
    (4, 3, 3)
    """

    point: NDArray[np.int64]
    significance: NDArray[np.int64]
    weight: NDArray[np.float64]
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    base: float
    channels: NDArray[np.float64]


def bit_structure(
    model: LiftedModel | ArrayLike,
    order: ArrayLike | None = None,
    bits_per_pixel: int | None = None,
) -> BitStructure:
    """Find the structure of a lifting map across bits.

    A bit's own point is where its weight is largest.  Its significance is the rank of its weight
    there or, to judge a recovery, the true one: ``order[j] % bits_per_pixel``.

    Parameters
    ----------
    model : LiftedModel or array-like of shape (N, d)
        A model, or its lifting map W.
    order : array-like of shape (d,), optional
        True order of the columns, as `scrambled_bits` returns it.
    bits_per_pixel : int, optional
        Number of bits of each pixel; needed with ``order``.

    Returns
    -------
    BitStructure
        Points, significances and weights of the bits.

    Raises
    ------
    InputError
        If the map is zero or not a matrix, or if ``order`` does not fit it.

    References
    ----------
    "Blind Recovery of Latent Domains via Unsupervised Symmetry Discovery", appendix "Bit scrambling
    experiments".

    Examples
    --------
    >>> W = np.kron(np.eye(3), 2.0 ** -np.arange(4))
    >>> structure = bit_structure(W)
    >>> structure.mean, round(structure.base, 6)
    (array([1.   , 0.5  , 0.25 , 0.125]), 2.0)
    """
    W = (
        model.lifting_map()
        if isinstance(model, LiftedModel)
        else np.asarray(model, dtype=np.float64)
    )
    if W.ndim != 2 or not W.any():
        raise InputError(
            f"a lifting map is (grid points, d) and not zero, but this has shape {W.shape}"
        )
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
            raise InputError(
                f"the true order has shape {truth.shape}: give ({d},), and bits_per_pixel with it"
            )
        significance = (truth % bits_per_pixel).astype(np.int64)
    b = int(significance.max()) + 1
    count = np.maximum(np.bincount(significance, minlength=b), 1)
    mean = np.bincount(significance, np.abs(weight), b) / count
    variance = np.bincount(significance, (np.abs(weight) - mean[significance]) ** 2, b) / count
    channels = np.zeros((b, N, N))
    channels[significance, :, point] = W.T
    heavy = np.flatnonzero(mean > 0)
    base = (
        float(np.exp(-np.polyfit(heavy, np.log(mean[heavy]), 1)[0]))
        if len(heavy) > 1
        else float("nan")
    )
    top = mean.max()
    return BitStructure(
        point, significance, weight, mean / top, np.sqrt(variance) / top, base, channels
    )
