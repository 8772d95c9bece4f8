"""The homogeneous setting: each vector is one point of a ring or a torus, seen through many noisy,
tuned channels.

The latent signal is a spike on a circle. Only its projection on the lowest harmonics can be
recovered, and the fundamental one is enough: its phase is the position, its amplitude the strength.
So the output has rank two for any number of grid points, and the task is to find one plane of the
observations in which the data are a *ring*.

1. **Stabilise** (`stabilise`): square roots give Poisson noise the same variance everywhere, and
   rows of unit length do not depend on a common gain.
2. **Search**: in whitened principal coordinates z, a uniform ring of radius ρ with Gaussian noise
   of variance σ² = 1 - ρ²/2 has the
   log density, relative to the Gaussian of the same covariance,

       log p(u)/g(u) = -(|u|² + ρ²)/2σ² + log I₀(ρ|u|/σ²) - log σ² + |u|²/2,        u = Bᵀz,

   so every plane B has a likelihood. Other Gaussian variation does not change it and need not be
   modelled.
3. **Follow the curve** (`follow`): tuned populations trace a closed curve with higher harmonics.
   Expectation-maximisation for z = a + Σ_h A_h (cos hφ, sin hφ) + noise of any covariance, φ
   uniform, in few harmonics.
4. **Read out** (`read_out`): φ | x ~ von Mises with natural parameter Bᵀ(x - mean). For Poisson
   neurons with von Mises tuning that *is* the posterior, linear in the counts, and a gain only
   scales the amplitude.
5. **Assemble** (`assemble`): the group turns the planes of all harmonics, each at its own speed,
   and leaves the rest of x as it is, so that `LatentDomain.shift` gives full observations; the
   filter keeps the fundamental.

**Two angles** are treated in nearly the same way. The planes of e^{iφ₁}, e^{iφ₂} (and e^{i(φ₁ -
φ₂)}, where the tuning is hexagonal) are rings each, with about equal likelihoods, so pairs of the
best planes start expectation-maximisation on a torus (`symlift.solvers.ring.torus`). All pairs of
generators of the lattice are equivalent: angles are determined up to integer matrices of
determinant ±1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Grid
from symlift.core.linalg import of_one_direction
from symlift.errors import InputError
from symlift.solvers.contract import (
    Evidence,
    Progress,
    Solution,
    Stage,
    Trace,
    TunedTo,
    no_progress,
)
from symlift.solvers.ring.assemble import assemble
from symlift.solvers.ring.contest import contest
from symlift.solvers.ring.evidence import AngleEvidence, angle_evidence, torus_lead
from symlift.solvers.ring.follow import follow
from symlift.solvers.ring.read_out import read_out
from symlift.solvers.ring.search import informative_rank, search_planes, stabilise, whitened
from symlift.solvers.ring.torus import MODES, follow_torus

__all__ = ["MOST_ROWS", "solve"]

#: rows that are used; of more, a random sample
MOST_ROWS = 20_000
# how far a torus must be ahead of the next best domain on held-out rows, as a share of its
# likelihood
_LEAST_LEAD = 0.05


def solve(
    X: NDArray, grid: Grid, rng: np.random.Generator, progress: Progress = no_progress
) -> Solution:
    """A lifting map onto a ring or a torus, of rank two for each axis: phase is position, amplitude
    is strength.
    """
    if grid.ndim > 2 or not all(grid.periodic) or min(grid.shape) < 3:
        raise InputError(
            "the ring solver finds one angle or two, but the grid is"
            f" {grid}{'' if all(grid.periodic) else ' and open'}: use grid=(N,) or grid=(N, M),"
            " periodic=True, with at least 3 points along each axis"
        )
    n, d = X.shape
    if d < 4 * grid.ndim:
        kind = "a ring" if grid.ndim == 1 else "a torus"
        raise InputError(
            f"X has {d} columns that vary: {kind} needs at least {4 * grid.ndim} to stand out from"
            " noise"
        )
    chosen = np.sort(rng.choice(n, MOST_ROWS, replace=False)) if n > MOST_ROWS else np.arange(n)
    rows = np.asarray(X[chosen], dtype=np.float64)
    Z = stabilise(rows)
    if of_one_direction(rows) or of_one_direction(Z):
        raise InputError(
            "the rows vary along one direction only, and an angle needs two: leave out the column"
            " that drives all others, or give rows that differ in more"
        )
    progress("searching", 0.0)
    U = whitened(Z, informative_rank(Z, rng))
    planes, gains = search_planes(U, rng)
    searched = {"dimensions": U.shape[1], "likelihood": round(gains[0], 4)}
    searched |= {"runner_up": round(gains[1], 4)} if len(gains) > 1 else {}
    progress("following", 0.4)
    find = _ring if grid.ndim == 1 else _torus
    harmonics, modes, evidence, followed = find(Z, U, planes, rng)
    if grid.ndim == 1:
        evidence = replace(evidence, ahead=round(_ahead(gains), 4))
    progress("reading out", 0.7)
    readings = [read_out(rows, harmonics[:, axis], rng) for axis in range(grid.ndim)]
    model = assemble(rows, [B for B, _ in readings], harmonics, modes, grid)
    stages = (
        Stage("search", 0.0, searched),
        Stage("follow", 0.0, {**followed, "resultants": _resultants(harmonics)}),
        Stage("read out", 0.0, {"ridge": min(ridge for _, ridge in readings)}),
    )
    return Solution(model, evidence, Trace(solver="ring", stages=stages))


_Found = tuple[NDArray[np.complex128], NDArray[np.int64], Evidence, dict[str, Any]]


def _ring(Z: NDArray, U: NDArray, planes: list[NDArray], rng: np.random.Generator) -> _Found:
    """One angle; it is a ring if that domain wins, and if halves of the columns agree on it."""
    plane = U @ planes[0]
    harmonics, likelihood = follow(U, np.arctan2(plane[:, 1], plane[:, 0]))
    among = contest(U, planes, np.angle(harmonics[:, 0]), rng)
    angle = angle_evidence(Z, harmonics[:, 0], rng)
    domain: TunedTo = "" if among.domain == "ring" and not angle.agrees else among.domain
    evidence = angle.judged(domain, "ring", among)
    modes = np.arange(1, harmonics.shape[1] + 1)[:, None]
    return harmonics, modes, evidence, {"likelihood": round(likelihood, 4)}


def _torus(Z: NDArray, U: NDArray, planes: list[NDArray], rng: np.random.Generator) -> _Found:
    """Two angles; if the data do not support them, the evidence names the domain that they do."""
    harmonics, likelihood = follow_torus(U, planes, rng)
    angles = [angle_evidence(Z, harmonics[:, axis], rng) for axis in range(2)]
    worst = AngleEvidence(min(a.agreement for a in angles), max(a.roundness for a in angles))
    among = contest(U, planes, np.angle(harmonics[:, 0]), rng)
    lead = torus_lead(among.scores)
    is_torus = all(a.is_angle for a in angles) and lead >= _LEAST_LEAD
    other: TunedTo = "" if among.domain == "torus" else among.domain
    evidence = replace(
        worst.judged("torus" if is_torus else other, "torus", among), ahead=round(lead, 4)
    )
    return harmonics, MODES, evidence, {"likelihood": round(likelihood, 4)}


def _ahead(gains: list[float]) -> float:
    """Lead of the best plane over the next one, as a share of its likelihood; about 0 if two planes
    do equally well.
    """
    if len(gains) < 2 or gains[0] <= 0:
        return float(gains[0] > 0)
    return min(max(1 - gains[1] / gains[0], 0.0), 1.0)


def _resultants(harmonics: NDArray) -> list[float]:
    """|E e^{ihφ}|: 0 for phases that are spread evenly."""
    return np.abs(harmonics.mean(axis=0)).round(4).tolist()
