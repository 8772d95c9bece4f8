"""Rows moved by one step of the stimulus, over the real rows of the next stimulus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symlift.datasets import Observations, ring_population
from symlift.estimator import LatentDomain
from symlift.metrics import circular_correlation
from symlift.plotting import new_figure
from symlift.report.ring import principal_components
from symlift_paper.figures.neural import circle
from symlift_paper.figures.request import WIDTH, Request
from symlift_paper.transport import transport_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DOTS, _ROWS, _UNITS = 260, 1_100, 110
#: panels: title, steps of a turn, degrees of one step
_PANELS = (
    ("synthetic gratings", 6, 30),
    ("head direction", 8, 45),
    ("drifting gratings", 4, 45),
)


def paint(request: Request) -> Figure:
    """Three panels in the first two principal components; half of the rows were fitted."""
    figure = new_figure(
        WIDTH,
        3.1,
        f"Held-out rows moved by one step of the stimulus, seed {request.seed}: dots real, circles"
        " moved there",
    )
    synthetic = ring_population(
        _ROWS if request.n is None else request.n, _UNITS, stimuli=6, random_state=request.seed
    )
    sets = [synthetic, *(request.observe(experiment) for experiment in request.experiments)]
    for place, (data, (title, steps, degrees)) in enumerate(zip(sets, _PANELS, strict=True)):
        request.progress(f"moving rows of {title}", None)
        axes = figure.add_subplot(1, 3, 1 + place)
        _draw(axes, data, f"{title}, {degrees}°, n = {len(data.X):,}", steps, request.seed)
        axes.set_xlabel("principal component 1, spikes")
    figure.axes[0].set_ylabel("principal component 2, spikes")
    return figure


def _draw(axes: Any, data: Observations, title: str, steps: int, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(data.X))
    train, test = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    X = np.asarray(data.X, dtype=np.float64)
    X = X[:, np.ptp(X[train], axis=0) > 0]
    angles = np.ravel(data.latent).astype(np.float64)
    estimator = LatentDomain(grid=(30,), periodic=True, solver="ring", random_state=seed)
    estimator.fit(X[train])
    rng = np.random.default_rng(seed)
    scores = transport_rows(
        estimator, (X[train], angles[train]), (X[test], angles[test]), steps, rng
    )
    turned = float(np.sign(circular_correlation(angles[train], estimator.phase(X[train])))) or 1.0
    moved = estimator.shift(X[test], turned * estimator.grid_.size / steps)
    real, made = principal_components(X[test], moved, 2)
    some = np.linspace(0, len(real) - 1, min(len(real), _DOTS)).astype(int)
    colours = circle()
    axes.scatter(*real[some].T, c=colours(_share(angles[test][some])), s=7, linewidths=0)
    edges = colours(_share(angles[test][some] + 2 * np.pi / steps))
    axes.scatter(*made[some].T, facecolors="none", edgecolors=edges, s=12, linewidths=0.6)
    both = np.concatenate([real, made])
    low, high = np.percentile(both, [1, 99], axis=0)
    margin = 0.08 * (high - low)
    axes.set_xlim(low[0] - margin[0], high[0] + margin[0])
    axes.set_ylim(low[1] - margin[1], high[1] + margin[1])
    axes.set_title(
        f"{title}\ndistance removed {scores.removed:.2f}\nwrong way {scores.wrong_way:.2f}, random"
        f" {scores.random_generator:.2f}"
    )


def _share(angles: NDArray) -> NDArray[np.float64]:
    return np.mod(angles, 2 * np.pi) / (2 * np.pi)
