"""Families that were written after thresholds had been set, in neither half: a last test to which
nothing was fitted.
"""

from __future__ import annotations

import numpy as np

from symlift.core.grid import Grid
from symlift.datasets import gsn, random_orthogonal
from verdicts.library import Case, fresh_negative, fresh_positive
from verdicts.negatives import Rng, shaped, size
from verdicts.positives import LINES, PLANES, in_random_order, smooth_field


@fresh_negative
def curves_of_hidden_variables(rng: Rng, variant: int) -> Case:
    """Columns are random nonlinear functions of three variables."""
    d, shape, n = size(variant)
    Z = rng.normal(size=(n, 3))
    X = np.tanh(Z @ rng.normal(size=(3, d)) + rng.normal(size=d)) + 0.3 * rng.normal(size=(n, d))
    return shaped(X, shape, variant)


@fresh_negative
def four_sources_many_times(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    X = rng.laplace(size=(n, 4))[:, rng.integers(4, size=d)]
    return shaped(X + rng.uniform(0.2, 1.5, d) * rng.normal(size=(n, d)), shape, variant)


@fresh_negative
def volatility_in_clusters(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    swing = np.exp(np.convolve(rng.normal(size=n + 49), np.exp(-np.arange(50) / 12), "valid") / 3)[
        :, None
    ]
    return shaped(
        swing * (rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + rng.normal(size=(n, d))),
        shape,
        variant,
    )


@fresh_negative
def rankings(rng: Rng, variant: int) -> Case:
    """Each row is a ranking of the columns by a taste of few dimensions."""
    d, shape, n = size(variant)
    liking = rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + rng.gumbel(size=(n, d))
    return shaped(np.argsort(np.argsort(liking, axis=1), axis=1), shape, variant)


@fresh_negative
def mostly_zero_counts(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    active = rng.uniform(size=(n, 5)) < 0.3
    rate = active @ rng.gamma(0.3, 4, size=(5, d)) + 0.05
    return shaped(rng.poisson(rate), shape, variant)


@fresh_negative
def a_ring_in_rows(rng: Rng, variant: int) -> Case:
    shape = ((3, 6), (4, 5), (4, 6), (5, 6))[variant]
    data = gsn(
        3_600,
        int(np.prod(shape)),
        periodic=True,
        transform="permutation",
        random_state=int(rng.integers(1 << 30)),
    )
    return Case(data.X, {"grid": shape, "mixing": "shuffled"})


@fresh_positive
def power_law_tori(rng: Rng, variant: int) -> Case:
    shape = PLANES[variant]
    k = np.hypot(*np.meshgrid(*(np.fft.fftfreq(m) * m for m in shape), indexing="ij"))
    raw = np.fft.fft2(rng.normal(size=(3_600, *shape))) / (1 + k) ** (1.5 + 0.4 * variant)
    Y = np.fft.ifft2(raw).real.reshape(3_600, -1)
    return in_random_order(Y / Y.std() + 0.1 * rng.normal(size=Y.shape), Grid(shape, True), rng)


@fresh_positive
def saturating_sensors(rng: Rng, variant: int) -> Case:
    grid = Grid(PLANES[variant])
    Y = smooth_field(rng, 3_600, grid.shape, 1.0)
    return in_random_order(np.clip(Y, -0.5, 0.8) + 0.02 * rng.normal(size=Y.shape), grid, rng)


@fresh_positive
def lognormal_lines(rng: Rng, variant: int) -> Case:
    d = LINES[variant]
    Y = np.exp(smooth_field(rng, 3_000, (d,), 1.0)) * rng.lognormal(sigma=0.5, size=d)
    return in_random_order(Y, Grid((d,)), rng, "shuffled")


@fresh_positive
def noisy_boxes(rng: Rng, variant: int) -> Case:
    grid = Grid(((3, 4, 5), (4, 4, 4), (3, 3, 6), (4, 4, 5))[variant])
    Y = smooth_field(rng, 6_000, grid.shape, 0.9)
    return in_random_order(
        Y + (0.3 + 0.3 * variant) * rng.normal(size=Y.shape), grid, rng, "shuffled"
    )


@fresh_positive
def planes_from_few_rows(rng: Rng, variant: int) -> Case:
    grid = Grid(PLANES[variant])
    Y = smooth_field(rng, 3 * (60, 80, 100, 120)[variant], grid.shape, 1.0)
    return in_random_order(Y + 0.2 * rng.normal(size=Y.shape), grid, rng, "shuffled")


@fresh_positive
def laplace_rings_behind_a_rotation(rng: Rng, variant: int) -> Case:
    d, n = (9, 11, 13, 15)[variant], (12_000, 12_000, 9_000, 6_000)[variant]
    raw = rng.exponential(size=(n, d)) * (rng.uniform(size=(n, d)) < 0.3)
    Y = sum(w * np.roll(raw, s, axis=1) for s, w in ((-1, 0.5), (0, 1.0), (1, 0.5)))
    Q = random_orthogonal(d, random_state=int(rng.integers(1 << 30)))
    return Case(
        np.asarray(Y) @ Q + 0.02 * rng.normal(size=(n, d)),
        {"grid": d, "periodic": True},
        latent=np.asarray(Y),
    )
