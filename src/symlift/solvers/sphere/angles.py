"""Unit vectors of columns, from correlations that depend on the angle between them alone.

Shortest paths over near columns are angles up to one factor, the radius: scaling on a sphere takes
the three leading eigenvectors of the cosines of the angles.  From there, two descents: one keeps
the angles near the paths, which needs no stationarity; the other fits all correlations by

    c_ij = Σ_l a_l P_l(cos θ_ij),   a_l ≥ 0,

which every isotropic field on a sphere obeys (Schoenberg), with the a_l eliminated by non-negative
least squares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, nnls
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import shortest_path

from symlift.core.linalg import polar
from symlift.search.settings import PlaceSettings
from symlift.solvers.starts.graph import classical_scaling, connected
from symlift.solvers.starts.scattered import best_partners
from symlift.statistics.correlations import partial_correlations

__all__ = [
    "NEAR",
    "by_kernel",
    "by_paths",
    "great_circles",
    "kernel_of",
    "legendre_values",
    "paths_between",
    "profiles_of",
    "same_axes",
    "same_places",
    "spherical_scaling",
    "without_first_component",
]

#: near columns that paths go over
NEAR = (5, 8, 12, 20)
# largest angles that the longest path is tried as: small caps to the whole sphere
_SPANS = (0.8, 1.3, 1.9, 2.5, 3.2)
# smaller correlations, relative to those of neighbours, carry little information on the angle
_LEAST = 0.15
_ITERATIONS = 300
# L-BFGS stops by changes relative to 1
_LARGE = 1e8


def legendre_values(t: NDArray, degree: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """P_l(t) for l = 0 … degree, and their derivatives, (degree + 1, …).

    >>> values, slopes = legendre_values(np.array([0.5]), 2)
    >>> values[:, 0], slopes[:, 0]
    (array([ 1.   ,  0.5  , -0.125]), array([0. , 1. , 1.5]))
    """
    P, slope = [np.ones_like(t), t], [np.zeros_like(t), np.ones_like(t)]
    for ell in range(1, degree):
        P.append(((2 * ell + 1) * t * P[ell] - ell * P[ell - 1]) / (ell + 1))
        slope.append((ell + 1) * P[ell] + t * slope[ell])
    return np.array(P[: degree + 1]), np.array(slope[: degree + 1])


def paths_between(c: NDArray, near: int) -> NDArray[np.float64] | None:
    """Lengths (d, d) of shortest paths over ``near`` columns of each; None if some are not joined.

    A step is as long as where a Gaussian falls to its correlation, relative to that of neighbours,
    which noise makes smaller than 1.
    """
    strongest = np.sort(c - 2 * np.eye(len(c)), axis=1)[:, -3:].mean()
    edges = best_partners(c, min(near, len(c) - 1))
    edges = connected((edges | edges.T) & (c > _LEAST * max(strongest, 0.0)), c)
    length = np.sqrt(-np.log(np.clip(c / min(1.0, 1.3 * max(strongest, 1e-3)), 1e-3, 0.99)))
    paths = shortest_path(csr_matrix(np.where(edges, length, 0.0)), directed=False)
    return np.asarray(paths) if np.isfinite(paths).all() else None


def profiles_of(c: NDArray) -> NDArray[np.float64]:
    """How alike columns are in their partial correlations with all others, (d, d).

    What reaches all columns cancels in partial correlations, which then are small and of either
    sign; whole rows of them are compared, so that many small numbers decide who is near.
    """
    partial = partial_correlations(c, max(PlaceSettings().ridges))
    spread = partial.std(axis=1) > 0
    alike = np.eye(len(c))
    alike[np.ix_(spread, spread)] = np.atleast_2d(np.corrcoef(partial[spread]))
    return alike


def without_first_component(c: NDArray) -> NDArray[np.float64]:
    """Correlations (d, d) of what the leading principal component leaves of each column.

    Far sources give columns gains of their own; this takes most of them away. A second component
    is more often one of the sphere (dipoles under far sources: places from one agree with the true
    ones by 0.82 to 0.95, from two by 0.29 to 0.89).
    """
    values, vectors = np.linalg.eigh(c)
    left = (vectors[:, :-1] * values[:-1]) @ vectors[:, :-1].T
    scale = np.sqrt(np.maximum(np.diag(left), 1e-12))
    return np.asarray(left / scale[:, None] / scale)


def spherical_scaling(paths: NDArray) -> Iterator[NDArray[np.float64]]:
    """Unit vectors (d, 3) whose angles are proportional to paths, for several radii."""
    longest = max(float(np.quantile(paths, 0.999)), 1e-300)
    for span in _SPANS:
        values, vectors = np.linalg.eigh(np.cos(np.minimum(paths / longest * span, np.pi)))
        yield _unit(vectors[:, -3:] * np.sqrt(np.maximum(values[-3:], 1e-9)))


def by_paths(u: NDArray, paths: NDArray) -> tuple[NDArray[np.float64], float]:
    """The nearest unit vectors to u whose angles follow paths, short ones above all, and what is
    left: Σ (θ - s p)²/p² relative to Σ θ²/p², with the radius 1/s eliminated.
    """
    i, j = np.triu_indices(len(u), 1)
    p = np.maximum(paths[i, j], 1e-3 * max(float(np.median(paths)), 1e-300))
    w = 1 / p**2

    def misfit(cosine: NDArray) -> tuple[float, NDArray]:
        cosine = np.clip(cosine, -1 + 1e-9, 1 - 1e-9)
        angle = np.arccos(cosine)
        rest = angle - (w * angle * p).sum() / (w * p * p).sum() * p
        size, left = float((w * angle * angle).sum()), float((w * rest * rest).sum())
        slope = 2 * w * (rest - left / size * angle) / size
        return left / size, -slope / np.sqrt(1 - cosine * cosine)

    return _descend(u, misfit)


def by_kernel(
    u: NDArray, c: NDArray, degree: int, axes: bool = False, iterations: int | None = None
) -> tuple[NDArray[np.float64], float]:
    """The nearest unit vectors to u by whose angles all correlations are explained best, and the
    mean squared residual; ``axes``: u and -u are the same, so that even degrees alone count.
    """
    every = 2 if axes else 1
    own = c[np.triu_indices(len(u), 1)]

    def misfit(cosine: NDArray) -> tuple[float, NDArray]:
        P, slopes = (values[::every] for values in legendre_values(cosine, degree))
        a = _weights(P, own)
        rest = a @ P - own
        # the weights are at their optimum, so that their own change does not count
        return float(rest @ rest) / len(own), 2 * rest * (a @ slopes) / len(own)

    return _descend(u, misfit, iterations or _ITERATIONS)


def kernel_of(u: NDArray, c: NDArray, degree: int, axes: bool = False) -> NDArray[np.float64]:
    """The weights a_l ≥ 0 of Legendre polynomials for columns at u (d, 3), (degree + 1,)."""
    i, j = np.triu_indices(len(u), 1)
    P, every = legendre_values(np.sum(u[i] * u[j], axis=1), degree)[0], 2 if axes else 1
    a = np.zeros(degree + 1)
    a[::every] = _weights(P[::every], c[i, j])
    return a


def _weights(P: NDArray, c: NDArray) -> NDArray[np.float64]:
    gram = P @ P.T + 1e-9 * P.shape[1] * np.eye(len(P))
    root = np.linalg.cholesky(gram)
    return nnls(root.T, np.linalg.solve(root, P @ c))[0]


def _descend(
    u: NDArray, misfit: Callable[[NDArray], tuple[float, NDArray]], iterations: int = _ITERATIONS
) -> tuple[NDArray[np.float64], float]:
    """L-BFGS over unit vectors, for a function of the cosines of all pairs and its gradient."""
    d = len(u)
    i, j = np.triu_indices(d, 1)

    def function(flat: NDArray) -> tuple[float, NDArray]:
        v = flat.reshape(d, 3)
        length = np.linalg.norm(v, axis=1, keepdims=True)
        unit = v / length
        cosines = unit @ unit.T
        value, slope = misfit(np.clip(cosines[i, j], -1.0, 1.0))
        pairs = np.zeros((d, d))
        pairs[i, j] = slope
        gradient = (pairs + pairs.T) @ unit
        gradient -= np.sum(gradient * unit, axis=1, keepdims=True) * unit
        return _LARGE * value, _LARGE * (gradient / length).ravel()

    end = minimize(
        function, u.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": iterations}
    )
    return _unit(end.x.reshape(d, 3)), float(end.fun) / _LARGE


def same_places(u: NDArray, other: NDArray) -> float:
    """Agreement of two sets of unit vectors after the best rotation or reflection: the squared
    correlation of their scatter about their means.
    """
    turned = other @ polar(other.T @ u)
    a, b = u - u.mean(axis=0), turned - turned.mean(axis=0)
    return float(np.vdot(a, b) / max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-300)) ** 2


def same_axes(u: NDArray, other: NDArray) -> float:
    """Agreement of two sets of axes, whatever their rotation and signs: the squared correlation of
    their squared cosines.
    """
    pairs = np.triu_indices(len(u), 1)
    a, b = ((v @ v.T)[pairs] ** 2 for v in (u, other))
    a, b = a - a.mean(), b - b.mean()
    return float(a @ b / max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-300)) ** 2


def great_circles(u: NDArray, c: NDArray) -> list[NDArray[np.float64]]:
    """Places on a great circle that might do as well as u: where u is nearest to one, and evenly
    spaced in the orders that shortest paths show on a ring and on a line; as unit vectors.
    """
    _, vectors = np.linalg.eigh(u.T @ u)
    turns = [np.arctan2(u @ vectors[:, 1], u @ vectors[:, 2])]
    for near in NEAR[:2]:
        paths = paths_between(c, near)
        if paths is None:
            continue
        y = classical_scaling(paths, 2)[1]
        ring = np.argsort(np.argsort(np.arctan2(y[:, 0], y[:, -1]), kind="stable"), kind="stable")
        line = np.argsort(np.argsort(y[:, 0], kind="stable"), kind="stable")
        turns += [2 * np.pi * ring / len(u), np.pi * line / len(u)]
    return [np.stack([np.cos(t), np.sin(t), np.zeros(len(u))], axis=1) for t in turns]


def _unit(v: NDArray) -> NDArray[np.float64]:
    return np.asarray(v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-300))
