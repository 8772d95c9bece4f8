"""A solution after its columns have changed places."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from symlift.solvers.contract import Solution

__all__ = ["reordered"]


def reordered(solution: Solution, role: NDArray[np.int64]) -> Solution:
    """The solution in which column j is what column ``role[j]`` was."""
    if np.array_equal(role, np.arange(len(role))):
        return solution
    model, placement = solution.model, solution.placement
    # an embedding that only pads with zeros is now a permutation, too
    model = replace(model, E=model.E[:, role], mean=model.mean[role], kind="linear")
    if placement is not None:
        column_of = np.empty(len(role) + 1, dtype=np.int64)
        column_of[role], column_of[-1] = np.arange(len(role)), -1
        placement = replace(
            placement,
            coordinates=placement.coordinates[role],
            point=placement.point[role],
            channel=placement.channel[role],
            confidence=placement.confidence[role],
            reason=placement.reason[role],
            twin=column_of[placement.twin[role]],
        )
    return replace(solution, model=model, placement=placement)
