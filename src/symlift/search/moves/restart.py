"""Annealed restarts: soft assignments that harden, started from perturbed coordinates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from symlift.search.criterion import LagModel, Slots

__all__ = ["anneal", "shake"]

_SINKHORN = 12
_SWEEPS = 3
_TEMPERATURES = 12
_COLDEST = 0.05
_TINY = np.float32(1e-30)


def shake(y: NDArray, rng: np.random.Generator) -> NDArray[np.float64]:
    """Perturbed coordinates: bent by a smooth wave, jittered, and often cut along a line.

    All amounts are drawn anew on each call; half of the calls cut. Local optima are arrangements of
    which one part is shifted by a step or mirrored: a cut undoes in one move what no exchange of
    columns can.
    """
    dimension = y.shape[1]
    wave, phase = rng.normal(size=(dimension, dimension)), rng.uniform(0, 2 * np.pi, size=dimension)
    shaken = (
        y
        + rng.uniform(0, 2) * np.sin(0.4 * y @ wave + phase)
        + rng.normal(size=y.shape) * rng.uniform(0.3, 1.5)
    )
    if rng.random() < 0.5:
        across, along = rng.integers(dimension, size=2)
        beyond = y[:, across] > rng.choice(y[:, across])
        if rng.random() < 0.5:
            shaken[beyond, along] += rng.choice([-2, -1, 1, 2])
        elif beyond.any():
            part = shaken[beyond, along]
            shaken[beyond, along] = part.min() + part.max() - part
    return shaken


def anneal(
    S: NDArray, y: NDArray, slots: Slots, model: LagModel, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Slots from coordinates y (d, P), by soft assignments that sharpen as temperature falls."""
    depth_points = slots.grid.indices()[slots.point]
    apart = np.abs(y[:, None] - depth_points[None])
    apart = np.where(
        slots.grid.periodic,
        np.abs(apart - np.array(slots.grid.shape) * np.rint(apart / slots.grid.shape)),
        apart,
    )
    # single precision is enough: the descent that follows is exact
    S = S.astype(np.float32)
    share = _balanced(
        (-np.sum(apart**2, axis=-1) / (2 * rng.uniform(0.8, 2.0) ** 2)).astype(np.float32)
    )
    expected = [k[slots.index] for k in model.K.astype(np.float32)]
    squares = []
    for k in expected:
        np.fill_diagonal(k, 0.0)
        squares.append(k * k)
    weights = (1 / (model.v * len(S))).astype(np.float32)
    gain = S[0] @ (share @ expected[0]) * weights[0]
    scale = max(float(np.median(np.abs(gain).max(axis=1))), 1e-12)
    for temperature in np.geomspace(rng.uniform(0.1, 0.6), _COLDEST, _TEMPERATURES) * scale:
        for _ in range(_SWEEPS):
            taken = share.sum(axis=0)
            gain = sum(
                w * (s @ (share @ k) - (taken @ k_square) / 2)
                for s, k, k_square, w in zip(S, expected, squares, weights, strict=True)
            )
            share = np.float32(0.5) * (
                share + _balanced(np.asarray(gain / np.float32(temperature), dtype=np.float32))
            )
    return linear_sum_assignment(-share)[1].astype(np.int64)


def _balanced(log_share: NDArray[np.float32]) -> NDArray[np.float32]:
    """Shares whose rows sum to 1 and whose columns sum to at most 1; ``spare`` takes the rest.

    Rows, columns and the spare row have one factor each: two passes over the shares in each round
    instead of four.
    """
    d, slots = log_share.shape
    share = np.exp(log_share - log_share.max(axis=1, keepdims=True))
    column = np.ones(slots, dtype=np.float32)
    for _ in range(_SINKHORN):
        row = 1 / np.maximum(share @ column, _TINY)
        spare = np.float32(max(slots - d, 0)) / column.sum()
        column = 1 / np.maximum(row @ share + spare, _TINY)
    share *= column
    return share / np.maximum(share.sum(axis=1, keepdims=True), _TINY)
