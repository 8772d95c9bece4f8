"""The paper's test of the action on recordings: samples moved by one step of the stimulus.

Rows of one stimulus, moved by the learned generator to the next one, are compared with the real
rows of that stimulus, in the first principal components.  Controls: rows as they were, rows moved
the wrong way, and rows moved by a generator of the same spectrum in random directions.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from symlift.estimator import LatentDomain
from symlift.metrics import circular_correlation
from symlift.report.ring import energy_distance, overlap

__all__ = ["Transport", "transport_rows"]

COMPONENTS = 6


@dataclass(frozen=True)
class Transport:
    """Shares of the energy distance to the target that a move removes: medians over the steps.

    1 is arrival, 0 is what rows have that stay where they are, negative numbers are further away.
    ``worst_step`` is the least over the steps.  ``mixed`` and ``mixed_unmoved`` are overlaps with
    the real rows, moved and as they were.
    """

    removed: float
    worst_step: float
    wrong_way: float
    random_generator: float
    mixed: float
    mixed_unmoved: float

    def summary(self) -> dict[str, float]:
        """All numbers, rounded."""
        return {key: round(float(value), 4) for key, value in asdict(self).items()}


def transport_rows(
    estimator: LatentDomain,
    train: tuple[NDArray, NDArray],
    test: tuple[NDArray, NDArray],
    steps: int,
    rng: np.random.Generator,
) -> Transport:
    """Move rows of ``test`` by 1/``steps`` of a turn, both ways, with a model of ``train``'s rows.

    Each pair is (rows, angles in radians).  Of the labels of ``train`` only the sense of rotation
    is used, which no model can know.
    """
    X, angles = np.asarray(test[0], dtype=np.float64), np.ravel(test[1])
    seen = np.asarray(train[0], dtype=np.float64)
    sense = float(np.sign(circular_correlation(np.ravel(train[1]), estimator.phase(seen)))) or 1.0
    mean = seen.mean(axis=0)
    axes = np.linalg.svd(seen - mean, full_matrices=False)[2][:COMPONENTS].T
    sector = np.round(angles / (2 * np.pi / steps)).astype(int) % steps
    step = sense * estimator.grid_.size / steps
    Q = np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))[0]
    moved = {way: estimator.shift(X, way * step) for way in (-1, 1)}
    blind = {
        way: mean + (X - mean) @ (Q @ _linear_part(estimator, X.shape[1], way * step) @ Q.T)
        for way in (-1, 1)
    }
    shares: dict[str, list[float]] = {"right": [], "wrong": [], "random": []}
    overlaps: list[tuple[float, float]] = []
    for target in range(steps):
        real = (X[sector == target] - mean) @ axes
        for way in (-1, 1):
            source = sector == (target - way) % steps
            if min(len(real), source.sum()) < 2:
                continue
            before = (X[source] - mean) @ axes
            far = energy_distance(before, real)
            for name, rows in (
                ("right", moved[way]),
                ("wrong", moved[-way]),
                ("random", blind[way]),
            ):
                after = (rows[source] - mean) @ axes
                shares[name].append(1 - energy_distance(after, real) / far)
            after = (moved[way][source] - mean) @ axes
            overlaps.append((overlap(after, real), overlap(before, real)))
    mixed, unmoved = np.mean(overlaps, axis=0)
    return Transport(
        float(np.median(shares["right"])),
        float(min(shares["right"])),
        float(np.median(shares["wrong"])),
        float(np.median(shares["random"])),
        float(mixed),
        float(unmoved),
    )


def _linear_part(estimator: LatentDomain, d: int, step: float) -> NDArray[np.float64]:
    """The matrix M of ``estimator.shift(X, step) = X M + b``."""
    origin = estimator.shift(np.zeros((1, d)), step)
    return np.asarray(estimator.shift(np.eye(d), step) - origin, dtype=np.float64)
