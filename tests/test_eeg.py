"""Montages: swapped channels, exchanged banks, shifted labels, turned caps; on simulated caps, and
with MNE's own objects where it is installed (make test-eeg).
"""

from __future__ import annotations

import copy
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist

from symlift import InputError
from symlift.eeg import MapVerdict, MontageMatch, check_montage, match_montage
from symlift.eeg.covariance import CovarianceCriterion, recorded
from symlift.eeg.exchanges import improved_sites
from symlift.eeg.placing import _in_space, _laid
from symlift.eeg.turned import centre_of, turned_cap


def cap(count: int = 64) -> np.ndarray:
    """Sites on the upper part of a sphere of 9 cm, evenly, the same left and right."""
    k = np.arange(2000) + 0.5
    height, angle = 1 - 1.25 * k / 2000, 2 * np.pi * (k * 0.6180339887 % 1)
    around = np.sqrt(1 - height**2)
    dense = np.c_[around * np.sin(angle), around * np.cos(angle), height]
    dense = dense[dense[:, 0] > 0.14]
    chosen = [int(dense[:, 1].argmax())]
    while len(chosen) < count // 2:  # the next one as far as possible from all before
        chosen.append(int(cdist(dense, dense[chosen]).min(axis=1).argmax()))
    right = dense[chosen]
    return 0.09 * np.concatenate([right, right * [-1, 1, 1]])


def signals(at: np.ndarray, seed: int, rows: int = 4000, noise: float = 0.25) -> np.ndarray:
    """Dipoles at random places with slow courses, all channels against one reference, and noise."""
    rng = np.random.default_rng(seed)
    sources = rng.normal(size=(40, 3))
    sources *= 0.06 / np.linalg.norm(sources, axis=1, keepdims=True)
    direction = rng.normal(size=(40, 3))
    away = at[:, None] - sources
    field = np.sum(away * direction, axis=-1) / np.linalg.norm(away, axis=-1) ** 3
    course = rng.normal(size=(rows, 40))
    for k in range(1, rows):
        course[k] += 0.9 * course[k - 1]
    x = course @ field.T
    x -= x[:, :1] * 0.5
    return x + noise * x.std() * rng.normal(size=x.shape)


def said_to_be(at: np.ndarray, to: np.ndarray) -> np.ndarray:
    return at[to]


def repaired(check: Any, at: np.ndarray) -> bool:
    return bool(np.abs(pdist(check.positions) - pdist(at)).max() < 1e-6)


@pytest.fixture(scope="module")
def at() -> np.ndarray:
    return cap()


@pytest.fixture(scope="module")
def X(at) -> np.ndarray:
    return signals(at, 0)


def test_the_change_by_a_swap_is_the_difference_of_two_costs(at, X):
    criterion = CovarianceCriterion(recorded(X[:, :12]))
    expected = criterion.expected(at[:12])
    change = criterion.swaps(at[:12])
    inverse = np.linalg.inv(expected)
    for i, j in ((0, 1), (3, 9), (11, 2)):
        order = np.arange(12)
        order[[i, j]] = j, i
        other = criterion.inside[np.ix_(order, order)] - criterion.inside
        assert change[i, j] == pytest.approx(criterion.weight * np.sum(inverse * other))


def test_expected_correlations_are_a_covariance(at, X):
    expected = CovarianceCriterion(recorded(X)).expected(at)
    np.testing.assert_allclose(np.diag(expected), 1)
    assert np.linalg.eigvalsh(expected).min() > 0


@pytest.mark.parametrize("seed", range(10))
def test_a_true_montage_raises_no_alarm(at, seed):
    # ten seconds of much noise may be too little to be sure
    short = check_montage(signals(at, seed, rows=2000), at)
    assert short.verdict is not MapVerdict.WRONG
    check = check_montage(signals(at, seed, rows=6000, noise=0.1), at)
    assert (check.faults, check.swapped, check.cannot_tell) == ((), (), ())
    assert check.confidence > 0.4
    assert check.whole == ("turned as a whole", "mirrored as a whole")


def test_four_neighbours_in_another_order_are_no_fault_of_a_bank(at, X):
    """Their order is for swaps: where a field is uneven, turning it round gains too much."""
    near = np.argsort(np.linalg.norm(at - at[5], axis=1))[:4]
    columns = np.r_[near, np.setdiff1d(np.arange(64), near)]  # the four come first
    check = check_montage(X[:, columns], at[columns][[3, 2, 1, 0, *range(4, 64)]])
    assert [one for one in check.faults if len(one.channels) < 8] == []
    assert all(len(one.channels) >= 8 for one in check.cannot_tell)


def test_each_of_thirty_swaps_is_named(at, X):
    rng = np.random.default_rng(1)
    far = np.argwhere(np.triu(cdist(at, at) > pdist(at).mean()))
    for i, j in far[rng.choice(len(far), 30, replace=False)]:
        to = np.arange(64)
        to[[i, j]] = j, i
        check = check_montage(X, said_to_be(at, to))
        assert check.swapped == ((str(i), str(j)),)
        assert check.faults == ()
        assert check.swap_confidence[0] > 0.9
        assert repaired(check, at)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("exchanged", "channels 8 to 15 and channels 40 to 47 are exchanged"),
        ("shifted", "channels 0 to 63 are shifted by 1"),
        ("reversed", "channels 16 to 31 are in reverse order"),
    ],
)
def test_banks_and_shifted_labels_are_named(at, X, kind, words):
    to = np.arange(64)
    if kind == "exchanged":
        to[8:16], to[40:48] = np.arange(40, 48), np.arange(8, 16)
    elif kind == "shifted":
        to = np.roll(to, 1)
    else:
        to[16:32] = to[16:32][::-1]
    check = check_montage(X, said_to_be(at, to))
    assert check.verdict is MapVerdict.WRONG
    assert [one.kind for one in check.faults] == [kind]
    assert check.faults[0].sentence == words
    assert check.faults[0].probability > 0.95
    assert check.swapped == ()
    assert repaired(check, at)


def turn(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, s, 0], [-s, c, 0], [0, 0, 1.0]])


@pytest.mark.parametrize(
    ("motion", "words"),
    [
        (np.diag([-1.0, 1, 1]), "the cap is mirrored left to right"),
        (turn(np.pi / 2), "the cap is turned by 90 degrees"),
        (turn(np.pi), "the cap is turned by 180 degrees"),
    ],
)
def test_a_turned_cap_cannot_be_told_without_anchors_and_is_named_with_two(at, X, motion, words):
    claimed = (at - centre_of(at)) @ motion + centre_of(at)
    plain = check_montage(X, claimed)
    assert plain.ok
    assert plain.whole == ("turned as a whole", "mirrored as a whole")
    anchors = {"3": at[3], "20": at[20]}
    check = check_montage(X, claimed, anchors=anchors)
    assert check.verdict is MapVerdict.WRONG
    assert [one.sentence for one in check.faults] == [words]
    np.testing.assert_allclose(check.positions, at, atol=1e-9)
    right = check_montage(X, at, anchors=anchors)
    assert right.ok
    assert right.whole == ()


def test_anchors_in_the_plane_of_symmetry_leave_the_mirror_open():
    at = cap()
    middle = np.array([[0.0, 0.09, 0.0], [0.0, 0.0, 0.09]])
    sites = np.concatenate([at, middle])
    turned = turned_cap(sites, sites, np.array([64, 65]), middle)
    assert turned.words == ""
    assert turned.open_to == ("mirrored left to right",)
    one = turned_cap(sites, sites, np.array([64]), middle[:1])
    assert one.open_to == ("turned as a whole", "mirrored as a whole")


def test_dead_noisy_and_copied_channels_are_set_aside(at, X):
    rng = np.random.default_rng(0)
    x = X.copy()
    x[:, 5], x[:, 9], x[:, 30] = 0.0, rng.normal(size=len(x)), x[:, 12]
    check = check_montage(x, at)
    assert check.ok
    assert check.dead == ("5",)
    assert check.noise == ("9",)
    assert check.duplicated == (("30", "12"),)


def test_independent_noise_is_never_right(at):
    noise = np.random.default_rng(0).normal(size=(2000, 64))
    with pytest.raises(InputError, match="go with another one"):
        check_montage(noise, at)


def template_of(at: np.ndarray) -> dict[str, np.ndarray]:
    return {f"S{i}": place for i, place in enumerate(at)}


@pytest.mark.slow
def test_channels_without_labels_are_placed_on_a_template():
    at = cap(32)
    order = np.random.default_rng(2).permutation(32)
    X = signals(at, 3)[:, order]
    anchors = {str(k): f"S{order[k]}" for k in (0, 1, 2)}
    match = match_montage(X, template_of(at), anchors=anchors)
    truth = [f"S{i}" for i in order]
    assert np.mean([one == other for one, other in zip(match.sites, truth, strict=True)]) > 0.9
    assert match.confidence.shape == (32,)


def test_a_small_cap_is_placed_or_not_sure(monkeypatch):
    """Twenty channels in an unknown order; where sources hide the cap, no channel is believed."""
    monkeypatch.setattr("symlift.eeg.placing._SHAKES", 5)
    monkeypatch.setattr("symlift.eeg.placing._TURNS", 4)
    at = cap(20)
    order = np.random.default_rng(2).permutation(20)
    truth = [f"S{i}" for i in order]
    anchors = {str(k): truth[k] for k in (0, 1, 2)}
    for seed in (3, 4):
        X = signals(at, seed, rows=2000, noise=0.1)[:, order]
        match = match_montage(X, template_of(at), anchors=anchors)
        right = np.mean([one == other for one, other in zip(match.sites, truth, strict=True)])
        assert right == 1 if seed == 3 else match.confidence.max() < 0.5
        assert sorted(match.sites) == sorted(truth)
        assert match.whole == ()
        for site, place in zip(match.sites, match.positions, strict=True):
            np.testing.assert_array_equal(place, at[int(site[1:])])


def test_a_template_may_be_a_plane(monkeypatch, at, X):
    monkeypatch.setattr("symlift.eeg.placing._SHAKES", 1)
    monkeypatch.setattr("symlift.eeg.placing._TURNS", 1)
    sites = template_of(at[:12, :2])
    match = match_montage(X[:, :12], sites, anchors={"0": "S0"})
    assert match.positions.shape == (12, 2)
    assert sorted(match.sites) == sorted(sites)
    assert match.sites[0] == "S0" or match.confidence.max() < 0.5


def test_coordinates_from_correlations_have_the_distances_of_the_cap(at):
    """Correlations that fall with distance are scaled back into space, up to motions."""
    apart = cdist(at, at)
    y = _in_space(np.exp(-((apart / np.median(apart)) ** 2)), 12, 3)
    assert np.corrcoef(pdist(y), pdist(at))[0, 1] > 0.9


def test_turned_coordinates_are_laid_on_their_sites(at):
    order = np.random.default_rng(1).permutation(64)
    centred = at - at.mean(axis=0)
    y = 1.1 * centred[order] @ turn(0.1) + np.array([0.0, 0.003, 0.002])
    np.testing.assert_array_equal(_laid(y, centred), order)


def test_channels_move_to_free_sites_and_change_places_where_that_costs_less(at):
    """Two that are swapped, and one on a site next to its own that is free."""
    X = signals(at, 6, rows=3000, noise=0.1)
    near = int(np.argsort(cdist(at[[20]], at).ravel())[1])
    left = np.setdiff1d(np.arange(64), [near])
    criterion = CovarianceCriterion(recorded(X[:, left]))
    wrong = left.copy()
    wrong[left == 20] = near
    a, b = np.flatnonzero((left == 3) | (left == 40))
    wrong[[a, b]] = wrong[[b, a]]
    on, cost = improved_sites(criterion, at, wrong)
    np.testing.assert_array_equal(on, left)
    places = at[left]
    assert cost == pytest.approx(criterion.cost(places))


# -- objects of MNE, as much of them as is needed --------------------------------------------------


class Montage:
    def __init__(self, places: dict[str, np.ndarray], **marks: Any) -> None:
        self.positions = {"ch_pos": places, "coord_frame": "head", "nasion": None}
        self.positions |= {"lpa": None, "rpa": None} | marks

    def get_positions(self) -> dict[str, Any]:
        return self.positions


class Raw:
    """Channels of EEG and one that is none; in epochs, if that is asked for."""

    def __init__(self, X: np.ndarray, names: list[str], montage: Montage | None) -> None:
        self.X, self.ch_names, self.montage = X, [*names, "STI"], montage
        self.info: dict[str, list[str]] = {"bads": []}
        self.epochs = 1

    def get_channel_types(self) -> list[str]:
        return ["eeg"] * (len(self.ch_names) - 1) + ["stim"]

    def get_data(self, picks: list[str]) -> np.ndarray:
        data = self.X[:, [self.ch_names.index(name) for name in picks]].T
        if self.epochs == 1:
            return data
        return np.stack(np.split(data, self.epochs, axis=1))

    def get_montage(self) -> Montage | None:
        return self.montage

    def copy(self) -> Raw:
        return copy.copy(self)

    def set_montage(self, montage: Montage, **_: Any) -> None:
        self.montage = montage


@pytest.fixture
def fake(at, X, monkeypatch) -> Raw:
    """A recording with its montage; MNE's constructor of montages keeps what it is given."""
    channels = types.ModuleType("mne.channels")
    channels.make_dig_montage = Montage  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mne", types.ModuleType("mne"))
    monkeypatch.setitem(sys.modules, "mne.channels", channels)
    names = [f"E{i}" for i in range(64)]
    return Raw(X, names, Montage(dict(zip(names, at, strict=True)), nasion=np.zeros(3)))


def test_recordings_with_labels_are_checked_and_repaired(fake, at):
    assert check_montage(fake).ok
    places = dict(fake.montage.get_positions()["ch_pos"])
    places["E3"], places["E50"] = places["E50"], places["E3"]
    wrong = Raw(fake.X, fake.ch_names[:-1], Montage(places, nasion=np.zeros(3)))
    check = check_montage(wrong)
    assert check.swapped == (("E3", "E50"),)
    again = check.repaired(wrong)
    assert check_montage(again).ok
    assert not check_montage(wrong).ok
    np.testing.assert_array_equal(again.montage.positions["nasion"], np.zeros(3))
    np.testing.assert_allclose(again.montage.positions["ch_pos"]["E3"], at[3])
    assert check_montage(wrong, dict(zip(wrong.ch_names, at, strict=False))).ok


def test_bad_channels_epochs_and_missing_montages(fake):
    fake.info["bads"] = ["E7"]
    fake.epochs = 4
    check = check_montage(fake)
    assert check.ok
    assert "E7" not in check.names
    assert "STI" not in check.names
    fake.montage = None
    with pytest.raises(InputError, match="no montage"):
        check_montage(fake)
    fake.info["bads"] = fake.ch_names[3:]
    with pytest.raises(InputError, match="3 EEG channels that are not bad"):
        check_montage(fake)
    fake.info["bads"] = []
    fake.X = np.where(np.arange(64) == 5, np.nan, fake.X)
    with pytest.raises(InputError, match="cut them out"):
        check_montage(fake)


def test_a_match_is_put_on_the_recording(fake, at):
    names = tuple(fake.ch_names[:4])
    positions = np.where(np.arange(4)[:, None] == 2, np.nan, at[:4])
    match = MontageMatch(("S0", "S1", "", "S3"), positions, names, np.ones(4))
    fake.montage = None
    placed = match.placed(fake).montage.positions["ch_pos"]
    assert sorted(placed) == ["E0", "E1", "E3"]
    np.testing.assert_array_equal(placed["E3"], at[3])
    flat = MontageMatch(("S0", "S1", "", "S3"), positions[:, :2], names, np.ones(4))
    with pytest.raises(InputError, match="in a plane"):
        flat.placed(fake)


@pytest.mark.parametrize(
    ("template", "message"),
    [({"Fz": (0, 0, 1)}, "four sites or more"), (3, "four sites or more")],
)
def test_templates_that_are_none_are_refused(X, template, message):
    with pytest.raises(InputError, match=message):
        match_montage(X, template)


def test_templates_by_name_need_mne(X, monkeypatch):
    monkeypatch.setitem(sys.modules, "mne.channels", None)
    with pytest.raises(InputError, match=r"pip install 'symlift\[eeg\]'"):
        match_montage(X, "standard_1020")


@pytest.mark.parametrize(
    ("X", "positions", "message"),
    [
        (np.zeros((100, 3)), np.zeros((3, 3)), "four columns or more"),
        (np.full((100, 5), np.nan), np.zeros((5, 3)), "NaN"),
        (np.ones((100, 5)), np.zeros((5, 3)), "same position"),
        (np.ones((100, 5)), np.zeros((4, 3)), r"positions of shape (4, 3) for 5 channels"),
        (np.ones((100, 5)), np.full((5, 3), np.inf), "position of 0 is NaN or infinite"),
        (np.ones((100, 5)), None, "no montage"),
        (np.ones((100, 5)), {"0": (0, 0, 1)}, "no position for 1, 2, 3"),
        (np.ones((100, 5)), np.eye(5, 3) + np.arange(5)[:, None], "0 channels go with another"),
    ],
)
def test_what_cannot_be_checked_is_refused_in_one_line(X, positions, message):
    with pytest.raises(InputError, match=re.escape(message)):
        check_montage(X, positions)


def test_anchors_that_do_not_exist_are_refused(at, X):
    with pytest.raises(InputError, match="there is no such channel"):
        check_montage(X, at, anchors={"Fz": "Cz"})
    with pytest.raises(InputError, match="the form of the others"):
        check_montage(X, at, anchors={"1": (0.0, 1.0)})
    with pytest.raises(InputError, match="give a larger template"):
        match_montage(X, {str(i): place for i, place in enumerate(at[:32])})


# -- with MNE itself (make test-eeg) ---------------------------------------------------------------


@pytest.fixture(scope="module")
def mne() -> Any:
    return pytest.importorskip("mne")


@pytest.fixture(scope="module")
def raw(mne) -> Any:
    """Sixty-four channels of the 10-20 system, and one that is no EEG."""
    montage = mne.channels.make_standard_montage("biosemi64")
    at = np.stack(list(montage.get_positions()["ch_pos"].values()))
    data = signals(at, 5).T * 1e-6
    info = mne.create_info([*montage.ch_names, "STI"], 200.0, ["eeg"] * 64 + ["stim"])
    made = mne.io.RawArray(np.r_[data, np.zeros((1, data.shape[1]))], info, verbose="error")
    return made.set_montage(montage, verbose="error")


def relabelled(raw: Any, to: dict[str, str]) -> Any:
    """A copy in which channels have each other's labels, and so each other's places."""
    changed = raw.copy().rename_channels(to)
    return changed.set_montage(raw.get_montage(), verbose="error")


def test_objects_of_mne_are_checked_and_repaired(raw):
    right = check_montage(raw)
    assert right.ok
    assert right.names == tuple(raw.ch_names[:64])
    wrong = relabelled(raw, {"C3": "C4", "C4": "C3"})
    check = check_montage(wrong)
    assert {frozenset(group) for group in check.swapped} == {frozenset(("C3", "C4"))}
    again = check.repaired(wrong)
    assert check_montage(again).ok
    assert not check_montage(wrong).ok  # what was given is as it was
    now = again.get_montage().get_positions()["ch_pos"]
    before = raw.get_montage().get_positions()["ch_pos"]
    np.testing.assert_allclose(now["C3"], before["C4"], atol=1e-6)


@pytest.mark.slow
def test_thirty_swaps_banks_and_shifted_labels_of_mne(raw):
    names = raw.ch_names[:64]
    places = np.stack([raw.get_montage().get_positions()["ch_pos"][name] for name in names])
    rng = np.random.default_rng(0)
    far = np.argwhere(np.triu(cdist(places, places) > pdist(places).mean()))
    for i, j in far[rng.choice(len(far), 30, replace=False)]:
        check = check_montage(relabelled(raw, {names[i]: names[j], names[j]: names[i]}))
        assert {frozenset(group) for group in check.swapped} == {frozenset((names[i], names[j]))}
    banks = dict(zip(names[:16], names[32:48], strict=True))
    banks |= {b: a for a, b in banks.items()}
    check = check_montage(relabelled(raw, banks))
    assert [one.kind for one in check.faults] == ["exchanged"]
    shifted = dict(zip(names, np.roll(names, 1).tolist(), strict=True))
    check = check_montage(relabelled(raw, shifted))
    assert [one.kind for one in check.faults] == ["shifted"]


def test_a_mirrored_cap_of_mne_is_named_with_two_anchors(raw, mne):
    positions = raw.get_montage().get_positions()["ch_pos"]
    mirror = {
        name: min(positions, key=lambda k: np.linalg.norm(positions[k] - at * [-1, 1, 1]))
        for name, at in positions.items()
    }
    assert sorted(mirror.values()) == sorted(positions)
    wrong = relabelled(raw, mirror)
    assert check_montage(wrong).ok
    check = check_montage(wrong, anchors={"C3": "C4", "Fz": "Fz"})
    assert [one.sentence for one in check.faults] == ["the cap is mirrored left to right"]
    assert check_montage(raw, anchors={"C3": "C3", "Fz": "Fz"}).whole == ()


def test_a_turned_cap_of_mne_is_named_with_two_anchors(raw, mne):
    given = raw.get_montage().get_positions()
    middle = centre_of(np.stack(list(given["ch_pos"].values())))
    places = {
        name: (at - middle) @ turn(np.pi / 2) + middle for name, at in given["ch_pos"].items()
    }
    turned = mne.channels.make_dig_montage(
        places, **{key: given[key] for key in ("coord_frame", "nasion", "lpa", "rpa")}
    )
    wrong = raw.copy().set_montage(turned, verbose="error")
    assert check_montage(wrong).whole == ("turned as a whole", "mirrored as a whole")
    check = check_montage(wrong, anchors={name: given["ch_pos"][name] for name in ("C3", "Fz")})
    assert [one.sentence for one in check.faults] == ["the cap is turned by 90 degrees"]
    now = check.repaired(wrong).get_montage().get_positions()["ch_pos"]
    np.testing.assert_allclose(now["Oz"], given["ch_pos"]["Oz"], atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.25, 0.1])
@pytest.mark.parametrize("seed", range(10))
def test_ten_true_montages_of_mne_raise_no_alarm(mne, seed, noise):
    # the middle of the head is the origin here, not in the montage that a recording gives back
    montage = mne.channels.make_standard_montage("biosemi64")
    at = np.stack(list(montage.get_positions()["ch_pos"].values()))
    info = mne.create_info(montage.ch_names, 200.0, "eeg")
    data = signals(at, 20 + seed, noise=noise).T * 1e-6
    made = mne.io.RawArray(data, info, verbose="error")
    check = check_montage(made.set_montage(montage, verbose="error"))
    assert check.verdict is not MapVerdict.WRONG
    if noise == 0.25:
        assert check.cannot_tell == ()


@pytest.mark.slow
def test_epochs_bad_channels_and_templates_of_mne(raw, mne):
    marked = raw.copy()
    marked.info["bads"] = ["Cz"]
    assert "Cz" not in check_montage(marked).names
    epochs = mne.make_fixed_length_epochs(raw, 2.0, preload=True, verbose="error")
    assert check_montage(epochs).ok
    unlabelled = raw.copy().set_montage(None)
    with pytest.raises(InputError, match="no montage"):
        check_montage(unlabelled)
    few = raw.copy().pick(raw.ch_names[:32])
    template = {name: raw.get_montage().get_positions()["ch_pos"][name] for name in few.ch_names}
    match = match_montage(few, template, anchors={name: name for name in few.ch_names[:3]})
    assert np.mean([a == b for a, b in zip(match.sites, few.ch_names, strict=True)]) > 0.9
    assert match.placed(few).get_montage() is not None
    with pytest.raises(InputError, match="has no montage 'none'"):
        match_montage(few, "none")


@pytest.mark.filterwarnings("ignore")
def test_the_page_runs_word_for_word(mne):
    page = Path(__file__).parents[1] / "docs" / "tutorials" / "montages.md"
    scope: dict[str, Any] = {}
    for code in re.findall(
        r"^```py\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL
    ):
        exec(code, scope)  # noqa: S102 - that is the test
    assert [set(group) for group in scope["check"].swapped] == [{"C3", "P8"}]
    assert check_montage(scope["repaired"]).ok
    assert scope["turned"].faults[0].sentence == "the cap is mirrored left to right"
