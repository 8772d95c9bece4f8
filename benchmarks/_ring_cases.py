"""Rows with and without a ring in them, matched in size and noise, for `ring_question.py`.

Every case is drawn by its seed alone. A *null* has something a ring can be mistaken for; a
*positive* has a ring. Both come in three kinds of rows, which are drawn alike for both: counts of
tuned units, the same units with Gaussian noise, and an embedding of few dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["NULLS", "OTHERS", "POSITIVES", "Case", "draw", "noisy_ring"]

UNITS = 60
KINDS = ("counts", "units", "embedding")


@dataclass(frozen=True, eq=False)
class Case:
    """Rows, what they are, and how they were drawn."""

    family: str
    kind: str
    domain: str
    X: NDArray[np.float64]
    detail: str


# -- rows of a position ----------------------------------------------------------------------------


def _units(rates: NDArray, kind: str, rng: np.random.Generator) -> NDArray[np.float64]:
    """Counts, or rates with Gaussian noise, of units of log-normal strength."""
    strength = np.exp(0.5 * rng.normal(size=rates.shape[1]))
    if kind == "counts":
        gain = np.exp(0.3 * rng.normal(size=(len(rates), 1)))
        return rng.poisson(rng.uniform(1.5, 6.0) * gain * strength * rates).astype(np.float64)
    return strength * rates + rng.uniform(0.2, 0.6) * rng.normal(size=rates.shape)


def _tuned(angle: NDArray, rng: np.random.Generator) -> NDArray[np.float64]:
    """Rates of units with von Mises tuning to an angle (n,)."""
    width = 2.0 * np.exp(0.4 * rng.normal(size=UNITS))
    untuned = rng.uniform(0, 0.5, UNITS)
    preferred = rng.uniform(0, 2 * np.pi, UNITS)
    return untuned + np.exp(width * (np.cos(angle[:, None] - preferred) - 1))


def _embedded(points: NDArray, rng: np.random.Generator) -> NDArray[np.float64]:
    """Points (n, k) turned into 10 dimensions, with noise in all of them."""
    basis = np.linalg.qr(rng.normal(size=(10, 10)))[0][: points.shape[1]]
    noise = rng.uniform(0.08, 0.2)
    return points @ basis + noise * rng.normal(size=(len(points), 10))


def _round(angle: NDArray, rng: np.random.Generator) -> NDArray[np.float64]:
    """A closed curve that is nearly a circle."""
    bend = rng.uniform(0, 0.25)
    return np.stack([np.cos(angle), np.sin(angle), bend * np.cos(2 * angle)], axis=1)


def _of_angle(angle: NDArray, kind: str, rng: np.random.Generator) -> NDArray[np.float64]:
    if kind == "embedding":
        return _embedded(_round(angle, rng), rng)
    return _units(_tuned(angle, rng), kind, rng)


def _rows(rng: np.random.Generator) -> int:
    return int(rng.choice([1_000, 2_000, 4_000]))


# -- without a ring --------------------------------------------------------------------------------


def _arc(kind: str, rng: np.random.Generator) -> tuple[NDArray, str, str]:
    turn = float(rng.uniform(180, 350))
    angle = np.deg2rad(turn) * rng.uniform(size=_rows(rng))
    return _of_angle(angle, kind, rng), "arc", f"{turn:.0f} degrees"


def _track(kind: str, rng: np.random.Generator) -> tuple[NDArray, str, str]:
    x = rng.uniform(size=_rows(rng))
    if kind == "embedding":
        bend = float(rng.uniform(0, 0.6))
        return _embedded(np.stack([2 * x - 1, bend * (2 * x - 1) ** 2], axis=1), rng), "line", ""
    centres, width = rng.uniform(-0.1, 1.1, UNITS), 0.12 * np.exp(0.3 * rng.normal(size=UNITS))
    rates = 0.1 + np.exp(-((x[:, None] - centres) ** 2) / (2 * width**2))
    return _units(rates, kind, rng), "line", ""


def _clusters(kind: str, rng: np.random.Generator) -> tuple[NDArray, str, str]:
    n, share = _rows(rng), float(rng.uniform(0.3, 0.7))
    which = (rng.uniform(size=n) < share).astype(int)
    if kind == "embedding":
        spread = rng.uniform(0.05, 0.4, size=3)
        centres = np.array([[-1.0, 0, 0], [1.0, 0, 0]])
        return _embedded(centres[which] + spread * rng.normal(size=(n, 3)), rng), "clusters", "2"
    rates = 0.6 * np.exp(0.6 * rng.normal(size=(2, UNITS)))
    return _units(rates[which], kind, rng), "clusters", "2"


def _of_points(points: NDArray, kind: str, rng: np.random.Generator) -> NDArray:
    """Points (n, k) as an embedding, or as what units make of them that prefer a direction each."""
    if kind == "embedding":
        return _embedded(points, rng)
    drive = 0.4 * points @ rng.normal(size=(points.shape[1], UNITS))
    return _units(np.exp(np.clip(drive - 0.5, -4, 2.5)), kind, rng)


def _blob(kind: str, rng: np.random.Generator) -> tuple[NDArray, str, str]:
    n, k = _rows(rng), int(rng.integers(2, 6))
    axes = np.sort(rng.uniform(0.2, 1.0, k))
    points = axes * rng.normal(size=(n, k))
    tails = float(rng.choice([5.0, 10.0, np.inf]))
    if np.isfinite(tails):
        points = points / np.sqrt(rng.chisquare(tails, size=(n, 1)) / tails)
    return _of_points(points, kind, rng), "nothing", f"{k} axes, tails {tails:g}"


def _walk(kind: str, rng: np.random.Generator) -> tuple[NDArray, str, str]:
    n, k = _rows(rng), int(rng.integers(3, 11))
    steps = np.cumsum(rng.normal(size=(n, k)), axis=0)
    points = (steps - steps.mean(axis=0)) / steps.std()
    return _of_points(points, kind, rng), "walk", f"{k} dimensions"


def _two_rings(kind: str, rng: np.random.Generator) -> tuple[NDArray, str, str]:
    n, second = _rows(rng), float(rng.uniform(0.6, 1.0))
    one, two = rng.uniform(0, 2 * np.pi, (2, n))
    detail = f"the second {second:.2f} of the first"
    if kind == "embedding":
        points = np.concatenate([_round(one, rng), second * _round(two, rng)], axis=1)
        return _embedded(points, rng), "torus", detail
    rates = _tuned(one, rng) + second * _tuned(two, rng)
    return _units(rates, kind, rng), "torus", detail


# -- with one --------------------------------------------------------------------------------------


def _even(kind: str, rng: np.random.Generator) -> tuple[NDArray, str, str]:
    return _of_angle(rng.uniform(0, 2 * np.pi, _rows(rng)), kind, rng), "ring", "even"


def _uneven(kind: str, rng: np.random.Generator) -> tuple[NDArray, str, str]:
    """Some directions up to seven times as often as others."""
    strength = float(rng.uniform(0.3, 1.0))
    angle = rng.vonmises(rng.uniform(-np.pi, np.pi), strength, _rows(rng))
    return _of_angle(angle, kind, rng), "ring", f"von Mises {strength:.2f}"


def _stimuli(kind: str, rng: np.random.Generator) -> tuple[NDArray, str, str]:
    count = int(rng.choice([12, 16, 24]))
    angle = 2 * np.pi * rng.integers(count, size=_rows(rng)) / count
    return _of_angle(angle, kind, rng), "ring", f"{count} stimuli"


def _turning(kind: str, rng: np.random.Generator) -> tuple[NDArray, str, str]:
    """An angle that turns slowly, so that rows depend on their neighbours."""
    angle = np.cumsum(0.3 * rng.normal(size=_rows(rng)))
    return _of_angle(angle, kind, rng), "ring", "a walk on the circle"


# -- others: what a ring is mistaken for, or not recognised in -------------------------------------


def _population(turn: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Counts of a made population with gain and movement, at angles of a part of a turn."""
    from symlift.datasets import ring_population

    n, units = int(rng.choice([1_000, 2_000])), int(rng.choice([32, 40, 64]))
    made = ring_population(int(1.2 * n * 360 / turn), units, random_state=rng)
    inside = np.mod(np.ravel(made.latent), 2 * np.pi) < np.deg2rad(turn)
    return np.asarray(made.X[inside][:n], dtype=np.float64)


def _moved(_: str, rng: np.random.Generator) -> tuple[NDArray, str, str]:
    return _population(360.0, rng), "ring", "gain and movement"


def _moved_arc(_: str, rng: np.random.Generator) -> tuple[NDArray, str, str]:
    turn = float(rng.uniform(180, 330))
    return _population(turn, rng), "arc", f"{turn:.0f} degrees, gain and movement"


def _groups(_: str, rng: np.random.Generator) -> tuple[NDArray, str, str]:
    """Six to fourteen groups that vary in directions of their own, like classes of images."""
    n, count = _rows(rng), int(rng.integers(6, 15))
    which = rng.integers(count, size=n)
    centres = rng.normal(size=(count, UNITS)) @ np.diag(np.exp(0.5 * rng.normal(size=UNITS)))
    ways = rng.normal(size=(count, 4, UNITS)) * rng.uniform(0.3, 0.7)
    X = centres[which] + np.einsum("na,nau->nu", rng.normal(size=(n, 4)), ways[which])
    return X + 0.3 * rng.normal(size=X.shape), "clusters", f"{count}"


_Family = Callable[[str, np.random.Generator], tuple[NDArray, str, str]]
NULLS: dict[str, _Family] = {
    "arcs": _arc, "tracks": _track, "two clusters": _clusters, "blobs": _blob,
    "random walks": _walk, "sums of two rings": _two_rings,
}  # fmt: skip
POSITIVES: dict[str, _Family] = {
    "even rings": _even, "uneven rings": _uneven, "few stimuli": _stimuli, "turning": _turning,
}  # fmt: skip

OTHERS: dict[str, _Family] = {
    "moved rings": _moved, "moved arcs": _moved_arc, "many groups": _groups
}  # fmt: skip


def draw(family: str, seed: int) -> Case:
    """The case of a family and a seed; the kind of rows goes round with the seed."""
    families = NULLS | POSITIVES | OTHERS
    kind = KINDS[seed % len(KINDS)]
    rng = np.random.default_rng([seed, list(families).index(family)])
    X, domain, detail = families[family](kind, rng)
    return Case(family, kind, domain, X, detail)


def noisy_ring(noise: float, seed: int, turn: float = 360.0) -> NDArray[np.float64]:
    """2,000 rows of 60 units tuned to angles of a whole turn, or of a part, with Gaussian noise of
    this size (a typical peak is 1).
    """
    rng = np.random.default_rng([seed, 77])
    rates = _tuned(np.deg2rad(turn) * rng.uniform(size=2_000), rng)
    strength = np.exp(0.5 * rng.normal(size=UNITS))
    return strength * rates + noise * rng.normal(size=rates.shape)
