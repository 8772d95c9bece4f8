"""What a family of data sets is, and which half of the families may set thresholds.

A family is a function of a random generator and the number of a variant. It returns a `Case`: three
times as many rows as a fit gets, so that three fits see different rows, what a user would pass to
the estimator, and the truth.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: data sets of each family, and fits of each data set
VARIANTS, PARTS = 4, 3


@dataclass(frozen=True)
class Case:
    """Rows, the estimator's parameters, and the truth.

    ``point`` (d,) is the true point of each column (-1: nowhere), ``latent`` (n, points) the
    signals, ``angle`` (n,) the angle of each row (tuned populations); none of them where there is
    no symmetry. ``stationary`` False: columns have places, but translation is no symmetry.
    ``overlap``: too few rows for disjoint parts, so each is a random two thirds.
    """

    X: NDArray
    params: Mapping[str, Any]
    point: NDArray[np.int64] | None = None
    latent: NDArray | None = None
    angle: NDArray | None = None
    stationary: bool = True
    overlap: bool = False

    @property
    def positive(self) -> bool:
        return self.point is not None or self.latent is not None or self.angle is not None

    def rows(self, part: int) -> NDArray[np.int64]:
        """Rows of one of the three fits: contiguous, so that series stay series."""
        n = len(self.X)
        if self.overlap:
            rng = np.random.default_rng(1_000 + part)
            return np.sort(rng.permutation(n)[: 2 * n // 3])
        return np.array_split(np.arange(n), PARTS)[part]


@dataclass(frozen=True)
class Placed(Case):
    """A case whose columns are points of the grid."""

    point: NDArray[np.int64]


Family = Callable[[np.random.Generator, int], Case]
NEGATIVES: dict[str, Family] = {}
POSITIVES: dict[str, Family] = {}
FRESH: set[str] = set()
LATER: set[str] = set()


def negative(make: Family) -> Family:
    """Register a family without a symmetry (on the grid that is given)."""
    NEGATIVES[make.__name__] = make
    return make


def positive(make: Family) -> Family:
    """Register a family with one."""
    POSITIVES[make.__name__] = make
    return make


def fresh_negative(make: Family) -> Family:
    """Register a family without a symmetry that is in neither half."""
    FRESH.add(make.__name__)
    return negative(make)


def fresh_positive(make: Family) -> Family:
    """Register a family with one that is in neither half."""
    FRESH.add(make.__name__)
    return positive(make)


def later_negative(make: Family) -> Family:
    """Register a family without a symmetry that came after the fresh ones."""
    LATER.add(make.__name__)
    return negative(make)


def later_positive(make: Family) -> Family:
    """Register a family with one that came after the fresh ones."""
    LATER.add(make.__name__)
    return positive(make)


def half_of(name: str) -> str:
    """ "seen" (thresholds may be set on it) or "unseen", by a hash of its name, so that nobody
    chose; or "fresh", "later".
    """
    if name in FRESH:
        return "fresh"
    if name in LATER:
        return "later"
    return "seen" if seen(name) else "unseen"


def seen(name: str) -> bool:
    """Whether thresholds may be set on a family."""
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 0


def build(name: str, variant: int) -> Case:
    """One data set of a family; the same on every machine up to rounding."""
    make = NEGATIVES.get(name) or POSITIVES[name]
    key = int.from_bytes(hashlib.sha256(f"{name}/{variant}".encode()).digest()[:8], "little")
    return make(np.random.default_rng(key), variant)
