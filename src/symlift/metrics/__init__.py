"""Metrics: how close a recovery comes to a known truth, up to what no blind method can know.

>>> import numpy as np
>>> from symlift.metrics import signal_recovery
>>> latent = np.random.default_rng(0).normal(size=(200, 15))
>>> round(signal_recovery(latent, -np.roll(latent[:, ::-1], 4, axis=1), 15, periodic=True).r, 6)
1.0
"""

from __future__ import annotations

from symlift.metrics.alignment import align
from symlift.metrics.bits import BitStructure, bit_structure
from symlift.metrics.circular import circular_correlation, torus_correlation
from symlift.metrics.equivariance import equivariance_error
from symlift.metrics.generators import generator_similarity
from symlift.metrics.recovery import Recovery, signal_recovery
from symlift.metrics.sphere import Turn

__all__ = [
    "BitStructure",
    "Recovery",
    "Turn",
    "align",
    "bit_structure",
    "circular_correlation",
    "equivariance_error",
    "generator_similarity",
    "signal_recovery",
    "torus_correlation",
]


def __dir__() -> list[str]:
    return sorted(__all__)
