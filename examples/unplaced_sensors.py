"""Sensors at unknown places along a line, and the same sensors behind an unknown mixing of all
channels.

Run: python examples/unplaced_sensors.py [--out FOLDER] [-n ROWS]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from symlift import LatentDomain
from symlift.datasets import Observations, gsn
from symlift.metrics import align, signal_recovery
from symlift.plotting import gallery, save_figure

SENSORS = 31


def unordered(n: int, seed: int) -> dict[str, Any]:
    """Each channel is one sensor; which one is unknown."""
    data = gsn(n, SENSORS, transform="permutation", random_state=seed)
    est = LatentDomain(grid=(SENSORS,), random_state=seed).fit(data.X)
    channel_at = np.abs(est.lifting_map_).argmax(axis=1)  # channel at each place
    truth = np.argmax(data.transform, axis=1) if data.transform is not None else channel_at
    rho = float(spearmanr(np.argsort(channel_at), np.argsort(truth)).statistic)
    diagnosis = est.diagnose(data.X)
    print(
        f"unordered: places of the {SENSORS} channels, rank correlation {abs(rho):.4f} with the"
        f" truth; {diagnosis}"
    )
    return {"rho": abs(rho), "verdict": diagnosis.verdict}


def mixed(n: int, seed: int) -> tuple[dict[str, Any], Observations, LatentDomain]:
    """Each channel is a different mixture of all sensors."""
    data = gsn(n, SENSORS, transform="orthogonal", random_state=seed)
    est = LatentDomain(grid=(SENSORS,), random_state=seed).fit(data.X)
    r = signal_recovery(data.latent, est.transform(data.X), data.grid).r
    diagnosis = est.diagnose(data.X)
    evidence = est.evidence_
    print(f"mixed: r = {r:.4f} with what the sensors would have read; {diagnosis}")
    print(
        f"mixed: locality {evidence.locality:.2f}, non-Gaussian by {evidence.nongaussianity:.0f}"
        " deviations"
    )
    return {"r": float(r), "verdict": diagnosis.verdict}, data, est


def main(n: int = 6000, out: Path | None = None, seed: int = 0) -> dict[str, Any]:
    """Both cases; returns what they print."""
    first = unordered(min(n, 3000), seed)
    second, data, est = mixed(n, seed)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        Y = est.transform(data.X)
        alignment = signal_recovery(data.latent, Y, data.grid).alignment
        assert alignment is not None
        shown = np.argsort(-data.latent[:500].var(axis=1))[:8]
        rows: dict[str, Any] = {
            "channels": data.X[shown],
            "recovered": align(Y[shown], alignment, data.grid),
            "hidden": data.latent[shown],
        }
        save_figure(
            gallery(rows, data.grid, title=f"mixed sensors: r = {second['r']:.3f}"),
            out / "sensors.png",
        )
        print(f"picture: {out / 'sensors.png'}")
    return {"unordered": first, "mixed": second}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("-n", type=int, default=6000, help="number of readings")
    parser.add_argument("--out", type=Path, help="folder for the figure")
    arguments = parser.parse_args()
    main(arguments.n, arguments.out)
