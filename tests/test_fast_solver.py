"""The fast solver, end to end, on small worlds with a known truth."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from symlift import Grid, LatentDomain
from symlift.datasets import gsn, ising, random_orthogonal
from symlift.errors import FitWarning
from symlift.metrics import generator_similarity, signal_recovery
from symlift.solvers.fast.settings import DEFAULT
from symlift.solvers.registry import get_solver

pytestmark = pytest.mark.portable

solve = get_solver("fast")


def recovered(data, seed=0):
    est = LatentDomain(grid=data.grid.shape, periodic=data.grid.periodic, random_state=seed).fit(
        data.X
    )
    r = signal_recovery(data.latent, est.transform(data.X), data.grid).r
    similarity = generator_similarity(est.generators_, data.transform, data.grid, truth="exact")
    return r, similarity, est


@pytest.mark.parametrize(
    ("data", "r_least", "s_least"),
    [
        (gsn(20_000, 15, periodic=True, transform="orthogonal", random_state=11), 0.99, 0.99),
        (gsn(20_000, 14, periodic=True, transform="permutation", random_state=11), 0.99, 0.95),
        (gsn(20_000, 31, transform="orthogonal", random_state=11), 0.99, 0.98),
        (gsn(20_000, 31, basis="legendre", transform="dst1", random_state=11), 0.98, 0.9),
        (gsn(20_000, (6, 6), transform="orthogonal", random_state=11), 0.95, 0.9),
        (gsn(8_000, (4, 4, 4), transform="permutation", random_state=11), 0.97, 0.95),
        (ising(20_000, 17, transform="linear", random_state=11), 0.97, 0.97),
    ],
    ids=[
        "ring dense",
        "even ring",
        "line dense",
        "legendre dst",
        "2-D dense",
        "3-D shuffled",
        "ising linear",
    ],
)
def test_signals_and_generators_are_recovered(data, r_least, s_least):
    r, similarity, est = recovered(data)
    assert r > r_least
    assert min(similarity) > s_least
    assert est.evidence_.found
    # columns that are points were placed; else another attempt has ended at the same signals
    dense = est.placement_ is None
    assert est.trace_.stages[-1].name == ("agree" if dense else "choose")
    repeated = est.evidence_.repeated
    assert (repeated is not None and repeated > DEFAULT.agreed) if dense else repeated is None


def test_a_non_orthogonal_mixing_is_undone():
    data = gsn(10_000, 17, transform="linear", random_state=12)
    r, _, est = recovered(data)
    assert r > 0.95
    assert "resolved" in est.trace_.chosen


def test_the_same_seed_gives_the_same_model():
    data = gsn(3_000, 15, periodic=True, transform="orthogonal", random_state=1)
    a, b = (
        solve(data.X, data.grid, np.random.default_rng(5)).model.lifting_map() for _ in range(2)
    )
    assert np.array_equal(a, b)


def test_progress_is_told_and_only_grows():
    data = gsn(3_000, 15, periodic=True, transform="orthogonal", random_state=1)
    told: list[tuple[str, float]] = []
    solve(data.X, data.grid, np.random.default_rng(0), progress=lambda *step: told.append(step))
    shares = [share for _, share in told if share is not None]
    assert {"place", "localise", "choose"} <= {stage for stage, _ in told}
    assert shares == sorted(shares)
    assert 0 <= shares[0] <= shares[-1] <= 1


def test_more_columns_than_points_are_compressed():
    latent = gsn(20_000, 15, periodic=True, random_state=2)
    wide = latent.latent @ random_orthogonal(20, random_state=3)[:15]
    wide = wide + 0.02 * np.random.default_rng(0).normal(size=wide.shape) * wide.std()
    est = LatentDomain(grid=(15,), periodic=True, random_state=0).fit(wide)
    assert est.lifting_map_.shape == (15, 20)
    assert signal_recovery(latent.latent, est.transform(wide), latent.grid).r > 0.97


@pytest.mark.parametrize("kind", ["white", "gaussian ring", "independent"])
def test_where_there_is_nothing_to_find_the_fit_says_so(kind, rng):
    if kind == "white":
        X, periodic = rng.normal(size=(6_000, 15)), False
    elif kind == "independent":
        X, periodic = rng.laplace(size=(6_000, 15)) @ random_orthogonal(15, random_state=0), False
    else:
        field = np.fft.irfft(
            np.fft.rfft(rng.normal(size=(6_000, 15))) / (1 + np.arange(8) ** 2), 15
        )
        X, periodic = field @ random_orthogonal(15, random_state=0), True
    with pytest.warns(FitWarning, match="no identifiable domain"):
        est = LatentDomain(grid=(15,), periodic=periodic, random_state=0).fit(X)
    # neither places nor an unmixing: the places are returned, for what they are worth
    assert not est.evidence_.found
    assert est.placement_ is not None
    assert est.placement_.confidence.max() < 0.5


def test_memory_does_not_grow_with_rows(tmp_path):
    """A million rows come from a memory map; what is held is a sample of them."""
    n, d = 1_000_000, 15
    X = np.memmap(tmp_path / "x.dat", dtype=np.float32, mode="w+", shape=(n, d))
    block = gsn(20_000, d, periodic=True, transform="permutation", random_state=4)
    for start in range(0, n, 20_000):
        X[start : start + 20_000] = block.X
    tracemalloc.start()
    solution = solve(X, block.grid, np.random.default_rng(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6 < n * d * 8
    assert signal_recovery(block.latent, solution.model.lift(block.X), block.grid).r > 0.99


def test_few_rows_still_give_an_order():
    data = gsn(400, 31, transform="permutation", random_state=9)
    r, _, _ = recovered(data)
    assert r > 0.97


def test_trace_survives_saving(tmp_path):
    data = gsn(3_000, (5, 5), transform="permutation", random_state=1)
    _, _, est = recovered(data)
    est.save(tmp_path)
    from symlift import load

    assert load(tmp_path).evidence_ == est.evidence_
    assert est.grid_ == Grid((5, 5))
