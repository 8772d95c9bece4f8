from __future__ import annotations

import numpy as np
import pytest

from symlift import InputError
from symlift.demo import run_demo
from symlift.experiments import EXPERIMENTS, get_experiment, run_experiment


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_every_row_makes_its_data(name):
    experiment = EXPERIMENTS[name]
    data = experiment.observe(seed=1, n=200)
    assert data.X.shape == (200, data.grid.size)
    assert data.grid.shape == experiment.shape
    assert data.transform.shape == (data.grid.size, data.grid.size)
    # what an identity row hides is a permutation, so that handing X back scores nothing
    assert not np.allclose(data.transform, np.eye(data.grid.size))
    again, other = experiment.observe(seed=1, n=200), experiment.observe(seed=2, n=200)
    assert np.array_equal(again.X, data.X)
    assert not np.allclose(other.transform, data.transform) or experiment.transform == "dst1"


def test_the_same_seed_gives_the_same_figures():
    experiment = get_experiment("gsn63-legendre-dst")
    timing = {"seconds", "peak_rss_mb"}
    first, second = (run_experiment(experiment, "random", seed=3, n=400) for _ in range(2))
    assert {k: v for k, v in first.items() if k not in timing} == {k: v for k, v in second.items() if k not in timing}


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="experiment list"):
        get_experiment("gsn64")


def test_demo_leaves_a_picture_and_a_model(tmp_path):
    summary = run_demo(tmp_path / "out", seed=1, solver="random")
    assert (tmp_path / "out" / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert {"model.json", "model.safetensors", "estimator.json", "report.html"} <= {
        p.name for p in (tmp_path / "out" / "run").iterdir()
    }
    assert summary["d"] == 225
    assert 0 <= summary["r"] < 0.5
