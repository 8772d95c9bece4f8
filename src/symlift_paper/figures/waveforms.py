"""Waveform recovery: shot noise observed directly, and under DST-I."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symlift.metrics import generator_similarity
from symlift.metrics.generators import derivative
from symlift.plotting import DIVERGING, new_figure
from symlift_paper.figures.request import WIDTH, Fit, Request, aligned_map

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# low positions, where the sinusoids of DST-I are sampled finely enough to look smooth
_POSITIONS = (1 / 20, 1 / 6, 1 / 3)


def paint(request: Request) -> Figure:
    """Two rows, native and DST-I.

    True generator, learned generator, resolving filters, and lifting map after the transform.
    """
    native, dst = (Fit.of(request, experiment) for experiment in request.experiments)
    title = f"Waveform recovery: n = {len(native.data.X):,}, seed {request.seed}"
    figure = new_figure(WIDTH, 4.4, title)
    grid: Any = figure.subplots(2, 4, width_ratios=(1, 1, 1.15, 1))
    # the permutation is known here: columns are shown in their original order
    _draw_row(grid[0], native, "(a) native", "original column", undo=True)
    _draw_row(grid[1], dst, "(b) DST-I", "DST-I column", undo=False)
    grid[0, 3].set_title(f"lifting map\non the diagonal: {diagonal_share(composition(native)):.3f}")
    grid[1, 3].set_title(
        f"(c) lifting map ∘ DST-I\non the diagonal: {diagonal_share(composition(dst)):.3f}"
    )
    return figure


def composition(fit: Fit) -> NDArray[np.float64]:
    """W A, the lifted images of the true points: the identity for a perfect recovery."""
    assert fit.data.transform is not None  # noqa: S101 - waveforms have one
    return (
        aligned_map(fit.estimator.lifting_map_, fit.alignment, fit.data.grid) @ fit.data.transform.T
    )


def diagonal_share(matrix: NDArray) -> float:
    """Share of a matrix's energy on its diagonal: 1 for the identity.

    >>> diagonal_share(np.ones((4, 4)))
    0.25
    """
    return float(np.sum(np.diag(matrix) ** 2) / np.sum(matrix**2))


def _draw_row(axes: Any, fit: Fit, name: str, columns: str, undo: bool) -> None:
    A = np.asarray(fit.data.transform).T
    inverse, N = np.linalg.inv(A), fit.data.grid.size
    truth = derivative(N, fit.data.periodic[0], "exact")
    learned = fit.estimator.generators_[0]
    if undo:
        learned = inverse @ learned @ A
    else:
        truth = A @ truth @ inverse
    # the direction of a translation is ambiguous
    learned = learned * (1 if np.sum(learned * truth) >= 0 else -1)
    S = generator_similarity(fit.estimator.generators_, fit.data.transform, fit.data.grid)[0]
    exact = generator_similarity(
        fit.estimator.generators_, fit.data.transform, fit.data.grid, truth="exact"
    )[0]
    W = aligned_map(fit.estimator.lifting_map_, fit.alignment, fit.data.grid)
    filters, points = (W @ A, np.eye(N)) if undo else (W, inverse)
    largest = float(np.abs(truth).max())
    for picture, shown in zip(axes[:2], (truth, learned), strict=True):
        picture.imshow(shown, cmap=DIVERGING, vmin=-largest, vmax=largest)
        picture.set_xlabel(columns)
    axes[0].set_ylabel(columns)
    axes[0].set_title(f"{name}\ntrue generator")
    axes[1].set_title(f"learned: $S_{{0.75}}$ = {S:.3f}\n(exact truth: {exact:.4f})")
    _draw_filters(axes[2], filters, points)
    axes[2].set_xlabel(columns)
    axes[2].set_title(f"filters of three points\nr = {fit.r:.4f}")
    shown = composition(fit)
    axes[3].imshow(shown, cmap=DIVERGING, vmin=-np.abs(shown).max(), vmax=np.abs(shown).max())
    axes[3].set_xlabel("latent point")
    axes[3].set_ylabel("lifted point")


def _draw_filters(axes: Any, filters: NDArray, points: NDArray) -> None:
    """Rows of the lifting map at a few points, over the true point responses.

    Each is scaled to its largest entry.
    """
    N = len(filters)
    chosen = [round(share * (N - 1)) for share in _POSITIONS]
    for level, (n, colour) in enumerate(zip(chosen, ("C0", "C1", "C2"), strict=True)):
        for curve, style in (
            (filters[n], {"color": colour, "linewidth": 1.6}),
            (points[n], {"color": "black", "linewidth": 0.7, "linestyle": ":"}),
        ):
            scaled = curve / max(float(np.abs(curve).max()), 1e-300)
            axes.plot(scaled - 2.4 * level, **style)
        axes.text(N, -2.4 * level, f"{n}", color=colour, va="center", fontsize=7)
    axes.set_yticks([])
    axes.margins(x=0)
    axes.set_ylabel("weight (dotted: truth)")
