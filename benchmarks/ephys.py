"""Which wire is which electrode: recordings of SpikeInterface's generator, matched to their probe
and checked.

    python benchmarks/ephys.py [linear32] [array8x8] [neuropixels96]… (all of them without a name)

Needs the extras ``ephys`` and ``paper``. Three probes, five seeds, traces as they are and
low-passed at 300 Hz, 60 s at 25 kHz, as many units as contacts. A tenth of the channels are dead
(half of them flat, half with the usual noise alone), a twentieth noisy (ten times the usual noise
on top of the signal). ``in_place`` counts all channels that are not dead, the noisy ones among
them, up to motions that carry every living contact to a contact. Thresholds were set on seeds 0 to
2, 10 to 12, 30 to 34 and 40 (the line, low-passed), with four recordings of seeds 22 to 24 in
view; of the fresh seeds, 40 to 44, the others were not looked at.

The four checks of a recording share one reading of its traces.

Each case is written when it is done, and those that are there are not measured again.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from importlib import metadata
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from scipy.signal import butter, sosfiltfilt

from _common import RESULTS, made, write
from symlift.ephys import check_probe, match_probe
from symlift.ephys.channels import Channels, read_channels
from symlift.maps.motions import motions_of
from symlift.solvers.fast.place.points import in_steps

NAME = "ephys"
SEEDS, FRESH = range(20, 25), range(40, 45)
RATE, SECONDS, USUAL = 25_000.0, 60.0, 5.0
SWAPS = (0, 1, 3, 10)
READ: dict[str, Channels] = {}


def probe_named(name: str) -> Any:
    """One of the three probes, its channels in the order of its contacts."""
    from probeinterface import generate_linear_probe, generate_multi_columns_probe
    from probeinterface.neuropixels_tools import build_neuropixels_probe

    if name == "linear32":
        probe = generate_linear_probe(num_elec=32, ypitch=20)
    elif name == "array8x8":
        probe = generate_multi_columns_probe(
            num_columns=8, num_contact_per_column=8, xpitch=30, ypitch=30
        )
    else:
        probe = build_neuropixels_probe("NP1000").get_slice(np.arange(96))
    probe.set_device_channel_indices(np.arange(probe.get_contact_count()))
    return probe


def traces_of(probe: Any, seed: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Traces, channels in the order of contacts, and the dead ones."""
    from spikeinterface.core import generate_ground_truth_recording

    d = probe.get_contact_count()
    recording, _ = generate_ground_truth_recording(
        durations=[SECONDS], sampling_frequency=RATE, probe=probe, num_units=d, seed=seed
    )
    traces = np.array(recording.get_traces(), dtype=np.float32)
    rng = np.random.default_rng(1000 + seed)
    dead, noisy = dead_and_noisy(d, rng)
    for number, channel in enumerate(dead):
        traces[:, channel] = 0 if number % 2 else rng.normal(0, USUAL, len(traces))
    for channel in noisy:
        traces[:, channel] += rng.normal(0, 10 * USUAL, len(traces)).astype(np.float32)
    return traces, np.sort(dead)


def dead_and_noisy(d: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A tenth of the channels, and a twentieth."""
    bad = rng.permutation(d)[: round(0.1 * d) + round(0.05 * d)]
    return bad[: round(0.1 * d)], bad[round(0.1 * d) :]


def dead_of(d: int, seed: int) -> NDArray[np.int64]:
    """The dead channels of `traces_of`."""
    return np.sort(dead_and_noisy(d, np.random.default_rng(1000 + seed))[0])


def low_passed(traces: NDArray[np.float32]) -> NDArray[np.float32]:
    """Below 300 Hz."""
    sos = butter(5, 300, "low", fs=RATE, output="sos")
    return np.stack([sosfiltfilt(sos, column).astype(np.float32) for column in traces.T], axis=1)


def recording_of(traces: NDArray, probe: Any, order: NDArray[np.int64]) -> Any:
    """A recording whose channel k is contact order[k], with the probe wired so."""
    from spikeinterface.core import NumpyRecording

    recording = NumpyRecording([traces[:, order]], RATE)
    wired = probe.copy()
    wired.set_device_channel_indices(np.argsort(order))
    recording.set_probe(wired)
    return recording


def matched(traces: NDArray, probe: Any, dead: NDArray, seed: int) -> dict[str, Any]:
    """Channels in unknown order, wired by `match_probe`; read back from the recording that takes
    the result.
    """
    d = probe.get_contact_count()
    order = np.random.default_rng(2000 + seed).permutation(d)
    recording = recording_of(traces, probe, order)
    began = time.perf_counter(), time.process_time()
    wired = match_probe(recording, probe)
    wall, processor = time.perf_counter() - began[0], time.process_time() - began[1]
    recording.set_probe(wired.probe)
    where = recording.get_channel_locations()
    contact = np.argmin(
        np.sum((probe.contact_positions[None] - where[:, None]) ** 2, axis=-1), axis=1
    )
    living = np.flatnonzero(~np.isin(order, dead))
    truth = order[living]
    score = max(
        float(np.mean(to[truth] == contact[living]))
        for to in motions_of(in_steps(probe.contact_positions)[0], truth)
    )
    return {
        "in_place": round(score, 4),
        "confidence": round(float(np.median(wired.confidence[living])), 3),
        "seconds": round(wall, 1),
        "cpu_seconds": round(processor, 1),
    }


def shared_reading(key: str) -> Any:
    """Within it, traces that were read under the same key are not read again."""

    def once(*arguments: Any) -> Channels:
        if key not in READ:
            READ.clear()
            READ[key] = read_channels(*arguments)
        return READ[key]

    return patch("symlift.ephys.probes.read_channels", once)


def checked(
    traces: NDArray, probe: Any, dead: NDArray, seed: int, swaps: int, key: str
) -> dict[str, Any]:
    """A map with so many living pairs swapped, and what `check_probe` says."""
    d = probe.get_contact_count()
    rng = np.random.default_rng(3000 + seed)
    pairs = rng.permutation(np.setdiff1d(np.arange(d), dead))[: 2 * swaps].reshape(-1, 2)
    order = np.arange(d)
    for a, b in pairs:
        order[[a, b]] = order[[b, a]]
    recording = recording_of(traces, probe, np.arange(d))
    wired = probe.copy()
    wired.set_device_channel_indices(order)
    began = time.perf_counter()
    with shared_reading(key):
        check = check_probe(recording, wired)
    ids = {channel: i for i, channel in enumerate(recording.channel_ids)}
    named = {frozenset(ids[channel] for channel in group) for group in check.swapped}
    wanted = {frozenset(int(i) for i in pair) for pair in pairs}
    return {
        "swaps": swaps,
        "right": len(named & wanted),
        "wrong": len(named - wanted),
        "missed": len(wanted - named),
        "ok": check.ok,
        "dead_right": sorted(ids[channel] for channel in (*check.dead, *check.silent))
        == dead.tolist(),
        "seconds": round(time.perf_counter() - began, 1),
    }


def measured(traces: NDArray, probe: Any, dead: NDArray, seed: int, key: str) -> dict[str, Any]:
    """One recording, matched and checked."""
    return made() | {
        "match": matched(traces, probe, dead, seed),
        "checks": [checked(traces, probe, dead, seed, swaps, key) for swaps in SWAPS],
    }


def known() -> dict[str, Any]:
    path = RESULTS / f"{NAME}.json"
    return json.loads(path.read_text())["cases"] if path.is_file() else {}


def summary(cases: dict[str, Any]) -> dict[str, Any]:
    """For each probe and filter: places, precision and recall of swaps, alarms on right maps."""
    table: dict[str, Any] = {}
    for key, case in cases.items():
        probe, seed, kind = key.split("/")
        row = table.setdefault(
            f"{probe}/{kind}/{'fresh' if int(seed) in FRESH else 'first'}",
            {"in_place": [], "right": 0, "wrong": 0, "missed": 0, "alarms": 0, "maps": 0},
        )
        row["in_place"].append(case["match"]["in_place"])
        for check in case["checks"]:
            for name in ("right", "wrong", "missed"):
                row[name] += check[name]
            if not check["swaps"]:
                row["maps"] += 1
                row["alarms"] += not check["ok"]
    for row in table.values():
        row["mean"], row["worst"] = round(float(np.mean(row["in_place"])), 4), min(row["in_place"])
        row["precision"] = round(row["right"] / max(row["right"] + row["wrong"], 1), 4)
        row["recall"] = round(row["right"] / max(row["right"] + row["missed"], 1), 4)
    return table


def main(names: list[str]) -> None:
    """Measure what is not there yet."""
    warnings.simplefilter("ignore")
    for seed in (*FRESH, *SEEDS):
        for name in names or ("linear32", "array8x8", "neuropixels96"):
            probe = probe_named(name)
            traces: NDArray | None = None
            for kind in ("as they are", "below 300 Hz"):
                cases, key = known(), f"{name}/{seed}/{kind}"
                if key in cases:
                    continue
                if traces is None:
                    traces, dead = traces_of(probe, seed)
                used = traces if kind == "as they are" else low_passed(traces)
                cases[key] = case = measured(used, probe, dead, seed, key)
                versions = {
                    package: metadata.version(package)
                    for package in ("spikeinterface", "probeinterface", "numpy", "scipy")
                }
                write(NAME, {"versions": versions, "summary": summary(cases), "cases": cases})
                print(key, json.dumps(case), flush=True)
    print(json.dumps(summary(known()), indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
