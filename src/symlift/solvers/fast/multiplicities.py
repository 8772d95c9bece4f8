"""Rings and tori from how often each variance occurs.

On a ring, the two waves of a frequency have the same variance, whatever mixes the columns by a
rotation: variances occur once, then in pairs.  On a torus, the four waves of two frequencies do.
Eigenvectors of one half of the rows propose the runs; the other half decides whether variances are
equal within them, with standard errors from the rows themselves, so that no distribution is
assumed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm

from symlift.core.grid import Grid

__all__ = ["ring_or_torus", "run_pattern"]

# variances are unequal within runs from so many standard errors on; from one run to the next they
# have to differ by twice as many, since two runs of distinct variances are twice as far apart
_UNEQUAL, _APART = 5.0, 10.0
# runs of two and more, apart on both sides, that make a pattern
_FEWEST = 3


def run_pattern(grid: Grid) -> Counter[int]:
    """How many runs of each size the variances of a stationary field have on a ring or torus.

    >>> sorted(run_pattern(Grid((7,), True)).items())
    [(1, 1), (2, 3)]
    >>> sorted(run_pattern(Grid((3, 4), True)).items())
    [(1, 2), (2, 3), (4, 1)]
    """
    sizes = Counter({1: 1})
    for length in grid.shape:
        alone = 1 + (length % 2 == 0)
        axis = {1: alone, 2: (length - alone) // 2}
        product: Counter[int] = Counter()
        for a, m in sizes.items():
            for b, n in axis.items():
                if m * n:
                    product[a * b] += m * n
        sizes = product
    return sizes


def ring_or_torus(fit: NDArray, held: NDArray, grids: Iterable[Grid]) -> Grid | None:
    """The grid, of ``grids`` that are closed, whose runs of equal variance rows show best, the
    first of several that do; None if they show none.

    A square torus whose axes are alike has larger runs, and is none of them.
    """
    values, vectors = np.linalg.eigh(fit.T @ fit / len(fit))
    values = np.maximum(values[::-1], 1e-12 * values[-1])
    Y = held @ vectors[:, ::-1]
    shown = [(*_shown(Y, _best_runs(values, run_pattern(grid))), grid) for grid in grids]
    best = max(shown, key=lambda one: one[:2], default=(0, 0, None))
    return best[2] if best[0] else None


def _best_runs(values: NDArray, pattern: Counter[int]) -> list[slice]:
    """The most likely runs of decreasing variances, by the likelihood of equal ones within."""
    sizes = sorted(pattern)
    total = np.concatenate([[0.0], np.cumsum(values)])
    logs = np.concatenate([[0.0], np.cumsum(np.log(values))])
    best: dict[tuple[int, ...], tuple[float, tuple[int, ...]]] = {(0,) * len(sizes): (0.0, ())}
    for _ in range(sum(pattern.values())):
        after: dict[tuple[int, ...], tuple[float, tuple[int, ...]]] = {}
        for used, (cost, order) in best.items():
            begin = sum(size * count for size, count in zip(sizes, used, strict=True))
            for i, size in enumerate(sizes):
                if used[i] == pattern[size]:
                    continue
                end = begin + size
                mean = (total[end] - total[begin]) / size
                now = cost + float(size * math.log(mean) - (logs[end] - logs[begin]))
                key = (*used[:i], used[i] + 1, *used[i + 1 :])
                if key not in after or now < after[key][0]:
                    after[key] = (now, (*order, size))
        best = after
    stops = np.cumsum(next(iter(best.values()))[1])
    return [slice(int(a), int(b)) for a, b in zip([0, *stops[:-1]], stops, strict=True)]


def _shown(Y: NDArray, runs: list[slice]) -> tuple[int, int]:
    """How many directions of held-out rows are in runs of equal variance, two and more, that are
    apart from their neighbours, 0 if variances differ within runs, or if there are too few; and, as
    a negative number, how many runs have the variance of the next by chance.
    """
    squares = []
    for run in runs:
        y = Y[:, run]
        if y.shape[1] == 1:
            continue
        power = y * y
        first, second = np.triu_indices(y.shape[1], 1)
        # contrasts of variances that are orthogonal to each other, and all products
        basis = np.linalg.qr(np.c_[np.ones(y.shape[1]), np.eye(y.shape[1])[:, 1:]])[0][:, 1:]
        squares.append(_scores(np.c_[power @ basis, y[:, first] * y[:, second]]) ** 2)
    if not squares:  # a torus of 2x2 points has no run of two
        return 0, 0
    within = np.concatenate(squares)
    if within.sum() > chi2.isf(norm.sf(_UNEQUAL), len(within)):
        return 0, 0
    means = np.stack([np.square(Y[:, run]).mean(axis=1) for run in runs], axis=1)
    apart = np.abs(_scores(means[:, 1:] - means[:, :-1])) > _APART
    # what is smaller than all others may be noise, in which all variances are equal
    edges = np.concatenate([[True], apart, [False]])
    sizes = np.array([run.stop - run.start for run in runs])
    clear = sizes[edges[:-1] & edges[1:] & (sizes > 1)]
    if len(clear) < _FEWEST:
        return 0, 0
    last = int(np.flatnonzero(apart)[-1])
    return int(clear.sum()), -int(np.sum(~apart[:last]))


def _scores(values: NDArray) -> NDArray[np.float64]:
    """Means of rows in their standard errors."""
    spread = values.std(axis=0) / math.sqrt(len(values))
    return np.asarray(values.mean(axis=0) / np.maximum(spread, 1e-300))
