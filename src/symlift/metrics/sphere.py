"""Recovery and generators on a sphere, up to one rotation or reflection of the whole."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from symlift.core.harmonics import (
    degree_blocks,
    degrees_of,
    real_harmonics,
    rotation_matrix,
    rotation_vector,
    so3_generators,
    turn_harmonics,
)
from symlift.core.linalg import polar
from symlift.core.sphere import Sphere, spread_points
from symlift.errors import InputError

__all__ = [
    "Turn",
    "align_on_sphere",
    "recovery_on_sphere",
    "so3_similarity",
    "to_coefficients",
    "turned_fields",
]

# rotations from which the best alignment is searched: directions of an axis times angles
_AXES, _ANGLES, _REFINED = 60, 8, 4


@dataclass(frozen=True)
class Turn:
    """An alignment of fields on a sphere: ``sign · ρ(rotation) · mirror``, from right to left.

    Parameters
    ----------
    rotation : tuple of float
        Rotation vector in radians.
    mirrored : bool, default=False
        Whether fields are first reflected through the centre of the sphere.
    sign : {1, -1}, default=1
        Factor of the signal.

    Examples
    --------
    >>> Turn((0.0, 0.0, 0.0)).apply(np.ones((1, 4)))
    array([[1., 1., 1., 1.]])
    """

    rotation: tuple[float, float, float]
    mirrored: bool = False
    sign: int = 1

    def apply(self, coefficients: NDArray) -> NDArray:
        """Align coefficients of spherical harmonics.

        Parameters
        ----------
        coefficients : ndarray of shape (n, (L + 1)²)
            Coefficients of fields.

        Returns
        -------
        ndarray of shape (n, (L + 1)²)
            Those of the aligned fields.
        """
        degree = math.isqrt(coefficients.shape[1]) - 1
        parity = 1.0 - 2.0 * (degrees_of(degree) % 2 if self.mirrored else 0)
        return self.sign * turn_harmonics(coefficients * parity, self.rotation)


def to_coefficients(fields: ArrayLike, sphere: Sphere) -> NDArray[np.float64]:
    """Coefficients (n, (L + 1)²) of fields (n, points) at the points of a sphere."""
    values = np.asarray(fields, dtype=np.float64)
    if values.ndim != 2 or values.shape[1] != sphere.size:
        raise InputError(
            f"fields of shape {values.shape} do not fit the {sphere}: give (n, {sphere.size})"
        )
    if len(values) == 0 or not np.isfinite(values).all():
        raise InputError("fields on a sphere are empty or hold NaN or infinity: repair them first")
    Y = real_harmonics(sphere.points, sphere.known_degree)
    return values @ np.linalg.pinv(Y).T


def align_on_sphere(latent: NDArray, recovered: NDArray) -> Turn:
    """The one turn of all recovered coefficients (n, D) that brings them nearest to the latent.

    Rotations keep norms, so that it maximises Σ_l ⟨M_l, ρ_l(R)⟩ with M_l the moments of both sides:
    from a spread of rotations and from degree 1, the best ones refined.
    """
    degree = math.isqrt(latent.shape[1]) - 1
    moments = latent.T @ recovered
    best: tuple[float, Turn] | None = None
    for mirrored in (False, True):
        parity = 1.0 - 2.0 * (degrees_of(degree) % 2 if mirrored else 0)
        M = moments * parity

        for sign in (1, -1):
            starts = _starts(sign * M[1:4, 1:4])
            values = np.array([_distance(t, sign * M) for t in starts])
            for at in np.argsort(values)[:_REFINED]:
                end = minimize(_distance, starts[at], args=(sign * M,), method="BFGS")
                if best is None or -end.fun > best[0] * (1 + 1e-12):
                    turn = Turn((float(end.x[0]), float(end.x[1]), float(end.x[2])), mirrored, sign)
                    best = -float(end.fun), turn
    assert best is not None  # noqa: S101 - there are always starts
    return best[1]


def _distance(t: NDArray, M: NDArray) -> float:
    """Minus the overlap of moments M (D, D) with the rotation by t."""
    turned = turn_harmonics(np.eye(len(M)), t).T  # ρ(t) of the unit vectors, as columns
    blocks = degree_blocks(math.isqrt(len(M)) - 1)
    return -float(sum(np.vdot(M[b, b], turned[b, b]) for b in blocks))


def _starts(M: NDArray) -> NDArray[np.float64]:
    """Rotation vectors: that of degree 1, and a spread of axes and angles."""
    order = [2, 0, 1]  # degree 1 is (y, z, x)
    R = polar(M[np.ix_(order, order)])
    R = R if np.linalg.det(R) > 0 else -R
    angles = np.pi * (np.arange(_ANGLES) + 0.5) / _ANGLES
    spread = (spread_points(_AXES)[:, None] * angles[:, None]).reshape(-1, 3)
    return np.concatenate([rotation_vector(R)[None], spread])


def recovery_on_sphere(
    latent: ArrayLike, recovered: ArrayLike, sphere: Sphere, loud: float
) -> tuple[float, float, float, Turn]:
    """r, r of single samples, r without each sample's own mean, and the turn.

    Fields are compared all over the sphere, not only at its points: sums over coefficients are
    integrals.  Samples of less than ``loud`` times the rms deviation are left out of the second.
    """
    a, b = to_coefficients(latent, sphere), to_coefficients(recovered, sphere)
    if len(a) != len(b):
        raise InputError(f"{len(a)} latent and {len(b)} recovered fields: give the same samples")
    # the mean over all samples and points is a part of degree 0
    a[:, 0] -= a[:, 0].mean()
    b[:, 0] -= b[:, 0].mean()
    turn = align_on_sphere(a, b)
    b = turn.apply(b)
    norms = np.linalg.norm(a[:, 1:], axis=1), np.linalg.norm(b[:, 1:], axis=1)
    heard = norms[0] >= loud * math.sqrt(float(np.mean(norms[0] ** 2)))
    each = (a[:, 1:] * b[:, 1:]).sum(axis=1) / np.maximum(norms[0] * norms[1], 1e-300)
    return (
        abs(_cosine(a, b)),
        float(each[heard].mean()) if heard.any() else 0.0,
        _cosine(a[:, 1:], b[:, 1:]),
        turn,
    )


def _cosine(a: NDArray, b: NDArray) -> float:
    return float(np.vdot(a, b)) / max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-300)


def so3_similarity(
    generators: ArrayLike, transform: ArrayLike | None, sphere: Sphere, bandwidth: float
) -> NDArray[np.float64]:
    """Frobenius cosine of three generators (3, d, d) with those of rotations, (3,).

    In coefficients they are A⁺ L A with A the mixing; of those, degrees up to ``bandwidth`` times
    the highest are compared.  The frame is free: the best rotation or reflection of the three.
    """
    L = np.asarray(generators, dtype=np.float64)
    D, degree = sphere.dimension, sphere.known_degree
    if L.ndim != 3 or len(L) != 3 or L.shape[1] != L.shape[2] or not np.isfinite(L).all():
        raise InputError(f"generators have shape {L.shape}: a sphere needs (3, d, d), finite")
    if transform is None:
        A = np.eye(L.shape[1], D)
    else:
        # X = latent @ transform, and latent = c Yᵀ
        values = np.asarray(transform, dtype=np.float64)
        if values.shape != (sphere.size, L.shape[1]):
            raise InputError(
                f"transform has shape {values.shape}: it must be ({sphere.size}, {L.shape[1]})"
            )
        A = values.T @ real_harmonics(sphere.points, degree)
    if A.shape[1] > A.shape[0] or np.linalg.matrix_rank(A) < A.shape[1]:
        raise InputError("transform is singular: generators cannot be transformed back")
    low = degrees_of(degree) <= math.floor(bandwidth * degree + 1e-9)
    native = (np.linalg.pinv(A) @ L @ A)[:, low][:, :, low]
    truth = so3_generators(degree)[:, low][:, :, low]
    overlap = np.einsum("jab,kab->jk", native, truth)
    aligned = np.einsum("jk,jab->kab", polar(overlap), native)
    return np.array([abs(_cosine(one, other)) for one, other in zip(aligned, truth, strict=True)])


def turned_fields(fields: NDArray, sphere: Sphere, t: ArrayLike) -> NDArray[np.float64]:
    """Fields (n, points) turned by a rotation vector: f(R⁻¹ p) at the points p."""
    at = real_harmonics(sphere.points @ rotation_matrix(t), sphere.known_degree)
    return to_coefficients(fields, sphere) @ at.T
