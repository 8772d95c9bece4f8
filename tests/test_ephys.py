"""Which wire is which electrode: fields and sources, contacts, checks; on a small recording made by
SpikeInterface's generator.
"""

from __future__ import annotations

import copy
import importlib.util
import json
import re
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.signal import butter, sosfiltfilt
from scipy.spatial.distance import cdist, pdist
from typer.testing import CliRunner

from symlift import InputError
from symlift.cli import app
from symlift.cli.probe import _confidence_lines
from symlift.ephys import (
    MapVerdict,
    ProbeCheck,
    ProbeMatch,
    check_probe,
    match_probe,
    read_kilosort,
)
from symlift.ephys.arrange import _shifted, arrange_channels, arranged, with_neighbours_anew
from symlift.ephys.channels import Channels, read_channels
from symlift.ephys.check import find_exchanges
from symlift.ephys.events import events_of
from symlift.ephys.fields import Fields, Sources, _model, adjust, fit_sources, residuals
from symlift.ephys.judged import judge_channels, rejudged
from symlift.ephys.levels import correlate, levels_of
from symlift.ephys.shanks import start_by_shanks
from symlift.ephys.shifts import moved_rows, moved_whole, ranked, rebuilt
from symlift.ephys.slips import beyond, unslipped
from symlift.ephys.whiten import flat_spectrum
from symlift.ephys.wiring import Wiring, contact_confidence, match_contacts
from symlift.maps.faults import Fault, faults_of
from symlift.maps.judge import judge_map
from symlift.maps.motions import motions_of
from symlift.solvers.fast.place.points import in_steps, place_on_points, point_slots

SMALL = Path(__file__).parent / "fixtures" / "ephys_4x4.npz"
runner = CliRunner()


@dataclass
class Probe:
    """As much of a probe as is needed."""

    contact_positions: np.ndarray
    device_channel_indices: np.ndarray | None = None

    def copy(self) -> Probe:
        return copy.deepcopy(self)

    def set_device_channel_indices(self, indices: np.ndarray) -> None:
        self.device_channel_indices = np.asarray(indices)


@dataclass
class Recording:
    """As much of a recording as is needed: two segments, an hour or a minute."""

    traces: np.ndarray
    sampling_frequency: float
    locations: np.ndarray | None
    channel_ids: list[Any] = field(default_factory=list)

    def get_num_segments(self) -> int:
        return 2

    def get_num_samples(self, segment_index: int) -> int:
        return len(self._segment(segment_index))

    def _segment(self, index: int) -> np.ndarray:
        half = len(self.traces) // 2
        return self.traces[:half] if index == 0 else self.traces[half:]

    def get_traces(self, segment_index: int, start_frame: int, end_frame: int) -> np.ndarray:
        return self._segment(segment_index)[start_frame:end_frame]

    def has_probe(self) -> bool:
        return self.locations is not None

    def get_channel_locations(self) -> np.ndarray:
        assert self.locations is not None
        return self.locations


@pytest.fixture(scope="module")
def small() -> dict[str, np.ndarray]:
    with np.load(SMALL) as file:
        return {name: file[name] for name in file.files}


def recorded(small: dict[str, np.ndarray], swap: tuple[int, int] | None = None) -> Recording:
    contact = small["contact"].copy()
    if swap is not None:
        contact[list(swap)] = contact[list(swap[::-1])]
    ids = [f"ch{i}" for i in range(len(contact))]
    return Recording(small["traces"], float(small["rate"]), small["positions"][contact], ids)


@pytest.fixture(scope="module")
def channels(small) -> Channels:
    traces, length = small["traces"], round(float(small["rate"]))
    return read_channels(
        lambda: (traces[i : i + length] for i in range(0, len(traces), length)),
        float(small["rate"]),
    )


def in_place(found: np.ndarray, truth: np.ndarray, positions: np.ndarray) -> float:
    """Share of the channels on their contact, up to motions that the geometry has."""
    return max(
        float(np.mean(to[truth] == found)) for to in motions_of(in_steps(positions)[0], truth)
    )


# -- sources ---------------------------------------------------------------------------------------


def sources(rng: np.random.Generator, points: np.ndarray, count: int = 60) -> Sources:
    P = points.shape[1]
    theta = np.zeros((count, 1 + P + P * (P + 1) // 2 + 1))
    theta[:, 0] = rng.uniform(4, 6, count)
    theta[:, 1 : 1 + P] = points[rng.integers(len(points), size=count)] + rng.normal(
        0, 0.4, (count, P)
    )
    rows, columns = np.tril_indices(P)
    theta[:, 1 + P : -1] = np.where(rows == columns, rng.uniform(0.5, 1.0, (count, len(rows))), 0.1)
    theta[:, -1] = rng.uniform(0.3, 1.5, count)
    return Sources(theta, P)


def fields_of(
    rng: np.random.Generator, true: Sources, places: np.ndarray, noise: float = 0.03
) -> Fields:
    amplitude = np.exp(true.log_amplitude(places))
    error = np.full(amplitude.shape, 1.0)
    return Fields(
        amplitude * np.exp(noise * rng.normal(size=error.shape))
        + 0.3 * rng.normal(size=error.shape),
        error,
    )


@pytest.mark.parametrize("dimension", [1, 2])
def test_derivatives_of_a_field_are_finite_differences(dimension):
    rng = np.random.default_rng(0)
    places = rng.normal(size=(5, dimension)) * 2
    some, error, h = sources(rng, places, 3), np.full((3, 5), 2.0), 1e-6
    _, by_theta, by_place = _model(some, places, error)
    for k in range(some.theta.shape[1]):
        ends = [
            Sources(some.theta + s * h * np.eye(some.theta.shape[1])[k], dimension) for s in (1, -1)
        ]
        slope = (_model(ends[0], places, error)[0] - _model(ends[1], places, error)[0]) / (2 * h)
        np.testing.assert_allclose(by_theta[..., k], slope, atol=1e-6)
    for k in range(dimension):
        step = h * np.eye(dimension)[k]
        slope = (_model(some, places + step, error)[0] - _model(some, places - step, error)[0]) / (
            2 * h
        )
        np.testing.assert_allclose(by_place[..., k], slope, atol=1e-6)


def test_sources_are_found_and_channels_moved_back_to_where_they_were():
    rng = np.random.default_rng(1)
    points = np.stack(np.meshgrid(np.arange(6.0), np.arange(5.0)), axis=-1).reshape(-1, 2)
    true = sources(rng, points)
    fields = fields_of(rng, true, points)
    found = fit_sources(fields, points)
    assert np.median(np.linalg.norm(found.theta[:, 1:3] - true.theta[:, 1:3], axis=1)) < 0.1
    assert np.sqrt(np.mean(residuals(fields, found, points) ** 2)) < 1.2
    shaken = points + rng.normal(0, 0.3, points.shape)
    moved, _ = adjust(fields, shaken, fit_sources(fields, shaken))
    laid = np.c_[moved, np.ones(len(moved))]
    error = laid @ np.linalg.lstsq(laid, points, rcond=None)[0] - points
    assert np.sqrt(np.mean(error**2)) < 0.1


def test_gaps_on_a_line_are_found():
    rng = np.random.default_rng(2)
    points = np.arange(16.0)[:, None]
    living = np.setdiff1d(np.arange(16), [4, 11])
    fields = fields_of(rng, sources(rng, points), points[living])
    start = np.arange(14)
    assert in_place(start, living, points) < 0.5
    found = arrange_channels(fields, points, [start])
    assert in_place(found.slot, living, points) == 1.0
    assert found.cost <= arranged(fields, points, living).cost + 1e-6


# -- given points ----------------------------------------------------------------------------------


# -- neurons and slips -----------------------------------------------------------------------------


def test_overlapping_neurons_are_told_apart_and_measured():
    rng = np.random.default_rng(0)
    rate, seconds, d = 5000.0, 20, 6
    time_ms = np.arange(-10, 15) / rate * 1000
    shape = -np.exp(-0.5 * (time_ms / 0.3) ** 2) + 0.4 * np.exp(-0.5 * ((time_ms - 1.0) / 0.5) ** 2)
    amplitude = np.array(
        [
            [60, 40, 20, 8, 3, 1],
            [5, 25, 60, 50, 20, 6],
            [1, 3, 8, 22, 40, 70],
            [30, 45, 30, 9, 2, 1],
        ]
    )
    x = rng.normal(0, 2, (round(seconds * rate), d)).astype(np.float32)
    for one in amplitude:
        for t in rng.integers(20, len(x) - 20, 20 * seconds):
            x[t - 10 : t + 15] += shape[:, None] * one

    def parts():
        return (x[i : i + 5000] for i in range(0, len(x), 5000))

    levels = levels_of(parts)
    fields = events_of(parts, levels, correlate(parts, levels), np.arange(d), rate)
    assert fields.relative < 0.08  # neurons, not groups of events
    largest = fields.amplitude / fields.amplitude.max(axis=1, keepdims=True)
    for one in amplitude / amplitude.max(axis=1, keepdims=True):
        assert np.abs(largest - one).max(axis=1).min() < 0.04


@pytest.mark.parametrize(("added", "band"), [(0.0, (1300, 1900)), (1e-5, (950, 1300))])
def test_a_low_passed_spectrum_is_flattened_down_to_what_rounding_leaves(added, band):
    rng = np.random.default_rng(0)
    rate = 25_000.0
    sos = butter(5, 300, "low", fs=rate, output="sos")
    x = sosfiltfilt(sos, rng.normal(0, 20, (round(6 * rate), 4)), axis=0)
    x = (x + added * rng.normal(0, 1, x.shape)).astype(np.float32)

    def parts():
        return (x[i : i + 25_000] for i in range(0, len(x), 25_000))

    white = flat_spectrum(parts, levels_of(parts), np.arange(4), rate)
    assert band[0] < white.band < band[1]


def staggered(rows: int) -> np.ndarray:
    """Two contacts in each row, every other row farther right."""
    return np.array([(0.8 * r, 0.6 * (2 * c + r % 2)) for r in range(rows) for c in (0, 1)])


def test_a_slipped_part_of_a_staggered_probe_goes_back():
    rng = np.random.default_rng(1)
    points = staggered(12)
    true = sources(rng, points, 50)
    fields = fields_of(rng, true, points)
    # the last rows are farther on by a motion that keeps most of the probe
    slot = np.arange(20)
    some = fields.of(slot)
    wide = beyond(points)
    assert len(wide.points) > len(points)
    start = next(
        np.where(slot < 12, slot, motion[slot])
        for motion in wide.motion
        if (motion[slot[12:]] >= 0).all()
        and (motion[slot[12:]] < len(points)).all()
        and not np.isin(motion[slot[12:]], slot[:12]).any()
        and (motion[slot] != slot).all()
    )
    found = unslipped(some, points, start, 60.0)
    assert in_place(found, slot, points) == 1.0
    assert in_place(start, slot, points) < 1.0


def test_a_row_moves_up_to_each_gap_and_nothing_else_does():
    line = np.arange(6.0)[:, None]
    moved = {tuple(slot.tolist()) for slot in moved_rows(line, np.array([0, 1, 2, 4, 5]))}
    assert moved == {
        (1, 2, 3, 4, 5),
        (0, 2, 3, 4, 5),
        (0, 1, 3, 4, 5),
        (0, 1, 2, 3, 5),
        (0, 1, 2, 3, 4),
    }
    # on a staggered probe the left and the right contacts are rows, and pairs across
    points = staggered(4)
    living = np.array([0, 1, 2, 3, 4, 6, 7])
    for slot in moved_rows(points, living):
        assert len(np.unique(slot)) == len(living)
        assert 5 in slot  # the gap is taken


def test_neighbours_at_each_others_contacts_are_assigned_anew():
    rng = np.random.default_rng(4)
    points = staggered(14)
    truth = np.setdiff1d(np.arange(28), [9])
    fields = fields_of(rng, sources(rng, points, 50), points[truth])
    wrong = truth.copy()
    for a, b in ((11, 12), (13, 14), (15, 16)):  # three rows with left and right exchanged
        wrong[[a, b]] = wrong[[b, a]]
    best = ranked(fields, points, wrong, rebuilt(fields, points, wrong), 60.0)[0]
    assert best.gain > 0
    assert (best.slot != truth).sum() < (wrong != truth).sum()
    assert in_place(arrange_channels(fields, points, [wrong]).slot, truth, points) == 1.0


def test_a_whole_probe_that_is_off_by_a_row_goes_back():
    rng = np.random.default_rng(5)
    points = staggered(14)
    truth = np.setdiff1d(np.arange(28), [1, 10, 19, 26, 27])
    fields = fields_of(rng, sources(rng, points, 50), points[truth])
    left_as_it_is, shifted = [], []
    for off in moved_whole(fields, points, truth):
        near = with_neighbours_anew(fields, points, arranged(fields, points, off))
        left_as_it_is.append(in_place(near[0].slot, truth, points))
        shifted.append(in_place(_shifted(fields, points, *near)[0].slot, truth, points))
    assert min(left_as_it_is) < 0.2
    assert any(a < 0.2 and b == 1.0 for a, b in zip(left_as_it_is, shifted, strict=True))


def test_channels_that_could_as_well_be_elsewhere_together_are_not_sure():
    rng = np.random.default_rng(0)
    points = np.arange(16.0)[:, None]
    truth = np.setdiff1d(np.arange(16), [7])
    few = fields_of(rng, sources(rng, points, 4), points[truth])
    found = arrange_channels(few, points, [truth])
    rivals = [arranged(few, points, slot) for slot in moved_rows(points, found.slot)]
    nearest = min(rivals, key=lambda one: one.cost)
    moved, worse = nearest.slot != found.slot, nearest.cost - found.cost
    assert moved.sum() > 4
    assert 0 <= worse < 8
    assert found.margin[moved].max() <= worse + 0.5
    alone = contact_confidence(few, points, replace(found, margin=np.array(np.inf)))
    assert alone[moved].max() > 0.6  # by itself, such a channel belongs where it is
    assert contact_confidence(few, points, found)[moved].max() < 0.5
    many = fields_of(rng, sources(rng, points, 80), points[truth])
    assert contact_confidence(many, points, arrange_channels(many, points, [truth])).min() > 0.7


def test_columns_take_points_of_any_arrangement():
    rng = np.random.default_rng(3)
    points = rng.uniform(0, 5, (24, 2)) * np.array([2.0, 1.0])
    slots = point_slots(in_steps(points)[0])
    apart = np.linalg.norm(points[:, None] - points[None], axis=-1)
    order = rng.permutation(24)
    c = np.exp(-((apart / 2.5) ** 2))[np.ix_(order, order)]
    assert np.mean(place_on_points(c, slots)[0][1] == order) > 0.95


def test_motions_of_a_square_and_of_a_line_with_its_end_missing():
    square = np.stack(np.meshgrid(np.arange(3.0), np.arange(3.0)), axis=-1).reshape(-1, 2)
    assert len(motions_of(square, np.arange(9))) == 8
    line = np.arange(5.0)[:, None]
    assert len(motions_of(line, np.arange(5))) == 2
    assert len(motions_of(line, np.arange(4))) == 4  # and each of them one contact on
    np.testing.assert_array_equal(motions_of(line, np.arange(5))[0], np.arange(5))


# -- a recording -----------------------------------------------------------------------------------


def test_levels_and_correlations_do_not_depend_on_parts(small):
    traces = small["traces"][:4000]
    whole = levels_of(lambda: iter([traces]))
    np.testing.assert_allclose(
        whole.spread, levels_of(lambda: iter([traces[:2000], traces[2000:]])).spread
    )
    c = correlate(lambda: iter([traces]), whole)
    np.testing.assert_allclose(np.diag(c), 1)
    assert np.abs(c - c.T).max() < 1e-6


def test_the_dead_channel_is_set_aside_and_all_others_are_placed(small, channels):
    dead = int(small["dead"])
    np.testing.assert_array_equal(channels.which("silent"), [dead])
    found = match_contacts(channels, small["positions"])
    truth = small["contact"][channels.living]
    assert found.contact[dead] == -1
    assert found.confidence[dead] == 0
    assert in_place(found.contact[channels.living], truth, small["positions"]) == 1.0
    assert found.confidence[channels.living].min() > 0.5


def test_a_right_map_raises_no_alarm_and_exchanges_are_found(small, channels):
    positions, count = small["positions"][small["contact"]], len(small["contact"])
    assert find_exchanges(channels, positions, np.arange(count)).groups == ()
    claimed = np.arange(count)
    pairs = [tuple(channels.living[i : i + 2].tolist()) for i in (0, 5, 9)]
    for a, b in pairs:
        claimed[[a, b]] = claimed[[b, a]]
    exchanges = find_exchanges(channels, positions, claimed)
    assert sorted(tuple(sorted(one.channels)) for one in exchanges.groups) == pairs
    assert all(one.confidence > 0.5 for one in exchanges.groups)
    assert exchanges.confidence > 0.5
    assert exchanges.moved == 6


# with free contacts at the end, a start that moves a channel there is out of bounds
@pytest.mark.parametrize("gaps", [(5, 17), (22, 23)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_exchanges_of_most_channels_of_a_line_with_gaps_are_named(seed, gaps):
    rng = np.random.default_rng(seed)
    points = np.arange(24.0)[:, None]
    truth = np.setdiff1d(np.arange(24), gaps)
    fields = fields_of(rng, sources(rng, points, 40), points[truth])
    living = np.arange(len(truth))
    c = np.exp(-(((points[truth] - points[truth].T) / 2.5) ** 2))
    channels = Channels(np.full(22, "", dtype="<U9"), np.full(22, -1), living, c, fields)
    pairs = rng.permutation(22)[:16].reshape(-1, 2)
    claimed = truth.copy()
    for a, b in pairs:
        claimed[[a, b]] = claimed[[b, a]]
    exchanges = find_exchanges(channels, points, claimed).groups
    assert {frozenset(one.channels) for one in exchanges} == {frozenset(p.tolist()) for p in pairs}


def test_probes_are_matched_and_checked_through_a_recording(small):
    recording = recorded(small)
    found = match_probe(recording, Probe(small["positions"]))
    device = found.probe.device_channel_indices
    living = np.setdiff1d(np.arange(16), [int(small["dead"])])
    contact = np.array([int(np.flatnonzero(device == i)[0]) for i in living])
    assert in_place(contact, small["contact"][living], small["positions"]) == 1.0
    assert sorted(device) == list(range(16))  # the dead one has what is left
    assert found.confidence[int(small["dead"])] == 0
    assert check_probe(recording).ok
    a, b = (int(i) for i in living[[3, 8]])
    wrong = check_probe(recorded(small, (a, b)))
    assert isinstance(wrong, ProbeCheck)
    assert not wrong.ok
    assert wrong.swapped == ((f"ch{a}", f"ch{b}"),)
    assert wrong.silent == (f"ch{int(small['dead'])}",)
    # the same through a wired probe instead of the recording's own map
    device = np.argsort(small["contact"])
    assert check_probe(recorded(small, (a, b)), Probe(small["positions"], device)).ok


def test_copies_and_floating_channels_are_named(small):
    recording = recorded(small)
    dead, rng = int(small["dead"]), np.random.default_rng(0)
    copied, original, floating = (i for i in (14, 2, 7))
    assert dead not in (copied, original, floating)
    traces = recording.traces.copy()
    traces[:, copied] = traces[:, original]
    traces[:, floating] = rng.normal(0, 200, len(traces))
    recording.traces = traces
    found = check_probe(recording)
    assert found.duplicated == ((f"ch{copied}", f"ch{original}"),)
    assert found.floating == (f"ch{floating}",)
    assert found.silent == (f"ch{dead}",)


def test_the_example_checks_and_wires_and_draws(small, tmp_path, capsys):
    path = Path(__file__).parents[1] / "examples" / "which_wire_is_which_electrode.py"
    spec = importlib.util.spec_from_file_location("which_wire", path)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    found = example.main(recorded(small, (2, 9)), Probe(small["positions"]), tmp_path)
    assert found["check"].swapped == (("ch2", "ch9"),)
    assert sorted(found["match"].probe.device_channel_indices) == list(range(16))
    assert (tmp_path / "electrodes.png").stat().st_size > 1000
    assert "the map is not right" in capsys.readouterr().out


def test_what_cannot_be_done_is_refused_in_one_line(small):
    recording = recorded(small)
    for probe, message in (
        (Probe(small["positions"][:3]), "four are the fewest"),
        (Probe(np.zeros((16, 2))), "same position"),
        (Probe(small["positions"][:12]), "15 living channels, but 12 contacts"),
    ):
        with pytest.raises(InputError, match=message):
            match_probe(recording, probe)
    with pytest.raises(InputError, match="not wired"):
        check_probe(recording, Probe(small["positions"]))
    with pytest.raises(InputError, match="not wired to the 16 channels"):
        check_probe(recording, Probe(small["positions"], np.zeros(16, dtype=int)))
    with pytest.raises(InputError, match="no probe"):
        check_probe(Recording(small["traces"], float(small["rate"]), None, list(range(16))))
    with pytest.raises(InputError, match="0 s long"):
        match_probe(
            Recording(small["traces"][:300], float(small["rate"]), None), Probe(small["positions"])
        )
    gaps = small["traces"].astype(float)
    gaps[5, 5] = np.nan
    with pytest.raises(InputError, match="NaN or infinity between 0 and 1 s"):
        match_probe(Recording(gaps, float(small["rate"]), None), Probe(small["positions"]))
    noise = np.random.default_rng(0).normal(size=small["traces"].shape)
    with pytest.raises(InputError, match="go with another one"):
        match_probe(Recording(noise, float(small["rate"]), None), Probe(small["positions"]))


@pytest.mark.parametrize("command", ["check", "match", "recover"])
def test_commands_have_an_example(command):
    shown = runner.invoke(app, ["probe", command, "--help"])
    assert shown.exit_code == 0
    assert "Example: symlift probe" in shown.output


def test_without_the_extra_a_command_says_what_to_install(monkeypatch):
    monkeypatch.setattr("symlift.cli.probe.find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip install"):
        runner.invoke(app, ["probe", "check", "nothing"], catch_exceptions=False)


# -- blocks ----------------------------------------------------------------------------------------


def claims(small: dict[str, np.ndarray], to: np.ndarray) -> Recording:
    """The small recording with a map on which channel i has the place of channel to[i]."""
    recording = recorded(small)
    assert recording.locations is not None
    recording.locations = recording.locations[to]
    return recording


def by_contact(small: dict[str, np.ndarray], contacts: np.ndarray) -> np.ndarray:
    """A map, from the contact that each contact's channel is said to be on."""
    channel = np.argsort(small["contact"])
    return channel[contacts[small["contact"]]]


def same_distances(one: np.ndarray, other: np.ndarray, living: np.ndarray) -> bool:
    return bool(np.abs(pdist(one[living]) - pdist(other[living])).max() < 1e-6)


@pytest.fixture
def living(small) -> np.ndarray:
    return np.setdiff1d(np.arange(16), [int(small["dead"])])


@pytest.fixture
def read_once(channels, monkeypatch):
    """Checks of the small recording share one reading of its traces."""
    monkeypatch.setattr("symlift.ephys.probes.read_channels", lambda *_: channels)


def test_a_bank_in_reverse_is_named_and_put_right(small, living, read_once):
    to = np.arange(16)
    to[8:16] = to[8:16][::-1]
    check = check_probe(claims(small, to))
    assert check.verdict is MapVerdict.WRONG
    assert not check.ok
    assert [one.kind for one in check.faults] == ["reversed"]
    assert check.faults[0].sentence == "channels ch8 to ch15 are in reverse order"
    assert check.probability > 0.9
    assert check.swapped == ()
    assert same_distances(check.positions, small["positions"][small["contact"]], living)


@pytest.mark.parametrize("fault", ["shifted", "exchanged", "snake"])
def test_other_faults_of_blocks_are_repaired(small, living, read_once, fault):
    to = np.arange(16)
    if fault == "shifted":
        to[5:] = np.roll(to[5:], -1)
    elif fault == "exchanged":
        to[:4], to[12:] = np.arange(12, 16), np.arange(4)
    else:
        contacts = np.arange(16).reshape(4, 4)
        contacts[1::2] = contacts[1::2, ::-1]
        to = by_contact(small, contacts.ravel())
    check = check_probe(claims(small, to))
    assert check.verdict is MapVerdict.WRONG
    assert len(check.faults) + len(check.swapped) <= 2
    assert same_distances(check.positions, small["positions"][small["contact"]], living)


def test_a_map_that_nothing_explains_is_wired_anew(small, living, read_once):
    to = np.random.default_rng(3).permutation(16)
    check = check_probe(claims(small, to))
    assert check.verdict is MapVerdict.WRONG
    assert same_distances(check.positions, small["positions"][small["contact"]], living)


def test_another_layout_is_named(small, living, read_once):
    line = Probe(np.c_[np.zeros(16), 20.0 * np.arange(16)], np.arange(16))
    true = Probe(small["positions"], np.argsort(small["contact"]))
    check = check_probe(recorded(small), line, layouts=[true])
    assert [one.kind for one in check.faults] == ["layout"]
    assert same_distances(check.positions, small["positions"][small["contact"]], living)
    ranks = match_probe(recorded(small), [line, true])
    assert [one.number for one in ranks] == [1, 0]
    assert ranks[0].probability > 0.95
    assert ranks[0].faults == ()
    np.testing.assert_array_equal(
        ranks[0].probe.device_channel_indices, true.device_channel_indices
    )


def test_anchors_tell_what_traces_cannot(small, living, read_once):
    """The square turned as a whole keeps every distance."""
    turned = np.arange(16).reshape(4, 4)[::-1, ::-1].ravel()
    recording = claims(small, by_contact(small, turned))
    plain = check_probe(recording)
    assert plain.ok
    assert len(plain.whole) == 7
    wired = Probe(small["positions"], np.argsort(turned[small["contact"]]))
    known = {f"ch{i}": int(small["contact"][i]) for i in (1, 2)}
    check = check_probe(recorded(small), wired, anchors=known)
    assert [one.kind for one in check.faults] == ["turned"]
    assert "180" in check.faults[0].sentence
    np.testing.assert_allclose(check.positions, small["positions"][small["contact"]])
    assert check.whole == ()
    match = match_probe(recorded(small), Probe(small["positions"]), anchors=known)
    device = match.probe.device_channel_indices
    assert all(device[small["contact"][i]] == i for i in living)
    with pytest.raises(InputError, match="no channel of this id"):
        check_probe(recording, anchors={"none": 1})
    with pytest.raises(InputError, match="numbers start at 0"):
        check_probe(recording, anchors={"ch1": 16})


def shanks_of_twelve(apart: float, count: int = 2, seed: int = 0) -> tuple[Channels, np.ndarray]:
    """Fields of neurons on shanks of twelve contacts, ``apart`` steps from each other."""
    rng = np.random.default_rng(seed)
    d = 12 * count
    points = np.array([(apart * k, float(i)) for k in range(count) for i in range(12)])
    fields = fields_of(rng, sources(rng, points), points)
    near = np.exp(-((cdist(points, points) / 1.5) ** 2))
    return Channels(np.full(d, "", dtype="<U9"), np.full(d, -1), np.arange(d), near, fields), points


def test_exchanged_shanks_are_told_where_neurons_are_shared():
    channels, points = shanks_of_twelve(3.0, count=3)
    assert judge_channels(channels, points).judgement.faults == ()
    to = np.arange(36)
    to[:12], to[12:24] = np.arange(12, 24), np.arange(12)
    judged = judge_channels(channels, points[to])
    assert [one.fault.kind.value for one in judged.judgement.faults] == ["exchanged"]
    assert judged.judgement.faults[0].fault.shanks == (0, 1)
    assert judged.exchanges == ()
    assert same_distances(judged.positions, points, np.arange(36))


def test_a_match_is_not_sure_of_shanks_that_share_no_neuron():
    """Each shank is right by itself, and which one it is and which way round is open."""
    shanks = np.repeat([0, 1], 12)
    for apart, sure in ((40.0, False), (3.0, True)):
        channels, points = shanks_of_twelve(apart)
        best = arranged(channels.fields, points, np.arange(24))
        alone = Wiring(best.slot, np.full(24, 0.95), best)
        wiring = rejudged(channels, alone, points, shanks)
        each = [np.median(wiring.confidence[wiring.contact // 12 == k]) for k in (0, 1)]
        assert min(each) > 0.6 if sure else min(each) < 0.6, (apart, each)
        probe = Probe(points, np.argsort(wiring.contact))
        probe.shank_ids = shanks.astype(str)  # type: ignore[attr-defined]
        recording = Recording(np.zeros((2, 24)), 1.0, points, [f"ch{i}" for i in range(24)])
        said = list(_confidence_lines(ProbeMatch(probe, wiring.confidence), recording))  # type: ignore[arg-type]
        for k in (0, 1):
            assert said[k].startswith(f"shank {k}: confidence {each[k]:.2f} (least ")
        assert said[2].endswith(f"{wiring.confidence.min():.2f} at least")


def test_an_exchange_on_a_line_is_not_two_blocks_in_reverse():
    """The run from one to the other in reverse, and then what lies between, is the same map."""
    channels, points = shanks_of_twelve(1.0, count=1)
    to = np.arange(12)
    to[[3, 8]] = 8, 3
    judged = judge_channels(channels, points[to])
    assert judged.judgement.faults == ()
    assert [one.channels for one in judged.exchanges] == [(3, 8)]
    assert judged.anew is None


def test_channels_that_see_the_same_neurons_start_on_one_shank():
    channels, points = shanks_of_twelve(7.5)
    order = np.random.default_rng(0).permutation(24)[:-3]  # three are dead
    c, fields = channels.correlation[np.ix_(order, order)], channels.fields.of(order)
    slot = start_by_shanks(c, fields, points)
    assert slot is not None
    assert len(np.unique(slot)) == len(slot)
    assert len(set(zip((order // 12).tolist(), (slot // 12).tolist(), strict=True))) == 2
    # within a shank, in order: this way or the other way round
    for shank in range(2):
        on = order // 12 == shank
        along = np.diff((slot[on] % 12)[np.argsort(order[on])])
        assert (along > 0).all() or (along < 0).all()
    assert start_by_shanks(c, fields, points[:12]) is None


def test_shanks_that_share_no_neuron_cannot_be_told():
    channels, points = shanks_of_twelve(40.0)
    judged = judge_channels(channels, points)
    assert judged.judgement.faults == ()
    kinds = {one.fault.kind.value for one in judged.judgement.undecided}
    assert "turned" in kinds
    assert all(0.05 < one.probability < 0.95 for one in judged.judgement.undecided)


def test_a_shank_upside_down_is_told_where_neurons_are_shared():
    channels, points = shanks_of_twelve(3.0)
    assert judge_channels(channels, points).judgement.undecided == ()
    turned = points.copy()
    turned[12:] = turned[12:][::-1]
    judged = judge_channels(channels, turned)
    assert [one.fault.kind.value for one in judged.judgement.faults] == ["turned"]
    assert same_distances(judged.positions, points, np.arange(24))


@pytest.mark.parametrize("rounding", range(3))
def test_of_two_repairs_that_are_mirror_images_the_first_is_named(rounding):
    """Either shank turned leaves the same distances: what is named must not depend on rounding."""
    channels, points = shanks_of_twelve(3.0)
    noise = 1 + 1e-14 * np.random.default_rng(rounding).standard_normal((24, 24))
    channels = replace(channels, correlation=channels.correlation * noise * noise.T)
    for shank in (slice(0, 12), slice(12, 24)):
        turned = points.copy()
        turned[shank] = turned[shank][::-1]
        judged = judge_channels(channels, turned)
        assert [one.fault.shanks for one in judged.judgement.faults] == [(0,)]
        assert same_distances(judged.positions, points, np.arange(24))


def test_windows_say_when_the_map_changed(small):
    recording = recorded(small)
    half = len(recording.traces) // 2
    bank = np.arange(8, 16)
    recording.traces = recording.traces.copy()
    recording.traces[half:, bank] = recording.traces[half:, bank[::-1]]
    seconds = half / recording.sampling_frequency
    check = check_probe(recording, windows=seconds)
    assert [one.verdict.value for one in check.windows] == ["right", "wrong"]
    assert check.changed is not None
    assert check.changed.start == pytest.approx(seconds)
    assert check.changed.sentences == ("channels ch8 to ch15 are in reverse order",)
    with pytest.raises(InputError, match="5 s or more"):
        check_probe(recording, windows="3 parsecs")


def test_a_window_that_leaves_something_open_does_not_hide_a_wrong_one(small, monkeypatch):
    def check(wrong: bool, sure: float) -> ProbeCheck:
        return ProbeCheck(not wrong and sure > 0.5, (("a", "b"),) * wrong, (), (), (), sure)

    found = [check(False, 0.2), check(True, 0.9)]
    monkeypatch.setattr("symlift.ephys.probes.read_channels", lambda *_: None)
    monkeypatch.setattr("symlift.ephys.probes.judge_channels", lambda *_, **__: None)
    remaining = iter(found)
    monkeypatch.setattr("symlift.ephys.probes._check_of", lambda *_: next(remaining))
    recording = recorded(small)
    half = len(recording.traces) / recording.sampling_frequency / 2
    result = check_probe(recording, windows=half)
    assert [one.verdict.value for one in result.windows] == ["uncertain", "wrong"]
    assert result.swapped == (("a", "b"),)
    assert result.verdict is MapVerdict.WRONG


def test_faults_of_a_large_probe_are_not_kept_all_at_once(monkeypatch):
    """There are hundreds of thousands for 384 channels: only what is looked at closely is kept."""
    points = np.stack(np.meshgrid(np.arange(2.0), np.arange(20.0)), axis=-1).reshape(-1, 2)
    alive: set[int] = set()
    most = 0

    def watched(*arguments: Any) -> Iterator[Fault]:
        nonlocal most
        for fault in faults_of(*arguments):
            weakref.finalize(fault, alive.discard, id(fault))
            alive.add(id(fault))
            most = max(most, len(alive))
            yield fault

    monkeypatch.setattr("symlift.maps.judge.faults_of", watched)
    alike = np.exp(-cdist(points, points))
    criterion = SimpleNamespace(alike=alike, living=np.arange(40), cost=lambda *_, **__: 0.0)
    judged = judge_map(criterion, points)
    assert judged.looked_at > 1_000
    assert most < 100


def test_channels_without_spikes_are_called_that(small, channels):
    quiet = int(channels.living[4])
    fields = channels.fields
    amplitude = fields.amplitude.copy()
    amplitude[:, 4] = 0.1 * fields.error[:, 4]
    assert quiet not in channels.unheard
    assert quiet in replace(channels, fields=replace(fields, amplitude=amplitude)).unheard


# -- folders of Kilosort ---------------------------------------------------------------------------


@pytest.fixture
def sorted_folder(small, tmp_path) -> Path:
    """What Kilosort leaves: a raw file with one more channel, its map with a bank in reverse."""
    folder = tmp_path / "kilosort4"
    folder.mkdir()
    raw = np.zeros((len(small["traces"]), 17), dtype=np.float32)
    raw[:, 1:] = small["traces"]
    raw.tofile(tmp_path / "raw.bin")
    positions = small["positions"][small["contact"]]
    positions[8:] = positions[8:][::-1].copy()
    np.save(folder / "channel_map.npy", np.arange(1, 17, dtype=np.int32)[:, None])
    np.save(folder / "channel_positions.npy", positions.astype(np.float32))
    (folder / "params.py").write_text(
        "dat_path = '../raw.bin'\nn_channels_dat = 17\ndtype = 'float32'\noffset = 0\n"
        f"sample_rate = {float(small['rate'])}\nhp_filtered = False\nimport os\n"
    )
    return folder


def test_a_folder_of_kilosort_is_checked_and_repaired(small, sorted_folder, tmp_path, living):
    out = tmp_path / "repaired"
    words = ["probe", "check", str(sorted_folder), "--repair", str(out), "--exit-code"]
    done = runner.invoke(app, words)
    assert done.exit_code == 3, done.output
    assert "channels 9 to 16 are in reverse order" in done.output
    positions = np.load(out / "channel_positions.npy")
    assert positions.dtype == np.float32
    assert same_distances(positions, small["positions"][small["contact"]], living)
    probe = json.loads((out / "probe.json").read_text())
    assert probe["chanMap"] == list(range(1, 17))
    assert probe["n_chan"] == 17
    for name in ("channel_map.npy", "channel_positions.npy"):
        (sorted_folder / name).write_bytes((out / name).read_bytes())
    again = runner.invoke(app, ["probe", "check", str(sorted_folder), "--json", "--exit-code"])
    assert again.exit_code == 0, again.output
    verdict = json.loads(again.stdout)
    assert verdict["verdict"] == "right"
    assert verdict["silent"] == [str(int(small["dead"]) + 1)]
    assert len(verdict["positions"]) == 16


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("channel_map.npy", None, "has no channel_map.npy"),
        ("channel_map.npy", b"no array", "is no array of numbers"),
        ("channel_map.npy", np.arange(16) + 9, "names channels twice, or such as are not"),
        ("channel_positions.npy", np.zeros((5, 2)), "but channel_map.npy has 16 channels"),
        ("channel_positions.npy", np.full((16, 2), np.nan), "NaN or infinity"),
        ("params.py", b"dat_path = (", "not what phy writes"),
        ("params.py", b"dat_path = 'none.bin'", "none.bin does not exist"),
        ("params.py", b"dat_path = '../raw.bin'", "no number n_channels_dat"),
        ("params.py", b"x = 1", "names no raw file"),
    ],
)
def test_damaged_folders_of_kilosort_are_refused(sorted_folder, name, content, message):
    path = sorted_folder / name
    if content is None:
        path.unlink()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content)
    with pytest.raises(InputError, match=re.escape(message)):
        read_kilosort(sorted_folder)


# -- with SpikeInterface itself (make test-ephys) --------------------------------------------------


@pytest.fixture
def saved(small, tmp_path):
    """The small recording as SpikeInterface saves it, with its probe, and the probe's file."""
    core = pytest.importorskip("spikeinterface.core")
    pi = pytest.importorskip("probeinterface")
    recording = core.NumpyRecording([small["traces"]], float(small["rate"]))
    probe = pi.Probe(ndim=2, si_units="um")
    probe.set_contacts(positions=small["positions"], shapes="circle", shape_params={"radius": 5})
    unwired = probe.copy()
    pi.write_probeinterface(tmp_path / "geometry.json", unwired)
    probe.set_device_channel_indices(np.argsort(small["contact"]))
    recording.set_probe(probe)
    recording.save(folder=tmp_path / "recording", verbose=False)
    return tmp_path


@pytest.mark.filterwarnings("ignore")
def test_spikeinterface_saves_checks_matches_and_loads_back(saved, small):
    from probeinterface import read_probeinterface
    from spikeinterface.core import load

    checked = runner.invoke(app, ["probe", "check", str(saved / "recording"), "--json", "-q"])
    assert json.loads(checked.stdout)["ok"] is True
    for words in (
        ["match", "--probe", str(saved / "geometry.json")],
        ["recover", "--grid", "4x4", "--pitch", "30"],
    ):
        out = saved / f"{words[0]}.json"
        done = runner.invoke(
            app, ["probe", words[0], str(saved / "recording"), *words[1:], "--out", str(out), "-q"]
        )
        assert done.exit_code == 0, done.output
        probe = read_probeinterface(out).probes[0]
        recording = load(saved / "recording")
        recording.set_probe(probe)
        living = np.setdiff1d(np.arange(16), [int(small["dead"])])
        where = recording.get_channel_locations()
        where = where - where.min(axis=0) + small["positions"].min(axis=0)
        contact = np.argmin(
            np.sum((small["positions"][None] - where[:, None]) ** 2, axis=-1), axis=1
        )[living]
        assert in_place(contact, small["contact"][living], small["positions"]) == 1.0
        again = runner.invoke(
            app, ["probe", words[0], str(saved / "recording"), *words[1:], "--out", str(out)]
        )
        assert isinstance(again.exception, InputError)  # it exists


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check", "nowhere"], "does not exist"),
        (["check", "junk.raw"], "no recording that SpikeInterface reads"),
        (["match", "recording"], "needs the geometry"),
        (["match", "recording", "--probe", "junk.raw"], "no probe of probeinterface"),
        (["recover", "recording", "--grid", "4x4", "--out", "none/probe.json"], "not a folder"),
        (["recover", "recording", "--grid", "2x2x4"], "has 3 axes"),
        (["recover", "recording", "--grid", "4x4", "--pitch", "-1"], "not a distance"),
    ],
)
def test_commands_refuse_in_one_line(saved, monkeypatch, words, message):
    monkeypatch.chdir(saved)
    (saved / "junk.raw").write_bytes(b"junk")
    before = sorted(saved.iterdir())
    with pytest.raises(InputError, match=message):
        runner.invoke(app, ["probe", *words], catch_exceptions=False)
    assert sorted(saved.iterdir()) == before


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_tutorial_runs_word_for_word(tmp_path, monkeypatch):
    pytest.importorskip("spikeinterface.core")
    page = (Path(__file__).parents[1] / "docs" / "tutorials" / "electrodes.md").read_text(
        encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {}
    for code in re.findall(r"^```py\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL):
        exec(code, scope)  # noqa: S102 - that is the test
    assert scope["check"].swapped == (("10", "45"),)
    assert [one.sentence for one in scope["banks"].faults] == [
        "channels 16 to 31 are in reverse order"
    ]
    assert scope["ranks"][0].number == 1
    assert sorted(scope["recovered"].device_channel_indices) == list(range(64))
