"""Images split into bits, and bits in an unknown order."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symlift.datasets.observations import TEMPORARY, Observations
from symlift.datasets.randomness import RandomState, generator
from symlift.errors import InputError

__all__ = ["ScrambledBits", "bit_planes", "from_bit_planes", "scrambled_bits"]


def bit_planes(images: ArrayLike) -> NDArray[np.uint8]:
    """Split uint8 pixels into bits: (n, …) → (n, 8 N).

    Parameters
    ----------
    images : array-like of uint8 of shape (n, ...)
        Images of N pixels each.

    Returns
    -------
    ndarray of uint8 of shape (n, 8 N)
        The eight bits of each pixel side by side, the most significant first.

    Raises
    ------
    InputError
        If the images are not of uint8.

    Examples
    --------
    >>> bit_planes(np.array([[3, 128]], dtype=np.uint8))
    array([[0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]], dtype=uint8)
    """
    pixels = np.asarray(images)
    if pixels.dtype != np.uint8 or pixels.ndim < 2:
        raise InputError(
            f"images of {pixels.dtype} and shape {pixels.shape} have no bit planes: give (n, …)"
            " uint8, such as np.rint(255 * images).astype(np.uint8)"
        )
    return np.unpackbits(pixels.reshape(len(pixels), math.prod(pixels.shape[1:])), axis=1)


def from_bit_planes(bits: ArrayLike, bits_per_pixel: int = 8) -> NDArray[np.uint8]:
    """Join bits into pixels, ``Σ_i bit_i 2^(b−1−i)``: the inverse of `bit_planes`.

    Parameters
    ----------
    bits : array-like of shape (n, b N)
        Bits of each pixel side by side, the most significant first.
    bits_per_pixel : int, default=8
        Number b of bits of each pixel, from 1 to 8.

    Returns
    -------
    ndarray of uint8 of shape (n, N)
        The pixels.

    Raises
    ------
    InputError
        If the shape does not fit, or if there are entries other than 0 and 1.

    Examples
    --------
    >>> from_bit_planes([[0, 0, 0, 0, 0, 0, 1, 1]])
    array([[3]], dtype=uint8)
    """
    planes = np.asarray(bits)
    if not isinstance(bits_per_pixel, int | np.integer) or not 1 <= bits_per_pixel <= 8:
        raise InputError(f"bits_per_pixel = {bits_per_pixel!r} must be a whole number from 1 to 8")
    if planes.ndim != 2 or planes.shape[1] % bits_per_pixel:
        raise InputError(
            f"bits have shape {planes.shape}: give (n, {bits_per_pixel}·N) for {bits_per_pixel}"
            " bits per pixel"
        )
    if not ((planes == 0) | (planes == 1)).all():
        raise InputError("bits have entries other than 0 and 1: threshold them first")
    weights = (1 << np.arange(bits_per_pixel - 1, -1, -1)).astype(np.uint8)
    grouped = planes.astype(np.uint8).reshape(
        len(planes), planes.shape[1] // bits_per_pixel, bits_per_pixel
    )
    return grouped @ weights


@dataclass(frozen=True, eq=False)
class ScrambledBits(Observations):
    """Bits of images in an unknown order.

    Column j is bit ``order[j] % b`` (0 is the most significant) of pixel ``order[j] // b``.

    Parameters
    ----------
    X : ndarray of float32 of shape (n, d)
        Bits, 0 or 1.
    latent : ndarray of float32 of shape (n, N)
        The images that the bits encode, from 0 to 1.
    transform : None
        No matrix leads from pixels to bits.
    grid : Grid
        The grid of the images.
    periodic : tuple of bool
        One flag for each axis of the grid.
    name : str
        Name of the data set.
    order : ndarray of shape (d,)
        Number of each column's bit among all N · b, pixel by pixel.
    bits_per_pixel : int
        Number b of bits of each pixel.

    Examples
    --------
    >>> from symlift.datasets import image_crops
    >>> crops = image_crops(np.arange(2 * 36, dtype=np.uint8).reshape(2, 6, 6), 3, n=50)
    >>> bits = scrambled_bits(crops, bits_per_pixel=4)
    >>> sorted(bits.order.tolist()) == list(range(9 * 4))
    True
    """

    order: NDArray[np.int64]
    bits_per_pixel: int


def scrambled_bits(
    images: Observations,
    bits_per_pixel: int = 8,
    fewest: int | None = None,
    inverted: float = 0.0,
    random_state: RandomState = 0,
) -> ScrambledBits:
    """Split images with values from 0 to 1 into bits, columns in random order.

    The latent is what the bits encode, round((2^b − 1) f)/(2^b − 1).

    Parameters
    ----------
    images : Observations
        Images, such as those of `image_crops`.
    bits_per_pixel : int, default=8
        Number b of bits of each pixel, from 1 to 16.
    fewest : int, optional
        Each pixel keeps a random number of its bits, from ``fewest`` to all; by default all.
    inverted : float, default=0.0
        Share of columns in which 0 and 1 are exchanged.
    random_state : int, numpy.random.Generator or None, default=0
        Seed.

    Returns
    -------
    ScrambledBits
        Bits, the images that they encode, and the order of the columns.

    Raises
    ------
    InputError
        If the images do not lie between 0 and 1, or if a parameter is out of range.

    References
    ----------
    "Blind Recovery of Latent Domains via Unsupervised Symmetry Discovery", appendix "Bit scrambling
    experiments".

    Examples
    --------
    >>> from symlift.datasets import image_crops
    >>> crops = image_crops(np.arange(2 * 36, dtype=np.uint8).reshape(2, 6, 6), 3, n=50)
    >>> bits = scrambled_bits(crops)
    >>> bits.X.shape, bits.latent.shape, np.unique(bits.X).tolist()
    ((50, 72), (50, 9), [0.0, 1.0])
    """
    b, N = bits_per_pixel, images.grid.size
    if not isinstance(b, int | np.integer) or not 1 <= b <= 16:
        raise InputError(f"bits_per_pixel = {b!r} must be a whole number from 1 to 16")
    least = b if fewest is None else fewest
    if not isinstance(least, int | np.integer) or not 1 <= least <= b:
        raise InputError(
            f"fewest = {fewest!r} must be a whole number from 1 to bits_per_pixel = {b}"
        )
    if not 0 <= inverted <= 1:
        raise InputError(f"inverted = {inverted!r} must be a share from 0 to 1")
    f = images.latent
    if f.min() < 0 or f.max() > 1:
        raise InputError(
            f"the images run from {f.min():g} to {f.max():g}: bits need values from 0 to 1"
        )
    rng = generator(random_state)
    used = rng.permuted(np.tile(np.arange(b), (N, 1)), axis=1) < rng.integers(
        least, b, size=(N, 1), endpoint=True
    )
    order = rng.permutation(np.flatnonzero(used))
    flipped = rng.random(len(order)) < inverted
    pixel, shift = order // b, (b - 1 - order % b).astype(np.uint16)
    X, latent = np.empty((len(f), len(order)), dtype=np.float32), np.empty_like(f)
    step = max(1, TEMPORARY // len(order))
    for start in range(0, len(f), step):
        rows = slice(start, start + step)
        values = np.rint(f[rows] * (2**b - 1)).astype(np.uint16)
        X[rows] = ((values[:, pixel] >> shift) & 1) ^ flipped
        latent[rows] = values / np.float32(2**b - 1)
    return ScrambledBits(
        X, latent, None, images.grid, images.periodic, f"{images.name}-bits", order, b
    )
