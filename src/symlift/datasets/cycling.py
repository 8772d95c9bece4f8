"""Counts of single cells, some of whose genes follow a cycle."""

from __future__ import annotations

import numpy as np

from symlift.core.grid import Grid
from symlift.datasets.observations import Observations, check_count
from symlift.datasets.randomness import RandomState, generator
from symlift.errors import InputError

__all__ = ["cycling_cells"]

_POINTS = 30


def cycling_cells(
    n: int,
    cycling: int = 60,
    others: int = 140,
    resting: float = 1.0,
    depth: float = 3000.0,
    groups: int = 3,
    random_state: RandomState = 0,
) -> Observations:
    """Simulate counts of single cells that go through the cell cycle.

    The logarithm of a cycling gene's rate is ``b_j + a_j cos(φ - φ_j)``; the first half of these
    genes peak around 0, as those of the S phase do, the second half around a third of a turn.  All
    other genes differ between groups of cells.  Rates are shares of a cell's depth, which is
    log-normal, and counts are Poisson with a gamma-distributed rate (dispersion 0.1).

    Parameters
    ----------
    n : int
        Number of cells.
    cycling, others : int
        Number of genes that follow the cycle, and of those that do not.
    resting : float, default=1.0
        How much cells gather in one part of the cycle, as κ of a von Mises distribution; with 1
        the most crowded part has seven times the cells of the emptiest one, with 0 they are spread
        evenly.
    depth : float, default=3000.0
        Median number of counts of a cell.
    groups : int, default=3
        Number of groups of cells.
    random_state : int, numpy.random.Generator or None, default=0
        Seed.

    Returns
    -------
    Observations
        Counts (n, cycling + others), the cycling genes first; ``latent`` (n,) are the phases.

    Examples
    --------
    >>> from symlift.datasets import cycling_cells
    >>> data = cycling_cells(300, random_state=1)
    >>> data.X.shape, data.latent.shape, data.angles
    ((300, 200), (300,), True)
    """
    n, cycling, groups = check_count(n), check_count(cycling), check_count(groups)
    if others < 0 or resting < 0 or depth <= 0:
        raise InputError("others, resting and depth cannot be negative, and depth not 0")
    gene_rng, cell_rng, noise_rng = generator(random_state).spawn(3)
    peaks = np.where(np.arange(cycling) < cycling / 2, 0.0, 2 * np.pi / 3)
    peaks = peaks + 0.5 * gene_rng.normal(size=cycling)
    depths = gene_rng.uniform(0.6, 1.6, cycling)
    rates = np.tile(gene_rng.normal(-8, 1, cycling + others), (n, 1))
    angle = np.mod(cell_rng.vonmises(-np.pi / 2, resting, n), 2 * np.pi)
    rates[:, :cycling] += 0.8 + depths * np.cos(angle[:, None] - peaks)
    rates[:, cycling:] += (0.8 * gene_rng.normal(size=(groups, others)))[
        cell_rng.integers(0, groups, n)
    ]
    share = np.exp(rates)
    share /= share.sum(axis=1, keepdims=True)
    size = depth * np.exp(0.4 * cell_rng.normal(size=(n, 1)))
    counts = noise_rng.poisson(share * size * noise_rng.gamma(10, 0.1, share.shape))
    grid = Grid((_POINTS,), periodic=True)
    return Observations(
        counts.astype(np.float32),
        angle.astype(np.float32),
        None,
        grid,
        grid.periodic,
        f"cycling-cells-{cycling}",
    )
