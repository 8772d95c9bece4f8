"""Recordings: NWB files as they are on disk, z-scores, mixing, synthetic populations, and a ring's
pictures.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, poisson

from symlift.core.grid import Grid
from symlift.core.model import LiftedModel
from symlift.datasets import (
    load_nwb_gratings,
    load_recording,
    mix_samples,
    ring_population,
    z_scores,
)
from symlift.errors import InputError
from symlift.report.ring import energy_distance, overlap, ring_panel

ORIENTATIONS = (0.0, 30.0, 60.0, 90.0, 120.0, 150.0)


def write_session(
    path: Path, gratings: bool = True, spontaneous: bool = True, units: bool = True
) -> list[np.ndarray]:
    """A small session as the Allen Institute writes them; returns the spike trains of its units."""
    pynwb = pytest.importorskip("pynwb")
    from pynwb.epoch import TimeIntervals

    rng = np.random.default_rng(0)
    session = pynwb.NWBFile(
        session_description="a session",
        identifier="test",
        session_start_time=datetime(2020, 1, 1, tzinfo=UTC),
    )
    device = session.create_device(name="probe")
    group = session.create_electrode_group(
        name="probeA", description="a probe", location="brain", device=device
    )
    for number, place in ((850, "VISp"), (860, "CA1")):
        session.add_electrode(id=number, location=place, group=group)
    trains = [np.sort(rng.uniform(0, 400, count)) for count in (2_000, 500, 4_000, 900, 800, 6_000)]
    if units:
        for name in ("peak_channel_id", "quality", "isi_violations", "presence_ratio"):
            session.add_unit_column(name=name, description=name)
        # VISp: good, good, noise; good CA1; VISp: too many violations, good
        rows = (
            (850, "good", 0.1),
            (850, "good", 0.2),
            (850, "noise", 0.1),
            (860, "good", 0.1),
            (850, "good", 0.9),
            (850, "good", 0.1),
        )
        for train, (channel, quality, violations) in zip(trains, rows, strict=True):
            session.add_unit(
                spike_times=train,
                peak_channel_id=channel,
                quality=quality,
                isi_violations=violations,
                presence_ratio=0.99,
            )
    if gratings:
        shown = TimeIntervals(name="static_gratings_presentations", description="gratings")
        for name in ("orientation", "spatial_frequency"):
            shown.add_column(name=name, description=name)
        for k in range(60):
            blank = k % 10 == 9
            shown.add_row(
                start_time=k * 0.25,
                stop_time=k * 0.25 + 0.25,
                orientation=np.nan if blank else ORIENTATIONS[k % 6],
                spatial_frequency=np.nan if blank else (0.04, 0.08)[k % 2],
            )
        session.add_time_intervals(shown)
    if spontaneous:
        quiet = TimeIntervals(name="spontaneous_presentations", description="nothing")
        for start in (100.0, 200.0):
            quiet.add_row(start_time=start, stop_time=start + 50)
        session.add_time_intervals(quiet)
    with pynwb.NWBHDF5IO(path, "w") as file:
        file.write(session)
    return trains


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    path = tmp_path_factory.mktemp("nwb") / "session.nwb"
    return path, write_session(path)


def test_counts_of_good_units_in_the_window(session):
    path, trains = session
    data = load_nwb_gratings(path, unit="counts")
    kept = [k for k in range(60) if k % 10 != 9 and k % 2 == 0]
    expected = [
        [
            np.sum((train >= 0.25 * k + 0.08) & (train < 0.25 * k + 0.33))
            for train in [trains[0], trains[1], trains[5]]
        ]
        for k in kept
    ]
    assert np.array_equal(data.X, expected)
    assert np.allclose(data.latent, [2 * np.deg2rad(ORIENTATIONS[k % 6]) for k in kept])
    assert data.transform is None
    assert data.periodic == (True,)
    assert np.allclose(load_nwb_gratings(path, unit="rates").X, data.X / 0.25)
    assert load_nwb_gratings(path, unit="counts", spatial_frequency=None).X.shape == (54, 3)


def test_z_scores_against_spontaneous_rates(session):
    path, trains = session
    counts, scores = (load_nwb_gratings(path, unit=unit).X for unit in ("counts", "z-scores"))
    quiet = [
        np.sum((t >= 100) & (t < 150)) + np.sum((t >= 200) & (t < 250))
        for t in [trains[0], trains[1], trains[5]]
    ]
    assert np.allclose(scores, z_scores(counts, np.array(quiet) / 100 * 0.25), atol=1e-5)
    kept = np.sort(np.argsort(-scores.var(axis=0))[:2])
    assert np.array_equal(load_nwb_gratings(path, most_units=2).X, scores[:, kept])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"structure": "LGd"}, "CA1, VISp"),
        ({"structure": "CA1"}, "one good unit"),
        ({"most_units": 1}, "at least 2"),
        ({"stimulus": "drifting_gratings"}, "static_gratings"),
        ({"spatial_frequency": 0.32}, "0.04, 0.08"),
        ({"unit": "spikes"}, "counts, rates, z-scores"),
        ({"window": 0.0}, "positive"),
    ],
)
def test_what_is_not_there_is_answered_by_what_is(session, arguments, said):
    with pytest.raises(InputError, match=said) as error:
        load_nwb_gratings(session[0], **arguments)
    assert "\n" not in str(error.value)


def test_files_that_are_not_what_they_say(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        load_nwb_gratings(tmp_path / "none.nwb")
    (tmp_path / "text.nwb").write_text("not HDF5")
    with pytest.raises(InputError, match="not an HDF5 file"):
        load_nwb_gratings(tmp_path / "text.nwb")
    for missing, said in (
        ("units", "no units table"),
        ("gratings", "no presentations"),
        ("spontaneous", "unit='counts'"),
    ):
        path = tmp_path / f"{missing}.nwb"
        write_session(path, **{missing: False})
        with pytest.raises(InputError, match=said):
            load_nwb_gratings(path)


def test_extracted_arrays(tmp_path, monkeypatch):
    monkeypatch.delenv("SYMLIFT_DATA", raising=False)
    with pytest.raises(InputError, match="SYMLIFT_DATA"):
        load_recording("head-direction")
    with pytest.raises(InputError, match="drifting-gratings"):
        load_recording("grid cells")
    with pytest.raises(InputError, match="does not exist"):
        load_recording("head-direction", tmp_path)
    np.savez(
        tmp_path / "head_direction_mouse28.npz",
        X=np.ones((3, 4)),
        angles=np.array([0.0, 90.0, 350.0]),
        period=360.0,
    )
    data = load_recording("head-direction", tmp_path)
    assert np.allclose(data.latent, np.deg2rad([0, 90, 350]))
    (tmp_path / "head_direction_mouse28.npz").write_bytes(b"PK\x03\x04 no")
    with pytest.raises(InputError, match="damaged"):
        load_recording("head-direction", tmp_path)


@given(st.integers(0, 500), st.floats(0, 100))
def test_z_scores_are_finite_and_monotone(count, expected):
    z = z_scores([[count], [count + 1]], [expected])
    assert np.isfinite(z).all()
    assert np.abs(z).max() <= 8
    assert z[1, 0] >= z[0, 0]


def test_z_scores_by_the_mid_distribution(rng):
    assert z_scores([[4.0]], [2.5])[0, 0] == pytest.approx(
        norm.ppf(poisson.cdf(3, 2.5) + poisson.pmf(4, 2.5) / 2)
    )
    drawn = z_scores(rng.poisson(6.0, size=(50_000, 1)), [6.0])
    assert abs(drawn.mean()) < 0.02
    assert abs(drawn.std() - 1) < 0.03


def test_mixing_is_exact_in_distribution(rng):
    """Mean K p E[x], covariance K (p E[xxᵀ] - p² E[x]E[x]ᵀ), and the whole law of the number of
    samples that are kept.
    """
    X, K, p, n = rng.gamma(2.0, size=(30, 3)), 20, 0.5, 200_000
    mixed = mix_samples(X, n, random_state=1)
    mean, second = X.mean(axis=0), X.T @ X / len(X)
    covariance = K * (p * second - p**2 * np.outer(mean, mean))
    error = np.sqrt(np.diag(covariance) / n)
    assert np.all(np.abs(mixed.mean(axis=0) - K * p * mean) < 5 * error)
    assert np.allclose(np.cov(mixed.T), covariance, rtol=0.03, atol=0.03 * covariance.max())
    kept = (
        np.bincount(
            mix_samples(np.ones((4, 1)), n, random_state=2)[:, 0].astype(int), minlength=K + 1
        )
        / n
    )
    from scipy.stats import binom

    assert np.abs(kept - binom.pmf(np.arange(K + 1), K, p)).max() < 0.006
    # each row is drawn as often as any other
    shares = mix_samples(np.eye(4), 50_000, samples=1, probability=1.0, random_state=3).mean(axis=0)
    assert np.allclose(shares, 0.25, atol=0.01)


def test_mixing_refuses_what_it_cannot_do():
    for arguments in ({"n": 0}, {"n": 3, "samples": 0}, {"n": 3, "probability": 0.0}):
        with pytest.raises(InputError):
            mix_samples(np.eye(3), **arguments)


def test_ring_population_is_tuned_and_repeatable():
    data, again = (
        ring_population(4_000, 20, gain=0.0, movement=0.0, random_state=5) for _ in range(2)
    )
    assert np.array_equal(data.X, again.X)
    tuning = np.abs(
        np.mean((data.X - data.X.mean(axis=0)) * np.exp(1j * data.latent)[:, None], axis=0)
    )
    assert (tuning > 0.1 * data.X.mean(axis=0)).all()
    few = ring_population(300, 8, stimuli=4, random_state=0)
    assert len(np.unique(few.latent)) == 4
    for arguments in ({"units": 2}, {"rate": -1.0}, {"stimuli": 2}):
        with pytest.raises(InputError):
            ring_population(10, **arguments)


def test_overlap_and_energy_distance(rng):
    a, b = rng.normal(size=(2, 200, 3))
    assert overlap(a, b) == pytest.approx(1, abs=0.1)
    assert overlap(a, b + 20) == 0
    assert abs(energy_distance(a, b)) < 0.1
    # far clouds: twice the distance between them, less the spread within
    assert energy_distance(a, b + np.array([100, 0, 0])) == pytest.approx(200, rel=0.05)
    with pytest.raises(InputError):
        overlap(a, b[:, :2])


def test_ring_panel_moves_a_true_ring_onto_itself(rng):
    """A perfect ring: moved samples mix with the real ones, unmoved ones do not; labels colour,
    whatever way round they turn.
    """
    n, N = 240, 12
    angle = rng.uniform(0, 2 * np.pi, n)
    X = np.cos(angle[:, None] - 2 * np.pi * np.arange(N) / N) + 0.05 * rng.normal(size=(n, N))
    model = LiftedModel.from_lifting_map(np.eye(N), Grid((N,), periodic=True))
    panel = ring_panel(model, X, labels=-angle)
    assert float(panel["overlap"]) > 0.85
    assert float(panel["unmoved"]) < 0.1
    assert panel["polar"].count("<circle") == n + 2
    assert panel["transport"].count("<circle") == 2 * n
    with pytest.raises(InputError, match="one angle"):
        ring_panel(model, X, labels=angle[:5])
    with pytest.raises(InputError, match="of a ring"):
        ring_panel(LiftedModel.from_lifting_map(np.eye(N), Grid((N,))), X)


def test_report_draws_a_ring_with_labels(tmp_path, rng):
    from symlift.report import write_report
    from symlift.storage.model_file import save_model

    N = 12
    angle = rng.uniform(0, 2 * np.pi, 40)
    X = np.cos(angle[:, None] - 2 * np.pi * np.arange(N) / N)
    save_model(LiftedModel.from_lifting_map(np.eye(N), Grid((N,), periodic=True)), tmp_path)
    for label, said in (
        (angle, "the angle that was given"),
        (np.full(40, np.nan), "the phase that was found"),
    ):
        np.savez(tmp_path / "samples.npz", observed=X, row=np.arange(40), label=label)
        page = write_report(tmp_path).read_text()
        assert 'id="ring"' in page
        assert said in page
