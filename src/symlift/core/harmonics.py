"""Real spherical harmonics, their products, and the rotations that act on them.

Functions on the unit sphere up to degree L are coefficient vectors of (L + 1)² numbers, ordered by
degree l = 0 … L and within a degree by m = -l … l.  The basis is orthonormal, ∫ Y_a Y_b = δ_ab;
Y_00 = 1/√4π, and degree 1 is √(3/4π) (y, z, x).  A rotation R acts by (ρ(R) f)(p) = f(R⁻¹ p), block
by block: degree l is an irreducible representation of SO(3) of 2l + 1 dimensions.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "degree_blocks",
    "degrees_of",
    "gaunt_tensor",
    "real_harmonics",
    "rotation_matrix",
    "rotation_vector",
    "so3_generators",
    "sphere_quadrature",
    "turn_harmonics",
]


def degree_blocks(degree: int) -> list[slice]:
    """Where each degree 0 … L stands among the (L + 1)² coefficients.

    >>> degree_blocks(2)
    [slice(0, 1, None), slice(1, 4, None), slice(4, 9, None)]
    """
    return [slice(ell * ell, (ell + 1) ** 2) for ell in range(degree + 1)]


def degrees_of(degree: int) -> NDArray[np.int64]:
    """Degree of each of the (L + 1)² coefficients.

    >>> degrees_of(1)
    array([0, 1, 1, 1])
    """
    return np.repeat(np.arange(degree + 1), 2 * np.arange(degree + 1) + 1)


def real_harmonics(points: ArrayLike, degree: int) -> NDArray:
    """Values Y_lm(p) of all harmonics up to a degree at unit vectors, (points, (L + 1)²).

    With p = (x, y, z), Y_lm is Π_l^|m|(z) times the real (m ≥ 0) or imaginary (m < 0) part of
    (x + iy)^|m|.  Nothing is divided by sin θ, so that the poles are no exception, and the
    recursion over l of the normalised Π is stable.

    >>> real_harmonics([[0.0, 0.0, 1.0]], 1).round(4) + 0.0
    array([[0.2821, 0.    , 0.4886, 0.    ]])
    """
    p = np.asarray(points)
    p = p if p.dtype.kind == "f" else p.astype(np.float64)
    x, y, z = p[..., 0], p[..., 1], p[..., 2]
    out = np.empty((*p.shape[:-1], (degree + 1) ** 2), dtype=p.dtype)
    # √2 (x + iy)^m, but 1 for m = 0; Π_m^m without the factor (-1)^m of Condon and Shortley
    cos, sin, top = np.ones_like(z), np.zeros_like(z), math.sqrt(1 / (4 * math.pi))
    for m in range(degree + 1):
        if m:
            cos, sin = x * cos - y * sin, x * sin + y * cos
            top *= math.sqrt((2 * m + 1) / (2 * m))
        share = math.sqrt(2.0) if m else 1.0
        before, this = np.zeros_like(z), np.full_like(z, top)
        for ell in range(m, degree + 1):
            if ell > m:
                a = math.sqrt((4 * ell * ell - 1) / (ell * ell - m * m))
                b = math.sqrt(((ell - 1) ** 2 - m * m) / (4 * (ell - 1) ** 2 - 1))
                before, this = this, a * (z * this - b * before)
            out[..., ell * ell + ell + m] = share * this * cos
            if m:
                out[..., ell * ell + ell - m] = share * this * sin
    return out


def sphere_quadrature(degree: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Unit vectors and weights that integrate polynomials up to a degree over the sphere exactly.

    >>> points, weights = sphere_quadrature(4)
    >>> bool(np.allclose(weights @ points[:, 2] ** 4, 4 * np.pi / 5))
    True
    """
    nodes, weights = np.polynomial.legendre.leggauss(degree // 2 + 1)
    count = degree + 1
    angle = 2 * np.pi * np.arange(count) / count
    z, around = (a.ravel() for a in np.meshgrid(nodes, angle, indexing="ij"))
    ring = np.sqrt(1 - z * z)
    points = np.stack([ring * np.cos(around), ring * np.sin(around), z], axis=1)
    return points, np.repeat(weights, count) * 2 * np.pi / count


@lru_cache(maxsize=4)
def gaunt_tensor(degree: int) -> NDArray[np.float64]:
    """Integrals of products of three harmonics, G_abc = ∫ Y_a Y_b Y_c, ((L + 1)²,)³.

    Zero unless the three degrees satisfy the triangle inequality and have an even sum.
    """
    points, weights = sphere_quadrature(3 * degree)
    Y = real_harmonics(points, degree)
    D = Y.shape[1]
    pairs = (weights[:, None, None] * Y[:, :, None] * Y[:, None, :]).reshape(len(Y), -1)
    G = (pairs.T @ Y).reshape(D, D, D)
    G[np.abs(G) < 1e-12] = 0.0
    G.flags.writeable = False
    return G


@lru_cache(maxsize=8)
def so3_generators(degree: int) -> NDArray[np.float64]:
    """L_x, L_y, L_z on the coefficients up to a degree, (3, (L + 1)², (L + 1)²), skew-symmetric.

    [L_x, L_y] = L_z and cyclically, and exp(Σ_j t_j L_j) turns a function by the rotation vector t.

    >>> Lx, Ly, Lz = so3_generators(2)
    >>> bool(np.allclose(Lx @ Ly - Ly @ Lx, Lz))
    True
    """
    D = (degree + 1) ** 2
    out = np.zeros((3, D, D))
    for ell, block in enumerate(degree_blocks(degree)):
        out[:, block, block] = _generators_of_degree(ell)
    out.flags.writeable = False
    return out


def _generators_of_degree(ell: int) -> NDArray[np.float64]:
    """-i J of the angular momenta J_x, J_y, J_z, in the real basis m = -l … l."""
    m = np.arange(-ell, ell + 1)
    raising = np.diag(np.sqrt(ell * (ell + 1.0) - m[:-1] * (m[:-1] + 1.0)), -1)
    x, y = (raising + raising.T) / 2, (raising - raising.T) / 2j
    J = np.stack([x, y, np.diag(m).astype(complex)])
    # columns: the real harmonics in terms of the complex ones, with Condon and Shortley's phase
    U = np.zeros((2 * ell + 1, 2 * ell + 1), dtype=complex)
    U[ell, ell] = 1
    for k in range(1, ell + 1):
        phase = (-1) ** k / math.sqrt(2)
        U[ell + k, ell + k], U[ell - k, ell + k] = phase, math.sqrt(0.5)
        U[ell + k, ell - k], U[ell - k, ell - k] = -1j * phase, 1j * math.sqrt(0.5)
    return np.real(U.conj().T @ (-1j * J) @ U)


def turn_harmonics(Z: NDArray, t: ArrayLike) -> NDArray:
    """Coefficients Z (n, (L + 1)²) of functions turned by rotation vectors t, (3,) or (n, 3).

    Each degree is turned by the exponential of its own block, from the Hermitian i Σ_j t_j L_j.

    >>> up = np.array([[0.0, 0.0, 1.0, 0.0]])  # the function z
    >>> turn_harmonics(up, [0.0, np.pi / 2, 0.0]).round(6) + 0.0  # becomes x
    array([[0., 0., 0., 1.]])
    """
    degree = math.isqrt(Z.shape[-1]) - 1
    vector, L = np.asarray(t, dtype=np.float64), so3_generators(degree)
    out = np.empty_like(Z)
    for block in degree_blocks(degree):
        skew = np.tensordot(vector, L[:, block, block], axes=(-1, 0))
        values, vectors = np.linalg.eigh(1j * skew)
        back = np.swapaxes(vectors.conj(), -1, -2)
        turn = np.real((vectors * np.exp(-1j * values)[..., None, :]) @ back).astype(Z.dtype)
        out[:, block] = (
            Z[:, block] @ turn.T if turn.ndim == 2 else np.einsum("nij,nj->ni", turn, Z[:, block])
        )
    return out


def rotation_matrix(t: ArrayLike) -> NDArray[np.float64]:
    """The rotation of space by a rotation vector: its direction is the axis, its length the angle.

    >>> rotation_matrix([0.0, 0.0, np.pi / 2]).round(6)[:, 0] + 0.0
    array([0., 1., 0.])
    """
    x, y, z = (float(v) for v in np.asarray(t, dtype=np.float64))
    angle = math.sqrt(x * x + y * y + z * z)
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    # sin a/a and (1 - cos a)/a², which stay exact for small angles
    half = np.sinc(angle / (2 * np.pi))
    return np.eye(3) + np.sinc(angle / np.pi) * K + 0.5 * half * half * (K @ K)


def rotation_vector(R: ArrayLike) -> NDArray[np.float64]:
    """The rotation vector of a rotation matrix, of a length from 0 to π.

    >>> rotation_vector(rotation_matrix([0.3, -0.2, 0.5])).round(6)
    array([ 0.3, -0.2,  0.5])
    """
    # the unit quaternion is the leading eigenvector of this matrix for every angle, π included
    M = np.asarray(R, dtype=np.float64)
    axial = np.array([M[2, 1] - M[1, 2], M[0, 2] - M[2, 0], M[1, 0] - M[0, 1]])
    K = np.empty((4, 4))
    K[0, 0], K[0, 1:], K[1:, 0] = np.trace(M), axial, axial
    K[1:, 1:] = M + M.T - np.trace(M) * np.eye(3)
    q = np.linalg.eigh(K)[1][:, -1]
    q = q if q[0] >= 0 else -q
    sine = float(np.linalg.norm(q[1:]))
    return q[1:] * (2.0 if sine < 1e-12 else 2 * math.atan2(sine, q[0]) / sine)
