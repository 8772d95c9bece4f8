"""Montages that are wrong in the ways in which montages are: a recording and simulated caps.

    python benchmarks/montages.py FOLDER

FOLDER holds ``eeg_eeglab.npz`` (``X`` (n, d) in the order of time, ``coords`` (d, 2): polar
coordinates in a plane, a radius of 0.5 at a quarter of the sphere); without it, only the simulated
caps of `tests/test_eeg.py` are measured (64 sites, 40 sources, noise of a quarter of the signal).
Thirty single swaps of channels farther apart than two are on average, thirty of channels that are
not neighbours, two banks of eight exchanged, labels shifted by one, the bank in reverse order; the
true montage, on ten parts of the recording or ten simulated ones; and a cap turned and mirrored,
with two anchors. Where MNE is installed, true montages on the sites of its biosemi64 as well, with
noise of a quarter, a tenth and a thirtieth. What a row is worth was set on seeds 0 to 2 of the
caps.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist

from _common import made, write
from symlift.eeg import check_montage
from symlift.eeg.turned import centre_of

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))


def on_a_sphere(polar: NDArray) -> NDArray[np.float64]:
    """Sites in space from polar coordinates in a plane."""
    down, around = np.linalg.norm(polar, axis=1) * np.pi, np.arctan2(polar[:, 1], polar[:, 0])
    return np.c_[np.sin(down) * np.cos(around), np.sin(down) * np.sin(around), np.cos(down)]


def is_repaired(check: Any, at: NDArray) -> bool:
    return bool(np.abs(pdist(check.positions) - pdist(at)).max() < 1e-6 * np.ptp(at))


def named_swaps(X: NDArray, at: NDArray, least: float, rng: np.random.Generator) -> str:
    """How many of thirty swaps of channels farther apart are named, and nothing else."""
    far = np.argwhere(np.triu(cdist(at, at) > least))
    right = 0
    for i, j in far[rng.choice(len(far), 30, replace=False)]:
        to = np.arange(len(at))
        to[[i, j]] = j, i
        check = check_montage(X, at[to])
        groups = {frozenset(group) for group in check.swapped}
        right += groups == {frozenset((str(i), str(j)))} and not check.faults
    return f"{right} of 30"


def measured(X: NDArray, at: NDArray, parts: list[NDArray], seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    d = len(at)
    apart = cdist(at, at)
    np.fill_diagonal(apart, np.inf)
    began = time.process_time()
    case: dict[str, Any] = {
        "true montage": [check_montage(part, at).verdict.value for part in parts],
        "swaps beyond the mean distance": named_swaps(X, at, float(pdist(at).mean()), rng),
        "swaps beyond neighbours": named_swaps(
            X, at, 1.5 * float(np.median(apart.min(axis=1))), rng
        ),
    }
    exchanged, reverse = np.arange(d), np.arange(d)
    exchanged[:8], exchanged[-8:] = np.arange(d - 8, d), np.arange(8)
    reverse[8:16] = reverse[8:16][::-1]
    for name, to in (
        ("banks exchanged", exchanged),
        ("labels shifted", np.roll(np.arange(d), 1)),
        ("bank in reverse", reverse),
    ):
        check = check_montage(X, at[to])
        case[name] = [
            is_repaired(check, at),
            [one.sentence for one in check.faults],
            len(check.swapped),
        ]
    middle = centre_of(at)
    anchors = {str(k): at[k] for k in (3, d // 3)}
    for name, motion in (
        ("mirrored", np.diag([-1.0, 1.0, 1.0])),
        ("turned", np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])),
    ):
        claimed = (at - middle) @ motion + middle
        check = check_montage(X, claimed, anchors=anchors)
        case[name] = [
            [one.sentence for one in check.faults],
            bool(np.abs(check.positions - at).max() < 1e-6),
            check_montage(X, claimed).whole,
        ]
    return made() | case | {"seconds": round(time.process_time() - began, 1)}


def biosemi() -> NDArray[np.float64]:
    """Its 64 sites, with the middle of the head as origin."""
    import mne

    montage = mne.channels.make_standard_montage("biosemi64")
    return np.stack(list(montage.get_positions()["ch_pos"].values()))


def main(folder: str | None) -> None:
    from test_eeg import cap, signals  # type: ignore[import-not-found]

    results = {}
    if folder is not None:
        with np.load(Path(folder) / "eeg_eeglab.npz") as file:
            X, at = file["X"], on_a_sphere(file["coords"])
        results["eeg_eeglab"] = measured(X, at, np.array_split(X, 10), 0)
        print("eeg_eeglab", json.dumps(results["eeg_eeglab"]), flush=True)
    at = cap()
    for seed in (3, 4, 5):
        parts = [signals(at, 10 * (seed + 1) + k, rows=2000) for k in range(10)]
        name = f"simulated, seed {seed}"
        results[name] = measured(signals(at, seed), at, parts, seed)
        print(name, json.dumps(results[name]), flush=True)
    if find_spec("mne") is not None:
        at = biosemi()
        verdicts: dict[str, Any] = {}
        for noise in (0.25, 0.1, 0.03):
            drawn = [signals(at, seed, noise=noise) for seed in range(60, 80)]
            verdicts[f"noise {noise}"] = [check_montage(X, at).verdict.value for X in drawn]
        results["biosemi64, true montages"] = made() | verdicts
        print("biosemi64", json.dumps(verdicts), flush=True)
    write("montages", results)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
