"""Families without a translation symmetry: rich structure of other kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from symlift.datasets import gsn, random_orthogonal
from verdicts.library import Case, negative

SIZES: tuple[tuple[int, tuple[int, ...]], ...] = (
    (16, (16,)),
    (24, (4, 6)),
    (36, (6, 6)),
    (20, (20,)),
)
Rng = np.random.Generator


def shaped(X: NDArray, shape: Any, variant: int, **further: Any) -> Case:
    """Mostly as users who know that columns are sensors would ask; every fourth without that
    knowledge.
    """
    params = {
        "grid": shape,
        "periodic": variant == 3,
        "mixing": "auto" if variant == 0 else "shuffled",
    }
    return Case(np.asarray(X, dtype=np.float64), {**params, **further})


def size(variant: int) -> tuple[int, tuple[int, ...], int]:
    d, shape = SIZES[variant]
    return d, shape, (900, 3_000, 6_000, 1_500)[variant]


def _covariant(C: NDArray, n: int, rng: Rng) -> NDArray:
    values, vectors = np.linalg.eigh(C)
    return (rng.normal(size=(n, len(C))) * np.sqrt(np.maximum(values, 0))) @ vectors.T


@negative
def white_noise(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    return shaped(rng.normal(size=(n, d)) * rng.uniform(0.2, 3, d), shape, variant)


@negative
def few_factors(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    k = variant + 1
    return shaped(
        rng.normal(size=(n, k)) @ rng.normal(size=(k, d)) + 0.7 * rng.normal(size=(n, d)),
        shape,
        variant,
    )


@negative
def many_factors(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    k = d // 3
    return shaped(
        rng.normal(size=(n, k)) @ rng.normal(size=(k, d)) + rng.normal(size=(n, d)), shape, variant
    )


@negative
def sparse_factors(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    k = d // 2
    loads = rng.normal(size=(k, d)) * (rng.uniform(size=(k, d)) < 0.2)
    return shaped(rng.laplace(size=(n, k)) @ loads + 0.3 * rng.normal(size=(n, d)), shape, variant)


@negative
def positive_factors(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    k = 3 + variant
    return shaped(
        rng.exponential(size=(n, k)) @ rng.gamma(0.4, size=(k, d))
        + 0.1 * rng.exponential(size=(n, d)),
        shape,
        variant,
    )


@negative
def equal_blocks(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    block = np.arange(d) % (3 + variant)
    C = np.where(block[:, None] == block, 0.4 + 0.1 * variant, 0.05 * variant) + 0.2 * np.eye(d)
    return shaped(_covariant(C, n, rng), shape, variant)


@negative
def uneven_blocks(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    block = rng.choice(6, size=d, p=[0.35, 0.25, 0.15, 0.1, 0.1, 0.05])
    strength = rng.uniform(0.3, 0.9, 6)
    C = np.where(block[:, None] == block, strength[block], 0) + np.diag(rng.uniform(0.1, 0.8, d))
    return shaped(_covariant(C, n, rng) * rng.lognormal(size=d), shape, variant)


@negative
def sectors_in_a_market(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    sector = rng.integers(5, size=d)
    swing = np.exp(0.7 * np.abs(rng.standard_t(5, size=(n, 1))))
    X = (
        rng.normal(size=(n, 1)) * rng.uniform(0.6, 1.4, d)
        + 0.7 * rng.normal(size=(n, 5))[:, sector]
        + rng.normal(size=(n, d))
    )
    return shaped(X * swing, shape, variant)


@negative
def tree(rng: Rng, variant: int) -> Case:
    """Columns are leaves of a random tree; they share what their ancestors drew."""
    d, shape, n = size(variant)
    groups = [[i] for i in rng.permutation(d)]
    X = 0.5 * rng.normal(size=(n, d))
    while len(groups) > 1:
        i, j = rng.choice(len(groups), 2, replace=False)
        merged = groups[i] + groups[j]
        X[:, merged] += rng.uniform(0.2, 0.6) * rng.normal(size=(n, 1))
        groups = [g for k, g in enumerate(groups) if k not in (i, j)] + [merged]
    return shaped(X, shape, variant)


@negative
def balanced_tree(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    X, leaf = 0.4 * rng.normal(size=(n, d)), rng.permutation(d)
    for level in range(1, 6):
        X += rng.normal(size=(n, 2**level))[:, leaf * 2**level // d]
    return shaped(X, shape, variant)


@negative
def random_graph(rng: Rng, variant: int) -> Case:
    """A Gaussian Markov field on a random graph: local, but not on a grid."""
    d, shape, n = size(variant)
    A = np.triu(rng.uniform(size=(d, d)) < 4 / d, 1).astype(float)
    A += A.T
    return shaped(_covariant(np.linalg.inv(np.diag(A.sum(0) + 0.2) - A), n, rng), shape, variant)


@negative
def hubs(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    hub = rng.integers(3, size=d)
    X = 0.8 * rng.normal(size=(n, d))
    X[:, 3:] += X[:, hub[3:]] * rng.uniform(0.5, 1.5, d - 3)
    return shaped(X, shape, variant)


@negative
def small_world(rng: Rng, variant: int) -> Case:
    """A ring whose links were rewired at random, so that little of the ring is left."""
    d, shape, n = size(variant)
    A = np.zeros((d, d))
    for step in (1, 2):
        to = np.where(rng.uniform(size=d) < 0.7, rng.integers(d, size=d), (np.arange(d) + step) % d)
        A[np.arange(d), to] = A[to, np.arange(d)] = 1
    np.fill_diagonal(A, 0)
    order = rng.permutation(d)
    A = A[order][:, order]
    return shaped(_covariant(np.linalg.inv(np.diag(A.sum(0) + 0.3) - A), n, rng), shape, variant)


@negative
def causal_graph(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    X, order = rng.laplace(size=(n, d)), rng.permutation(d)
    for position, i in enumerate(order[1:], 1):
        parents = rng.choice(order[:position], min(position, 3), replace=False)
        X[:, i] += X[:, parents] @ rng.normal(scale=0.6, size=len(parents))
    return shaped(X / X.std(axis=0), shape, variant)


@negative
def power_law_spectrum(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    Q = random_orthogonal(d, random_state=int(rng.integers(1 << 30)))
    return shaped(
        (rng.normal(size=(n, d)) / (1 + np.arange(d)) ** (0.5 + 0.2 * variant)) @ Q, shape, variant
    )


@negative
def clayton_copula(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    theta = 0.5 + variant
    V = rng.gamma(1 / theta, size=(n, 1))
    U = (1 + rng.exponential(size=(n, d)) / V) ** (-1 / theta)
    X = np.asarray(stats.gamma.ppf(np.clip(U, 1e-9, 1 - 1e-9), rng.uniform(0.5, 4, d)))
    return shaped(X, shape, variant)


@negative
def student_copula(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    A = rng.normal(size=(d, 4))
    X = _covariant(A @ A.T + np.eye(d), n, rng) / np.sqrt(rng.chisquare(3, size=(n, 1)) / 3)
    return shaped(X, shape, variant)


@negative
def heavy_tails(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    return shaped(rng.standard_t(1.0 + 0.5 * variant, size=(n, d)), shape, variant)


@negative
def one_hot_blocks(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    columns: list[NDArray] = []
    while len(columns) < d:
        levels = int(rng.integers(2, 7))
        columns += list(
            np.eye(levels)[rng.choice(levels, size=n, p=rng.dirichlet(2 * np.ones(levels)))].T
        )
    return shaped(np.stack(columns[:d], axis=1) + 0.0, shape, variant)


@negative
def word_counts(rng: Rng, variant: int) -> Case:
    """Topics over words, whose frequencies fall as their rank."""
    d, shape, n = size(variant)
    topics = rng.dirichlet(np.full(d, 0.3), size=6) / (1 + np.arange(d)) ** 0.5
    mix = rng.dirichlet(np.full(6, 0.4), size=n) @ (topics / topics.sum(1, keepdims=True))
    return shaped(rng.poisson(60 * mix * rng.lognormal(size=(n, 1))), shape, variant)


@negative
def random_walks(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    return shaped(np.cumsum(rng.normal(size=(n, d)), axis=0), shape, variant)


@negative
def drifting_walks(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    return shaped(
        np.cumsum(rng.normal(size=(n, d)) + 0.1 * rng.normal(size=d), axis=0), shape, variant
    )


@negative
def trends(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    t = np.linspace(0, 3, n)[:, None]
    return shaped(
        rng.normal(size=d) * t + rng.normal(size=d) * t**2 + 0.2 * rng.normal(size=(n, d)),
        shape,
        variant,
    )


@negative
def slow_series(rng: Rng, variant: int) -> Case:
    from scipy.signal import lfilter

    d, shape, n = size(variant)
    return shaped(
        lfilter([1], [1, -0.97 - 0.005 * variant], rng.normal(size=(n, d)), axis=0), shape, variant
    )


@negative
def phases_of_one_period(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    t = np.arange(n)[:, None]
    period = 20 + 30 * variant
    return shaped(
        np.cos(2 * np.pi * t / period + rng.uniform(0, 2 * np.pi, d))
        + 0.3 * rng.normal(size=(n, d)),
        shape,
        variant,
    )


@negative
def periods_of_their_own(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    t = np.arange(n)[:, None]
    turn = 2 * np.pi * (t / rng.uniform(20, 400, d) + rng.uniform(size=d))
    return shaped(np.sin(turn) + 0.2 * rng.normal(size=(n, d)), shape, variant)


@negative
def row_number_and_factors(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    X = rng.normal(size=(n, 4)) @ rng.normal(size=(4, d)) + rng.normal(size=(n, d))
    X[:, 0] = np.arange(n)
    return shaped(X, shape, variant)


@negative
def duplicated_columns(rng: Rng, variant: int) -> Case:
    d, _, n = size(variant)
    X = rng.normal(size=(n, d // 2)) + 0.5 * rng.normal(size=(n, 3)) @ rng.normal(size=(3, d // 2))
    X = np.concatenate([X, X], axis=1)[:, rng.permutation(2 * (d // 2))]
    return shaped(
        X + 0.01 * variant * rng.normal(size=X.shape),
        (d // 2,) if variant < 2 else (2 * (d // 2),),
        variant,
    )


@negative
def identical_columns(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    return shaped(
        np.repeat(rng.normal(size=(n, 1)), d, axis=1) + 0.003 * variant * rng.normal(size=(n, d)),
        shape,
        variant,
    )


@negative
def rank_one(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    X = rng.exponential(size=(n, 1)) * rng.uniform(-2, 2, d)
    return shaped(X + 0.02 * variant * rng.normal(size=(n, d)), shape, variant)


@negative
def too_few_displacements(rng: Rng, variant: int) -> Case:
    shape = ((2, 2), (2, 3), (4,), (6,))[variant]
    d = int(np.prod(shape))
    X = rng.normal(size=(3_000, 2)) @ rng.normal(size=(2, d)) + 0.5 * rng.normal(size=(3_000, d))
    return shaped(X, shape, variant)


@negative
def few_columns_any_grid(rng: Rng, variant: int) -> Case:
    d = (4, 6, 8, 11)[variant]
    X = rng.normal(size=(2_400, 3)) @ rng.normal(size=(3, d)) + 0.4 * rng.normal(size=(2_400, d))
    return Case(X, {"grid": "auto", "mixing": "shuffled"})


@negative
def gaussian_mixture(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    k = 3 + 2 * variant
    return shaped(
        2 * rng.normal(size=(k, d))[rng.integers(k, size=n)] + rng.normal(size=(n, d)),
        shape,
        variant,
    )


@negative
def hidden_states(rng: Rng, variant: int) -> Case:
    """States that persist in time, each with its own mean and deviation of every column."""
    d, shape, n = size(variant)
    state = np.cumsum(rng.uniform(size=n) < 0.03)
    mean, spread = 2 * rng.normal(size=(8, d)), rng.lognormal(sigma=0.6, size=(8, d))
    which = rng.integers(8, size=state[-1] + 1)[state]
    return shaped(mean[which] + spread[which] * rng.normal(size=(n, d)), shape, variant)


@negative
def untuned_neurons(rng: Rng, variant: int) -> Case:
    """Counts with a common gain and random assemblies: no angle."""
    d, _, n = size(variant)
    drive = 0.6 * rng.normal(size=(n, 1)) + 0.6 * np.maximum(
        rng.normal(size=(n, 4)), 0
    ) @ rng.exponential(size=(4, d))
    return Case(
        rng.poisson(np.exp(drive - 0.3)).astype(float),
        {"grid": 15, "periodic": True, "solver": "ring"},
    )


@negative
def random_vector_autoregression(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    A = 0.9 * random_orthogonal(d, random_state=int(rng.integers(1 << 30)))
    X = np.zeros((n, d))
    for t in range(1, n):
        X[t] = X[t - 1] @ A + rng.laplace(size=d) * (np.arange(d) % 3 + 0.5)
    return shaped(X, shape, variant)


@negative
def answers_to_questions(rng: Rng, variant: int) -> Case:
    """Answers from 1 to 5 that rest on a few traits."""
    d, shape, n = size(variant)
    loads = rng.normal(size=(3, d)) * (rng.integers(3, size=d) == np.arange(3)[:, None])
    raw = rng.normal(size=(n, 3)) @ loads + rng.normal(size=(n, d))
    return shaped(np.clip(np.rint(raw + 3 + 0.5 * rng.normal(size=d)), 1, 5), shape, variant)


@negative
def shares_of_a_whole(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    X = rng.gamma(rng.uniform(0.5, 4, d), size=(n, d)) * np.exp(
        0.5 * rng.normal(size=(n, 3)) @ rng.normal(size=(3, d))
    )
    return shaped(X / X.sum(axis=1, keepdims=True), shape, variant)


@negative
def modules_of_genes(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    loads = np.maximum(rng.normal(size=(5, d)) - 0.8, 0)
    X = rng.poisson(np.exp(rng.normal(size=(n, 5)) @ loads + rng.normal(scale=0.5, size=d)))
    return shaped(np.log1p(X), shape, variant)


@negative
def stored_patterns(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    patterns = rng.choice([-1.0, 1.0], size=(6, d))
    flips = np.where(rng.uniform(size=(n, d)) < 0.15, -1, 1)
    return shaped(
        patterns[rng.integers(6, size=n)] * flips + 0.01 * rng.normal(size=(n, d)), shape, variant
    )


@negative
def products_of_factors(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    Z = rng.normal(size=(n, 4))
    i, j = rng.integers(4, size=(2, d))
    return shaped(Z[:, i] * Z[:, j] + 0.3 * rng.normal(size=(n, d)), shape, variant)


@negative
def gaps_in_factors(rng: Rng, variant: int) -> Case:
    d, shape, n = size(variant)
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + rng.normal(size=(n, d))
    X[rng.uniform(size=X.shape) < 0.02 * (variant + 1)] = np.nan
    return shaped(X, shape, variant, mixing="shuffled")


@negative
def columns_permuted(rng: Rng, variant: int) -> Case:
    _, shape, n = size(variant)
    X = gsn(n, shape, noise=0.05, random_state=int(rng.integers(1 << 30))).X
    return shaped(rng.permuted(X, axis=0), shape, variant)
