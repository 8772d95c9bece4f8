"""Runs of eight kinds, made by the command line's own code, whose reports a browser opens."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from symlift.core.sphere import spread_points
from symlift.datasets import gsn, sphere_noise
from symlift.report import write_report
from symlift.runs.recover import recover

__all__ = ["CASES", "make_report"]


def _table(path: Path, X: NDArray, names: list[str]) -> Path:
    np.savetxt(path, X, fmt="%.5g", delimiter=",", header=",".join(names), comments="")
    return path


def _photographs(rng: np.random.Generator, n: int, side: int, channels: int = 1) -> NDArray:
    """Patches (n, side, side, channels) of smooth random scenes with edges, which look like
    photographs.
    """
    scene = rng.normal(size=(256, 256))
    k = np.fft.fftfreq(256)
    spectrum = np.hypot(k[:, None], k) ** 1.2 + 0.004
    field = np.fft.ifft2(np.fft.fft2(scene) / spectrum).real
    field = np.tanh(2 * field / field.std())
    rows, columns = rng.integers(0, 256 - side, size=(2, n))
    patch = np.stack(
        [field[r : r + side, c : c + side] for r, c in zip(rows, columns, strict=True)]
    )
    tints = rng.uniform(0.5, 1.5, size=(n, 1, 1, channels))
    return patch[..., None] * tints + 0.05 * rng.normal(size=(n, side, side, channels))


def line(folder: Path, rng: np.random.Generator) -> tuple[Path, dict]:
    X = gsn(3000, 24, transform="permutation", random_state=1).X
    X = np.column_stack([X, np.full(3000, 0.25)])  # one sensor is dead
    return _table(folder / "sensors.csv", X, [f"T{i:02}" for i in range(25)]), {"grid": "24"}


def ring(folder: Path, rng: np.random.Generator) -> tuple[Path, dict]:
    X = gsn(3000, 15, periodic=True, transform="permutation", random_state=2).X
    return _table(folder / "ring.csv", X, [f"coil-{i}" for i in range(15)]), {
        "grid": "15",
        "periodic": True,
    }


def image(folder: Path, rng: np.random.Generator) -> tuple[Path, dict]:
    X = _photographs(rng, 4000, 12).reshape(4000, -1)
    np.save(folder / "photographs.npy", X[:, rng.permutation(144)].astype(np.float32))
    return folder / "photographs.npy", {"grid": "12x12"}


def colour(folder: Path, rng: np.random.Generator) -> tuple[Path, dict]:
    X = _photographs(rng, 4000, 8, channels=3).reshape(4000, -1)
    np.save(folder / "colour.npy", X[:, rng.permutation(192)].astype(np.float32))
    return folder / "colour.npy", {"grid": "8x8"}


def volume(folder: Path, rng: np.random.Generator) -> tuple[Path, dict]:
    X = gsn(3000, (5, 5, 5), transform="permutation", random_state=3).X
    np.save(folder / "volume.npy", X.astype(np.float32))
    return folder / "volume.npy", {"grid": "5x5x5"}


def recording(folder: Path, rng: np.random.Generator) -> tuple[Path, dict]:
    """Spike counts of 20 cells that prefer directions; the animal looks more often one way."""
    angle = np.cumsum(rng.normal(0, 0.35, size=2500)) + 0.6 * np.sin(np.linspace(0, 40, 2500))
    preferred = rng.uniform(0, 2 * np.pi, size=20)
    rate = 0.2 + 6 * np.exp(3 * (np.cos(angle[:, None] - preferred) - 1))
    return _table(folder / "spikes.csv", rng.poisson(rate), [f"unit_{i:02}" for i in range(20)]), {
        "grid": "18", "periodic": True, "solver": "ring",
    }  # fmt: skip


def sphere(folder: Path, rng: np.random.Generator) -> tuple[Path, dict]:
    """Columns all around a globe, in any order; one is dead."""
    places = spread_points(50)[rng.permutation(50)]
    X = sphere_noise(2500, 6, sensors=places, noise=0.2, width=0.4, random_state=4).X
    X[:, 7] = 0.5
    return _table(folder / "stations.csv", X, [f"S{i:02}" for i in range(50)]), {"grid": "sphere"}


def field(folder: Path, rng: np.random.Generator) -> tuple[Path, dict]:
    """A field on a sphere behind a rotation."""
    np.save(folder / "field.npy", sphere_noise(4000, 4, random_state=5).X)
    return folder / "field.npy", {"grid": "sphere", "mixing": "orthogonal"}


CASES: dict[str, Callable[[Path, np.random.Generator], tuple[Path, dict]]] = {
    "line": line,
    "ring": ring,
    "image": image,
    "colour": colour,
    "volume": volume,
    "recording": recording,
    "sphere": sphere,
    "field": field,
}


def make_report(kind: str, folder: Path) -> Path:
    """Recover one case in ``folder``, and write its report."""
    data, settings = CASES[kind](folder, np.random.default_rng(7))
    run = recover(data, folder / kind, seed=0, overwrite=True, **settings)
    assert run is not None
    return write_report(run.folder)
