"""Sampling noise of weighted sums over pairs of columns, from how much each row contributes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["BothWaysNoise", "NoiseOfSums", "RowNoise"]

# rows that a variance is measured on: it is then accurate to 4 %
_ROWS = 1_000


class NoiseOfSums(Protocol):
    """What a sum over pairs with weights (m, d, d) varies by."""

    def variance(self, weights: NDArray) -> float: ...


@dataclass(frozen=True, eq=False)
class RowNoise:
    """Noise of sums of Fisher's z of plain correlations c (d, d) and of partial ones.

    To first order, a row z of scores changes c_ij by z_i z_j - c_ij (z_i² + z_j²)/2, and a sum with
    the gradient G by the sum of G times that. ``worth`` is the number of independent rows.
    """

    z: NDArray[np.float32]
    c: NDArray[np.float64]
    ridges: tuple[float, ...]
    worth: float

    def variance(self, weights: NDArray) -> float:
        """Variance of the sum with weights (m, d, d): of plain correlations, then of partial ones
        for each ridge.
        """
        gradient = _per_value(weights[0], self.c)
        for ridge, precision, w in zip(self.ridges, self._precisions, weights[1:], strict=True):
            gradient = gradient + _through_precision(w, precision, ridge)
        z = np.asarray(self.z[:: max(1, len(self.z) // _ROWS)], dtype=np.float64)
        change = np.einsum("ni,ni->n", z @ gradient, z)
        change -= (z * z) @ (gradient * self.c).sum(axis=1)
        return float(change.var() / max(self.worth, 1.0))

    @cached_property
    def _precisions(self) -> list[NDArray[np.float64]]:
        """Inverses of the correlations at each ridge, which all comparisons share."""
        eye = np.eye(len(self.c))
        return [np.asarray(np.linalg.inv((1 - r) * self.c + r * eye)) for r in self.ridges]


@dataclass(frozen=True, eq=False)
class BothWaysNoise:
    """Noise of sums over the statistics of two parts of the rows, one after the other; the rows of
    different parts are independent.
    """

    first: RowNoise
    second: RowNoise

    def variance(self, weights: NDArray) -> float:
        """Variance of the sum with weights (2m, d, d)."""
        first, second = np.split(weights, 2)
        return self.first.variance(first) + self.second.variance(second)


def _per_value(w: NDArray, values: NDArray) -> NDArray[np.float64]:
    """Weights of Fisher's z as weights of the correlations themselves; zero diagonal."""
    out = w / np.maximum(1 - values * values, 1e-6)
    np.fill_diagonal(out, 0.0)
    return out


def _through_precision(w: NDArray, precision: NDArray, ridge: float) -> NDArray[np.float64]:
    """The gradient, with respect to correlations, of a weighted sum of partial ones.

    p_ij = -θ_ij/√(θ_ii θ_jj), and dΘ = -(1 - ridge) Θ dC Θ.
    """
    own = np.maximum(np.diag(precision), 1e-12)
    size = np.sqrt(own)
    p = -precision / size / size[:, None]
    per = _per_value(w, p)
    toward = -per / size / size[:, None]
    toward[np.diag_indices_from(toward)] -= (per * p).sum(axis=1) / own
    return -(1 - ridge) * precision @ toward @ precision
