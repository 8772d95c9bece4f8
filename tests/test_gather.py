"""Rows on a cluster: what comes here, and what stays there."""

from __future__ import annotations

import numpy as np
import pytest

from symlift import LatentDomain
from symlift.datasets import gsn
from symlift.errors import InputError
from symlift.statistics.gather import gathered, is_dask

da = pytest.importorskip("dask.array")


def rows(n: int = 1_200) -> np.ndarray:
    return np.asarray(gsn(n, 16, transform="permutation", random_state=0).X)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_two_workers_give_the_fit_that_one_array_gives() -> None:
    distributed = pytest.importorskip("distributed")
    X = rows()
    lazy = da.from_array(X, chunks=(200, 7))
    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "processes": False,
        "dashboard_address": None,
    }
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        est = LatentDomain(grid=16, random_state=0).fit(lazy)
        signals = est.transform(lazy)
        assert is_dask(signals)
        assert signals.shape == (1_200, 16)
        computed = signals.compute()
        assert est.diagnose(lazy).verdict == est.diagnose(X).verdict
    alone = LatentDomain(grid=16, random_state=0).fit(X)
    np.testing.assert_array_equal(est.placement_.point, alone.placement_.point)
    np.testing.assert_allclose(computed, alone.transform(X), atol=1e-10)


def test_a_sample_of_a_larger_array_comes_here_in_its_order() -> None:
    X = np.arange(4_000.0).reshape(1_000, 4)
    some = gathered(da.from_array(X, chunks=(130, 4)), most=1_000, rows=50)
    assert some.shape == (50, 4)
    assert (np.diff(some[:, 0]) > 0).all()
    assert np.isin(some[:, 0], X[:, 0]).all()
    assert gathered(X) is X


def test_infinity_anywhere_is_refused_though_no_sample_meets_it() -> None:
    X = rows(300)
    X[17, 3] = np.inf
    with pytest.raises(InputError, match="X holds infinity"):
        gathered(da.from_array(X, chunks=(100, 16)), most=10, rows=2)


def test_an_array_of_unknown_length_is_refused_with_a_remedy() -> None:
    X = da.from_array(rows(100), chunks=(50, 16))
    unknown = X[X[:, 0] > 0]
    with pytest.raises(InputError, match="compute_chunk_sizes"):
        LatentDomain(grid=16).fit(unknown)
    assert len(gathered(unknown.compute_chunk_sizes())) > 0
