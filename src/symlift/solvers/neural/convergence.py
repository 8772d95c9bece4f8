"""Has a training run converged? What it says of itself, without a closed form that ends it.

A run that two closings on all rows ended has converged. Any other has to show all of these signs,
which no stopped run, no lost run and no run on data without a domain shows by accident:

- it ended by its own clock, not by a budget;
- the rank that it was asked for is open;
- the held-out objective no longer drifts: the two halves of its last tenth agree;
- the lifted field is stationary, in second to fourth moments, on both halves of the held-out rows
  (maps with r of 0.95 and more to the truth read below 0.05, lost ones 0.1 to 0.35);
- it was not so at the start: white noise is stationary under every map, and nothing was learned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.lags import LagClasses
from symlift.statistics.selection import held_out

__all__ = ["STATIONARY", "all_show", "signs_of_convergence"]

#: the largest distance of moments to stationary ones, and the largest drift of the objective
STATIONARY, _DRIFT = 0.05, 0.05


def signs_of_convergence(
    W: NDArray,
    held: NDArray,
    lags: LagClasses,
    history: Sequence[Mapping[str, Any]],
    full: float,
    ended: str | None,
    near: bool = False,
) -> dict[str, bool]:
    """The signs of a run with the map ``W`` (points, d) at its end, held-out rows (n, d) and a
    ``history`` of evaluations; ``full`` is the rank that was to be opened.

    A run from a ``near`` start is asked neither for the rank, which was open, nor for a gain.
    """
    halves = [held_out(W, held[k::2], lags).stationarity for k in (0, 1)]
    signs = {
        "ended by its clock": ended == "finished",
        "settled": _settled(history),
        "stationary on both halves": bool(np.isfinite(halves).all() and max(halves) <= STATIONARY),
    }
    if near:
        return signs
    first = float(history[0].get("held_out_stationarity", 0.0)) if history else 0.0
    signs["rank open"] = bool(history) and float(history[-1]["rank"]) >= full - 0.5
    signs["learned"] = first >= STATIONARY + 2 * max(0.0, max(halves))
    return signs


def all_show(signs: Mapping[str, bool]) -> bool:
    """Whether there are signs, and all are there."""
    return bool(signs) and all(signs.values())


def _settled(history: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the two halves of the last tenth have the same held-out objective; at least four
    evaluations are asked for.
    """
    if not history:
        return False
    last = history[-1]["step"]
    tail = [float(point["held_out"]) for point in history if point["step"] >= 0.9 * last]
    if len(tail) < 4:
        return False
    half = len(tail) // 2
    return bool(abs(np.mean(tail[:half]) - np.mean(tail[half:])) <= _DRIFT)
