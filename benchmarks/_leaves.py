"""Dead leaves: pictures of opaque discs whose radii follow a power law, as in photographs.

Their contrast falls as 1/f. A row is a mixture of three windows of different pictures, each moved,
turned and flipped; every picture has its own scale. On a line discs are intervals, in a volume
balls.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import zoom

#: least diameter in pixels, the largest as a share of the picture, and the share left without leaf
LEAST, LARGEST, LEFT = 3.0, 0.66, 0.002
#: noise of a pixel, relative to the deviation of a picture
NOISE = 0.02


def leaves(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float32]:
    """One picture: leaves are drawn from the front to the back."""
    out = np.full(shape, np.nan, dtype=np.float32)
    ndim, most = len(shape), LARGEST * min(shape) / 2
    least = LEAST / 2
    power = ndim  # radii have the density r^-(ndim + 1), which looks alike at every scale
    while np.isnan(out).sum() > LEFT * out.size:
        share = rng.random(4_000)
        radius = (least**-power - share * (least**-power - most**-power)) ** (-1 / power)
        centre = rng.uniform(-most, np.array(shape) + most, size=(len(radius), ndim))
        grey = rng.normal(size=len(radius)).astype(np.float32)
        hits = ((centre + radius[:, None] > 0) & (centre - radius[:, None] < shape)).all(axis=1)
        for r, c, g in zip(radius[hits], centre[hits], grey[hits], strict=True):
            box = tuple(
                slice(max(0, int(x - r)), min(n, int(x + r) + 2))
                for x, n in zip(c, shape, strict=True)
            )
            part = out[box]
            empty = np.isnan(part)
            if empty.any():
                apart = np.zeros((1,) * ndim)
                for axis, (x, along) in enumerate(zip(c, box, strict=True)):
                    steps = (np.arange(along.start, along.stop) - x) ** 2
                    apart = apart + steps.reshape([-1 if a == axis else 1 for a in range(ndim)])
                part[empty & (apart <= r * r)] = g
    return np.nan_to_num(out)


def gallery(
    count: int, shape: tuple[int, ...], rng: np.random.Generator, apart: bool = False
) -> list[NDArray[np.float32]]:
    """Pictures half as large again as a window, each at a scale of its own; ``apart``: each from a
    generator of its own, so that several processes can share the work.
    """
    return [drawn(shape, one) for one in (rng.spawn(count) if apart else [rng] * count)]


def drawn(shape: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float32]:
    """One picture of a gallery."""
    scale = rng.uniform(0.8, 1.6)
    picture = leaves(tuple(int(np.ceil(1.5 * n / scale)) + 2 for n in shape), rng)
    picture = zoom(picture, scale, order=1)
    return ((picture - picture.mean()) / picture.std()).astype(np.float32)


def rows(
    n: int,
    shape: tuple[int, ...],
    pictures: list[NDArray[np.float32]],
    rng: np.random.Generator,
    colours: bool = False,
) -> Iterator[NDArray[np.float32]]:
    """Rows one by one: mixtures of windows of three pictures, moved, turned and flipped; with
    ``colours`` the last axis stays as it is.
    """
    ndim = len(shape) - colours
    for _ in range(n):
        mixed: NDArray[np.float32] = np.zeros(shape, dtype=np.float32)
        chosen = rng.choice(len(pictures), 3, replace=False)
        for weight, which in zip(rng.dirichlet([1, 1, 1]), chosen, strict=True):
            picture = pictures[which]
            at = [rng.integers(m - k + 1) for m, k in zip(picture.shape, shape, strict=True)]
            window = picture[tuple(slice(a, a + k) for a, k in zip(at, shape, strict=True))]
            axes = rng.permutation(ndim) if len(set(shape[:ndim])) == 1 else np.arange(ndim)
            window = window.transpose([*axes, *range(ndim, len(shape))])
            for axis in np.flatnonzero(rng.random(ndim) < 0.5):
                window = np.flip(window, int(axis))
            mixed += np.float32(weight) * window
        mixed += NOISE * rng.standard_normal(shape, dtype=np.float32)
        yield mixed.ravel()
