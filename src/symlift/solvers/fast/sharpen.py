"""The entropy of the marginal that all points share: it chooses among stationary frames, since
stationarity does not determine the phase.
"""

from __future__ import annotations

from numpy.typing import NDArray

from symlift.solvers.fast.resolve import SharedEntropy

__all__ = ["pooled_entropy"]

# fine enough to resolve silent parts, which all-pass copies fill: rows have unit pooled deviation
_POOLED = SharedEntropy(bandwidth=0.03, half_width=12.0, bins=1600)


def pooled_entropy(Y: NDArray) -> tuple[float, NDArray]:
    """Entropy of all values of Y together, and its gradient; Y has unit pooled deviation."""
    return _POOLED(Y)
