"""Rows on workers of a cluster that may be lost: the fit is that of one machine."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from symlift import LatentDomain
from symlift.core import rows as core_rows
from symlift.core.rows import survey
from symlift.datasets import gsn
from symlift.errors import InputError
from symlift.statistics.gather import survey_elsewhere

da = pytest.importorskip("dask.array")


@pytest.fixture
def few_rows_are_many(monkeypatch):
    """Samples are taken from small arrays."""
    monkeypatch.setattr(core_rows, "MAX_SAMPLE", 4_000)
    monkeypatch.setattr(core_rows, "_SAMPLED", 3_200)
    monkeypatch.setattr(core_rows, "_LEAST_ROWS", 100)


def test_the_sample_and_the_ranges_are_those_of_one_machine(few_rows_are_many):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 16)).astype(np.float32)
    X[:, 3] = 2.0
    X[5, 7] = np.nan
    here = survey(X, np.random.default_rng(1), True)
    lazy = da.from_array(X, chunks=(37, 5))
    there = survey_elsewhere(lazy, np.random.default_rng(1), True)
    assert len(here.rows) == 200
    np.testing.assert_array_equal(here.rows, there.rows)
    np.testing.assert_array_equal(here.varies, there.varies)
    assert here.gaps
    assert there.gaps
    wide = survey_elsewhere(da.from_array(X[:90], chunks=(20, 16)), rng, True, most=30)
    assert wide.rows.shape == (30, 16)


def test_one_fit_on_both(few_rows_are_many):
    X = np.asarray(gsn(1_500, 16, transform="permutation", random_state=0).X)
    alone = LatentDomain(grid=16, random_state=0).fit(X)
    est = LatentDomain(grid=16, random_state=0).fit(da.from_array(X, chunks=(200, 16)))
    np.testing.assert_allclose(est.lifting_map_, alone.lifting_map_, atol=1e-6)
    assert est.n_features_in_ == 16


@pytest.mark.parametrize("value", [np.inf, 1e300])
def test_an_entry_that_cannot_be_used_is_found_where_it_is(value, few_rows_are_many):
    X = np.random.default_rng(0).normal(size=(900, 16))
    X[411, 2] = value
    with pytest.raises(InputError, match="column 3"):
        LatentDomain(grid=16).fit(da.from_array(X, chunks=(100, 16)))


def test_words_are_refused():
    words = da.from_array(np.array([["a", "b"], ["c", "d"]]), chunks=(1, 2))
    with pytest.raises(InputError, match="give numbers"):
        LatentDomain(grid=2).fit(words)


def _slow_block(path: str, block_info: dict | None = None) -> np.ndarray:
    """Rows of a file, which take a moment."""
    assert block_info is not None
    start, stop = block_info[None]["array-location"][0]
    time.sleep(0.2)
    return np.load(path, mmap_mode="r")[start:stop]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_is_killed_midway_changes_nothing(tmp_path: Path):
    distributed = pytest.importorskip("distributed")
    X = np.asarray(gsn(4_000, 16, transform="permutation", random_state=0).X)
    np.save(tmp_path / "x.npy", X)
    alone = LatentDomain(grid=16, random_state=0).fit(X)
    lazy = da.map_blocks(
        _slow_block,
        str(tmp_path / "x.npy"),
        chunks=((100,) * 40, (16,)),
        dtype=X.dtype,
        meta=np.empty((0, 0)),
    )
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with (
        distributed.LocalCluster(**options, silence_logs=50) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = sorted(client.run(os.getpid).values())
        assert len(set(pids)) == 2
        timer = threading.Timer(1.5, os.kill, (pids[0], signal.SIGKILL))
        timer.start()
        est = LatentDomain(grid=16, random_state=0).fit(lazy)
        timer.join()
        assert pids[0] not in client.run(os.getpid).values()
    np.testing.assert_allclose(est.lifting_map_, alone.lifting_map_, atol=1e-6)
    np.testing.assert_array_equal(est.placement_.point, alone.placement_.point)
