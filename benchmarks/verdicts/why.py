"""Single cases that earlier versions judged wrongly: their verdicts now, and after following the
proposed next step.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _array_cases import PHOTOGRAPHS, Case, bits, patches, placed, shuffled
from _common import write
from symlift import Diagnosis, Grid, LatentDomain
from symlift.datasets import gsn, random_orthogonal
from symlift.diagnosis.settings import DiagnosisSettings
from symlift.errors import FitWarning
from symlift.metrics import signal_recovery
from symlift.statistics.selection import held_out_in_window
from verdicts.positives import smooth_field

Named = tuple[str, Case, dict[str, Any]]
ACCEPTED, RIGHT = ("present", "ordered"), 0.5


def rotated(field: NDArray, side: int, seed: int) -> tuple[Case, dict[str, Any]]:
    """Images behind a dense rotation."""
    X = field.reshape(len(field), -1).astype(np.float64)
    Q = random_orthogonal(X.shape[1], random_state=seed)
    grid, nowhere = Grid((side, side)), np.full(X.shape[1], -1)
    return Case(X @ Q, grid, nowhere, nowhere, X), {"mixing": "orthogonal"}


def without(X: NDArray, shape: tuple[int, ...]) -> Case:
    """Data that have no symmetry on this grid."""
    nowhere = np.full(X.shape[1], -1)
    return Case(X, Grid(shape), nowhere, nowhere)


def cases(rng: np.random.Generator) -> Iterator[Named]:
    """Name, data, parameters; those that take long come last."""
    yield from _without(rng)
    yield from _damaged(rng)
    yield from _images(rng)


def _without(rng: np.random.Generator) -> Iterator[Named]:
    shuffle: dict[str, Any] = {"mixing": "shuffled"}
    for d in (4, 5, 6, 7, 8, 9, 10, 12):
        X = rng.normal(size=(1_000, 3)) @ rng.normal(size=(3, d)) + 0.5 * rng.normal(
            size=(1_000, d)
        )
        yield f"{d} columns of factors, any grid", without(X, (d,)), {"grid": "auto", **shuffle}
    one = rng.normal(size=(2_000, 1))
    yield "15 identical columns", without(np.repeat(one, 15, axis=1), (15,)), shuffle
    yield "rank one", without(one * rng.uniform(-2, 2, 15), (15,)), shuffle
    walks = np.cumsum(rng.normal(size=(2_000, 16)) + 0.1 * rng.normal(size=16), axis=0)
    yield "drifting walks", without(walks, (16,)), shuffle
    slow = np.cumsum(rng.normal(size=(4_000, 16)), axis=0)
    yield (
        "slow series",
        without(
            slow - np.apply_along_axis(np.convolve, 0, slow, np.ones(101) / 101, "same"), (16,)
        ),
        shuffle,
    )


def _damaged(rng: np.random.Generator) -> Iterator[Named]:
    shuffle: dict[str, Any] = {"mixing": "shuffled"}
    line = smooth_field(rng, 3_000, (24,), 1.0)
    yield (
        "line of 24 under noise",
        shuffled(line + 1.2 * rng.normal(size=line.shape), Grid((24,)), rng),
        shuffle,
    )
    wild = np.where(
        rng.uniform(size=line.shape) < 0.001, 1_000 * line, line + 0.1 * rng.normal(size=line.shape)
    )
    yield "line of 24, wild entries", shuffled(wild, Grid((24,)), rng), shuffle
    probe = smooth_field(rng, 3_000, (24, 2), 1.0)
    yield (
        "probe of 24x2",
        shuffled(probe + 0.1 * rng.normal(size=probe.shape), Grid((24, 2)), rng),
        shuffle,
    )
    rare = shuffled(line + 0.1 * rng.normal(size=line.shape), Grid((24,)), rng)
    rare.X[:, 5] = np.arange(len(line)) == 7
    rare.point[5] = -1
    yield "a column that varies in one row", rare, shuffle
    table = shuffled(line + 0.1 * rng.normal(size=line.shape), Grid((24,)), rng)
    beside = Case(
        np.c_[np.arange(len(line)), table.X],
        table.grid,
        np.r_[-1, table.point],
        np.r_[-1, table.channel],
    )
    yield "24 sensors and the row number", beside, {"grid": "auto", **shuffle}
    bent = gsn(4_000, 21, transform="permutation", random_state=2)
    yield "a line of 21, fitted as a ring", without(bent.X, (21,)), {"periodic": True}


def _images(rng: np.random.Generator) -> Iterator[Named]:
    from sklearn.datasets import load_digits

    digits = load_digits().data.astype(np.float32)
    for half in (0, 1):
        yield (
            f"whole digits 8x8, half {half}",
            shuffled(digits[half::2], Grid((8, 8)), rng),
            {"mixing": "shuffled"},
        )
    yield "whole digits 8x8, all", shuffled(digits, Grid((8, 8)), rng), {"mixing": "shuffled"}
    yield "bits of photographs 9x9", bits(9, 20_000, rng), {}
    yield (
        "photographs 10x10 behind a rotation",
        *rotated(patches(20_000, (10, 10), rng, PHOTOGRAPHS), 10, 0),
    )
    folder = os.environ.get("SYMLIFT_DATA")
    if folder is not None:
        images = np.load(Path(folder) / "mnist.npz")["x_train"][:20_000].astype(np.float32)
        for side in (10, 12):
            inside = rng.integers(4, 24 - side + 1, size=(2, len(images)))
            yield (
                f"MNIST {side}x{side} behind a rotation",
                *rotated(cut(images, inside, side), side, 0),
            )
            # the next step of the case before, followed: cut anywhere, margins included
            padded = np.pad(images, ((0, 0), (side - 1, side - 1), (side - 1, side - 1)))
            anywhere = rng.integers(0, 28 + side - 1, size=(2, len(images)))
            yield (
                f"MNIST {side}x{side} behind a rotation, cut anywhere",
                *rotated(cut(padded, anywhere, side), side, 0),
            )


def cut(images: NDArray, corners: NDArray, side: int) -> NDArray:
    """One square of each image, at its corner (2, n)."""
    return np.stack(
        [z[a : a + side, b : b + side] for z, a, b in zip(images, *corners, strict=True)]
    )


def why() -> None:
    """Fit, note warnings, diagnose, and follow the next step; written after each case."""
    table: list[dict[str, Any]] = []
    for name, case, params in cases(np.random.default_rng(0)):
        given = {"grid": case.grid.shape, "random_state": 0, **params}
        start = time.process_time()
        est, warned = _fitted(case.X, given)
        seconds = time.process_time() - start
        start = time.process_time()
        judged = _diagnosed(est, case.X)
        checked = time.process_time() - start
        value = _truth(case, est)
        accepted = judged.verdict.value in ACCEPTED
        claimable = value is not None and value >= RIGHT and _has_symmetry(case)
        row = {
            "data": name,
            "truth": None if value is None else round(value, 3),
            "warned": warned,
            "verdict": judged.verdict.value,
            "right": accepted == claimable == (not warned),
            "confidence": judged.confidence,
            "tests": judged.tally,
            "step": judged.next_steps[0].text if judged.next_steps else "",
            "followed": _followed(case.X, given, judged),
            "seconds": round(seconds, 1),
            "check_seconds": round(checked, 2),
        }
        table.append(row)
        print(row, flush=True)
        write("diagnosis_why", {"table": table})
    print(f"judged wrongly: {sum(not row['right'] for row in table)} of {len(table)}")


def _fitted(X: NDArray, given: dict[str, Any]) -> tuple[LatentDomain, bool]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FitWarning)
        est = LatentDomain(**given).fit(X)
    return est, any("no identifiable domain" in str(one.message) for one in caught)


def _diagnosed(est: LatentDomain, X: NDArray) -> Diagnosis:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        return est.diagnose(X)


def _truth(case: Case, est: LatentDomain) -> float | None:
    """Share of the columns in place, or correlation of signals; None where there is no symmetry."""
    if (case.point >= 0).any() and est.placement_ is not None:
        return float(placed(case.point, est.placement_.point, case.grid)[0])
    if case.latent is not None:
        return float(signal_recovery(case.latent, est.transform(case.X), case.grid).r)
    return None


def _has_symmetry(case: Case) -> bool:
    """Whether the signals behind a mixing are stationary, as "present" would say that they are.

    Digits cut from the middle of their images are brighter in the middle: 0.02 and 0.04 from
    stationary moments; cut anywhere, 0.001.
    """
    if case.latent is None or (case.point >= 0).any():
        return True  # columns in places can be in order where the field is not stationary
    some = np.asarray(case.latent[:8_000], dtype=np.float64)
    held = held_out_in_window(np.eye(case.grid.size), some, case.grid, 1)
    return held.stationarity <= DiagnosisSettings().stationarity + 0.001


def _followed(X: NDArray, given: dict[str, Any], diagnosis: Diagnosis) -> str:
    """The verdict after the first step that gives parameters, where there is one."""
    step = next((step for step in diagnosis.next_steps if step.params), None)
    if step is None:
        return ""
    est, _ = _fitted(X, {**given, **step.params})
    return _diagnosed(est, X).verdict.value
