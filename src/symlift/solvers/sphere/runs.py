"""Runs of equal eigenvalues: which directions of an invariant matrix belong to which degree.

A symmetric matrix that commutes with the rotations of a sphere is a multiple of the identity on
each degree l, so that its eigenvalues come in runs of 1, 3, 5, … equal ones.  Their order is not
that of l: which run stands where is what a dynamic program over sets of runs finds, by the
likelihood ratio of equal variances within runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Runs", "best_runs", "run_sizes"]

# eigenvalues below this share of the largest are rounding
_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class Runs:
    """An assignment of eigenvectors to degrees.

    Parameters
    ----------
    order : tuple of int
        Degree of each run, from the largest eigenvalue down; L + 1 stands for what no degree takes.
    misfit : float
        Likelihood ratio for each row: -2 log of it over n is χ² under equal variances.
    basis : ndarray of shape (d, d)
        Eigenvectors as rows, by degree, then those that no degree takes.
    """

    order: tuple[int, ...]
    misfit: float
    basis: NDArray[np.float64]


def run_sizes(degree: int, d: int) -> list[int]:
    """Sizes 1, 3, 5, … of the degrees, and of what is left of d dimensions, if anything.

    >>> run_sizes(2, 9), run_sizes(2, 11)
    ([1, 3, 5], [1, 3, 5, 2])
    """
    sizes = [2 * ell + 1 for ell in range(degree + 1)]
    return sizes + ([d - sum(sizes)] if d > sum(sizes) else [])


def best_runs(matrix: NDArray, degree: int, keep: int) -> list[Runs]:
    """The ``keep`` most likely assignments of the eigenvectors of a matrix (d, d) to degrees."""
    values, vectors = np.linalg.eigh(matrix)
    values, vectors = values[::-1], vectors[:, ::-1].T
    values = np.maximum(values, _LEAST * max(float(values[0]), 1e-300))
    sizes = run_sizes(degree, len(matrix))
    out = []
    for misfit, order in _orders(values, sizes, keep):
        starts = np.concatenate([[0], np.cumsum([sizes[run] for run in order])])
        parts = {run: vectors[starts[i] : starts[i + 1]] for i, run in enumerate(order)}
        basis = np.concatenate([parts[run] for run in range(len(sizes))])
        out.append(Runs(order, misfit, basis))
    return out


def _orders(
    values: NDArray, sizes: Sequence[int], keep: int
) -> list[tuple[float, tuple[int, ...]]]:
    """The ``keep`` orders of runs whose variances are most equal within runs.

    Σ log(mean of a run) - Σ log(its values) is twice the logarithm of the likelihood ratio for each
    row.  Where a run begins follows from which runs stand before it, so the best orders of every
    set of runs are all that has to be remembered: 2^(L + 1) sets in place of (L + 1)! orders.
    """
    total = np.concatenate([[0.0], np.cumsum(values)])
    logs = np.concatenate([[0.0], np.cumsum(np.log(values))])
    best: list[list[tuple[float, tuple[int, ...]]]] = [[] for _ in range(1 << len(sizes))]
    best[0] = [(0.0, ())]
    for done in range(len(best) - 1):
        orders, best[done] = sorted(best[done])[:keep], []
        begin = sum(size for run, size in enumerate(sizes) if done >> run & 1)
        for run, size in enumerate(sizes):
            if done >> run & 1:
                continue
            end = begin + size
            cost = size * np.log((total[end] - total[begin]) / size) - (logs[end] - logs[begin])
            after = best[done | 1 << run]
            after += [(value + float(cost), (*order, run)) for value, order in orders]
    return sorted(best[-1])[:keep]
