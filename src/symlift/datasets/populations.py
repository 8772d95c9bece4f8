"""Populations tuned to two numbers: grid-cell modules, whose positions are a torus, and place cells
on an open square.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.datasets.observations import Observations, check_count
from symlift.datasets.randomness import RandomState, generator
from symlift.errors import InputError

__all__ = ["plane_population", "torus_population"]

_POINTS = 20


def torus_population(
    n: int,
    units: int = 60,
    rate: float = 8.0,
    sharpness: float = 4.0,
    gain: float = 0.3,
    speed: float = 0.3,
    hexagonal: bool = True,
    random_state: RandomState = 0,
) -> Observations:
    """Simulate spike counts of one module of grid cells, whose positions are a torus.

    Cell j fires at ``rate · a_j · (b_j + exp(κ_j (h(φ - φ_j) - 1))) · exp(gain · g + speed · m_j ·
    v)``. φ is the position within one tile of the lattice; h(φ) = (3/2 + cos φ₁ + cos φ₂ + cos(φ₁ -
    φ₂)) / 4.5 is a hexagonal pattern in the open field, and (2 + cos φ₁ + cos φ₂) / 4 a square one.
    φ is uniform, as for an animal that walks over many tiles. The gain g is normal and common to
    all cells; the speed v is exponential (rest, and runs) and acts on each cell by its own m_j,
    normal.

    Parameters
    ----------
    n : int
        Number of rows.
    units : int, default=60
        Number of cells.
    rate : float, default=8.0
        Scale of the rates; 8 gives about 3 spikes per cell and row. Fewer spikes are more noise.
    sharpness : float, default=4.0
        Mean of κ_j.
    gain : float, default=0.3
        Strength of the common gain.
    speed : float, default=0.3
        Strength of the speed.
    hexagonal : bool, default=True
        Whether the pattern is hexagonal rather than square.
    random_state : int, numpy.random.Generator or None, default=0
        Seed.

    Returns
    -------
    Observations
        Counts (n, units); `latent` (n, 2) holds the two angles.

    Examples
    --------
    >>> from symlift.datasets import torus_population
    >>> data = torus_population(500, 40, random_state=0)
    >>> data.X.shape, data.latent.shape, str(data.grid), data.periodic
    ((500, 40), (500, 2), '20x20', (True, True))
    """
    n, units = _checked(n, units, rate=rate, sharpness=sharpness, gain=gain, speed=speed)
    tuning_rng, trial_rng, noise_rng = generator(random_state).spawn(3)
    preferred = tuning_rng.uniform(0, 2 * np.pi, (units, 2))
    width = sharpness * np.exp(0.2 * tuning_rng.normal(size=units))
    untuned = tuning_rng.uniform(0, 0.3, units)
    angles = trial_rng.uniform(0, 2 * np.pi, (n, 2))
    first, second = np.moveaxis(angles[:, None] - preferred, -1, 0)
    waves = np.cos(first) + np.cos(second)
    pattern = (waves + np.cos(first - second) + 1.5) / 4.5 if hexagonal else (waves + 2) / 4
    tuned = untuned + np.exp(width * (pattern - 1))
    X = _spikes(tuned, rate, gain, speed, tuning_rng, trial_rng, noise_rng)
    grid = Grid((_POINTS, _POINTS), periodic=True)
    kind = "hexagonal" if hexagonal else "square"
    return Observations(
        X, angles.astype(np.float32), None, grid, grid.periodic, f"torus-population-{kind}-{units}"
    )


def plane_population(
    n: int,
    units: int = 60,
    rate: float = 4.0,
    width: float = 0.2,
    gain: float = 0.3,
    speed: float = 0.3,
    random_state: RandomState = 0,
) -> Observations:
    """Simulate spike counts of place cells on an open square of side 1.

    Fields are Gaussians with centres up to a tenth outside of the square; gain, speed and noise are
    those of `torus_population`. Every row has a place and no angle: a search for rings or tori must
    decline this population.

    Parameters
    ----------
    n : int
        Number of rows.
    units : int, default=60
        Number of cells.
    rate : float, default=4.0
        Scale of the rates.
    width : float, default=0.2
        Standard deviation of the fields, log-normally spread.
    gain : float, default=0.3
        Strength of the common gain.
    speed : float, default=0.3
        Strength of the speed.
    random_state : int, numpy.random.Generator or None, default=0
        Seed.

    Returns
    -------
    Observations
        Counts (n, units); `latent` (n, 2) holds the positions.

    Examples
    --------
    >>> from symlift.datasets import plane_population
    >>> data = plane_population(500, 40, random_state=0)
    >>> data.X.shape, data.latent.shape, data.periodic
    ((500, 40), (500, 2), (False, False))
    """
    n, units = _checked(n, units, rate=rate, width=width, gain=gain, speed=speed)
    tuning_rng, trial_rng, noise_rng = generator(random_state).spawn(3)
    centres = tuning_rng.uniform(-0.1, 1.1, (units, 2))
    widths = max(width, 1e-6) * np.exp(0.2 * tuning_rng.normal(size=units))
    untuned = tuning_rng.uniform(0, 0.1, units)
    places = trial_rng.uniform(0, 1, (n, 2))
    away = ((places[:, None] - centres) ** 2).sum(axis=-1)
    X = _spikes(
        untuned + np.exp(-away / (2 * widths**2)),
        rate,
        gain,
        speed,
        tuning_rng,
        trial_rng,
        noise_rng,
    )
    grid = Grid((_POINTS, _POINTS))
    return Observations(
        X, places.astype(np.float32), None, grid, grid.periodic, f"plane-population-{units}"
    )


def _checked(n: int, units: int, **numbers: float) -> tuple[int, int]:
    n, units = check_count(n), check_count(units)
    for name, value in numbers.items():
        if not isinstance(value, int | float | np.number) or not 0 <= value < np.inf:
            raise InputError(f"{name} = {value!r} must be a number ≥ 0")
    if units < 6:
        raise InputError(f"units = {units}: two coordinates need at least 6")
    return n, units


def _spikes(
    tuned: NDArray,
    rate: float,
    gain: float,
    speed: float,
    tuning_rng: np.random.Generator,
    trial_rng: np.random.Generator,
    noise_rng: np.random.Generator,
) -> NDArray[np.float32]:
    """Counts of cells of log-normal strength, under a common gain and a state that acts on each
    cell by its own amount.
    """
    n, units = tuned.shape
    strength = rate * np.exp(0.5 * tuning_rng.normal(size=units))
    moved = tuning_rng.normal(size=units)
    common = gain * trial_rng.normal(size=(n, 1)) - gain**2 / 2
    # runs are clipped: an exponential of an exponential has no mean
    state = speed * np.minimum(trial_rng.exponential(size=n), 5)
    rates = strength * tuned * np.exp(np.clip(common + np.outer(state, moved), -5, 3))
    return noise_rng.poisson(rates).astype(np.float32)
