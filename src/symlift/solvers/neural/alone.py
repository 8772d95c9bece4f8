"""What the closed form of a row does alone: from starts that nothing has trained.

Where it arrives from most random starts, "trained and closed" says nothing about training; where it
arrives from none, training has chosen the basin.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.model import LiftedModel
from symlift.errors import InputError
from symlift.solvers.neural.coarse_to_fine import coarse_grid
from symlift.solvers.neural.endings import closed_form
from symlift.solvers.neural.network import network_kind
from symlift.solvers.neural.training import chosen_settings, on_finer_grid, starting_model

__all__ = ["close_random_starts"]


def close_random_starts(
    X: NDArray, grid: Grid, rng: np.random.Generator, starts: int
) -> Iterator[LiftedModel | None]:
    """The models that the closed form of ``preset="ours"`` reaches from draws of its start, without
    a step of training; None where its own gap says that it has not arrived.
    """
    small = coarse_grid(grid, X.shape[1])
    _, settings = chosen_settings("ours", None, small, X)
    form = None
    for seed in rng.integers(2**31 - 1, size=starts):
        start = starting_model(X, small, settings, int(seed))
        if form is None:
            rows = (np.asarray(X, dtype=np.float64) - start.mean) / start.scale
            form = closed_form(settings, small, rows)
            if not form.applies:
                raise InputError("these rows do not have what the closed form of a training needs")
        # a filter that was never trained is as good as a constant one
        drawn = network_kind(settings.parametrisation, small)(start).model()
        closing = form.close(np.asarray(drawn.map))
        if not closing.arrived:
            yield None
            continue
        mean = start.mean + start.scale * closing.centre
        model = LiftedModel.from_lifting_map(closing.W / start.scale, small, mean)
        if small != grid:
            model, closing = on_finer_grid(model, X, grid)
        yield model if closing.arrived else None
