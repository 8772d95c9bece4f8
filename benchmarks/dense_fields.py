"""Fields for the benchmark of dense mixings: digits, garments, photographs, decays, linear
processes and piecewise constant signals.
"""

from __future__ import annotations

import functools
import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.datasets import (
    Observations,
    gsn,
    image_crops,
    load_mnist,
    random_linear,
    random_orthogonal,
)

NOISE = 0.02
#: where Debian's package dataset-fashion-mnist puts its files; FASHION_MNIST names another folder
GARMENTS = "/usr/share/datasets/fashion-mnist"
#: where Debian's package mate-backgrounds has its photographs; BACKGROUNDS names another folder
BACKGROUNDS = "/usr/share/backgrounds/mate/nature"
#: scikit-image's bundled photographs of things and places (no drawings, no microscopy, no text)
PHOTOGRAPHS = (
    "astronaut",
    "camera",
    "chelsea",
    "coffee",
    "rocket",
    "motorcycle_left",
    "gravel",
    "grass",
)


def observed(
    latent: NDArray, grid: Grid, seed: int, condition: float = 1.0, name: str = ""
) -> Observations:
    """``latent`` behind a random rotation (or map of the given condition), with 2 % noise."""
    mixing, noise = np.random.default_rng([seed, 16]).spawn(2)
    side = condition**0.5
    d = grid.size
    A = random_orthogonal(d, mixing) if condition == 1 else random_linear(d, 1 / side, side, mixing)
    f = np.asarray(latent, dtype=np.float32)
    X = f @ A.astype(np.float32) + NOISE * f.std() * noise.standard_normal(
        f.shape, dtype=np.float32
    )
    return Observations(X, f, A, grid, grid.periodic, name)


def digits(side: int, n: int, seed: int) -> Observations:
    """MNIST crops."""
    crops = image_crops(load_mnist().images, (side, side), n, random_state=seed)
    return observed(crops.latent, crops.grid, seed, name=f"mnist-{side}")


@functools.cache
def _garments() -> NDArray[np.uint8]:
    path = Path(os.environ.get("FASHION_MNIST", GARMENTS)) / "train-images-idx3-ubyte.gz"
    return np.frombuffer(gzip.decompress(path.read_bytes())[16:], dtype=np.uint8).reshape(
        -1, 28, 28
    )


def garments(side: int, n: int, seed: int) -> Observations:
    """Fashion-MNIST crops."""
    crops = image_crops(_garments(), (side, side), n, random_state=seed)
    return observed(crops.latent, crops.grid, seed, name=f"fashion-{side}")


@functools.cache
def _photographs() -> tuple[NDArray[np.float32], ...]:
    import skimage
    from skimage.color import rgb2gray
    from skimage.io import imread

    folder = Path(skimage.__file__).parent / "data"
    pictures = []
    for name in PHOTOGRAPHS:
        picture = imread(next(folder.glob(f"{name}.*")))
        grey = rgb2gray(picture[..., :3]) if picture.ndim == 3 else picture / 255.0
        pictures.append(grey.astype(np.float32))
    return tuple(pictures)


@functools.cache
def _backgrounds() -> tuple[NDArray[np.float32], ...]:
    """Photographs of nature of Debian's package mate-backgrounds, about 600 points high."""
    from skimage.color import rgb2gray
    from skimage.io import imread

    folder = Path(os.environ.get("BACKGROUNDS", BACKGROUNDS))
    pictures = []
    for path in sorted(folder.glob("*.jpg")):
        grey = rgb2gray(imread(path)[..., :3])
        k = max(1, round(grey.shape[0] / 600))
        high, wide = (length // k for length in grey.shape)
        blocks = grey[: high * k, : wide * k].reshape(high, k, wide, k)
        pictures.append(blocks.mean(axis=(1, 3)).astype(np.float32))
    return tuple(pictures)


#: collections of photographs
COLLECTIONS = {"scikit-image": _photographs, "mate": _backgrounds}


def patches(
    shape: int | tuple[int, int], n: int, seed: int, collection: str = "scikit-image"
) -> Observations:
    """Patches of photographs, any place of each picture as likely as any other, pictures alike."""
    rng, pictures = np.random.default_rng(seed), COLLECTIONS[collection]()
    high, wide = (shape, shape) if isinstance(shape, int) else shape
    out = np.empty((n, high, wide), dtype=np.float32)
    for row, which in enumerate(rng.integers(len(pictures), size=n)):
        picture = pictures[which]
        a, b = (
            int(rng.integers(length - side + 1))
            for length, side in zip(picture.shape, (high, wide), strict=True)
        )
        out[row] = picture[a : a + high, b : b + wide]
    return observed(out.reshape(n, -1), Grid((high, wide)), seed, name=f"photographs-{high}x{wide}")


def decays(length: int, periodic: bool, n: int, seed: int) -> Observations:
    """A step up and an exponential decay: up to five on twice the window, each with probability
    1/2, as shot noise has them.
    """
    rng = np.random.default_rng(seed)
    f = np.zeros((n, length))
    z = np.arange(length)
    for _ in range(5):
        centre = rng.uniform(
            -length / 2 if not periodic else 0, 1.5 * length if not periodic else length, (n, 1)
        )
        height = rng.uniform(0.5, 1.5, (n, 1)) * (rng.random((n, 1)) < 0.5)
        age = (z - centre) % length if periodic else z - centre
        f += np.where(age >= 0, height * np.exp(-age / rng.uniform(2.0, 6.0, (n, 1))), 0.0)
    return observed(f, Grid((length,), periodic), seed, name=f"decays-{length}")


def linear_process(
    kind: str, n: int, seed: int, length: int = 50, condition: float = 1.0
) -> Observations:
    """AR(1) with 0.8 driven by Laplace or Bernoulli–Gauss (one in five) innovations; MA(3) by
    exponential ones.
    """
    rng = np.random.default_rng(seed)
    burn = 60
    if kind == "laplace":
        e = rng.laplace(size=(n, length + burn))
    elif kind == "exponential":
        e = rng.exponential(size=(n, length + burn)) - 1
    else:
        e = rng.normal(size=(n, length + burn)) * (rng.random((n, length + burn)) < 0.2)
    if kind == "exponential":
        f = sum(b * e[:, burn - k : burn - k + length] for k, b in enumerate((1.0, 0.8, 0.5, 0.3)))
    else:
        from scipy.signal import lfilter

        f = lfilter([1.0], [1.0, -0.8], e, axis=1)[:, burn:]
    return observed(np.asarray(f), Grid((length,)), seed, condition, name=f"process-{kind}")


def piecewise_constant(n: int, seed: int, length: int = 40) -> Observations:
    """Gaussian levels that change with probability 1/10 at each step."""
    rng = np.random.default_rng(seed)
    jump = rng.random((n, length)) < 0.1
    jump[:, 0] = True
    level = rng.normal(size=(n, length))
    last = np.maximum.accumulate(np.where(jump, np.arange(length), 0), axis=1)
    return observed(
        np.take_along_axis(level, last, axis=1), Grid((length,)), seed, name="piecewise"
    )


def shot_noise(
    shape: int | tuple[int, ...], n: int, seed: int, basis: str = "gaussian", condition: float = 1.0
) -> Observations:
    """Pulses as `symlift.datasets.gsn` makes them, behind a rotation or a map of the given
    condition.
    """
    made = gsn(n, shape, basis=basis, noise=0.0, random_state=seed)
    return observed(made.latent, made.grid, seed, condition, name=made.name)


def text_wavelets(n: int, seed: int) -> Observations:
    """Legendre wavelets as the paper's text has them, behind the sine transform."""
    return gsn(
        n, 63, basis="legendre", variant="text", transform="dst1", noise=NOISE, random_state=seed
    )


def without_domain(
    n: int, seed: int
) -> Iterator[tuple[str, NDArray[np.float64], int | tuple[int, int], bool]]:
    """Rows that determine no domain, with a grid to fit: name, rows, shape, periodic."""
    rngs = iter(np.random.default_rng([seed, 35]).spawn(32))

    def turned(X: NDArray) -> NDArray[np.float64]:
        return X @ random_orthogonal(X.shape[1], next(rngs))

    def volatile(X: NDArray) -> NDArray[np.float64]:
        """Rows of different contrast."""
        return X * np.exp(0.7 * next(rngs).normal(size=(len(X), 1)))

    def gaussian(shape: tuple[int, ...]) -> NDArray[np.float64]:
        index = Grid(shape).indices()
        distance = np.linalg.norm(index[:, None] - index[None], axis=-1)
        root = np.linalg.cholesky(np.exp(-distance / 2.5))
        return next(rngs).normal(size=(n, len(root))) @ root.T

    yield "white noise, line 33", next(rngs).normal(size=(n, 33)), 33, False
    yield "Laplace values, line 24", turned(next(rngs).laplace(size=(n, 24))), 24, False
    skewed = next(rngs).exponential(size=(n, 30)) - 1
    yield "exponential values, line 30", turned(skewed), 30, False
    spectrum = 1 / (1 + np.arange(8) ** 2)
    ring = np.fft.irfft(np.fft.rfft(next(rngs).normal(size=(n, 15)), axis=1) * spectrum, 15, axis=1)
    yield "Gaussian field, ring 15", turned(ring), 15, True
    yield "Gaussian field, line 30", turned(gaussian((30,))), 30, False
    yield "Gaussian field, 6x6", turned(gaussian((6, 6))), (6, 6), False
    centres = 2 * next(rngs).normal(size=(5, 24))
    label = next(rngs).integers(5, size=n)
    yield "five clusters, line 24", centres[label] + next(rngs).normal(size=(n, 24)), 24, False
    yield (
        "Gaussian field of varying contrast, 6x6",
        turned(volatile(gaussian((6, 6)))),
        (6, 6),
        False,
    )
    yield "Student values, ring 32", turned(next(rngs).standard_t(3, size=(n, 32))), 32, True
    factors = next(rngs).laplace(size=(n, 10)) @ next(rngs).normal(size=(10, 30))
    yield "ten factors, line 30", factors + 0.3 * next(rngs).normal(size=(n, 30)), 30, False
    yield (
        "noise of varying contrast, line 24",
        turned(volatile(next(rngs).normal(size=(n, 24)))),
        24,
        False,
    )
    skewed = next(rngs).exponential(size=(n, 25)) - 1
    yield "skewed values of varying contrast, 5x5", turned(volatile(skewed)), (5, 5), False
