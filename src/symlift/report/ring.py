"""A ring's three pictures: signals coloured by angle, the polar code, real and moved samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import ArrayLike, NDArray

from symlift.core.angles import fundamental
from symlift.core.model import LiftedModel
from symlift.errors import InputError
from symlift.report.draw import polyline, short, smooth_ring, thinned

__all__ = [
    "RingCode",
    "energy_distance",
    "output_curves",
    "overlap",
    "polar_code",
    "principal_components",
    "ring_code",
    "ring_panel",
    "stratified",
    "transport",
]

_SIDE, _MARGIN = 240, 26
_MOST_CURVES, _MOST_CURVE_POINTS, _MOST_DOTS = 48, 240, 600


# -- measures --------------------------------------------------------------------------------------


def energy_distance(A: ArrayLike, B: ArrayLike) -> float:
    """2 E‖a - b‖ - E‖a - a'‖ - E‖b - b'‖ of two clouds of points (n, d) and (m, d).

    0 for equal distributions. The estimate is unbiased: pairs of a point with itself are left out,
    so that it scatters about 0 for equal distributions.

    >>> energy_distance([[0.0], [2.0]], [[0.0], [2.0]])
    -2.0
    """
    a, b = _cloud(A), _cloud(B)
    n, m = len(a), len(b)
    if min(n, m) < 2 or a.shape[1] != b.shape[1]:
        raise InputError(
            f"clouds of shape {a.shape} and {b.shape} have no distance: give two or more rows,"
            " equal columns"
        )
    within = sum(_distances(c, c).sum() / (len(c) * (len(c) - 1)) for c in (a, b))
    return float(2 * _distances(a, b).mean() - within)


def overlap(A: ArrayLike, B: ArrayLike, neighbours: int = 5) -> float:
    """Share of nearest neighbours from the other cloud, relative to the share expected by chance.

    1 for two samples of one distribution, 0 for separate clouds; the larger cloud is subsampled
    evenly to the size of the smaller.

    >>> overlap([[0.0], [1.0], [2.0]], [[50.0], [51.0], [52.0]], neighbours=1)
    0.0
    """
    a, b = _cloud(A), _cloud(B)
    n = min(len(a), len(b))
    if n < 2 or a.shape[1] != b.shape[1]:
        raise InputError(
            f"clouds of shape {a.shape} and {b.shape} have no overlap: give two or more rows, equal"
            " columns"
        )
    both = np.concatenate([c[np.linspace(0, len(c) - 1, n).astype(int)] for c in (a, b)])
    distances = _distances(both, both)
    np.fill_diagonal(distances, np.inf)
    # distances that differ only by rounding are equal, and of equal ones the first counts
    keys = np.round(
        distances / (np.max(distances, where=np.isfinite(distances), initial=0.0) or 1.0), 7
    )
    nearest = np.argsort(keys, axis=1, kind="stable")[:, : min(neighbours, 2 * n - 2)]
    other = (nearest < n) != (np.arange(2 * n)[:, None] < n)
    return float(other.mean() / (n / (2 * n - 1)))


def principal_components(
    X: NDArray, moved: NDArray, count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """X (n, d) and ``moved`` (m, d) in the first ``count`` principal components of X.

    >>> principal_components(np.array([[3.0, 0.0], [-3.0, 0.0]]), np.array([[0.0, 2.0]]), 1)[1]
    array([[0.]])
    """
    centre = X.mean(axis=0)
    directions = np.linalg.svd(X - centre, full_matrices=False)[2][:count].T
    return (X - centre) @ directions, (moved - centre) @ directions


def _cloud(points: ArrayLike) -> NDArray[np.float64]:
    cloud = np.asarray(points, dtype=np.float64)
    if cloud.ndim != 2 or not np.isfinite(cloud).all():
        raise InputError(f"a cloud of shape {cloud.shape} must be finite, (points, coordinates)")
    return cloud


def _distances(a: NDArray, b: NDArray) -> NDArray[np.float64]:
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1) - 2 * a @ b.T
    return np.sqrt(np.maximum(squares, 0))


def stratified(phase: NDArray[np.float64], count: int, seed: int = 0) -> NDArray[np.int64]:
    """Indices of ``count`` samples, one at random from each of ``count`` equal parts of the circle.

    They are in the order of the circle. Empty parts are replaced by other samples at random.

    >>> stratified(np.array([0.1, 3.3, 3.4, 3.5, 3.6]), 2).tolist()[0]
    0
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(phase))
    part = np.floor(np.mod(phase, 2 * np.pi) / (2 * np.pi) * count).astype(np.int64) % count
    chosen = [members[0] for k in range(count) if len(members := order[part[order] == k])]
    rest = order[~np.isin(order, chosen)][: count - len(chosen)]
    both = np.concatenate([np.array(chosen, dtype=np.int64), rest])
    return both[np.argsort(np.mod(phase[both], 2 * np.pi), kind="stable")]


# -- pictures --------------------------------------------------------------------------------------


def _colour(angle: float) -> str:
    """A hue for an angle, with a lightness that suits light and dark pages."""
    return f"hsl({np.rad2deg(angle) % 360:.0f} 62% 50%)"


def _svg(body: list[str], label: str, extra: float = 0) -> Markup:
    return Markup(
        '<svg class="ring-figure" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    ).format(
        _SIDE,
        f"{_SIDE + extra:g}",
        label,
        Markup("".join(body)),  # noqa: S704 - numbers only, made here
    )


def _text(x: float, y: float, words: str, kind: str = "tick mid") -> str:
    return str(
        Markup('<text class="{}" x="{}" y="{}">{}</text>').format(kind, f"{x:g}", f"{y:g}", words)
    )


def output_curves(Y: NDArray, angles: NDArray) -> Markup:
    """Lifted signals (n, N) along the ring, each in the hue of its angle.

    A few are chosen from all parts of the ring, so that single curves are visible.
    """
    chosen = stratified(angles, min(len(Y), _MOST_CURVES))
    reach = float(np.abs(Y[chosen]).max(initial=0.0)) or 1.0
    middle, left, right = _SIDE / 2, _MARGIN + 8, _SIDE - 12
    body = [f'<path class="axis" d="M{left},{_MARGIN}V{_SIDE - _MARGIN}M{left},{middle}H{right}"/>']
    for i in chosen:
        fine = thinned(smooth_ring(Y[i]), _MOST_CURVE_POINTS)
        fine = np.append(fine, fine[0])
        x = np.linspace(left, right, len(fine))
        y = middle - (middle - _MARGIN) * fine / reach
        body.append(
            f'<path style="fill:none;stroke:{_colour(angles[i])};stroke-width:1"'
            f' d="{polyline(x, y)}"/>'
        )
    for turn in (0, 90, 180, 270, 360):
        body.append(_text(left + (right - left) * turn / 360, _SIDE - 10, f"{turn}°"))
    for level in (1, 0, -1):
        body.append(
            _text(
                left - 4, middle - level * (middle - _MARGIN) + 3, short(level * reach), "tick end"
            )
        )
    return _svg(body, f"{len(chosen)} signals along the ring, coloured by angle")


def polar_code(phase: NDArray, amplitude: NDArray, angles: NDArray) -> Markup:
    """Each sample at its phase and amplitude, in the hue of its angle; zero is at the top."""
    chosen = np.linspace(0, len(phase) - 1, min(len(phase), _MOST_DOTS)).astype(int)
    # one outlier must not compress all others into the middle
    reach = float(np.percentile(amplitude[chosen], 99)) or 1.0
    middle, radius = _SIDE / 2, _SIDE / 2 - _MARGIN
    length = radius * np.minimum(amplitude[chosen] / reach, 1.0)
    x, y = middle + length * np.sin(phase[chosen]), middle - length * np.cos(phase[chosen])
    body = [
        f'<circle class="axis" fill="none" cx="{middle}" cy="{middle}" r="{r:.1f}"/>'
        for r in (radius / 2, radius)
    ]
    body.append(
        '<path class="axis"'
        f' d="M{middle},{_MARGIN}V{_SIDE - _MARGIN}M{_MARGIN},{middle}H{_SIDE - _MARGIN}"/>'
    )
    body += _dots(x, y, [_colour(a) for a in angles[chosen]])
    body += [
        _text(middle, 18, "0°"),
        _text(_SIDE - 11, middle + 4, "90°"),
        _text(middle, _SIDE - 12, "180°"),
        _text(12, middle + 4, "270°"),
        _text(middle + 3, middle - radius - 2 + 12, short(reach), "tick"),
    ]
    return _svg(body, f"Phase and amplitude of {len(chosen)} samples, coloured by angle")


def _dots(x: NDArray, y: NDArray, colours: list[str], hollow: bool = False) -> list[str]:
    size = 3.2 if len(x) <= 100 else 2.2
    # the page's style sheet also styles circles, and overrides attributes but not inline styles
    paint = (
        'style="fill:none;stroke:{0};stroke-width:1.1"'
        if hollow
        else 'style="fill:{0};fill-opacity:0.75;stroke:none"'
    )
    return [
        f'<circle cx="{a:.1f}" cy="{b:.1f}" r="{size}" {paint.format(c)}/>'
        for a, b, c in zip(x, y, colours, strict=True)
    ]


def transport(X: NDArray, moved: NDArray, angles: NDArray, moved_angles: NDArray) -> Markup:
    """Real (dots) and moved samples (circles) in two principal components of the real ones."""
    real, made = principal_components(X, moved, 2)
    reach = np.maximum(np.percentile(np.abs(np.concatenate([real, made])), 99, axis=0), 1e-12)
    middle, half = _SIDE / 2, _SIDE / 2 - _MARGIN
    low, high = _MARGIN, _SIDE - _MARGIN
    body = [f'<path class="axis" d="M{low},{high}V{low}M{low},{high}H{high}"/>']
    for points, hues, hollow in ((real, angles, False), (made, moved_angles, True)):
        chosen = np.linspace(0, len(points) - 1, min(len(points), _MOST_DOTS)).astype(int)
        place = middle + half * np.clip(points[chosen] / reach, -1, 1) * (1, -1)
        body += _dots(place[:, 0], place[:, 1], [_colour(a) for a in hues[chosen]], hollow)
    turned = f'<g transform="rotate(-90 14 {middle})">{_text(14, middle, "second component")}</g>'
    body += [_text(middle, _SIDE - 10, "first component"), turned]
    return _svg(
        body, "Real samples as dots and moved samples as circles, in two principal components"
    )


@dataclass(frozen=True, eq=False)
class RingCode:
    """What a ring's pictures show: n samples, their lifted signals, and the samples moved along it.

    ``Y`` (n, N) is the output, its fundamental harmonic has ``phase`` and ``amplitude`` (n,);
    ``angles`` colour the samples.  ``moved`` (n, d) are the observations turned by ``turn``
    radians, to ``moved_angles``.  ``overlap`` is the mean `overlap` of moved and real samples over
    sectors of the ring, ``unmoved`` the same without moving; None where sectors have too few
    samples.
    """

    Y: NDArray[np.float64]
    phase: NDArray[np.float64]
    amplitude: NDArray[np.float64]
    angles: NDArray[np.float64]
    moved: NDArray[np.float64]
    moved_angles: NDArray[np.float64]
    turn: float
    overlap: float | None
    unmoved: float | None


def ring_code(
    model: LiftedModel, X: NDArray, labels: NDArray | None = None, step: float | None = None
) -> RingCode:
    """The code of samples X (n, d) on the ring of ``model``.

    ``labels`` are angles in radians that colour the samples; without them the recovered phase
    does.  Samples are moved by ``step`` grid steps (by default from one label to the next where
    there are up to twelve, else a sixth of the ring), and compared, sector by sector, with the real
    samples of that sector.
    """
    grid = model.grid
    if not grid.is_ring:
        raise InputError(
            f"these pictures are of a ring, but the grid is {grid}: fit with grid=(N,),"
            " periodic=True"
        )
    X = np.asarray(X, dtype=np.float64)
    N = grid.size
    kinds = 0 if labels is None else len(np.unique(np.round(np.mod(labels, 2 * np.pi), 3)))
    turn = (
        2 * np.pi / N * step if step is not None else 2 * np.pi / (kinds if 3 <= kinds <= 12 else 6)
    )
    moved = model.act(X, [turn * N / (2 * np.pi)])
    Y = model.lift(X)
    code = fundamental(Y)
    phase = np.angle(code)
    angles = phase if labels is None else np.asarray(labels, dtype=np.float64)
    if angles.shape != (len(X),):
        raise InputError(
            f"labels have shape {angles.shape}: give one angle in radians for each of the {len(X)}"
            " rows"
        )
    # labels may increase in the opposite direction of the phase; a tie is decided by rule, not by
    # rounding
    along, against = (abs(_turning(phase, way * angles)) for way in (1, -1))
    sense = 1.0 if labels is None or along >= against - 1e-9 else -1.0
    moved_phase = np.angle(fundamental(model.lift(moved)))
    return RingCode(
        Y,
        phase,
        np.abs(code),
        angles,
        moved,
        angles + sense * turn,
        turn,
        overlap=_overlap_of(X, moved, phase, moved_phase, overlap),
        unmoved=_overlap_of(X, X, phase, phase + turn, overlap),
    )


def ring_panel(
    model: LiftedModel, X: NDArray, labels: NDArray | None = None, step: float | None = None
) -> dict[str, Any]:
    """The three pictures of a ring, and the overlap of moved and real samples.

    The arguments are those of `ring_code`.
    """
    code = ring_code(model, X, labels, step)
    return {
        "curves": output_curves(code.Y, code.angles),
        "polar": polar_code(code.phase, code.amplitude, code.angles),
        "transport": transport(
            np.asarray(X, dtype=np.float64), code.moved, code.angles, code.moved_angles
        ),
        "overlap": None if code.overlap is None else f"{code.overlap:.2f}",
        "unmoved": None if code.unmoved is None else f"{code.unmoved:.2f}",
        "labelled": labels is not None,
        "degrees": f"{np.rad2deg(code.turn):.0f}",
        "samples": len(X),
    }


def _turning(a: NDArray, b: NDArray) -> complex:
    return complex(np.mean(np.exp(1j * (a - b))))


def _overlap_of(
    X: NDArray,
    moved: NDArray,
    phase: NDArray,
    moved_phase: NDArray,
    measure: Callable[..., float],
    sectors: int = 6,
) -> float | None:
    """Mean of ``measure`` over sectors of the ring, of real and moved samples in the same sector.

    Real samples are sorted by ``phase``, moved ones by ``moved_phase``. Only the first six
    principal components are compared: in all of them, the noise of the columns would dominate.
    """
    real, made = principal_components(X, moved, 6)
    bins = [
        np.floor(np.mod(angle, 2 * np.pi) / (2 * np.pi) * sectors).astype(int) % sectors
        for angle in (phase, moved_phase)
    ]
    values = [
        measure(real[bins[0] == s], made[bins[1] == s])
        for s in range(sectors)
        if min(np.sum(bins[0] == s), np.sum(bins[1] == s)) >= 4
    ]
    return float(np.mean(values)) if values else None
