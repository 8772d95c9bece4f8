"""Single cases that earlier versions judged wrongly, and what they are judged now."""

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
from symlift import Grid, LatentDomain
from symlift.datasets import random_orthogonal
from symlift.errors import FitWarning
from symlift.metrics import signal_recovery


def rotated(field: NDArray, side: int, seed: int) -> tuple[Case, dict[str, Any]]:
    """Images behind a dense rotation."""
    X = field.reshape(len(field), -1).astype(np.float64)
    Q = random_orthogonal(X.shape[1], random_state=seed)
    grid, nowhere = Grid((side, side)), np.full(X.shape[1], -1)
    return Case(X @ Q, grid, nowhere, nowhere, X), {"mixing": "orthogonal"}


def cases(rng: np.random.Generator) -> Iterator[tuple[str, Case, dict[str, Any]]]:
    """Name, data, parameters."""
    from sklearn.datasets import load_digits

    folder = os.environ.get("SYMLIFT_DATA")
    if folder is not None:
        images = np.load(Path(folder) / "mnist.npz")["x_train"][:20_000].astype(np.float32)
        for side in (10, 12):
            top, left = rng.integers(4, 24 - side + 1, size=(2, len(images)))
            crops = np.stack([z[a : a + side, b : b + side] for z, a, b in zip(images, top, left, strict=True)])
            yield f"MNIST {side}x{side} behind a rotation", *rotated(crops, side, 0)
    yield "photographs 10x10 behind a rotation", *rotated(patches(20_000, (10, 10), rng, PHOTOGRAPHS), 10, 0)
    digits = load_digits().data.astype(np.float32)
    for half in (0, 1):
        yield f"whole digits 8x8, half {half}", shuffled(digits[half::2], Grid((8, 8)), rng), {"mixing": "shuffled"}
    yield "bits of photographs 9x9", bits(9, 20_000, rng), {}
    for d in (4, 5, 6, 7, 8, 9, 10, 12):
        X = rng.normal(size=(1_000, 3)) @ rng.normal(size=(3, d)) + 0.5 * rng.normal(size=(1_000, d))
        nowhere = np.full(d, -1)
        yield (
            f"{d} columns of factors, any grid",
            Case(X, Grid((d,)), nowhere, nowhere),
            {"grid": "auto", "mixing": "shuffled"},
        )


def why() -> None:
    """Fit, say whether the fit warned, and diagnose."""
    table = []
    for name, case, params in cases(np.random.default_rng(0)):
        given = {"grid": case.grid.shape, "random_state": 0, **params}
        start = time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", FitWarning)
            est = LatentDomain(**given).fit(case.X)
        seconds = time.process_time() - start
        warned = any("no identifiable domain" in str(one.message) for one in caught)
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            found = est.diagnose(case.X)
        share = r = None
        if (case.point >= 0).any() and est.placement_ is not None:
            share = round(placed(case.point, est.placement_.point, case.grid)[0], 3)
        elif case.latent is not None:
            r = round(float(signal_recovery(case.latent, est.transform(case.X), case.grid).r), 3)
        row = {
            "data": name, "placed": share, "r": r, "warned": warned, "verdict": found.verdict.value,
            "confidence": found.confidence, "step": found.next_steps[0].text if found.next_steps else "",
            "seconds": round(seconds, 1), "check_seconds": round(time.process_time() - start, 1),
        }  # fmt: skip
        table.append(row)
        print(row, flush=True)
    print(write("diagnosis_why", {"table": table}))
