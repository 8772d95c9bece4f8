"""Rings and tori that show in how often each variance occurs."""

import warnings
from collections import Counter

import numpy as np
import pytest

from symlift import propose
from symlift.core.grid import Grid
from symlift.datasets import gsn, random_orthogonal, sphere_noise
from symlift.solvers.fast.multiplicities import ring_or_torus, run_pattern
from symlift.solvers.fast.propose import candidate_grids


def wide_pulses(shape, width, n=8000, seed=0):
    """Pulses at a tenth of the points of a ring or torus, wide ones, behind a rotation."""
    rng = np.random.default_rng(seed)
    pulses = (rng.random((n, *shape)) < 0.1) * rng.uniform(0.5, 1.5, (n, *shape))
    steps = np.meshgrid(*[np.minimum(np.arange(k), k - np.arange(k)) for k in shape], indexing="ij")
    shape_of_one = np.exp(-sum(step**2 for step in steps) / (2 * width**2))
    axes = tuple(range(1, 1 + len(shape)))
    spectrum = np.fft.fftn(pulses, axes=axes) * np.fft.fftn(shape_of_one)
    X = np.fft.ifftn(spectrum, axes=axes).real.reshape(n, -1)
    X += 0.03 * X.std() * rng.normal(size=X.shape)
    return X @ random_orthogonal(X.shape[1], rng)


def asked(X):
    rows = np.asarray(X, dtype=float) - np.mean(X, axis=0)
    closed = [grid for grid in candidate_grids(X.shape[1]) if all(grid.periodic)]
    return ring_or_torus(rows[::2], rows[1::2], closed)


@pytest.mark.parametrize("shape", [(7,), (8,), (3, 5), (4, 6), (3, 4, 5)])
def test_runs_are_those_of_a_stationary_covariance(shape):
    at = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1).reshape(
        -1, len(shape)
    )
    step = np.abs(at[:, None] - at)
    step = np.minimum(step, np.array(shape) - step)
    # axes of different lengths of correlation, so that no two frequencies are alike
    C = np.exp(-np.sum(step**1.3 / np.array([1.1, 1.7, 2.9])[: len(shape)], axis=-1))
    _, counts = np.unique(np.round(np.linalg.eigvalsh(C), 9), return_counts=True)
    assert run_pattern(Grid(shape, True)) == Counter(counts.tolist())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("shape", "width"), [((31,), 3.0), ((36,), 4.0), ((6, 7), 1.6)])
def test_rings_and_tori_show(shape, width, seed):
    assert asked(wide_pulses(shape, width, seed=seed)) == Grid(shape, True)


@pytest.mark.parametrize("seed", range(3))
def test_nothing_else_shows_them(seed):
    rng = np.random.default_rng(seed)
    decaying = rng.laplace(size=(5000, 36)) * np.exp(-np.arange(36) / 8)
    others = [
        gsn(8000, (31,), transform="orthogonal", random_state=seed).X,
        gsn(8000, (6, 7), transform="orthogonal", random_state=seed).X,
        sphere_noise(8000, 5, random_state=seed).X,
        rng.normal(size=(5000, 36)),
        decaying,
        decaying[:300],
    ]
    assert [asked(X) for X in others] == [None] * len(others)


def test_a_ring_of_wide_pulses_behind_a_rotation_is_proposed():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = propose(wide_pulses((31,), 3.0), random_state=0)[0]
    assert first.domain == Grid((31,), True)


def test_a_torus_without_runs_is_not_shown() -> None:
    rows = np.random.default_rng(0).normal(size=(200, 4)) * [4.0, 3.0, 2.0, 1.0]
    assert ring_or_torus(rows[::2], rows[1::2], [Grid((2, 2), True)]) is None
