"""A ring of neurons: the model's output, its polar code, and real and moved samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.fourier import ring_kernel
from symlift.metrics import circular_correlation
from symlift.paper.figures.request import WIDTH, Request
from symlift.plotting import new_figure
from symlift.report.ring import RingCode, principal_components, ring_code

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

_CURVES, _DOTS = 50, 600
# name of the stimulus and its period in degrees, by recording
_STIMULI = {
    "head-direction": ("head direction", 360.0),
    "drifting-gratings": ("orientation", 180.0),
}
# a cycle of colours that differ in lightness and from blue to yellow, so that they are
# distinguishable with every kind of colour vision
_CIRCLE = ("#4b1d52", "#8c3b3b", "#b87a2d", "#bcbf6a", "#7cc0ae", "#3d8fc0", "#4a55a2", "#4b1d52")


def paint(request: Request) -> Figure:
    """Three panels, all coloured by the stimulus, which the fit did not see."""
    experiment = request.experiments[0]
    data = request.observe(experiment)
    estimator = request.fit(experiment, data.X)
    request.progress("diagnosing", None)
    verdict = estimator.diagnose(data.X).verdict
    angles = np.ravel(data.latent).astype(np.float64)
    code = ring_code(estimator.model_, data.X, angles)
    correlation = abs(circular_correlation(angles, code.phase))
    stimulus, period = _STIMULI[experiment.options["name"]]
    colours = circle()
    figure = new_figure(
        WIDTH,
        3.0,
        f"{stimulus.capitalize()}, {data.X.shape[1]} neurons: n = {len(data.X):,}, seed"
        f" {request.seed}, circular correlation {correlation:.3f}\n{verdict.words}",
    )
    output, transport = figure.add_subplot(131), figure.add_subplot(133)
    polar: Any = figure.add_subplot(132, projection="polar")
    _draw_output(output, code, colours)
    _draw_polar(polar, code, colours)
    drawn = _draw_transport(transport, np.asarray(data.X, dtype=np.float64), code, colours, period)
    bar = figure.colorbar(drawn, ax=transport, shrink=0.8, label=f"{stimulus}, degrees")
    ticks = np.linspace(0, 1, 5)
    bar.set_ticks(ticks.tolist(), labels=[f"{period * tick:.0f}" for tick in ticks])
    return figure


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
    axes.set_title(f"(a) model output\n{len(chosen)} samples")


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
    axes.set_title("(b) polar code: phase, amplitude\n(rim: its 99th percentile)")


def _draw_transport(axes: Any, X: NDArray, code: RingCode, colours: Colormap, period: float) -> Any:
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
    axes.set_xlabel("principal component 1, spikes")
    axes.set_ylabel("principal component 2, spikes")
    moved = f"moved by {np.rad2deg(code.turn) * period / 360:.0f}°"
    overlaps = (
        ""
        if code.overlap is None or code.unmoved is None
        else f"\noverlap {code.overlap:.2f}, unmoved {code.unmoved:.2f}"
    )
    axes.set_title(f"(c) dots real, circles {moved}{overlaps}")
    return drawn
