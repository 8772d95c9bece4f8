"""What the stages of the fast solver share: rows in two parts, settings, and the record of what
each stage did.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.solvers.contract import Progress, Stage, Trace
from symlift.solvers.fast.settings import FastSettings

__all__ = ["SplitRows", "Work"]

# relative cost of the stages, and how often they run at most: for the time estimate of a progress
# bar
COSTS = {
    "bits": 6,
    "place": 4,
    "moments": 4,
    "localise": 6,
    "frames": 2,
    "process": 2,
    "steps": 2,
    "stationary": 25,
    "eigenbasis": 15,
    "sharpen": 4,
    "agree": 30,
    "resolve": 18,
    "whitened": 12,
    "choose": 1,
}


@dataclass
class Work:
    """What all stages share: the settings, and the record of what each stage did and how long it
    took.
    """

    settings: FastSettings
    progress: Progress
    sharpest: bool = False
    stages: list[Stage] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[dict[str, Any]]:
        self.progress(name, sum(COSTS[done.name] for done in self.stages) / self._total())
        values: dict[str, Any] = {}
        start = time.perf_counter()
        yield values
        self.stages.append(Stage(name, round(time.perf_counter() - start, 3), values))

    def _total(self) -> int:
        again = dict.fromkeys(
            ("localise", "frames", "stationary", "sharpen"), self.settings.attempts
        ) | {"resolve": 6}
        return sum(cost * again.get(name, 1) for name, cost in COSTS.items())

    def trace(self, chosen: str) -> Trace:
        return Trace("fast", chosen, tuple(self.stages), asdict(self.settings))


@dataclass(frozen=True)
class SplitRows:
    """Centred rows of unit pooled deviation, in two disjoint parts."""

    fit: NDArray[np.float64]
    held: NDArray[np.float64]
