"""Neurons tuned to a direction, recorded without a map: find the ring, decode the direction, and
see where decoding fails.

Run: python examples/neural_population.py [--out FOLDER] [-n ROWS]
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from symlift import LatentDomain
from symlift.metrics import circular_correlation

NEURONS = 33


def record(n: int, rng: np.random.Generator, uneven: float) -> tuple[NDArray, NDArray]:
    """Poisson counts (n, neurons) of von Mises tuned neurons in random order, and the direction of
    each row.

    ``uneven`` 0: evenly spaced preferred directions, one gain, one width. 1: random directions,
    gains and widths.
    """
    direction = rng.uniform(0, 2 * np.pi, n)
    even = 2 * np.pi * np.arange(NEURONS) / NEURONS
    preferred = (1 - uneven) * even + uneven * rng.uniform(0, 2 * np.pi, NEURONS)
    gain = 8 * np.exp(0.4 * uneven * rng.normal(size=NEURONS))
    width = 3 * np.exp(0.5 * uneven * rng.normal(size=NEURONS))
    rate = gain * np.exp(width * (np.cos(direction[:, None] - preferred) - 1)) + 0.2
    return rng.poisson(rate)[:, rng.permutation(NEURONS)].astype(float), direction


def decode(name: str, counts: NDArray, direction: NDArray, seed: int) -> dict[str, Any]:
    """Ring, phase and diagnosis; for comparison, the plane of the two strongest principal
    components.
    """
    X = np.sqrt(counts)  # the square root makes the Poisson noise of all neurons alike
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        est = LatentDomain(grid=(NEURONS,), periodic=True, random_state=seed).fit(X)
    diagnosis = est.diagnose(X)
    plane = PCA(2, random_state=seed).fit_transform(X)
    pca = abs(circular_correlation(direction, np.arctan2(plane[:, 1], plane[:, 0])))
    phase = est.phase(X)
    ours = abs(circular_correlation(direction, phase))
    print(f"{name}: circular correlation {ours:.3f} (principal plane {pca:.3f}); {diagnosis}")
    for warning in caught:
        print(f"{name}: warning: {warning.message}")
    return {
        "correlation": ours,
        "pca": pca,
        "verdict": diagnosis.verdict,
        "phase": phase,
        "direction": direction,
    }


def main(n: int = 4000, out: Path | None = None, seed: int = 0) -> dict[str, Any]:
    """An even and an uneven population; returns what is printed."""
    rng = np.random.default_rng(seed)
    decoded = {
        name: decode(name, *record(n, rng, uneven), seed)
        for name, uneven in (("even", 0.0), ("uneven", 1.0))
    }
    if out is not None:
        from matplotlib.figure import Figure

        out.mkdir(parents=True, exist_ok=True)
        figure = Figure(figsize=(7, 3.4), layout="constrained")
        for axes, (name, result) in zip(figure.subplots(1, 2), decoded.items(), strict=True):
            axes.plot(result["direction"], result["phase"], ".", markersize=1)
            axes.set(title=name, xlabel="direction", ylabel="phase found")
        figure.savefig(out / "population.png", dpi=120)
    return decoded


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("-n", type=int, default=4000, help="number of time bins")
    parser.add_argument("--out", type=Path, help="folder for the figure")
    arguments = parser.parse_args()
    main(arguments.n, arguments.out)
