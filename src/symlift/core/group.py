"""Commuting skew-symmetric generators in 2-plane form, and the translations that they generate.

Commuting real skew matrices share invariant 2-planes.  With Q orthogonal, its columns taken in
pairs, and θ_jk the frequency of plane k along axis j,

    L_j = Q · blockdiag_k(θ_jk J) · Qᵀ,   J = [[0, -1], [1, 0]],
    ρ(t) = exp(Σ_j t_j L_j) = Q · rot(Σ_j t_j θ_j) · Qᵀ.

Orthogonality and commutation hold by construction, no complex eigendecomposition is needed, and
gradients stay finite at equal frequencies.  An odd dimension leaves one last column alone, with
frequency 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from symlift.core.linalg import null_space
from symlift.core.representation import along_orbit
from symlift.errors import InputError

__all__ = ["TranslationGroup", "plane_basis", "rotate_planes", "spread_filter"]


def rotate_planes(coordinates: NDArray, angles: NDArray) -> NDArray:
    """Rotate consecutive pairs of the last axis of coordinates (…, D) by angles (…, D // 2).

    >>> rotate_planes(np.array([[1.0, 0.0, 5.0]]), np.array([np.pi / 2])).round(3) + 0.0
    array([[0., 1., 5.]])
    """
    planes = coordinates.shape[-1] // 2
    first, second = coordinates[..., 0 : 2 * planes : 2], coordinates[..., 1 : 2 * planes : 2]
    cos, sin = np.cos(angles), np.sin(angles)
    turned = np.stack([cos * first - sin * second, sin * first + cos * second], axis=-1)
    return np.concatenate(
        [turned.reshape(*turned.shape[:-2], 2 * planes), coordinates[..., 2 * planes :]], axis=-1
    )


def plane_basis(theta: NDArray, points: NDArray, dimension: int) -> NDArray:
    """T[n, (2k, 2k+1)] = (cos θ_k·t_n, sin θ_k·t_n), (points, dimension).

    In an odd dimension the last column is 1.
    """
    angles = points @ theta
    pairs = np.stack([np.cos(angles), np.sin(angles)], axis=-1).reshape(len(points), -1)
    return np.concatenate(
        [pairs, np.ones((len(points), dimension - pairs.shape[1]), dtype=pairs.dtype)], axis=-1
    )


def spread_filter(r: NDArray, dimension: int) -> NDArray:
    """One weight per column of T: r_k for both columns of plane k, the last for a lone column."""
    return np.concatenate([np.repeat(r[: dimension // 2], 2), r[dimension // 2 :]])


@dataclass(frozen=True, eq=False)
class TranslationGroup:
    """The Abelian group ρ(t) = exp(Σ_j t_j L_j) with generators in 2-plane form.

    Parameters
    ----------
    Q : ndarray of shape (D, D)
        Orthogonal matrix; columns 2k and 2k+1 span plane k.
    theta : ndarray of shape (P, D // 2)
        Frequency of each plane along each axis, in radians per grid step.

    Raises
    ------
    InputError
        If the shapes of ``Q`` and ``theta`` do not fit.

    References
    ----------
    "Blind Recovery of Latent Domains via Unsupervised Symmetry Discovery", eq. (4), and its
    appendix "Lie basis parametrizations".

    Examples
    --------
    >>> group = TranslationGroup(np.eye(3), np.array([[np.pi / 2]]))
    >>> group.act(np.array([[1.0, 0.0, 2.0]]), [1.0]).round(6) + 0.0
    array([[0., 1., 2.]])
    >>> TranslationGroup.from_generators(group.generators()).dimension
    3
    """

    Q: NDArray
    theta: NDArray

    def __post_init__(self) -> None:
        if self.Q.ndim != 2 or self.Q.shape[0] != self.Q.shape[1]:
            raise InputError(f"Q has shape {self.Q.shape}: it must be square")
        if self.theta.ndim != 2 or self.theta.shape[1] != len(self.Q) // 2:
            raise InputError(
                f"theta has shape {self.theta.shape}: it must be (axes, {len(self.Q) // 2}), one"
                " frequency per plane"
            )

    def __repr__(self) -> str:
        return f"TranslationGroup({self.axes} axes, dimension {self.dimension})"

    @property
    def dimension(self) -> int:
        """Dimension D of the space that the group acts on."""
        return len(self.Q)

    @property
    def axes(self) -> int:
        """Number P of generators."""
        return len(self.theta)

    @property
    def filter_size(self) -> int:
        """Number of weights of a filter, one for each plane and one for a lone column."""
        return len(self.Q) // 2 + len(self.Q) % 2

    def generators(self) -> NDArray:
        """Build the generators L_j, skew-symmetric and commuting by construction.

        Returns
        -------
        ndarray of shape (P, D, D)
            One matrix for each axis.
        """
        planes = 2 * self.theta.shape[1]
        first, second = self.Q[:, 0:planes:2], self.Q[:, 1:planes:2]
        half = np.stack([(second * theta) @ first.T for theta in self.theta])
        return half - half.transpose(0, 2, 1)

    def act(self, Z: NDArray, t: ArrayLike) -> NDArray:
        """Apply ρ(t) to each row of Z.

        This costs two products with Q; no matrix is built for each t.

        Parameters
        ----------
        Z : ndarray of shape (n, D)
            Vectors that the group acts on.
        t : array-like of shape (P,) or (n, P)
            Translation in grid steps, the same for all rows or one for each row.

        Returns
        -------
        ndarray of shape (n, D)
            The translated vectors.

        Raises
        ------
        InputError
            If ``t`` does not have one number for each axis.
        """
        steps = np.asarray(t, dtype=self.Q.dtype)
        if steps.shape[-1:] != (self.axes,):
            raise InputError(
                f"a translation of shape {steps.shape} was given for a group of {self.axes} axes:"
                f" give {self.axes} numbers"
            )
        return rotate_planes(Z @ self.Q, steps @ self.theta) @ self.Q.T

    def matrix(self, t: ArrayLike) -> NDArray:
        """Build ρ(t) as a matrix.

        Parameters
        ----------
        t : array-like of shape (P,)
            Translation in grid steps.

        Returns
        -------
        ndarray of shape (D, D)
            An orthogonal matrix.
        """
        return self.act(np.eye(self.dimension, dtype=self.Q.dtype), t).T

    def derivative(self, Z: NDArray, axis: int) -> NDArray:
        """Apply L_axis to each row of Z: d/dt of `act` at 0.

        Parameters
        ----------
        Z : ndarray of shape (n, D)
            Vectors that the group acts on.
        axis : int
            Which of the generators.

        Returns
        -------
        ndarray of shape (n, D)
            L_axis applied to each row.
        """
        planes = 2 * self.theta.shape[1]
        first, second = self.Q[:, 0:planes:2], self.Q[:, 1:planes:2]
        rate = self.theta[axis]
        return (rate * (Z @ first)) @ second.T - (rate * (Z @ second)) @ first.T

    def orbit(self, domain: Any, r: NDArray) -> NDArray:
        """Evaluate the orbit of the filter, T(θ) · diag(r) · Qᵀ.

        Parameters
        ----------
        domain : Grid
            The grid, whose coordinates are evaluated.
        r : ndarray of shape (filter_size,)
            Weight of each plane.

        Returns
        -------
        ndarray of shape (points, D)
            Rows w₀ᵀ ρ(-t_n).
        """
        points = domain.coordinates().astype(self.Q.dtype)
        planes = plane_basis(self.theta, points, self.dimension)
        return (planes * spread_filter(r, self.dimension)) @ self.Q.T

    def evaluate(self, E: NDArray, domain: Any, r: NDArray, channels: int) -> NDArray:
        """Evaluate a lifting map at the points of a domain.

        Parameters
        ----------
        E : ndarray of shape (channels · D, d)
            Embedding.
        domain : Grid
            The points.
        r : ndarray of shape (filter_size,)
            Weight of each plane.
        channels : int
            Number of signals at each point.

        Returns
        -------
        ndarray of shape (points · channels, d)
            The orbit times E, channels fastest.
        """
        return along_orbit(self.orbit(domain, r), E, channels)

    def tensors(self) -> dict[str, NDArray]:
        """Return the arrays that describe the group.

        Returns
        -------
        dict of str to ndarray
            ``Q`` and ``theta``, as they are stored.
        """
        return {"Q": self.Q, "theta": self.theta}

    def to(self, dtype: DTypeLike) -> TranslationGroup:
        """Convert the group to another precision.

        Parameters
        ----------
        dtype : dtype-like
            A floating-point type of numpy.

        Returns
        -------
        TranslationGroup
            The same group in that precision.
        """
        return TranslationGroup(self.Q.astype(dtype), self.theta.astype(dtype))

    @classmethod
    def from_generators(cls, generators: ArrayLike) -> TranslationGroup:
        """Find Q and θ of (nearly) commuting skew matrices by joint block diagonalisation.

        A generic combination Σ c_j L_j has the planes that all L_j share, so one Hermitian
        eigendecomposition of -i Σ c_j L_j gives them.  Of several combinations, the one that leaves
        least of the L_j outside of the blocks is taken (it matters only when the L_j do not quite
        commute).

        Parameters
        ----------
        generators : array-like of shape (P, D, D) or (D, D)
            Skew-symmetric matrices.

        Returns
        -------
        TranslationGroup
            The group that they generate.

        Raises
        ------
        InputError
            If a matrix is not square, not finite or not skew-symmetric.
        """
        L = _stack(generators)
        scale = np.abs(L).max(initial=0.0)
        if np.abs(L + L.transpose(0, 2, 1)).max(initial=0.0) > 1e-6 * max(scale, 1e-300):
            raise InputError(
                "generators must be skew-symmetric: L + Lᵀ is not zero; pass (L - Lᵀ)/2 if you mean"
                " its skew part"
            )
        candidates = (_planes_of_skew(np.tensordot(c, L, 1), L) for c in _combinations(len(L)))
        Q, theta, _ = min(candidates, key=lambda candidate: candidate[2])
        return cls(Q, theta)


def _stack(matrices: ArrayLike) -> NDArray[np.float64]:
    """(P, D, D) float64, from one matrix or several."""
    array = np.asarray(matrices).astype(np.float64)
    array = array[None] if array.ndim == 2 else array
    if array.ndim != 3 or array.shape[1] != array.shape[2]:
        raise InputError(f"matrices of shape {array.shape} were given: they must be (axes, D, D)")
    if not np.isfinite(array).all():
        raise InputError("the given matrices hold NaN or infinity")
    return array


def _combinations(count: int) -> NDArray[np.float64]:
    """Fixed generic weights: deterministic, and unlikely to make two different planes coincide."""
    if count == 1:
        return np.ones((1, 1))
    weights = np.random.default_rng(20240607).standard_normal((12, count))
    return weights / np.linalg.norm(weights, axis=1, keepdims=True)


def _planes_of_skew(M: NDArray, L: NDArray) -> tuple[NDArray, NDArray, float]:
    """Planes of the skew M, the frequencies of L in them, and how much of L they leave out."""
    D = len(M)
    values, vectors = np.linalg.eigh(-1j * M)
    keep = values > 1e-9 * max(np.abs(values).max(initial=0.0), 1e-300)
    V = vectors[:, keep]
    # L v = iθ v for v = (q1 - i q2)/√2
    pairs = np.sqrt(2) * np.stack([V.real, -V.imag], axis=-1).reshape(D, -1)
    kernel = null_space(pairs.T) if pairs.shape[1] < D else np.zeros((D, 0))
    Q = np.concatenate([pairs, kernel], axis=1)
    planes = 2 * (D // 2)
    # products with BLAS: a plain sum over three indices takes seconds at D = 1000
    theta = np.stack([np.sum(Q[:, 1:planes:2] * (one @ Q[:, 0:planes:2]), axis=0) for one in L])
    residual = float(np.sum(L * L) - 2 * np.sum(theta * theta))
    return Q, theta, residual
