"""Angles on rings and tori."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["fundamental", "fundamentals"]


def fundamental(Y: NDArray) -> NDArray[np.complex128]:
    """Fundamental harmonic of each row of Y (n, N) on a ring.

    Its argument is the position, its modulus the strength.  It is taken with e^{iωn} rather than
    the FFT's e^{-iωn}, so that the phase grows as the signal moves towards larger indices.

    >>> np.angle(fundamental(np.eye(4))).round(3)
    array([ 0.   ,  1.571,  3.142, -1.571])
    """
    N = Y.shape[1]
    return Y @ np.exp(2j * np.pi * np.arange(N) / N)


def fundamentals(Y: NDArray, shape: tuple[int, ...]) -> NDArray[np.complex128]:
    """Fundamental harmonic along each axis of fields Y (n, points) on a torus of ``shape``: (n,
    axes).

    >>> np.angle(fundamentals(np.eye(16)[6:7], (4, 4))).round(3)
    array([[1.571, 3.142]])
    """
    fields = Y.reshape(len(Y), *shape)
    axes = range(1, len(shape) + 1)
    return np.stack(
        [fundamental(fields.sum(axis=tuple(a for a in axes if a != axis))) for axis in axes], axis=1
    )
