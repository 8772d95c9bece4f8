"""Shot noise on a sphere, behind a mixing of its spherical harmonics or seen by sensors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symlift.core.harmonics import degrees_of, real_harmonics
from symlift.core.sphere import Sphere
from symlift.datasets.observations import Observations, check_count, check_noise
from symlift.datasets.randomness import RandomState, generator
from symlift.datasets.transforms import transform_matrix
from symlift.errors import InputError

__all__ = ["sphere_noise"]

PULSES = ("gaussian", "band", "two", "signed", "normal")
# pulses of a field, each present with probability one half, and their heights
_MOST, _PRESENCE, _HEIGHTS = 6, 0.5, (0.5, 1.5)
# the second of two shapes is wider by this factor; band-pass pulses: centre and width over L
_WIDER, _CENTRE, _BAND = 1.8, 0.55, 0.25


def sphere_noise(
    n: int,
    degree: int = 5,
    pulses: str = "gaussian",
    transform: str | ArrayLike = "orthogonal",
    noise: float = 0.05,
    random_state: RandomState = 0,
    width: float = 0.2,
    sensors: ArrayLike | None = None,
) -> Observations:
    """Generate shot noise on a sphere: positive pulses at random places, up to a degree.

    Parameters
    ----------
    n : int
        Number of samples.
    degree : int, default=5
        Highest degree of the spherical harmonics.
    pulses : {"gaussian", "band", "two", "signed", "normal"}, default="gaussian"
        Shape of the pulses: smooth bumps, band-pass ripples, two widths, bumps of both signs; or
        "normal", a Gaussian field of the same spectrum as "gaussian", which no dense mixing can be
        undone for.
    transform : str or array-like of shape ((L + 1)², (L + 1)²), default="orthogonal"
        What mixes the coefficients; ignored where ``sensors`` are given.
    noise : float, default=0.05
        White noise, as a share of the deviation of the observations.
    random_state : int, numpy.random.Generator or None, default=0
        Seed.
    width : float, default=0.2
        Width of the pulses in radians.
    sensors : array-like of shape (d, 3), optional
        Unit vectors where the field is observed, one column each, in place of a mixing.

    Returns
    -------
    Observations
        ``latent`` are the fields at the points of the sphere, ``X = latent @ transform + noise``.

    Raises
    ------
    InputError
        If the pulses are unknown, or the sensors are not points.

    Examples
    --------
    >>> data = sphere_noise(100, degree=3, noise=0.0)
    >>> data.X.shape, str(data.grid)
    ((100, 16), 'sphere of degree 3')
    >>> bool(np.allclose(data.X, data.latent @ data.transform, atol=1e-5))
    True
    """
    count, share, sphere = check_count(n), check_noise(noise), Sphere(degree)
    if pulses not in PULSES:
        raise InputError(f"pulses {pulses!r} are unknown: use one of {', '.join(PULSES)}")
    pulse_rng, mixing_rng, noise_rng = generator(random_state).spawn(3)
    coefficients = _fields(count, sphere.known_degree, pulses, width, pulse_rng)
    Y = real_harmonics(sphere.points, sphere.known_degree)
    if sensors is None:
        label, matrix = transform_matrix(transform, sphere.dimension, mixing_rng)
    else:
        places = np.asarray(sensors, dtype=np.float64)
        if places.ndim != 2 or places.shape[1:] != (3,) or not np.isfinite(places).all():
            raise InputError(f"sensors have shape {places.shape}: give unit vectors (d, 3)")
        label, matrix = "sensors", real_harmonics(places, sphere.known_degree).T
    X = coefficients @ matrix
    X += share * X.std() * noise_rng.standard_normal(X.shape)
    mixing = np.linalg.pinv(Y).T @ matrix
    latent = (coefficients @ Y.T).astype(np.float32)
    name = f"sphere-{degree}-{pulses}-{label}"
    return Observations(X.astype(np.float32), latent, mixing, sphere, sphere.periodic, name)


def _fields(
    n: int, degree: int, pulses: str, width: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Coefficients (n, (L + 1)²) of fields."""
    if pulses == "normal":
        # the power of a shot noise is that of its pulses, degree by degree
        shape = _shape(degree, width)
        deviation = shape * np.sqrt(_MOST * _PRESENCE / (4 * np.pi))
        return rng.standard_normal((n, len(shape))) * deviation
    shapes = [_band(degree)] if pulses == "band" else [_shape(degree, width)]
    if pulses == "two":
        shapes.append(_shape(degree, _WIDER * width))
    out = np.zeros((n, (degree + 1) ** 2))
    for _ in range(_MOST):
        place = rng.standard_normal((n, 3))
        place /= np.linalg.norm(place, axis=1, keepdims=True)
        height = rng.uniform(*_HEIGHTS, n) * (rng.random(n) < _PRESENCE)
        if pulses == "signed":
            height *= rng.choice([-1.0, 1.0], n)
        shape = np.stack(shapes)[rng.integers(len(shapes), size=n)]
        out += height[:, None] * real_harmonics(place, degree) * shape
    return out


def _shape(degree: int, width: float) -> NDArray[np.float64]:
    """Weights of a bump on a sphere: heat that has spread by ``width``."""
    ell = degrees_of(degree)
    return np.exp(-0.5 * ell * (ell + 1) * width**2)


def _band(degree: int) -> NDArray[np.float64]:
    """Weights of a ripple: a band of degrees around the middle."""
    return np.exp(-0.5 * ((degrees_of(degree) - _CENTRE * degree) / (_BAND * degree)) ** 2)
