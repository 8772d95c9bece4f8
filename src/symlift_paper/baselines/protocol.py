"""The protocol of baselines: a name, what it finds, its search space, and its function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symlift.core.grid import Grid
from symlift.errors import InputError

__all__ = ["Baseline", "BaselineResult", "Configuration", "Finds"]

Finds = Literal["signals", "phases", "generators"]
Configuration = dict[str, Any]


@dataclass(frozen=True, eq=False)
class BaselineResult:
    """The result of a baseline; only the part that it estimates is set.

    ``lifting_map`` (grid size, d) with ``mean`` (d,): signals are ``(X - mean) @ lifting_map.T``.
    ``phases`` (n,): an angle in radians for each row of X.  ``generators`` (P, d, d), in the
    coordinates of X. ``trace`` holds details of the fit, if any.
    """

    mean: NDArray[np.float64] | None = None
    lifting_map: NDArray[np.float64] | None = None
    phases: NDArray[np.float64] | None = None
    generators: NDArray[np.float64] | None = None
    trace: dict[str, Any] = field(default_factory=dict)

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """The recovered signals of rows of X, (n, grid size)."""
        if self.lifting_map is None or self.mean is None:
            raise InputError("this baseline finds no signals: read its phases or its generators")
        return (np.asarray(X, dtype=np.float64) - self.mean) @ self.lifting_map.T


@dataclass(frozen=True)
class Baseline:
    """One method to compare with.

    ``fit(X, grid, rng, **settings)`` sees X and the grid only, as a solver does.  ``search`` holds
    the settings that the paper searches, as one mapping of names to values for each family: every
    combination within a family is tried. ``axes`` are the numbers of grid axes that it supports;
    ``square`` methods need as many columns as grid points.

    >>> search = ({"a": (1, 2)}, {"a": (3,), "b": (4,)})
    >>> method = Baseline("m", "signals", lambda X, grid, rng, a, b=0: BaselineResult(), search)
    >>> method.configurations()
    [{'a': 1}, {'a': 2}, {'a': 3, 'b': 4}]
    """

    name: str
    finds: Finds
    fit: Callable[..., BaselineResult]
    search: tuple[Mapping[str, Sequence[Any]], ...] = ({},)
    axes: tuple[int, ...] = (1, 2, 3)
    square: bool = True

    def configurations(
        self, search: Mapping[str, Sequence[Any]] | None = None
    ) -> list[Configuration]:
        """Every combination of settings of ``search``, by default of this method's own search."""
        families = (search,) if search else self.search
        return [
            dict(zip(family, values, strict=True))
            for family in families
            for values in product(*family.values())
        ]

    def applies(self, d: int, grid: Grid) -> bool:
        """Whether it can be run on d columns and this grid."""
        return grid.ndim in self.axes and (not self.square or d == grid.size)

    def run(
        self, X: ArrayLike, grid: Grid, settings: Configuration, rng: np.random.Generator
    ) -> BaselineResult:
        """Run one combination of settings, which may include options that are not searched."""
        rows = np.asarray(X)
        if (
            rows.ndim != 2
            or len(rows) < 2
            or rows.dtype.kind not in "fiub"
            or not np.isfinite(rows).all()
        ):
            raise InputError(
                f"X of {rows.dtype} and shape {rows.shape} cannot be used: give finite numbers, (n"
                " ≥ 2, d)"
            )
        if not self.applies(rows.shape[1], grid):
            raise InputError(
                f"{self.name} cannot do {rows.shape[1]} columns on a {grid} grid: it takes"
                f" {self.axes} axes" + (", and as many columns as points" if self.square else "")
            )
        return self.fit(np.asarray(rows, dtype=np.float64), grid, rng, **settings)
