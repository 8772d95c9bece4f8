"""Which closed form ends a training run on all rows at once."""

from __future__ import annotations

from typing import Protocol

from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.solvers.neural.few_harmonics import FewHarmonics
from symlift.solvers.neural.full_batch import Closing, FullBatch
from symlift.solvers.neural.presets import Settings, few_planes
from symlift.solvers.neural.two_valued import TwoValued

__all__ = ["ClosedForm", "closed_form"]


class ClosedForm(Protocol):
    """The paper's three terms in closed form, of given rows."""

    @property
    def applies(self) -> bool:
        """Whether the rows have what it rests on."""
        ...

    def close(self, W: NDArray) -> Closing:
        """The map that is reached from the lifting map ``W``."""
        ...


def closed_form(settings: Settings, grid: Grid, rows: NDArray) -> ClosedForm:
    """The closed form for ``rows`` (n, d) under ``settings`` that fit them."""
    limit = settings.rank_limit
    if limit is not None and grid.is_ring and few_planes(limit, grid, rows.shape[1]):
        return FewHarmonics(rows, grid, int(limit))
    if settings.embedding == "linear" and settings.compress == "learned":
        return TwoValued(rows, grid)
    return FullBatch(rows, grid)
