"""Is a field on a sphere invariant under its rotations?  Third moments of held-out rows.

Of the part of the third moment that is reproduced between disjoint folds of rows, the share that is
invariant: 1 at the truth, about one half for the best that a search finds in fields of other
domains.  Degree 0 is left out, because a single skewed direction is an invariant of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from symlift.core.harmonics import degree_blocks, degrees_of
from symlift.core.model import LiftedModel
from symlift.solvers.sphere.invariants import Invariants, invariants, moment_with, third_moment
from symlift.solvers.sphere.runs import best_runs, run_sizes

__all__ = [
    "FOLDS",
    "SIGMAS",
    "Judged",
    "fold_moments",
    "judge_rows",
    "judged",
    "multiplicities",
    "needed_share",
    "standing_out",
]

#: disjoint folds of held-out rows
FOLDS = 4
#: standard errors from which on something is real (design: z ≥ 5)
SIGMAS = 5.0


@dataclass(frozen=True)
class Judged:
    """What held-out rows say about a field on a sphere.

    Parameters
    ----------
    z : float
        How far the third moment stands out of its sampling noise, in standard errors.
    share : float
        Share of the reproducible third moment that is invariant under rotations; 0 without any.
    degrees : tuple of float
        ``z`` of the part that involves each degree from 1 on.
    """

    z: float
    share: float
    degrees: tuple[float, ...]

    @property
    def determined(self) -> int:
        """Highest degree up to which all are seen in the third moment."""
        seen = itertools.takewhile(lambda z: z >= SIGMAS, self.degrees)
        return sum(1 for _ in seen)


def fold_moments(Z: NDArray, folds: int = FOLDS) -> list[NDArray[np.float64]]:
    """Third moments of disjoint folds of rows (n, d), each a stretch of rows."""
    return [third_moment(part) for part in np.array_split(Z, folds)]


def standing_out(moments: Sequence[NDArray]) -> float:
    """Standard errors by which moments of disjoint folds of rows stand out of sampling noise."""
    value, error = _reproduced(moments, np.ones(moments[0].shape, dtype=bool))
    return value / error


def judged(moments: Sequence[NDArray], part: Invariants) -> Judged:
    """The verdict of third moments (D, D, D) of disjoint folds, of coefficients of variance 1."""
    ell = degrees_of(part.degree)
    inner = [np.where(ell > 0, 1.0, 0.0)] * 3
    mask = np.einsum("i,j,k->ijk", *inner) > 0
    whole, error = _reproduced(moments, mask)
    inside, _ = _reproduced([part.project(T) for T in moments], mask)
    # sampling noise can put the ratio above 1
    share = min(inside / whole, 1.0) if whole > 2 * error else 0.0
    degrees = []
    for block in degree_blocks(part.degree)[1:]:
        touched = np.zeros_like(mask)
        touched[block] = touched[:, block] = touched[:, :, block] = True
        value, its_error = _reproduced(moments, mask & touched)
        degrees.append(value / its_error)
    return Judged(whole / error, float(share), tuple(degrees))


def _reproduced(moments: Sequence[NDArray], mask: NDArray) -> tuple[float, float]:
    """Mean product of different folds' entries, summed, and its standard error without any signal.

    Squares of differences estimate the noise of each entry; most entries occur six times.
    """
    parts = np.stack([T[mask] for T in moments])
    K = len(parts)
    mean = parts.mean(axis=0)
    noise = np.square(parts - mean).sum(axis=0) / (K - 1)
    value = float((np.square(parts.sum(axis=0)).sum() - np.square(parts).sum()) / (K * (K - 1)))
    # the variance of a mean over K(K - 1)/2 products of independent noises; E[s⁴] is larger than σ⁴
    fourth = float(np.square(noise).sum()) * (K - 1) / (K + 1)
    return value, max(float(np.sqrt(6 * 2 / (K * (K - 1)) * fourth)), 1e-300)


def needed_share(control: float) -> float:
    """The share from which on a result is nearer to full invariance than to what chance finds."""
    return (1 + control) / 2


def judge_rows(model: LiftedModel, X: NDArray) -> Judged:
    """The verdict of rows X (n, d) on a model on a sphere: by third moments, or by fourth ones with
    the mean of the field where those vanish and these do not.
    """
    part = invariants(math.isqrt(model.group.dimension) - 1)
    Z = (np.asarray(X, dtype=np.float64) - model.mean) @ np.asarray(model.E, dtype=np.float64).T
    for block in degree_blocks(part.degree):
        Z[:, block] /= max(float(np.sqrt(np.square(Z[:, block]).mean())), 1e-300)
    third = judged(fold_moments(Z), part)
    if third.z >= SIGMAS:
        return third
    mean = np.eye(Z.shape[1])[0]
    fourth = judged([moment_with(fold, mean) for fold in np.array_split(Z, FOLDS)], part)
    return fourth if fourth.z >= SIGMAS else third


def multiplicities(covariance: NDArray, rows: float, degree: int) -> bool:
    """Whether the variances of Gaussian rows come in runs of 1, 3, 5, …, and not in one run.

    Both by the likelihood ratio of equal variances, whose -2 log is χ² with k(k + 1)/2 - 1 degrees
    of freedom for a run of k.
    """
    d = len(covariance)
    sizes = run_sizes(degree, d)
    level = 2.87e-7  # of five standard errors
    runs = best_runs(covariance, degree, 1)[0].misfit
    values = np.maximum(np.linalg.eigvalsh(covariance), 1e-300)
    one = d * np.log(values.mean()) - np.log(values).sum()

    def freedom(size: int) -> float:
        return size * (size + 1) / 2 - 1

    equal = rows * runs <= chi2.isf(level, sum(freedom(size) for size in sizes))
    return bool(equal and rows * one > chi2.isf(level, freedom(d)))
