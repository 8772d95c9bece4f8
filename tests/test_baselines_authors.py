"""Baselines with the authors' settings: their data, their scores, their rows."""

from __future__ import annotations

import numpy as np
import pytest

from symlift import Grid, InputError
from symlift.datasets import gsn, image_crops
from symlift_paper.baselines.scoring import batch_score, sample_score, shift_correlations
from symlift_paper.baselines.spectra import adjacency, eigenbasis
from symlift_paper.baselines.topology import (
    correlation_distance,
    near_weights,
    principal_axes,
    read_columns,
)
from symlift_paper.first_table import table1
from symlift_paper.jobs import authors_jobs
from symlift_paper.registry import AUTHORS, EXPERIMENTS
from symlift_paper.runner import run_baseline


@pytest.fixture
def waves(rng):
    return rng.normal(size=(500, 9))


# -- scores ----------------------------------------------------------------------------------------


def test_correlations_of_all_shifts_and_mirror_images(waves):
    r = shift_correlations(waves, waves[:, ::-1])
    assert r.shape == (2, 500, 9)
    assert np.allclose(r[1, :, 0], 1.0)
    by_hand = np.corrcoef(waves[7], np.roll(waves[7, ::-1], 2))[0, 1]
    assert r[0, 7, 2] == pytest.approx(by_hand)
    assert not shift_correlations(waves, np.ones_like(waves)).any()


def test_a_window_without_signal_counts_nothing(waves):
    grid = Grid(9)
    moved = np.stack([np.roll(w, i % 9) for i, w in enumerate(-waves)])
    assert sample_score(waves, moved, grid) == pytest.approx(1.0)
    half = waves.copy()
    half[::2] *= 1e-9
    assert sample_score(half, moved, grid) == pytest.approx(0.5)


def test_images_are_scored_by_the_symmetries_of_the_square(rng):
    images = rng.normal(size=(120, 4, 4))
    turned = np.rot90(images, axes=(1, 2))
    assert sample_score(
        images.reshape(120, -1), turned.reshape(120, -1), Grid((4, 4))
    ) == pytest.approx(1.0)


def test_a_batch_has_one_alignment(waves):
    grid = Grid(9)
    assert batch_score(waves, -np.roll(waves[:, ::-1], 3, axis=1), grid) == pytest.approx(1.0)
    # each sample by another shift: perfect one by one, nothing together
    moved = np.stack([np.roll(w, i % 9) for i, w in enumerate(waves)])
    assert sample_score(waves, moved, grid) == pytest.approx(1.0)
    assert batch_score(waves, moved, grid) < 0.3
    with pytest.raises(InputError, match="no batch"):
        batch_score(waves[:100], moved[:100], grid)
    with pytest.raises(InputError, match="shifts of a line"):
        batch_score(waves, moved, Grid((3, 3)))


# -- data ------------------------------------------------------------------------------------------


def test_pulses_of_other_amplitudes_and_presence():
    one, two = (
        gsn(50, 15, noise=0.0, amplitudes=(a, a), random_state=3).latent for a in (1.0, 2.0)
    )
    assert np.allclose(two, 2 * one)
    assert not gsn(50, 15, presence=0.0, random_state=3).latent.any()
    spreads = [
        gsn(2000, 63, basis="legendre", presence=p, degrees=(2,)).latent.std(axis=1)
        for p in (0.25, 0.5)
    ]
    few, many = ((spread > 1e-6 * spread.max()).mean() for spread in spreads)
    # five slots, each inside with probability p (63 + 10.5) / 126
    assert few == pytest.approx(1 - (1 - 0.25 * 0.583) ** 5, abs=0.04)
    assert many == pytest.approx(1 - (1 - 0.5 * 0.583) ** 5, abs=0.04)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"amplitudes": (2.0, 1.0)}, "range"),
        ({"amplitudes": 3}, "range"),
        ({"presence": 1.5}, "probability"),
        ({"degrees": (4,)}, "degrees"),
        ({"degrees": ()}, "degrees"),
    ],
)
def test_pulses_that_cannot_be_made(options, word):
    with pytest.raises(InputError, match=word):
        gsn(10, 15, basis="legendre", **options)


def test_crops_at_the_middle(rng):
    images = rng.integers(1, 255, size=(5, 8, 9)).astype(np.uint8)
    crops = image_crops(images, (3, 4), 40, centred=True).latent.reshape(-1, 3, 4)
    middles = images[:, 2:5, 2:6] / np.float32(255)
    which = [np.flatnonzero([np.allclose(c, m) for m in middles]) for c in crops]
    assert all(len(w) == 1 for w in which)
    assert len(set(map(int, np.concatenate(which)))) > 1
    images[:, 2:5, 2:6] = 0
    with pytest.raises(InputError, match="blank"):
        image_crops(images, (3, 4), 40, centred=True)


# -- methods ---------------------------------------------------------------------------------------


def test_signs_of_the_solver_span_the_same(rng):
    A = adjacency(Grid(9))
    values, vectors = eigenbasis(A, "solver")
    ruled, basis = eigenbasis(A)
    assert np.allclose(values, ruled)
    assert np.allclose(np.abs(vectors), np.abs(basis))
    with pytest.raises(InputError, match="signs"):
        eigenbasis(A, "mine")


def test_distances_by_the_logarithm(rng):
    X = rng.normal(size=(400, 1)) * [1.0, -2.0, 0.0] + 0.5 * rng.normal(size=(400, 3))
    r = np.corrcoef(X, rowvar=False)
    assert np.allclose(correlation_distance(X, "log"), -np.log(np.abs(r)))
    with pytest.raises(InputError, match="distance"):
        correlation_distance(X, "mine")


def test_a_grid_point_without_pixels_reads_the_nearest():
    grid = Grid((3, 3))
    weights = near_weights(np.array([[0.0, 0.0], [0.0, 1.5]]), grid)
    assert np.allclose(weights.sum(axis=1), 1.0)
    # the far corner is four steps away from one pixel and 2.5 from the other
    assert np.allclose(weights[8], [0.0, 1.0])
    # (1, 1) is two steps away from one and 1.5 from the other
    assert weights[4, 1] > weights[4, 0] > 0


def test_principal_axes_turn_a_rectangle_back(rng):
    long = np.stack([np.linspace(-3, 3, 40), rng.normal(size=40)], axis=1)
    a = np.deg2rad(33)
    turned = long @ np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    assert np.allclose(np.abs(principal_axes(turned)), np.abs(principal_axes(long)))
    with pytest.raises(InputError, match="axes"):
        read_columns(np.arange(4), long[:4], Grid((2, 2)), axes="mine")


# -- rows ------------------------------------------------------------------------------------------


def test_the_authors_rows_are_those_of_the_paper():
    for name, row in AUTHORS.items():
        assert set(row.baselines) <= set(EXPERIMENTS[name].baselines)
        assert set(row.baselines) == set(EXPERIMENTS[name].paper.baselines)
        assert (row.seeds, row.scoring) == ((0,), "authors")
        if len(row.shape) == 1:
            assert (row.shape, row.baseline_n) == ((63,), 500_000)
            # columns are in order
            assert row.transform != "permutation"
        else:
            assert row.options == {"centred": True}
    assert {name for name, row in EXPERIMENTS.items() if row.paper.baselines} - set(AUTHORS) == {
        "gsn15-fft",
        "gsn15-discrete",
        "gsn15-continuous",
        "neural-gratings",
    }


def test_columns_in_order_make_graphical_lasso_good(rng):
    """What the paper has for it, 0.812, is far above what shuffled columns give."""
    here = run_baseline(AUTHORS["gsn63-gaussian-identity"], "glasso", n=20_000)
    assert here["r_paper"] > 0.65
    assert here["configurations"] == 11
    random = run_baseline(AUTHORS["gsn63-gaussian-identity"], "random", n=2_000)
    assert random["r_paper"] == pytest.approx(0.284, abs=0.05)


def test_topographic_ica_is_scored_by_batches():
    row = AUTHORS["gsn63-gaussian-identity"]
    settings = {"rate": 0.01, "pool": 3, "steps": 50}
    assert run_baseline(row, "tica", n=2_000, settings=settings)["r_paper"] < 0.15


def test_table_1_has_a_column_for_the_authors_settings():
    row = EXPERIMENTS["ising33-linear"]
    result = dict.fromkeys(("circular_correlation", "similarity_exact"))
    entries = {
        job.key: {
            "job": job.model_dump(mode="json") | {"experiment": job.experiment.name},
            "result": result | {"r": 0.1, "r_paper": 0.6, "seconds": 1.0},
        }
        for job in authors_jobs(row)
        if job.method == "covariance"
    }
    (line,) = table1([row], entries).rows
    assert line["measure"] == "r, covariance"
    assert repr(line["baseline, authors' settings"]) == "0.600"
    assert line["baseline here"] is None
