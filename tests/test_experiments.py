from __future__ import annotations

import numpy as np
import pytest

from symlift import InputError, LatentDomain
from symlift.cli import demo
from symlift.cli.demo import run_demo
from symlift.datasets import gsn, ring_population
from symlift.metrics import signal_recovery
from symlift_paper import EXPERIMENTS, get_experiment, run_experiment

RECORDINGS = [name for name, experiment in EXPERIMENTS.items() if experiment.source == "recording"]


@pytest.mark.parametrize("name", sorted(set(EXPERIMENTS) - set(RECORDINGS)))
def test_every_row_makes_its_data(name):
    experiment = EXPERIMENTS[name]
    data = experiment.observe(seed=1, n=200)
    assert data.grid.shape == experiment.shape
    if data.transform is None:  # bits: eight columns for each pixel
        assert data.X.shape == (200, 8 * data.grid.size)
        assert not np.array_equal(experiment.observe(seed=2, n=200).order, data.order)
        return
    assert data.X.shape == (200, data.grid.size)
    assert data.transform.shape == (data.grid.size, data.grid.size)
    # what an identity row hides is a permutation, so that handing X back scores nothing
    assert not np.allclose(data.transform, np.eye(data.grid.size))
    again, other = experiment.observe(seed=1, n=200), experiment.observe(seed=2, n=200)
    assert np.array_equal(again.X, data.X)
    assert not np.allclose(other.transform, data.transform) or experiment.transform == "dst1"


@pytest.mark.parametrize("name", RECORDINGS)
def test_recordings_are_scored_by_their_angles(name, tmp_path, monkeypatch):
    """On a synthetic population in the recording's place: the phase follows the angle, and nothing
    else is claimed.
    """
    population = ring_population(800, 40, random_state=0)
    file = {
        "neural-gratings": "allen_732592105_drifting_gratings.npz",
        "neural-head-direction": "head_direction_mouse28.npz",
    }
    degrees = np.degrees(np.ravel(population.latent))
    np.savez(tmp_path / file[name], X=population.X, angles=degrees, period=360.0)
    monkeypatch.setenv("SYMLIFT_DATA", str(tmp_path))
    experiment = get_experiment(name)
    assert len(experiment.observe(0, n=100).X) == 100
    result = run_experiment(experiment, seed=1)
    assert result["solver"] == "homogeneous"
    assert result["circular_correlation"] > 0.7
    assert result["n"] == 800
    assert all(
        result[key] is None
        for key in ("r", "r_paper", "similarity", "similarity_exact", "similarity_half")
    )


def test_the_same_seed_gives_the_same_figures():
    experiment = get_experiment("gsn63-legendre-dst")
    timing = {"seconds", "peak_rss_mb"}
    first, second = (run_experiment(experiment, "random", seed=3, n=400) for _ in range(2))
    assert {k: v for k, v in first.items() if k not in timing} == {
        k: v for k, v in second.items() if k not in timing
    }


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


def test_the_demonstration_undoes_whole_pictures():
    data = gsn(1500, (6, 7), transform="permutation", random_state=0)
    est = LatentDomain((6, 7), random_state=0).fit(data.X)
    recovery = signal_recovery(data.latent, est.transform(data.X), data.grid)
    pictures = demo._on_whole_pictures(data, est, recovery.alignment)
    assert set(pictures) == {"a photograph", "digits"}
    for name, whole in demo._whole_pictures(data.grid).items():
        scrambled, recovered = pictures[name]
        assert scrambled.shape == recovered.shape == whole.shape
        assert np.corrcoef(recovered.ravel(), whole.ravel())[0, 1] > 0.99
        assert np.corrcoef(scrambled.ravel(), whole.ravel())[0, 1] < 0.95
