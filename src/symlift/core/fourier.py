"""Fourier modes of rings and tori: their frequencies, and reading a ring between its points."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["along", "finer_ring", "regular_frequencies", "ring_kernel"]


def ring_kernel(length: int, positions: ArrayLike) -> NDArray[np.float64]:
    """Matrix that reads a ring of ``length`` points at real ``positions``.

    Real band-limited interpolation: ``h(x) = (1/N) Σ_{|k| < N/2} exp(2πikx/N)``, plus ``cos(πx)/N``
    where N is even: the Nyquist mode is split evenly between k = ±N/2, the only choice that keeps
    real signals real.  Column m holds ``h(position - m)``.

    >>> ring_kernel(4, [1, 1.5]).round(3) + 0.0
    array([[ 0.   ,  1.   ,  0.   ,  0.   ],
           [-0.104,  0.604,  0.604, -0.104]])
    """
    k = np.arange(length // 2 + 1)
    weight = np.where((k == 0) | (2 * k == length), 1.0, 2.0) / length
    at = 2 * np.pi / length * np.outer(np.asarray(positions, dtype=np.float64), k)
    points = 2 * np.pi / length * np.outer(np.arange(length), k)
    # cos(a - b) as two products, so that no (positions × points × frequencies) array is built
    kernel: NDArray[np.float64] = (np.cos(at) * weight) @ np.cos(points).T + (
        np.sin(at) * weight
    ) @ np.sin(points).T
    return kernel


def finer_ring(values: NDArray[np.float64], times: int = 8, most: int = 400) -> NDArray[np.float64]:
    """Interpolate a ring to ``times`` as many points, unless it has more than ``most``."""
    n = len(values)
    return values if n > most else ring_kernel(n, np.arange(n * times) / times) @ values


def along(
    array: NDArray[np.float64], matrices: Sequence[NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Apply one matrix to each of the last ``len(matrices)`` axes: ``(M_1 ⊗ … ⊗ M_P) array``."""
    first = array.ndim - len(matrices)
    for axis, matrix in enumerate(matrices, start=first):
        array = np.moveaxis(np.tensordot(array, matrix, axes=(axis, 1)), -1, axis)
    return array


def regular_frequencies(shape: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Frequencies θ (P, K) and flat resolving filter r (K + 1,) of translations on a torus.

    There is one plane for each pair of conjugate Fourier modes, one for each self-conjugate mode
    (Nyquist, on even axes), and the constant mode last, alone: the dimension is 2K + 1.  With T the
    `plane_basis` at the torus' points and r spread over the planes, T diag(r²) Tᵀ = I: the delta at
    each point is an orbit element.

    >>> theta, r = regular_frequencies((4,))
    >>> (theta / np.pi).round(3), (r**2).round(3)
    (array([[0.5, 1. ]]), array([0.5 , 0.25, 0.25]))
    """
    modes = np.array(
        [k for k in itertools.product(*(range(n) for n in shape)) if any(k)], dtype=np.int64
    ).reshape(-1, len(shape))
    conjugate = np.mod(-modes, shape)
    keys, conjugate_keys = (
        np.ravel_multi_index(tuple(m.T), tuple(shape)) for m in (modes, conjugate)
    )
    modes, lone = modes[keys <= conjugate_keys], (keys == conjugate_keys)[keys <= conjugate_keys]
    signed = np.where(modes > np.array(shape) / 2, modes - shape, modes)
    theta = 2 * np.pi * signed / np.array(shape)
    order = np.lexsort((*theta.T, np.round(np.sum(theta**2, axis=1), 9)))
    points = math.prod(shape)
    r = np.sqrt(np.where(lone, 1.0, 2.0) / points)
    return theta[order].T.copy(), np.append(r[order], 1 / np.sqrt(points))
