"""Commuting skew-symmetric generators in 2-plane form, and the translations they generate.

Commuting real skew matrices share invariant 2-planes.  With Q orthogonal, its columns taken in pairs, and θ_jk the
frequency of plane k along axis j,

    L_j = Q · blockdiag_k(θ_jk J) · Qᵀ,   J = [[0, -1], [1, 0]],       ρ(t) = exp(Σ_j t_j L_j) = Q · rot(Σ_j t_j θ_j) · Qᵀ.

Orthogonality and commutation hold by construction, no complex eigendecomposition is needed, and gradients stay finite
at equal frequencies.  An odd dimension leaves one last column alone, with frequency 0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import null_space
from torch import Tensor, nn

from symlift.errors import InputError

__all__ = ["Rotation", "TranslationGroup", "cayley", "plane_basis", "polar", "regular_frequencies", "rotate_planes"]


def rotate_planes(coordinates: Tensor, angles: Tensor) -> Tensor:
    """Rotate the consecutive pairs of the last axis of ``coordinates`` (…, D) by ``angles`` (…, D // 2).

    >>> rotate_planes(torch.tensor([[1.0, 0.0, 5.0]]), torch.tensor([torch.pi / 2])).round(decimals=3)
    tensor([[-0., 1., 5.]])
    """
    planes = coordinates.shape[-1] // 2
    first, second = coordinates[..., 0 : 2 * planes : 2], coordinates[..., 1 : 2 * planes : 2]
    cos, sin = torch.cos(angles), torch.sin(angles)
    turned = torch.stack([cos * first - sin * second, sin * first + cos * second], dim=-1).flatten(-2)
    return torch.cat([turned, coordinates[..., 2 * planes :]], dim=-1)


def plane_basis(theta: Tensor, points: Tensor, dimension: int) -> Tensor:
    """T[n, (2k, 2k+1)] = (cos θ_k·t_n, sin θ_k·t_n), and 1 in the last column of an odd dimension: (points, dimension)."""
    angles = points @ theta
    pairs = torch.stack([torch.cos(angles), torch.sin(angles)], dim=-1).flatten(-2)
    lone = torch.ones(len(points), dimension - pairs.shape[1], dtype=pairs.dtype, device=pairs.device)
    return torch.cat([pairs, lone], dim=-1)


@dataclass(frozen=True)
class TranslationGroup:
    """The Abelian group ρ(t) = exp(Σ_j t_j L_j) with generators in 2-plane form.

    Parameters
    ----------
    Q : (D, D) orthogonal; columns 2k and 2k+1 span plane k.
    theta : (P, D // 2) frequencies in radians for one grid step.

    >>> group = TranslationGroup(torch.eye(3, dtype=torch.float64), torch.tensor([[torch.pi / 2]], dtype=torch.float64))
    >>> group.act(torch.tensor([[1.0, 0.0, 2.0]], dtype=torch.float64), [1.0]).round(decimals=6)
    tensor([[0., 1., 2.]], dtype=torch.float64)
    """

    Q: Tensor
    theta: Tensor

    def __post_init__(self) -> None:
        if self.Q.ndim != 2 or self.Q.shape[0] != self.Q.shape[1]:
            raise InputError(f"Q has shape {tuple(self.Q.shape)}: it must be square")
        if self.theta.ndim != 2 or self.theta.shape[1] != len(self.Q) // 2:
            raise InputError(
                f"theta has shape {tuple(self.theta.shape)}: it must be (axes, {len(self.Q) // 2}), one frequency a plane"
            )

    @property
    def dimension(self) -> int:
        """D, the dimension of the space that the group acts on."""
        return len(self.Q)

    @property
    def axes(self) -> int:
        """P, the number of generators."""
        return len(self.theta)

    def generators(self) -> Tensor:
        """L_j, (P, D, D): skew-symmetric and commuting by construction."""
        planes = 2 * self.theta.shape[1]
        first, second = self.Q[:, 0:planes:2], self.Q[:, 1:planes:2]
        half = torch.einsum("ik,jk,lk->jil", second, self.theta, first)
        return half - half.transpose(1, 2)

    def act(self, Z: Tensor, t: Tensor | Sequence[float]) -> Tensor:
        """ρ(t) applied to each row of Z (n, D); t is (P,) for all rows or (n, P), one for each.

        Costs two products with Q instead of building a matrix for each t.
        """
        steps = torch.as_tensor(t, dtype=self.Q.dtype, device=self.Q.device)
        if steps.shape[-1:] != (self.axes,):
            raise InputError(
                f"a translation of shape {tuple(steps.shape)} was given for a group of {self.axes} axes: give {self.axes} numbers"
            )
        return rotate_planes(Z @ self.Q, steps @ self.theta) @ self.Q.T

    def matrix(self, t: Tensor | Sequence[float]) -> Tensor:
        """ρ(t) as a (D, D) matrix."""
        return self.act(torch.eye(self.dimension, dtype=self.Q.dtype, device=self.Q.device), t).T

    @classmethod
    def from_generators(cls, generators: ArrayLike | Tensor) -> TranslationGroup:
        """(Q, θ) of given commuting, or nearly commuting, skew matrices (P, D, D), by joint block diagonalisation.

        A generic combination Σ c_j L_j has the planes that all L_j share, so one Hermitian eigendecomposition of
        -i Σ c_j L_j gives them; of several combinations, the one that leaves least of the L_j outside of the blocks wins
        (it matters only when the L_j do not quite commute).
        """
        L = _stack(generators)
        scale = np.abs(L).max(initial=0.0)
        if np.abs(L + L.transpose(0, 2, 1)).max(initial=0.0) > 1e-6 * max(scale, 1e-300):
            raise InputError(
                "generators must be skew-symmetric: L + Lᵀ is not zero; pass (L - Lᵀ)/2 if you mean its skew part"
            )
        candidates = (_planes_of_skew(np.tensordot(c, L, 1), L) for c in _combinations(len(L)))
        Q, theta, _ = min(candidates, key=lambda candidate: candidate[2])
        return cls(torch.from_numpy(Q), torch.from_numpy(theta))

    @classmethod
    def from_shifts(cls, shifts: ArrayLike | Tensor) -> TranslationGroup:
        """(Q, θ) with ρ(e_j) = S_j for given commuting orthogonal one-step shifts (P, D, D): their real logarithm.

        Frequencies are on the branch (-π, π].  A real eigenvector with an eigenvalue -1 and no partner (the Nyquist mode
        of a ring with an even number of points; det S = -1) has no real skew logarithm: it is given a plane of its own by
        augmenting the space, so the result can have more dimensions than S; S is then its top left block.
        """
        S = np.stack([polar(s) for s in _stack(shifts)])
        D = S.shape[1]
        sym, skew = (S + S.transpose(0, 2, 1)) / 2, (S - S.transpose(0, 2, 1)) / 2
        candidates = (_eigenvectors_of_shifts(c, S, sym, skew) for c in _combinations(2 * len(S)))
        V, angles, _ = min(candidates, key=lambda candidate: candidate[2])
        tolerance = 1e-6
        real = np.all(np.abs(np.sin(angles)) < tolerance, axis=0)
        Q_pairs, theta_pairs = _upper_half(V[:, ~real], angles[:, ~real], tolerance)
        basis, signs = _real_modes(V[:, real], sym)
        return cls(*_assemble(D, Q_pairs, theta_pairs, basis, signs))


def _stack(matrices: ArrayLike | Tensor) -> NDArray[np.float64]:
    """(P, D, D) float64, from one matrix or several."""
    raw = matrices.detach().cpu().numpy() if isinstance(matrices, Tensor) else np.asarray(matrices)
    array = raw.astype(np.float64)
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


def polar(M: NDArray) -> NDArray[np.float64]:
    """The matrix with orthonormal rows (or columns) nearest to M: Löwdin's symmetric orthogonalisation."""
    left, _, right = np.linalg.svd(M, full_matrices=False)
    return left @ right


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
    theta = np.einsum("dk,jde,ek->jk", Q[:, 1:planes:2], L, Q[:, 0:planes:2])
    residual = float(np.sum(L * L) - 2 * np.sum(theta * theta))
    return Q, theta, residual


def _eigenvectors_of_shifts(c: NDArray, S: NDArray, sym: NDArray, skew: NDArray) -> tuple[NDArray, NDArray, float]:
    """Joint eigenvectors of commuting orthogonal S, their angles (P, D), and the largest error of S v = e^{iθ} v."""
    # cosines tell θ from π - θ, which sines alone do not; generic weights keep planes apart
    H = np.tensordot(c[: len(S)], sym, 1) - 1j * np.tensordot(c[len(S) :], skew, 1)
    V = np.linalg.eigh(H)[1]
    angles = np.angle(np.einsum("dk,jde,ek->jk", V.conj(), S, V))
    return V, angles, float(np.abs(S @ V - V * np.exp(1j * angles)[:, None, :]).max())


def _upper_half(V: NDArray, angles: NDArray, tolerance: float) -> tuple[NDArray, NDArray]:
    """One of each conjugate pair of eigenvectors, as real planes (D, 2K) with frequencies (P, K)."""
    sines = np.where(np.abs(np.sin(angles)) < tolerance, 0.0, np.sin(angles))
    # the first axis whose sine does not vanish decides which of v and its conjugate stands for the plane
    leading = sines[np.argmax(sines != 0.0, axis=0), np.arange(sines.shape[1])]
    V, angles = V[:, leading > 0], angles[:, leading > 0]
    pairs = np.sqrt(2) * np.stack([V.real, -V.imag], axis=-1).reshape(len(V), -1)
    return pairs, angles


def _real_modes(V: NDArray, sym: NDArray) -> tuple[NDArray, NDArray]:
    """Real orthonormal basis (D, m) of the span of V, on which every shift is ±1, and those signs (P, m)."""
    D, m = V.shape
    if m == 0:
        return np.zeros((D, 0)), np.zeros((len(sym), 0))
    left, _, _ = np.linalg.svd(np.concatenate([V.real, V.imag], axis=1), full_matrices=False)
    basis = left[:, :m]
    inside = basis.T @ np.tensordot(np.sqrt(np.arange(2.0, 2.0 + len(sym))), sym, 1) @ basis
    basis = basis @ np.linalg.eigh(inside)[1]
    return basis, np.sign(np.einsum("dk,jde,ek->jk", basis, sym, basis))


def _assemble(D: int, pairs: NDArray, theta: NDArray, basis: NDArray, signs: NDArray) -> tuple[Tensor, Tensor]:
    """Join planes and real modes; lone modes with a -1 get a partner in a new dimension, constant modes go last."""
    columns: list[NDArray] = [pairs]
    frequencies: list[NDArray] = [theta]
    constant: list[NDArray] = []
    lone: list[tuple[NDArray, NDArray]] = []
    for pattern in np.unique(signs, axis=1).T:
        members = basis[:, np.all(signs.T == pattern, axis=1)]
        if np.all(pattern > 0):
            constant.extend(members.T)
            continue
        angle = np.where(pattern < 0, np.pi, 0.0)
        paired = members.shape[1] // 2 * 2
        columns.append(members[:, :paired])
        frequencies.append(np.repeat(angle[:, None], paired // 2, axis=1))
        if members.shape[1] % 2:
            lone.append((members[:, -1], angle))
    size = D + len(lone)
    filled = [np.concatenate([block, np.zeros((len(lone), block.shape[1]))]) for block in columns]
    for extra, (vector, angle) in enumerate(lone):
        plane = np.zeros((size, 2))
        plane[:D, 0] = vector
        plane[D + extra, 1] = 1.0
        filled.append(plane)
        frequencies.append(angle[:, None])
    if constant:
        block = np.concatenate([np.stack(constant, axis=1), np.zeros((len(lone), len(constant)))])
        filled.append(block)
        frequencies.append(np.zeros((len(theta), len(constant) // 2)))
    return torch.from_numpy(np.concatenate(filled, axis=1)), torch.from_numpy(np.concatenate(frequencies, axis=1))


def regular_frequencies(shape: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Frequencies θ (P, K) and flat resolving filter r (K + 1,) of translations on a torus of ``shape`` points.

    One plane for each pair of conjugate Fourier modes, one for each self-conjugate mode (Nyquist, on even axes), and the
    constant mode last, alone: the dimension is 2K + 1.  With T the :func:`plane_basis` at the torus' points and r spread
    over the planes, T diag(r²) Tᵀ = I: the delta at each point is an orbit element.

    >>> theta, r = regular_frequencies((4,))
    >>> (theta / np.pi).round(3), (r**2).round(3)
    (array([[0.5, 1. ]]), array([0.5 , 0.25, 0.25]))
    """
    modes = np.array([k for k in itertools.product(*(range(n) for n in shape)) if any(k)], dtype=np.int64).reshape(
        -1, len(shape)
    )
    conjugate = np.mod(-modes, shape)
    keys, conjugate_keys = (np.ravel_multi_index(tuple(m.T), tuple(shape)) for m in (modes, conjugate))
    modes, lone = modes[keys <= conjugate_keys], (keys == conjugate_keys)[keys <= conjugate_keys]
    signed = np.where(modes > np.array(shape) / 2, modes - shape, modes)
    theta = 2 * np.pi * signed / np.array(shape)
    order = np.lexsort((*theta.T, np.round(np.sum(theta**2, axis=1), 9)))
    points = math.prod(shape)
    r = np.sqrt(np.where(lone, 1.0, 2.0) / points)
    return theta[order].T.copy(), np.append(r[order], 1 / np.sqrt(points))


def cayley(skew: Tensor) -> Tensor:
    """(I - A/2)⁻¹ (I + A/2) for the skew part A of ``skew``: orthogonal, differentiable, I + A to first order."""
    A = (skew - skew.T) / 2
    eye = torch.eye(len(A), dtype=A.dtype, device=A.device)
    return torch.linalg.solve(eye - A / 2, eye + A / 2)


class Rotation(nn.Module):
    """A learnable orthogonal matrix Q = Q₀ · cayley(A), kept orthogonal over any number of optimiser steps.

    The Cayley map costs one solve, forward and backward (a sixth of a complex eigendecomposition at d = 225).  Its
    accuracy falls as A grows, so :meth:`fold` moves A into the base Q₀ (re-orthonormalised in float64) once it is large;
    call it after optimiser steps.
    """

    base: Tensor

    def __init__(self, Q: Tensor) -> None:
        super().__init__()
        self.register_buffer("base", Q.detach().clone())
        self.skew = nn.Parameter(torch.zeros_like(Q))

    def forward(self) -> Tensor:
        return self.base @ cayley(self.skew)

    @torch.no_grad()
    def fold(self, limit: float = 1.0) -> bool:
        """Move A into the base when its largest row norm exceeds ``limit``; True if it did."""
        A = (self.skew - self.skew.T) / 2
        if float(A.norm(dim=1).max()) <= limit:
            return False
        Q = self.base.double() @ cayley(self.skew.double())
        left, _, right = torch.linalg.svd(Q)
        self.base.copy_(left @ right)
        self.skew.zero_()
        return True
