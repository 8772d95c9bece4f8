"""What plots of fitted estimators share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from symlift.core.grid import Grid
from symlift.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from symlift.estimator import LatentDomain

__all__ = [
    "check_fitted",
    "flat_picture",
    "given_axes",
    "short_number",
    "shown_rows",
    "value_scale",
]


def check_fitted(est: Any) -> Any:
    """The estimator, after a check that it is fitted."""
    check_is_fitted(est)
    return est


def given_axes(ax: Axes | None) -> Axes:
    """The axes given, or new ones."""
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    return plt.subplots(layout="constrained")[1]


def shown_rows(est: LatentDomain, X: ArrayLike | None) -> NDArray:
    """The given rows, or those that the fit stored."""
    check_fitted(est)
    if X is not None:
        return np.asarray(X)
    samples = getattr(est, "samples_", None)
    if samples is None:
        raise InputError("this fit stored no rows to show: give X")
    return np.asarray(samples.observed[np.random.default_rng(0).permutation(len(samples.row))])


def flat_picture(values: NDArray, grid: Grid, down: bool = False) -> NDArray:
    """Field as an image: slices of a volume side by side or below each other, with gaps."""
    field = np.asarray(values, dtype=np.float64).reshape(grid.shape)
    if grid.ndim == 2:
        return field
    along = 0 if down else 1
    gap = np.full((1, grid.shape[2]) if down else (grid.shape[1], 1), np.nan)
    return np.concatenate([part for piece in field for part in (piece, gap)][:-1], axis=along)


def short_number(value: float) -> str:
    """Three digits, or whole thousands."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def value_scale(axes: Axes, shown: Any, label: str) -> None:
    """A scale next to what is ``shown``."""
    figure = axes.get_figure()
    if figure is not None:
        figure.colorbar(shown, ax=axes, label=label)
