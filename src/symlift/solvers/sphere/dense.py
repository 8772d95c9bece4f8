"""A sphere behind a dense mixing, from third moments of whitened rows.

Where they vanish, because pulses are of both signs, fourth moments take their place: those with
degree 0, the mean of the field, which no rotation changes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.harmonics import degree_blocks, degrees_of
from symlift.core.linalg import of_one_direction, polar
from symlift.core.model import LiftedModel
from symlift.core.sphere import MAX_DEGREE, Sphere
from symlift.errors import InputError
from symlift.solvers.contract import Evidence, Progress, Solution, Stage, Trace, no_progress
from symlift.solvers.sphere.finish import framed, least_distortion, skewest_signs
from symlift.solvers.sphere.invariants import (
    Invariants,
    invariants,
    moment_with,
    rotated,
    third_moment,
)
from symlift.solvers.sphere.judge import (
    FOLDS,
    SIGMAS,
    Judged,
    judged,
    needed_share,
    standing_out,
)
from symlift.solvers.sphere.orient import oriented, polished
from symlift.solvers.sphere.runs import best_runs

__all__ = ["highest_degree", "refuse_one_direction", "solve_dense"]

# assignments of runs that are oriented for each start; they are polished, the best first, until
# one is convincing
_ORDERS, _FEW_ORDERS, _LOW = 8, 3, 5
# steps of a descent, and of the search in independent directions, which is far from any end
_ITERATIONS, _CONTROL_ITERATIONS = 150, 60
# moments with the mean are formed anew so often at most, until its direction stays
_RENEWED, _SAME = 6, 1 - 1e-4
# rows are cut into so many stretches; of ten, three are held out
_STRETCHES, _HELD = 40, (2, 5, 8)
# directions of less variance than this share of the largest are none
_RANK = 1e-10


@dataclass(frozen=True, eq=False)
class _Rows:
    """Whitened rows: folds of those of the search, folds of those held out, and what they show.

    Moments are those of the third order, or of the fourth with the mean of the field, u (d,).
    """

    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]
    whitening: NDArray[np.float64]
    energy: NDArray[np.float64]
    fit: list[NDArray[np.float64]]
    held: list[NDArray[np.float64]]
    third: list[NDArray[np.float64]]
    with_mean: bool = False

    def moment(self, u: NDArray) -> tuple[NDArray[np.float64], bool]:
        """The moment (d, d, d) of the rows of the search, and whether it stands out of noise."""
        folds = [moment_with(Z, u) for Z in self.fit] if self.with_mean else self.third
        return np.asarray(sum(folds) / len(folds)), standing_out(folds) >= SIGMAS

    def folds(self, u: NDArray) -> list[NDArray[np.float64]]:
        """The moments of the folds that are held out."""
        return [moment_with(Z, u) if self.with_mean else third_moment(Z) for Z in self.held]

    def everything(self, u: NDArray) -> NDArray[np.float64]:
        """That of all rows."""
        parts = [(self.moment(u)[0], sum(map(len, self.fit)))]
        parts += zip(self.folds(u), map(len, self.held), strict=True)
        return np.asarray(sum(T * n for T, n in parts) / sum(n for _, n in parts))


@dataclass(frozen=True, eq=False)
class _Found:
    """A rotation (d, d) of whitened rows, the start that led to it, and what it explains of the
    rows of the search.
    """

    start: str
    V: NDArray[np.float64]
    share: float


@dataclass
class _Log:
    """What each stage did and how long it took."""

    progress: Progress
    stages: list[Stage] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str, share: float) -> Iterator[dict[str, Any]]:
        self.progress(name, share)
        values: dict[str, Any] = {}
        began = time.perf_counter()
        yield values
        self.stages.append(Stage(name, round(time.perf_counter() - began, 3), values))


def solve_dense(
    X: NDArray, degree: int, grid: Sphere, mixing: str, progress: Progress = no_progress
) -> Solution:
    """The field on a sphere behind a dense mixing, up to a degree, and what held-out rows say."""
    log = _Log(progress)
    with log.stage("moments", 0.0):
        rows = _whitened(X)
        rows = replace(rows, with_mean=standing_out(rows.third) < SIGMAS)
    best, verdict, control = _search(rows, degree, mixing, log)
    # where the degree is not given, degrees that no moment shows are left out
    while grid.degree is None and 2 <= verdict.determined < degree:
        degree = verdict.determined
        best, verdict, control = _search(rows, degree, mixing, log)
    with log.stage("finish", 0.9) as values:
        E, signs = _map_of(best, rows, invariants(degree), mixing)
        values |= {"signs": signs.astype(int).tolist(), "start": best.start}
    evidence = Evidence(
        found=verdict.z >= SIGMAS and verdict.share >= needed_share(control),
        reach="general",
        explained=round(verdict.share, 4),
        ceiling=1.0,
        carried_by="rotations",
        nongaussianity=round(verdict.z, 2),
        control=round(control, 4),
    )
    model = LiftedModel.from_harmonics(E, Sphere(degree), rows.mean)
    return Solution(model, evidence, Trace("fast", f"sphere from {best.start}", tuple(log.stages)))


def refuse_one_direction(X: NDArray) -> None:
    """Raise InputError for rows that are multiples of one another."""
    if of_one_direction(X):
        raise InputError(
            "the rows vary along one direction only, and no field is found in that: give rows that"
            " differ in more than their size"
        )


def highest_degree(X: NDArray, grid: Sphere, mixing: str) -> int:
    """The degree that is given, or the highest that columns allow; checks what is asked."""
    n, d = X.shape
    if not np.isfinite(X).all():
        raise InputError(
            "X holds NaN: a dense mixing on a sphere needs whole rows, drop the others"
        )
    refuse_one_direction(X)
    most = math.isqrt(d) - 1
    degree = min(most, MAX_DEGREE) if grid.degree is None else grid.degree
    if degree > most or degree < 2:
        least = 9 if grid.degree is None or degree < 2 else (degree + 1) ** 2
        raise InputError(
            f"a sphere of degree {max(degree, 2)} needs {least} columns that vary, and X has {d}:"
            " give a lower degree, or another domain"
        )
    if n < 4 * d:
        raise InputError(
            f"X has {n} rows of {d} columns: a {mixing} mixing on a sphere needs at least {4 * d}"
        )
    return degree


def _whitened(X: NDArray) -> _Rows:
    """Rows of unit variance in every direction (the symmetric square root), and their moments."""
    n = len(X)
    stretch = np.arange(n) * _STRETCHES // n
    held = np.isin(stretch % 10, _HELD)
    fit, rest = np.asarray(X[~held], dtype=np.float64), np.asarray(X[held], dtype=np.float64)
    mean = fit.mean(axis=0)
    fit, rest = fit - mean, rest - mean
    covariance = fit.T @ fit / len(fit)
    values, vectors = np.linalg.eigh(covariance)
    real = values > _RANK * values[-1]
    roots = np.where(real, 1 / np.sqrt(np.where(real, values, 1.0)), 0.0)
    H = (vectors * roots) @ vectors.T
    Z, kept_out = fit @ H, rest @ H
    length = np.square(Z).sum(axis=1)
    energy = (Z * (length / length.mean())[:, None]).T @ Z / len(Z)
    parts, held_out = np.array_split(Z, FOLDS), np.array_split(kept_out, FOLDS)
    third = [third_moment(part) for part in parts]
    return _Rows(mean, covariance, H, energy, parts, held_out, third)


def _search(rows: _Rows, degree: int, mixing: str, log: _Log) -> tuple[_Found, Judged, float]:
    """The best of all starts, what held-out rows say of it, and what the best control reaches."""
    part = invariants(degree)
    with log.stage(f"controls of degree {degree}", 0.3) as values:
        control = found_by_chance(degree)
        values |= {"share": round(control, 4)}
    best: _Found | None = None
    order = ", fourth moments" if rows.with_mean else ""
    for name, matrix in _equivariant(rows, mixing).items():
        with log.stage(f"{name} of degree {degree}{order}", 0.5) as values:
            one = _from_runs(name, matrix, rows, part, needed_share(control))
            values |= {"share": round(one.share, 4)}
        if best is None or one.share > best.share:
            best = one
        if one.share >= needed_share(control):
            break
    assert best is not None  # noqa: S101 - there are always starts
    return best, _judge(best, rows, part), control


def _equivariant(rows: _Rows, mixing: str) -> dict[str, NDArray]:
    """Symmetric matrices that commute with rotations, whose eigenvalues come in runs.

    The covariance, unless a linear mixing has destroyed its runs; the third moment multiplied with
    itself; the covariance weighted by the length of whitened rows.
    """
    out = {"covariance": rows.covariance} if mixing != "linear" else {}
    if not rows.with_mean:
        third = np.asarray(sum(rows.third)).reshape(len(rows.covariance), -1)
        out["third moment"] = third @ third.T
    return out | {"lengths": rows.energy}


def _from_runs(
    name: str, matrix: NDArray, rows: _Rows, part: Invariants, convincing: float
) -> _Found:
    """The best rotation from the runs of one matrix."""
    D = part.dimension
    turned = []
    # a descent of degree 9 takes a second or two
    orders = _ORDERS if part.degree <= _LOW else _FEW_ORDERS
    for runs in best_runs(matrix, part.degree, orders):
        V = runs.basis.copy()
        moment, seen = rows.moment(V[0])
        T = rotated(V[:D], moment)
        Q = oriented(T, part)
        V[:D] = Q @ V[:D]
        inside = part.bispectrum(rotated(Q, T))
        turned.append((seen, float(np.sum(inside**2 * part.size)), V))
    turned.sort(key=lambda one: one[:2], reverse=True)
    best = _candidate(name, turned[0][2], rows, part)
    for seen, _, V in turned[1:]:
        if best.share >= convincing or not seen:
            break
        best = max(best, _candidate(name, V, rows, part), key=lambda one: one.share)
    return best


def _candidate(name: str, V: NDArray, rows: _Rows, part: Invariants) -> _Found:
    """The nearest end of a descent; moments with the mean change with it, until it stays."""
    for _ in range(_RENEWED if rows.with_mean else 1):
        u = V[0]
        moment, seen = rows.moment(u)
        V, share = polished(V, moment, part, _ITERATIONS)
        if not seen or abs(u @ V[0]) > _SAME:
            break
    return _Found(name, V, share)


@cache
def found_by_chance(degree: int) -> float:
    """What the search makes of directions that are independent and equally skewed, which is as much
    as it makes of fields on rings, tori and grids (0.40 to 0.56 at degree 5).
    """
    part, rng = invariants(degree), np.random.default_rng(degree)
    D = part.dimension
    tensor = np.zeros((D, D, D))
    tensor[np.arange(D), np.arange(D), np.arange(D)] = 1.0
    V, share = polished(polar(rng.standard_normal((D, D))), tensor, part, _CONTROL_ITERATIONS)
    inner = degrees_of(part.degree) > 0
    T = rotated(V, tensor)[np.ix_(inner, inner, inner)]
    inside = part.project(rotated(V, tensor))[np.ix_(inner, inner, inner)]
    return max(share, float(np.vdot(inside, T) / np.vdot(T, T)))


def _judge(one: _Found, rows: _Rows, part: Invariants) -> Judged:
    V = one.V[: part.dimension]
    return judged([rotated(V, T) for T in rows.folds(V[0])], part)


def _map_of(
    best: _Found, rows: _Rows, part: Invariants, mixing: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The map to coefficients (D, d), from a last descent on all rows, and the signs of degrees."""
    D, ell = part.dimension, degrees_of(part.degree)
    T = rows.everything(best.V[0])
    V = polished(best.V, T, part, _ITERATIONS)[0][:D]
    unmixed = V @ rows.whitening
    isometric = mixing == "orthogonal" or (mixing == "auto" and best.start == "covariance")
    if isometric:
        spectrum = np.diag(V @ rows.covariance @ V.T)
        scale = np.sqrt([spectrum[block].mean() for block in degree_blocks(part.degree)])
        E = V
    else:
        scale = least_distortion(unmixed, part.degree)
        E = scale[ell][:, None] * unmixed
    beta = part.bispectrum(rotated(V, T)) * scale[part.triples].prod(axis=1)
    signs = skewest_signs(beta, part, rows.with_mean)
    return framed(signs[ell][:, None] * E, part.degree), signs
