"""Arrays whose grid is not given: lines, rings, rectangles up to 1:8, boxes, tori, cylinders, with
holes and unrelated columns, behind dense mixings, and five without a grid. Natural patches come
from photographs, on which no threshold was set.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

import _array_cases as cases
from symlift.core.grid import Grid
from symlift.datasets import gsn

N = 6_000
Made = tuple[NDArray, Grid | None]
Maker = Callable[[np.random.Generator], Made]


def _shot(shape: tuple[int, ...], periodic: bool = False, transform: str = "permutation") -> Maker:
    def make(rng: np.random.Generator) -> Made:
        data = gsn(
            N, shape, periodic=periodic, transform=transform, random_state=int(rng.integers(2**31))
        )
        return np.asarray(data.X), data.grid

    return make


def _smooth(shape: tuple[int, ...], periodic: tuple[bool, ...], width: float = 1.0) -> Maker:
    """A Gaussian field, smooth, closed along some axes, its columns shuffled."""

    def make(rng: np.random.Generator) -> Made:
        wide = [n if wraps else n + 8 for n, wraps in zip(shape, periodic, strict=True)]
        z = gaussian_filter(rng.normal(size=(N, *wide)), (0, *[width] * len(shape)), mode="wrap")
        inside = tuple(
            slice(None) if wraps else slice(4, 4 + n)
            for n, wraps in zip(shape, periodic, strict=True)
        )
        z = z[(slice(None), *inside)].reshape(N, -1)
        return z[:, rng.permutation(z.shape[1])], Grid(shape, periodic)

    return make


def _natural(shape: tuple[int, int]) -> Maker:
    def make(rng: np.random.Generator) -> Made:
        z = cases.patches(N, shape, rng, cases.PHOTOGRAPHS).reshape(N, -1)
        return z[:, rng.permutation(z.shape[1])], Grid(shape)

    return make


def _without(make: Maker, count: int) -> Maker:
    """Columns left out at random."""

    def made(rng: np.random.Generator) -> Made:
        X, grid = make(rng)
        return X[:, np.sort(rng.permutation(X.shape[1])[count:])], grid

    return made


def _with_strangers(make: Maker, count: int) -> Maker:
    def made(rng: np.random.Generator) -> Made:
        X, grid = make(rng)
        noise = rng.normal(size=(len(X), count)) * X.std() + X.mean()
        X = np.concatenate([X, noise], axis=1)
        return X[:, rng.permutation(X.shape[1])], grid

    return made


def _nothing(make: Callable[[np.random.Generator], NDArray]) -> Maker:
    return lambda rng: (make(rng), None)


def _factors(rng: np.random.Generator) -> NDArray:
    return rng.normal(size=(N, 5)) @ rng.normal(size=(5, 48)) + rng.normal(size=(N, 48))


def _blocks(rng: np.random.Generator) -> NDArray:
    group = np.repeat(np.arange(6), 8)
    return rng.normal(size=(N, 6))[:, group] + rng.normal(size=(N, 48))


def _heavy(rng: np.random.Generator) -> NDArray:
    return (
        rng.standard_t(3, size=(N, 40))
        @ np.linalg.qr(rng.normal(size=(40, 40)))[0]
        * rng.lognormal(size=40)
    )


def _tree(rng: np.random.Generator) -> NDArray:
    """Each column is a noisy copy of one that came before it."""
    X = rng.normal(size=(N, 40))
    for j in range(1, 40):
        X[:, j] = 0.8 * X[:, rng.integers(j)] + 0.6 * X[:, j]
    return X


CASES: dict[str, Maker] = {
    "line 31": _shot((31,)),
    "line 60, smooth": _smooth((60,), (False,), 1.5),
    "ring 24": _shot((24,), periodic=True),
    "ring 40, smooth": _smooth((40,), (True,), 1.5),
    "natural 12x20": _natural((12, 20)),
    "natural 15x16": _natural((15, 16)),
    "natural 5x30": _natural((5, 30)),
    "natural 4x32": _natural((4, 32)),
    "shot noise 6x6": _shot((6, 6)),
    "box 4x5x6": _shot((4, 5, 6)),
    "box 5x5x5, smooth": _smooth((5, 5, 5), (False,) * 3),
    "torus 7x9": _smooth((7, 9), (True, True)),
    "torus 8x8": _shot((8, 8), periodic=True),
    "cylinder 6x10": _smooth((6, 10), (False, True)),
    "cylinder 9x7": _smooth((9, 7), (False, True)),
    "natural 12x12 less one point": _without(_natural((12, 12)), 1),
    "natural 10x14 less five points": _without(_natural((10, 14)), 5),
    "natural 9x9 with 8 strangers": _with_strangers(_natural((9, 9)), 8),
    "line 31, mixed": _shot((31,), transform="orthogonal"),
    "shot noise 6x8, mixed": _shot((6, 8), transform="orthogonal"),
    "white noise": _nothing(lambda rng: rng.normal(size=(N, 36))),
    "five factors": _nothing(_factors),
    "six blocks": _nothing(_blocks),
    "heavy tails, mixed": _nothing(_heavy),
    "a tree": _nothing(_tree),
}
