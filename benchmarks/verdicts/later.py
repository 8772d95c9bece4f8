"""Families that were written after `partners_beside` and `gaps`, and committed before anything was
run on them; in neither half.
"""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from symlift.core.grid import Grid
from symlift.datasets import random_orthogonal
from verdicts.library import Case, later_negative, later_positive
from verdicts.negatives import Rng, shaped, size
from verdicts.positives import LINES, PLANES, in_random_order, smooth_field


@later_negative
def scale_free_graph(rng: Rng, variant: int) -> Case:
    """A Gaussian Markov field on a graph that grew by preferential attachment."""
    d, shape, n = size(variant)
    A, degree = np.zeros((d, d)), np.ones(d)
    for i in range(2, d):
        to = rng.choice(i, 2, replace=False, p=degree[:i] / degree[:i].sum())
        A[i, to] = A[to, i] = 1
        degree[[i, *to]] += 1
    A[0, 1] = A[1, 0] = 1
    values, vectors = np.linalg.eigh(np.diag(A.sum(0) + 0.3) - A)
    return shaped((rng.normal(size=(n, d)) / np.sqrt(values)) @ vectors.T, shape, variant)


@later_negative
def logic_of_switches(rng: Rng, variant: int) -> Case:
    """Columns are conjunctions and disjunctions of a few switches, with noise."""
    d, shape, n = size(variant)
    on = rng.uniform(size=(n, 6)) < 0.4
    i, j = rng.integers(6, size=(2, d))
    X = np.where(rng.uniform(size=d) < 0.5, on[:, i] & on[:, j], on[:, i] | on[:, j])
    return shaped(X + 0.4 * rng.normal(size=(n, d)), shape, variant)


@later_negative
def sales_by_the_week(rng: Rng, variant: int) -> Case:
    """Products with a week of their own, common shocks, and noise that lasts for days."""
    d, shape, n = size(variant)
    week = rng.normal(size=(7, d))[np.arange(n) % 7]
    shocks = (rng.uniform(size=(n, 3)) < 0.05) @ rng.gamma(1, 3, size=(3, d))
    return shaped(
        week + shocks + lfilter([1], [1, -0.5], rng.normal(size=(n, d)), axis=0), shape, variant
    )


@later_negative
def sensors_on_a_sphere(rng: Rng, variant: int) -> Case:
    """A smooth field at random places of a sphere: local, but on no grid."""
    d, shape, n = size(variant)
    at = rng.normal(size=(d, 3))
    at /= np.linalg.norm(at, axis=1, keepdims=True)
    C = np.exp(3.0 * (at @ at.T - 1)) + 0.05 * np.eye(d)
    return shaped(rng.normal(size=(n, d)) @ np.linalg.cholesky(C).T, shape, variant)


@later_negative
def one_ladder_of_difficulty(rng: Rng, variant: int) -> Case:
    """Right or wrong answers to questions that differ in difficulty and in how well they
    distinguish people.
    """
    d, shape, n = size(variant)
    logit = (rng.normal(size=(n, 1)) - rng.normal(size=d)) * rng.lognormal(sigma=0.5, size=d)
    return shaped(rng.uniform(size=(n, d)) < 1 / (1 + np.exp(-2 * logit)), shape, variant)


@later_positive
def rough_planes(rng: Rng, variant: int) -> Case:
    """Correlations that fall exponentially with distance."""
    grid = Grid(PLANES[variant])
    apart = np.linalg.norm(grid.indices()[:, None] - grid.indices()[None], axis=-1)
    Y = (
        rng.normal(size=(3_600, grid.size))
        @ np.linalg.cholesky(np.exp(-apart / (1.5 + 0.5 * variant))).T
    )
    return in_random_order(Y + 0.2 * rng.normal(size=Y.shape), grid, rng)


@later_positive
def waves_around_rings(rng: Rng, variant: int) -> Case:
    """Three waves of random wave number and phase."""
    d, n = LINES[variant], 3_000
    k = rng.integers(1, 4, size=(n, 3, 1))
    phase = 2 * np.pi * (k * np.arange(d) / d + rng.uniform(size=(n, 3, 1)))
    Y = (rng.exponential(size=(n, 3, 1)) * np.cos(phase)).sum(axis=1)
    return in_random_order(Y + 0.3 * rng.normal(size=Y.shape), Grid((d,), True), rng, "shuffled")


@later_positive
def rows_of_unequal_contrast(rng: Rng, variant: int) -> Case:
    grid = Grid(PLANES[variant])
    Y = smooth_field(rng, 3_600, grid.shape, 1.0) * rng.lognormal(sigma=1.0, size=(3_600, 1))
    return in_random_order(Y + 0.1 * rng.normal(size=Y.shape), grid, rng)


@later_positive
def lines_with_holes(rng: Rng, variant: int) -> Case:
    """Two to five points of a line have no column."""
    d = LINES[variant]
    Y = smooth_field(rng, 3_600, (d,), 0.8 + 0.2 * variant)
    keep = np.sort(rng.permutation(d)[2 + variant :])
    order = keep[rng.permutation(len(keep))]
    X = Y[:, order] + 0.1 * rng.normal(size=(3_600, len(order)))
    return Case(X, {"grid": d, "mixing": "shuffled"}, order)


@later_positive
def bridges(rng: Rng, variant: int) -> Case:
    """Brownian bridges over the columns: pinned at both ends."""
    d = LINES[variant]
    walk = np.cumsum(rng.normal(size=(3_000, d + 1)), axis=1)
    Y = walk[:, :-1] - walk[:, -1:] * np.arange(1, d + 1) / (d + 1)
    return in_random_order(Y, Grid((d,)), rng, "shuffled", stationary=False)


@later_positive
def gamma_rings_behind_a_rotation(rng: Rng, variant: int) -> Case:
    d, n = (9, 11, 13, 15)[variant], (15_000, 12_000, 9_000, 9_000)[variant]
    raw = rng.gamma(0.2, size=(n, d))
    Y = sum(w * np.roll(raw, s, axis=1) for s, w in ((-1, 0.6), (0, 1.0), (1, 0.4)))
    Q = random_orthogonal(d, random_state=int(rng.integers(1 << 30)))
    return Case(
        np.asarray(Y) @ Q + 0.02 * rng.normal(size=(n, d)),
        {"grid": d, "periodic": True},
        latent=np.asarray(Y),
    )
