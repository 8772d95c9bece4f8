"""Neural recordings whose latent is an angle: synthetic populations, stored arrays, NWB sessions.

``latent`` of these data holds one angle per row, in radians on the full circle (an orientation,
whose period is 180 degrees, is doubled), and ``transform`` is None: no matrix leads from an angle
to spike counts.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symlift.core.grid import Grid
from symlift.datasets.observations import Observations, check_count
from symlift.datasets.randomness import RandomState, generator
from symlift.errors import InputError, MissingDataError
from symlift.storage.numpy_files import UNREADABLE, read_arrays

__all__ = ["load_recording", "mix_samples", "ring_population", "z_scores"]

# stored arrays that SYMLIFT_DATA may hold, by name
ARRAYS = {
    "head-direction": "head_direction_mouse28.npz",
    "drifting-gratings": "allen_732592105_drifting_gratings.npz",
}
_FARTHEST = 8.0  # larger z-scores carry no more information, and would soon be infinite


def ring_population(
    n: int,
    units: int = 64,
    rate: float = 4.0,
    concentration: float = 2.0,
    gain: float = 0.3,
    movement: float = 0.3,
    stimuli: int | None = None,
    random_state: RandomState = 0,
) -> Observations:
    """Simulate Poisson counts of neurons tuned to an angle, with the variability of recordings.

    Neuron j fires at

        rate · a_j · (b_j + exp(κ_j (cos(φ - φ_j) - 1))) · exp(gain · g + movement · m_j · v).

    Preferred angles φ_j are uniform, strengths a_j and concentrations κ_j log-normal, b_j is
    untuned activity.  The gain g is normal and common to all neurons; the movement v is exponential
    (rest, and bouts) and acts on each neuron by its own m_j, which is normal.

    Parameters
    ----------
    n : int
        Number of samples.
    units : int, default=64
        Number of neurons, at least 3.
    rate : float, default=4.0
        Typical peak count of a neuron.
    concentration : float, default=2.0
        Typical concentration κ of a tuning curve.
    gain : float, default=0.3
        Size of the fluctuations that all neurons share.
    movement : float, default=0.3
        Size of the fluctuations by movement.
    stimuli : int, optional
        Number of evenly spaced angles that are shown, at least 3; by default φ is uniform on the
        circle.
    random_state : int, numpy.random.Generator or None, default=0
        Seed.

    Returns
    -------
    Observations
        Counts, and the angle of each row as ``latent``, on a ring of as many points as neurons.

    Raises
    ------
    InputError
        If a parameter is out of range.

    Examples
    --------
    >>> data = ring_population(500, 32, random_state=0)
    >>> data.X.shape, data.latent.shape, str(data.grid), data.periodic
    ((500, 32), (500,), '32', (True,))
    """
    n, units = check_count(n), check_count(units)
    for name, value in (
        ("rate", rate),
        ("concentration", concentration),
        ("gain", gain),
        ("movement", movement),
    ):
        if not isinstance(value, int | float | np.number) or not 0 <= value < np.inf:
            raise InputError(f"{name} = {value!r} must be a number ≥ 0")
    if units < 3 or (stimuli is not None and stimuli < 3):
        raise InputError(f"units = {units}, stimuli = {stimuli}: a ring needs at least 3 of either")
    tuning_rng, trial_rng, noise_rng = generator(random_state).spawn(3)
    preferred = tuning_rng.uniform(0, 2 * np.pi, units)
    strength = rate * np.exp(0.5 * tuning_rng.normal(size=units))
    width = concentration * np.exp(0.4 * tuning_rng.normal(size=units))
    untuned = tuning_rng.uniform(0, 0.5, units)
    moved = tuning_rng.normal(size=units)
    angle = (
        trial_rng.uniform(0, 2 * np.pi, n)
        if stimuli is None
        else 2 * np.pi * trial_rng.integers(stimuli, size=n) / stimuli
    )
    common = gain * trial_rng.normal(size=n) - gain**2 / 2
    state = movement * np.minimum(trial_rng.exponential(size=n), 5)
    tuned = untuned + np.exp(width * (np.cos(angle[:, None] - preferred) - 1))
    # bouts are clipped: an exponential of an exponential has no mean
    rates = strength * tuned * np.exp(np.clip(common[:, None] + np.outer(state, moved), -5, 3))
    X = noise_rng.poisson(rates).astype(np.float32)
    return angles_of(X, angle, f"ring-population-{units}")


def mix_samples(
    X: ArrayLike, n: int, samples: int = 20, probability: float = 0.5, random_state: RandomState = 0
) -> NDArray[np.float64]:
    """Superpose random rows, Σ_k b_k x_{i_k} with b_k Bernoulli: the paper's stochastic mixing.

    Several active places on the ring at once are a valid field on it, so that few trials give many
    samples.  Rows are drawn with replacement: a mixture has mean ``K p E[x]`` and covariance
    ``K (p E[xxᵀ] - p² E[x]E[x]ᵀ)``, K = ``samples``, p = ``probability``.

    Parameters
    ----------
    X : array-like of shape (m, d)
        Rows to mix.
    n : int
        Number of mixtures.
    samples : int, default=20
        Number K of rows that are drawn for each mixture.
    probability : float, default=0.5
        Probability p that a drawn row is added, in (0, 1].
    random_state : int, numpy.random.Generator or None, default=0
        Seed.

    Returns
    -------
    ndarray of shape (n, d)
        The mixtures.

    Raises
    ------
    InputError
        If X is not a matrix with at least one row, or if a parameter is out of range.

    References
    ----------
    "Blind Recovery of Latent Domains via Unsupervised Symmetry Discovery", appendix "Neural coding
    experiment details".

    Examples
    --------
    >>> mix_samples(np.eye(3), 2, samples=4, random_state=0).shape
    (2, 3)
    """
    rows, n, samples = np.asarray(X, dtype=np.float64), check_count(n), check_count(samples)
    if rows.ndim != 2 or not len(rows):
        raise InputError(f"X has shape {rows.shape}: give at least one row (n, d)")
    if not 0 < probability <= 1:
        raise InputError(f"probability = {probability!r} must lie in (0, 1]")
    rng = generator(random_state)
    mixed = np.zeros((n, rows.shape[1]))
    for _ in range(samples):  # one row per mixture at a time: no array of size n · samples · d
        added = np.flatnonzero(rng.random(n) < probability)
        mixed[added] += rows[rng.integers(len(rows), size=len(added))]
    return mixed


def load_recording(name: str, folder: str | os.PathLike[str] | None = None) -> Observations:
    """Load a stored recording: spike counts, and the angle behind each row.

    The file is an ``.npz`` with ``X`` (n, units), ``angles`` (n,) in degrees and their ``period``.

    Parameters
    ----------
    name : {"head-direction", "drifting-gratings"}
        Which recording.
    folder : str or path-like, optional
        Folder of the file; by default the one that the environment variable ``SYMLIFT_DATA`` names.

    Returns
    -------
    Observations
        Counts, and the angle of each row in radians as ``latent``.

    Raises
    ------
    MissingDataError
        If the file is not found.
    InputError
        If the name is unknown, or if the file is damaged.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "head_direction_mouse28.npz"
    ...     np.savez(path, X=np.ones((4, 3)), angles=np.arange(4) * 90.0, period=360.0)
    ...     load_recording("head-direction", folder).latent.round(2)
    array([0.  , 1.57, 3.14, 4.71], dtype=float32)
    """
    if name not in ARRAYS:
        raise InputError(f"recording {name!r} is unknown: use one of {', '.join(ARRAYS)}")
    place = folder if folder is not None else os.environ.get("SYMLIFT_DATA")
    if not place:
        raise MissingDataError(
            f"the recording {name!r} is not part of symlift: set SYMLIFT_DATA to the folder with"
            f" {ARRAYS[name]}"
        )
    path = Path(place) / ARRAYS[name]
    if not path.is_file():
        raise MissingDataError(
            f"{path} does not exist: put it there, or set SYMLIFT_DATA to its folder"
        )
    try:
        stored = read_arrays(path, ("X", "angles", "period"))
        X, angles, period = stored["X"], stored["angles"], float(stored["period"])
        if X.ndim != 2 or angles.shape != X.shape[:1] or not period > 0:
            raise ValueError("shapes")
    except InputError:
        raise
    except (*UNREADABLE, KeyError, TypeError) as error:
        raise InputError(
            f"{path} is damaged or lacks X, angles or period ({error}): get it again"
        ) from None
    return angles_of(X, 2 * np.pi * angles.astype(np.float64) / period, name)


def z_scores(counts: ArrayLike, expected: ArrayLike) -> NDArray[np.float64]:
    """Convert counts to Φ⁻¹(P(k ≤ count)) for Poisson k, relative to spontaneous activity.

    Half of the probability of the count itself is left out (the mid-distribution), so that
    spontaneous activity has mean 0.

    Parameters
    ----------
    counts : array-like of shape (n, d)
        Spike counts.
    expected : array-like of shape (d,)
        Expected spontaneous count of each column.

    Returns
    -------
    ndarray of shape (n, d)
        Scores from -8 to 8.

    Examples
    --------
    >>> z_scores([[0, 3], [4, 3]], [1.0, 3.0]).round(2)
    array([[-0.9 ,  0.09],
           [ 2.28,  0.09]])
    """
    from scipy.stats import norm, poisson

    k = np.asarray(counts, dtype=np.float64)
    # a unit that was silent may still fire
    mean = np.maximum(np.asarray(expected, dtype=np.float64), 1e-3)
    here = poisson.pmf(k, mean) / 2
    below, above = poisson.cdf(k - 1, mean) + here, poisson.sf(k, mean) + here
    # each tail by its own probability: 1 - 1e-20 is 1 in floating point
    with np.errstate(divide="ignore"):
        z = np.where(below < 0.5, norm.ppf(below), -norm.ppf(above))
    return np.clip(z, -_FARTHEST, _FARTHEST)


def angles_of(X: NDArray, angles: NDArray, name: str) -> Observations:
    """Recordings X (n, units) on a ring of as many points as units, with an angle per row."""
    grid = Grid((X.shape[1],), periodic=True)
    wrapped = np.mod(np.asarray(angles, dtype=np.float64), 2 * np.pi).astype(np.float32)
    return Observations(np.asarray(X, dtype=np.float32), wrapped, None, grid, grid.periodic, name)
