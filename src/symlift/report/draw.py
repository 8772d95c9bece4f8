"""Small pictures for the page: SVG as text and PNG by zlib, without a plotting library.

The page's style sheet sets the colours of SVG.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from symlift.core.fourier import finer_ring

__all__ = [
    "Scale",
    "bars",
    "chart",
    "colour_bar",
    "curve",
    "dots",
    "field_png",
    "fold",
    "heat_png",
    "pixel_map",
    "polyline",
    "ring",
    "short",
    "smooth_ring",
    "sparkline",
]

GAP = 255  # palette entry that is transparent
_MOST_PIXELS = 512  # on either side of a picture
_MOST_POINTS = 1024  # of a curve
_DIVERGING = (
    (0.0, (128, 58, 14)),
    (0.25, (217, 140, 84)),
    (0.5, (255, 255, 255)),
    (0.75, (96, 146, 198)),
    (1.0, (18, 52, 98)),
)


def palette(stops: Sequence[tuple[float, tuple[int, int, int]]]) -> NDArray[np.uint8]:
    """Colours (256, 3): entries 0 to 254 along the stops; the last one is the transparent gap."""
    at = np.linspace(0, 1, GAP)
    channels = [np.interp(at, [s for s, _ in stops], [c[i] for _, c in stops]) for i in range(3)]
    return np.concatenate([np.stack(channels, axis=1), [[255, 255, 255]]]).round().astype(np.uint8)


#: grey levels of fields: black is low and white is high, on light and dark pages alike
GREY = palette(((0.0, (0, 0, 0)), (1.0, (255, 255, 255))))
DIVERGING = palette(_DIVERGING)


# -- pictures --------------------------------------------------------------------------------------


def png(indices: NDArray[np.uint8], colours: NDArray[np.uint8]) -> str:
    """Indexed picture (rows, columns) as a data URI."""
    height, width = indices.shape
    raw = np.concatenate([np.zeros((height, 1), np.uint8), indices], axis=1).tobytes()

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    data = b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
            chunk(b"PLTE", colours.tobytes()),
            chunk(b"tRNS", bytes([255] * GAP + [0])),
            chunk(b"IDAT", zlib.compress(raw, 9)),
            chunk(b"IEND", b""),
        ]
    )
    return "data:image/png;base64," + base64.b64encode(data).decode("ascii")


def _levels(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.uint8]:
    span = high - low
    unit = np.clip((values - low) / span, 0, 1) if span > 0 else np.full(values.shape, 0.5)
    return np.round(np.where(np.isnan(unit), 0, unit) * (GAP - 1)).astype(np.uint8)


def field_png(
    values: NDArray[np.float64], pixels: NDArray[np.int32], low: float, high: float
) -> str:
    """A signal drawn by ``pixels`` (see `pixel_map`), black at ``low`` and white at ``high``.

    Large pictures are subsampled.
    """
    every = math.ceil(max(pixels.shape) / _MOST_PIXELS)
    pixels = pixels[::every, ::every]
    return png(
        np.where(pixels < 0, np.uint8(GAP), _levels(values[np.maximum(pixels, 0)], low, high)), GREY
    )


def heat_png(matrix: NDArray[np.float64]) -> tuple[str, float]:
    """A signed matrix with white at zero, and the value at full colour.

    That value is the 99.5th percentile of the absolute entries.
    """
    limit = (
        float(np.percentile(np.abs(matrix), 99.5)) or float(np.abs(matrix).max(initial=0.0)) or 1.0
    )
    return png(_levels(matrix, -limit, limit), DIVERGING), limit


def colour_bar(
    colours: NDArray[np.uint8], low: float, high: float, kind: str, label: str
) -> Markup:
    """Colour bar of a picture: a strip of colours between the lowest and the highest value."""
    strip = png(np.arange(GAP, dtype=np.uint8)[None, :], colours)
    return Markup(
        '<span class="colour-bar"><span>{}</span>'
        '<img class="{} strip" src="{}" width="255" height="1" alt="{}"><span>{}</span></span>'
    ).format(short(low), kind, strip, f"{label}: from {short(low)} to {short(high)}", short(high))


def short(value: float) -> str:
    """Text of a number at the end of an axis.

    >>> short(-0.12345), short(0.0), short(1234.5), short(-1e-12)
    ('−0.123', '0', '1.23e+03', '0')
    """
    text = f"{abs(value):.3g}" if abs(value) > 1e-9 else "0"
    return f"−{text}" if value < 0 and text != "0" else text


def fold(matrix: NDArray[np.float64], most: int = 128) -> NDArray[np.float64]:
    """Reduce a matrix to about ``most`` rows and columns.

    Each block is replaced by its entry of largest absolute value, so that thin lines remain
    visible.
    """
    rows, columns = matrix.shape
    # halving a matrix that is only a little too large would lose more than it saves
    if max(rows, columns) <= 1.25 * most:
        return matrix
    tall, wide = math.ceil(rows / most), math.ceil(columns / most)
    padded = np.zeros((math.ceil(rows / tall) * tall, math.ceil(columns / wide) * wide))
    padded[:rows, :columns] = matrix
    shape = padded.shape[0] // tall, tall, padded.shape[1] // wide, wide
    blocks = padded.reshape(shape).transpose(0, 2, 1, 3).reshape(shape[0], shape[2], tall * wide)
    strongest = np.abs(blocks).argmax(axis=2)[..., None]
    return np.take_along_axis(blocks, strongest, axis=2)[..., 0]


def pixel_map(size: int, shape: tuple[int, ...], finer: int | None = None) -> NDArray[np.int32]:
    """Entry of a vector that each pixel shows, −1 for none.

    A picture in 2-D, a strip of slices in 3-D. Slices are drawn with ``finer`` pixels per point, so
    that the gap between them is thin. A vector that does not have the grid's size is drawn row by
    row, nearly square.

    >>> pixel_map(8, (2, 2, 2), finer=1)
    array([[ 0,  1, -1,  4,  5],
           [ 2,  3, -1,  6,  7]], dtype=int32)
    """
    if size != math.prod(shape) or len(shape) == 1:
        width = math.ceil(math.sqrt(size))
        flat = np.full(math.ceil(size / width) * width, -1, dtype=np.int32)
        flat[:size] = np.arange(size)
        return flat.reshape(-1, width)
    index = np.arange(size, dtype=np.int32).reshape(shape)
    if len(shape) == 2:
        return index
    if finer is None:
        finer = 4 if size <= 1000 else 2 if size <= 8000 else 1
    index = index.repeat(finer, axis=1).repeat(finer, axis=2)
    slices, height, width = index.shape
    lines = math.ceil(slices / 8)
    across = math.ceil(slices / lines)
    out = np.full((lines * (height + 1) - 1, across * (width + 1) - 1), -1, dtype=np.int32)
    for k in range(slices):
        row, column = k // across * (height + 1), k % across * (width + 1)
        out[row : row + height, column : column + width] = index[k]
    return out


# -- lines -----------------------------------------------------------------------------------------


def thinned(values: NDArray[np.float64], most: int = _MOST_POINTS) -> NDArray[np.float64]:
    """Reduce to about ``most`` values: of adjacent ones, the largest in absolute value."""
    return fold(values[None, :], most)[0]


def smooth_ring(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """A ring's values as a smooth curve, interpolated where they are few."""
    return thinned(finer_ring(values, times=max(1, min(8, _MOST_POINTS // len(values)))))


def polyline(x: NDArray[np.float64], y: NDArray[np.float64], closed: bool = False) -> str:
    """Path data through the points."""
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return f"M{points}{'Z' if closed else ''}"


# left, top, right, bottom of the plotting area of a small picture, which is 200 by 108
_SMALL = (34, 6, 196, 80)


def curve(values: NDArray[np.float64], low: float, high: float, label: str) -> Markup:
    """A signal on a line, over grid steps."""
    last, values = len(values) - 1, thinned(values)
    left, _, right, _ = _SMALL
    path = polyline(np.linspace(left, right, len(values)), _up(values, low, high))
    return _small(f'<path class="line" d="{path}"/>', low, high, last, "grid step", label)


def bars(values: NDArray[np.float64], low: float, high: float, label: str) -> Markup:
    """Numbers in no particular order: one bar per column, from zero."""
    last, values = len(values) - 1, thinned(values)
    left, _, right, _ = _SMALL
    x = left + (np.arange(len(values)) + 0.5) * (right - left) / len(values)
    zero = _up(np.zeros(1), low, high)[0]
    path = "".join(
        f"M{a:.1f},{zero:.1f}V{b:.1f}" for a, b in zip(x, _up(values, low, high), strict=True)
    )
    width = min(6.0, (right - left) / len(values) * 0.62)
    return _small(
        f'<path class="bars" stroke-width="{width:.2f}" d="{path}"/>',
        low,
        high,
        last,
        "column",
        label,
    )


def _up(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    return _height(values, low, high, _SMALL[3], _SMALL[1])


def _small(body: str, low: float, high: float, last: int, name: str, label: str) -> Markup:
    """A small picture with axes labelled by lowest and highest value, first and last number."""
    left, top, right, bottom = _SMALL
    zero = _up(np.zeros(1), low, high)[0]
    return Markup(
        '<svg class="signal" viewBox="0 0 200 108" role="img" aria-label="{}"><path class="axis"'
        ' d="M{l},{t}V{b}"/><path class="base" d="M{l},{z}H{r}"/>{}<text class="tick end" x="{i}"'
        ' y="{u}">{}</text><text class="tick end" x="{i}" y="{b}">{}</text><text class="tick"'
        ' x="{l}" y="93">0</text><text class="tick end" x="{r}" y="93">{}</text><text class="name'
        ' mid" x="{m}" y="104">{}</text></svg>'
    ).format(
        label,
        Markup(body),  # noqa: S704 - numbers only, made here
        short(high),
        short(low),
        last,
        name,
        l=left,
        t=top,
        r=right,
        b=bottom,
        z=f"{zero:.1f}",
        i=left - 4,
        u=top + 7,
        m=(left + right) / 2,
    )


def ring(values: NDArray[np.float64], low: float, high: float, label: str) -> Markup:
    """A signal on a ring: a closed curve around a circle, clockwise from the top.

    The circle is the zero level.
    """
    fine = smooth_ring(values)
    reach = max(abs(low), abs(high), 1e-300)
    radius = 30 + 17 * np.clip(fine / reach, -1, 1)
    angle = 2 * np.pi * np.arange(len(fine)) / len(fine)
    path = polyline(60 + radius * np.sin(angle), 60 - radius * np.cos(angle), closed=True)
    ticks = Markup("").join(
        Markup('<text class="tick mid" x="{}" y="{}">{}</text>').format(x, y, words)
        for x, y, words in ((60, 9, "0°"), (112, 63, "90°"), (60, 118, "180°"), (9, 63, "270°"))
    )
    return Markup(
        '<svg class="signal ring" viewBox="0 0 120 120" role="img" aria-label="{}">'
        '<circle class="base" cx="60" cy="60" r="30"/><path class="line" d="{}"/>{}</svg>'
    ).format(label, path, ticks)


def sparkline(values: Sequence[float], label: str) -> Markup:
    """A series as a small curve, from first to last."""
    series = np.asarray(values, dtype=np.float64)
    if len(series) > 400:
        series = series[np.linspace(0, len(series) - 1, 400).astype(int)]
    x = np.linspace(2, 158, len(series))
    y = _height(series, float(series.min()), float(series.max()), 40, 4)
    return Markup(
        '<svg class="signal spark" viewBox="0 0 160 44" preserveAspectRatio="none" role="img"'
        ' aria-label="{}"><path class="line" d="{}"/></svg>'
    ).format(label, polyline(x, y))


def _height(
    values: NDArray[np.float64], low: float, high: float, bottom: float, top: float
) -> NDArray[np.float64]:
    span = high - low
    unit = np.clip((values - low) / span, 0, 1) if span > 0 else np.full(len(values), 0.5)
    return bottom + (top - bottom) * unit


# -- charts with axes ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scale:
    """One axis of a chart: its range, its name and its ticks as (value, text)."""

    low: float
    high: float
    name: str
    ticks: tuple[tuple[float, str], ...]

    @classmethod
    def angle(cls, largest: float, name: str, signed: bool = True) -> Scale:
        """Frequencies in radians per grid step, at least up to π."""
        reach = max(math.pi, largest) * 1.06
        ticks = (
            [(-math.pi, "−π"), (0.0, "0"), (math.pi, "π")]
            if signed
            else [(0.0, "0"), (math.pi / 2, "π/2"), (math.pi, "π")]
        )
        if largest > 1.5 * math.pi:
            ticks.append((largest, f"{largest:.1f}"))
        return cls(-reach if signed else -0.04 * reach, reach, name, tuple(ticks))

    @classmethod
    def upward(cls, high: float, name: str) -> Scale:
        """From zero to a little above ``high``."""
        high = high if high > 0 else 1.0
        step = 10 ** math.floor(math.log10(high))
        step *= 5 if high / step >= 5 else 2 if high / step >= 2 else 1
        ticks = tuple((v, f"{v:.3g}") for v in np.arange(0, high * 1.0001, step / 2).tolist())
        return cls(0.0, high * 1.06, name, ticks)


WIDTH, HEIGHT = 340, 220
_BOX = (56, 10, 330, 182)  # left, top, right, bottom of the plotting area


def chart(x: Scale, y: Scale, body: str, label: str) -> Markup:
    """Axes around ``body``: SVG elements whose coordinates come from `on_drawing`."""
    left, top, right, bottom = _BOX
    parts = [f'<path class="axis" d="M{left},{top}V{bottom}H{right}"/>']
    for value, text in x.ticks:
        at, _ = on_drawing(np.array([value]), np.array([y.low]), x, y)
        parts.append(f'<path class="axis" d="M{at[0]:.1f},{bottom}v4"/>')
        parts.append(
            f'<text class="tick mid" x="{at[0]:.1f}" y="{bottom + 16}">{escape(text)}</text>'
        )
    for value, text in y.ticks:
        _, at = on_drawing(np.array([x.low]), np.array([value]), x, y)
        parts.append(f'<path class="axis" d="M{left},{at[0]:.1f}h-4"/>')
        parts.append(
            f'<text class="tick end" x="{left - 7}" y="{at[0] + 3.5:.1f}">{escape(text)}</text>'
        )
    middle = (top + bottom) / 2
    parts.append(
        f'<text class="name mid" x="{(left + right) / 2}" y="{HEIGHT - 4}">{escape(x.name)}</text>'
    )
    parts.append(
        f'<text class="name mid" transform="rotate(-90 10 {middle})" x="10"'
        f' y="{middle}">{escape(y.name)}</text>'
    )
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    ).format(
        WIDTH,
        HEIGHT,
        label,
        Markup("".join(parts) + body),  # noqa: S704 - numbers, and text escaped above
    )


def on_drawing(
    x: NDArray, y: NDArray, xs: Scale, ys: Scale
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Convert data coordinates to drawing coordinates."""
    left, top, right, bottom = _BOX
    px = left + (right - left) * (np.asarray(x, dtype=np.float64) - xs.low) / (xs.high - xs.low)
    py = bottom - (bottom - top) * (np.asarray(y, dtype=np.float64) - ys.low) / (ys.high - ys.low)
    return px, py


def dots(
    x: NDArray,
    y: NDArray,
    weight: NDArray,
    xs: Scale,
    ys: Scale,
    stems: bool = False,
    most: int = 3000,
) -> str:
    """Points, the stronger ones darker.

    There are four strengths, each one path of round strokes of length zero.
    """
    # weights that differ by rounding alone are equal, and of equal ones the first are drawn
    order = np.argsort(-np.round(weight / (weight.max(initial=0.0) or 1.0), 9), kind="stable")[
        :most
    ]
    px, py = on_drawing(x[order], y[order], xs, ys)
    strength = weight[order] / (weight.max(initial=0.0) or 1.0)
    size = 6.0 if len(order) <= 60 else 4.5 if len(order) <= 400 else 3.0
    parts = []
    if stems:
        base = _BOX[3]
        parts.append(
            '<path class="stem" d="'
            + "".join(f"M{a:.1f},{base}V{b:.1f}" for a, b in zip(px, py, strict=True))
            + '"/>'
        )
    for step in range(4):
        chosen = (strength > step / 4) & (strength <= (step + 1) / 4) if step else strength <= 0.25
        if chosen.any():
            path = "".join(
                f"M{a:.1f},{b:.1f}h0" for a, b in zip(px[chosen], py[chosen], strict=True)
            )
            parts.append(f'<path class="dot s{step}" stroke-width="{size}" d="{path}"/>')
    return "".join(parts)
