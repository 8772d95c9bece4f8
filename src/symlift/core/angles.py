"""Angles on a ring."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["fundamental"]


def fundamental(Y: NDArray) -> NDArray[np.complex128]:
    """Fundamental harmonic of each row of Y (n, N) on a ring.

    Its argument is the position, its modulus the strength.  It is taken with e^{iωn} rather than
    the FFT's e^{-iωn}, so that the phase grows as the signal moves towards larger indices.

    >>> np.angle(fundamental(np.eye(4))).round(3)
    array([ 0.   ,  1.571,  3.142, -1.571])
    """
    N = Y.shape[1]
    return Y @ np.exp(2j * np.pi * np.arange(N) / N)
