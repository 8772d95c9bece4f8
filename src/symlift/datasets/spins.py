"""Ising spins: a field that is neither Gaussian nor sparse (paper, appendix "Ising model")."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symlift.core.grid import Grid
from symlift.datasets.observations import Observations, check_count, check_noise, observe
from symlift.datasets.randomness import RandomState, generator
from symlift.errors import InputError

__all__ = ["ising"]

# samples updated together: a chain of 99 spins is then 0.8 MB, which a core's cache holds
BATCH = 2048


def ising(
    n: int,
    shape: int | Sequence[int] = 33,
    beta: float | tuple[float, float] = (1.0, 5.0),
    sweeps: int = 10,
    transform: str | ArrayLike = "identity",
    noise: float = 0.05,
    random_state: RandomState = 0,
) -> Observations:
    """Generate windows of ±1 spins after sequential Gibbs sweeps from a random start.

    Each spin in turn is drawn from its distribution given its neighbours, ``p(s = +1) = 1/(1 +
    exp(−2β Σ neighbours))``.  The field has free ends and is three times as long as the window on
    each axis; the middle is kept, so that the ends have no influence.

    Parameters
    ----------
    n : int
        Number of samples.
    shape : int or sequence of int, default=33
        Number of grid points on each axis.
    beta : float or (float, float), default=(1.0, 5.0)
        Inverse temperature, or the range from which each sample draws its own.
    sweeps : int, default=10
        Number of sweeps.  Ten do not reach equilibrium at these temperatures: domains still grow.
    transform : str or array-like of shape (N, N), default="identity"
        Name or matrix of the transform that the spins are observed through, as in `gsn`.
    noise : float, default=0.05
        Deviation of the white noise of the observations, relative to that of the latent.
    random_state : int, numpy.random.Generator or None, default=0
        Seed.

    Returns
    -------
    Observations
        Observed vectors, latent spins, transform and grid.

    Raises
    ------
    InputError
        If a parameter is out of range.

    References
    ----------
    "Blind Recovery of Latent Domains via Unsupervised Symmetry Discovery", appendix "Ising model".

    Examples
    --------
    >>> data = ising(1000, 33, transform="linear", random_state=0)
    >>> data.X.shape, np.unique(data.latent).tolist()
    ((1000, 33), [-1.0, 1.0])
    """
    n, noise = check_count(n), check_noise(noise)
    grid = Grid(shape)
    low, high = _temperatures(beta)
    if not isinstance(sweeps, int | np.integer) or sweeps < 0:
        raise InputError(f"sweeps = {sweeps!r} must be a whole number, at least 0")
    spin_rng, mixing_rng, noise_rng = generator(random_state).spawn(3)

    field = Grid(tuple(3 * length for length in grid.shape))
    window = field.flat(grid.indices() + np.array(grid.shape))
    links = _links(field)
    latent = np.empty((n, grid.size), dtype=np.float32)
    for start in range(0, n, BATCH):
        count = min(BATCH, n - start)
        betas = spin_rng.uniform(low, high, count).astype(np.float32)
        latent[start : start + count] = _gibbs(betas, links, int(sweeps), spin_rng)[window].T
    return observe(latent, grid, transform, noise, mixing_rng, noise_rng, f"ising-{grid}")


def _temperatures(beta: float | tuple[float, float]) -> tuple[float, float]:
    try:
        bounds = np.broadcast_to(np.asarray(beta, dtype=np.float64), (2,))
    except (TypeError, ValueError):
        raise InputError(
            f"beta {beta!r} is not understood: give one number, or a pair (low, high)"
        ) from None
    low, high = float(bounds[0]), float(bounds[1])
    if not 0 <= low <= high < np.inf:
        raise InputError(
            f"beta {beta!r} is no range of inverse temperatures: give 0 <= low <= high"
        )
    return low, high


def _links(field: Grid) -> list[NDArray[np.int64]]:
    """The neighbours of each site."""
    edges = field.neighbours()
    both = np.concatenate([edges, edges[:, ::-1]])
    both = both[np.argsort(both[:, 0], kind="stable")]
    return np.split(both[:, 1], np.cumsum(np.bincount(both[:, 0]))[:-1])


def _gibbs(
    betas: NDArray[np.float32],
    links: list[NDArray[np.int64]],
    sweeps: int,
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    """Spins (sites, samples) after ``sweeps`` passes over the sites, all samples at once.

    With u uniform, ``u < 1/(1 + exp(−2βh))`` is ``logit(u)/2β < h``: the sum of neighbours h needs
    no exponential, and the logits of a site's samples are one vectorised logarithm, whatever the
    number of neighbours.
    """
    spins = np.where(
        rng.random((len(links), len(betas)), dtype=np.float32) < 0.5, np.float32(-1), np.float32(1)
    )
    threshold = np.empty_like(betas)
    # u = 0 or β = 0: an infinite threshold is the right one (both and u = 1/2: not a number, taken
    # as −1)
    with np.errstate(divide="ignore", invalid="ignore"):
        width = np.float32(0.5) / betas
        for _ in range(sweeps):
            for site, neighbours in enumerate(links):
                rng.random(dtype=np.float32, out=threshold)
                np.divide(threshold, 1 - threshold, out=threshold)
                np.log(threshold, out=threshold)
                threshold *= width
                field = spins[neighbours[0]].copy()
                for neighbour in neighbours[1:]:
                    field += spins[neighbour]
                # ±1 from the comparison, without a branch
                np.multiply(threshold < field, np.float32(2), out=spins[site])
                spins[site] -= 1
    return spins
