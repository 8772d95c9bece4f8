"""Generalized shot noise: a sum of pulses of random place, width and height.

    f(z) = Σ_k A_k h(z − c_k; s_k),   A ~ U[0.5, 1.5),  c ~ U[−H, H],
    s ~ U[0.5, 2.5) (Gaussian) or U[6, 15) (Legendre)

See the paper's appendix "Synthetic datasets".  The window has d whole positions z around 0 on each
axis, and H is larger than d/2, so that pulses enter it from outside and the field is stationary
along it.  On a ring (periodic axis) distances wrap instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symlift.core.grid import Grid
from symlift.datasets.observations import TEMPORARY, Observations, check_count, check_noise, observe
from symlift.datasets.randomness import RandomState, generator
from symlift.errors import InputError

__all__ = ["gsn"]

Array = NDArray[np.float32]

BASES = ("gaussian", "legendre")
VARIANTS = ("released", "text")
SHIFTS = ("continuous", "discrete", "fft")

SCALES = {"gaussian": (0.5, 2.5), "legendre": (6.0, 15.0)}
# on an open line: pulse slots of a sample, and the range of their centres in windows
SLOTS = {"released": 5, "text": 10}
SPREAD = {"released": 2.0, "text": 3.0}


def gsn(
    n: int,
    shape: int | Sequence[int],
    basis: str = "gaussian",
    variant: str = "released",
    periodic: bool | Sequence[bool] = False,
    shifts: str = "continuous",
    transform: str | ArrayLike = "identity",
    noise: float = 0.05,
    random_state: RandomState = 0,
    amplitudes: tuple[float, float] = (0.5, 1.5),
    presence: float = 0.5,
    degrees: Sequence[int] = (3, 2),
) -> Observations:
    """Generate generalized shot noise on a grid of one to three axes, observed through a transform.

    ``variant="released"`` is what the paper's figures were made with: 5 slots, each holding a pulse
    with probability 1/2; Gaussians of unit area (unit mass on a plane or in space) times A; two
    Legendre families, l = 3 and 2, added up, each with 5 slots of its own that hold a pulse with
    probability 1/4: ``A P_l¹(sin(π u/2)), u = 2(z − c)/s`` clipped to ±1.

    ``variant="text"`` is what the paper prints: P ~ U{0 … 10} pulses; Gaussians of peak A; Legendre
    pulses ``A P_l¹(cos((z − c)/s))``, zero beyond |z − c|/s = π, with l = 2 or 3 for the whole
    sample with equal probability.

    Centres range over twice the window (released) or three times (text), more where the window is
    so small that the widest pulse would otherwise be missing near its ends; the density of pulses
    does not change.  On an open line of the released variant, 1.25 centres lie inside of the window
    on average. On several axes, and on a ring, there are 5 slots (text: 10) per volume of the
    window: 2.5 (5) centres inside, so that few windows are empty.

    Parameters
    ----------
    n : int
        Number of samples.
    shape : int or sequence of int
        Number of grid points on each axis.
    basis : {"gaussian", "legendre"}, default="gaussian"
        Shape of the pulses; Legendre pulses need a single axis.
    variant : {"released", "text"}, default="released"
        The paper's released generator, or the one that its text describes.
    periodic : bool or sequence of bool, default=False
        Whether axes close on themselves.
    shifts : {"continuous", "discrete", "fft"}, default="continuous"
        How a pulse gets to its place: real centres, whole centres, or (rings only) evaluated at the
        ring's centre and then moved by a real amount with Fourier phases, an exact cyclic action on
        the vectors (except at the Nyquist frequency of an even ring, which no real shift
        preserves).
    transform : str or array-like of shape (N, N), default="identity"
        ``"identity"``, ``"dst1"``, ``"permutation"``, ``"orthogonal"``, ``"linear"``, or a matrix.
    noise : float, default=0.05
        Deviation of the white noise of the observations, relative to that of the latent.
    random_state : int, numpy.random.Generator or None, default=0
        Seed; it gives the same latent under every transform.
    amplitudes : (float, float), default=(0.5, 1.5)
        Range of the amplitudes A.
    presence : float, default=0.5
        Probability that a slot of the released variant holds a pulse, from 0 to 1; Legendre
        families, each with slots of its own, have an equal share of it.
    degrees : sequence of int, default=(3, 2)
        Degrees l, each 2 or 3, of the Legendre families of the released variant.

    Returns
    -------
    Observations
        Observed vectors, latent signals, transform and grid.

    Raises
    ------
    InputError
        If a parameter is unknown or out of range.

    References
    ----------
    "Blind Recovery of Latent Domains via Unsupervised Symmetry Discovery", appendix "Generalized
    Shot Noise process".

    Examples
    --------
    >>> data = gsn(500, 15, periodic=True, shifts="fft", transform="orthogonal", random_state=1)
    >>> data.X.shape, data.periodic
    ((500, 15), (True,))
    >>> bool(np.abs(data.X - data.latent @ data.transform).std() < 0.05 * data.latent.std())
    True
    """
    n, noise = check_count(n), check_noise(noise)
    grid = Grid(shape, periodic)
    _check(grid, basis, variant, shifts)
    low, high = _check_pulses(amplitudes, presence, degrees)
    pulse_rng, mixing_rng, noise_rng = generator(random_state).spawn(3)

    half_ranges = [_half_range(length, wraps, basis, variant) for length, wraps in _axes(grid)]
    slots = _slots(grid, half_ranges, variant)
    # the largest temporary is (samples, slots, points of all axes except the last, or of one axis)
    width = max(grid.size // grid.shape[-1], *grid.shape, 1)
    step = max(1, TEMPORARY // (slots * width))
    latent = np.empty((n, grid.size), dtype=np.float32)
    for start in range(0, n, step):
        count = min(step, n - start)
        block = np.zeros((count, grid.size), dtype=np.float32)
        # of several families, each has its share of the pulses, wherever the others are
        each = presence / len(degrees) if basis == "legendre" else presence
        for family in _families(basis, variant, degrees):
            present = _presence(count, slots, variant, each, pulse_rng)
            if basis == "legendre" and family is None:  # one degree for all pulses of a sample
                family = pulse_rng.integers(2, 4, size=(count, 1, 1))
            heights = present * _uniform(pulse_rng, (low, high), (count, slots))
            scales = _uniform(pulse_rng, SCALES[basis], (count, slots))[..., None]
            profiles = []
            for (length, wraps), half in zip(_axes(grid), half_ranges, strict=True):
                centres = _uniform(pulse_rng, (-half, half), (count, slots))[..., None]
                if shifts == "discrete":
                    centres = np.floor(centres)
                origin = np.zeros_like(centres) if shifts == "fft" else centres
                profile = _pulse(_distance(length, wraps, origin), scales, family, variant)
                profiles.append(
                    translate_ring(profile, centres).astype(np.float32)
                    if shifts == "fft"
                    else profile
                )
            block += _superpose(heights, profiles)
        latent[start : start + count] = block
    return observe(latent, grid, transform, noise, mixing_rng, noise_rng, f"gsn-{grid}-{basis}")


def gaussian(distance: Array, scale: Array, unit_area: bool) -> Array:
    """``exp(−z²/2s²)``, divided by ``√(2π) s`` for unit area.

    >>> z = np.arange(-20, 21, dtype=np.float32)
    >>> round(float(gaussian(z, np.float32(2.0), unit_area=True).sum()), 5)
    1.0
    """
    pulse: Array = np.exp(np.float32(-0.5) * np.square(distance / scale))
    if unit_area:
        pulse /= np.float32(math.sqrt(2 * math.pi)) * scale
    return pulse


def legendre(distance: Array, scale: Array, degree: NDArray[np.int64], variant: str) -> Array:
    """``P_l¹(sin(π u/2))`` (released) or ``P_l¹(cos(z/s))`` (text), l = 2 or 3; zero outside.

    In closed form, ``P_2¹(x) = −3 x √(1−x²)`` and ``P_3¹(x) = −(3/2)(5x²−1) √(1−x²)``: the square
    root is a cosine or a sine of the same angle.

    >>> z = np.linspace(-8, 8, 5, dtype=np.float32)
    >>> pulse = legendre(z, np.float32(8), np.array(2), "released")
    >>> bool(np.allclose(pulse, 0, atol=1e-6))  # support: ±s/2
    True
    """
    if variant == "released":
        angle = np.float32(np.pi / 2) * np.clip(2 * distance / scale, -1, 1)
        x, root = np.sin(angle), np.cos(angle)
    else:
        angle = np.clip(distance / scale, -np.float32(np.pi), np.float32(np.pi))
        x, root = np.cos(angle), np.abs(np.sin(angle))
    pulse: Array = np.where(
        degree == 3, np.float32(1.5) - np.float32(7.5) * x * x, np.float32(-3) * x
    )
    pulse *= root
    return pulse


def translate_ring(signal: NDArray[Any], shift: NDArray[Any]) -> NDArray[np.float64]:
    """Move signals (…, N) along a ring by real shifts (…, 1): ``F_k → F_k exp(−2πi k shift/N)``.

    >>> translate_ring(np.array([0, 1, 0, 0, 0]), np.array([2])).round(6) + 0.0
    array([0., 0., 0., 1., 0.])
    """
    length = signal.shape[-1]
    phase = np.exp(
        -2j * np.pi / length * np.arange(length // 2 + 1) * np.asarray(shift, dtype=np.float64)
    )
    return np.fft.irfft(np.fft.rfft(signal) * phase, n=length)


def _check(grid: Grid, basis: str, variant: str, shifts: str) -> None:
    for value, known, what in (
        (basis, BASES, "basis"),
        (variant, VARIANTS, "variant"),
        (shifts, SHIFTS, "shifts"),
    ):
        if value not in known:
            raise InputError(f"{what} {value!r} is unknown: use {', '.join(known)}")
    if basis == "legendre" and grid.ndim > 1:
        raise InputError(
            f"Legendre pulses live on one axis, grid {grid} has {grid.ndim}: use basis='gaussian'"
        )
    if shifts == "fft" and not all(grid.periodic):
        raise InputError(
            "shifts='fft' move along a ring: give periodic=True, or use 'continuous' or 'discrete'"
        )


def _check_pulses(
    amplitudes: tuple[float, float], presence: float, degrees: Sequence[int]
) -> tuple[float, float]:
    """The range of amplitudes, after a check of all three."""
    try:
        low, high = (float(a) for a in amplitudes)
    except (TypeError, ValueError):
        low, high = 1.0, 0.0
    if not -math.inf < low <= high < math.inf:
        raise InputError(f"amplitudes {amplitudes!r} are no range: give two numbers, low and high")
    if not isinstance(presence, int | float | np.number) or not 0 <= presence <= 1:
        raise InputError(f"presence {presence!r} is no probability: give a number from 0 to 1")
    if not isinstance(degrees, Sequence) or not degrees or not set(degrees) <= {2, 3}:
        raise InputError(f"degrees {degrees!r} cannot be made: give a sequence of 2 and 3")
    return low, high


def _axes(grid: Grid) -> list[tuple[int, bool]]:
    return list(zip(grid.shape, grid.periodic, strict=True))


def _half_range(length: int, wraps: bool, basis: str, variant: str) -> float:
    """Half of the range of centres.

    A whole number of turns on a ring; beyond the reach of every pulse on a line.
    """
    if wraps:
        return float(length)
    widest = SCALES[basis][1]
    reach = 4 * widest if basis == "gaussian" else widest * (math.pi if variant == "text" else 0.5)
    return max(SPREAD[variant] * length / 2, length / 2 + reach)


def _slots(grid: Grid, half_ranges: list[float], variant: str) -> int:
    """Slots per sample: the published number on a line or ring, else that many per window."""
    windows = math.prod(
        1 if wraps else 2 * h / length
        for (length, wraps), h in zip(_axes(grid), half_ranges, strict=True)
    )
    published = SPREAD[variant] if grid.ndim == 1 and not grid.periodic[0] else 1.0
    return round(SLOTS[variant] * windows / published)


def _presence(
    count: int, slots: int, variant: str, presence: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Which slots hold a pulse, (count, slots).

    Each with probability ``presence`` (released), or the first P ~ U{0 … slots} (text).
    """
    if variant == "released":
        return rng.random((count, slots), dtype=np.float32) < presence
    return np.arange(slots) < rng.integers(0, slots + 1, size=(count, 1))


def _families(basis: str, variant: str, degrees: Sequence[int]) -> list[NDArray[np.int64] | None]:
    """Legendre degrees of each pulse family; one None where pulses have none, or draw theirs."""
    if basis == "legendre" and variant == "released":
        return [np.array(degree) for degree in degrees]
    return [None]


def _pulse(
    distance: Array, scales: Array, degrees: NDArray[np.int64] | None, variant: str
) -> Array:
    if degrees is None:
        return gaussian(distance, scales, unit_area=variant == "released")
    return legendre(distance, scales, degrees, variant)


def _distance(length: int, wraps: bool, centres: Array) -> Array:
    """``z − c`` (…, length) for the whole positions z around 0, the shorter way on a ring."""
    distance = np.arange(-(length // 2), length - length // 2, dtype=np.float32) - centres
    if wraps:
        distance -= length * np.rint(distance / length)
    return distance


def _superpose(amplitudes: Array, profiles: list[Array]) -> Array:
    """``Σ_k A_k Π_p h_p`` over separable pulses, (count, points): a matrix product per sample."""
    left: Array = amplitudes[..., None]
    for profile in profiles[:-1]:
        left = (left[..., None] * profile[:, :, None, :]).reshape(*amplitudes.shape, -1)
    return np.matmul(left.transpose(0, 2, 1), profiles[-1]).reshape(len(amplitudes), -1)


def _uniform(rng: np.random.Generator, bounds: tuple[float, float], size: tuple[int, ...]) -> Array:
    low, high = bounds
    values = rng.random(size, dtype=np.float32)
    values *= np.float32(high - low)
    values += np.float32(low)
    return values
