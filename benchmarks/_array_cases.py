"""Arrays of natural patches, digits, faces and bumps, with every kind of damage and their truth.

Photographs are scikit-image's own; textures (brick, grass, gravel, coins, page, text) are for
setting thresholds, the photographs for judging. A case is an array, the grid that a user would
give, and the true point of each column (-1: it belongs nowhere).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid

PHOTOGRAPHS = ("camera", "astronaut", "coffee", "chelsea", "rocket", "motorcycle")
COLOUR = ("astronaut", "coffee", "chelsea", "rocket", "motorcycle")
TEXTURES = ("brick", "grass", "gravel", "coins", "page", "text")


@dataclass(frozen=True)
class Case:
    """X (n, d), the grid, the truth: point and channel of each column, the field without damage (n,
    points · channels).
    """

    X: NDArray
    grid: Grid
    point: NDArray[np.int64]
    channel: NDArray[np.int64]
    latent: NDArray | None = None
    coordinates: NDArray[np.float64] | None = None
    strangers: frozenset[int] = field(default_factory=frozenset)
    twins: dict[int, int] = field(default_factory=dict)
    n_channels: int = 1


@cache
def picture(name: str, colour: bool = False) -> NDArray[np.float32]:
    """One of scikit-image's bundled pictures, 0 to 255, (h, w) or (h, w, 3)."""
    from skimage import data, io
    from skimage.color import rgb2gray

    bundled = (
        Path(data.__file__).parent / "motorcycle_left.png"
    )  # has no loader without its right half
    raw = io.imread(str(bundled)) if name == "motorcycle" else getattr(data, name)()
    if raw.ndim == 3 and not colour:
        return np.rint(rgb2gray(raw[..., :3]) * 255).astype(np.float32)
    return (raw[..., :3] if raw.ndim == 3 else raw).astype(np.float32)


def patches(
    n: int,
    shape: tuple[int, int],
    rng: np.random.Generator,
    names: tuple[str, ...],
    colour: bool = False,
) -> NDArray:
    """Random crops, (n, h, w) or (n, h, w, 3), float32, as many from each picture."""
    which = rng.integers(len(names), size=n)
    out = np.empty((n, *shape, 3) if colour else (n, *shape), dtype=np.float32)
    for k, name in enumerate(names):
        image = picture(name, colour)
        rows = np.flatnonzero(which == k)
        top = rng.integers(image.shape[0] - shape[0] + 1, size=len(rows))
        left = rng.integers(image.shape[1] - shape[1] + 1, size=len(rows))
        for row, a, b in zip(rows, top, left, strict=True):
            out[row] = image[a : a + shape[0], b : b + shape[1]]
    return out


def natural(
    side: int = 16, n: int = 20_000, names: tuple[str, ...] = PHOTOGRAPHS
) -> Callable[[np.random.Generator], Case]:
    """Shuffled natural patches, undamaged."""

    def make(rng: np.random.Generator) -> Case:
        field_ = patches(n, (side, side), rng, names).reshape(n, -1)
        return shuffled(field_, Grid((side, side)), rng)

    return make


def shuffled(latent: NDArray, grid: Grid, rng: np.random.Generator, channels: int = 1) -> Case:
    """Columns of ``latent`` (n, points · channels, channels fastest) in random order."""
    order = rng.permutation(latent.shape[1])
    return Case(
        latent[:, order], grid, order // channels, order % channels, latent, n_channels=channels
    )


# -- damage: Case -> Case --------------------------------------------------------------------------


def dead(case: Case, share: float, rng: np.random.Generator) -> Case:
    """A share of the columns (one, where it is 0) constant."""
    d = case.X.shape[1]
    which = rng.permutation(d)[: max(1, round(share * d))]
    X = case.X.copy()
    X[:, which] = X[0, which]
    return _changed(case, X=X, lost=which)


def missing(case: Case, share: float, rng: np.random.Generator) -> Case:
    """A share of the points without a column."""
    d = case.X.shape[1]
    keep = np.sort(rng.permutation(d)[round(share * d) :])
    return _take(case, keep)


def duplicated(case: Case, count: int, rng: np.random.Generator) -> Case:
    """``count`` columns twice."""
    d = case.X.shape[1]
    which = rng.permutation(d)[:count]
    X = np.concatenate([case.X, case.X[:, which]], axis=1)
    grown = _append(case, X, case.point[which], case.channel[which])
    return _replace(grown, twins={**case.twins, **{d + k: int(i) for k, i in enumerate(which)}})


def with_noise(case: Case, share: float, rng: np.random.Generator, instead: bool = False) -> Case:
    """A share of noise columns, in addition to the others or instead of some."""
    n, d = case.X.shape
    count = round(share * d)
    noise = rng.normal(size=(n, count)).astype(case.X.dtype) * case.X.std() + case.X.mean()
    if instead:
        which = rng.permutation(d)[:count]
        X = case.X.copy()
        X[:, which] = noise
        return _changed(case, X=X, lost=which, strange=True)
    X = np.concatenate([case.X, noise], axis=1)
    grown = _append(case, X, np.full(count, -1), np.full(count, -1))
    return _replace(grown, strangers=case.strangers | frozenset(range(d, d + count)))


def with_index(case: Case, rng: np.random.Generator) -> Case:  # noqa: ARG001 - as all damages
    """The row number as one more column."""
    n, d = case.X.shape
    X = np.concatenate([case.X, np.arange(n, dtype=case.X.dtype)[:, None]], axis=1)
    grown = _append(case, X, np.array([-1]), np.array([-1]))
    return _replace(grown, strangers=case.strangers | {d})


def scaled(case: Case, rng: np.random.Generator) -> Case:
    """One column times 1000."""
    X = case.X.copy()
    X[:, rng.integers(X.shape[1])] *= 1000
    return _replace(case, X=X)


def gains(case: Case, rng: np.random.Generator) -> Case:
    """Lognormal gains and offsets."""
    d = case.X.shape[1]
    X = case.X * rng.lognormal(size=d) + rng.normal(size=d) * 100
    return _replace(case, X=X)


def noisy(case: Case, decibel: float, rng: np.random.Generator) -> Case:
    """White noise, ``decibel`` of signal to noise."""
    scale = case.X.std() * 10 ** (-decibel / 20)
    return _replace(case, X=case.X + rng.normal(size=case.X.shape).astype(np.float32) * scale)


def wild_rows(case: Case, rng: np.random.Generator) -> Case:
    """1 % of the rows times 100."""
    X = case.X.copy()
    X[rng.permutation(len(X))[: len(X) // 100]] *= 100
    return _replace(case, X=X)


def wild_entries(case: Case, rng: np.random.Generator) -> Case:
    """0.1 % of the entries times 1000."""
    X = case.X.copy()
    X[rng.random(X.shape) < 0.001] *= 1000
    return _replace(case, X=X)


def not_a_number(case: Case, share: float, rng: np.random.Generator) -> Case:
    """A share of the entries NaN."""
    X = case.X.copy()
    X[rng.random(X.shape) < share] = np.nan
    return _replace(case, X=X)


# -- arrays of other kinds -------------------------------------------------------------------------


def colour(side: int, n: int, rng: np.random.Generator, names: tuple[str, ...] = COLOUR) -> Case:
    """Colour patches, three columns at a point."""
    return shuffled(
        patches(n, (side, side), rng, names, colour=True).reshape(n, -1), Grid((side, side)), rng, 3
    )


def gradients(
    side: int, n: int, rng: np.random.Generator, names: tuple[str, ...] = PHOTOGRAPHS
) -> Case:
    """Horizontal and vertical differences of patches, a pair at each point."""
    z = patches(n, (side + 1, side + 1), rng, names)
    pair = np.stack([z[:, 1:, :-1] - z[:, :-1, :-1], z[:, :-1, 1:] - z[:, :-1, :-1]], axis=-1)
    return shuffled(pair.reshape(n, -1), Grid((side, side)), rng, 2)


def bits(side: int, n: int, rng: np.random.Generator, names: tuple[str, ...] = PHOTOGRAPHS) -> Case:
    """Eight bits of each pixel, channel = significance, 0 the lowest; ``latent`` holds the numbers
    (n, points).
    """
    z = patches(n, (side, side), rng, names).reshape(n, -1)
    planes = (
        ((z.astype(np.uint8)[:, :, None] >> np.arange(8, dtype=np.uint8)) & 1)
        .reshape(n, -1)
        .astype(np.float32)
    )
    case = shuffled(planes, Grid((side, side)), rng, 8)
    return _replace(case, latent=z, n_channels=1)


def mnist(n: int, rng: np.random.Generator) -> Case:
    """Whole digits, 28 × 28, permuted."""
    z = np.load(Path(os.environ["SYMLIFT_DATA"]) / "mnist.npz")["x_train"].reshape(-1, 784)
    rows = z[rng.permutation(len(z))[:n]].astype(np.float32) / 255
    case = shuffled(rows, Grid((28, 28)), rng)
    return _only(case, (case.X > 0.3).mean(axis=0) > 0.002)


def digits(rng: np.random.Generator) -> Case:
    """scikit-learn's digits, 8 × 8, 1,797 rows."""
    from sklearn.datasets import load_digits

    z = load_digits().data.astype(np.float32)
    case = shuffled(z, Grid((8, 8)), rng)
    return _only(case, (case.X > 0).mean(axis=0) >= 0.01)


def faces(rng: np.random.Generator) -> Case:
    """One fixed 9 × 9 window of 200 small pictures, half of them faces."""
    from skimage import data

    z = np.asarray(data.lfw_subset(), dtype=np.float32)
    return shuffled(z[:, 8:17, 8:17].reshape(len(z), -1), Grid((9, 9)), rng)


def sensors(count: int, n: int, rng: np.random.Generator, side: int = 16) -> Case:
    """``count`` sensors at random places of a square see smooth random bumps; the truth on a
    ``side`` × ``side`` grid.
    """
    at = rng.uniform(0, side - 1, size=(count, 2))
    X, on_grid = (
        np.zeros((n, count), dtype=np.float32),
        np.zeros((n, side * side), dtype=np.float32),
    )
    grid = Grid((side, side))
    for _ in range(12):
        centre, height = (
            rng.uniform(-2, side + 1, size=(n, 2)),
            rng.normal(size=n).astype(np.float32),
        )
        width = rng.uniform(1.5, 3.0, size=n)
        for places, out in ((at, X), (grid.indices().astype(float), on_grid)):
            apart = ((centre[:, None] - places[None]) ** 2).sum(axis=-1).astype(np.float32)
            out += height[:, None] * np.exp(-apart / (2 * width[:, None] ** 2))
    X += 0.02 * rng.normal(size=X.shape).astype(np.float32)
    nearest = grid.flat(np.clip(np.rint(at), 0, side - 1).astype(int))
    return Case(X, grid, nearest, np.zeros(count, dtype=np.int64), on_grid, at)


# -- how truth follows damage ----------------------------------------------------------------------


def _replace(case: Case, **changes: Any) -> Case:
    from dataclasses import replace

    return replace(case, **changes)


def _changed(case: Case, X: NDArray, lost: NDArray, strange: bool = False) -> Case:
    point, channel = case.point.copy(), case.channel.copy()
    point[lost], channel[lost] = -1, -1
    strangers = case.strangers | frozenset(int(i) for i in lost) if strange else case.strangers
    return _replace(case, X=X, point=point, channel=channel, strangers=strangers)


def _append(case: Case, X: NDArray, point: NDArray, channel: NDArray) -> Case:
    return _replace(
        case,
        X=X,
        point=np.concatenate([case.point, point]),
        channel=np.concatenate([case.channel, channel]),
    )


def _take(case: Case, keep: NDArray) -> Case:
    return _replace(case, X=case.X[:, keep], point=case.point[keep], channel=case.channel[keep])


def _only(case: Case, counted: NDArray) -> Case:
    """Columns that are not ``counted`` stay in the array, and are not judged."""
    return _replace(case, point=np.where(counted, case.point, -1))


# -- scores ----------------------------------------------------------------------------------------


def placed(true: NDArray, point: NDArray, grid: Grid) -> tuple[float, Any, NDArray[np.int64]]:
    """Share of the columns with a true point that are there, up to symmetries and one common
    translation of the grid.

    Open axes allow a translation only as far as living columns leave border rows empty. Also: the
    orientation, and the shift.
    """
    living = true >= 0
    at = np.stack(np.unravel_index(true[living], grid.shape), axis=1)
    shape = np.array(grid.shape)
    wraps = np.array(grid.periodic)
    low, high = (
        np.where(wraps, 0, -at.min(axis=0)),
        np.where(wraps, shape - 1, shape - 1 - at.max(axis=0)),
    )
    best, which, by = -1.0, None, np.zeros(grid.ndim, dtype=np.int64)
    known = point[living] >= 0
    numbers = np.arange(grid.size).reshape(1, *grid.shape)
    for orientation in grid.orientations():
        # reorient moves content: new[p] = old[source[p]], so a column at old point q is now at
        # target[q]
        target = np.argsort(orientation.reorient(numbers).ravel())
        now = np.stack(
            np.unravel_index(target[np.where(known, point[living], 0)], grid.shape), axis=1
        )
        difference = now - at
        difference = np.where(wraps, difference % shape, difference)
        inside = known & ((difference >= low) & (difference <= high)).all(axis=1)
        if not inside.any():
            continue
        shifts, counts = np.unique(difference[inside], axis=0, return_counts=True)
        share = counts.max() / living.sum()
        if share > best:
            best, which, by = float(share), orientation, shifts[counts.argmax()]
    return best, which, by


def shot_noise(shape: tuple[int, ...], n: int, rng: np.random.Generator) -> Case:
    """Shuffled shot noise."""
    from symlift.datasets import gsn

    data = gsn(n, shape, transform="identity", random_state=int(rng.integers(2**31)))
    return shuffled(np.asarray(data.X, dtype=np.float32), data.grid, rng)
