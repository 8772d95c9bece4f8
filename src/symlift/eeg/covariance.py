"""A map as a Gaussian field: the correlation of two channels falls with their distance, and the
likelihood says how well all correlations agree with that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.spatial.distance import cdist

from symlift.statistics.correlations import fisher, partial_correlations

__all__ = ["CovarianceCriterion", "Recorded", "recorded"]

# robust deviations at which samples are clipped, and rows that correlations are taken from
_CLIP, _ROWS = 6.0, 60_000
# a channel that goes with no other has no place; one that is another one's copy has none either
_ALONE, _COPY = 0.1, 0.9995
# widths of the functions (Matérn's, once differentiable) that correlations are made of, in
# distances of neighbours, and shares of noise that are tried. Sums of Gaussians are so smooth that
# where they do not fit, only noise explains the difference
_WIDTHS, _NOISE = np.geomspace(0.3, 12.0, 14), np.geomspace(0.003, 0.9, 40)
# rows that correlations are worth at most: a field is only roughly as alike everywhere
_WORTH_ROWS = 24.0
_RIDGE = 0.01


@dataclass(frozen=True)
class Recorded:
    """Correlations (d, d) of channels, why some have no place ("" for others), and how many
    independent rows they come from.
    """

    correlation: NDArray[np.float64]
    reason: NDArray[np.str_]
    twin: NDArray[np.int64]
    rows: float

    @property
    def living(self) -> NDArray[np.int64]:
        """Channels that have a place."""
        return np.flatnonzero(self.reason == "")

    def which(self, reason: str) -> NDArray[np.int64]:
        """Channels that were set aside for ``reason``."""
        return np.flatnonzero(self.reason == reason)


def recorded(X: NDArray) -> Recorded:
    """Correlations of samples (n, d), in the order of time."""
    every = max(1, len(X) // _ROWS)
    x = np.asarray(X[::every], dtype=np.float64)
    x = x - np.median(x, axis=0)
    spread = np.median(np.abs(x), axis=0) / 0.6745
    spread = np.where(spread > 0, spread, x.std(axis=0))
    flat = spread <= 1e-9 * max(float(np.median(spread)), 1e-300)
    z = np.clip(x / np.where(flat, np.inf, spread), -_CLIP, _CLIP)
    z -= z.mean(axis=0)
    size = np.sqrt(np.maximum(np.sum(z**2, axis=0), 1e-300))
    c = np.clip(z.T @ z / size / size[:, None], -1, 1)
    np.fill_diagonal(c, 1.0)
    reason = np.full(len(c), "", dtype="<U9")
    twin = np.full(len(c), -1, dtype=np.int64)
    others = np.abs(c) - np.eye(len(c))
    reason[others.max(axis=1) < _ALONE] = "noise"
    reason[flat] = "dead"
    for i in range(len(c)):
        copies = np.flatnonzero((others[i, :i] > _COPY) & (reason[:i] == ""))
        if len(copies):
            twin[i], reason[i] = copies[0], "duplicate"
    return Recorded(c, reason, twin, _independent(z))


def _independent(z: NDArray) -> float:
    """Rows divided by how long a channel stays alike, of the usual channel."""
    n = len(z)
    spectrum = np.abs(np.fft.rfft(z, 2 * n, axis=0)) ** 2
    lagged = np.fft.irfft(spectrum, axis=0)[: min(n // 4, 2000)]
    size = np.maximum(lagged[0], 1e-300)
    long = 1 + 2 * np.sum((lagged[1:] / size) ** 2, axis=0)
    return n / float(np.median(long))


class CovarianceCriterion:
    """What correlations leave unexplained when channels are at given positions."""

    def __init__(self, data: Recorded) -> None:
        self.data = data
        self.weight = min(data.rows, _WORTH_ROWS) / 2

    @property
    def living(self) -> NDArray[np.int64]:
        return self.data.living

    @cached_property
    def inside(self) -> NDArray[np.float64]:
        """Correlations of living channels."""
        return self.data.correlation[np.ix_(self.living, self.living)]

    @cached_property
    def alike(self) -> NDArray[np.float64]:
        S = np.zeros_like(self.data.correlation)
        S[np.ix_(self.living, self.living)] = fisher(partial_correlations(self.inside, _RIDGE))
        return S

    def expected(self, positions: NDArray) -> NDArray[np.float64]:
        """Correlations (k, k) of living channels at ``positions`` (k, P): a common part, functions
        that fall with distance and noise, as fit those that there are best.
        """
        apart = cdist(positions, positions)
        pairs = np.triu_indices(len(apart), 1)
        near = apart + np.diag(np.full(len(apart), np.inf))
        step = float(np.median(near.min(axis=1)))
        scaled = [np.sqrt(3) * apart / (width * step) for width in _WIDTHS]
        parts = [(1 + r) * np.exp(-r) for r in scaled]
        parts.append(np.ones_like(apart))
        share, _ = nnls(np.stack([part[pairs] for part in parts], axis=1), self.inside[pairs])
        total = np.zeros_like(apart)
        for s, part in zip(share / max(float(share.sum()), 1e-12), parts, strict=True):
            total += s * part
        # the share of noise by the likelihood: squares of differences hardly see it, and the
        # inverse sees nothing else
        values, vectors = np.linalg.eigh(total)
        size = np.maximum(values, 0.0)[:, None] * (1 - _NOISE) + _NOISE
        seen = np.sum(vectors * (self.inside @ vectors), axis=0)
        noise = _NOISE[np.argmin(np.sum(np.log(size) + seen[:, None] / size, axis=0))]
        return np.asarray(total * (1 - noise) + noise * np.eye(len(apart)))

    def cost(self, positions: NDArray, rough: bool = False) -> float:  # noqa: ARG002 - as others
        expected = self.expected(np.asarray(positions)[self.living])
        _, size = np.linalg.slogdet(expected)
        return self.weight * float(size + np.trace(np.linalg.solve(expected, self.inside)))

    def swaps(self, positions: NDArray) -> NDArray[np.float64]:
        """(k, k): by how much the cost grows if two living channels change places."""
        A = np.linalg.inv(self.expected(np.asarray(positions)[self.living]))
        B = self.inside
        M = A @ B
        own, other = np.diag(A), np.diag(B)
        diagonal = np.diag(M)
        total = M + M.T - diagonal[:, None] - diagonal
        # without the two themselves
        total -= (own[:, None] - A) * (B - other[:, None])
        total -= (A - own) * (other - B)
        change = 2 * total + (own[:, None] - own) * (other - other[:, None])
        return np.asarray(self.weight * change)
