"""A lattice fitted to the edges of a very large graph, by multigrid.

The equations are those of `symlift.solvers.starts.graph.lattice`. A factorisation of a million of
them takes minutes and gigabytes; conjugate gradients with smoothed aggregation take twenty steps,
however many columns there are. Columns are aggregated where their coordinates are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix, diags, triu
from scipy.sparse.linalg import splu

from symlift.core.grid import Grid

__all__ = ["solve_laplacian", "wide_lattice"]

_ROUNDS, _STEPS, _ACCURATE = 15, 200, 1e-4
#: aggregates have this many steps along each axis; so few equations are solved directly
_AGGREGATE, _DIRECT = 3, 800
#: damping of Jacobi's method, whose operator has no eigenvalue above 2
_DAMPED = 2 / 3
#: an edge that is shorter than half a step joins columns of one point, if they may share points
_WITHIN = 0.5


def wide_lattice(
    y: NDArray, edges: csr_matrix, grid: Grid, shared: bool = False
) -> NDArray[np.float64]:
    """Coordinates (d, P) in which every edge is one step along one axis, as nearly as possible.

    With ``shared`` points, edges may have no length, too.
    """
    upper = triu(edges, 1).tocoo()
    i, j = upper.row, upper.col
    period = np.where(grid.periodic, grid.shape, np.inf)
    finite = np.where(grid.periodic, grid.shape, 1.0)
    every = np.arange(len(i))
    for turn in range(_ROUNDS):
        v = y[j] - y[i]
        v = np.where(np.isfinite(period), v - finite * np.rint(v / finite), v)
        axis = np.abs(v).argmax(axis=1)
        along = v[every, axis]
        step = np.zeros_like(v)
        step[every, axis] = np.sign(along) * ((np.abs(along) > _WITHIN) | (not shared))
        miss = np.linalg.norm(v - step, axis=1)
        weight = 1 / (1 + (miss / 0.5) ** 2) ** 2 if turn else 1 / (1 + miss**2)
        moved = solve_laplacian(i, j, weight, weight[:, None] * (step - v), y)
        moved -= moved.mean(axis=0)
        y = y + moved
        if np.abs(moved).max() < 1e-3:
            break
    return y


def solve_laplacian(
    i: NDArray, j: NDArray, weight: NDArray, pull: NDArray, y: NDArray
) -> NDArray[np.float64]:
    """x (d, P) with L x = the sum of the ``pull`` (edges, P) of each edge on its ends i and j,
    where L is the Laplacian of the weighted edges. ``y`` (d, axes) says which columns are near.
    """
    d = len(y)
    ends = np.r_[i, j]
    w = coo_matrix((np.r_[weight, weight], (ends, np.r_[j, i])), shape=(d, d)).tocsr()
    degree = np.asarray(w.sum(axis=1)).ravel() + 1e-9
    L = (diags(degree) - w).tocsr()
    both = np.concatenate([-pull, pull])
    b = np.stack([np.bincount(ends, one, minlength=d) for one in both.T], axis=1)
    return _conjugate_gradients(L, b, _multigrid(L, y))


def _conjugate_gradients(
    A: csr_matrix, b: NDArray, precondition: Callable[[NDArray], NDArray]
) -> NDArray[np.float64]:
    """x with A x = b, the columns of b side by side."""
    x, r = np.zeros_like(b), b.copy()
    z = precondition(r)
    p, rz = z, np.einsum("ij,ij->j", r, z)
    enough = _ACCURATE * np.linalg.norm(b, axis=0)
    for _ in range(_STEPS):
        if (np.linalg.norm(r, axis=0) <= enough).all():
            break
        Ap = A @ p
        alpha = rz / np.maximum(np.einsum("ij,ij->j", p, Ap), 1e-300)
        x += alpha * p
        r -= alpha * Ap
        z = precondition(r)
        rz, old = np.einsum("ij,ij->j", r, z), rz
        p = z + rz / np.maximum(old, 1e-300) * p
    return x


def _multigrid(A: csr_matrix, y: NDArray) -> Callable[[NDArray], NDArray]:
    """One symmetric V-cycle of smoothed aggregation."""
    levels: list[tuple[csr_matrix, NDArray, csr_matrix, csr_matrix]] = []
    while A.shape[0] > _DIRECT:
        corner = np.floor((y - y.min(axis=0)) / _AGGREGATE ** (len(levels) + 1)).astype(np.int64)
        key = np.ravel_multi_index(tuple(corner.T), tuple(corner.max(axis=0) + 1))
        cell = np.unique(key, return_inverse=True)[1]
        count = np.bincount(cell)
        if len(count) > 0.7 * len(y):
            break
        damped = _DAMPED / A.diagonal()
        joined = csr_matrix((np.ones(len(cell)), (np.arange(len(cell)), cell)))
        P = (joined - diags(damped) @ (A @ joined)).tocsr()
        PT = P.T.tocsr()
        levels.append((A, damped[:, None], P, PT))
        A = (PT @ A @ P).tocsr()
        y = np.stack([np.bincount(cell, one) / count for one in y.T], axis=1)
    last = splu(A.tocsc())

    def cycle(b: NDArray) -> NDArray:
        down = []
        for A, damped, _, PT in levels:
            x = damped * b
            down.append((b, x))
            b = PT @ (b - A @ x)
        x = last.solve(b)
        for (A, damped, P, _), (b, before) in zip(levels[::-1], down[::-1], strict=True):
            x = before + P @ x
            x += damped * (b - A @ x)
        return np.asarray(x)

    return cycle
