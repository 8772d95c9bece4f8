"""The orientation of every degree, from third moments: closed form first, then over all rotations.

Degree 1 is taken as it is: a rotation of the whole sphere is what nobody can know.  The other
degrees follow in turn, each by one Procrustes step on E[c₁ c_{l-1} c_l] and the like; a few rounds
over all triples of degrees make them agree.  What mixes different degrees is undone by a descent
over all rotations of the space.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from symlift.core.harmonics import degree_blocks, gaunt_tensor
from symlift.core.linalg import polar
from symlift.solvers.fast.stationary import minimise_over_rotations
from symlift.solvers.fast.triples import pack
from symlift.solvers.sphere.invariants import Invariants

__all__ = ["oriented", "polished"]

# rounds over all degrees before the descent, which does the rest
_ROUNDS = 3


def oriented(tensor: NDArray, part: Invariants) -> NDArray[np.float64]:
    """Block-diagonal rotation (D, D) of the third moment of runs, by degree, towards invariance."""
    blocks, G = degree_blocks(part.degree), gaunt_tensor(part.degree)
    turns = [np.eye(block.stop - block.start) for block in blocks]
    T = tensor.copy()

    def turn(ell: int, Q: NDArray) -> None:
        here = blocks[ell]
        turns[ell] = Q @ turns[ell]
        T[here] = np.tensordot(Q, T[here], 1)
        T[:, here] = np.einsum("ab,ibk->iak", Q, T[:, here])
        T[:, :, here] = T[:, :, here] @ Q.T

    for ell in range(2, part.degree + 1):
        here, sums = blocks[ell], np.zeros((2 * ell + 1, 2 * ell + 1))
        for low in range(1, ell // 2 + 1):
            one, other = blocks[low], blocks[ell - low]
            moment = np.tensordot(G[one, other, here], T[one, other, here], axes=((0, 1), (0, 1)))
            # the sign of a triple is not known; the first one decides
            sums += moment if np.vdot(moment, sums) >= 0 else -moment
        turn(ell, polar(sums))
    for _ in range(_ROUNDS):
        for ell in range(1, part.degree + 1):
            here = blocks[ell]
            inside = part.project(T)[here].reshape(2 * ell + 1, -1)
            turn(ell, polar(inside @ T[here].reshape(2 * ell + 1, -1).T))
    out = np.zeros((part.dimension, part.dimension))
    for block, Q in zip(blocks, turns, strict=True):
        out[block, block] = Q
    return out


def polished(
    V: NDArray, tensor: NDArray, part: Invariants, iterations: int
) -> tuple[NDArray[np.float64], float]:
    """The rotation (d, d) near V whose first D rows make the third moment most invariant, and the
    share of its squared norm that is.
    """
    packed, size, D = pack(tensor), max(float(np.vdot(tensor, tensor)), 1e-300), part.dimension

    def gap(W: NDArray) -> tuple[float, NDArray]:
        energy, slope = part.energy(W[:D], packed)
        gradient = np.zeros_like(W)
        gradient[:D] = (-6 / size) * slope
        return 1 - energy / size, gradient

    W, left = minimise_over_rotations(gap, V, iterations)
    return W, 1 - left
