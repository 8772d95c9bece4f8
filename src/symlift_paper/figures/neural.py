"""A ring of neurons: the model's output, its polar code, and real and moved samples."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.fourier import ring_kernel
from symlift.core.grid import Grid
from symlift.datasets import Observations, ring_population
from symlift.estimator import LatentDomain
from symlift.metrics import circular_correlation
from symlift.plotting import new_figure
from symlift.report.ring import RingCode, principal_components, ring_code
from symlift_paper.figures.request import WIDTH, Request

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

_CURVES, _DOTS = 50, 600
# synthetic gratings: trials, units, orientations and points of the paper's recording
_ROWS, _UNITS, _ORIENTATIONS, _GRID = 1_100, 110, 6, Grid((30,), periodic=True)
# name of the stimulus and its period in degrees, by recording
_STIMULI = {
    "head-direction": ("head direction", 360.0),
    "drifting-gratings": ("orientation", 180.0),
}
# a cycle of colours that differ in lightness and from blue to yellow, so that they are
# distinguishable with every kind of colour vision
_CIRCLE = ("#4b1d52", "#8c3b3b", "#b87a2d", "#bcbf6a", "#7cc0ae", "#3d8fc0", "#4a55a2", "#4b1d52")


@dataclass(frozen=True, eq=False)
class _Panels:
    """What a row of panels shows: the rows that were fitted, their code, and their unit."""

    title: str
    X: NDArray[np.float64]
    code: RingCode
    unit: str


def paint(request: Request) -> Figure:
    """Three panels for our training and for the ring solver, all coloured by the stimulus, which
    neither saw.
    """
    data, stimulus, period = _recorded(request)
    figure = new_figure(
        WIDTH,
        5.7,
        f"{stimulus.capitalize()}, {data.X.shape[1]} neurons: n = {len(data.X):,}, seed"
        f" {request.seed}",
    )
    rows = (_trained(request, data), _without_training(request, data))
    parts: Any = figure.subfigures(len(rows), 1)
    for part, row, letters in zip(parts, rows, ("abc", "def"), strict=True):
        part.suptitle(row.title, fontsize=8)
        _draw_panels(part, row, letters, f"{stimulus.split(', ')[-1]}, degrees", period)
    return figure


def _recorded(request: Request) -> tuple[Observations, str, float]:
    """Counts with their stimulus and its period: a recording or, without one, synthetic gratings of
    as many units and orientations as the paper's.
    """
    if not request.experiments:
        data = ring_population(
            request.n or _ROWS, _UNITS, stimuli=_ORIENTATIONS, random_state=request.seed
        )
        return replace(data, grid=_GRID), "synthetic gratings, orientation", 180.0
    experiment = request.experiments[0]
    grid = Grid(experiment.shape, experiment.periodic)
    return (
        replace(request.observe(experiment), grid=grid),
        *_STIMULI[experiment.options["name"]],
    )


def standard_scores(counts: NDArray) -> NDArray[np.float64]:
    """z-scores of the square roots of spike counts, which have about equal noise.

    >>> standard_scores(np.array([[0.0, 4.0], [4.0, 4.0]]))
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    roots = np.sqrt(np.maximum(np.asarray(counts, dtype=np.float64), 0.0))
    return (roots - roots.mean(axis=0)) / np.maximum(roots.std(axis=0), 1e-12)


def _trained(request: Request, data: Observations) -> _Panels:
    X = standard_scores(data.X)
    options: dict[str, Any] = {"preset": "visual-coding", "device": "cpu"}
    if request.seconds is not None:
        options["seconds"] = request.seconds
    estimator = LatentDomain(
        grid=data.grid, solver="neural", random_state=request.seed, solver_options=options
    ).fit(X, progress=request.progress)
    code, correlation = _code_of(estimator, X, data)
    training = estimator.trace_.training
    assert training is not None  # noqa: S101 - the neural solver always has one
    title = (
        f"our training from the paper's start, {training.steps:,} steps: circular correlation"
        f" {correlation:.3f}"
    )
    return _Panels(title, X, code, "z-scores")


def _without_training(request: Request, data: Observations) -> _Panels:
    X = np.asarray(data.X, dtype=np.float64)
    estimator = LatentDomain(grid=data.grid, solver="ring", random_state=request.seed)
    estimator.fit(X, progress=request.progress)
    request.progress("diagnosing", None)
    verdict = estimator.diagnose(X).verdict
    code, correlation = _code_of(estimator, X, data)
    title = f"ring solver: circular correlation {correlation:.3f}; {verdict.words}"
    return _Panels(title, X, code, "spikes")


def _code_of(
    estimator: LatentDomain, X: NDArray[np.float64], data: Observations
) -> tuple[RingCode, float]:
    angles = np.ravel(data.latent).astype(np.float64)
    code = ring_code(estimator.model_, X, angles)
    return code, abs(circular_correlation(angles, code.phase))


def _draw_panels(part: Any, row: _Panels, letters: str, stimulus: str, period: float) -> None:
    colours = circle()
    output, transport = part.add_subplot(131), part.add_subplot(133)
    polar: Any = part.add_subplot(132, projection="polar")
    _draw_output(output, row.code, colours)
    _draw_polar(polar, row.code, colours)
    drawn = _draw_transport(transport, row, colours, period)
    for axes, letter in zip((output, polar, transport), letters, strict=True):
        axes.set_title(f"({letter}) {axes.get_title(loc='left')}")
    bar = part.colorbar(drawn, ax=transport, shrink=0.9, label=stimulus)
    ticks = np.linspace(0, 1, 5)
    bar.set_ticks(ticks.tolist(), labels=[f"{period * tick:.0f}" for tick in ticks])


def circle() -> Colormap:
    """Colour map of angles, given as shares of a full turn."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("circle", _CIRCLE)


def _share(angles: NDArray) -> NDArray[np.float64]:
    return np.mod(angles, 2 * np.pi) / (2 * np.pi)


def _some(count: int, most: int) -> NDArray[np.int64]:
    return np.linspace(0, count - 1, min(count, most)).astype(np.int64)


def _draw_output(axes: Any, code: RingCode, colours: Colormap) -> None:
    N = code.Y.shape[1]
    fine = np.linspace(0, N, 121)
    chosen = _some(len(code.Y), _CURVES)
    curves = code.Y[chosen] @ ring_kernel(N, fine).T
    for curve, share in zip(
        curves / np.abs(curves).max(), _share(code.angles[chosen]), strict=True
    ):
        axes.plot(360 / N * fine, curve, color=colours(share), linewidth=0.8)
    axes.set_xticks([0, 90, 180, 270, 360])
    axes.set_xlabel("position on the ring, degrees")
    axes.set_ylabel("output, of the largest")
    axes.set_title(f"model output\n{len(chosen)} samples")


def _draw_polar(axes: Any, code: RingCode, colours: Colormap) -> None:
    chosen = _some(len(code.phase), _DOTS)
    # one outlier must not compress all others into the middle
    reach = float(np.percentile(code.amplitude, 99)) or 1.0
    length = np.minimum(code.amplitude[chosen] / reach, 1.0)
    shares = _share(code.angles[chosen])
    axes.scatter(
        code.phase[chosen], length, c=shares, cmap=colours, vmin=0, vmax=1, s=6, linewidths=0
    )
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    axes.set_ylim(0, 1.02)
    axes.set_yticks([0.5, 1.0], labels=[])
    axes.set_xticks(np.deg2rad([0, 90, 180, 270]), labels=["0°", "90°", "180°", "270°"])
    axes.tick_params(pad=-2)
    axes.grid(color="#dddddd", linewidth=0.5)
    axes.spines["polar"].set(color="#bbbbbb")
    axes.set_title("polar code: phase, amplitude\n(rim: its 99th percentile)")


def _draw_transport(axes: Any, row: _Panels, colours: Colormap, period: float) -> Any:
    X, code = row.X, row.code
    real, made = principal_components(X, code.moved, 2)
    chosen = _some(len(X), _DOTS // 2)
    shades = {"cmap": colours, "vmin": 0, "vmax": 1}
    drawn = axes.scatter(
        *real[chosen].T, c=_share(code.angles[chosen]), s=7, linewidths=0, label="real", **shades
    )
    edges = colours(_share(code.moved_angles[chosen]))
    axes.scatter(
        *made[chosen].T, facecolors="none", edgecolors=edges, s=11, linewidths=0.6, label="moved"
    )
    # a few outliers would leave most of the panel empty
    both = np.concatenate([real, made])
    low, high = np.percentile(both, [0.5, 99.5], axis=0)
    margin = 0.08 * (high - low)
    axes.set_xlim(low[0] - margin[0], high[0] + margin[0])
    axes.set_ylim(low[1] - margin[1], high[1] + margin[1])
    axes.set_xlabel(f"principal component 1, {row.unit}")
    axes.set_ylabel(f"principal component 2, {row.unit}")
    moved = f"moved by {np.rad2deg(code.turn) * period / 360:.0f}°"
    overlaps = (
        ""
        if code.overlap is None or code.unmoved is None
        else f"\noverlap {code.overlap:.2f}, unmoved {code.unmoved:.2f}"
    )
    axes.set_title(f"dots real, circles {moved}{overlaps}")
    return drawn
