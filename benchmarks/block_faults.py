"""Blocks of channels at the wrong contacts: SpikeInterface's generator, maps that are wrong in the
ways in which maps are, and maps that are right.

    python benchmarks/block_faults.py [faults] [known] [wired] [right] [windows] [layouts]

Needs the extras ``ephys`` and ``paper``. Recordings as in `benchmarks/ephys.py` (60 s, as many
units as contacts, a tenth dead, a twentieth noisy). ``faults``: three probes, three seeds; a bank
of eight mirrored, a bank of 16 shifted by one, all channels from one on shifted by one, two shanks
exchanged, a shank upside down (on one shank: the whole probe), rows and columns exchanged, the map
of another layout. A repair is right if all living contacts have their true distances. ``known``:
probes of one shank upside down, with one contact that is known, after which every living contact
has to have its true position. ``wired``: four shanks, wired from nothing. Right maps:
these recordings and those of two small probes, each with channels in three orders; ``right``:
recordings of their own, each in an order of its own; and the minutes of ``windows`` before a
change.
Of each recording of ``faults`` the true layout is looked for among four. ``windows``: six minutes
in which a bank is mirrored from the fourth on.

Thresholds were set on seeds 0 and 1. Each case is written when it is done, and those that are
there are not measured again. The checks of a recording share one reading of its traces, which is
kept (`_readings.py`); ``seconds`` are processor seconds, of the reading and of the check.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

import ephys as recordings
from _common import RESULTS, made, write
from _readings import Reading, reading
from symlift.ephys import check_probe, match_probe
from symlift.ephys.judged import FieldCriterion

NAME = "block_faults"
LARGE, SMALL = ("shanks4x16", "array8x12", "neuropixels96"), ("linear32", "array8x8")
SEEDS = (60, 61, 62)
#: of more right maps; of a map that changes; of one more ranking of layouts
RIGHT_SEEDS, WINDOW_SEEDS, LAYOUT_SEEDS = range(70, 75), range(60, 70), (63, 67)
ORDERS = 3
MINUTES, CHANGES = 6, 3


def probe_named(name: str) -> Any:
    """Probes with channels in the order of contacts."""
    from probeinterface import generate_multi_columns_probe, generate_multi_shank

    if name == "shanks4x16":
        probe = generate_multi_shank(
            num_shank=4, shank_pitch=[150, 0], num_columns=1, num_contact_per_column=16, ypitch=20
        )
    elif name == "array8x12":
        probe = generate_multi_columns_probe(
            num_columns=12, num_contact_per_column=8, xpitch=30, ypitch=30
        )
    else:
        return recordings.probe_named(name)
    probe.set_device_channel_indices(np.arange(probe.get_contact_count()))
    return probe


def wrong_maps(name: str, d: int, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
    """For each fault the contact that each channel is said to be on; truly it is its own."""
    maps = {}
    for fault, size in (("bank mirrored", 8), ("bank shifted", 16)):
        start = size * int(rng.integers(d // size))
        block = np.arange(start, start + size)
        maps[fault] = np.arange(d)
        maps[fault][block] = block[::-1] if fault == "bank mirrored" else np.roll(block, 1)
    start = int(rng.integers(d // 4, 3 * d // 4))
    maps["shifted from one on"] = np.r_[np.arange(start), np.roll(np.arange(start, d), -1)]
    if name == "shanks4x16":
        one, other = rng.permutation(4)[:2]
        shanks = np.arange(d).reshape(4, 16)
        exchanged = shanks.copy()
        exchanged[[one, other]] = shanks[[other, one]]
        maps["shanks exchanged"] = exchanged.ravel()
        turned = shanks.copy()
        turned[one] = shanks[one][::-1]
        maps["shank upside down"] = turned.ravel()
    else:
        maps["shank upside down"] = np.arange(d)[::-1].copy()
    columns = {"shanks4x16": 4, "array8x12": 12, "neuropixels96": 48}[name]
    maps["rows and columns exchanged"] = np.arange(d).reshape(columns, -1).T.ravel().copy()
    return maps


def layouts_for(name: str) -> list[Any]:
    """The true layout, and three others of as many contacts, wired in their own order."""
    from probeinterface import generate_linear_probe, generate_multi_columns_probe

    true = probe_named(name)
    d = true.get_contact_count()
    true.name = "the true one"
    others = [generate_linear_probe(num_elec=d, ypitch=20)]
    for columns in (2, 4):
        others.append(
            generate_multi_columns_probe(
                num_columns=columns, num_contact_per_column=d // columns, xpitch=30, ypitch=30
            )
        )
    for number, probe in enumerate(others):
        probe.set_device_channel_indices(np.arange(d))
        probe.name = f"another one, {number}"
    if name == "linear32":
        others = others[1:]
    return [true, *others]


def as_true(positions: NDArray, truth: NDArray, dead: NDArray) -> bool:
    living = np.setdiff1d(np.arange(len(truth)), dead)
    if len(positions) != len(truth):
        return False
    return bool(np.abs(pdist(positions[living]) - pdist(truth[living])).max() < 1.0)


def record_of(check: Any) -> dict[str, Any]:
    """What a check says, for the record."""
    return {
        "verdict": check.verdict.value,
        "faults": [one.sentence for one in check.faults],
        "swapped": len(check.swapped),
        "cannot_tell": [one.sentence for one in check.cannot_tell],
        "probability": round(check.probability, 4),
    }


def read(name: str, seed: int) -> tuple[Any, Reading]:
    """The probe of a recording, its channels in the order of contacts, and what was read of it."""
    probe = probe_named(name)
    every = np.arange(probe.get_contact_count())

    def recording() -> Any:
        return recordings.recording_of(recordings.traces_of(probe, seed)[0], probe, every)

    return probe, reading(f"{name}/{seed}", recording)


def without_traces(probe: Any, order: NDArray[np.int64]) -> Any:
    """A recording of which only the map is looked at."""
    return recordings.recording_of(np.zeros((10, len(order)), np.float32), probe, order)


def faults(name: str, seed: int) -> dict[str, Any]:
    """Right maps and, on the large probes, wrong ones."""
    probe, given = read(name, seed)
    d = probe.get_contact_count()
    dead = recordings.dead_of(d, seed)
    truth = np.asarray(probe.contact_positions)
    rng = np.random.default_rng(4000 + seed)
    recording = without_traces(probe, np.arange(d))

    def checked(*arguments: Any, **more: Any) -> dict[str, Any]:
        began = time.process_time()
        with given.instead():
            check = check_probe(recording, *arguments, **more)
        seconds = given.seconds + time.process_time() - began
        repaired = as_true(check.positions, truth, dead)
        return record_of(check) | {"repaired": repaired, "seconds": round(seconds, 1)}

    with given.instead():
        right = [record_of(check_probe(recording))]
    for _ in range(ORDERS - 1):
        right.append(in_order(probe, given, rng.permutation(d)))
    case: dict[str, Any] = {"right": right, "layouts": ranked(recording, name, given)}
    if name in SMALL:
        return case
    wrong = {}
    for fault, claimed in wrong_maps(name, d, rng).items():
        wired = probe.copy()
        wired.set_device_channel_indices(np.argsort(claimed))
        wrong[fault] = checked(wired)
    layouts = layouts_for(name)
    wrong["another layout"] = checked(layouts[-1], layouts=layouts[:-1])
    return case | {"wrong": wrong}


def known(name: str, seed: int) -> dict[str, Any]:
    """A probe of one shank upside down: no trace shows that, one known contact does."""
    probe, given = read(name, seed)
    d = probe.get_contact_count()
    truth = np.asarray(probe.contact_positions)
    living = np.setdiff1d(np.arange(d), recordings.dead_of(d, seed))
    wired = probe.copy()
    wired.set_device_channel_indices(np.arange(d)[::-1].copy())
    recording = without_traces(probe, np.arange(d))
    began = time.process_time()
    with given.instead():
        at = int(living[0])
        without = check_probe(recording, wired)
        check = check_probe(recording, wired, anchors={recording.channel_ids[at]: at})
    seconds = given.seconds + (time.process_time() - began) / 2
    return record_of(check) | {
        "repaired": bool(np.abs(check.positions - truth)[living].max() < 1.0),
        "whole, without it": list(without.whole),
        "seconds": round(seconds, 1),
    }


def in_order(probe: Any, given: Reading, order: NDArray[np.int64]) -> dict[str, Any]:
    """A right map of channels in another order."""
    with given.reordered(order).instead():
        return record_of(check_probe(without_traces(probe, order)))


def ranked(recording: Any, name: str, given: Reading) -> dict[str, Any]:
    """Four candidates, the true one among them."""
    true, *others = layouts_for(name)
    candidates = [others[0], true, *others[1:]]
    began = time.process_time()
    with given.instead():
        ranks = match_probe(recording, candidates)
    return {
        "first": ranks[0].number,
        "right": ranks[0].number == 1,
        "probability": round(ranks[0].probability, 4),
        "changed": [one.sentence for one in ranks[0].faults],
        "seconds": round(time.process_time() - began, 1),
    }


def candidates(name: str, seed: int) -> dict[str, Any]:
    """Only the ranking of layouts, of one more recording."""
    probe, given = read(name, seed)
    recording = without_traces(probe, np.arange(probe.get_contact_count()))
    return {"layouts": ranked(recording, name, given)}


def wired(name: str, seed: int) -> dict[str, Any]:
    """Wired from nothing: how many living channels are on the shank where they belong, and in their
    order there, up to motions of the probe and, for the order, of a shank.
    """
    probe, given = read(name, seed)
    d, shanks = probe.get_contact_count(), 4
    size = d // shanks
    order = np.random.default_rng(2000 + seed).permutation(d)
    began = time.process_time()
    shuffled = given.reordered(order)
    with shuffled.instead():
        match = match_probe(without_traces(probe, order), probe)
    seconds = given.seconds + time.process_time() - began
    channel = np.asarray(match.probe.device_channel_indices)
    living = shuffled.channels.living
    truth, placed = order[living], np.argsort(channel)[living]
    ways = [placed, d - 1 - placed]
    on_shank = max(int((truth // size == way // size).sum()) for way in ways)
    in_order = 0
    for shank in range(shanks):
        on = truth // size == shank
        place, at = truth[on] % size, placed[on] % size
        in_order += max(int((place == at).sum()), int((place == size - 1 - at).sum()))
    criterion = FieldCriterion(shuffled.channels, d)
    contacts = np.asarray(probe.contact_positions)
    return {
        "living": len(living),
        "on their shank": on_shank,
        "in order there": in_order,
        "unexplained": round(criterion.cost(contacts[np.argsort(channel)]), 1),
        "unexplained by the truth": round(criterion.cost(contacts[order]), 1),
        "confidence": round(float(np.median(match.confidence[living])), 3),
        "seconds": round(seconds, 1),
    }


def right(name: str, seed: int) -> dict[str, Any]:
    """A right map, of channels in any order."""
    probe, given = read(name, seed)
    order = np.random.default_rng(4000 + seed).permutation(probe.get_contact_count())
    began = time.process_time()
    record = in_order(probe, given, order)
    seconds = given.seconds + time.process_time() - began
    return {"right": [record], "seconds": round(seconds, 1)}


def windows(name: str, seed: int) -> dict[str, Any]:
    """A bank of eight is mirrored after so many minutes."""
    from spikeinterface.core import NumpyRecording, generate_ground_truth_recording

    probe = probe_named(name)
    d = probe.get_contact_count()
    recording, _ = generate_ground_truth_recording(
        durations=[60.0 * MINUTES],
        sampling_frequency=recordings.RATE,
        probe=probe,
        num_units=d,
        seed=seed,
    )
    traces = np.array(recording.get_traces(), dtype=np.float32)
    bank = np.arange(8) + 8 * int(np.random.default_rng(seed).integers(d // 8))
    after = round(CHANGES * 60 * recordings.RATE)
    traces[after:, bank] = traces[after:, bank[::-1]].copy()
    changed = NumpyRecording([traces], recordings.RATE)
    changed.set_probe(probe)
    began = time.process_time()
    check = check_probe(changed, windows="1min")
    return {
        "verdicts": [one.verdict.value for one in check.windows],
        "changed": None if check.changed is None else check.changed.start / 60,
        "right": check.changed is not None and check.changed.start == CHANGES * 60,
        "sentence": [one.sentence for one in check.faults],
        "seconds": round(time.process_time() - began, 1),
    }


def summary(cases: dict[str, Any]) -> dict[str, Any]:
    """Counts over all cases."""
    right = [
        one["verdict"]
        for key, case in cases.items()
        if key.startswith(("faults/", "right/"))
        for one in case["right"]
    ]
    before = [
        verdict
        for key, case in cases.items()
        if key.startswith("windows/")
        for verdict in case["verdicts"][:CHANGES]
    ]
    drawn = [key for key in cases if key.startswith(("faults/", "right/"))]
    wrong = {
        f"{key.removeprefix('faults/')}/{fault}": one
        for key, case in cases.items()
        if key.startswith("faults/")
        for fault, one in case.get("wrong", {}).items()
    }
    # what is a motion of the whole probe is asked with one known contact
    asked = {
        f"{key.removeprefix('known/')}/shank upside down": case
        for key, case in cases.items()
        if key.startswith("known/")
    }
    judged = wrong | asked
    named = [key for key, one in judged.items() if one["repaired"] and one["verdict"] == "wrong"]
    undecided = [key for key, one in judged.items() if one["verdict"] == "cannot tell"]
    other = {
        "layouts": [case["layouts"]["right"] for case in cases.values() if "layouts" in case],
        "windows": [case["right"] for key, case in cases.items() if key.startswith("windows/")],
    }
    return {
        "right maps": len(right),
        "of so many recordings": len(drawn),
        "right maps of a minute, before a change": len(before),
        "alarms": [*right, *before].count("wrong"),
        "right maps not called right": sum(one != "right" for one in [*right, *before]),
        "wrong maps": len(judged),
        "named with the right repair": len(named),
        "of these with one known contact": sum(key in asked for key in named),
        "cannot tell": undecided,
        "wired from nothing, on their shank": [
            f"{case['on their shank']} of {case['living']}"
            for key, case in cases.items()
            if key.startswith("wired/")
        ],
        "most seconds": max((one["seconds"] for one in judged.values()), default=0.0),
        **{kind: f"{sum(values)} of {len(values)}" for kind, values in other.items()},
    }


def main(names: list[str]) -> None:
    """Measure what is not there yet."""
    warnings.simplefilter("ignore")
    path = RESULTS / f"{NAME}.json"
    cases = json.loads(path.read_text())["cases"] if path.is_file() else {}
    jobs = [("faults", probe, seed) for seed in SEEDS for probe in (*LARGE, *SMALL)]
    jobs += [("known", probe, seed) for seed in SEEDS for probe in LARGE[1:]]
    jobs += [("wired", LARGE[0], seed) for seed in SEEDS]
    jobs += [("right", probe, seed) for seed in RIGHT_SEEDS for probe in LARGE]
    jobs += [("windows", "linear32", seed) for seed in WINDOW_SEEDS]
    jobs += [("layouts", probe, seed) for seed in LAYOUT_SEEDS for probe in (*LARGE, *SMALL)]
    measured = {
        "faults": faults,
        "known": known,
        "wired": wired,
        "right": right,
        "windows": windows,
        "layouts": candidates,
    }
    for kind, probe, seed in jobs:
        key = f"{kind}/{probe}/{seed}"
        if key in cases or (names and kind not in names):
            continue
        cases[key] = made() | measured[kind](probe, seed)
        write(NAME, {"summary": summary(cases), "cases": cases})
        print(key, json.dumps(cases[key]), flush=True)
    print(json.dumps(summary(cases), indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
