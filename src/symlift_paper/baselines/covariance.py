"""Covariance matching: map the eigenbasis of the covariance to that of the reference graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.errors import InputError
from symlift_paper.baselines.protocol import Baseline, BaselineResult
from symlift_paper.baselines.spectra import adjacency, aligned, eigenbasis, loaded_covariance

__all__ = ["COVARIANCE", "fit", "smooth_spectrum"]

VARIANTS = ("rotate", "whiten", "recolor")
FREQUENCIES = ("spectrum", "index")


def smooth_spectrum(adjacency_values: NDArray, gamma: float, p: float) -> NDArray[np.float64]:
    """``λ_k = (1 + γ ω_k²)^(-p)``, scaled to unit mean.

    ω runs from 0 at the largest eigenvalue of the graph to 1 at the smallest.

    >>> smooth_spectrum(np.array([2.0, 0.0, -2.0]), gamma=3.0, p=1.0).round(3)
    array([1.647, 0.941, 0.412])
    """
    omega = (adjacency_values.max() - adjacency_values) / np.ptp(adjacency_values)
    values: NDArray[np.float64] = (1 + gamma * omega**2) ** -p
    return values / values.mean()


def fit(
    X: NDArray,
    grid: Grid,
    rng: np.random.Generator,  # noqa: ARG001 (called like the others)
    variant: str = "rotate",
    gamma: float = 10.0,
    p: float = 1.0,
    loading: float = 1e-3,
    signs: str = "first",
    frequency: str = "spectrum",
) -> BaselineResult:
    """``F̂ = X̃ W`` with ``W = U_obs U_refᵀ`` (rotate) or one of two scaled forms.

    ``U_obs Λ_obs^(-1/2) U_refᵀ`` (whiten), ``U_obs (Λ_smooth/Λ_obs)^(1/2) U_refᵀ`` (recolor). The
    smoothest mode of the grid is mapped to the direction of largest variance, and so on.
    Not specified in the paper, and chosen here: λ = 10⁻³, γ in {1, 10, 100, 1000}, p in {½, 1, 2,
    4}, ω from the graph's spectrum in one dimension as well (``frequency="index"``: ω in equal
    steps), signs as in `eigenbasis`.
    """
    if variant not in VARIANTS:
        raise InputError(f"variant {variant!r} is unknown: choose one of {', '.join(VARIANTS)}")
    if frequency not in FREQUENCIES:
        raise InputError(
            f"frequency {frequency!r} is unknown: choose one of {', '.join(FREQUENCIES)}"
        )
    values, basis = eigenbasis(loaded_covariance(X, loading), signs)
    wanted, reference = eigenbasis(adjacency(grid), signs)
    if frequency == "index":
        wanted = -np.arange(len(wanted), dtype=np.float64)
    if variant != "rotate":
        basis = basis / np.sqrt(values)
    if variant == "recolor":
        basis = basis * np.sqrt(smooth_spectrum(wanted, gamma, p))
    return aligned(X, basis @ reference.T)


COVARIANCE = Baseline(
    "covariance",
    "signals",
    fit,
    (
        {"variant": ("rotate", "whiten")},
        {"variant": ("recolor",), "gamma": (1.0, 10.0, 100.0, 1000.0), "p": (0.5, 1.0, 2.0, 4.0)},
    ),
)
