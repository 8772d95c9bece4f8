"""Axes of columns, u and -u alike: descents over correlations, from what degree 2 shows.

Paths lead nowhere, since the projective plane opens into no cap.  But degree 2 alone, the lowest
that axes have, is u uᵀ less its mean: five numbers for each column.  Leading eigenvectors of the
correlations show them up to a rotation of five dimensions, which the third moment over columns
undoes: that of all fields of degree 2 is one number times the Gaunt tensor.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from symlift.core.harmonics import gaunt_tensor, real_harmonics, sphere_quadrature
from symlift.core.linalg import polar
from symlift.solvers.fast.stationary import minimise_over_rotations
from symlift.solvers.sphere.angles import by_kernel
from symlift.solvers.sphere.invariants import rotated, third_moment

__all__ = ["axes_by_kernel", "axes_of_degree_two"]

# functions of degree 2 among the coefficients, and how many there are
_TWO, _SIZE = slice(4, 9), 5
# random rotations of five dimensions, and steps of the descent from each
_ROTATIONS, _STEPS = 60, 60


def axes_by_kernel(c: NDArray, degree: int) -> NDArray[np.float64]:
    """Axes, as unit vectors (d, 3), by which all correlations c are explained best: descents from
    what degree 2 shows.

    Random starts end where correlations are explained as well by other places (64 directions of
    diffusion: halves of the rows agree on 0.59 to 0.71 with them, and on 0.87 without).
    """
    ends = (by_kernel(u, c, degree, True) for u in axes_of_degree_two(c))
    return min(ends, key=lambda one: one[1])[0]


def axes_of_degree_two(c: NDArray) -> list[NDArray[np.float64]]:
    """Candidates for axes from five leading eigenvectors of c (d, d), with and without the first,
    which degree 0 may take, and with either sign.
    """
    vectors = np.linalg.eigh(c)[1][:, ::-1]
    points, weights = sphere_quadrature(4)
    values = real_harmonics(points, 2)[:, _TWO]
    # the symmetric matrix that belongs to each function: ∫ Y(p) p pᵀ
    matrices = np.einsum("p,pa,pi,pj->aij", weights, values, points, points)
    out = []
    for left_out in (0, 1):
        y = vectors[:, left_out : left_out + _SIZE] * np.sqrt(len(c))
        if y.shape[1] < _SIZE:
            continue
        y = y @ _turned(third_moment(y)).T
        for sign in (1.0, -1.0):
            out.append(np.linalg.eigh(np.einsum("na,aij->nij", sign * y, matrices))[1][:, :, -1])
    return out


def _turned(tensor: NDArray) -> NDArray[np.float64]:
    """The rotation (5, 5) that brings a third moment nearest to a multiple of the Gaunt tensor."""
    G = gaunt_tensor(2)[_TWO, _TWO, _TWO]
    whole, size = max(float(np.vdot(tensor, tensor)), 1e-300), float(np.vdot(G, G))

    def gap(W: NDArray) -> tuple[float, NDArray]:
        beta = float(np.vdot(rotated(W, tensor), G)) / size
        slope = np.einsum("ijk,jb,kc,abc->ia", G, W, W, tensor, optimize=True)
        return 1 - beta**2 * size / whole, -6 * beta / whole * slope

    rng = np.random.default_rng(0)
    starts = (polar(rng.normal(size=(_SIZE, _SIZE))) for _ in range(_ROTATIONS))
    ends = (minimise_over_rotations(gap, start, _STEPS) for start in starts)
    return min(ends, key=lambda one: one[1])[0]
