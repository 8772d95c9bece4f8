"""The forty data sets that version 0.1.0 was judged by: twenty with a symmetry, and twenty without.

With: shuffled and densely mixed shot noise on lines, rings and grids, wavelets, spins under a
linear map. Without: white noise, Gaussian mixtures, low-rank blobs, columns permuted sample-wise,
Gaussian surrogates under a dense mixing on a ring. A wrong verdict is anything but "present" on the
first, and "present" or "ordered" on the second.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _common import write
from symlift import LatentDomain
from symlift.datasets import gsn, ising, random_orthogonal
from symlift.diagnosis import Verdict
from symlift.errors import FitWarning

Case = tuple[NDArray, Any, Any]


def with_symmetry(kind: int, seed: int) -> tuple[str, Case]:
    """Five kinds, four seeds each."""
    if kind == 0:
        name, data = (
            "line 31, shuffled",
            gsn(8_000, 31, transform="permutation", random_state=seed),
        )
    elif kind == 1:
        name, data = (
            "ring 15, dense",
            gsn(12_000, 15, periodic=True, transform="orthogonal", random_state=seed),
        )
    elif kind == 2:
        name, data = (
            "8x8, shuffled",
            gsn(8_000, (8, 8), transform="permutation", random_state=seed),
        )
    elif kind == 3:
        name, data = (
            "wavelets 31, dense",
            gsn(30_000, 31, basis="legendre", transform="orthogonal", random_state=seed),
        )
    else:
        name, data = "spins 17, linear", ising(30_000, 17, transform="linear", random_state=seed)
    return name, (data.X, data.grid.shape, data.grid.periodic)


def without_symmetry(kind: int, seed: int) -> tuple[str, Case]:
    """Five kinds, four seeds each."""
    rng = np.random.default_rng(seed)
    n, d = 8_000, 15
    if kind == 0:
        return "white noise", (rng.normal(size=(n, d)), (d,), seed % 2 == 0)
    if kind == 1:
        centres = 3 * rng.normal(size=(5, d))
        return "Gaussian mixture", (
            centres[rng.integers(5, size=n)] + rng.normal(size=(n, d)),
            (d,),
            False,
        )
    if kind == 2:
        blob = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) + 0.1 * rng.normal(size=(n, d))
        return "low-rank blob", (blob, (3, 5), False)
    if kind == 3:
        X = gsn(n, d, transform="orthogonal" if seed % 2 else "permutation", random_state=seed).X
        return "columns permuted", (rng.permuted(X, axis=0), (d,), False)
    field = np.fft.irfft(np.fft.rfft(rng.normal(size=(n, d))) / (1 + np.arange(d // 2 + 1) ** 2), d)
    return "Gaussian ring, dense", (field @ random_orthogonal(d, random_state=seed), (d,), True)


def forty() -> None:
    """Judge them, at both levels, and keep the table."""
    warnings.simplefilter("ignore", FitWarning)
    table: list[dict[str, Any]] = []
    for expected, make in ((True, with_symmetry), (False, without_symmetry)):
        for kind in range(5):
            for seed in range(4):
                name, (X, shape, periodic) = make(kind, seed)
                est = LatentDomain(grid=shape, periodic=periodic, random_state=seed).fit(X)
                start = time.process_time()
                quick, full = est.diagnose(X), est.diagnose(X, level="full")
                right = all(
                    one.verdict is Verdict.PRESENT
                    if expected
                    else one.verdict not in (Verdict.PRESENT, Verdict.ORDERED)
                    for one in (quick, full)
                )
                seconds = round(time.process_time() - start, 1)
                table.append(
                    {
                        "data": name,
                        "seed": seed,
                        "expected": expected,
                        "verdict": quick.verdict.value,
                        "full": full.verdict.value,
                        "confidence": quick.confidence,
                        "right": right,
                        "seconds": seconds,
                        "tests": {test.name: test.value for test in full.tests},
                    }
                )
                mark = "" if right else "   <- wrong"
                print(f"{name:22} seed {seed}: {quick} / {full} {seconds} s{mark}", flush=True)
    wrong = {
        key: sum(not row["right"] for row in table if row["expected"] is key)
        for key in (True, False)
    }
    print(f"wrong with a symmetry: {wrong[True]} of 20; wrong without: {wrong[False]} of 20")
    print(
        write(
            "diagnosis", {"wrong_with": wrong[True], "wrong_without": wrong[False], "table": table}
        )
    )
