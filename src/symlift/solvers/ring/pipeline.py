"""The homogeneous setting: each vector is one point of a ring (an angle), seen through many noisy, tuned channels.

The latent signal is a spike on a circle.  Its projection on the lowest harmonics is all that there is to recover, and the
fundamental one is enough: its phase is the position, its amplitude the strength.  So the output has rank two, whatever the
number of grid points, and what has to be found is one plane of the observations in which the data are a *ring*.

1. **Stabilise** (:func:`stabilise`): square roots make Poisson noise alike everywhere, rows of unit length know no common gain.
2. **Search**: in whitened principal coordinates z, a uniform ring of radius ρ with Gaussian noise of variance σ² = 1 - ρ²/2 has the
   log density, relative to the Gaussian of the same covariance,

       log p(u)/g(u) = -(|u|² + ρ²)/2σ² + log I₀(ρ|u|/σ²) - log σ² + |u|²/2,        u = Bᵀz,

   so every plane B has a likelihood.  Nothing else has to be modelled: whatever is Gaussian beside the ring costs nothing.
3. **Follow the curve** (:func:`follow`): tuned populations trace a closed curve with higher harmonics.  Expectation-maximisation
   for z = a + Σ_h A_h (cos hφ, sin hφ) + noise of any covariance, φ uniform, in few harmonics.
4. **Read out** (:func:`read_out`): φ | x ~ von Mises with natural parameter Bᵀ(x - mean).  For Poisson neurons with von Mises
   tuning that *is* the posterior, linear in the counts, and a gain only scales the amplitude.
5. **Assemble** (:func:`assemble`): the group turns the planes of all harmonics, each at its own speed, and leaves the rest of x
   as it is, so that :meth:`~symlift.LatentDomain.shift` gives full observations; the filter keeps the fundamental.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.errors import InputError
from symlift.metrics.circular import circular_correlation
from symlift.solvers.contract import Evidence, Progress, Solution, Stage, Trace, no_progress
from symlift.solvers.ring.assemble import assemble
from symlift.solvers.ring.follow import follow
from symlift.solvers.ring.read_out import read_out
from symlift.solvers.ring.search import informative_rank, search, stabilise, whitened

__all__ = ["solve"]

_ROWS = 20_000
# phases from two halves of the columns agree on rows that were not fitted, and are round: 1 is a circle, 2 a Gaussian blob
_AGREEMENT, _ROUNDNESS = 0.25, 1.75


def solve(X: NDArray, grid: Grid, rng: np.random.Generator, progress: Progress = no_progress) -> Solution:
    """A lifting map of rank two onto a ring: phase is position, amplitude is strength."""
    if grid.ndim != 1 or not grid.periodic[0] or grid.size < 3:
        raise InputError(
            f"the ring solver finds a ring, but the grid is {grid}: use grid=(N,), periodic=True, with N of at least 3"
        )
    n, d = X.shape
    if d < 4:
        raise InputError(f"X has {d} columns that vary: a ring needs at least 4 to stand out from noise")
    chosen = np.sort(rng.choice(n, _ROWS, replace=False)) if n > _ROWS else np.arange(n)
    rows = np.asarray(X[chosen], dtype=np.float64)
    progress("searching", 0.0)
    Z = stabilise(rows)
    U = whitened(Z, informative_rank(Z, rng))
    planes, gains = search(U, rng)
    progress("following", 0.4)
    plane = U @ planes[0]
    harmonics, likelihood = follow(U, np.arctan2(plane[:, 1], plane[:, 0]))
    progress("reading out", 0.7)
    B, ridge = read_out(rows, harmonics[:, 0], rng)
    model = assemble(rows, B, harmonics, grid)
    agreement, roundness = _evidence(Z, harmonics[:, 0], rng)
    evidence = Evidence(
        found=bool(agreement > _AGREEMENT and roundness < _ROUNDNESS), carried_by="angles",
        agreement=round(agreement, 4), roundness=round(min(roundness, 1e6), 4), ahead=round(_ahead(gains), 4),
    )  # fmt: skip
    runner_up = {"runner_up": round(gains[1], 4)} if len(gains) > 1 else {}
    stages = (
        Stage("search", 0.0, {"dimensions": U.shape[1], "likelihood": round(gains[0], 4), **runner_up}),
        Stage("follow", 0.0, {"likelihood": round(likelihood, 4), "resultants": _resultants(harmonics)}),
        Stage("read out", 0.0, {"ridge": ridge}),
    )
    return Solution(model, evidence, Trace(solver="ring", stages=stages))


def _ahead(gains: list[float]) -> float:
    """How far the best plane is ahead of the next one, as a share of its likelihood: two rings that do equally well are none."""
    if len(gains) < 2 or gains[0] <= 0:
        return float(gains[0] > 0)
    return min(max(1 - gains[1] / gains[0], 0.0), 1.0)


def _resultants(harmonics: NDArray) -> list[float]:
    """|E e^{ihφ}|: 0 for phases that are spread evenly."""
    return np.abs(harmonics.mean(axis=0)).round(4).tolist()


def _evidence(Z: NDArray, target: NDArray, rng: np.random.Generator) -> tuple[float, float]:
    """Do two halves of the columns tell the same position on rows that were not fitted, and is it a circle?

    Readouts u_a, u_b of the halves have independent noise, so that E[u_a ū_b] = E|z|² and E[u_a² ū_b²] = E|z|⁴ are those of the
    latent alone: roundness E|z|⁴/(E|z|²)² is 1 on a circle and 2 in a Gaussian plane.
    """
    columns, held = rng.permutation(Z.shape[1]), rng.permutation(len(Z)) < len(Z) // 2
    wanted = np.stack([target.real, target.imag], axis=1)
    readings = []
    for half in (columns[::2], columns[1::2]):
        part = Z[:, half] - Z[~held][:, half].mean(axis=0)
        gram = part[~held].T @ part[~held]
        ridge = 0.05 * np.trace(gram) / len(half) * np.eye(len(half))
        u = part[held] @ np.linalg.solve(gram + ridge, part[~held].T @ wanted[~held])
        readings.append(u[:, 0] + 1j * u[:, 1])
    a, b = readings
    agreement = circular_correlation(np.angle(a), np.angle(b))
    common = float(np.mean(a * b.conj()).real)
    fourth = float(np.mean(a**2 * b.conj() ** 2).real)
    return agreement, fourth / common**2 if common > 0 and fourth > 0 else np.inf
